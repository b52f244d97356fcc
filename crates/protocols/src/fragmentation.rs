//! Bodies that are longer than a frame, in fragments.
//!
//! Source: the reassembly of RFC 815, with fragments that are numbered instead of placed by offset,
//! so that none can overlap another (the attacks of RFC 1858). There is no repair here: a datagram's
//! hops see to that; what stays incomplete is given up. A fragment goes out once forwarding has
//! taken the one before, and again a little later if it had no room.
//!
//! Per body that arrives:
//!
//! ```text
//!           first fragment                  last missing fragment
//!  unknown ────────────────► incomplete ──────────────────────────► told, and forgotten
//!     ▲                          │
//!     └──────────────────────────┘  too old, or room is needed
//! ```

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_hal::Instant;
use tenure_mesh::{Awaits, Context, Expires, Hears, NodeId, Protocol, Question, Serves};

use crate::forwarding;
use crate::interface::{DatagramArrived, Port, SendDatagram, SendLarge, Taken};

#[cfg(test)]
mod tests;

/// The most fragments of one body.
const FRAGMENTS_MAX: usize = 64;
/// Bytes of a frame's message that forwarding and the head of a fragment take.
const HEAD_BYTES: usize = forwarding::HEAD_BYTES_MAX + HEADER_BYTES;
const HEADER_BYTES: usize = 7;
/// How long to wait while forwarding has no room.
const PAUSE: Duration = Duration::from_millis(50);
/// How often in a row.
const PAUSES_MAX: u8 = 100;
/// How long the fragments of a body may be apart.
const PATIENCE: Duration = Duration::from_secs(15);

/// The configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The longest body.
    pub body_bytes_max: usize,
    /// The most bytes of bodies that are being sent.
    pub outgoing_bytes_max: usize,
    /// The most bytes of incomplete bodies.
    pub incomplete_bytes_max: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            body_bytes_max: 9 * 1024,
            outgoing_bytes_max: 16 * 1024,
            incomplete_bytes_max: 16 * 1024,
        }
    }
}

/// Bodies in fragments.
#[derive(Debug)]
pub struct Fragmentation {
    config: Config,
    number: u16,
    outgoing: VecDeque<Outgoing>,
    incomplete: Vec<Incomplete>,
}

/// A body that is being sent, one fragment at a time.
#[derive(Debug)]
struct Outgoing {
    to: NodeId,
    port: Port,
    number: u16,
    body: Vec<u8>,
    next: u8,
    pauses: u8,
}

/// Forwarding may have room again.
#[derive(Debug, Serialize, Deserialize)]
struct Resume;

#[derive(Debug)]
struct Incomplete {
    from: NodeId,
    port: Port,
    number: u16,
    heard: Instant,
    fragments: Vec<Option<Vec<u8>>>,
}

tenure_mesh::protocol! {
    Fragmentation = 3, "fragmentation";
    timers { Resume = 1 }
    serves { SendLarge }
    asks { SendDatagram }
    hears { DatagramArrived }
    tells { DatagramArrived }
}

/// The header of a fragment: port, number of the body, index and count of the fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    port: Port,
    number: u16,
    index: u8,
    count: u8,
}

impl Header {
    fn emit(&self, bytes: &mut Vec<u8>) {
        let [low, high] = self.number.to_le_bytes();
        bytes.extend_from_slice(&[self.port.0, low, high, self.index, self.count]);
    }

    fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let ([port, low, high, index, count], rest) = bytes.split_first_chunk()?;
        let number = u16::from_le_bytes([*low, *high]);
        let header = Self { port: Port(*port), number, index: *index, count: *count };
        (index < count && usize::from(*count) <= FRAGMENTS_MAX).then_some((header, rest))
    }
}

impl Fragmentation {
    /// Fragmentation with what was chosen.
    pub fn new(config: Config) -> Self {
        Self { config, number: 0, outgoing: VecDeque::new(), incomplete: Vec::new() }
    }

    /// Sends the next fragment of the body whose turn it is.
    fn send_next(&mut self, context: &mut Context<'_, Self>) {
        let room = fragment_bytes(context);
        let Some(outgoing) = self.outgoing.front() else { return };
        let &Outgoing { to, port, number, next: index, .. } = outgoing;
        let count = outgoing.body.len().div_ceil(room).max(1) as u8;
        let Some(chunk) = outgoing.body.chunks(room).nth(index.into()) else { return };
        let mut fragment = Vec::with_capacity(HEADER_BYTES + chunk.len());
        Header { port, number, index, count }.emit(&mut fragment);
        fragment.extend_from_slice(chunk);
        context.ask(&SendDatagram { to, port: Port::FRAGMENTS }, &fragment);
    }

