//! Whether a path leads from a leaf to an anchor (RFC 5280 §6).
//!
//! A path is searched for in all that the peer sent, in whatever order: certificates that belong to
//! none are passed over, and of several issuers with one name each is tried (RFC 8446 §4.4.2, RFC
//! 4158). Names and rules are looked at first, leaf to anchor; signatures are verified once an anchor
//! has the right name, from the anchor down, so that a peer can have no key used but those that an
//! anchor vouched for, and its own once.
//!
//! Invariants:
//! - The work for one message has a bound in certificates, steps, signatures and compared names.
//! - Common names decide nothing, and a certificate is an issuer only if it says that it is an
//!   authority.

use tenure_crypto::{PublicKeyRef, Security, SecurityError, SignatureAlgorithm, Signed};

use super::certificate::{CERTIFICATE_SIGNATURE, Certificate, DIGITAL_SIGNATURE};
use super::constraints::{NameConstraints, of_anchor};
use super::der::{Der, OBJECT_IDENTIFIER};
use super::{CertificateError, ServerName, UnixTime, name, parse_public_key};

type Result<T> = core::result::Result<T, CertificateError>;

/// The certificates of one message that are looked at.
pub(crate) const CERTIFICATES_MAX: u8 = 64;
/// The certificates of one path, without the anchor.
const PATH_MAX: usize = 10;
/// The certificates that are tried as somebody's issuer.
const STEPS_MAX: u16 = 10_000;
/// The signatures that are verified.
const SIGNATURES_MAX: u8 = 64;
/// The pairs of a name and a constraint that are compared.
const COMPARISONS_MAX: u32 = 250_000;

/// The shortest modulus of an RSA key.
const RSA_BYTES_MIN: usize = 256;

/// A name whose key is trusted to sign certificates, perhaps for some names alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor<'a> {
    /// The name, in DER.
    pub name: &'a [u8],
    /// The `SubjectPublicKeyInfo` of its key, in DER.
    pub key_info: &'a [u8],
    /// The names that it may vouch for: the value of a name constraints extension (RFC 5280
    /// §4.2.1.10), in DER. All, if there is none.
    pub name_constraints: Option<&'a [u8]>,
}

