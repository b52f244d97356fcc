//! The same hostile bytes to ours and to rustls: the same verdict, accepted or an alert, but where a rule is known in
//! which one of both is stricter.

mod common;

use std::sync::Arc;

use common::hello::Hello;
use common::rustls_peer::*;
use common::{now, security};
use rustls::ServerConnection;
use tenure_crypto::Group;
use tenure_hal::SplitMix64;
use tenure_tls::{Client, Server, ServerConfig};

const GROUPS: [Group; 3] = [Group::X25519, Group::Secp256r1, Group::Secp384r1];

/// A server's reply to a first message: an answer, an alert, or nothing yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Answer,
    Alert,
    Waits,
}

impl Verdict {
    fn of(output: &[u8]) -> Self {
        match output.first() {
            None => Self::Waits,
            Some(22) => Self::Answer,
            Some(21) => Self::Alert,
            Some(other) => panic!("a record of type {other} first"),
        }
    }
}

/// Both servers, and a first message that both answer.
struct Servers<'a> {
    ours: ServerConfig<'a>,
    theirs: Arc<rustls::ServerConfig>,
    hello: Vec<u8>,
}

impl Servers<'_> {
    /// The verdicts of ours and of theirs on `bytes`.
    fn verdicts(&self, bytes: &[u8]) -> (Verdict, Verdict) {
        let mut buffer = [0; 20_000];
        let mut ours = Server::new(&mut buffer, &self.ours, None, &now()).expect("a server");
        ours.feed(bytes);
        let _ = ours.poll(&mut security(), &now());
        let mut theirs = ServerConnection::new(self.theirs.clone()).expect("a server");
        let mut rest = bytes;
        while !rest.is_empty() {
            if theirs.read_tls(&mut rest).is_err() || theirs.process_new_packets().is_err() {
                break;
            }
        }
        let mut output = Vec::new();
        let _ = theirs.write_tls(&mut output);
        (Verdict::of(ours.output()), Verdict::of(&output))
    }
}

