//! Three devices that have nothing but a mesh: the first reaches the last by way of the second.

use std::time::Duration;

use tenure_crypto::{Seed, SigningKey, machine_id};
use tenure_directory::enrol;
use tenure_hal::simulated::{RamFlash, Sequence};
use tenure_hal::{FlashGeometry, Instant, UnixTime};
use tenure_mesh::{Destination, FrameNumber, NodeId, Rejected, Seal as _};
use tenure_node::{Config, Door as _, JoinError, Moment, Node, Notice, Owner, Parts};
use tenure_protocols::network_key::{InvitationError, NetworkKey, invite};
use tenure_wire::capability::PeerPattern;
use tenure_wire::control::{Admission, Answer, Client as _, ControlError, Enrol, Join};
use tenure_wire::directory::Enrolment;
use tenure_wire::{Capabilities, Name, PublicKey};

use crate::leases::{Lease, anybody};

const STEP: Duration = Duration::from_millis(2);
const SECRET: &str = "open sesame";

/// Calls `read` of `thermostat@cellar` as soon as it starts, and logs how that ended.
pub(crate) const CALLER: &str = r#"(module
  (import "tenure" "call" (func $call (param i32 i32 i32 i32 i32 i32 i32) (result i32)))
  (import "tenure" "log" (func $log (param i32 i32 i32)))
  (import "tenure" "sleep_ms" (func $sleep_ms (param i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "thermostat@cellar")
  (data (i32.const 32) "read")
  (data (i32.const 48) "open sesame")
  (data (i32.const 64) "answered")
  (data (i32.const 80) "failed")
  (func (export "entry")
    (call $sleep_ms (i32.const 4000))
    (if (i32.ge_s (call $call (i32.const 0) (i32.const 17) (i32.const 32) (i32.const 4)
          (i32.const 48) (i32.const 11) (i32.const 20000)) (i32.const 0))
      (then (call $log (i32.const 1) (i32.const 64) (i32.const 8)))
      (else (call $log (i32.const 1) (i32.const 80) (i32.const 6))))))"#;

pub(crate) const THERMOSTAT: &str = r#"(module
  (import "tenure" "reply" (func $reply (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 16) "21.0")
  (func (export "read") (drop (call $reply (i32.const 16) (i32.const 4)))))"#;

mod expulsion;
mod joining;
mod passes;

struct World {
    now: Instant,
    entropy: Sequence,
    owner: SigningKey,
    network: NetworkKey,
    /// The key before that, if the network has another one by now.
    former: Option<NetworkKey>,
    devices: Vec<Node<RamFlash>>,
    /// Frames, opened: all that members ever say on the air.
    heard: Vec<Vec<u8>>,
    /// And what was never sealed.
    plain: Vec<Vec<u8>>,
    notices: Vec<(usize, Notice)>,
    /// The sender of each frame.
    senders: Vec<usize>,
    /// The hearer of each frame, and whether it took it.
    taken: Vec<(usize, Result<NodeId, Rejected>)>,
    /// Datagrams that leave the mesh: to who speaks to the first device from elsewhere.
    outside: Vec<Vec<u8>>,
}

fn moment(now: Instant, entropy: &mut Sequence) -> Moment<'_> {
    let unix_time = Some(UnixTime { seconds: 1_800_000_000 + now.as_millis() / 1000 });
    Moment { now, unix_time, entropy }
}

fn parts() -> Parts<RamFlash> {
    let flash = |sector_count| {
        RamFlash::new(FlashGeometry { sector_bytes: 4096, sector_count, program_bytes: 4 })
    };
    Parts { store: flash(32), code: flash(64), staging: flash(32) }
}

impl World {
    fn config(&self, name: &str) -> Config {
        let machine = Seed::from_bytes(&self.owner.to_bytes()).device_secret().public_key();
        let owner = Owner { verifying_key: self.owner.verifying_key(), machine };
        Config::new(name.parse().unwrap(), owner)
    }

