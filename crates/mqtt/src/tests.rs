//! Sessions beside brokers that tests play: a right one that loses connections, and many that lie.

extern crate std;

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::ToString as _;
use alloc::vec;
use core::time::Duration;

use proptest::prelude::*;
use tenure_hal::Instant;

use super::*;

const CONNACK: [u8; 5] = [0x20, 3, 0, 0, 0];
const RESUMED: [u8; 5] = [0x20, 3, 1, 0, 0];
const QUEUE: QueueLimits = QueueLimits { messages_max: 100, bytes_max: 100_000 };

fn config() -> Config {
    Config {
        client_id: "attic".into(),
        user: None,
        password: None,
        will: None,
        keep_alive_s: 60,
        session_expiry_s: 3600,
        packet_bytes_max: 1024,
        under_way_max: 4,
        subscriptions: Vec::new(),
        queue: QUEUE,
    }
}

fn message(topic: &str, payload: &[u8], qos: Qos) -> Message {
    Message { topic: topic.into(), payload: payload.to_vec(), qos, retain: false }
}

fn at(seconds: u64) -> Instant {
    Instant::BOOT + Duration::from_secs(seconds)
}

/// All that the session has to send; its changes are of no interest.
fn output(session: &mut Session) -> Vec<u8> {
    while session.change().is_some() {}
    let output = session.output().to_vec();
    session.sent(output.len());
    output
}

fn events(session: &mut Session) -> Vec<Event> {
    core::iter::from_fn(|| session.event()).collect()
}

/// A session whose broker has accepted the connection with these bytes.
fn connected_by(config: Config, connack: &[u8]) -> Session {
    let mut session = Session::new(config, Kept::default());
    session.connect(at(0));
    output(&mut session);
    session.receive(at(0), connack).unwrap();
    events(&mut session);
    output(&mut session);
    session
}

fn connected() -> Session {
    connected_by(config(), &CONNACK)
}

/// Polls and gives what is sent.
fn sent(session: &mut Session, now: Instant) -> Vec<u8> {
    session.poll(now).unwrap();
    output(session)
}

#[test]
fn connect_says_who_this_is_and_what_it_takes() {
    let will = Message { retain: true, ..message("gone", b"x", Qos::AtLeastOnce) };
    let config = Config {
        user: Some("u".into()),
        password: Some(b"pw".to_vec()),
        will: Some(will),
        ..config()
    };
    let mut session = Session::new(config, Kept::default());
    session.connect(at(0));
    let expected: &[&[u8]] = &[
        &[0x10, 48, 0, 4],
        b"MQTT\x05",
        // User, password, will kept, of QoS 1, clean start.
        &[0b1110_1110, 0, 60],
        // Session expiry, receive maximum, maximum packet size.
        &[13, 0x11, 0, 0, 14, 16, 0x21, 0, 4, 0x27, 0, 0, 4, 0],
        b"\x00\x05attic",
        b"\x00\x00\x04gone\x00\x01x",
        b"\x00\x01u\x00\x02pw",
    ];
    assert_eq!(output(&mut session), expected.concat());
}

#[test]
fn message_of_each_promise_is_done_with_once_the_broker_keeps_it() {
    let mut session = connected();
    for (topic, qos) in [("a", Qos::AtMostOnce), ("b", Qos::AtLeastOnce), ("c", Qos::ExactlyOnce)] {
        session.publish(message(topic, b"1", qos));
    }
    let expected: &[&[u8]] = &[
        b"\x30\x05\x00\x01a\x001",
        b"\x32\x07\x00\x01b\x00\x01\x001",
        b"\x34\x07\x00\x01c\x00\x02\x001",
    ];
    assert_eq!(sent(&mut session, at(1)), expected.concat());
    assert_eq!(session.queued(), 2);
    session.receive(at(1), &[0x40, 2, 0, 1]).unwrap();
    assert_eq!(session.queued(), 1);
    session.receive(at(1), &[0x50, 2, 0, 2]).unwrap();
    assert_eq!(output(&mut session), [0x62, 2, 0, 2]);
    session.receive(at(1), &[0x70, 2, 0, 2]).unwrap();
    assert_eq!((session.queued(), events(&mut session)), (0, vec![]));
}

