//! A node that runs every protocol, before neighbours that say whatever the input makes them say:
//! well-formed frames of any protocol's messages, frames that are bent, and time that passes.
//!
//! It comes to rest, sends frames no longer than its links carry, and, where frames are sealed,
//! believes none of it. What comes in plain frames is at most a knock, which is answered by nobody as long
//! as the owner admits nobody.
#![no_main]
#![forbid(unsafe_code)]

#[path = "../../crates/protocols/tests/everything/mod.rs"]
mod everything;

use std::time::Duration;

use everything::{node, settle};
use libfuzzer_sys::fuzz_target;
use tenure_hal::Instant;
use tenure_mesh::{
    Destination, Dispatcher, Framer, FramerConfig, NodeId, ProtocolNumber, Unsealed, decode,
};
use tenure_protocols::joining::{Doorway, Note, Word};
use tenure_protocols::network_key::NetworkKey;

fuzz_target!(|bytes: &[u8]| {
    let mut open = node(Unsealed);
    let mut sealed = node(NetworkKey::from_bytes(&[7; 32]));
    sealed.hear_plain_frames();
    let mut doorway = Doorway::default();
    let mut peers: Vec<_> = (2..6)
        .map(|id| Framer::new(FramerConfig::new(NodeId::from_number(id), 1, [0; 8]), Unsealed))
        .collect();
    let mut now = Instant::BOOT;
    let mut frame = Vec::new();
    let mut rest = bytes;
    // A step: who speaks, which protocol, what is bent, how much time passes, a length, a message.
    while let Some(([who, protocol, bend, pause, length], more)) = rest.split_first_chunk() {
        let (message, more) = more.split_at(usize::from(*length).min(more.len()));
        rest = more;
        now = now + Duration::from_millis(u64::from(*pause).pow(2));
        let peer = &mut peers[usize::from(who % 4)];
        let to = match who & 4 {
            0 => Destination::All,
            _ => Destination::One(NodeId::from_number(1)),
        };
        if !message.is_empty() {
            let protocol = ProtocolNumber(protocol % 48);
            let _ = peer.send(now, protocol, to, Duration::ZERO, message);
        }
        while peer.transmit(now, &mut frame).is_some() {
            let at = usize::from(*pause) % frame.len();
            match bend {
                0 => frame.truncate(at),
                1 => frame[at] ^= protocol,
                2 => frame.extend_from_slice(message),
                _ => {}
            }
            let _ = open.receive(now, &frame, Some(*bend as i8));
            assert!(sealed.receive(now, &frame, None).is_err());
        }
        // The same as a plain frame, and as word of another member.
        let _ = sealed.receive(now, &[&[0x18], message].concat(), None);
        while let Some(word) = sealed.plain_frame() {
            if let Some((Word::Knock(knock), [])) = decode(&word) {
                doorway.hear(now, knock.clone(), NodeId::from_number(1), now);
                assert_eq!(doorway.answer(now, &knock.device), None);
            }
        }
        if let Some((Note::Heard(strangers), [])) = decode(message) {
            for (knock, age_s) in strangers {
                let at = now - Duration::from_secs(age_s.into());
                doorway.hear(now, knock, NodeId::from_number(2), at);
            }
        }
        assert!(doorway.strangers(now).len() <= 8);
        settle(&mut open, now);
        settle(&mut sealed, now);
    }
    assert_eq!(sealed.counters().frames_taken, 0);
});
