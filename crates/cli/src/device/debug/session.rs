//! A session with a record: its machines, each at a moment of its history, breakpoints, and the steps between moments.
//!
//! Each machine has its own time: a step of one leaves the others where they are.

use std::ops::Range;
use std::sync::Arc;

use tenure_replay::{History, Position, Stopped, Walk};
use tenure_vm::FunctionIndex;

use super::expression::{self, Expression, ExpressionError, Scope, Worth};
use super::lines::{Lines, Spot};
use super::view::{Call, View};
use crate::make::symbols::{Site, Symbols};

/// The most breakpoints, and the most ranges that are watched.
pub(super) const BREAKPOINTS_MAX: usize = 1000;
pub(super) const WATCHES_MAX: usize = 16;
/// The longest range that is watched, in bytes.
const WATCHED_BYTES_MAX: u32 = 4096;

/// A session.
pub(super) struct Session {
    pub(super) machines: Vec<Debuggee>,
    pub(super) breakpoints: Vec<Breakpoint>,
    pub(super) watches: Vec<Watch>,
    /// The words that say where the run ends.
    pub(super) end: &'static str,
    last_number: u32,
}

/// A machine of one package.
pub(super) struct Debuggee {
    pub(super) name: String,
    walk: Walk,
    symbols: Option<Symbols>,
    lines: Lines,
    /// Nothing has moved it yet, so that a breakpoint where its history begins wasn't passed.
    is_fresh: bool,
}

/// Where machines stop.
pub(super) struct Breakpoint {
    pub(super) number: u32,
    pub(super) at: BreakAt,
    /// The condition, as it was written and as it was read.
    pub(super) condition: Option<(String, Expression)>,
    /// The places of each machine, by its number, as offsets in its image.
    places: Vec<(usize, u32)>,
    /// Where it stands in the source, if that is known.
    pub(super) line: Option<(String, u32)>,
}

/// A place in the source, or a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BreakAt {
    Line(String, u32),
    Function(String),
}

/// Where a breakpoint stands in a machine: where its code begins, as offsets in the image, and in which file and line.
struct Places {
    code_at: Vec<u32>,
    line: Option<(String, u32)>,
}

/// A range of a machine's memory whose changes stop it.
pub(super) struct Watch {
    pub(super) number: u32,
    pub(super) machine: usize,
    /// The words in which it was asked for.
    pub(super) text: String,
    pub(super) range: Range<u32>,
}

/// How far a step goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// To the next breakpoint, watched change or fault.
    On,
    /// To another line, in whatever function.
    Into,
    /// To another line of this function, or out of it.
    Over,
    /// Out of this function.
    Out,
    /// By an instruction.
    Instruction,
}

/// In which direction time goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Forwards,
    Backwards,
}

/// Why a machine stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// The step is done.
    Stepped,
    /// At the breakpoint of this number.
    Breakpoint(u32),
    /// The watched range of this number is changed: by the last instruction forwards, by the next one backwards.
    Watched(u32),
    /// It has a fault here.
    Fault(String),
    /// Its history begins or ends here.
    Edge,
}

impl Session {
    /// A session with these machines, each with the symbols of its package if they are known; `end` says where the run ends.
    pub(super) fn new(machines: Vec<(Arc<History>, Option<Symbols>)>, end: &'static str) -> Self {
        let machines = machines.into_iter().map(|(history, symbols)| {
            let lines = symbols.as_ref().map(|symbols| Lines::of(&history.image(), symbols));
            let lines = lines.unwrap_or_default();
            let name = format!("{} {}", history.machine, history.version);
            Debuggee { name, walk: Walk::new(history), symbols, lines, is_fresh: true }
        });
        Self {
            machines: machines.collect(),
            breakpoints: Vec::new(),
            watches: Vec::new(),
            end,
            last_number: 0,
        }
    }

