//! Tables keep to their limits whatever comes in.

extern crate std;

use std::collections::VecDeque;
use std::vec::Vec;

use tenure_hal::EntropyError;
use tenure_hal::simulated::Sequence;

use super::*;

/// Begins a handshake with a peer anew, as if the call that waits for it needed one.
fn open_anew(
    endpoint: &mut Endpoint<u32>,
    now: Instant,
    entropy: &mut Sequence,
    pair: &Pair,
    route: u32,
) {
    let mut means = endpoint.means(now, entropy);
    endpoint.station.peers.close_handshake(pair);
    endpoint.outgoing.open(&mut endpoint.station, &mut means, pair, route);
}

mod deferrals;
mod floods;

fn endpoint(config: Config, entropy: &mut Sequence) -> (Endpoint<u32>, MachineId, PublicKey) {
    let mut endpoint = Endpoint::new(config, Instant::BOOT, entropy).expect("valid limits");
    let secret = StaticSecret::generate(entropy).expect("randomness");
    let key = secret.public_key();
    let id = endpoint.add_machine(secret).expect("room");
    (endpoint, id, key)
}

fn call() -> OutgoingCall {
    OutgoingCall {
        function: "f".into(),
        parameter: None,
        deadline: Instant::from_millis(100_000),
        attempts: 3,
    }
}

#[test]
fn strangers_with_keys_fill_no_more_than_the_tables() {
    let mut entropy = Sequence(1);
    let config = Config {
        handshakes_per_second: 1_000,
        handshakes_per_second_max: 1_000,
        ..Config::default()
    };
    let (mut device, _, key) = endpoint(config.clone(), &mut entropy);
    for stranger in 0..200 {
        let now = Instant::from_millis(1_000 + u64::from(stranger));
        let (mut from, id, _) = endpoint(Config::default(), &mut entropy);
        from.call(now, &mut entropy, &id, &key, 0, Some(device.epoch()), call()).expect("made");
        let (_, initiation) = from.transmit().expect("an initiation");
        device.receive(now, &mut entropy, stranger, &initiation);
        let half_open = device.station.sessions.iter().filter(|session| !session.confirmed).count();
        assert!(half_open <= config.half_open_max);
        assert!(device.station.sessions.len() <= config.sessions_max);
        assert!(device.station.outbox.len() <= config.queued_datagrams_max);
        assert!(device.incoming.callers.running() <= config.running_max);
        assert!(device.incoming.callers.len() <= config.callers_max);
        // A running call ends at once; a reported one is never fetched.
        let (running, others): (VecDeque<_>, VecDeque<_>) =
            core::mem::take(&mut device.station.events)
                .into_iter()
                .partition(|event| matches!(event, Event::IncomingCall { .. }));
        device.station.events = others;
        for event in running {
            if let Event::IncomingCall { handle, .. } = event {
                device.reply(now, handle, Ok(None));
            }
        }
        assert!(device.station.events.len() <= config.sessions_max);
    }
}

/// Lets two ends exchange datagrams until both have none.
fn exchange(
    now: Instant,
    entropy: &mut Sequence,
    device: &mut Endpoint<u32>,
    peer: (&mut Endpoint<u32>, u32),
) {
    let (peer, place) = peer;
    for _ in 0..20 {
        while let Some((_, datagram)) = peer.transmit() {
            device.receive(now, entropy, place, &datagram);
        }
        while let Some(event) = device.event() {
            if let Event::IncomingCall { handle, .. } = event {
                device.reply(now, handle, Ok(None));
            }
        }
        while let Some((to, datagram)) = device.transmit() {
            if to == place {
                peer.receive(now, entropy, 0, &datagram);
            }
        }
    }
}

fn is_answered(peer: &mut Endpoint<u32>) -> bool {
    let mut events = core::iter::from_fn(|| peer.event());
    events.any(|event| matches!(event, Event::CallDone { result: Ok(None), .. }))
}

