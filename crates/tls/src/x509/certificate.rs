//! One certificate, taken apart (RFC 5280 §4.1): every field is checked for its grammar.

use tenure_crypto::{HashAlgorithm, PublicKeyRef, SignatureAlgorithm};

use super::constraints::NameConstraints;
use super::der::{
    BIT_STRING, Der, INTEGER, NULL, OBJECT_IDENTIFIER, OCTET_STRING, SEQUENCE, explicit, implicit,
};
use super::name::{AlternativeName, Names};
use super::{CertificateError, UnixTime};

type Result<T> = core::result::Result<T, CertificateError>;

/// How long a certificate is valid, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// The first second.
    pub not_before: UnixTime,
    /// The last second.
    pub not_after: UnixTime,
}

/// The longest serial number.
const SERIAL_BYTES_MAX: usize = 20;
/// The most extensions.
const EXTENSIONS_MAX: usize = 64;
/// A name without a part, which no issuer has (§4.1.2.4).
const EMPTY_NAME: &[u8] = &[SEQUENCE, 0];

/// A certificate, whose parts are where it lies.
#[derive(Clone, Copy, Debug)]
pub struct Certificate<'a> {
    pub(super) signed: &'a [u8],
    pub(super) algorithm: SignatureAlgorithm,
    pub(super) signature: &'a [u8],
    pub(super) extensions: Extensions<'a>,
    /// The serial number, big-endian.
    pub serial: &'a [u8],
    /// The issuer's name, in DER.
    pub issuer: &'a [u8],
    /// The subject's name, in DER.
    pub subject: &'a [u8],
    /// How long it is valid.
    pub validity: Validity,
    /// The subject's key.
    pub key: PublicKeyRef<'a>,
    /// The subject's `SubjectPublicKeyInfo`, in DER, as RFC 7250 has it.
    pub key_info: &'a [u8],
}

impl<'a> Certificate<'a> {
    /// The certificate that `der` is, all of it.
    ///
    /// # Errors
    /// The rule of the grammar that it breaks, or its part that isn't supported.
    pub fn parse(der: &'a [u8]) -> Result<Self> {
        let mut outer = Der::new(der);
        let mut fields = outer.sequence()?;
        outer.finish()?;
        let (tag, content, signed) = fields.any()?;
        if tag != SEQUENCE {
            return Err(CertificateError::Malformed);
        }
        let (_, _, outer_algorithm) = fields.any()?;
        let signature = fields.whole_bits()?;
        fields.finish()?;

        let mut fields = Der::new(content);
        match fields.optional(explicit(0))? {
            Some([0x02, 0x01, 2]) => {}
            _ => return Err(CertificateError::UnsupportedVersion),
        }
        let serial = fields.expect(INTEGER)?;
        // Twenty bytes at most (§4.1.2.2); negative ones and zero are borne, as it says.
        if serial.strip_prefix(&[0]).unwrap_or(serial).len() > SERIAL_BYTES_MAX {
            return Err(CertificateError::Malformed);
        }
        let (_, _, algorithm_der) = fields.any()?;
        if algorithm_der != outer_algorithm {
            return Err(CertificateError::UnsupportedSignatureAlgorithm);
        }
        let issuer = name(&mut fields)?;
        if issuer == EMPTY_NAME {
            return Err(CertificateError::Malformed);
        }
        let mut validity = fields.sequence()?;
        let dates = Validity {
            not_before: UnixTime::read(&mut validity)?,
            not_after: UnixTime::read(&mut validity)?,
        };
        validity.finish()?;
        let subject = name(&mut fields)?;
        let (_, _, key_info) = fields.any()?;
        let key = parse_public_key(key_info)?;
        // Unique identifiers are allowed and mean nothing (§4.1.2.8).
        fields.optional(implicit(1))?;
        fields.optional(implicit(2))?;
        let extensions = match fields.optional(explicit(3))? {
            Some(extensions) => Extensions::parse(extensions)?,
            None => Extensions::default(),
        };
        fields.finish()?;
        let algorithm = signature_algorithm(algorithm_der)?;
        Ok(Self {
            signed,
            algorithm,
            signature,
            extensions,
            serial,
            issuer,
            subject,
            validity: dates,
            key,
            key_info,
        })
    }

