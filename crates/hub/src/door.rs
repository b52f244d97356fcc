//! The door of a hub: who waits for a handshake, who is let in next, and when the rest are to come again.
//!
//! A handshake costs more than anything else that a datagram asks for, and after an absence of the hub all its devices
//! ask for one. So their initiations wait here while there is other work.
//!
//! Invariants:
//! - Each queue holds [`WAITING_MAX`] initiations at most, and no more than are let in within [`WAITING_SPAN`]; one of each
//!   address: one that is sent again takes the place of the one before.
//! - Hosts of listed devices have a queue of their own, which no other host lengthens; of each [`SHARE_OF_OTHERS`] that
//!   are let in one is of the others, if any of these waits.
//! - Of the others' queue no host has more places than are free, however many addresses it has.
//! - [`UNSHOWN_MAX`] places of a queue are for senders who haven't shown that they receive at their address.
//! - Who finds its queue full is told a turn, which it keeps if it asks again. Turns are as far apart as handshakes were
//!   in the last seconds. Who comes in its turn has a place, as many again are for these.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;

use tenure_hal::{Instant, micros_of};
use tenure_rpc::{Fullness, PeerAddress as _};
use tenure_wire::Address;

use crate::admission::Bucket;

/// The most initiations that wait in one queue, and the fewest that have room there.
const WAITING_MAX: usize = 128;
const WAITING_MIN: usize = 16;
/// The places of a queue that are for senders who haven't shown their address.
const UNSHOWN_MAX: usize = 8;
/// How long one waits in a queue at most: an opener that hears nothing sends again soon after, and gives up in the end.
const WAITING_SPAN: Duration = Duration::from_millis(500);
/// The turns that are remembered; later ones are told the furthest.
const TURNS_MAX: usize = 16 * 1024;
/// How long after its turn a sender still has it.
const LATE_MAX: Duration = Duration::from_secs(5);
/// How many are let in between two looks at what else came.
const LET_IN_AT_ONCE: u32 = 8;
/// One of so many who are let in is of a host that lists no device.
const SHARE_OF_OTHERS: u32 = 4;
/// The furthest turn that is told. A device that doesn't save power asks as often by itself.
const TURN_MAX: Duration = Duration::from_secs(60);
/// The pace is that of about so much time in which somebody waited.
const PACE_OVER_US: u64 = 2_000_000;
/// The longest step between two looks that counts: the process may have stood still.
const STEP_MAX_US: u64 = 1_000_000;
/// The pace that is believed before any is known: handshakes a second.
const PACE_INITIAL: u64 = 200;

/// Peers that wait to be let in.
pub(crate) struct Door {
    known: Queue,
    others: Queue,
    /// How often somebody was told a turn.
    deferrals: u64,
    /// How many were let in since the last of the others.
    since_others: u32,
    pace: Pace,
    /// The handshakes that may be computed: three quarters of what the sessions allow, which keep a quarter for hosts
    /// that had none lately.
    budget: Bucket,
    per_second: u32,
}

/// The answer to an initiation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It waits.
    Waits,
    /// Its sender has to show first that it receives at its address.
    Shows,
    /// Its sender has to come again after that time.
    In(Duration),
}

/// Initiations in the order in which they came.
#[derive(Default)]
struct Queue {
    order: VecDeque<Address>,
    datagrams: BTreeMap<Address, Vec<u8>>,
    turns: Turns,
}

/// The turns that were told, in their order.
#[derive(Default)]
struct Turns {
    of: BTreeMap<Address, Instant>,
    order: VecDeque<(Instant, Address)>,
}

/// How fast handshakes go while others wait for them.
struct Pace {
    let_in: u64,
    in_us: u64,
    /// When how many were let in last, if others went on waiting.
    last: Option<(Instant, u64)>,
}

impl Door {
    /// A door at which nobody waits, of sessions that compute so many handshakes a second.
    pub(crate) fn new(now: Instant, per_second_max: u32) -> Self {
        let per_second = (per_second_max - per_second_max / SHARE_OF_OTHERS).max(1);
        Self {
            known: Queue::default(),
            others: Queue::default(),
            deferrals: 0,
            since_others: 0,
            pace: Pace { let_in: PACE_INITIAL / 20, in_us: 1_000_000 / 20, last: None },
            budget: Bucket::full(now, per_second),
            per_second,
        }
    }