#[test]
fn favoured_peers_keep_their_sessions_while_strangers_open_ten_times_as_many() {
    const FAVOURED: u32 = 8;
    let mut entropy = Sequence(12);
    let config = Config {
        callers_max: 32,
        accepted_initiations_max: 1_000,
        handshakes_per_second: 1_000,
        handshakes_per_second_max: 1_000,
        ..Config::default()
    };
    let (mut device, _, key) = endpoint(config, &mut entropy);
    let mut favoured = Vec::new();
    let mut now = Instant::from_millis(1_000);
    let ask = |now,
               entropy: &mut Sequence,
               device: &mut Endpoint<u32>,
               peer: (&mut Endpoint<u32>, u32),
               id: MachineId| {
        let call = OutgoingCall { deadline: now + core::time::Duration::from_secs(9), ..call() };
        let epoch = Some(device.epoch());
        peer.0.call(now, entropy, &id, &key, 0, epoch, call).expect("made");
        exchange(now, entropy, device, peer);
    };
    for place in 0..FAVOURED {
        let (mut peer, id, peer_key) = endpoint(Config::default(), &mut entropy);
        device.favour(&peer_key, true);
        ask(now, &mut entropy, &mut device, (&mut peer, place + 1), id);
        assert!(is_answered(&mut peer), "at first");
        favoured.push((peer, id, peer_key));
    }
    for stranger in 0..10 * FAVOURED {
        now = now + core::time::Duration::from_millis(100);
        let (mut peer, id, _) = endpoint(Config::default(), &mut entropy);
        ask(now, &mut entropy, &mut device, (&mut peer, 100 + stranger), id);
        assert!(is_answered(&mut peer), "a stranger among strangers");
    }
    let [sessions, callers, ..] = device.fullness();
    assert!(sessions.times_full > 0 && callers.times_full > 0, "{sessions:?} {callers:?}");
    for (place, (peer, id, peer_key)) in favoured.iter_mut().enumerate() {
        let kept =
            device.station.sessions.iter().filter(|session| session.pair.peer == *peer_key).count();
        assert_eq!(kept, 1, "the session of the favoured peer at {place}");
        ask(now, &mut entropy, &mut device, (peer, place as u32 + 1), *id);
        assert!(is_answered(peer), "over its old session");
        assert!(peer.station.sessions.len() == 1);
    }
    let hub = Config::for_callers(11_000);
    assert!(hub.sessions_max >= 22_000 && hub.callers_max >= 22_000);
    let large = Endpoint::<u32>::new(hub.clone(), now, &mut entropy).unwrap();
    let room = |endpoint: &Endpoint<u32>| endpoint.fullness().map(|table| table.most);
    let [.., datagrams] = room(&device);
    device.widen(&hub);
    device.widen(&Config::default());
    let [sessions, callers, initiations, _] = room(&large);
    assert_eq!(room(&device), [sessions, callers, initiations, datagrams]);
}

/// A message that a peer might send who has the keys and means no good.
fn hostile_message(entropy: &mut Sequence) -> Vec<u8> {
    let mut draw = |bound: u64| {
        let mut bytes = [0; 8];
        entropy.fill(&mut bytes).expect("a counter");
        u64::from_le_bytes(bytes) % bound
    };
    let mut bytes = Vec::new();
    bytes.extend_from_slice(&draw(6).to_le_bytes());
    bytes.extend_from_slice(&draw(8).to_le_bytes());
    let kind = draw(10) as u8;
    bytes.push(kind);
    bytes.extend_from_slice(&draw(12).to_le_bytes());
    match kind {
        1 | 5 => {
            if kind == 5 {
                bytes.extend_from_slice(&(draw(1 << 32) as u32).to_le_bytes());
            }
            let length = 1 + draw(9_000) as u32;
            let fragment_bytes = 1 + draw(1_100) as u16;
            let index = draw(9) as u8;
            bytes.extend_from_slice(&length.to_le_bytes());
            bytes.extend_from_slice(&fragment_bytes.to_le_bytes());
            bytes.extend_from_slice(&[index, draw(2) as u8]);
            let begun = u32::from(index) * u32::from(fragment_bytes);
            let rest = length.saturating_sub(begun).min(fragment_bytes.into());
            bytes.extend((0..rest).map(|_| draw(3) as u8));
        }
        4 => bytes.extend((0..32).map(|_| draw(256) as u8)),
        6 => bytes.extend((0..33).map(|_| draw(256) as u8)),
        8 | 9 => bytes.extend((0..16).map(|_| draw(256) as u8)),
        _ => {}
    }
    bytes
}

#[test]
fn hostile_peer_with_keys_gets_no_more_than_its_share() {
    let mut entropy = Sequence(6);
    let (mut device, device_id, key) = endpoint(Config::default(), &mut entropy);
    let (mut peer, id, peer_key) = endpoint(Config::default(), &mut entropy);
    let config = Config::default();
    let mut now = Instant::from_millis(5_000);
    peer.call(now, &mut entropy, &id, &key, 0, Some(device.epoch()), call()).expect("made");
    let (mut parsed, mut executed) = (0, 0);
    for round in 0..20_000 {
        now = now + core::time::Duration::from_millis(1);
        if round % 50 == 0 {
            let later = OutgoingCall {
                deadline: now + core::time::Duration::from_secs(2),
                parameter: Some([1; 3_000].to_vec()),
                ..call()
            };
            let epoch = Some(peer.epoch());
            let _ = device.call(now, &mut entropy, &device_id, &peer_key, 1, epoch, later);
        }
        let hostile = hostile_message(&mut entropy);
        if let (Ok(message), Some(session)) =
            (Message::parse(&hostile), peer.station.sessions.first_mut())
        {
            let datagram = session.seal(&config, &message).expect("a fresh session");
            device.receive(now, &mut entropy, 1, &datagram);
            parsed += 1;
        }
        device.poll(now, &mut entropy);
        while let Some((_, datagram)) = device.transmit() {
            peer.receive(now, &mut entropy, 0, &datagram);
        }
        while let Some((_, datagram)) = peer.transmit().filter(|_| peer.station.sessions.len() < 3)
        {
            device.receive(now, &mut entropy, 1, &datagram);
        }
        while let Some(event) = device.event() {
            if let Event::IncomingCall { handle, .. } = event {
                executed += 1;
                device.reply(now, handle, Ok(Some([2; 5_000].to_vec())));
            }
        }
        peer.station.events.clear();
        assert!(device.incoming.callers.bytes_taken() <= config.buffer_bytes_max);
        assert!(device.outgoing.calls.len() <= config.calls_max);
        assert!(device.station.sessions.len() <= config.sessions_max);
    }
    assert!(parsed > 10_000 && executed > 0, "{parsed} parsed, {executed} executed");
}