#[test]
fn message_that_is_sent_again_over_another_connection_is_marked_as_a_duplicate() {
    let mut session = connected();
    for (topic, qos) in [("b", Qos::AtLeastOnce), ("c", Qos::ExactlyOnce)] {
        session.publish(message(topic, b"1", qos));
    }
    let (first, second) = (b"\x07\x00\x01b\x00\x01\x001", b"\x07\x00\x01c\x00\x02\x001");
    let both = |marks: [u8; 2]| [&marks[..1], first, &marks[1..], second].concat();
    assert_eq!(sent(&mut session, at(1)), both([0x32, 0x34]));
    let again = |session: &mut Session, s: u64| {
        session.lost();
        session.connect(at(s));
        output(session);
        session.receive(at(s), &RESUMED).unwrap();
        sent(session, at(s))
    };
    // §3.3.1.1: DUP is the fourth bit.
    assert_eq!(again(&mut session, 2), both([0x3A, 0x3C]));
    // From PUBREC on it is the release that is sent again, which has no such mark.
    session.receive(at(2), &[0x40, 2, 0, 1, 0x50, 2, 0, 2]).unwrap();
    output(&mut session);
    assert_eq!(again(&mut session, 3), [0x62, 2, 0, 2]);
}

#[test]
fn message_that_came_is_handed_over_once_and_acknowledged() {
    let mut session = connected();
    let twice = b"\x34\x07\x00\x01a\x00\x09\x001";
    session.receive(at(1), twice).unwrap();
    session.receive(at(1), &[&[0x3C], &twice[1..]].concat()).unwrap();
    assert_eq!(output(&mut session), [0x50, 2, 0, 9, 0x50, 2, 0, 9]);
    assert_eq!(events(&mut session), [Event::Message(message("a", b"1", Qos::ExactlyOnce))]);
    session.receive(at(1), &[0x62, 2, 0, 9, 0x62, 2, 0, 9]).unwrap();
    // The second is of no message: packet identifier not found.
    assert_eq!(output(&mut session), [0x70, 2, 0, 9, 0x70, 3, 0, 9, 0x92]);
    session.receive(at(1), b"\x33\x07\x00\x01b\x00\x09\x002").unwrap();
    assert_eq!(output(&mut session), [0x40, 2, 0, 9]);
    let kept = Message { retain: true, ..message("b", b"2", Qos::AtLeastOnce) };
    assert_eq!(events(&mut session), [Event::Message(kept)]);
}

#[test]
fn broker_that_lies_is_told_and_left() {
    let alias = b"\x30\x08\x00\x01a\x03\x23\x00\x01x";
    let twice = [&CONNACK[..], &CONNACK].concat();
    let fifth = (1..=5).flat_map(|id| [0x34, 6, 0, 1, b'a', 0, id, 0]).collect::<Vec<u8>>();
    let cases: &[(&[u8], u8)] = &[
        // Lengths.
        (&[0x30, 0xFF, 0xFF, 0xFF, 0x7F], 0x95),
        (&[0x30, 0xFF, 0xFF, 0xFF, 0xFF], 0x81),
        (&[0x30, 0x80, 0x00], 0x81),
        (&[0x30, 0x81, 0x08], 0x95),
        (&[0x30, 4, 0, 9, b'a', 0], 0x81),
        (&[0x40, 1, 0], 0x81),
        (&[0xD0, 1, 0], 0x81),
        (&[0x30, 5, 0, 1, b'a', 9, 0], 0x81),
        // Types and flags.
        (&[0x00, 0], 0x82),
        (&[0xF0, 0], 0x82),
        (&[0x82, 0], 0x81),
        (&[0x41, 2, 0, 1], 0x81),
        (&[0x60, 2, 0, 1], 0x81),
        (&[0x36, 6, 0, 1, b'a', 0, 1, 0], 0x81),
        (&[0x38, 4, 0, 1, b'a', 0], 0x81),
        (&[0x40, 2, 0, 0], 0x82),
        // Topics.
        (&[0x30, 3, 0, 0, 0], 0x82),
        (&[0x30, 4, 0, 1, b'#', 0], 0x82),
        (&[0x30, 4, 0, 1, 0, 0], 0x81),
        (&[0x30, 4, 0, 1, 0xFF, 0], 0x81),
        (alias, 0x94),
        // Properties: another packet's, twice, 0.
        (&[0x40, 6, 0, 1, 0, 2, 0x24, 1], 0x82),
        (b"\x30\x08\x00\x01a\x04\x01\x00\x01\x00", 0x82),
        (b"\x30\x06\x00\x01a\x02\x0B\x00", 0x82),
        // Answers to nothing, packets that come once, too much under way.
        (&twice, 0x82),
        (&[0x90, 4, 0, 1, 0, 0], 0x82),
        (&[0xB0, 4, 0, 1, 0, 0], 0x82),
        (&fifth, 0x93),
    ];
    for (bytes, reason) in cases {
        let mut session = connected();
        let fault = session.receive(at(1), bytes);
        assert!(fault.is_err(), "{bytes:?}");
        let told = output(&mut session);
        assert!(told.ends_with(&[0xE0, 1, *reason]), "{bytes:?}: {fault:?} {told:?}");
        assert!(session.receive(at(1), &[0xD0, 0]).is_err(), "it is over");
    }
}