    /// Enrolled devices that have joined the owner's mesh.
    fn new(names: &[&str]) -> Self {
        let mut entropy = Sequence(1);
        let network = NetworkKey::generate(&mut entropy).unwrap();
        let owner = SigningKey::from_bytes(&[7; 32]);
        let (devices, heard, plain, notices) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (senders, taken, outside) = (Vec::new(), Vec::new(), Vec::new());
        let now = Instant::BOOT;
        let former = None;
        let mut world = Self {
            now,
            entropy,
            owner,
            network,
            former,
            devices,
            heard,
            plain,
            notices,
            senders,
            taken,
            outside,
        };
        for name in names {
            let config = world.config(name);
            let moment = &mut moment(now, &mut world.entropy);
            let mut node = Node::boot(config, parts(), moment).unwrap();
            let device: Name = name.parse().unwrap();
            let enrolment = Enrolment { device, device_key: node.device_key(), number: 1 };
            let signature = enrol(&world.owner, &enrolment);
            node.as_owner(moment).enrol(Enrol { enrolment, signature }).unwrap();
            let invitation = world.invitation(node.device_machine(), 1);
            let moment = &mut self::moment(now, &mut world.entropy);
            node.as_owner(moment).join(Join { invitation }).unwrap();
            world.devices.push(node);
        }
        world
    }

    fn invitation(&mut self, device: PublicKey, number: u64) -> Vec<u8> {
        invite(&self.owner, &device, number, &self.network, &mut self.entropy).unwrap()
    }

    fn install(&mut self, device: usize, machine: &str, text: &str) {
        self.install_for(device, machine, text, PeerPattern::Any);
    }

    /// A machine that only `callers` may call.
    fn install_for(&mut self, device: usize, machine: &str, text: &str, callers: PeerPattern) {
        let grants = Capabilities { callers: vec![callers], ..anybody() };
        let signed =
            Lease::of(machine, text, grants).sign(&self.owner, self.devices[device].device_key());
        let moment = &mut moment(self.now, &mut self.entropy);
        self.devices[device].install(moment, &signed.package, &signed.placement).unwrap();
    }

    /// Lets time pass; a frame reaches those next to its sender in the row, if `alive`.
    fn pass(&mut self, span: Duration, alive: &[usize]) {
        let end = self.now + span;
        while self.now < end {
            self.now = self.now + STEP;
            let mut flying = Vec::new();
            for &index in alive {
                let moment = &mut moment(self.now, &mut self.entropy);
                self.devices[index].poll(moment);
                while let Some((_, datagram)) = self.devices[index].transmit() {
                    assert!(index == 0, "nothing but the mesh is used");
                    self.outside.push(datagram);
                }
                while let Some((to, frame)) = self.devices[index].transmit_frame() {
                    self.senders.push(index);
                    flying.push((index, to, frame));
                }
                while let Some(notice) = self.devices[index].notice() {
                    self.notices.push((index, notice));
                }
            }
            for (from, to, frame) in flying {
                self.overhear(&frame);
                for &index in alive.iter().filter(|index| index.abs_diff(from) == 1) {
                    let node = NodeId::from(&machine_id(&self.devices[index].device_machine()));
                    if to == Destination::All || to == Destination::One(node) {
                        self.hand_in(index, &frame);
                    }
                }
            }
        }
    }

    /// Has `attic` told an admission by the owner.
    fn admit(&mut self, admission: Admission) -> Answer<()> {
        let moment = &mut moment(self.now, &mut self.entropy);
        self.devices[0].as_owner(moment).mesh_admit(admission)
    }

    fn join(&mut self, index: usize, invitation: Vec<u8>) {
        let moment = &mut moment(self.now, &mut self.entropy);
        self.devices[index].as_owner(moment).join(Join { invitation }).unwrap();
    }

    /// Lets a device hear a frame.
    fn hand_in(&mut self, index: usize, frame: &[u8]) {
        let moment = &mut moment(self.now, &mut self.entropy);
        self.taken.push((index, self.devices[index].receive_frame(moment, frame, None)));
    }