fn with_servers(check: impl FnOnce(&Servers<'_>)) {
    let world = world(KINDS[0]);
    let theirs = Arc::new(world.server(provider(None, None), false));
    let mut hello = Vec::new();
    let peer = Arc::new(world.client(provider(None, None), false));
    rustls_client(&peer).write_tls(&mut hello).expect("memory");
    as_server(&world, |config, _| {
        let servers = Servers { ours: ServerConfig { groups: &GROUPS, ..config }, theirs, hello };
        assert_eq!(servers.verdicts(&servers.hello), (Verdict::Answer, Verdict::Answer));
        check(&servers);
    });
}

#[test]
fn first_message_with_a_changed_byte_gets_the_same_verdict_from_both_servers() {
    with_servers(|servers| {
        let hello = &servers.hello;
        let mut found = Vec::new();
        for at in 0..hello.len() {
            for change in [1, 0x80, 0xff] {
                let mut bytes = hello.clone();
                bytes[at] ^= change;
                let (ours, theirs) = servers.verdicts(&bytes);
                let difference = (extension_at(hello, at), ours, theirs);
                if ours != theirs && !KNOWN.contains(&difference) {
                    found.push((at, change, difference));
                }
            }
            let cut = servers.verdicts(&hello[..at]);
            assert_eq!(cut, (Verdict::Waits, Verdict::Waits), "{at} bytes");
        }
        assert!(found.is_empty(), "{found:?} in {hello:02x?}");
    });
}

#[test]
fn first_message_put_together_otherwise_gets_the_same_verdict_from_both_servers() {
    with_servers(|servers| {
        let whole = Hello::parse(&servers.hello);
        assert_eq!(whole.record(), servers.hello, "nothing is lost");
        let mut cases: Vec<(String, Hello)> = Vec::new();
        let mut case = |name: String, change: &dyn Fn(&mut Hello)| {
            let mut hello = whole.clone();
            change(&mut hello);
            cases.push((name, hello));
        };
        for (at, (number, _)) in whole.extensions.iter().enumerate() {
            case(format!("{number} left out"), &|it| drop(it.extensions.remove(at)));
            case(format!("{number} twice"), &|it| it.extensions.push(it.extensions[at].clone()));
            case(format!("{number} first"), &|it| it.extensions.swap(0, at));
            case(format!("{number} last"), &|it| {
                let extension = it.extensions.remove(at);
                it.extensions.push(extension);
            });
            case(format!("{number} empty"), &|it| it.extensions[at].1.clear());
            case(format!("{number} cut by a byte"), &|it| {
                it.extensions[at].1.pop();
            });
            case(format!("{number} with a byte more"), &|it| it.extensions[at].1.push(0));
            case(format!("{number} with its length alone"), &|it| it.extensions[at].1.truncate(2));
        }
        case("all left out".into(), &|it| it.extensions.clear());
        case("in reverse".into(), &|it| it.extensions.reverse());
        case("an unknown extension".into(), &|it| it.extensions.push((0xfafa, vec![1, 2, 3])));
        case("an unknown extension twice".into(), &|it| {
            it.extensions.extend([(0xfafa, vec![]), (0xfafa, vec![])]);
        });
        case("early data without a key".into(), &|it| it.extensions.push((42, vec![])));
        case("a cookie that nobody gave".into(), &|it| it.extensions.push((44, vec![0, 1, 7])));
        case("no session".into(), &|it| it.session.clear());
        case("a session that is too long".into(), &|it| it.session.push(0));
        case("no suites".into(), &|it| it.suites.clear());
        case("half a suite".into(), &|it| it.suites.truncate(it.suites.len() - 1));
        case("one suite that nobody has".into(), &|it| it.suites = vec![0xfa, 0xfa]);
        case("each suite twice".into(), &|it| it.suites.extend(it.suites.clone()));
        case("no compression method".into(), &|it| it.compressions.clear());
        case("compression by choice".into(), &|it| it.compressions.push(1));
        case("compression alone".into(), &|it| it.compressions = vec![1]);
        case("SSL 3.0 by its old name".into(), &|it| it.head[1] = 0);
        case("TLS 1.1 by its old name".into(), &|it| it.head[1] = 2);
        case("TLS 1.3 by its old name".into(), &|it| it.head[1] = 4);
        case("a hundred unknown extensions".into(), &|it| {
            it.extensions.extend((0..100).map(|number| (0xfa00 + number, vec![])));
        });
        for (name, list) in [
            ("no protocol", &[0, 0][..]),
            ("an empty name of a protocol", &[0, 1, 0]),
            ("an empty name of a protocol behind another", &[0, 3, 1, b'a', 0]),
            ("a protocol", &[0, 2, 1, b'a']),
        ] {
            case(name.into(), &|it| it.extensions.insert(0, (16, list.to_vec())));
        }
        for (name, limit) in [
            ("a limit of records that is too small", &[0, 63][..]),
            ("the smallest limit of records", &[0, 64]),
            ("a limit of records with a byte more", &[0, 64, 0]),
        ] {
            case(name.into(), &|it| it.extensions.insert(0, (28, limit.to_vec())));
        }
        let mut found = Vec::new();
        for (name, hello) in &cases {
            let (ours, theirs) = servers.verdicts(&hello.record());
            if ours != theirs && !STRICTER.contains(&(name.as_str(), ours, theirs)) {
                found.push((name, ours, theirs));
            }
        }
        assert!(found.is_empty(), "{found:#?}");
    });
}

/// The first messages of which one end refuses what the other lets pass.
const STRICTER: [(&str, Verdict, Verdict); 12] = [
    // Of TLS 1.2 alone, and not read: extended master secret, stapled OCSP, point formats.
    ("23 with a byte more", Verdict::Answer, Verdict::Alert),
    ("5 empty", Verdict::Answer, Verdict::Alert),
    ("5 cut by a byte", Verdict::Answer, Verdict::Alert),
    ("5 with a byte more", Verdict::Answer, Verdict::Alert),
    ("5 with its length alone", Verdict::Answer, Verdict::Alert),
    ("11 empty", Verdict::Answer, Verdict::Alert),
    ("11 cut by a byte", Verdict::Answer, Verdict::Alert),
    ("11 with a byte more", Verdict::Answer, Verdict::Alert),
    // It must be a copy of what a retry gave (RFC 8446 §4.2.2).
    ("a cookie that nobody gave", Verdict::Alert, Verdict::Answer),
    // That of SSL is refused wherever it stands (RFC 8446 §D.5).
    ("SSL 3.0 by its old name", Verdict::Alert, Verdict::Answer),
    // rustls doesn't read limits of records (RFC 8449 §4).
    ("a limit of records that is too small", Verdict::Alert, Verdict::Answer),
    ("a limit of records with a byte more", Verdict::Alert, Verdict::Answer),
];

#[test]
fn first_message_with_several_changed_bytes_gets_the_same_verdict_from_both_servers() {
    const ROUNDS: u64 = 3_000;
    /// Where the random begins: lengths and versions before it change the meaning of all that follows.
    const BODY: usize = 5 + 4 + 2;
    with_servers(|servers| {
        let hello = &servers.hello;
        // The content of each extension that is judged alike, and what stands before all of them. An extension
        // that becomes another is one that either of both may not know.
        let is_known = |number| KNOWN.iter().any(|(known, _, _)| *known == Some(number));
        let places: Vec<usize> = (BODY..hello.len())
            .filter(|at| match (extension_at(hello, *at), extension_at(hello, at - 4)) {
                (None, _) => true,
                (Some(number), Some(before)) => number == before && !is_known(number),
                (Some(_), None) => false,
            })
            .collect();
        assert!(places.len() > 60, "{} places", places.len());
        for seed in 0..ROUNDS {
            let mut numbers = SplitMix64::new(seed);
            let (mut bytes, mut changes) = (hello.clone(), Vec::new());
            for _ in 0..1 + numbers.number() % 4 {
                let at = places[numbers.number() as usize % places.len()];
                bytes[at] = numbers.number() as u8;
                changes.push((at, extension_at(hello, at), bytes[at]));
            }
            let (ours, theirs) = servers.verdicts(&bytes);
            assert_eq!(ours, theirs, "{changes:?} in {hello:02x?}");
        }
    });
}

/// Both clients before a server of theirs whose flight is bent, in the open and behind the keys.
#[test]
fn servers_flight_with_a_changed_byte_gets_the_same_verdict_from_both_clients() {
    let world = world(KINDS[0]);
    let client = Arc::new(world.client(provider(None, Some(Group::X25519)), false));
    let server = Arc::new(world.server(provider(None, None), false));
    let serve = || ServerConnection::new(server.clone()).expect("a server");
    as_client(&world, |config, _| {
        let config = tenure_tls::ClientConfig { groups: &[Group::X25519], ..config };
        // The verdict on the flight after `bend`, and the flight's length.
        let ours = |bend: &dyn Fn(&mut Vec<u8>)| {
            let mut buffer = [0; 20_000];
            let mut client = Client::new(&mut buffer, &config, &now()).expect("a client");
            let _ = client.poll(&mut security(), &now());
            let mut flight = answer(serve(), client.output());
            client.sent(usize::MAX);
            bend(&mut flight);
            client.feed(&flight);
            let mut security = security();
            let end = loop {
                match client.poll(&mut security, &now()) {
                    Ok(tenure_tls::Event::Idle) => break Verdict::Waits,
                    Ok(tenure_tls::Event::Connected) => break Verdict::Answer,
                    Ok(_) => {}
                    Err(_) => break Verdict::Alert,
                }
            };
            (end, flight.len())
        };
        let theirs = |bend: &dyn Fn(&mut Vec<u8>)| {
            let mut client = rustls_client(&client);
            let mut hello = Vec::new();
            client.write_tls(&mut hello).expect("memory");
            let mut flight = answer(serve(), &hello);
            bend(&mut flight);
            let mut rest = &flight[..];
            while !rest.is_empty() {
                if client.read_tls(&mut rest).is_err() || client.process_new_packets().is_err() {
                    return Verdict::Alert;
                }
            }
            if client.is_handshaking() { Verdict::Waits } else { Verdict::Answer }
        };
        let (whole, length) = ours(&|_| {});
        assert_eq!((whole, theirs(&|_| {})), (Verdict::Answer, Verdict::Answer));
        let mut found = Vec::new();
        // ECDSA signatures in DER differ in length: the last bytes of the flight aren't always there.
        for at in 0..length - 8 {
            // Flights differ in length, and so does what another length of the record means.
            let changes: &[u8] =
                if (PROTECTED + 3..PROTECTED + 5).contains(&at) { &[] } else { &[1, 0x80, 0xff] };
            for change in changes {
                let bend = |flight: &mut Vec<u8>| flight[at] ^= change;
                let verdicts = (ours(&bend).0, theirs(&bend));
                if verdicts.0 != verdicts.1
                    && !KNOWN_IN_FLIGHT.contains(&(at, verdicts.0, verdicts.1))
                {
                    found.push((at, change, verdicts));
                }
            }
            let cut = |flight: &mut Vec<u8>| flight.truncate(at);
            assert_eq!((ours(&cut).0, theirs(&cut)), (Verdict::Waits, Verdict::Waits), "{at}");
        }
        assert!(found.is_empty(), "{found:#?}");
    });
}

/// The places of the server's flight in which one end is stricter.
///
/// The header of the first protected record: its tag covers the header as it came (RFC 8446 §5.2), while rustls puts what
/// should stand there in its place.
const KNOWN_IN_FLIGHT: [(usize, Verdict, Verdict); 2] = [
    (PROTECTED, Verdict::Alert, Verdict::Answer),
    (PROTECTED + 2, Verdict::Alert, Verdict::Answer),
];
/// The place of that record behind `ServerHello` with a key of X25519 and `change_cipher_spec`.
const PROTECTED: usize = 5 + 122 + 6;

/// All that `server` sends after `hello`.
fn answer(mut server: ServerConnection, mut hello: &[u8]) -> Vec<u8> {
    server.read_tls(&mut hello).expect("memory");
    server.process_new_packets().expect("a first message");
    let mut flight = Vec::new();
    while server.wants_write() {
        server.write_tls(&mut flight).expect("memory");
    }
    flight
}

/// The extension of the first message in which one end is stricter, and what ours and theirs say.
const KNOWN: [(Option<u16>, Verdict, Verdict); 8] = [
    // A legacy_version of SSL 3.0 or less (RFC 8446 §D.5).
    (None, Verdict::Alert, Verdict::Answer),
    // A first message shorter than its fields, with more behind it: rustls waits for the rest of that.
    (None, Verdict::Alert, Verdict::Waits),
    // A share in a group that isn't listed is refused, as RFC 8446 §4.2.8 allows.
    (Some(10), Verdict::Alert, Verdict::Answer),
    (Some(51), Verdict::Alert, Verdict::Answer),
    // Its number becomes that of max_fragment_length, which rustls' server doesn't read.
    (Some(0), Verdict::Alert, Verdict::Answer),
    // Point formats and stapled OCSP are not read: the first means nothing, the second isn't there.
    (Some(11), Verdict::Answer, Verdict::Alert),
    (Some(5), Verdict::Answer, Verdict::Alert),
    // A signature algorithm for TLS 1.2 alone.
    (Some(13), Verdict::Alert, Verdict::Answer),
];

/// The number of the extension that the byte at `at` is in.
fn extension_at(hello: &[u8], at: usize) -> Option<u16> {
    let number = |at: usize| u16::from_be_bytes([hello[at], hello[at + 1]]);
    let session = 5 + 4 + 2 + 32;
    let suites = session + 1 + usize::from(hello[session]);
    let compressions = suites + 2 + usize::from(number(suites));
    let mut start = compressions + 1 + usize::from(hello[compressions]) + 2;
    while start < hello.len() {
        let end = start + 4 + usize::from(number(start + 2));
        if (start..end).contains(&at) {
            return Some(number(start));
        }
        start = end;
    }
    None
}
