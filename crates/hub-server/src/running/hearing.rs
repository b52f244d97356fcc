//! Whether a hub that takes its turns also hears its devices: by the datagrams that its socket dropped, and by how many devices
//! renewed their records in time. Who loses most of what devices say judges nobody by silence.

use std::fmt;

use tenure_hub::{Counts, Renewals};
use tenure_wire::printable::counted;

/// The time over which dropped datagrams are counted, in seconds: that long at least, and twice as long at most.
const SPAN_S: u64 = 10;
/// One of so many datagrams may be lost: devices send again.
const DROPPED_MAX: u64 = 10;
/// One of so many devices that are due may be overdue, or one of so many of all devices.
const OVERDUE_MAX: usize = 4;
const OVERDUE_OF_ALL: usize = 100;

/// What came to a hub's socket since its start, and what of it should have come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// The datagrams that were received.
    pub received: u64,
    /// The datagrams that the socket had no room for.
    pub dropped: u64,
    /// The devices that were heard in time, and those that weren't.
    pub renewals: Renewals,
    /// What devices said, and how many were told to come later.
    pub counts: Counts,
    /// The longest turn since that was said last, in milliseconds: so long a datagram may have waited.
    pub turn_ms: u64,
}

/// Why a hub that takes its turns doesn't hear its devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overload {
    /// Its socket dropped so many datagrams of so many.
    Drops { dropped: u64, of: u64 },
    /// So many devices are overdue of so many that were due.
    Overdue { overdue: usize, of: usize },
}

/// The traffic now, and as it was when the two last spans began.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hearing {
    now: Traffic,
    began: [(u64, Traffic); 2],
    /// The longest turns of the two spans.
    turns_ms: [u64; 2],
}

impl Hearing {
    /// Takes note of the traffic until `unix_s`.
    pub(super) fn note(&mut self, unix_s: u64, traffic: Traffic) {
        let [_, last] = self.began;
        let is_first = last.0 == 0;
        // A span that the clock jumped over or back in is as good as over.
        if is_first {
            self.began = [(unix_s, traffic); 2];
        } else if unix_s.abs_diff(last.0) >= SPAN_S {
            self.began = [last, (unix_s, traffic)];
            self.turns_ms = [self.turns_ms[1], 0];
        }
        self.turns_ms[1] = self.turns_ms[1].max(traffic.turn_ms);
        self.now = traffic;
    }

    /// The traffic until now, with the longest turn of the two spans.
    pub(super) fn traffic(&self) -> Traffic {
        let [before, last] = self.turns_ms;
        Traffic { turn_ms: before.max(last), ..self.now }
    }

    /// Why the hub hears too few of its devices, if it does.
    pub(super) fn overload(&self) -> Option<Overload> {
        let (_, before) = self.began[0];
        let dropped = self.now.dropped.saturating_sub(before.dropped);
        let of = self.now.received.saturating_sub(before.received) + dropped;
        if dropped * DROPPED_MAX > of {
            return Some(Overload::Drops { dropped, of });
        }
        let Renewals { in_time, overdue, listed } = self.now.renewals;
        let of = in_time + overdue;
        let is_much = overdue * OVERDUE_MAX > of && overdue * OVERDUE_OF_ALL > listed;
        is_much.then_some(Overload::Overdue { overdue, of })
    }
}

impl fmt::Display for Overload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Drops { dropped, of } => {
                write!(
                    f,
                    "the hub is too slow for what devices say: {dropped} of {of} datagrams were lost at its socket"
                )
            }
            Self::Overdue { overdue, of } => {
                let due = counted(*of, "device");
                write!(
                    f,
                    "of {due} that were due {overdue} weren't heard: they are away, or the hub doesn't hear them"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traffic(received: u64, dropped: u64, [in_time, overdue, listed]: [usize; 3]) -> Traffic {
        let renewals = Renewals { in_time, overdue, listed };
        Traffic { received, dropped, renewals, ..Traffic::default() }
    }

    /// What is noted at each of those moments, and why the hub doesn't hear then.
    fn overloads(noted: &[(u64, Traffic)]) -> Vec<Option<Overload>> {
        let mut hearing = Hearing::default();
        let each = noted.iter().map(|(unix_s, traffic)| {
            hearing.note(*unix_s, *traffic);
            hearing.overload()
        });
        each.collect()
    }

    #[test]
    fn hub_whose_socket_drops_a_tenth_doesn_t_hear_until_a_span_is_over_in_which_it_dropped_less() {
        let all = [10, 0, 10];
        let seen = overloads(&[
            (100, traffic(50, 40, all)),
            (102, traffic(140, 50, all)),
            (104, traffic(140, 51, all)),
            (110, traffic(240, 51, all)),
            (120, traffic(340, 51, all)),
        ]);
        let drops = |dropped, of| Some(Overload::Drops { dropped, of });
        assert_eq!(
            seen,
            [None, None, drops(11, 101), None, None],
            "what was before the start is nothing"
        );
        let seen = overloads(&[
            (100, traffic(0, 0, all)),
            (101, traffic(10, 90, all)),
            (110, traffic(110, 90, all)),
            (119, traffic(210, 90, all)),
            (120, traffic(220, 90, all)),
        ]);
        assert_eq!(seen, [None, drops(90, 100), drops(90, 200), drops(90, 300), None]);
    }

    #[test]
    fn longest_turn_is_that_of_the_last_spans() {
        let mut hearing = Hearing::default();
        let turns = [(100, 7), (105, 30), (110, 5), (115, 9), (120, 4), (130, 1)];
        let longest = turns.map(|(unix_s, turn_ms)| {
            hearing.note(unix_s, Traffic { turn_ms, ..Traffic::default() });
            hearing.traffic().turn_ms
        });
        assert_eq!(longest, [7, 30, 30, 30, 9, 4]);
    }

    #[test]
    fn hub_of_whose_devices_a_quarter_is_overdue_doesn_t_hear_and_a_few_of_many_say_nothing() {
        let overdue = |of| overloads(&[(100, traffic(10, 0, of))])[0];
        assert_eq!(overdue([0, 0, 0]), None, "no device");
        assert_eq!(overdue([3, 1, 4]), None);
        assert_eq!(overdue([2, 1, 3]), Some(Overload::Overdue { overdue: 1, of: 3 }));
        assert_eq!(overdue([0, 1, 1]), Some(Overload::Overdue { overdue: 1, of: 1 }));
        assert_eq!(overdue([0, 9, 1_000]), None, "of a fleet that sleeps for long");
        assert_eq!(overdue([0, 11, 1_000]), Some(Overload::Overdue { overdue: 11, of: 11 }));
    }
}
