//! A TLS client with X25519, P-256 and ChaCha20-Poly1305, which checks a server's chain.
#![no_std]
#![no_main]

use tenure_crypto::{Group, Software};
use tenure_hal::{Entropy, EntropyError};
use tenure_size::{keep, probe, unknown, unknown_bytes};
use tenure_tls::x509::{Anchor, ServerName, UnixTime};
use tenure_tls::{Client, ClientConfig, Now, Suite, Trust};

struct Unknown;

impl Entropy for Unknown {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntropyError> {
        bytes.fill(unknown::<1>()[0]);
        Ok(())
    }
}

probe!({
    let anchors = [Anchor {
        name: unknown_bytes(),
        key_info: unknown_bytes(),
        name_constraints: Some(unknown_bytes()),
    }];
    let config = ClientConfig {
        server_name: ServerName::Ipv4(unknown()),
        trust: Trust::Anchors { anchors: &anchors, without_date: &[] },
        suites: &[Suite::ChaCha20Poly1305Sha256],
        groups: &[Group::X25519],
        application_protocols: &[],
        identity: None,
        pre_shared_key: None,
        early_data: false,
        handshake_ms_max: 10_000,
    };
    let now = Now { uptime_ms: 0, date: Some(UnixTime(i64::from_le_bytes(unknown()))) };
    let mut buffer = unknown::<2048>();
    let mut security = Software::new(Unknown);
    if let Ok(mut client) = Client::new(&mut buffer, &config, &now) {
        client.feed(unknown_bytes());
        keep(client.poll(&mut security, &now).is_ok());
        keep(client.send(&mut security, unknown_bytes()).is_ok());
        keep(client.data().len());
        client.close(&mut security);
        keep(client.output().len());
    }
});
