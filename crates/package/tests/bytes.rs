//! Packages and placements as bytes: what goes in comes out, and nothing else gets in.

use proptest::prelude::*;
use tenure_crypto::SigningKey;
use tenure_package::{
    CodeKind, Engine, Manifest, Package, PackageBuilder, PackageError, Placement, PlacementError,
    ValueKind,
};
use tenure_wire::timer::{PackageTimer, When};
use tenure_wire::{Budget, Capabilities, Digest, Share, Term, VerifyingKey};

const CODE: &[u8] = b"\0asm\x01\0\0\0";

fn key(number: u8) -> SigningKey {
    SigningKey::from_bytes(&[number; 32])
}

fn manifest() -> Manifest {
    Manifest {
        name: "thermostat".parse().unwrap(),
        version: "1.2.3".parse().unwrap(),
        description: "keeps warm".into(),
        exports: vec!["entry".into(), "read".into()],
        budget: Budget::default(),
        capabilities: Capabilities {
            calls: vec!["boiler@*".parse().unwrap()],
            ..Capabilities::default()
        },
        code: vec![CodeKind::WebAssembly],
        engine: Engine::default(),
        errors: tenure_wire::Audience::Callers,
        log: tenure_wire::LogLevel::Info,
        timers: vec![
            PackageTimer { function: "tick".into(), when: When::Every(10_000) },
            PackageTimer { function: "water".into(), when: When::At("06:30".parse().unwrap()) },
        ],
    }
}

fn package() -> Vec<u8> {
    PackageBuilder::new(manifest(), CODE.into())
        .and_then(|package| package.value("target", ValueKind::Text, b"21"))
        .and_then(|package| package.value("curve.points", ValueKind::Bytes, &[0, 255]))
        .and_then(|package| package.sign(&key(1)))
        .unwrap()
}

fn placement() -> Placement {
    Placement {
        package: Digest([7; 32]),
        device: key(3).verifying_key(),
        machine: "attic".parse().unwrap(),
        budget: Budget::default(),
        share: Share::default(),
        grants: Capabilities::default(),
        term: Term::default(),
        sequence: 5,
    }
}

#[test]
fn package_comes_back_as_it_was_made() {
    let bytes = package();
    let package = Package::parse(&bytes).unwrap();
    package.verify().unwrap();
    assert_eq!(package.manifest(), &manifest());
    assert_eq!(package.code(CodeKind::WebAssembly), Some(CODE));
    assert_eq!(package.code(CodeKind::Rv32), None);
    assert_eq!(package.tenant(), key(1).verifying_key());
    let paths: Vec<_> = package.tree().entries().map(|entry| entry.path).collect();
    assert_eq!(paths, ["curve.points", "target"]);
}

#[test]
fn same_input_gives_the_same_bytes() {
    assert_eq!(package(), package());
    let bytes = package();
    let digest = Package::parse(&bytes).unwrap().digest();
    assert_eq!(digest, tenure_crypto::sha256(&[&bytes[..bytes.len() - 64]]));
}

#[test]
fn package_of_another_tenant_is_refused() {
    let mut bytes = package();
    bytes[8..40].copy_from_slice(&key(2).verifying_key().0);
    assert_eq!(Package::parse(&bytes).unwrap().verify(), Err(PackageError::Signature));
}

#[test]
fn cut_package_is_refused_at_every_length() {
    let bytes = package();
    for length in 0..bytes.len() {
        let error = Package::parse(&bytes[..length]).unwrap_err();
        let expected = if length < 7 { PackageError::NotAPackage } else { PackageError::Truncated };
        assert_eq!(error, expected, "{length}");
    }
}

#[test]
fn flipped_bit_never_verifies() {
    let bytes = package();
    for bit in 0..bytes.len() * 8 {
        let mut bytes = bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(Package::parse(&bytes).and_then(|package| package.verify()).is_err(), "{bit}");
    }
}

#[test]
fn form_errors_name_their_cause() {
    let mut bytes = package();
    bytes.push(0);
    assert_eq!(Package::parse(&bytes).unwrap_err(), PackageError::TrailingBytes { bytes: 1 });
    let mut bytes = package();
    bytes[7] = 9;
    assert_eq!(Package::parse(&bytes).unwrap_err(), PackageError::FormatVersion { version: 9 });
    let mut bytes = package();
    bytes[48..52].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(Package::parse(&bytes).unwrap_err(), PackageError::TooLarge);
    assert_eq!(Package::parse(CODE).unwrap_err(), PackageError::NotAPackage);
}

#[test]
fn placement_comes_back_as_it_was_signed() {
    let bytes = placement().sign(&key(2)).unwrap();
    assert_eq!(Placement::verify(&bytes, &key(2).verifying_key()), Ok(placement()));
    assert_eq!(Placement::verify(&bytes, &key(1).verifying_key()), Err(PlacementError::OtherOwner));
}

#[test]
fn changed_placement_is_refused() {
    let owner = key(2).verifying_key();
    let bytes = placement().sign(&key(2)).unwrap();
    for length in 0..bytes.len() {
        assert!(Placement::verify(&bytes[..length], &owner).is_err(), "{length}");
    }
    for bit in 0..bytes.len() * 8 {
        let mut bytes = bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(Placement::verify(&bytes, &owner).is_err(), "{bit}");
    }
}

#[test]
fn signature_of_a_package_is_none_of_a_placement() {
    let package = package();
    let mut forged = placement().sign(&key(1)).unwrap();
    let end = forged.len();
    forged[end - 64..].copy_from_slice(&package[package.len() - 64..]);
    assert_eq!(Placement::verify(&forged, &key(1).verifying_key()), Err(PlacementError::Signature));
}

proptest! {
    #[test]
    fn hostile_bytes_do_no_harm(tail in proptest::collection::vec(any::<u8>(), 0..600)) {
        let hostile = [b"tenurpk\x05".as_slice(), &tail].concat();
        prop_assert!(Package::parse(&hostile).and_then(|package| package.verify()).is_err());
        let hostile = [b"tenurpl\x03".as_slice(), &tail].concat();
        prop_assert!(Placement::verify(&hostile, &VerifyingKey([1; 32])).is_err());
    }

    #[test]
    fn hostile_body_under_true_lengths_does_no_harm(
        at in 52_usize..200, bytes in proptest::collection::vec(any::<u8>(), 1..64)
    ) {
        let mut package = package();
        let at = at.min(package.len() - bytes.len());
        let changed = package[at..at + bytes.len()] != bytes[..];
        package[at..at + bytes.len()].copy_from_slice(&bytes);
        let outcome = Package::parse(&package).and_then(|package| package.verify());
        prop_assert_eq!(outcome.is_err(), changed);
    }

    #[test]
    fn signed_nonsense_does_no_harm(body in proptest::collection::vec(any::<u8>(), 0..200)) {
        // A tenant or owner who signs garbage is a hostile one, and refused by form.
        let context = tenure_crypto::Context::new("placement");
        let mut bytes = [b"tenurpl\x03".as_slice(), &key(2).verifying_key().0, &body].concat();
        let signature = key(2).sign(context, &bytes);
        bytes.extend(signature.to_bytes());
        let outcome = Placement::verify(&bytes, &key(2).verifying_key());
        prop_assert!(matches!(outcome, Ok(_) | Err(PlacementError::Form)));
    }
}
