//! Deep sleep: when a device may turn itself off, what it writes down before, and how it goes on.
//!
//! The written state stands in code flash, encrypted under a key that stands with its place in the
//! store. That record is written last, by one change of the store, and is deleted first of all when
//! the device starts. So a power cut in the middle is a start like any other; and what was written
//! down is taken up once at most, and only at the very next start.

use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_crypto::{AeadKey, Nonce};
use tenure_hal::{Flash, Instant, UnixTime};
use tenure_kernel::{CallId, CodeError, Extent, SleepError as KernelSleepError, Ticket};
use tenure_rpc::{CallHandle, Endpoint, IncomingCallHandle, Rest};
use tenure_store::{SetError, Store, ValueKind};
use tenure_wire::datagram::Epoch;
use tenure_wire::{Address, MachineId, PublicKey};

use crate::clock::{Clock, Teller, ToldTime};
use crate::config::SleepPolicy;
use crate::hub::Registration;
use crate::log::Log;
use crate::meter::Meter;
use crate::moment::{Moment, Wake};
use crate::outbound::{Outbound, Purpose};
use crate::peers::Peers;
use crate::services::Services;
use crate::serving::Serving;
use crate::toll::{Bucket, Limit};
use crate::trees::SEALED_TREE;

/// Where it stands in the tree of sealed things that the device sleeps.
const ASLEEP_PATH: &str = "asleep";
/// The version of the written form, and the release: the seal covers both, so that no other build opens it.
const BUILD: &[u8] = concat!("asleep 1 of tenure ", env!("CARGO_PKG_VERSION")).as_bytes();
/// How long machines have at most for what they do before a sleep that they are told of.
const FAREWELL: Duration = Duration::from_secs(1);
/// How long after a datagram, or a start that ends no sleep, an idle device stays awake: who spoke, or
/// turned it on, is likely to say more.
const QUIET: Duration = Duration::from_secs(2);
/// How soon a device that couldn't fall asleep tries again.
const RETRY: Duration = Duration::from_secs(60);
/// How many sleeps may end before their time, since somebody spoke to the device, until it stays awake for
/// the next: a day has at most 144 of them, as each is a boot and writes flash.
const DISTURBED: Limit = Limit { at_once: 48, one_each: Duration::from_secs(15 * 60) };
/// How much before its time a sleep ends that a board's timer ends.
const EARLY: Duration = Duration::from_secs(1);

/// That it is time to sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bedtime {
    /// When to wake; `None` to wake by an event that the board wakes for, and not by time.
    pub until: Option<Instant>,
}

/// A node's part in when it sleeps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rhythm {
    awake_since: Instant,
    /// When machines were told that it is about to sleep.
    announced: Option<Instant>,
    /// Before this it doesn't try.
    not_before: Instant,
    /// Before this, whoever spoke to the device last may go on.
    quiet_at: Instant,
    /// The sleeps that may still end before their time.
    disturbed: Bucket,
    /// Until when it means to sleep, as it said last.
    until: Option<Instant>,
    /// How long the sleep was that the node woke from.
    slept: Option<Duration>,
    /// Where everything was written down for a sleep that hasn't begun.
    written: Option<Extent>,
}

