//! Noise_IK_25519_ChaChaPoly_SHA256 (Noise revision 34), one type per phase of the handshake.
//!
//! ```text
//! <- s                    the initiator knows the responder's key
//! -> e, es, s, ss         initiate() gives Initiated; Invited::read()
//! <- e, ee, se            Invited::respond() gives Established; Initiated::read_response() too
//! ```
//!
//! Invariant: an ephemeral key is used for one handshake, with one prologue; a phase that needs one
//! takes it by value.

use alloc::vec::Vec;

use tenure_crypto::{
    AeadKey, Hmac, NonContributory, Nonce, SharedSecret, StaticSecret, TAG_BYTES, Undecryptable,
    hkdf_sha256, sha256,
};
use tenure_wire::PublicKey;
use tenure_wire::datagram::PROOF_BYTES;
use zeroize::Zeroizing;

/// Exactly 32 bytes, so that it is its own initial hash (Noise §5.2).
const PROTOCOL_NAME: &[u8; 32] = b"Noise_IK_25519_ChaChaPoly_SHA256";

/// Begins a handshake: appends the first message to `to`.
///
/// # Errors
/// [`NonContributory`] if `peer` is nobody's key; what was appended is of no use then.
pub(crate) fn initiate(
    secret: &StaticSecret,
    key: &PublicKey,
    peer: &PublicKey,
    ephemeral: StaticSecret,
    prologue: &[&[u8]],
    payload: &[u8],
    to: &mut Vec<u8>,
) -> Result<Initiated, NonContributory> {
    let mut symmetric = Symmetric::new(prologue, peer);
    let ephemeral_key = ephemeral.public_key();
    symmetric.mix_hash(&ephemeral_key.0);
    to.extend_from_slice(&ephemeral_key.0);
    symmetric.mix_key(ephemeral.agree(peer)?.as_bytes());
    symmetric.encrypt(&key.0, to);
    let shared = secret.agree(peer)?;
    symmetric.mix_key(shared.as_bytes());
    symmetric.encrypt(payload, to);
    let proof_key = ProofKey::of(&shared);
    Ok(Initiated { symmetric, secret: secret.clone(), ephemeral, proof_key })
}

/// Two machines' key for proofs: by it the called one can tell, at the cost of a MAC, that an
/// initiation comes from the other. It is derived from what only the two can compute.
pub(crate) struct ProofKey(Zeroizing<[u8; 32]>);

impl ProofKey {
    /// The handshake mixes the same secret in under a chaining key of its own, never under this salt.
    fn of(shared: &SharedSecret) -> Self {
        let mut key = Zeroizing::new([0; 32]);
        hkdf_sha256(b"tenure rpc proof", shared.as_bytes(), &[], &mut *key);
        Self(key)
    }

    /// The proof for an initiation with that header and that Noise message.
    pub(crate) fn proof(&self, header: &[u8], noise: &[u8]) -> [u8; PROOF_BYTES] {
        proof(&*self.0, header, noise)
    }
}

/// The secrets that a machine has with one peer before any handshake.
pub(crate) struct Acquaintance {
    peer: PublicKey,
    shared: SharedSecret,
    pub(crate) proof_key: ProofKey,
}

impl Acquaintance {
    /// The shared secret of the holder of `secret` with the holder of `peer`; `None` if that is nobody.
    pub(crate) fn with(secret: &StaticSecret, peer: &PublicKey) -> Option<Self> {
        let shared = secret.agree(peer).ok()?;
        Some(Self { peer: *peer, proof_key: ProofKey::of(&shared), shared })
    }
}

/// The mark in an initiation by which it can be told, before any key agreement, that its sender knows
/// `key`: a cookie, or a [`ProofKey`]. Whoever changes a byte of the initiation loses it.
pub(crate) fn proof(key: &[u8], header: &[u8], noise: &[u8]) -> [u8; PROOF_BYTES] {
    let mut mac = Hmac::new(key);
    mac.update(header);
    mac.update(noise);
    let mut proof = [0; PROOF_BYTES];
    proof.copy_from_slice(&mac.finish()[..PROOF_BYTES]);
    proof
}

