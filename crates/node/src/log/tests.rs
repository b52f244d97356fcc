use tenure_testbed::frozen;

use super::*;

const ALL: Wanted<'_> = Wanted { machine: None, from: 0, level: LogLevel::Debug };
const UNKNOWN: (Instant, Option<UnixTime>) = (Instant::BOOT, None);

fn filled(lines_max: usize, lines: usize, text: &str) -> Log {
    let mut log = Log::new(lines_max, 1);
    for number in 0..lines {
        let machine = if number % 2 == 0 { "even" } else { "odd" };
        log.push(
            LogEntry {
                at: Instant::from_millis(number as u64),
                machine: machine.parse().unwrap(),
                level: LogLevel::Info,
                message: String::from(text),
            },
            None,
        );
    }
    log
}

#[test]
fn a_full_log_forgets_its_oldest_lines_and_says_how_many() {
    let page = filled(4, 10, "text").page(&ALL, UNKNOWN, 0);
    let numbers: Vec<u64> = page.lines.iter().map(|line| line.number).collect();
    assert_eq!(numbers, [6, 7, 8, 9]);
    assert_eq!((page.next, page.lost, page.more), (10, 6, false));
}

#[test]
fn pages_follow_one_another_without_gap_or_repeat() {
    let log = filled(500, 500, &"x".repeat(200));
    let (mut from, mut seen) = (0, Vec::new());
    loop {
        let page = log.page(&Wanted { from, ..ALL }, UNKNOWN, 0);
        seen.extend(page.lines.iter().map(|line| line.number));
        from = page.next;
        if !page.more {
            break;
        }
    }
    assert_eq!(seen, (0..500).collect::<Vec<u64>>());
}

#[test]
fn one_machines_lines_alone() {
    let odd = "odd".parse().unwrap();
    let page =
        filled(10, 10, "text").page(&Wanted { machine: Some(&odd), from: 3, ..ALL }, UNKNOWN, 0);
    let numbers: Vec<u64> = page.lines.iter().map(|line| line.number).collect();
    assert_eq!(numbers, [3, 5, 7, 9]);
}

#[test]
fn a_chatterbox_drowns_nobodys_lines_but_its_own() {
    let mut log = Log::new(8, 1);
    let mut say = |machine: &str| {
        log.push(
            LogEntry {
                at: Instant::BOOT,
                machine: machine.parse().unwrap(),
                level: LogLevel::Info,
                message: String::from("text"),
            },
            None,
        );
    };
    say("quiet");
    say("quiet");
    (0..1000).for_each(|_| say("chatterbox"));
    let quiet = "quiet".parse().unwrap();
    assert_eq!(log.page(&Wanted { machine: Some(&quiet), ..ALL }, UNKNOWN, 0).lines.len(), 2);
    let all = log.page(&ALL, UNKNOWN, 0);
    assert_eq!((all.lines.len(), all.lost, all.next), (8, 994, 1002));
}

fn entry(at_ms: u64, level: LogLevel, message: &str) -> LogEntry {
    let (at, machine) = (Instant::from_millis(at_ms), "m".parse().unwrap());
    LogEntry { at, machine, level, message: String::from(message) }
}

fn at(seconds: u64) -> Option<UnixTime> {
    Some(UnixTime { seconds })
}

#[test]
fn lines_less_grave_than_asked_are_left_out_and_the_next_page_goes_on_behind_them() {
    let mut log = Log::new(8, 1);
    for level in LogLevel::ALL {
        log.push(entry(0, level, level.as_str()), None);
    }
    let page = log.page(&Wanted { level: LogLevel::Warning, ..ALL }, UNKNOWN, 0);
    let levels: Vec<&str> = page.lines.iter().map(|line| line.level.as_str()).collect();
    assert_eq!(levels, ["fault", "error", "warning"]);
    assert_eq!((page.next, page.more), (5, false));
}

#[test]
fn line_said_before_the_time_was_known_is_dated_once_it_is() {
    let mut log = Log::new(8, 1);
    log.push(entry(1_000, LogLevel::Info, "early"), None);
    log.push(entry(61_000, LogLevel::Info, "late"), at(10_060));
    let times = |log: &Log, known| {
        let page = log.page(&ALL, (Instant::from_millis(121_000), known), 0);
        page.lines.iter().map(|line| line.unix_s).collect::<Vec<_>>()
    };
    assert_eq!(times(&log, None), [None, Some(10_060)]);
    assert_eq!(times(&log, at(10_120)), [Some(10_000), Some(10_060)]);
}

#[test]
fn last_lines_are_kept_over_a_restart_and_lines_of_the_new_boot_follow() {
    let mut log = Log::new(100, 3);
    for number in 0..100 {
        log.push(entry(number, LogLevel::Info, &alloc::format!("line {number}")), at(number));
    }
    let machine = "m".parse().unwrap();
    let kept = log.kept(&machine);
    assert!(
        kept.len() <= LOG_KEPT_BYTES_MAX && kept.len() > LOG_KEPT_BYTES_MAX - 64,
        "{}",
        kept.len()
    );
    let mut next = Log::new(100, 4);
    next.take_up(&[(machine, kept)]);
    assert!(next.unkept.is_empty(), "it needn't be kept again at once");
    next.push(entry(0, LogLevel::Fault, "new"), None);
    let page = next.page(&ALL, (Instant::BOOT, at(1_000)), 0);
    let said: Vec<_> = page.lines.iter().map(|line| (line.boot, line.unix_s)).collect();
    assert_eq!(said[said.len() - 2..], [(3, Some(99)), (4, Some(1_000))]);
    assert_eq!(page.lines[0].message, alloc::format!("line {}", 101 - page.lines.len()));
}

#[test]
fn kept_log_that_is_damaged_is_read_as_far_as_it_goes() {
    let mut log = Log::new(8, 1);
    log.push(entry(0, LogLevel::Info, "first"), None);
    log.push(entry(0, LogLevel::Info, "second"), None);
    let machine = "m".parse().unwrap();
    let kept = log.kept(&machine);
    for length in 0..kept.len() {
        let mut next = Log::new(8, 2);
        next.take_up(&[(machine.clone(), kept[..length].to_vec())]);
        assert!(next.lines() <= 1, "{length}");
    }
    let mut next = Log::new(8, 2);
    next.take_up(&[(machine, [&[KEPT_VERSION + 1], &kept[1..]].concat())]);
    assert_eq!(next.lines(), 0, "another version isn't guessed at");
}

#[test]
fn kept_log_of_version_1_is_written_and_read() {
    let mut log = Log::new(8, 3);
    log.push(entry(1_000, LogLevel::Info, "before the time was known"), None);
    log.push(entry(61_000, LogLevel::Fault, "after"), at(1_800_000_000));
    let machine: Name = "m".parse().unwrap();
    let bytes = frozen(env!("CARGO_MANIFEST_DIR"), "log-1", &log.kept(&machine));
    let mut next = Log::new(8, 4);
    next.take_up(&[(machine.clone(), bytes)]);
    let lines = next.page(&ALL, (Instant::BOOT, None), 0).lines;
    let said: Vec<_> = lines.iter().map(|line| (line.boot, line.message.as_str())).collect();
    assert_eq!(said, [(3, "before the time was known"), (3, "after")]);
}
