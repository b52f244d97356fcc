//! A whole device at a seat, while it is switched on: its frames go by the radio.

use std::time::Duration;

use tenure_hal::Instant;
use tenure_mesh::{Destination, NodeId};
use tenure_node::{Door as _, Input, Taken};
use tenure_protocols::babel::Babel;
use tenure_protocols::forwarding::{self, Forwarding};
use tenure_protocols::interface::ANY_LIFE;

use crate::place::{Place, Polled, Shown};

/// A device that is switched on.
pub(super) struct Device {
    place: Box<Place>,
    has_clock: bool,
    slice: Duration,
    /// Until when its processor is busy with a slice of a machine.
    busy_until: Instant,
    /// Whether it was polled since it was last asked whether it means to sleep.
    has_polled: bool,
    /// A planted defect.
    forgets_calls: bool,
}

impl Device {
    /// The device on `place`, which has booted.
    pub(super) fn new(
        place: Box<Place>,
        has_clock: bool,
        slice: Duration,
        forgets_calls: bool,
    ) -> Self {
        Self {
            place,
            has_clock,
            slice,
            busy_until: Instant::BOOT,
            has_polled: false,
            forgets_calls,
        }
    }

    /// Takes the device's power, and gives what it leaves.
    pub(super) fn switch_off(mut self) -> Box<Place> {
        self.place.flash.cut_power();
        self.place.running = None;
        self.place
    }

    /// Whether the power failed in the middle of a flash operation.
    pub(super) fn has_failed(&self) -> bool {
        self.place.flash.is_off()
    }

    /// Lets `operations` more flash operations succeed and tears the one after.
    pub(super) fn fail_after(&self, operations: u64, seed: u64) {
        self.place.flash.cut_power_after(operations, seed);
    }

    /// Lets the device write down what it does, if it means to sleep now; gives until when, in
    /// microseconds of the world. It is to be switched off then.
    pub(super) fn sleeps_until(&mut self, now: Instant, now_us: u64) -> Option<u64> {
        if !std::mem::take(&mut self.has_polled) {
            return None;
        }
        self.place.take(now, Input::Time)?;
        let until = self.place.node()?.bedtime()?.until?;
        let until_us = self.place.clock.world_us(until);
        self.place.fall_asleep(now_us, self.has_clock, None).then_some(until_us)
    }

    /// The device's place after it has fallen asleep, with its flash and its clock.
    pub(super) fn into_place(mut self) -> Box<Place> {
        self.place.running = None;
        self.place
    }

    /// The next thing that it shows.
    pub(super) fn notice(&mut self) -> Option<Shown> {
        self.place.notice()
    }

    /// A frame came; whether it was taken.
    pub(super) fn receive(&mut self, now: Instant, frame: &[u8], signal_dbm: i8) -> bool {
        let input = Input::Frame { bytes: frame, signal_dbm: Some(signal_dbm) };
        matches!(self.place.take(now, input), Some(Taken::Frame(Ok(_))))
    }

    /// A frame for `neighbour` was not answered.
    pub(super) fn undelivered(&mut self, now: Instant, neighbour: NodeId) {
        self.place.take(now, Input::Undelivered(neighbour));
    }

    /// Does what is due, unless it is busy; gives when it wants to run again.
    pub(super) fn poll(&mut self, now: Instant, now_us: u64) -> Option<Instant> {
        if now < self.busy_until {
            return Some(self.busy_until);
        }
        self.has_polled = true;
        let polled = self.place.poll(now_us, self.has_clock);
        if let Some(node) = self.place.node().filter(|_| self.forgets_calls) {
            forget_ended_calls(node);
        }
        match polled {
            Polled::Slice => {
                self.busy_until = now + self.slice;
                Some(self.busy_until)
            }
            Polled::At(at_us) => Some(self.place.clock.local(at_us)),
            Polled::Idle => None,
        }
    }

    /// The next frame to send, and to which neighbour if it is for one.
    pub(super) fn transmit(&mut self, now: Instant) -> Option<(Option<NodeId>, Vec<u8>)> {
        self.place.take(now, Input::Time)?;
        Some(match self.place.node()?.transmit_frame()? {
            (Destination::All, frame) => (None, frame),
            (Destination::One(neighbour), frame) => (Some(neighbour), frame),
        })
    }

    /// The next hop on the way to `to`, as the router knows it now, and in which of its lives.
    pub(super) fn next_hop(&self, to: NodeId) -> Option<(NodeId, u32)> {
        self.router()?.next_hop(to)
    }

    /// Which life of the device this is, as its router counts.
    pub(super) fn life(&self) -> u32 {
        self.router().map_or(ANY_LIFE, Babel::life)
    }

    /// The counters of its forwarding, if it is in the mesh.
    pub(super) fn forwarding(&self) -> Option<&forwarding::Counters> {
        self.place.mesh()?.protocol().map(Forwarding::counters)
    }

    fn router(&self) -> Option<&Babel> {
        self.place.mesh()?.protocol()
    }
}

/// The planted defect is part of builds with `--cfg forgetful` alone.
#[cfg(forgetful)]
fn forget_ended_calls<F: tenure_hal::Flash>(node: &mut tenure_node::Node<F>) {
    node.forget_ended_calls();
}

#[cfg(not(forgetful))]
fn forget_ended_calls<F>(_: &mut tenure_node::Node<F>) {
    debug_assert!(false, "this build can't plant `ForgetsCalls`: it lacks `--cfg forgetful`");
}