#[test]
fn calls_beyond_the_limits_are_refused() {
    let mut entropy = Sequence(2);
    let config = Config { calls_max: 3, peers_max: 2, ..Config::default() };
    let (mut device, id, _) = endpoint(config, &mut entropy);
    let keys: Vec<PublicKey> =
        (0..4).map(|_| endpoint(Config::default(), &mut entropy).2).collect();
    let now = Instant::from_millis(5);
    let mut try_call =
        |key: &PublicKey, call| device.call(now, &mut entropy, &id, key, 0, None, call).map(|_| ());
    assert_eq!(try_call(&keys[0], call()), Ok(()));
    assert_eq!(try_call(&keys[1], call()), Ok(()));
    assert_eq!(try_call(&keys[2], call()), Err(CallError::Busy), "a third peer");
    assert_eq!(try_call(&keys[0], call()), Ok(()));
    assert_eq!(try_call(&keys[0], call()), Err(CallError::Busy), "a fourth call");
    let long = OutgoingCall { parameter: Some([0; 8_193].to_vec()), ..call() };
    assert_eq!(try_call(&keys[0], long), Err(CallError::TooLong));
    let nameless = OutgoingCall { function: "".into(), ..call() };
    assert_eq!(try_call(&keys[0], nameless), Err(CallError::Function));
    let other = MachineId([0; 12]);
    let unknown = device.call(now, &mut entropy, &other, &keys[0], 0, None, call());
    assert_eq!(unknown, Err(CallError::UnknownMachine));
}

#[test]
fn removed_machine_leaves_nothing_behind() {
    let mut entropy = Sequence(3);
    let (mut device, id, key) = endpoint(Config::default(), &mut entropy);
    let (mut other, other_id, other_key) = endpoint(Config::default(), &mut entropy);
    let now = Instant::from_millis(5);
    let hint = Some(device.epoch());
    other.call(now, &mut entropy, &other_id, &key, 0, hint, call()).expect("made");
    device.call(now, &mut entropy, &id, &other_key, 1, Some(other.epoch()), call()).expect("made");
    let (_, initiation) = other.transmit().expect("an initiation");
    device.receive(now, &mut entropy, 1, &initiation);
    assert_eq!((device.station.sessions.len(), device.incoming.callers.running()), (1, 1));
    device.remove_machine(now, &id);
    assert_eq!((device.station.sessions.len(), device.incoming.callers.running()), (0, 0));
    assert!(device.outgoing.calls.is_empty() && device.station.peers.list.is_empty());
    assert_ne!(Some(device.epoch()), hint, "the initiation can't be replayed if it comes back");
    let events: Vec<_> = core::iter::from_fn(|| device.event()).collect();
    let done = events.iter().filter(|event| matches!(event, Event::CallDone { .. })).count();
    assert_eq!(done, 1);
}

#[test]
fn endpoint_without_randomness_sends_nothing_and_tries_again() {
    struct Broken;
    impl Entropy for Broken {
        fn fill(&mut self, _: &mut [u8]) -> Result<(), EntropyError> {
            Err(EntropyError)
        }
    }
    let mut entropy = Sequence(4);
    let (mut device, id, _) = endpoint(Config::default(), &mut entropy);
    let (other, _, key) = endpoint(Config::default(), &mut entropy);
    let now = Instant::from_millis(5);
    device.call(now, &mut Broken, &id, &key, 0, Some(other.epoch()), call()).expect("made");
    assert!(device.transmit().is_none());
    let again = device.poll_at().expect("it tries again");
    device.poll(again, &mut entropy);
    assert!(device.transmit().is_some());
    assert!(Endpoint::<u32>::new(Config::default(), now, &mut Broken).is_err());
}

#[test]
fn limits_that_do_not_fit_are_named() {
    let check = |config: Config, limit| {
        let error = Endpoint::<u32>::new(config, Instant::BOOT, &mut Sequence(5)).err();
        assert_eq!(error, Some(EndpointError::Config(crate::ConfigError { limit })));
    };
    assert!(Endpoint::<u32>::new(Config::large(), Instant::BOOT, &mut Sequence(5)).is_ok());
    let default = Config::default;
    check(Config { datagram_bytes_max: 255, ..default() }, "datagram_bytes_max");
    check(Config { parameter_bytes_max: 1 << 20, ..default() }, "parameter_bytes_max");
    check(Config { callers_max: 12, ..default() }, "callers_max");
    check(Config { buffer_bytes_per_caller_max: 100, ..default() }, "buffer_bytes_per_caller_max");
}
