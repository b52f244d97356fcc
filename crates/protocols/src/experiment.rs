//! Experiments on a whole deployment, directed from one node: start, stop and reconfigure
//! protocols, shape links, collect logs.
//!
//! Source: the experiment manager of Yggdrasil (SAC 2020) §5; there anybody in reach directs, here an
//! order counts if the deployment's owner signed it and it is newer than the last about the same
//! protocol or link: one that comes late, because it had to be repaired, isn't lost by those that
//! overtook it. An order spreads by [`PublishReliably`]; what it says is the host's business, which alone can make protocols:
//! [`Order`] is the usual form, [`carry_out`] does it.
//!
//! ```text
//!      signed, and newer of its kind: Ordered
//!  order n ────────────────────────────► order m ──► …
//!                                          │  Collect
//!                                          ▼
//!                             the log goes to the director: LogArrived
//! ```

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use tenure_crypto::{Context as Purpose, SigningKey, verify};
use tenure_hal::Instant;
use tenure_mesh::{
    Awaits, Context, Dispatcher, Hears, NodeId, Prepared, Protocol, ProtocolNumber, Question,
    Queues, Serves, Stack, Timers, decode, encode,
};
use tenure_wire::{Signature, VerifyingKey};

use crate::interface::{
    DatagramArrived, Direct, Directed, LogArrived, Note, Ordered, Port, PublishReliably,
    PublishedReliably, SendReliably, Shape,
};

#[cfg(test)]
mod tests;

const ORDER: Purpose = Purpose::new("mesh experiment");
/// How long a log is at most; what is older makes room.
const LOG_BYTES_MAX: usize = 8 * 1024;
const SIGNATURE_BYTES: usize = 64;
/// The most protocols and links of which it is remembered which order was the last.
const SUBJECTS_MAX: usize = 128;

/// Experiments on a whole deployment.
#[derive(Debug)]
pub struct Experiment {
    owner: VerifyingKey,
    /// Orders up to this number don't count.
    floor: u64,
    /// The last order's number about each subject.
    last: Vec<(Subject, u64)>,
    log: VecDeque<u8>,
}

tenure_mesh::protocol! {
    Experiment = 16, "experiment";
    serves { Direct, Note }
    asks { PublishReliably, SendReliably }
    hears { PublishedReliably, DatagramArrived }
    tells { Ordered, LogArrived }
}

/// The order to a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// Start a protocol, or start it anew with other settings; the catalogue knows what they mean.
    Start {
        /// Which.
        protocol: ProtocolNumber,
        /// With what.
        settings: Vec<u8>,
    },
    /// Stop a protocol.
    Stop {
        /// Which.
        protocol: ProtocolNumber,
    },
    /// Shape the link between two nodes, both ways.
    Shape {
        /// One end.
        one: NodeId,
        /// The other.
        other: NodeId,
        /// How many of a thousand messages are lost.
        lost_permille: u16,
    },
    /// Send the log to the director.
    Collect,
}

/// The subject of an order: of two with the same, the later counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    Protocol(ProtocolNumber),
    Link(NodeId, NodeId),
    Logs,
}

impl Order {
    fn subject(&self) -> Subject {
        match *self {
            Self::Start { protocol, .. } | Self::Stop { protocol } => Subject::Protocol(protocol),
            Self::Shape { one, other, .. } => Subject::Link(one.min(other), one.max(other)),
            Self::Collect => Subject::Logs,
        }
    }
}

/// An order with its number, signed by the owner: the body of a [`Direct`].
pub fn sign(owner: &SigningKey, number: u64, director: NodeId, order: &Order) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(&(number, director), &mut bytes);
    encode(order, &mut bytes);
    let signature = owner.sign(ORDER, &bytes);
    bytes.extend_from_slice(&signature.to_bytes());
    bytes
}

impl Experiment {
    /// Takes orders that `owner` signed, with numbers above `number`.
    pub fn new(owner: VerifyingKey, number: u64) -> Self {
        Self { owner, floor: number, last: Vec::new(), log: VecDeque::new() }
    }

    /// Gives the whole deployment a signed order.
    pub fn direct(&mut self, signed: &[u8], context: &mut Context<'_, Self>) -> Directed {
        if !self.take(signed, context) {
            return Directed::Refused;
        }
        context.ask(&PublishReliably { port: Port::EXPERIMENT }, signed);
        Directed::UnderWay
    }

