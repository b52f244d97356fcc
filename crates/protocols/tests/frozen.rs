//! Invitations to a mesh, as this version writes them: a later build takes these bytes, and refuses those of a
//! version that it doesn't know.

use tenure_crypto::{SigningKey, StaticSecret};
use tenure_hal::simulated::Sequence;
use tenure_protocols::network_key::{InvitationError, NetworkKey, accept, invite};
use tenure_testbed::frozen;

#[test]
fn invitation_of_version_1_is_written_and_accepted() {
    let (owner, network) = (SigningKey::from_bytes(&[1; 32]), NetworkKey::from_bytes(&[2; 32]));
    let device = StaticSecret::from_bytes(&[3; 32]);
    let key = device.public_key();
    let written = invite(&owner, &key, 4, &network, &mut Sequence(5)).unwrap();
    let bytes = frozen(env!("CARGO_MANIFEST_DIR"), "invitation-1", &written);
    let (accepted, number) = accept(&bytes, &owner.verifying_key(), &device).unwrap();
    assert_eq!((accepted.as_bytes(), number), (network.as_bytes(), 4));

    let mut later = bytes;
    later[7] += 1;
    let refused = accept(&later, &owner.verifying_key(), &device).err();
    assert_eq!(refused, Some(InvitationError::Signature), "the signature covers the version");
}
