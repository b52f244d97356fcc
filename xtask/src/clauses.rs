//! `clauses`: the requirements of the RFCs that the crates implement, each with the code that keeps it and the tests that
//! hold it.
//!
//! `docs/clauses/` has a file for each RFC, whose `sections` say how many requirements each section states: words of RFC
//! 2119 that oblige (MUST, SHALL, REQUIRED, with or without NOT). Each has its entry, in own words. Places are searched in
//! the sources' text; nothing is compiled.

mod place;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};

use self::place::{Places, Sources};
use crate::files;
use crate::report::Verdict;

const FOLDER: &str = "docs/clauses";

/// List the requirements of RFCs, with the code that keeps each and the tests that hold it.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cargo xtask clauses\n  cargo xtask clauses 8446\n  cargo xtask clauses --open"
)]
pub(crate) struct Arguments {
    /// List each requirement of the RFCs with these numbers.
    #[arg(value_name = "RFC")]
    rfcs: Vec<u32>,
    /// List those that lack code or a test.
    #[arg(long)]
    open: bool,
    /// Print all as JSON.
    #[arg(long, conflicts_with = "open")]
    json: bool,
}

/// An RFC with its requirements.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Rfc {
    rfc: u32,
    title: String,
    /// The number of requirements in each section.
    sections: BTreeMap<String, usize>,
    /// The sections whose requirements are left out, each with the reason.
    #[serde(default)]
    left_out: BTreeMap<String, String>,
    requirement: Vec<Requirement>,
}

/// A requirement with its place in the RFC.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Requirement {
    section: String,
    /// The place among the requirements of the section, from 1 on.
    number: usize,
    side: Side,
    /// The requirement in own words.
    says: String,
    /// Where it is kept.
    #[serde(default, skip_serializing_if = "Places::is_empty")]
    code: Places,
    /// The tests that fail if it isn't kept.
    #[serde(default, skip_serializing_if = "Places::is_empty")]
    test: Places,
    /// Why it doesn't apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    none: Option<String>,
    /// The part that is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    open: Option<String>,
}

/// The end that a requirement is for.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
enum Side {
    Client,
    Server,
    Both,
}

/// The state of a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Tested,
    CodeOnly,
    NotApplicable,
    Open,
}

impl Requirement {
    fn state(&self) -> State {
        match (&self.open, &self.none) {
            (Some(_), _) => State::Open,
            (None, Some(_)) => State::NotApplicable,
            (None, None) if self.test.is_empty() => State::CodeOnly,
            (None, None) => State::Tested,
        }
    }

    /// The faults of this entry alone.
    fn faults(&self, sources: &mut Sources<'_>) -> Vec<String> {
        let mut faults = Vec::new();
        let reasons: Vec<_> = self.none.iter().chain(&self.open).collect();
        let answers = reasons.len() + usize::from(!self.code.is_empty());
        match answers {
            0 => faults.push("has neither code, nor `none`, nor `open`".to_owned()),
            1 => {}
            _ => faults.push("has more than one of code, `none` and `open`".to_owned()),
        }
        if self.code.is_empty() && !self.test.is_empty() {
            faults.push("has a test and no code".to_owned());
        }
        if self.says.trim().is_empty() || reasons.iter().any(|it| it.trim().is_empty()) {
            faults.push("has an empty text".to_owned());
        }
        faults.extend(self.code.iter().filter_map(|place| sources.code(place).err()));
        faults.extend(self.test.iter().filter_map(|place| sources.test(place).err()));
        faults
    }

    fn show(&self, rfc: u32) {
        println!("RFC {rfc} §{} ({}), {:?}: {}", self.section, self.number, self.side, self.says);
        self.code.iter().for_each(|place| println!("    code {place}"));
        self.test.iter().for_each(|place| println!("    test {place}"));
        if self.state() == State::CodeOnly {
            println!("    no test");
        }
        self.none.iter().for_each(|reason| println!("    not applicable: {reason}"));
        self.open.iter().for_each(|missing| println!("    open: {missing}"));
    }
}

impl Rfc {
    fn count(&self, state: State) -> usize {
        self.requirement.iter().filter(|it| it.state() == state).count()
    }

