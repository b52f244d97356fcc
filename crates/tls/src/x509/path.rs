//! Whether a chain leads from a leaf to an anchor (RFC 5280 §6), one certificate at a time.
//!
//! Certificates come leaf first. Each is either the issuer of the last one that counted, or is passed
//! over: peers may send some in excess (RFC 8446 §4.4.2). The chain ends at the first certificate
//! that an anchor issued. Common names decide nothing, and a certificate is an issuer only if it says
//! that it is an authority.

use tenure_crypto::{PublicKeyRef, Security, SecurityError, SignatureAlgorithm, Signed};

use super::certificate::{CERTIFICATE_SIGNATURE, Certificate, DIGITAL_SIGNATURE};
use super::der::{Der, OBJECT_IDENTIFIER};
use super::{CertificateError, ServerName, UnixTime, name, parse_public_key};

type Result<T> = core::result::Result<T, CertificateError>;

/// The certificates of a chain that are looked at.
const CERTIFICATES_MAX: u8 = 10;

/// A name whose key is trusted to sign certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor<'a> {
    /// The name, in DER.
    pub name: &'a [u8],
    /// The `SubjectPublicKeyInfo` of its key, in DER.
    pub key_info: &'a [u8],
}

impl<'a> Anchor<'a> {
    /// The subject and the key of a certificate, which is trusted for what it is: nothing else in it
    /// is looked at.
    ///
    /// # Errors
    /// It isn't a certificate.
    pub fn from_certificate(der: &'a [u8]) -> Result<Self> {
        let certificate = Certificate::parse(der)?;
        Ok(Self { name: certificate.subject, key_info: certificate.key_info })
    }
}

/// The subject that a chain is to vouch for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A server.
    Server,
    /// A client.
    Client,
}

impl Purpose {
    /// The object identifier of the extended key usage (RFC 5280 §4.2.1.12).
    const fn key_purpose(self) -> &'static [u8] {
        match self {
            Self::Server => &[0x2b, 6, 1, 5, 5, 7, 3, 1],
            Self::Client => &[0x2b, 6, 1, 5, 5, 7, 3, 2],
        }
    }
}

/// Checks a chain that is in memory at once, the leaf first, as a connection does one by one.
///
/// # Errors
/// The rule that a certificate or the chain breaks.
pub fn verify_chain(
    security: &mut impl Security,
    chain: &[&[u8]],
    anchors: &[Anchor<'_>],
    purpose: Purpose,
    name: Option<ServerName<'_>>,
    date: Option<UnixTime>,
) -> Result<()> {
    let (leaf, rest) = chain.split_first().ok_or(CertificateError::Missing)?;
    let policy = Policy { purpose, name, now: date, anchors };
    let mut path = Path::default();
    let leaf = Certificate::parse(leaf)?;
    let mut verdict = path.leaf(security, &leaf, &policy)?;
    let mut child = leaf;
    for candidate in rest {
        if verdict == Verdict::Trusted {
            return Ok(());
        }
        let candidate = Certificate::parse(candidate)?;
        verdict = path.next(security, &leaf, &child, &candidate, &policy)?;
        if verdict != Verdict::PassedOver {
            child = candidate;
        }
    }
    if verdict == Verdict::Trusted { Ok(()) } else { Err(path.untrusted()) }
}

/// The rules for a chain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policy<'a> {
    pub(crate) purpose: Purpose,
    /// The name that the leaf is to be for; any, if there is none.
    pub(crate) name: Option<ServerName<'a>>,
    pub(crate) now: Option<UnixTime>,
    pub(crate) anchors: &'a [Anchor<'a>],
}

/// The part of a certificate in its chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// An anchor issued it: the chain is complete.
    Trusted,
    /// It counts, and its own issuer is to come.
    NeedsIssuer,
    /// It has nothing to do with the chain.
    PassedOver,
}

/// How far a chain has come.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Path {
    seen: u8,
    /// The authorities that count, but for those that issued themselves (§6.1.4 l).
    authorities: u32,
    /// An anchor has the right name, but did not sign.
    anchor_failed: bool,
}

impl Path {
    /// Begins with the certificate of the peer itself.
    pub(crate) fn leaf(
        &mut self,
        security: &mut impl Security,
        leaf: &Certificate<'_>,
        policy: &Policy<'_>,
    ) -> Result<Verdict> {
        self.seen = 1;
        if let Some(name) = &policy.name {
            name::check(leaf, name)?;
        }
        check_dates(leaf, policy.now)?;
        if leaf.extensions.is_authority {
            return Err(CertificateError::AuthorityAsLeaf);
        }
        check_key_usage(leaf, DIGITAL_SIGNATURE)?;
        check_purpose(leaf, policy.purpose)?;
        Ok(self.ask_anchors(security, leaf, policy))
    }