impl Rhythm {
    /// That of a device which starts: its owner may want something of it first.
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            awake_since: now,
            announced: None,
            not_before: now,
            quiet_at: now + QUIET,
            disturbed: Bucket::full(DISTURBED, now),
            until: None,
            slept: None,
            written: None,
        }
    }

    /// Takes note that a datagram came.
    pub(crate) fn heard(&mut self, now: Instant) {
        self.quiet_at = now + QUIET;
    }

    /// When the node has something to do for its next sleep.
    pub(crate) fn wakes_at(&self, now: Instant, policy: SleepPolicy) -> Option<Instant> {
        match (policy, self.announced) {
            (SleepPolicy::WhenIdle { .. }, _) => {
                let undisturbed_at = self.disturbed.next_at(DISTURBED, now).unwrap_or(now);
                [self.quiet_at, self.not_before, undisturbed_at]
                    .into_iter()
                    .filter(|at| *at > now)
                    .min()
            }
            (SleepPolicy::DutyCycle { run, .. }, None) => {
                Some((self.awake_since + run).max(self.not_before))
            }
            (SleepPolicy::DutyCycle { .. }, Some(announced)) => Some(announced + FAREWELL),
            _ => None,
        }
    }

    /// Whether it is time to sleep, as the settings say.
    pub(crate) fn bedtime<F: Flash>(
        &mut self,
        services: &mut Services<F>,
        now: Instant,
        doings: Doings,
    ) -> Option<Bedtime> {
        let bedtime = self.is_bedtime(services, now, doings);
        self.until = bedtime.and_then(|bedtime| bedtime.until);
        bedtime
    }

    /// Takes note until when the device will sleep, where the board knows.
    pub(crate) fn will_sleep_until(&mut self, until: Instant) {
        self.until = Some(until);
    }

    fn is_bedtime<F: Flash>(
        &mut self,
        services: &mut Services<F>,
        now: Instant,
        doings: Doings,
    ) -> Option<Bedtime> {
        if now < self.not_before || doings.is_updating {
            return None;
        }
        match services.config.sleep {
            SleepPolicy::Never => None,
            SleepPolicy::WhenIdle { at_least } => {
                let until = match doings.next_wake {
                    Wake::Now => return None,
                    Wake::At(at) => Some(at),
                    Wake::Never => None,
                };
                let worth_it = until.is_none_or(|at| at.since(now) >= at_least);
                let quiet = now >= self.quiet_at && !doings.is_serving;
                let undisturbed = self.disturbed.next_at(DISTURBED, now).is_none();
                (worth_it && quiet && undisturbed).then_some(Bedtime { until })
            }
            SleepPolicy::DutyCycle { run, sleep } => {
                if now < self.awake_since + run {
                    return None;
                }
                let Some(announced) = self.announced else {
                    self.announced = Some(now);
                    services.kernel.announce_sleep();
                    return None;
                };
                let done = !services.kernel.is_busy() || now >= announced + FAREWELL;
                done.then_some(Bedtime { until: Some(now + sleep) })
            }
        }
    }

    /// Prepares for a sleep: one that was written down before doesn't count, and a failure is tried again
    /// later.
    pub(crate) fn prepare<F: Flash>(&mut self, services: &mut Services<F>, now: Instant) {
        self.stay_awake(services);
        self.announced = None;
        self.not_before = now + RETRY;
    }

    /// Writes everything down that a sleep with the power off would lose; whether the sessions have
    /// something to say of it before.
    ///
    /// # Errors
    /// As [`SleepError`] says; nothing is written down then.
    pub(crate) fn fall_asleep<F: Flash>(
        &mut self,
        state: &mut Sleeper<'_, F>,
        moment: &mut Moment<'_>,
    ) -> Result<bool, SleepError> {
        let luggage = state.pack(self)?;
        let Sleeper { services, .. } = state;
        let mut key = [0; 32];
        moment.entropy.fill(&mut key).map_err(|_| SleepError::Entropy)?;
        let mut sealed = luggage;
        // The key is used for this alone.
        let tag = AeadKey::from_bytes(&key).seal(&Nonce::from_counter(0), BUILD, &mut sealed);
        sealed.extend(tag);
        let extent = services.kernel.code().keep(&sealed).map_err(SleepError::Code)?;
        let (boots, at_us) = (services.identity.boots, moment.now.as_micros());
        let asleep = Asleep { boots, at_us, extent, key };
        let written = postcard::to_allocvec(&asleep)
            .map_err(|_| SleepError::Kernel(KernelSleepError::Memory))
            .and_then(|bytes| {
                let store = services.kernel.store();
                store
                    .set(SEALED_TREE, ASLEEP_PATH, ValueKind::Bytes, &bytes)
                    .map_err(SleepError::Store)
            });
        written.inspect_err(|_| services.kernel.code().release(extent))?;
        self.written = Some(extent);
        let until = self.until.take();
        if let Some(until) = until {
            services.endpoint.announce_sleep(until.since(moment.now));
        }
        Ok(until.is_some())
    }

    /// Takes back what was written down for a sleep, where the power didn't go off: a later start must not
    /// take it up, as the node has gone on since. Every poll and every datagram do so first.
    pub(crate) fn stay_awake<F: Flash>(&mut self, services: &mut Services<F>) {
        // No sleep was written down.
        let Some(extent) = self.written else { return };
        // While the record stands, its place isn't given to others; the next poll tries again.
        if services.kernel.store().delete(SEALED_TREE, ASLEEP_PATH).is_ok() {
            self.written = None;
            services.kernel.code().release(extent);
        }
    }

    /// How long the deep sleep was that the node woke from.
    pub(crate) fn slept(&self) -> Option<Duration> {
        self.slept
    }

    /// Goes on where the boot before fell asleep. What can't be taken up is left, and the machines
    /// start afresh, as after any other start.
    pub(crate) fn wake_up<F: Flash>(
        &mut self,
        state: &mut Sleeper<'_, F>,
        asleep: &Asleep,
        moment: &mut Moment<'_>,
    ) {
        let at = Instant::from_micros(asleep.at_us);
        // Of an earlier boot, or the clock was lost with the power: then it was no sleep.
        if asleep.boots.checked_add(1) != Some(state.services.identity.boots) || moment.now < at {
            return;
        }
        if let Some(rest) = state.unpack(asleep, moment) {
            let slept = moment.now.since(at);
            self.slept = Some(slept);
            self.quiet_at = moment.now;
            self.go_on_from(&rest, moment.now);
            state.services.kernel.announce_wake(slept);
        }
    }

    /// Goes on with what was left of the sleeps that may end before their time; this may be one of them.
    fn go_on_from(&mut self, rest: &RestOfNight, now: Instant) {
        self.disturbed = Bucket::of(rest.disturbed.0, Instant::from_micros(rest.disturbed.1));
        let until = rest.until_us.map(Instant::from_micros);
        if until.is_none_or(|until| now + EARLY < until) {
            self.disturbed.take(DISTURBED, now);
        }
    }

    /// The state that the next start needs.
    fn rest(&self) -> RestOfNight {
        let (tokens, at) = self.disturbed.counted();
        let until_us = self.until.map(Instant::as_micros);
        RestOfNight { until_us, disturbed: (tokens, at.as_micros()) }
    }
}