/// The initiator, waiting for the response.
pub(crate) struct Initiated {
    symmetric: Symmetric,
    secret: StaticSecret,
    ephemeral: StaticSecret,
    proof_key: ProofKey,
}

impl Initiated {
    /// The key by which the called machine can recognize this initiation's sender.
    pub(crate) fn proof_key(&self) -> &ProofKey {
        &self.proof_key
    }

    /// Reads the response, and gives its payload. It doesn't consume: anybody can send a false
    /// response, and the true one must still be readable after it.
    ///
    /// # Errors
    /// [`Undecryptable`] if the response isn't one to this handshake.
    pub(crate) fn read_response(
        &self,
        message: &[u8],
    ) -> Result<(Established, Vec<u8>), Undecryptable> {
        let (peer_ephemeral, sealed) = message.split_first_chunk().ok_or(Undecryptable)?;
        let peer_ephemeral = PublicKey(*peer_ephemeral);
        let mut symmetric = self.symmetric.clone();
        symmetric.mix_hash(&peer_ephemeral.0);
        symmetric.mix_agreement(&self.ephemeral, &peer_ephemeral)?;
        symmetric.mix_agreement(&self.secret, &peer_ephemeral)?;
        let payload = symmetric.decrypt(sealed)?;
        let (send, receive) = symmetric.split();
        Ok((Established { send, receive }, payload))
    }
}

/// The responder, having read the first message.
pub(crate) struct Invited {
    symmetric: Symmetric,
    peer: PublicKey,
    peer_ephemeral: PublicKey,
}

impl Invited {
    /// Reads the first message, and gives its payload. `known` is what the holder of `secret` has
    /// with a peer: an agreement less to compute if that is the initiator.
    ///
    /// # Errors
    /// [`Undecryptable`] if it isn't for the holder of `secret`, or isn't from who it says.
    pub(crate) fn read(
        secret: &StaticSecret,
        key: &PublicKey,
        prologue: &[&[u8]],
        message: &[u8],
        known: Option<&Acquaintance>,
    ) -> Result<(Self, Vec<u8>), Undecryptable> {
        let (peer_ephemeral, rest) = message.split_first_chunk().ok_or(Undecryptable)?;
        let (sealed_key, sealed) =
            rest.split_first_chunk::<{ 32 + TAG_BYTES }>().ok_or(Undecryptable)?;
        let peer_ephemeral = PublicKey(*peer_ephemeral);
        let mut symmetric = Symmetric::new(prologue, key);
        symmetric.mix_hash(&peer_ephemeral.0);
        symmetric.mix_agreement(secret, &peer_ephemeral)?;
        let peer = symmetric.decrypt(sealed_key)?;
        let peer = PublicKey(peer.try_into().map_err(|_| Undecryptable)?);
        match known {
            Some(known) if known.peer == peer => symmetric.mix_key(known.shared.as_bytes()),
            _ => symmetric.mix_agreement(secret, &peer)?,
        }
        let payload = symmetric.decrypt(sealed)?;
        Ok((Self { symmetric, peer, peer_ephemeral }, payload))
    }

    /// The initiator's key, which it has proven to hold.
    pub(crate) fn peer(&self) -> PublicKey {
        self.peer
    }

    /// Ends the handshake: appends the response to `to`.
    ///
    /// # Errors
    /// [`NonContributory`] if the initiator's ephemeral key is nobody's.
    pub(crate) fn respond(
        mut self,
        ephemeral: StaticSecret,
        payload: &[u8],
        to: &mut Vec<u8>,
    ) -> Result<Established, NonContributory> {
        let ephemeral_key = ephemeral.public_key();
        self.symmetric.mix_hash(&ephemeral_key.0);
        to.extend_from_slice(&ephemeral_key.0);
        self.symmetric.mix_key(ephemeral.agree(&self.peer_ephemeral)?.as_bytes());
        self.symmetric.mix_key(ephemeral.agree(&self.peer)?.as_bytes());
        self.symmetric.encrypt(payload, to);
        let (receive, send) = self.symmetric.split();
        Ok(Established { send, receive })
    }
}

