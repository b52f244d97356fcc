//! Private keys as files hold them: PKCS#8 (RFC 5958), SEC 1 (RFC 5915), PKCS#1 (RFC 8017 §A.1.2), Ed25519 (RFC
//! 8410).

use tenure_crypto::PrivateKey;
#[cfg(feature = "rsa-signing")]
use tenure_crypto::RsaPrivateKey;

use super::CertificateError;
#[cfg(feature = "rsa-signing")]
use super::certificate::RSA_ENCRYPTION;
use super::certificate::{EC_PUBLIC_KEY, ED25519, PRIME256V1, SECP384R1};
#[cfg(feature = "rsa-signing")]
use super::der::INTEGER;
use super::der::{Der, OBJECT_IDENTIFIER, OCTET_STRING, explicit};

/// The private key that `der` is, in PKCS#8, as an `ECPrivateKey` that names its curve, or as an `RSAPrivateKey`.
///
/// # Errors
/// [`CertificateError::Malformed`] if it isn't DER or no key,
/// [`CertificateError::UnsupportedKey`] if it is of a kind that can't sign here.
pub fn parse_private_key(der: &[u8]) -> Result<PrivateKey<'_>, CertificateError> {
    let mut outer = Der::new(der);
    let mut fields = outer.sequence()?;
    outer.finish()?;
    let version = fields.small_unsigned()?;
    if fields.peek() == Some(OCTET_STRING) {
        // An `ECPrivateKey` alone: version, scalar, curve.
        let scalar = fields.expect(OCTET_STRING)?;
        let curve = fields.optional(explicit(0))?.ok_or(CertificateError::UnsupportedKey)?;
        return scalar_of(Der::new(curve).expect(OBJECT_IDENTIFIER)?, scalar);
    }
    #[cfg(feature = "rsa-signing")]
    if fields.peek() == Some(INTEGER) {
        return rsa_of(version, fields);
    }
    // The second version adds the public key (RFC 5958 §2).
    if version > 1 {
        return Err(CertificateError::UnsupportedVersion);
    }
    let mut algorithm = fields.sequence()?;
    let kind = algorithm.expect(OBJECT_IDENTIFIER)?;
    let mut key = Der::new(fields.expect(OCTET_STRING)?);
    if kind == ED25519 {
        let secret = key.expect(OCTET_STRING)?;
        return Ok(PrivateKey::Ed25519(secret.try_into().map_err(malformed)?));
    }
    #[cfg(feature = "rsa-signing")]
    if kind == RSA_ENCRYPTION {
        let mut inner = key.sequence()?;
        return rsa_of(inner.small_unsigned()?, inner);
    }
    if kind != EC_PUBLIC_KEY {
        return Err(CertificateError::UnsupportedKey);
    }
    let curve = algorithm.expect(OBJECT_IDENTIFIER)?;
    let mut inner = key.sequence()?;
    if inner.small_unsigned()? != 1 {
        return Err(CertificateError::UnsupportedVersion);
    }
    scalar_of(curve, inner.expect(OCTET_STRING)?)
}

fn scalar_of<'a>(curve: &[u8], scalar: &'a [u8]) -> Result<PrivateKey<'a>, CertificateError> {
    match curve {
        PRIME256V1 => Ok(PrivateKey::P256(scalar.try_into().map_err(malformed)?)),
        SECP384R1 => Ok(PrivateKey::P384(scalar.try_into().map_err(malformed)?)),
        _ => Err(CertificateError::UnsupportedKey),
    }
}

/// The key of an `RSAPrivateKey` of `version`, whose other fields are `fields`.
#[cfg(feature = "rsa-signing")]
fn rsa_of(version: u32, mut fields: Der<'_>) -> Result<PrivateKey<'_>, CertificateError> {
    // The other version has more than two primes.
    if version != 0 {
        return Err(CertificateError::UnsupportedKey);
    }
    let modulus = fields.unsigned()?;
    let exponent = fields.small_unsigned()?;
    let _whole_private_exponent = fields.unsigned()?;
    let key = RsaPrivateKey {
        modulus,
        exponent,
        p: fields.unsigned()?,
        q: fields.unsigned()?,
        p_exponent: fields.unsigned()?,
        q_exponent: fields.unsigned()?,
        q_inverse: fields.unsigned()?,
    };
    fields.finish()?;
    Ok(PrivateKey::Rsa(key))
}

fn malformed(_: core::array::TryFromSliceError) -> CertificateError {
    CertificateError::Malformed
}