    /// Opens a frame as a member can, and keeps what is in it.
    fn overhear(&mut self, frame: &[u8]) {
        if frame[0] & 8 != 0 {
            return self.plain.push(frame.to_vec());
        }
        let (header, bytes) = tenure_mesh::frame::Header::parse(frame).unwrap();
        let number: FrameNumber = header.number;
        let keys = [Some(&self.network), self.former.as_ref()];
        let opened = keys.into_iter().flatten().find_map(|key| {
            let mut sealed = frame[bytes..].to_vec();
            Some(key.open(&number, &frame[..bytes], &mut sealed)?.to_vec())
        });
        self.heard.push(opened.expect("members seal what they say"));
    }

    fn logged(&self, text: &str) -> bool {
        self.notices
            .iter()
            .any(|(_, notice)| matches!(notice, Notice::Log(line) if line.message.contains(text)))
    }
}

#[test]
fn a_call_by_name_crosses_a_relay_that_can_read_nothing() {
    let mut world = World::new(&["attic", "stairs", "cellar"]);
    world.install(2, "thermostat", THERMOSTAT);
    world.install(0, "caller", CALLER);
    world.pass(Duration::from_secs(12), &[0, 1, 2]);
    assert!(world.logged("answered"), "{:?}", world.notices);
    assert!(world.outside.is_empty(), "nothing but the mesh is used");
    let contains = |text: &str| {
        world.heard.iter().any(|it| it.windows(text.len()).any(|part| part == text.as_bytes()))
    };
    assert!(contains("thermostat"), "the record of the machine's device is no secret to members");
    assert!(!contains(SECRET) && !contains("21.0"), "what machines say to each other is");
}

#[test]
fn without_the_relay_the_call_fails_and_nothing_else() {
    let mut world = World::new(&["attic", "stairs", "cellar"]);
    world.install(2, "thermostat", THERMOSTAT);
    world.install(0, "caller", CALLER);
    world.pass(Duration::from_secs(30), &[0, 2]);
    assert!(world.logged("failed") && !world.logged("answered"));
}

#[test]
fn the_mesh_is_joined_again_after_a_boot_and_a_stale_invitation_is_refused() {
    let mut world = World::new(&["attic"]);
    let node = world.devices.pop().unwrap();
    let parts = node.into_parts();
    let config = world.config("attic");
    let now = world.now;
    let mut node = Node::boot(config, parts, &mut moment(now, &mut world.entropy)).unwrap();
    assert!(node.mesh_stack().is_some());
    let later = world.invitation(node.device_machine(), 5);
    let stale = world.invitation(node.device_machine(), 4);
    let refused = |error: JoinError| Err(ControlError::Refused(error.to_string()));
    let join = |world: &mut World, node: &mut Node<RamFlash>, invitation| -> Answer<()> {
        node.as_owner(&mut moment(now, &mut world.entropy)).join(Join { invitation })
    };
    join(&mut world, &mut node, later).unwrap();
    assert_eq!(join(&mut world, &mut node, stale), refused(JoinError::Stale));
    let stranger = SigningKey::from_bytes(&[8; 32]);
    let forged = invite(&stranger, &node.device_machine(), 9, &world.network, &mut world.entropy);
    let reason = JoinError::Invitation(InvitationError::Signature);
    assert_eq!(join(&mut world, &mut node, forged.unwrap()), refused(reason));
    let id = machine_id(&node.device_machine());
    assert_eq!(node.mesh_stack().unwrap().node(), NodeId::from(&id));
}

#[test]
fn a_caller_whose_record_has_not_come_yet_is_asked_who_it_is_and_let_in() {
    for (callers, expected) in [("caller@attic", "answered"), ("caller@garden", "failed")] {
        let mut world = World::new(&["attic", "stairs", "cellar"]);
        let callers = callers.parse().unwrap();
        world.install_for(2, "thermostat", THERMOSTAT, callers);
        world.pass(Duration::from_secs(8), &[0, 1, 2]);
        // The caller is new, and calls before anybody can have been told of it.
        let eager = CALLER.replace("(i32.const 4000)", "(i32.const 0)");
        world.install(0, "caller", &eager);
        world.pass(Duration::from_millis(400), &[0, 1, 2]);
        assert!(world.logged(expected), "{:?}", world.notices);
    }
}

