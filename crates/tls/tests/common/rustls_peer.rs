//! rustls as a peer, its worlds, and a loop that moves bytes between it and ours.

use std::io::{Read as _, Write as _};
use std::sync::Arc;

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
    Client, ClientConfig, Error, Event, Identity, Now, Server, ServerConfig, Suite, Trust,
};

use super::{System, client_config, now, security};

pub(crate) const KINDS: [&SignatureAlgorithm; 3] =
    [&PKCS_ECDSA_P256_SHA256, &PKCS_ECDSA_P384_SHA384, &PKCS_ED25519];

/// An authority, and an end that it vouches for.
pub(crate) struct World {
    pub(crate) root: Vec<u8>,
    pub(crate) leaf: Vec<u8>,
    pub(crate) key: Vec<u8>,
}

pub(crate) fn world(kind: &'static SignatureAlgorithm) -> World {
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
    pub(crate) fn roots(&self) -> Arc<RootCertStore> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(self.root.clone())).expect("a root");
        Arc::new(roots)
    }

    pub(crate) fn chain(&self) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
        let key = PrivateKeyDer::try_from(self.key.clone()).expect("a key");
        (vec![CertificateDer::from(self.leaf.clone())], key)
    }

    /// rustls' server with `provider`, which asks for certificates if `asks`.
    pub(crate) fn server(&self, provider: CryptoProvider, asks: bool) -> rustls::ServerConfig {
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
    pub(crate) fn client(
        &self,
        provider: CryptoProvider,
        knows_itself: bool,
    ) -> rustls::ClientConfig {
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
pub(crate) fn provider(suite: Option<Suite>, group: Option<Group>) -> CryptoProvider {
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

/// The operations of both of rustls' ends and both of ours, so that one loop moves bytes between them.
pub(crate) trait Ours {
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

/// The end of our side: its last event, what it received, how many certificates it saw.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) data: Vec<u8>,
    pub(crate) certificates: usize,
    pub(crate) is_closed: bool,
}

/// Moves bytes until nothing moves, and returns what ours saw; `see` is shown each event.
pub(crate) fn run<T>(
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

pub(crate) fn ignore<T>(_: &T, _: Event) {}

pub(crate) fn received(peer: &mut rustls::Connection) -> Vec<u8> {
    let mut bytes = vec![0; 65_536];
    let mut length = 0;
    while let Ok(more @ 1..) = peer.reader().read(&mut bytes[length..]) {
        length += more;
    }
    bytes.truncate(length);
    bytes
}

pub(crate) fn rustls_server(config: rustls::ServerConfig) -> rustls::Connection {
    ServerConnection::new(Arc::new(config)).expect("a server").into()
}

pub(crate) fn rustls_client(config: &Arc<rustls::ClientConfig>) -> rustls::Connection {
    let name = "server.test".try_into().expect("a name");
    ClientConnection::new(config.clone(), name).expect("a client").into()
}

/// Sends something both ways, large enough for several records, and has the peer change its keys.
pub(crate) fn converse<T: Ours>(
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
pub(crate) fn as_client(world: &World, check: impl FnOnce(ClientConfig<'_>, Identity<'_>)) {
    let anchors = [Anchor::from_certificate(&world.root).expect("an anchor")];
    let chain = [&world.leaf[..]];
    let key = parse_private_key(&world.key).expect("a key");
    check(client_config(&anchors), Identity { chain: &chain, key });
}

/// Runs `check` with our server's configuration for `world`.
pub(crate) fn as_server(world: &World, check: impl FnOnce(ServerConfig<'_>, Trust<'_>)) {
    let anchors = [Anchor::from_certificate(&world.root).expect("an anchor")];
    let chain = [&world.leaf[..]];
    let key = parse_private_key(&world.key).expect("a key");
    let config = ServerConfig {
        identities: &[Identity { chain: &chain, key }],
        suites: Suite::ALL,
        groups: &super::GROUPS,
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
