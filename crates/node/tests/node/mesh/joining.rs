//! A device that only a member of the mesh can hear is let in by its owner, who is two hops away.

use tenure_crypto::StaticSecret;
use tenure_mesh::decode;
use tenure_node::Input;
use tenure_protocols::joining::{Knock, Word};
use tenure_wire::control::{Admission, ControlError, Enrol, StrangersQuery};

use super::*;

const EVERYBODY: [usize; 3] = [0, 1, 2];

impl World {
    /// `attic` and `stairs` are members; `cellar`, which only `stairs` hears, isn't.
    fn with_a_stranger() -> Self {
        let mut world = Self::new(&["attic", "stairs"]);
        world.add_stranger("cellar");
        world
    }

    fn add_stranger(&mut self, name: &str) {
        let config = self.config(name);
        let moment = &mut moment(self.now, &mut self.entropy);
        let mut node = Node::boot(config, parts(), moment).unwrap();
        node.take(moment, Input::Knock);
        self.devices.push(node);
    }

    fn owner_machine(&self) -> StaticSecret {
        Seed::from_bytes(&self.owner.to_bytes()).device_secret()
    }

    /// Those whom `attic` knows to have knocked, once the others were asked.
    fn strangers(&mut self) -> Vec<Knock> {
        let ask = |world: &mut Self| {
            let moment = &mut moment(world.now, &mut world.entropy);
            let query = StrangersQuery::default();
            world.devices[0].as_owner(moment).mesh_strangers(query).unwrap().0
        };
        ask(self);
        self.pass(Duration::from_secs(1), &EVERYBODY);
        let strangers = ask(self);
        strangers.iter().map(|stranger| decode(&stranger.knock).unwrap().0).collect()
    }

    fn admission(&mut self, knock: &Knock, number: u64) -> Admission {
        let device = knock.name.clone();
        let enrolment = Enrolment { device, device_key: knock.key, number };
        let signature = enrol(&self.owner, &enrolment);
        let invitation = self.invitation(knock.device, number);
        Admission { invitation, enrol: Enrol { enrolment, signature } }
    }

    /// The frames that were sent in the open.
    fn words(&self) -> Vec<Word> {
        self.plain.iter().map(|frame| decode(&frame[1..]).unwrap().0).collect()
    }
}

#[test]
fn a_device_that_only_a_member_hears_is_let_in_and_called() {
    let mut world = World::with_a_stranger();
    world.pass(Duration::from_secs(6), &EVERYBODY);
    let strangers = world.strangers();
    let [knock] = strangers.as_slice() else { panic!("{strangers:?}") };
    assert!(knock.is_proven_to(&world.owner_machine()));
    assert_eq!((knock.name.as_str(), knock.device), ("cellar", world.devices[2].device_machine()));
    assert!(world.devices[2].mesh_stack().is_none() && !world.devices[2].is_enrolled());
    let admission = world.admission(knock, 1);
    world.admit(admission).unwrap();
    world.pass(Duration::from_secs(2), &EVERYBODY);
    assert!(world.devices[2].mesh_stack().is_some() && world.devices[2].is_enrolled());
    let joined = |(device, notice): &(usize, Notice)| {
        *device == 2 && matches!(notice, Notice::InMesh { .. })
    };
    assert_eq!(world.notices.iter().filter(|it| joined(it)).count(), 1);
    // It knocks no more, and is a member like any other.
    let said = world.plain.len();
    world.install(2, "thermostat", THERMOSTAT);
    world.install(0, "caller", CALLER);
    world.pass(Duration::from_secs(12), &EVERYBODY);
    assert!(world.logged("answered"), "{:?}", world.notices);
    assert_eq!(world.plain.len(), said);
}

#[test]
fn what_the_owner_did_not_sign_for_that_device_lets_nobody_in() {
    let mut world = World::with_a_stranger();
    world.pass(Duration::from_secs(6), &EVERYBODY);
    let mut knock = world.strangers().remove(0);
    let mut forged = world.admission(&knock, 1);
    forged.invitation[100] ^= 1;
    world.admit(forged).unwrap();
    // The name is somebody else's, and so the signature.
    let mut renamed = world.admission(&knock, 2);
    renamed.enrol.enrolment.device = "attic".parse().unwrap();
    world.admit(renamed).unwrap();
    world.pass(Duration::from_secs(90), &EVERYBODY);
    assert!(world.devices[2].mesh_stack().is_none() && !world.devices[2].is_enrolled());
    knock.device = world.owner_machine().public_key();
    let admission = world.admission(&knock, 3);
    let refused = world.admit(admission);
    assert!(matches!(refused, Err(ControlError::Refused(_))), "{refused:?}");
}

#[test]
fn a_member_is_made_to_say_next_to_nothing_however_much_strangers_knock() {
    let mut world = World::with_a_stranger();
    world.pass(Duration::from_secs(6), &EVERYBODY);
    let knock = world.strangers().remove(0);
    let recorded = world.plain[0].clone();
    let sent = |world: &World| world.devices[1].mesh_stack().unwrap().counters().bytes_sent;
    // Nobody is to be let in: not a byte, though somebody repeats a genuine knock without end.
    let plain_before = world.plain.len();
    for _ in 0..1000 {
        world.pass(STEP, &[0, 1]);
        world.hand_in(1, &recorded);
    }
    assert_eq!(world.plain.len(), plain_before);
    // The owner lets it in, and it doesn't hear that.
    let admission = world.admission(&knock, 1);
    world.admit(admission).unwrap();
    let before = sent(&world);
    for _ in 0..10_000 {
        world.pass(STEP, &[0, 1]);
        world.hand_in(1, &recorded);
    }
    let admissions = world.words().iter().filter(|word| matches!(word, Word::Admission(_))).count();
    assert!((1..=12).contains(&admissions), "{admissions}");
    assert!(sent(&world) - before < 20_000, "{}", sent(&world) - before);
}

#[test]
fn a_stranger_takes_no_frame_but_its_admission_and_says_nothing_but_its_knock() {
    let mut world = World::with_a_stranger();
    world.pass(Duration::from_secs(60), &EVERYBODY);
    let taken: Vec<_> = world.taken.iter().filter(|(by, _)| *by == 2).map(|it| it.1).collect();
    assert!(taken.iter().all(Result::is_err), "{taken:?}");
    let forged = taken.iter().filter(|taken| **taken == Err(Rejected::Forged)).count();
    assert!(forged > 10, "it hears members' frames, and can't read them: {taken:?}");
    assert!(world.words().iter().all(|word| matches!(word, Word::Knock(_))));
    assert_eq!(world.senders.iter().filter(|by| **by == 2).count(), world.plain.len());
    assert!(world.plain.len() < 10);
}
