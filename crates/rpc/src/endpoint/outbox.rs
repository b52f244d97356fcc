//! Datagrams that wait to be sent.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use litemap::LiteMap;
use tenure_wire::MachineId;

/// Datagrams that wait to be sent.
pub(super) struct Outbox<A> {
    queue: VecDeque<Queued<A>>,
    length_max: usize,
    /// How many were lost because as many waited.
    lost: u64,
    /// The bytes that were queued in the name of each machine since it was added.
    sent_bytes: LiteMap<MachineId, u64>,
}

/// A datagram that waits to be sent.
struct Queued<A> {
    to: A,
    bytes: Vec<u8>,
    is_owners: bool,
}

impl<A> Outbox<A> {
    pub(super) fn new(length_max: usize) -> Self {
        Self { queue: VecDeque::new(), length_max, lost: 0, sent_bytes: LiteMap::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    /// Counts the bytes that are sent in the name of `machine` from now on.
    pub(super) fn count_for(&mut self, machine: MachineId) {
        self.sent_bytes.insert(machine, 0);
    }

    /// Counts them no longer.
    pub(super) fn count_no_longer(&mut self, machine: &MachineId) {
        self.sent_bytes.remove(machine);
    }

    /// The bytes that were counted for `machine` since the last call of this.
    pub(super) fn take_sent_bytes(&mut self, machine: &MachineId) -> u64 {
        self.sent_bytes.get_mut(machine).map_or(0, core::mem::take)
    }

    /// Takes out the one that was queued first.
    pub(super) fn pop(&mut self) -> Option<(A, Vec<u8>)> {
        self.queue.pop_front().map(|queued| (queued.to, queued.bytes))
    }

    /// Queues a datagram; one too many is lost, as it might be on its way. One for the owner takes the
    /// place of the last that is for somebody else.
    pub(super) fn push(&mut self, to: A, bytes: Vec<u8>, is_owners: bool) {
        if self.queue.len() >= self.length_max {
            self.lost += 1;
            let last = self.queue.iter().rposition(|queued| !queued.is_owners);
            match last.filter(|_| is_owners) {
                Some(position) => self.queue.remove(position),
                None => return,
            };
        }
        self.queue.push_back(Queued { to, bytes, is_owners });
    }

    /// Queues an answer to somebody unknown: such answers fill half of the queue at most.
    pub(super) fn push_unasked(&mut self, to: A, bytes: Vec<u8>) {
        if self.queue.len() < self.length_max.div_ceil(2) {
            self.push(to, bytes, false);
        }
    }

    /// Whether one more datagram would be lost.
    pub(super) fn is_full(&self) -> bool {
        self.queue.len() >= self.length_max
    }

    /// Queues a datagram in the name of `machine`, which it counts for.
    pub(super) fn push_for(&mut self, machine: &MachineId, to: A, bytes: Vec<u8>, is_owners: bool) {
        if let Some(sent) = self.sent_bytes.get_mut(machine) {
            *sent = sent.saturating_add(bytes.len() as u64);
        }
        self.push(to, bytes, is_owners);
    }
}