    /// Makes room for `bytes` by giving up what has waited longest.
    fn make_room(&mut self, bytes: usize, now: Instant) {
        self.incomplete.retain(|it| now.since(it.heard) < PATIENCE);
        while self.bytes() + bytes > self.config.incomplete_bytes_max {
            let oldest = self.incomplete.iter().enumerate().min_by_key(|(_, it)| it.heard);
            match oldest.map(|(at, _)| at) {
                Some(at) => drop(self.incomplete.swap_remove(at)),
                None => return,
            }
        }
    }

    /// Bytes that are kept: of fragments, and of room for them.
    fn bytes(&self) -> usize {
        let kept = |it: &Incomplete| {
            let contents: usize = it.fragments.iter().flatten().map(Vec::len).sum();
            contents + it.fragments.len() * size_of::<Vec<u8>>()
        };
        self.incomplete.iter().map(kept).sum()
    }
}

impl Protocol for Fragmentation {
    fn start(&mut self, context: &mut Context<'_, Self>) {
        self.number = context.random().number() as u16;
    }
}

impl Serves<SendLarge> for Fragmentation {
    fn serve(
        &mut self,
        SendLarge { to, port }: SendLarge,
        question: &Question<'_, SendLarge>,
        context: &mut Context<'_, Self>,
    ) -> Option<Taken> {
        let room = fragment_bytes(context);
        let bytes = question.body.len();
        if bytes > self.config.body_bytes_max || bytes.div_ceil(room) > FRAGMENTS_MAX {
            return Some(Taken::TooLong);
        }
        if bytes <= room {
            context.ask(&SendDatagram { to, port }, question.body);
            return Some(Taken::UnderWay);
        }
        let held: usize = self.outgoing.iter().map(|outgoing| outgoing.body.len()).sum();
        if held + bytes > self.config.outgoing_bytes_max {
            return Some(Taken::Full);
        }
        self.number = self.number.wrapping_add(1);
        let (number, body) = (self.number, question.body.to_vec());
        self.outgoing.push_back(Outgoing { to, port, number, body, next: 0, pauses: 0 });
        if self.outgoing.len() == 1 {
            self.send_next(context);
        }
        Some(Taken::UnderWay)
    }
}

impl Awaits<SendDatagram> for Fragmentation {
    fn answered(
        &mut self,
        request: SendDatagram,
        reply: Option<Taken>,
        context: &mut Context<'_, Self>,
    ) {
        let room = fragment_bytes(context);
        let Some(outgoing) = self.outgoing.front_mut() else { return };
        if request.port != Port::FRAGMENTS {
            return;
        }
        let more = match reply {
            Some(Taken::UnderWay) => {
                outgoing.next += 1;
                outgoing.pauses = 0;
                usize::from(outgoing.next) * room < outgoing.body.len()
            }
            Some(Taken::Full) | None if outgoing.pauses < PAUSES_MAX => {
                outgoing.pauses += 1;
                return context.after(PAUSE, &Resume);
            }
            _ => false,
        };
        if !more {
            self.outgoing.pop_front();
        }
        self.send_next(context);
    }
}

impl Expires<Resume> for Fragmentation {
    fn expire(&mut self, _: Resume, context: &mut Context<'_, Self>) {
        self.send_next(context);
    }
}

impl Hears<DatagramArrived> for Fragmentation {
    fn hear(
        &mut self,
        DatagramArrived { from, port }: DatagramArrived,
        body: &[u8],
        context: &mut Context<'_, Self>,
    ) {
        if port != Port::FRAGMENTS {
            return;
        }
        let now = context.now();
        let Some((header, content)) = Header::split(body) else { return };
        let Header { port, number, index, count } = header;
        let same = |it: &Incomplete| {
            (it.from, it.port, it.number) == (from, port, number)
                && it.fragments.len() == usize::from(count)
        };
        self.make_room(content.len() + usize::from(count) * size_of::<Vec<u8>>(), now);
        let at = self.incomplete.iter().position(same).unwrap_or_else(|| {
            let fragments = vec![None; count.into()];
            self.incomplete.push(Incomplete { from, port, number, heard: now, fragments });
            self.incomplete.len() - 1
        });
        let incomplete = &mut self.incomplete[at];
        incomplete.heard = now;
        incomplete.fragments[usize::from(index)].get_or_insert_with(|| content.to_vec());
        if incomplete.fragments.iter().all(Option::is_some) {
            let whole = self.incomplete.swap_remove(at);
            let body: Vec<u8> = whole.fragments.into_iter().flatten().flatten().collect();
            // A body is told of as a datagram, so that its receiver needn't know; one in fragments of
            // fragments would go in circles.
            if port != Port::FRAGMENTS && body.len() <= self.config.body_bytes_max {
                context.tell(&DatagramArrived { from, port }, &body);
            }
        }
    }
}

/// How much of a body fits a fragment.
fn fragment_bytes(context: &Context<'_, Fragmentation>) -> usize {
    context.payload_bytes_max().saturating_sub(HEAD_BYTES).max(1)
}
