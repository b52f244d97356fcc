//! The server and clients that behave, lie, flood and never answer; the time is an argument.

use coap_lite::{CoapOption, MessageClass, MessageType, Packet, RequestType};
use proptest::prelude::*;
use tenure_wire::NoResult;
use tenure_wire::limits::PARAMETER_BYTES_MAX;

use super::turns::{CALLS_OF_HOST_MAX, PLACES_OF_MACHINE_MAX};
use super::*;
use crate::answer::AGAIN;
use crate::block::Block;
use crate::exchanges::{EXCHANGE_LIFETIME, EXCHANGES_MAX, EXCHANGES_OF_HOST_MAX};
use crate::observers::{OBSERVERS_MAX, OBSERVERS_OF_HOST_MAX, SUBJECTS_MAX};
use crate::transfers::{TRANSFERS_MAX, TRANSFERS_OF_HOST_MAX};
use crate::wish::HEARTBEAT;

const ECHO: u16 = 252;

/// A server, the time, and what its machines answer.
struct World {
    server: Server,
    now: Instant,
}

fn peer(host: u8) -> SocketAddr {
    ([192, 0, 2, host], 40_000).into()
}

fn entry(name: &str, is_open: bool, publishes: bool) -> Entry {
    let functions = ["read", "set", "long"].map(String::from).to_vec();
    Entry { name: name.parse().unwrap(), functions, is_open, publishes }
}

/// A request, as a client writes it.
#[derive(Clone)]
struct Asks(Packet);

impl Asks {
    fn new(method: RequestType, path: &str, id: u16) -> Self {
        let mut packet = Packet::new();
        packet.header.code = MessageClass::Request(method);
        packet.header.message_id = id;
        packet.set_token(id.to_be_bytes().to_vec());
        for part in path.split('/') {
            packet.add_option(CoapOption::UriPath, part.into());
        }
        Self(packet)
    }

    fn get(path: &str, id: u16) -> Self {
        Self::new(RequestType::Get, path, id)
    }

    fn with(mut self, option: u16, value: &[u8]) -> Self {
        self.0.add_option(option.into(), value.into());
        self
    }

    fn payload(mut self, payload: &[u8]) -> Self {
        self.0.payload = payload.into();
        self
    }

    fn unconfirmed(mut self) -> Self {
        self.0.header.set_type(MessageType::NonConfirmable);
        self
    }

    fn bytes(&self) -> Vec<u8> {
        self.0.to_bytes_unlimited().unwrap()
    }
}

impl World {
    fn new() -> Self {
        let events = ["door", "room.*"].map(|text| text.parse().unwrap()).to_vec();
        let mut server = Server::new(Config { events, secret: [7; 32] });
        let now = Instant::from_millis(1_000_000);
        let entries = vec![
            entry("meter", true, false),
            entry("lamp", true, true),
            entry("safe", false, true),
        ];
        server.machines(now, entries);
        Self { server, now }
    }

    fn hear(&mut self, from: SocketAddr, bytes: &[u8]) {
        self.server.receive(self.now, from, bytes);
    }

    fn said(&mut self) -> Option<(SocketAddr, Packet)> {
        let (to, bytes) = self.server.transmit()?;
        Some((to, Packet::from_bytes(&bytes).unwrap()))
    }

    /// The one message that the server has for a peer.
    #[track_caller]
    fn one(&mut self, to: SocketAddr) -> Packet {
        let (whom, packet) = self.said().expect("a message");
        assert_eq!(whom, to);
        assert!(self.said().is_none(), "one message");
        packet
    }

    /// Asks, lets machines answer with `result`, and returns the reply.
    #[track_caller]
    fn ask(&mut self, from: SocketAddr, asks: &Asks, result: Option<&[u8]>) -> Packet {
        self.hear(from, &asks.bytes());
        self.answer(result);
        self.one(from)
    }

    /// Answers all calls with a result; returns the calls.
    fn answer(&mut self, result: Option<&[u8]>) -> Vec<Call> {
        let calls: Vec<Call> = std::iter::from_fn(|| self.server.call()).collect();
        for call in &calls {
            self.server.answered(self.now, call.number, Ok(result.map(<[u8]>::to_vec)));
        }
        calls
    }

    fn pass(&mut self, span: Duration) {
        self.now = self.now + span;
        self.server.poll(self.now);
    }

    /// Lets the time pass until there is something to do.
    fn pass_until_due(&mut self) {
        let at = self.server.poll_at().expect("something is due");
        assert!(at >= self.now, "it was due before");
        self.now = at;
        self.server.poll(at);
    }

    fn acknowledge(&mut self, from: SocketAddr, packet: &Packet) {
        self.hear(from, &empty_message(Type::Acknowledgement, packet.header.message_id));
    }

    /// Lets a peer prove its address.
    fn prove(&mut self, peer: SocketAddr) {
        let echo = self.server.proofs.echo_for(self.now, peer);
        let asks = Asks::get(".well-known/core", 0xEEEE).with(ECHO, &echo);
        self.ask(peer, &asks, None);
    }
}

fn code(packet: &Packet) -> String {
    packet.header.get_code()
}

fn option(packet: &Packet, option: CoapOption) -> Option<u32> {
    let value = packet.get_first_option(option)?;
    Some(value.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)))
}

fn text(packet: &Packet) -> &str {
    std::str::from_utf8(&packet.payload).unwrap()
}