/// The keys of a session, one per direction.
pub(crate) struct Established {
    /// The key that this end seals with.
    pub(crate) send: AeadKey,
    /// The key that the other end seals with.
    pub(crate) receive: AeadKey,
}

/// Noise's SymmetricState and CipherState (§5.1, §5.2).
#[derive(Clone)]
struct Symmetric {
    hash: [u8; 32],
    chaining_key: Zeroizing<[u8; 32]>,
    key: AeadKey,
    counter: u64,
}

impl Symmetric {
    /// The state after prologue and pre-message. Before the first `mix_key` nothing is encrypted in
    /// this pattern, so the key of zeros stands in for "no key".
    fn new(prologue: &[&[u8]], responder: &PublicKey) -> Self {
        let mut symmetric = Self {
            hash: *PROTOCOL_NAME,
            chaining_key: Zeroizing::new(*PROTOCOL_NAME),
            key: AeadKey::from_bytes(&[0; 32]),
            counter: 0,
        };
        let mut parts = [symmetric.hash.as_slice(); 1 + PROLOGUE_PARTS_MAX];
        let parts = &mut parts[..1 + prologue.len()];
        parts[1..].copy_from_slice(prologue);
        symmetric.hash = sha256(parts).0;
        symmetric.mix_hash(&responder.0);
        symmetric
    }

    fn mix_hash(&mut self, bytes: &[u8]) {
        self.hash = sha256(&[&self.hash, bytes]).0;
    }

    fn mix_agreement(
        &mut self,
        secret: &StaticSecret,
        peer: &PublicKey,
    ) -> Result<(), Undecryptable> {
        let shared = secret.agree(peer).map_err(|NonContributory| Undecryptable)?;
        self.mix_key(shared.as_bytes());
        Ok(())
    }

    /// Noise's HKDF (§4.3) is RFC 5869's with the chaining key as salt and no info.
    fn mix_key(&mut self, input: &[u8; 32]) {
        let (chaining_key, key) = derive_two(&self.chaining_key, input);
        self.chaining_key = chaining_key;
        self.key = AeadKey::from_bytes(&key);
        self.counter = 0;
    }

    fn encrypt(&mut self, plaintext: &[u8], to: &mut Vec<u8>) {
        let start = to.len();
        to.extend_from_slice(plaintext);
        let tag = self.key.seal(&Nonce::from_counter(self.counter), &self.hash, &mut to[start..]);
        to.extend_from_slice(&tag);
        self.counter += 1;
        self.mix_hash(&to[start..]);
    }

    fn decrypt(&mut self, sealed: &[u8]) -> Result<Vec<u8>, Undecryptable> {
        let mut bytes = sealed.to_vec();
        let nonce = Nonce::from_counter(self.counter);
        let length = self.key.open(&nonce, &self.hash, &mut bytes)?.len();
        bytes.truncate(length);
        self.counter += 1;
        self.mix_hash(sealed);
        Ok(bytes)
    }

    /// The keys for initiator to responder and for responder to initiator (§5.2 Split).
    fn split(self) -> (AeadKey, AeadKey) {
        let (one, two) = derive_two(&self.chaining_key, &[]);
        (AeadKey::from_bytes(&one), AeadKey::from_bytes(&two))
    }
}

/// How many parts a prologue may have.
const PROLOGUE_PARTS_MAX: usize = 3;

fn derive_two(chaining_key: &[u8; 32], input: &[u8]) -> (Zeroizing<[u8; 32]>, Zeroizing<[u8; 32]>) {
    let mut output = Zeroizing::new([0; 64]);
    hkdf_sha256(chaining_key, input, &[], &mut *output);
    let (mut one, mut two) = (Zeroizing::new([0; 32]), Zeroizing::new([0; 32]));
    one.copy_from_slice(&output[..32]);
    two.copy_from_slice(&output[32..]);
    (one, two)
}

#[cfg(test)]
mod tests;
