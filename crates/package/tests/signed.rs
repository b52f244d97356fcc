//! Signed statements at the bounds of their formats: what just fits is taken, one more is refused, and each refusal has its
//! name.

use tenure_crypto::{Context, Seed, SigningKey};
use tenure_hal::simulated::Sequence;
use tenure_package::{
    FirmwareError, MANDATE_BYTES_MAX, Mandate, MandateError, Pass, PassError, PassShown, Placed,
    RELEASE_BYTES_MAX, Release, Renewal, SecretChange, SecretError, SecretQuery, Selector,
};
use tenure_wire::limits::SECRET_BYTES_MAX;
use tenure_wire::{
    Budget, Capabilities, Digest, Label, Name, PublicKey, Share, Term, VerifyingKey,
};

fn key(number: u8) -> SigningKey {
    SigningKey::from_bytes(&[number; 32])
}

/// A statement that nobody of ours would sign, signed.
fn forged(magic: &[u8; 8], context: &'static str, body: &[u8], key: &SigningKey) -> Vec<u8> {
    let mut bytes = [&magic[..], &key.verifying_key().0, body].concat();
    let signature = key.sign(Context::new(context), &bytes);
    bytes.extend(signature.to_bytes());
    bytes
}

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn labels(texts: &[&str]) -> Vec<Label> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn mandate() -> Mandate {
    Mandate {
        number: 4,
        machine: name("store"),
        devices: Selector::Names(vec![name("attic")]),
        tenant: key(1).verifying_key(),
        package: Digest([5; 32]),
        version: "1.2.3".parse().unwrap(),
        from: "1.0.0".parse().unwrap(),
        budget: Budget::default(),
        grants: None,
        ends_unix_s: 1_800_000_000,
        back_until_unix_s: 1_800_000_100,
        placed: None,
    }
}

fn placed() -> Placed {
    Placed { share: Share::default(), term: Term::default() }
}

#[test]
fn mandate_of_either_version_comes_back_for_its_owner_alone() {
    let owner = key(2).verifying_key();
    for placed in [None, Some(placed())] {
        let written = Mandate { placed, grants: Some(Capabilities::default()), ..mandate() };
        let bytes = written.sign(&key(2)).unwrap();
        assert_eq!(bytes[7], if placed.is_some() { 2 } else { 1 });
        assert_eq!(Mandate::signer(&bytes), Ok(owner));
        assert_eq!(Mandate::verify(&bytes, &owner), Ok(written));
        let other = Mandate::verify(&bytes, &key(1).verifying_key());
        assert_eq!(other, Err(MandateError::OtherOwner));
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert!(Mandate::verify(&changed, &owner).is_err(), "byte {at}");
        }
        let mut next = bytes.clone();
        next[7] = 3;
        assert_eq!(Mandate::signer(&next), Err(MandateError::FormatVersion));
        assert_eq!(Mandate::verify(&next, &owner), Err(MandateError::FormatVersion));
        assert_eq!(Mandate::signer(&bytes[..7]), Err(MandateError::NotAMandate));
        assert_eq!(Mandate::signer(&bytes[..39]), Err(MandateError::Truncated));
    }
}

#[test]
fn mandate_selects_devices_by_name_or_by_all_of_its_labels() {
    let attic = name("attic");
    let by_name = Selector::Names(vec![name("cellar"), name("attic")]);
    assert!(by_name.selects(&attic, &[]) && !by_name.selects(&name("garden"), &[]));
    let by_labels = Selector::Labels(labels(&["site=harbour", "floor=two"]));
    assert!(by_labels.selects(&attic, &labels(&["floor=two", "roof=flat", "site=harbour"])));
    assert!(!by_labels.selects(&attic, &labels(&["site=harbour"])));
    assert!(!by_labels.selects(&attic, &labels(&["site=harbour", "floor=one"])));
    assert!(!by_labels.selects(&attic, &[]));
}