    /// Sets a breakpoint, in all machines that have the place.
    ///
    /// # Errors
    /// None has it, the condition is none, or there are too many.
    pub(super) fn add_breakpoint(
        &mut self,
        at: BreakAt,
        condition: Option<&str>,
    ) -> anyhow::Result<&Breakpoint> {
        anyhow::ensure!(self.breakpoints.len() < BREAKPOINTS_MAX, "there are too many breakpoints");
        let condition = match condition {
            Some(text) => Some((text.to_owned(), expression::parse(text)?)),
            None => None,
        };
        let (mut places, mut line, mut refusal) = (Vec::new(), None, None);
        for (number, machine) in self.machines.iter().enumerate() {
            match machine.places(&at) {
                Ok(found) => {
                    places.extend(found.code_at.into_iter().map(|code_at| (number, code_at)));
                    line = line.or(found.line);
                }
                Err(why) => refusal = refusal.or(Some(format!("{}: {why}", machine.name))),
            }
        }
        if places.is_empty() {
            anyhow::bail!(refusal.unwrap_or_else(|| "the record has no machine".to_owned()));
        }
        self.last_number += 1;
        let number = self.last_number;
        self.breakpoints.push(Breakpoint { number, at, condition, places, line });
        Ok(&self.breakpoints[self.breakpoints.len() - 1])
    }

    /// Watches a range of a machine's memory.
    ///
    /// # Errors
    /// It is empty or too long, or there are too many.
    pub(super) fn add_watch(
        &mut self,
        machine: usize,
        text: &str,
        range: Range<u32>,
    ) -> anyhow::Result<u32> {
        anyhow::ensure!(self.watches.len() < WATCHES_MAX, "too many ranges are watched");
        let bytes = range.end.saturating_sub(range.start);
        anyhow::ensure!(
            (1..=WATCHED_BYTES_MAX).contains(&bytes),
            "a range of 1 to {WATCHED_BYTES_MAX} bytes can be watched"
        );
        self.last_number += 1;
        let number = self.last_number;
        self.watches.push(Watch { number, machine, text: text.to_owned(), range });
        Ok(number)
    }

    /// Takes a breakpoint or a watched range away; returns whether there was one of this number.
    pub(super) fn remove(&mut self, number: u32) -> bool {
        let before = self.breakpoints.len() + self.watches.len();
        self.breakpoints.retain(|breakpoint| breakpoint.number != number);
        self.watches.retain(|watch| watch.number != number);
        self.breakpoints.len() + self.watches.len() < before
    }

    /// Lets a machine go a step.
    pub(super) fn step(&mut self, machine: usize, step: Step, way: Way) -> Reason {
        let watches: Vec<&Watch> =
            self.watches.iter().filter(|watch| watch.machine == machine).collect();
        let watched: Vec<Range<u32>> = watches.iter().map(|watch| watch.range.clone()).collect();
        let stops = Stops::of(machine, &self.breakpoints);
        let Some(debuggee) = self.machines.get_mut(machine) else { return Reason::Edge };
        let stopped = debuggee.step(step, way, &stops, &watched);
        match stopped {
            Stopped::Watched(number) => {
                watches.get(number).map_or(Reason::Stepped, |watch| Reason::Watched(watch.number))
            }
            Stopped::Edge => Reason::Edge,
            Stopped::Here | Stopped::Fault => {
                if let Some(fault) = debuggee.fault() {
                    return Reason::Fault(fault);
                }
                stops.breakpoint(&debuggee.view()).map_or(Reason::Stepped, Reason::Breakpoint)
            }
        }
    }

    /// Goes back to the last instruction that changed a range of a machine's memory, or to the history's first moment;
    /// returns whether there was one.
    pub(super) fn last_writer(&mut self, machine: usize, range: Range<u32>) -> bool {
        let Some(debuggee) = self.machines.get_mut(machine) else { return false };
        let watched = [range];
        loop {
            match debuggee.walk.back_until(&mut |_| false, &watched) {
                Stopped::Watched(_) => return true,
                // On the way there may have been faults.
                Stopped::Fault => {}
                Stopped::Here | Stopped::Edge => return false,
            }
        }
    }
}

