//! The price of faults, its survival over a restart, and who is blamed for what.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tenure_hal::{Instant, ResetCause, Retained};
use tenure_kernel::{Breadcrumb, Config, NoResult, Ran, Repute, State};
use tenure_wire::Budget;
use tenure_wire::host_call::HostError;

use crate::world::{Device, id_of, key, name, text};

const CRASHER: &str = r#"(func (export "entry") unreachable)
    (func (export "serve") (call $reply_digit (i32.const 1)))"#;
const QUIET: &str = r#"(func (export "serve") (call $reply_digit (i32.const 1)))
    (func (export "trap") unreachable)"#;

fn repute(device: &Device, machine: &str) -> (State, Repute, u32) {
    let wanted = name(machine);
    let info = device.kernel.machines().find(|info| info.record.name == wanted).unwrap();
    (info.state, info.repute, info.faults)
}

/// Lets time jump from event to event until nothing will happen any more.
fn run_dry(device: &mut Device) {
    for _ in 0..1000 {
        match device.step() {
            Ran::Slice => {}
            Ran::Idle { until: Some(until) } => device.now = until,
            Ran::Idle { until: None } => return,
        }
    }
    panic!("it never ends");
}

#[test]
fn a_crash_loop_ends_in_a_ban_and_the_kernel_idles() {
    let mut device = Device::new();
    device.install("a", CRASHER);
    device.install("b", CRASHER);
    run_dry(&mut device);
    for machine in ["a", "b"] {
        assert_eq!(repute(&device, machine), (State::Banned, Repute::Banned, 12));
    }
    assert_eq!(device.step(), Ran::Idle { until: None });
    let hours = device.now.since(Instant::BOOT).as_secs();
    assert!((1_000..4_000).contains(&hours), "{hours}");
    let refused = device.deliver(id_of(&key(b'a')), "serve", None);
    assert_eq!(refused, Err(NoResult::Banned));
}

#[test]
fn machine_that_backs_off_is_pardoned_and_runs_at_once() {
    let mut device = Device::new();
    device.install("a", QUIET);
    let a = id_of(&key(b'a'));
    let _ = device.deliver(a, "trap", None);
    device.settle(10);
    assert_eq!(repute(&device, "a"), (State::BackedOff, Repute::Good, 1));
    device.kernel.pardon(device.now, &name("a")).unwrap();
    assert_eq!(repute(&device, "a"), (State::Idle, Repute::Good, 0));
    assert_eq!(text(device.call(a, "serve", None)), "1", "without any time that passed");
    assert!(device.logged("its back-off was ended by its owner"), "{:?}", device.log);
}

#[test]
fn a_ban_outlasts_restarts_and_is_lifted_by_the_owner_or_an_update() {
    let mut device = Device::new();
    device.install("a", CRASHER);
    device.install("b", CRASHER);
    device.install("c", QUIET);
    run_dry(&mut device);
    let mut device = device.reboot();
    device.settle(10);
    assert_eq!(repute(&device, "a").1, Repute::Banned);
    assert_eq!(repute(&device, "c"), (State::Idle, Repute::Good, 0));
    device.kernel.pardon(device.now, &name("a")).unwrap();
    device.settle(10);
    assert_eq!(repute(&device, "a"), (State::BackedOff, Repute::Good, 1), "it may try again");
    device.try_install("b", QUIET, 2, Budget::default()).unwrap();
    let b = id_of(&key(b'b'));
    assert_eq!(text(device.call(b, "serve", None)), "1");
    let mut device = device.reboot();
    device.settle(10);
    assert_eq!(repute(&device, "a").1, Repute::Good, "lifted for good");
    assert_eq!(repute(&device, "b"), (State::Idle, Repute::Good, 0));
}

#[test]
fn flash_is_written_once_per_change_of_repute() {
    let mut device = Device::new();
    device.install("a", CRASHER);
    device.kernel.store().flash_mut().reset_counters();
    run_dry(&mut device);
    let programs = device.kernel.store().flash().counters().programs;
    assert!((2..=4).contains(&programs), "probation and ban: {programs} programs");
}

#[test]
fn good_behaviour_ends_a_probation() {
    let mut device = Device::new();
    let a = device.install("a", QUIET);
    for _ in 0..6 {
        device.call(a, "trap", None).unwrap_err();
        let Ran::Idle { until: Some(until) } = device.step() else { panic!("it is backed off") };
        device.now = until;
        device.settle(10);
    }
    assert_eq!(repute(&device, "a").1, Repute::Probation);
    let mut device = device.reboot();
    device.settle(10);
    assert_eq!(repute(&device, "a"), (State::Idle, Repute::Probation, 5), "it is remembered");
    device.pass(Duration::from_secs(3600));
    assert_eq!(text(device.call(a, "serve", None)), "1");
    assert_eq!(repute(&device, "a"), (State::Idle, Repute::Good, 0));
    let device = device.reboot();
    assert_eq!(repute(&device, "a").1, Repute::Good, "and that it is over, too");
}

