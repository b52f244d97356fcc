//! A life that was recorded is replayed bit for bit, whatever happened in it; journals that aren't the machine's, or not
//! what it does, are refused by name.

use std::time::Duration;

use tenure_audit::{Journal, JournalError, ReplayError, Replayed, Watcher, audit, replay};
use tenure_hal::simulated::Random;
use tenure_journal::{Given, Page, Record};
use tenure_kernel::MachineJournals;
use tenure_kernel::{Difference, LogEntry};
use tenure_store::ValueKind;
use tenure_wire::Budget;

use crate::device::{Device, FUEL_MAX, code_of};

/// A machine that does a bit of everything, by the number in its parameter; `entry` begins it.
const EVERYTHING: &str = r#"
  (global $seen (mut i32) (i32.const 0))
  (data (i32.const 0) "door.open") (data (i32.const 16) "echo") (data (i32.const 32) "tick")
  (data (i32.const 48) "a.b") (data (i32.const 64) "on_event") (data (i32.const 80) "on_done")
  (data (i32.const 96) "a.c") (data (i32.const 112) "work") (data (i32.const 128) "x.y")
  (func $mix (param $value i32)
    (global.set $seen (i32.add (i32.mul (global.get $seen) (i32.const 31)) (local.get $value))))
  (func $mix_memory (param $at i32) (param $count i32)
    (local $end i32)
    (local.set $end (i32.add (local.get $at) (local.get $count)))
    (block $done (loop $next
      (br_if $done (i32.ge_u (local.get $at) (local.get $end)))
      (call $mix (i32.load8_u (local.get $at)))
      (local.set $at (i32.add (local.get $at) (i32.const 1)))
      (br $next))))
  (func $say
    (i32.store (i32.const 900) (global.get $seen))
    (i32.store8 (i32.const 904) (i32.add (i32.const 65) (i32.and (global.get $seen) (i32.const 15))))
    (call $log (i32.const 2) (i32.const 904) (i32.const 1)))
  (func (export "entry")
    (call $mix (call $subscribe (i32.const 0) (i32.const 9) (i32.const 0) (i32.const 4)
      (i32.const 64) (i32.const 8)))
    (call $mix (call $timer_after (i32.const 32) (i32.const 4) (i32.const 0) (i32.const 0)
      (i32.const 50) (i32.const 70)))
    (call $mix (call $timer_after (i32.const 80) (i32.const 7) (i32.const 0) (i32.const 0)
      (i32.const 30) (i32.const 0))))
  (func (export "tick")
    (call $mix (i32.wrap_i64 (call $uptime_us)))
    (call $say))
  (func (export "on_event")
    (drop (call $parameter_read (i32.const 0) (i32.const 1024) (i32.const 64)))
    (call $mix_memory (i32.const 1024) (call $parameter_length))
    (call $mix (call $event_topic (i32.const 1024) (i32.const 64)))
    (call $mix_memory (i32.const 1024) (i32.const 9)))
  (func (export "on_done")
    (call $mix (call $callback_of))
    (drop (call $parameter_read (i32.const 0) (i32.const 1024) (i32.const 64)))
    (call $mix_memory (i32.const 1024) (i32.const 8)))
  (func (export "set")
    (drop (call $parameter_read (i32.const 0) (i32.const 1024) (i32.const 64)))
    (call $mix (call $tree_set (i32.const 48) (i32.const 3) (i32.const 0) (i32.const 1024) (i32.const 9)))
    (call $mix (call $tree_set (i32.const 96) (i32.const 3) (i32.const 0) (i32.const 900) (i32.const 4)))
    (call $mix (call $tree_list (i32.const 48) (i32.const 1) (i32.const 1200) (i32.const 64)))
    (call $mix (call $tree_get (i32.const 128) (i32.const 3) (i32.const 1300) (i32.const 64)))
    (call $mix_memory (i32.const 1200) (i32.const 164)))
  (func (export "delete")
    (call $mix (call $tree_delete (i32.const 48) (i32.const 1))))
  (func (export "ask")
    (call $mix (call $call (i32.const 16) (i32.const 4) (i32.const 16) (i32.const 4)
      (i32.const 900) (i32.const 4) (i32.const 0)))
    (call $mix (call $result_read (i32.const 0) (i32.const 1400) (i32.const 64)))
    (call $mix_memory (i32.const 1400) (i32.const 8))
    (call $mix (call $peers (i32.const 3) (i32.const 1500) (i32.const 96)))
    (call $mix_memory (i32.const 1500) (i32.const 96)))
  (func (export "send")
    (call $mix (call $queue (i32.const 16) (i32.const 4) (i32.const 16) (i32.const 4)
      (i32.const 900) (i32.const 4) (i32.const 80) (i32.const 7) (i32.const 80) (i32.const 7)
      (i32.const 0) (i32.const 0)))
    (call $mix (call $publish (i32.const 0) (i32.const 9) (i32.const 900) (i32.const 4))))
  (func (export "draw")
    (call $mix (call $random (i32.const 2048) (i32.const 1500)))
    (call $mix_memory (i32.const 2048) (i32.const 1500))
    (call $mix (i32.wrap_i64 (call $unix_time_s)))
    (call $mix (call $budget_left (i32.const 0)))
    (call $mix (call $caller (i32.const 1024) (i32.const 32)))
    (call $mix_memory (i32.const 1024) (i32.const 32)))
  (func (export "work") (local $left i32)
    (local.set $left (i32.const 2000))
    (loop $again
      (call $mix (local.get $left))
      (local.set $left (i32.sub (local.get $left) (i32.const 1)))
      (br_if $again (local.get $left)))
    (call $yield_now)
    (call $sleep_ms (i32.const 40))
    (call $mix (i32.wrap_i64 (call $uptime_us)))
    (i32.store (i32.const 70000) (global.get $seen))
    (call $say))
  (func (export "trap") (call $say) (unreachable))
  (func (export "point") (drop (call $reply (i32.const -8) (i32.const 64))))
  (func (export "shout") (drop (call $publish (i32.const 0) (i32.const 9) (i32.const -8) (i32.const 64))))
  (func (export "spin") (loop $for_ever (br $for_ever)))