/// The breakpoints of a machine, by their places.
struct Stops<'a> {
    at: Vec<(u32, &'a Breakpoint)>,
}

impl<'a> Stops<'a> {
    fn of(machine: usize, breakpoints: &'a [Breakpoint]) -> Self {
        let places = breakpoints.iter().flat_map(|breakpoint| {
            let own = breakpoint.places.iter().filter(move |(of, _)| *of == machine);
            own.map(move |(_, code_at)| (*code_at, breakpoint))
        });
        let mut at: Vec<(u32, &Breakpoint)> = places.collect();
        at.sort_by_key(|(code_at, breakpoint)| (*code_at, breakpoint.number));
        Self { at }
    }

    /// The first breakpoint where the machine stands, if its condition is true. One whose condition has no value there
    /// counts, so that its author hears of that.
    fn breakpoint(&self, view: &View<'_>) -> Option<u32> {
        let code_at = view.walk.standing()?.code_at;
        let from = self.at.partition_point(|(place, _)| *place < code_at);
        let here = self.at[from..].iter().take_while(|(place, _)| *place == code_at);
        let is_met = |breakpoint: &Breakpoint| match &breakpoint.condition {
            None => true,
            Some((_, condition)) => {
                let stack = view.stack();
                Scope::new(*view, stack.first()).is_true(condition).unwrap_or(true)
            }
        };
        here.map(|(_, breakpoint)| *breakpoint).find(|one| is_met(one)).map(|one| one.number)
    }
}

