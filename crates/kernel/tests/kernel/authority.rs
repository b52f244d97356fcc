use std::time::Duration;

use tenure_kernel::{Effect, IncomingCall, InstallError, NoResult, Standing, Ticket};
use tenure_wire::host_call::HostError;
use tenure_wire::{Budget, Capabilities, MachineId, Term, VerifyingKey};

use crate::world::{Device, key, name};

const ECHO: &str = r#"(export "echo" (func $echo))"#;

fn granting(calls: &[&str], callers: &[&str]) -> Capabilities {
    let patterns = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
    Capabilities { calls: patterns(calls), callers: patterns(callers), ..Capabilities::default() }
}

/// Replies with the status of calling `echo` of `target`, without its minus.
fn caller(target: &str) -> String {
    let length = target.len();
    format!(
        r#"(data (i32.const 0) "{target}") (data (i32.const 64) "echo")
        (func $status (param $value i32)
          (i32.store8 (i32.const 100) (i32.sub (i32.const 0) (local.get $value)))
          (drop (call $reply (i32.const 100) (i32.const 1))))
        (func (export "go")
          (call $status (call $call (i32.const 0) (i32.const {length}) (i32.const 64) (i32.const 4)
            (i32.const 64) (i32.const 4) (i32.const 0))))
        (func (export "later")
          (call $status (i32.shr_s
            (call $queue (i32.const 0) (i32.const {length}) (i32.const 64) (i32.const 4)
              (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)
              (i32.const 0) (i32.const 0)) (i32.const 0))))"#
    )
}

fn install(device: &mut Device, machine: &str, body: &str, grants: &Capabilities) -> MachineId {
    device.install_granted(machine, body, 1, Budget::default(), grants).unwrap()
}

/// The answer to a machine that calls `target` with these grants, as the number of the error.
fn told(target: &str, calls: &[&str], callers: &[&str]) -> (Option<u8>, Device) {
    let mut device = Device::new();
    install(&mut device, "echo", ECHO, &granting(&[], callers));
    let from = install(&mut device, "from", &caller(target), &granting(calls, &["*"]));
    let ticket = device.deliver(from, "go", None).unwrap();
    device.settle(100);
    let status = device.replies.get(&ticket).map(|reply| reply.clone().unwrap().unwrap()[0]);
    (status, device)
}

const NOT_GRANTED: Option<u8> = Some(-(HostError::NotGranted.code()) as u8);
const DENIED: Option<u8> = Some(-(HostError::Denied.code()) as u8);
/// Minus the length of "echo", as a byte.
const WELL: Option<u8> = Some(-4_i32 as u8);

#[test]
fn a_call_takes_a_right_of_either_side() {
    let (told_it, device) = told("echo", &[], &["*"]);
    assert_eq!(told_it, NOT_GRANTED);
    assert!(device.logged("from not granted: call echo"), "{:?}", device.log);
    let (told_it, device) = told("echo", &["echo"], &[]);
    assert_eq!(told_it, DENIED);
    assert!(device.logged("echo not granted: be called by from"), "{:?}", device.log);
    assert_eq!(told("echo", &["echo"], &["from"]).0, WELL);
    assert_eq!(told("echo", &["other"], &["from"]).0, NOT_GRANTED);
    assert_eq!(told("echo", &["*@*"], &["*@*"]).0, WELL);
}

#[test]
fn a_machine_is_known_by_its_name_however_it_is_called() {
    let by_key = format!("#{}", key(b'e'));
    assert_eq!(told(&by_key, &["echo"], &["from"]).0, WELL);
    assert_eq!(told(&by_key, &["other"], &["from"]).0, NOT_GRANTED);
}

#[test]
fn what_leaves_the_device_takes_a_right_too() {
    for (target, granted, leaves) in [
        ("store@attic", "store@attic", true),
        ("store@attic", "store@*", true),
        ("store@attic", "store", false),
        ("store@attic", "store@cellar", false),
        (&*format!("#{}", key(9)), "*", true),
        (&*format!("#{}", key(9)), "*@*", false),
    ] {
        let (status, device) = told(target, &[granted], &[]);
        let calls = device.effects.iter().filter(|effect| matches!(effect, Effect::Call(_)));
        assert_eq!(calls.count() == 1, leaves, "{target} by {granted}");
        assert_eq!(status, if leaves { None } else { NOT_GRANTED });
    }
}

#[test]
fn a_queued_call_is_refused_at_once() {
    let mut device = Device::new();
    install(&mut device, "echo", ECHO, &granting(&[], &["*"]));
    let from = install(&mut device, "from", &caller("echo"), &granting(&[], &[]));
    assert_eq!(device.call(from, "later", None).unwrap().unwrap()[0], NOT_GRANTED.unwrap());
}