    fn is_newer(&self, subject: Subject, number: u64) -> bool {
        let mut last = self.last.iter().filter(|(known, _)| *known == subject);
        number > self.floor && last.all(|(_, last)| number > *last)
    }

    fn note_number(&mut self, subject: Subject, number: u64) {
        self.last.retain(|(known, _)| *known != subject);
        if self.last.len() >= SUBJECTS_MAX {
            // A forgotten order mustn't count again.
            let (_, forgotten) = self.last.remove(0);
            self.floor = self.floor.max(forgotten);
        }
        self.last.push((subject, number));
    }

    /// Takes an order if it counts; says whether it does.
    fn take(&mut self, signed: &[u8], context: &mut Context<'_, Self>) -> bool {
        let Some((bytes, signature)) = signed.split_last_chunk::<SIGNATURE_BYTES>() else {
            return false;
        };
        let Some(((number, director), order)) = decode::<(u64, NodeId)>(bytes) else {
            return false;
        };
        let Some((meant, [])) = decode::<Order>(order) else { return false };
        // The number first: it costs less than a signature.
        let subject = meant.subject();
        if !self.is_newer(subject, number)
            || verify(&self.owner, ORDER, bytes, &Signature::from_bytes(signature)).is_err()
        {
            return false;
        }
        self.note_number(subject, number);
        if meant == Order::Collect {
            let log: Vec<u8> = self.log.iter().copied().collect();
            if director == context.node() {
                context.tell(&LogArrived { from: director }, &log);
            } else {
                context.ask(&SendReliably { to: director, port: Port::EXPERIMENT }, &log);
            }
        }
        context.tell(&Ordered { number, director }, order);
        true
    }
}

impl Protocol for Experiment {}

impl Serves<Direct> for Experiment {
    fn serve(
        &mut self,
        _: Direct,
        question: &Question<'_, Direct>,
        context: &mut Context<'_, Self>,
    ) -> Option<Directed> {
        Some(self.direct(question.body, context))
    }
}

impl Serves<Note> for Experiment {
    fn serve(
        &mut self,
        _: Note,
        question: &Question<'_, Note>,
        _: &mut Context<'_, Self>,
    ) -> Option<()> {
        let skipped = question.body.len().saturating_sub(LOG_BYTES_MAX - 1);
        self.log.extend(&question.body[skipped..]);
        self.log.push_back(b'\n');
        let beyond = self.log.len().saturating_sub(LOG_BYTES_MAX);
        self.log.drain(..beyond);
        Some(())
    }
}

impl Hears<PublishedReliably> for Experiment {
    fn hear(&mut self, published: PublishedReliably, body: &[u8], context: &mut Context<'_, Self>) {
        if published.port == Port::EXPERIMENT {
            self.take(body, context);
        }
    }
}

impl Hears<DatagramArrived> for Experiment {
    fn hear(&mut self, arrived: DatagramArrived, body: &[u8], context: &mut Context<'_, Self>) {
        if arrived.port == Port::EXPERIMENT {
            context.tell(&LogArrived { from: arrived.from }, body);
        }
    }
}

impl Awaits<PublishReliably> for Experiment {}

impl Awaits<SendReliably> for Experiment {}

/// Carries out an order. `knows` says which protocols the host lets an experiment start and stop; `prepare` makes
/// one from the settings in the order, or returns `None` if they mean nothing to it. Returns whether it is done.
pub fn carry_out<D: Dispatcher, Q: Queues, T: Timers>(
    stack: &mut Stack<D, Q, T>,
    now: Instant,
    order: &Order,
    knows: impl Fn(ProtocolNumber) -> bool,
    prepare: impl FnOnce(ProtocolNumber, &[u8]) -> Option<Prepared>,
) -> bool {
    let node = stack.node();
    match order {
        Order::Start { protocol, settings } => {
            let prepared = Some(*protocol).filter(|number| knows(*number));
            let prepared = prepared.and_then(|number| prepare(number, settings));
            let is_prepared = prepared.is_some();
            prepared.into_iter().for_each(|prepared| stack.start_prepared(now, prepared));
            is_prepared
        }
        Order::Stop { protocol } => knows(*protocol) && stack.stop(now, *protocol),
        Order::Shape { one, other, lost_permille } => {
            let neighbour = if node == *one { *other } else { *one };
            if node == *one || node == *other {
                stack.request(&Shape { neighbour, lost_permille: *lost_permille }, &[]);
            }
            true
        }
        Order::Collect => true,
    }
}
