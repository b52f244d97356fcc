//! Packages and placements as bytes: what goes in comes out, and nothing else gets in.

use proptest::prelude::*;
use tenure_crypto::SigningKey;
use tenure_package::{
    CODE_BYTES_MAX, COMPILED_BYTES_MAX, CodeKind, Engine, Manifest, ManifestError, Package,
    PackageBuilder, PackageError, Placement, PlacementError, TREE_BYTES_MAX, TreeError, ValueKind,
};
use tenure_wire::limits::VALUE_BYTES_MAX;
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

/// A package as a stranger may write it: no part of it is checked on the way.
fn written(manifest: &Manifest, tree: &[u8], code: &[u8]) -> Vec<u8> {
    let manifest = postcard::to_allocvec(manifest).unwrap();
    let parts = [&manifest, tree, code];
    let lengths = parts.map(|part| (part.len() as u32).to_le_bytes());
    let head = package()[..8 + 32].to_vec();
    [head, lengths.concat(), parts.concat(), vec![0; 64]].concat()
}

/// Code of one kind, with its length.
fn section(code: &[u8]) -> Vec<u8> {
    [&(code.len() as u32).to_le_bytes(), code].concat()
}

#[test]
fn manifest_of_a_stranger_that_says_what_it_may_not_is_refused_by_name() {
    let code = section(CODE);
    assert!(Package::parse(&written(&manifest(), b"", &code)).is_ok());
    let refused = |change: fn(&mut Manifest), sections: usize| {
        let mut manifest = manifest();
        change(&mut manifest);
        let builder = PackageBuilder::with_code(manifest.clone(), &vec![CODE.into(); sections]);
        let parsed = written(&manifest, b"", &code.repeat(sections));
        let error = Package::parse(&parsed).unwrap_err();
        assert_eq!(builder.unwrap_err(), error, "who makes a package is told the same");
        error
    };
    let description = |manifest: &mut Manifest| manifest.description = "d".repeat(257);
    assert_eq!(refused(description, 1), PackageError::Manifest(ManifestError::Description));
    let control = |manifest: &mut Manifest| manifest.exports[0] = "a\x1b[2J".into();
    let expected = PackageError::Manifest(ManifestError::ExportName { export: 0 });
    assert_eq!(refused(control, 1), expected);
    let twice = |manifest: &mut Manifest| manifest.exports[1] = "entry".into();
    let expected = PackageError::Manifest(ManifestError::ExportTwice { export: 1 });
    assert_eq!(refused(twice, 1), expected);
    let timer = |manifest: &mut Manifest| manifest.timers[1].function = "tick".into();
    assert_eq!(refused(timer, 1), PackageError::Manifest(ManifestError::Timer { timer: 1 }));
    // A kind that is listed twice has two sections, and a package without code is none.
    let kinds = |manifest: &mut Manifest| manifest.code = vec![CodeKind::WebAssembly; 2];
    assert_eq!(refused(kinds, 2), PackageError::Manifest(ManifestError::Code));
    let none = |manifest: &mut Manifest| manifest.code.clear();
    assert_eq!(refused(none, 0), PackageError::Manifest(ManifestError::Code));
}

#[test]
fn code_is_as_many_whole_sections_as_the_manifest_lists_and_nothing_else() {
    let parse = |code: &[u8]| Package::parse(&written(&manifest(), b"", code)).map(drop);
    let code = section(CODE);
    assert_eq!(parse(&code), Ok(()));
    for wrong in [
        &b""[..],
        &code[..3],
        &code[..code.len() - 1],
        &[&code[..], b"\0"].concat(),
        &[&code[..], &code[..]].concat(),
        &[&code[..], &section(b"")].concat(),
    ] {
        assert_eq!(parse(wrong), Err(PackageError::Code), "{wrong:?}");
    }
    let two = Manifest { code: vec![CodeKind::WebAssembly, CodeKind::Rv32], ..manifest() };
    let both = [section(CODE), section(b"rv32")].concat();
    let parse = |code: &[u8]| Package::parse(&written(&two, b"", code)).map(drop);
    assert_eq!(parse(&both), Ok(()));
    assert_eq!(parse(&code), Err(PackageError::Code));
    assert_eq!(parse(&[&both[..], b"\0"].concat()), Err(PackageError::Code));
}

#[test]
fn compiled_code_is_whole_sections_in_order_and_there_is_some_where_the_format_says_so() {
    let with = |kinds: &[CodeKind]| {
        let mut builder = PackageBuilder::new(manifest(), CODE.into()).unwrap();
        for kind in kinds {
            builder = builder.compiled(*kind, vec![*kind as u8; 8]).unwrap();
        }
        builder.sign(&key(1)).unwrap()
    };
    let (none, bytes) = (with(&[]), with(&[CodeKind::Rv32, CodeKind::Thumb]));
    let package = Package::parse(&bytes).unwrap();
    assert_eq!(package.compiled_kinds().collect::<Vec<_>>(), [CodeKind::Rv32, CodeKind::Thumb]);
    assert_eq!(package.compiled(CodeKind::Thumb), Some(&[CodeKind::Thumb as u8; 8][..]));
    // Its compiled code is two sections of 16 bytes before the signature.
    let (before, signature) = bytes.split_at(bytes.len() - 64);
    let (before, compiled) = before.split_at(before.len() - 32);
    let changed = |compiled: &[u8]| {
        let length = (compiled.len() as u32).to_le_bytes();
        let mut bytes = [before, compiled, signature].concat();
        bytes[52..56].copy_from_slice(&length);
        Package::parse(&bytes).map(drop)
    };
    assert_eq!(changed(compiled), Ok(()));
    let (rv32, thumb) = compiled.split_at(16);
    for wrong in [
        &[thumb, rv32].concat()[..],
        &[rv32, rv32].concat(),
        &compiled[..31],
        &[compiled, b"\0"].concat(),
        // The format says that there is some.
        b"",
    ] {
        assert_eq!(changed(wrong), Err(PackageError::Code), "{wrong:?}");
    }
    assert!(Package::parse(&none).unwrap().compiled_kinds().next().is_none());
    let refused = |kind| {
        let builder = PackageBuilder::new(manifest(), CODE.into()).unwrap();
        builder.compiled(kind, vec![1]).map(drop)
    };
    assert_eq!(refused(CodeKind::WebAssembly).unwrap_err(), PackageError::Code);
}