/// Retained memory of a device that is never off.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<Vec<u8>>>>);

impl Retained for Memory {
    fn write(&mut self, bytes: &[u8]) {
        self.0.lock().unwrap().push(bytes.to_vec());
    }
}

#[test]
fn a_bite_of_the_watchdog_is_the_fault_of_who_was_running() {
    let mut device = Device::new();
    device.install("a", QUIET);
    device.install("b", QUIET);
    let memory = Memory::default();
    device.kernel.use_retained(Box::new(memory.clone()));
    let b = id_of(&key(b'b'));
    device.call(b, "serve", None).unwrap();
    let dropped = memory.0.lock().unwrap().clone();
    assert_eq!(Breadcrumb::from_bytes(&dropped[0]), Some(Breadcrumb(b)), "while it runs");
    assert_eq!(Breadcrumb::from_bytes(&dropped[1]), None, "and not after");
    for bite in 1..=12 {
        device = device.reboot();
        let crumb = Breadcrumb::from_bytes(&dropped[0]);
        device.kernel.started_by(device.now, ResetCause::Watchdog, crumb);
        assert_eq!(repute(&device, "b").2, bite, "each bite is remembered");
    }
    assert_eq!(repute(&device, "a"), (State::Idle, Repute::Good, 0));
    assert_eq!(repute(&device, "b").1, Repute::Banned);
}

#[test]
fn no_other_reset_is_anybodys_fault() {
    let mut device = Device::new();
    let a = device.install("a", QUIET);
    use ResetCause::{BrownOut, PowerOn, Software, Wake};
    for cause in [PowerOn, BrownOut, Software, Wake] {
        device.kernel.started_by(device.now, cause, Some(Breadcrumb(a)));
    }
    device.kernel.started_by(device.now, ResetCause::Watchdog, None);
    let nobody = Breadcrumb(id_of(&key(77)));
    device.kernel.started_by(device.now, ResetCause::Watchdog, Some(nobody));
    assert_eq!(repute(&device, "a"), (State::Idle, Repute::Good, 0));
}

/// Queues a call to a sleeper and crashes; its callbacks say what they are told, and of which call.
const QUEUER: &str = r#"(data (i32.const 0) "sleeper") (data (i32.const 64) "sleep")
    (data (i32.const 128) "on_done") (data (i32.const 160) "on_fail")
    (func (export "go") (local $number i32)
      (local.set $number (call $queue (i32.const 0) (i32.const 7) (i32.const 64) (i32.const 5)
        (i32.const 0) (i32.const 0) (i32.const 128) (i32.const 7)
        (i32.const 160) (i32.const 7) (i32.const 5000) (i32.const 0)))
      (call $reply_digit (local.get $number)))
    (func (export "trap") unreachable)
    (func $note (local $length i32)
      (i32.store8 (i32.const 4096) (i32.add (i32.const 48) (call $callback_of)))
      (i32.store8 (i32.const 4097) (i32.const 32))
      (local.set $length (call $parameter_read (i32.const 0) (i32.const 4098) (i32.const 64)))
      (call $log (i32.const 2) (i32.const 4096) (i32.add (i32.const 2) (local.get $length))))
    (func (export "on_done") (call $note))
    (func (export "on_fail") (call $note))"#;
const SLEEPER: &str = r#"(func (export "sleep") (call $sleep_ms (i32.const 3000))
      (drop (call $reply (i32.const 4096) (i32.const 4000))))"#;

#[test]
fn a_machine_that_is_stopped_hears_of_its_queued_calls_after_its_next_start() {
    let mut device = Device::new();
    device.install("sleeper", SLEEPER);
    let queuer = device.install("queuer", QUEUER);
    let first = text(device.call(queuer, "go", None));
    device.call(queuer, "trap", None).unwrap_err();
    assert!(!device.logged("outcome unknown"), "it is backed off");
    device.pass(Duration::from_secs(1));
    device.settle(100);
    assert!(device.logged(&format!("queuer {first} outcome unknown")), "{:?}", device.log);
    device.pass(Duration::from_secs(10));
    device.settle(100);
    let heard = device.log.iter().filter(|line| line.starts_with("queuer 1")).count();
    assert_eq!(heard, 1, "and not again with the late result");
}