#[test]
fn session_that_both_sides_know_differently_begins_anew() {
    let kept = Kept { has_session: true, received: vec![7, 8, 9, 10], ..Kept::default() };
    let mut session = Session::new(config(), kept);
    session.connect(at(0));
    output(&mut session);
    session.receive(at(0), &RESUMED).unwrap();
    assert_eq!(session.receive(at(0), &[0x34, 6, 0, 1, b'a', 0, 1, 0]), Err(Fault::TooMany));
    session.connect(at(1));
    assert_eq!(output(&mut session)[9], 2, "clean start");
    session.receive(at(1), &CONNACK).unwrap();
    session.receive(at(1), &[0x34, 6, 0, 1, b'a', 0, 1, 0]).unwrap();
}

#[test]
fn broker_that_refuses_or_ends_says_why() {
    let faults = [
        (
            &b"\x20\x0B\x00\x87\x08\x1F\x00\x05never"[..],
            "the broker refuses the connection: not authorized (never)",
        ),
        (&[0x20, 3, 0, 0xF0, 0], "the broker refuses the connection: reason 0xf0"),
        (
            &[0x20, 3, 2, 0, 0],
            "the broker sent a malformed packet: flags that are reserved are set",
        ),
        (
            &[0x20, 3, 1, 0x87, 0],
            "the broker broke the protocol: a session is there though the connection is refused",
        ),
        (
            &RESUMED,
            "the broker broke the protocol: it has a session that this client knows nothing of",
        ),
        (
            &[0x20, 6, 0, 0, 3, 0x21, 0, 0],
            "the broker broke the protocol: a property is 0 that may not be",
        ),
        (&[0xD0, 0], "the broker broke the protocol: the first packet is no CONNACK"),
    ];
    for (bytes, words) in faults {
        let mut session = Session::new(config(), Kept::default());
        session.connect(at(0));
        output(&mut session);
        assert_eq!(session.receive(at(0), bytes).unwrap_err().to_string(), words);
        assert_eq!(output(&mut session), [], "nothing is said to who has accepted nothing");
    }
    let mut session = connected();
    let ended = session.receive(at(0), &[0xE0, 1, 0x8E]).unwrap_err();
    assert_eq!(ended.to_string(), "the broker ended the connection: session taken over");
}

#[test]
fn silent_broker_is_given_up_and_one_that_answers_is_kept() {
    let mut session = Session::new(config(), Kept::default());
    session.connect(at(0));
    assert_eq!((session.wakes_at(), session.poll(at(9))), (Some(at(10)), Ok(())));
    assert_eq!(session.poll(at(10)), Err(Fault::Silent));

    let mut session = connected();
    assert_eq!(session.wakes_at(), Some(at(60)));
    assert_eq!(sent(&mut session, at(60)), [0xC0, 0]);
    session.receive(at(65), &[0xD0, 0]).unwrap();
    assert_eq!(session.wakes_at(), Some(at(120)));
    assert_eq!(sent(&mut session, at(120)), [0xC0, 0]);
    // Other packets are no answer.
    session.receive(at(121), b"\x30\x04\x00\x01a\x00").unwrap();
    assert_eq!(session.poll(at(130)), Err(Fault::Silent));

    let mut session = connected_by(config(), &[0x20, 6, 0, 0, 3, 0x13, 0, 5]);
    assert_eq!(session.wakes_at(), Some(at(5)), "the broker's word on the keep alive counts");
    assert_eq!(sent(&mut session, at(5)), [0xC0, 0]);
}

#[test]
fn what_a_broker_does_not_take_it_is_not_sent() {
    // Receive maximum 1, maximum QoS 1, no retained messages, packets of 20 bytes, no wildcards, no shared subscriptions.
    let connack = [
        &[0x20, 19, 0, 0, 16, 0x21, 0, 1, 0x24, 1, 0x25, 0, 0x27, 0, 0, 0, 20][..],
        &[0x28, 0, 0x2A, 0],
    ];
    let subscription = |filter: &str| Subscription { filter: filter.into(), qos: Qos::ExactlyOnce };
    let subscriptions = ["$share/g/a", "b/#", "c"].map(subscription).to_vec();
    let mut session = Session::new(Config { subscriptions, ..config() }, Kept::default());
    session.connect(at(0));
    output(&mut session);
    session.receive(at(0), &connack.concat()).unwrap();
    let refused = |filter: &str, reason| Event::NotSubscribed { filter: filter.into(), reason };
    let expected = [
        Event::Connected { resumed: false },
        refused("$share/g/a", Reason(0x9E)),
        refused("b/#", Reason(0xA2)),
    ];
    assert_eq!(events(&mut session), expected);
    assert_eq!(output(&mut session), b"\x82\x07\x00\x01\x00\x00\x01c\x16");
    session.receive(at(0), &[0x90, 4, 0, 1, 0, 0x87]).unwrap();
    assert_eq!(events(&mut session), [refused("c", Reason(0x87))]);

    session.publish(Message { retain: true, ..message("a", b"1", Qos::ExactlyOnce) });
    session.publish(message("long", &[0; 20], Qos::AtLeastOnce));
    session.publish(message("b", b"2", Qos::AtLeastOnce));
    assert_eq!(sent(&mut session, at(1)), b"\x32\x07\x00\x01a\x00\x01\x001");
    session.receive(at(1), &[0x40, 2, 0, 1]).unwrap();
    assert_eq!(output(&mut session), b"\x32\x07\x00\x01b\x00\x02\x002");
    let rejected = Event::Rejected { topic: "long".into(), reason: Reason(0x95) };
    assert_eq!(events(&mut session), [rejected]);
    session.receive(at(1), &[0x40, 3, 0, 2, 0x97]).unwrap();
    let rejected = Event::Rejected { topic: "b".into(), reason: Reason(0x97) };
    assert_eq!((events(&mut session), session.queued()), (vec![rejected], 0));
}

