//! An authority, servers' certificates of each kind of key, and a client's, made by OpenSSL.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::process;

/// NSS wants a server's RSA key to encipher keys, too, though in TLS 1.3 none does.
const EXTENSIONS: &str = "[ca]\nbasicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign\n\
    [leaf]\nbasicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature,keyEncipherment\n\
    extendedKeyUsage=serverAuth,clientAuth\nsubjectAltName=DNS:device.test,IP:127.0.0.1\n";

/// The names of certificates, and OpenSSL's words for their keys.
pub(super) const LEAVES: [(&str, &str); 6] = [
    ("p256", "EC -pkeyopt ec_paramgen_curve:P-256"),
    ("p384", "EC -pkeyopt ec_paramgen_curve:P-384"),
    ("rsa2048", "RSA -pkeyopt rsa_keygen_bits:2048"),
    ("rsa4096", "RSA -pkeyopt rsa_keygen_bits:4096"),
    ("ed25519", "ED25519"),
    ("client", "EC -pkeyopt ec_paramgen_curve:P-256"),
];

/// Writes `root.pem`, and `NAME.pem` and `NAME.key` for each of [`LEAVES`], to `folder`.
pub(crate) fn make(folder: &Path) -> Result<()> {
    make_some(folder, &LEAVES.map(|(name, _)| name))
}

/// The same for those of [`LEAVES`] that are named.
pub(crate) fn make_some(folder: &Path, names: &[&str]) -> Result<()> {
    std::fs::write(folder.join("extensions"), EXTENSIONS)?;
    let openssl = |words: &str| {
        let mut command = Command::new("openssl");
        command.args(words.split_whitespace()).current_dir(folder);
        process::capture(command.stderr(std::process::Stdio::null())).map(drop)
    };
    let signed = "-CAcreateserial -days 30 -extfile extensions -extensions";
    openssl("genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out root.key")?;
    openssl("req -new -key root.key -subj /CN=root -out root.csr")?;
    openssl(&format!("x509 -req -in root.csr -signkey root.key {signed} ca -out root.pem"))?;
    for (name, key) in LEAVES.into_iter().filter(|(name, _)| names.contains(name)) {
        openssl(&format!("genpkey -algorithm {key} -out {name}.key"))?;
        openssl(&format!("req -new -key {name}.key -subj /CN={name} -out {name}.csr"))?;
        openssl(&format!(
            "x509 -req -in {name}.csr -CA root.pem -CAkey root.key {signed} leaf -out {name}.pem"
        ))?;
    }
    Ok(())
}
