//! Messages that are due and say what they may not, or what means nothing: each at the end that waits for it.

extern crate std;

use std::vec::Vec;

use tenure_crypto::{Group, HashAlgorithm, PrivateKey, Software};
use tenure_hal::{Entropy, EntropyError};

use super::*;
use crate::schedule::traffic_keys;
use crate::x509::ServerName;
use crate::{
    Alert, Client, ClientConfig, Error, Event, Identity, Now, Server, ServerConfig, Suite, Trust,
};

struct Ones;

impl Entropy for Ones {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntropyError> {
        bytes.fill(1);
        Ok(())
    }
}

const NOW: Now = Now { uptime_ms: 0, date: None };
const SUITE: Suite = Suite::ChaCha20Poly1305Sha256;
/// The public key of the scalar 1: the base point of P-256.
const KEY_INFO: [u8; 91] = {
    let mut info = [0; 91];
    let head = hex_literal::hex!("3059301306072a8648ce3d020106082a8648ce3d030107034200");
    let point = hex_literal::hex!(
        "046b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296"
        "4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5"
    );
    let mut at = 0;
    while at < info.len() {
        info[at] = if at < head.len() { head[at] } else { point[at - head.len()] };
        at += 1;
    }
    info
};
const SCALAR: [u8; 32] = {
    let mut scalar = [0; 32];
    scalar[31] = 1;
    scalar
};

fn encoded(kind: Message, body: &[u8]) -> Vec<u8> {
    [&[kind as u8, 0, (body.len() >> 8) as u8, body.len() as u8], body].concat()
}