impl<'a> Anchor<'a> {
    /// The subject, the key and the name constraints of a certificate of any version.
    ///
    /// It is trusted for what it is: its own signature, dates and other extensions aren't judged (RFC
    /// 5280 §6.1.1 d), and may be of kinds that no other certificate here may have.
    ///
    /// # Errors
    /// It isn't a certificate, its kind of key isn't supported, or its name constraints can't be read.
    pub fn from_certificate(der: &'a [u8]) -> Result<Self> {
        let (name, key_info, mut rest) = Certificate::name_and_key(der)?;
        let name_constraints = of_anchor(&mut rest)?;
        if let Some(value) = name_constraints {
            NameConstraints::parse(value)?;
        }
        Ok(Self { name, key_info, name_constraints })
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

/// Searches a path from the first certificate of `chain` to an anchor, through the others in whatever
/// order, as a connection does.
///
/// # Errors
/// The rule that the leaf breaks, or the one that kept the first promising path from being one.
pub fn verify_chain(
    security: &mut impl Security,
    chain: &[&[u8]],
    anchors: &[Anchor<'_>],
    purpose: Purpose,
    name: Option<ServerName<'_>>,
    date: Option<UnixTime>,
) -> Result<()> {
    let leaf = chain.first().ok_or(CertificateError::Missing)?;
    if chain.len() > usize::from(CERTIFICATES_MAX) {
        return Err(CertificateError::TooManyCertificates);
    }
    let policy = Policy { purpose, name, now: date, anchors };
    check_leaf(&Certificate::parse(leaf)?, &policy)?;
    let mut search = Search::default();
    match search.find(security, &|index| chain.get(index).copied(), &policy)? {
        true => Ok(()),
        false => Err(search.refusal.error),
    }
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

/// Checks the certificate of the peer itself, but for who issued it.
pub(crate) fn check_leaf(leaf: &Certificate<'_>, policy: &Policy<'_>) -> Result<()> {
    if let Some(name) = &policy.name {
        name::check(leaf.names(), name)?;
    }
    check_dates(leaf, policy.now)?;
    if let PublicKeyRef::Rsa { modulus, .. } = leaf.key
        && modulus.len() < RSA_BYTES_MIN
    {
        return Err(CertificateError::UnsupportedKey);
    }
    let extensions = &leaf.extensions;
    if extensions.is_authority {
        return Err(CertificateError::AuthorityAsLeaf);
    }
    // Only authorities have these (§4.2.1.9, §4.2.1.10).
    if extensions.key_usage.is_some_and(|allowed| allowed & CERTIFICATE_SIGNATURE != 0) {
        return Err(CertificateError::KeyUsage);
    }
    if extensions.constraints.is_some() {
        return Err(CertificateError::NameConstraint);
    }
    check_key_usage(leaf, DIGITAL_SIGNATURE)?;
    check_purpose(leaf, policy.purpose)
}

/// The certificate that kept a path from being one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refusal {
    pub(crate) error: CertificateError,
    /// Its place in the peer's message.
    pub(crate) at: u8,
}

/// The search for a path through the certificates of one message, which may be asked again when more
/// of them are there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Search {
    steps_left: u16,
    signatures_left: u8,
    comparisons_left: u32,
    pub(crate) refusal: Refusal,
}

impl Default for Search {
    fn default() -> Self {
        Self {
            steps_left: STEPS_MAX,
            signatures_left: SIGNATURES_MAX,
            comparisons_left: COMPARISONS_MAX,
            refusal: Refusal { error: CertificateError::UnknownIssuer, at: 0 },
        }
    }
}

impl Search {
    /// Searches a path from certificate 0 of `pool` to an anchor: depth first, the anchors before the
    /// certificates, and those in the peer's order.
    ///
    /// # Errors
    /// [`CertificateError::TooMuchWork`] at the bound of it.
    pub(crate) fn find<'p>(
        &mut self,
        security: &mut impl Security,
        pool: &impl Fn(usize) -> Option<&'p [u8]>,
        policy: &Policy<'_>,
    ) -> Result<bool> {
        let mut path = [0; PATH_MAX];
        let (mut length, mut next) = (1, 1);
        loop {
            let end = path[length - 1];
            let child = nth(pool, end)?;
            // On the way back the anchors were asked before.
            if next == 1 && self.ask_anchors(security, pool, &path[..length], &child, policy)? {
                return Ok(true);
            }
            match self.issuer(pool, &path[..length], &child, next, policy)? {
                Some(index) => {
                    path[length] = index;
                    (length, next) = (length + 1, 1);
                }
                None if length == 1 => return Ok(false),
                None => (length, next) = (length - 1, end + 1),
            }
        }
    }

    /// Keeps the first reason that says more than that an issuer isn't there.
    pub(crate) fn refuse(&mut self, error: CertificateError, at: u8) {
        if self.refusal.error == CertificateError::UnknownIssuer {
            self.refusal = Refusal { error, at };
        }
    }

    /// The first certificate from `next` on that may have issued `child`, the end of `path`.
    fn issuer<'p>(
        &mut self,
        pool: &impl Fn(usize) -> Option<&'p [u8]>,
        path: &[u8],
        child: &Certificate<'_>,
        next: u8,
        policy: &Policy<'_>,
    ) -> Result<Option<u8>> {
        let mut index = next;
        while let Some(der) = pool(usize::from(index)) {
            self.steps_left =
                self.steps_left.checked_sub(1).ok_or(CertificateError::TooMuchWork)?;
            let checked = match Certificate::parse(der) {
                Ok(candidate) if candidate.subject != child.issuer => {
                    Err(CertificateError::UnknownIssuer)
                }
                Ok(candidate) => self.check_issuer(pool, path, &candidate, policy),
                Err(error) => Err(error),
            };
            match checked {
                Ok(()) => return Ok(Some(index)),
                Err(CertificateError::TooMuchWork) => return Err(CertificateError::TooMuchWork),
                Err(CertificateError::UnknownIssuer) => {}
                Err(error) => self.refuse(error, index),
            }
            index += 1;
        }
        if next == 1 {
            self.refuse(CertificateError::UnknownIssuer, path[path.len() - 1]);
        }
        Ok(None)
    }