    /// Takes an initiation of a host that is known to have listed devices, or not, and whose sender has shown its
    /// address, or not.
    pub(crate) fn take(
        &mut self,
        (is_known, is_shown): (bool, bool),
        now: Instant,
        from: &Address,
        datagram: &[u8],
    ) -> Turn {
        let apart = self.pace.apart().max(self.least_apart());
        let queue = if is_known { &mut self.known } else { &mut self.others };
        let turn = queue.turns.of(now, from);
        if !is_shown && turn.is_none() && queue.order.len() >= UNSHOWN_MAX {
            return Turn::Shows;
        }
        if let Some(waiting) = queue.datagrams.get_mut(from) {
            *waiting = datagram.to_vec();
            return Turn::Waits;
        }
        let is_in_turn = turn.is_some_and(|turn| turn <= now);
        let in_time = WAITING_SPAN.as_micros() / apart.as_micros().max(1);
        let room = usize::try_from(in_time).unwrap_or(WAITING_MAX).clamp(WAITING_MIN, WAITING_MAX);
        let room = if is_in_turn { 2 * room } else { room };
        // A host of listed devices may have all of them behind it.
        let of_host = if is_known { 0 } else { queue.count_of_host(from) };
        if queue.order.len() + of_host >= room {
            self.deferrals += 1;
            let turn = turn.filter(|_| !is_in_turn);
            return Turn::In(turn.unwrap_or_else(|| queue.next_turn(now, from, apart)).since(now));
        }
        queue.turns.forget(from);
        queue.order.push_back(from.clone());
        queue.datagrams.insert(from.clone(), datagram.to_vec());
        Turn::Waits
    }

    /// Those whose handshakes are to be computed now.
    pub(crate) fn let_in(&mut self, now: Instant) -> Vec<(Address, Vec<u8>)> {
        self.pace.go_on(now);
        self.budget.fill(now, self.per_second, Duration::from_secs(1));
        let at_once = self.budget.tokens().min(LET_IN_AT_ONCE);
        let mut let_in = Vec::new();
        while (let_in.len() as u32) < at_once
            && let Some(next) = self.next()
        {
            let_in.push(next);
        }
        self.budget.take(let_in.len() as u32);
        self.pace.last = (!self.is_empty()).then_some((now, let_in.len() as u64));
        let_in
    }

    /// When the next one is let in.
    pub(crate) fn opens_at(&self) -> Option<Instant> {
        if self.is_empty() {
            None
        } else if self.budget.tokens() > 0 {
            Some(Instant::BOOT)
        } else {
            Some(self.budget.filled_at() + self.least_apart())
        }
    }

    /// How many wait here.
    pub(crate) fn fullness(&self) -> Fullness {
        Fullness {
            table: "handshakes",
            used: self.known.order.len() + self.others.order.len(),
            most: 2 * WAITING_MAX,
            times_full: self.deferrals,
        }
    }

    /// The shortest time between two handshakes.
    fn least_apart(&self) -> Duration {
        Duration::from_secs(1) / self.per_second
    }

    fn is_empty(&self) -> bool {
        self.known.order.is_empty() && self.others.order.is_empty()
    }

    fn next(&mut self) -> Option<(Address, Vec<u8>)> {
        let is_others_turn = self.since_others + 1 >= SHARE_OF_OTHERS;
        if is_others_turn && let Some(other) = self.others.pop() {
            self.since_others = 0;
            return Some(other);
        }
        self.since_others = self.since_others.saturating_add(1);
        self.known.pop().or_else(|| self.others.pop())
    }
}

impl Queue {
    fn pop(&mut self) -> Option<(Address, Vec<u8>)> {
        let from = self.order.pop_front()?;
        let datagram = self.datagrams.remove(&from).unwrap_or_default();
        Some((from, datagram))
    }

    /// How many of those who wait have the host of that address.
    fn count_of_host(&self, from: &Address) -> usize {
        self.order.iter().filter(|other| other.is_same_host(from)).count()
    }

    /// The turn of a sender that finds the queue full: behind those in it, and those who were told turns.
    fn next_turn(&mut self, now: Instant, from: &Address, apart: Duration) -> Instant {
        let furthest = now + TURN_MAX;
        let behind_these = now + apart.saturating_mul(self.order.len() as u32);
        let behind_those = self.turns.last().map_or(Instant::BOOT, |turn| turn + apart);
        let turn = behind_these.max(behind_those);
        if turn >= furthest || !self.turns.tell(from, turn) { furthest } else { turn }
    }
}