/// Extensions, each with its number.
type Listed<'a> = &'a [(u16, &'a [u8])];

/// A block of extensions with its length.
fn block(extensions: &[(u16, &[u8])]) -> Vec<u8> {
    let mut list = Vec::new();
    for (number, content) in extensions {
        list.extend(number.to_be_bytes());
        list.extend((content.len() as u16).to_be_bytes());
        list.extend_from_slice(content);
    }
    [&(list.len() as u16).to_be_bytes()[..], &list].concat()
}

/// Has a client that waits in `state`, with the keys of a connection, take `message`, and `look` at it afterwards.
fn client_takes<T>(
    state: State,
    message: &[u8],
    look: impl FnOnce(Result<Event, Error>, &mut Client<'_, '_>) -> T,
) -> T {
    client_with(&mut [0; 20_000], &[], state, message, look)
}

/// [`client_takes`] of a client with `buffer` that offers `protocols`.
fn client_with<T>(
    buffer: &mut [u8],
    protocols: &[&[u8]],
    state: State,
    message: &[u8],
    look: impl FnOnce(Result<Event, Error>, &mut Client<'_, '_>) -> T,
) -> T {
    let chain: [&[u8]; 1] = [b"a certificate that nobody reads"];
    let config = ClientConfig {
        server_name: ServerName::Dns("server.test"),
        trust: Trust::Keys(&[&KEY_INFO]),
        suites: Suite::ALL,
        groups: &[Group::X25519],
        application_protocols: protocols,
        identity: Some(Identity { chain: &chain, key: PrivateKey::P256(&SCALAR) }),
        pre_shared_key: None,
        early_data: false,
        handshake_ms_max: 1000,
    };
    let mut security = Software::new(Ones);
    let mut client = Client::new(buffer, &config, &NOW).expect("a client");
    client.core.state = state;
    client.core.suite = Some(SUITE);
    client.core.transcript.choose(HashAlgorithm::Sha256);
    client.core.own_secret = tenure_crypto::HashValue::from_slice(&[7; 32]);
    client.core.peer_secret = tenure_crypto::HashValue::from_slice(&[8; 32]);
    client.core.channel.inject(message);
    if state == State::ServerCertificateVerify {
        // The key of the certificate stands before it.
        let length = if message.starts_with(&KEY_INFO) { KEY_INFO.len() } else { rsa_key().len() };
        client.core.channel.pin(length);
    }
    let mut end = client.poll(&mut security, &NOW);
    while matches!(end, Ok(Event::Certificate | Event::Connected)) {
        end = client.poll(&mut security, &NOW);
    }
    look(end, &mut client)
}

fn alert_of(state: State, message: &[u8]) -> Option<Alert> {
    client_takes(state, message, |end, _| end.err().and_then(Error::alert))
}

#[test]
fn every_kind_of_message_is_one_of_tls_1_3() {
    let numbers: Vec<u8> = Message::ALL.into_iter().map(|it| it as u8).collect();
    // RFC 8446 §B.3, without those that are reserved.
    assert_eq!(numbers, [1, 2, 4, 5, 8, 11, 13, 15, 20, 24]);
}

/// RFC 8446 §4.2, §4.3.1.
#[test]
fn extensions_that_are_not_due_or_were_not_asked_for_are_refused_in_encrypted_extensions() {
    let (illegal, unsupported) =
        (Some(Alert::ILLEGAL_PARAMETER), Some(Alert::UNSUPPORTED_EXTENSION));
    let cases: &[(Listed<'_>, Option<Alert>)] = &[
        (&[], None),
        (&[(0, &[])], None),
        // Groups, of which nothing is believed before the end (§4.2.7).
        (&[(10, &[0, 2, 0, 0x17])], None),
        (&[(10, b"no list of groups")], None),
        (&[(0xfafa, &[])], unsupported),
        // Protocols, and early data, of which there was no word.
        (&[(16, &[0, 3, 2, b'h', b'2'])], unsupported),
        (&[(42, &[])], unsupported),
        // A cookie, signatures, a key, versions, modes and a share belong elsewhere.
        (&[(13, &[0, 2, 4, 3])], illegal),
        (&[(41, &[0, 0])], illegal),
        (&[(43, &[3, 4])], illegal),
        (&[(44, &[0, 1, 7])], illegal),
        (&[(45, &[1, 1])], illegal),
        (&[(51, &[0, 0x1d])], illegal),
        (&[(0, &[]), (0, &[])], illegal),
        (&[(0, &[7])], Some(Alert::DECODE_ERROR)),
    ];
    for (extensions, alert) in cases {
        let message = encoded(Message::EncryptedExtensions, &block(extensions));
        assert_eq!(alert_of(State::EncryptedExtensions, &message), *alert, "{extensions:?}");
    }
}

/// RFC 6066 §4, RFC 7301 §3.1, RFC 8449 §4, §5.
#[test]
fn answers_about_lengths_and_protocols_are_among_those_that_were_offered() {
    let (illegal, malformed) = (Some(Alert::ILLEGAL_PARAMETER), Some(Alert::DECODE_ERROR));
    // A buffer of 4 KB asks for fragments of 2 KB at most.
    let cases: &[(Listed<'_>, Option<Alert>)] = &[
        (&[(1, &[3])], None),
        (&[(1, &[2])], illegal),
        (&[(1, &[4])], illegal),
        (&[(1, &[5])], illegal),
        (&[(1, &[])], malformed),
        (&[(28, &[0, 64])], None),
        (&[(28, &[0, 63])], illegal),
        (&[(28, &[0, 64]), (1, &[3])], illegal),
        (&[(16, &[0, 3, 2, b'h', b'2'])], None),
        (&[(16, &[0, 3, 2, b'h', b'3'])], illegal),
        (&[(16, &[0, 6, 2, b'h', b'2', 2, b'h', b'2'])], malformed),
        (&[(16, &[0, 0])], malformed),
        (&[(16, &[0, 1, 0])], illegal),
    ];
    for (extensions, alert) in cases {
        let message = encoded(Message::EncryptedExtensions, &block(extensions));
        let state = State::EncryptedExtensions;
        client_with(&mut [0; 4096], &[b"h2"], state, &message, |end, _| {
            assert_eq!(end.err().and_then(Error::alert), *alert, "{extensions:?}");
        });
    }
}

/// RFC 8446 §4.3.2, §9.3.
#[test]
fn request_for_a_certificate_is_read_for_its_algorithms_alone() {
    const SCHEMES: (u16, &[u8]) = (13, &[0, 4, 0xfa, 0xfa, 4, 3]);
    let illegal = Some(Alert::ILLEGAL_PARAMETER);
    let request = |context: &[u8], extensions: &[(u16, &[u8])]| {
        let body = [&[context.len() as u8], context, &block(extensions)].concat();
        encoded(Message::CertificateRequest, &body)
    };
    let cases: &[(&[u8], Listed<'_>, Option<Alert>)] = &[
        (&[], &[SCHEMES], None),
        // Unknown ones, filters by object identifier and authorities.
        (&[], &[(0xfafa, &[1, 2]), SCHEMES, (48, &[0, 0]), (47, &[0, 0])], None),
        (&[], &[], Some(Alert::MISSING_EXTENSION)),
        (&[], &[(13, &[0, 0])], Some(Alert::DECODE_ERROR)),
        (&[], &[SCHEMES, SCHEMES], illegal),
        (&[7], &[SCHEMES], illegal),
        (&[], &[SCHEMES, (51, &[0, 0])], illegal),
        (&[], &[SCHEMES, (0, &[])], illegal),
    ];
    for (context, extensions, alert) in cases {
        let message = request(context, extensions);
        let found = alert_of(State::CertificateOrRequest, &message);
        assert_eq!(found, *alert, "{context:?} {extensions:?}");
    }
    // It is answered with a certificate where the own algorithm is among them (§4.4.3).
    for (schemes, can_answer) in
        [(&[0, 4, 0xfa, 0xfa, 4, 3][..], true), (&[0, 4, 8, 4, 5, 3], false)]
    {
        let message = request(&[], &[(13, schemes)]);
        client_takes(State::CertificateOrRequest, &message, |end, client| {
            assert_eq!(end, Ok(Event::Idle));
            assert!(client.handshake.is_asked);
            assert_eq!(client.handshake.can_answer, can_answer);
        });
    }
}

/// RFC 8446 §4.4.2.
#[test]
fn certificates_with_a_context_an_extension_or_none_of_them_are_refused() {
    let entry = |certificate: &[u8], extensions: &[u8]| {
        let mut entry = Vec::from([0, 0, certificate.len() as u8]);
        entry.extend(certificate);
        entry.extend((extensions.len() as u16).to_be_bytes());
        entry.extend(extensions);
        entry
    };
    let certificates = |context: &[u8], list: &[u8]| {
        let length = [0, (list.len() >> 8) as u8, list.len() as u8];
        encoded(Message::Certificate, &[&[context.len() as u8], context, &length, list].concat())
    };
    let status: &[u8] = &[0, 5, 0, 4, 1, 0, 0, 1];
    let one = entry(&KEY_INFO, &[]);
    let two = [&one[..], &entry(&KEY_INFO, &[])].concat();
    for (name, message, alert) in [
        ("a key", certificates(&[], &one), None),
        ("two keys", certificates(&[], &two), Some(Alert::ILLEGAL_PARAMETER)),
        ("a context", certificates(&[7], &one), Some(Alert::ILLEGAL_PARAMETER)),
        ("no entry", certificates(&[], &[]), Some(Alert::DECODE_ERROR)),
        ("an empty entry", certificates(&[], &entry(&[], &[])), Some(Alert::DECODE_ERROR)),
        (
            "an extension",
            certificates(&[], &entry(&KEY_INFO, status)),
            Some(Alert::UNSUPPORTED_EXTENSION),
        ),
    ] {
        // As if the server had said that it shows a key alone (RFC 7250).
        let kind = encoded(Message::EncryptedExtensions, &block(&[(20, &[2])]));
        let messages = [kind, message].concat();
        assert_eq!(alert_of(State::EncryptedExtensions, &messages), alert, "{name}");
    }
}

/// RFC 8446 §4.4.3.
#[test]
fn proof_by_an_algorithm_that_does_not_fit_is_an_illegal_parameter_and_a_wrong_one_a_decrypt_error()
{
    for (scheme, alert) in [
        (0x0403_u16, Alert::DECRYPT_ERROR),
        // SHA-1 and DSA, PKCS#1, other kinds of key, and none.
        (0x0203, Alert::ILLEGAL_PARAMETER),
        (0x0201, Alert::ILLEGAL_PARAMETER),
        (0x0202, Alert::ILLEGAL_PARAMETER),
        (0x0401, Alert::ILLEGAL_PARAMETER),
        (0x0501, Alert::ILLEGAL_PARAMETER),
        (0x0804, Alert::ILLEGAL_PARAMETER),
        (0x0503, Alert::ILLEGAL_PARAMETER),
        (0x0807, Alert::ILLEGAL_PARAMETER),
        (0xfafa, Alert::ILLEGAL_PARAMETER),
    ] {
        // A signature of the right form: r and s are 1.
        let mut body = scheme.to_be_bytes().to_vec();
        body.extend([0, 8, 0x30, 6, 2, 1, 1, 2, 1, 1]);
        let messages = [&KEY_INFO[..], &encoded(Message::CertificateVerify, &body)].concat();
        let found = alert_of(State::ServerCertificateVerify, &messages);
        assert_eq!(found, Some(alert), "{scheme:#x}");
    }
}

/// The key info of an RSA key of 2,048 bits.
fn rsa_key() -> Vec<u8> {
    let head =
        hex_literal::hex!("30820122300d06092a864886f70d01010105000382010f003082010a0282010100");
    [&head[..], &[0xc5; 256], &[2, 3, 1, 0, 1]].concat()
}

/// RFC 8446 §4.4.3: RSA signs by PSS, whatever stands in the offer.
#[test]
fn proof_by_pkcs_1_is_an_illegal_parameter_with_an_rsa_key_too() {
    for (scheme, alert) in [
        (0x0804_u16, Alert::DECRYPT_ERROR),
        (0x0401, Alert::ILLEGAL_PARAMETER),
        (0x0501, Alert::ILLEGAL_PARAMETER),
        (0x0201, Alert::ILLEGAL_PARAMETER),
        (0x0403, Alert::ILLEGAL_PARAMETER),
    ] {
        let body = [&scheme.to_be_bytes()[..], &[1, 0], &[7; 256]].concat();
        let messages = [rsa_key(), encoded(Message::CertificateVerify, &body)].concat();
        let found = alert_of(State::ServerCertificateVerify, &messages);
        assert_eq!(found, Some(alert), "{scheme:#x}");
    }
}

/// RFC 8446 §4.6.1.
#[test]
fn ticket_lives_seven_days_at_most_and_its_unknown_extensions_mean_nothing() {
    let ticket = |lifetime_s: u32, identity: &[u8], extensions: &[(u16, &[u8])]| {
        let mut body = lifetime_s.to_be_bytes().to_vec();
        body.extend([1, 2, 3, 4, 1, 9]);
        body.extend((identity.len() as u16).to_be_bytes());
        body.extend(identity);
        body.extend(block(extensions));
        encoded(Message::NewSessionTicket, &body)
    };
    for (lifetime_s, kept_s) in
        [(1, 1), (604_800, 604_800), (604_801, 604_800), (u32::MAX, 604_800)]
    {
        let message = ticket(lifetime_s, b"ticket", &[(0xfafa, &[1]), (42, &[0, 0, 1, 0])]);
        client_takes(State::ClientConnected, &message, |end, client| {
            assert_eq!(end, Ok(Event::Ticket));
            let ticket = client.ticket().expect("a ticket");
            assert_eq!((ticket.lifetime_s, ticket.early_data_bytes_max), (kept_s, 256));
        });
    }
    client_takes(State::ClientConnected, &ticket(0, b"ticket", &[]), |end, _| {
        assert_eq!(end, Ok(Event::Idle), "it is discarded at once");
    });
    for (message, alert) in [
        (ticket(1, b"", &[]), Alert::DECODE_ERROR),
        (ticket(1, b"ticket", &[(0xfafa, &[]), (0xfafa, &[])]), Alert::ILLEGAL_PARAMETER),
        (ticket(1, b"ticket", &[(51, &[])]), Alert::ILLEGAL_PARAMETER),
    ] {
        assert_eq!(alert_of(State::ClientConnected, &message), Some(alert));
    }
}

/// RFC 8446 §4.6.3, §5.1.
#[test]
fn key_update_is_one_of_two_and_ends_its_record() {
    for (bytes, alert) in [
        (&[0][..], None),
        (&[1], None),
        (&[2], Some(Alert::ILLEGAL_PARAMETER)),
        (&[255], Some(Alert::ILLEGAL_PARAMETER)),
        (&[], Some(Alert::DECODE_ERROR)),
        (&[0, 0], Some(Alert::DECODE_ERROR)),
    ] {
        let message = encoded(Message::KeyUpdate, bytes);
        assert_eq!(alert_of(State::ClientConnected, &message), alert, "{bytes:?}");
    }
    let more = [&encoded(Message::KeyUpdate, &[0])[..], &[4]].concat();
    assert_eq!(alert_of(State::ClientConnected, &more), Some(Alert::UNEXPECTED_MESSAGE));
}

/// RFC 8446 §5.5: keys are changed long before a record's number would come round.
#[test]
fn keys_that_are_worn_are_changed_before_the_next_data() {
    client_takes(State::ClientConnected, &[], |end, client| {
        assert_eq!(end, Ok(Event::Idle));
        let mut security = Software::new(Ones);
        let records = |client: &mut Client<'_, '_>, security: &mut Software<Ones>| {
            assert_eq!(client.send(security, b"data"), Ok(4));
            let output = client.output().to_vec();
            client.sent(output.len());
            let mut rest = &output[..];
            let mut count = 0;
            while let [_, _, _, high, low, ..] = rest {
                rest = &rest[5 + usize::from(u16::from_be_bytes([*high, *low]))..];
                count += 1;
            }
            count
        };
        let mut keys = traffic_keys(SUITE, &[7; 32]);
        keys.set_sequence((1 << 22) - 1);
        client.core.channel.writing = Some(keys);
        assert_eq!(records(client, &mut security), 1);
        let before = client.core.own_secret.to_vec();
        assert_eq!(records(client, &mut security), 2, "the update and the data");
        assert_ne!(client.core.own_secret.to_vec(), before);
        assert_eq!(client.core.channel.writing.as_ref().map(|it| it.sequence()), Some(1));
    });
}

/// RFC 8446 §4.4.2: none was asked for.
#[test]
fn client_certificate_with_an_extension_is_refused_by_the_server() {
    let config = ServerConfig {
        identities: &[Identity { chain: &[&KEY_INFO], key: PrivateKey::P256(&SCALAR) }],
        suites: Suite::ALL,
        groups: &[Group::X25519],
        application_protocols: &[],
        client_trust: Some(Trust::Keys(&[&KEY_INFO])),
        client_must_prove: false,
        pre_shared_keys: &[],
        ticket_key: None,
        early_data_bytes_max: 0,
        handshake_ms_max: 1000,
    };
    let certificate = [0, 0, 1, 7, 0, 4, 0, 5, 0, 0];
    let mut body = Vec::from([0, 0, 0, certificate.len() as u8]);
    body.extend(certificate);
    let mut security = Software::new(Ones);
    let mut buffer = [0; 4096];
    let mut server = Server::new(&mut buffer, &config, None, &NOW).expect("a server");
    server.core.state = State::ClientCertificate;
    server.core.channel.inject(&encoded(Message::Certificate, &body));
    let end = server.poll(&mut security, &NOW);
    assert_eq!(end.err().and_then(Error::alert), Some(Alert::UNSUPPORTED_EXTENSION));
}
