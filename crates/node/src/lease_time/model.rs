//! A model of one lease on a board without a clock, checked in every order of a few events: time passes, the
//! power goes, a hub lies, the owner says what time it is, and renews.
//!
//! [`LatestTime`], [`LeaseTime`] and the hub's allowance in [`Clock`] are the code's own. Receipts, flash and the kernel
//! are left out; what is counted is kept over each loss of power, as after a checkpoint.
//!
//! Each [`Rule`] can be cut, and the checker then finds what it protects.

extern crate std;

use std::vec;
use std::vec::Vec;

use stateright::{Checker, Model, Property};

use super::*;
use crate::clock::{HUB_JUMP_S_MAX, is_set_back};

const HOUR_S: u64 = 60 * 60;
const DAY_S: u64 = 24 * HOUR_S;
const SIGNED_S: u64 = 1_800_000_000;
const LEASE_S: u64 = 2 * DAY_S;
const GRACE_S: u64 = DAY_S;
/// The time that passes at once while the device is on, and while it is off.
const ON_S: u64 = DAY_S / 2;
const OFF_S: u64 = 2 * DAY_S;
/// The time that hubs lie about.
const FAR_S: u64 = 4_000_000_000;

/// The rules that keep leases and data from lies; one of them may be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// Data goes after the time in which the device was on, not after what time it is told to be.
    GraceIsCounted,
    /// A hub whose key is pinned moves leases by a day for each start.
    PinnedHubIsBounded,
    /// A hub that nobody vouched for moves none.
    OthersMoveNone,
}

#[derive(Clone, Copy)]
struct Bounds {
    cut: Option<Rule>,
    events_max: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Happening {
    TimePasses,
    PowerGoes,
    HubLies,
    PinnedHubLies,
    PinnedHubTellsTruth,
    OwnerTellsTime,
    OwnerRenews,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    events: u8,
    /// Since the device was switched on.
    now_s: u64,
    hub_jump_left_s: u64,
    latest: LatestTime,
    lease: LeaseTime,
    ends_s: u64,
    has_data: bool,
    /// Facts that the device doesn't know: the time, how often it was switched on, and for how long it has been on since it
    /// learned that the lease is over.
    true_s: u64,
    starts: u64,
    over_s: Option<u64>,
    /// Broken promises: data that went too early, a lease that an unknown hub moved, or that went back by itself.
    lost_too_early: bool,
    moved_by_anybody: bool,
    went_back: bool,
}

impl World {
    fn now(&self) -> Instant {
        Instant::from_millis(self.now_s * 1000)
    }

    fn term(&self) -> Term {
        let ends_unix_s = Some(self.ends_s);
        Term { signed_unix_s: SIGNED_S, ends_unix_s, grace_s: GRACE_S, receipts_every_s: 0 }
    }

    /// Does what the device does each time that something may be due, when it was on for `on_s` since the last.
    fn attend(&mut self, rules: Bounds, on_s: u64) {
        let before_ms = self.lease.ms;
        self.over_s = self.over_s.map(|over_s| over_s + on_s);
        self.lease.pass(on_s * 1000, self.latest.ms(self.now()));
        self.latest.learn_ms(self.now(), self.lease.ms);
        self.went_back |= self.lease.ms < before_ms;
        let stage = self.lease.stage(&self.term());
        self.lease.take_note(stage);
        match stage {
            Stage::InForce { .. } => self.over_s = None,
            Stage::Over { left_ms, .. } => {
                let over_s = *self.over_s.get_or_insert(0);
                let goes = match rules.cut {
                    Some(Rule::GraceIsCounted) => self.lease.ms / 1000 >= self.ends_s + GRACE_S,
                    _ => left_ms == 0,
                };
                self.lost_too_early |= self.has_data && goes && over_s < GRACE_S;
                self.has_data &= !goes;
            }
        }
    }

    fn hub_tells(&mut self, rules: Bounds, unix_s: u64, by: Teller) {
        let before = (self.latest, self.lease);
        let mut clock = Clock::new();
        clock.hub_jump_left_s = match rules.cut {
            Some(Rule::PinnedHubIsBounded) => u64::MAX,
            _ => self.hub_jump_left_s,
        };
        let counts = match rules.cut {
            Some(Rule::OthersMoveNone) => Teller::PinnedHub,
            _ => by,
        };
        let now = self.now();
        if let Some(unix_s) = self.latest.told_by_hub(&mut clock, now, unix_s, counts) {
            self.latest.learn_ms(now, unix_s * 1000);
            self.attend(rules, 0);
        }
        self.hub_jump_left_s = clock.hub_jump_left_s.min(HUB_JUMP_S_MAX);
        self.moved_by_anybody |= by == Teller::Hub && before != (self.latest, self.lease);
    }

    fn owner_tells(&mut self, rules: Bounds) {
        let (now, ms) = (self.now(), self.true_s * 1000);
        if self.latest.unix_s(now).is_some_and(|known_s| is_set_back(self.true_s, known_s)) {
            self.lease.set_back(ms);
            self.latest.known = Some((ms, now));
        } else {
            self.latest.learn_ms(now, ms);
        }
        self.attend(rules, 0);
    }