    /// Checks an issuer of the end of `path`, but for its signature. One that is in the path already,
    /// by its name and key, leads nowhere and is [`CertificateError::UnknownIssuer`].
    fn check_issuer<'p>(
        &mut self,
        pool: &impl Fn(usize) -> Option<&'p [u8]>,
        path: &[u8],
        candidate: &Certificate<'_>,
        policy: &Policy<'_>,
    ) -> Result<()> {
        // The authorities that count, but for those that issued themselves (§6.1.4 l).
        let mut authorities = 0;
        for (place, index) in path.iter().enumerate() {
            let below = nth(pool, *index)?;
            if below.subject == candidate.subject && below.key_info == candidate.key_info {
                return Err(CertificateError::UnknownIssuer);
            }
            authorities += u32::from(place > 0 && !below.is_self_issued());
        }
        check_dates(candidate, policy.now)?;
        if !candidate.extensions.is_authority {
            return Err(CertificateError::IssuerNotAuthority);
        }
        check_key_usage(candidate, CERTIFICATE_SIGNATURE)?;
        check_purpose(candidate, policy.purpose)?;
        let max = candidate.extensions.authorities_below_max;
        if path.len() == PATH_MAX || max.is_some_and(|max| authorities > max) {
            return Err(CertificateError::PathTooLong);
        }
        self.check_names(pool, path, candidate.extensions.constraints.as_ref())
    }

    /// Checks the names of `path` against `constraints` from above it: not those of authorities that
    /// issued themselves (§4.2.1.10).
    fn check_names<'p>(
        &mut self,
        pool: &impl Fn(usize) -> Option<&'p [u8]>,
        path: &[u8],
        constraints: Option<&NameConstraints<'_>>,
    ) -> Result<()> {
        let Some(constraints) = constraints else { return Ok(()) };
        for (place, index) in path.iter().enumerate() {
            let below = nth(pool, *index)?;
            if place == 0 || !below.is_self_issued() {
                constraints.check(below.names(), &mut self.comparisons_left)?;
            }
        }
        Ok(())
    }

    /// Whether an anchor issued `end`, the end of `path`, and all of the path is signed.
    fn ask_anchors<'p>(
        &mut self,
        security: &mut impl Security,
        pool: &impl Fn(usize) -> Option<&'p [u8]>,
        path: &[u8],
        end: &Certificate<'_>,
        policy: &Policy<'_>,
    ) -> Result<bool> {
        for anchor in policy.anchors.iter().filter(|it| it.name == end.issuer) {
            match self.verify_path(security, pool, path, anchor) {
                Ok(()) => return Ok(true),
                Err(CertificateError::TooMuchWork) => return Err(CertificateError::TooMuchWork),
                Err(error) => self.refuse(error, path[path.len() - 1]),
            }
        }
        Ok(false)
    }

    /// Verifies the signatures of `path`, from the anchor down.
    fn verify_path<'p>(
        &mut self,
        security: &mut impl Security,
        pool: &impl Fn(usize) -> Option<&'p [u8]>,
        path: &[u8],
        anchor: &Anchor<'_>,
    ) -> Result<()> {
        let constraints = anchor.name_constraints.map(NameConstraints::parse).transpose()?;
        self.check_names(pool, path, constraints.as_ref())?;
        let mut key_info = anchor.key_info;
        for index in path.iter().rev() {
            let certificate = nth(pool, *index)?;
            let left = self.signatures_left.checked_sub(1);
            self.signatures_left = left.ok_or(CertificateError::TooMuchWork)?;
            verify(security, &certificate, &parse_public_key(key_info)?)?;
            key_info = certificate.key_info;
        }
        Ok(())
    }
}

/// Certificate `index` of those that lie one behind the other in `joined`, and of `last` behind them.
pub(crate) fn nth_of<'p>(joined: &'p [u8], last: &'p [u8], index: usize) -> Option<&'p [u8]> {
    let mut joined = Der::new(joined);
    for _ in 0..index {
        joined.any().ok()?;
    }
    if joined.is_empty() { Some(last) } else { joined.any().ok().map(|(_, _, whole)| whole) }
}

fn nth<'p>(pool: &impl Fn(usize) -> Option<&'p [u8]>, index: u8) -> Result<Certificate<'p>> {
    Certificate::parse(pool(usize::from(index)).ok_or(CertificateError::Missing)?)
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