    /// The subject and the key info of a certificate of any version, and the fields behind them. No
    /// other part is looked at, the key but for its kind.
    pub(super) fn name_and_key(der: &'a [u8]) -> Result<(&'a [u8], &'a [u8], Der<'a>)> {
        let mut outer = Der::new(der);
        let mut fields = outer.sequence()?.sequence()?;
        outer.finish()?;
        fields.optional(explicit(0))?;
        let _serial = fields.any()?;
        let _algorithm = fields.any()?;
        let _issuer = fields.any()?;
        let _validity = fields.any()?;
        let subject = name(&mut fields)?;
        let (_, _, key_info) = fields.any()?;
        parse_public_key(key_info)?;
        Ok((subject, key_info, fields))
    }

    /// The key info of a certificate of any version, of which no other part is looked at.
    pub(crate) fn key_info_of(der: &'a [u8]) -> Result<&'a [u8]> {
        Self::name_and_key(der).map(|(_, key_info, _)| key_info)
    }

    /// Whether its issuer has its own name.
    pub(super) fn is_self_issued(&self) -> bool {
        self.issuer == self.subject
    }

    /// Whether it says that it is an authority.
    pub fn is_authority(&self) -> bool {
        self.extensions.is_authority
    }

    /// The most specific common name, for people to read; it never decides anything.
    pub fn common_name(&self) -> Option<&'a str> {
        common_name_of(self.subject)
    }

    /// The issuer's most specific common name, for people to read as well.
    pub fn issuer_common_name(&self) -> Option<&'a str> {
        common_name_of(self.issuer)
    }

    /// All its names.
    pub(super) fn names(&self) -> Names<'a> {
        let alternative = self.extensions.alternative_names.unwrap_or_default();
        Names { subject: self.subject, alternative }
    }

    /// The DNS names and IP addresses that it is for; it ends at one that is malformed.
    pub fn alternative_names(&self) -> impl Iterator<Item = AlternativeName<'a>> {
        let mut names = Der::new(self.names().alternative);
        core::iter::from_fn(move || names.any().ok())
            .filter_map(|(tag, value, _)| AlternativeName::from_general(tag, value))
    }
}

/// The last common name of a `Name`.
fn common_name_of(name: &[u8]) -> Option<&str> {
    let mut names = Der::new(name).sequence().ok()?;
    let mut found = None;
    while !names.is_empty() {
        let mut set = Der::new(names.any().ok()?.1);
        let mut pair = set.sequence().ok()?;
        let kind = pair.expect(OBJECT_IDENTIFIER).ok()?;
        let (_, value, _) = pair.any().ok()?;
        if kind == [0x55, 4, 3] {
            found = core::str::from_utf8(value).ok();
        }
    }
    found
}

/// A `Name`, all of it.
fn name<'a>(fields: &mut Der<'a>) -> Result<&'a [u8]> {
    match fields.any()? {
        (SEQUENCE, _, whole) => Ok(whole),
        _ => Err(CertificateError::Malformed),
    }
}

pub(super) const RSA_ENCRYPTION: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1];
const RSA_PSS: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 10];
pub(super) const EC_PUBLIC_KEY: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1];
pub(super) const PRIME256V1: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
pub(super) const SECP384R1: &[u8] = &[0x2b, 0x81, 0x04, 0x00, 0x22];
pub(super) const ED25519: &[u8] = &[0x2b, 0x65, 0x70];

/// The key of a `SubjectPublicKeyInfo` (RFC 5280 §4.1.2.7, RFC 5480, RFC 8410).
///
/// # Errors
/// It isn't DER, or of a kind that isn't supported.
pub fn parse_public_key(info: &[u8]) -> Result<PublicKeyRef<'_>> {
    let mut outer = Der::new(info);
    let mut fields = outer.sequence()?;
    outer.finish()?;
    let mut algorithm = fields.sequence()?;
    let key = fields.whole_bits()?;
    fields.finish()?;
    let kind = algorithm.expect(OBJECT_IDENTIFIER)?;
    let parsed = if kind == RSA_ENCRYPTION {
        algorithm.expect(NULL)?;
        rsa_key(key)?
    } else if kind == EC_PUBLIC_KEY {
        let curve = algorithm.expect(OBJECT_IDENTIFIER)?;
        match (curve, key) {
            (PRIME256V1, [4, ..]) if key.len() == 65 => PublicKeyRef::P256(key),
            (SECP384R1, [4, ..]) if key.len() == 97 => PublicKeyRef::P384(key),
            _ => return Err(CertificateError::UnsupportedKey),
        }
    } else if kind == ED25519 && key.len() == 32 {
        PublicKeyRef::Ed25519(key)
    } else {
        return Err(CertificateError::UnsupportedKey);
    };
    algorithm.finish()?;
    Ok(parsed)
}

