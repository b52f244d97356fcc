//! `suites`: runs suites of others' cases that are too large for the repository, from a file that the caller has.

mod limbo;

use std::path::PathBuf;

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
    Limbo(LimboArguments),
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

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    match &arguments.suite {
        Suite::Limbo(arguments) => limbo::run(&arguments.from, arguments.verbose),
    }
}
