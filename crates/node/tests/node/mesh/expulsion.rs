//! The owner gives the mesh another key, by one member, and leaves a device out.

use tenure_mesh::decode;
use tenure_node::Wake;
use tenure_protocols::babel::Babel;
use tenure_protocols::joining::Word;
use tenure_wire::control::{Admission, Enrol};

use super::*;

const EVERYBODY: [usize; 4] = [0, 1, 2, 3];
const NAMES: [&str; 4] = ["attic", "stairs", "cellar", "garden"];

impl World {
    /// A member's admission to the mesh by its present key.
    fn readmission(&mut self, index: usize, number: u64) -> Admission {
        let node = &self.devices[index];
        let (device_key, machine) = (node.device_key(), node.device_machine());
        let enrolment = Enrolment { device: node.name().clone(), device_key, number };
        let signature = enrol(&self.owner, &enrolment);
        let invitation = self.invitation(machine, number);
        Admission { invitation, enrol: Enrol { enrolment, signature } }
    }

    /// Tells `attic` the next key for these devices.
    fn change_key(&mut self, devices: &[usize]) {
        let next = NetworkKey::generate(&mut self.entropy).unwrap();
        self.former = Some(std::mem::replace(&mut self.network, next));
        for index in devices {
            let admission = self.readmission(*index, 2);
            self.admit(admission).unwrap();
        }
    }

    fn reaches(&self, from: usize, to: usize) -> bool {
        let to = NodeId::from(&tenure_crypto::machine_id(&self.devices[to].device_machine()));
        let stack = self.devices[from].mesh_stack().unwrap();
        stack.protocol::<Babel>().unwrap().next_hop(to).is_some()
    }
}

#[test]
fn a_device_that_is_left_out_of_the_next_key_is_out_of_the_mesh_within_thirty_seconds() {
    let mut world = World::new(&NAMES);
    world.install(2, "thermostat", THERMOSTAT);
    world.pass(Duration::from_secs(8), &EVERYBODY);
    assert!(world.reaches(0, 2) && world.reaches(0, 3));
    world.change_key(&[2, 1, 0]);
    // Until all can have heard of it, the mesh is as it was.
    world.pass(Duration::from_secs(8), &EVERYBODY);
    assert!(world.reaches(0, 2) && world.reaches(0, 3));
    world.pass(Duration::from_secs(12), &EVERYBODY);
    assert!(world.reaches(0, 2) && world.reaches(2, 0), "who was told is in it");
    assert!(!world.reaches(0, 3) && !world.reaches(2, 3), "who wasn't is not");
    world.install(0, "caller", CALLER);
    world.pass(Duration::from_secs(10), &EVERYBODY);
    assert!(world.logged("answered"), "{:?}", world.notices);
    assert!(!world.reaches(3, 2), "and hears no member any more");
}

#[test]
fn a_device_that_loses_its_power_before_it_changes_starts_with_the_next_key() {
    let mut world = World::new(&NAMES);
    world.pass(Duration::from_secs(8), &EVERYBODY);
    world.change_key(&[2, 1, 0]);
    world.pass(Duration::from_secs(3), &EVERYBODY);
    let config = world.config("cellar");
    let parts = world.devices.remove(2).into_parts();
    let moment = &mut moment(world.now, &mut world.entropy);
    world.devices.insert(2, Node::boot(config, parts, moment).unwrap());
    world.pass(Duration::from_secs(20), &EVERYBODY);
    assert!(world.reaches(0, 2) && !world.reaches(0, 3) && !world.reaches(2, 3));
}

#[test]
fn a_key_that_the_owner_did_not_sign_or_an_earlier_one_is_not_changed_to() {
    let mut world = World::new(&NAMES);
    world.pass(Duration::from_secs(8), &EVERYBODY);
    let (own, earlier) = (world.network.clone(), NetworkKey::from_bytes(&[9; 32]));
    world.network = earlier;
    let early = world.readmission(1, 0);
    let mut forged = world.readmission(2, 3);
    forged.invitation[130] ^= 1;
    world.network = own;
    for admission in [early, forged] {
        world.admit(admission).unwrap();
    }
    world.pass(Duration::from_secs(30), &EVERYBODY);
    assert!(world.reaches(0, 3) && world.reaches(3, 0), "the mesh is as it was");
}

#[test]
fn devices_that_were_off_while_the_key_changed_are_told_it_when_they_are_back() {
    let mut world = World::new(&NAMES);
    world.pass(Duration::from_secs(8), &EVERYBODY);
    // Nobody reaches the last two any more when the owner changes the key.
    world.pass(Duration::from_secs(40), &[0, 1]);
    let next = NetworkKey::generate(&mut world.entropy).unwrap();
    world.former = Some(std::mem::replace(&mut world.network, next));
    for (index, is_told) in [(1, true), (2, false), (3, false), (0, true)] {
        let admission = world.readmission(index, 2);
        assert_eq!(world.admit(admission).is_ok(), is_told, "{index}");
    }
    world.pass(Duration::from_secs(60), &[0, 1]);
    assert!(world.reaches(0, 1) && !world.reaches(0, 2));
    // Those two hear each other, and may take themselves for the mesh.
    world.pass(Duration::from_secs(300), &EVERYBODY);
    assert!(world.reaches(0, 3) && world.reaches(3, 0) && world.reaches(2, 0));
}