/// An `RSAPublicKey` (RFC 8017 §A.1.1).
fn rsa_key(key: &[u8]) -> Result<PublicKeyRef<'_>> {
    let mut outer = Der::new(key);
    let mut fields = outer.sequence()?;
    outer.finish()?;
    let modulus = fields.unsigned()?;
    let exponent = fields.small_unsigned()?;
    fields.finish()?;
    Ok(PublicKeyRef::Rsa { modulus, exponent })
}

/// An `AlgorithmIdentifier` of signatures. Its curve is the issuer's key's, which isn't known yet: it
/// is set when that is.
fn signature_algorithm(der: &[u8]) -> Result<SignatureAlgorithm> {
    const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1];
    const ECDSA_WITH_SHA1: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4];
    const ECDSA_WITH_SHA2: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3];
    let mut fields = Der::new(der).sequence()?;
    let kind = fields.expect(OBJECT_IDENTIFIER)?;
    let unsupported = CertificateError::UnsupportedSignatureAlgorithm;
    let algorithm = if kind == ED25519 {
        SignatureAlgorithm::Ed25519
    } else if kind == RSA_PSS {
        return pss_algorithm(fields);
    } else {
        let (number, family) = kind.split_last().ok_or(unsupported)?;
        let hash = match (family, number) {
            (RSA, 11) | (ECDSA_WITH_SHA2, 2) => HashAlgorithm::Sha256,
            #[cfg(feature = "sha512")]
            (RSA, 12) | (ECDSA_WITH_SHA2, 3) => HashAlgorithm::Sha384,
            #[cfg(feature = "sha512")]
            (RSA, 13) | (ECDSA_WITH_SHA2, 4) => HashAlgorithm::Sha512,
            (RSA, 4 | 5) | (ECDSA_WITH_SHA1, 1) => return Err(CertificateError::BrokenHash),
            _ => return Err(unsupported),
        };
        if family == RSA {
            // Absent parameters are to be taken as well (RFC 4055 §5).
            fields.optional(NULL)?;
            SignatureAlgorithm::RsaPkcs1(hash)
        } else {
            SignatureAlgorithm::EcdsaP256(hash)
        }
    };
    fields.finish()?;
    Ok(algorithm)
}

/// RSASSA-PSS with one hash for all, and a salt as long as its digest (RFC 4055 §3.1, RFC 8446
/// §4.2.3).
fn pss_algorithm(mut fields: Der<'_>) -> Result<SignatureAlgorithm> {
    const SHA2: &[u8] = &[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2];
    const MGF1: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 8];
    let unsupported = CertificateError::UnsupportedSignatureAlgorithm;
    let mut parameters = fields.sequence()?;
    fields.finish()?;
    let hash_of = |der: &[u8]| {
        let mut fields = Der::new(der).sequence()?;
        let (number, family) = fields.expect(OBJECT_IDENTIFIER)?.split_last().ok_or(unsupported)?;
        fields.optional(NULL)?;
        fields.finish()?;
        match (family, number) {
            (SHA2, 1) => Ok(HashAlgorithm::Sha256),
            #[cfg(feature = "sha512")]
            (SHA2, 2) => Ok(HashAlgorithm::Sha384),
            #[cfg(feature = "sha512")]
            (SHA2, 3) => Ok(HashAlgorithm::Sha512),
            _ => Err(unsupported),
        }
    };
    let hash = hash_of(parameters.optional(explicit(0))?.ok_or(unsupported)?)?;
    let mut mask = Der::new(parameters.optional(explicit(1))?.ok_or(unsupported)?).sequence()?;
    let mask_kind = mask.expect(OBJECT_IDENTIFIER)?;
    let (_, _, mask_hash) = mask.any()?;
    let salt_bytes =
        Der::new(parameters.optional(explicit(2))?.ok_or(unsupported)?).small_unsigned()?;
    // The one trailer there is may be named or not (RFC 4055 §3.1).
    let trailer = parameters.optional(explicit(3))?;
    parameters.finish()?;
    if trailer.is_some_and(|trailer| trailer != [INTEGER, 1, 1])
        || mask_kind != MGF1
        || hash_of(mask_hash)? != hash
        || salt_bytes as usize != hash.digest_bytes()
    {
        return Err(unsupported);
    }
    Ok(SignatureAlgorithm::RsaPss(hash))
}