#[test]
fn request_is_a_call_and_its_result_the_answer() {
    let (mut world, client) = (World::new(), peer(1));
    let parameter = |world: &mut World, asks: Asks| {
        world.hear(client, &asks.bytes());
        let calls = world.answer(Some(b"21.5"));
        let reply = world.one(client);
        let call = calls.into_iter().next().unwrap();
        assert_eq!((call.machine.as_str(), call.function.as_str()), ("meter", "read"));
        (code(&reply), text(&reply).to_string(), call.parameter)
    };
    let is = |code: &str, parameter: Option<&[u8]>| {
        (code.to_string(), "21.5".to_string(), parameter.map(<[u8]>::to_vec))
    };
    let (query, format) = (15, 12);
    let path = "m/meter/read";
    let post = |id| Asks::new(RequestType::Post, path, id);
    assert_eq!(parameter(&mut world, Asks::get(path, 1)), is("2.05", None));
    let asks = Asks::get(path, 2).with(query, b"a=1").with(query, b"b");
    assert_eq!(parameter(&mut world, asks), is("2.05", Some(b"a=1&b")));
    assert_eq!(parameter(&mut world, post(3).payload(b"\x00")), is("2.04", Some(b"\x00")));
    assert_eq!(parameter(&mut world, post(4)), is("2.04", None));
    assert_eq!(parameter(&mut world, post(5).with(query, b"x")), is("2.04", Some(b"x")));
    let put = Asks::new(RequestType::Put, path, 6).payload(b"p");
    assert_eq!(parameter(&mut world, put), is("2.04", Some(b"p")));
    let fetch = Asks::new(RequestType::Fetch, path, 7).payload(b"f");
    assert_eq!(parameter(&mut world, fetch), is("2.05", Some(b"f")));
    let cbor = post(8).with(format, &[60]).payload(b"\x61x");
    assert_eq!(parameter(&mut world, cbor), is("2.04", Some(b"x")));

    let reply = world.ask(client, &Asks::get(path, 9), Some(b"21.5"));
    assert_eq!(reply.header.get_type(), MessageType::Acknowledgement);
    assert_eq!((reply.header.message_id, reply.get_token()), (9, &[0, 9][..]));
    assert_eq!(option(&reply, CoapOption::ContentFormat), Some(0));
    assert_eq!(option(&reply, CoapOption::MaxAge), Some(0), "no cache keeps it");
    let tag = reply.get_first_option(CoapOption::ETag).unwrap().clone();
    let known = world.ask(client, &Asks::get(path, 10).with(4, &tag), Some(b"21.5"));
    assert_eq!((code(&known).as_str(), known.payload.len()), ("2.03", 0));
    let changed = world.ask(client, &Asks::get(path, 11).with(4, &tag), Some(b"21.6"));
    assert_eq!((code(&changed).as_str(), text(&changed)), ("2.05", "21.6"));
    let null = world.ask(client, &Asks::get(path, 12), None);
    assert_eq!((code(&null).as_str(), option(&null, CoapOption::ContentFormat)), ("2.05", None));
    let unconfirmed = world.ask(client, &Asks::get(path, 13).unconfirmed(), Some(b"1"));
    assert_eq!(unconfirmed.header.get_type(), MessageType::NonConfirmable);
}

#[test]
fn errors_say_what_was_wrong() {
    let (mut world, client) = (World::new(), peer(1));
    let (get, post) = (RequestType::Get, RequestType::Post);
    let asks = |method, path| Asks::new(method, path, 0);
    for (id, (asks, expected)) in [
        (asks(get, "m/window/read"), "4.04"),
        (asks(get, "m/meter/write"), "4.04"),
        (asks(get, "m/safe/read"), "4.03"),
        (asks(get, "m/safe/nothing"), "4.03"),
        (asks(get, "e/window"), "4.04"),
        (asks(get, "e"), "4.04"),
        (asks(get, ""), "4.04"),
        (asks(post, "e/door"), "4.05"),
        (asks(post, ".well-known/core"), "4.05"),
        (asks(RequestType::Delete, "m/meter/read"), "4.05"),
        (asks(RequestType::Patch, "m/meter/read"), "4.05"),
        (asks(get, "m/meter/read").with(17, &[41]), "4.06"),
        (asks(get, ".well-known/core").with(17, &[0]), "4.06"),
        (asks(post, "m/meter/set").with(12, &[41]).payload(b"x"), "4.15"),
        (asks(post, "m/meter/set").with(12, &[60]).payload(b"\xFF"), "4.00"),
        (asks(post, "m/meter/set").with(15, b"x").payload(b"x"), "4.00"),
        (asks(post, "m/meter/set").with(60, &[0x20, 0x01]), "4.13"),
        (asks(get, "m/meter/read").with(23, &[0x10]), "4.08"),
        (asks(get, "m/meter/read").with(5, b""), "4.02"),
        (asks(get, "m/meter/read").with(35, b"coap://x"), "5.05"),
    ]
    .into_iter()
    .enumerate()
    {
        let mut asks = asks.clone();
        asks.0.header.message_id = id as u16;
        let reply = world.ask(client, &asks, Some(b"never"));
        assert_eq!(code(&reply), expected, "{id}");
        assert!(!reply.payload.is_empty(), "{id}");
    }
    // A request that needn't be confirmed and isn't understood is dropped.
    world.hear(client, &Asks::get("m/meter/read", 100).with(5, b"").unconfirmed().bytes());
    assert!(world.said().is_none());

    world.hear(client, &Asks::get("m/meter/read", 101).bytes());
    let call = world.server.call().unwrap();
    let failure = Err(NoAnswer::Failed(NoResult::Busy));
    world.server.answered(world.now, call.number, failure);
    let busy = world.one(client);
    assert_eq!((code(&busy).as_str(), option(&busy, CoapOption::MaxAge)), ("5.03", Some(2)));
    let binary = world.ask(client, &Asks::get("m/meter/read", 102).with(17, &[0]), Some(b"\xFF"));
    assert_eq!(code(&binary), "4.06");
}