#[test]
fn an_expelled_device_knocks_and_is_not_told_the_next_key() {
    let mut world = World::new(&NAMES);
    world.pass(Duration::from_secs(8), &EVERYBODY);
    world.change_key(&[2, 1, 0]);
    world.pass(Duration::from_secs(180), &EVERYBODY);
    assert!(world.reaches(0, 2) && !world.reaches(2, 3) && !world.reaches(3, 2));
    let knocks = |world: &World, from: usize| {
        let device = world.devices[from].device_machine();
        let words = world.plain.iter().filter_map(|frame| decode::<Word>(&frame[1..]));
        words.filter(|(word, _)| matches!(word, Word::Knock(it) if it.device == device)).count()
    };
    assert!(knocks(&world, 3) > 3, "it asks to be let in");
    assert!(knocks(&world, 2) <= 6, "who is beside it soon does no more: {}", knocks(&world, 2));
    assert_eq!(knocks(&world, 0), 0, "who doesn't hear it says nothing");
}

/// A hundred devices in a grid of ten by ten.
struct Hundred {
    world: World,
    /// When each wants to run.
    due: Vec<Instant>,
}

impl Hundred {
    const SIDE: usize = 10;
    const TICK: Duration = Duration::from_millis(5);

    fn new() -> Self {
        let names: Vec<String> = (0..100).map(|index| format!("device-{index}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let world = World::new(&names);
        let due = vec![Instant::BOOT; names.len()];
        Self { world, due }
    }

    fn are_neighbours(one: usize, other: usize) -> bool {
        let apart = |of: fn(usize) -> usize| of(one).abs_diff(of(other));
        apart(|it| it / Self::SIDE) + apart(|it| it % Self::SIDE) == 1
    }

    /// Lets time pass; only those run that want to, or hear something.
    fn pass(&mut self, span: Duration) {
        let Self { world, due, .. } = self;
        let end = world.now + span;
        while world.now < end {
            world.now = world.now + Self::TICK;
            let mut flying = Vec::new();
            for (index, due) in due.iter_mut().enumerate().filter(|(_, due)| **due <= world.now) {
                let moment = &mut moment(world.now, &mut world.entropy);
                let node = &mut world.devices[index];
                *due = match node.poll(moment) {
                    Wake::Now => world.now,
                    Wake::At(at) => at,
                    Wake::Never => Instant::BOOT + Duration::from_secs(1 << 30),
                };
                while let Some((to, frame)) = node.transmit_frame() {
                    flying.push((index, to, frame));
                }
                while node.notice().is_some() {}
            }
            for (from, to, frame) in flying {
                let neighbours = (0..due.len()).filter(|it| Self::are_neighbours(from, *it));
                for index in neighbours {
                    let node = world.devices[index].mesh_stack().unwrap().node();
                    if to == Destination::All || to == Destination::One(node) {
                        let moment = &mut moment(world.now, &mut world.entropy);
                        let _ = world.devices[index].receive_frame(moment, &frame, None);
                        due[index] = world.now;
                    }
                }
            }
        }
    }
}

#[test]
fn one_of_a_hundred_devices_is_out_of_the_mesh_within_thirty_seconds_and_nobody_else_is() {
    let (mut hundred, expelled) = (Hundred::new(), 45);
    hundred.pass(Duration::from_secs(20));
    assert!(hundred.world.reaches(0, 99) && hundred.world.reaches(99, expelled));
    let changed_at = hundred.world.now;
    let next = NetworkKey::generate(&mut hundred.world.entropy).unwrap();
    hundred.world.network = next;
    // As the owner's command does: the furthest first, one after the other.
    for index in (0..100).rev().filter(|index| *index != expelled) {
        let admission = hundred.world.readmission(index, 2);
        hundred.world.admit(admission).unwrap();
        hundred.due[0] = hundred.world.now;
        hundred.pass(Duration::from_millis(100));
    }
    hundred.pass(Duration::from_secs(30) - hundred.world.now.since(changed_at));
    let others: Vec<usize> = (0..100).filter(|index| *index != expelled).collect();
    let reach = |from: usize| {
        others.iter().filter(|to| **to != from && hundred.world.reaches(from, **to)).count()
    };
    assert!(others.iter().all(|from| !hundred.world.reaches(*from, expelled)), "it is out");
    let pairs: usize = others.iter().map(|from| reach(*from)).sum();
    assert_eq!(pairs, 99 * 98, "and all others reach each other");
}
