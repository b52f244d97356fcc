use super::*;
use alloc::string::ToString as _;
use alloc::vec;
use tenure_wire::Digest;
use tenure_wire::control::RoomStatus;
use tenure_wire::report::METRICS_MAX;

fn at(seconds: u64) -> Instant {
    Instant::BOOT + Duration::from_secs(seconds)
}

fn device() -> DeviceReport {
    let room = RoomStatus {
        memory_bytes_promised: 1,
        memory_bytes_max: 2,
        store_bytes_used: 3,
        store_bytes_max: 4,
        code_bytes_used: 5,
        code_bytes_max: 6,
        store_erases: 7,
    };
    DeviceReport { version: "0.1.0".into(), uptime_s: 9, room, heap: None, neighbours: None }
}

fn machine(name: &str, tasks_done: u64) -> MachineReport {
    MachineReport {
        name: name.parse().unwrap(),
        package: Digest([1; 32]),
        version: "1.0.0".parse().unwrap(),
        state: "idle".into(),
        repute: "good".into(),
        queue_length: 0,
        tasks_done,
        fuel_used: 0,
        waited_max_us: 0,
        memory_bytes: 0,
        memory_bytes_max: 0,
        stored_bytes: 0,
        metrics: Vec::new(),
    }
}

fn next(reporting: &mut Reporting, now: Instant, machines: &[MachineReport]) -> Report {
    let bytes = reporting.next(now, 1, device(), machines.to_vec());
    assert!(bytes.len() <= PARAMETER_BYTES_MAX, "{} bytes", bytes.len());
    postcard::from_bytes(&bytes).unwrap()
}

fn taken(reporting: &mut Reporting, now: Instant, wants_all: bool) {
    let answer: Answer<Reported> = Ok(Reported { again_s: 60, wants_all });
    reporting.done(now, Ok(Some(postcard::to_allocvec(&answer).unwrap())));
}

fn names(report: &Report) -> Vec<&str> {
    report.machines.iter().map(|machine| machine.name.as_str()).collect()
}

fn fault(number: u64) -> LogLine {
    LogLine {
        number,
        at_ms: 0,
        machine: "a".parse().unwrap(),
        level: "fault".to_string(),
        message: "é".repeat(200),
        unix_s: None,
        boot: 1,
    }
}

#[test]
fn machines_as_the_hub_knows_them_are_left_out_for_an_hour() {
    let mut reporting = Reporting::new(at(0));
    let (a, b) = (machine("a", 1), machine("b", 1));
    assert_eq!(names(&next(&mut reporting, at(0), &[a.clone(), b.clone()])), ["a", "b"]);
    taken(&mut reporting, at(0), false);
    let changed = machine("b", 2);
    let report = next(&mut reporting, at(60), &[a.clone(), changed.clone()]);
    assert_eq!((names(&report), report.number), (vec!["b"], 1));
    taken(&mut reporting, at(60), false);
    assert_eq!(names(&next(&mut reporting, at(3_600), &[a, changed])), ["a"]);
}

#[test]
fn report_without_an_answer_is_told_again() {
    let mut reporting = Reporting::new(at(0));
    reporting.faulted(&fault(5), at(0));
    let first = next(&mut reporting, at(0), &[machine("a", 1)]);
    reporting.done(at(4), Err(NoResult::Unreachable));
    assert_eq!(reporting.at, Some(at(34)));
    let second = next(&mut reporting, at(34), &[machine("a", 1)]);
    assert_eq!((first.machines, first.faults), (second.machines, second.faults));
}

#[test]
fn report_for_which_a_hub_is_too_late_comes_when_the_hub_says() {
    let mut reporting = Reporting::new(at(0));
    next(&mut reporting, at(0), &[machine("a", 1)]);
    let again_in = Duration::from_secs(7);
    reporting.done(at(4), Err(NoResult::Deferred { again_in }));
    assert_eq!(reporting.at, Some(at(11)));
    assert_eq!(names(&next(&mut reporting, at(11), &[machine("a", 1)])), ["a"]);
}

#[test]
fn hub_that_knows_none_is_told_those_that_did_not_fit() {
    let mut reporting = Reporting::new(at(0));
    let metrics: Vec<_> = (0..METRICS_MAX)
        .map(|index| (alloc::format!("{}{index}", "m".repeat(31)).parse().unwrap(), i64::MAX))
        .collect();
    let machines: Vec<_> = (0..30)
        .map(|number| MachineReport {
            metrics: metrics.clone(),
            ..machine(&alloc::format!("machine-{number:02}"), 1)
        })
        .collect();
    let mut told = Vec::new();
    for round in 0..10 {
        let report = next(&mut reporting, at(round), &machines);
        told.extend(report.machines.into_iter().map(|machine| machine.name));
        taken(&mut reporting, at(round), false);
    }
    told.sort();
    let all: Vec<_> = machines.into_iter().map(|machine| machine.name).collect();
    assert_eq!(told, all, "each once, over several reports");
}

#[test]
fn fault_is_told_at_once_cut_between_characters_and_until_the_hub_has_it() {
    let mut reporting = Reporting::new(at(0));
    next(&mut reporting, at(0), &[]);
    taken(&mut reporting, at(0), false);
    assert_eq!(reporting.at, Some(at(60)));
    reporting.faulted(&fault(7), at(10));
    assert_eq!(reporting.at, Some(at(10)));
    let report = next(&mut reporting, at(10), &[]);
    assert_eq!(report.faults[0].text, "é".repeat(FAULT_BYTES_MAX / 2));
    // One more comes while the report is on its way.
    reporting.faulted(&fault(8), at(11));
    taken(&mut reporting, at(11), false);
    assert_eq!(reporting.at, Some(at(12)), "two seconds after the last one");
    assert_eq!(next(&mut reporting, at(12), &[]).faults[0].number, 8);
}

#[test]
fn faults_without_end_take_no_more_than_the_budget_of_a_day() {
    let mut reporting = Reporting::new(at(0));
    let (mut bytes, mut number) = (0_u64, 0);
    for second in 0..24 * 60 * 60 {
        number += 1;
        reporting.faulted(&fault(number), at(second));
        if reporting.at.is_some_and(|due| due <= at(second)) {
            bytes += reporting.next(at(second), 1, device(), Vec::new()).len() as u64;
            taken(&mut reporting, at(second), false);
        }
    }
    let burst = BYTES_A_DAY / 24;
    assert!((BYTES_A_DAY / 2..BYTES_A_DAY + 2 * burst).contains(&bytes), "{bytes} bytes");
}
