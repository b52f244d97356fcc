//! `check`: everything that can be said about the code without running it.

mod bare_metal;
mod c_format;
mod dependencies;
mod layering;
mod licences;
mod links;
mod lints;
mod releases;
mod sources;
mod style;
mod test_places;
mod threats;
mod unused;

use std::path::Path;

use anyhow::Result;

use crate::report::{Report, Verdict};
use crate::setup::{self, Need};
use crate::{book, claims, clauses, generate, measure, size};

/// Check format, layers, lints, docs, links, dependencies and bare-metal builds.
#[derive(clap::Args)]
#[command(after_help = "Example: cargo xtask check --fix")]
pub(crate) struct Arguments {
    /// Mend what a tool can mend: format, some lints, generated files.
    #[arg(long)]
    fix: bool,
    /// Only what takes seconds: no lints, no docs, no bare-metal builds.
    #[arg(long)]
    quick: bool,
    /// Lint the benches beside their peers, too, which takes minutes to compile them.
    #[arg(long, conflicts_with = "quick")]
    peers: bool,
    /// Only the steps whose name contains this.
    #[arg(long, value_name = "WORDS")]
    only: Option<String>,
}

pub(crate) fn run(arguments: &Arguments, root: &Path) -> Result<()> {
    setup::ensure(&[Need::Lints])?;
    let mut report = Report::new("check", arguments.only.as_deref());
    quick_steps(&mut report, root, arguments.fix);
    if !arguments.quick {
        setup::ensure(&[Need::Wasm, Need::BareMetal, Need::Emulators, Need::Clients])?;
        slow_steps(&mut report, root, arguments.fix, arguments.peers);
        firmware_step(&mut report, root);
    }
    report.finish(root)
}

/// The steps that read and compile nothing, or next to nothing.
pub(crate) fn quick_steps(report: &mut Report, root: &Path, fix: bool) {
    report.step("format", || lints::format(root, fix));
    report.step("format of C", || c_format::check(root, fix));
    report.step("layering", || layering::check(root));
    report.step("sources", || sources::check(root));
    report.step("import rings", || measure::check_rings(root));
    report.step("methods of types", || measure::check_methods(root));
    report.step("style", || style::check(root));
    report.step("dependencies", || dependencies::check(root));
    report.step("dependencies that are used", || unused::check(root));
    report.step("one release of a dependency", || releases::check(root));
    report.step("generated files", || generate::run(!fix, root).map(|()| Verdict::Passed));
    report.step("links", || links::check(root));
    report.step("threats and their tests", || threats::check(root));
    report.step("places of tests", || test_places::check(root));
    report.step("claims", || claims::check(root));
    report.step("clauses", || clauses::check(root));
    report.step("book", || book::check(root));
    report.step("no std below", || bare_metal::check_features(root));
}

/// The steps that compile.
pub(crate) fn slow_steps(report: &mut Report, root: &Path, fix: bool, with_peers: bool) {
    report.step("clippy", || lints::clippy(root, fix, with_peers));
    report.step("rustdoc", || lints::rustdoc(root));
    report.step("licences and sources of dependencies", || licences::check(root));
    report.step("bare metal", || bare_metal::check(root));
}

/// Links the firmware of every board, and holds it to its budgets.
pub(crate) fn firmware_step(report: &mut Report, root: &Path) {
    report.step("firmware within its budgets", || {
        size::check_budgets(root).map(|()| Verdict::Passed)
    });
}
