//! Promises of a device under siege, checked all the while; the first promise that is broken is kept.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tenure_crypto::sha256;
use tenure_hal::Instant;
use tenure_mesh::frame::Header;
use tenure_rpc::NoResult;
use tenure_wire::control::{LogPage, MachineList};
use tenure_wire::{Digest, MachineId, Name};

use super::tally::Tally;
use super::watched::Seen;
use super::{SIEGE_US, VICTIM, machines};

/// How long one wish of the owner's may take, tries that failed and lost datagrams included.
const OWNER_WAITS_MAX: Duration = Duration::from_secs(5);
/// How long a newcomer's first call may take.
const NEWCOMER_WAITS_MAX: Duration = Duration::from_secs(30);
/// How long a machine that says something each half second may be silent.
const TICKER_SILENT_US_MAX: u64 = 15_000_000;
/// Bytes that go to an address, for each that came from there.
const AMPLIFICATION_MAX: usize = 3;
/// The bytes that a machine may log in a second, and how many seconds' worth it may log at once; lines count
/// more than text.
const LOG_BYTES_PER_SECOND: u64 = 1_024;
const LOG_BURST_S: u64 = 24;
/// Bytes programmed into the store beside the budgets of machines: for each start, in each minute, for
/// each installation, and for each change of a secret, of which a tenant has so many.
const BOOT_BYTES: u64 = 4_096;
const MINUTE_BYTES: u64 = 4_096;
const INSTALLATION_BYTES: u64 = 1_024;
const CHANGE_BYTES: u64 = 512;
const CHANGES_MAX: u64 = 33;
/// How often the store may write what it keeps anew to reclaim room.
const RECLAIM_FACTOR: u64 = 2;
/// Signatures that the device makes, and verifies for others, beside what the owner asks for.
const SIGNED_MAX: u64 = 24;
const SIGNED_EVERY_S: u64 = 12;
const VERIFIED_MAX: u64 = 2 * 64;
const VERIFIED_PER_SECOND: u64 = 3;
const VERIFIED_AN_INSTALLATION: u64 = 6;
/// The longest text of a machine that is of any use.
const TEXT_BYTES_MAX: usize = 1_024;
/// Registrations: at once, beside those of a third of a record's life, of installations and of starts.
const REGISTERED_MAX: u64 = 4;
const REGISTERED_EVERY_S: u64 = 18;
/// The end of the siege's aftermath; from then on values must stand still.
const STILL_US: u64 = SIEGE_US + 45_000_000;

/// The promises and what is known of how they are kept.
#[derive(Default)]
pub(super) struct Promises {
    pub(super) tally: Tally,
    broken: Option<String>,
    now_us: u64,
    machines: BTreeMap<&'static str, MachineId>,
    budgets_bytes: u64,
    listed: BTreeSet<MachineId>,
    owner_since: Option<Instant>,
    newcomers_since: Option<Instant>,
    booted_us: u64,
    boots: u64,
    ticked_us: u64,
    installations: u64,
    /// Of these, those that the owner made during the siege.
    late_installations: u64,
    secrets_changed: u64,
    guest_logged: u64,
    from_victim: usize,
    to_victim: usize,
    acknowledged: u32,
    /// Of that, what was acknowledged when the owner asked for the value.
    acknowledged_then: u32,
    at_rest: Option<u32>,
    frames: BTreeMap<Vec<u8>, Digest>,
    signed: u64,
    verified: u64,
}

impl Promises {
    fn broken(&mut self, what: String) {
        let seconds = self.now_us as f64 / 1e6;
        self.broken.get_or_insert_with(|| format!("{what} (at {seconds:.3} s)"));
    }

    fn holds(&mut self, promise: &str, is_kept: bool, what: impl FnOnce() -> String) {
        if !is_kept {
            self.broken(format!("{promise}: {}", what()));
        }
    }

    /// Looks at all that time alone can break.
    pub(super) fn check(&mut self, now_us: u64) -> Result<(), String> {
        self.now_us = now_us;
        let now = Instant::from_micros(now_us);
        let waited = |since: Option<Instant>| since.map_or(Duration::ZERO, |at| now.since(at));
        let (owner, newcomer) = (waited(self.owner_since), waited(self.newcomers_since));
        self.holds("the owner is served", owner <= OWNER_WAITS_MAX, || {
            format!("not for {} s", owner.as_secs())
        });
        self.holds("neighbours' callers are served", newcomer <= NEWCOMER_WAITS_MAX, || {
            format!("not for {} s", newcomer.as_secs())
        });
        let silent_us = now_us - self.ticked_us;
        self.holds("neighbours run", silent_us <= TICKER_SILENT_US_MAX, || {
            format!("the ticker is silent for {} s", silent_us / 1_000_000)
        });
        self.broken.take().map_or(Ok(()), Err)
    }