#[test]
fn value_of_the_greatest_length_fits_and_one_byte_more_is_refused() {
    let with = |length: usize| {
        let builder = PackageBuilder::new(manifest(), CODE.into()).unwrap();
        builder.value("long", ValueKind::Bytes, &vec![7; length])?.sign(&key(1))
    };
    let bytes = with(VALUE_BYTES_MAX).unwrap();
    let package = Package::parse(&bytes).unwrap();
    assert_eq!(package.tree().entries().next().unwrap().value.len(), VALUE_BYTES_MAX);
    assert_eq!(with(VALUE_BYTES_MAX + 1), Err(PackageError::Tree(TreeError::Value)));
}

#[test]
fn parts_of_the_greatest_length_fit_and_one_byte_more_is_refused() {
    let code = |length: usize| PackageBuilder::new(manifest(), vec![7; length])?.sign(&key(1));
    // Before it stands its length.
    let bytes = code(CODE_BYTES_MAX - 4).unwrap();
    let package = Package::parse(&bytes).unwrap();
    assert_eq!(package.code_bytes(), CODE_BYTES_MAX - 4);
    assert_eq!(code(CODE_BYTES_MAX - 3), Err(PackageError::TooLarge));

    let compiled = |length: usize| {
        let builder = PackageBuilder::new(manifest(), CODE.into())?;
        builder.compiled(CodeKind::Rv32, vec![7; length])?.sign(&key(1))
    };
    let bytes = compiled(COMPILED_BYTES_MAX - 8).unwrap();
    let found = Package::parse(&bytes).unwrap().compiled(CodeKind::Rv32).unwrap().len();
    assert_eq!(found, COMPILED_BYTES_MAX - 8);
    assert_eq!(compiled(COMPILED_BYTES_MAX - 7), Err(PackageError::TooLarge));

    // Entries of 4 + 4 + 2,040 bytes.
    let tree = |first: usize| {
        let mut builder = PackageBuilder::new(manifest(), CODE.into())?;
        for number in 0..TREE_BYTES_MAX / 2048 {
            let length = if number == 0 { first } else { 2040 };
            builder =
                builder.value(&format!("v{number:0>3}"), ValueKind::Bytes, &vec![7; length])?;
        }
        builder.sign(&key(1))
    };
    let bytes = tree(2040).unwrap();
    assert_eq!(Package::parse(&bytes).unwrap().tree().entries().count(), TREE_BYTES_MAX / 2048);
    assert_eq!(tree(2041), Err(PackageError::TooLarge));
}

#[test]
fn lists_of_a_manifest_are_read_no_further_than_they_may_be_long() {
    let with = |exports: usize| {
        let exports = (0..exports).map(|number| format!("e{number}")).collect();
        written(&Manifest { exports, ..manifest() }, b"", &section(CODE))
    };
    assert!(Package::parse(&with(64)).is_ok());
    assert_eq!(Package::parse(&with(65)).unwrap_err(), PackageError::ManifestForm);
    let followed = |rest: &[u8]| {
        let manifest = [&postcard::to_allocvec(&manifest()).unwrap()[..], rest].concat();
        let parts = [&manifest[..], b"", &section(CODE)];
        let lengths = parts.map(|part| (part.len() as u32).to_le_bytes());
        let head = package()[..8 + 32].to_vec();
        let bytes = [head, lengths.concat(), parts.concat(), vec![0; 64]].concat();
        Package::parse(&bytes).map(drop)
    };
    assert_eq!((followed(b""), followed(b"\0")), (Ok(()), Err(PackageError::ManifestForm)));
}

#[test]
fn package_has_the_oldest_format_that_says_all_of_it() {
    let version = |timers: Vec<PackageTimer>, is_compiled: bool| {
        let manifest = Manifest { timers, ..manifest() };
        let mut builder = PackageBuilder::new(manifest, CODE.into()).unwrap();
        if is_compiled {
            builder = builder.compiled(CodeKind::Rv32, vec![1]).unwrap();
        }
        builder.sign(&key(1)).unwrap()[7]
    };
    let at =
        |text: &str| PackageTimer { function: "f".into(), when: When::At(text.parse().unwrap()) };
    let every = PackageTimer { function: "g".into(), when: When::Every(10_000) };
    assert_eq!(version(vec![every.clone()], false), 5);
    assert_eq!(version(vec![every.clone(), at("06:30")], false), 5);
    assert_eq!(version(vec![every], true), 6);
}

#[test]
fn code_of_each_kind_is_given_and_compiled_code_needs_wasm() {
    let short = PackageBuilder::with_code(manifest(), &[]);
    assert_eq!(short.map(drop).unwrap_err(), PackageError::Code);
    let kinds = vec![CodeKind::Rv32];
    let native = PackageBuilder::new(Manifest { code: kinds, ..manifest() }, vec![1]).unwrap();
    let compiled = native.compiled(CodeKind::Rv32, vec![1]);
    assert_eq!(compiled.map(drop).unwrap_err(), PackageError::Code);
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
