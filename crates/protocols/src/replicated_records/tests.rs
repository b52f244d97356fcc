use super::*;
use crate::discovery::{self, Discovery};
use crate::forwarding::{self, Forwarding};
use crate::fragmentation::{self, Fragmentation};
use crate::testing::{Network, line_router};
use alloc::collections::BTreeMap;
use tenure_mesh::{Declared, Stack};

/// Records whose version is their first byte; one that ends with `!` is forged, and with `?` not to
/// everybody's taste. There is room for so many.
#[derive(Debug)]
struct Bytes(BTreeMap<RecordKey, Vec<u8>>, bool, usize);

impl Default for Bytes {
    fn default() -> Self {
        Self(BTreeMap::new(), false, 64)
    }
}

impl Records for Bytes {
    fn each(&self, act: &mut dyn FnMut(RecordKey, u64)) {
        self.0.iter().for_each(|(key, record)| act(*key, record[0].into()));
    }
    fn record(&self, key: RecordKey) -> Option<Vec<u8>> {
        self.0.get(&key).cloned()
    }
    fn version(&self, key: RecordKey) -> Option<u64> {
        Some(self.0.get(&key)?[0].into())
    }
    fn room(&self) -> usize {
        self.2.saturating_sub(self.0.len())
    }
    fn accept(&mut self, key: RecordKey, record: &[u8]) -> bool {
        let is_to_taste = !(self.1 && record.ends_with(b"?"));
        let genuine = !record.is_empty() && !record.ends_with(b"!") && is_to_taste;
        let newer = self.version(key).is_none_or(|version| version < record[0].into());
        let has_room = self.0.contains_key(&key) || self.room() > 0;
        if genuine && newer && has_room {
            self.0.insert(key, record.to_vec());
        }
        genuine && newer && has_room
    }
}

type Replica = ReplicatedRecords<Bytes>;

fn set_up(count: usize) -> impl Fn(&mut Stack, usize) {
    set_up_with_room(count, 64)
}

fn set_up_with_room(count: usize, room: usize) -> impl Fn(&mut Stack, usize) {
    move |stack, index| {
        stack.start(Instant::BOOT, Discovery::new(discovery::Config::default()));
        stack.start(Instant::BOOT, Forwarding::new(forwarding::Config::default()));
        stack.start(Instant::BOOT, Fragmentation::new(fragmentation::Config::default()));
        stack.start(Instant::BOOT, line_router(index, count));
        stack.start(
            Instant::BOOT,
            Replica::new(Config::default(), Bytes(BTreeMap::new(), false, room)),
        );
    }
}

fn key(number: usize) -> RecordKey {
    RecordKey((number as u64).to_be_bytes())
}

fn publish(network: &mut Network, index: usize, key: RecordKey, record: &[u8]) {
    let now = network.now;
    network.stacks[index]
        .act::<Replica, _>(now, |replica, context| replica.publish(key, record, context));
}

fn record(network: &Network, index: usize, key: RecordKey) -> Option<Vec<u8>> {
    network.stacks[index].protocol::<Replica>().unwrap().records().record(key)
}

#[test]
fn every_record_comes_to_every_node_and_newer_ones_replace_older() {
    let mut network = Network::new(5, set_up(5)).line(150);
    for index in 0..5 {
        publish(&mut network, index, key(index), &[1, index as u8]);
    }
    network.run(Duration::from_secs(20));
    for index in 0..5 {
        for other in 0..5 {
            assert_eq!(record(&network, index, key(other)), Some([1, other as u8].to_vec()));
        }
    }
    publish(&mut network, 0, key(0), &[2, 99]);
    network.run(Duration::from_secs(60));
    assert_eq!(record(&network, 4, key(0)), Some([2, 99].to_vec()));
}

#[test]
fn a_change_crosses_five_hops_within_seconds() {
    let mut network = Network::new(6, set_up(6)).line(0);
    network.run(Duration::from_secs(5));
    publish(&mut network, 0, key(0), &[1]);
    network.run(Duration::from_secs(4));
    assert_eq!(record(&network, 5, key(0)), Some([1].to_vec()));
}

#[test]
fn a_record_longer_than_a_frame_comes_whole() {
    let mut network = Network::new(2, set_up(2)).line(0);
    publish(&mut network, 0, key(0), &[7; 5000]);
    network.run(Duration::from_secs(5));
    assert_eq!(record(&network, 1, key(0)), Some([7; 5000].to_vec()));
}

#[test]
fn a_forged_record_is_neither_taken_nor_spread() {
    let mut network = Network::new(2, set_up(2)).line(0);
    publish(&mut network, 0, key(0), &[1]);
    network.run(Duration::from_secs(2));
    let mut body = key(0).0.to_vec();
    body.extend_from_slice(b"\x09forged!");
    let arrived = DatagramArrived { from: crate::testing::id(0), port: Port::RECORDS };
    network.stacks[1].tell(&arrived, &body);
    network.run(Duration::from_secs(5));
    assert_eq!(record(&network, 1, key(0)), Some([1].to_vec()));
}

