//! An owner's word to a hub that a session is its own.

use tenure_crypto::{BadSignature, Context, SigningKey, verify};
use tenure_wire::PublicKey;
use tenure_wire::directory::{Asker, AskerStatement};

const ASKER: Context = Context::new("asker at a hub");

/// Signs that the sessions of the key `session` with the hub of the key `hub` are `owner`'s.
pub fn sign_asker(owner: &SigningKey, hub: PublicKey, session: PublicKey) -> Asker {
    let statement = statement(hub, session);
    Asker { owner: owner.verifying_key(), signature: owner.sign(ASKER, &statement) }
}

/// Checks that the owner whom `asker` names signed that these sessions are its own.
///
/// # Errors
/// [`BadSignature`] if not.
pub fn check_asker(asker: &Asker, hub: PublicKey, session: PublicKey) -> Result<(), BadSignature> {
    verify(&asker.owner, ASKER, &statement(hub, session), &asker.signature)
}

fn statement(hub: PublicKey, session: PublicKey) -> alloc::vec::Vec<u8> {
    // A value of fixed length is always encoded, unless memory runs out.
    postcard::to_allocvec(&AskerStatement { hub, session }).unwrap_or_default()
}