#[test]
fn filters_of_before_that_are_no_longer_wanted_are_given_back() {
    let kept =
        Kept { has_session: true, filters: vec!["old".into(), "new".into()], ..Kept::default() };
    let subscriptions = vec![Subscription { filter: "new".into(), qos: Qos::AtLeastOnce }];
    let mut session = Session::new(Config { subscriptions, ..config() }, kept);
    session.connect(at(0));
    assert_eq!(output(&mut session)[9], 0, "no clean start");
    session.receive(at(0), &RESUMED).unwrap();
    let expected: &[&[u8]] =
        &[b"\xA2\x08\x00\x01\x00\x00\x03old", b"\x82\x09\x00\x02\x00\x00\x03new\x15"];
    assert_eq!(output(&mut session), expected.concat());
    session.receive(at(0), &[0xB0, 4, 0, 1, 0, 0]).unwrap();
    assert_eq!(session.change(), Some(Change::Unsubscribed("old".into())));
}

// C5-3: one machine's 640 events and another's single one, while the broker is away.
#[test]
fn publisher_that_floods_a_full_queue_drops_its_own() {
    for bytes in [0, 200] {
        let queue = QueueLimits { messages_max: 8, bytes_max: 2_000 };
        let mut session = Session::new(Config { queue, ..config() }, Kept::default());
        let message = |text: &str, qos, length| Message {
            topic: text.into(),
            payload: vec![b'x'; length],
            qos,
            retain: false,
        };
        session.publish_for(1, message("victim", Qos::AtLeastOnce, bytes));
        session.publish_for(3, message("slight", Qos::AtMostOnce, bytes));
        for _ in 0..640 {
            session.publish_for(2, message("flood", Qos::AtLeastOnce, bytes));
            session.publish_for(2, message("flood", Qos::AtMostOnce, 0));
        }
        session.publish_for(1, message("second", Qos::AtLeastOnce, bytes));
        let mut kept = BTreeMap::new();
        while let Some(change) = session.change() {
            match change {
                Change::Queued(outgoing) => {
                    drop(kept.insert(outgoing.number, outgoing.message.topic))
                }
                Change::Done(number) => drop(kept.remove(&number)),
                _ => {}
            }
        }
        let left: Vec<&str> = kept.values().map(String::as_str).collect();
        assert_eq!((left[0], left[1], left.last()), ("victim", "slight", Some(&"second")));
        assert!(left.iter().filter(|topic| **topic == "flood").count() >= 4, "{left:?}");
    }
}

#[test]
fn queue_that_is_full_drops_the_oldest_of_qos_0_then_the_oldest_that_waits() {
    let queue = QueueLimits { messages_max: 3, bytes_max: 1_000 };
    let mut session = Session::new(Config { queue, ..config() }, Kept::default());
    for (topic, qos) in [("a", Qos::AtLeastOnce), ("b", Qos::AtMostOnce), ("c", Qos::AtMostOnce)] {
        session.publish(message(topic, b"", qos));
    }
    session.publish(message("d", b"", Qos::AtLeastOnce));
    session.publish(message("e", b"", Qos::ExactlyOnce));
    session.publish(message("f", b"", Qos::AtMostOnce));
    session.publish(message("g", b"", Qos::AtLeastOnce));
    session.publish(message("h", &[0; 1_000], Qos::AtLeastOnce));
    assert_eq!((session.queued(), session.dropped()), (3, 5));
    let topics = core::iter::from_fn(|| session.change()).filter_map(|change| match change {
        Change::Queued(outgoing) => Some(outgoing.message.topic),
        _ => None,
    });
    assert_eq!(topics.collect::<Vec<_>>(), ["d", "e", "g"], "what was dropped is never kept");
}

