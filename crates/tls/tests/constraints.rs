//! Name constraints of random trees beside three judges: a model that tries each name a wildcard stands for, OpenSSL, and
//! rustls-webpki. Each tree has a root, one or two authorities below it and a leaf, and each authority may permit and
//! exclude names of five kinds at any depth.

mod common;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use common::security;
use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, DistinguishedName, DnType, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, SanType,
};
use tenure_hal::simulated::Random;
use tenure_testbed::skip_without_tool;
use tenure_tls::x509::{Anchor, CertificateError, Purpose, UnixTime, verify_chain};

/// 2027-01-15.
const DATE: UnixTime = UnixTime(1_800_000_000);
const TREES: u64 = 2_000;
/// OpenSSL is a process for each tree.
const TREES_FOR_OPENSSL: u64 = 250;

/// A name, or the base of a constraint, of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Name {
    Dns(String),
    Mailbox(String),
    Uri(String),
    Address(IpAddr),
    /// A net by its prefix, as a base alone.
    Net(IpAddr, u8),
    /// A directory name by its organisation and units.
    Directory(Vec<&'static str>),
}

#[derive(Clone, Debug, Default)]
struct Constraints {
    permitted: Vec<Name>,
    excluded: Vec<Name>,
}

/// What stands in the certificates of a path, the leaf first.
#[derive(Clone, Debug)]
struct Tree {
    /// The leaf's organisation and units.
    subject: Vec<&'static str>,
    alternative: Vec<Name>,
    /// Those of the authorities, the root last.
    constraints: Vec<Option<Constraints>>,
}

struct Chance(Random);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0.below(limit as u64) as usize
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    /// A host of one to four labels below `test`, of which few differ, so that many meet.
    fn host(&mut self) -> String {
        let labels = self.below(4);
        let labels = (0..labels).map(|_| self.of(&["a.", "a.", "b.", "A."]));
        labels.collect::<String>() + "test"
    }

    fn base(&mut self) -> Name {
        let dotted = if self.below(3) == 0 { "." } else { "" };
        match self.below(12) {
            0..=4 => Name::Dns(dotted.to_string() + &self.host()),
            5 => Name::Mailbox(dotted.to_string() + &self.host()),
            6 => Name::Mailbox(self.of(&["me@", "you@"]).to_string() + &self.host()),
            7 => Name::Uri(dotted.to_string() + &self.host()),
            8 | 9 => {
                let address = self.address();
                let bits = if address.is_ipv4() { 32 } else { 128 };
                Name::Net(address, self.of(&[0, 8, 9, 16, 24, 31, bits]))
            }
            _ => Name::Directory(self.subject()),
        }
    }

    fn name(&mut self) -> Name {
        match self.below(9) {
            0 | 1 => Name::Dns(self.host()),
            2..=4 => Name::Dns("*.".to_string() + &self.host()),
            5 => Name::Mailbox(self.of(&["me@", "you@", "ME@"]).to_string() + &self.host()),
            6 => {
                let before = self.of(&["https://", "coap+tcp://", "spiffe://"]);
                let behind = self.of(&["", "/", ":8443/a?b", "/@b.test"]);
                Name::Uri(before.to_string() + &self.host() + behind)
            }
            7 => Name::Uri(self.of(&["urn:a:test", "https://10.1.2.3/"]).into()),
            _ => Name::Address(self.address()),
        }
    }

    fn address(&mut self) -> IpAddr {
        match self.below(4) {
            0 => Ipv6Addr::new(0xfd00, 0, 0, self.below(2) as u16, 0, 0, 0, 1).into(),
            _ => Ipv4Addr::new(10, self.below(3) as u8, self.below(2) as u8, 3).into(),
        }
    }

    fn subject(&mut self) -> Vec<&'static str> {
        let parts = ["Acme", "ACME", "Acme ", "Other"];
        (0..self.below(3)).map(|_| self.of(&parts)).collect()
    }

    fn constraints(&mut self) -> Option<Constraints> {
        let mut list = |most: usize| (0..self.below(most)).map(|_| self.base()).collect::<Vec<_>>();
        let (permitted, excluded) = (list(4), list(3));
        let some = !permitted.is_empty() || !excluded.is_empty();
        (some && self.below(3) > 0).then_some(Constraints { permitted, excluded })
    }

    fn tree(&mut self) -> Tree {
        Tree {
            subject: self.subject(),
            alternative: (0..=self.below(2)).map(|_| self.name()).collect(),
            constraints: (0..2 + self.below(2)).map(|_| self.constraints()).collect(),
        }
    }
}

