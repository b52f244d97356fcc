//! Sessions that come of handshakes, from both ends.

use alloc::vec::Vec;

use tenure_crypto::StaticSecret;
use tenure_hal::{Entropy, Instant};
use tenure_wire::datagram::{Initiation, RefusalReason, Response, SessionIndex};
use tenure_wire::frame::{Frame, FrameError, Greeting, Message};

use super::Endpoint;
use super::opening::{PROTOCOL, remembers_since};
use super::station::Station;
use crate::PeerAddress;
use crate::calls::{SentTo, Step};
use crate::gate::{Acceptance, Admission, Repeated};
use crate::lateness::FIRST_FRAME;
use crate::noise::Invited;
use crate::session::{Opening, Pair, Reach, Session};

impl<A: PeerAddress> Endpoint<A> {
    pub(super) fn on_response(&mut self, now: Instant, from: A, response: &Response<'_>) {
        let answered = self.station.peers.list.iter_mut().find_map(|peer| {
            let handshake = peer.handshake.as_mut()?;
            let Step::Initiating(initiating) = &handshake.step else { return None };
            if initiating.index != response.receiver {
                return None;
            }
            handshake.responses_left = handshake.responses_left.checked_sub(1)?;
            Some((peer.pair, &*handshake, initiating))
        });
        let Some((pair, handshake, initiating)) = answered else { return };
        let Ok((keys, payload)) = initiating.noise.read_response(response.noise) else { return };
        let Ok((remote, greeting, first)) = parse_response(&payload) else { return };
        let measured = (handshake.transmissions == 1).then(|| now.since(handshake.sent_at));
        let (index, rider) = (initiating.index, initiating.rider);
        let is_shown = handshake.sent_to == SentTo::One(from.clone());
        if !self.make_room_for_session(now, &pair, greeting.incarnation, true) {
            // The response will come again when the initiation is.
            return;
        }
        if let Some(peer) = self.station.peers.get_mut(&pair) {
            peer.handshake = None;
            if let Some(measured) = measured {
                peer.round_trip.sample(measured);
            }
        }
        let reaches =
            if is_shown { Reach::Shown } else { Reach::of_one_datagram(response.length()) };
        let session = Session::new(
            now,
            Opening {
                index,
                remote,
                pair,
                incarnation: greeting.incarnation,
                opened_here: true,
                route: from,
                reaches,
                peer_remembers_since: remembers_since(now, &greeting),
                first,
                keys,
            },
        );
        self.station.sessions.add(&self.station.config, session);
        self.outgoing.seat_rider(&self.station, now, index, rider);
        // Confirms the session, and the address, to the responder even if nothing else does.
        self.station.send(index, Frame::Acknowledge);
        self.outgoing.settle(&mut self.station, now, index);
    }

    pub(super) fn on_initiation(
        &mut self,
        now: Instant,
        entropy: &mut dyn Entropy,
        from: A,
        length: usize,
        initiation: &Initiation<'_>,
    ) {
        let station = &mut self.station;
        let echo = initiation.echo();
        if station.machines.get(&initiation.destination).is_none() {
            return station.refuse(now, from, RefusalReason::NoSuchMachine, echo);
        }
        let is_shown = station.gate.shows_address(now, &from, initiation);
        match station.gate.repeated(&from, &echo, is_shown) {
            None => {}
            Some(Repeated::Answer(response)) => return station.outbox.push_unasked(from, response),
            Some(Repeated::AnswerElsewhere(response, index)) => {
                if let Some(session) = station.sessions.get_mut(index) {
                    session.response_is_known_elsewhere();
                }
                return station.outbox.push_unasked(from, response);
            }
            Some(Repeated::Challenge) => return station.challenge(now, from, echo),
        }
        let Station { gate, machines, config, .. } = &mut *station;
        let is_owners = || machines.is_owners(config.owner, initiation);
        match gate.admit(now, &from, &initiation.epoch, is_shown, is_owners) {
            Admission::Admit => self.accept(now, entropy, from, length, initiation),
            Admission::Challenge => station.challenge(now, from, echo),
            Admission::Drop => {}
        }
    }

    fn accept(
        &mut self,
        now: Instant,
        entropy: &mut dyn Entropy,
        from: A,
        length: usize,
        initiation: &Initiation<'_>,
    ) {
        let Some(machine) = self.station.machines.get(&initiation.destination) else { return };
        let prologue: [&[u8]; 2] = [PROTOCOL, initiation.header];
        let known = machine.owner_acquaintance.as_ref().and_then(Option::as_deref);
        let Ok((invited, payload)) =
            Invited::read(&machine.secret, &machine.key, &prologue, initiation.noise, known)
        else {
            return;
        };
        let Ok((greeting, rest)) = Greeting::parse(&payload) else { return };
        let Ok(message) = Message::parse(rest) else { return };
        let Ok(ephemeral) = StaticSecret::generate(entropy) else { return };
        let pair = Pair { local: initiation.destination, peer: invited.peer() };
        if !self.make_room_for_session(now, &pair, greeting.incarnation, false) {
            return;
        }

        let index = self.station.unused_index();
        let mut payload = Vec::new();
        payload.extend_from_slice(&index.0.to_le_bytes());
        let since = self.incoming.callers.complete_since(&pair, greeting.incarnation);
        payload.extend_from_slice(&self.station.greeting(now, since).to_bytes());
        let finished = self.station.peers.finished(&pair);
        Message { finished, frame: FIRST_FRAME }.emit(&mut payload);
        let mut response = Response::header(initiation.sender).to_vec();
        let Ok(keys) = invited.respond(ephemeral, &payload, &mut response) else { return };

        let station = &mut self.station;
        let is_owner = station.config.is_owner(&pair.peer);
        let mut reaches = Reach::of_one_datagram(length);
        reaches.spend(response.len());
        let session = Session::new(
            now,
            Opening {
                index,
                remote: initiation.sender,
                pair,
                incarnation: greeting.incarnation,
                opened_here: false,
                route: from.clone(),
                reaches,
                peer_remembers_since: remembers_since(now, &greeting),
                first: message.frame,
                keys,
            },
        );
        station.sessions.add(&station.config, session);
        let acceptance = Acceptance {
            epoch: initiation.epoch,
            echo: initiation.echo(),
            from: &from,
            session: index,
            response: response.clone(),
        };
        station.gate.accept(now, acceptance);
        station.outbox.push_for(&pair.local, from.clone(), response, is_owner);
        station.saw(&pair, from);
        self.on_message(now, entropy, index, &message);
    }

    /// The opener of a session has shown that it has the keys.
    pub(super) fn on_confirmed(
        &mut self,
        now: Instant,
        entropy: &mut dyn Entropy,
        index: SessionIndex,
    ) {
        let Some(session) = self.station.sessions.get(index) else { return };
        let (pair, incarnation) = (session.pair, session.incarnation);
        self.incoming.send_withheld(&mut self.station, now, &pair, incarnation);
        self.outgoing.settle(&mut self.station, now, index);
        let mut means = self.means(now, entropy);
        self.outgoing.advance(&mut self.station, &mut means, &pair);
    }
}

/// The content of a response: the responder's number for the session, its greeting, the subject of its message.
fn parse_response(payload: &[u8]) -> Result<(SessionIndex, Greeting, Frame<'_>), FrameError> {
    let (index, rest) = payload.split_first_chunk().ok_or(FrameError)?;
    let (greeting, rest) = Greeting::parse(rest)?;
    let Message { frame, .. } = Message::parse(rest)?;
    Ok((SessionIndex(u32::from_le_bytes(*index)), greeting, frame))
}