/// Where a sleeping device stands, as its store says.
#[derive(Serialize, Deserialize)]
pub(crate) struct Asleep {
    /// The boot that fell asleep.
    boots: u32,
    /// When.
    at_us: u64,
    extent: Extent,
    key: [u8; 32],
}

/// The state that a device takes along beside its store's.
#[derive(Serialize, Deserialize)]
struct Luggage {
    kernel: Vec<u8>,
    sessions: Rest<Address>,
    /// Calls of machines that the sessions carry.
    outbound: Vec<(CallHandle, CallId, MachineId, PublicKey)>,
    peers: Vec<(PublicKey, Address, Option<Epoch>, bool)>,
    /// When the wall clock was told, in microseconds, what it was then in seconds, and who told it.
    told_time: Option<(u64, u64, Teller)>,
    /// The latest time that leases went by, in milliseconds, and when that was, in microseconds.
    lease_time: Option<(u64, u64)>,
    /// How far the hub may still move the time that leases go by, in seconds.
    hub_jump_left_s: u64,
    /// How often in a row the hub was silent, and when to ask it again, in microseconds.
    hub_pace: (u32, Option<u64>),
    tickets: u64,
    /// The calls from outside that machines serve.
    served: Vec<(Ticket, IncomingCallHandle, MachineId)>,
    log_lines: u64,
    night: RestOfNight,
}

/// A sleep's end, and how many may still end before their time.
#[derive(Serialize, Deserialize)]
struct RestOfNight {
    /// Until when the device meant to sleep, in microseconds.
    until_us: Option<u64>,
    /// The sleeps that may still end before their time, and when they were counted, in microseconds.
    disturbed: (u32, u64),
}

/// Takes the record of a sleep out of the store, so that no later start finds it.
pub(crate) fn take_asleep<F: Flash>(store: &mut Store<F>) -> Option<Asleep> {
    let found = store.get(SEALED_TREE, ASLEEP_PATH).ok().flatten();
    let is_there = found.is_some() || store.exists(SEALED_TREE, ASLEEP_PATH).unwrap_or(true);
    if is_there {
        store.delete(SEALED_TREE, ASLEEP_PATH).ok()?;
    }
    postcard::from_bytes(&found?.bytes).ok()
}

/// The work of a node that keeps it awake.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Doings {
    /// The last poll's answer.
    pub(crate) next_wake: Wake,
    /// Whether a firmware arrives, or is on trial.
    pub(crate) is_updating: bool,
    /// Whether a machine serves a call from outside.
    pub(crate) is_serving: bool,
}

