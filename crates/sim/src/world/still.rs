//! Devices that stand still for a while, as a process that is stopped or a board that erases for long: what comes for them
//! waits, and is read first when they go on.

use super::{Occurrence, World};

/// How many datagrams wait for a device that stands still; further ones are lost.
const WAITING_MAX: usize = 256;
/// A device that has something to do within that time is in the middle of it.
const AT_ONCE_US: u64 = 10_000;
/// When one that is in the middle of something is looked at again.
const AGAIN_US: u64 = 50_000;

/// A datagram that waits for a device that stands still.
#[derive(Clone)]
pub(super) struct Waiting {
    from: usize,
    datagram: Vec<u8>,
}

impl World<'_> {
    /// Plans when a device that was just switched on, or goes on, stands still next.
    pub(super) fn plan_stop(&mut self, place: usize) {
        let stops = self.scenario.stops.as_ref().filter(|_| !self.is_quiet);
        let Some(every_ms) = stops.map(|plan| plan.every_ms.clone()) else { return };
        let after_us = self.random.millis(every_ms).as_micros() as u64;
        let booted_us = self.places[place].clock.booted_us;
        self.plan(self.now_us + after_us, Occurrence::StandStill { place, booted_us });
    }

    /// A device stands still, between two things that it does.
    pub(super) fn stand_still(&mut self, place: usize, booted_us: u64) {
        let known = &self.places[place];
        if self.is_quiet || known.running.is_none() || known.clock.booted_us != booted_us {
            return;
        }
        if known.poll_us.is_some_and(|at_us| at_us <= self.now_us + AT_ONCE_US) {
            let again = Occurrence::StandStill { place, booted_us };
            return self.plan(self.now_us + AGAIN_US, again);
        }
        let Some(plan) = &self.scenario.stops else { return };
        let for_ms = plan.for_ms.clone();
        let for_us = self.random.millis(for_ms).as_micros() as u64;
        self.trace.note(self.now_us, format_args!("d{place} stands still"));
        self.trouble.stops += 1;
        self.checker.sleeps(self.now_us, place);
        self.still[place] = Some(Vec::new());
        self.plan(self.now_us + for_us, Occurrence::GoOn { place, booted_us });
    }

    /// Keeps a datagram for a device that stands still. Returns whether it does.
    pub(super) fn waits(&mut self, from: usize, to: usize, datagram: &[u8]) -> bool {
        let Some(waiting) = &mut self.still[to] else { return false };
        if waiting.len() < WAITING_MAX {
            waiting.push(Waiting { from, datagram: datagram.to_vec() });
        }
        true
    }

    /// A device goes on, with what has waited for it.
    pub(super) fn go_on(&mut self, place: usize, booted_us: u64) {
        if self.places[place].clock.booted_us != booted_us {
            return;
        }
        let Some(waiting) = self.still[place].take() else { return };
        self.trace.note(self.now_us, format_args!("d{place} goes on"));
        self.checker.slept(self.now_us, place);
        for Waiting { from, datagram } in waiting {
            self.arrive(from, place, &datagram);
        }
        self.plan_poll(place, self.now_us);
        self.plan_stop(place);
    }
}
