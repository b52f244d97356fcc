//! Packages in files: read, and checked as a device will.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use anyhow::Context as _;
use tenure_package::{PACKAGE_BYTES_MAX, Package};

/// Reads a package and checks it as the device will.
///
/// # Errors
/// The file can't be read, or is no package that its tenant signed.
pub fn read_package(path: &Path) -> anyhow::Result<Vec<u8>> {
    let bytes = read(path)
        .with_context(|| format!("can't read {}; make it with `tenure build`", path.display()))?;
    let package = Package::parse(&bytes).with_context(|| path.display().to_string())?;
    package.verify().with_context(|| path.display().to_string())?;
    Ok(bytes)
}

/// As much of a file as a package may have, and a byte: it may be a device without end.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(PACKAGE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
