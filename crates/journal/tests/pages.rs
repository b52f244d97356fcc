//! Pages as bytes: one encoding for one row of records, and an error for whatever else.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use tenure_journal::{
    Event, Given, Mark, Page, PageError, PageWriter, Record, Start, Task, Why, Woken,
};
use tenure_wire::{Budget, Digest, LogLevel, MachineId, PublicKey};

fn function() -> impl Strategy<Value = String> {
    prop_oneof![Just("tick".to_owned()), Just("read".to_owned()), "[a-z]{0,9}", "[a-z]{60,70}"]
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![Just(Vec::new()), Just(b"21.5".to_vec()), vec(any::<u8>(), 0..100)]
}

fn caller() -> impl Strategy<Value = PublicKey> {
    any::<u8>().prop_map(|byte| PublicKey([byte % 24; 32]))
}

fn event() -> impl Strategy<Value = Event> {
    (function(), bytes(), 0_u64..9).prop_map(|(topic, payload, dropped)| Event {
        topic,
        payload,
        dropped,
    })
}

fn task() -> impl Strategy<Value = Task> {
    (
        0_u64..1 << 50,
        function(),
        option::of(caller()),
        option::of(bytes()),
        option::of(any::<u32>()),
        option::of(event()),
    )
        .prop_map(|(at_ms, function, caller, parameter, callback_of, event)| Task {
            at_ms,
            function,
            caller,
            parameter,
            callback_of,
            event,
        })
}

fn why() -> impl Strategy<Value = Why> {
    prop_oneof![
        Just(Why::BadPointer),
        Just(Why::TaskFuel),
        Just(Why::Ended),
        Just(Why::Watchdog),
        (1_u8..14).prop_map(Why::Trap)
    ]
}

/// Events from outside, at a point of the task under way.
fn outside() -> impl Strategy<Value = Record> {
    prop_oneof![
        (any::<u64>(), why()).prop_map(|(fuel, why)| Record::Stopped { fuel, why }),
        (any::<u64>(), any::<u64>())
            .prop_map(|(fuel, flash_bytes)| Record::Charged { fuel, flash_bytes }),
        any::<u64>().prop_map(|fuel| Record::Suspended { fuel }),
    ]
}

fn record() -> impl Strategy<Value = Record> {
    let woken =
        (0_u64..1 << 50, option::of(any::<i32>()), option::of(bytes()), option::of(event()))
            .prop_map(|(at_ms, status, bytes, event)| Woken { at_ms, status, bytes, event });
    let given = (any::<i32>(), option::of(event()), any::<bool>(), 0_u64..500, 0_u64..500)
        .prop_map(|(value, event, more, fuel, flash_bytes)| Given {
            value,
            event,
            more,
            fuel,
            flash_bytes,
        });
    let mark = (any::<u64>(), any::<u64>(), option::of(any::<u8>()), option::of(any::<u64>()))
        .prop_map(|(fuel, total, state, receipt)| Mark {
            fuel,
            turns: fuel / 3,
            total,
            unpaid: total / 5,
            state: state.map(|byte| Digest([byte; 32])),
            receipt,
        });
    prop_oneof![
        4 => task().prop_map(Record::Task),
        4 => woken.prop_map(Record::Woken),
        4 => given.prop_map(Record::Given),
        1 => any::<u64>().prop_map(Record::Uptime),
        1 => any::<i64>().prop_map(Record::Unix),
        1 => bytes().prop_map(Record::Random),
        1 => (any::<u32>(), any::<i32>()).prop_map(|(calls, error)| Record::Refused { calls, error }),
        1 => (any::<u64>(), function(), option::of((any::<bool>(), bytes())))
            .prop_map(|(fuel, path, value)| Record::Amended { fuel, path, value }),
        1 => outside(),
        1 => mark.prop_map(Record::Mark),
    ]
}

