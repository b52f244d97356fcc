//! Run under valgrind: keys and texts are marked as undefined, so that every branch and every address that depends on
//! one is an error. The argument names the operation; `leak` makes such a branch itself.
#![cfg(target_arch = "x86_64")]

use tenure_bignum::{P256, P384, RsaNumbers};
use tenure_crypto::{
    AeadAlgorithm, EphemeralKey, Group, HashAlgorithm, PrivateKey, SIGNATURE_BYTES_MAX, Security,
    Software,
};
use tenure_hal::{Entropy, EntropyError};

/// A request to valgrind, which reads it from instructions that do nothing elsewhere.
fn request(number: usize, bytes: &[u8]) {
    let arguments =
        [0x4d43_0000 + number, bytes.as_ptr().expose_provenance(), bytes.len(), 0, 0, 0];
    // SAFETY: four rotations by 128 bits in all and an exchange of a register with itself change nothing; valgrind reads
    // the six words, and writes its answer to rdx.
    unsafe {
        core::arch::asm!(
            "rol rdi, 3", "rol rdi, 13", "rol rdi, 61", "rol rdi, 51", "xchg rbx, rbx",
            in("rax") arguments.as_ptr(), inout("rdx") 0usize => _,
        );
    }
}

/// Marks `bytes` as secret.
///
/// Through a reference that could change them, so that the compiler doesn't go on with what it knows of them.
fn hide(bytes: &mut [u8]) {
    // The address is exposed: the request may have written to it.
    let _ = bytes.as_mut_ptr().expose_provenance();
    request(1, bytes);
}

/// Marks `bytes` as known to everybody.
fn publish(bytes: &[u8]) {
    request(2, bytes);
}

/// Secret randomness.
struct Hidden(u64);

impl Entropy for Hidden {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntropyError> {
        for byte in bytes.iter_mut() {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            *byte = (self.0 >> 56) as u8;
        }
        hide(bytes);
        Ok(())
    }
}

fn agree(group: Group) {
    let mut software = Software::new(Hidden(1));
    let (mut own, mut other) = ([0; 1300], [0; 1300]);
    let (key, length): (EphemeralKey, usize) =
        software.begin_agreement(group, &mut own).expect("a key");
    publish(&own);
    let answered = software.answer_agreement(group, &own[..length], &mut other);
    let (length, theirs) = answered.expect("an answer");
    publish(&other);
    let ours = software.finish_agreement(&key, &other[..length]).expect("a secret");
    publish(ours.as_bytes());
    publish(theirs.as_bytes());
    assert_eq!(ours.as_bytes(), theirs.as_bytes());
}

fn sign(key: PrivateKey<'_>) {
    let mut signature = [0; SIGNATURE_BYTES_MAX];
    Software::new(Hidden(2)).sign(&key, b"message", &mut signature).expect("a signature");
}

fn seal(algorithm: AeadAlgorithm) {
    let (mut software, mut text) = (Software::new(Hidden(3)), [7; 300]);
    let mut key = [5; 32];
    hide(&mut key);
    hide(&mut text);
    let key = &key[..algorithm.key_bytes()];
    let tag = software.seal(algorithm, key, &[1; 12], b"header", &mut text).expect("a tag");
    // The verdict on a tag is for everybody.
    publish(&tag);
}

fn derive() {
    let mut secret = [9; 32];
    hide(&mut secret);
    for hash in [HashAlgorithm::Sha256, HashAlgorithm::Sha384] {
        let extracted = hash.hkdf_extract(b"salt", &secret);
        let mut key = [0; 32];
        hash.hkdf_expand(&extracted, &[b"label"], &mut key);
        let proof = hash.hmac(&key, &[b"transcript"]);
        let other = hash.hmac(&key, &[b"transcript"]);
        let is_equal = tenure_crypto::equal(&proof, &other);
        publish(&[u8::from(is_equal)]);
    }
}

/// The arithmetic of small processors, whose own backend a processor of 64 bits doesn't take.
fn small_processors() {
    for curve in [&P256, &P384] {
        let bytes = curve.bytes();
        let mut secret = [3; 48];
        hide(&mut secret);
        let (mut public, mut shared, mut signature) = ([0; 97], [0; 48], [0; 96]);
        let public = &mut public[..2 * bytes + 1];
        curve.public_key(&secret[..bytes], public).expect("a key");
        publish(public);
        curve.agree(&secret[..bytes], public, &mut shared[..bytes]).expect("a secret");
        let mut nonce = [4; 48];
        hide(&mut nonce);
        let signed =
            curve.sign(&secret[..bytes], &nonce[..bytes], &[5; 32], &mut signature[..2 * bytes]);
        signed.expect("a signature");
    }
    let mut scalar = [6; 32];
    hide(&mut scalar);
    let _ = tenure_bignum::x25519(&scalar, &tenure_bignum::BASE);
}

fn rsa() {
    // Two numbers that are odd and have all bits: the operation doesn't ask whether they are primes.
    let (mut p, mut q) = ([0xd5; 128], [0xe3; 128]);
    let (mut exponents, mut inverse) = ([[0x6b; 128], [0x5d; 128]], [0x3c; 128]);
    let [one, other] = &mut exponents;
    for secret in [&mut p, &mut q, one, other, &mut inverse] {
        hide(secret);
    }
    // Their ends are those of every key.
    for prime in [&mut p, &mut q] {
        publish(&prime[..1]);
        publish(&prime[127..]);
    }
    let numbers = RsaNumbers {
        p: &p,
        q: &q,
        p_exponent: &exponents[0],
        q_exponent: &exponents[1],
        q_inverse: &inverse,
    };
    let mut number = [0x1234_5678; 64];
    let mut work = [0; RsaNumbers::work_limbs(2048)];
    numbers.power(&mut number, &mut work).expect("numbers of the right length");
}

/// A branch that is to be found.
fn leak() {
    let mut secret = [1];
    hide(&mut secret);
    assert!(std::hint::black_box(secret[0]) > 0);
}

const OPERATIONS: [(&str, fn()); 14] = [
    ("x25519", || agree(Group::X25519)),
    ("secp256r1", || agree(Group::Secp256r1)),
    ("secp384r1", || agree(Group::Secp384r1)),
    ("X25519MLKEM768", || agree(Group::X25519MlKem768)),
    ("P-256", || {
        let mut key = [3; 32];
        hide(&mut key);
        sign(PrivateKey::P256(&key));
    }),
    ("P-384", || {
        let mut key = [3; 48];
        hide(&mut key);
        sign(PrivateKey::P384(&key));
    }),
    ("Ed25519", || {
        let mut key = [3; 32];
        hide(&mut key);
        sign(PrivateKey::Ed25519(&key));
    }),
    ("RSA", rsa),
    ("ChaCha20-Poly1305", || seal(AeadAlgorithm::ChaCha20Poly1305)),
    ("AES-128-GCM", || seal(AeadAlgorithm::Aes128Gcm)),
    ("AES-256-GCM", || seal(AeadAlgorithm::Aes256Gcm)),
    ("HKDF and HMAC", derive),
    ("small processors", small_processors),
    ("leak", leak),
];

fn main() {
    let asked = std::env::args().nth(1).unwrap_or_default();
    let operation = OPERATIONS.iter().find(|(name, _)| *name == asked);
    operation.expect("the name of an operation").1();
}
