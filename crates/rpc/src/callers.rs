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
//! - Finding a caller, learning whether one more call may run, and choosing who is forgotten take a number of steps
//!   that grows with the logarithm of how many callers there are.

mod memory;

use alloc::boxed::Box;
use alloc::vec::Vec;

use litemap::LiteMap;

use tenure_hal::Instant;
use tenure_hal::planted::{Weakness, is_planted};
use tenure_wire::datagram::SessionIndex;
use tenure_wire::frame::{CallNumber, Finished, Fragment, FragmentSet, ReplyBody};
use tenure_wire::{MachineId, NoResult, PublicKey};

use crate::assembly::Assembly;
use crate::budget::Budget;
use crate::calls::REPEATS_PER_SECOND;
use crate::config::Standing;
use crate::places::{Ends, LeastMissed};
use crate::rest::{RestingCaller, RestingCallers};
use crate::session::Pair;
use crate::{Config, IncomingCallHandle};

pub(crate) use memory::Use;
#[cfg(test)]
pub(crate) use memory::owners_reserve;

/// All callers that are remembered.
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Callers {
    table: LiteMap<u64, Box<Caller>>,
    by_key: LiteMap<Key, u64>,
    pub(crate) least_missed: LeastMissed,
    /// The sums of all of them but the one in [`Self::lent`], of which it is what it had before.
    sums: Sums,
    /// Those with calls of which parts are missing.
    assembling: Vec<u64>,
    /// The caller that was last lent to be changed.
    lent: Option<u64>,
    next_id: u64,
    horizon: Instant,
}

/// The key that tells callers apart: the caller, the called machine and the incarnation.
type Key = (PublicKey, MachineId, u64);

/// The room that remembered calls take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    running: usize,
    /// Bytes of calls of which parts are missing.
    assemblies: usize,
    /// Bytes of results.
    results: usize,
    /// Calls of which parts are missing.
    incomplete: usize,
}

impl Sums {
    fn plus(self, more: Self) -> Self {
        Self {
            running: self.running + more.running,
            assemblies: self.assemblies + more.assemblies,
            results: self.results + more.results,
            incomplete: self.incomplete + more.incomplete,
        }
    }

    fn minus(self, less: Self) -> Self {
        Self {
            running: self.running.saturating_sub(less.running),
            assemblies: self.assemblies.saturating_sub(less.assemblies),
            results: self.results.saturating_sub(less.results),
            incomplete: self.incomplete.saturating_sub(less.incomplete),
        }
    }
}

/// One incarnation of one peer, as a caller.
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Caller {
    /// Tells it from every other, forgotten ones included.
    pub(crate) id: u64,
    /// The caller and the called machine.
    pub(crate) pair: Pair,
    /// Which incarnation calls.
    pub(crate) incarnation: u64,
    complete_since: Instant,
    /// The calls that it has done with.
    finished: Finished,
    last_call: Option<Instant>,
    last_used: Instant,
    /// How often fragments of its results are sent again because it asks for them.
    repeats: Budget,
    /// Whether the last call that it sent in parts never became whole.
    abandons_calls: bool,
    calls: Vec<RememberedCall>,
    /// Its part of [`Callers::sums`].
    counted: Sums,
}

/// One call that came in.
#[cfg_attr(test, derive(Clone))]
struct RememberedCall {
    number: CallNumber,
    /// The session by which it was last heard of, and when.
    session: SessionIndex,
    asked_at: Instant,
    /// Whether its reply waits for the caller to show that it receives where it seems to be.
    withheld: bool,
    state: State,
}

#[cfg_attr(test, derive(Clone))]
enum State {
    Assembling(Incoming),
    Running,
    Done(Kept),
}

/// A call of which parts are missing.
#[cfg_attr(test, derive(Clone))]
struct Incoming {
    assembly: Assembly,
    begun_at: Instant,
    /// When the last part came that was new.
    grew_at: Instant,
}

