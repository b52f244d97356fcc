//! The compiler as cargo calls it for a target that has peers: what is looked at is compiled to be
//! watched, the peers at full speed. Flags in the environment would reach all crates alike, and then nearly
//! all time and coverage are the peers'.

use std::env;
use std::process::{Command, ExitCode};

/// Holds the flags for the crates that are looked at; set for cargo, and so for us in the compiler's place.
const FLAGS: &str = "TENURE_FUZZ_FLAGS";

/// Makes `cargo` call us as its compiler, with `flags` for this project's crates and `target`.
pub(super) fn watch_own_crates(cargo: &mut Command, flags: &str) -> std::io::Result<()> {
    cargo.env("RUSTC_WRAPPER", env::current_exe()?).env(FLAGS, flags);
    Ok(())
}

/// Compiles, if that is what we were started for.
pub(crate) fn in_place_of_rustc() -> Option<ExitCode> {
    let flags = env::var(FLAGS).ok()?;
    let mut arguments = env::args().skip(1);
    let mut rustc = Command::new(arguments.next()?);
    let arguments: Vec<String> = arguments.collect();
    if is_watched(&arguments) {
        rustc.args(flags.split_whitespace());
    }
    let done = rustc.args(arguments).status().is_ok_and(|status| status.success());
    Some(if done { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// This project's libraries, and programs: of those only the target is built for the target.
fn is_watched(arguments: &[String]) -> bool {
    let after = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1).map(String::as_str)
    };
    let is_ours = after("--crate-name").is_some_and(|name| name.starts_with("tenure"));
    let is_program = after("--crate-type") == Some("bin");
    after("--target").is_some() && (is_ours || is_program)
}
