//! From one end to the other: each body arrives once, in order, and is acknowledged.
//!
//! Source: stop and wait with sequence numbers (Bartlett, Scantlebury and Wilkinson, CACM 1969),
//! waiting times that double (RFC 6298 §5.5). Between two nodes one body is under way at a time;
//! the others wait in a bounded queue.
//!
//! Per receiver, at the sender:
//!
//! ```text
//!         to be sent               acknowledged, nothing else waits
//!  idle ────────────► under way ─────────────────────────────────────► idle
//!                      │ ▲   │ ▲
//!      time is over:   └─┘   └─┘ acknowledged: the next
//!      sent again; too often: the asker is told No, and the next
//! ```

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_hal::Instant;
use tenure_mesh::{Asker, Awaits, Context, Expires, Hears, NodeId, Protocol, Question, Serves};

use crate::interface::{Acknowledged, DatagramArrived, Port, SendLarge, SendReliably, Taken};

#[cfg(test)]
mod tests;

const WAIT_FIRST: Duration = Duration::from_millis(500);
const WAIT_MAX: Duration = Duration::from_secs(8);

/// The configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// How often a body is sent that isn't acknowledged.
    pub sends_max: u8,
    /// The most bodies that wait.
    pub waiting_max: usize,
    /// The most bytes of theirs.
    pub waiting_bytes_max: usize,
    /// How many senders are remembered.
    pub senders_max: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self { sends_max: 6, waiting_max: 32, waiting_bytes_max: 16 * 1024, senders_max: 64 }
    }
}

/// Bodies that are acknowledged.
#[derive(Debug)]
pub struct Reliable {
    config: Config,
    /// Tells this life of the node from others.
    session: u32,
    sequence: u32,
    /// Requests that wait, first come first; of those to the same node only the first is under way.
    waiting: VecDeque<Waiting>,
    /// The bodies received, by sender: the newest last.
    senders: VecDeque<Sender>,
}

#[derive(Debug)]
struct Waiting {
    to: NodeId,
    port: Port,
    body: Vec<u8>,
    asker: Asker<SendReliably>,
    /// Once it is under way: its number, how often it was sent, and when it is sent again.
    sent: Option<(u32, u8, Instant)>,
}

#[derive(Clone, Copy, Debug)]
struct Sender {
    id: NodeId,
    session: u32,
    /// The last number that arrived.
    last: u32,
}

/// The message: 10 bytes, and the body behind a [`Kind::Body`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    kind: Kind,
    port: Port,
    session: u32,
    sequence: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Body = 1,
    Acknowledgement = 2,
}

/// Something may have waited long enough.
#[derive(Debug, Serialize, Deserialize)]
struct Retry;

tenure_mesh::protocol! {
    Reliable = 4, "reliable";
    timers { Retry = 1 }
    serves { SendReliably }
    asks { SendLarge }
    hears { DatagramArrived }
    tells { DatagramArrived }
}

impl Header {
    fn with(self, body: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(10 + body.len());
        bytes.extend_from_slice(&[self.kind as u8, self.port.0]);
        bytes.extend_from_slice(&self.session.to_le_bytes());
        bytes.extend_from_slice(&self.sequence.to_le_bytes());
        bytes.extend_from_slice(body);
        bytes
    }

    fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let ([kind, port, s0, s1, s2, s3, n0, n1, n2, n3], body) = bytes.split_first_chunk()?;
        let kind = match kind {
            1 => Kind::Body,
            2 => Kind::Acknowledgement,
            _ => return None,
        };
        let session = u32::from_le_bytes([*s0, *s1, *s2, *s3]);
        let sequence = u32::from_le_bytes([*n0, *n1, *n2, *n3]);
        Some((Self { kind, port: Port(*port), session, sequence }, body))
    }
}

impl Reliable {
    /// With what was chosen.
    pub fn new(config: Config) -> Self {
        let (waiting, senders) = (VecDeque::new(), VecDeque::new());
        Self { config, session: 0, sequence: 0, waiting, senders }
    }