    /// Returns the counts of the run, if no promise was broken.
    pub(super) fn close(mut self, now_us: u64) -> Result<Tally, String> {
        self.check(now_us)?;
        let (owner, newcomers) = (self.tally.owner_served, self.tally.newcomers_served);
        if owner < 20 || newcomers < 5 {
            return Err(format!(
                "the world is alive: {owner} calls and {newcomers} newcomers served"
            ));
        }
        Ok(self.tally)
    }

    pub(super) fn booted(&mut self, now_us: u64) {
        (self.now_us, self.booted_us, self.ticked_us) = (now_us, now_us, now_us);
        self.guest_logged = 0;
        self.boots += 1;
    }

    pub(super) fn installed(&mut self, name: &'static str, id: MachineId, flash_bytes: u32) {
        self.machines.insert(name, id);
        self.budgets_bytes += u64::from(flash_bytes);
        self.installations += 1;
    }

    pub(super) fn logged(&mut self, now_us: u64, machine: &Name, message: &str) {
        if machine.as_str() == machines::TICKER {
            self.ticked_us = now_us;
        }
        if machine.as_str() == machines::GUEST && message.len() >= 200 {
            self.guest_logged += message.len() as u64;
            let seconds = (now_us - self.booted_us) / 1_000_000 + LOG_BURST_S;
            let (logged, may) = (self.guest_logged, seconds * LOG_BYTES_PER_SECOND);
            self.holds("a machine logs within its budget", logged <= may, || {
                format!("{logged} bytes, where it may {may}")
            });
        }
    }

    pub(super) fn heard_from(&mut self, place: usize, bytes: usize) {
        if place == VICTIM {
            self.from_victim += bytes;
        }
    }

    pub(super) fn sent_to(&mut self, place: usize, bytes: usize) {
        if place != VICTIM {
            return;
        }
        self.to_victim += bytes;
        let (from, to) = (self.from_victim, self.to_victim);
        self.holds("no more than thrice the bytes", to <= AMPLIFICATION_MAX * from, || {
            format!("{to} to an address that seemed to send {from}")
        });
    }

    /// A frame that the device sends: its number, which its nonce is made of, is its own.
    pub(super) fn sent_frame(&mut self, frame: &[u8]) {
        let Ok((header, _)) = Header::parse(frame) else { return };
        let number = header.number;
        let key = [
            number.salt.as_slice(),
            &number.sender.to_bytes(),
            &number.epoch.to_le_bytes(),
            &number.sequence.to_le_bytes(),
        ];
        let digest = sha256(&[frame]);
        let before = self.frames.insert(key.concat(), digest);
        self.holds("no frame number is used twice", before.is_none_or(|it| it == digest), || {
            format!("{number:?}")
        });
    }

    /// The device took one more change of the hostile tenant's secrets. It counts them anew at each start.
    pub(super) fn secret_changed(&mut self) {
        self.secrets_changed += 1;
        let (changes, may) = (self.secrets_changed, CHANGES_MAX * self.boots);
        self.holds("secrets wear flash within their number", changes <= may, || {
            format!("{changes} changes, where {may} may be")
        });
    }

    pub(super) fn programmed(&mut self, bytes: u64) {
        self.tally.programmed_bytes = bytes;
        let beside = self.boots * BOOT_BYTES
            + (self.now_us / 60_000_000 + 1) * MINUTE_BYTES
            + self.installations * INSTALLATION_BYTES
            + CHANGES_MAX * self.boots * CHANGE_BYTES;
        let may = RECLAIM_FACTOR * (self.budgets_bytes + beside);
        self.holds("flash wears within the budgets", bytes <= may, || {
            format!("{bytes} bytes programmed, where {may} may be")
        });
    }

    pub(super) fn registered(&mut self) {
        self.tally.registrations += 1;
        let regular = self.now_us / 1_000_000 / REGISTERED_EVERY_S;
        let may = REGISTERED_MAX + regular + self.late_installations + 2 * self.boots;
        let count = self.tally.registrations;
        self.holds("strangers don't set the pace of registrations", count <= may, || {
            format!("{count}, where {may} may be")
        });
    }

