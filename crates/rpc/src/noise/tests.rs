//! Against the published vectors of cacophony and snow, and against snow itself.

extern crate std;

use std::vec;
use std::vec::Vec;

use tenure_hal::simulated::Sequence;

use super::*;

struct Vector {
    prologue: &'static str,
    initiator: &'static str,
    initiator_ephemeral: &'static str,
    responder: &'static str,
    responder_ephemeral: &'static str,
    /// Payload and ciphertext: the two of the handshake, then to and fro.
    messages: &'static [(&'static str, &'static str)],
}

/// From haskell-cryptography/cacophony, vectors/cacophony.txt.
const CACOPHONY: Vector = Vector {
    prologue: "4a6f686e2047616c74",
    initiator: "e61ef9919cde45dd5f82166404bd08e38bceb5dfdfded0a34c8df7ed542214d1",
    initiator_ephemeral: "893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a",
    responder: "4a3acbfdb163dec651dfa3194dece676d437029c62a408b4c5ea9114246e4893",
    responder_ephemeral: "bbdb4cdbd309f1a1f2e1456967fe288cadd6f712d65dc7b7793d5e63da6b375b",
    messages: &[
        (
            "4c756477696720766f6e204d69736573",
            "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c7944718da798efbcd91528520204f904b9bd6c7413dccdc214d951e15253e39987f18146e8cd0873654207148333479d4d16c289f0294b29960a72f48e0b7bba2e89083169825e59642148d492020664ccf7",
        ),
        (
            "4d757272617920526f746862617264",
            "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f1448088435361e70b2ed446e6c9ec387d1d6b3b840f194e373979d241b203c4acafccf5",
        ),
        ("462e20412e20486179656b", "050e9f3c8fac16b68dbce8f8c4bfbf6617c897f9ada4aa29aa19c8"),
        ("4361726c204d656e676572", "344233a6cabb7141d80f3da2fedc311d9646bbb0f505afe403a667"),
        (
            "4a65616e2d426170746973746520536179",
            "62cdeeb172ad7ade7aa7d9e069da5790f12331bfa00177787a1d0810c67dc3b2b4",
        ),
        (
            "457567656e2042f6686d20766f6e2042617765726b",
            "029bead1b40992327044d409d9a1f3ad8f36c3c452775d557e18bbeb2e8dfcead32d514024",
        ),
    ],
};

/// From mcginty/snow, tests/vectors/snow.txt.
const SNOW: Vector = Vector {
    prologue: "5468657265206973206e6f20726967687420616e642077726f6e672e2054686572652773206f6e6c792066756e20616e6420626f72696e672e",
    initiator: "f49f93c5112c0787acc808d61716d7e090e076a58f15a3f78d92773f8dcb473b",
    initiator_ephemeral: "dae68498c41315cff7e4a34dded8d973199d8f0cf3fcb8b6651c169de77de8be",
    responder: "b790546f98b1e933c48cd01f17e7b281469d46fcacc9a3b584ae65b1d6272e8e",
    responder_ephemeral: "c0875a5b59c8492bd2135e5432d7d484f938e0a1f5009428c4bcb70b2f69f69f",
    messages: &[
        (
            "95a8f51c435a9530ff1f30868ed7b23ec952eb513c26a0774fed82d2978a8c81",
            "6d21fec9141f3f37cc464e936a48b2d9521b5a44e0f3d960895d3c3fba30282f731f445c25e898e2534ac0536715b24308c108fc46bd260c887b36c3f68e3a05654fc8295c068ed53fb2022560961224e0b10b0835e1efc82fc587cd50f7178fe3d9eb06e0351c6e7334162c10bed670bfa2a105f7b2768a140b3fd597782601",
        ),
        (
            "b866b807a6d8b83182b884dbfedc861843c5082bd6e480cb54e4245a72083041",
            "e64e1fb8701c4f4bc3850b255fea657d4d835338b059c89acc99628fbe52473b41a4e79e3c1e6abc46bf80f078a005e15d8a3e04f989af3e6cb99b52031165006163ac3e17b928af8c116009d7bf4fb2",
        ),
        (
            "e3a4937faef391028f759758b428b57652e0069a8dee64dfed01b60846938740",
            "2bebe19102169cdfe79cf41e38930bfd20a5b2fc78ccf33e853ddd939c0983174656eb27b61464a607762848892ca1c0",
        ),
        (
            "693972f27b0cb98aeac1fb54d782125431e7540e0cb2fa882cf51a8184d724fd",
            "c7c56da33b45d12f4754e17978bd49999c9c8f51d00db460f902aba2e6e245d0c46662f507915de8596f43b1d175f1db",
        ),
    ],
};

fn bytes(hex: &str) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).expect("a hexadecimal digit") as u8;
    hex.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

fn secret(hex: &str) -> StaticSecret {
    StaticSecret::from_bytes(&bytes(hex).try_into().expect("32 bytes"))
}

