//! Interoperation with rustls, in memory: its server and our client, our server and its client.

mod common;

use std::io::{Read as _, Write as _};
use std::sync::Arc;

use common::{System, client_config, now, security};
use rcgen::{
    CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, PKCS_ECDSA_P256_SHA256,
    PKCS_ECDSA_P384_SHA384, PKCS_ED25519, SignatureAlgorithm,
};
use rustls::crypto::{CryptoProvider, SupportedKxGroup, ring};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{
    ClientConnection, RootCertStore, ServerConnection, SupportedCipherSuite, version::TLS13,
};
use tenure_crypto::{Group, Software};
use tenure_tls::x509::{Anchor, parse_private_key};
use tenure_tls::{
    Client, ClientConfig, EarlyDataGuard, Error, Event, Identity, Now, PreSharedKey, Server,
    ServerConfig, Suite, TicketKey, Trust,
};

const GROUPS: [Group; 3] = [Group::X25519, Group::Secp256r1, Group::Secp384r1];
const KINDS: [&SignatureAlgorithm; 3] =
    [&PKCS_ECDSA_P256_SHA256, &PKCS_ECDSA_P384_SHA384, &PKCS_ED25519];

/// An authority, and an end that it vouches for.
struct World {
    root: Vec<u8>,
    leaf: Vec<u8>,
    key: Vec<u8>,
}

fn world(kind: &'static SignatureAlgorithm) -> World {
    let mut root_params = CertificateParams::default();
    root_params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let root = KeyPair::generate_for(kind).expect("a key");
    let mut params = CertificateParams::new(vec!["server.test".into()]).expect("a name");
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    let leaf = KeyPair::generate_for(kind).expect("a key");
    let by_root = Issuer::from_params(&root_params, &root);
    World {
        root: root_params.self_signed(&root).expect("a root").der().to_vec(),
        leaf: params.signed_by(&leaf, &by_root).expect("a certificate").der().to_vec(),
        key: leaf.serialize_der(),
    }
}

impl World {
    fn roots(&self) -> Arc<RootCertStore> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(self.root.clone())).expect("a root");
        Arc::new(roots)
    }

    fn chain(&self) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
        let key = PrivateKeyDer::try_from(self.key.clone()).expect("a key");
        (vec![CertificateDer::from(self.leaf.clone())], key)
    }

    /// rustls' server with `provider`, which asks for certificates if `asks`.
    fn server(&self, provider: CryptoProvider, asks: bool) -> rustls::ServerConfig {
        let (chain, key) = self.chain();
        let builder = rustls::ServerConfig::builder_with_provider(provider.clone().into())
            .with_protocol_versions(&[&TLS13])
            .expect("versions");
        let builder = if asks {
            let verifier =
                WebPkiClientVerifier::builder_with_provider(self.roots(), provider.into());
            builder.with_client_cert_verifier(verifier.build().expect("a verifier"))
        } else {
            builder.with_no_client_auth()
        };
        builder.with_single_cert(chain, key).expect("a configuration")
    }

    /// rustls' client with `provider`, which shows a certificate if `knows_itself`.
    fn client(&self, provider: CryptoProvider, knows_itself: bool) -> rustls::ClientConfig {
        let builder = rustls::ClientConfig::builder_with_provider(provider.into())
            .with_protocol_versions(&[&TLS13])
            .expect("versions")
            .with_root_certificates(self.roots());
        if knows_itself {
            let (chain, key) = self.chain();
            builder.with_client_auth_cert(chain, key).expect("a configuration")
        } else {
            builder.with_no_client_auth()
        }
    }
}

/// rustls with these suites and groups alone; all, if there are none.
fn provider(suite: Option<Suite>, group: Option<Group>) -> CryptoProvider {
    use rustls::crypto::ring::{cipher_suite as suites, kx_group as groups};
    let mut provider = ring::default_provider();
    if let Some(suite) = suite {
        let only: SupportedCipherSuite = match suite {
            Suite::ChaCha20Poly1305Sha256 => suites::TLS13_CHACHA20_POLY1305_SHA256,
            Suite::Aes128GcmSha256 => suites::TLS13_AES_128_GCM_SHA256,
            _ => suites::TLS13_AES_256_GCM_SHA384,
        };
        provider.cipher_suites = vec![only];
    }
    if let Some(group) = group {
        let only: &dyn SupportedKxGroup = match group {
            Group::X25519 => groups::X25519,
            Group::Secp256r1 => groups::SECP256R1,
            _ => groups::SECP384R1,
        };
        provider.kx_groups = vec![only];
    }
    provider
}