#[test]
fn queue_takes_what_just_fits_and_counts_64_bytes_beside_each_message() {
    let queue = QueueLimits { messages_max: 10, bytes_max: 2 * (64 + 1 + 10) };
    let mut session = Session::new(Config { queue, ..config() }, Kept::default());
    for expected in [(1, 0), (2, 0), (2, 1)] {
        session.publish(message("a", &[0; 10], Qos::AtLeastOnce));
        assert_eq!((session.queued(), session.dropped()), expected);
    }
    session.publish(message("b", &[0; 85], Qos::AtLeastOnce));
    assert_eq!((session.queued(), session.dropped()), (1, 3), "it has all the room");
    session.publish(message("c", &[0; 86], Qos::AtLeastOnce));
    assert_eq!((session.queued(), session.dropped()), (1, 4), "it has none");
}

#[test]
fn packets_say_what_is_in_their_properties() {
    use crate::packet::{Ack, Broker, Incoming};
    let properties = [0x21, 0, 7, 0x24, 0, 0x25, 1, 0x27, 0, 0, 1, 0, 0x28, 1, 0x2A, 1, 0x13, 0, 9];
    let body = [&[0, 0, properties.len() as u8][..], &properties].concat();
    let broker = Broker {
        receive_max: 7,
        qos_max: Qos::AtMostOnce,
        retains: true,
        packet_bytes_max: 256,
        wildcards: true,
        shared: true,
        keep_alive_s: Some(9),
    };
    let resumed = false;
    assert_eq!(Incoming::read(0x20, &body), Ok(Incoming::Connected { resumed, broker }));
    let words = [4, 0x1F, 0, 1, b'x'];
    for (first, ack) in [
        (0x40, Ack::Published),
        (0x50, Ack::Received),
        (0x62, Ack::Released),
        (0x70, Ack::Completed),
    ] {
        let with_words = [&[0, 1, 0x10][..], &words].concat();
        for (body, reason) in [
            (&[0, 1][..], Reason::SUCCESS),
            (&[0, 1, 0x10], Reason(0x10)),
            (&with_words, Reason(0x10)),
        ] {
            assert_eq!(Incoming::read(first, body), Ok(Incoming::Ack { ack, id: 1, reason }));
        }
    }
    let subscribed = Incoming::read(0x90, &[0, 3, 0, 2]);
    assert_eq!(subscribed, Ok(Incoming::Subscribed { id: 3, reason: Reason(2) }));
    let ended = |body: &[u8]| Incoming::read(0xE0, body);
    let (reason, words_told) = (Reason(0x8B), "x".to_string());
    let expected = Incoming::Ended { reason, words: words_told };
    assert_eq!(ended(&[&[0x8B][..], &words].concat()), Ok(expected));
    let silent = |reason| Ok(Incoming::Ended { reason, words: String::new() });
    assert_eq!((ended(&[]), ended(&[0x8B])), (silent(Reason::SUCCESS), silent(reason)));
}

#[test]
fn property_that_may_be_there_several_times_may_and_no_other() {
    use crate::wire::{Reader, Value, property};
    const ALLOWED: &[u8] =
        &[property::USER, property::SUBSCRIPTION, property::REASON, property::RECEIVE_MAXIMUM];
    let read = |bytes: &[u8]| -> Result<usize, Fault> {
        let all = [&[bytes.len() as u8][..], bytes].concat();
        let properties = Reader(&all).properties(ALLOWED)?;
        Ok(properties.filter(|it| matches!(it, Ok((_, Value::Number(_))))).count())
    };
    let user = [0x26, 0, 1, b'k', 0, 1, b'v'];
    assert_eq!(read(&user.repeat(2)), Ok(0));
    assert_eq!(read(&[0x0B, 1, 0x0B, 0x80, 0x01]), Ok(2));
    assert_eq!(read(&[0x21, 0, 1]), Ok(1));
    for wrong in [
        &[0x21, 0, 1, 0x21, 0, 1][..],
        &[0x1F, 0, 0, 0x1F, 0, 0],
        &[0x21, 0, 0],
        &[0x0B, 0],
        &[0x13, 0, 1],
        &[0x1F, 0, 1, 0],
        &[0x1F, 0, 2, b'a'],
        &user[..6],
    ] {
        assert!(read(wrong).is_err(), "{wrong:?}");
    }
}

#[test]
fn strings_are_as_long_as_the_protocol_has_them() {
    let longest = "x".repeat(65_535);
    assert_eq!((check_topic(&longest), check_filter(&longest)), (Ok(()), Ok(())));
    let too_long = longest + "x";
    assert_eq!(check_topic(&too_long), Err(TopicError::TooLong));
    let mut writer = crate::wire::Writer::default();
    writer.binary(too_long.as_bytes());
    let written = writer.into_bytes();
    assert_eq!((written.len(), &written[..3]), (2 + 65_535, &[0xFF, 0xFF, b'x'][..]));
}

