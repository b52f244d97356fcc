//! A firmware as it stands in flash: what the linker put into its file, flat.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, elf};
use tenure_boot::{Header, map};

/// The ending of a product's file.
pub(super) const PRODUCT: &str = "product";

/// Writes the flat image of a firmware beside its file; that of the product has the name of the firmware.
pub(super) fn write(file: &Path) -> Result<PathBuf> {
    let bytes = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let image = flat(&bytes).with_context(|| file.display().to_string())?;
    let path = match file.extension().is_some_and(|extension| extension == PRODUCT) {
        true => file.with_extension("img"),
        false => file.with_added_extension("img"),
    };
    // Others may read it now: it is the old one or the new one.
    let partial = path.with_added_extension(std::process::id().to_string());
    std::fs::write(&partial, image)
        .and_then(|()| std::fs::rename(&partial, &path))
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

/// The flat image of a program that is no firmware, of at most `bytes_max` bytes.
pub(super) fn program(file: &Path, bytes_max: u32) -> Result<Vec<u8>> {
    let bytes = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let (_, image) = loaded(&bytes, bytes_max).with_context(|| file.display().to_string())?;
    Ok(image)
}

/// A firmware, from the header on.
fn flat(bytes: &[u8]) -> Result<Vec<u8>> {
    let (start, image) = loaded(bytes, map::SLOTS[0].bytes())?;
    if Header::from_bytes(&image).is_none_or(|header| header.load_at != start) {
        bail!("it doesn't begin with the header of a firmware");
    }
    Ok(image)
}

/// The bytes to load, and where; gaps are filled as erased flash is.
fn loaded(bytes: &[u8], bytes_max: u32) -> Result<(u32, Vec<u8>)> {
    let header = elf::FileHeader32::<Endianness>::parse(bytes)?;
    let endian = header.endian()?;
    let mut parts = Vec::new();
    for segment in header.program_headers(endian, bytes)? {
        let data = segment.data(endian, bytes).ok().context("it ends too soon")?;
        if segment.p_type(endian) == elf::PT_LOAD && !data.is_empty() {
            parts.push((segment.p_paddr(endian), data));
        }
    }
    parts.sort_by_key(|(address, _)| *address);
    let start = parts.first().context("there is nothing to load in it")?.0;
    let mut image = Vec::new();
    for (address, data) in parts {
        let at = (address - start) as usize;
        if at < image.len() || at + data.len() > bytes_max as usize {
            bail!("it doesn't fit {bytes_max} bytes");
        }
        image.resize(at, 0xFF);
        image.extend(data);
    }
    Ok((start, image))
}
