//! Builds with a deliberate mistake compiled in, for tests that must find it.
//!
//! The mistake is a `--cfg` that some of this project's crates alone are compiled with, by this program in the
//! compiler's place; their dependencies are shared with all other builds. The command `tenure` refuses to be
//! compiled with one.

use std::env;
use std::process::{Command, ExitCode};

/// Names the mistakes; set for cargo, and so for us in the compiler's place.
const MISTAKES: &str = "TENURE_PLANTED";
/// Names the packages that have them; without it all have them that we are called for.
const PACKAGES: &str = "TENURE_PLANTED_IN";
/// Cargo's, for the compiler: the package that is compiled.
const PACKAGE: &str = "CARGO_PKG_NAME";

/// Makes `cargo` call us as the compiler of the workspace's crates, with `mistakes`, whose names commas
/// part, compiled in.
pub(crate) fn plant(cargo: &mut Command, mistakes: &str) -> std::io::Result<()> {
    cargo.env("RUSTC_WORKSPACE_WRAPPER", env::current_exe()?).env(MISTAKES, mistakes);
    cargo.env_remove(PACKAGES);
    Ok(())
}

/// As [`plant`], in a release build and in `packages` alone, which needn't be the workspace's: a board's workspace is the
/// board, and the crates that it is made of lie outside. A build knows one mistake, as it isn't told from one with
/// another.
///
/// `RUSTFLAGS` would do it for all crates alike. Those of a board have the paths to cut (`--remap-path-prefix`) among
/// them, and cargo then keeps what is built with any of them in the same files: the product would be compiled anew after
/// each planted one, down to the last dependency, and that after the product.
pub(crate) fn plant_in(
    cargo: &mut Command,
    mistake: &str,
    packages: &[&str],
) -> std::io::Result<()> {
    cargo.env("RUSTC_WRAPPER", env::current_exe()?).env(MISTAKES, mistake);
    cargo.env(PACKAGES, packages.join(","));
    // One more than the boards have, by which cargo tells these crates, and who depends on them, from the product's.
    let setting = |package| format!("profile.release.package.{package}.codegen-units=2");
    cargo.args(packages.iter().flat_map(|package| ["--config".to_owned(), setting(package)]));
    Ok(())
}

/// Compiles, if that is what we were started for.
pub(crate) fn in_place_of_rustc() -> Option<ExitCode> {
    let mistakes = env::var(MISTAKES).ok()?;
    let mut arguments = env::args_os().skip(1);
    let mut rustc = Command::new(arguments.next()?);
    rustc.args(arguments);
    if is_planted(env::var(PACKAGES).ok().as_deref(), env::var(PACKAGE).ok().as_deref()) {
        rustc.args(mistakes.split(',').flat_map(|mistake| ["--cfg", mistake]));
    }
    let done = rustc.status().is_ok_and(|status| status.success());
    Some(if done { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether `package`, if it is one that is compiled, is among those that commas part.
fn is_planted(packages: Option<&str>, package: Option<&str>) -> bool {
    packages.is_none_or(|packages| packages.split(',').any(|it| Some(it) == package))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_planted_in_the_packages_that_are_named_or_in_all() {
        assert!(is_planted(None, Some("tenure-sim")));
        assert!(is_planted(Some("tenure-vm,tenure-board-x"), Some("tenure-vm")));
        assert!(!is_planted(Some("tenure-vm,tenure-board-x"), Some("tenure")));
        // Cargo asks for the compiler's version.
        assert!(!is_planted(Some("tenure-vm"), None));
    }

    #[test]
    fn packages_with_a_mistake_are_told_from_those_without_one() {
        let mut cargo = Command::new("cargo");
        plant_in(&mut cargo, "unchecked_memory", &["tenure-vm", "tenure-board-x"]).unwrap();
        let arguments: Vec<_> = cargo.get_args().map(|it| it.to_str().unwrap()).collect();
        let expected = [
            "--config",
            "profile.release.package.tenure-vm.codegen-units=2",
            "--config",
            "profile.release.package.tenure-board-x.codegen-units=2",
        ];
        assert_eq!(arguments, expected);
        let is_set = |name: &str| cargo.get_envs().any(|(it, value)| it == name && value.is_some());
        assert!(is_set("RUSTC_WRAPPER") && !is_set("RUSTFLAGS"));
    }
}
