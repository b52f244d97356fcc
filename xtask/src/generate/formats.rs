//! The page of formats: every layout of bytes that outlives a build, with its magic and version as the code
//! has them.

use std::fmt::Write as _;
use std::path::Path;

use super::Description;

/// A format, and the constants that say what it begins with.
struct Format {
    name: &'static str,
    /// Where its bytes lie.
    lies: &'static str,
    file: &'static str,
    /// The start of the line with its magic, up to the value; the last byte of such a magic is the version
    /// unless `version` names another line.
    magic: Option<&'static str>,
    /// The start of the line with its version, up to the value.
    version: Option<&'static str>,
    /// The bytes of it that tests keep, without the version behind and the ending; none of those that only the
    /// build that wrote them reads.
    frozen: Option<&'static str>,
}

/// A format whose magic ends with its version.
const fn marked(
    name: &'static str,
    lies: &'static str,
    file: &'static str,
    magic: &'static str,
    frozen: &'static str,
) -> Format {
    Format { name, lies, file, magic: Some(magic), version: None, frozen: Some(frozen) }
}

/// A format without a magic.
const fn numbered(
    name: &'static str,
    lies: &'static str,
    file: &'static str,
    version: &'static str,
    frozen: &'static str,
) -> Format {
    Format { name, lies, file, magic: None, version: Some(version), frozen: Some(frozen) }
}

