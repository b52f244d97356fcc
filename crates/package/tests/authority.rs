//! A document that an owner or a tenant signed is valid for the device and the purpose named in it alone.

use tenure_crypto::{Seed, SigningKey};
use tenure_hal::simulated::Sequence;
use tenure_package::{PlacementError, Renewal, SecretChange, SecretError};
use tenure_wire::{Term, VerifyingKey};

fn key(byte: u8) -> SigningKey {
    SigningKey::from_bytes(&[byte; 32])
}

#[test]
fn a_renewal_counts_for_its_own_owner_alone() {
    let renewal = Renewal {
        device: VerifyingKey([3; 32]),
        machine: "echo".parse().unwrap(),
        term: Term::default(),
        sequence: 2,
    };
    let signed = renewal.sign(&key(1)).unwrap();
    assert_eq!(Renewal::verify(&signed, &key(1).verifying_key()), Ok(renewal));
    let other = Renewal::verify(&signed, &key(2).verifying_key());
    assert_eq!(other, Err(PlacementError::OtherOwner));
}

#[test]
fn a_sealed_secret_opens_for_its_tenant_its_number_its_name_and_its_device_alone() {
    let (tenant, device) = (key(1).verifying_key(), VerifyingKey([3; 32]));
    let secret = Seed::from_bytes(&[5; 32]).device_secret();
    let name = "wifi".parse().unwrap();
    let place = (device, &secret.public_key());
    let change = SecretChange::set(&mut Sequence(1), &tenant, place, (name, 7), b"value").unwrap();
    let opened = |change: &SecretChange, tenant: &VerifyingKey| {
        change.open(tenant, &secret).map(|value| value.map(|value| value.to_vec()))
    };
    assert_eq!(opened(&change, &tenant), Ok(Some(b"value".to_vec())));
    assert_eq!(opened(&change, &key(2).verifying_key()), Err(SecretError::Sealed));
    let mut later = change.clone();
    later.version += 1;
    assert_eq!(opened(&later, &tenant), Err(SecretError::Sealed));
    let mut renamed = change.clone();
    renamed.name = "door".parse().unwrap();
    assert_eq!(opened(&renamed, &tenant), Err(SecretError::Sealed));
    let mut elsewhere = change.clone();
    elsewhere.device = VerifyingKey([4; 32]);
    assert_eq!(opened(&elsewhere, &tenant), Err(SecretError::Sealed));
}
