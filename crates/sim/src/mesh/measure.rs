//! Counters and figures of a run.

use std::collections::BTreeMap;

use serde::Serialize;

use tenure_mesh::frame::{Header, split_record};
use tenure_mesh::{Declared, ProtocolNumber};
use tenure_protocols::aodv::Aodv;
use tenure_protocols::babel::Babel;
use tenure_protocols::batman::Batman;
use tenure_protocols::broadcast::Broadcast;
use tenure_protocols::counter_broadcast::Counter;
use tenure_protocols::coverage_broadcast::Coverage;
use tenure_protocols::discovery::Discovery;
use tenure_protocols::distance_broadcast::Distance;
use tenure_protocols::flooding::Everything;
use tenure_protocols::flow_updating::FlowUpdating;
use tenure_protocols::forwarding::{self, Forwarding};
use tenure_protocols::fragmentation::Fragmentation;
use tenure_protocols::gap::Gap;
use tenure_protocols::gossip::Gossip;
use tenure_protocols::limosense::LimoSense;
use tenure_protocols::plug_in::Registry;
use tenure_protocols::push_sum::PushSum;
use tenure_protocols::reliable_broadcast::ReliableBroadcast;
use tenure_protocols::replicated_records::ReplicatedRecords;

use super::fleet::DeviceFigures;
use crate::trouble::Trouble;

/// The bytes that a link adds to each frame: destination, source and EtherType of Ethernet.
pub(super) const LINK_HEADER_BYTES: usize = 14;
/// The kind of the message of [`Forwarding`] that carries a payload.
const PACKET_KIND: u8 = 1;

/// Bytes given to the radio, by what they were for. Headers of links and frames count.
#[derive(Clone, Debug, Default)]
pub(super) struct Bytes {
    /// In frames that carry datagrams, but for other messages in them.
    pub payload: u64,
    /// All others.
    pub control: u64,
    /// Number and bytes by protocol and kind of message, without the frames' headers.
    messages: BTreeMap<(u8, u8), (u64, u64)>,
    /// Messages of the protocols that broadcast.
    pub broadcasts: u64,
}

impl Bytes {
    /// Counts a frame that is not sealed.
    pub(super) fn count_frame(&mut self, frame: &[u8]) {
        let header_bytes = Header::parse(frame).map_or(frame.len(), |(_, bytes)| bytes);
        self.count(&frame[header_bytes..], frame.len());
    }

    /// Counts a frame of `frame_bytes` with these records.
    pub(super) fn count(&mut self, records: &[u8], frame_bytes: usize) {
        let total = (frame_bytes + LINK_HEADER_BYTES) as u64;
        let mut rest = records;
        let (mut control, mut carries) = (0, false);
        while let Ok((record, more)) = split_record(rest) {
            let bytes = (rest.len() - more.len()) as u64;
            let kind = record.message.first().copied().unwrap_or_default();
            let (count, sum) = self.messages.entry((record.protocol.0, kind)).or_default();
            (*count, *sum) = (*count + 1, *sum + bytes);
            self.broadcasts += u64::from(is_broadcast(record.protocol));
            let is_packet = record.protocol == FORWARDING && kind == PACKET_KIND;
            carries |= is_packet;
            control += if is_packet { 0 } else { bytes };
            rest = more;
        }
        let control = if carries { control } else { total };
        self.control += control;
        self.payload += total - control;
    }