const FORMATS: [Format; 42] = [
    marked(
        "package",
        "file, flash",
        "crates/package/src/layout.rs",
        "pub(crate) const MAGIC: [u8; 8] = ",
        "crates/package/tests/frozen/package",
    ),
    marked(
        "lease (placement)",
        "file, wire",
        "crates/package/src/placement.rs",
        "magic: ",
        "crates/package/tests/frozen/placement",
    ),
    marked(
        "renewal of a lease",
        "wire",
        "crates/package/src/renewal.rs",
        "Kind { magic: ",
        "crates/package/tests/frozen/renewal",
    ),
    marked(
        "mandate of a rollout",
        "wire",
        "crates/package/src/mandate.rs",
        "Kind { magic: ",
        "crates/package/tests/frozen/mandate",
    ),
    marked(
        "receipt",
        "flash, wire, file",
        "crates/package/src/receipt.rs",
        "Kind { magic: ",
        "crates/package/tests/frozen/receipt",
    ),
    numbered(
        "receipt that commits to a journal",
        "flash, wire, file",
        "crates/package/src/receipt.rs",
        "const COMMITTED_VERSION: u8 = ",
        "crates/package/tests/frozen/receipt-committed",
    ),
    marked(
        "journal of a machine",
        "file",
        "crates/package/src/journal.rs",
        "const MAGIC: [u8; 8] = ",
        "crates/package/tests/frozen/journal",
    ),
    marked(
        "head of a journal",
        "file, wire",
        "crates/package/src/journal.rs",
        "magic: ",
        "crates/package/tests/frozen/journal-head",
    ),
    marked(
        "question for a journal",
        "wire",
        "crates/package/src/journal.rs",
        "Kind { magic: ",
        "crates/package/tests/frozen/journal-query",
    ),
    marked(
        "list of revoked keys",
        "flash, wire, file",
        "crates/package/src/revocations.rs",
        "magic: ",
        "crates/package/tests/frozen/revocations",
    ),
    marked(
        "change of a secret",
        "wire",
        "crates/package/src/secret.rs",
        "magic: ",
        "crates/package/tests/frozen/secret",
    ),
    marked(
        "question about secrets",
        "wire",
        "crates/package/src/secret.rs",
        "Kind { magic: ",
        "crates/package/tests/frozen/secret-query",
    ),
    marked(
        "pass of a tenant",
        "file, wire",
        "crates/package/src/pass.rs",
        "const PASS: Kind = Kind { magic: ",
        "crates/package/tests/frozen/pass",
    ),
    marked(
        "pass that is shown",
        "wire",
        "crates/package/src/pass.rs",
        "Kind { magic: ",
        "crates/package/tests/frozen/pass-shown",
    ),
    marked(
        "signed firmware",
        "file, wire",
        "crates/package/src/firmware.rs",
        "magic: ",
        "crates/package/tests/frozen/firmware",
    ),
    marked(
        "snapshot of a tree",
        "file",
        "crates/package/src/snapshot.rs",
        "const MAGIC: [u8; 5] = ",
        "crates/package/tests/frozen/snapshot",
    ),
    marked(
        "invitation to a mesh",
        "file, wire",
        "crates/protocols/src/network_key.rs",
        "const MAGIC: [u8; 8] = ",
        "crates/protocols/tests/frozen/invitation",
    ),
    numbered(
        "record of a device",
        "wire, flash",
        "crates/directory/src/record.rs",
        "const RECORD_VERSION: u8 = ",
        "crates/directory/tests/frozen/record",
    ),
    numbered(
        "owner's protocol",
        "wire",
        "crates/wire/src/control/hello.rs",
        "pub const VERSION: u16 = ",
        "crates/wire/tests/frozen/hello",
    ),
    numbered(
        "datagram of a session",
        "wire",
        "crates/wire/src/datagram.rs",
        "pub const VERSION: u8 = ",
        "crates/wire/tests/frozen/datagram",
    ),
    numbered(
        "frame of the mesh",
        "wire",
        "crates/mesh/src/frame.rs",
        "pub const VERSION: u8 = ",
        "crates/mesh/tests/frozen/frame",
    ),
    marked(
        "record of the store",
        "flash",
        "crates/store/src/record.rs",
        "const MAGIC: [u8; 4] = ",
        "crates/store/tests/frozen/store",
    ),
    marked(
        "initial tree of a package",
        "flash",
        "crates/store/src/base.rs",
        "const MAGIC: [u8; 4] = ",
        "crates/store/tests/frozen/base",
    ),
    Format {
        name: "image of a machine",
        lies: "flash",
        file: "crates/vm/src/image.rs",
        magic: Some("pub(crate) const MAGIC: [u8; 4] = "),
        version: Some("pub const VERSION: u16 = "),
        frozen: Some("crates/vm/tests/frozen/image"),
    },
    Format {
        name: "suspended machine",
        lies: "flash",
        file: "crates/vm/src/suspend.rs",
        magic: Some("const MAGIC: [u8; 4] = "),
        version: Some("const VERSION: u16 = "),
        frozen: Some("crates/vm/tests/frozen/suspended"),
    },
    Format {
        name: "suspended native machine",
        lies: "flash",
        file: "boards/common/src/native/state.rs",
        magic: None,
        version: Some("const VERSION: u64 = "),
        // It names its firmware, and no other reads it.
        frozen: None,
    },
    marked(
        "native binary",
        "file, flash",
        "crates/kernel/src/native.rs",
        "const MAGIC: [u8; 4] = ",
        "crates/kernel/tests/frozen/native",
    ),
    marked(
        "compiled code of a package",
        "file, flash",
        "crates/kernel/src/compiled.rs",
        "const MAGIC: [u8; 4] = ",
        "crates/kernel/tests/frozen/compiled",
    ),
    numbered(
        "record of a machine",
        "flash",
        "crates/kernel/src/record.rs",
        "const RECORD_VERSION: u8 = ",
        "crates/kernel/tests/frozen/record",
    ),
    marked(
        "breadcrumb",
        "memory that outlasts resets",
        "crates/kernel/src/breadcrumb.rs",
        "const MAGIC: [u8; 4] = ",
        "crates/kernel/tests/frozen/breadcrumb",
    ),
    numbered(
        "ledger",
        "flash",
        "crates/node/src/meter.rs",
        "const LEDGER_VERSION: u8 = ",
        "crates/node/tests/frozen/ledger",
    ),
    numbered(
        "book of a journal",
        "flash",
        "crates/node/src/journals.rs",
        "const BOOK_VERSION: u8 = ",
        "crates/node/tests/frozen/journal-book",
    ),
    numbered(
        "log of a machine",
        "flash",
        "crates/node/src/log.rs",
        "const KEPT_VERSION: u8 = ",
        "crates/node/tests/frozen/log",
    ),
    numbered(
        "key of the hub",
        "flash",
        "crates/node/src/kept_hub.rs",
        "const KEPT_VERSION: u8 = ",
        "crates/node/tests/frozen/hub",
    ),
    numbered(
        "owner by succession",
        "flash",
        "crates/node/src/kept_owner.rs",
        "const KEPT_VERSION: u8 = ",
        "crates/node/tests/frozen/owner",
    ),
    numbered(
        "numbers of former owners' last words",
        "flash",
        "crates/node/src/former_numbers.rs",
        "const FORMER_NUMBERS_VERSION: u8 = ",
        "crates/node/tests/frozen/former-numbers",
    ),
    numbered(
        "mandate that was followed",
        "flash",
        "crates/node/src/mandated/followed.rs",
        "const FOLLOWED_VERSION: u8 = ",
        "crates/node/tests/frozen/followed",
    ),
    numbered(
        "mandates of machines that are gone",
        "flash",
        "crates/node/src/mandated/followed.rs",
        "const FORGOTTEN_VERSION: u8 = ",
        "crates/node/tests/frozen/forgotten",
    ),
    marked(
        "log of the loader",
        "flash",
        "crates/boot/src/log.rs",
        "const MAGIC: [u8; 4] = ",
        "crates/boot/tests/frozen/log",
    ),
    marked(
        "record of a run",
        "file",
        "crates/replay/src/entry.rs",
        "pub(crate) const MAGIC: [u8; 8] = ",
        "crates/replay/tests/frozen/record",
    ),
    marked(
        "header of a firmware",
        "flash",
        "crates/boot/src/image.rs",
        "const MAGIC: [u8; 8] = ",
        "crates/boot/tests/frozen/header",
    ),
    Format {
        name: "queue of a bridge",
        lies: "file, of SQLite",
        file: "crates/bridge/src/store.rs",
        magic: None,
        version: Some("const VERSION: i32 = "),
        frozen: None,
    },
];

