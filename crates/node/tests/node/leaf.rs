//! A leaf and a node that have nothing but a mesh, and the owner at the leaf's service line.

use std::time::Duration;

use tenure_crypto::{Seed, SigningKey, StaticSecret};
use tenure_directory::{enrol, open_whenever};
use tenure_hal::simulated::{RamFlash, Sequence};
use tenure_hal::{FlashGeometry, Instant, UnixTime};
use tenure_mesh::Destination;
use tenure_node::{
    Ask, Config, Door as _, Leaf, LeafConfig, LeafNotice, MeshStack, Moment, Node, Notice, Outcome,
    Owner, Parts, Service, ServiceCall, ServiceTree,
};
use tenure_protocols::network_key::{NetworkKey, invite};
use tenure_rpc::{Endpoint, Event, NoResult, OutgoingCall};
use tenure_store::ValueKind;
use tenure_wire::PublicKey;
use tenure_wire::control::{
    Answer, Client as _, ControlError, DeviceStatus, Enrol, Function, Join, ListMachines,
    MachineList, MeshStatus, TreeNode, TreeQuery, TreeValue, decode_answer,
};
use tenure_wire::directory::{Enrolment, SignedRecord};

use crate::leases::{Lease, anybody};

const STEP: Duration = Duration::from_millis(2);