/// A reply, until its caller has it.
#[cfg_attr(test, derive(Clone))]
struct Kept {
    body: Vec<u8>,
    done_at: Instant,
    /// The fragments that were sent once at least.
    sent: FragmentSet,
}

impl Incoming {
    fn begin(now: Instant, fragment: &Fragment<'_>) -> Self {
        let mut assembly = Assembly::begin(fragment);
        assembly.add(fragment);
        Self { assembly, begun_at: now, grew_at: now }
    }

    /// Adds a part. Only one that is new lets the call stand still for longer.
    fn add(&mut self, now: Instant, fragment: &Fragment<'_>) {
        if self.assembly.add(fragment) || is_planted(Weakness::HalfSentCallsStay) {
            self.grew_at = now;
        }
    }

    fn received_bytes(&self) -> u64 {
        self.assembly.received_bytes() as u64
    }

    /// When it is dropped if nothing more comes.
    fn expires_at(&self, config: &Config) -> Instant {
        let still_until = self.grew_at + config.assembly_timeout;
        if is_planted(Weakness::HalfSentCallsStay) {
            return still_until;
        }
        still_until.min(self.begun_at + config.assembly_lifetime)
    }
}

impl Kept {
    fn new(now: Instant, body: Vec<u8>) -> Self {
        Self { body, done_at: now, sent: FragmentSet::EMPTY }
    }
}

/// The answer to a part of a call, or to a question for one.
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

/// The memory that was given up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Forgotten {
    /// The caller and the called machine.
    pub(crate) pair: Pair,
    /// Which incarnation called.
    pub(crate) incarnation: u64,
    /// When a call of it was last executed.
    pub(crate) last_call: Option<Instant>,
}