"#;

/// Replies with its parameter.
const ECHO: &str = r#"
  (func (export "echo")
    (drop (call $parameter_read (i32.const 0) (i32.const 4096) (i32.const 64)))
    (drop (call $reply (i32.const 4096) (call $parameter_length))))"#;

const CALLS: [&str; 10] =
    ["set", "delete", "ask", "send", "draw", "work", "trap", "point", "shout", "spin"];

fn budget() -> Budget {
    Budget {
        memory_bytes: 128 * 1024,
        queue_length: 8,
        task_fuel: 150_000,
        messages_per_second: 3,
        stored_bytes: 48,
        ..Budget::default()
    }
}

/// A device whose machine lived through what follows from `seed`, and was billed now and then.
fn lived(seed: u64, slice_fuel: u64) -> Device {
    let mut random = Random::new(seed);
    let mut below = |limit: u64| random.below(limit);
    let mut device = Device::new(slice_fuel);
    device.install("echo", ECHO, Budget::default());
    let id = device.install_journaled(EVERYTHING, budget());
    let name = "meter".parse().unwrap();
    for _ in 0..40 {
        for _ in 0..below(3) {
            let function = CALLS[below(CALLS.len() as u64) as usize];
            let parameter = below(1 << 40).to_le_bytes();
            device.deliver(id, function, Some(&parameter));
        }
        match below(12) {
            0 => device.publish("door.open", b"wide"),
            1 => {
                let value = below(1 << 30).to_le_bytes();
                let mut tenancy = device.kernel.tenancy(device.now);
                let _ = tenancy.set_value(&name, "x.y", ValueKind::Bytes, &value);
            }
            2 => {
                let _ = device.kernel.tenancy(device.now).restart(&name);
            }
            3 => MachineJournals::of(&mut device.kernel).renew(id),
            4 => {
                let _ = device.kernel.suspend_all();
            }
            5 => {
                let _ = device.kernel.pardon(device.now, &name);
            }
            6 => device.bill(|_| {}),
            7 => device.update(EVERYTHING, budget()),
            _ => {}
        }
        device.settle(below(120) as usize);
        device.pass(Duration::from_millis(below(400)));
    }
    device
}

/// Collects lines of the log.
#[derive(Default)]
struct Lines(Vec<String>);

impl Watcher for Lines {
    fn logged(&mut self, _: u64, entry: &LogEntry) {
        self.0.push(entry.message.clone());
    }
}

fn replayed(device: &Device, journal: &Journal) -> Result<Replayed, ReplayError> {
    replay(journal, &device.code(), FUEL_MAX, &mut ())
}

