//! Successions: an owner's word that other keys hold its devices, signed and checked.

use alloc::vec::Vec;

use tenure_crypto::{Context, SigningKey, verify};
use tenure_wire::directory::{DeviceRecord, Refusal};
use tenure_wire::ownership::{SignedSuccession, Succession, SuccessionKind};

/// The longest succession, in bytes.
const BYTES_MAX: usize = 256;

const SUCCESSION: Context = Context::new("succession");

/// Signs a succession with the key that it replaces.
pub fn succeed(owner: &SigningKey, succession: &Succession) -> SignedSuccession {
    // A value that is built of valid parts is always encoded, unless memory runs out.
    let bytes: Vec<u8> = postcard::to_allocvec(succession).unwrap_or_default();
    let signature = owner.sign(SUCCESSION, &bytes);
    SignedSuccession { bytes, signature }
}

/// Reads a succession; its signature isn't checked yet.
///
/// # Errors
/// [`Refusal::Malformed`], also for a hand-over that isn't for one device.
pub fn read_succession(signed: &SignedSuccession) -> Result<Succession, Refusal> {
    if signed.bytes.len() > BYTES_MAX {
        return Err(Refusal::Malformed);
    }
    let read = postcard::take_from_bytes::<Succession>(&signed.bytes);
    let (succession, rest) = read.map_err(|_| Refusal::Malformed)?;
    let is_for_all = succession.device.is_none();
    if !rest.is_empty() || (succession.kind == SuccessionKind::HandOver && is_for_all) {
        return Err(Refusal::Malformed);
    }
    Ok(succession)
}

/// The succession, once it is sure that the owner whom it replaces signed it.
///
/// # Errors
/// [`Refusal::Malformed`], or [`Refusal::Succession`] if that owner didn't sign it.
pub fn open_succession(signed: &SignedSuccession) -> Result<Succession, Refusal> {
    let succession = read_succession(signed)?;
    verify(&succession.by, SUCCESSION, &signed.bytes, &signed.signature)
        .map_err(|_| Refusal::Succession)?;
    Ok(succession)
}

/// The succession by which the owner of a record holds its device; `None` if it shows none.
///
/// # Errors
/// [`Refusal::Succession`] if it is forged, or for another owner or device.
pub(crate) fn succession_of(record: &DeviceRecord) -> Result<Option<Succession>, Refusal> {
    let Some(signed) = &record.succession else { return Ok(None) };
    let succession = open_succession(signed).map_err(|_| Refusal::Succession)?;
    let is_for_it = succession.device.is_none_or(|device| device == record.enrolment.device_key);
    if succession.next == record.owner && is_for_it {
        Ok(Some(succession))
    } else {
        Err(Refusal::Succession)
    }
}