#[test]
fn mandate_that_selects_nothing_or_asks_for_what_there_is_not_is_neither_signed_nor_taken() {
    let owner = key(2);
    let twice = Capabilities { secrets: vec![name("wifi"); 2], ..Capabilities::default() };
    let no_tier = Share { tier: 0, ..Share::default() };
    for bad in [
        Mandate { devices: Selector::Names(Vec::new()), ..mandate() },
        Mandate { devices: Selector::Labels(Vec::new()), ..mandate() },
        Mandate { grants: Some(twice), ..mandate() },
        Mandate { placed: Some(Placed { share: no_tier, ..placed() }), ..mandate() },
    ] {
        assert_eq!(bad.sign(&owner), Err(MandateError::Form), "{bad:?}");
        // An owner who signs with other tools is told the same.
        let bytes = match &bad.placed {
            None => {
                let body = postcard::to_allocvec(&bad).unwrap();
                forged(b"tenurmd\x01", "mandate", &body, &owner)
            }
            Some(placed) => {
                let body = postcard::to_allocvec(&(&bad, placed)).unwrap();
                forged(b"tenurmd\x02", "mandate", &body, &owner)
            }
        };
        let taken = Mandate::verify(&bytes, &owner.verifying_key());
        assert_eq!(taken, Err(MandateError::Form), "{bad:?}");
    }
    for good in [Selector::Labels(labels(&["a=b"])), Selector::Names(vec![name("a")])] {
        assert!(Mandate { devices: good, ..mandate() }.sign(&owner).is_ok());
    }
}

#[test]
fn mandate_is_as_long_as_it_may_be_and_no_longer() {
    let owner = key(2);
    let of = |devices: usize, more_letters: usize| {
        let names = (0..devices).map(|number| name(&format!("device-{number:0>25}")));
        // Two names take the letters.
        let last = name(&"n".repeat(1 + more_letters.min(20)));
        let machine = name(&"m".repeat(1 + more_letters.saturating_sub(20)));
        let devices = Selector::Names(names.chain([last]).collect());
        Mandate { devices, machine, ..mandate() }.sign(&owner)
    };
    let devices = (0..300).rev().find(|devices| of(*devices, 0).is_ok()).unwrap();
    let left = MANDATE_BYTES_MAX - of(devices, 0).unwrap().len();
    let bytes = of(devices, left).unwrap();
    assert_eq!(bytes.len(), MANDATE_BYTES_MAX);
    assert!(Mandate::verify(&bytes, &owner.verifying_key()).is_ok());
    assert_eq!(of(devices, left + 1), Err(MandateError::TooLong));
}

#[test]
fn pass_counts_for_its_owner_and_is_shown_by_its_tenant() {
    let (owner, tenant) = (key(2), key(1));
    let pass = Pass {
        tenant: tenant.verifying_key(),
        device: key(3).verifying_key(),
        ends_unix_s: 1_800_000_000,
    };
    let bytes = pass.sign(&owner).unwrap();
    assert_eq!(Pass::signer(&bytes), Ok(owner.verifying_key()));
    assert_eq!(Pass::verify(&bytes, &owner.verifying_key()), Ok(pass));
    let other = Pass::verify(&bytes, &tenant.verifying_key());
    assert_eq!(other, Err(PassError::OtherOwner));
    let shown = PassShown { pass: bytes.clone(), caller: PublicKey([9; 32]) };
    let said = shown.sign(&tenant).unwrap();
    assert_eq!(PassShown::verify(&said), Ok((shown, tenant.verifying_key())));
    assert_eq!(PassShown::verify(&bytes).map(drop), Err(PassError::NotAPass));
    assert_eq!(Pass::signer(&said), Err(PassError::NotAPass));
    let mut next = bytes.clone();
    next[7] += 1;
    assert_eq!(Pass::signer(&next), Err(PassError::FormatVersion));
    // 256 bytes are looked at, and one more isn't.
    let padded = |length: usize| {
        let mut bytes = bytes.clone();
        bytes.resize(length, 0);
        Pass::signer(&bytes).map(drop)
    };
    assert_eq!((padded(256), padded(257)), (Ok(()), Err(PassError::NotAPass)));
    // A byte that follows the statement within its signature is none of it.
    let mut body = bytes[40..bytes.len() - 64].to_vec();
    body.push(0);
    let longer = forged(b"tenurpa\x01", "pass", &body, &owner);
    assert_eq!(Pass::verify(&longer, &owner.verifying_key()), Err(PassError::Form));
}

#[test]
fn renewal_names_its_signer() {
    let renewal = Renewal {
        device: VerifyingKey([3; 32]),
        machine: name("echo"),
        term: Term::default(),
        sequence: 2,
    };
    let bytes = renewal.sign(&key(1)).unwrap();
    assert_eq!(Renewal::signer(&bytes), Ok(key(1).verifying_key()));
    assert_eq!(Renewal::verify(&bytes, &key(1).verifying_key()), Ok(renewal));
}