/// Constants that look like a format's and are another's: of UF2, of WebAssembly, of TLS, of WebSocket, of a tool, of age.
#[cfg(test)]
const FOREIGN: [&str; 6] = [
    "crates/boot/src/uf2.rs",
    "crates/cli/src/keys/key/age.rs",
    "crates/vm/src/wasm/sections.rs",
    "crates/tls/src/",
    "crates/reach/src/websocket.rs",
    "crates/cli/src/make/toolchain.rs",
];

pub(super) fn page(_: &Description) -> String {
    let mut text = String::from(
        "<!-- Generated from the constants in the code by `cargo xtask generate`. -->\n\
         # Formats\n\n\
         Every layout of bytes that outlives a build, with the magic and the version that stand in it. A \
         reader never\nguesses at another version: it refuses it, or makes the value anew. [ADR 18](../adr/0018-formats-have-versions-of-their-own.md) \
         says when a version rises, and\n[releasing.md](../releasing.md) what a release reads.\n\n\
         | format | lies in | magic | version | code | bytes that a test keeps |\n|---|---|---|--:|---|---|\n",
    );
    for format in &FORMATS {
        let (magic, version) = format.read();
        let magic = magic.map_or_else(|| "–".to_owned(), |magic| format!("`{magic}`"));
        let kept = format.kept().map_or_else(|| "–".to_owned(), |kept| format!("`{kept}`"));
        let Format { name, lies, file, .. } = format;
        let _ = writeln!(text, "| {name} | {lies} | {magic} | {version} | `{file}` | {kept} |");
    }
    text += "\nValues without a version are read by the build that wrote them alone: the state of a deep sleep \
             (its seal\ncovers the release), and settings of the node that are one number or key.\n";
    text
}