#[test]
fn request_that_comes_again_is_not_done_again() {
    let (mut world, client) = (World::new(), peer(1));
    for asks in [Asks::get("m/meter/read", 1), Asks::get("m/meter/read", 2).unconfirmed()] {
        let bytes = asks.bytes();
        world.hear(client, &bytes);
        world.hear(client, &bytes);
        assert_eq!(world.answer(Some(b"1")).len(), 1);
        let first = world.one(client);
        world.pass(EXCHANGE_LIFETIME - Duration::from_secs(1));
        world.hear(client, &bytes);
        assert_eq!((world.answer(None).len(), world.one(client)), (0, first));
        // Of another port the same id is another message.
        let other = ([192, 0, 2, 1], 40_001).into();
        world.hear(other, &bytes);
        assert_eq!(world.answer(Some(b"2")).len(), 1);
        assert_eq!(text(&world.one(other)), "2");
        world.pass(EXCHANGE_LIFETIME);
        world.hear(client, &bytes);
        assert_eq!(world.answer(Some(b"3")).len(), 1);
        assert_eq!(text(&world.one(client)), "3");
    }
}

#[test]
fn answer_of_a_machine_that_takes_long_comes_separately_until_it_is_acknowledged() {
    let (mut world, client) = (World::new(), peer(1));
    world.prove(client);
    let asks = Asks::get("m/meter/read", 1);
    world.hear(client, &asks.bytes());
    let call = world.server.call().unwrap();
    world.pass_until_due();
    let promise = world.one(client);
    assert_eq!((code(&promise).as_str(), promise.header.message_id), ("0.00", 1));
    assert_eq!(promise.header.get_type(), MessageType::Acknowledgement);
    // Again, as if the promise was lost.
    world.hear(client, &asks.bytes());
    assert_eq!(world.one(client), promise);
    world.server.answered(world.now, call.number, Ok(Some(b"late".to_vec())));
    let answer = world.one(client);
    assert_eq!((code(&answer).as_str(), text(&answer)), ("2.05", "late"));
    assert_eq!(
        (answer.header.get_type(), answer.get_token()),
        (MessageType::Confirmable, &[0, 1][..])
    );
    for _ in 0..MAX_RETRANSMIT {
        world.pass_until_due();
        assert_eq!(world.one(client), answer, "sent again");
    }
    world.acknowledge(client, &answer);
    world.hear(client, &asks.bytes());
    assert_eq!(world.one(client), promise, "the answer was sent");
    world.pass(Duration::from_secs(200));
    assert!(world.said().is_none());
    // One that nobody ends.
    world.hear(client, &Asks::get("m/meter/read", 2).bytes());
    world.pass_until_due();
    world.one(client);
    world.pass(CALL_GIVEN_UP);
    assert_eq!(code(&world.one(client)), "5.04");
    assert!(world.server.asking.is_empty());
}

// C6-1: four bytes, again and again, for an answer to 401.
#[test]
fn request_that_comes_again_gets_three_times_its_own_bytes_at_most_and_few_times() {
    let mut world = World::new();
    let many = (0..20).map(|at| entry(&format!("machine{at}"), true, true)).collect();
    world.server.machines(world.now, many);
    let padding = 0xFDE8;
    let long = vec![b'x'; 1000];
    let get = |path: &str, id| Asks::get(path, id).with(padding, &[7; 370]);
    let kinds = [
        get("m/machine1/long", 1),
        get("m/machine1/long", 2).unconfirmed(),
        get(".well-known/core", 3),
        get("m/nobody/read", 4),
        get("m/machine1/long", 5).with(6, b""),
        get("m/machine1/long", 6).with(23, &[0x05]),
        Asks::new(RequestType::Post, "m/machine1/long", 7).payload(&[b'q'; 380]),
    ];
    for (host, asks) in (1..).zip(kinds) {
        let (victim, whole) = (peer(host), asks.bytes());
        world.hear(victim, &whole);
        world.answer(Some(&long));
        let answer = world.server.transmit().expect("an answer").1;
        assert!(answer.len() + 28 <= 3 * (whole.len() + 28), "{host}");
        let kind = whole[0] & 0x30;
        let short = [0x40 | kind, 1, whole[2], whole[3]];
        let may = 3 * (short.len() + 28) - 28;
        let mut sent = 0;
        for _ in 0..200 {
            world.hear(victim, &short);
            let again: usize =
                std::iter::from_fn(|| world.server.transmit()).map(|(_, bytes)| bytes.len()).sum();
            assert!(again <= may, "{host}: {again} for {}", short.len());
            sent += again;
        }
        assert!(sent <= usize::from(MAX_RETRANSMIT) * may, "{host}: {sent}");
        // A client of its own, by the same bytes.
        if answer.len() > may {
            for _ in 0..MAX_RETRANSMIT {
                world.hear(victim, &whole);
                assert_eq!(world.server.transmit().map(|(_, bytes)| bytes), Some(answer.clone()));
            }
        }
        world.hear(victim, &whole);
        assert_eq!(world.server.transmit(), None, "{host}: and no more");
    }
}

