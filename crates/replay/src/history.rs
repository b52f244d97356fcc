//! Histories of the machines of a recorded run, by which any moment of it can be gone back to.
//!
//! A program changes by its own instructions, and between two legs of its way by the device: host calls' results, a new
//! task, a restart. The instructions can be repeated; of the rest a history has what changed.
//!
//! Invariants:
//! - A leg begins where the one before ends, with what changed between them.
//! - There are at most so many checkpoints: where there would be more, every second goes, and the next ones are twice as
//!   far apart.

use std::io::Read;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tenure_hal::Instant;
use tenure_kernel::{Leg as Told, MachineRecord, Profiler};
use tenure_node::{Config, Notice};
use tenure_vm::{Change, Frame, Image, ImageToken, Instance, Trap};
use tenure_wire::{Digest, Name, Version};

use crate::player::{Audience, ReplayError, Replayed, replay};

/// The fuel between two checkpoints at first, in units.
const STRIDE_UNITS: u64 = 1 << 16;
/// The most checkpoints of a machine.
const CHECKPOINTS_MAX: usize = 128;
/// About the most memory that all histories take, in bytes. What the record has beyond that isn't kept.
const BYTES_MAX: usize = 1 << 30;
/// The level of the lines of a log that tell of faults.
const FAULT: &str = "fault";

/// The histories of all machines of a recorded run.
pub struct Remembered {
    /// The run.
    pub replayed: Replayed,
    /// Each machine's history, of one package each, in the order in which they began.
    pub machines: Vec<Arc<History>>,
    /// Whether the record has more than could be kept.
    pub is_cut: bool,
}

/// Repeats a run that is recorded in `from`, and keeps what its machines did. `config` makes a node's configuration of
/// the board's settings, or says why it can't.
///
/// # Errors
/// As [`ReplayError`] says.
pub fn remember(
    from: &mut dyn Read,
    config: &mut dyn FnMut(&[u8]) -> Result<Config, String>,
) -> Result<Remembered, ReplayError> {
    let scribe = Scribe::default();
    let replayed = replay(from, &mut Listener { config, scribe: &scribe })?;
    let Kept { machines, is_cut } = scribe.take();
    Ok(Remembered { replayed, machines, is_cut })
}

/// A moment of a machine's history, between two instructions or where it failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The number of the leg.
    pub leg: usize,
    /// The fuel used since the leg's beginning, in units.
    pub units: u64,
}

/// A leg of a program's way: from where a turn or a host call let it go on to where it stopped next.
pub struct Leg {
    /// The change between the leg before and this one; `None` if the program began anew, at a checkpoint.
    pub(crate) change: Option<Change>,
    /// The fuel that it had, in units.
    pub(crate) fuel: u64,
    /// The fuel that it used, in units.
    pub units: u64,
    /// The fuel that the program used on all legs before, in units.
    pub units_before: u64,
    /// How the program failed at its end, if it did.
    pub trap: Option<Trap>,
    /// The fault at its end, in the words of the log, if there was one.
    pub fault: Option<String>,
    /// The number of the input that led to it.
    pub input: u64,
    /// Its time.
    pub at: Instant,
    /// The function that its task calls.
    pub function: Option<Arc<str>>,
}

/// A line that a machine wrote to its log.
pub struct Line {
    /// It was written on the leg before this one, or earlier.
    pub leg: usize,
    /// Its time.
    pub at: Instant,
    /// `fault`, `error`, `warning`, `info` or `debug`.
    pub level: String,
    /// The text.
    pub message: String,
}

/// The history of a machine, as long as it was of one package.
pub struct History {
    /// Its name.
    pub machine: Name,
    /// The package that it was made from.
    pub package: Digest,
    /// The package's version.
    pub version: Version,
    /// Its log.
    pub lines: Vec<Line>,
    image: Vec<u8>,
    token: ImageToken,
    legs: Vec<Leg>,
    checkpoints: Vec<Checkpoint>,
}

/// The program at the beginning of a leg.
struct Checkpoint {
    leg: usize,
    program: Instance,
    /// Whether nothing leads there but it.
    is_pinned: bool,
}

