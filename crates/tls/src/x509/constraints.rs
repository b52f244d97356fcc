//! Name constraints (RFC 5280 §4.2.1.10): the names that an authority may vouch for.

use super::CertificateError;
use super::der::{Der, OBJECT_IDENTIFIER, OCTET_STRING, SET, explicit, implicit};
use super::directory_name::is_same_rdn;
use super::name::{DNS_NAME, IP_ADDRESS, MAILBOX, Names, is_dns_name, is_general_name};

const DIRECTORY_NAME: u8 = explicit(4);
const URI: u8 = implicit(6);
/// The type of a mailbox in a subject, `emailAddress` of PKCS #9.
const EMAIL_ADDRESS: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 1];

type Result<T> = core::result::Result<T, CertificateError>;

/// The value of the name constraints among the fields of a certificate that follow its key; the other
/// extensions aren't looked at.
pub(super) fn of_anchor<'a>(fields: &mut Der<'a>) -> Result<Option<&'a [u8]>> {
    fields.optional(implicit(1))?;
    fields.optional(implicit(2))?;
    let Some(list) = fields.optional(explicit(3))? else { return Ok(None) };
    let mut list = Der::new(list).sequence()?;
    while !list.is_empty() {
        let mut extension = list.sequence()?;
        if extension.expect(OBJECT_IDENTIFIER)? == [0x55, 29, 30] {
            extension.optional_true()?;
            return extension.expect(OCTET_STRING).map(Some);
        }
    }
    Ok(None)
}

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

    /// Checks every name of a certificate, by at most `comparisons_left` comparisons.
    pub(super) fn check(&self, names: Names<'_>, comparisons_left: &mut u32) -> Result<()> {
        let mut alternative = Der::new(names.alternative);
        while !alternative.is_empty() {
            let (tag, value, _) = alternative.any()?;
            self.check_name(tag, value, comparisons_left)?;
        }
        let mut subject = Der::new(names.subject).sequence()?;
        // An empty subject is no name.
        if subject.is_empty() {
            return Ok(());
        }
        self.check_name(DIRECTORY_NAME, names.subject, comparisons_left)?;
        // "When a constraint is imposed on the rfc822Name name form, but the certificate does not include a subject
        // alternative name, the rfc822Name constraint MUST be applied to the attribute of type emailAddress in the
        // subject distinguished name" (§4.2.1.10).
        while names.alternative.is_empty() && !subject.is_empty() {
            let mut attributes = Der::new(subject.expect(SET)?);
            while !attributes.is_empty() {
                let mut attribute = attributes.sequence()?;
                if attribute.expect(OBJECT_IDENTIFIER)? == EMAIL_ADDRESS {
                    self.check_name(MAILBOX, attribute.any()?.1, comparisons_left)?;
                }
            }
        }
        Ok(())
    }

    fn check_name(&self, tag: u8, name: &[u8], comparisons_left: &mut u32) -> Result<()> {
        let (mut must_be_permitted, mut is_permitted, mut is_excluded) = (false, false, false);
        self.each(|is_exclusion, base_tag, base| {
            let left = comparisons_left.checked_sub(1);
            *comparisons_left = left.ok_or(CertificateError::TooMuchWork)?;
            if base_tag == tag {
                let is_within = is_within(tag, name, base)?;
                if is_exclusion {
                    is_excluded |= is_within || tag == DNS_NAME && may_be(name, base);
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
            check_dns_base(base)?;
            // A name that is none lies nowhere: it may be read as anything.
            if !is_dns_name(name.strip_prefix(b"*.").unwrap_or(name)) {
                return Err(CertificateError::NameConstraint);
            }
            Ok(dns_is_within(name, base))
        }
        MAILBOX => mailbox_is_within(name, base),
        URI => uri_is_within(name, base),
        IP_ADDRESS => ip_is_within(name, base),
        DIRECTORY_NAME => directory_is_within(name, base),
        _ => Err(CertificateError::UnsupportedNameConstraint),
    }
}

/// A base is a DNS name, empty for all of them, or has a dot in front.
fn check_dns_base(base: &[u8]) -> Result<()> {
    if base.is_empty() || is_dns_name(base.strip_prefix(b".").unwrap_or(base)) {
        Ok(())
    } else {
        Err(CertificateError::Malformed)
    }
}

/// Whether `name` is a wildcard and `base` one of its names. A wildcard stands for one label, so nothing further below its
/// domain is a name of it; the names that lie within `base` if all of them do are [`dns_is_within`]'s.
fn may_be(name: &[u8], base: &[u8]) -> bool {
    let (Some(domain), Some(dot)) =
        (name.strip_prefix(b"*."), base.iter().position(|byte| *byte == b'.'))
    else {
        return false;
    };
    dot > 0 && base[dot + 1..].eq_ignore_ascii_case(domain)
}

/// Whether `name`, or every name of it if it is a wildcard, ends with the labels of `base`. With a dot
/// in front a base is for names below it alone, as Go, webpki and OpenSSL have it.
fn dns_is_within(name: &[u8], base: &[u8]) -> bool {
    if base.is_empty() {
        return true;
    }
    let Some(start) = name.len().checked_sub(base.len()) else { return false };
    let (head, tail) = name.split_at(start);
    let is_at_label = if base.starts_with(b".") {
        !head.is_empty()
    } else {
        head.is_empty() || head.ends_with(b".")
    };
    is_at_label && tail.eq_ignore_ascii_case(base)
}

/// Whether `name` is the mailbox `base`, or is at the host `base`, or below a `base` that begins with a
/// dot. Only hosts have no case (RFC 5280 §4.2.1.10, §7.5).
fn mailbox_is_within(name: &[u8], base: &[u8]) -> Result<bool> {
    let (local, host) = split_mailbox(name).ok_or(CertificateError::NameConstraint)?;
    if base.contains(&b'@') {
        let (its_local, its_host) = split_mailbox(base).ok_or(CertificateError::Malformed)?;
        return Ok(local == its_local && host.eq_ignore_ascii_case(its_host));
    }
    host_is_within(host, base)
}

/// Whether `host` is the host `base`, or is below a `base` that begins with a dot.
fn host_is_within(host: &[u8], base: &[u8]) -> Result<bool> {
    check_dns_base(base)?;
    let is_host = base.is_empty() || host.eq_ignore_ascii_case(base);
    Ok(is_host || base.starts_with(b".") && dns_is_within(host, base))
}

/// Whether the host of the URI `name` is `base`, or is below a `base` that begins with a dot. A URI whose host isn't a
/// name lies nowhere: "the application MUST reject the certificate" (§4.2.1.10).
fn uri_is_within(name: &[u8], base: &[u8]) -> Result<bool> {
    let host = host_of_uri(name).ok_or(CertificateError::NameConstraint)?;
    host_is_within(host, base)
}

/// The host of a URI with an authority (RFC 3986 §3.2), if it is a DNS name. What no URI has, and some take for the end of
/// the host, makes it none.
fn host_of_uri(uri: &[u8]) -> Option<&[u8]> {
    let may_have = |byte: &u8| byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(byte);
    if !uri.iter().all(may_have) {
        return None;
    }
    let colon = uri.iter().position(|byte| *byte == b':').filter(|at| *at > 0)?;
    let rest = uri[colon + 1..].strip_prefix(b"//")?;
    let authority = rest.split(|byte| b"/?#".contains(byte)).next()?;
    let host = authority.splitn(2, |byte| *byte == b'@').last()?;
    let host = match host.iter().rposition(|byte| *byte == b':') {
        Some(colon) if host[colon + 1..].iter().all(u8::is_ascii_digit) => &host[..colon],
        _ => host,
    };
    is_dns_name(host).then_some(host)
}

/// The local part and the host of a mailbox. Quoted local parts with an at sign aren't taken.
fn split_mailbox(mailbox: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = mailbox.iter().position(|byte| *byte == b'@')?;
    let (local, host) = (&mailbox[..at], &mailbox[at + 1..]);
    (at > 0 && is_dns_name(host)).then_some((local, host))
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
        let wanted = base.expect(SET)?;
        if name.is_empty() || !is_same_rdn(name.expect(SET)?, wanted)? {
            return Ok(false);
        }
    }
    Ok(true)
}