    /// Number and bytes by the name of the message.
    pub(super) fn by_message(&self, registry: Registry) -> BTreeMap<String, (u64, u64)> {
        let descriptions = [
            Babel::DESCRIPTION,
            Batman::DESCRIPTION,
            Aodv::DESCRIPTION,
            Discovery::DESCRIPTION,
            Forwarding::DESCRIPTION,
            Gap::DESCRIPTION,
            PushSum::DESCRIPTION,
            LimoSense::DESCRIPTION,
            FlowUpdating::DESCRIPTION,
            Broadcast::<Everything>::DESCRIPTION,
            Broadcast::<Counter>::DESCRIPTION,
            Broadcast::<Distance>::DESCRIPTION,
            Broadcast::<Coverage>::DESCRIPTION,
            Gossip::DESCRIPTION,
            ReliableBroadcast::DESCRIPTION,
            Fragmentation::DESCRIPTION,
            ReplicatedRecords::<()>::DESCRIPTION,
        ];
        let name = |(protocol, kind): (u8, u8)| {
            let plugged_in = registry.entries().map(|entry| entry.description());
            let mut all = descriptions.into_iter().chain(plugged_in);
            let known = all.find(|it| it.number.0 == protocol);
            let message =
                known.and_then(|it| it.messages.iter().find(|(number, _)| *number == kind));
            match (known, message) {
                (Some(known), Some((_, message))) => format!("{} {message}", known.name),
                _ => format!("{protocol} {kind}"),
            }
        };
        self.messages.iter().map(|(key, figures)| (name(*key), *figures)).collect()
    }
}

fn is_broadcast(protocol: ProtocolNumber) -> bool {
    let broadcasts = [
        Broadcast::<Everything>::DESCRIPTION,
        Broadcast::<Counter>::DESCRIPTION,
        Broadcast::<Distance>::DESCRIPTION,
        Broadcast::<Coverage>::DESCRIPTION,
        Gossip::DESCRIPTION,
        ReliableBroadcast::DESCRIPTION,
    ];
    broadcasts.iter().any(|description| description.number == protocol)
}

const FORWARDING: ProtocolNumber = Forwarding::DESCRIPTION.number;

/// A run in numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Metrics {
    /// Simulated seconds.
    pub seconds: f64,
    /// Events: what happened at some time to some node.
    pub events: u64,
    /// When every node had a way to every other one first, in seconds.
    pub converged_s: Option<f64>,
    /// Datagrams that were sent.
    pub sent: u64,
    /// Of those, how many arrived.
    pub delivered: u64,
    /// Datagrams that arrived a second time.
    pub duplicates: u64,
    /// The time that half of those that arrived needed at most, in milliseconds.
    pub latency_median_ms: f64,
    /// The time that 99 of 100 needed at most.
    pub latency_99_ms: f64,
    /// The longest way by next hops between two nodes at the end, in hops.
    pub hops_max: u32,
    /// Bytes that carry no datagram, for each node and second, link headers included.
    pub control_bytes_per_node_second: f64,
    /// Bytes that carry datagrams, for each node and second.
    pub payload_bytes_per_node_second: f64,
    /// Number of each message, and bytes without the headers of frames.
    pub by_message: BTreeMap<String, (u64, u64)>,
    /// Frames on the air, repetitions included.
    pub transmissions: u64,
    /// Receptions spoiled by another transmission.
    pub collisions: u64,
    /// Receptions that a link lost.
    pub lost: u64,
    /// Why nodes gave up datagrams. A datagram may be given up at one node and go on from another.
    pub given_up: GivenUp,
    /// Datagrams that were sent while no chain of stations in range led to their receiver. Counted where
    /// nodes move.
    pub sent_while_parted: u64,
    /// How often next hops formed a loop.
    pub loops: u64,
    /// For each fault, the longest time until a datagram arrived that the same pair of nodes sent after it, in seconds, over
    /// all pairs that were served before and could be served after it.
    pub recovered_s: Vec<Option<f64>>,
    /// The furthest that the average which a node knows is off at the end; infinite if one knows none.
    pub aggregate_error: Option<f64>,
    /// The same of the number of nodes.
    pub aggregate_count_error: Option<f64>,
    /// Broadcasts that were sent.
    pub broadcasts: u64,
    /// Of those, how many reached everybody who was on.
    pub broadcasts_complete: u64,
    /// Messages of the broadcasting protocol, for each broadcast.
    pub transmissions_per_broadcast: f64,
    /// The faults and the traffic of the run.
    pub trouble: Trouble,
    /// Figures of the protocols in `[[protocol]]` at the end, by `protocol figure`.
    pub figures: BTreeMap<String, FigureRange>,
    /// Figures of whole devices; with devices, the datagrams sent and delivered are their calls.
    pub devices: Option<DeviceFigures>,
}

