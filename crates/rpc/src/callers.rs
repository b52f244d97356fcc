//! The called side's memory: which calls were executed for whom, and what came of them.
//!
//! This is what makes a call run at most once. Its invariants:
//! - What is remembered of a caller (one incarnation of one peer) is complete since
//!   [`Caller::complete_since`]. It is forgotten as a whole, and all its sessions with it; only
//!   calls that the caller has done with are dropped one by one.
//! - Of calls that were first sent after `horizon`, none that was executed is forgotten, whoever
//!   made it. Forgetting a caller moves `horizon` to its last call.
//! - A call that runs isn't forgotten before it ends.
//! - All of this goes through a deep sleep, so that no call runs once before it and once after.

use alloc::vec::Vec;

use tenure_hal::Instant;
use tenure_wire::datagram::SessionIndex;
use tenure_wire::frame::{CallNumber, Declined, Finished, Fragment, FragmentSet, ReplyBody};

use crate::assembly::Assembly;
use crate::rest::{RestingCaller, RestingCallers};
use crate::session::Pair;
use crate::{Config, IncomingCallHandle};

/// How long the result of a call is safe from being dropped for want of memory.
const RESULT_KEPT: core::time::Duration = core::time::Duration::from_secs(2);

/// All callers that are remembered.
pub(crate) struct Callers {
    table: Vec<Caller>,
    next_id: u64,
    horizon: Instant,
}

/// One incarnation of one peer, as a caller.
pub(crate) struct Caller {
    /// Tells it from every other, forgotten ones included.
    pub(crate) id: u64,
    /// Who calls whom.
    pub(crate) pair: Pair,
    /// Which incarnation calls.
    pub(crate) incarnation: u64,
    complete_since: Instant,
    /// The calls that it has done with.
    finished: Finished,
    last_call: Option<Instant>,
    last_used: Instant,
    calls: Vec<RememberedCall>,
}

/// One call that came in.
struct RememberedCall {
    number: CallNumber,
    /// The session by which it was last heard of, and when.
    session: SessionIndex,
    asked_at: Instant,
    /// Whether its reply waits for the caller to show that it receives where it seems to be.
    withheld: bool,
    state: State,
}

enum State {
    Assembling(Assembly),
    Running,
    Done(Vec<u8>),
}

/// What to do about a part of a call, or a question for one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing.
    Ignore,
    /// Execute this body: it is whole for the first time.
    Execute(Vec<u8>),
    /// Say that there is no room now.
    Later,
    /// Say that it runs.
    Running,
    /// Say what is missing.
    Missing(FragmentSet),
    /// Send the reply.
    Reply,
}

/// What was forgotten.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Forgotten {
    /// Who called whom.
    pub(crate) pair: Pair,
    /// Which incarnation called.
    pub(crate) incarnation: u64,
    /// When a call of it was last executed.
    pub(crate) last_call: Option<Instant>,
}

impl Callers {
    /// No callers; nothing is known of what was before `now`.
    pub(crate) fn new(now: Instant) -> Self {
        Self { table: Vec::new(), next_id: 0, horizon: now }
    }

    /// Since when no executed call of this caller is forgotten.
    pub(crate) fn complete_since(&self, pair: &Pair, incarnation: u64) -> Instant {
        self.position(pair, incarnation)
            .and_then(|position| self.table.get(position))
            .map_or(self.horizon, |caller| caller.complete_since)
    }

    /// Since when no executed call of any caller is forgotten.
    pub(crate) fn horizon(&self) -> Instant {
        self.horizon
    }

    /// Whether a call of this caller is running.
    pub(crate) fn is_running(&self, pair: &Pair, incarnation: u64) -> bool {
        self.position(pair, incarnation)
            .and_then(|position| self.table.get(position))
            .is_some_and(|caller| caller.running() > 0)
    }

    /// The caller, if it is known.
    pub(crate) fn find(&mut self, pair: &Pair, incarnation: u64) -> Option<&mut Caller> {
        let position = self.position(pair, incarnation)?;
        self.table.get_mut(position)
    }

    /// The caller with that id.
    pub(crate) fn by_id(&mut self, id: u64) -> Option<&mut Caller> {
        self.table.iter_mut().find(|caller| caller.id == id)
    }

    /// Whether the caller is known, or there is room for it.
    pub(crate) fn has_room(&self, config: &Config, pair: &Pair, incarnation: u64) -> bool {
        self.table.len() < config.callers_max || self.position(pair, incarnation).is_some()
    }