// C6-2: one host, or a forger in the names of many, and somebody else.
#[test]
fn machine_s_places_are_left_to_a_host_whoever_else_asks() {
    for forges in [false, true] {
        for proves in [false, true] {
            let (mut world, honest) = (World::new(), peer(250));
            if proves {
                world.prove(honest);
            }
            let mut id = 0;
            let mut crowd = |world: &mut World| {
                for host in 0..40 {
                    id += 1;
                    let from = if forges { peer(host) } else { peer(1) };
                    world.hear(from, &Asks::get("m/meter/read", id).unconfirmed().bytes());
                }
            };
            crowd(&mut world);
            world.hear(honest, &Asks::get("m/meter/read", 1).bytes());
            let refusals: Vec<_> = std::iter::from_fn(|| world.said()).collect();
            let own = refusals.iter().find(|(to, _)| *to == honest);
            if forges && !proves {
                // It may prove itself, and comes first then.
                let (_, refusal) = own.expect("no place is left");
                let echo = refusal.get_first_option(CoapOption::Unknown(ECHO)).unwrap();
                let asks = Asks::get("m/meter/read", 2).with(ECHO, echo);
                world.hear(honest, &asks.bytes());
            } else {
                assert!(own.is_none(), "{forges} {proves}");
            }
            let mut ended = 0;
            let mut is_served = false;
            while !is_served {
                let call = world.server.call().expect("a call");
                world.server.answered(world.now, call.number, Ok(Some(b"1".to_vec())));
                while let Some((to, packet)) = world.said() {
                    is_served |= to == honest && code(&packet) == "2.05";
                }
                ended += 1;
                crowd(&mut world);
                assert!(
                    ended <= CALLS_OF_MACHINE_MAX + 1,
                    "{forges} {proves}: {ended} came before"
                );
            }
        }
    }
}

#[test]
fn requests_that_are_dropped_are_not_remembered() {
    let mut world = World::new();
    for id in 0..10_000 {
        let asks = Asks::get("m/meter/read", id).with(5, b"").unconfirmed();
        world.hear(peer((id % 250) as u8), &asks.bytes());
    }
    assert!(world.said().is_none());
    assert_eq!(world.server.exchanges.len(), 0);
}

#[test]
fn pings_are_answered_and_messages_that_mean_nothing_reset_or_dropped() {
    let (mut world, client) = (World::new(), peer(1));
    for bytes in [&[0x40, 0, 1, 2][..], &[0x41, 0x45, 1, 2, 3], &[0x40, 1, 1, 2, 0xF0]] {
        world.hear(client, bytes);
        assert_eq!(world.server.transmit(), Some((client, vec![0x70, 0, 1, 2])), "{bytes:?}");
    }
    for bytes in [&[0x60, 0, 1, 2][..], &[0x70, 0, 1, 2], &[0x50, 0, 1, 2], &[0], &[]] {
        world.hear(client, bytes);
        assert_eq!(world.server.transmit(), None, "{bytes:?}");
    }
}

/// The payload that a client fetches block by block, and how many messages that took.
fn fetched(
    world: &mut World,
    client: SocketAddr,
    mut id: u16,
    size: Option<u8>,
    long: &[u8],
) -> (Vec<u8>, usize) {
    let (mut whole, mut block) = (Vec::new(), size.map(u32::from));
    let mut echo: Option<Vec<u8>> = None;
    for messages in 1.. {
        id += 1;
        let mut asks = Asks::get("m/meter/long", id);
        if let Some(block) = block {
            asks = asks.with(23, &block.to_be_bytes()[1..]);
        }
        if let Some(echo) = echo.take() {
            asks = asks.with(ECHO, &echo);
        }
        let request_bytes = asks.bytes().len();
        let reply = world.ask(client, &asks, Some(long));
        let is_proved = world.server.proofs.room(world.now, client, 0).is_proved;
        assert_eq!(code(&reply), "2.05");
        let bytes = reply.to_bytes_unlimited().unwrap().len();
        assert!(is_proved || bytes + 28 <= 3 * (request_bytes + 28), "{bytes} of {request_bytes}");
        let Some(value) = option(&reply, CoapOption::Block2) else {
            return (reply.payload, messages);
        };
        let got = Block::read(&value.to_be_bytes()[1..]).unwrap();
        assert_eq!(got.offset(), whole.len());
        whole.extend_from_slice(&reply.payload);
        if !got.more {
            return (whole, messages);
        }
        let next = Block::at(whole.len(), (value & 7) as u8, false);
        block = Some(next.value());
        // A client that names a size doesn't know the option. One that does begins anew, and may have longer blocks.
        let proof = reply.get_first_option(CoapOption::Unknown(ECHO)).cloned();
        echo = proof.filter(|_| size.is_none());
        if echo.is_some() {
            (whole, block) = (Vec::new(), None);
        }
    }
    unreachable!()
}

#[test]
fn long_answer_comes_in_blocks_of_the_size_that_is_wanted() {
    let long: Vec<u8> = (0..PARAMETER_BYTES_MAX).map(|at| (at / 7) as u8 | 0x80).collect();
    let (mut world, client) = (World::new(), peer(1));
    world.prove(client);
    for (at, (size, messages)) in
        [(None, 8), (Some(6), 8), (Some(0), 512), (Some(2), 128)].into_iter().enumerate()
    {
        let (whole, count) = fetched(&mut world, client, 1000 * at as u16, size, &long);
        assert_eq!((whole == long, count), (true, messages), "{size:?}");
    }
    let (short, count) = fetched(&mut world, client, 10_000, None, b"short");
    assert_eq!((short.as_slice(), count), (&b"short"[..], 1));
    // Beyond the end, and after a while.
    world.ask(client, &Asks::get("m/meter/long", 20_000), Some(&long));
    let beyond = Asks::get("m/meter/long", 20_001).with(23, &[0, 0x80 | 6]);
    assert_eq!(code(&world.ask(client, &beyond, None)), "4.00");
    world.pass(Duration::from_secs(60));
    let late = Asks::get("m/meter/long", 20_002).with(23, &[0x16]);
    assert_eq!(code(&world.ask(client, &late, None)), "4.08");
}

