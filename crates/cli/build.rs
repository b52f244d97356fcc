//! Has the linker pack relative relocations where the system's loader reads them so: the loader reads megabytes less of the
//! program at each start.
#![forbid(unsafe_code)]

use std::env;
use std::process::Command;

/// The first glibc whose loader reads `DT_RELR`.
const GLIBC: (u32, u32) = (2, 36);

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|it| it == value);
    let is_glibc = is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu");
    // Of another system's glibc nothing is known.
    let is_here = env::var_os("HOST") == env::var_os("TARGET");
    if is_glibc && is_here && glibc_here().is_some_and(|here| here >= GLIBC) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// The version of this system's glibc.
fn glibc_here() -> Option<(u32, u32)> {
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
