//! A TLS client and a server over a line that the input drives: it bends bytes, makes up its own, drops and
//! repeats them, and changes keys. Records are open if the first byte says so, and all signatures verify then,
//! so that the input reaches the messages of every state, certificates, and tickets. Ends fail with an error
//! or carry what was sent; nothing panics.
#![no_main]
#![forbid(unsafe_code)]

#[path = "tls_chain/plain.rs"]
mod plain;

use libfuzzer_sys::fuzz_target;
use plain::{DATE_S, LEAF, Plain, ROOT};
use tenure_crypto::{Group, PrivateKey, Security, Software};
use tenure_hal::simulated::Sequence;
use tenure_tls::x509::{Anchor, ServerName, UnixTime};
use tenure_tls::{
    Client, ClientConfig, EarlyDataGuard, ExternalKey, Identity, Now, PreSharedKey, Server,
    ServerConfig, Suite, TicketKey, Trust,
};

const NOW: Now = Now { uptime_ms: 1_000, date: Some(UnixTime(DATE_S)) };
const EXTERNAL: ExternalKey<'_> = ExternalKey { identity: b"device 7", key: &[7; 32] };
/// The bytes of each end's buffer.
const BUFFER_BYTES: usize = 4_096;
/// The bytes of a ticket that the input makes up.
const TICKET_BYTES: usize = 75;

/// The meaning of the first byte.
struct Setting {
    has_key: bool,
    is_open: bool,
    asks_client: bool,
    makes_ticket: bool,
    sends_early_data: bool,
}

fuzz_target!(|bytes: &[u8]| {
    let Some((first, rest)) = bytes.split_first() else { return };
    let setting = Setting {
        has_key: first & 1 != 0,
        is_open: first & 2 != 0,
        asks_client: first & 4 != 0,
        makes_ticket: first & 8 != 0,
        sends_early_data: first & 16 != 0,
    };
    if setting.is_open {
        run(&setting, Plain::new(), rest);
    } else {
        run(&setting, Software::new(Sequence(1)), rest);
    }
});

fn run(setting: &Setting, mut security: impl Security, input: &[u8]) {
    let (ticket, input) =
        input.split_at(if setting.makes_ticket { TICKET_BYTES.min(input.len()) } else { 0 });
    let mut input = input.iter().copied();
    let root = [Anchor::from_certificate(ROOT).expect("the anchor")];
    let trust = Trust::Anchors { anchors: &root, without_date: &[] };
    let chain = [LEAF];
    let identity = Identity { chain: &chain, key: PrivateKey::P256(&[7; 32]) };
    let resumed = PreSharedKey {
        identity: if setting.makes_ticket { ticket } else { EXTERNAL.identity },
        key: EXTERNAL.key,
        suite: Suite::ChaCha20Poly1305Sha256,
        is_external: !setting.makes_ticket,
        obfuscated_age: 0,
        early_data_bytes_max: 64,
    };
    let client_config = ClientConfig {
        server_name: ServerName::Dns("server.test"),
        trust,
        suites: Suite::ALL,
        groups: &[Group::X25519],
        application_protocols: &[b"a", b"b"],
        identity: setting.asks_client.then_some(identity),
        pre_shared_key: (setting.has_key || setting.makes_ticket).then_some(resumed),
        early_data: setting.sends_early_data,
        handshake_ms_max: 1_000,
    };
    let ticket_key = TicketKey::from_bytes(&[9; 32]);
    let server_config = ServerConfig {
        identities: &[identity],
        suites: Suite::ALL,
        groups: &[Group::X25519],
        application_protocols: &[b"b"],
        client_trust: setting.asks_client.then_some(trust),
        client_must_prove: false,
        pre_shared_keys: &[EXTERNAL],
        ticket_key: Some(&ticket_key),
        early_data_bytes_max: 64,
        handshake_ms_max: 1_000,
    };
    let guard = EarlyDataGuard::new();
    let mut buffers = [[0; BUFFER_BYTES]; 2];
    let [one, other] = &mut buffers;
    let mut client = Client::new(one, &client_config, &NOW).expect("a client");
    let mut server = Server::new(other, &server_config, Some(&guard), &NOW).expect("a server");
    let mut is_bent = false;
    loop {
        let step = input.next();
        let ends = (client.poll(&mut security, &NOW), server.poll(&mut security, &NOW));
        if server.is_connected() && step == Some(12) {
            let _ = server.send_ticket(&mut security, &NOW);
        }
        let _ = (client.ticket().is_some(), client.certificate().is_some());
        let mut to_server = client.output().to_vec();
        client.sent(to_server.len());
        let mut to_client = server.output().to_vec();
        server.sent(to_client.len());
        is_bent |= bend(step, &mut input, &mut to_server, &mut to_client);
        let moved = server.feed(&to_server) + client.feed(&to_client);
        let _ = client.send(&mut security, b"message");
        if step == Some(10) && client.is_connected() {
            let _ = client.update_keys(&mut security, true);
        }
        client.consume(usize::MAX);
        server.consume(usize::MAX);
        let is_over = ends.0.is_err() || ends.1.is_err() || server.is_connected();
        if step.is_none() && (moved == 0 || is_over) {
            break;
        }
    }
    // Nothing but the input keeps two ends with one key apart. Early data that a server doesn't take is skipped
    // because it can't be opened, which open records can.
    let is_apart = setting.makes_ticket || !setting.has_key;
    let is_misled = setting.is_open && setting.sends_early_data;
    assert!(is_bent || is_apart || is_misled || server.is_connected());
}

/// Does what `step` says to what is under way, and returns whether that changed it.
fn bend(
    step: Option<u8>,
    input: &mut impl Iterator<Item = u8>,
    to_server: &mut Vec<u8>,
    to_client: &mut Vec<u8>,
) -> bool {
    let Some(step) = step else { return false };
    let line = if step & 1 == 0 { to_server } else { to_client };
    match (step >> 1) % 8 {
        0 => line.extend(input.take(64)),
        1 => {
            let place = usize::from(input.next().unwrap_or(0)) * 4 + usize::from(step >> 6);
            let Some(byte) = line.get_mut(place) else { return false };
            *byte ^= input.next().unwrap_or(1) | 1;
        }
        2 => line.clear(),
        3 => {
            let made_up: Vec<u8> = input.take(1_024).collect();
            line.splice(..0, made_up);
        }
        4 => line.extend(line.clone()),
        // A record of the input's in place of the first: its content stands open where records do.
        7 => {
            let content = (20..=23).cycle().nth(usize::from(step >> 4)).unwrap_or(22);
            let made_up: Vec<u8> = input.take(usize::from(step)).collect();
            let mut record = vec![content, 3, 3];
            record.extend((made_up.len() as u16).to_be_bytes());
            record.extend(made_up);
            line.splice(..0, record);
        }
        _ => return false,
    }
    true
}
