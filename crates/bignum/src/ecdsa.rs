//! ECDH (SP 800-56A §5.7.1.2) and ECDSA (FIPS 186-5 §6.4) on NIST's curves.

use crate::limbs;
use zeroize::Zeroizing;

use crate::curve::{Curve, Point};
use crate::field::{LIMBS_MAX, Number, from_bytes, to_bytes};
use crate::montgomery::Montgomery;

/// The key, the point or the signature isn't one.
#[derive(Debug, PartialEq, Eq)]
pub struct Invalid;

impl Curve {
    fn limbs(&self) -> usize {
        self.order.len()
    }

    /// Bytes of a scalar and of a coordinate.
    pub fn bytes(&self) -> usize {
        4 * self.limbs()
    }

    /// Writes the public key of `secret` to `public`, uncompressed.
    pub fn public_key(&self, secret: &[u8], public: &mut [u8]) -> Result<(), Invalid> {
        let secret = self.secret(secret)?;
        let (x, y) = self.affine(&self.multiply(&secret, &self.base()));
        let (sec1, rest) = public.split_first_mut().ok_or(Invalid)?;
        *sec1 = 4;
        let (x_bytes, y_bytes) = rest.split_at_mut(self.bytes());
        to_bytes(&x, x_bytes);
        to_bytes(&y, y_bytes);
        Ok(())
    }

    /// Writes the x coordinate of the product of `secret` and the uncompressed point `peer` to `shared`.
    pub fn agree(&self, secret: &[u8], peer: &[u8], shared: &mut [u8]) -> Result<(), Invalid> {
        let secret = self.secret(secret)?;
        let (x, _) = self.affine(&self.multiply(&secret, &self.public(peer)?));
        to_bytes(&*Zeroizing::new(x), shared);
        Ok(())
    }

    /// Signs what has `digest` with `nonce`, a secret number for this signature alone, and writes r and s to the
    /// halves of `signature`.
    ///
    /// # Errors
    /// [`Invalid`] if `secret` is no scalar; if `nonce` is none, or one of those, rarer than one in 2^255, that
    /// can't sign.
    pub fn sign(
        &self,
        secret: &[u8],
        nonce: &[u8],
        digest: &[u8],
        signature: &mut [u8],
    ) -> Result<(), Invalid> {
        let (key, nonce) = (self.secret(secret)?, self.secret(nonce)?);
        let (r, s) = self.sign_with(&nonce, &key, &self.digest_scalar(digest));
        if is_zero(&r) || is_zero(&s) {
            return Err(Invalid);
        }
        let (r_bytes, s_bytes) = signature.split_at_mut(self.bytes());
        to_bytes(&r, r_bytes);
        to_bytes(&s, s_bytes);
        Ok(())
    }

    /// r and s: `s = (digest + r · key) / nonce`.
    fn sign_with(&self, nonce: &Number, key: &Number, digest: &Number) -> (Number, Number) {
        let length = self.limbs();
        let (mut r, _) = self.affine(&self.multiply(nonce, &self.base()));
        self.reduce_once(&mut r);
        let order = Montgomery::new(self.order);
        let mut work = Zeroizing::new([0; 2 * LIMBS_MAX]);
        let work = &mut work[..2 * length];
        let mut radix = [0; LIMBS_MAX];
        order.square_of_radix(&mut radix[..length], work);
        let mut inverse = Zeroizing::new(*nonce);
        order.multiply(&mut inverse[..length], &radix[..length], work);
        let mut scratch = Zeroizing::new([0; LIMBS_MAX]);
        order.invert(&mut inverse[..length], &mut scratch[..length], work);
        // One factor of each product is in Montgomery's form, so that the product isn't.
        let mut s = *key;
        order.multiply(&mut s[..length], &radix[..length], work);
        order.multiply(&mut s[..length], &r[..length], work);
        order.add(&mut s[..length], &digest[..length]);
        order.multiply(&mut s[..length], &inverse[..length], work);
        (r, s)
    }