    /// Notes the device's uses of its keys between two readings of their counters.
    pub(super) fn watched(&mut self, before: &Seen, after: &Seen) {
        self.signed += after.signed - before.signed;
        self.verified += after.verified - before.verified;
        self.tally.sealed = after.sealed;
        self.tally.signatures = self.signed + self.verified;
        let (seconds, installations) = (self.now_us / 1_000_000, self.installations);
        let signed_max = SIGNED_MAX
            + seconds / SIGNED_EVERY_S
            + 2 * (installations + self.boots)
            + self.tally.registrations;
        let signed = self.signed;
        self.holds("signatures are made within a limit", signed <= signed_max, || {
            format!("{signed} were, where {signed_max} may be")
        });
        let verified_max =
            VERIFIED_MAX + seconds * VERIFIED_PER_SECOND + installations * VERIFIED_AN_INSTALLATION;
        let verified = self.verified;
        self.holds("signatures are verified within a limit", verified <= verified_max, || {
            format!("{verified} were, where {verified_max} may be")
        });
        let text_bytes = after.text_bytes_max;
        self.holds("no text is read beyond its limit", text_bytes <= TEXT_BYTES_MAX, || {
            format!("{text_bytes} bytes were")
        });
        if let Some(what) = &after.nonce_used_twice {
            self.broken(format!("no nonce is used twice under a key: {what}"));
        }
    }

    pub(super) fn owner_waits_since(&mut self, since: Option<Instant>) {
        self.owner_since = since;
    }

    pub(super) fn owner_served(&mut self, waited: Duration) {
        self.owner_since = None;
        self.tally.owner_served += 1;
        let waited_ms = waited.as_millis() as u64;
        self.tally.owner_waited_ms_max = self.tally.owner_waited_ms_max.max(waited_ms);
    }

    /// The owner's call was refused for want of room.
    pub(super) fn owner_refused(&mut self, why: &NoResult) {
        let is_refused = matches!(why, NoResult::Busy);
        self.holds("the owner's calls run beside those of others", !is_refused, || {
            format!("{why:?}")
        });
    }

    pub(super) fn newcomers_wait_since(&mut self, since: Option<Instant>) {
        self.newcomers_since = since;
    }

    /// A call failed that may be made again; what it was told must make sense.
    pub(super) fn newcomer_failed(&mut self, failure: &NoResult) {
        let makes_sense = !matches!(failure, NoResult::NoSuchFunction);
        self.holds("neighbours stay as they are", makes_sense, || format!("{failure:?}"));
    }

    /// The keeper has counted a newcomer's call.
    pub(super) fn counted(&mut self, waited: Duration, reply: &[u8]) {
        self.tally.newcomers_served += 1;
        let waited_ms = waited.as_millis() as u64;
        self.tally.newcomer_waited_ms_max = self.tally.newcomer_waited_ms_max.max(waited_ms);
        if let Some(number) = number_in(reply) {
            self.acknowledged = self.acknowledged.max(number);
        }
    }

    /// The owner asks what the keeper has counted to: what is acknowledged by now is in the answer.
    pub(super) fn value_asked(&mut self) {
        self.acknowledged_then = self.acknowledged;
    }

    /// The owner reads what the keeper has counted to.
    pub(super) fn value_read(&mut self, now: Instant, reply: &[u8]) {
        let value = number_in(reply).unwrap_or(0);
        let acknowledged = self.acknowledged_then;
        self.holds("no acknowledged value is lost", value >= acknowledged, || {
            format!("{value} is left of {acknowledged}")
        });
        if now.as_micros() >= STILL_US {
            let at_rest = *self.at_rest.get_or_insert(value);
            self.holds("no call runs long after its caller gave up", value == at_rest, || {
                format!("{value} were counted, where {at_rest} were")
            });
        }
    }

    /// A page of the list of machines.
    pub(super) fn listed(&mut self, skip: u32, page: &MachineList) {
        if skip == 0 {
            self.listed.clear();
        }
        self.listed.extend(page.machines.iter().map(|machine| machine.id));
        for machine in &page.machines {
            let is_over = machine.state == "over";
            let what = || format!("the lease of {} is over", machine.name);
            self.holds("no machine is lost", !is_over, what);
        }
    }

    /// The last page of that was read.
    pub(super) fn listed_all(&mut self, _now: Instant) {
        let gone: Vec<&str> = self
            .machines
            .iter()
            .filter(|(_, id)| !self.listed.contains(*id))
            .map(|(name, _)| *name)
            .collect();
        self.holds("no machine is lost", gone.is_empty(), || gone.join(", "));
        self.tally.listed += u64::from(self.now_us < SIEGE_US);
    }

    /// The owner reads the log of a machine that said something important when it started.
    pub(super) fn log_read(&mut self, now: Instant, page: &LogPage) {
        let has_started = now.as_micros() > self.booted_us + 10_000_000;
        let is_there = page.lines.iter().any(|line| line.message == machines::IMPORTANT);
        self.holds("no machine's log is drowned", is_there || !has_started, || {
            format!("{} lines, and not the important one", page.lines.len())
        });
    }

    /// The owner had a machine installed.
    pub(super) fn installed_late(&mut self) {
        self.installations += 1;
        self.late_installations += 1;
        self.tally.installed += 1;
    }
}

fn number_in(reply: &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(reply.try_into().ok()?))
}