    /// The seconds by which the lease is over too early.
    fn early_s(&self) -> u64 {
        if self.over_s.is_some() { self.ends_s.saturating_sub(self.true_s) } else { 0 }
    }
}

impl Model for Bounds {
    type State = World;
    type Action = Happening;

    fn init_states(&self) -> Vec<World> {
        let lease = LeaseTime { ms: SIGNED_S * 1000, over_ms: None };
        let mut latest = LatestTime::default();
        latest.learn_ms(Instant::BOOT, lease.ms);
        vec![World {
            events: 0,
            now_s: 0,
            hub_jump_left_s: HUB_JUMP_S_MAX,
            latest,
            lease,
            ends_s: SIGNED_S + LEASE_S,
            has_data: true,
            true_s: SIGNED_S,
            starts: 1,
            over_s: None,
            lost_too_early: false,
            moved_by_anybody: false,
            went_back: false,
        }]
    }

    fn actions(&self, world: &World, happenings: &mut Vec<Happening>) {
        if world.events < self.events_max && world.has_data {
            happenings.extend([
                Happening::TimePasses,
                Happening::PowerGoes,
                Happening::HubLies,
                Happening::PinnedHubLies,
                Happening::PinnedHubTellsTruth,
                Happening::OwnerTellsTime,
                Happening::OwnerRenews,
            ]);
        }
    }

    fn next_state(&self, before: &World, happening: Happening) -> Option<World> {
        let mut world = before.clone();
        world.events += 1;
        match happening {
            Happening::TimePasses => {
                (world.now_s, world.true_s) = (world.now_s + ON_S, world.true_s + ON_S);
                world.attend(*self, ON_S);
            }
            Happening::PowerGoes => {
                (world.now_s, world.true_s) = (0, world.true_s + OFF_S);
                (world.starts, world.hub_jump_left_s) = (world.starts + 1, HUB_JUMP_S_MAX);
                world.latest = LatestTime::default();
                world.latest.learn_ms(Instant::BOOT, world.lease.ms);
                world.attend(*self, 0);
            }
            Happening::HubLies => world.hub_tells(*self, FAR_S, Teller::Hub),
            Happening::PinnedHubLies => world.hub_tells(*self, FAR_S, Teller::PinnedHub),
            Happening::PinnedHubTellsTruth => {
                world.hub_tells(*self, world.true_s, Teller::PinnedHub);
            }
            Happening::OwnerTellsTime => world.owner_tells(*self),
            Happening::OwnerRenews => {
                world.ends_s = world.true_s + LEASE_S;
                world.latest.learn_ms(world.now(), world.true_s * 1000);
                world.attend(*self, 0);
            }
        }
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(KEPT, |_, world: &World| !world.lost_too_early),
            Property::always(UNMOVED, |_, world: &World| !world.moved_by_anybody),
            Property::always(BOUNDED, |_, world: &World| {
                world.early_s() <= world.starts * HUB_JUMP_S_MAX
            }),
            Property::always(MONOTONE, |_, world: &World| !world.went_back),
            Property::sometimes("data goes when its grace is over", |_, world: &World| {
                !world.has_data
            }),
            Property::sometimes("a lie ends a lease early", |_, world: &World| world.early_s() > 0),
            Property::sometimes("a renewal within the grace keeps the data", |_, world: &World| {
                world.has_data
                    && world.over_s.is_none()
                    && world.ends_s > SIGNED_S + LEASE_S + DAY_S
            }),
        ]
    }
}

const KEPT: &str =
    "data goes only when the device was on for the whole grace since it learned of the end";
const UNMOVED: &str = "a hub that nobody vouched for moves no lease";
const BOUNDED: &str = "a pinned hub ends a lease early by a day for each start at most";
const MONOTONE: &str = "a lease's time goes back by the owner's word alone";
const PROMISES: [&str; 4] = [KEPT, UNMOVED, BOUNDED, MONOTONE];

#[test]
fn no_order_of_lies_losses_of_power_and_renewals_deletes_data_early_or_turns_a_lease_back() {
    let bounds = Bounds { cut: None, events_max: 9 };
    let checker = bounds.checker().threads(2).spawn_bfs().join();
    for promise in PROMISES {
        let found = checker.discovery(promise).map(|path| path.into_actions());
        assert_eq!(found, None, "{promise}");
    }
    checker.assert_properties();
    let states = checker.unique_state_count();
    assert!(states > 10_000, "only {states} states");
}

#[test]
fn each_rule_about_told_time_is_needed() {
    for (rule, promise) in [
        (Rule::GraceIsCounted, KEPT),
        (Rule::PinnedHubIsBounded, BOUNDED),
        (Rule::OthersMoveNone, UNMOVED),
    ] {
        let bounds = Bounds { cut: Some(rule), events_max: 4 };
        let checker = bounds.checker().spawn_bfs().join();
        assert!(checker.discovery(promise).is_some(), "without {rule:?} nothing breaks: {promise}");
    }
}