impl Turns {
    /// The turn of a sender, if it was told one that isn't long over.
    fn of(&mut self, now: Instant, from: &Address) -> Option<Instant> {
        while let Some((turn, _)) = self.order.front()
            && *turn + LATE_MAX < now
        {
            let Some((turn, from)) = self.order.pop_front() else { break };
            // It may have another one since.
            if self.of.get(&from) == Some(&turn) {
                self.of.remove(&from);
            }
        }
        self.of.get(from).copied()
    }

    fn last(&self) -> Option<Instant> {
        self.order.back().map(|(turn, _)| *turn)
    }

    /// Remembers a turn, the furthest so far; `false` if there is no room.
    fn tell(&mut self, from: &Address, turn: Instant) -> bool {
        if self.order.len() >= TURNS_MAX {
            return false;
        }
        self.order.push_back((turn, from.clone()));
        self.of.insert(from.clone(), turn);
        true
    }

    fn forget(&mut self, from: &Address) {
        self.of.remove(from);
    }
}

impl Pace {
    /// Counts the time since the last look, if somebody waited all the while.
    fn go_on(&mut self, now: Instant) {
        let Some((at, let_in)) = self.last.take() else { return };
        self.let_in += let_in;
        self.in_us += micros_of(now.since(at)).min(STEP_MAX_US);
        if self.in_us > PACE_OVER_US {
            (self.let_in, self.in_us) = (self.let_in / 2, self.in_us / 2);
        }
    }

    /// The time between two handshakes.
    fn apart(&self) -> Duration {
        Duration::from_micros(self.in_us / self.let_in.max(1))
    }
}

#[cfg(test)]
mod tests {
    use core::net::SocketAddr;

    use tenure_hal::simulated::socket_at;

    use super::*;

    const KNOWN: (bool, bool) = (true, true);
    const OTHER: (bool, bool) = (false, true);

    fn at(us: u64) -> Instant {
        Instant::from_micros(us)
    }

    fn place(number: u32) -> Address {
        Address::Udp(socket_at(number))
    }

    /// Lets all in at that pace, and returns who they were.
    fn let_all_in(door: &mut Door, mut now_us: u64, apart_us: u64) -> Vec<Address> {
        let mut came = Vec::new();
        while door.opens_at().is_some() {
            let let_in = door.let_in(at(now_us));
            now_us += apart_us * (let_in.len() as u64).max(1);
            came.extend(let_in.into_iter().map(|(from, _)| from));
        }
        came
    }

    #[test]
    fn hosts_of_listed_devices_come_first_and_others_get_each_fourth_place() {
        let mut door = Door::new(at(0), 1_000);
        for number in 0..8 {
            assert_eq!(door.take(OTHER, at(0), &place(100 + number), &[1]), Turn::Waits);
            assert_eq!(door.take(KNOWN, at(0), &place(number), &[2]), Turn::Waits);
        }
        let came = let_all_in(&mut door, 0, 1_000);
        let is_known = |from: &Address| (0..8).any(|number| *from == place(number));
        let first_ten: Vec<bool> = came.iter().take(10).map(is_known).collect();
        let t = true;
        assert_eq!(first_ten, [t, t, t, false, t, t, t, false, t, t]);
        assert_eq!(came.len(), 16);
    }

    #[test]
    fn one_that_is_sent_again_waits_once_and_the_newest_counts() {
        let mut door = Door::new(at(0), 1_000);
        for datagram in [[1], [2], [3]] {
            assert_eq!(door.take(KNOWN, at(0), &place(1), &datagram), Turn::Waits);
        }
        assert_eq!(door.let_in(at(0)), [(place(1), alloc::vec![3])]);
        assert_eq!(door.opens_at(), None);
    }

    #[test]
    fn senders_who_have_not_shown_their_address_get_a_few_of_the_places() {
        let mut door = Door::new(at(0), 1_000);
        let turns: Vec<Turn> =
            (0..40).map(|number| door.take((true, false), at(0), &place(number), &[1])).collect();
        let waits = turns.iter().filter(|turn| **turn == Turn::Waits).count();
        assert_eq!((waits, turns[39]), (UNSHOWN_MAX, Turn::Shows));
        assert_eq!(door.take(KNOWN, at(0), &place(50), &[1]), Turn::Waits);
    }