/// What both of rustls' ends and both of ours do, so that one loop moves bytes between them.
trait Ours {
    fn step(&mut self, security: &mut Software<System>, now: &Now) -> Result<Event, Error>;
    fn take_in(&mut self, bytes: &[u8]) -> usize;
    fn out(&mut self) -> Vec<u8>;
    fn read(&mut self) -> Vec<u8>;
}

macro_rules! ours {
    ($end:ident) => {
        impl Ours for $end<'_, '_> {
            fn step(&mut self, security: &mut Software<System>, now: &Now) -> Result<Event, Error> {
                self.poll(security, now)
            }

            fn take_in(&mut self, bytes: &[u8]) -> usize {
                self.feed(bytes)
            }

            fn out(&mut self) -> Vec<u8> {
                let bytes = self.output().to_vec();
                self.sent(bytes.len());
                bytes
            }

            fn read(&mut self) -> Vec<u8> {
                let data = self.data().to_vec();
                self.consume(data.len());
                data
            }
        }
    };
}
ours!(Client);
ours!(Server);

/// What our end came to: its last event, what it received, how many certificates it saw.
#[derive(Debug, Default)]
struct Seen {
    data: Vec<u8>,
    certificates: usize,
    is_closed: bool,
}

/// Moves bytes until nothing moves, and returns what ours saw; `see` is shown each event.
fn run<T>(
    ours: &mut T,
    peer: &mut rustls::Connection,
    see: &mut dyn FnMut(&T, Event),
) -> Result<Seen, String>
where
    T: Ours,
{
    let (mut security, now) = (security(), now());
    let (mut seen, mut to_ours) = (Seen::default(), Vec::new());
    loop {
        let mut moved = false;
        loop {
            let event = ours.step(&mut security, &now);
            let bytes = ours.out();
            moved |= !bytes.is_empty();
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                peer.read_tls(&mut rest).expect("memory");
                peer.process_new_packets().map_err(|error| format!("rustls: {error}"))?;
            }
            match event.map_err(|error| format!("ours: {error}"))? {
                Event::Idle => break,
                Event::Data => seen.data.extend(ours.read()),
                Event::Certificate => seen.certificates += 1,
                Event::PeerClosed => {
                    seen.is_closed = true;
                    break;
                }
                event => see(ours, event),
            }
        }
        while peer.wants_write() {
            peer.write_tls(&mut to_ours).expect("memory");
        }
        let taken = ours.take_in(&to_ours);
        to_ours.drain(..taken);
        if !moved && taken == 0 {
            return Ok(seen);
        }
    }
}

fn ignore<T>(_: &T, _: Event) {}

fn received(peer: &mut rustls::Connection) -> Vec<u8> {
    let mut bytes = vec![0; 65_536];
    let mut length = 0;
    while let Ok(more @ 1..) = peer.reader().read(&mut bytes[length..]) {
        length += more;
    }
    bytes.truncate(length);
    bytes
}

fn rustls_server(config: rustls::ServerConfig) -> rustls::Connection {
    ServerConnection::new(Arc::new(config)).expect("a server").into()
}

fn rustls_client(config: &Arc<rustls::ClientConfig>) -> rustls::Connection {
    let name = "server.test".try_into().expect("a name");
    ClientConnection::new(config.clone(), name).expect("a client").into()
}

/// Sends something both ways, large enough for several records, and has the peer change its keys.
fn converse<T: Ours>(
    ours: &mut T,
    peer: &mut rustls::Connection,
    send: impl Fn(&mut T, &[u8]) -> usize,
) {
    const SAID: &[u8] = &[7; 3_000];
    assert_eq!(send(ours, SAID), SAID.len());
    run(ours, peer, &mut ignore).expect("data");
    assert_eq!(received(peer), SAID);
    peer.refresh_traffic_keys().expect("a KeyUpdate");
    peer.writer().write_all(&[9; 40_000]).expect("memory");
    let seen = run(ours, peer, &mut ignore).expect("data under new keys");
    assert_eq!(seen.data, [9; 40_000]);
    // The answer to the peer's KeyUpdate is used.
    assert_eq!(send(ours, SAID), SAID.len());
    run(ours, peer, &mut ignore).expect("data under new keys");
    assert_eq!(received(peer), SAID);
    peer.send_close_notify();
    assert!(run(ours, peer, &mut ignore).expect("a close").is_closed);
}

