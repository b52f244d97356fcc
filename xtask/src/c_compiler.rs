//! The clang that builds C guests.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{self, LLVM_RELEASES};

/// The newest clang here that can build for wasm32 and whose `wasm-ld` is here too.
pub(crate) fn find() -> Option<PathBuf> {
    let numbered = LLVM_RELEASES
        .rev()
        .find_map(|release| pair(&format!("clang-{release}"), &format!("wasm-ld-{release}")));
    numbered.or_else(|| pair("clang", "wasm-ld").filter(|clang| is_new_enough(clang)))
}

/// `clang`, if it knows wasm32 and `linker` is here.
fn pair(clang: &str, linker: &str) -> Option<PathBuf> {
    process::find_program(linker)?;
    let clang = process::find_program(clang)?;
    let targets = process::quiet_capture(Command::new(&clang).arg("--print-targets"))?;
    targets.contains("wasm32").then_some(clang)
}

fn is_new_enough(clang: &Path) -> bool {
    process::quiet_capture(Command::new(clang).arg("--version"))
        .and_then(|text| release_of(&text))
        .is_some_and(|release| LLVM_RELEASES.contains(&release))
}

/// The major release in what `clang --version` prints.
fn release_of(text: &str) -> Option<u32> {
    let after = text.split("clang version ").nth(1)?;
    after.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::release_of;

    #[test]
    fn clang_version_text_gives_release() {
        assert_eq!(release_of("Debian clang version 14.0.6\nTarget: x86_64"), Some(14));
        assert_eq!(release_of("Apple clang version 17.0.0 (clang-1700)"), Some(17));
        assert_eq!(release_of("gcc (Debian 12)"), None);
    }
}