    /// Goes on with a certificate that may have issued `child`, the last one that counted.
    pub(crate) fn next(
        &mut self,
        security: &mut impl Security,
        leaf: &Certificate<'_>,
        child: &Certificate<'_>,
        candidate: &Certificate<'_>,
        policy: &Policy<'_>,
    ) -> Result<Verdict> {
        self.seen += 1;
        if self.seen > CERTIFICATES_MAX {
            return Err(CertificateError::TooManyCertificates);
        }
        if candidate.subject != child.issuer {
            return Ok(Verdict::PassedOver);
        }
        check_dates(candidate, policy.now)?;
        if !candidate.extensions.is_authority {
            return Err(CertificateError::IssuerNotAuthority);
        }
        check_key_usage(candidate, CERTIFICATE_SIGNATURE)?;
        check_purpose(candidate, policy.purpose)?;
        if candidate.extensions.authorities_below_max.is_some_and(|max| self.authorities > max) {
            return Err(CertificateError::PathTooLong);
        }
        if let Some(constraints) = &candidate.extensions.constraints {
            // Of those between, only the nearest is still at hand.
            if self.authorities > 1 && constraints.has_directory_names() {
                return Err(CertificateError::UnsupportedNameConstraint);
            }
            constraints.check(leaf)?;
            if self.authorities > 0 && child.issuer != child.subject {
                constraints.check(child)?;
            }
        }
        verify(security, child, &candidate.key)?;
        if candidate.issuer != candidate.subject {
            self.authorities += 1;
        }
        Ok(self.ask_anchors(security, candidate, policy))
    }

    /// Why a chain that is over is not trusted.
    pub(crate) fn untrusted(&self) -> CertificateError {
        if self.anchor_failed {
            CertificateError::BadSignature
        } else {
            CertificateError::UnknownIssuer
        }
    }

    fn ask_anchors(
        &mut self,
        security: &mut impl Security,
        certificate: &Certificate<'_>,
        policy: &Policy<'_>,
    ) -> Verdict {
        for anchor in policy.anchors.iter().filter(|it| it.name == certificate.issuer) {
            let key = parse_public_key(anchor.key_info);
            match key.and_then(|key| verify(security, certificate, &key)) {
                Ok(()) => return Verdict::Trusted,
                Err(_) => self.anchor_failed = true,
            }
        }
        Verdict::NeedsIssuer
    }
}

fn check_dates(certificate: &Certificate<'_>, now: Option<UnixTime>) -> Result<()> {
    let now = now.ok_or(CertificateError::TimeUnknown)?;
    if now < certificate.validity.not_before {
        Err(CertificateError::NotYetValid)
    } else if now > certificate.validity.not_after {
        Err(CertificateError::Expired)
    } else {
        Ok(())
    }
}

/// A key whose certificate doesn't say is for all uses (§4.2.1.3).
fn check_key_usage(certificate: &Certificate<'_>, usage: u16) -> Result<()> {
    match certificate.extensions.key_usage {
        Some(allowed) if allowed & usage == 0 => Err(CertificateError::KeyUsage),
        _ => Ok(()),
    }
}

/// A key whose certificate doesn't say is for all purposes. `anyExtendedKeyUsage` isn't taken, as
/// browsers don't.
fn check_purpose(certificate: &Certificate<'_>, purpose: Purpose) -> Result<()> {
    let Some(purposes) = certificate.extensions.extended_key_usage else { return Ok(()) };
    let mut purposes = Der::new(purposes);
    let mut is_found = false;
    while !purposes.is_empty() {
        is_found |= purposes.expect(OBJECT_IDENTIFIER)? == purpose.key_purpose();
    }
    if is_found { Ok(()) } else { Err(CertificateError::ExtendedKeyUsage) }
}

/// Checks that the holder of `key` signed `certificate`.
fn verify(
    security: &mut impl Security,
    certificate: &Certificate<'_>,
    key: &PublicKeyRef<'_>,
) -> Result<()> {
    let algorithm = match (certificate.algorithm, key) {
        // A certificate names the hash alone: the curve is that of the key.
        (SignatureAlgorithm::EcdsaP256(hash), PublicKeyRef::P384(_)) => {
            SignatureAlgorithm::EcdsaP384(hash)
        }
        (algorithm, _) => algorithm,
    };
    let signed = Signed::Message(certificate.signed);
    security.verify(algorithm, key, signed, certificate.signature).map_err(|error| match error {
        SecurityError::Unsupported => CertificateError::UnsupportedSignatureAlgorithm,
        _ => CertificateError::BadSignature,
    })
}