/// Runs `check` with our client's configuration for `world`.
fn as_client(world: &World, check: impl FnOnce(ClientConfig<'_>, Identity<'_>)) {
    let anchors = [Anchor::from_certificate(&world.root).expect("an anchor")];
    let chain = [&world.leaf[..]];
    let key = parse_private_key(&world.key).expect("a key");
    check(client_config(&anchors), Identity { chain: &chain, key });
}

/// Runs `check` with our server's configuration for `world`.
fn as_server(world: &World, check: impl FnOnce(ServerConfig<'_>, Trust<'_>)) {
    let anchors = [Anchor::from_certificate(&world.root).expect("an anchor")];
    let chain = [&world.leaf[..]];
    let key = parse_private_key(&world.key).expect("a key");
    let config = ServerConfig {
        identities: &[Identity { chain: &chain, key }],
        suites: Suite::ALL,
        groups: &common::GROUPS,
        application_protocols: &[],
        client_trust: None,
        client_must_prove: false,
        pre_shared_keys: &[],
        ticket_key: None,
        early_data_bytes_max: 0,
        handshake_ms_max: 10_000,
    };
    check(config, Trust::Anchors { anchors: &anchors, without_date: &[] });
}

fn send_as_client(client: &mut Client<'_, '_>, bytes: &[u8]) -> usize {
    client.send(&mut security(), bytes).expect("connected")
}

fn send_as_server(server: &mut Server<'_, '_>, bytes: &[u8]) -> usize {
    server.send(&mut security(), bytes).expect("connected")
}

#[test]
fn every_suite_and_group_carries_data_with_their_server() {
    let world = world(KINDS[0]);
    as_client(&world, |config, _| {
        for suite in Suite::ALL {
            for group in GROUPS {
                let mut peer = rustls_server(world.server(provider(Some(*suite), None), false));
                let groups = [group];
                let config = ClientConfig { groups: &groups, ..config };
                let mut buffer = [0; 20_000];
                let mut client = Client::new(&mut buffer, &config, &now()).expect("a client");
                let seen = run(&mut client, &mut peer, &mut ignore);
                let seen = seen.unwrap_or_else(|error| panic!("{suite:?} {group:?}: {error}"));
                assert_eq!(seen.certificates, 1);
                assert_eq!((client.suite(), client.group()), (Some(*suite), Some(group)));
                converse(&mut client, &mut peer, send_as_client);
            }
        }
    });
}

#[test]
fn every_suite_and_group_carries_data_with_their_client() {
    let world = world(KINDS[0]);
    as_server(&world, |config, _| {
        for suite in Suite::ALL {
            for group in GROUPS {
                let peer = Arc::new(world.client(provider(Some(*suite), Some(group)), false));
                let mut peer = rustls_client(&peer);
                let mut buffer = [0; 20_000];
                let server = Server::new(&mut buffer, &config, None, &now());
                let mut server = server.expect("a server");
                let seen = run(&mut server, &mut peer, &mut ignore);
                seen.unwrap_or_else(|error| panic!("{suite:?} {group:?}: {error}"));
                assert_eq!((server.suite(), server.group()), (Some(*suite), Some(group)));
                converse(&mut server, &mut peer, send_as_server);
            }
        }
    });
}

#[test]
fn another_group_is_agreed_on_by_a_retry_both_ways() {
    let world = world(KINDS[0]);
    as_client(&world, |config, _| {
        let only = provider(None, Some(Group::Secp384r1));
        let mut peer = rustls_server(world.server(only, false));
        let mut buffer = [0; 20_000];
        let mut client = Client::new(&mut buffer, &config, &now()).expect("a client");
        run(&mut client, &mut peer, &mut ignore).expect("a connection");
        assert_eq!(client.group(), Some(Group::Secp384r1));
        converse(&mut client, &mut peer, send_as_client);
    });
    as_server(&world, |config, _| {
        let config = ServerConfig { groups: &[Group::Secp384r1], ..config };
        let mut peer = rustls_client(&Arc::new(world.client(provider(None, None), false)));
        let mut buffer = [0; 20_000];
        let mut server = Server::new(&mut buffer, &config, None, &now()).expect("a server");
        run(&mut server, &mut peer, &mut ignore).expect("a connection");
        assert_eq!(server.group(), Some(Group::Secp384r1));
        converse(&mut server, &mut peer, send_as_server);
    });
}

