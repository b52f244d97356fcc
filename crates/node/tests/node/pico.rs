//! Raspberry Pi Picos in an emulator, from their boot ROM on, in lock-step with their owner and with a node of this
//! process, over the lines at their UARTs. Time is simulated, so that a busy computer changes nothing.
//!
//! Needs the firmware and the emulator; `cargo xtask board rp2040 --check` runs it, and `cargo xtask test` with it.

mod chip;
mod cuts;

use std::time::Duration;

use tenure_crypto::{Seed, SigningKey, StaticSecret};
use tenure_directory::enrol;
use tenure_hal::simulated::{RamFlash, Sequence};
use tenure_hal::{FlashGeometry, Instant, Link as _, UnixTime};
use tenure_mesh::{Carrier, Reach, SerialLine};
use tenure_node::{Config, Door as _, Moment, Node, Notice, Owner, Parts};
use tenure_protocols::network_key::{NetworkKey, invite};
use tenure_rpc::{Endpoint, Event, NoResult, OutgoingCall};
use tenure_wire::control::{
    CHUNK_BYTES_MAX, Client as _, DeviceStatus, Enrol, Function, InstallBegin, InstallChunk,
    InstallCommit, Join, ListMachines, MachineList, MachineStatus, TellTime, decode_answer,
};
use tenure_wire::directory::Enrolment;
use tenure_wire::{MachineId, PublicKey, VerifyingKey};

use self::chip::{Chip, End, STEP_US};
use crate::leases::{Lease, anybody};
use crate::mesh::{CALLER, THERMOSTAT};

