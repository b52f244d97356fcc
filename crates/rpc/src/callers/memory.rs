//! Memory for calls that come in: what parameters and results take, and which make room for others.
//!
//! Calls in parts and results are limited apart from each other, so that neither fills what the other
//! needs: each class leaves room for one of the greatest length. What the owner's calls take counts
//! for others only as far as it is more than [`owners_reserve`].

use core::cmp::Reverse;
use core::time::Duration;

use tenure_hal::Instant;
use tenure_hal::planted::{Weakness, is_planted};
use tenure_wire::frame::CallNumber;

use super::{Caller, Callers, RememberedCall, State, Sums};
use crate::Config;

/// How long a result is safe from making room while its caller fetches it, and while it doesn't.
const RESULT_FETCHED_FOR: Duration = Duration::from_secs(10);
const RESULT_KEPT: Duration = Duration::from_secs(2);
/// How long a call in parts is safe from making room when it has begun, unless its caller is one who
/// doesn't bring such calls to an end.
const ASSEMBLY_SAFE_AT_FIRST: Duration = Duration::from_millis(500);
/// A call in parts stays safe while so many bytes of it come in a second.
const ASSEMBLY_BYTES_PER_SECOND: u64 = 4 * 1024;

/// The use that memory is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// A call that comes in in parts. It can wait.
    Assembly,
    /// The result of a call that was executed. It can't: it is dropped if there is no room.
    Result,
}

/// The memory in use, by use, and by whether it is the owner's.
#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    assemblies: usize,
    results: usize,
    owners: usize,
}

/// The most that the owner's calls may take beside [`Config::buffer_bytes_max`]: one call and one result.
pub(crate) fn owners_reserve(config: &Config) -> usize {
    let is_kept = config.owner.is_some() && !is_planted(Weakness::HalfSentCallsStay);
    if is_kept { 2 * config.body_bytes_max() } else { 0 }
}

impl Callers {
    /// Makes room for `bytes` more by dropping calls in parts that stand still, and results that
    /// nobody has asked for lately. For the owner everybody else's go, if need be. Returns whether
    /// there is room now.
    pub(crate) fn make_room(
        &mut self,
        config: &Config,
        now: Instant,
        bytes: usize,
        wanted_for: Use,
        is_owner: bool,
    ) -> bool {
        while let Some(short_of) = self.short_of(config, bytes, wanted_for, is_owner) {
            let victim = self.victim(config, now, wanted_for, short_of, is_owner);
            let Some((caller, number)) = victim else { return false };
            let Some(caller) = self.by_id(caller) else { return false };
            caller.make_room_of(number);
        }
        true
    }

    /// Whether there isn't room for `bytes` more, and if so of what there is too much: of one use,
    /// or of both together.
    fn short_of(
        &self,
        config: &Config,
        bytes: usize,
        wanted_for: Use,
        is_owner: bool,
    ) -> Option<Option<Use>> {
        let taken = self.taken(config);
        if is_planted(Weakness::HalfSentCallsStay) {
            return (self.bytes_taken() + bytes > config.buffer_bytes_max).then_some(None);
        }
        let reserve = owners_reserve(config);
        let strangers = taken.assemblies + taken.results;
        if is_owner {
            let all_max = config.buffer_bytes_max + reserve;
            return (strangers + taken.owners + bytes > all_max).then_some(None);
        }
        let strangers = strangers + taken.owners.saturating_sub(reserve);
        if strangers + bytes > config.buffer_bytes_max {
            return Some(None);
        }
        let of_use = match wanted_for {
            Use::Assembly => taken.assemblies,
            Use::Result => taken.results,
        };
        let of_use_max = config.buffer_bytes_max.saturating_sub(config.body_bytes_max());
        (of_use + bytes > of_use_max).then_some(Some(wanted_for))
    }

    fn taken(&self, config: &Config) -> Taken {
        let owners = self.owners(config).map(Caller::sums).fold(Sums::default(), Sums::plus);
        let strangers = self.sums().minus(owners);
        Taken {
            assemblies: strangers.assemblies,
            results: strangers.results,
            owners: owners.assemblies + owners.results,
        }
    }

    /// The call that makes room for another: the first by [`rank`].
    fn victim(
        &self,
        config: &Config,
        now: Instant,
        wanted_for: Use,
        short_of: Option<Use>,
        for_owner: bool,
    ) -> Option<(u64, CallNumber)> {
        let each = self.table.iter().flat_map(|(_, caller)| {
            let is_owners = config.is_owner(&caller.pair.peer);
            let caller_bytes = caller.bytes_taken();
            caller.calls.iter().filter_map(move |call| {
                let rank = rank(caller, call, now, short_of)?;
                let allowed = if for_owner {
                    !is_owners || wanted_for == Use::Result
                } else {
                    !is_owners && rank <= rank_max_of_strangers(wanted_for)
                };
                // Of results that are still fetched, one of the caller goes who takes most.
                let greed = if rank == YOUNG_RESULT { caller_bytes } else { 0 };
                let order = (is_owners, rank, Reverse(greed), call.since());
                allowed.then_some((order, caller.id, call.number))
            })
        });
        each.min_by_key(|(order, ..)| *order).map(|(_, caller, number)| (caller, number))
    }
}

const STILL_ASSEMBLY: u8 = 0;
const OLD_RESULT: u8 = 1;
const YOUNG_RESULT: u8 = 2;
const GROWING_ASSEMBLY: u8 = 3;

/// How far a stranger's call goes in taking other strangers' memory. One in parts can wait, so that no
/// result is lost for it that is being fetched.
fn rank_max_of_strangers(wanted_for: Use) -> u8 {
    match wanted_for {
        Use::Assembly => OLD_RESULT,
        Use::Result => YOUNG_RESULT,
    }
}

/// How early a call makes room; `None` if it takes nothing that would help.
fn rank(caller: &Caller, call: &RememberedCall, now: Instant, short_of: Option<Use>) -> Option<u8> {
    match &call.state {
        State::Assembling(_) if is_planted(Weakness::HalfSentCallsStay) => None,
        State::Assembling(incoming) if short_of != Some(Use::Result) => {
            let received_us = incoming.received_bytes() * 1_000_000 / ASSEMBLY_BYTES_PER_SECOND;
            let safe_for = ASSEMBLY_SAFE_AT_FIRST + Duration::from_micros(received_us);
            let is_safe = !caller.abandons_calls && now.since(incoming.begun_at) < safe_for;
            Some(if is_safe { GROWING_ASSEMBLY } else { STILL_ASSEMBLY })
        }
        State::Done(kept) if call.can_drop_result() && short_of != Some(Use::Assembly) => {
            let is_old = now.since(kept.done_at) >= RESULT_FETCHED_FOR
                || now.since(call.asked_at) >= RESULT_KEPT;
            Some(if is_old { OLD_RESULT } else { YOUNG_RESULT })
        }
        State::Assembling(_) | State::Running | State::Done(_) => None,
    }
}
