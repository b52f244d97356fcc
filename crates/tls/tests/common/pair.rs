//! Our client and our server, over nothing but memory.

use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use tenure_crypto::{PrivateKey, Software};
use tenure_tls::x509::{Anchor, UnixTime};
use tenure_tls::{
    Client, ClientConfig, EarlyDataGuard, Error, Event, ExternalKey, Identity, Now, Server,
    ServerConfig, Suite,
};

use super::{GROUPS, System, security};

pub(crate) const NOW: Now = Now { uptime_ms: 1_000, date: Some(UnixTime(1_800_000_000)) };

/// An authority, and an end with a P-256 key that it vouches for, as server and as client.
pub(crate) struct World {
    pub(crate) root: Vec<u8>,
    pub(crate) leaf: Vec<u8>,
    pub(crate) key: [u8; 32],
    pub(crate) key_info: Vec<u8>,
}

pub(crate) fn world() -> World {
    let mut root_params = CertificateParams::default();
    root_params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let root = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::new(vec!["server.test".into()]).expect("a name");
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    let leaf = KeyPair::generate().expect("a key");
    let by_root = Issuer::from_params(&root_params, &root);
    // PKCS#8 of a P-256 key: the scalar stands at a fixed place.
    let pkcs8 = leaf.serialize_der();
    let key = pkcs8[36..68].try_into().expect("32 bytes");
    let key_info = rcgen::PublicKeyData::subject_public_key_info(&leaf);
    World {
        root: root_params.self_signed(&root).expect("a root").der().to_vec(),
        leaf: params.signed_by(&leaf, &by_root).expect("a certificate").der().to_vec(),
        key,
        key_info,
    }
}

pub(crate) const EXTERNAL: ExternalKey<'_> = ExternalKey { identity: b"device 7", key: &[7; 32] };

pub(crate) fn client_config<'a>(anchors: &'a [Anchor<'a>]) -> ClientConfig<'a> {
    ClientConfig { handshake_ms_max: 1_000, ..super::client_config(anchors) }
}

pub(crate) fn server_config<'a>(identities: &'a [Identity<'a>]) -> ServerConfig<'a> {
    ServerConfig {
        identities,
        suites: Suite::ALL,
        groups: &GROUPS,
        application_protocols: &[],
        client_trust: None,
        client_must_prove: false,
        pre_shared_keys: &[],
        ticket_key: None,
        early_data_bytes_max: 0,
        handshake_ms_max: 1_000,
    }
}

/// Both ends, and how many bytes cross at once.
pub(crate) struct Pair<'c> {
    pub(crate) client: Client<'c, 'c>,
    pub(crate) server: Server<'c, 'c>,
    pub(crate) security: Software<System>,
    pub(crate) step: usize,
}

/// The state of an end when nothing moves any more.
pub(crate) type End = Result<Event, Error>;

impl Pair<'_> {
    /// Moves bytes until both ends wait, and returns what each came to.
    pub(crate) fn run(&mut self) -> (End, End) {
        loop {
            let client = skip(|| self.client.poll(&mut self.security, &NOW));
            let server = skip(|| self.server.poll(&mut self.security, &NOW));
            let mut moved = 0;
            let length = self.client.output().len().min(self.step);
            let taken = self.server.feed(&self.client.output()[..length]);
            self.client.sent(taken);
            moved += taken;
            let length = self.server.output().len().min(self.step);
            let taken = self.client.feed(&self.server.output()[..length]);
            self.server.sent(taken);
            moved += taken;
            if moved == 0 {
                return (client, server);
            }
        }
    }

    pub(crate) fn connect(&mut self) {
        let ends = self.run();
        assert!(self.client.is_connected() && self.server.is_connected(), "{ends:?}");
    }

    /// Sends `bytes` to the server and back.
    pub(crate) fn echo(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        let (mut received, mut returned) = (Vec::new(), Vec::new());
        while received.len() < bytes.len() {
            let sent = self.client.send(&mut self.security, rest).expect("connected");
            rest = &rest[sent..];
            let _ = self.run();
            returned.extend_from_slice(self.server.data());
            self.server.consume(usize::MAX);
            let back = self.server.send(&mut self.security, &returned).expect("connected");
            returned.drain(..back);
            let _ = self.run();
            let length = self.client.data().len();
            received.extend_from_slice(self.client.data());
            self.client.consume(length);
            assert!(sent + back + length > 0, "nothing moves");
        }
        assert_eq!(received, bytes);
    }
}

