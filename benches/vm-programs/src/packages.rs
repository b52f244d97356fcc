//! The packages of crates.io that carry others' C: cargo fetches them, and each must be the one that this table means.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// (name, version, SHA-256 of the package).
const PACKAGES: [(&str, &str, &str); 4] = [
    (
        "bzip2-sys",
        "0.1.13+1.0.8",
        "225bff33b2141874fe80d71e07d6eec4f85c5c216453dd96388240f96e1acc14",
    ),
    ("libz-sys", "1.1.33", "fee3f59f4321dab0c78d828942e7aa09d0bd8ad6e78a501977e6bf3d02938045"),
    (
        "lz4-sys",
        "1.11.1+lz4-1.10.0",
        "6bd8c0d6c6ed0cd30b3652886bb8711dc4bb01d637a68105a3d5158039b418e6",
    ),
    ("wasm3-sys", "0.3.0", "5a4e5d10bf1ffe7753275d4bbae3dc135dd2d2decd90e615accf9fef8bc52bab"),
];

/// Where the packages lie.
pub struct Packages(PathBuf);

impl Packages {
    /// The folder of a package of the table.
    pub fn folder(&self, name: &str) -> PathBuf {
        let of = PACKAGES.iter().find(|(known, ..)| *known == name);
        let (name, version, _) = of.expect("it is in the table");
        self.0.join(format!("{name}-{version}"))
    }
}

/// Fetches the packages into a folder, if they aren't there.
pub fn fetch(products: &Path) -> Result<Packages, String> {
    let project = products.join("packages");
    let packages = Packages(project.join("fetched"));
    if PACKAGES.iter().any(|(name, ..)| !packages.folder(name).is_dir()) {
        vendor(&project).map_err(|error| format!("packages of crates.io: {error}"))?;
    }
    for (name, _, digest) in PACKAGES {
        let path = packages.folder(name).join(".cargo-checksum.json");
        let fetched = fs::read_to_string(&path).map_err(|error| format!("{name}: {error}"))?;
        if !fetched.contains(&format!("\"package\":\"{digest}\"")) {
            return Err(format!("{name} isn't the package whose SHA-256 is {digest}"));
        }
    }
    Ok(packages)
}

/// Lets cargo fetch what a project around nothing depends on.
fn vendor(project: &Path) -> Result<(), String> {
    let mut manifest = String::from(
        "[package]\nname = \"nothing\"\nedition = \"2024\"\n[lib]\npath = \"nothing.rs\"\n[workspace]\n[dependencies]\n",
    );
    for (name, version, _) in PACKAGES {
        let version = version.split('+').next().unwrap_or(version);
        manifest += &format!("{name} = \"={version}\"\n");
    }
    fs::create_dir_all(project).map_err(|error| error.to_string())?;
    for (name, text) in [("Cargo.toml", manifest.as_str()), ("nothing.rs", "")] {
        fs::write(project.join(name), text).map_err(|error| error.to_string())?;
    }
    let mut cargo = Command::new("cargo");
    cargo.current_dir(project).args(["vendor", "--quiet", "--versioned-dirs", "fetched"]);
    let output = cargo.output().map_err(|error| format!("cargo: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stderr).into_owned())
}