    /// The caller, made known if it wasn't. The caller of this has seen to it that there is room.
    pub(crate) fn know(&mut self, now: Instant, pair: Pair, incarnation: u64) -> &mut Caller {
        let position = self.position(&pair, incarnation).unwrap_or_else(|| {
            self.next_id += 1;
            self.table.push(Caller {
                id: self.next_id,
                pair,
                incarnation,
                complete_since: self.horizon,
                finished: Finished::below(CallNumber(0)),
                last_call: None,
                last_used: now,
                calls: Vec::new(),
            });
            self.table.len() - 1
        });
        &mut self.table[position]
    }

    /// Forgets the caller that is missed least: one that waits for nothing if there is one, and
    /// among those the one not heard for longest. `None` if calls of all of them are running.
    pub(crate) fn forget_one(&mut self) -> Option<Forgotten> {
        let position = self
            .table
            .iter()
            .enumerate()
            .filter(|(_, caller)| caller.running() == 0)
            .min_by_key(|(_, caller)| (!caller.calls.is_empty(), caller.last_used))
            .map(|(position, _)| position)?;
        Some(self.forget(position))
    }

    /// Forgets all callers of a machine that is gone, running calls included.
    pub(crate) fn forget_machine(&mut self, is_gone: impl Fn(&Pair) -> bool) -> Vec<Forgotten> {
        let mut forgotten = Vec::new();
        while let Some(position) = self.table.iter().position(|caller| is_gone(&caller.pair)) {
            forgotten.push(self.forget(position));
        }
        forgotten
    }

    /// How many calls are running, of all callers.
    pub(crate) fn running(&self) -> usize {
        self.table.iter().map(Caller::running).sum()
    }

    /// Drops the fragments of calls that have stood still for too long.
    pub(crate) fn expire_assemblies(&mut self, config: &Config, now: Instant) {
        for caller in &mut self.table {
            caller.calls.retain(|call| {
                !matches!(call.state, State::Assembling(_))
                    || now.since(call.asked_at) < config.assembly_timeout
            });
        }
    }

    /// When [`Self::expire_assemblies`] has something to do next.
    pub(crate) fn next_expiry(&self, config: &Config) -> Option<Instant> {
        self.table
            .iter()
            .flat_map(|caller| &caller.calls)
            .filter(|call| matches!(call.state, State::Assembling(_)))
            .map(|call| call.asked_at + config.assembly_timeout)
            .min()
    }

    /// Makes room for `bytes` more by dropping results that nobody has asked for lately, the
    /// oldest first. Returns whether there is room now.
    pub(crate) fn reclaim(&mut self, config: &Config, now: Instant, bytes: usize) -> bool {
        loop {
            if self.bytes_taken().saturating_add(bytes) <= config.buffer_bytes_max {
                return true;
            }
            let oldest = self
                .table
                .iter_mut()
                .flat_map(|caller| &mut caller.calls)
                .filter(|call| call.can_drop_result() && now.since(call.asked_at) >= RESULT_KEPT)
                .min_by_key(|call| call.asked_at);
            match oldest {
                Some(call) => call.drop_result(),
                None => return false,
            }
        }
    }

    /// The memory that parameters and results take.
    pub(crate) fn bytes_taken(&self) -> usize {
        self.table.iter().map(Caller::bytes_taken).sum()
    }

    /// The memory that all callers' calls take, beside the table of callers itself.
    pub(crate) fn heap_bytes(&self) -> usize {
        let calls: usize = self.table.iter().map(|caller| caller.calls.capacity()).sum();
        calls * size_of::<RememberedCall>() + self.bytes_taken()
    }

    /// Forgets calls that ended, as if nobody could ask for their results again.
    #[cfg(forgetful)]
    pub(crate) fn forget_ended(&mut self) {
        for caller in &mut self.table {
            caller.calls.retain(|call| !matches!(call.state, State::Done(_)));
        }
    }

    /// Names every call that runs, and the session by which its caller last asked for it.
    pub(crate) fn all_running(&self) -> Vec<(IncomingCallHandle, SessionIndex)> {
        let calls =
            self.table.iter().flat_map(|caller| caller.calls.iter().map(|call| (caller.id, call)));
        let running = calls.filter(|(_, call)| matches!(call.state, State::Running));
        let named = running.map(|(caller, call)| {
            (IncomingCallHandle { caller, number: call.number }, call.session)
        });
        named.collect()
    }

    /// What is remembered, to be taken through a deep sleep; parts of calls that aren't whole are left
    /// behind.
    pub(crate) fn rest(&self) -> RestingCallers {
        let call = |call: &RememberedCall| match &call.state {
            State::Assembling(_) => None,
            State::Running => Some((call.number, None)),
            State::Done(body) => Some((call.number, Some(body.clone()))),
        };
        let callers = self.table.iter().map(|caller| RestingCaller {
            id: caller.id,
            local: caller.pair.local,
            peer: caller.pair.peer,
            incarnation: caller.incarnation,
            complete_since_us: caller.complete_since.as_micros(),
            finished: caller.finished,
            last_call_us: caller.last_call.map(Instant::as_micros),
            calls: caller.calls.iter().filter_map(call).collect(),
        });
        RestingCallers {
            callers: callers.collect(),
            next_id: self.next_id,
            horizon_us: self.horizon.as_micros(),
        }
    }

