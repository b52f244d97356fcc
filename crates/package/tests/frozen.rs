//! Documents that owners, tenants and devices sign, as this version writes them: a later build reads these
//! bytes, and refuses those of a version that it doesn't know by name.

use tenure_crypto::{SigningKey, StaticSecret};
use tenure_hal::simulated::Sequence;
use tenure_package::{
    CodeKind, Engine, Entry, Mandate, Manifest, NO_RECEIPT, Package, PackageBuilder, PackageError,
    Pass, PassError, PassShown, Placed, Placement, Receipt, Release, Renewal, Revocations,
    RevokedDevice, SecretChange, SecretError, SecretQuery, Selector, Snapshot, SnapshotWriter,
    ValueKind,
};
use tenure_testbed::frozen;
use tenure_wire::timer::{PackageTimer, When};
use tenure_wire::usage::Usage;
use tenure_wire::{
    Budget, Capabilities, Digest, Label, MachineId, PublicKey, Share, Term, VerifyingKey,
};

fn key(byte: u8) -> SigningKey {
    SigningKey::from_bytes(&[byte; 32])
}

fn kept(name: &str, written: &[u8]) -> Vec<u8> {
    frozen(env!("CARGO_MANIFEST_DIR"), name, written)
}

/// The bytes with the version in their magic raised, which stands last in it.
fn of_next_version(bytes: &[u8], version_at: usize) -> Vec<u8> {
    let mut later = bytes.to_vec();
    later[version_at] += 1;
    later
}

fn term() -> Term {
    Term {
        signed_unix_s: 1_800_000_000,
        ends_unix_s: Some(1_900_000_000),
        grace_s: 86_400,
        receipts_every_s: 3_600,
    }
}

#[test]
fn placement_of_version_3_is_written_and_read() {
    let placement = Placement {
        package: Digest([1; 32]),
        device: VerifyingKey([2; 32]),
        machine: "echo".parse().unwrap(),
        budget: Budget::default(),
        share: Share::default(),
        grants: Capabilities::default(),
        term: term(),
        sequence: 3,
    };
    let bytes = kept("placement-3", &placement.sign(&key(4)).unwrap());
    assert_eq!(Placement::verify(&bytes, &key(4).verifying_key()), Ok(placement));
    let later = of_next_version(&bytes, 7);
    let refused = Placement::signer(&later).unwrap_err().to_string();
    assert!(refused.contains("version"), "{refused}");
}

#[test]
fn renewal_of_version_1_is_written_and_read() {
    let renewal = Renewal {
        device: VerifyingKey([2; 32]),
        machine: "echo".parse().unwrap(),
        term: term(),
        sequence: 4,
    };
    let bytes = kept("renewal-1", &renewal.sign(&key(4)).unwrap());
    assert_eq!(Renewal::verify(&bytes, &key(4).verifying_key()), Ok(renewal));
    let refused = Renewal::signer(&of_next_version(&bytes, 7)).unwrap_err().to_string();
    assert!(refused.contains("version"), "{refused}");
}

#[test]
fn mandates_of_both_versions_are_written_and_read() {
    let label = |text: &str| text.parse::<Label>().unwrap();
    let mandate = Mandate {
        number: 5,
        machine: "echo".parse().unwrap(),
        devices: Selector::Labels(vec![label("site=harbour"), label("kind=door")]),
        tenant: VerifyingKey([2; 32]),
        package: Digest([1; 32]),
        version: "1.2.0".parse().unwrap(),
        from: "1.0.0".parse().unwrap(),
        budget: Budget::default(),
        grants: Some(Capabilities::default()),
        ends_unix_s: 1_900_000_000,
        back_until_unix_s: 1_900_100_000,
        placed: None,
    };
    let bytes = kept("mandate-1", &mandate.sign(&key(4)).unwrap());
    assert_eq!(Mandate::verify(&bytes, &key(4).verifying_key()), Ok(mandate.clone()));
    let placed = Some(Placed { share: Share::default(), term: term() });
    let placing = Mandate { placed, ..mandate };
    let bytes = kept("mandate-2", &placing.sign(&key(4)).unwrap());
    assert_eq!(Mandate::verify(&bytes, &key(4).verifying_key()), Ok(placing));
    let refused = Mandate::signer(&of_next_version(&bytes, 7)).unwrap_err().to_string();
    assert!(refused.contains("version"), "{refused}");
}