impl Tree {
    /// What the model says: each name that the leaf may be used for must be allowed by each authority.
    fn is_allowed(&self) -> bool {
        let mut names: Vec<Name> = self.alternative.clone();
        // An empty subject is no name.
        if !self.subject.is_empty() {
            names.push(Name::Directory(self.subject.clone()));
        }
        // An authority's own name is its level alone: `of_level` is below no organisation.
        let level = Name::Directory(vec!["level"]);
        self.constraints.iter().enumerate().all(|(place, constraints)| {
            let Some(constraints) = constraints else { return true };
            let names = names.iter().flat_map(concrete);
            let authorities = std::iter::repeat_n(level.clone(), place);
            names.chain(authorities).all(|name| constraints.allow(&name))
        })
    }

    fn has_wildcard(&self) -> bool {
        self.alternative.iter().any(|name| matches!(name, Name::Dns(name) if name.starts_with('*')))
    }

    fn has_uri_with_address(&self) -> bool {
        let is_one = |name: &Name| matches!(name, Name::Uri(uri) if uri.contains("://10."));
        self.alternative.iter().any(is_one)
    }

    /// Whether rustls-webpki judges all kinds that are constrained: it refuses the others wholesale, and a wildcard for a
    /// top-level domain, which is no server's name here either.
    fn is_of_plain_kinds(&self) -> bool {
        if self.alternative.contains(&Name::Dns("*.test".into())) {
            return false;
        }
        let lists = self.constraints.iter().flatten();
        let bases = lists.flat_map(|it| it.permitted.iter().chain(&it.excluded));
        bases.into_iter().all(|base| matches!(base, Name::Dns(_) | Name::Net(..)))
    }
}

/// The names that `name` stands for: a wildcard's are tried with each label there is, and with one that is nowhere else.
fn concrete(name: &Name) -> Vec<Name> {
    match name {
        Name::Dns(text) if text.starts_with("*.") => {
            ["a", "b", "elsewhere"].map(|label| Name::Dns(label.to_string() + &text[1..])).into()
        }
        name => vec![name.clone()],
    }
}

impl Constraints {
    fn allow(&self, name: &Name) -> bool {
        let of_kind = |base: &&Name| match (name, base) {
            (Name::Address(_), Name::Net(..)) => true,
            _ => std::mem::discriminant(name) == std::mem::discriminant(*base),
        };
        let mut permitted = self.permitted.iter().filter(of_kind).peekable();
        let mut excluded = self.excluded.iter().filter(of_kind).peekable();
        let is_constrained = permitted.peek().is_some() || excluded.peek().is_some();
        if let Name::Uri(uri) = name
            && is_constrained
            && host_of(uri).is_none()
        {
            return false;
        }
        let is_permitted = permitted.peek().is_none() || permitted.any(|base| is_in(name, base));
        is_permitted && !excluded.any(|base| is_in(name, base))
    }
}

fn host_of(uri: &str) -> Option<&str> {
    let host = uri.split_once("://")?.1.split(['/', ':']).next()?;
    (!host.starts_with("10.")).then_some(host)
}

fn is_in(name: &Name, base: &Name) -> bool {
    match (name, base) {
        (Name::Dns(name), Name::Dns(base)) => match base.strip_prefix('.') {
            Some(domain) => is_below(name, domain),
            None => name.eq_ignore_ascii_case(base) || is_below(name, base),
        },
        (Name::Mailbox(name), Name::Mailbox(base)) => {
            let (local, host) = name.split_once('@').unwrap();
            match base.split_once('@') {
                Some((its, at)) => local == its && host.eq_ignore_ascii_case(at),
                None => is_host_in(host, base),
            }
        }
        (Name::Uri(uri), Name::Uri(base)) => is_host_in(host_of(uri).unwrap(), base),
        (Name::Address(IpAddr::V4(one)), Name::Net(IpAddr::V4(net), bits)) => {
            let shift = 32 - u32::from(*bits);
            one.to_bits().checked_shr(shift) == net.to_bits().checked_shr(shift)
        }
        (Name::Address(IpAddr::V6(one)), Name::Net(IpAddr::V6(net), bits)) => {
            let shift = 128 - u32::from(*bits);
            one.to_bits().checked_shr(shift) == net.to_bits().checked_shr(shift)
        }
        (Name::Directory(name), Name::Directory(base)) => {
            let folded = |part: &str| part.trim().to_lowercase();
            base.len() <= name.len()
                && name.iter().zip(base).all(|(one, other)| folded(one) == folded(other))
        }
        _ => false,
    }
}

