//! `claims`: statements of the pages, derived again from the code, from recorded figures, or by a command.
//!
//! `docs/claims.toml` ties a statement to where it comes from. Numbers stand in the page where the statement has `{}`.
//! A statement that the page no longer makes is a fault as well as a number that differs, so that who rewrites a
//! sentence takes its claim along.

mod constant;
mod derive;
mod statement;

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use self::derive::Source;
use self::statement::Statement;
use crate::report::Verdict;
use crate::{files, test_names};

const FILE: &str = "docs/claims.toml";

/// Derive the figures and promises of the pages again, and print those that differ.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  cargo xtask claims\n  cargo xtask claims --all --update")]
pub(crate) struct Arguments {
    /// Those that a command derives, too, which takes minutes.
    #[arg(long)]
    all: bool,
    /// Write the numbers that differ into the pages.
    #[arg(long)]
    update: bool,
    /// Only claims of pages whose path contains this.
    #[arg(long, value_name = "WORDS")]
    only: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Claims {
    claim: Vec<Claim>,
}

/// A statement and where it comes from.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Claim {
    /// The page that makes it.
    page: String,
    /// The page's words, with `{}` for each number that is derived; any white space is as good as any other.
    text: String,
    /// Where the numbers come from, in their order.
    #[serde(default)]
    from: Vec<Source>,
    /// The tests that hold it.
    #[serde(default)]
    tests: Vec<String>,
    /// How far a number may be from what is derived, as a part of that.
    #[serde(default)]
    tolerance: f64,
}

pub(crate) fn run(arguments: &Arguments, root: &Path) -> Result<()> {
    let mut claims = read(root)?;
    if let Some(words) = &arguments.only {
        claims.retain(|claim| claim.page.contains(words));
        if claims.is_empty() {
            bail!("{FILE} has no claim of a page whose path contains {words:?}");
        }
    }
    let later = claims.iter().filter(|claim| claim.is_costly()).count();
    if !arguments.all {
        claims.retain(|claim| !claim.is_costly());
    }
    let faults = faults(&claims, root, arguments.update)?;
    println!("{} claims derived, {} differ", claims.len(), faults.len());
    if !arguments.all && later > 0 {
        println!("{later} more with --all");
    }
    if !faults.is_empty() && !arguments.update {
        bail!("{}\n  `cargo xtask claims --update` writes the numbers", faults.join("\n  "));
    }
    faults.iter().for_each(|fault| println!("{fault}"));
    Ok(())
}

/// All claims hold that cost nothing to derive.
pub(crate) fn check(root: &Path) -> Result<Verdict> {
    let mut claims = read(root)?;
    claims.retain(|claim| !claim.is_costly());
    let faults = faults(&claims, root, false)?;
    if !faults.is_empty() {
        bail!("{}\n  see `cargo xtask claims --help`", faults.join("\n  "));
    }
    Ok(Verdict::Passed)
}

fn read(root: &Path) -> Result<Vec<Claim>> {
    let claims: Claims = toml::from_str(&files::read(&root.join(FILE))?).context(FILE)?;
    if claims.claim.is_empty() {
        bail!("{FILE} has no claim");
    }
    for Claim { page, text, from, tests, .. } in &claims.claim {
        if from.is_empty() && tests.is_empty() {
            bail!("{FILE}: nothing derives what {page} says: {text}");
        }
        if text.matches("{}").count() != from.len() {
            bail!("{FILE}: {page} has as many `{{}}` as sources, and not here: {text}");
        }
    }
    Ok(claims.claim)
}

/// The claims that differ; with `update`, the pages are rewritten with the derived numbers.
fn faults(claims: &[Claim], root: &Path, update: bool) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    let tests = test_names::all(root)?;
    for claim in claims {
        let path = root.join(&claim.page);
        let page = files::read(&path)?;
        let Some(said) = Statement::find(&page, &claim.text) else {
            faults.push(format!("{} no longer says: {}", claim.page, claim.shown()));
            continue;
        };
        let unknown = claim.tests.iter().filter(|name| !tests.contains_key(*name));
        faults.extend(unknown.map(|name| format!("{}: no test has the name {name}", claim.page)));
        let derived = claim.from.iter().map(|source| source.derive(root));
        let derived = match derived.collect::<Result<Vec<f64>>>() {
            Ok(derived) => derived,
            Err(error) => {
                faults.push(format!("{}: {error:#}: {}", claim.page, claim.shown()));
                continue;
            }
        };
        let differing = said.differing(&derived, claim.tolerance);
        faults.extend(differing.iter().map(|(number, derived)| {
            format!(
                "{}:{} says {}, and it is {derived}: {}",
                claim.page,
                number.line,
                number.text,
                claim.shown()
            )
        }));
        if update && !differing.is_empty() {
            std::fs::write(&path, statement::replaced(&page, &differing))
                .with_context(|| format!("can't write {}", claim.page))?;
        }
    }
    Ok(faults)
}

/// The most characters of a statement that a message shows.
const SHOWN_CHARS: usize = 80;

impl Claim {
    /// The statement, or its beginning.
    fn shown(&self) -> String {
        let mut text: String = self.text.chars().take(SHOWN_CHARS).collect();
        if text.len() < self.text.len() {
            text.push('…');
        }
        text
    }

    fn is_costly(&self) -> bool {
        self.from.iter().any(Source::is_costly)
    }
}