#[test]
fn list_of_revoked_keys_of_version_1_is_written_and_read() {
    let list = Revocations {
        number: 5,
        tenants: vec![VerifyingKey([1; 32])],
        devices: vec![RevokedDevice {
            name: "attic".parse().unwrap(),
            key: VerifyingKey([2; 32]),
            machine: PublicKey([3; 32]),
        }],
        hubs: vec![PublicKey([4; 32])],
    };
    let bytes = kept("revocations-1", &list.sign(&key(4)).unwrap());
    assert_eq!(Revocations::verify(&bytes), Ok((list, key(4).verifying_key())));
    let refused = Revocations::signer(&of_next_version(&bytes, 7)).unwrap_err().to_string();
    assert!(refused.contains("version"), "{refused}");
}

#[test]
fn receipt_of_version_2_is_written_and_read() {
    let receipt = Receipt {
        owner: VerifyingKey([1; 32]),
        tenant: VerifyingKey([2; 32]),
        machine: MachineId([3; 12]),
        name: "echo".parse().unwrap(),
        package: Digest([4; 32]),
        lease: 5,
        tier: 6,
        period_s: 3_600,
        number: 0,
        previous: NO_RECEIPT,
        began_unix_s: Some(1_800_000_000),
        ended_unix_s: None,
        counted_ms: 3_600_000,
        usage: Usage { fuel: 7, run_us: 8, air_bytes: 9, ..Usage::default() },
    };
    let bytes = kept("receipt-2", &receipt.sign(&key(4)).unwrap());
    assert_eq!(Receipt::verify(&bytes), Ok((receipt, key(4).verifying_key())));
    // Version 3 is one that commits to a journal.
    let later = of_next_version(&of_next_version(&bytes, 7), 7);
    let refused = Receipt::verify(&later).unwrap_err().to_string();
    assert!(refused.contains("version"), "{refused}");
}

#[test]
fn firmware_release_of_version_1_is_written_and_read() {
    let release = Release::new("qemu-riscv32", 2, 0x0203, b"image");
    let bytes = kept("firmware-1", &release.to_file(b"image", &key(4)).unwrap());
    let file = Release::from_file(&bytes).unwrap();
    assert_eq!(Release::verify(file.signed, &[key(4).verifying_key()]), Ok(release));
    let refused = Release::signer(&of_next_version(file.signed, 7)).unwrap_err().to_string();
    assert!(refused.contains("version"), "{refused}");
}

#[test]
fn snapshot_of_version_1_is_written_and_read() {
    let name = "echo".parse().unwrap();
    let (mut writer, mut written) = SnapshotWriter::begin(&name, &Digest([1; 32]));
    written.extend(writer.value(&Entry { path: "a.b", kind: ValueKind::Text, value: b"text" }));
    written.extend(writer.value(&Entry { path: "c", kind: ValueKind::Bytes, value: &[0, 255] }));
    written.extend(writer.finish());
    let bytes = kept("snapshot-1", &written);
    let snapshot = Snapshot::parse(&bytes).unwrap();
    let paths: Vec<&str> = snapshot.entries().map(|entry| entry.path).collect();
    assert_eq!(paths, ["a.b", "c"]);
}

fn echo() -> PackageBuilder {
    let manifest = Manifest {
        name: "echo".parse().unwrap(),
        version: "1.2.3".parse().unwrap(),
        description: "says it again".into(),
        code: vec![CodeKind::WebAssembly],
        engine: Engine::Vm,
        budget: Budget::default(),
        capabilities: Capabilities::default(),
        exports: vec![],
        timers: vec![PackageTimer { function: "tick".into(), when: When::Every(10_000) }],
        errors: tenure_wire::Audience::Callers,
        log: tenure_wire::LogLevel::Info,
    };
    let builder = PackageBuilder::new(manifest, b"\0asm\x01\0\0\0".to_vec()).unwrap();
    builder.value("config.unit", ValueKind::Text, b"celsius").unwrap()
}

#[test]
fn package_of_version_5_is_written_without_compiled_code_and_read() {
    let bytes = kept("package-5", &echo().sign(&key(4)).unwrap());
    let package = Package::parse(&bytes).unwrap();
    assert_eq!(package.verify(), Ok(()));
    assert_eq!(package.manifest().version.to_string(), "1.2.3");
    assert_eq!(package.tenant(), key(4).verifying_key());
    assert_eq!(package.compiled_kinds().count(), 0);
    // Its header has no length of compiled code.
    assert!(Package::parse(&of_next_version(&bytes, 7)).is_err());
}

#[test]
fn package_of_version_6_is_written_with_compiled_code_and_read() {
    let builder = echo().compiled(CodeKind::Thumb, vec![1, 2, 3]).unwrap();
    let builder = builder.compiled(CodeKind::Rv32, vec![4, 5]).unwrap();
    let bytes = kept("package-6", &builder.sign(&key(4)).unwrap());
    let package = Package::parse(&bytes).unwrap();
    assert_eq!(package.verify(), Ok(()));
    assert_eq!(package.compiled(CodeKind::Rv32), Some(&[4, 5][..]));
    assert_eq!(package.compiled(CodeKind::Thumb), Some(&[1, 2, 3][..]));
    assert_eq!(package.code(CodeKind::WebAssembly), Some(&b"\0asm\x01\0\0\0"[..]));
    let mut other = bytes.clone();
    other[bytes.len() - 65] ^= 1;
    assert_eq!(Package::parse(&other).unwrap().verify(), Err(PackageError::Signature));
}

