//! Machines that their owner stops and starts.

use std::time::Duration;

use tenure_kernel::{InstallError, Ran, State};
use tenure_wire::host_call::HostError;
use tenure_wire::{Budget, MachineId};

use crate::world::{Device, name, text};

const SERVING: &str = r#"
    (data (i32.const 0) "on_tick") (data (i32.const 16) "began") (data (i32.const 32) "ticked")
    (func (export "entry") (call $log (i32.const 2) (i32.const 16) (i32.const 5)))
    (func (export "count")
      (i32.store (i32.const 256) (i32.add (i32.load (i32.const 256)) (i32.const 1)))
      (call $reply_digit (i32.load (i32.const 256))))
    (func (export "set") (drop (call $timer_after (i32.const 0) (i32.const 7)
      (i32.const 16) (i32.const 4) (i32.const 1000) (i32.const 1000))))
    (func (export "on_tick") (call $log (i32.const 2) (i32.const 32) (i32.const 6)))
    (func (export "trap") unreachable)
    (func (export "wait") (call $sleep_ms (i32.const 60000)))"#;
const IMPORTS: &str = r#"
    (import "tenure" "timer_after" (func $timer_after (param i32 i32 i32 i32 i32 i32) (result i32)))"#;

fn device() -> (Device, MachineId) {
    let mut device = Device::new();
    device.imports = IMPORTS;
    let serving = device.install("serving", SERVING);
    device.settle(10);
    device.log.clear();
    (device, serving)
}

/// Lets time jump from event to event until nothing will happen any more.
fn run_dry(device: &mut Device) {
    loop {
        match device.step() {
            Ran::Slice => {}
            Ran::Idle { until: Some(until) } => device.now = until,
            Ran::Idle { until: None } => return,
        }
    }
}

fn halt(device: &mut Device) {
    device.kernel.tenancy(device.now).halt(&name("serving")).unwrap();
    device.settle(10);
}

fn resume(device: &mut Device) {
    device.kernel.tenancy(device.now).start(&name("serving")).unwrap();
    device.settle(10);
}

fn state(device: &Device) -> State {
    device.kernel.machines().next().unwrap().state
}

#[test]
fn a_machine_that_its_owner_stops_tells_its_callers_and_serves_nobody() {
    let (mut device, serving) = device();
    let waiting = device.deliver(serving, "wait", None).unwrap();
    let queued = device.deliver(serving, "count", None).unwrap();
    device.settle(10);
    halt(&mut device);
    for ticket in [waiting, queued] {
        assert_eq!(device.replies.remove(&ticket), Some(Err(HostError::Halted)));
    }
    assert_eq!(state(&device), State::Halted);
    assert!(device.deliver(serving, "count", None).is_err());
    halt(&mut device);
    resume(&mut device);
    assert_eq!(text(device.call(serving, "count", None)), "1");
    assert!(device.logged("began") && device.logged("started by its owner"));
    device.log.clear();
    resume(&mut device);
    assert!(!device.logged("began"), "what runs isn't started again");
    let nobody = device.kernel.tenancy(device.now).halt(&name("nobody"));
    assert_eq!(nobody, Err(InstallError::NotFound));
}

#[test]
fn a_machine_that_is_stopped_stays_so_over_restarts_and_updates() {
    let (mut device, serving) = device();
    device.call(serving, "set", None).unwrap();
    halt(&mut device);
    device.log.clear();
    let mut device = device.reboot();
    device.imports = IMPORTS;
    device.settle(10);
    assert_eq!(state(&device), State::Halted);
    assert!(device.try_install("serving", SERVING, 2, Budget::default()).is_ok(), "an update");
    let restarted = device.kernel.tenancy(device.now).restart(&name("serving"));
    assert_eq!(restarted, Err(InstallError::Stopped));
    device.now = device.now + Duration::from_secs(10);
    device.settle(10);
    assert_eq!(state(&device), State::Halted);
    assert!(!device.logged("began") && !device.logged("ticked"), "{:?}", device.log);
    resume(&mut device);
    assert!(device.logged("began"));
    let mut device = device.reboot();
    device.settle(10);
    assert_eq!(state(&device), State::Idle, "the start lasts as well");
}

#[test]
fn timers_of_a_machine_that_was_stopped_begin_anew_when_it_starts() {
    let (mut device, serving) = device();
    device.call(serving, "set", None).unwrap();
    halt(&mut device);
    device.now = device.now + Duration::from_secs(10);
    device.settle(10);
    assert!(!device.logged("ticked"));
    resume(&mut device);
    assert!(!device.logged("ticked"), "not for the time that it was stopped");
    device.now = device.now + Duration::from_millis(1100);
    device.settle(10);
    assert!(device.logged("ticked"));
}

#[test]
fn stopping_lifts_no_ban_and_outlasts_a_lease_that_ends() {
    let (mut device, serving) = device();
    for _ in 0..12 {
        let _ = device.deliver(serving, "trap", None);
        run_dry(&mut device);
    }
    assert_eq!(state(&device), State::Banned);
    halt(&mut device);
    resume(&mut device);
    assert_eq!(state(&device), State::Banned);
    device.kernel.pardon(device.now, &name("serving")).unwrap();
    halt(&mut device);
    device.kernel.tenancy(device.now).end_lease(serving);
    assert_eq!(state(&device), State::Over);
    device.kernel.tenancy(device.now).resume_lease(serving);
    assert_eq!(state(&device), State::Halted);
    device.kernel.tenancy(device.now).discard(&name("serving")).unwrap();
    device.kernel.tenancy(device.now).fetch_back(serving).unwrap();
    assert_eq!(state(&device), State::Halted, "from the trash as well");
    device.kernel.tenancy(device.now).discard(&name("serving")).unwrap();
    device.kernel.tenancy(device.now).delete_trash(serving).unwrap();
    let other = device.try_install("other", SERVING, 3, Budget::default()).unwrap();
    assert!(device.call(other, "count", None).is_ok(), "in the slot of one that was stopped");
    let mut device = device.reboot();
    assert!(device.call(other, "count", None).is_ok(), "after a restart as well");
}