impl History {
    /// The machine's code.
    ///
    /// # Panics
    /// Never: these bytes were an image of this token, and don't change.
    pub fn image(&self) -> Image<'_> {
        Image::reopen(&self.image, &self.token).expect("the image that was kept")
    }

    /// A leg; the last one if there aren't so many.
    pub fn leg(&self, number: usize) -> &Leg {
        &self.legs[number.min(self.legs.len() - 1)]
    }

    /// How many legs there are: at least one.
    pub fn legs(&self) -> usize {
        self.legs.len()
    }

    /// The fuel that was used before a moment, in units.
    pub fn distance(&self, position: Position) -> u64 {
        self.leg(position.leg).units_before + position.units
    }

    /// The moment before which so much fuel was used, or more if instructions took that.
    pub fn position_at(&self, distance: u64) -> Position {
        if distance == 0 {
            return Position::default();
        }
        let next = self.legs.partition_point(|leg| leg.units_before <= distance);
        let leg = next.saturating_sub(1);
        let units = (distance - self.legs[leg].units_before).min(self.legs[leg].units);
        Position { leg, units }
    }

    /// The last moment.
    pub fn end(&self) -> Position {
        let leg = self.legs.len() - 1;
        Position { leg, units: self.legs[leg].units }
    }

    /// Whether a leg's end is a moment of its own: where the program failed, or nothing more is known of it. Others
    /// are the next leg's beginning.
    pub(crate) fn has_end(&self, leg: usize) -> bool {
        let Leg { trap, fault, .. } = self.leg(leg);
        trap.is_some() || fault.is_some() || leg + 1 >= self.legs.len()
    }

    /// The last checkpoint at or before the beginning of a leg: its leg, and the program there.
    pub(crate) fn checkpoint(&self, leg: usize) -> (usize, &Instance) {
        let next = self.checkpoints.partition_point(|checkpoint| checkpoint.leg <= leg);
        let checkpoint = &self.checkpoints[next.saturating_sub(1)];
        (checkpoint.leg, &checkpoint.program)
    }
}

/// Listens to the run of a device.
struct Listener<'a> {
    config: &'a mut dyn FnMut(&[u8]) -> Result<Config, String>,
    scribe: &'a Scribe,
}

impl Audience for Listener<'_> {
    fn config(&mut self, settings: &[u8]) -> Result<Config, String> {
        (self.config)(settings)
    }

    fn takes(&mut self, input: u64, at: Instant) {
        self.scribe.takes(input, at);
    }

    fn show(&mut self, at: Instant, notice: &Notice) {
        if let Notice::Log(line) = notice {
            self.scribe.logs(at, &line.machine, &line.level, &line.message);
        }
    }

    fn profiler(&mut self) -> Option<Box<dyn Profiler>> {
        Some(Box::new(self.scribe.clone()))
    }
}

/// Keeps what the machines of a kernel do, as its [`Profiler`]. Copies write the same histories.
#[derive(Clone, Default)]
pub struct Scribe(Arc<Mutex<Book>>);

/// The histories that a [`Scribe`] kept.
pub struct Kept {
    /// Each machine's history, of one package each, in the order in which they began.
    pub machines: Vec<Arc<History>>,
    /// Whether there was more than could be kept.
    pub is_cut: bool,
}

impl Scribe {
    /// Is told of the input of this number, before it is taken at this time.
    pub fn takes(&self, input: u64, at: Instant) {
        let mut book = self.book();
        (book.input, book.at) = (input, at);
    }

    /// Is told of a line that a machine wrote to its log, after it ran.
    pub fn logs(&self, at: Instant, machine: &Name, level: &str, message: &str) {
        let mut book = self.book();
        if !book.is_full {
            book.log(at, machine, level, message);
        }
    }