#[test]
fn callers_from_elsewhere_need_a_right_and_the_owner_needs_none() {
    let mut device = Device::new();
    let by_name = install(&mut device, "named", ECHO, &granting(&[], &["store@*"]));
    let nobody = install(&mut device, "closed", ECHO, &granting(&[], &[]));
    let by_key = granting(&[], &[&format!("#{}", key(5))]);
    let by_key = install(&mut device, "keyed", ECHO, &by_key);
    assert!(device.kernel.needs_name_of(&key(5), by_name));
    assert!(!device.kernel.needs_name_of(&key(5), nobody));
    assert!(!device.kernel.needs_name_of(&key(5), by_key));
    let store = Standing::Named { machine: name("store"), device: name("attic") };
    let other = Standing::Named { machine: name("other"), device: name("attic") };
    for (to, standing, caller, expected) in [
        (by_name, &Standing::Stranger, 5, Err(NoResult::Denied)),
        (by_name, &store, 5, Ok(())),
        (by_name, &other, 5, Err(NoResult::Denied)),
        (nobody, &store, 5, Err(NoResult::Denied)),
        (nobody, &Standing::Owner, 1, Ok(())),
        (by_key, &Standing::Stranger, 5, Ok(())),
        (by_key, &Standing::Stranger, 6, Err(NoResult::Denied)),
    ] {
        let call = IncomingCall {
            to,
            caller: Some(key(caller)),
            standing: standing.clone(),
            function: "echo".to_string(),
            parameter: None,
            deadline: device.now + Duration::from_secs(1),
        };
        assert_eq!(device.kernel.deliver(device.now, call, Ticket(1)), expected);
    }
    let info = device.kernel.machines().find(|info| info.id == by_name).unwrap();
    assert_eq!(info.grants.uses()[0].used, 1);
    assert_eq!(info.grants.denied(), 2);
}

#[test]
fn another_tenants_package_does_not_take_over_a_machine() {
    let mut device = Device::new();
    let owned = device.install("owned", ECHO);
    device.tenant = VerifyingKey([2; 32]);
    let taken = device.try_install("owned", ECHO, 2, Budget::default());
    assert_eq!(taken, Err(InstallError::OtherTenant));
    let machine = device.kernel.machines().next().unwrap();
    assert_eq!((machine.record.tenant, machine.record.placement), (VerifyingKey([1; 32]), 1));
    device.tenant = VerifyingKey([1; 32]);
    assert_eq!(device.try_install("owned", ECHO, 2, Budget::default()), Ok(owned), "its own may");
}

#[test]
fn a_placement_that_is_not_newer_is_refused_also_after_the_machine_was_removed() {
    let mut device = Device::new();
    device.try_install("echo", ECHO, 5, Budget::default()).unwrap();
    for placement in [4, 5] {
        let installed = device.try_install("echo", ECHO, placement, Budget::default());
        assert_eq!(installed, Err(InstallError::Stale));
    }
    device.kernel.tenancy(device.now).remove(&name("echo")).unwrap();
    let mut device = device.reboot();
    for placement in [4, 5] {
        let installed = device.try_install("echo", ECHO, placement, Budget::default());
        assert_eq!(installed, Err(InstallError::Stale));
    }
    device.try_install("echo", ECHO, 6, Budget::default()).unwrap();
}

/// Reads the secret `key`; replies with the number of the error, as a byte.
const SECRET: &str = r#"(import "tenure" "secret_read"
      (func $secret_read (param i32 i32 i32 i32) (result i32)))"#;

#[test]
fn a_secret_takes_a_grant_before_the_node_is_asked_for_it() {
    let body = r#"(data (i32.const 0) "key")
        (func (export "read")
          (i32.store8 (i32.const 100) (i32.sub (i32.const 0) (call $secret_read
            (i32.const 0) (i32.const 3) (i32.const 200) (i32.const 32))))
          (drop (call $reply (i32.const 100) (i32.const 1))))"#;
    let granted = Capabilities { secrets: vec![name("key")], ..granting(&[], &["*"]) };
    for (grants, asked) in [(granting(&[], &["*"]), 0), (granted, 1)] {
        let mut device = Device::new();
        device.imports = SECRET;
        let reader = install(&mut device, "reader", body, &grants);
        let ticket = device.deliver(reader, "read", None).unwrap();
        device.settle(100);
        let effects = device.effects.iter();
        let secrets = effects.filter(|effect| matches!(effect, Effect::Secret { .. }));
        assert_eq!(secrets.count(), asked);
        let reply = device.replies.remove(&ticket).map(|reply| reply.unwrap().unwrap()[0]);
        assert_eq!(reply, if asked == 0 { NOT_GRANTED } else { None });
    }
}

#[test]
fn a_renewal_whose_number_is_not_newer_changes_nothing() {
    let mut device = Device::new();
    let echo = device.try_install("echo", ECHO, 5, Budget::default()).unwrap();
    for number in [4, 5] {
        let renewed = device.kernel.tenancy(device.now).renew(echo, number, Term::default());
        assert_eq!(renewed, Err(InstallError::Stale));
        assert_eq!(device.kernel.machines().next().unwrap().record.placement, 5);
    }
    device.kernel.tenancy(device.now).renew(echo, 6, Term::default()).unwrap();
    assert_eq!(device.reboot().kernel.machines().next().unwrap().record.placement, 6);
}
