//! The network's key: what makes a node a member, and how the owner hands it to a device.
//!
//! Frames are sealed with XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha-03) under a key derived from the
//! network's. The nonce is sender, epoch, salt and sequence. Sequences count up within a life, and lives
//! differ in their salts, 64 bits that are drawn at random when a node starts: so no nonce is used twice,
//! whatever becomes of the boot counter in flash, and however often a network is left and joined. Whoever holds the key is a member, and could speak in
//! another member's name on the air; what machines say to each other is protected from end to end
//! by their own sessions.
//!
//! An invitation is the owner's word that a device is a member: the key encrypted to the device's
//! own machine (ephemeral-static X25519, as in HPKE, RFC 9180 §5.1.1), and all of it signed.
//!
//! | offset | bytes | what |
//! |---|---|---|
//! | 0 | 8 | magic, whose last byte is the version |
//! | 8 | 32 | the device's own machine, for which alone it counts |
//! | 40 | 8 | number, which grows with each invitation |
//! | 48 | 32 | an X25519 key that was made for this invitation |
//! | 80 | 48 | the network's key, encrypted |
//! | 128 | 64 | the owner's signature of all that stands before it |

use alloc::vec::Vec;
use core::fmt;

use tenure_crypto::{
    AeadKey, Context, EXTENDED_NONCE_BYTES, ExtendedKey, Nonce, SigningKey, StaticSecret,
    TAG_BYTES, hkdf_sha256, verify,
};
use tenure_hal::{Entropy, EntropyError};
use tenure_mesh::{FrameNumber, Seal};
use tenure_wire::{PublicKey, Signature, VerifyingKey};
use zeroize::{Zeroize, Zeroizing};

#[cfg(test)]
mod tests;

const MAGIC: [u8; 8] = *b"tenurnk\x01";
const INVITATION: Context = Context::new("mesh invitation");
const KEY_LABEL: &[u8] = b"tenure 1 mesh invitation";
const FRAME_LABEL: &[u8] = b"tenure 2 mesh frame";

/// How long an invitation is, in bytes.
pub const INVITATION_BYTES: usize = SIGNED_BYTES + 64;
const SIGNED_BYTES: usize = 8 + 32 + 8 + 32 + 32 + TAG_BYTES;

/// A network's key. It seals frames.
#[derive(Clone)]
pub struct NetworkKey {
    secret: [u8; 32],
    frames: ExtendedKey,
}

impl Drop for NetworkKey {
    fn drop(&mut self) {
        self.secret.zeroize();
    }
}

impl NetworkKey {
    /// The key in `secret`, which the caller wipes.
    pub fn from_bytes(secret: &[u8; 32]) -> Self {
        let mut frames = Zeroizing::new([0; 32]);
        hkdf_sha256(&[], secret, &[FRAME_LABEL], &mut *frames);
        Self { secret: *secret, frames: ExtendedKey::from_bytes(&frames) }
    }

    /// A new network's key.
    ///
    /// # Errors
    /// [`EntropyError`] if there is no randomness.
    pub fn generate(entropy: &mut dyn Entropy) -> Result<Self, EntropyError> {
        let mut secret = Zeroizing::new([0; 32]);
        entropy.fill(&mut *secret)?;
        Ok(Self::from_bytes(&secret))
    }

    /// The key itself, to be stored.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.secret
    }
}

impl fmt::Debug for NetworkKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NetworkKey(secret)")
    }
}

impl Seal for NetworkKey {
    const SEALS: bool = true;
    const OVERHEAD_BYTES: usize = TAG_BYTES;

    fn seal(&self, number: &FrameNumber, header_bytes: usize, frame: &mut Vec<u8>) {
        let (header, payload) = frame.split_at_mut(header_bytes);
        let tag = self.frames.seal(&nonce(number), header, payload);
        frame.extend_from_slice(&tag);
    }

    fn open<'a>(
        &self,
        number: &FrameNumber,
        header: &[u8],
        sealed: &'a mut [u8],
    ) -> Option<&'a [u8]> {
        let opened = self.frames.open(&nonce(number), header, sealed);
        opened.ok().map(|payload| &*payload)
    }
}

fn nonce(number: &FrameNumber) -> [u8; EXTENDED_NONCE_BYTES] {
    let mut bytes = [0; EXTENDED_NONCE_BYTES];
    bytes[..8].copy_from_slice(&number.salt);
    bytes[8..14].copy_from_slice(&number.sender.to_bytes());
    bytes[14..18].copy_from_slice(&number.epoch.to_le_bytes());
    bytes[20..].copy_from_slice(&number.sequence.to_le_bytes());
    bytes
}