#[test]
fn lives_of_a_machine_are_replayed_bit_for_bit_and_their_bills_proved_whatever_its_slices() {
    let mut records = std::collections::BTreeSet::new();
    let (mut marks, mut starts, mut amounts) = (0, 0, 0);
    // In the last four, frames begin with what a suspension took, and receipts are signed while no page is under way.
    for seed in (0..24).chain([36, 61, 66, 263]) {
        let slice_fuel = [3_000, 20_000, 1_000_000][seed as usize % 3];
        let mut device = lived(seed, slice_fuel);
        let journal = device.finish();
        let done = replayed(&device, &journal);
        let done = done.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        (marks, starts) = (marks + done.marks, starts + done.starts);
        if !device.receipts.is_empty() {
            let audited = audit(&device.receipts, &journal, &device.code(), FUEL_MAX, &mut ());
            let audited = audited.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            let wrong: Vec<_> = audited.wrong().collect();
            assert!(wrong.is_empty(), "seed {seed}: {wrong:?}");
            amounts += audited.findings.len();
        }
        for page in journal.pages().unwrap() {
            records.extend(page.records.iter().map(Record::kind));
        }
    }
    assert!(marks > 100 && starts > 24, "{marks} marks, {starts} starts");
    assert!(amounts > 100, "{amounts} amounts were judged");
    let all = [
        "amendment",
        "answer",
        "charge",
        "mark",
        "random bytes",
        "refusal",
        "result",
        "stop",
        "suspension",
        "task",
        "time of day",
        "uptime",
    ];
    let missing: Vec<_> = all.iter().filter(|kind| !records.contains(**kind)).collect();
    assert!(missing.is_empty(), "not met: {missing:?}");
}

#[test]
fn lines_of_the_log_are_said_again() {
    let mut device = Device::new(3_000);
    let id = device.install_journaled(EVERYTHING, budget());
    for function in ["work", "set", "draw", "trap", "work"] {
        device.deliver(id, function, Some(b"8 bytes."));
        for _ in 0..2 {
            device.settle(1_000);
            device.pass(Duration::from_secs(10));
        }
    }
    let journal = device.finish();
    let mut lines = Lines::default();
    let code = device.code();
    replay(&journal, &code, FUEL_MAX, &mut lines).unwrap();
    let own = |line: &&String| line.len() == 1;
    let said: Vec<_> = lines.0.iter().filter(own).collect();
    let said_before: Vec<_> = device.log.iter().filter(own).collect();
    assert!(said.len() > 4, "{said:?}");
    assert_eq!(said, said_before);
}

#[test]
fn journal_of_another_package_is_refused_by_name() {
    let mut device = lived(1, 20_000);
    let journal = device.finish();
    let recorded = device.code().package;
    device.install("other", ECHO, Budget::default());
    assert_eq!(replayed(&device, &journal), Err(ReplayError::OtherPackage { recorded }));
}

#[test]
fn journal_of_two_packages_is_replayed_and_audited_with_each() {
    let mut device = lived(1, 20_000);
    let (before, pages) = (device.wasm.clone(), device.journal.pages.len() as u64);
    device.bill(|_| {});
    device.update(ECHO, budget());
    let id = device.kernel.machines().find(|info| info.record.name.as_str() == "meter").unwrap().id;
    for _ in 0..3 {
        device.deliver(id, "echo", Some(b"8 bytes."));
        device.settle(100);
        device.bill(|_| {});
    }
    let journal = device.finish();
    let new = replayed(&device, &journal).unwrap();
    assert!(new.skipped >= pages && new.pages >= 3, "{new:?}");
    let audited = audit(&device.receipts, &journal, &device.code(), FUEL_MAX, &mut ()).unwrap();
    assert_eq!(audited.wrong().count(), 0, "{audited:?}");
    let last = device.receipts.len() as u64 - 1;
    assert!(audited.uncovered.contains(&(last - 3)) && !audited.uncovered.contains(&last));
    let old = replay(&journal, &code_of(&before), FUEL_MAX, &mut ()).unwrap();
    assert!(old.pages >= pages && old.skipped >= 3, "{old:?}");
}

#[test]
fn journal_without_its_beginning_is_refused_by_name() {
    let mut device = lived(1, 20_000);
    let whole = device.finish();
    let pages = whole.pages().unwrap();
    let second = pages.iter().position(|page| page.start.is_none()).unwrap();
    let mut rest = whole.clone();
    rest.previous = whole.heads()[second - 1];
    rest.pages.drain(..second);
    assert_eq!(replayed(&device, &rest), Err(ReplayError::NoStart));
}