/// The extensions' content (§4.2), with absent ones at their default.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Extensions<'a> {
    pub(super) is_authority: bool,
    pub(super) authorities_below_max: Option<u32>,
    /// The bits of key usage, the first one highest; all, if it doesn't say.
    pub(super) key_usage: Option<u16>,
    /// The content of the sequence of purposes.
    pub(super) extended_key_usage: Option<&'a [u8]>,
    /// The content of the sequence of general names.
    pub(super) alternative_names: Option<&'a [u8]>,
    pub(super) constraints: Option<NameConstraints<'a>>,
}

pub(super) const DIGITAL_SIGNATURE: u16 = 0x8000;
pub(super) const CERTIFICATE_SIGNATURE: u16 = 0x0400;

impl<'a> Extensions<'a> {
    fn parse(der: &'a [u8]) -> Result<Self> {
        let mut outer = Der::new(der);
        let mut list = outer.sequence()?;
        outer.finish()?;
        if list.is_empty() {
            return Err(CertificateError::Malformed);
        }
        let mut extensions = Self::default();
        let mut count = 0;
        while !list.is_empty() {
            count += 1;
            if count > EXTENSIONS_MAX {
                return Err(CertificateError::TooMuchWork);
            }
            let mut fields = list.sequence()?;
            let kind = fields.expect(OBJECT_IDENTIFIER)?;
            let is_critical = fields.optional_true()?;
            let value = fields.expect(OCTET_STRING)?;
            fields.finish()?;
            if stands_again(list, kind)? {
                return Err(CertificateError::DuplicateExtension);
            }
            let [0x55, 29, number] = kind else {
                if is_critical {
                    return Err(CertificateError::UnknownCriticalExtension);
                }
                continue;
            };
            match number {
                15 => extensions.key_usage = Some(key_usage(value)?),
                17 => extensions.alternative_names = Some(sequence_of_some(value)?),
                19 => extensions.basic_constraints(value)?,
                30 => extensions.constraints = Some(NameConstraints::parse(value)?),
                37 => extensions.extended_key_usage = Some(sequence_of_some(value)?),
                // Policy constraints must be critical (§4.2.1.11), and aren't known here.
                36 => return Err(CertificateError::UnknownCriticalExtension),
                _ if is_critical => return Err(CertificateError::UnknownCriticalExtension),
                _ => {}
            }
        }
        Ok(extensions)
    }

    fn basic_constraints(&mut self, value: &[u8]) -> Result<()> {
        let mut outer = Der::new(value);
        let mut fields = outer.sequence()?;
        outer.finish()?;
        self.is_authority = fields.optional_true()?;
        if !fields.is_empty() {
            self.authorities_below_max = Some(fields.small_unsigned()?);
            fields.finish()?;
            // A limit without authority is nonsense (§4.2.1.9).
            if !self.is_authority {
                return Err(CertificateError::Malformed);
            }
        }
        Ok(())
    }
}

/// Whether an extension of `kind` is in `list`.
fn stands_again(mut list: Der<'_>, kind: &[u8]) -> Result<bool> {
    while !list.is_empty() {
        if list.sequence()?.expect(OBJECT_IDENTIFIER)? == kind {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The content of a sequence with at least one value.
fn sequence_of_some(value: &[u8]) -> Result<&[u8]> {
    let mut outer = Der::new(value);
    let content = outer.expect(SEQUENCE)?;
    outer.finish()?;
    if content.is_empty() { Err(CertificateError::Malformed) } else { Ok(content) }
}

/// The named bits of key usage: the last byte has no bits that aren't used, and isn't zero.
fn key_usage(value: &[u8]) -> Result<u16> {
    let mut outer = Der::new(value);
    let bits = outer.expect(BIT_STRING)?;
    outer.finish()?;
    let (unused, bytes, value) = match bits {
        [unused @ 0..=7, first] => (*unused, *first, u16::from(*first) << 8),
        [unused @ 0..=7, first, second] => {
            (*unused, *second, u16::from_be_bytes([*first, *second]))
        }
        _ => return Err(CertificateError::Malformed),
    };
    if u32::from(unused) != bytes.trailing_zeros() {
        return Err(CertificateError::Malformed);
    }
    Ok(value)
}

#[cfg(test)]
#[path = "certificate_tests.rs"]
mod tests;