#[test]
fn both_ends_prove_who_they_are_by_every_kind_of_key() {
    for kind in KINDS {
        let world = world(kind);
        as_client(&world, |config, identity| {
            let config = ClientConfig { identity: Some(identity), ..config };
            let mut peer = rustls_server(world.server(provider(None, None), true));
            let mut buffer = [0; 20_000];
            let mut client = Client::new(&mut buffer, &config, &now()).expect("a client");
            run(&mut client, &mut peer, &mut ignore).expect("a connection");
            assert_eq!(peer.peer_certificates().map(<[_]>::len), Some(1));
            converse(&mut client, &mut peer, send_as_client);
        });
        as_server(&world, |config, trust| {
            let config =
                ServerConfig { client_trust: Some(trust), client_must_prove: true, ..config };
            let mut peer = rustls_client(&Arc::new(world.client(provider(None, None), true)));
            let mut buffer = [0; 20_000];
            let mut server = Server::new(&mut buffer, &config, None, &now()).expect("a server");
            let seen = run(&mut server, &mut peer, &mut ignore).expect("a connection");
            assert_eq!(seen.certificates, 1);
            converse(&mut server, &mut peer, send_as_server);
        });
    }
}

#[test]
fn protocol_exporter_and_small_records_are_agreed_on_both_ways() {
    let world = world(KINDS[0]);
    as_client(&world, |config, _| {
        let mut theirs = world.server(provider(None, None), false);
        theirs.alpn_protocols = vec![b"mqtt".to_vec()];
        theirs.max_fragment_size = Some(256);
        let mut peer = rustls_server(theirs);
        let config = ClientConfig { application_protocols: &[b"h2", b"mqtt"], ..config };
        let mut buffer = [0; 20_000];
        let mut client = Client::new(&mut buffer, &config, &now()).expect("a client");
        run(&mut client, &mut peer, &mut ignore).expect("a connection");
        assert_eq!(client.application_protocol(), Some(&b"mqtt"[..]));
        let mut exported = [0; 40];
        client.export(b"label", b"context", &mut exported).expect("connected");
        let theirs = peer.export_keying_material([0; 40], b"label", Some(b"context"));
        assert_eq!(theirs.expect("connected"), exported);
        converse(&mut client, &mut peer, send_as_client);
    });
    as_server(&world, |config, _| {
        let mut theirs = world.client(provider(None, None), false);
        theirs.alpn_protocols = vec![b"h2".to_vec(), b"mqtt".to_vec()];
        theirs.max_fragment_size = Some(256);
        let mut peer = rustls_client(&Arc::new(theirs));
        let config = ServerConfig { application_protocols: &[b"mqtt"], ..config };
        let mut buffer = [0; 20_000];
        let mut server = Server::new(&mut buffer, &config, None, &now()).expect("a server");
        run(&mut server, &mut peer, &mut ignore).expect("a connection");
        assert_eq!(peer.alpn_protocol(), Some(&b"mqtt"[..]));
        let mut exported = [0; 40];
        server.export(b"label", b"context", &mut exported).expect("connected");
        let theirs = peer.export_keying_material([0; 40], b"label", Some(b"context"));
        assert_eq!(theirs.expect("connected"), exported);
        converse(&mut server, &mut peer, send_as_server);
    });
}

#[test]
fn ticket_of_their_server_resumes_with_early_data() {
    let world = world(KINDS[0]);
    as_client(&world, |config, _| {
        let mut theirs = world.server(provider(None, None), false);
        theirs.max_early_data_size = 1_000;
        let theirs = Arc::new(theirs);
        let serve = || ServerConnection::new(theirs.clone()).expect("a server");
        let mut peer = serve().into();
        let mut buffer = [0; 20_000];
        let mut client = Client::new(&mut buffer, &config, &now()).expect("a client");
        let mut kept = None;
        run(&mut client, &mut peer, &mut |client, event| {
            if event == Event::Ticket {
                let ticket = client.ticket().expect("a ticket");
                let key = (ticket.identity.to_vec(), ticket.key.to_vec());
                kept = Some((key, ticket.suite, ticket.age_add, ticket.early_data_bytes_max));
            }
        })
        .expect("a connection");
        drop(client);
        let ((identity, key), suite, obfuscated_age, early_data_bytes_max) =
            kept.expect("rustls sends tickets to whoever says how they are used");
        assert_eq!(early_data_bytes_max, 1_000);
        let ticket = PreSharedKey {
            identity: &identity,
            key: &key,
            suite,
            is_external: false,
            obfuscated_age,
            early_data_bytes_max,
        };
        let config = ClientConfig { pre_shared_key: Some(ticket), early_data: true, ..config };
        let mut peer = serve();
        let mut client = Client::new(&mut buffer, &config, &now()).expect("a client");
        let mut security = security();
        client.poll(&mut security, &now()).expect("a first message");
        assert_eq!(client.send(&mut security, b"early").expect("early data"), 5);
        let bytes = client.out();
        peer.read_tls(&mut &bytes[..]).expect("memory");
        peer.process_new_packets().expect("a first message");
        let mut early = [0; 5];
        peer.early_data().expect("taken").read_exact(&mut early).expect("early data");
        assert_eq!(&early, b"early");
        let mut peer = peer.into();
        run(&mut client, &mut peer, &mut ignore).expect("a connection");
        assert!(client.is_resumed());
        assert_eq!(client.took_early_data(), Some(true));
        converse(&mut client, &mut peer, send_as_client);
    });
}