    /// Checks that the holder of the uncompressed point `key` signed what has `digest`; r and s are the halves of
    /// `signature`.
    pub fn verify(&self, key: &[u8], digest: &[u8], signature: &[u8]) -> Result<(), Invalid> {
        let key = self.public(key)?;
        let length = self.limbs();
        if signature.len() != 2 * self.bytes() {
            return Err(Invalid);
        }
        let (r, s) = signature.split_at(self.bytes());
        let (r, s) = (self.scalar(r)?, self.scalar(s)?);
        let order = Montgomery::new(self.order);
        let mut work = [0; 2 * LIMBS_MAX];
        let work = &mut work[..2 * length];
        let mut inverse = s;
        let mut room = [[0; LIMBS_MAX]; 3];
        let [one, two, three] = room.each_mut().map(|number| &mut number[..length]);
        order.invert_public(&mut inverse[..length], one, two, three);
        // Into Montgomery's form, so that the products are out of it.
        order.square_of_radix(one, work);
        order.multiply(&mut inverse[..length], one, work);
        let mut base_scalar = self.digest_scalar(digest);
        order.multiply(&mut base_scalar[..length], &inverse[..length], work);
        let mut scalar = r;
        order.multiply(&mut scalar[..length], &inverse[..length], work);
        let sum = self.multiply_public(&base_scalar, &scalar, &key);
        // The coordinate may have been the order more than r, and still below the prime.
        let mut larger = r;
        let carry = limbs::add(&mut larger[..length], self.order, u32::MAX);
        let is_below = larger[..length].iter().rev().lt(self.field.modulus.iter().rev());
        if self.has_x(&sum, &r) || (carry == 0 && is_below && self.has_x(&sum, &larger)) {
            Ok(())
        } else {
            Err(Invalid)
        }
    }

    /// The uncompressed point in `bytes`: TLS 1.3 has no others (RFC 8446 §4.2.8.2).
    fn public(&self, bytes: &[u8]) -> Result<Point, Invalid> {
        let [4, coordinates @ ..] = bytes else { return Err(Invalid) };
        if coordinates.len() != 2 * self.bytes() {
            return Err(Invalid);
        }
        let (x, y) = coordinates.split_at(self.bytes());
        self.point(&from_bytes(x), &from_bytes(y)).ok_or(Invalid)
    }

    /// A secret scalar from 1 to the order less 1.
    fn secret(&self, bytes: &[u8]) -> Result<Zeroizing<Number>, Invalid> {
        self.scalar(bytes).map(Zeroizing::new)
    }

    /// A scalar from 1 to the order less 1. Says of a secret one whether it is in that range, and nothing more.
    fn scalar(&self, bytes: &[u8]) -> Result<Number, Invalid> {
        if bytes.len() != self.bytes() {
            return Err(Invalid);
        }
        let scalar = from_bytes(bytes);
        let mut less = scalar;
        let borrow = limbs::subtract(&mut less[..self.limbs()], self.order, u32::MAX);
        if borrow == 0 || is_zero(&scalar) { Err(Invalid) } else { Ok(scalar) }
    }

    /// Writes the scalar that is signed of `digest`, its leftmost bits modulo the order, big-endian
    /// to the first [`Self::bytes`].
    pub fn digest_bytes(&self, digest: &[u8], bytes: &mut [u8]) {
        to_bytes(&self.digest_scalar(digest), &mut bytes[..self.bytes()]);
    }

    fn digest_scalar(&self, digest: &[u8]) -> Number {
        let mut scalar = from_bytes(&digest[..digest.len().min(self.bytes())]);
        self.reduce_once(&mut scalar);
        scalar
    }

    /// Subtracts the order, more than half of 2^(32 · limbs), if it fits.
    fn reduce_once(&self, scalar: &mut Number) {
        let scalar = &mut scalar[..self.limbs()];
        let borrow = limbs::subtract(scalar, self.order, u32::MAX);
        limbs::add(scalar, self.order, borrow.wrapping_neg());
    }
}

fn is_zero(number: &Number) -> bool {
    number.iter().fold(0, |any, limb| any | limb) == 0
}