    /// Sends what is due: the first to each node, if it wasn't sent or has waited.
    fn send_due(&mut self, context: &mut Context<'_, Self>) {
        let now = context.now();
        let mut busy: Vec<NodeId> = Vec::new();
        let mut at = 0;
        while let Some(waiting) = self.waiting.get_mut(at) {
            at += 1;
            if busy.contains(&waiting.to) {
                continue;
            }
            busy.push(waiting.to);
            let (sequence, sends) = match waiting.sent {
                Some((_, _, again)) if again > now => continue,
                Some((_, sends, _)) if sends >= self.config.sends_max => {
                    at -= 1;
                    busy.pop();
                    if let Some(given_up) = self.waiting.remove(at) {
                        context.answer(&given_up.asker, &Acknowledged::No);
                    }
                    continue;
                }
                Some((sequence, sends, _)) => (sequence, sends),
                None => {
                    self.sequence += 1;
                    (self.sequence, 0)
                }
            };
            let again = now + (WAIT_FIRST * (1 << sends.min(6))).min(WAIT_MAX);
            waiting.sent = Some((sequence, sends + 1, again));
            let (session, port) = (self.session, waiting.port);
            let header = Header { kind: Kind::Body, port, session, sequence };
            let request = SendLarge { to: waiting.to, port: Port::RELIABLE };
            context.ask(&request, &header.with(&waiting.body));
        }
        let next = self.waiting.iter().filter_map(|it| Some(it.sent?.2)).min();
        if let Some(next) = next {
            context.after(next.since(now), &Retry);
        }
    }

    /// Whether a body is new; notes it.
    fn is_new(&mut self, id: NodeId, session: u32, sequence: u32) -> bool {
        let known = self.senders.iter().rposition(|it| it.id == id && it.session == session);
        if let Some(at) = known {
            let newer = sequence > self.senders[at].last;
            self.senders[at].last = self.senders[at].last.max(sequence);
            return newer;
        }
        if self.senders.len() >= self.config.senders_max {
            self.senders.pop_front();
        }
        self.senders.push_back(Sender { id, session, last: sequence });
        true
    }
}

impl Protocol for Reliable {
    fn start(&mut self, context: &mut Context<'_, Self>) {
        self.session = context.random().number() as u32;
    }
}

impl Serves<SendReliably> for Reliable {
    fn serve(
        &mut self,
        SendReliably { to, port }: SendReliably,
        question: &Question<'_, SendReliably>,
        context: &mut Context<'_, Self>,
    ) -> Option<Acknowledged> {
        let held: usize = self.waiting.iter().map(|it| it.body.len()).sum();
        if self.waiting.len() >= self.config.waiting_max
            || held + question.body.len() > self.config.waiting_bytes_max
        {
            return Some(Acknowledged::NotSent);
        }
        let (body, asker) = (question.body.to_vec(), question.keep());
        self.waiting.push_back(Waiting { to, port, body, asker, sent: None });
        self.send_due(context);
        None
    }
}

impl Awaits<SendLarge> for Reliable {
    fn answered(
        &mut self,
        request: SendLarge,
        reply: Option<Taken>,
        context: &mut Context<'_, Self>,
    ) {
        // A body that is too long can never be sent, and is given up at once. One that found no room waits.
        if reply == Some(Taken::TooLong) {
            let first = self.waiting.iter().position(|it| it.to == request.to);
            if let Some(too_long) = first.and_then(|at| self.waiting.remove(at)) {
                context.answer(&too_long.asker, &Acknowledged::NotSent);
                self.send_due(context);
            }
        }
    }
}

impl Hears<DatagramArrived> for Reliable {
    fn hear(
        &mut self,
        DatagramArrived { from, port }: DatagramArrived,
        body: &[u8],
        context: &mut Context<'_, Self>,
    ) {
        if port != Port::RELIABLE {
            return;
        }
        let Some((header, body)) = Header::split(body) else { return };
        match header.kind {
            Kind::Body => {
                let acknowledgement = Header { kind: Kind::Acknowledgement, ..header };
                let request = SendLarge { to: from, port: Port::RELIABLE };
                context.ask(&request, &acknowledgement.with(&[]));
                let passed_on = header.port != Port::RELIABLE && header.port != Port::FRAGMENTS;
                if self.is_new(from, header.session, header.sequence) && passed_on {
                    context.tell(&DatagramArrived { from, port: header.port }, body);
                }
            }
            Kind::Acknowledgement if header.session == self.session => {
                let meant = |it: &Waiting| {
                    it.to == from && it.sent.is_some_and(|sent| sent.0 == header.sequence)
                };
                let at = self.waiting.iter().position(meant);
                if let Some(done) = at.and_then(|at| self.waiting.remove(at)) {
                    context.answer(&done.asker, &Acknowledged::Yes);
                    self.send_due(context);
                }
            }
            Kind::Acknowledgement => {}
        }
    }
}

impl Expires<Retry> for Reliable {
    fn expire(&mut self, _: Retry, context: &mut Context<'_, Self>) {
        self.send_due(context);
    }
}
