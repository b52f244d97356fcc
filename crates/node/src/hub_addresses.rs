//! The addresses of a hub that runs in several places: which is tried next, and when to look whether it still answers at
//! the one in use.
//!
//! Invariant: before a silent hub is waited for, each of its addresses was tried once.

use alloc::collections::VecDeque;
use core::mem;
use core::time::Duration;

use tenure_hal::Instant;
use tenure_wire::Address;

/// How often it is looked whether the hub still answers. With the time that it has for an answer that is less than ten
/// seconds, after which the device goes on at another address.
const LOOK_EVERY: Duration = Duration::from_secs(3);
/// How soon the next address is tried after one was silent.
const NEXT: Duration = Duration::from_millis(100);

/// How often in a row it may put the device off at one address.
const PUT_OFF_MAX: u8 = 3;

/// The addresses of a hub beside the one in use.
#[derive(Clone, Debug)]
pub(crate) struct Addresses {
    /// In the order in which they are tried.
    others: VecDeque<Address>,
    /// How many were silent since one answered.
    silent: usize,
    /// How often it has put the device off at the one in use since it answered.
    put_off: u8,
    /// Whether it is spoken to at another address than before, and its sessions there haven't ended yet.
    has_left: bool,
    /// Whether the one in use is there, though it gave no answer.
    is_there: bool,
    look_at: Instant,
}

impl Addresses {
    /// Those of a hub that is at `first` and at `also`.
    pub(crate) fn new(first: &Address, also: &[Address]) -> Self {
        let mut others = VecDeque::new();
        for address in also {
            if address != first && !others.contains(address) {
                others.push_back(address.clone());
            }
        }
        Self {
            others,
            silent: 0,
            put_off: 0,
            has_left: false,
            is_there: false,
            look_at: Instant::BOOT,
        }
    }

    /// Tries those `found` beside `current` from now on, and no others: first those that are new. Whether there are such.
    pub(crate) fn replace(&mut self, current: &Address, found: &[Address]) -> bool {
        self.others.retain(|address| found.contains(address));
        let mut new = 0;
        for address in found {
            if address != current && !self.others.contains(address) {
                self.others.insert(new, address.clone());
                new += 1;
            }
        }
        if new > 0 {
            self.silent = 0;
        }
        new > 0
    }

    /// Whether there is another one to go to.
    pub(crate) fn are_several(&self) -> bool {
        !self.others.is_empty()
    }

    /// When to look whether the hub still answers; never if there is no other address to go to.
    pub(crate) fn look_at(&self) -> Option<Instant> {
        self.are_several().then_some(self.look_at)
    }

    /// It is looked now, or was heard.
    pub(crate) fn looked(&mut self, now: Instant) {
        self.look_at = now + LOOK_EVERY;
    }

    /// It answered at the address in use.
    pub(crate) fn answered(&mut self) {
        (self.silent, self.put_off) = (0, 0);
    }

    /// It put the device off at `address`, which is another one from now on if that was too often; whether it is.
    pub(crate) fn is_left_after_put_off(&mut self, address: &mut Address) -> bool {
        self.put_off += 1;
        self.put_off >= PUT_OFF_MAX && self.turn_to_next(address)
    }

    /// It is there, whatever it said: the next silence is no reason to go elsewhere.
    pub(crate) fn is_there(&mut self) {
        self.is_there = true;
    }

    /// Whether it is spoken to at another address than when this was asked last.
    pub(crate) fn has_left(&mut self) -> bool {
        mem::take(&mut self.has_left)
    }

    /// Goes from `address`, which was silent, to the next one; how soon that is tried, unless all were silent by now.
    pub(crate) fn go_on(&mut self, address: &mut Address) -> Option<Duration> {
        if mem::take(&mut self.is_there) {
            return None;
        }
        if !self.turn_to_next(address) {
            return None;
        }
        self.silent += 1;
        if self.silent > self.others.len() {
            self.silent = 0;
            return None;
        }
        Some(NEXT)
    }

    /// Goes from `address` to the next one; whether there is one.
    pub(crate) fn turn_to_next(&mut self, address: &mut Address) -> bool {
        self.put_off = 0;
        let Some(next) = self.others.pop_front() else { return false };
        self.others.push_back(mem::replace(address, next));
        self.has_left = true;
        true
    }
}

#[cfg(test)]
mod tests {
    use tenure_hal::simulated::socket_at;

    use super::*;

    fn at(number: u32) -> Address {
        Address::Udp(socket_at(number))
    }

    #[test]
    fn each_address_is_tried_once_before_all_are_waited_for() {
        let mut address = at(1);
        let mut addresses = Addresses::new(&address, &[at(2), at(1), at(3), at(2)]);
        let mut tried = |address: &mut Address| (addresses.go_on(address), address.clone());
        assert_eq!(tried(&mut address), (Some(NEXT), at(2)));
        assert_eq!(tried(&mut address), (Some(NEXT), at(3)));
        assert_eq!(tried(&mut address), (None, at(1)), "all three were silent");
        assert_eq!(tried(&mut address), (Some(NEXT), at(2)));
    }

    #[test]
    fn hub_that_answered_or_is_there_is_kept() {
        let mut address = at(1);
        let mut addresses = Addresses::new(&address, &[at(2)]);
        assert_eq!(addresses.go_on(&mut address), Some(NEXT));
        addresses.answered();
        addresses.is_there();
        assert_eq!((addresses.go_on(&mut address), &address), (None, &at(2)));
        assert_eq!(
            addresses.go_on(&mut address),
            Some(NEXT),
            "it was silent once since it answered"
        );
        assert_eq!(address, at(1));
    }

    #[test]
    fn addresses_that_are_found_replace_those_before_and_new_ones_are_tried_first() {
        let mut address = at(1);
        let mut addresses = Addresses::new(&address, &[at(2), at(3)]);
        assert!(!addresses.replace(&address, &[at(3), at(1), at(2)]), "the same, in another order");
        assert!(addresses.replace(&address, &[at(3), at(4), at(5)]));
        let mut tried = |address: &mut Address| (addresses.go_on(address), address.clone());
        assert_eq!(tried(&mut address), (Some(NEXT), at(4)));
        assert_eq!(tried(&mut address), (Some(NEXT), at(5)));
        assert_eq!(tried(&mut address), (Some(NEXT), at(3)));
        assert_eq!(
            tried(&mut address),
            (None, at(1)),
            "where it was is tried as long as nothing answers"
        );
    }

    #[test]
    fn hub_with_one_address_is_not_looked_at_between_registrations() {
        let mut address = at(1);
        let mut addresses = Addresses::new(&address, &[at(1)]);
        assert_eq!((addresses.look_at(), addresses.go_on(&mut address)), (None, None));
        assert_eq!(address, at(1));
    }
}