impl Callers {
    /// No callers; nothing is known of what was before `now`.
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            table: LiteMap::new(),
            by_key: LiteMap::new(),
            least_missed: LeastMissed::default(),
            sums: Sums::default(),
            assembling: Vec::new(),
            lent: None,
            next_id: 0,
            horizon: now,
        }
    }

    /// Since when no executed call of this caller is forgotten.
    pub(crate) fn complete_since(&self, pair: &Pair, incarnation: u64) -> Instant {
        self.get(pair, incarnation).map_or(self.horizon, |caller| caller.complete_since)
    }

    /// Since when no executed call of any caller is forgotten.
    pub(crate) fn horizon(&self) -> Instant {
        self.horizon
    }

    /// Whether a call of this caller is running.
    pub(crate) fn is_running(&self, pair: &Pair, incarnation: u64) -> bool {
        self.get(pair, incarnation).is_some_and(|caller| caller.running() > 0)
    }

    /// Whether a call of this caller runs or has run.
    pub(crate) fn has_begun(&self, pair: &Pair, incarnation: u64, number: CallNumber) -> bool {
        self.get(pair, incarnation).is_some_and(|caller| caller.has_begun(number))
    }

    /// The caller, if it is known.
    pub(crate) fn find(&mut self, pair: &Pair, incarnation: u64) -> Option<&mut Caller> {
        let id = *self.by_key.get(&key_of(pair, incarnation))?;
        self.by_id(id)
    }

    /// The caller with that id.
    pub(crate) fn by_id(&mut self, id: u64) -> Option<&mut Caller> {
        self.settle();
        let caller = self.table.get_mut(&id)?;
        self.lent = Some(id);
        Some(caller)
    }

    /// Whether the caller is known, or there is room for it.
    pub(crate) fn has_room(&self, config: &Config, pair: &Pair, incarnation: u64) -> bool {
        self.table.len() < config.callers_max || self.get(pair, incarnation).is_some()
    }

    /// The caller, made known if it wasn't. The caller of this has seen to it that there is room.
    pub(crate) fn know(&mut self, now: Instant, pair: Pair, incarnation: u64) -> &mut Caller {
        self.settle();
        let id = self.by_key.get(&key_of(&pair, incarnation)).copied().unwrap_or_else(|| {
            self.next_id += 1;
            self.by_key.insert(key_of(&pair, incarnation), self.next_id);
            // Its standing isn't known here; it is looked up when its turn to be forgotten comes.
            self.least_missed.add((Standing::Stranger, true, now), self.next_id);
            self.next_id
        });
        self.lent = Some(id);
        let horizon = self.horizon;
        self.table.entry(id).or_insert_with(|| {
            Box::new(Caller {
                id,
                pair,
                incarnation,
                complete_since: horizon,
                finished: Finished::below(CallNumber(0)),
                last_call: None,
                last_used: now,
                repeats: Budget::new(now, REPEATS_PER_SECOND),
                abandons_calls: false,
                calls: Vec::new(),
                counted: Sums::default(),
            })
        })
    }

    /// Forgets the caller that is missed least, for one of that standing: no favoured one for a stranger, and not the
    /// owner, if it can be helped; one that waits for nothing if there is one; and among those the one not heard for
    /// longest. `None` if calls of all of them are running.
    pub(crate) fn forget_one(&mut self, config: &Config, by: Standing) -> Option<Forgotten> {
        self.settle();
        let table = &self.table;
        let rank_of = |id| {
            let caller = table.get(&id)?;
            let ends = match (caller.counted.running, caller.calls.is_empty()) {
                (0, true) => Ends::Yes,
                (0, false) => Ends::AtWorst,
                (_, _) => Ends::No,
            };
            Some(((config.standing(&caller.pair.peer), true, caller.last_used), ends))
        };
        let id = self.least_missed.choose(by, &rank_of)?;
        self.forget(id)
    }

    /// Forgets all callers of a machine that is gone, running calls included.
    pub(crate) fn forget_machine(&mut self, is_gone: impl Fn(&Pair) -> bool) -> Vec<Forgotten> {
        self.settle();
        let gone = self.table.iter().filter(|(_, caller)| is_gone(&caller.pair));
        let gone: Vec<u64> = gone.map(|(id, _)| *id).collect();
        gone.into_iter().filter_map(|id| self.forget(id)).collect()
    }

    /// How many calls are running, of all callers.
    #[cfg(test)]
    pub(crate) fn running(&self) -> usize {
        self.sums().running
    }

    /// How many callers are remembered.
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether one more call of `peer` may run. The owner's run beside [`Config::running_max`].
    pub(crate) fn may_run(&self, config: &Config, peer: &PublicKey) -> bool {
        if is_planted(Weakness::WaitingCallersUncounted) {
            return self.sums().running < config.running_max;
        }
        let owners = self.owners(config).map(Caller::running).sum::<usize>();
        if config.is_owner(peer) {
            return owners < config.running_per_caller_max;
        }
        self.sums().running.saturating_sub(owners) < config.running_max
    }

    /// The owner's incarnations.
    fn owners(&self, config: &Config) -> impl Iterator<Item = &Caller> {
        let first = config.owner.map(|owner| (owner, MachineId([0; 12]), 0));
        let first =
            first.map(|key| self.by_key.find_index(&key).unwrap_or_else(|position| position));
        let known = first.into_iter().flat_map(move |first| {
            (first..self.by_key.len()).map_while(move |position| self.by_key.get_indexed(position))
        });
        let owners = known.take_while(move |((peer, ..), _)| config.is_owner(peer));
        owners.filter_map(move |(_, id)| self.table.get(id).map(|caller| &**caller))
    }

    /// Drops the fragments of calls that have stood still, or taken, for too long.
    pub(crate) fn expire_assemblies(&mut self, config: &Config, now: Instant) {
        self.settle();
        for id in self.assembling.clone() {
            let Some(caller) = self.by_id(id) else { continue };
            let before = caller.calls.len();
            caller.calls.retain(|call| match &call.state {
                State::Assembling(incoming) => now < incoming.expires_at(config),
                State::Running | State::Done(_) => true,
            });
            caller.abandons_calls |= caller.calls.len() < before;
        }
    }

    /// When [`Self::expire_assemblies`] has something to do next.
    pub(crate) fn next_expiry(&self, config: &Config) -> Option<Instant> {
        let expiry = |call: &RememberedCall| match &call.state {
            State::Assembling(incoming) => Some(incoming.expires_at(config)),
            State::Running | State::Done(_) => None,
        };
        let callers = self.assembling.iter().chain(&self.lent).filter_map(|id| self.table.get(id));
        callers.flat_map(|caller| &caller.calls).filter_map(expiry).min()
    }

    /// The memory that parameters and results take.
    pub(crate) fn bytes_taken(&self) -> usize {
        let Sums { assemblies, results, .. } = self.sums();
        assemblies + results
    }

    /// The memory that all callers' calls take, beside the table of callers itself.
    pub(crate) fn heap_bytes(&self) -> usize {
        let calls: usize = self.table.iter().map(|(_, caller)| caller.calls.capacity()).sum();
        calls * size_of::<RememberedCall>() + self.bytes_taken()
    }

    /// Forgets calls that ended, as if nobody could ask for their results again.
    #[cfg(forgetful)]
    pub(crate) fn forget_ended(&mut self) {
        let all: Vec<u64> = self.table.iter().map(|(id, _)| *id).collect();
        for id in all {
            let Some(caller) = self.by_id(id) else { continue };
            caller.calls.retain(|call| !matches!(call.state, State::Done(_)));
        }
    }

    /// Names every call that runs, and the session by which its caller last asked for it.
    pub(crate) fn all_running(&self) -> Vec<(IncomingCallHandle, SessionIndex)> {
        let calls = self
            .table
            .iter()
            .flat_map(|(_, caller)| caller.calls.iter().map(|call| (caller.id, call)));
        let running = calls.filter(|(_, call)| matches!(call.state, State::Running));
        let named = running.map(|(caller, call)| {
            (IncomingCallHandle { caller, number: call.number }, call.session)
        });
        named.collect()
    }

    /// The state to keep through a deep sleep: all remembered calls, without parts of calls that aren't
    /// complete.
    pub(crate) fn rest(&self) -> RestingCallers {
        let call = |call: &RememberedCall| match &call.state {
            State::Assembling(_) => None,
            State::Running => Some((call.number, None)),
            State::Done(kept) => Some((call.number, Some(kept.body.clone()))),
        };
        let callers = self.table.iter().map(|(_, caller)| RestingCaller {
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

    /// Restores the state from before a deep sleep from which the endpoint wakes `now`, by a clock that
    /// has run on.
    pub(crate) fn wake(now: Instant, rest: RestingCallers) -> Self {
        let call = |(number, body): (CallNumber, Option<Vec<u8>>)| RememberedCall {
            number,
            // The session is gone; any other of that caller serves.
            session: SessionIndex(0),
            asked_at: now,
            withheld: false,
            state: body.map_or(State::Running, |body| State::Done(Kept::new(now, body))),
        };
        let callers = rest.callers.into_iter().map(|caller| Caller {
            id: caller.id,
            pair: Pair { local: caller.local, peer: caller.peer },
            incarnation: caller.incarnation,
            complete_since: Instant::from_micros(caller.complete_since_us),
            finished: caller.finished,
            last_call: caller.last_call_us.map(Instant::from_micros),
            last_used: now,
            repeats: Budget::new(now, REPEATS_PER_SECOND),
            abandons_calls: false,
            calls: caller.calls.into_iter().map(call).collect(),
            counted: Sums::default(),
        });
        let mut woken = Self::new(Instant::from_micros(rest.horizon_us));
        woken.next_id = rest.next_id;
        for caller in callers {
            let id = caller.id;
            woken.by_key.insert(key_of(&caller.pair, caller.incarnation), id);
            woken.least_missed.add((Standing::Stranger, true, caller.last_used), id);
            woken.table.insert(id, Box::new(caller));
            woken.settle();
            woken.lent = Some(id);
        }
        woken.settle();
        woken
    }

    fn get(&self, pair: &Pair, incarnation: u64) -> Option<&Caller> {
        let id = self.by_key.get(&key_of(pair, incarnation))?;
        self.table.get(id).map(|caller| &**caller)
    }

    /// The sums of all callers.
    fn sums(&self) -> Sums {
        match self.lent.and_then(|id| self.table.get(&id)) {
            Some(caller) => self.sums.minus(caller.counted).plus(caller.sums()),
            None => self.sums,
        }
    }

    /// Counts what the caller that was lent has now.
    fn settle(&mut self) {
        let Some(id) = self.lent.take() else { return };
        let Some(caller) = self.table.get_mut(&id) else { return };
        let (before, now) = (caller.counted, caller.sums());
        caller.counted = now;
        self.sums = self.sums.minus(before).plus(now);
        match (before.incomplete > 0, now.incomplete > 0) {
            (false, true) => self.assembling.push(id),
            (true, false) => self.assembling.retain(|one| *one != id),
            (true, true) | (false, false) => {}
        }
    }

    fn forget(&mut self, id: u64) -> Option<Forgotten> {
        self.settle();
        let caller = self.table.remove(&id)?;
        self.by_key.remove(&key_of(&caller.pair, caller.incarnation));
        self.sums = self.sums.minus(caller.counted);
        self.assembling.retain(|one| *one != id);
        let table = &self.table;
        self.least_missed.drop_gone(table.len(), &|id| table.contains_key(&id));
        if let Some(last_call) = caller.last_call {
            self.horizon = self.horizon.max(last_call);
        }
        Some(Forgotten {
            pair: caller.pair,
            incarnation: caller.incarnation,
            last_call: caller.last_call,
        })
    }
}

fn key_of(pair: &Pair, incarnation: u64) -> Key {
    (pair.peer, pair.local, incarnation)
}

/// The room that the rest of the endpoint leaves for one caller.
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
            State::Assembling(incoming) => {
                incoming.add(now, fragment);
                let missing = incoming.assembly.missing();
                if missing.is_empty() {
                    self.abandons_calls = false;
                    return self.execute(config, now, number, allowance);
                }
                if fragment.last_of_burst() {
                    return Verdict::Missing(missing);
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
            let body = ReplyBody(Err(NoResult::TooLong)).to_bytes();
            remember(State::Done(Kept::new(now, body)));
            return Verdict::Reply;
        }
        if fragment.count() > 1 {
            if !allowance.may_assemble {
                return if fragment.last_of_burst() { Verdict::Later } else { Verdict::Ignore };
            }
            let incoming = Incoming::begin(now, fragment);
            let missing = incoming.assembly.missing();
            remember(State::Assembling(incoming));
            return if fragment.last_of_burst() {
                Verdict::Missing(missing)
            } else {
                Verdict::Ignore
            };
        }
        remember(State::Assembling(Incoming::begin(now, fragment)));
        self.execute(config, now, number, allowance)
    }

    /// Whether something of the call is here, or it has come to its end.
    pub(crate) fn is_known(&self, number: CallNumber) -> bool {
        self.finished.contains(number) || self.calls.iter().any(|call| call.number == number)
    }

    /// Whether the call runs or has run.
    fn has_begun(&self, number: CallNumber) -> bool {
        let begun = |call: &RememberedCall| {
            call.number == number && !matches!(call.state, State::Assembling(_))
        };
        self.finished.contains(number) || self.calls.iter().any(begun)
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
            State::Assembling(incoming) => Verdict::Missing(incoming.assembly.missing()),
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
        let State::Assembling(incoming) = &mut call.state else { return Verdict::Ignore };
        let Some(body) = incoming.assembly.complete() else { return Verdict::Ignore };
        if !may_run {
            let body = ReplyBody(Err(NoResult::Busy)).to_bytes();
            call.state = State::Done(Kept::new(now, body));
            return Verdict::Reply;
        }
        call.state = State::Running;
        self.last_call = Some(now);
        Verdict::Execute(body)
    }

    /// Ends a call that runs. Returns whether its result is still wanted.
    pub(crate) fn finish(&mut self, now: Instant, number: CallNumber, body: Vec<u8>) -> bool {
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
        self.calls[position].state = State::Done(Kept::new(now, body));
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
            State::Done(kept) => Some((&kept.body, call.session, call.asked_at)),
            _ => None,
        }
    }

    /// Whether that fragment of a reply may be sent now: the first time always, again within a
    /// budget.
    pub(crate) fn may_send_fragment(
        &mut self,
        now: Instant,
        number: CallNumber,
        fragment: usize,
    ) -> bool {
        let Some(call) = self.calls.iter_mut().find(|call| call.number == number) else {
            return false;
        };
        let State::Done(kept) = &mut call.state else { return false };
        if kept.sent.contains(fragment) {
            return self.repeats.take(now);
        }
        kept.sent.insert(fragment);
        true
    }

    /// Takes note that the reply to a call couldn't be sent yet, from that fragment on.
    pub(crate) fn withhold(&mut self, number: CallNumber, fragment: usize) {
        if let Some(call) = self.calls.iter_mut().find(|call| call.number == number) {
            call.withheld = true;
            if let State::Done(kept) = &mut call.state {
                kept.sent.remove(fragment);
            }
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

    /// Drops what a call takes: its parts, which are sent again, or its result.
    fn make_room_of(&mut self, number: CallNumber) {
        let before = self.calls.len();
        self.calls
            .retain(|call| call.number != number || !matches!(call.state, State::Assembling(_)));
        self.abandons_calls |= self.calls.len() < before;
        self.drop_result(number);
    }

    /// The memory that its parameters and results take.
    pub(crate) fn bytes_taken(&self) -> usize {
        self.calls.iter().map(RememberedCall::bytes_taken).sum()
    }

    fn running(&self) -> usize {
        self.calls.iter().filter(|call| matches!(call.state, State::Running)).count()
    }

    /// The room that its calls take.
    fn sums(&self) -> Sums {
        let mut sums = Sums::default();
        for call in &self.calls {
            let bytes = call.bytes_taken();
            match &call.state {
                State::Assembling(_) => {
                    sums.assemblies += bytes;
                    sums.incomplete += 1;
                }
                State::Running => sums.running += 1,
                State::Done(_) => sums.results += bytes,
            }
        }
        sums
    }
}

impl RememberedCall {
    fn bytes_taken(&self) -> usize {
        match &self.state {
            State::Assembling(incoming) => incoming.assembly.bytes_taken(),
            State::Running => 0,
            State::Done(kept) => kept.body.len(),
        }
    }

    /// Since when it has been what it is: standing still, running, or done.
    fn since(&self) -> Instant {
        match &self.state {
            State::Assembling(incoming) => incoming.grew_at,
            State::Running => self.asked_at,
            State::Done(kept) => kept.done_at,
        }
    }

    /// Whether there is a result that takes more memory than the word that it was dropped.
    fn can_drop_result(&self) -> bool {
        matches!(&self.state, State::Done(kept) if kept.body.len() > 1)
    }

    fn drop_result(&mut self) {
        if let State::Done(kept) = &mut self.state {
            kept.body = ReplyBody(Err(NoResult::OutcomeUnknown)).to_bytes();
        }
    }
}

#[cfg(test)]
mod tests;
