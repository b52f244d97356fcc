//! The log: levels, the time of day, and what outlasts a restart.

use std::time::Duration;

use tenure_wire::LogLevel;
use tenure_wire::control::{Function, LogLine, LogPage, LogQuery, Remove, Trash, TrashRestore};

use crate::leases::{Lease, anybody};
use crate::snapshots::ask;
use crate::world::{PRELUDE, World};

const TALKER: &str = r#"(data (i32.const 0) "said")
    (func (export "say") (call $log (i32.const 1) (i32.const 0) (i32.const 4)))
    (func (export "fall") unreachable)"#;

fn lines(world: &mut World, level: Option<LogLevel>) -> Vec<LogLine> {
    let query = LogQuery { machine: Some("talker".parse().unwrap()), from: 0, level };
    let page: LogPage = ask(world, Function::log.name(), &query).unwrap();
    page.lines
}

fn said(lines: &[LogLine], text: &str) -> Vec<u32> {
    lines.iter().filter(|line| line.message.contains(text)).map(|line| line.boot).collect()
}

#[test]
fn last_lines_of_a_machine_outlast_a_restart_and_those_of_a_fault_a_loss_of_power() {
    let mut world = World::new(|_| {});
    let key = world.install("talker", 4, TALKER);
    world.call(0, &key, "say", None).unwrap();
    let boot = lines(&mut world, None)[0].boot;
    // Nothing was written yet: the power takes the line along.
    let mut world = world.off_for(Duration::from_secs(5));
    world.pass(Duration::from_secs(1));
    assert_eq!(said(&lines(&mut world, None), "said"), [] as [u32; 0]);
    world.call(0, &key, "say", None).unwrap();
    world.call(0, &key, "fall", None).unwrap_err();
    let mut world = world.off_for(Duration::from_secs(5));
    world.pass(Duration::from_secs(1));
    let kept = lines(&mut world, None);
    assert_eq!(said(&kept, "said"), [boot + 1], "the fault was written with what led to it");
    assert_eq!(said(&kept, "stopped while serving `fall`"), [boot + 1]);
    world.call(0, &key, "say", None).unwrap();
    assert_eq!(said(&lines(&mut world, None), "said"), [boot + 1, boot + 2]);
    let faults = lines(&mut world, Some(LogLevel::Fault));
    assert!(faults.iter().all(|line| line.level == "fault") && !faults.is_empty());
    // Lines that a while has passed over are written, too.
    world.pass(Duration::from_secs(301));
    let mut world = world.off_for(Duration::from_secs(5));
    world.pass(Duration::from_secs(1));
    assert_eq!(said(&lines(&mut world, None), "said"), [boot + 1, boot + 2]);
}

#[test]
fn log_of_a_machine_that_is_gone_goes_with_it() {
    let mut world = World::new(|_| {});
    let key = world.install("talker", 4, TALKER);
    world.call(0, &key, "fall", None).unwrap_err();
    let remove = Remove { machine: "talker".parse().unwrap(), for_good: true };
    ask::<()>(&mut world, Function::remove.name(), &remove).unwrap();
    let mut kept = Vec::new();
    let _world = world.with_store(|store| {
        kept = store.children(tenure_store::TreeId(u16::MAX - 1), "logs").unwrap();
    });
    assert_eq!(kept, [] as [String; 0]);
}

#[test]
fn log_of_a_machine_that_was_removed_is_none_of_the_next_of_its_name() {
    for for_good in [true, false] {
        let mut world = World::new(|_| {});
        let key = world.install("talker", 4, TALKER);
        world.call(0, &key, "fall", None).unwrap_err();
        world.pass(Duration::from_secs(60));
        world.call(0, &key, "say", None).unwrap();
        let remove = Remove { machine: "talker".parse().unwrap(), for_good };
        ask::<()>(&mut world, Function::remove.name(), &remove).unwrap();
        let mut lease = Lease::of("talker", &format!("(module {PRELUDE} {TALKER})"), anybody());
        lease.sequence = 2;
        let key = world.install_lease(lease);
        world.call(0, &key, "say", None).unwrap();
        let messages = |world: &mut World| {
            let lines = lines(world, None).into_iter();
            lines.map(|line| line.message).collect::<Vec<_>>()
        };
        assert_eq!(messages(&mut world), ["installed", "said"]);
        world.pass(Duration::from_secs(301));
        let mut world = world.off_for(Duration::from_secs(5));
        world.pass(Duration::from_secs(1));
        assert_eq!(messages(&mut world)[..2], ["installed", "said"]);
    }
}

#[test]
fn log_of_a_machine_comes_back_from_the_trash_with_it() {
    let mut world = World::new(|_| {});
    let key = world.install("talker", 4, TALKER);
    world.call(0, &key, "say", None).unwrap();
    let remove = Remove { machine: "talker".parse().unwrap(), for_good: false };
    ask::<()>(&mut world, Function::remove.name(), &remove).unwrap();
    let trash: Trash = ask(&mut world, Function::trash.name(), &()).unwrap();
    let restore = TrashRestore { machine: trash.machines[0].id };
    ask::<()>(&mut world, Function::trash_restore.name(), &restore).unwrap();
    assert_eq!(said(&lines(&mut world, None), "said").len(), 1);
}
