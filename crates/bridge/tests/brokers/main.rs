//! A bridge and brokers that lie, flood, are silent, refuse and go: each is an error in the log, and the bridge goes on.

mod over_tls;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tenure_bridge::{
    Bridge, Broker, Certificates, Entity, Inward, Outward, Published, Rules, Said, Settings,
};
use tenure_mqtt::{Qos, QueueLimits};
use tenure_testbed::patience;
use tenure_tls_client::Dates;
use tenure_wire::url::Host;
use tenure_wire::{LogLevel, Topic};

const CONNACK: [u8; 5] = [0x20, 3, 0, 0, 0];

fn settings(address: SocketAddr) -> Settings {
    let out = Outward {
        topics: "room.*".parse().unwrap(),
        to: "home".into(),
        qos: Qos::ExactlyOnce,
        retain: false,
        entity: Entity::new(),
    };
    let inward = Inward {
        from: "in/#".into(),
        topic: "in".parse().unwrap(),
        qos: Qos::ExactlyOnce,
        share: None,
        entity: Entity::new(),
    };
    Settings {
        device: "attic".parse().unwrap(),
        broker: Broker {
            host: Host::Address(address.ip()),
            port: address.port(),
            is_secure: false,
        },
        certificates: Certificates::default(),
        client_id: "attic".into(),
        user: None,
        password: None,
        keep_alive_s: 60,
        session_expiry_s: 60,
        will: None,
        status_topic: None,
        rules: Rules::new(vec![out], vec![inward]).unwrap(),
        queue: QueueLimits { messages_max: 8, bytes_max: 100_000 },
        discovery: None,
    }
}

/// The dates of a device whose brokers show no certificates.
fn no_dates() -> Dates {
    Dates::new(|| None)
}

/// The next thing that the bridge says.
fn next(bridge: &mut Bridge) -> Said {
    let deadline = Instant::now() + patience();
    loop {
        if let Some(said) = bridge.said() {
            return said;
        }
        assert!(Instant::now() < deadline, "the bridge says nothing");
        let timeout = Timespec { tv_sec: 1, tv_nsec: 0 };
        let _ = poll(&mut [PollFd::new(&bridge.as_fd(), PollFlags::IN)], Some(&timeout));
    }
}

/// The next line for the log that is so grave.
fn line(bridge: &mut Bridge, wanted: LogLevel) -> String {
    loop {
        if let Said::Remark { level, message } = next(bridge)
            && level == wanted
        {
            return message;
        }
    }
}

/// A packet of the client, which has fewer than 128 bytes; `None` if the connection is over.
fn packet(stream: &mut TcpStream) -> Option<(u8, Vec<u8>)> {
    let mut header = [0; 2];
    stream.read_exact(&mut header).ok()?;
    let mut body = vec![0; usize::from(header[1])];
    stream.read_exact(&mut body).ok()?;
    Some((header[0], body))
}

/// The next packet of that type.
fn packet_of(stream: &mut TcpStream, kind: u8) -> Vec<u8> {
    loop {
        let (first, body) = packet(stream).expect("a packet");
        if first >> 4 == kind {
            return body;
        }
    }
}

/// A connection of the bridge, which was accepted.
fn accept(listener: &TcpListener, connack: &[u8]) -> TcpStream {
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(patience())).unwrap();
    packet_of(&mut stream, 1);
    stream.write_all(connack).unwrap();
    stream
}

fn start(listener: &TcpListener, queue: &Path) -> Bridge {
    Bridge::start(settings(listener.local_addr().unwrap()), no_dates(), queue).unwrap()
}

fn published(topic: Topic, payload: Vec<u8>) -> Published {
    Published { topic, payload, publisher: 0 }
}

#[test]
fn broker_that_misbehaves_is_an_error_in_the_log_and_the_next_connection_is_tried() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut bridge = start(&listener, &folder.path().join("bridge.db"));
    let cases: [(&[&[u8]], &str); 5] = [
        (&[b"HTTP/1.1 400 Bad Request\r\n", &[b'\n'; 100]], "flags that are reserved are set"),
        (&[b"\x20\x09\x00\x87\x06\x1F\x00\x03no\n"], "not authorized (no )"),
        (&[&CONNACK, &[0x30, 0xFF, 0xFF, 0xFF, 0x7F]], "longer than it was told to"),
        (&[&CONNACK, &[0xE0, 1, 0x8B]], "server shutting down"),
        (&[&[0x20]], "the broker closed the connection"),
    ];
    for (answers, expected) in cases {
        let mut stream = accept(&listener, &answers.concat());
        // The bridge reads all of it before this end goes.
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let error = line(&mut bridge, LogLevel::Error);
        assert!(error.starts_with("bridge: ") && error.contains(expected), "{expected}: {error}");
        while packet(&mut stream).is_some() {}
    }
    let _stream = accept(&listener, &CONNACK);
    assert!(line(&mut bridge, LogLevel::Info).contains("connected to mqtt://127.0.0.1:"));
}