    #[test]
    fn host_with_as_many_addresses_as_it_likes_leaves_half_of_the_places_to_others() {
        let ports = |port| Address::Udp(SocketAddr::from(([192, 0, 2, 1], port)));
        let hosts =
            |host| Address::Udp(SocketAddr::from(([0x2001, 0xDB8, 1, host, 0, 0, 0, 1], 7)));
        for greedy in [&ports as &dyn Fn(u16) -> Address, &hosts] {
            let mut door = Door::new(at(0), 1_000_000);
            for number in 0..400 {
                door.take(OTHER, at(0), &greedy(number), &[1]);
            }
            assert!(door.fullness().used <= WAITING_MAX / 2, "{:?}", door.fullness());
            for number in 0..40 {
                assert_eq!(door.take(OTHER, at(0), &place(number), &[1]), Turn::Waits);
            }
            // The devices of a network behind one address are all known.
            for number in 0..80 {
                assert_eq!(door.take(KNOWN, at(0), &greedy(number), &[1]), Turn::Waits);
            }
        }
    }

    #[test]
    fn those_who_find_the_queue_full_are_told_turns_at_the_pace_of_the_handshakes() {
        let mut door = Door::new(at(0), 1_000_000);
        let mut now_us = 0;
        // Three seconds at 2 ms a handshake.
        while now_us < 3_000_000 {
            for number in 0..40 {
                door.take(KNOWN, at(now_us), &place(number), &[1]);
            }
            now_us += 2_000 * door.let_in(at(now_us)).len() as u64;
        }
        let more = WAITING_MAX - door.fullness().used;
        for number in 0..more as u32 {
            door.take(KNOWN, at(now_us), &place(1_000 + number), &[1]);
        }
        let mut turn = |number| match door.take(KNOWN, at(now_us), &place(number), &[1]) {
            Turn::In(wait) => wait.as_millis(),
            other => panic!("{other:?}"),
        };
        let turns: Vec<u128> = (2_000..2_100).map(&mut turn).collect();
        assert!((240..=270).contains(&turns[0]), "behind 128 others: {} ms", turns[0]);
        assert!((190..=210).contains(&(turns[99] - turns[0])), "99 behind: {} ms", turns[99]);
        assert_eq!(turn(2_050), turns[50], "who asks again keeps its turn");
        let far = (3_000..60_000).map(turn).max().unwrap_or_default();
        assert_eq!(far, TURN_MAX.as_millis(), "no turn is further away");
        assert!(
            door.known.turns.of.len() <= TURNS_MAX && door.known.turns.order.len() <= TURNS_MAX
        );
    }

    #[test]
    fn who_comes_in_its_turn_has_a_place_though_the_queue_is_full_again() {
        let mut door = Door::new(at(0), 1_000_000);
        door.pace = Pace { let_in: 1_000, in_us: 1_000_000, last: None };
        let fill = |door: &mut Door, now_us, first: u32| {
            let numbers = first..first + 2 * WAITING_MAX as u32;
            numbers.map(|number| door.take(KNOWN, at(now_us), &place(number), &[1])).last()
        };
        fill(&mut door, 0, 0);
        let Turn::In(wait) = door.take(KNOWN, at(0), &place(5_000), &[1]) else { panic!("full") };
        let_all_in(&mut door, 0, 100);
        let now_us = wait.as_micros() as u64;
        assert!(matches!(fill(&mut door, now_us, 1_000), Some(Turn::In(_))), "others were first");
        assert_eq!(door.take(KNOWN, at(now_us), &place(5_000), &[1]), Turn::Waits);
        let late_us = now_us + 2 * LATE_MAX.as_micros() as u64;
        assert!(matches!(door.take(KNOWN, at(late_us), &place(5_001), &[1]), Turn::In(_)));
        assert!(door.known.turns.of.values().all(|turn| *turn + LATE_MAX >= at(late_us)));
    }

    #[test]
    fn no_more_are_let_in_than_the_sessions_compute() {
        let mut door = Door::new(at(0), 40);
        let mut count = 0;
        for ms in 0..10_000 {
            for number in 0..4 {
                door.take(KNOWN, at(ms * 1_000), &place(ms as u32 * 4 + number), &[1]);
            }
            count += door.let_in(at(ms * 1_000)).len();
        }
        assert!((300..=331).contains(&count), "{count} in ten seconds");
        let opens_at = door.opens_at().expect("somebody waits");
        assert!(opens_at > at(9_990_000), "it isn't looked at before: {opens_at:?}");
    }
}