#[test]
fn address_that_has_not_proved_itself_gets_three_times_what_it_sent_at_most() {
    let long = vec![b'x'; PARAMETER_BYTES_MAX];
    let (mut world, client) = (World::new(), peer(1));
    let first = world.ask(client, &Asks::get("m/meter/long", 1), Some(&long));
    assert_eq!(first.payload.len(), 64);
    let echo = first.get_first_option(CoapOption::Unknown(ECHO)).expect("a way to prove it");
    let asks = Asks::get("m/meter/long", 2).with(ECHO, echo);
    let proved = world.ask(client, &asks, Some(&long));
    assert_eq!(proved.payload.len(), 1024);
    // A client that doesn't know the option gets all, in small blocks.
    let (whole, messages) = fetched(&mut world, peer(2), 0, Some(6), &long);
    assert_eq!((whole.len(), messages), (long.len(), 128));
    let (whole, messages) = fetched(&mut world, peer(3), 0, None, &long);
    assert_eq!((whole.len(), messages), (long.len(), 9), "one message to prove it, and all anew");
    // An answer of its own is sent twice.
    world.hear(peer(5), &Asks::get("m/meter/read", 1).bytes());
    world.pass(ACK_AFTER);
    world.one(peer(5));
    world.answer(Some(&long));
    let answer = world.one(peer(5));
    assert!(answer.payload.len() <= 64);
    while world.server.confirmables.all_answers() > 0 {
        world.pass_until_due();
        if let Some((_, again)) = world.said() {
            assert_eq!(again, answer);
            assert!(world.said().is_none());
            world.pass(Duration::from_secs(100));
            assert!(world.said().is_none(), "and no more");
        }
    }
    // The list is cut, too.
    let many = (0..20).map(|at| entry(&format!("machine{at}"), true, false)).collect();
    world.server.machines(world.now, many);
    let asks = Asks::get(".well-known/core", 1);
    let list = world.ask(peer(4), &asks, None);
    assert!(list.to_bytes().unwrap().len() + 28 <= 3 * (asks.bytes().len() + 28));
    assert!(option(&list, CoapOption::Block2).unwrap() & 8 != 0);
}

#[test]
fn payload_that_comes_in_blocks_is_one_parameter() {
    let (mut world, client) = (World::new(), peer(1));
    let long: Vec<u8> = (0..PARAMETER_BYTES_MAX).map(|at| at as u8).collect();
    let post = |id: u16, block: Block| {
        let end = long.len().min(block.offset() + block.size());
        let value = block.value().to_be_bytes();
        let asks = Asks::new(RequestType::Post, "m/meter/set", id).with(27, &value[1..]);
        asks.payload(&long[block.offset()..end])
    };
    for at in 0..127 {
        let block = Block::at(64 * at, 2, true);
        let reply = world.ask(client, &post(at as u16, block), None);
        assert_eq!(
            (code(&reply).as_str(), option(&reply, CoapOption::Block1)),
            ("2.31", Some(block.value()))
        );
    }
    let last = post(127, Block::at(64 * 127, 2, false));
    world.hear(client, &last.bytes());
    let calls = world.answer(Some(b"done"));
    assert_eq!(calls[0].parameter.as_deref(), Some(&long[..]));
    let reply = world.one(client);
    assert_eq!((code(&reply).as_str(), text(&reply)), ("2.04", "done"));
    assert_eq!(option(&reply, CoapOption::Block1), Some(Block::at(64 * 127, 2, false).value()));
    // The machine is judged before anything is kept.
    let asks = Asks::new(RequestType::Post, "m/safe/set", 200).with(27, &[8]).payload(&[0; 16]);
    assert_eq!(code(&world.ask(client, &asks, None)), "4.03");
    assert_eq!(world.server.uploads.len(), 0);
}

#[test]
fn liar_with_block_numbers_is_told_and_costs_its_own_transfer() {
    let (mut world, liar, honest) = (World::new(), peer(1), peer(2));
    let post = |id: u16, value: &[u8], bytes: usize| {
        Asks::new(RequestType::Post, "m/meter/set", id).with(27, value).payload(&vec![0; bytes])
    };
    assert_eq!(code(&world.ask(honest, &post(1, &[0x08], 16), None)), "2.31");
    for (id, (value, bytes, expected)) in [
        (&[0xFF, 0xFF, 0xFE][..], 1024, "4.08"),
        (&[0x18], 16, "4.08"),
        (&[0x08], 15, "4.00"),
        (&[0x08], 17, "4.00"),
        (&[0x07], 16, "4.00"),
        (&[0x0F], 16, "4.00"),
        (&[0, 0, 0, 8], 16, "4.02"),
        (&[0x00], 17, "4.00"),
    ]
    .into_iter()
    .enumerate()
    {
        let reply = world.ask(liar, &post(id as u16, value, bytes), None);
        assert_eq!(code(&reply), expected, "{value:?} {bytes}");
    }
    // As many transfers as it likes.
    for id in 100..600 {
        let asks = post(id, &[0x08], 16).with(15, &id.to_be_bytes().map(|byte| byte & 0x7F));
        world.ask(liar, &asks, None);
    }
    assert_eq!(world.server.uploads.len(), 1 + TRANSFERS_OF_HOST_MAX);
    // Up to what is too long.
    for at in 0..8 {
        let reply = world.ask(liar, &post(1000 + at, &[(at << 4) as u8 | 0xE], 1024), None);
        assert_eq!(code(&reply), "2.31");
    }
    let reply = world.ask(liar, &post(1008, &[0x8E], 1024), None);
    assert_eq!((code(&reply).as_str(), option(&reply, CoapOption::Size1)), ("4.13", Some(8192)));
    assert_eq!(world.answer(None).len(), 0, "no machine was asked");
    let last = post(2, &[0x10], 3);
    world.hear(honest, &last.bytes());
    assert_eq!(world.answer(Some(b"ok"))[0].parameter.as_ref().unwrap().len(), 19);
    assert_eq!(text(&world.one(honest)), "ok");
}

