//! A run that was recorded is repeated: with sessions, frames, readings, randomness and a deep sleep in it.

#[allow(dead_code, reason = "a whole record is made here otherwise")]
mod recording;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tenure_crypto::{Seed, SigningKey};
use tenure_hal::simulated::{Point, RamFlash, Sequence, Thermometer, socket_at};
use tenure_hal::{Entropy as _, FlashGeometry, Instant};
use tenure_kernel::{MachineRecord, Profiler};
use tenure_node::{Config, Door as _, Notice, Parts};
use tenure_replay::{Audience, Recorded, ReplayError, Replayed, Tape, replay};
use tenure_rpc::{Endpoint, Event, OutgoingCall};
use tenure_vm::Frame;
use tenure_wire::control::{Client as _, Enrol, Function};
use tenure_wire::directory::Enrolment;
use tenure_wire::{Address, Capabilities};

use recording::leases::{Lease, anybody};
use recording::{KEY, Paper, config, moment};

/// Logs what the thermometer says, and three digits that are drawn.
const MACHINE: &str = r#"(module
  (import "tenure" "subscribe"
    (func $subscribe (param i32 i32 i32 i32 i32 i32) (result i32)))
  (import "tenure" "parameter_read" (func $parameter_read (param i32 i32 i32) (result i32)))
  (import "tenure" "random" (func $random (param i32 i32) (result i32)))
  (import "tenure" "log" (func $log (param i32 i32 i32)))
  (import "tenure" "sleep_ms" (func $sleep_ms (param i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "device.thermometer")
  (data (i32.const 32) "read")
  (func (export "read")
    (call $log (i32.const 1) (i32.const 64)
      (call $parameter_read (i32.const 0) (i32.const 64) (i32.const 32))))
  (func $digit
    (drop (call $random (i32.const 128) (i32.const 1)))
    (i32.store8 (i32.const 128)
      (i32.add (i32.const 48) (i32.and (i32.load8_u (i32.const 128)) (i32.const 7))))
    (call $log (i32.const 1) (i32.const 128) (i32.const 1))
    (call $sleep_ms (i32.const 700)))
  (func (export "entry")
    (drop (call $subscribe (i32.const 0) (i32.const 18) (i32.const 0) (i32.const 4)
      (i32.const 32) (i32.const 4)))
    (call $digit) (call $digit) (call $digit)))"#;

const STEP: Duration = Duration::from_millis(10);

/// A device, its owner, and time.
struct World {
    now: Instant,
    entropy: Sequence,
    device: Recorded<RamFlash>,
    owner: Endpoint<Address>,
    logged: Vec<String>,
    answers: usize,
}

impl World {
    fn new(paper: Paper) -> Self {
        let (mut entropy, key) = (Sequence(1), SigningKey::from_bytes(&KEY));
        let flash = |sector_count| {
            RamFlash::new(FlashGeometry { sector_bytes: 4096, sector_count, program_bytes: 4 })
        };
        let mut parts = Parts { store: flash(32), code: flash(64), staging: flash(8) };
        let settings = KEY;
        let tape = Tape::begin(Box::new(paper), &settings, &mut parts).unwrap();
        let moment = &mut moment(Instant::BOOT, &mut entropy);
        let booted = Recorded::boot(config(&settings).unwrap(), parts, moment, Some(tape.clone()));
        let mut device = booted.unwrap();
        let device_key = device.node().device_key();
        let enrolment = Enrolment { device: "attic".parse().unwrap(), device_key, number: 1 };
        let signature = tenure_directory::enrol(&key, &enrolment);
        device.as_owner(moment).enrol(Enrol { enrolment, signature }).unwrap();
        let points = vec![
            Point { at: Duration::ZERO, value: 20_000 },
            Point { at: Duration::from_secs(10), value: 30_000 },
        ];
        let thermometer = Thermometer::new("thermometer", Duration::from_millis(300), points);
        device.attach(Instant::BOOT, tape.watch(Box::new(thermometer))).unwrap();
        let topics = vec!["device.*".parse().unwrap()];
        let grants = Capabilities { subscribe: topics, ..anybody() };
        let signed = Lease::of("scribe", MACHINE, grants).sign(&key, device_key);
        device.install(moment, &signed.package, &signed.placement).unwrap();
        let secret = Seed::from_bytes(&key.to_bytes()).device_secret();
        let large = tenure_rpc::Config::large();
        let mut owner = Endpoint::new(large, Instant::BOOT, &mut entropy).unwrap();
        owner.add_machine(secret).unwrap();
        Self { now: Instant::BOOT, entropy, device, owner, logged: Vec::new(), answers: 0 }
    }

    /// Lets the owner ask for the device's status.
    fn ask(&mut self) {
        let key = SigningKey::from_bytes(&KEY);
        let machine = Seed::from_bytes(&key.to_bytes()).device_secret().public_key();
        let own = tenure_crypto::machine_id(&machine);
        let call = OutgoingCall {
            function: Function::status.name().to_string(),
            parameter: Some(tenure_wire::message::encode(&())),
            deadline: self.now + Duration::from_secs(5),
            attempts: 4,
        };
        let (to, at) = (self.device.node().device_machine(), Address::Udp(socket_at(1)));
        let entropy = &mut self.entropy;
        self.owner.call(self.now, entropy, &own, &to, at, None, call).unwrap();
    }

    fn pass(&mut self, span: Duration) {
        let end = self.now + span;
        while self.now < end {
            self.now = self.now + STEP;
            self.owner.poll(self.now, &mut self.entropy);
            let mut noise = [0; 40];
            self.entropy.fill(&mut noise).unwrap();
            let mut draws = Sequence(self.entropy.0);
            let moment = &mut moment(self.now, &mut draws);
            while let Some((_, datagram)) = self.owner.transmit() {
                self.device.receive(moment, Address::Udp(socket_at(2)), &datagram);
            }
            self.device.receive(moment, Address::Udp(socket_at(3)), &noise);
            let _ = self.device.receive_frame(moment, &noise, Some(-60));
            self.device.poll(moment);
            while let Some((_, datagram)) = self.device.transmit() {
                let from = Address::Udp(socket_at(1));
                self.owner.receive(self.now, &mut self.entropy, from, &datagram);
            }
            while self.device.transmit_frame().is_some() {}
            while let Some(notice) = self.device.notice() {
                self.logged.extend(line_of(&notice));
            }
            while let Some(event) = self.owner.event() {
                self.answers += usize::from(matches!(event, Event::CallDone { result: Ok(_), .. }));
            }
        }
    }

    /// Sleeps with the power off, and wakes.
    fn sleep(self, span: Duration) -> Self {
        let Self { now, mut entropy, mut device, owner, logged, answers } = self;
        device.fall_asleep(&mut moment(now, &mut entropy)).unwrap();
        while device.transmit().is_some() {}
        let now = now + span;
        let peripherals = device.lend().detach_all();
        let (parts, tape) = device.into_parts();
        let config = config(&KEY).unwrap();
        let mut device =
            Recorded::boot(config, parts, &mut moment(now, &mut entropy), tape).unwrap();
        for peripheral in peripherals {
            device.attach(now, peripheral).unwrap();
        }
        Self { now, entropy, device, owner, logged, answers }
    }
}

fn line_of(notice: &Notice) -> Option<String> {
    match notice {
        Notice::Log(line) => Some(line.message.clone()),
        _ => None,
    }
}

/// A record of a run, and what was logged in it.
fn recorded() -> (Vec<u8>, Vec<String>) {
    let paper = Paper::default();
    let mut world = World::new(paper.clone());
    world.pass(Duration::from_millis(300));
    world.ask();
    world.pass(Duration::from_millis(700));
    let mut world = world.sleep(Duration::from_secs(3));
    world.pass(Duration::from_millis(300));
    world.ask();
    world.pass(Duration::from_millis(900));
    assert_eq!(world.answers, 2);
    let logged = world.logged;
    world.device.finish();
    let record = paper.0.lock().unwrap().clone();
    (record, logged)
}

/// Hears a run repeated.
#[derive(Default)]
struct Hall {
    logged: Vec<String>,
    spent: Option<Spent>,
}

impl Audience for Hall {
    fn config(&mut self, settings: &[u8]) -> Result<Config, String> {
        config(settings)
    }

    fn show(&mut self, _: Instant, notice: &Notice) {
        self.logged.extend(line_of(notice));
    }

    fn profiler(&mut self) -> Option<Box<dyn Profiler>> {
        self.spent.clone().map(|spent| Box::new(spent) as Box<dyn Profiler>)
    }
}

/// Fuel by the innermost function, if there is one.
#[derive(Clone, Default)]
struct Spent(Arc<Mutex<BTreeMap<Option<u32>, u64>>>);

impl Profiler for Spent {
    fn spent(&mut self, machine: &MachineRecord, calls: &[Frame], units: u64) {
        assert_eq!(machine.name.as_str(), "scribe");
        let mut spent = self.0.lock().unwrap();
        *spent.entry(calls.first().map(|call| call.function)).or_default() += units;
    }
}

fn replayed(record: &[u8]) -> Result<(Replayed, Vec<String>), ReplayError> {
    let mut hall = Hall::default();
    let replayed = replay(&mut &record[..], &mut hall)?;
    Ok((replayed, hall.logged))
}

#[test]
fn fuel_is_told_to_the_unit_and_the_run_is_the_same_with_and_without() {
    let paper = Paper::default();
    let mut world = World::new(paper.clone());
    // `entry` takes three times 700 ms; then `read` is called.
    world.pass(Duration::from_millis(2800));
    let paid: u64 = world.device.node().machines().map(|machine| machine.fuel_used).sum();
    world.device.finish();
    let record = paper.0.lock().unwrap().clone();
    let mut hall = Hall { spent: Some(Spent::default()), ..Hall::default() };
    let profiled = replay(&mut &record[..], &mut hall).unwrap();
    let (plain, logged) = replayed(&record).unwrap();
    assert_eq!((profiled, hall.logged), (plain, logged));
    let spent = hall.spent.unwrap().0.lock().unwrap().clone();
    assert_eq!(spent.values().sum::<u64>(), paid, "{spent:?}");
    // Imports come first: `subscribe`, `parameter_read`, `random`, `log` and `sleep_ms`, then `read`, `digit`, `entry`.
    let functions: Vec<Option<u32>> = spent.keys().copied().collect();
    let expected = [None, Some(0), Some(1), Some(2), Some(3), Some(4), Some(5), Some(6), Some(7)];
    assert_eq!(functions, expected, "{spent:?}");
}

#[test]
fn a_run_is_repeated_with_all_its_outputs_and_the_same_flash_at_its_end() {
    let (record, logged) = recorded();
    assert!(logged.iter().any(|line| line.starts_with("20.")), "{logged:?}");
    let digits: Vec<_> = logged.iter().filter(|line| line.len() == 1).collect();
    assert_eq!(digits.len(), 3, "{logged:?}");
    let (replayed, again) = replayed(&record).unwrap();
    assert_eq!(again, logged);
    assert!(replayed.is_complete && replayed.boots == 2, "{replayed:?}");
    assert!(replayed.inputs > 400 && replayed.outputs > 8, "{replayed:?}");
}

#[test]
fn a_record_that_breaks_off_is_repeated_as_far_as_it_goes() {
    let (record, _) = recorded();
    let whole = replayed(&record).unwrap().0;
    let (part, _) = replayed(&record[..record.len() * 9 / 10]).unwrap();
    assert!(!part.is_complete && part.inputs < whole.inputs, "{part:?}");
    assert!(matches!(replayed(&record[..7]), Err(ReplayError::NotARecord)));
    let mut newer = record;
    newer[7] += 1;
    assert!(matches!(replayed(&newer), Err(ReplayError::Version(2))));
}

#[test]
fn a_record_that_is_damaged_ends_in_an_error_or_shows_what_differs() {
    let (record, _) = recorded();
    // Behind the flash: inputs, outputs, randomness, digests.
    let from = record.len() / 3;
    let mut refused = 0;
    for number in 0..64 {
        let mut damaged = record.clone();
        let at = from + number * (record.len() - from) / 64;
        damaged[at] ^= 1 << (number % 8);
        // A change that a device ignores, as in a datagram that nobody sent, is no difference.
        refused += u32::from(replayed(&damaged).is_err());
    }
    assert!(refused >= 16, "{refused}");
}