impl Debuggee {
    /// The machine at its moment.
    pub(super) fn view(&self) -> View<'_> {
        View { walk: &self.walk, symbols: self.symbols.as_ref(), lines: &self.lines }
    }

    pub(super) fn walk(&self) -> &Walk {
        &self.walk
    }

    pub(super) fn symbols(&self) -> Option<&Symbols> {
        self.symbols.as_ref()
    }

    pub(super) fn lines(&self) -> &Lines {
        &self.lines
    }

    /// Goes to a moment.
    pub(super) fn go(&mut self, to: Position) {
        self.is_fresh = false;
        self.walk.go(to);
    }

    /// The fault that the machine has here, in the words of its log.
    pub(super) fn fault(&self) -> Option<String> {
        let leg = self.walk.leg();
        let told = || leg.fault.clone().or_else(|| leg.trap.map(|trap| trap.to_string()));
        self.walk.has_failed().then(told).flatten()
    }

    /// All its faults, with their moments, in order.
    pub(super) fn faults(&self) -> Vec<(Position, String)> {
        let history = self.walk.history();
        let legs = (0..history.legs()).map(|leg| (leg, history.leg(leg)));
        let faults = legs.filter_map(|(number, leg)| {
            let told = leg.fault.clone().or_else(|| leg.trap.map(|trap| trap.to_string()))?;
            Some((Position { leg: number, units: leg.units }, told))
        });
        faults.collect()
    }

    /// The worth of an expression in a call.
    ///
    /// # Errors
    /// It has no value there.
    pub(super) fn worth(
        &self,
        expression: &Expression,
        call: Option<&Call>,
    ) -> Result<Worth, ExpressionError> {
        Scope::new(self.view(), call).worth(expression)
    }

    /// The worth of an expression in a call, as text.
    ///
    /// # Errors
    /// It has no value there.
    pub(super) fn show(
        &self,
        expression: &Expression,
        call: Option<&Call>,
    ) -> Result<String, ExpressionError> {
        Scope::new(self.view(), call).show(expression)
    }

    /// The range of memory of an expression's value in a call.
    ///
    /// # Errors
    /// It isn't in memory.
    pub(super) fn range(
        &self,
        expression: &Expression,
        call: Option<&Call>,
    ) -> Result<Range<u32>, ExpressionError> {
        Scope::new(self.view(), call).range(expression)
    }

    /// Where a breakpoint stands; a text says why it stands nowhere.
    fn places(&self, at: &BreakAt) -> Result<Places, String> {
        let Some(symbols) = &self.symbols else {
            return Err("nothing is known of its code; name its package by --package".to_owned());
        };
        match at {
            BreakAt::Line(..) if self.lines.is_empty() => Err(
                "no lines of its code are known; NAME.debug.wasm must lie beside its package, and \
                 hold DWARF"
                    .to_owned(),
            ),
            BreakAt::Line(path, line) => {
                let found = self.lines.find(path, *line)?;
                let line = Some((found.file.to_owned(), found.line));
                Ok(Places { code_at: found.entries.to_vec(), line })
            }
            BreakAt::Function(name) => {
                let history = Arc::clone(self.walk.history());
                let image = history.image();
                let entry = |function| {
                    let begin = image.shape(FunctionIndex(function))?.code_at;
                    Some(self.behind_prologue(symbols, function, begin))
                };
                let code_at: Vec<u32> = symbols.functions(name).filter_map(entry).collect();
                let first = code_at.first().ok_or_else(|| format!("it has no function {name}"))?;
                let spot = self.lines.at(*first);
                let line = spot.map(|spot| (self.lines.name(spot).to_owned(), spot.line));
                Ok(Places { code_at, line })
            }
        }
    }

    /// Where a function's own code begins: what stands in the line of its name puts its parameters where they belong.
    fn behind_prologue(&self, symbols: &Symbols, function: u32, begin: u32) -> u32 {
        let site = Site { function, offset: 0, in_module: false };
        let declared =
            symbols.address(site).and_then(|address| symbols.variables()?.declared_in(address));
        let (Some(spot), Some(declared)) = (self.lines.at(begin), declared) else { return begin };
        if spot.line != declared {
            return begin;
        }
        let history = Arc::clone(self.walk.history());
        let bytes = history.image().code(FunctionIndex(function)).map_or(0, <[u8]>::len) as u32;
        let is_behind =
            |code_at: &u32| self.lines.at(*code_at).is_some_and(|other| !other.is_beside(spot));
        (begin..begin + bytes).find(is_behind).unwrap_or(begin)
    }

    fn step(&mut self, step: Step, way: Way, stops: &Stops<'_>, watched: &[Range<u32>]) -> Stopped {
        let is_fresh = core::mem::take(&mut self.is_fresh);
        let goes_on = (step, way) == (Step::On, Way::Forwards);
        if is_fresh && goes_on && stops.breakpoint(&self.view()).is_some() {
            return Stopped::Here;
        }
        // Without lines a step is one of an instruction.
        let step = match step {
            Step::Into | Step::Over if self.lines.is_empty() => Step::Instruction,
            step => step,
        };
        let from = Standing::of(&self.view());
        match (step, way) {
            (Step::Instruction, Way::Forwards) => moved(self.walk.forward()),
            (Step::Instruction, Way::Backwards) => moved(self.walk.back()),
            (Step::Into | Step::Over, Way::Backwards) => {
                self.line_back(&from, step, stops, watched)
            }
            _ => self.search(way, (&from, step), stops, watched),
        }
    }

    /// Goes to the beginning of this line, or if it is there, of the line before.
    fn line_back(
        &mut self,
        from: &Standing,
        step: Step,
        stops: &Stops<'_>,
        watched: &[Range<u32>],
    ) -> Stopped {
        let origin = self.walk.position();
        let stopped = self.search(Way::Backwards, (from, step), stops, watched);
        let is_elsewhere = !matches!(stopped, Stopped::Here | Stopped::Edge);
        if is_elsewhere || stops.breakpoint(&self.view()).is_some() {
            return stopped;
        }
        let (before, line) = (self.walk.position(), Standing::of(&self.view()));
        if self.forward_into(from, origin) && self.walk.position() < origin {
            return Stopped::Here;
        }
        self.walk.go(before);
        if stopped == Stopped::Edge || !from.is_over(step, &line) {
            return stopped;
        }
        let nothing = Stops { at: Vec::new() };
        if self.search(Way::Backwards, (&line, step), &nothing, &[]) == Stopped::Fault {
            self.walk.forward();
        }
        if !self.forward_into(&line, before) {
            self.walk.go(before);
        }
        Stopped::Here
    }

    /// Goes on to where the program stands in the line of `line`, at most up to a moment; returns whether it does.
    fn forward_into(&mut self, line: &Standing, end: Position) -> bool {
        loop {
            if Standing::of(&self.view()).is_beside(line) {
                return true;
            }
            if self.walk.position() >= end || !self.walk.forward() {
                return false;
            }
        }
    }

    /// Goes to where a step from a place is over, or to a breakpoint, a watched change or a fault before that.
    fn search(
        &mut self,
        way: Way,
        (from, step): (&Standing, Step),
        stops: &Stops<'_>,
        watched: &[Range<u32>],
    ) -> Stopped {
        let Self { walk, symbols, lines, .. } = self;
        let (symbols, lines) = (symbols.as_ref(), &*lines);
        let mut stop = |walk: &Walk| {
            let view = View { walk, symbols, lines };
            let is_over = step != Step::On && from.is_over(step, &Standing::of(&view));
            is_over || stops.breakpoint(&view).is_some()
        };
        match way {
            Way::Forwards => walk.forward_until(&mut stop, watched),
            Way::Backwards => walk.back_until(&mut stop, watched),
        }
    }
}

