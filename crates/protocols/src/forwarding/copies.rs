//! Copies of datagrams, recognised by what is remembered of those that came.
//!
//! None ends here twice: for each source there is a window of numbers, as receivers of IPsec keep against replay
//! (RFC 4303 §3.4.3), laid out in words of bits that never move (RFC 6479 §2). A number behind its window is refused:
//! it can't be told from a copy. A source that boots anew begins at a number drawn at random, far from the one
//! before, and gets a window of its own. Once there is no room for one more, the window goes that was used longest
//! ago.
//!
//! One that is to be passed on is recognised if the same neighbour sends it again, for a time.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use tenure_hal::Instant;
use tenure_mesh::NodeId;

use super::Name;

const WORD_BITS: u32 = u64::BITS;
/// A number so far from the highest of a window belongs to another life of its source. By chance a new life begins
/// nearer once in 130,000 times.
const NEAR: u32 = 1 << 14;

/// A neighbour sends a datagram again within this that it has sent to this node: it has other ways by then, or none.
const REPEATED_WITHIN: Duration = Duration::from_secs(16);

/// The datagrams that came to be passed on, from which neighbour, and when; the last ones, oldest first.
#[derive(Debug)]
pub(super) struct Repeats {
    seen: VecDeque<(NodeId, Name, Instant)>,
    seen_max: usize,
}

/// The datagrams that came for this node.
#[derive(Debug)]
pub(super) struct Arrivals {
    windows: Vec<Window>,
    windows_max: usize,
    words: usize,
}

/// The outcome for one datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// It didn't come before.
    First,
    /// It did.
    Copy,
    /// So many of its source's came since that it isn't known.
    TooLate,
}

/// The latest numbers of one source in one life.
#[derive(Debug)]
struct Window {
    source: NodeId,
    highest: u32,
    used_at: Instant,
    /// Bit `n % 64` of word `n / 64`, modulo the number of words, says whether number `n` came. There is a power of
    /// two of them, so that numbers may wrap.
    words: Box<[u64]>,
}

impl Repeats {
    /// So many are remembered at most.
    pub(super) fn new(seen_max: usize) -> Self {
        Self { seen: VecDeque::new(), seen_max }
    }

    /// Notes that a datagram came. One that comes by another neighbour is none that was sent again: it is passed on
    /// once more, for the way has changed.
    pub(super) fn note(&mut self, from: NodeId, name: Name, now: Instant) -> Arrival {
        if self.seen.iter().any(|(by, seen, _)| *seen == name && *by == from) {
            return Arrival::Copy;
        }
        let is_over = |(_, _, at): &(NodeId, Name, Instant)| now.since(*at) >= REPEATED_WITHIN;
        while let Some(oldest) = self.seen.front()
            && (is_over(oldest) || self.seen.len() >= self.seen_max)
        {
            self.seen.pop_front();
        }
        self.seen.push_back((from, name, now));
        Arrival::First
    }
}

impl Arrivals {
    /// Windows for so many sources, each of at least so many numbers; none, for no sources.
    pub(super) fn new(sources_max: usize, numbers: u32) -> Self {
        // The word that the highest number is in may hold no other.
        let words = (numbers.min(NEAR).div_ceil(WORD_BITS) + 1).next_power_of_two();
        Self { windows: Vec::new(), windows_max: sources_max, words: words as usize }
    }

    /// Notes that a datagram came.
    pub(super) fn note(&mut self, Name { source, number }: Name, now: Instant) -> Arrival {
        let apart = |window: &Window| (window.highest.wrapping_sub(number) as i32).unsigned_abs();
        let is_its = |window: &&mut Window| window.source == source && apart(window) < NEAR;
        if let Some(window) = self.windows.iter_mut().find(is_its) {
            window.used_at = now;
            return window.note(number);
        }
        if self.windows.len() >= self.windows_max {
            let windows = self.windows.iter().enumerate();
            let oldest = windows.min_by_key(|(_, window)| window.used_at).map(|(at, _)| at);
            let Some(oldest) = oldest else { return Arrival::First };
            self.windows.swap_remove(oldest);
        }
        let words = vec![0; self.words].into_boxed_slice();
        let mut window = Window { source, highest: number, used_at: now, words };
        let arrival = window.note(number);
        self.windows.push(window);
        arrival
    }
}