/// The parts of a node whose state goes over a deep sleep.
pub(crate) struct Sleeper<'a, F> {
    pub(crate) services: &'a mut Services<F>,
    pub(crate) clock: &'a mut Clock,
    pub(crate) meter: &'a mut Meter,
    pub(crate) hub: &'a mut Registration,
    pub(crate) outbound: &'a mut Outbound,
    pub(crate) peers: &'a mut Peers,
    pub(crate) serving: &'a mut Serving,
    pub(crate) log: &'a mut Log,
}

impl<F: Flash> Sleeper<'_, F> {
    /// Everything to be taken along.
    fn pack(&mut self, rhythm: &Rhythm) -> Result<Vec<u8>, SleepError> {
        let outbound: Vec<_> = self
            .outbound
            .under_way()
            .filter_map(|(handle, purpose)| match purpose {
                Purpose::Machine { id, from, to } => Some((*handle, *id, *from, *to)),
                _ => None,
            })
            .collect();
        let carried = |handle: CallHandle| outbound.iter().any(|one| one.0 == handle);
        let (silences, register_at) = self.hub.pace();
        let luggage = Luggage {
            sessions: self.services.endpoint.rest(carried),
            peers: self.peers.list(),
            told_time: self
                .clock
                .told
                .map(|told| (told.at.as_micros(), told.unix.seconds, told.by)),
            lease_time: self.meter.latest().known.map(|(ms, at)| (ms, at.as_micros())),
            hub_jump_left_s: self.clock.hub_jump_left_s,
            hub_pace: (silences, register_at.map(Instant::as_micros)),
            tickets: self.serving.tickets(),
            served: self.serving.calls().collect(),
            log_lines: self.log.lines(),
            night: rhythm.rest(),
            kernel: self.services.kernel.fall_asleep().map_err(SleepError::Kernel)?,
            outbound,
        };
        postcard::to_allocvec(&luggage).map_err(|_| SleepError::Kernel(KernelSleepError::Memory))
    }

    fn unpack(&mut self, asleep: &Asleep, moment: &mut Moment<'_>) -> Option<RestOfNight> {
        let mut sealed = self.services.kernel.code().view(asleep.extent).ok()?.to_vec();
        let key = AeadKey::from_bytes(&asleep.key);
        let bytes = key.open(&Nonce::from_counter(0), BUILD, &mut sealed).ok()?;
        let luggage: Luggage = postcard::from_bytes(bytes).ok()?;
        let config = self.services.config.rpc.clone();
        let endpoint = Endpoint::wake(config, moment.now, moment.entropy, luggage.sessions).ok()?;
        let under_way: Vec<CallId> = luggage.outbound.iter().map(|one| one.1).collect();
        self.services.kernel.wake_up(&luggage.kernel, moment.now, &under_way).ok()?;
        self.services.endpoint = endpoint;
        for (handle, id, from, to) in luggage.outbound {
            self.outbound.insert(handle, Purpose::Machine { id, from, to });
        }
        for (key, address, epoch, is_known) in luggage.peers {
            self.peers.heard(moment.now, key, address, epoch, is_known);
        }
        if let Some((at, seconds, by)) = luggage.told_time {
            let (at, unix) = (Instant::from_micros(at), UnixTime { seconds });
            self.clock.told = Some(ToldTime { at, unix, by });
        }
        if let Some((ms, at_us)) = luggage.lease_time {
            self.meter.go_on_from(ms, Instant::from_micros(at_us));
        }
        self.clock.hub_jump_left_s = luggage.hub_jump_left_s;
        let (silences, register_at) = luggage.hub_pace;
        self.hub.keep_pace((silences, register_at.map(Instant::from_micros)));
        let (tickets, served) = (luggage.tickets, luggage.served);
        self.serving.go_on(self.services, moment.now, tickets, served);
        self.log.go_on_from(luggage.log_lines);
        Some(luggage.night)
    }
}

/// Why a device didn't fall asleep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SleepError {
    /// The state of machines can't be written down.
    Kernel(KernelSleepError),
    /// Code flash has no room, or failed.
    Code(CodeError),
    /// The store has no room, or failed.
    Store(SetError),
    /// There is no randomness for a key.
    Entropy,
}

impl fmt::Display for SleepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kernel(error) => write!(f, "{error}"),
            Self::Code(error) => write!(f, "{error}"),
            Self::Store(error) => write!(f, "the store: {error}"),
            Self::Entropy => f.write_str("there is no randomness"),
        }
    }
}

impl core::error::Error for SleepError {}