#[test]
fn package_of_version_7_is_written_with_a_star_of_its_own_and_read() {
    let mut manifest = Manifest::new("echo".parse().unwrap(), "1.2.3".parse().unwrap());
    let when = When::At("30 6 */2 * mon".parse().unwrap());
    manifest.timers = vec![PackageTimer { function: "tick".into(), when }];
    let builder = PackageBuilder::new(manifest.clone(), b"\0asm\x01\0\0\0".to_vec()).unwrap();
    let bytes = kept("package-7", &builder.sign(&key(4)).unwrap());
    let package = Package::parse(&bytes).unwrap();
    assert_eq!((package.verify(), package.manifest()), (Ok(()), &manifest));
    assert_eq!(package.compiled_kinds().count(), 0);
}

#[test]
fn package_of_version_8_is_written_with_a_zone_and_read() {
    let mut manifest = Manifest::new("echo".parse().unwrap(), "1.2.3".parse().unwrap());
    let when = When::at("TZ=CET-1CEST,M3.5.0,M10.5.0/3 30 6 * * mon").unwrap();
    manifest.timers = vec![PackageTimer { function: "tick".into(), when }];
    let builder = PackageBuilder::new(manifest.clone(), b"\0asm\x01\0\0\0".to_vec()).unwrap();
    let bytes = kept("package-8", &builder.sign(&key(4)).unwrap());
    let package = Package::parse(&bytes).unwrap();
    assert_eq!((package.verify(), package.manifest()), (Ok(()), &manifest));
    let later = of_next_version(&bytes, 7);
    assert_eq!(Package::parse(&later).unwrap_err(), PackageError::FormatVersion { version: 9 });
}

#[test]
fn change_of_a_secret_of_version_1_is_written_and_opened() {
    let (device, tenant) = (StaticSecret::from_bytes(&[1; 32]), key(4).verifying_key());
    let to = (VerifyingKey([2; 32]), &device.public_key());
    let name = ("token".parse().unwrap(), 300);
    let change = SecretChange::set(&mut Sequence(5), &tenant, to, name, b"value").unwrap();
    let bytes = kept("secret-1", &change.sign(&key(4)).unwrap());
    let (read, signer) = SecretChange::verify(&bytes).unwrap();
    assert_eq!((&read, signer), (&change, tenant));
    assert_eq!(read.open(&tenant, &device).unwrap().unwrap()[..], b"value"[..]);
    let refused = SecretChange::verify(&of_next_version(&bytes, 7)).unwrap_err();
    assert_eq!(refused, SecretError::FormatVersion);
}

#[test]
fn question_about_secrets_of_version_1_is_written_and_read() {
    let query = SecretQuery { device: VerifyingKey([2; 32]), caller: PublicKey([3; 32]) };
    let bytes = kept("secret-query-1", &query.sign(&key(4)).unwrap());
    assert_eq!(SecretQuery::verify(&bytes), Ok((query, key(4).verifying_key())));
    let refused = SecretQuery::verify(&of_next_version(&bytes, 7)).unwrap_err();
    assert_eq!(refused, SecretError::FormatVersion);
}

#[test]
fn pass_of_version_1_is_written_read_and_shown() {
    let (owner, tenant) = (key(4), key(5));
    let pass = Pass {
        tenant: tenant.verifying_key(),
        device: VerifyingKey([2; 32]),
        ends_unix_s: 1_900_000_000,
    };
    let bytes = kept("pass-1", &pass.sign(&owner).unwrap());
    assert_eq!(Pass::verify(&bytes, &owner.verifying_key()), Ok(pass));
    let refused = Pass::verify(&bytes, &tenant.verifying_key());
    assert_eq!(refused, Err(PassError::OtherOwner));
    assert_eq!(Pass::signer(&of_next_version(&bytes, 7)), Err(PassError::FormatVersion));
    let shown = PassShown { pass: bytes, caller: PublicKey([3; 32]) };
    let bytes = kept("pass-shown-1", &shown.sign(&tenant).unwrap());
    assert_eq!(PassShown::verify(&bytes), Ok((shown, tenant.verifying_key())));
    let refused = PassShown::verify(&of_next_version(&bytes, 7)).unwrap_err();
    assert_eq!(refused, PassError::FormatVersion);
}
