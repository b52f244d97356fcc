//! Records that our own ends never send: padded ones, and messages under small limits.

extern crate std;

use std::vec::Vec;

use tenure_crypto::Software;
use tenure_hal::{Entropy, EntropyError};

use super::*;
use crate::schedule::{expand_label, traffic_keys};
use crate::suite::Suite;

const SUITE: Suite = Suite::ChaCha20Poly1305Sha256;
const SECRET: [u8; 32] = [7; 32];

struct Nothing;

impl Entropy for Nothing {
    fn fill(&mut self, _: &mut [u8]) -> Result<(), EntropyError> {
        Err(EntropyError)
    }
}

/// The first record under [`SECRET`] with `plaintext`: content, type and padding.
fn sealed(plaintext: &[u8]) -> Vec<u8> {
    let (mut key, mut iv) = ([0; 32], [0; 12]);
    expand_label(SUITE.hash(), &SECRET, b"key", &[], &mut key);
    expand_label(SUITE.hash(), &SECRET, b"iv", &[], &mut iv);
    let head = header(ContentType::ApplicationData, plaintext.len() + AEAD_TAG_BYTES);
    let mut inner = plaintext.to_vec();
    let tag = Software::new(Nothing).seal(SUITE.aead(), &key, &iv, &head, &mut inner);
    [&head[..], &inner, &tag.expect("a tag")].concat()
}

/// The outcome of `record` at the end whose limit is `limit`.
fn open(limit: usize, record: &[u8]) -> Result<Option<Incoming>, Error> {
    let mut buffer = std::vec![0; 20_000];
    let mut channel = Channel::new(&mut buffer, true);
    channel.reading = Some(traffic_keys(SUITE, &SECRET));
    channel.own_limit = limit;
    channel.space()[..record.len()].copy_from_slice(record);
    channel.received(record.len());
    channel.next_record(&mut Software::new(Nothing))
}

/// `length` bytes of plaintext, of which 3 are content.
fn padded(length: usize) -> Vec<u8> {
    let mut plaintext = Vec::from([1, 2, 3, ContentType::ApplicationData as u8]);
    plaintext.resize(length, 0);
    plaintext
}

/// RFC 8446 §5.4, RFC 8449 §4.
#[test]
fn padding_counts_towards_the_limit_of_a_record() {
    for limit in [64, 1_000, PLAINTEXT_BYTES_MAX + 1] {
        assert_eq!(open(limit, &sealed(&padded(limit))), Ok(Some(Incoming::Data)), "{limit}");
        let oversized = Err(Error::Peer(Misbehaviour::Oversized));
        assert_eq!(open(limit, &sealed(&padded(limit + 1))), oversized, "{limit}");
    }
}

#[test]
fn message_above_the_limit_goes_out_in_records_that_keep_to_it() {
    let message: Vec<u8> = (0..=255).collect();
    let mut buffer = std::vec![0; 1_000];
    let mut channel = Channel::new(&mut buffer, true);
    channel.writing = Some(traffic_keys(SUITE, &SECRET));
    channel.peer_limit = 64;
    let mut security = Software::new(Nothing);
    for _ in 0..2 {
        channel
            .emit(&mut security, ContentType::Handshake, |_, _, writer| Ok(writer.bytes(&message)?))
            .expect("room");
    }
    let mut output = channel.output().to_vec();
    let mut keys = traffic_keys(SUITE, &SECRET);
    let (mut rest, mut received) = (&mut output[..], Vec::new());
    while !rest.is_empty() {
        let length = HEADER_BYTES + usize::from(u16::from_be_bytes([rest[3], rest[4]]));
        let (record, more) = rest.split_at_mut(length);
        assert!(length - HEADER_BYTES - AEAD_TAG_BYTES <= 64);
        let (kind, length) = keys.open(&mut security, record).expect("records in their order");
        assert_eq!(kind, Some(ContentType::Handshake));
        received.extend_from_slice(&record[HEADER_BYTES..HEADER_BYTES + length]);
        rest = more;
    }
    assert_eq!(received, [&message[..], &message].concat());
}

/// RFC 8446 §5.1: a record of application data is not due within the handshake, with content or without.
#[test]
fn empty_data_in_the_handshake_is_an_unexpected_message() {
    let record = sealed(&[ContentType::ApplicationData as u8]);
    assert_eq!(open(PLAINTEXT_BYTES_MAX + 1, &record), Ok(Some(Incoming::Data)));
    let config = crate::ClientConfig {
        server_name: crate::x509::ServerName::Dns("server.test"),
        trust: crate::Trust::Keys(&[]),
        suites: Suite::ALL,
        groups: &[tenure_crypto::Group::X25519],
        application_protocols: &[],
        identity: None,
        pre_shared_key: None,
        early_data: false,
        handshake_ms_max: 1_000,
    };
    let now = crate::Now { uptime_ms: 0, date: None };
    let mut buffer = std::vec![0; 2_000];
    let mut client = crate::Client::new(&mut buffer, &config, &now).expect("a client");
    client.core.state = crate::state::State::EncryptedExtensions;
    client.core.channel.reading = Some(traffic_keys(SUITE, &SECRET));
    client.feed(&record);
    let end = client.poll(&mut Software::new(Nothing), &now);
    assert_eq!(end, Err(Error::Peer(Misbehaviour::Unexpected)));
}

/// RFC 8446 §5, §5.4: what is under the keys has a type that may stand there, and content where it must.
#[test]
fn protected_record_without_a_type_or_content_or_with_another_type_is_unexpected() {
    const CHANGE_CIPHER_SPEC: u8 = ContentType::ChangeCipherSpec as u8;
    for plaintext in [
        &[][..],
        &[0],
        &[0; 50],
        &[1, CHANGE_CIPHER_SPEC],
        &[1, 99],
        &[ContentType::Handshake as u8, 0, 0],
        &[ContentType::Alert as u8],
    ] {
        let end = open(PLAINTEXT_BYTES_MAX + 1, &sealed(plaintext));
        assert_eq!(end, Err(Error::Peer(Misbehaviour::Unexpected)), "{plaintext:?}");
    }
}
