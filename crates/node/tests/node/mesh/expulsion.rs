//! The owner gives the mesh another key, by one member, and leaves a device out.

use tenure_protocols::babel::Babel;
use tenure_wire::control::{Admission, Enrol};

use super::*;

const EVERYBODY: [usize; 4] = [0, 1, 2, 3];
const NAMES: [&str; 4] = ["attic", "stairs", "cellar", "garden"];

impl World {
    /// A member's admission to the mesh by its present key.
    fn readmission(&mut self, index: usize, number: u64) -> Admission {
        let node = &self.devices[index];
        let (device_key, machine) = (node.device_key(), node.device_machine());
        let enrolment = Enrolment { device: NAMES[index].parse().unwrap(), device_key, number };
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