/// An owner's invitation to a network, made for one device.
///
/// # Errors
/// [`InvitationError::Entropy`], or [`InvitationError::Device`] if `device` is nobody's key.
pub fn invite(
    owner: &SigningKey,
    device: &PublicKey,
    number: u64,
    network: &NetworkKey,
    entropy: &mut dyn Entropy,
) -> Result<Vec<u8>, InvitationError> {
    let ephemeral = StaticSecret::generate(entropy).map_err(|_| InvitationError::Entropy)?;
    let public = ephemeral.public_key();
    let key = agreed(&ephemeral, device, &public, device).ok_or(InvitationError::Device)?;
    let mut bytes = Vec::with_capacity(INVITATION_BYTES);
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&device.0);
    bytes.extend_from_slice(&number.to_le_bytes());
    bytes.extend_from_slice(&public.0);
    let mut secret = network.secret;
    // The key is used for this one message, so the nonce can be any.
    let tag = key.seal(&Nonce::from_counter(0), &bytes, &mut secret);
    bytes.extend_from_slice(&secret);
    bytes.extend_from_slice(&tag);
    let signature = owner.sign(INVITATION, &bytes);
    bytes.extend_from_slice(&signature.to_bytes());
    Ok(bytes)
}

/// The network's key in an invitation by `owner` to the device that holds `device`, and the
/// invitation's number, which the device compares with the last one it took.
///
/// # Errors
/// [`InvitationError`].
pub fn accept(
    invitation: &[u8],
    owner: &VerifyingKey,
    device: &StaticSecret,
) -> Result<(NetworkKey, u64), InvitationError> {
    let invitation: &[u8; INVITATION_BYTES] =
        invitation.try_into().map_err(|_| InvitationError::Form)?;
    check_signature(invitation, owner)?;
    let (bound, sealed) = invitation[..SIGNED_BYTES].split_at(80);
    let fields = || {
        let (magic, rest) = bound.split_first_chunk::<8>()?;
        let (meant, rest) = rest.split_first_chunk::<32>()?;
        let (number, rest) = rest.split_first_chunk::<8>()?;
        Some((*magic, PublicKey(*meant), u64::from_le_bytes(*number), rest.first_chunk::<32>()?))
    };
    let (magic, meant, number, ephemeral) = fields().ok_or(InvitationError::Form)?;
    if magic != MAGIC {
        return Err(InvitationError::Form);
    }
    if meant != device.public_key() {
        return Err(InvitationError::Device);
    }
    let ephemeral = PublicKey(*ephemeral);
    let key = agreed(device, &ephemeral, &ephemeral, &meant).ok_or(InvitationError::Form)?;
    let sealed: [u8; 32 + TAG_BYTES] = sealed.try_into().map_err(|_| InvitationError::Form)?;
    let mut sealed = Zeroizing::new(sealed);
    let secret = key
        .open(&Nonce::from_counter(0), bound, &mut *sealed)
        .map_err(|_| InvitationError::Form)?;
    let secret = secret.first_chunk().ok_or(InvitationError::Form)?;
    Ok((NetworkKey::from_bytes(secret), number))
}

/// The device that an invitation is for, whoever signed it; `None` if it is too short to be one.
pub fn addressee(invitation: &[u8]) -> Option<PublicKey> {
    let rest = invitation.strip_prefix(&MAGIC)?;
    rest.first_chunk().map(|key| PublicKey(*key))
}

/// Checks that `owner` made an invitation, whomever it is for.
///
/// # Errors
/// [`InvitationError`].
pub fn check_signature(invitation: &[u8], owner: &VerifyingKey) -> Result<(), InvitationError> {
    let (signed, signature) =
        invitation.split_at_checked(SIGNED_BYTES).ok_or(InvitationError::Form)?;
    let signature = signature.try_into().map_err(|_| InvitationError::Form)?;
    verify(owner, INVITATION, signed, &Signature::from_bytes(signature))
        .map_err(|_| InvitationError::Signature)
}

/// The key that `own` and `peer` agree on for an invitation with the key `ephemeral` to `device`.
fn agreed(
    own: &StaticSecret,
    peer: &PublicKey,
    ephemeral: &PublicKey,
    device: &PublicKey,
) -> Option<AeadKey> {
    let shared = own.agree(peer).ok()?;
    let mut key = Zeroizing::new([0; 32]);
    hkdf_sha256(&[], shared.as_bytes(), &[KEY_LABEL, &ephemeral.0, &device.0], &mut *key);
    Some(AeadKey::from_bytes(&key))
}

/// Why an invitation isn't made, or doesn't count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvitationError {
    /// It isn't one, or not of a version that is known here.
    Form,
    /// The device's owner didn't sign it.
    Signature,
    /// It is for another device, or for nobody.
    Device,
    /// No randomness.
    Entropy,
}

impl fmt::Display for InvitationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Form => "not an invitation to a network of a version that is known here",
            Self::Signature => "the invitation wasn't signed by the device's owner",
            Self::Device => "the invitation is for another device",
            Self::Entropy => "the random source failed or is not ready",
        })
    }
}

impl core::error::Error for InvitationError {}