#[test]
fn what_a_broker_breaks_off_within_qos_2_goes_on_at_the_next_connection_even_of_another_process() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let queue = folder.path().join("bridge.db");
    let bridge = start(&listener, &queue);
    bridge.publish(published("room.attic".parse().unwrap(), b"21".to_vec()));
    bridge.publish(published("door".parse().unwrap(), b"open".to_vec()));
    bridge.publish(published("room.cellar".parse().unwrap(), b"17".to_vec()));

    let mut stream = accept(&listener, &CONNACK);
    let first = packet_of(&mut stream, 3);
    assert_eq!(&first[..12], b"\x00\x0Ahome/attic");
    let second = packet_of(&mut stream, 3);
    assert_eq!(&second[..13], b"\x00\x0Bhome/cellar", "the topic without a rule stayed");
    let (id, other) = ([first[12], first[13]], [second[13], second[14]]);
    stream.write_all(&[&[0x50, 2], &id[..]].concat()).unwrap();
    assert_eq!(packet_of(&mut stream, 6), id);
    drop((stream, bridge));

    // The first has been received, the second may have been.
    let _bridge = start(&listener, &queue);
    let mut stream = accept(&listener, &[0x20, 3, 1, 0, 0]);
    assert_eq!(packet_of(&mut stream, 6), id);
    let (first, body) = packet(&mut stream).unwrap();
    assert_eq!((first, &body[13..15]), (0x3C, &other[..]), "again, as a duplicate");
    stream.write_all(&[&[0x70, 2], &id[..], &[0x50, 2], &other[..]].concat()).unwrap();
    assert_eq!(packet_of(&mut stream, 6), other);
}

#[test]
fn message_that_comes_again_after_the_connection_broke_is_one_event() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let queue = folder.path().join("bridge.db");
    let mut bridge = start(&listener, &queue);
    let mut stream = accept(&listener, &CONNACK);
    stream.write_all(b"\x34\x0A\x00\x04in/a\x00\x07\x001").unwrap();
    assert_eq!(packet_of(&mut stream, 5), [0, 7]);
    let event =
        |payload: &[u8]| Said::Event { topic: "in.a".parse().unwrap(), payload: payload.to_vec() };
    assert!(line(&mut bridge, LogLevel::Info).contains("connected"));
    assert_eq!(next(&mut bridge), event(b"1"));
    drop((stream, bridge));

    let mut bridge = start(&listener, &queue);
    let mut stream = accept(&listener, &[0x20, 3, 1, 0, 0]);
    stream
        .write_all(b"\x3C\x0A\x00\x04in/a\x00\x07\x001\x34\x0A\x00\x04in/a\x00\x08\x002")
        .unwrap();
    assert!(line(&mut bridge, LogLevel::Info).contains("its session goes on"));
    assert_eq!(next(&mut bridge), event(b"2"));
}

#[test]
fn messages_that_cannot_be_events_are_told_and_those_that_no_rule_means_are_not() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut bridge = start(&listener, &folder.path().join("bridge.db"));
    let mut stream = accept(&listener, &CONNACK);
    let message = |topic: &str, payload: &[u8]| {
        let length = 2 + topic.len() + 1 + payload.len();
        let length = [(length & 0x7F) as u8 | 0x80, (length >> 7) as u8];
        let topic = [&[0, topic.len() as u8], topic.as_bytes()].concat();
        [&[0x30][..], &length, &topic, &[0], payload].concat()
    };
    let deep = format!("in/{}", "x".repeat(100));
    // Padded, so that each length takes two bytes.
    stream.write_all(&message("elsewhere", &[b'x'; 200])).unwrap();
    stream.write_all(&message(&deep, &[b'x'; 200])).unwrap();
    stream.write_all(&message("in/long", &[b'x'; 2049])).unwrap();
    stream.write_all(&message("in/last", &[b'x'; 2048])).unwrap();
    let refused = line(&mut bridge, LogLevel::Error);
    assert!(refused.contains("in/xxx") && refused.contains("at most 64 characters"), "{refused}");
    // The next complaint of that kind is told in a minute.
    let last = Said::Event { topic: "in.last".parse().unwrap(), payload: vec![b'x'; 2048] };
    assert_eq!(next(&mut bridge), last);
}

#[test]
fn broker_that_floods_is_read_no_faster_than_the_device_takes_and_the_queue_goes_on() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut bridge = start(&listener, &folder.path().join("bridge.db"));
    let mut stream = accept(&listener, &CONNACK);
    const MESSAGES: usize = 50_000;
    let mut flooding = stream.try_clone().unwrap();
    let flood = std::thread::spawn(move || {
        flooding.write_all(&b"\x30\x08\x00\x04in/a\x00x".repeat(MESSAGES)).unwrap();
    });
    // The device takes nothing, and its own events get through.
    bridge.publish(published("room.attic".parse().unwrap(), b"21".to_vec()));
    packet_of(&mut stream, 3);
    let mut taken = 0;
    while taken < MESSAGES {
        taken += usize::from(matches!(next(&mut bridge), Said::Event { .. }));
    }
    flood.join().unwrap();
}

#[test]
fn queue_without_a_broker_keeps_to_its_limit_and_the_log_says_so() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let folder = tempfile::tempdir().unwrap();
    let queue = folder.path().join("bridge.db");
    let mut bridge = Bridge::start(settings(address), no_dates(), &queue).unwrap();
    assert!(line(&mut bridge, LogLevel::Error).contains("no connection to 127.0.0.1:"));
    for number in 0..20 {
        bridge.publish(published("room.attic".parse().unwrap(), vec![number]));
    }
    let full = line(&mut bridge, LogLevel::Error);
    assert!(full.contains("the queue is full"), "{full}");
    drop(bridge);

    let listener = TcpListener::bind(address).unwrap();
    let _bridge = start(&listener, &queue);
    let mut stream = accept(&listener, &CONNACK);
    let numbers: Vec<u8> = (0..8).map(|_| *packet_of(&mut stream, 3).last().unwrap()).collect();
    assert_eq!(numbers, [12, 13, 14, 15, 16, 17, 18, 19]);
}

#[test]
fn bridge_that_ends_lets_the_broker_publish_its_will() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let bridge = start(&listener, &folder.path().join("bridge.db"));
    let mut stream = accept(&listener, &CONNACK);
    packet_of(&mut stream, 8);
    drop(bridge);
    assert_eq!(packet_of(&mut stream, 14), [4]);
    assert_eq!(packet(&mut stream), None);
}