#[test]
fn storm_of_message_ids_is_bounded_and_costs_no_other_host_its_memory() {
    let (mut world, honest) = (World::new(), peer(1));
    let asks = Asks::get("m/meter/read", 1);
    let first = world.ask(honest, &asks, Some(b"1"));
    for id in 0..=u16::MAX {
        world.hear(peer(2), &Asks::get("m/window/read", id).bytes());
        assert!(world.said().is_some());
    }
    assert_eq!(world.server.exchanges.len(), 1 + EXCHANGES_OF_HOST_MAX);
    assert_eq!(world.ask(honest, &asks, Some(b"2")), first, "it isn't done again");
    for host in 3..=250 {
        for id in 0..10 {
            world.hear(peer(host), &Asks::get("m/window/read", id).bytes());
        }
    }
    while world.said().is_some() {}
    assert_eq!(world.server.exchanges.len(), EXCHANGES_MAX);
    world.pass(EXCHANGE_LIFETIME);
    assert_eq!(world.server.exchanges.len(), 0);
}

#[test]
fn calls_are_bounded_by_host_machine_and_in_all() {
    let (mut world, crowd) = (World::new(), peer(1));
    let entries = (0..40).map(|at| entry(&format!("m{at}"), true, false)).collect();
    world.server.machines(world.now, entries);
    let mut id = 0;
    let mut ask = |world: &mut World, from: SocketAddr, machine: usize| {
        id += 1;
        world.hear(from, &Asks::get(&format!("m/m{machine}/read"), id).bytes());
        world.said().map(|(_, packet)| code(&packet))
    };
    for machine in 0..CALLS_OF_HOST_MAX {
        assert_eq!(ask(&mut world, crowd, machine), None);
    }
    assert_eq!(ask(&mut world, crowd, 30).as_deref(), Some("4.29"));
    for host in 2..=PLACES_OF_MACHINE_MAX as u8 {
        assert_eq!(ask(&mut world, peer(host), 0), None);
    }
    assert_eq!(world.server.calls.len(), CALLS_OF_HOST_MAX + CALLS_OF_MACHINE_MAX - 1);
    assert_eq!(ask(&mut world, peer(99), 0).as_deref(), Some("4.01"));
    let mut host = 100;
    while world.server.asking.len() < CALLS_MAX {
        assert_eq!(ask(&mut world, peer(host), 1 + usize::from(host) % 39), None);
        host += 1;
    }
    assert_eq!(ask(&mut world, peer(200), 39).as_deref(), Some("4.01"));
    while !world.answer(Some(b"1")).is_empty() {}
    while world.said().is_some() {}
    assert_eq!(ask(&mut world, peer(200), 39), None);
    world.answer(Some(b"1"));
    // Answers that a host never acknowledges count for it.
    for machine in 0..CALLS_OF_HOST_MAX {
        ask(&mut world, crowd, machine);
    }
    world.pass(ACK_AFTER);
    world.answer(Some(b"1"));
    while world.said().is_some() {}
    assert_eq!(ask(&mut world, crowd, 30).as_deref(), Some("4.29"));
    assert_eq!(ask(&mut world, peer(201), 30), None);
}

#[test]
fn event_of_an_open_topic_is_told_to_its_observers_one_after_the_other() {
    let (mut world, client) = (World::new(), peer(1));
    let door: Topic = "door".parse().unwrap();
    let observe = Asks::get("e/door", 1).with(6, b"");
    let first = world.ask(client, &observe, None);
    assert_eq!((code(&first).as_str(), first.payload.len()), ("2.05", 0), "nothing yet");
    let begun = option(&first, CoapOption::Observe).unwrap();
    world.server.event(world.now, &door, b"open");
    let told = world.one(client);
    assert_eq!((text(&told), told.get_token()), ("open", &[0, 1][..]));
    assert_eq!(told.header.get_type(), MessageType::Confirmable);
    assert!(option(&told, CoapOption::Observe).unwrap() > begun);
    assert_eq!(option(&told, CoapOption::MaxAge), Some(15 * 60 + 60));
    // Events until it is acknowledged are one.
    for state in [&b"shut"[..], b"open", b"ajar"] {
        world.server.event(world.now, &door, state);
    }
    assert!(world.said().is_none());
    world.acknowledge(client, &told);
    let told = world.one(client);
    assert_eq!(text(&told), "ajar");
    world.acknowledge(client, &told);
    assert!(world.said().is_none());
    // Nothing happens for long: it is told the same.
    let before = world.now;
    while world.server.out.is_empty() {
        world.pass_until_due();
    }
    let again = world.one(client);
    assert_eq!((text(&again), world.now.since(before)), ("ajar", HEARTBEAT));
    // It is over by a reset.
    world.hear(client, &empty_message(Type::Reset, again.header.message_id));
    assert_eq!(world.server.observers.len(), 0);
    world.server.event(world.now, &door, b"open");
    assert!(world.said().is_none());
    let now = world.ask(client, &Asks::get("e/door", 2), None);
    assert_eq!((text(&now), option(&now, CoapOption::Observe)), ("open", None));
    assert_eq!(option(&now, CoapOption::MaxAge), Some(0));
    // Topics that aren't open.
    world.server.event(world.now, &"safe".parse().unwrap(), b"1234");
    assert_eq!(code(&world.ask(client, &Asks::get("e/safe", 3), None)), "4.04");
    // And by a request.
    world.ask(client, &Asks::get("e/door", 1000).with(6, b""), None);
    assert_eq!(world.server.observers.len(), 1);
    let mut end = Asks::get("e/door", 1001).with(6, &[1]);
    end.0.set_token(1000_u16.to_be_bytes().to_vec());
    assert_eq!(option(&world.ask(client, &end, None), CoapOption::Observe), None);
    assert_eq!(world.server.observers.len(), 0);
}