#[test]
fn topic_names_and_filters_are_told_from_what_is_none() {
    for name in ["a", "a/b", "/", " ", "$SYS/x", "ä"] {
        assert_eq!(check_topic(name), Ok(()), "{name}");
    }
    let long = "x".repeat(65_536);
    for name in ["", "a/+", "#", "a\0", &long] {
        assert!(check_topic(name).is_err(), "{name}");
    }
    for filter in ["#", "+", "a/#", "+/a/+", "a//b", "$share/g/a/#", "$share/g/+"] {
        assert_eq!(check_filter(filter), Ok(()), "{filter}");
    }
    for filter in ["", "a#", "a/#/b", "a+/b", "$share/g", "$share//a", "$share/g/", "$share/+/a"] {
        assert!(check_filter(filter).is_err(), "{filter}");
    }
    // §4.7.1's own examples.
    for (filter, name, is_meant) in [
        ("sport/tennis/player1/#", "sport/tennis/player1", true),
        ("sport/tennis/player1/#", "sport/tennis/player1/score/wimbledon", true),
        ("sport/#", "sport", true),
        ("sport/tennis/+", "sport/tennis/player1", true),
        ("sport/tennis/+", "sport/tennis/player1/ranking", false),
        ("sport/+", "sport", false),
        ("sport/+", "sport/", true),
        ("+/+", "/finance", true),
        ("/+", "/finance", true),
        ("+", "/finance", false),
        ("#", "$SYS/monitor/clients", false),
        ("+/monitor/clients", "$SYS/monitor/clients", false),
        ("$SYS/#", "$SYS/monitor/clients", true),
        ("a", "a/b", false),
    ] {
        assert_eq!(matches(filter, name), is_meant, "{filter} {name}");
    }
}

/// A broker that keeps to the standard: what it holds of the session outlasts connections.
#[derive(Default)]
struct Broker {
    has_session: bool,
    is_connected: bool,
    /// Identifiers of messages of QoS 2 that came and weren't released.
    held: Vec<u16>,
    /// Payloads that came, by promise.
    came: BTreeMap<u8, Vec<u8>>,
    /// Its own messages of QoS 2: those that wait for PUBREC and for PUBCOMP.
    unreceived: VecDeque<(u16, u8)>,
    uncompleted: Vec<u16>,
    next: u16,
    answers: Vec<u8>,
}

impl Broker {
    fn take(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let [first, length, ..] = *rest {
            let end = 2 + usize::from(length);
            let body = &rest[2..end];
            rest = &rest[end..];
            self.take_packet(first, body);
        }
    }

    fn take_packet(&mut self, first: u8, body: &[u8]) {
        let id = |at: usize| u16::from_be_bytes([body[at], body[at + 1]]);
        match first >> 4 {
            1 => {
                let is_clean = body[7] & 2 != 0;
                if is_clean {
                    *self = Self { came: core::mem::take(&mut self.came), ..Self::default() };
                }
                self.answers = [0x20, 3, u8::from(self.has_session), 0, 0].to_vec();
                (self.has_session, self.is_connected) = (true, true);
                let again: Vec<u8> = self
                    .unreceived
                    .iter()
                    .flat_map(|(id, payload)| published(0x3C, *id, *payload))
                    .chain(self.uncompleted.iter().flat_map(|id| acknowledged(0x62, *id)))
                    .collect();
                self.answers.extend(again);
            }
            3 => {
                let (qos, payload) = (first >> 1 & 3, body[body.len() - 1]);
                if qos == 2 {
                    self.answers.extend(acknowledged(0x50, id(3)));
                    if self.held.contains(&id(3)) {
                        return;
                    }
                    self.held.push(id(3));
                } else if qos == 1 {
                    self.answers.extend(acknowledged(0x40, id(3)));
                }
                self.came.entry(qos).or_default().push(payload);
            }
            5 => {
                if let Some(at) = self.unreceived.iter().position(|one| one.0 == id(0)) {
                    self.unreceived.remove(at);
                    self.uncompleted.push(id(0));
                }
                self.answers.extend(acknowledged(0x62, id(0)));
            }
            6 => {
                self.held.retain(|one| *one != id(0));
                self.answers.extend(acknowledged(0x70, id(0)));
            }
            7 => self.uncompleted.retain(|one| *one != id(0)),
            _ => {}
        }
    }