#[test]
fn a_record_that_a_neighbour_refuses_is_offered_ever_more_seldom() {
    let mut network = Network::new(2, set_up(2)).line(0);
    let now = network.now;
    network.stacks[1].act::<Replica, _>(now, |replica, _| replica.records_mut().1 = true);
    network.run(Duration::from_secs(300));
    let before = network.sent();
    network.run(Duration::from_secs(120));
    let at_rest = network.sent() - before;
    publish(&mut network, 0, key(0), b"\x01?");
    network.run(Duration::from_secs(120));
    let before = network.sent();
    network.run(Duration::from_secs(120));
    assert_eq!(record(&network, 1, key(0)), None);
    let refusing = network.sent() - before;
    assert!(refusing < at_rest + 120, "{refusing} frames, and {at_rest} where all agree");
}

#[test]
fn where_all_agree_hardly_anything_is_said() {
    let mut network = Network::new(8, |stack: &mut Stack, _| {
        stack.start(Instant::BOOT, Replica::new(Config::default(), Bytes::default()));
    })
    .clique(0);
    network.run(Duration::from_secs(180));
    let before = network.sent();
    network.run(Duration::from_secs(120));
    assert!(network.sent() - before <= 10, "{}", network.sent() - before);
}

#[test]
fn a_summary_that_promises_what_doesnt_come_costs_a_bounded_room() {
    let mut network = Network::new(2, set_up(2)).line(0);
    network.run(Duration::from_secs(2));
    network.stacks[0].stop(network.now, crate::forwarding::Forwarding::DESCRIPTION.number);
    for number in 0..60 {
        publish(&mut network, 0, key(number), &[1]);
    }
    network.run(Duration::from_secs(30));
    assert!(network.stacks[1].protocol::<Replica>().unwrap().asked.len() <= ASKED_MAX);
}

/// Ten nodes in a line with a record each, and a table for `room` records; how many frames they send in two minutes
/// once they had three.
fn frames_at_rest(room: usize) -> u64 {
    let mut network = Network::new(10, set_up_with_room(10, room)).line(0);
    for index in 0..10 {
        publish(&mut network, index, key(index), &[1]);
    }
    network.run(Duration::from_secs(180));
    let before = network.sent();
    network.run(Duration::from_secs(120));
    network.sent() - before
}

#[test]
fn a_full_table_says_no_more_than_one_with_room_for_all() {
    let (full, with_room) = (frames_at_rest(4), frames_at_rest(10));
    assert!(full <= with_room + 20, "{full} frames of full tables, and {with_room} of others");
}

#[test]
fn a_full_table_asks_for_newer_versions_of_its_own_records_alone() {
    let mut network = Network::new(2, set_up_with_room(2, 2)).line(0);
    publish(&mut network, 0, key(0), &[1]);
    network.run(Duration::from_secs(3));
    publish(&mut network, 1, key(1), &[1]);
    network.run(Duration::from_secs(3));
    let now = network.now;
    network.stacks[0].act::<Replica, _>(now, |replica, _| replica.records_mut().2 = 3);
    publish(&mut network, 0, key(2), &[1]);
    publish(&mut network, 0, key(0), &[2]);
    network.run(Duration::from_secs(5));
    assert_eq!(record(&network, 1, key(0)), Some([2].to_vec()));
    assert_eq!(record(&network, 1, key(2)), None);
    assert!(network.stacks[1].protocol::<Replica>().unwrap().refused.is_empty(), "it didn't ask");
}

/// Has node 0 hear a summary of `liar`'s that lists records which don't exist.
fn lie(network: &mut Network, liar: NodeId, records: impl Iterator<Item = usize>) {
    let mut body = Vec::new();
    for number in records {
        body.extend_from_slice(&key(number).0);
        body.extend_from_slice(&9_u64.to_le_bytes());
    }
    let now = network.now;
    network.stacks[0].act::<Replica, _>(now, |replica, context| {
        let reception = Reception { from: liar, addressed: false, signal_dbm: None, body: &body };
        replica.handle(Summary { whole: true }, reception, context);
    });
}

#[test]
fn a_liar_who_names_ever_new_records_leaves_room_for_others_and_makes_nobody_hurry_for_ever() {
    for seed in 0..8 {
        let mut network = Network::new(2, set_up(2)).line(0);
        network.run(Duration::from_secs(2));
        publish(&mut network, 1, key(1), &[1]);
        let liar = crate::testing::id(9 + seed);
        for round in 0..40 {
            lie(&mut network, liar, (0..60).map(|number| 1000 + 60 * round + number));
            network.run(Duration::from_millis(250));
            let asked = &network.stacks[0].protocol::<Replica>().unwrap().asked;
            let of_liar = asked.iter().filter(|asked| asked.neighbour == liar).count();
            assert!(of_liar <= ASKED_OF_ONE_MAX, "{of_liar}");
        }
        assert_eq!(record(&network, 0, key(1)), Some([1].to_vec()));
        for round in 40..400 {
            lie(&mut network, liar, (0..60).map(|number| 1000 + 60 * round + number));
            network.run(Duration::from_millis(250));
        }
        let (_, hurries) = network.stacks[0].protocol::<Replica>().unwrap().hurries;
        let lacked = network.stacks[0].protocol::<Replica>().unwrap().lacked.len();
        assert!(lacked <= REFUSED_MAX && hurries > HURRIES_IN_ALL_MAX, "{lacked} {hurries}");
        let before = network.sent();
        for round in 400..440 {
            lie(&mut network, liar, (0..60).map(|number| 1000 + 60 * round + number));
            network.run(Duration::from_millis(250));
        }
        assert!(network.sent() - before < 200, "{}", network.sent() - before);
    }
}
