//! The time that it takes to go back in a long record: an instruction, and to who wrote a value last.
//!
//! `cargo xtask bench replay`. A machine counts down for a hundred million units of fuel and fails. Times
//! of single steps are of moments that are spread over the whole record, and their order is shuffled, so that each begins
//! far from the one before.

#[path = "../tests/recording/mod.rs"]
mod recording;

use std::ops::Range;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tenure_bench_report::{Program, Row, Rows};
use tenure_node::Notice;
use tenure_replay::{Stopped, Walk, remember};

/// Writes a 1 to 256, 260 and 264: the first long before it fails, the others later.
const MACHINE: &str = r#"(module
  (memory (export "memory") 1)
  (func $count (param $times i32)
    (loop $again
      (i32.store (i32.const 512) (local.get $times))
      (local.set $times (i32.sub (local.get $times) (i32.const 1)))
      (br_if $again (local.get $times))))
  (func (export "entry")
    (i32.store (i32.const 256) (i32.const 1))
    (call $count (i32.const 25000000))
    (i32.store (i32.const 260) (i32.const 1))
    (call $count (i32.const 250000))
    (i32.store (i32.const 264) (i32.const 1))
    (call $count (i32.const 2500))
    (unreachable)))"#;

/// The values, the one that was written last first.
const WRITTEN: [Range<u32>; 3] = [264..268, 260..264, 256..260];
const STEP: Duration = Duration::from_millis(1);
/// How many single steps are timed.
const STEPS: u64 = 199;

fn main() -> ExitCode {
    let program = Program {
        help: "Times steps back in a long record.\n\nUsage: replay [--json]\n",
        targets: &["host"],
    };
    program.run(|_, rows| {
        measure(rows);
        Ok(())
    })
}

fn measure(rows: &mut Rows) {
    let has_failed = |notice: &Notice| matches!(notice, Notice::Log(line) if line.level == "fault");
    let record = recording::record("counter", MACHINE, STEP, &mut |_, notices| {
        !notices.iter().any(has_failed)
    });
    let (remembered, opening) =
        timed(|| remember(&mut &record[..], &mut recording::config).unwrap());
    let history = Arc::clone(&remembered.machines[0]);
    let mut walk = Walk::new(Arc::clone(&history));
    let fault = history.end();
    let units = history.distance(fault);
    let mut show = |metric: String, unit, value| {
        let (bench, target, subject) = ("replay/back".into(), "host".into(), "tenure".into());
        rows.push(Row { bench, target, subject, metric, unit, value });
    };
    show("fuel".into(), "units", units as f64);
    show("legs".into(), "legs", history.legs() as f64);
    show("record".into(), "bytes", record.len() as f64);
    show("opening it".into(), "ms", milliseconds(opening));

    let mut times: Vec<Duration> = (1..=STEPS)
        .map(|number| {
            // A prime has no divisor in common with the number of steps.
            let at = units / (STEPS + 1) * (number * 83 % STEPS + 1);
            walk.go(history.position_at(at));
            timed(|| assert!(walk.back())).1
        })
        .collect();
    times.sort_unstable();
    show("an instruction back, median".into(), "ms", milliseconds(times[times.len() / 2]));
    show("an instruction back, longest".into(), "ms", milliseconds(times[times.len() - 1]));

    for range in WRITTEN {
        walk.go(fault);
        let (stopped, time) = timed(|| walk.back_until(&mut |_| false, &[range]));
        assert_eq!(stopped, Stopped::Watched(0));
        let ago = units - history.distance(walk.position());
        show(format!("to a value's last writer, {ago} units before"), "ms", milliseconds(time));
    }
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let begin = Instant::now();
    let done = work();
    (done, begin.elapsed())
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