fn is_host_in(host: &str, base: &str) -> bool {
    match base.strip_prefix('.') {
        Some(domain) => is_below(host, domain),
        None => host.eq_ignore_ascii_case(base),
    }
}

fn is_below(name: &str, domain: &str) -> bool {
    let (name, domain) = (name.to_lowercase(), domain.to_lowercase());
    name.strip_suffix(&domain).is_some_and(|before| before.ends_with('.'))
}

fn tlv(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len();
    let header = match length {
        0..=0x7f => vec![tag, length as u8],
        _ => vec![tag, 0x82, (length >> 8) as u8, length as u8],
    };
    [header, content.to_vec()].concat()
}

/// A directory name: an organisation, and units below it, in two kinds of string by turns.
fn directory(parts: &[&str]) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    // Types differ, as `rcgen` keeps one value of each.
    let types = [DnType::OrganizationName, DnType::OrganizationalUnitName];
    types.into_iter().zip(parts).for_each(|(kind, part)| name.push(kind, *part));
    name
}

/// The DER of a directory name in printable strings, where certificates have UTF-8.
fn directory_der(parts: &[&str]) -> Vec<u8> {
    let types = [&[0x55, 4, 10][..], &[0x55, 4, 11]];
    let parts = parts.iter().zip(types).map(|(part, kind)| {
        let attribute = [tlv(6, kind), tlv(0x13, part.as_bytes())].concat();
        tlv(0x31, &tlv(0x30, &attribute))
    });
    tlv(0x30, &parts.collect::<Vec<_>>().concat())
}

fn subtree(base: &Name) -> Vec<u8> {
    let base = match base {
        Name::Dns(base) => tlv(0x82, base.as_bytes()),
        Name::Mailbox(base) => tlv(0x81, base.as_bytes()),
        Name::Uri(base) => tlv(0x86, base.as_bytes()),
        Name::Net(IpAddr::V4(net), bits) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(*bits)).unwrap_or(0);
            tlv(0x87, &[net.octets(), mask.to_be_bytes()].concat())
        }
        Name::Net(IpAddr::V6(net), bits) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(*bits)).unwrap_or(0);
            tlv(0x87, &[net.octets(), mask.to_be_bytes()].concat())
        }
        Name::Directory(parts) => tlv(0xa4, &directory_der(parts)),
        Name::Address(_) => unreachable!("a base is a net"),
    };
    tlv(0x30, &base)
}

fn extension(constraints: &Constraints) -> CustomExtension {
    let list = |tag, bases: &[Name]| match bases {
        [] => vec![],
        bases => tlv(tag, &bases.iter().map(subtree).collect::<Vec<_>>().concat()),
    };
    let value = [list(0xa0, &constraints.permitted), list(0xa1, &constraints.excluded)].concat();
    let mut extension = CustomExtension::from_oid_content(&[2, 5, 29, 30], tlv(0x30, &value));
    extension.set_criticality(true);
    extension
}

/// The certificates of a tree, the leaf first and the root last.
fn certificates(tree: &Tree, keys: &[KeyPair]) -> Vec<rcgen::Certificate> {
    let authority = |level: usize| {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, format!("level {level}"));
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        params.custom_extensions.extend(tree.constraints[level].as_ref().map(extension));
        params
    };
    let mut leaf = CertificateParams::default();
    leaf.distinguished_name = directory(&tree.subject);
    leaf.subject_alt_names = tree.alternative.iter().map(alternative).collect();
    let top = tree.constraints.len() - 1;
    let mut made = vec![];
    for level in (0..=top).rev() {
        let (params, above) = (authority(level), authority(usize::min(level + 1, top)));
        let issuer = Issuer::from_params(&above, &keys[usize::min(level + 1, top)]);
        made.push(params.signed_by(&keys[level], &issuer).expect("a certificate"));
    }
    let issuer = authority(0);
    let issuer = Issuer::from_params(&issuer, &keys[0]);
    made.push(leaf.signed_by(&keys[top + 1], &issuer).expect("a leaf"));
    made.reverse();
    made
}