/// A protocol's figure over the nodes that are on and run it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FigureRange {
    /// How many nodes run the protocol.
    pub nodes: u32,
    /// How many of them have the figure.
    pub known: u32,
    /// The least.
    pub least: f64,
    /// The mean.
    pub mean: f64,
    /// The greatest.
    pub most: f64,
}

/// Datagrams that nodes gave up, by cause. What a node counted before it restarted isn't in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct GivenUp {
    /// The router knew no way in time.
    pub no_way: u64,
    /// No next hop took them.
    pub not_taken: u64,
    /// There was no room for them.
    pub full: u64,
    /// They had made too many hops.
    pub too_far: u64,
    /// They ended so long after others of their source that they may have been copies.
    pub overdue: u64,
}

impl GivenUp {
    /// Adds what a node's forwarding counted.
    pub(super) fn add(&mut self, counters: &forwarding::Counters) {
        self.no_way += counters.no_way;
        self.not_taken += counters.not_taken;
        self.full += counters.full;
        self.too_far += counters.too_far;
        self.overdue += counters.overdue;
    }
}

impl Metrics {
    /// The share of datagrams that arrived; 1 if none was sent.
    pub fn delivery(&self) -> f64 {
        if self.sent == 0 { 1.0 } else { self.delivered as f64 / self.sent as f64 }
    }
}

/// A second of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Second {
    /// Datagrams sent in it.
    pub sent: u64,
    /// Of those, how many arrived, then or later.
    pub delivered: u64,
    /// Bytes without a datagram.
    pub control_bytes: u64,
    /// Bytes with one.
    pub payload_bytes: u64,
    /// Receptions spoiled.
    pub collisions: u64,
    /// The share of ordered pairs of nodes that are on between which next hops lead.
    pub reachable: Option<f64>,
    /// The furthest that the average which a node knows is off; `None` without aggregation, or if a
    /// node knows none yet.
    pub aggregate_error: Option<f64>,
}

/// Datagrams under way, and how they fared.
#[derive(Debug, Default)]
pub(super) struct Datagrams {
    /// When each was sent, and in the count of which second.
    sent: Vec<(u64, usize)>,
    /// In which of its lives the receiver got it.
    arrived: Vec<Option<u32>>,
    latencies_us: Vec<u64>,
    pub(super) duplicates: u64,
    pub(super) delivered: u64,
}

impl Datagrams {
    /// Counts one that is sent in the second of that number, and gives it its own.
    pub(super) fn send(&mut self, now_us: u64, second: usize) -> u64 {
        self.sent.push((now_us, second));
        self.arrived.push(None);
        self.sent.len() as u64 - 1
    }

    /// Counts one that arrived in the receiver's life `life`; gives when it was sent, and in which
    /// second, if it came for the first time. Who restarted can't know what it got before.
    pub(super) fn arrive(&mut self, now_us: u64, number: u64, life: u32) -> Option<(u64, usize)> {
        let arrived = self.arrived.get_mut(number as usize)?;
        if let Some(before) = arrived.replace(life) {
            self.duplicates += u64::from(before == life);
            return None;
        }
        let (sent_us, second) = self.sent[number as usize];
        self.delivered += 1;
        self.latencies_us.push(now_us - sent_us);
        Some((sent_us, second))
    }

    /// How many were sent.
    pub(super) fn sent(&self) -> u64 {
        self.sent.len() as u64
    }

    /// The latency in milliseconds that the share `share` of those that arrived had at most.
    pub(super) fn latency_ms(&self, share: f64) -> f64 {
        let mut latencies = self.latencies_us.clone();
        latencies.sort_unstable();
        let at = (latencies.len() as f64 * share) as usize;
        let at = at.min(latencies.len().saturating_sub(1));
        latencies.get(at).map_or(0.0, |latency_us| *latency_us as f64 / 1e3)
    }
}
