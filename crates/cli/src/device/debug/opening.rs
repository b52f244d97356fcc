//! What is debugged: the record of a device, or the journal of one of its machines. Either is repeated, and what machines
//! did meanwhile is kept.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use tenure_audit::{Replay, Watcher};
use tenure_hal::Instant;
use tenure_kernel::{LogEntry, Step};
use tenure_protocols::plug_in::Registry;
use tenure_replay::{History, Kept, Remembered, Scribe};

use super::Subject;
use super::session::Session;
use crate::device::process::recorded_config;
use crate::device::recorded::name_by;
use crate::device::source::Source;
use crate::machine::journal;
use crate::make::symbols::Symbols;

/// The machines of a run that was repeated, and the words that say where it ends.
struct Run {
    machines: Vec<Arc<History>>,
    end: &'static str,
}

/// Repeats a run, and begins a session with its machines.
///
/// # Errors
/// The record or journal can't be read, the run differs from it, or a package is none of its machines'.
pub(super) fn open(subject: &Subject, registry: Registry) -> anyhow::Result<Session> {
    let source = Source::of(subject.record.as_ref().context("no record is named")?)?;
    let path = source.path();
    let run = match journal::is_in(path)? {
        true => of_journal(path, &subject.packages),
        false => of_record(path, registry),
    };
    let Run { machines, end } = run.with_context(|| path.display().to_string())?;
    let mut machines: Vec<_> = machines.into_iter().map(|history| (history, None)).collect();
    name_by(&subject.packages, &mut |path: &Path, package, digest| {
        let mut is_used = false;
        for (_, symbols) in machines.iter_mut().filter(|(it, _)| it.package == *digest) {
            *symbols = Some(Symbols::beside_or_told(path, package)?);
            is_used = true;
        }
        Ok(is_used)
    })?;
    if let Some(name) = &subject.machine {
        machines.retain(|(history, _)| history.machine == *name);
        ensure!(!machines.is_empty(), "the record has no machine {name} that ran");
    }
    ensure!(!machines.is_empty(), "{}: no machine ran", path.display());
    Ok(Session::new(machines, end))
}

fn of_record(path: &Path, registry: Registry) -> anyhow::Result<Run> {
    let file = File::open(path)?;
    let mut config =
        |settings: &[u8]| recorded_config(settings, registry).map_err(|error| format!("{error:#}"));
    let remembered = tenure_replay::remember(&mut BufReader::new(file), &mut config)?;
    let Remembered { replayed, machines, is_cut } = remembered;
    let end = match (is_cut, replayed.is_complete) {
        (true, _) => "the record goes on, but there is more in it than can be kept",
        (false, true) => "the record ends here",
        (false, false) => "the record breaks off here, as the device was killed or still runs",
    };
    Ok(Run { machines, end })
}

fn of_journal(path: &Path, packages: &[PathBuf]) -> anyhow::Result<Run> {
    let scribe = Scribe::default();
    journal::replay_with(path, packages, || Listener { scribe: &scribe, records: 0 })?;
    let Kept { machines, is_cut } = scribe.take();
    let end = match is_cut {
        true => "the journal goes on, but there is more in it than can be kept",
        false => "the journal ends here",
    };
    Ok(Run { machines, end })
}

/// Has a journal replayed for the sake of what its machine does.
struct Listener<'a> {
    scribe: &'a Scribe,
    /// How many records happened to the machine; a session calls them inputs.
    records: u64,
}

impl Watcher for Listener<'_> {
    fn began(&mut self, replay: &mut Replay) {
        self.scribe.takes(self.records, Instant::from_millis(replay.at_ms()));
        replay.kernel().use_profiler(Box::new(self.scribe.clone()));
    }

    fn logged(&mut self, at_ms: u64, entry: &LogEntry) {
        let LogEntry { machine, level, message, .. } = entry;
        self.scribe.logs(Instant::from_millis(at_ms), machine, level.as_str(), message);
    }

    fn stepped(&mut self, replay: &mut Replay, step: &Step) {
        if let Step::Took(_) = step {
            self.records += 1;
            self.scribe.takes(self.records, Instant::from_millis(replay.at_ms()));
        }
    }
}