    /// Publishes a message of its own, unless as many are under way as the client takes.
    fn publish(&mut self, payload: u8) -> bool {
        if self.unreceived.len() + self.uncompleted.len() >= 4 {
            return false;
        }
        self.next += 1;
        self.unreceived.push_back((self.next, payload));
        if self.is_connected {
            self.answers.extend(published(0x34, self.next, payload));
        }
        true
    }
}

fn acknowledged(first: u8, id: u16) -> [u8; 4] {
    let [high, low] = id.to_be_bytes();
    [first, 2, high, low]
}

fn published(first: u8, id: u16, payload: u8) -> [u8; 9] {
    let [high, low] = id.to_be_bytes();
    [first, 7, 0, 1, b'b', high, low, 0, payload]
}

/// Writes changes down as a file does.
fn keep(session: &mut Session, kept: &mut Kept) {
    while let Some(change) = session.change() {
        match change {
            Change::SessionBegan => {
                kept.has_session = true;
                kept.received.clear();
                kept.filters.clear();
            }
            Change::Queued(outgoing) => kept.outgoing.push(outgoing),
            Change::Moved(number, stage) => {
                kept.outgoing.iter_mut().find(|one| one.number == number).unwrap().stage = stage;
            }
            Change::Done(number) => kept.outgoing.retain(|one| one.number != number),
            Change::Received(id) => kept.received.push(id),
            Change::Released(id) => kept.received.retain(|one| *one != id),
            Change::Subscribed(filter) => kept.filters.push(filter),
            Change::Unsubscribed(filter) => kept.filters.retain(|one| *one != filter),
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    /// The client publishes by this promise, or the broker does.
    Publish(u8),
    BrokerPublishes,
    /// So many bytes move from the client, or to it.
    Send(usize),
    Answer(usize),
    /// The connection breaks.
    Break,
    /// The client dies, and begins again with what it has written down.
    Die,
    /// The broker forgets everything.
    Forget,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..3_u8).prop_map(Step::Publish),
        3 => Just(Step::BrokerPublishes),
        8 => (1..60_usize).prop_map(Step::Send),
        8 => (1..60_usize).prop_map(Step::Answer),
        1 => Just(Step::Break),
        1 => Just(Step::Die),
    ]
}

/// A client and its broker, and what is on the way between them.
struct World {
    session: Session,
    kept: Kept,
    broker: Broker,
    /// Bytes for the broker, which come to it in whole packets.
    out: Vec<u8>,
    received: Vec<u8>,
    has_forgotten: bool,
}

impl World {
    fn new() -> Self {
        let mut world = Self {
            session: Session::new(config(), Kept::default()),
            kept: Kept::default(),
            broker: Broker::default(),
            out: Vec::new(),
            received: Vec::new(),
            has_forgotten: false,
        };
        world.reconnect();
        world
    }

    fn reconnect(&mut self) {
        self.session.connect(at(0));
        self.out.clear();
        self.broker.answers.clear();
        self.broker.is_connected = false;
    }

    fn send(&mut self, bytes: usize) {
        self.session.poll(at(0)).unwrap();
        keep(&mut self.session, &mut self.kept);
        let sent = bytes.min(self.session.output().len());
        self.out.extend_from_slice(&self.session.output()[..sent]);
        self.session.sent(sent);
        while let [_, length, ..] = self.out[..] {
            let end = 2 + usize::from(length);
            if self.out.len() < end {
                break;
            }
            self.broker.take(&self.out[..end]);
            self.out.drain(..end);
        }
    }

    fn answer(&mut self, bytes: usize) {
        let bytes = bytes.min(self.broker.answers.len());
        let answers: Vec<u8> = self.broker.answers.drain(..bytes).collect();
        if let Err(fault) = self.session.receive(at(0), &answers) {
            assert!(self.has_forgotten && fault == Fault::TooMany, "{fault}");
            return self.reconnect();
        }
        let came = events(&mut self.session).into_iter().filter_map(|event| match event {
            Event::Message(message) => Some(message.payload[0]),
            _ => None,
        });
        self.received.extend(came);
        keep(&mut self.session, &mut self.kept);
    }

    fn run(&mut self, step: &Step, number: u8, ours: &mut [Vec<u8>; 3], theirs: &mut Vec<u8>) {
        match step {
            Step::Publish(qos) => {
                let promise = Qos::from_number(*qos).unwrap();
                self.session.publish(message("a", &[number], promise));
                ours[usize::from(*qos)].push(number);
                keep(&mut self.session, &mut self.kept);
            }
            Step::BrokerPublishes => {
                // A session that the client never heard of begins anew.
                let is_known = self.kept.has_session && self.broker.has_session;
                if is_known && self.broker.publish(number) {
                    theirs.push(number);
                }
            }
            Step::Send(bytes) => self.send(*bytes),
            Step::Answer(bytes) => self.answer(*bytes),
            Step::Break => self.reconnect(),
            Step::Die => {
                self.session = Session::new(config(), self.kept.clone());
                self.reconnect();
            }
            Step::Forget => {
                self.broker = Broker::default();
                self.has_forgotten = true;
            }
        }
    }