/// A device and its journal, in which it has changed one page before it signed.
fn lying(change: impl Fn(&mut Page) -> bool) -> (Device, Journal) {
    for seed in 0..24 {
        let mut device = lived(seed, 20_000);
        device.finish();
        let mut pages = device.journal.pages.iter_mut();
        let is_changed = pages.any(|bytes| {
            let mut page = Page::parse(bytes).unwrap();
            let is_changed = change(&mut page);
            *bytes = page.to_bytes().unwrap();
            is_changed
        });
        if is_changed {
            device.sign();
            let journal = device.journal.clone();
            return (device, journal);
        }
    }
    panic!("no life had what is to be changed")
}

/// The first record of a page that `change` changes.
fn first(page: &mut Page, change: impl Fn(&mut Record) -> bool) -> bool {
    page.records.iter_mut().any(change)
}

#[test]
fn first_difference_is_named() {
    let (device, journal) = lying(|page| {
        first(page, |record| match record {
            Record::Mark(mark) => {
                mark.total += 1;
                true
            }
            _ => false,
        })
    });
    let Err(ReplayError::Differs(diverged)) = replayed(&device, &journal) else {
        panic!("more fuel was billed")
    };
    assert!(matches!(diverged.difference, Difference::Total { .. }), "{diverged}");

    let (device, journal) = lying(|page| {
        let answer = page.records.iter().position(|record| matches!(record, Record::Random(_)));
        answer.map(|at| page.records.remove(at)).is_some()
    });
    let Err(ReplayError::Differs(diverged)) = replayed(&device, &journal) else {
        panic!("random bytes are missing")
    };
    let asked = matches!(diverged.difference, Difference::Asked { asked: "random bytes", .. });
    assert!(asked && diverged.place.is_some() && diverged.records > 0, "{diverged}");

    let (device, journal) = lying(|page| {
        first(page, |record| match record {
            Record::Mark(mark) if mark.state.is_some() => {
                mark.state = Some(tenure_wire::Digest([0; 32]));
                true
            }
            _ => false,
        })
    });
    let error = replayed(&device, &journal).unwrap_err();
    assert!(matches!(error, ReplayError::State { .. }) && error.is_difference(), "{error}");
}

/// A device that bills for its answers: it says what they took, and in how many pieces they came.
#[test]
fn answers_that_take_more_than_they_can_are_found() {
    let in_many_pieces = |page: &mut Page| {
        let answer = page.records.iter().position(|record| matches!(record, Record::Given(_)));
        let Some(at) = answer else { return false };
        let piece = Record::Given(Given { more: true, ..Given::default() });
        drop(page.records.splice(at..at, vec![piece; 100]));
        true
    };
    let for_much_fuel = |page: &mut Page| {
        first(page, |record| match record {
            Record::Given(given) => {
                given.fuel = 20_000;
                true
            }
            _ => false,
        })
    };
    for change in [&in_many_pieces as &dyn Fn(&mut Page) -> bool, &for_much_fuel] {
        let (device, journal) = lying(change);
        let Err(ReplayError::Differs(diverged)) = replayed(&device, &journal) else {
            panic!("more was billed than the answers take")
        };
        let asked = "an answer of the device";
        let is_it =
            matches!(diverged.difference, Difference::Asked { asked: it, .. } if it == asked);
        assert!(is_it, "{diverged}");
    }
}

#[test]
fn journals_that_lie_end_in_an_error_or_in_another_run_and_never_in_a_panic() {
    let mut device = lived(5, 20_000);
    let whole = device.finish();
    let code = device.code();
    let mut random = Random::new(99);
    let (mut refused, mut differed) = (0, 0);
    for _ in 0..60 {
        let mut journal = whole.clone();
        let place = random.below(journal.pages.len() as u64) as usize;
        let page = &mut journal.pages[place];
        for _ in 0..=random.below(3) {
            let at = random.below(page.len() as u64) as usize;
            page[at] = random.below(256) as u8;
        }
        // A device signs for it: the chain is as it must be.
        match replay(&journal, &code, 1 << 24, &mut ()) {
            Ok(_) => {}
            Err(ReplayError::Journal(JournalError::Page { .. })) => refused += 1,
            Err(_) => differed += 1,
        }
    }
    assert!(refused > 0 && differed > 0, "{refused} were no pages, {differed} were no runs");
}
