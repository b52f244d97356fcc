//! `suites`: runs suites of others' cases that are too large for the repository, from a
//! file that the caller has, or by a package manager.

mod bogo;
mod judged;
mod limbo;
pub(crate) mod oci;

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
    Limbo(LimboArguments),
    Oci(OciArguments),
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

/// Hold a hub's registry to the OCI distribution specification by its conformance suite; needs Go, which fetches it.
#[derive(clap::Args)]
struct OciArguments {
    /// List the tests that fail for a reason, too.
    #[arg(long)]
    verbose: bool,
}

pub(crate) fn run(arguments: &Arguments, root: &Path) -> Result<()> {
    match &arguments.suite {
        Suite::Bogo(arguments) => bogo::run(root, &arguments.from, arguments.verbose),
        Suite::Limbo(arguments) => limbo::run(&arguments.from, arguments.verbose),
        Suite::Oci(arguments) => oci::run(root, arguments.verbose),
    }
}
