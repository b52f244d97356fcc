//! All that a device does with keys: agree, seal, sign, verify, hash.
#![no_std]
#![no_main]

use tenure_crypto::{
    AeadKey, Context, Nonce, Seed, hmac_sha256, machine_id, sha256, verify_digest,
};
use tenure_size::{keep, probe, unknown, unknown_bytes};
use tenure_wire::{PublicKey, Signature, VerifyingKey};

const CONTEXT: Context = Context::new("probe");

probe!({
    let bytes = unknown_bytes();
    let seed = Seed::from_bytes(&unknown());
    keep(machine_id(&PublicKey(unknown())));
    keep(seed.device_secret().agree(&PublicKey(unknown())).is_ok());
    let signing = seed.device_signing_key();
    keep(signing.verifying_key());
    keep(hmac_sha256(bytes, &[bytes]));
    let key = AeadKey::from_bytes(&unknown());
    let mut message = unknown::<64>();
    keep(key.seal(&Nonce::from_counter(0), bytes, &mut message));
    keep(message);
    let signature = Signature::from_bytes(&unknown());
    let verifying = VerifyingKey(unknown());
    keep(verify_digest(&verifying, CONTEXT, &sha256(&[bytes]), &signature).is_ok());
    keep(signing.sign(CONTEXT, bytes));
});