fn moved(has_moved: bool) -> Stopped {
    if has_moved { Stopped::Here } else { Stopped::Edge }
}

/// Where a program stands, as steps of lines see it.
struct Standing {
    /// The offset of the innermost frame; larger, the deeper the call.
    frame: Option<u32>,
    spot: Option<Spot>,
    /// Whether it is about to begin a call from outside.
    begins: bool,
}

impl Standing {
    fn of(view: &View<'_>) -> Self {
        let standing = view.walk.standing();
        let spot = standing.and_then(|standing| view.lines.at(standing.code_at));
        let begins = view.walk.position().units == 0
            && standing.is_some_and(|standing| standing.frame == 0)
            && view.walk.program().innermost(&view.image(), 1).iter().all(|call| call.offset == 0);
        Self { frame: standing.map(|standing| standing.frame), spot, begins }
    }

    /// How deep it is: by its frame, and by the functions that were put into its function there.
    fn depth(&self) -> Option<(u32, usize)> {
        Some((self.frame?, self.spot.map_or(usize::MAX, |spot| spot.depth)))
    }

    /// Whether both are in one line of one call.
    fn is_beside(&self, other: &Self) -> bool {
        match (self.spot, other.spot) {
            (Some(own), Some(others)) => self.depth() == other.depth() && own.is_beside(others),
            _ => false,
        }
    }

    /// Whether a step from here is over where the program stands `now`.
    fn is_over(&self, step: Step, now: &Self) -> bool {
        let Some(depth) = now.depth() else { return false };
        match step {
            Step::On | Step::Instruction => false,
            Step::Out => {
                // Where no line is known of this function, its caller needn't have one either.
                let counts = now.spot.is_some() || self.spot.is_none();
                now.begins || counts && self.depth().is_none_or(|from| depth < from)
            }
            Step::Into => {
                let frames_differ = now.frame != self.frame;
                now.spot.is_some_and(|spot| {
                    frames_differ || !self.spot.is_some_and(|own| own.is_beside(spot))
                })
            }
            Step::Over => now.spot.is_some_and(|spot| match self.depth() {
                None => true,
                Some(from) => {
                    depth < from
                        || depth == from && !self.spot.is_some_and(|own| own.is_beside(spot))
                }
            }),
        }
    }
}