/// Calls `read` of the machine that it is told, and returns what that returns.
const ASKER: &str = r#"(module
  (import "tenure" "parameter_read" (func $parameter_read (param i32 i32 i32) (result i32)))
  (import "tenure" "call" (func $call (param i32 i32 i32 i32 i32 i32 i32) (result i32)))
  (import "tenure" "result_read" (func $result_read (param i32 i32 i32) (result i32)))
  (import "tenure" "reply" (func $reply (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "read")
  (func (export "ask") (local $got i32)
    (local.set $got (call $call
      (i32.const 64) (call $parameter_read (i32.const 0) (i32.const 64) (i32.const 128))
      (i32.const 0) (i32.const 4) (i32.const 0) (i32.const 0) (i32.const 20000)))
    (if (i32.lt_s (local.get $got) (i32.const 0)) (then (unreachable)))
    (drop (call $result_read (i32.const 0) (i32.const 256) (i32.const 64)))
    (drop (call $reply (i32.const 256) (local.get $got)))))"#;

/// Long enough for whatever a Pico does, which derives keys in a second.
const PATIENCE: Duration = Duration::from_secs(60);
const FRAME_BYTES_MAX: usize = tenure_hal::DATAGRAM_BYTES_MAX;

fn line_to(end: End) -> SerialLine<End> {
    SerialLine::new(end, FRAME_BYTES_MAX, 4)
}

/// A Pico, and its owner at its second UART.
struct Pico {
    chip: Chip,
    name: &'static str,
    desk: Endpoint<u8>,
    own: MachineId,
    line: SerialLine<End>,
}

/// A node of this process: what a Linux device runs, on a line of its own.
struct Shed {
    node: Node<RamFlash>,
    carrier: Carrier<SerialLine<End>>,
    logged: Vec<String>,
}

struct World {
    now: Instant,
    entropy: Sequence,
    owner: SigningKey,
    network: NetworkKey,
    picos: Vec<Pico>,
    shed: Option<Shed>,
}

/// The owner's end of sessions, and who speaks there.
fn sit_down(
    now: Instant,
    entropy: &mut Sequence,
    secret: StaticSecret,
) -> (Endpoint<u8>, MachineId) {
    let mut desk = Endpoint::new(tenure_rpc::Config::default(), now, entropy).unwrap();
    let own = desk.add_machine(secret).unwrap();
    (desk, own)
}

/// The owner's clock.
fn unix_s(now: Instant) -> u64 {
    1_800_000_000 + now.as_millis() / 1000
}

impl World {
    /// Powers Picos of these names, with seeds from `seed` on. The first UARTs of the first two are joined.
    fn power_on(names: &[&'static str], seed: u32) -> Self {
        let (mut entropy, owner) = (Sequence(1), SigningKey::from_bytes(&[7; 32]));
        let network = NetworkKey::generate(&mut entropy).unwrap();
        let secret = Seed::from_bytes(&owner.to_bytes()).device_secret();
        let keys = (owner.verifying_key(), secret.public_key());
        let mut picos: Vec<Pico> = (seed..)
            .zip(names)
            .map(|(seed, &name)| {
                let settings = format!("name={name}\nowner={}/{}\n", keys.0, keys.1);
                let chip = Chip::power_on(&settings, seed);
                let (desk, own) = sit_down(Instant::BOOT, &mut entropy, secret.clone());
                let line = line_to(chip.lines[1].other());
                Pico { chip, name, desk, own, line }
            })
            .collect();
        if let [first, second, ..] = &mut picos[..] {
            second.chip.lines[0] = first.chip.lines[0].other();
        }
        Self { now: Instant::BOOT, entropy, owner, network, picos, shed: None }
    }

    /// One step of everybody.
    fn step(&mut self) {
        self.picos.iter_mut().for_each(|pico| pico.chip.begin_step());
        self.now = self.now + Duration::from_micros(STEP_US.into());
        let now = self.now;
        for pico in &mut self.picos {
            pico.chip.end_step();
            pico.sit(now, &mut self.entropy);
        }
        if let Some(shed) = &mut self.shed {
            shed.turn(now, &mut self.entropy);
        }
    }

    #[track_caller]
    fn run_until(&mut self, what: &str, is_it: impl Fn(&Self) -> bool) {
        let deadline = self.now + PATIENCE;
        while !is_it(self) {
            let consoles = || self.picos.iter().map(|pico| pico.chip.console.as_str());
            assert!(self.now < deadline, "{what}: {}", consoles().collect::<Vec<_>>().join("\n"));
            self.step();
        }
    }

    /// Another command of the owner's at that Pico: it has no session.
    fn begin_command(&mut self, pico: usize) {
        let secret = Seed::from_bytes(&self.owner.to_bytes()).device_secret();
        let Pico { desk, own, .. } = &mut self.picos[pico];
        (*desk, *own) = sit_down(self.now, &mut self.entropy, secret);
    }

    /// The answer of a Pico's machine to the owner.
    fn call(
        &mut self,
        pico: usize,
        to: &PublicKey,
        function: &str,
        parameter: &[u8],
    ) -> Result<Option<Vec<u8>>, NoResult> {
        self.call_or_cut(pico, to, function, parameter).expect("the power stays")
    }

    /// As [`World::call`]; none if the power is cut meanwhile.
    fn call_or_cut(
        &mut self,
        pico: usize,
        to: &PublicKey,
        function: &str,
        parameter: &[u8],
    ) -> Option<Result<Option<Vec<u8>>, NoResult>> {
        let cuts = self.picos[pico].chip.cuts;
        let call = OutgoingCall {
            function: function.into(),
            parameter: Some(parameter.to_vec()),
            deadline: self.now + PATIENCE,
            attempts: 20,
        };
        let Pico { desk, own, .. } = &mut self.picos[pico];
        desk.call(self.now, &mut self.entropy, own, to, 0, None, call).unwrap();
        loop {
            self.step();
            if let Some(Event::CallDone { result, .. }) = self.picos[pico].desk.event() {
                return Some(result);
            }
            if self.picos[pico].chip.cuts != cuts {
                return None;
            }
        }
    }

    /// The answer of a Pico itself to the owner.
    fn control<R: serde::de::DeserializeOwned>(
        &mut self,
        pico: usize,
        function: &str,
        request: &impl serde::Serialize,
    ) -> R {
        self.control_or_cut(pico, function, request).expect("the power stays")
    }

    /// As [`World::control`]; none if the power is cut meanwhile.
    fn control_or_cut<R: serde::de::DeserializeOwned>(
        &mut self,
        pico: usize,
        function: &str,
        request: &impl serde::Serialize,
    ) -> Option<R> {
        let key = self.picos[pico].key();
        let request = postcard::to_allocvec(request).unwrap();
        let answer = self.call_or_cut(pico, &key, function, &request)?.unwrap().unwrap();
        let answer = decode_answer(&answer);
        Some(answer.unwrap_or_else(|error| panic!("{function}: {error:?}")))
    }

    /// Does the work of `tenure enrol` and `tenure invite`; returns the device's signing key.
    fn enrol(&mut self, pico: usize) -> VerifyingKey {
        let status: DeviceStatus = self.control(pico, Function::status.name(), &());
        let time = TellTime { unix_s: unix_s(self.now) };
        self.control::<()>(pico, Function::time.name(), &time);
        let enrolment = Enrolment { device: status.name, device_key: status.key, number: 1 };
        let signature = enrol(&self.owner, &enrolment);
        self.control::<()>(pico, Function::enrol.name(), &Enrol { enrolment, signature });
        status.key
    }

    fn invite(&mut self, pico: usize) {
        let to = self.picos[pico].key();
        let invitation = invite(&self.owner, &to, 1, &self.network, &mut self.entropy).unwrap();
        self.control::<()>(pico, Function::join.name(), &Join { invitation });
    }

    /// Does the work of `tenure install`; returns the machine's key.
    fn install(&mut self, pico: usize, device: VerifyingKey, name: &str, text: &str) -> PublicKey {
        self.install_or_cut(pico, device, name, text).expect("the power stays");
        self.find(pico, name).expect("what was installed is there")
    }

    /// As [`World::install`]; none if the power is cut meanwhile.
    fn install_or_cut(
        &mut self,
        pico: usize,
        device: VerifyingKey,
        name: &str,
        text: &str,
    ) -> Option<()> {
        let signed = Lease::of(name, text, anybody()).sign(&self.owner, device);
        let bytes = signed.package.len() as u32;
        self.control_or_cut::<()>(pico, Function::install_begin.name(), &InstallBegin { bytes })?;
        for (index, bytes) in signed.package.chunks(CHUNK_BYTES_MAX).enumerate() {
            let offset = (index * CHUNK_BYTES_MAX) as u32;
            let part = InstallChunk { offset, bytes };
            self.control_or_cut::<()>(pico, Function::install_chunk.name(), &part)?;
        }
        let commit = InstallCommit { placement: signed.placement };
        self.control_or_cut(pico, Function::install_commit.name(), &commit)
            .map(|_: MachineStatus| ())
    }

    /// The key of the machine of that name, if there is one.
    fn find(&mut self, pico: usize, name: &str) -> Option<PublicKey> {
        let list: MachineList =
            self.control(pico, Function::list.name(), &ListMachines { skip: 0 });
        list.machines
            .iter()
            .find(|machine| machine.name.as_str() == name)
            .map(|machine| machine.key)
    }

    /// A machine that asks another one, again and again while ways and records are on their way.
    fn ask_until(&mut self, pico: usize, asker: &PublicKey, whom: &str, expected: &[u8]) {
        let deadline = self.now + PATIENCE;
        while self.call(pico, asker, "ask", whom.as_bytes()) != Ok(Some(expected.to_vec())) {
            assert!(self.now < deadline, "{whom} isn't reached");
        }
    }

    /// A node of this process takes the owner's place at a Pico's second UART.
    fn join_shed(&mut self, pico: usize) {
        let machine = Seed::from_bytes(&self.owner.to_bytes()).device_secret().public_key();
        let owner = Owner { verifying_key: self.owner.verifying_key(), machine };
        let config = Config::new("shed".parse().unwrap(), owner);
        let flash = |sector_count| {
            RamFlash::new(FlashGeometry { sector_bytes: 4096, sector_count, program_bytes: 4 })
        };
        let parts = Parts { store: flash(32), code: flash(64), staging: flash(32) };
        let moment = &mut moment(self.now, &mut self.entropy);
        let mut node = Node::boot(config, parts, moment).unwrap();
        let device_key = node.device_key();
        let enrolment = Enrolment { device: "shed".parse().unwrap(), device_key, number: 1 };
        let signature = enrol(&self.owner, &enrolment);
        node.as_owner(moment).enrol(Enrol { enrolment, signature }).unwrap();
        for (machine, text) in [("thermostat", THERMOSTAT), ("caller", CALLER)] {
            let signed = Lease::of(machine, text, anybody()).sign(&self.owner, device_key);
            node.install(moment, &signed.package, &signed.placement).unwrap();
        }
        let to = node.device_machine();
        let invitation = invite(&self.owner, &to, 1, &self.network, &mut self.entropy).unwrap();
        let moment = &mut self::moment(self.now, &mut self.entropy);
        node.as_owner(moment).join(Join { invitation }).unwrap();
        // The owner hears nothing more there.
        let line = core::mem::replace(&mut self.picos[pico].line, line_to(End::default()));
        let carrier = Carrier::new(line, Reach::ByOne(()), 8);
        self.shed = Some(Shed { node, carrier, logged: Vec::new() });
    }
}

fn moment(now: Instant, entropy: &mut Sequence) -> Moment<'_> {
    Moment { now, unix_time: Some(UnixTime { seconds: unix_s(now) }), entropy }
}

impl Pico {
    /// The device's own machine, as its console names it.
    fn key(&self) -> PublicKey {
        self.key_once_listening().unwrap()
    }

    /// As [`Pico::key`]; none until the console has the whole line.
    fn key_once_listening(&self) -> Option<PublicKey> {
        let (_, rest) = self.chip.console.split_once(" on its lines, key ")?;
        let (key, _) = rest.split_once('\n')?;
        Some(key.trim_end().parse().unwrap())
    }

    /// The owner's acts at the line.
    fn sit(&mut self, now: Instant, entropy: &mut Sequence) {
        let mut frame = [0; FRAME_BYTES_MAX];
        while let Some((length, ())) = self.line.receive(&mut frame).unwrap() {
            self.desk.receive(now, entropy, 0, &frame[..length]);
        }
        self.desk.poll(now, entropy);
        while let Some((_, datagram)) = self.desk.transmit() {
            self.line.send(&(), &datagram).unwrap();
        }
    }
}

impl Shed {
    fn turn(&mut self, now: Instant, entropy: &mut Sequence) {
        let mut moment = moment(now, entropy);
        let received = self.carrier.receive(now, 8, |frame, signal_dbm| {
            self.node.receive_frame(&mut moment, frame, signal_dbm)
        });
        received.unwrap();
        self.node.poll(&mut moment);
        while let Some((to, frame)) = self.node.transmit_frame() {
            self.carrier.send(to, &frame).unwrap();
        }
        while let Some(notice) = self.node.notice() {
            if let Notice::Log(line) = notice {
                self.logged.push(line.message);
            }
        }
    }
}

#[test]
#[ignore = "needs the emulator of an RP2040: see above"]
fn picos_are_installed_over_their_uart_and_call_each_other_and_a_node_over_the_mesh() {
    let mut world = World::power_on(&["attic", "cellar"], 1);
    let listens = |pico: &Pico| pico.chip.console.contains("not enrolled");
    world.run_until("the Picos listen", |world| world.picos.iter().all(listens));
    println!("listens after {} instructions", world.picos[0].chip.instructions);

    let attic = world.enrol(0);
    println!("enrolled after {} instructions", world.picos[0].chip.instructions);
    let thermostat = world.install(0, attic, "thermostat", THERMOSTAT);
    println!("installed after {} instructions", world.picos[0].chip.instructions);
    assert_eq!(world.call(0, &thermostat, "read", &[]), Ok(Some(b"21.0".to_vec())));
    println!("called for the first time after {} instructions", world.picos[0].chip.instructions);

    // A day in its life: the power comes, and another command calls a machine that it has.
    world.picos[0].chip.power_cycle();
    world.begin_command(0);
    assert_eq!(world.call(0, &thermostat, "read", &[]), Ok(Some(b"21.0".to_vec())));
    println!("after a power cut, called after {} instructions", world.picos[0].chip.instructions);

    // Two Picos, and nothing but the line between them.
    let cellar = world.enrol(1);
    world.install(1, cellar, "thermostat", THERMOSTAT);
    let asker = world.install(1, cellar, "asker", ASKER);
    world.invite(0);
    world.invite(1);
    world.ask_until(1, &asker, "thermostat@attic", b"21.0");
    let status: DeviceStatus = world.control(1, Function::status.name(), &());
    println!("heap of a Pico with two machines, in the mesh: {:?}", status.heap.unwrap());

    // Then a third device, which the first carries for.
    world.join_shed(0);
    world.ask_until(1, &asker, "thermostat@shed", b"21.0");
    let answered =
        |world: &World| world.shed.iter().any(|it| it.logged.contains(&"answered".into()));
    world.run_until("the shed calls thermostat@cellar", answered);
    for pico in &world.picos {
        let console = &pico.chip.console;
        assert!(!console.contains("firmware"), "{} stopped: {console}", pico.name);
    }
    println!("in all {} instructions", world.picos[0].chip.instructions);
}
