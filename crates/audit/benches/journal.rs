//! What a machine's journal costs: bytes for a sensor's program and for a host call, and the time of writing them down.
//!
//! `cargo xtask bench journal`. Bytes are exact. Times are those of runs with a journal and without one, in turn.

#[allow(dead_code, reason = "tests use more of a device than a bench does")]
#[path = "../tests/audit/device.rs"]
mod device;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use tenure_bench_report::{Program, Row, Rows};
use tenure_journal::{Page, Record};
use tenure_wire::Budget;

use device::Device;

/// Takes a reading of eight bytes with each event, and keeps a mean; every tenth time it stores and tells it. `count` asks
/// for the time a thousand times.
const SENSOR: &str = r#"
  (data (i32.const 0) "room.heaton_readmeanroom.mean")
  (global $sum (mut i32) (i32.const 0))
  (global $count (mut i32) (i32.const 0))
  (func (export "entry")
    (drop (call $subscribe (i32.const 0) (i32.const 9) (i32.const 0) (i32.const 4)
      (i32.const 9) (i32.const 7))))
  (func (export "on_read") (local $left i32)
    (drop (call $parameter_read (i32.const 0) (i32.const 1024) (i32.const 8)))
    (local.set $left (i32.const 500))
    (loop $smooth
      (global.set $sum (i32.add (global.get $sum) (i32.load (i32.const 1024))))
      (local.set $left (i32.sub (local.get $left) (i32.const 1)))
      (br_if $smooth (local.get $left)))
    (global.set $count (i32.add (global.get $count) (i32.const 1)))
    (i64.store (i32.const 1040) (call $unix_time_s))
    (if (i32.eqz (i32.rem_u (global.get $count) (i32.const 10))) (then
      (i32.store (i32.const 1048) (global.get $sum))
      (drop (call $tree_set (i32.const 16) (i32.const 4) (i32.const 0) (i32.const 1048) (i32.const 4)))
      (drop (call $publish (i32.const 20) (i32.const 9) (i32.const 1040) (i32.const 12))))))
  (func (export "count") (local $left i32)
    (local.set $left (i32.const 1000))
    (loop $again
      (i64.store (i32.const 1056) (call $uptime_us))
      (local.set $left (i32.sub (local.get $left) (i32.const 1)))
      (br_if $again (local.get $left))))"#;

const READINGS: u64 = 5_000;
/// Runs with a journal, and as many without.
const RUNS: usize = 11;

fn main() -> ExitCode {
    let program = Program {
        help: "Measures what a machine's journal costs.\n\nUsage: journal [--json]\n",
        targets: &["host"],
    };
    program.run(|_, rows| {
        measure(rows);
        Ok(())
    })
}

fn measure(rows: &mut Rows) {
    let mut show = |metric: &str, unit, value| {
        let (bench, target, subject) = ("journal".into(), "host".into(), "tenure".into());
        rows.push(Row { bench, target, subject, metric: metric.into(), unit, value });
    };
    let mut device = begun(true);
    let before = written(&mut device);
    for number in 0..READINGS {
        read(&mut device, number);
    }
    let after = written(&mut device);
    let turns = after.turns - before.turns;
    let bytes = after.bytes - before.bytes;
    show("a sensor's program, 1,000 turns", "bytes", bytes as f64 * 1000.0 / turns as f64);
    let before = after;
    count(&mut device);
    let after = written(&mut device);
    show(
        "a host call that returns a number",
        "bytes",
        (after.bytes - before.bytes) as f64 / 1000.0,
    );

    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..RUNS {
        for (is_kept, times) in times.iter_mut().enumerate() {
            let mut device = begun(is_kept == 1);
            let began = Instant::now();
            (0..READINGS).for_each(|number| read(&mut device, number));
            times.push(began.elapsed());
        }
    }
    let [without, with] = times.map(median);
    show("a sensor's time with it, over without", "×", with.as_secs_f64() / without.as_secs_f64());
}

/// A device whose machine has subscribed, with a journal or without.
fn begun(is_kept: bool) -> Device {
    let mut device = Device::new(20_000);
    let budget = Budget::default();
    let machine = match is_kept {
        true => device.install_journaled(SENSOR, budget),
        false => device.install("meter", SENSOR, budget),
    };
    device.deliver(machine, "entry", None);
    device.settle(100);
    device
}

fn read(device: &mut Device, number: u64) {
    device.publish("room.heat", &(number * 37).to_le_bytes());
    device.settle(100);
    device.pass(Duration::from_secs(1));
}

fn count(device: &mut Device) {
    let machine = device.journal.machine;
    device.deliver(machine, "count", None);
    device.settle(100);
}

/// The part of a journal that was written: pages that don't begin with the machine's state, and turns.
struct Written {
    bytes: usize,
    turns: u64,
}

fn written(device: &mut Device) -> Written {
    let journal = device.finish();
    let pages = || journal.pages.iter().map(|bytes| (bytes, Page::parse(bytes).unwrap()));
    let bytes = pages().filter(|(_, page)| page.start.is_none()).map(|(bytes, _)| bytes.len());
    let mut turns = pages().filter_map(|(_, page)| match page.records.last() {
        Some(Record::Mark(mark)) => Some(mark.turns),
        _ => None,
    });
    Written { bytes: bytes.sum(), turns: turns.next_back().unwrap_or(0) }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