    /// All faults: of the sections' counts, and of each entry.
    fn faults(&self, sources: &mut Sources<'_>) -> Vec<String> {
        let mut faults = Vec::new();
        let mut seen: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
        for requirement in &self.requirement {
            let Requirement { section, number, .. } = requirement;
            let place = format!("RFC {} §{section} ({number})", self.rfc);
            let count = self.sections.get(section).copied().unwrap_or_default();
            if !(1..=count).contains(number) {
                faults.push(format!("{place}: the section has {count} requirements"));
            }
            if !seen.entry(section).or_default().insert(*number) {
                faults.push(format!("{place} has two entries"));
            }
            let own = requirement.faults(sources);
            faults.extend(own.into_iter().map(|fault| format!("{place}: {fault}")));
        }
        for (section, count) in &self.sections {
            let found = seen.get(section.as_str()).map_or(0, BTreeSet::len);
            let is_left_out = self.left_out.contains_key(section);
            if is_left_out && found > 0 {
                faults.push(format!("RFC {} §{section} is left out, and has entries", self.rfc));
            }
            if !is_left_out && found < *count {
                let rfc = self.rfc;
                faults.push(format!("RFC {rfc} §{section}: {found} entries of {count}"));
            }
        }
        let unknown = self.left_out.keys().filter(|it| !self.sections.contains_key(*it));
        faults.extend(unknown.map(|it| format!("RFC {} §{it} is left out, and unknown", self.rfc)));
        faults
    }
}

pub(crate) fn run(arguments: &Arguments, root: &Path) -> Result<()> {
    let mut rfcs = read(root)?;
    let faults = faults(&rfcs, root);
    if !arguments.rfcs.is_empty() {
        rfcs.retain(|it| arguments.rfcs.contains(&it.rfc));
        if rfcs.is_empty() {
            bail!("{FOLDER} has no file of such an RFC");
        }
    }
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&rfcs)?);
    } else if arguments.open || !arguments.rfcs.is_empty() {
        for rfc in &rfcs {
            let lacks = |it: &&Requirement| matches!(it.state(), State::CodeOnly | State::Open);
            let listed = rfc.requirement.iter().filter(|it| !arguments.open || lacks(it));
            listed.for_each(|it| it.show(rfc.rfc));
        }
    } else {
        print!("{}", table(&rfcs));
    }
    fail_on(&faults)
}

/// Every requirement has its entry, and every place that an entry names is there.
pub(crate) fn check(root: &Path) -> Result<Verdict> {
    fail_on(&faults(&read(root)?, root))?;
    Ok(Verdict::Passed)
}

fn fail_on(faults: &[String]) -> Result<()> {
    if !faults.is_empty() {
        bail!("{} faults in {FOLDER}:\n  {}", faults.len(), faults.join("\n  "));
    }
    Ok(())
}

fn read(root: &Path) -> Result<Vec<Rfc>> {
    let mut rfcs = Vec::new();
    for file in files::with_ending(&root.join(FOLDER), &[".toml"])? {
        let shown = files::shown(&file, root).to_string();
        let rfc: Rfc = toml::from_str(&files::read(&file)?).with_context(|| shown.clone())?;
        if !shown.ends_with(&format!("/rfc{}.toml", rfc.rfc)) {
            bail!("{shown} is of RFC {}", rfc.rfc);
        }
        rfcs.push(rfc);
    }
    if rfcs.is_empty() {
        bail!("{FOLDER} has no RFC");
    }
    Ok(rfcs)
}

fn faults(rfcs: &[Rfc], root: &Path) -> Vec<String> {
    let mut sources = Sources::new(root);
    rfcs.iter().flat_map(|rfc| rfc.faults(&mut sources)).collect()
}

/// The counts of each RFC, a line each.
fn table(rfcs: &[Rfc]) -> String {
    let titles = rfcs.iter().map(|rfc| rfc.title.chars().count()).max().unwrap_or_default();
    let mut lines = format!(
        "{:<8} {:<titles$} {:>12} {:>13} {:>9} {:>14} {:>4}\n",
        "RFC", "", "requirements", "code and test", "code only", "not applicable", "open"
    );
    for rfc in rfcs {
        lines += &format!(
            "{:<8} {:<titles$} {:>12} {:>13} {:>9} {:>14} {:>4}\n",
            rfc.rfc,
            rfc.title,
            rfc.requirement.len(),
            rfc.count(State::Tested),
            rfc.count(State::CodeOnly),
            rfc.count(State::NotApplicable),
            rfc.count(State::Open),
        );
        for (section, reason) in &rfc.left_out {
            lines += &format!("         without §{section}: {reason}\n");
        }
    }
    lines
}

#[cfg(test)]
mod tests;
