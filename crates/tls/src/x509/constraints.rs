//! Name constraints (RFC 5280 §4.2.1.10): the names that an authority may vouch for.

use super::CertificateError;
use super::certificate::Certificate;
use super::der::{Der, explicit};
use super::name::{DNS_NAME, IP_ADDRESS, is_dns_name, is_general_name};

const DIRECTORY_NAME: u8 = explicit(4);

type Result<T> = core::result::Result<T, CertificateError>;

/// The two lists of an authority.
#[derive(Clone, Copy, Debug)]
pub(super) struct NameConstraints<'a> {
    permitted: &'a [u8],
    excluded: &'a [u8],
}

impl<'a> NameConstraints<'a> {
    pub(super) fn parse(value: &'a [u8]) -> Result<Self> {
        let mut outer = Der::new(value);
        let mut fields = outer.sequence()?;
        outer.finish()?;
        let permitted = fields.optional(explicit(0))?;
        let excluded = fields.optional(explicit(1))?;
        fields.finish()?;
        if permitted.is_none_or(<[u8]>::is_empty) && excluded.is_none_or(<[u8]>::is_empty) {
            return Err(CertificateError::Malformed);
        }
        let lists = Self {
            permitted: permitted.unwrap_or_default(),
            excluded: excluded.unwrap_or_default(),
        };
        lists.each(|_, _, _| Ok(()))?;
        Ok(lists)
    }

    /// Whether directory names are among them.
    pub(super) fn has_directory_names(&self) -> bool {
        let mut found = false;
        // The lists were read to their ends before.
        let _ = self.each(|_, tag, _| {
            found |= tag == DIRECTORY_NAME;
            Ok(())
        });
        found
    }

    /// Checks every name of `certificate` that isn't an authority's own.
    pub(super) fn check(&self, certificate: &Certificate<'_>) -> Result<()> {
        let mut names = Der::new(certificate.extensions.alternative_names.unwrap_or_default());
        while !names.is_empty() {
            let (tag, value, _) = names.any()?;
            self.check_name(tag, value)?;
        }
        // An empty subject is no name.
        if Der::new(certificate.subject).sequence()?.is_empty() {
            return Ok(());
        }
        self.check_name(DIRECTORY_NAME, certificate.subject)
    }

    fn check_name(&self, tag: u8, name: &[u8]) -> Result<()> {
        let (mut must_be_permitted, mut is_permitted, mut is_excluded) = (false, false, false);
        self.each(|is_exclusion, base_tag, base| {
            if base_tag == tag {
                let is_within = is_within(tag, name, base)?;
                if is_exclusion {
                    is_excluded |= is_within || tag == DNS_NAME && may_name_within(name, base);
                } else {
                    must_be_permitted = true;
                    is_permitted |= is_within;
                }
            }
            Ok(())
        })?;
        if is_excluded || must_be_permitted && !is_permitted {
            return Err(CertificateError::NameConstraint);
        }
        Ok(())
    }

    /// Calls `visit` with whether it is an exclusion, the tag and the base, of each subtree.
    fn each(&self, mut visit: impl FnMut(bool, u8, &[u8]) -> Result<()>) -> Result<()> {
        for (is_exclusion, list) in [(false, self.permitted), (true, self.excluded)] {
            let mut list = Der::new(list);
            while !list.is_empty() {
                let mut subtree = list.sequence()?;
                let (tag, base, _) = subtree.any()?;
                // Minimum and maximum are never there (§4.2.1.10).
                subtree.finish()?;
                if !is_general_name(tag) {
                    return Err(CertificateError::Malformed);
                }
                visit(is_exclusion, tag, base)?;
            }
        }
        Ok(())
    }
}

/// Whether `name` lies in the subtree of `base`; both have the tag `tag`.
fn is_within(tag: u8, name: &[u8], base: &[u8]) -> Result<bool> {
    match tag {
        DNS_NAME => {
            let base = base.strip_prefix(b".").unwrap_or(base);
            if !base.is_empty() && !is_dns_name(base) {
                return Err(CertificateError::Malformed);
            }
            // A name that is none lies nowhere: it may be read as anything.
            if !is_dns_name(name.strip_prefix(b"*.").unwrap_or(name)) {
                return Err(CertificateError::NameConstraint);
            }
            Ok(dns_is_within(name, base))
        }
        IP_ADDRESS => ip_is_within(name, base),
        DIRECTORY_NAME => directory_is_within(name, base),
        _ => Err(CertificateError::UnsupportedNameConstraint),
    }
}

/// Whether `name` is a wildcard of which some names lie in the subtree of `base`.
fn may_name_within(name: &[u8], base: &[u8]) -> bool {
    name.strip_prefix(b"*.").is_some_and(|domain| dns_is_within(base, domain))
}

/// Whether `name`, or every name of it if it is a wildcard, is `base` or ends with its labels.
fn dns_is_within(name: &[u8], base: &[u8]) -> bool {
    let base = base.strip_prefix(b".").unwrap_or(base);
    if base.is_empty() {
        return true;
    }
    let Some(start) = name.len().checked_sub(base.len()) else { return false };
    let (head, tail) = name.split_at(start);
    tail.eq_ignore_ascii_case(base) && (head.is_empty() || head.ends_with(b"."))
}

fn ip_is_within(name: &[u8], base: &[u8]) -> Result<bool> {
    if !matches!(base.len(), 8 | 32) {
        return Err(CertificateError::Malformed);
    }
    if !matches!(name.len(), 4 | 16) {
        return Err(CertificateError::NameConstraint);
    }
    let (address, mask) = base.split_at(base.len() / 2);
    // A mask is ones, then zeros.
    let ones: usize = mask.iter().map(|byte| byte.leading_ones() as usize).sum();
    let all: usize = mask.iter().map(|byte| byte.count_ones() as usize).sum();
    let is_prefix = mask.iter().skip_while(|byte| **byte == 0xff).skip(1).all(|byte| *byte == 0);
    if ones != all || !is_prefix {
        return Err(CertificateError::Malformed);
    }
    let is_within = name.len() == address.len()
        && name.iter().zip(address).zip(mask).all(|((it, base), mask)| it & mask == base & mask);
    Ok(is_within)
}

/// `name` begins with all that `base` has; both are names, `base` within its explicit tag.
fn directory_is_within(name: &[u8], base: &[u8]) -> Result<bool> {
    let mut base = Der::new(base).sequence()?;
    let (_, name, _) = match Der::new(name).peek() {
        Some(super::der::SEQUENCE) => Der::new(name).any()?,
        _ => return Err(CertificateError::Malformed),
    };
    let mut name = Der::new(name);
    while !base.is_empty() {
        let (_, _, wanted) = base.any()?;
        if name.is_empty() || name.any()?.2 != wanted {
            return Ok(false);
        }
    }
    Ok(true)
}
