//! Addresses that have proved that they receive what is sent to them (RFC 9175 §2.4), and secrets of the messages.
//!
//! An address proves itself by an Echo option with the value that was sent to it. Until then it gets at most
//! [`FACTOR`] times what it sent, so that nobody gains much by sending in another's name.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tenure_crypto::{equal, hmac_sha256};
use tenure_hal::Instant;

use crate::message::{ECHO_BYTES, MESSAGE_BYTES_MAX};

/// How many times the bytes of its request an address gets that has proved nothing, headers of IP and UDP included.
pub(crate) const FACTOR: usize = 3;
/// How long a proof counts, and how long a value for Echo at least.
const PROOF_LASTS: Duration = Duration::from_secs(600);
/// The most addresses whose proofs are remembered.
const PROOFS_MAX: usize = 256;

/// The purposes of the secret.
const FOR_ECHO: &[u8] = b"echo";
const FOR_IDS: &[u8] = b"ids";
const FOR_CHANCE: &[u8] = b"chance";

/// A secret that the server alone knows, and the addresses that have proved themselves.
pub(crate) struct Proofs {
    secret: [u8; 32],
    proved: BTreeMap<IpAddr, Instant>,
    drawn: u64,
}

impl Proofs {
    pub(crate) fn new(secret: [u8; 32]) -> Self {
        Self { secret, proved: BTreeMap::new(), drawn: 0 }
    }

    /// Judges the Echo option of a request.
    pub(crate) fn judge(&mut self, now: Instant, peer: SocketAddr, echo: &[u8]) {
        let period = period_at(now);
        let periods = [period, period.saturating_sub(1)];
        if !periods.iter().any(|period| equal(&self.echo_of(*period, peer), echo)) {
            return;
        }
        if self.proved.len() >= PROOFS_MAX {
            self.proved.retain(|_, until| now < *until);
        }
        if self.proved.len() >= PROOFS_MAX {
            self.proved.pop_first();
        }
        self.proved.insert(peer.ip(), now + PROOF_LASTS);
    }

    /// The value by which an address proves itself.
    pub(crate) fn echo_for(&self, now: Instant, peer: SocketAddr) -> [u8; ECHO_BYTES] {
        self.echo_of(period_at(now), peer)
    }

    /// Whether an address has proved itself lately.
    pub(crate) fn is_proved(&self, now: Instant, peer: SocketAddr) -> bool {
        self.proved.get(&peer.ip()).is_some_and(|until| now < *until)
    }

    /// The longest datagram for an address that has sent one of `request_bytes`, and whether that is all that it will get
    /// until it proves itself.
    pub(crate) fn room(&self, now: Instant, peer: SocketAddr, request_bytes: usize) -> Room {
        if self.is_proved(now, peer) {
            return Room { bytes: MESSAGE_BYTES_MAX, is_proved: true };
        }
        let headers = if peer.ip().to_canonical().is_ipv4() { 20 + 8 } else { 40 + 8 };
        let bytes = FACTOR * (request_bytes + headers) - headers;
        Room { bytes: bytes.min(MESSAGE_BYTES_MAX), is_proved: false }
    }

    /// A peer's place among message ids, so that nobody knows those of another from its own.
    pub(crate) fn id_offset(&self, peer: SocketAddr) -> u16 {
        let code = hmac_sha256(&self.secret, &[FOR_IDS, peer.to_string().as_bytes()]);
        u16::from_be_bytes([code[0], code[1]])
    }

    /// A number of 16 bits at random.
    pub(crate) fn draw(&mut self) -> u16 {
        self.drawn += 1;
        let code = hmac_sha256(&self.secret, &[FOR_CHANCE, &self.drawn.to_be_bytes()]);
        u16::from_be_bytes([code[0], code[1]])
    }

    fn echo_of(&self, period: u64, peer: SocketAddr) -> [u8; ECHO_BYTES] {
        let peer = peer.ip().to_string();
        let code = hmac_sha256(&self.secret, &[FOR_ECHO, &period.to_be_bytes(), peer.as_bytes()]);
        *code.first_chunk().expect("a code of 32 bytes has 8")
    }
}

/// The bytes that an address may get at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    pub(crate) bytes: usize,
    pub(crate) is_proved: bool,
}

fn period_at(now: Instant) -> u64 {
    now.as_micros() / PROOF_LASTS.as_micros() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_that_echoes_its_own_value_in_time_gets_long_messages_for_a_while() {
        let (peer, other) = (([192, 0, 2, 1], 1).into(), ([192, 0, 2, 2], 1).into());
        let mut proofs = Proofs::new([7; 32]);
        let now = Instant::BOOT + Duration::from_secs(599);
        let echo = proofs.echo_for(now, peer);
        let unproved = Room { bytes: 3 * (20 + 28) - 28, is_proved: false };
        for (from, value) in
            [(other, &echo[..]), (peer, &echo[..7]), (peer, b"12345678"), (peer, b"")]
        {
            proofs.judge(now, from, value);
            assert_eq!(proofs.room(now, from, 20), unproved);
        }
        let later = now + Duration::from_secs(2);
        assert_ne!(proofs.echo_for(later, peer), echo);
        proofs.judge(later, peer, &echo);
        assert_eq!(
            proofs.room(later, peer, 20),
            Room { bytes: MESSAGE_BYTES_MAX, is_proved: true }
        );
        assert_eq!(proofs.room(later + PROOF_LASTS, peer, 20), unproved);
        let much_later = now + 2 * PROOF_LASTS;
        proofs.judge(much_later, peer, &echo);
        assert_eq!(proofs.room(much_later, peer, 20), unproved, "an old value proves nothing");
        assert_eq!(
            Proofs::new([8; 32]).echo_for(now, peer),
            Proofs::new([8; 32]).echo_for(now, peer)
        );
        assert_ne!(Proofs::new([8; 32]).echo_for(now, peer), echo);
    }

    #[test]
    fn proofs_that_are_remembered_are_bounded() {
        let (mut proofs, now) = (Proofs::new([7; 32]), Instant::BOOT);
        for host in 0..1000_u16 {
            let [high, low] = host.to_be_bytes();
            let peer = ([10, 0, high, low], 1).into();
            let echo = proofs.echo_for(now, peer);
            proofs.judge(now, peer, &echo);
            assert!(proofs.room(now, peer, 20).is_proved);
        }
        assert_eq!(proofs.proved.len(), PROOFS_MAX);
    }
}
