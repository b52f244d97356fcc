//! What a file says of single servers outside: whom each is judged by, and what the device shows it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use serde::Deserialize;
use tenure_reach::{ClientIdentity, Server, ServerTrust};
use tenure_wire::url::{Origin, Scheme};

use crate::tls::files::{self, Authorities};
use crate::written_file;

/// The file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Described {
    #[serde(default)]
    server: Vec<Description>,
}

/// One server of the file. Paths are relative to the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    /// Scheme, host and port: `https://plant.example:8443`.
    url: String,
    /// The authorities that vouch for it, in place of the device's.
    #[serde(default)]
    ca: Vec<PathBuf>,
    /// Its public keys, or certificates with them: one is proved, whatever a certificate says.
    #[serde(default)]
    pin: Vec<PathBuf>,
    /// The certificates that it is shown, the device's own first.
    certificate: Option<PathBuf>,
    /// The key of the first.
    key: Option<PathBuf>,
}

/// Reads the file and what it names.
///
/// # Errors
/// A file can't be read, or says what can't be.
pub(super) fn load(path: &Path) -> anyhow::Result<BTreeMap<Origin, Server>> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("can't read {}", path.display()))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    parse(&text, folder).with_context(|| path.display().to_string())
}

fn parse(text: &str, folder: &Path) -> anyhow::Result<BTreeMap<Origin, Server>> {
    let Described { server: described } = written_file::parse(text)?;
    let mut servers = BTreeMap::new();
    for description in described {
        let place = || format!("server `{}`", description.url);
        let origin: Origin = description.url.parse().with_context(place)?;
        let server = description.server(&origin, folder).with_context(place)?;
        if servers.insert(origin, server).is_some() {
            bail!("{} stands there twice", place());
        }
    }
    Ok(servers)
}

impl Description {
    fn server(&self, origin: &Origin, folder: &Path) -> anyhow::Result<Server> {
        ensure!(origin.scheme == Scheme::Https, "without TLS nothing is judged and nothing shown");
        let inside = |path: &PathBuf| folder.join(path);
        let trust = match (&self.ca[..], &self.pin[..]) {
            ([], []) => None,
            (paths, []) => {
                let paths: Vec<PathBuf> = paths.iter().map(inside).collect();
                Some(ServerTrust::Authorities(Authorities::load(&paths)?.certificates()))
            }
            ([], pins) => {
                let keys = pins.iter().map(|path| files::public_key(&inside(path)));
                Some(ServerTrust::Keys(keys.collect::<anyhow::Result<_>>()?))
            }
            _ => bail!("`ca` and `pin` exclude each other"),
        };
        let identity = match (&self.certificate, &self.key) {
            (None, None) => None,
            (Some(certificate), Some(key)) => Some(ClientIdentity {
                chain: files::certificates(&inside(certificate))?,
                key: files::private_key(&inside(key))?,
            }),
            _ => bail!("`certificate` and `key` stand together"),
        };
        Ok(Server { trust, identity })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_of(text: &str) -> String {
        format!("{:#}", parse(text, Path::new("/nowhere")).unwrap_err())
    }

    #[test]
    fn file_that_says_what_cannot_be_is_refused_with_the_place() {
        let server = "[[server]]\nurl = ";
        for (text, expected) in [
            ("\"http://a.example\"", "nothing is judged"),
            ("\"https://a.example/v1\"", "stand alone"),
            ("\"https://a.example\"\nca = [\"a\"]\npin = [\"b\"]", "exclude each other"),
            ("\"https://a.example\"\nkey = \"k\"", "stand together"),
            ("\"https://a.example\"\nca = [\"a.pem\"]", "/nowhere/a.pem"),
            ("\"https://a.example\"\nroots = []", "roots"),
            ("\"https://a.example\"\n[[server]]\nurl = \"https://A.example:443\"", "twice"),
        ] {
            let error = error_of(&format!("{server}{text}"));
            assert!(error.contains(expected), "{text}: {error}");
        }
        assert!(parse("", Path::new("")).unwrap().is_empty());
    }
}
