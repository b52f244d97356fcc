//! The programs: what packages carry, each with a few lines that call it, and those of Embench-IoT.

use std::fs;
use std::path::{Path, PathBuf};

use crate::compile::here;
use crate::packages::Packages;

/// A program in C with a function `run`.
pub struct Program {
    pub name: String,
    pub sources: Vec<PathBuf>,
    /// Folders of headers.
    pub include: Vec<PathBuf>,
    pub flags: &'static [&'static str],
}

/// (name, package, folder in it, sources there, flags); the file in `c` that calls it has its name.
type Published =
    (&'static str, &'static str, &'static str, &'static [&'static str], &'static [&'static str]);

const PUBLISHED: [Published; 4] = [
    (
        "bzip2",
        "bzip2-sys",
        "bzip2-1.0.8",
        &[
            "blocksort.c",
            "bzlib.c",
            "compress.c",
            "crctable.c",
            "decompress.c",
            "huffman.c",
            "randtable.c",
        ],
        &["-DBZ_NO_STDIO"],
    ),
    ("lz4", "lz4-sys", "liblz4/lib", &["lz4.c"], &[]),
    ("xxhash", "lz4-sys", "liblz4/lib", &["xxhash.c"], &[]),
    (
        "zlib",
        "libz-sys",
        "src/zlib",
        &[
            "adler32.c",
            "crc32.c",
            "deflate.c",
            "inffast.c",
            "inflate.c",
            "inftrees.c",
            "trees.c",
            "zutil.c",
        ],
        &["-DZ_SOLO"],
    ),
];

/// Of Embench 1.0: it asks for `acos`, `cos` and `pow`, which neither processor has.
const LEFT_OUT: &str = "cubic";

/// The programs in packages of crates.io.
pub fn published(packages: &Packages) -> Vec<Program> {
    let program = |&(name, package, folder, sources, flags): &Published| {
        let folder = packages.folder(package).join(folder);
        let mut sources: Vec<_> = sources.iter().map(|source| folder.join(source)).collect();
        sources.push(here().join(format!("c/{name}.c")));
        Program { name: name.into(), sources, include: vec![folder], flags }
    };
    PUBLISHED.iter().map(program).collect()
}

/// Adds the programs of a checkout of Embench-IoT whose names aren't there.
pub fn add_embench(programs: &mut Vec<Program>, checkout: &Path) -> Result<(), String> {
    let support = checkout.join("support");
    for folder in listed(&checkout.join("src"))? {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name == LEFT_OUT || programs.iter().any(|known| known.name == name) {
            continue;
        }
        let mut sources = listed(&folder)?;
        sources.retain(|source| source.extension().is_some_and(|extension| extension == "c"));
        sources.extend([support.join("beebsc.c"), here().join("c/embench.c")]);
        // Releases up to 1.0 ask for the clock, those from 2.0 on for a factor.
        let flags = &["-DCPU_MHZ=1", "-DGLOBAL_SCALE_FACTOR=1", "-DWARMUP_HEAT=1"];
        programs.push(Program { name, sources, include: vec![folder, support.clone()], flags });
    }
    Ok(())
}

/// What lies in a folder, in order.
fn listed(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}