/// Calls `read`, then `ask` of `thermostat@leaf`, and logs what it got.
const CALLER: &str = r#"(module
  (import "tenure" "call" (func $call (param i32 i32 i32 i32 i32 i32 i32) (result i32)))
  (import "tenure" "result_read" (func $result (param i32 i32 i32) (result i32)))
  (import "tenure" "log" (func $log (param i32 i32 i32)))
  (import "tenure" "sleep_ms" (func $sleep_ms (param i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "thermostat@leaf")
  (data (i32.const 32) "read")
  (data (i32.const 40) "ask")
  (data (i32.const 80) "failed")
  (func $try (param $function i32) (param $length i32)
    (local $got i32)
    (local.set $got (call $call (i32.const 0) (i32.const 15) (local.get $function) (local.get $length)
      (i32.const 0) (i32.const 0) (i32.const 20000)))
    (if (i32.ge_s (local.get $got) (i32.const 0))
      (then
        (drop (call $result (i32.const 0) (i32.const 128) (i32.const 64)))
        (call $log (i32.const 1) (i32.const 128) (local.get $got)))
      (else (call $log (i32.const 1) (i32.const 80) (i32.const 6)))))
  (func (export "entry")
    (call $sleep_ms (i32.const 4000))
    (call $try (i32.const 32) (i32.const 4))
    (call $try (i32.const 40) (i32.const 3))))"#;

/// Answers the leaf.
const CELLAR: &str = r#"(module
  (import "tenure" "reply" (func $reply (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 16) "17.5")
  (func (export "read") (drop (call $reply (i32.const 16) (i32.const 4)))))"#;

/// A thermostat as part of a firmware: reads and keeps its degrees, and can ask the one in the cellar.
struct Thermostat;

impl Service for Thermostat {
    fn functions(&self) -> &[&str] {
        &["read", "set", "ask"]
    }

    fn call(&mut self, call: &ServiceCall<'_>, tree: &mut dyn ServiceTree) -> Outcome {
        match call.function {
            "ask" => Outcome::Ask(Ask {
                machine: "thermostat".parse().unwrap(),
                device: "attic".parse().unwrap(),
                function: "read".to_string(),
                parameter: None,
            }),
            "set" => {
                let degrees = call.parameter.unwrap_or_default();
                tree.set("degrees", ValueKind::Text, degrees).unwrap();
                Outcome::Done(Ok(None))
            }
            _ => Outcome::Done(Ok(tree.get("degrees").unwrap().map(|value| value.bytes))),
        }
    }

    fn go_on(
        &mut self,
        answer: Result<Option<Vec<u8>>, NoResult>,
        _: &mut dyn ServiceTree,
    ) -> Result<Option<Vec<u8>>, NoResult> {
        answer.map_err(|_| NoResult::Execution)
    }
}

/// The leaf, a node within reach of it, and whoever sits at its service line.
struct World {
    now: Instant,
    entropy: Sequence,
    owner: SigningKey,
    network: NetworkKey,
    leaf: Leaf<RamFlash>,
    attic: Node<RamFlash>,
    logged: Vec<String>,
    told: Vec<LeafNotice>,
}

fn flash(sector_count: u32) -> RamFlash {
    RamFlash::new(FlashGeometry { sector_bytes: 4096, sector_count, program_bytes: 4 })
}

fn holder(owner: &SigningKey) -> Owner {
    let machine = Seed::from_bytes(&owner.to_bytes()).device_secret().public_key();
    Owner { verifying_key: owner.verifying_key(), machine }
}

fn start_leaf(
    owner: &SigningKey,
    now: Instant,
    entropy: &mut Sequence,
    flash: RamFlash,
) -> Leaf<RamFlash> {
    let config = LeafConfig { name: "leaf".parse().unwrap(), owner: holder(owner), heap: None };
    // It has no clock of the wall.
    let mut leaf =
        Leaf::boot(config, flash, &mut Moment { now, unix_time: None, entropy }).unwrap();
    assert!(leaf.offer(1, "thermostat".parse().unwrap(), Box::new(Thermostat)).is_ok());
    leaf
}

impl World {
    fn new() -> Self {
        let (mut entropy, owner) = (Sequence(1), SigningKey::from_bytes(&[7; 32]));
        let network = NetworkKey::generate(&mut entropy).unwrap();
        let now = Instant::BOOT;
        let leaf = start_leaf(&owner, now, &mut entropy, flash(8));
        let config = Config::new("attic".parse().unwrap(), holder(&owner));
        let parts = Parts { store: flash(32), code: flash(64), staging: flash(32) };
        let moment = &mut Moment { now, unix_time: None, entropy: &mut entropy };
        let mut attic = Node::boot(config, parts, moment).unwrap();
        let device_key = attic.device_key();
        let enrolment = Enrolment { device: "attic".parse().unwrap(), device_key, number: 1 };
        let signature = enrol(&owner, &enrolment);
        attic.as_owner(moment).enrol(Enrol { enrolment, signature }).unwrap();
        let invitation = invite(&owner, &attic.device_machine(), 1, &network, &mut entropy);
        let moment = &mut Moment { now, unix_time: None, entropy: &mut entropy };
        attic.as_owner(moment).join(Join { invitation: invitation.unwrap() }).unwrap();
        let (logged, told) = (Vec::new(), Vec::new());
        Self { now, entropy, owner, network, leaf, attic, logged, told }
    }

    fn install(&mut self, machine: &str, text: &str) {
        let lease = Lease::of(machine, text, anybody());
        let signed = lease.sign(&self.owner, self.attic.device_key());
        let unix_time = Some(UnixTime { seconds: 1_800_000_000 + self.now.as_millis() / 1000 });
        let moment = &mut Moment { now: self.now, unix_time, entropy: &mut self.entropy };
        self.attic.install(moment, &signed.package, &signed.placement).unwrap();
    }

    /// The answer to the holder of `key` who calls at the service line.
    fn at_line(
        &mut self,
        key: &StaticSecret,
        to: PublicKey,
        function: &str,
        parameter: Vec<u8>,
    ) -> Result<Option<Vec<u8>>, NoResult> {
        let config = tenure_rpc::Config::default();
        let mut endpoint = Endpoint::<u8>::new(config, self.now, &mut self.entropy).unwrap();
        let own = endpoint.add_machine(key.clone()).unwrap();
        let call = OutgoingCall {
            function: function.into(),
            parameter: Some(parameter),
            deadline: self.now + Duration::from_secs(10),
            attempts: 5,
        };
        endpoint.call(self.now, &mut self.entropy, &own, &to, 0, None, call).unwrap();
        loop {
            self.pass(STEP);
            endpoint.poll(self.now, &mut self.entropy);
            while let Some((_, datagram)) = endpoint.transmit() {
                let entropy = &mut self.entropy;
                let moment = &mut Moment { now: self.now, unix_time: None, entropy };
                self.leaf.receive(moment, &datagram);
            }
            while let Some(datagram) = self.leaf.transmit() {
                endpoint.receive(self.now, &mut self.entropy, 0, &datagram);
            }
            if let Some(Event::CallDone { result, .. }) = endpoint.event() {
                return result;
            }
        }
    }

    /// The answer of the leaf's own machine to the owner.
    fn control<R: serde::de::DeserializeOwned>(
        &mut self,
        name: &str,
        parameter: &impl serde::Serialize,
    ) -> Answer<R> {
        let key = Seed::from_bytes(&self.owner.to_bytes()).device_secret();
        let parameter = postcard::to_allocvec(parameter).unwrap();
        let answer = self.at_line(&key, self.leaf.device_machine(), name, parameter);
        postcard::from_bytes(&answer.unwrap().unwrap()).unwrap()
    }

    fn enrol_leaf(&mut self) {
        let (device, device_key) = ("leaf".parse().unwrap(), self.leaf.device_key());
        let enrolment = Enrolment { device, device_key, number: 1 };
        let signature = enrol(&self.owner, &enrolment);
        self.control::<()>(Function::enrol.name(), &Enrol { enrolment, signature }).unwrap();
    }

    fn invite_leaf(&mut self) {
        let to = self.leaf.device_machine();
        let invitation = invite(&self.owner, &to, 1, &self.network, &mut self.entropy).unwrap();
        self.control::<()>(Function::join.name(), &Join { invitation }).unwrap();
    }

    /// Lets time pass; each hears the other's frames. Only the node has a clock of the wall.
    fn pass(&mut self, span: Duration) {
        let end = self.now + span;
        while self.now < end {
            self.now = self.now + STEP;
            let (now, unix_s) = (self.now, 1_800_000_000 + self.now.as_millis() / 1000);
            let unix_time = Some(UnixTime { seconds: unix_s });
            self.attic.poll(&mut Moment { now, unix_time, entropy: &mut self.entropy });
            self.leaf.poll(&mut Moment { now, unix_time: None, entropy: &mut self.entropy });
            self.told.extend(std::iter::from_fn(|| self.leaf.notice()));
            let Some(leaf) = self.leaf.mesh() else { continue };
            hand_over(
                &mut self.attic,
                leaf,
                &mut Moment { now, unix_time, entropy: &mut self.entropy },
            );
            while let Some(notice) = self.attic.notice() {
                if let Notice::Log(line) = notice {
                    self.logged.push(line.message);
                }
            }
        }
    }
}

/// Lets each hear the other's frames.
fn hand_over(attic: &mut Node<RamFlash>, leaf: &mut MeshStack, moment: &mut Moment<'_>) {
    let now = moment.now;
    while let Some((to, frame)) = attic.transmit_frame() {
        if to == Destination::All || to == Destination::One(leaf.node()) {
            let _ = leaf.receive(now, &frame, None);
        }
    }
    let node = attic.mesh_stack().unwrap().node();
    let mut frame = Vec::new();
    while let Some(to) = leaf.transmit(now, &mut frame) {
        if to == Destination::All || to == Destination::One(node) {
            let _ = attic.receive_frame(moment, &frame, None);
        }
    }
}

#[test]
fn a_machine_calls_a_leaf_by_name_and_the_leaf_asks_back() {
    let mut world = World::new();
    world.enrol_leaf();
    world.invite_leaf();
    world.pass(STEP);
    assert_eq!(world.told, [LeafNotice::Enrolled, LeafNotice::Joined]);
    let thermostat = world.control::<MachineList>(Function::list.name(), &ListMachines { skip: 0 });
    let thermostat = thermostat.unwrap().machines[0].key;
    let owner = Seed::from_bytes(&world.owner.to_bytes()).device_secret();
    world.at_line(&owner, thermostat, "set", b"22.5".to_vec()).unwrap();
    world.install("thermostat", CELLAR);
    world.install("caller", CALLER);
    world.pass(Duration::from_secs(12));
    world.logged.retain(|line| line != "installed");
    assert_eq!(world.logged, ["22.5", "17.5"], "what it keeps, then what it asked for");
    let query =
        TreeQuery { machine: "thermostat".parse().unwrap(), path: "degrees".into(), skip: 0 };
    let node = world.control::<TreeNode>(Function::tree.name(), &query).unwrap();
    assert_eq!(node.value, Some(TreeValue::Text("22.5".into())));
    let status = world.control::<MeshStatus>(Function::mesh.name(), &()).unwrap();
    assert_eq!((status.neighbours, status.ways.len()), (1, 1));
    assert_eq!(status.ways[0].device, Some("attic".parse().unwrap()));
}

#[test]
fn a_leaf_answers_nobody_but_its_owner_and_machines_of_its_owners_devices() {
    let mut world = World::new();
    world.enrol_leaf();
    let stranger = StaticSecret::from_bytes(&[9; 32]);
    let device = world.leaf.device_machine();
    let refused = world.at_line(&stranger, device, Function::status.name(), Vec::new()).unwrap();
    let refused: Answer<DeviceStatus> = decode_answer(&refused.unwrap());
    assert_eq!(refused, Err(ControlError::NotOwner));
    let record = world.at_line(&stranger, device, Function::record.name(), Vec::new()).unwrap();
    let record: Answer<Option<SignedRecord>> = decode_answer(&record.unwrap());
    let record = open_whenever(&record.unwrap().unwrap()).unwrap();
    let (name, thermostat) = &record.machines[0];
    assert_eq!(name.as_str(), "thermostat", "its record is no secret");
    let denied = world.at_line(&stranger, *thermostat, "read", Vec::new());
    assert_eq!(denied, Err(NoResult::Denied));
    let other = SigningKey::from_bytes(&[8; 32]);
    let (device, device_key) = ("leaf".parse().unwrap(), world.leaf.device_key());
    let enrolment = Enrolment { device, device_key, number: 2 };
    let signature = enrol(&other, &enrolment);
    let forged = world.control::<()>(Function::enrol.name(), &Enrol { enrolment, signature });
    assert!(matches!(forged, Err(ControlError::Refused(_))), "{forged:?}");
    let install = world.control::<()>(Function::install_begin.name(), &());
    assert_eq!(install, Err(ControlError::NoSuchFunction), "it takes no machines");
}

#[test]
fn a_leaf_without_a_way_to_whom_it_asks_says_so_and_serves_on() {
    let mut world = World::new();
    world.enrol_leaf();
    let list =
        world.control::<MachineList>(Function::list.name(), &ListMachines { skip: 0 }).unwrap();
    assert_eq!((list.total, list.machines[0].exports.len()), (1, 3));
    let owner = Seed::from_bytes(&world.owner.to_bytes()).device_secret();
    let thermostat = list.machines[0].key;
    assert_eq!(world.at_line(&owner, thermostat, "ask", Vec::new()), Err(NoResult::Execution));
    assert_eq!(world.at_line(&owner, thermostat, "read", Vec::new()), Ok(None));
    let unknown = world.at_line(&owner, thermostat, "explode", Vec::new());
    assert_eq!(unknown, Err(NoResult::NoSuchFunction));
}

#[test]
fn a_leaf_is_the_same_after_a_loss_of_power() {
    let mut world = World::new();
    world.enrol_leaf();
    world.invite_leaf();
    let owner = Seed::from_bytes(&world.owner.to_bytes()).device_secret();
    let list =
        world.control::<MachineList>(Function::list.name(), &ListMachines { skip: 0 }).unwrap();
    let thermostat = list.machines[0].key;
    world.at_line(&owner, thermostat, "set", b"19.0".to_vec()).unwrap();
    let before = world.leaf.device_machine();
    let fresh = start_leaf(&world.owner, world.now, &mut world.entropy, flash(8));
    let kept = core::mem::replace(&mut world.leaf, fresh).into_flash();
    world.leaf = start_leaf(&world.owner, world.now, &mut world.entropy, kept);
    assert_eq!(world.leaf.device_machine(), before);
    assert!(world.leaf.is_enrolled() && world.leaf.mesh().is_some());
    assert_eq!(world.at_line(&owner, thermostat, "read", Vec::new()), Ok(Some(b"19.0".to_vec())));
}