fn check(vector: &Vector) {
    let (initiator, responder) = (secret(vector.initiator), secret(vector.responder));
    let responder_key = responder.public_key();
    let prologue = bytes(vector.prologue);
    let message = |at: usize| (bytes(vector.messages[at].0), bytes(vector.messages[at].1));

    let (payload, expected) = message(0);
    let mut first = Vec::new();
    let initiated = initiate(
        &initiator,
        &initiator.public_key(),
        &responder_key,
        secret(vector.initiator_ephemeral),
        &[&prologue],
        &payload,
        &mut first,
    )
    .expect("good keys");
    assert_eq!(first, expected);
    let (invited, read) =
        Invited::read(&responder, &responder_key, &[&prologue], &first, None).expect("readable");
    assert_eq!(read, payload);
    assert_eq!(invited.peer(), initiator.public_key());

    let (payload, expected) = message(1);
    let mut second = Vec::new();
    let at_responder = invited
        .respond(secret(vector.responder_ephemeral), &payload, &mut second)
        .expect("good keys");
    assert_eq!(second, expected);
    let (at_initiator, read) = initiated.read_response(&second).expect("readable");
    assert_eq!(read, payload);

    for at in 2..vector.messages.len() {
        let (payload, expected) = message(at);
        let nonce = Nonce::from_counter((at as u64 - 2) / 2);
        let (from, to) = if at % 2 == 0 {
            (&at_initiator.send, &at_responder.receive)
        } else {
            (&at_responder.send, &at_initiator.receive)
        };
        let mut sealed = payload.clone();
        let tag = from.seal(&nonce, &[], &mut sealed);
        sealed.extend_from_slice(&tag);
        assert_eq!(sealed, expected);
        assert_eq!(to.open(&nonce, &[], &mut sealed), Ok(&mut payload.clone()[..]));
    }
}

#[test]
fn published_vectors_hold() {
    check(&CACOPHONY);
    check(&SNOW);
}

fn generate(seed: u8) -> StaticSecret {
    StaticSecret::generate(&mut Sequence(seed.into())).expect("randomness")
}

const SNOW_PATTERN: &str = "Noise_IK_25519_ChaChaPoly_SHA256";

fn snow_builder<'a>(private: &'a [u8], prologue: &'a [u8]) -> snow::Builder<'a> {
    snow::Builder::new(SNOW_PATTERN.parse().expect("a pattern"))
        .local_private_key(private)
        .and_then(|builder| builder.prologue(prologue))
        .expect("a valid handshake")
}

#[test]
fn snow_reads_what_is_written_here_and_the_other_way_round() {
    for length in [0, 1, 15, 16, 17, 63, 64, 65, 300, 1_063] {
        let payload: Vec<u8> = (0..length).map(|at| at as u8).collect();
        let prologue = vec![7; length % 40];
        let mut buffer = vec![0; 2_000];
        let snow_private = [length as u8 ^ 0x55; 32];
        let snow_secret = StaticSecret::from_bytes(&snow_private);
        let own = generate(length as u8);

        let mut snow = snow_builder(&snow_private, &prologue).build_responder().expect("built");
        let mut first = Vec::new();
        let initiated = initiate(
            &own,
            &own.public_key(),
            &snow_secret.public_key(),
            generate(200),
            &[&prologue],
            &payload,
            &mut first,
        )
        .expect("good keys");
        let read = snow.read_message(&first, &mut buffer).expect("snow reads it");
        assert_eq!(buffer[..read], payload);
        let written = snow.write_message(&payload, &mut buffer).expect("snow answers");
        let (_, read) = initiated.read_response(&buffer[..written]).expect("readable");
        assert_eq!(read, payload);

        let key = own.public_key();
        let mut snow = snow_builder(&snow_private, &prologue)
            .remote_public_key(&key.0)
            .and_then(snow::Builder::build_initiator)
            .expect("built");
        let written = snow.write_message(&payload, &mut buffer).expect("snow begins");
        let (invited, read) =
            Invited::read(&own, &key, &[&prologue], &buffer[..written], None).expect("readable");
        assert_eq!(read, payload);
        let mut second = Vec::new();
        invited.respond(generate(3), &payload, &mut second).expect("good keys");
        let read = snow.read_message(&second, &mut buffer).expect("snow reads it");
        assert_eq!(buffer[..read], payload);
    }
}

#[test]
fn every_flipped_bit_is_noticed() {
    let (initiator, responder) = (generate(1), generate(2));
    let key = responder.public_key();
    let mut first = Vec::new();
    let initiated = initiate(
        &initiator,
        &initiator.public_key(),
        &key,
        generate(3),
        &[b"here"],
        b"call",
        &mut first,
    )
    .expect("good keys");
    for bit in (0..first.len() * 8).step_by(3) {
        let mut changed = first.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        // The highest bit of an X25519 key is ignored (RFC 7748 §5), but not by the hash over it.
        assert!(Invited::read(&responder, &key, &[b"here"], &changed, None).is_err(), "bit {bit}");
    }
    assert!(
        Invited::read(&responder, &key, &[b"there"], &first, None).is_err(),
        "another prologue"
    );
    for length in 0..first.len() {
        assert!(Invited::read(&responder, &key, &[b"here"], &first[..length], None).is_err());
    }
    let (invited, _) = Invited::read(&responder, &key, &[b"here"], &first, None).expect("readable");
    let mut second = Vec::new();
    invited.respond(generate(4), b"", &mut second).expect("good keys");
    for bit in 0..second.len() * 8 {
        let mut changed = second.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert!(initiated.read_response(&changed).is_err(), "bit {bit}");
    }
    assert!(initiated.read_response(&second).is_ok(), "false responses did no harm");
}
