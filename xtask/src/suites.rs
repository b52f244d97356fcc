//! `suites`: runs suites of others' cases that are too large for the repository, from a
//! file that the caller has, or by a package manager.

mod bogo;
mod judged;
mod libc;
mod limbo;
mod modules;
pub(crate) mod oci;
mod programs;
mod tlsfuzzer;
mod wasi;

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Subcommand;

/// Run a suite of others' cases (docs/suites.md).
#[derive(clap::Args)]
#[command(after_help = "Example: cargo xtask suites limbo --from limbo.json.xz")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    suite: Suite,
}

#[derive(Subcommand)]
enum Suite {
    Bogo(BogoArguments),
    Libc(LibcArguments),
    Limbo(LimboArguments),
    Modules(ModulesArguments),
    Oci(OciArguments),
    Programs(ProgramsArguments),
    Tlsfuzzer(TlsfuzzerArguments),
    Wasi(WasiArguments),
}

/// Let the tests of BoringSSL's own TLS speak with `tenure_tls`; needs Go.
#[derive(clap::Args)]
struct BogoArguments {
    /// A checkout of BoringSSL.
    #[arg(long, value_name = "FOLDER")]
    from: PathBuf,
    /// List the tests that fail for a reason, too.
    #[arg(long)]
    verbose: bool,
}

/// Hold `sdk/c` to the tests of musl (libc-test) or picolibc, as machines that `tenure` builds and runs.
#[derive(clap::Args)]
struct LibcArguments {
    /// A checkout of libc-test or picolibc.
    #[arg(long, value_name = "FOLDER")]
    from: PathBuf,
    /// List the tests that fail for a reason, too.
    #[arg(long)]
    verbose: bool,
}

/// Judge the certificate chains of C2SP's x509-limbo, with BetterTLS among them.
#[derive(clap::Args)]
struct LimboArguments {
    /// The suite's JSON, or the same compressed by xz.
    #[arg(long, value_name = "FILE")]
    from: PathBuf,
    /// List the cases that are judged otherwise for a reason, too.
    #[arg(long)]
    verbose: bool,
}

/// Pack and run modules as toolchains made them, by the list `modules.toml` in their folder.
#[derive(clap::Args)]
struct ModulesArguments {
    /// The folder.
    #[arg(long, value_name = "FOLDER")]
    from: PathBuf,
    /// List the modules that fail for a reason, too.
    #[arg(long)]
    verbose: bool,
}

/// Hold a hub's registry to the OCI distribution specification by its conformance suite; needs Go, which fetches it.
#[derive(clap::Args)]
struct OciArguments {
    /// List the tests that fail for a reason, too.
    #[arg(long)]
    verbose: bool,
}

/// Run programs that others published as machines and natively, and compare what both print; cargo fetches them.
#[derive(clap::Args)]
struct ProgramsArguments {
    /// Only programs whose names contain this.
    #[arg(long, value_name = "TEXT", conflicts_with = "write")]
    filter: Option<String>,
    /// Run those that fit on an emulated board, too (qemu-riscv32).
    #[arg(long)]
    board: bool,
    /// Write the table of what they take to docs/programs.md.
    #[arg(long, requires = "board")]
    write: bool,
}

/// Let tlsfuzzer's scripts for TLS 1.3 speak with `tenure tls serve`; needs Python, and packages that pip fetches.
#[derive(clap::Args)]
struct TlsfuzzerArguments {
    /// A checkout of tlsfuzzer.
    #[arg(long, value_name = "FOLDER")]
    from: PathBuf,
    /// List the conversations that fail for a reason, too.
    #[arg(long)]
    verbose: bool,
}

/// Run the programs of wasi-testsuite for WASI preview 1 as machines.
#[derive(clap::Args)]
struct WasiArguments {
    /// A checkout of the suite's branch `prod/testsuite-all`, which has the programs compiled.
    #[arg(long, value_name = "FOLDER")]
    from: PathBuf,
    /// List the tests that fail for a reason, too.
    #[arg(long)]
    verbose: bool,
}

pub(crate) fn run(arguments: &Arguments, root: &Path) -> Result<()> {
    match &arguments.suite {
        Suite::Bogo(arguments) => bogo::run(root, &arguments.from, arguments.verbose),
        Suite::Libc(arguments) => libc::run(root, &arguments.from, arguments.verbose),
        Suite::Limbo(arguments) => limbo::run(&arguments.from, arguments.verbose),
        Suite::Modules(arguments) => modules::run(root, &arguments.from, arguments.verbose),
        Suite::Oci(arguments) => oci::run(root, arguments.verbose),
        Suite::Programs(arguments) => {
            let ProgramsArguments { filter, board, write } = arguments;
            programs::run(root, filter.as_deref(), *board, *write)
        }
        Suite::Tlsfuzzer(arguments) => tlsfuzzer::run(root, &arguments.from, arguments.verbose),
        Suite::Wasi(arguments) => wasi::run(root, &arguments.from, arguments.verbose),
    }
}