    /// What was remembered before a deep sleep from which the endpoint wakes `now`, by a clock that
    /// has run on.
    pub(crate) fn wake(now: Instant, rest: RestingCallers) -> Self {
        let call = |(number, body): (CallNumber, Option<Vec<u8>>)| RememberedCall {
            number,
            // The session is gone; any other of that caller serves.
            session: SessionIndex(0),
            asked_at: now,
            withheld: false,
            state: body.map_or(State::Running, State::Done),
        };
        let callers = rest.callers.into_iter().map(|caller| Caller {
            id: caller.id,
            pair: Pair { local: caller.local, peer: caller.peer },
            incarnation: caller.incarnation,
            complete_since: Instant::from_micros(caller.complete_since_us),
            finished: caller.finished,
            last_call: caller.last_call_us.map(Instant::from_micros),
            last_used: now,
            calls: caller.calls.into_iter().map(call).collect(),
        });
        Self {
            table: callers.collect(),
            next_id: rest.next_id,
            horizon: Instant::from_micros(rest.horizon_us),
        }
    }

    fn position(&self, pair: &Pair, incarnation: u64) -> Option<usize> {
        self.table
            .iter()
            .position(|caller| caller.pair == *pair && caller.incarnation == incarnation)
    }

    fn forget(&mut self, position: usize) -> Forgotten {
        let caller = self.table.swap_remove(position);
        if let Some(last_call) = caller.last_call {
            self.horizon = self.horizon.max(last_call);
        }
        Forgotten {
            pair: caller.pair,
            incarnation: caller.incarnation,
            last_call: caller.last_call,
        }
    }
}

/// What the rest of the endpoint leaves for one caller.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    /// Whether one more call may run.
    pub(crate) may_run: bool,
    /// Whether there is memory for the whole call that a fragment is part of.
    pub(crate) may_assemble: bool,
}

impl Caller {
    /// Takes in a part of a call.
    pub(crate) fn take_fragment(
        &mut self,
        config: &Config,
        now: Instant,
        session: SessionIndex,
        number: CallNumber,
        fragment: &Fragment<'_>,
        allowance: Allowance,
    ) -> Verdict {
        self.last_used = now;
        if self.finished.contains(number) {
            return Verdict::Ignore;
        }
        let Some(call) = self.calls.iter_mut().find(|call| call.number == number) else {
            return self.take_first_fragment(config, now, session, number, fragment, allowance);
        };
        call.asked_at = now;
        call.session = session;
        match &mut call.state {
            State::Assembling(assembly) => {
                assembly.add(fragment);
                if assembly.missing().is_empty() {
                    return self.execute(config, now, number, allowance);
                }
                if fragment.last_of_burst() {
                    return Verdict::Missing(assembly.missing());
                }
                Verdict::Ignore
            }
            State::Running if fragment.last_of_burst() => Verdict::Running,
            State::Done(_) if fragment.last_of_burst() => Verdict::Reply,
            State::Running | State::Done(_) => Verdict::Ignore,
        }
    }

    fn take_first_fragment(
        &mut self,
        config: &Config,
        now: Instant,
        session: SessionIndex,
        number: CallNumber,
        fragment: &Fragment<'_>,
        allowance: Allowance,
    ) -> Verdict {
        if self.calls.len() >= config.remembered_per_caller_max {
            return Verdict::Later;
        }
        let mut remember = |state| {
            self.calls.push(RememberedCall {
                number,
                session,
                asked_at: now,
                withheld: false,
                state,
            });
        };
        if fragment.length() > config.body_bytes_max() {
            remember(State::Done(ReplyBody(Err(Declined::TooLong)).to_bytes()));
            return Verdict::Reply;
        }
        if fragment.count() > 1 {
            if !allowance.may_assemble {
                return if fragment.last_of_burst() { Verdict::Later } else { Verdict::Ignore };
            }
            let mut assembly = Assembly::begin(fragment);
            assembly.add(fragment);
            let missing = assembly.missing();
            remember(State::Assembling(assembly));
            return if fragment.last_of_burst() {
                Verdict::Missing(missing)
            } else {
                Verdict::Ignore
            };
        }
        let mut assembly = Assembly::begin(fragment);
        assembly.add(fragment);
        remember(State::Assembling(assembly));
        self.execute(config, now, number, allowance)
    }

