//! Handshakes that others ask for and that may wait: for an end whose peers come all at once.

use core::time::Duration;

use tenure_hal::Instant;
use tenure_wire::datagram::{Datagram, Deferral, Initiation};

use super::Endpoint;
use crate::PeerAddress;

/// An initiation that this endpoint would compute a handshake for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandshakeRequest {
    /// Whether its sender has shown that it receives at its address.
    pub is_shown: bool,
}

impl<A: PeerAddress> Endpoint<A> {
    /// Whether that datagram asks for a new handshake, which costs far more than any other. Nothing happens yet: hand it
    /// to [`Self::receive`] now or later, or answer it by [`Self::challenge_request`] or [`Self::defer_request`].
    pub fn handshake_request(
        &mut self,
        now: Instant,
        from: &A,
        datagram: &[u8],
    ) -> Option<HandshakeRequest> {
        let initiation = initiation(datagram)?;
        self.station.machines.get(&initiation.destination)?;
        if !self.station.gate.accepts(now, &initiation.epoch) {
            return None;
        }
        let is_shown = self.station.gate.shows_address(now, from, &initiation);
        let is_new = self.station.gate.repeated(from, &initiation.echo(), is_shown).is_none();
        is_new.then_some(HandshakeRequest { is_shown })
    }

    /// Asks the sender of an initiation to show that it receives at its address.
    pub fn challenge_request(&mut self, now: Instant, from: A, datagram: &[u8]) {
        if let Some(initiation) = initiation(datagram) {
            self.station.challenge(now, from, initiation.echo());
        }
    }

    /// Tells the sender of an initiation to send it again after `again_in`.
    pub fn defer_request(&mut self, from: A, datagram: &[u8], again_in: Duration) {
        if let Some(initiation) = initiation(datagram) {
            let again_in_ms =
                u32::try_from(again_in.as_micros().div_ceil(1_000)).unwrap_or(u32::MAX);
            let deferral = Deferral { echo: initiation.echo(), again_in_ms };
            self.station.outbox.push_unasked(from, deferral.to_bytes().to_vec());
        }
    }
}

fn initiation(datagram: &[u8]) -> Option<Initiation<'_>> {
    match Datagram::parse(datagram) {
        Ok(Datagram::Initiation(initiation)) => Some(initiation),
        _ => None,
    }
}