impl Window {
    fn note(&mut self, number: u32) -> Arrival {
        let words = self.words.len() as u32;
        let ahead = number.wrapping_sub(self.highest) as i32;
        if ahead > 0 {
            let last = self.highest / WORD_BITS;
            let entered = (number / WORD_BITS).wrapping_sub(last) % (u32::MAX / WORD_BITS + 1);
            for word in 1..=entered.min(words) {
                self.words[(last.wrapping_add(word) % words) as usize] = 0;
            }
            self.highest = number;
        } else if ahead.unsigned_abs() >= (words - 1) * WORD_BITS {
            return Arrival::TooLate;
        }
        let word = &mut self.words[(number / WORD_BITS % words) as usize];
        let bit = 1 << (number % WORD_BITS);
        let came = *word & bit != 0;
        *word |= bit;
        if came { Arrival::Copy } else { Arrival::First }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::BOOT;

    fn name(source: u64, number: u32) -> Name {
        Name { source: NodeId::from_number(source), number }
    }

    #[test]
    fn each_number_in_the_window_arrives_once_in_whatever_order() {
        // From a number that wraps within the test, and by steps that change the order.
        for first in [0, 5, u32::MAX - 700] {
            let mut arrivals = Arrivals::new(2, 1024);
            for step in 0..1000_u32 {
                let number = first.wrapping_add(step * 389 % 1000);
                assert_eq!(arrivals.note(name(1, number), NOW), Arrival::First, "{number}");
                assert_eq!(arrivals.note(name(1, number), NOW), Arrival::Copy, "{number}");
            }
            for step in 0..1000 {
                let number = name(1, first.wrapping_add(step));
                assert_eq!(arrivals.note(number, NOW), Arrival::Copy);
            }
        }
    }

    #[test]
    fn number_behind_the_window_is_refused_and_jumps_clear_what_they_pass() {
        let mut arrivals = Arrivals::new(2, 128);
        for number in [1, 400, 10_000, 10_250] {
            assert_eq!(arrivals.note(name(1, number), NOW), Arrival::First);
        }
        // A power of two of words, less the one that the highest number is in, is 192 numbers.
        assert_eq!(arrivals.note(name(1, 10_250 - 192), NOW), Arrival::TooLate);
        assert_eq!(arrivals.note(name(1, 10_250 - 191), NOW), Arrival::First);
        assert_eq!(arrivals.note(name(1, 10_250 - 191), NOW), Arrival::Copy);
        assert_eq!(arrivals.note(name(1, 1), NOW), Arrival::TooLate);
    }

    #[test]
    fn sources_and_their_lives_have_windows_of_their_own() {
        let mut arrivals = Arrivals::new(3, 128);
        let later_life = 3_000_000_000;
        for number in [7, later_life] {
            assert_eq!(arrivals.note(name(1, number), NOW), Arrival::First);
            assert_eq!(arrivals.note(name(2, 7), NOW) == Arrival::First, number == 7);
        }
        assert_eq!(arrivals.note(name(1, 7), NOW), Arrival::Copy);
        assert_eq!(arrivals.note(name(1, later_life), NOW), Arrival::Copy);
    }

    #[test]
    fn datagram_that_a_neighbour_repeats_is_a_copy_as_long_as_it_may_repeat_it() {
        let mut repeats = Repeats::new(3);
        let at = |seconds| NOW + Duration::from_secs(seconds);
        let [one, other] = [8, 9].map(NodeId::from_number);
        assert_eq!(repeats.note(one, name(1, 7), at(0)), Arrival::First);
        assert_eq!(repeats.note(other, name(1, 7), at(1)), Arrival::First);
        assert_eq!(repeats.note(one, name(1, 7), at(15)), Arrival::Copy);
        assert_eq!(repeats.note(one, name(1, 8), at(20)), Arrival::First);
        assert_eq!(repeats.seen.len(), 1, "nothing is remembered for longer");
        for number in 9..20 {
            assert_eq!(repeats.note(one, name(1, number), at(20)), Arrival::First);
        }
        assert_eq!(repeats.seen.len(), 3);
    }

    #[test]
    fn source_heard_longest_ago_makes_room() {
        let mut arrivals = Arrivals::new(2, 128);
        let at = |seconds| NOW + Duration::from_secs(seconds);
        arrivals.note(name(1, 7), at(0));
        arrivals.note(name(2, 7), at(1));
        arrivals.note(name(1, 8), at(2));
        arrivals.note(name(3, 7), at(3));
        assert_eq!(arrivals.note(name(1, 7), at(4)), Arrival::Copy);
        assert_eq!(arrivals.note(name(2, 7), at(5)), Arrival::First);
    }
}