fn alternative(name: &Name) -> SanType {
    let ascii = |text: &str| text.try_into().expect("ASCII");
    match name {
        Name::Dns(name) => SanType::DnsName(ascii(name)),
        Name::Mailbox(name) => SanType::Rfc822Name(ascii(name)),
        Name::Uri(name) => SanType::URI(ascii(name)),
        Name::Address(address) => SanType::IpAddress(*address),
        Name::Net(..) | Name::Directory(_) => unreachable!("no alternative name"),
    }
}

fn judge(chain: &[rcgen::Certificate]) -> Result<(), CertificateError> {
    let ders: Vec<&[u8]> = chain.iter().map(|it| &it.der()[..]).collect();
    let (root, sent) = ders.split_last().expect("a root");
    let anchors = [Anchor::from_certificate(root)?];
    verify_chain(&mut security(), sent, &anchors, Purpose::Server, None, Some(DATE))
}

fn webpki_accepts(chain: &[rcgen::Certificate]) -> bool {
    let root = chain.last().expect("a root").der();
    let anchors = [webpki::anchor_from_trusted_cert(root).expect("an anchor")];
    let middle: Vec<_> = chain[1..chain.len() - 1].iter().map(|it| it.der().clone()).collect();
    let leaf = webpki::EndEntityCert::try_from(chain[0].der()).expect("a leaf");
    let verified = leaf.verify_for_usage(
        webpki::ALL_VERIFICATION_ALGS,
        &anchors,
        &middle,
        rustls::pki_types::UnixTime::since_unix_epoch(Duration::from_secs(DATE.0 as u64)),
        webpki::KeyUsage::server_auth(),
        None,
        None,
    );
    verified.is_ok()
}

fn openssl_accepts(folder: &Path, chain: &[rcgen::Certificate]) -> bool {
    let write = |name: &str, certificates: &[rcgen::Certificate]| {
        let pem: String = certificates.iter().map(rcgen::Certificate::pem).collect();
        std::fs::write(folder.join(name), pem).expect("a file");
    };
    let last = chain.len() - 1;
    write("leaf", &chain[..1]);
    write("middle", &chain[1..last]);
    write("root", &chain[last..]);
    let mut command = Command::new("openssl");
    command.current_dir(folder).args(["verify", "-CAfile", "root", "-no-CApath"]);
    command.args(["-untrusted", "middle", "-purpose", "sslserver", "leaf"]);
    command.output().expect("openssl").status.success()
}

/// The keys of the levels and the leaf.
fn keys() -> Vec<KeyPair> {
    (0..5).map(|_| KeyPair::generate().expect("a key")).collect()
}

#[test]
fn random_trees_are_judged_as_the_model_and_rustls_webpki_do() {
    let (mut chance, keys) = (Chance(Random::new(57)), keys());
    let (mut verdicts, mut by_webpki) = ([0, 0], 0);
    for round in 0..TREES {
        let tree = chance.tree();
        let chain = certificates(&tree, &keys);
        let verdict = judge(&chain);
        assert_eq!(verdict.is_ok(), tree.is_allowed(), "{verdict:?}, tree {round}: {tree:#?}");
        verdicts[usize::from(verdict.is_ok())] += 1;
        if tree.is_of_plain_kinds() {
            assert_eq!(verdict.is_ok(), webpki_accepts(&chain), "tree {round}: {tree:#?}");
            by_webpki += 1;
        }
    }
    assert!(verdicts[0] > TREES / 10 && verdicts[1] > TREES / 10, "{verdicts:?}");
    assert!(by_webpki > TREES / 10, "{by_webpki}");
}

