//! A broker that sends anything, in pieces, to a session with messages under way.
#![no_main]
#![forbid(unsafe_code)]

use libfuzzer_sys::fuzz_target;
use tenure_hal::Instant;
use tenure_mqtt::{Config, Kept, Message, Qos, QueueLimits, Session, Subscription};

const QUEUE: QueueLimits = QueueLimits { messages_max: 16, bytes_max: 4096 };

fn session() -> Session {
    let filter = |text: &str| Subscription { filter: text.into(), qos: Qos::ExactlyOnce };
    let config = Config {
        client_id: "attic".into(),
        user: None,
        password: None,
        will: None,
        keep_alive_s: 60,
        session_expiry_s: 60,
        packet_bytes_max: 1024,
        under_way_max: 4,
        subscriptions: ["a/#", "$share/g/b"].map(filter).to_vec(),
        queue: QUEUE,
    };
    let mut session = Session::new(config, Kept::default());
    for qos in [Qos::AtMostOnce, Qos::AtLeastOnce, Qos::ExactlyOnce].repeat(3) {
        let (topic, payload) = ("home".into(), b"21".to_vec());
        session.publish(Message { topic, payload, qos, retain: true });
    }
    session
}

// The first byte says how long pieces are, and whether the connection was accepted before.
fuzz_target!(|bytes: &[u8]| {
    let Some((&first, rest)) = bytes.split_first() else { return };
    let (mut session, now) = (session(), Instant::BOOT);
    session.connect(now);
    if first & 0x80 != 0 {
        session.receive(now, &[0x20, 3, 0, 0, 0]).expect("a CONNACK");
    }
    for piece in rest.chunks(usize::from(first & 0x7F).max(1)) {
        if session.poll(now).is_err() || session.receive(now, piece).is_err() {
            break;
        }
        while session.event().is_some() || session.change().is_some() {}
        assert!(session.output().len() <= 64 * 1024);
        session.sent(session.output().len());
    }
    assert!(session.queued() <= QUEUE.messages_max);
});