    /// Takes the histories up to now; another one begins with what comes.
    pub fn take(&self) -> Kept {
        let Book { machines, is_full, .. } = core::mem::take(&mut *self.book());
        let machines = machines.into_iter().map(|keeping| Arc::new(keeping.history)).collect();
        Kept { machines, is_cut: is_full }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        // A thread that panicked has kept whole legs.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Default)]
struct Book {
    machines: Vec<Keeping>,
    /// The input that is being taken, and its time.
    input: u64,
    at: Instant,
    /// About how much memory is taken.
    bytes: usize,
    is_full: bool,
}

/// A history that isn't over.
struct Keeping {
    history: History,
    /// The program at the end of the last leg.
    program: Instance,
    units: u64,
    stride: u64,
}

impl Profiler for Scribe {
    fn ran(&mut self, told: &Told<'_>) -> bool {
        let mut book = self.book();
        book.is_full |= book.bytes > BYTES_MAX;
        if !book.is_full {
            book.keep(told);
        }
        false
    }

    fn spent(&mut self, _: &MachineRecord, _: &[Frame], _: u64) {}
}

impl Book {
    fn log(&mut self, at: Instant, machine: &Name, level: &str, message: &str) {
        let input = self.input;
        // That one wrote it which ran last, if there was one of the name before.
        let named = self.machines.iter_mut().filter(|one| one.history.machine == *machine);
        let Some(keeping) = named.max_by_key(|one| one.history.leg(usize::MAX).input) else {
            return;
        };
        let history = &mut keeping.history;
        if level == FAULT {
            // The machine may have gone on since, anew.
            let legs = &history.legs;
            let of_input = (0..legs.len()).rev().take_while(|leg| legs[*leg].input == input);
            let mut of_input = of_input.filter(|leg| legs[*leg].trap.is_some());
            let untold = of_input.find(|leg| legs[*leg].fault.is_none());
            let leg = untold.unwrap_or(legs.len() - 1);
            history.legs[leg].fault = Some(message.to_owned());
        }
        let (level, message) = (level.to_owned(), message.to_owned());
        self.bytes += size_of::<Line>() + level.len() + message.len();
        history.lines.push(Line { leg: history.legs.len(), at, level, message });
    }

    fn keep(&mut self, told: &Told<'_>) {
        let units = (told.paid + told.after.owed()).saturating_sub(told.before.owed());
        let trap = told.after.failure(told.image);
        if units == 0 && trap.is_none() {
            return;
        }
        let known = self.machines.iter().position(|keeping| keeping.history.is_of(told));
        let change = known.and_then(|at| told.before.change_since(&self.machines[at].program));
        let at = known.unwrap_or_else(|| {
            self.bytes += told.image.as_bytes().len();
            self.machines.push(Keeping::new(told));
            self.machines.len() - 1
        });
        let keeping = &mut self.machines[at];
        keeping.program = told.after.clone();
        let Keeping { history, units: units_before, .. } = keeping;
        let same = history.legs.last().and_then(|leg| leg.function.clone());
        let function = match (told.function, same) {
            (Some(function), Some(same)) if *same == *function => Some(same),
            (function, _) => function.map(Arc::from),
        };
        let is_pinned = change.is_none();
        self.bytes += size_of::<Leg>() + change.as_ref().map_or(0, Change::bytes);
        history.legs.push(Leg {
            change,
            fuel: told.fuel,
            units,
            units_before: *units_before,
            trap,
            fault: None,
            input: self.input,
            at: self.at,
            function,
        });
        let (taken, before) = keeping.check(told.before, is_pinned);
        keeping.units += units;
        self.bytes = (self.bytes + taken).saturating_sub(before);
    }
}

impl Keeping {
    fn new(told: &Told<'_>) -> Self {
        let MachineRecord { name, package, package_version, .. } = told.machine;
        let history = History {
            machine: name.clone(),
            package: *package,
            version: *package_version,
            lines: Vec::new(),
            image: told.image.as_bytes().to_vec(),
            token: told.image.token(),
            legs: Vec::new(),
            checkpoints: Vec::new(),
        };
        Self { history, program: told.after.clone(), units: 0, stride: STRIDE_UNITS }
    }

    /// Keeps the program at the beginning of the last leg if it is far from the checkpoint before, or `is_pinned`; gives
    /// about how many bytes its checkpoints take now, and took before.
    fn check(&mut self, program: &Instance, is_pinned: bool) -> (usize, usize) {
        let Self { history, units, stride, .. } = self;
        let History { legs, checkpoints, .. } = history;
        let last = checkpoints.last().map_or(0, |last| legs[last.leg].units_before);
        if !is_pinned && *units - last < *stride {
            return (0, 0);
        }
        let bytes = |checkpoints: &[Checkpoint]| -> usize {
            checkpoints.iter().map(|one| one.program.memory().len()).sum()
        };
        let (leg, before) = (legs.len() - 1, bytes(checkpoints));
        checkpoints.push(Checkpoint { leg, program: program.clone(), is_pinned });
        if checkpoints.len() > CHECKPOINTS_MAX {
            let mut number = 0_usize;
            checkpoints.retain(|checkpoint| {
                number += 1;
                checkpoint.is_pinned || !number.is_multiple_of(2)
            });
            *stride = stride.saturating_mul(2);
        }
        (bytes(checkpoints), before)
    }
}

impl History {
    fn is_of(&self, told: &Told<'_>) -> bool {
        self.machine == told.machine.name
            && self.package == told.machine.package
            && self.token == told.image.token()
    }
}
