//! Keys say what they are for, and keep what they are to themselves.

use ed25519_dalek::Verifier;
use hex_literal::hex;
use tenure_crypto::{
    AeadKey, BadSignature, Context, Nonce, Seed, SigningKey, StaticSecret, Undecryptable, sha256,
    verify, verify_digest,
};
use tenure_hal::{Entropy, EntropyError};
use tenure_wire::{Signature, VerifyingKey};

const PACKAGE: Context = Context::new("package");
const RECORD: Context = Context::new("record");

fn key() -> SigningKey {
    SigningKey::from_bytes(&[3; 32])
}

#[test]
fn signature_holds_for_its_message_context_and_key_alone() {
    let (signature, public) = (key().sign(PACKAGE, b"wasm"), key().verifying_key());
    assert_eq!(verify(&public, PACKAGE, b"wasm", &signature), Ok(()));
    assert_eq!(verify_digest(&public, PACKAGE, &sha256(&[b"wasm"]), &signature), Ok(()));
    assert_eq!(verify(&public, RECORD, b"wasm", &signature), Err(BadSignature));
    assert_eq!(verify(&public, PACKAGE, b"wasn", &signature), Err(BadSignature));
    let other = SigningKey::from_bytes(&[4; 32]).verifying_key();
    assert_eq!(verify(&other, PACKAGE, b"wasm", &signature), Err(BadSignature));
    for bit in 0..512 {
        let mut bytes = signature.to_bytes();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let changed = Signature::from_bytes(&bytes);
        assert_eq!(verify(&public, PACKAGE, b"wasm", &changed), Err(BadSignature), "bit {bit}");
    }
}

#[test]
fn signature_is_plain_ed25519_over_the_documented_statement() {
    let signature = key().sign(PACKAGE, b"wasm");
    let statement = [b"tenure signature 1\0\x07package".as_slice(), &sha256(&[b"wasm"]).0].concat();
    let public = ed25519_dalek::VerifyingKey::from_bytes(&key().verifying_key().0).expect("a key");
    let signature = ed25519_dalek::Signature::from_bytes(&signature.to_bytes());
    assert!(public.verify(&statement, &signature).is_ok());
}

#[test]
fn key_of_small_order_vouches_for_nothing() {
    // The identity point as key and commitment: without strictness S = 0 verifies every message.
    let mut identity = [0; 32];
    identity[0] = 1;
    let mut signature = [0; 64];
    signature[..32].copy_from_slice(&identity);
    let verified =
        verify(&VerifyingKey(identity), PACKAGE, b"any", &Signature::from_bytes(&signature));
    assert_eq!(verified, Err(BadSignature));
}

#[test]
fn keys_derived_from_a_seed_never_change() {
    let seed =
        Seed::from_bytes(&hex!("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"));
    let device = seed.device_secret().public_key();
    let signing = seed.device_signing_key().verifying_key();
    let one = seed.machine_secret(&[1; 16]).public_key();
    let two = seed.machine_secret(&[2; 16]).public_key();
    assert_eq!(
        [device.0, signing.0, one.0, two.0].map(|key| key[..6].to_vec()),
        EXPECTED.map(|key| key.to_vec()),
        "every device in the field would lose its identity"
    );
}

const EXPECTED: [[u8; 6]; 4] =
    [hex!("aa5fc28ca675"), hex!("446aeed9f1ed"), hex!("76505a8de91e"), hex!("5eaa430b1656")];

#[test]
fn secrets_do_not_show() {
    let shown = format!(
        "{:?} {:?} {:?} {:?}",
        Seed::from_bytes(&[0xab; 32]),
        key(),
        StaticSecret::from_bytes(&[0xab; 32]),
        AeadKey::from_bytes(&[0xab; 32]),
    );
    assert_eq!(shown, "Seed(secret) SigningKey(secret) StaticSecret(secret) AeadKey(secret)");
}

#[test]
fn sealed_message_that_was_changed_is_undecryptable() {
    let key = AeadKey::from_bytes(&[5; 32]);
    let mut message = *b"hello, world";
    let tag = key.seal(&Nonce::from_counter(7), b"header", &mut message);
    let sealed = [&message[..], &tag].concat();
    let open = |nonce, header: &[u8], mut sealed: Vec<u8>| {
        key.open(&Nonce::from_counter(nonce), header, &mut sealed).map(|bytes| bytes.to_vec())
    };
    assert_eq!(open(7, b"header", sealed.clone()), Ok(b"hello, world".to_vec()));
    assert_eq!(open(8, b"header", sealed.clone()), Err(Undecryptable));
    assert_eq!(open(7, b"Header", sealed.clone()), Err(Undecryptable));
    assert_eq!(open(7, b"header", sealed[..15].to_vec()), Err(Undecryptable));
    for bit in 0..sealed.len() * 8 {
        let mut changed = sealed.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(open(7, b"header", changed), Err(Undecryptable), "bit {bit}");
    }
}

#[test]
fn without_randomness_there_is_no_key() {
    struct Broken;
    impl Entropy for Broken {
        fn fill(&mut self, _: &mut [u8]) -> Result<(), EntropyError> {
            Err(EntropyError)
        }
    }
    assert!(StaticSecret::generate(&mut Broken).is_err());
    assert!(SigningKey::generate(&mut Broken).is_err());
    assert!(Seed::generate(&mut Broken).is_err());
}