fn start() -> Start {
    Start {
        machine: MachineId([7; 12]),
        public_key: PublicKey([8; 32]),
        name: "meter".parse().unwrap(),
        package: Digest([9; 32]),
        budget: Budget::default(),
        log: LogLevel::Info,
        is_sealed: true,
        sector_bytes: 4096,
        program_bytes: 4,
        continues: true,
        owed: 12,
        at_ms: 1_000,
        state: vec![1, 2, 3],
    }
}

fn page() -> impl Strategy<Value = Page> {
    (any::<u64>(), any::<bool>(), vec(record(), 0..40)).prop_map(|(number, begins, records)| Page {
        number,
        start: begins.then(start),
        records,
    })
}

proptest! {
    #[test]
    fn page_is_read_as_it_was_written(page in page()) {
        let bytes = page.to_bytes().unwrap();
        prop_assert_eq!(Page::parse(&bytes), Ok(page));
    }

    #[test]
    fn page_that_was_changed_is_refused_or_another_page(
        page in page(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let written = page.to_bytes().unwrap();
        let mut bytes = written.clone();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(other) = Page::parse(&bytes) {
            prop_assert_eq!(other.to_bytes().unwrap(), bytes.clone());
            prop_assert!(bytes == written || other != page);
        }
    }

    #[test]
    fn page_that_is_cut_is_refused_or_has_fewer_records(page in page(), end in any::<prop::sample::Index>()) {
        let bytes = page.to_bytes().unwrap();
        let cut = &bytes[..end.index(bytes.len())];
        if let Ok(shorter) = Page::parse(cut) {
            prop_assert!(shorter.records.len() < page.records.len());
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..300)) {
        let _ = Page::parse(&bytes);
    }
}

#[test]
fn text_that_is_long_is_spelled_out_each_time_so_that_no_record_means_much_more_than_its_bytes() {
    let long = "f".repeat(65);
    let task = |at_ms| Record::Task(Task { at_ms, function: long.clone(), ..Task::default() });
    let records = vec![task(5), task(5)];
    let page = Page { number: 0, start: None, records };
    let bytes = page.to_bytes().unwrap();
    assert!(bytes.len() > 2 * long.len());
    assert_eq!(Page::parse(&bytes), Ok(page));
}

#[test]
fn second_encoding_of_a_record_is_refused() {
    let task = |at_ms| Record::Task(Task { at_ms, function: "tick".into(), ..Task::default() });
    let page = Page { number: 0, start: None, records: vec![task(5), task(9)] };
    let bytes = page.to_bytes().unwrap();
    // Number, flags; kind, span, text number 0, its length and itself, form; kind, span, text number 0.
    assert_eq!(bytes, [&[0, 0, 1, 5, 0, 4][..], b"tick", &[0, 0x11, 4, 0]].concat());
    // The second task's caller and parameter are spelled out, though they are as before.
    let long = [&[0, 0, 1, 5, 0, 4][..], b"tick", &[0, 1, 4, 0, 0]].concat();
    assert_eq!(Page::parse(&long), Err(PageError::NotCanonical));
    // A number takes a byte more than it needs.
    let long = [&[0, 0, 1, 0x85, 0, 0, 4][..], b"tick", &[0, 0x11, 4, 0]].concat();
    assert_eq!(Page::parse(&long), Err(PageError::NotCanonical));
}

/// How many bytes a record takes behind others of its page.
fn bytes_of(before: &[Record], record: &Record) -> usize {
    let mut writer = PageWriter::begin(0, None).unwrap();
    before.iter().for_each(|one| writer.write(one));
    let length = writer.record_bytes();
    writer.write(record);
    writer.record_bytes() - length
}

#[test]
fn records_are_as_short_as_the_table_says() {
    let tick = |at_ms| Record::Task(Task { at_ms, function: "tick".into(), ..Task::default() });
    assert_eq!(bytes_of(&[tick(1_000)], &tick(1_100)), 3, "a timer's call");
    let slept = |at_ms| Record::Woken(Woken { at_ms, ..Woken::default() });
    assert_eq!(bytes_of(&[slept(1_000)], &slept(1_100)), 2, "a sleep");
    let answer =
        Woken { at_ms: 1_040, status: Some(4), bytes: Some(b"21.5".to_vec()), event: None };
    assert_eq!(
        bytes_of(&[slept(1_000)], &Record::Woken(answer)),
        7,
        "a call that returns a number"
    );
    let given = Record::Given(Given { value: 1, ..Given::default() });
    assert_eq!(bytes_of(&[], &given), 2, "a status");
    let before = [Record::Uptime(5_000_000)];
    assert_eq!(bytes_of(&before, &Record::Uptime(5_000_100)), 2, "a time");
    let event =
        |payload: &[u8]| Event { topic: "device.t".into(), payload: payload.to_vec(), dropped: 0 };
    let reading = |at_ms, payload: &[u8]| {
        Record::Task(Task {
            at_ms,
            function: "tick".into(),
            event: Some(event(payload)),
            ..Task::default()
        })
    };
    let before = [reading(1_000, b"21.0")];
    assert_eq!(bytes_of(&before, &reading(1_100, b"21.5")), 11, "an event of four bytes");
}

#[test]
fn as_many_texts_calls_and_callers_are_remembered_as_the_format_says_and_none_that_are_longer() {
    let task = |function: String| Record::Task(Task { at_ms: 7, function, ..Task::default() });
    let again = |record: Record| bytes_of(core::slice::from_ref(&record), &record);
    assert_eq!(again(task("f".repeat(64))), 3);
    assert!(again(task("f".repeat(65))) > 65);
    let with = |length: usize| {
        let parameter = Some(vec![1; length]);
        Record::Task(Task { at_ms: 7, function: "tick".into(), parameter, ..Task::default() })
    };
    assert_eq!(again(with(64)), 3);
    assert!(again(with(65)) > 65);
    let named = |number: usize| task(format!("f{number}"));
    let first = |count: usize| (0..count).map(named).collect::<Vec<Record>>();
    assert_eq!(bytes_of(&first(64), &named(63)), 3);
    assert!(bytes_of(&first(65), &named(64)) > 3);
    let by = |number: u8| {
        let caller = Some(PublicKey([number; 32]));
        Record::Task(Task { at_ms: 7, function: "tick".into(), caller, ..Task::default() })
    };
    // The caller is another one than that of the last call.
    let callers = |count: u8| (0..count).chain([0]).map(by).collect::<Vec<Record>>();
    assert!(bytes_of(&callers(16), &by(15)) < 32);
    assert!(bytes_of(&callers(17), &by(16)) > 32);
}

#[test]
fn callback_or_event_between_two_calls_is_not_what_the_next_one_is_written_as() {
    let task = |parameter: &[u8]| Task {
        at_ms: 7,
        function: "tick".into(),
        parameter: Some(parameter.to_vec()),
        ..Task::default()
    };
    let callback = Task { callback_of: Some(3), ..task(b"second") };
    let event = Event { topic: "door".into(), payload: b"open".to_vec(), dropped: 0 };
    let handled = Task { event: Some(event), ..task(b"second") };
    let bytes = |tasks: &[Task]| {
        let records = tasks.iter().cloned().map(Record::Task).collect();
        let page = Page { number: 0, start: None, records };
        let bytes = page.to_bytes().unwrap();
        assert_eq!(Page::parse(&bytes), Ok(page));
        bytes.len()
    };
    let again = bytes(&[task(b"first!"), task(b"first!")]) - bytes(&[task(b"first!")]);
    for between in [callback, handled] {
        let before = [task(b"first!"), between.clone()];
        let then = |last: Task| bytes(&[&before[..], &[last]].concat()) - bytes(&before);
        assert_eq!(then(task(b"first!")), again, "as the last call was");
        assert!(then(task(b"second")) > again + b"second".len(), "no call was like this one");
        assert!(then(between) > again, "written in full each time");
    }
}