/// Each frame's number, which no other frame may have under the same key, though its content may differ.
fn check_numbers(frames: &[(u8, Vec<u8>)]) {
    let mut seen = std::collections::BTreeMap::new();
    for (key, frame) in frames {
        let (header, bytes) = tenure_mesh::frame::Header::parse(frame).unwrap();
        let FrameNumber { sender, epoch, salt, sequence } = header.number;
        let before = seen.insert((*key, sender, epoch, salt, sequence), frame[bytes..].to_vec());
        assert!(before.is_none_or(|it| it == frame[bytes..]), "{:?} comes twice", header.number);
    }
    assert!(frames.len() > 4, "there are frames to compare");
}

/// The datagrams of a device in ten seconds in which nobody answers.
fn frames_of(world: &mut World, key: u8, frames: &mut Vec<(u8, Vec<u8>)>) {
    let end = world.now + Duration::from_secs(10);
    while world.now < end {
        world.now = world.now + STEP;
        world.devices[0].poll(&mut moment(world.now, &mut world.entropy));
        while let Some((_, frame)) = world.devices[0].transmit_frame() {
            frames.push((key, frame));
        }
    }
}

#[test]
fn a_detour_to_another_network_numbers_no_frame_twice() {
    let mut world = World::new(&["attic"]);
    let (device, first) = (world.devices[0].device_machine(), world.network.clone());
    let other = NetworkKey::generate(&mut world.entropy).unwrap();
    let mut frames = Vec::new();
    frames_of(&mut world, 0, &mut frames);
    for (number, key, network) in [(2, 1, other), (3, 0, first)] {
        world.network = network;
        let invitation = world.invitation(device, number);
        world.join(0, invitation);
        frames_of(&mut world, key, &mut frames);
    }
    check_numbers(&frames);
}

#[test]
fn flash_that_was_put_back_numbers_no_frame_twice() {
    let mut world = World::new(&["attic"]);
    let mut frames = Vec::new();
    let backup = world.devices.pop().unwrap().into_parts();
    let copy = || Parts {
        store: backup.store.clone(),
        code: backup.code.clone(),
        staging: backup.staging.clone(),
    };
    for parts in [copy(), copy()] {
        let config = world.config("attic");
        let moment = &mut moment(world.now, &mut world.entropy);
        world.devices = vec![Node::boot(config, parts, moment).unwrap()];
        frames_of(&mut world, 0, &mut frames);
    }
    check_numbers(&frames);
}

#[cfg(feature = "experiments")]
#[test]
fn an_order_that_was_carried_out_before_a_boot_does_not_count_after_it() {
    use tenure_mesh::ProtocolNumber;
    use tenure_protocols::experiment::{Order, sign};

    let mut world = World::new(&["attic"]);
    for is_new in [true, false] {
        let parts = world.devices.pop().unwrap().into_parts();
        let config = Config { experiments: true, ..world.config("attic") };
        let moment = &mut moment(world.now, &mut world.entropy);
        let mut node = Node::boot(config, parts, moment).unwrap();
        let director = node.mesh_stack().unwrap().node();
        let order = sign(&world.owner, 7, director, &Order::Stop { protocol: ProtocolNumber(13) });
        let directed = node.as_owner(moment).experiment_direct(&order);
        assert_eq!(directed.is_ok(), is_new, "{directed:?}");
        node.poll(moment);
        world.devices.push(node);
    }
}

#[test]
fn an_invitation_that_is_taken_twice_numbers_no_frame_twice() {
    let mut world = World::new(&["attic", "cellar"]);
    world.pass(Duration::from_secs(2), &[0, 1]);
    let sent = world.devices[0].mesh_stack().unwrap().counters().frames_sent;
    let device = world.devices[0].device_machine();
    let again = world.invitation(device, 2);
    world.join(0, again);
    assert!(sent > 0);
    assert_eq!(world.devices[0].mesh_stack().unwrap().counters().frames_sent, sent);
}
