//! Followers of a device that is killed and stopped again and again, at random moments.

use alloc::collections::BTreeSet;
use alloc::string::ToString;

use proptest::prelude::*;

use super::*;

/// A device: what it holds since it booted, kept lines of before among it.
struct Device {
    boot: u32,
    at_ms: u64,
    held: Vec<LogLine>,
    /// How many lines it ever said.
    said: u64,
}

/// What happens to a device.
#[derive(Clone, Debug)]
enum Event {
    /// A machine says so many lines within a millisecond, the first one after so many.
    Say { machine: usize, lines: u8, after_ms: u8 },
    /// The follower asks for at most so many lines.
    Ask { lines_max: u8 },
    /// It is stopped and started, and keeps so many lines of each machine.
    Stop { kept: u8 },
    /// It is killed and started: the lines that it kept before are there again.
    Kill,
}

impl Device {
    fn say(&mut self, machine: usize) {
        let machine: Name = ["cellar", "attic"][machine].parse().unwrap();
        self.said += 1;
        let message = self.said.to_string();
        self.held.push(LogLine {
            number: self.held.len() as u64,
            at_ms: self.at_ms,
            machine,
            level: "info".into(),
            message,
            unix_s: None,
            boot: self.boot,
        });
    }

    fn restart(&mut self, kept: Vec<LogLine>) {
        self.boot += 1;
        self.at_ms = 0;
        let numbered = kept.into_iter().enumerate();
        self.held =
            numbered.map(|(number, line)| LogLine { number: number as u64, ..line }).collect();
    }

    /// The last `count` lines of each machine.
    fn last_of_each(&self, count: usize) -> Vec<LogLine> {
        let is_kept = |index: usize, line: &LogLine| {
            let later = self.held[index + 1..].iter().filter(|it| it.machine == line.machine);
            later.count() < count
        };
        let lines = self.held.iter().enumerate().filter(|(index, line)| is_kept(*index, line));
        lines.map(|(_, line)| line.clone()).collect()
    }
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (0..2_usize, 1..4_u8, 0..3_u8)
            .prop_map(|(machine, lines, after_ms)| Event::Say { machine, lines, after_ms }),
        4 => (1..5_u8).prop_map(|lines_max| Event::Ask { lines_max }),
        1 => (0..9_u8).prop_map(|kept| Event::Stop { kept }),
        1 => Just(Event::Kill),
    ]
}

proptest! {
    /// A line is shown once and in order; and each line that the device still has at the end was shown.
    #[test]
    fn a_device_that_restarts_at_any_moment_has_each_line_shown_once_and_in_order(
        events in proptest::collection::vec(event(), 1..80),
        from_boot in 1..3_u32,
    ) {
        let mut device = Device { boot: from_boot, at_ms: 0, held: Vec::new(), said: 0 };
        let (mut kept, mut followed, mut shown) = (Vec::new(), Followed::default(), Vec::new());
        let last = [Event::Ask { lines_max: u8::MAX }, Event::Ask { lines_max: u8::MAX }];
        for event in events.into_iter().chain(last) {
            match event {
                Event::Say { machine, lines, after_ms } => {
                    device.at_ms += u64::from(after_ms);
                    (0..lines).for_each(|_| device.say(machine));
                }
                Event::Stop { kept: count } => {
                    kept = device.last_of_each(count.into());
                    device.restart(kept.clone());
                }
                Event::Kill => device.restart(kept.clone()),
                Event::Ask { lines_max } => {
                    if followed.is_restart(device.boot) {
                        continue;
                    }
                    let from = followed.next();
                    let page: Vec<&LogLine> = device.held.iter().filter(|line| line.number >= from)
                        .take(lines_max.into()).collect();
                    for line in &page {
                        if followed.takes(line) {
                            shown.push(line.message.parse::<u64>().unwrap());
                        }
                    }
                    followed.go_on_from(from + page.len() as u64);
                }
            }
        }
        prop_assert!(shown.is_sorted_by(|one, next| one < next), "{shown:?}");
        let shown: BTreeSet<u64> = shown.into_iter().collect();
        let held: Vec<u64> = device.held.iter().map(|line| line.message.parse().unwrap()).collect();
        prop_assert!(held.iter().all(|line| shown.contains(line)), "{held:?} in {shown:?}");
    }
}

#[test]
fn lines_of_a_device_that_says_no_boot_are_all_new() {
    let line = |number| LogLine {
        number,
        at_ms: 5,
        machine: "attic".parse().unwrap(),
        level: "info".into(),
        message: "here".into(),
        unix_s: None,
        boot: 0,
    };
    let mut followed = Followed::default();
    assert!(!followed.is_restart(1) && followed.takes(&line(7)));
    assert!(followed.is_restart(2) && followed.next() == 0);
    assert!(followed.takes(&line(0)));
}
