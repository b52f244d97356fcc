//! Tests that lack a tool or a right on this machine.

use std::env;
use std::fs::OpenOptions;
use std::io::Write;
use std::thread;

/// Says that the current test is left out, for want of the tool `tool`; the test returns after it.
///
/// With `CI=true` the lack is a failure. `cargo xtask test` counts the tests that were left out: it names a
/// file in `TENURE_SKIPPED`, which gets a line for each.
///
/// # Panics
/// With `CI=true`, or if the file can't be written.
pub fn skip_without_tool(tool: &str) {
    assert!(env::var_os("CI").is_none_or(|value| value != "true"), "CI=true, and no {tool}");
    note(tool);
}

/// Says that the current test, or a part of it, is left out, for want of the right to do `what`, which a
/// container may lack for good; counted as by [`skip_without_tool`], but a failure nowhere.
///
/// # Panics
/// If the file of `TENURE_SKIPPED` can't be written.
pub fn skip_without_right(what: &str) {
    note(&format!("the right to {what}"));
}

/// Says that the current test is left out, for want of a compiler that `cargo xtask setup` doesn't install; counted as
/// by [`skip_without_tool`], but a failure nowhere.
///
/// # Panics
/// If the file of `TENURE_SKIPPED` can't be written.
pub fn skip_without_compiler(compiler: &str) {
    note(compiler);
}

/// Says that the current test is left out, for want of a part of the system that `cargo xtask setup` doesn't install, such as
/// systemd; counted as by [`skip_without_tool`], but a failure nowhere.
///
/// # Panics
/// If the file of `TENURE_SKIPPED` can't be written.
pub fn skip_without_part(part: &str) {
    note(part);
}

fn note(missing: &str) {
    let current = thread::current();
    let line = format!("{} (missing: {missing})\n", current.name().unwrap_or("a test"));
    eprint!("skipped: {line}");
    if let Some(file) = env::var_os("TENURE_SKIPPED") {
        let file = OpenOptions::new().append(true).open(file);
        let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
        written.expect("the file of skipped tests can be written");
    }
}