/// OpenSSL compares a wildcard as it stands, so that it takes one of which some names are excluded, and takes an address for
/// the host of a URI, which RFC 5280 §4.2.1.10 forbids. It refuses nothing more.
#[test]
fn random_trees_are_judged_as_openssl_does_but_for_what_rfc_5280_refuses_besides() {
    if Command::new("openssl").arg("version").output().is_err() {
        skip_without_tool("openssl");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (mut chance, keys) = (Chance(Random::new(1957)), keys());
    for round in 0..TREES_FOR_OPENSSL {
        let tree = chance.tree();
        let chain = certificates(&tree, &keys);
        let (ours, theirs) = (judge(&chain).is_ok(), openssl_accepts(folder.path(), &chain));
        let is_named = (tree.has_wildcard() || tree.has_uri_with_address()) && !ours;
        assert!(ours == theirs || is_named, "here {ours}, tree {round}: {tree:#?}");
    }
}

fn verdict(names: &[Name], permitted: &[Name], excluded: &[Name]) -> Result<(), CertificateError> {
    let constraints = Constraints { permitted: permitted.to_vec(), excluded: excluded.to_vec() };
    let constraints = vec![Some(constraints), None];
    let tree = Tree { subject: vec!["Acme"], alternative: names.to_vec(), constraints };
    judge(&certificates(&tree, &keys()))
}

/// A wildcard stands for one label: what is excluded further below its domain is none of its names.
#[test]
fn a_wildcard_is_refused_if_one_of_its_names_is_excluded_and_not_for_names_below_them() {
    let dns = |name: &str| Name::Dns(name.into());
    for (wildcard, excluded, is_taken) in [
        ("*.a.test", "test", false),
        ("*.a.test", "a.test", false),
        ("*.a.test", ".a.test", false),
        ("*.a.test", "b.a.test", false),
        ("*.a.test", "B.A.TEST", false),
        ("*.a.test", ".b.a.test", true),
        ("*.a.test", "c.b.a.test", true),
        ("*.a.test", "d.c.b.a.test", true),
        ("*.a.test", "b.test", true),
        ("*.b.a.test", "a.test", false),
        ("*.b.a.test", ".c.a.test", true),
    ] {
        let verdict = verdict(&[dns(wildcard)], &[], &[dns(excluded)]);
        let expected = if is_taken { Ok(()) } else { Err(CertificateError::NameConstraint) };
        assert_eq!(verdict, expected, "{wildcard} without {excluded}");
    }
}

#[test]
fn the_host_of_a_uri_is_constrained_and_a_uri_without_one_refused() {
    let uri = |text: &str| Name::Uri(text.into());
    for (name, base, is_taken) in [
        ("spiffe://a.test/work/load", "a.test", true),
        ("https://me:secret@A.test:8443/?b#c", "a.test", true),
        ("https://b.a.test", "a.test", false),
        ("https://b.a.test", ".a.test", true),
        ("https://a.test@b.test/", "a.test", false),
        ("https://b.test/@a.test", "a.test", false),
        ("https://b.test\\@a.test/", "a.test", false),
        ("https://a.test%2f.b.test/", "a.test", false),
        ("https://10.1.2.3/", "a.test", false),
        ("https://[fd00::1]/", "a.test", false),
        ("https://a.test./", "a.test", false),
        ("urn:a.test", "a.test", false),
        ("//a.test", "a.test", false),
    ] {
        let verdict = verdict(&[uri(name)], &[uri(base)], &[]);
        let expected = if is_taken { Ok(()) } else { Err(CertificateError::NameConstraint) };
        assert_eq!(verdict, expected, "{name} in {base}");
    }
}

/// RFC 5280 §4.2.1.10 on `emailAddress` in a subject without alternative names.
#[test]
fn a_mailbox_in_a_subject_is_constrained_as_one_beside_it() {
    let mailbox = DnType::CustomDnType(vec![1, 2, 840, 113_549, 1, 9, 1]);
    let keys = keys();
    for (host, is_taken) in [("a.test", true), ("b.test", false)] {
        let base = Name::Mailbox(host.into());
        let constraints = Constraints { permitted: vec![base], excluded: vec![] };
        let constraints = vec![Some(constraints), None];
        let tree = Tree { subject: vec![], alternative: vec![], constraints };
        let mut chain = certificates(&tree, &keys);
        let mut issuer = CertificateParams::default();
        issuer.distinguished_name = DistinguishedName::new();
        issuer.distinguished_name.push(DnType::CommonName, "level 0");
        let mut leaf = CertificateParams::default();
        leaf.distinguished_name = DistinguishedName::new();
        let address = rcgen::DnValue::Ia5String("me@a.test".try_into().expect("ASCII"));
        leaf.distinguished_name.push(mailbox.clone(), address);
        let issuer = Issuer::from_params(&issuer, &keys[0]);
        chain[0] = leaf.signed_by(&keys[3], &issuer).expect("a leaf");
        assert_eq!(judge(&chain).is_ok(), is_taken, "{host}");
    }
}