#[test]
fn function_is_called_again_for_its_observers_when_its_machine_publishes_something() {
    let (mut world, one, other) = (World::new(), peer(1), peer(2));
    let lamp: Name = "lamp".parse().unwrap();
    let observe = |id| Asks::get("m/lamp/read", id).with(6, b"").with(15, b"x");
    let first = world.ask(one, &observe(1), Some(b"off"));
    assert!(option(&first, CoapOption::Observe).is_some());
    let second = world.ask(other, &observe(2).with(17, &[50]), Some(b"off"));
    assert_eq!(text(&second), "\"off\"");
    // A machine that publishes nothing has nothing to tell.
    let plain = world.ask(one, &Asks::get("m/meter/read", 3).with(6, b""), Some(b"1"));
    assert_eq!(option(&plain, CoapOption::Observe), None);

    world.pass(Duration::from_secs(1));
    for _ in 0..100 {
        world.server.stirred(world.now, &lamp);
    }
    let calls = world.answer(Some(b"on"));
    assert_eq!((calls.len(), calls[0].parameter.as_deref()), (1, Some(&b"x"[..])));
    let mut told: Vec<_> = std::iter::from_fn(|| world.said()).collect();
    told.sort_by_key(|(to, _)| *to);
    let texts: Vec<_> = told.iter().map(|(to, packet)| (*to, text(packet))).collect();
    assert_eq!(texts, [(one, "on"), (other, "\"on\"")]);
    for (to, packet) in &told {
        world.acknowledge(*to, packet);
    }
    // The same result is no news, and calls are a second apart.
    world.pass_until_due();
    assert_eq!(world.answer(Some(b"on")).len(), 1);
    world.server.stirred(world.now, &lamp);
    assert_eq!(world.answer(Some(b"on")).len(), 0);
    world.pass(Duration::from_secs(1));
    assert_eq!(world.answer(Some(b"on")).len(), 1);
    assert!(world.said().is_none());
    // It is busy, and then not.
    world.pass(Duration::from_secs(1));
    world.server.stirred(world.now, &lamp);
    let call = world.server.call().unwrap();
    let busy = Err(NoAnswer::Failed(NoResult::Busy));
    world.server.answered(world.now, call.number, busy);
    assert!(world.said().is_none());
    world.pass(AGAIN);
    assert_eq!(world.answer(Some(b"off")).len(), 1);
    let told: Vec<_> = std::iter::from_fn(|| world.said()).collect();
    assert_eq!(told.len(), 2);
    for (to, packet) in &told {
        world.acknowledge(*to, packet);
    }
    // Its lease lets nobody in any more.
    world.server.machines(world.now, vec![entry("lamp", false, true)]);
    let over: Vec<_> = std::iter::from_fn(|| world.said()).collect();
    assert!(over.iter().all(|(_, packet)| code(packet) == "4.03"), "{over:?}");
    assert_eq!((over.len(), world.server.observers.len()), (2, 0));
    assert!(world.server.observers.functions().is_empty());
}

#[test]
fn event_between_a_call_and_its_answer_is_not_missed() {
    let (mut world, client) = (World::new(), peer(1));
    let lamp: Name = "lamp".parse().unwrap();
    world.hear(client, &Asks::get("m/lamp/read", 1).with(6, b"").bytes());
    world.server.stirred(world.now, &lamp);
    world.answer(Some(b"off"));
    assert_eq!(text(&world.one(client)), "off");
    world.pass(Duration::from_secs(1));
    let call = world.server.call().unwrap();
    // And once more while it is called.
    world.server.stirred(world.now, &lamp);
    world.server.answered(world.now, call.number, Ok(Some(b"on".to_vec())));
    let told = world.one(client);
    assert_eq!(text(&told), "on");
    world.acknowledge(client, &told);
    world.pass(Duration::from_secs(1));
    assert_eq!(world.answer(Some(b"on")).len(), 1);
}