    /// Answers a question for what has become of a call.
    pub(crate) fn query(
        &mut self,
        now: Instant,
        session: SessionIndex,
        number: CallNumber,
    ) -> Verdict {
        self.last_used = now;
        if self.finished.contains(number) {
            return Verdict::Ignore;
        }
        let Some(call) = self.calls.iter_mut().find(|call| call.number == number) else {
            return Verdict::Missing(FragmentSet::ALL);
        };
        call.asked_at = now;
        call.session = session;
        match &call.state {
            State::Assembling(assembly) => Verdict::Missing(assembly.missing()),
            State::Running => Verdict::Running,
            State::Done(_) => Verdict::Reply,
        }
    }

    /// Turns a call that is whole into one that runs, or that is refused for good.
    fn execute(
        &mut self,
        config: &Config,
        now: Instant,
        number: CallNumber,
        allowance: Allowance,
    ) -> Verdict {
        let may_run = allowance.may_run && self.running() < config.running_per_caller_max;
        let Some(call) = self.calls.iter_mut().find(|call| call.number == number) else {
            return Verdict::Ignore;
        };
        let State::Assembling(assembly) = &mut call.state else { return Verdict::Ignore };
        let Some(body) = assembly.complete() else { return Verdict::Ignore };
        if !may_run {
            call.state = State::Done(ReplyBody(Err(Declined::Busy)).to_bytes());
            return Verdict::Reply;
        }
        call.state = State::Running;
        self.last_call = Some(now);
        Verdict::Execute(body)
    }

    /// Ends a call that runs. Returns whether its result is still wanted.
    pub(crate) fn finish(&mut self, number: CallNumber, body: Vec<u8>) -> bool {
        let running = |call: &RememberedCall| matches!(call.state, State::Running);
        let Some(position) =
            self.calls.iter().position(|call| call.number == number && running(call))
        else {
            return false;
        };
        if self.finished.contains(number) {
            self.calls.swap_remove(position);
            return false;
        }
        self.calls[position].state = State::Done(body);
        true
    }

    /// Takes note of the calls that the caller has done with.
    pub(crate) fn note_finished(&mut self, finished: &Finished) {
        self.finished.merge(finished);
        let finished = self.finished;
        self.calls
            .retain(|call| !finished.contains(call.number) || matches!(call.state, State::Running));
        // Most callers rest most of the time, and room for their next calls would be kept for all.
        self.calls.shrink_to_fit();
    }

    /// The reply to a call that is over, where the caller was last heard, and when.
    pub(crate) fn reply(&self, number: CallNumber) -> Option<(&[u8], SessionIndex, Instant)> {
        let call = self.calls.iter().find(|call| call.number == number)?;
        match &call.state {
            State::Done(body) => Some((body, call.session, call.asked_at)),
            _ => None,
        }
    }

    /// Takes note that the reply to a call couldn't be sent yet.
    pub(crate) fn withhold(&mut self, number: CallNumber) {
        if let Some(call) = self.calls.iter_mut().find(|call| call.number == number) {
            call.withheld = true;
        }
    }

    /// The calls whose replies couldn't be sent yet; each is named once.
    pub(crate) fn take_withheld(&mut self) -> Vec<CallNumber> {
        let withheld = self.calls.iter_mut().filter(|call| call.withheld);
        withheld
            .map(|call| {
                call.withheld = false;
                call.number
            })
            .collect()
    }

    /// Drops the result of a call for want of memory: the caller is told so if it asks again.
    pub(crate) fn drop_result(&mut self, number: CallNumber) {
        if let Some(call) =
            self.calls.iter_mut().find(|call| call.number == number && call.can_drop_result())
        {
            call.drop_result();
        }
    }

    /// The memory that its parameters and results take.
    pub(crate) fn bytes_taken(&self) -> usize {
        self.calls.iter().map(RememberedCall::bytes_taken).sum()
    }

    fn running(&self) -> usize {
        self.calls.iter().filter(|call| matches!(call.state, State::Running)).count()
    }
}

impl RememberedCall {
    fn bytes_taken(&self) -> usize {
        match &self.state {
            State::Assembling(assembly) => assembly.bytes_taken(),
            State::Running => 0,
            State::Done(body) => body.len(),
        }
    }

    /// Whether there is a result that takes more memory than the word that it was dropped.
    fn can_drop_result(&self) -> bool {
        matches!(&self.state, State::Done(body) if body.len() > 1)
    }

    fn drop_result(&mut self) {
        self.state = State::Done(ReplyBody(Err(Declined::Forgotten)).to_bytes());
    }
}

#[cfg(test)]
mod tests;
