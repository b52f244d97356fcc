use alloc::vec;

use super::*;

fn owner() -> SigningKey {
    SigningKey::from_bytes(&[7; 32])
}

fn device(number: u8) -> RevokedDevice {
    RevokedDevice {
        name: "a-device-with-a-long-name".parse().unwrap(),
        key: VerifyingKey([number; 32]),
        machine: PublicKey([number; 32]),
    }
}

fn list(entries: usize) -> Revocations {
    let keys = |count: usize| (0..count as u8).map(|number| [number; 32]);
    Revocations {
        number: 3,
        tenants: keys(entries).map(VerifyingKey).collect(),
        devices: (0..entries as u8).map(device).collect(),
        hubs: keys(entries.min(REVOKED_HUBS_MAX)).map(PublicKey).collect(),
    }
}

#[test]
fn longest_list_comes_back_as_it_was_signed_and_one_that_is_longer_is_refused() {
    let signed = list(REVOKED_MAX).sign(&owner()).unwrap();
    let (read, signer) = Revocations::verify(&signed).unwrap();
    assert_eq!((&read, signer), (&list(REVOKED_MAX), owner().verifying_key()));
    assert!(read.has_tenant(&VerifyingKey([3; 32])) && read.has_hub(&PublicKey([3; 32])));
    assert!(
        read.has_device(&VerifyingKey([3; 32])) && read.has_device_machine(&PublicKey([3; 32]))
    );
    assert!(!read.has_tenant(&VerifyingKey([99; 32])) && !read.has_hub(&PublicKey([99; 32])));
    assert!(!read.has_device(&VerifyingKey([99; 32])));
    assert_eq!(list(REVOKED_MAX + 1).sign(&owner()), Err(RevocationsError::TooMany));
    let mut hubs = list(1);
    hubs.hubs = vec![PublicKey([1; 32]); REVOKED_HUBS_MAX + 1];
    assert_eq!(hubs.sign(&owner()), Err(RevocationsError::TooMany));
    // A signature doesn't make up for what is too long.
    let too_long = KIND.sign(&hubs, &owner()).unwrap();
    assert_eq!(Revocations::verify(&too_long), Err(RevocationsError::TooMany));
}

#[test]
fn list_with_any_byte_changed_or_cut_off_is_refused() {
    let signed = list(2).sign(&owner()).unwrap();
    for at in 0..signed.len() {
        let mut changed = signed.clone();
        changed[at] ^= 1;
        assert!(Revocations::verify(&changed).is_err(), "at {at}");
        assert!(Revocations::verify(&signed[..at]).is_err(), "cut at {at}");
    }
}

#[test]
fn no_other_signed_statement_is_taken_for_a_list() {
    let other = crate::Renewal {
        device: VerifyingKey([1; 32]),
        machine: "echo".parse().unwrap(),
        term: tenure_wire::Term::default(),
        sequence: 1,
    };
    let other = other.sign(&owner()).unwrap();
    assert_eq!(Revocations::verify(&other), Err(RevocationsError::NotAList));
    let mut relabelled = other;
    relabelled[..8].copy_from_slice(b"tenurrv\x01");
    assert_eq!(Revocations::verify(&relabelled), Err(RevocationsError::Signature));
}
