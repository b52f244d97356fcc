//! Frozen bytes: what this version of a format writes, kept in a file, so that a change can't go unnoticed.

use std::path::Path;

/// Compares what was `written` with the bytes in `tests/frozen/NAME.hex` of the crate in `folder`, and
/// returns these, for the test to read. With `TENURE_FREEZE` set it writes the file of a new format.
///
/// # Panics
/// The bytes differ, or there is no such file.
#[must_use]
pub fn frozen(folder: &str, name: &str, written: &[u8]) -> Vec<u8> {
    let path = Path::new(folder).join("tests/frozen").join(name).with_extension("hex");
    if std::env::var_os("TENURE_FREEZE").is_some() && !path.exists() {
        let parent = path.parent().expect("the file lies in a folder");
        std::fs::create_dir_all(parent).expect("the folder can be made");
        std::fs::write(&path, in_lines(written)).expect("the file can be written");
    }
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| {
        panic!("{}: {error}; set TENURE_FREEZE to make it", path.display())
    });
    let kept = from_hex(&text).unwrap_or_else(|| panic!("{} is not hexadecimal", path.display()));
    assert!(
        kept == written,
        "{name}: this build writes other bytes than the frozen ones. A layout that changes needs a new \
         version (docs/releasing.md) and a new file beside the old one.\nnow:\n{}",
        in_lines(written)
    );
    kept
}

fn in_lines(bytes: &[u8]) -> String {
    let line = |part: &[u8]| part.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    bytes.chunks(32).map(|part| line(part) + "\n").collect()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let pairs = digits.chunks(2).map(|pair| core::str::from_utf8(pair).ok());
    pairs.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect()
}
