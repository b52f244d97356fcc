//! Packages in files: read, and checked as a device will.

use std::path::Path;

use anyhow::Context as _;
use tenure_package::Package;

/// Reads a package and checks it as the device will.
///
/// # Errors
/// The file can't be read, or is no package that its tenant signed.
pub fn read_package(path: &Path) -> anyhow::Result<Vec<u8>> {
    let bytes = std::fs::read(path)
        .with_context(|| format!("can't read {}; make it with `tenure build`", path.display()))?;
    let package = Package::parse(&bytes).with_context(|| path.display().to_string())?;
    package.verify().with_context(|| path.display().to_string())?;
    Ok(bytes)
}