#[test]
fn callbacks_know_which_call_they_belong_to() {
    let mut device = Device::new();
    let queuer = device.install("queuer", QUEUER);
    let numbers = [(); 2].map(|()| text(device.call(queuer, "go", None)));
    device.settle(100);
    for number in numbers {
        assert!(device.logged(&format!("queuer {number} not found")), "{:?}", device.log);
    }
}

#[test]
fn results_for_callbacks_are_held_to_the_bound_of_waiting_parameters() {
    let parameter_bytes_max = 3_000;
    let mut device = Device::with(Config { parameter_bytes_max, ..Config::default() });
    device.install("sleeper", SLEEPER);
    let queuer = device.install("queuer", QUEUER);
    let number = text(device.call(queuer, "go", None));
    device.pass(Duration::from_secs(3));
    device.settle(100);
    assert!(device.logged(&format!("queuer {number} outcome unknown")), "{:?}", device.log);
}

#[test]
fn who_waits_for_a_machine_that_is_banned_then_is_told_so() {
    let mut device = Device::new();
    let a = device.install("a", CRASHER);
    let waiting = loop {
        match device.step() {
            Ran::Slice => {}
            Ran::Idle { until } if repute(&device, "a").2 == 11 => {
                // Its caller waits for a minute.
                let wait = until.unwrap().since(device.now) - Duration::from_secs(59);
                device.now = device.now + wait;
                let waiting = device.deliver(a, "serve", None).unwrap();
                device.now = until.unwrap();
                break waiting;
            }
            Ran::Idle { until } => device.now = until.unwrap(),
        }
    };
    device.settle(100);
    assert_eq!(device.replies.remove(&waiting), Some(Err(HostError::Banned)));
}

#[test]
fn who_has_no_time_to_wait_for_a_restart_is_told_at_once_when_it_is() {
    let mut device = Device::new();
    let a = device.install("a", CRASHER);
    // Its first back-off is a second, its second two.
    device.settle(10);
    let call = |device: &mut Device, ms| {
        let deadline = device.now + Duration::from_millis(ms);
        device.deliver_until(deadline, a, "serve", None)
    };
    let again_in = Duration::from_secs(1);
    assert_eq!(call(&mut device, 1_000), Err(NoResult::Stopped { again_in }));
    let waiting = call(&mut device, 2_000).unwrap();
    device.now = device.now + again_in;
    device.settle(10);
    // It failed again, and starts too late now.
    assert_eq!(device.replies.remove(&waiting), Some(Err(HostError::Stopped)));
}

/// Writes as fast as it is let, with a turn of the others between.
const WRITER: &str = r#"(data (i32.const 0) "key")
    (func (export "entry") (loop
      (i32.store (i32.const 4096) (i32.add (i32.load (i32.const 4096)) (i32.const 1)))
      (drop (call $tree_set (i32.const 0) (i32.const 3) (i32.const 0)
        (i32.const 4096) (i32.const 100)))
      (call $yield_now) (br 0)))"#;
const SPINNER: &str = r#"(func (export "entry") (loop (br 0)))"#;

#[test]
fn a_thousand_power_cuts_are_held_against_nobody() {
    let mut device = Device::with(Config { slice_fuel: 3_000, ..Config::default() });
    device.install("spinner", SPINNER);
    let plenty = Budget { flash_bytes_per_day: u32::MAX, ..Budget::default() };
    device.try_install("writer", WRITER, 1, plenty).unwrap();
    device.install("quiet", QUIET);
    let (mut random, mut mid_write) = (1_u64, 0);
    for _ in 0..1_000 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        device.kernel.store().flash_mut().cut_power_after(random >> 60, random);
        for _ in 0..(random >> 40) % 60 {
            device.step();
        }
        mid_write += u32::from(device.kernel.store().flash().is_off());
        // By chance retained memory outlasts a short loss of power; the cause says what it was.
        let running = Breadcrumb(id_of(&key(b"swq"[(random >> 50) as usize % 3])));
        device = device.reboot();
        let cause = [ResetCause::PowerOn, ResetCause::BrownOut][(random >> 33) as usize % 2];
        device.kernel.started_by(device.now, cause, Some(running));
    }
    assert!(mid_write > 100, "many cuts fell into a write: {mid_write}");
    device.settle(100);
    for machine in ["spinner", "writer", "quiet"] {
        let (state, repute, faults) = repute(&device, machine);
        assert_eq!((repute, faults), (Repute::Good, 0), "{machine}");
        assert_ne!(state, State::BackedOff, "{machine}");
    }
}
