//! Looks from another port whether devices answer others than their hub. A router or a firewall lets in only those to whom
//! the device spoke before, as a rule: then it is reached by the hub alone.
//!
//! Invariants:
//! - A device is looked at when it registers, if it came from another address than before or the last look is
//!   [`LOOK_AGAIN`] old; no more often.
//! - A look is [`QUESTIONS_MAX`] questions, each as long as its answer.
//! - A device behind a connection is shut without a question: nothing but that connection leads to it.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;

use tenure_hal::{Entropy, Instant};
use tenure_wire::carried::is_carried;
use tenure_wire::datagram::{Challenge, Datagram, Echo, Probe};
use tenure_wire::{Address, PublicKey};

/// How often a device is asked before it counts as shut.
const QUESTIONS_MAX: u8 = 3;
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_millis(700);
/// How long a verdict counts.
const LOOK_AGAIN: Duration = Duration::from_secs(5 * 60);

/// Whether a device answers others than the hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It wasn't looked yet.
    Unknown,
    /// It answers whoever asks.
    Open,
    /// It answers nobody else.
    Shut,
}

/// What a look at a device came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Judged {
    /// The device, by the key of its own machine.
    pub(crate) device: PublicKey,
    /// Whether it answers others than the hub.
    pub(crate) is_open: bool,
    /// Whether that is another verdict than before.
    pub(crate) is_news: bool,
}

/// The looks at all devices.
pub(crate) struct Looks {
    is_on: bool,
    devices: BTreeMap<PublicKey, Look>,
    /// Those that are under way.
    under_way: Vec<PublicKey>,
    questions: VecDeque<(Address, Vec<u8>)>,
}

#[derive(Clone, Debug)]
struct Look {
    address: Address,
    verdict: Verdict,
    nonce: [u8; 16],
    questions: u8,
    /// When to ask again, or to judge; else when the verdict came.
    at: Instant,
}

impl Looks {
    /// Looks at devices if a board sends and receives from another port too, and else judges nobody.
    pub(crate) fn new(is_on: bool) -> Self {
        let (devices, under_way, questions) = (BTreeMap::new(), Vec::new(), VecDeque::new());
        Self { is_on, devices, under_way, questions }
    }

    /// The verdict on a device where it was last heard.
    pub(crate) fn verdict(&self, device: &PublicKey, address: &Address) -> Verdict {
        let look = self.devices.get(device).filter(|look| look.address == *address);
        look.map_or(Verdict::Unknown, |look| look.verdict)
    }

    /// Looks at a device that registers from `address`, if it is time to.
    pub(crate) fn note(
        &mut self,
        now: Instant,
        entropy: &mut dyn Entropy,
        device: PublicKey,
        address: &Address,
    ) {
        if !self.is_on || self.under_way.contains(&device) {
            return;
        }
        let before = self.devices.get(&device).filter(|look| look.address == *address);
        if before.is_some_and(|look| now.since(look.at) < LOOK_AGAIN) {
            return;
        }
        let verdict = before.map_or(Verdict::Unknown, |look| look.verdict);
        let mut nonce = [0; 16];
        if entropy.fill(&mut nonce).is_err() {
            return;
        }
        let questions = if is_carried(address) { QUESTIONS_MAX } else { 0 };
        let look = Look { address: address.clone(), verdict, nonce, questions, at: now };
        self.devices.insert(device, look);
        self.under_way.push(device);
    }

    /// Forgets the devices that aren't `listed`: as many looks stay as there are devices.
    pub(crate) fn retain(&mut self, listed: impl Fn(&PublicKey) -> bool) {
        self.devices.retain(|device, _| listed(device));
    }

    /// How many devices were looked at.
    pub(crate) fn len(&self) -> usize {
        self.devices.len()
    }

    /// Asks again, and judges who was silent.
    pub(crate) fn poll(&mut self, now: Instant) -> Vec<Judged> {
        let Self { devices, under_way, questions, .. } = self;
        let mut judged = Vec::new();
        under_way.retain(|device| {
            let Some(look) = devices.get_mut(device) else { return false };
            if look.at > now {
                return true;
            }
            if look.questions == QUESTIONS_MAX {
                judged.push(look.judge(now, *device, Verdict::Shut));
                return false;
            }
            look.questions += 1;
            look.at = now + PATIENCE;
            let question = Probe { nonce: Echo(look.nonce) }.to_bytes();
            questions.push_back((look.address.clone(), question.to_vec()));
            true
        });
        judged
    }

    /// When to ask again, or to judge.
    pub(crate) fn poll_at(&self) -> Option<Instant> {
        self.under_way
            .iter()
            .filter_map(|device| self.devices.get(device))
            .map(|look| look.at)
            .min()
    }

    /// Takes what came to the other port; returns the verdict on the device that sent it.
    pub(crate) fn answer(
        &mut self,
        now: Instant,
        from: &Address,
        datagram: &[u8],
    ) -> Option<Judged> {
        let Ok(Datagram::Challenge(Challenge { echo, key, .. })) = Datagram::parse(datagram) else {
            return None;
        };
        let position = self.under_way.iter().position(|device| *device == key)?;
        let look = self.devices.get_mut(&key)?;
        if look.nonce != echo.0 || look.address != *from {
            return None;
        }
        self.under_way.swap_remove(position);
        Some(look.judge(now, key, Verdict::Open))
    }

    /// The next question to send from the other port.
    pub(crate) fn question(&mut self) -> Option<(Address, Vec<u8>)> {
        self.questions.pop_front()
    }
}

impl Look {
    fn judge(&mut self, now: Instant, device: PublicKey, verdict: Verdict) -> Judged {
        let is_news = self.verdict != verdict;
        (self.verdict, self.at) = (verdict, now);
        Judged { device, is_open: verdict == Verdict::Open, is_news }
    }
}

#[cfg(test)]
mod tests;