#[test]
fn ticket_of_ours_resumes_their_client_with_early_data() {
    let world = world(KINDS[0]);
    as_server(&world, |config, _| {
        let (mut security, guard) = (security(), EarlyDataGuard::new());
        let ticket_key = TicketKey::generate(&mut security).expect("a key");
        let config =
            ServerConfig { ticket_key: Some(&ticket_key), early_data_bytes_max: 1_000, ..config };
        let mut theirs = world.client(provider(None, None), false);
        theirs.enable_early_data = true;
        let theirs = Arc::new(theirs);
        let mut buffer = [0; 20_000];
        for is_resumed in [false, true] {
            let name = "server.test".try_into().expect("a name");
            let mut peer = ClientConnection::new(theirs.clone(), name).expect("a client");
            if is_resumed {
                let mut early = peer.early_data().expect("a ticket that allows it");
                early.write_all(b"early").expect("memory");
            }
            let mut peer: rustls::Connection = peer.into();
            let server = Server::new(&mut buffer, &config, Some(&guard), &now());
            let mut server = server.expect("a server");
            let seen = run(&mut server, &mut peer, &mut ignore).expect("a connection");
            assert_eq!(server.is_resumed(), is_resumed);
            assert_eq!(seen.data, if is_resumed { &b"early"[..] } else { &[] });
            server.send_ticket(&mut security, &now()).expect("connected");
            run(&mut server, &mut peer, &mut ignore).expect("a ticket");
            converse(&mut server, &mut peer, send_as_server);
        }
    });
}

/// What a server says to a first message: an answer, an alert, or nothing yet.
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

#[test]
fn hostile_first_messages_get_the_same_verdict_from_both_servers() {
    let world = world(KINDS[0]);
    let theirs = Arc::new(world.server(provider(None, None), false));
    let mut hello = Vec::new();
    let peer = Arc::new(world.client(provider(None, None), false));
    rustls_client(&peer).write_tls(&mut hello).expect("memory");
    as_server(&world, |config, _| {
        let config = ServerConfig { groups: &GROUPS, ..config };
        let mut buffer = [0; 20_000];
        let mut ours = |bytes: &[u8]| {
            let mut server = Server::new(&mut buffer, &config, None, &now()).expect("a server");
            server.feed(bytes);
            let _ = server.poll(&mut security(), &now());
            Verdict::of(server.output())
        };
        let theirs = |bytes: &[u8]| {
            let mut peer = ServerConnection::new(theirs.clone()).expect("a server");
            let mut rest = bytes;
            while !rest.is_empty() {
                if peer.read_tls(&mut rest).is_err() || peer.process_new_packets().is_err() {
                    break;
                }
            }
            let mut output = Vec::new();
            let _ = peer.write_tls(&mut output);
            Verdict::of(&output)
        };
        assert_eq!((ours(&hello), theirs(&hello)), (Verdict::Answer, Verdict::Answer));
        let mut found = Vec::new();
        for at in 0..hello.len() {
            for change in [1, 0x80, 0xff] {
                let mut bytes = hello.clone();
                bytes[at] ^= change;
                let verdicts = (ours(&bytes), theirs(&bytes));
                let difference = (extension_at(&hello, at), verdicts.0, verdicts.1);
                if verdicts.0 != verdicts.1 && !KNOWN.contains(&difference) {
                    found.push((at, change, difference));
                }
            }
            let cut = &hello[..at];
            assert_eq!((ours(cut), theirs(cut)), (Verdict::Waits, Verdict::Waits), "{at} bytes");
        }
        assert!(found.is_empty(), "{found:?} in {hello:02x?}");
    });
}

/// The extension of the first message in which one end is stricter, and what ours and theirs say.
const KNOWN: [(Option<u16>, Verdict, Verdict); 8] = [
    // A legacy_version that isn't that of TLS 1.2 (RFC 8446 §4.1.2).
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