/// Polls past what only informs.
pub(crate) fn skip(mut poll: impl FnMut() -> End) -> End {
    loop {
        match poll() {
            Ok(Event::Certificate | Event::Connected) => {}
            other => return other,
        }
    }
}

/// Runs `check` on a pair that is not connected yet.
pub(crate) fn with_pair(
    client: &ClientConfig<'_>,
    server: &ServerConfig<'_>,
    buffers: (usize, usize),
    check: impl FnOnce(&mut Pair<'_>),
) {
    with_guard(client, server, buffers, None, check);
}

pub(crate) fn with_guard(
    client: &ClientConfig<'_>,
    server: &ServerConfig<'_>,
    (client_bytes, server_bytes): (usize, usize),
    guard: Option<&EarlyDataGuard>,
    check: impl FnOnce(&mut Pair<'_>),
) {
    let (mut one, mut other) = (vec![0; client_bytes], vec![0; server_bytes]);
    let mut pair = Pair {
        client: Client::new(&mut one, client, &NOW).expect("a client"),
        server: Server::new(&mut other, server, guard, &NOW).expect("a server"),
        security: security(),
        step: usize::MAX,
    };
    check(&mut pair);
}

pub(crate) const LARGE: (usize, usize) = (20_000, 20_000);

/// Runs `check` with a world's two configurations.
pub(crate) fn in_world(check: impl FnOnce(&ClientConfig<'_>, &ServerConfig<'_>, &World)) {
    let world = world();
    let anchors = [Anchor::from_certificate(&world.root).expect("an anchor")];
    let chain = [&world.leaf[..]];
    let identities = [Identity { chain: &chain, key: PrivateKey::P256(&world.key) }];
    check(&client_config(&anchors), &server_config(&identities), &world);
}

/// The first message of a client.
pub(crate) fn hello_of(client: &mut Client<'_, '_>) -> Vec<u8> {
    client.poll(&mut security(), &NOW).expect("a first message");
    let hello = client.output().to_vec();
    client.sent(hello.len());
    hello
}

/// A server's verdict on `hello`, and what it sends.
pub(crate) fn serve(config: &ServerConfig<'_>, hello: &[u8]) -> (End, Vec<u8>) {
    let mut buffer = vec![0; 20_000];
    let mut server = Server::new(&mut buffer, config, None, &NOW).expect("a server");
    assert_eq!(server.feed(hello), hello.len());
    let end = server.poll(&mut security(), &NOW);
    (end, server.output().to_vec())
}

/// A ticket that a client of `client` got from `server`: its name, its key and the number added to its age.
pub(crate) fn ticket(
    client: &ClientConfig<'_>,
    server: &ServerConfig<'_>,
    guard: &EarlyDataGuard,
) -> (Vec<u8>, Vec<u8>, u32) {
    let mut kept = None;
    with_guard(client, server, LARGE, Some(guard), |pair| {
        pair.connect();
        pair.server.send_ticket(&mut pair.security, &NOW).expect("connected");
        assert_eq!(pair.run().0, Ok(Event::Ticket));
        let ticket = pair.client.ticket().expect("a ticket");
        kept = Some((ticket.identity.to_vec(), ticket.key.to_vec(), ticket.age_add));
    });
    kept.expect("a ticket")
}