#[test]
fn firmwares_release_has_512_bytes_at_most_and_its_image_is_whole() {
    let (maker, image) = (key(5), [7; 100]);
    let with = |board: usize| {
        let release = Release::new(&"b".repeat(board), 3, 2, &image);
        release.to_file(&image, &maker)
    };
    // Behind the signed release stands the image, and before it two bytes of its length.
    let signed = |file: &[u8]| file.len() - image.len() - 2;
    let shortest = signed(&with(128).unwrap());
    let longest = 128 + RELEASE_BYTES_MAX - shortest;
    assert_eq!(signed(&with(longest).unwrap()), RELEASE_BYTES_MAX);
    assert_eq!(with(longest + 1), Err(FirmwareError::Form));
    let file = with(longest).unwrap();
    assert_eq!(Release::from_file(&file).unwrap().release.board.len(), longest);

    let file = with(4).unwrap();
    let found = Release::from_file(&file).unwrap();
    assert_eq!(Release::signer(found.signed), Ok(maker.verifying_key()));
    let others = [key(1).verifying_key(), key(2).verifying_key()];
    assert_eq!(Release::verify(found.signed, &others), Err(FirmwareError::OtherSigner));
    let cut = Release::from_file(&file[..file.len() - 1]);
    assert_eq!(cut, Err(FirmwareError::Truncated));
    let longer = [&file[..], b"\0"].concat();
    assert_eq!(Release::from_file(&longer), Err(FirmwareError::Signature));
    let mut other = file.clone();
    *other.last_mut().unwrap() ^= 1;
    assert_eq!(Release::from_file(&other), Err(FirmwareError::Signature));
    assert_eq!(Release::from_file(b"\0"), Err(FirmwareError::Truncated));
    assert_eq!(Release::from_file(b"\xff\xff\0"), Err(FirmwareError::NotFirmware));
}

#[test]
fn secret_is_as_long_as_it_may_be_and_a_removal_has_none() {
    let (tenant, device) = (key(1), VerifyingKey([3; 32]));
    let secret = Seed::from_bytes(&[5; 32]).device_secret();
    let of = |length: usize| {
        let place = (device, &secret.public_key());
        let value = vec![7; length];
        let tenant = tenant.verifying_key();
        SecretChange::set(&mut Sequence(1), &tenant, place, (name("wifi"), 7), &value)
    };
    let longest = of(SECRET_BYTES_MAX).unwrap();
    let bytes = longest.sign(&tenant).unwrap();
    assert_eq!(SecretChange::signer(&bytes), Ok(tenant.verifying_key()));
    let (read, signer) = SecretChange::verify(&bytes).unwrap();
    let opened = read.open(&signer, &secret).unwrap().unwrap();
    assert_eq!(opened.len(), SECRET_BYTES_MAX);
    assert_eq!(of(SECRET_BYTES_MAX + 1), Err(SecretError::TooLong));
    // Sealed by other tools: the ciphertext is one byte longer than it may be.
    let mut body = bytes[40..bytes.len() - 64].to_vec();
    let length = postcard::to_allocvec(&SECRET_BYTES_MAX).unwrap();
    let at = body.windows(length.len()).position(|window| window == length).unwrap();
    let more = postcard::to_allocvec(&(SECRET_BYTES_MAX + 1)).unwrap();
    assert_eq!(more.len(), length.len());
    body[at..at + more.len()].copy_from_slice(&more);
    body.insert(at + more.len(), 0);
    let longer = forged(b"tenurse\x01", "secret", &body, &tenant);
    assert_eq!(SecretChange::verify(&longer), Err(SecretError::TooLong));

    let removal = SecretChange::remove(device, name("wifi"), 8);
    let bytes = removal.sign(&tenant).unwrap();
    let (read, signer) = SecretChange::verify(&bytes).unwrap();
    assert_eq!(read, removal);
    assert_eq!(read.open(&signer, &secret).map(|value| value.is_none()), Ok(true));
    let query = SecretQuery { device, caller: PublicKey([9; 32]) };
    let bytes = query.sign(&tenant).unwrap();
    assert_eq!(SecretQuery::signer(&bytes), Ok(tenant.verifying_key()));
    assert_eq!(SecretQuery::verify(&bytes), Ok((query, tenant.verifying_key())));
}