#[test]
fn observers_that_never_answer_are_few_and_forgotten() {
    let mut world = World::new();
    let door: Topic = "door".parse().unwrap();
    for id in 0..1000 {
        world.ask(peer(1), &Asks::get("e/door", id).with(6, b""), None);
    }
    assert_eq!(world.server.observers.len(), OBSERVERS_OF_HOST_MAX);
    for host in 2..100 {
        world.ask(peer(host), &Asks::get("e/door", 1).with(6, b""), None);
    }
    assert_eq!(world.server.observers.len(), OBSERVERS_MAX);
    // The last to come have a place: those before may be forged. One that has acknowledged something keeps its own.
    let honest = peer(200);
    world.ask(honest, &Asks::get("e/door", 1).with(6, b""), None);
    world.server.event(world.now, &door, b"ajar");
    let told: Vec<_> = std::iter::from_fn(|| world.said()).collect();
    let (_, told) = told.iter().find(|(to, _)| *to == honest).expect("it is told");
    world.acknowledge(honest, told);
    for host in 2..100 {
        for id in 2..10 {
            world.ask(peer(host), &Asks::get("e/door", id).with(6, b""), None);
        }
    }
    assert_eq!(world.server.observers.len(), OBSERVERS_MAX);
    assert!(
        world
            .server
            .observers
            .of(&Subject::Topic(door.clone()))
            .iter()
            .any(|number| { world.server.observers.get(*number).unwrap().wish.key.peer == honest })
    );
    world.hear(honest, &{
        let mut end = Asks::get("e/door", 2).with(6, &[1]);
        end.0.set_token(1_u16.to_be_bytes().to_vec());
        end.bytes()
    });
    world.one(honest);
    // None of the others answers.
    while world.server.confirmables.due_at().is_some() {
        world.pass_until_due();
    }
    while world.said().is_some() {}
    let (mut sent, begun) = (0, world.now);
    world.server.event(world.now, &door, b"open");
    while world.server.observers.len() > 0 {
        world.pass_until_due();
        world.server.event(world.now, &door, b"shut");
        sent += std::iter::from_fn(|| world.said()).count();
    }
    assert!(world.now.since(begun) < Duration::from_secs(100), "{:?}", world.now.since(begun));
    assert_eq!(world.server.observers.len(), 0);
    // Each observer of a host after the other, and each told twice.
    assert!(sent <= 2 * OBSERVERS_MAX, "{sent}");
    // Of many topics.
    for number in 0..100_u16 {
        let path = format!("e/room.{number}");
        world.ask(
            peer(1 + (number % 100) as u8),
            &Asks::get(&path, 5000 + number).with(6, b""),
            None,
        );
    }
    assert_eq!(world.server.observers.len(), SUBJECTS_MAX);
}

#[test]
fn notification_longer_than_a_block_is_fetched() {
    let (mut world, client) = (World::new(), peer(1));
    world.prove(client);
    let room: Topic = "room.attic".parse().unwrap();
    world.ask(client, &Asks::get("e/room.attic", 1).with(6, b"").with(23, &[2]), None);
    world.server.event(world.now, &room, &[b'x'; 100]);
    let told = world.one(client);
    assert_eq!((told.payload.len(), option(&told, CoapOption::Block2)), (64, Some(0x0A)));
    world.acknowledge(client, &told);
    let rest = world.ask(client, &Asks::get("e/room.attic", 2).with(23, &[0x12]), None);
    assert_eq!((rest.payload.len(), option(&rest, CoapOption::Block2)), (36, Some(0x12)));
    assert_eq!(rest.get_first_option(CoapOption::ETag), told.get_first_option(CoapOption::ETag));
}

proptest! {
    #[test]
    fn whatever_comes_in_any_order_is_bounded(steps in proptest::collection::vec(
        (0_u8..6, 0_u8..8, any::<u16>(), proptest::collection::vec(any::<u8>(), 0..40)), 0..100
    )) {
        let mut world = World::new();
        let paths = ["m/meter/read", "m/lamp/read", "m/lamp/long", "e/door", ".well-known/core", "m/safe/x"];
        for (act, host, number, bytes) in steps {
            let from = peer(host);
            let path = paths[usize::from(number) % paths.len()];
            match act {
                0 => world.hear(from, &bytes),
                1 => world.hear(from, &Asks::get(path, number).with(6, b"").with(23, &bytes[..bytes.len().min(3)]).bytes()),
                2 => {
                    let asks = Asks::new(RequestType::Post, path, number).with(27, &bytes[..bytes.len().min(3)]);
                    world.hear(from, &asks.payload(&bytes).bytes());
                }
                3 => {
                    let result = (number % 3 > 0).then(|| bytes.repeat(usize::from(number % 200)));
                    world.answer(result.as_deref());
                }
                4 => {
                    world.server.event(world.now, &"door".parse().unwrap(), &bytes);
                    world.server.stirred(world.now, &"lamp".parse().unwrap());
                }
                _ => world.pass(Duration::from_millis(u64::from(number))),
            }
            while let Some((to, message)) = world.server.transmit() {
                prop_assert!(message.len() <= crate::message::MESSAGE_BYTES_MAX);
                let packet = Packet::from_bytes(&message).unwrap();
                // Half of them answer.
                if packet.header.get_type() == MessageType::Confirmable && number % 2 == 0 {
                    world.acknowledge(to, &packet);
                }
            }
            prop_assert!(world.server.asking.len() <= CALLS_MAX + SUBJECTS_MAX);
            prop_assert!(world.server.exchanges.len() <= EXCHANGES_MAX);
            prop_assert!(world.server.confirmables.len() <= CONFIRMABLES_MAX + OBSERVERS_MAX);
            prop_assert!(world.server.downloads.len() <= TRANSFERS_MAX);
            prop_assert!(world.server.observers.len() <= OBSERVERS_MAX);
            prop_assert!(world.server.poll_at().is_none_or(|at| at > world.now), "it rests");
        }
    }
}