impl Format {
    /// The magic as text, without a version at its end, and the version.
    fn read(&self) -> (Option<String>, String) {
        let text = source(self.file);
        let value = |start: &str| {
            let line = text.lines().find_map(|line| line.trim_start().strip_prefix(start));
            let line = line.unwrap_or_else(|| panic!("{} has no line `{start}`", self.file));
            line.split([';', ',']).next().unwrap_or_default().trim().to_owned()
        };
        let literal = self.magic.map(|start| {
            let value = value(start);
            value.trim_start_matches("*b\"").trim_end_matches('"').to_owned()
        });
        if let Some(version) = self.version {
            return (literal, value(version));
        }
        let literal = literal.unwrap_or_default();
        match literal.split_once("\\x") {
            Some((magic, version)) => {
                let number = u8::from_str_radix(version, 16).expect("an escape is hexadecimal");
                (Some(magic.to_owned()), number.to_string())
            }
            // Its fields say which version of machines it runs.
            None => (Some(literal), "–".to_owned()),
        }
    }
}

impl Format {
    /// The file with its bytes in this version.
    fn kept(&self) -> Option<String> {
        let frozen = self.frozen?;
        Some(match self.read().1.as_str() {
            "–" => format!("{frozen}.hex"),
            version => format!("{frozen}-{version}.hex"),
        })
    }
}

/// A file of the repository.
fn source(file: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let path = root.join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files;

    #[test]
    fn no_magic_is_the_start_of_another() {
        let magics: Vec<String> = FORMATS.iter().filter_map(|format| format.read().0).collect();
        for (place, magic) in magics.iter().enumerate() {
            let others = magics.iter().enumerate().filter(|(other, _)| *other != place);
            for (_, other) in others {
                assert!(!other.starts_with(magic.as_str()), "`{magic}` and `{other}`");
            }
        }
    }

    #[test]
    fn each_constant_that_marks_a_format_is_on_the_page() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for file in files::with_ending(&root, &[".rs"]).unwrap() {
            let path = files::shown(&file, &root).to_string();
            let is_product = path.starts_with("crates/") || path.starts_with("boards/");
            let is_test = path.contains("/tests") || path.contains("_tests");
            if !is_product || is_test || FOREIGN.iter().any(|foreign| path.starts_with(foreign)) {
                continue;
            }
            for line in files::read(&file).unwrap().lines().map(str::trim_start) {
                let constant = line.split_once("const ").map(|(_, rest)| rest);
                let name = constant.and_then(|rest| rest.split(':').next()).unwrap_or_default();
                let marks = name == "MAGIC" || name == "VERSION" || name.ends_with("_VERSION");
                let marks = marks || line.contains("magic: *b\"");
                let is_listed = FORMATS.iter().filter(|format| format.file == path).any(|format| {
                    let starts = [format.magic, format.version];
                    starts.into_iter().flatten().any(|start| line.starts_with(start))
                });
                assert!(!marks || is_listed, "{path} marks a format that isn't listed: {line}");
            }
        }
    }

    #[test]
    fn each_format_has_bytes_of_its_version_that_a_test_reads() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let tests = files::with_ending(&root.join("crates"), &[".rs"]).unwrap();
        let tests: Vec<String> = tests.iter().map(|file| files::read(file).unwrap()).collect();
        for path in FORMATS.iter().filter_map(Format::kept) {
            assert!(root.join(&path).exists(), "there is no {path}");
            let name = path.rsplit('/').next().unwrap().trim_end_matches(".hex");
            let name = format!("\"{name}\"");
            assert!(tests.iter().any(|test| test.contains(&name)), "no test reads {name}");
        }
    }

    #[test]
    fn version_at_the_end_of_a_magic_is_no_part_of_its_name() {
        let package = FORMATS.iter().find(|format| format.name == "package").unwrap();
        let (magic, version) = package.read();
        assert_eq!(magic.as_deref(), Some("tenurpk"));
        assert!(version.parse::<u8>().is_ok_and(|version| version >= 3), "{version}");
    }
}