    fn settle(&mut self) {
        for _ in 0..200 {
            self.send(usize::MAX);
            self.answer(usize::MAX);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// §4.3, §4.4: whatever breaks and dies, promises are kept in both directions, and the order is too.
    #[test]
    fn promises_hold_over_lost_connections_and_restarts(steps in prop::collection::vec(step(), 1..120)) {
        let (mut world, mut ours, mut theirs) = (World::new(), [vec![], vec![], vec![]], vec![]);
        for (number, step) in steps.iter().enumerate() {
            world.run(step, number as u8, &mut ours, &mut theirs);
        }
        world.reconnect();
        world.settle();
        let came = |qos: u8| world.broker.came.get(&qos).cloned().unwrap_or_default();
        prop_assert_eq!(came(2), ours[2].clone(), "exactly once, in order");
        let mut once = came(1);
        once.sort_unstable();
        once.dedup();
        prop_assert_eq!(once, ours[1].clone(), "at least once");
        let mut most = came(0);
        most.dedup();
        prop_assert_eq!(most, came(0), "at most once");
        prop_assert_eq!(&world.received, &theirs, "exactly once here, too");
        prop_assert_eq!(world.session.queued(), 0);
        prop_assert_eq!(world.kept.outgoing.len(), 0);
    }

    /// A broker that forgets the session gets everything that it may not have.
    #[test]
    fn broker_that_forgets_gets_all_that_was_not_acknowledged(
        before in prop::collection::vec(step(), 0..40),
        after in prop::collection::vec(step(), 0..40),
    ) {
        let (mut world, mut ours, mut theirs) = (World::new(), [vec![], vec![], vec![]], vec![]);
        let steps = before.iter().chain([&Step::Break, &Step::Forget, &Step::Break]).chain(&after);
        let mut came = Vec::new();
        for (number, step) in steps.enumerate() {
            if matches!(step, Step::Forget) {
                came = world.broker.came.values().flatten().copied().collect();
            }
            world.run(step, number as u8, &mut ours, &mut theirs);
        }
        world.reconnect();
        world.settle();
        came.extend(world.broker.came.values().flatten());
        for number in ours[1].iter().chain(&ours[2]) {
            prop_assert!(came.contains(number));
        }
        prop_assert_eq!(world.session.queued(), 0);
    }

    /// Whatever comes, nothing panics, and the memory for it is bounded.
    #[test]
    fn bytes_at_random_are_a_fault_or_nothing(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut session = connected();
        let _ = session.receive(at(0), &bytes);
        prop_assert!(session.output().len() <= 16 * 1024 + 5 * bytes.len());
    }

    /// Where bytes are cut makes no difference.
    #[test]
    fn pieces_of_a_packet_come_to_the_same(cuts in prop::collection::vec(1..7_usize, 60)) {
        let bytes = [
            &b"\x34\x07\x00\x01a\x00\x09\x001"[..],
            &[0x62, 2, 0, 9],
            &b"\x33\x07\x00\x01b\x00\x09\x002"[..],
            &[0xD0, 0],
            &b"\x30\x0A\x00\x01c\x05\x26\x00\x00\x00\x003"[..],
        ].concat();
        let mut whole = connected();
        whole.receive(at(0), &bytes).unwrap();
        let mut cut = connected();
        let mut rest = &bytes[..];
        for length in cuts {
            let (piece, later) = rest.split_at(length.min(rest.len()));
            cut.receive(at(0), piece).unwrap();
            rest = later;
        }
        cut.receive(at(0), rest).unwrap();
        prop_assert_eq!(events(&mut whole), events(&mut cut));
        prop_assert_eq!(output(&mut whole), output(&mut cut));
    }

    /// The queue keeps to its limits, and what is told to be kept is what is there.
    #[test]
    fn queue_keeps_to_its_limits(lengths in prop::collection::vec((0..3_u8, 0..400_usize), 0..60)) {
        let queue = QueueLimits { messages_max: 8, bytes_max: 1_500 };
        let mut session = Session::new(Config { queue, ..config() }, Kept::default());
        let mut kept = Kept::default();
        for (qos, length) in lengths {
            let qos = Qos::from_number(qos).unwrap();
            session.publish(message("t", &vec![0; length], qos));
            keep(&mut session, &mut kept);
            let bytes: usize =
                kept.outgoing.iter().map(|one| one.message.payload.len() + 1 + 64).sum();
            prop_assert!(kept.outgoing.len() <= 8 && bytes <= 1_500);
            prop_assert_eq!(kept.outgoing.len(), session.queued());
        }
    }
}
