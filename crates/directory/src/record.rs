//! Making records and checking them.

use alloc::vec::Vec;

use tenure_crypto::{Context, SigningKey, verify};
use tenure_wire::directory::{DeviceRecord, Enrolment, Refusal, SignedRecord};
use tenure_wire::limits::{MACHINES_MAX, PARAMETER_BYTES_MAX};
use tenure_wire::{Signature, VerifyingKey};

use crate::succession::succession_of;

/// The version of a record's format: the first byte that is signed. A reader of another version refuses the
/// record by name. Fields that are only added follow the others under the same version, and an older
/// reader passes over them.
const RECORD_VERSION: u8 = 1;

/// The most bytes of added fields that a reader passes over.
const ADDED_BYTES_MAX: usize = 256;

/// The longest that a record may be in force, in seconds.
pub const LIFETIME_S_MAX: u64 = 24 * 60 * 60;

/// The most addresses that a record lists.
const ADDRESSES_MAX: usize = 8;

const ENROLMENT: Context = Context::new("enrolment");
const RECORD: Context = Context::new("device record");

/// The owner's signature that makes a name a device's own.
pub fn enrol(owner: &SigningKey, enrolment: &Enrolment) -> Signature {
    owner.sign(ENROLMENT, &encode(enrolment))
}

/// Signs a record with the key of its device.
pub fn seal(device: &SigningKey, record: &DeviceRecord) -> SignedRecord {
    let mut bytes = alloc::vec![RECORD_VERSION];
    bytes.extend(encode(record));
    let signature = device.sign(RECORD, &bytes);
    SignedRecord { bytes, signature }
}

/// Reads and checks a record: its limits, its time and both signatures.
///
/// Whether its owner is to be trusted, and whether a newer record is known, is for the caller.
///
/// # Errors
/// [`Refusal::Malformed`], [`Refusal::Version`], [`Refusal::Expired`], [`Refusal::Enrolment`] or
/// [`Refusal::Signature`].
pub fn open(signed: &SignedRecord, now_unix_s: u64) -> Result<DeviceRecord, Refusal> {
    let record = read(signed)?;
    let lasts = now_unix_s..=now_unix_s.saturating_add(LIFETIME_S_MAX);
    if !lasts.contains(&record.expires_unix_s) {
        return Err(Refusal::Expired);
    }
    check(&record, signed)?;
    Ok(record)
}

/// As [`open`], whatever the time is: for a record that was accepted before, or that its device
/// shows in a session of its own, which proves that it is fresh.
///
/// # Errors
/// [`Refusal::Malformed`], [`Refusal::Version`], [`Refusal::Enrolment`] or [`Refusal::Signature`].
pub fn open_whenever(signed: &SignedRecord) -> Result<DeviceRecord, Refusal> {
    let record = read(signed)?;
    check(&record, signed)?;
    Ok(record)
}

/// The key that a record names as its device's; nothing says yet that its holder signed it. `None` for what
/// is no record.
pub fn read_device(signed: &SignedRecord) -> Option<VerifyingKey> {
    Some(read(signed).ok()?.enrolment.device_key)
}

/// A record as it reads; nothing says yet that anybody signed it. `None` for what is no record.
pub fn claims(signed: &SignedRecord) -> Option<DeviceRecord> {
    read(signed).ok()
}

fn read(signed: &SignedRecord) -> Result<DeviceRecord, Refusal> {
    if signed.bytes.len() > PARAMETER_BYTES_MAX {
        return Err(Refusal::Malformed);
    }
    let (version, body) = signed.bytes.split_first().ok_or(Refusal::Malformed)?;
    if *version != RECORD_VERSION {
        return Err(Refusal::Version);
    }
    let (record, added): (DeviceRecord, _) =
        postcard::take_from_bytes(body).map_err(|_| Refusal::Malformed)?;
    if added.len() > ADDED_BYTES_MAX
        || record.machines.len() > MACHINES_MAX
        || record.addresses.len() > ADDRESSES_MAX
    {
        return Err(Refusal::Malformed);
    }
    Ok(record)
}

/// Checks both signatures of a record, and the one of the succession in it.
fn check(record: &DeviceRecord, signed: &SignedRecord) -> Result<(), Refusal> {
    check_enrolment(&record.owner, &record.enrolment, &record.enrolment_signature)?;
    succession_of(record)?;
    verify(&record.enrolment.device_key, RECORD, &signed.bytes, &signed.signature)
        .map_err(|_| Refusal::Signature)
}

/// Checks that `owner` signed `enrolment`.
///
/// # Errors
/// [`Refusal::Enrolment`] if not.
pub fn check_enrolment(
    owner: &VerifyingKey,
    enrolment: &Enrolment,
    signature: &Signature,
) -> Result<(), Refusal> {
    verify(owner, ENROLMENT, &encode(enrolment), signature).map_err(|_| Refusal::Enrolment)
}

/// Encodes what has been built of valid parts, which can't fail but for want of memory.
fn encode<T: serde::Serialize>(value: &T) -> Vec<u8> {
    postcard::to_allocvec(value).unwrap_or_default()
}
