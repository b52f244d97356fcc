//! Chains made for each rule of RFC 5280 §6: a good one, and one that breaks each rule, whose refusal
//! names it. Which path is found in many certificates is in `paths.rs`.

mod common;

use common::security;
use rcgen::{
    BasicConstraints, CertificateParams, CidrSubnet, CustomExtension, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, GeneralSubtree, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    NameConstraints, PKCS_ECDSA_P384_SHA384, PKCS_ED25519, SanType, date_time_ymd,
};
use tenure_tls::x509::{
    Anchor, Certificate, CertificateError, Purpose, ServerName, UnixTime, verify_chain,
};

/// 2027-01-15.
const DATE: UnixTime = UnixTime(1_800_000_000);

/// The certificates of a chain, to be changed before they are signed.
struct Plan {
    root: CertificateParams,
    middle: CertificateParams,
    leaf: CertificateParams,
}

fn name(common: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common);
    name
}

fn authority(common: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = name(common);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

fn plan() -> Plan {
    let mut leaf =
        CertificateParams::new(vec!["server.test".into(), "192.0.2.1".into()]).expect("names");
    leaf.distinguished_name = name("leaf");
    leaf.is_ca = IsCa::ExplicitNoCa;
    leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    Plan { root: authority("root"), middle: authority("middle"), leaf }
}

/// The three certificates, root last.
fn sign(plan: &Plan) -> [Vec<u8>; 3] {
    let [root, middle, leaf] = [(); 3].map(|()| KeyPair::generate().expect("a key"));
    let root_certificate = plan.root.self_signed(&root).expect("a root");
    let by_root = Issuer::from_params(&plan.root, &root);
    let by_middle = Issuer::from_params(&plan.middle, &middle);
    let middle_certificate = plan.middle.signed_by(&middle, &by_root).expect("a certificate");
    let leaf_certificate = plan.leaf.signed_by(&leaf, &by_middle).expect("a certificate");
    [leaf_certificate, middle_certificate, root_certificate].map(|it| it.der().to_vec())
}

fn verify(chain: &[&[u8]], root: &[u8], name: ServerName<'_>) -> Result<(), CertificateError> {
    let anchors = [Anchor::from_certificate(root)?];
    verify_chain(&mut security(), chain, &anchors, Purpose::Server, Some(name), Some(DATE))
}

const NAME: ServerName<'_> = ServerName::Dns("server.test");

/// Checks the chain of `change`d certificates.
fn check(change: impl FnOnce(&mut Plan)) -> Result<(), CertificateError> {
    let mut plan = plan();
    change(&mut plan);
    let [leaf, middle, root] = sign(&plan);
    verify(&[&leaf, &middle], &root, NAME)
}

#[test]
fn a_good_chain_is_trusted_with_or_without_its_root_and_what_is_sent_in_excess() {
    let [leaf, middle, root] = sign(&plan());
    let [other, _, _] = sign(&plan());
    let chains: [&[&[u8]]; 4] = [
        &[&leaf, &middle],
        &[&leaf, &middle, &root],
        &[&leaf, &other, &middle],
        &[&leaf, &middle, &other],
    ];
    for chain in chains {
        assert_eq!(verify(chain, &root, NAME), Ok(()));
    }
    assert_eq!(verify(&[&leaf], &middle, NAME), Ok(()));
    assert_eq!(verify(&[&leaf, &middle], &root, ServerName::Ipv4([192, 0, 2, 1])), Ok(()));
}

#[test]
fn chains_of_every_curve_are_trusted() {
    for algorithm in [&PKCS_ED25519, &PKCS_ECDSA_P384_SHA384] {
        let plan = plan();
        let root = KeyPair::generate_for(algorithm).expect("a key");
        let leaf = KeyPair::generate().expect("a key");
        let root_certificate = plan.root.self_signed(&root).expect("a root");
        let by_root = Issuer::from_params(&plan.root, &root);
        let leaf = plan.leaf.signed_by(&leaf, &by_root).expect("a certificate");
        assert_eq!(verify(&[leaf.der()], root_certificate.der(), NAME), Ok(()));
    }
}

#[test]
fn an_issuer_that_is_no_authority_is_refused() {
    for is_ca in [IsCa::ExplicitNoCa, IsCa::NoCa] {
        assert_eq!(
            check(|plan| plan.middle.is_ca = is_ca),
            Err(CertificateError::IssuerNotAuthority)
        );
    }
}

#[test]
fn a_leaf_that_issued_another_leaf_is_refused() {
    // The mistake of two small stacks: any certificate of a public authority signs any other.
    let mut plan = plan();
    plan.middle = plan.leaf.clone();
    plan.middle.distinguished_name = name("innocent");
    let [leaf, middle, root] = sign(&plan);
    assert_eq!(verify(&[&leaf, &middle], &root, NAME), Err(CertificateError::IssuerNotAuthority));
}

#[test]
fn each_broken_rule_is_named() {
    use CertificateError as E;
    type Change = fn(&mut Plan);
    let cases: [(Change, E); 28] = [
        (|plan| plan.leaf.not_after = date_time_ymd(2026, 12, 31), E::Expired),
        (|plan| plan.leaf.not_before = date_time_ymd(2027, 12, 31), E::NotYetValid),
        (|plan| plan.middle.not_after = date_time_ymd(2026, 12, 31), E::Expired),
        (|plan| plan.middle.not_before = date_time_ymd(2027, 12, 31), E::NotYetValid),
        (|plan| plan.leaf.is_ca = IsCa::Ca(BasicConstraints::Unconstrained), E::AuthorityAsLeaf),
        (|plan| plan.leaf.key_usages = vec![KeyUsagePurpose::KeyEncipherment], E::KeyUsage),
        (|plan| plan.middle.key_usages = vec![KeyUsagePurpose::DigitalSignature], E::KeyUsage),
        (
            |plan| plan.leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth],
            E::ExtendedKeyUsage,
        ),
        (
            |plan| plan.leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::Any],
            E::ExtendedKeyUsage,
        ),
        (
            |plan| plan.middle.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth],
            E::ExtendedKeyUsage,
        ),
        (|plan| plan.leaf.subject_alt_names.clear(), E::NameMismatch),
        (
            |plan| {
                // A common name is no name.
                plan.leaf.distinguished_name = name("server.test");
                plan.leaf.subject_alt_names.clear();
            },
            E::NameMismatch,
        ),
        (|plan| constrain(plan, &[dns("other.test")], &[]), E::NameConstraint),
        (|plan| constrain(plan, &[], &[dns("test")]), E::NameConstraint),
        (
            |plan| {
                let net = CidrSubnet::from_v4_prefix([192, 0, 2, 0], 24);
                constrain(plan, &[], &[GeneralSubtree::IpAddress(net)]);
            },
            E::NameConstraint,
        ),
        (
            |plan| {
                let net = CidrSubnet::from_v4_prefix([10, 0, 0, 0], 8);
                constrain(plan, &[GeneralSubtree::IpAddress(net)], &[]);
            },
            E::NameConstraint,
        ),
        (
            |plan| constrain(plan, &[GeneralSubtree::DirectoryName(name("other"))], &[]),
            E::NameConstraint,
        ),
        (
            |plan| {
                let name = "not a name.test".try_into().expect("ASCII");
                plan.leaf.subject_alt_names.push(SanType::DnsName(name));
                constrain(plan, &[dns("test")], &[]);
            },
            E::NameConstraint,
        ),
        (|plan| constrain(plan, &[], &[dns("not a name")]), E::Malformed),
        (
            |plan| {
                let net = CidrSubnet::V4([192, 0, 0, 0], [255, 0, 255, 0]);
                constrain(plan, &[GeneralSubtree::IpAddress(net)], &[]);
            },
            E::Malformed,
        ),
        (
            |plan| plan.leaf.custom_extensions.push(unknown_extension(true)),
            E::UnknownCriticalExtension,
        ),
        (
            |plan| plan.middle.custom_extensions.push(unknown_extension(true)),
            E::UnknownCriticalExtension,
        ),
        (
            |plan| {
                for _ in 0..2 {
                    plan.leaf.custom_extensions.push(unknown_extension(false));
                }
            },
            E::DuplicateExtension,
        ),
        (
            |plan| {
                let mut lone =
                    CustomExtension::from_oid_content(&[2, 5, 29, 15], vec![3, 2, 0, 0x80]);
                lone.set_criticality(true);
                plan.leaf.key_usages.clear();
                plan.leaf.custom_extensions.push(lone);
            },
            E::Malformed,
        ),
        (|plan| plan.leaf.key_usages.push(KeyUsagePurpose::KeyCertSign), E::KeyUsage),
        (
            |plan| plan.leaf.name_constraints = Some(subtrees(&[dns("test")], &[])),
            E::NameConstraint,
        ),
        (
            |plan| {
                // Policy constraints, which ask for policies.
                let value = vec![0x30, 3, 0x80, 1, 0];
                let policies = CustomExtension::from_oid_content(&[2, 5, 29, 36], value);
                plan.middle.custom_extensions.push(policies);
            },
            E::UnknownCriticalExtension,
        ),
        (|plan| plan.leaf.serial_number = Some(vec![1; 21].into()), E::Malformed),
    ];
    for (index, (change, error)) in cases.into_iter().enumerate() {
        assert_eq!(check(change), Err(error), "case {index}");
    }
}

fn dns(base: &str) -> GeneralSubtree {
    GeneralSubtree::DnsName(base.into())
}

fn constrain(plan: &mut Plan, permitted: &[GeneralSubtree], excluded: &[GeneralSubtree]) {
    plan.middle.name_constraints = Some(subtrees(permitted, excluded));
}

fn subtrees(permitted: &[GeneralSubtree], excluded: &[GeneralSubtree]) -> NameConstraints {
    NameConstraints { permitted_subtrees: permitted.to_vec(), excluded_subtrees: excluded.to_vec() }
}

fn unknown_extension(is_critical: bool) -> CustomExtension {
    let mut extension =
        CustomExtension::from_oid_content(&[1, 3, 6, 1, 4, 1, 99999, 1], vec![5, 0]);
    extension.set_criticality(is_critical);
    extension
}

#[test]
fn what_constraints_and_unknown_extensions_allow_is_trusted() {
    let cases: [fn(&mut Plan); 6] = [
        |plan| constrain(plan, &[dns("test")], &[]),
        |plan| constrain(plan, &[dns("server.test")], &[dns("other.test")]),
        |plan| {
            let net = CidrSubnet::from_v4_prefix([192, 0, 2, 0], 24);
            constrain(plan, &[GeneralSubtree::IpAddress(net)], &[]);
        },
        |plan| constrain(plan, &[GeneralSubtree::DirectoryName(name("leaf"))], &[]),
        |plan| plan.leaf.custom_extensions.push(unknown_extension(false)),
        |plan| plan.leaf.key_usages.clear(),
    ];
    for (index, change) in cases.into_iter().enumerate() {
        assert_eq!(check(change), Ok(()), "case {index}");
    }
}

#[test]
fn names_are_within_constraints_as_rfc_5280_and_its_practice_have_it() {
    type Names = fn(&str) -> SanType;
    let dns_name: Names = |text| SanType::DnsName(text.try_into().expect("ASCII"));
    let mailbox: Names = |text| SanType::Rfc822Name(text.try_into().expect("ASCII"));
    let base_of_dns: fn(&str) -> GeneralSubtree = dns;
    let base_of_mailbox: fn(&str) -> GeneralSubtree =
        |base| GeneralSubtree::Rfc822Name(base.into());
    for (kind, base_kind, base, name, is_within) in [
        (dns_name, base_of_dns, "device.test", "device.test", true),
        (dns_name, base_of_dns, "device.test", "www.DEVICE.test", true),
        (dns_name, base_of_dns, "device.test", "mydevice.test", false),
        (dns_name, base_of_dns, "device.test", "*.device.test", true),
        (dns_name, base_of_dns, ".device.test", "device.test", false),
        (dns_name, base_of_dns, ".device.test", "www.device.test", true),
        (dns_name, base_of_dns, ".device.test", "a.b.device.test", true),
        (dns_name, base_of_dns, ".device.test", "*.device.test", true),
        (dns_name, base_of_dns, ".device.test", "mydevice.test", false),
        (dns_name, base_of_dns, "", "device.test", true),
        (mailbox, base_of_mailbox, "device.test", "me@device.test", true),
        (mailbox, base_of_mailbox, "device.test", "me@DEVICE.test", true),
        (mailbox, base_of_mailbox, "device.test", "me@www.device.test", false),
        (mailbox, base_of_mailbox, ".device.test", "me@www.device.test", true),
        (mailbox, base_of_mailbox, ".device.test", "me@device.test", false),
        (mailbox, base_of_mailbox, "me@device.test", "me@device.test", true),
        (mailbox, base_of_mailbox, "me@device.test", "ME@device.test", false),
        (mailbox, base_of_mailbox, "*@device.test", "me@device.test", false),
        (mailbox, base_of_mailbox, "device.test", "me@you@device.test", false),
    ] {
        let mut plan = plan();
        let address = SanType::IpAddress([192, 0, 2, 1].into());
        plan.leaf.subject_alt_names = vec![kind(name), address];
        constrain(&mut plan, &[base_kind(base)], &[]);
        let [leaf, middle, root] = sign(&plan);
        let expected = if is_within { Ok(()) } else { Err(CertificateError::NameConstraint) };
        let verified = verify(&[&leaf, &middle], &root, ServerName::Ipv4([192, 0, 2, 1]));
        assert_eq!(verified, expected, "{name} in `{base}`");
    }
}

#[test]
fn a_path_longer_than_an_authority_allows_is_refused() {
    // root ← first ← second ← leaf, where `first` allows as many authorities below it as `below`.
    for (below, outcome) in [(0, Err(CertificateError::PathTooLong)), (1, Ok(()))] {
        let plan = plan();
        let [root, first, second, leaf] = [(); 4].map(|()| KeyPair::generate().expect("a key"));
        let mut first_params = authority("first");
        first_params.is_ca = IsCa::Ca(BasicConstraints::Constrained(below));
        let second_params = authority("second");
        let by_root = Issuer::from_params(&plan.root, &root);
        let by_first = Issuer::from_params(&first_params, &first);
        let by_second = Issuer::from_params(&second_params, &second);
        let root_certificate = plan.root.self_signed(&root).expect("a root");
        let chain = [
            plan.leaf.signed_by(&leaf, &by_second).expect("a certificate"),
            second_params.signed_by(&second, &by_first).expect("a certificate"),
            first_params.signed_by(&first, &by_root).expect("a certificate"),
        ];
        let chain: Vec<&[u8]> = chain.iter().map(|it| &**it.der()).collect();
        assert_eq!(verify(&chain, root_certificate.der(), NAME), outcome);
    }
}

#[test]
fn a_chain_that_ends_at_a_stranger_is_refused() {
    let [leaf, middle, _] = sign(&plan());
    let mut stranger = plan();
    stranger.root.distinguished_name = name("stranger");
    let [_, _, root] = sign(&stranger);
    assert_eq!(verify(&[&leaf, &middle], &root, NAME), Err(CertificateError::UnknownIssuer));
    assert_eq!(verify(&[&leaf], &root, NAME), Err(CertificateError::UnknownIssuer));
    assert_eq!(verify(&[], &root, NAME), Err(CertificateError::Missing));
}

#[test]
fn a_root_is_trusted_whatever_it_says_of_itself() {
    type Change = fn(&mut Plan);
    let cases: [Change; 6] = [
        |plan| plan.root.not_after = date_time_ymd(2026, 12, 31),
        |plan| plan.root.is_ca = IsCa::NoCa,
        |plan| plan.root.key_usages = vec![KeyUsagePurpose::DigitalSignature],
        |plan| plan.root.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth],
        |plan| plan.root.custom_extensions.push(unknown_extension(true)),
        |plan| {
            // Key usage with a zero byte at its end, which is no DER.
            let usage = CustomExtension::from_oid_content(&[2, 5, 29, 15], vec![3, 3, 7, 6, 0]);
            plan.root.key_usages.clear();
            plan.root.custom_extensions.push(usage);
        },
    ];
    for (index, change) in cases.into_iter().enumerate() {
        assert_eq!(check(change), Ok(()), "case {index}");
    }
}

#[test]
fn a_root_is_trusted_whatever_signed_it_and_no_other_certificate_is() {
    const ECDSA_WITH_SHA_256: [u8; 8] = [0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2];
    // ecdsa-with-SHA224 (RFC 5758 §3.2), which isn't supported, in both of its places.
    let by_sha_224 = |der: &[u8]| {
        let mut der = der.to_vec();
        let places = 0..der.len() - ECDSA_WITH_SHA_256.len();
        let places: Vec<_> =
            places.filter(|at| der[*at..].starts_with(&ECDSA_WITH_SHA_256)).collect();
        assert_eq!(places.len(), 2);
        places.into_iter().for_each(|at| der[at + 7] = 1);
        der
    };
    let [leaf, middle, root] = sign(&plan());
    assert_eq!(verify(&[&leaf, &middle], &by_sha_224(&root), NAME), Ok(()));
    let refused = Err(CertificateError::UnsupportedSignatureAlgorithm);
    assert_eq!(verify(&[&leaf, &by_sha_224(&middle)], &root, NAME), refused);
    assert_eq!(verify(&[&by_sha_224(&leaf), &middle], &root, NAME), refused);
}

/// The header's and the content's length of the value at the front.
fn lengths(der: &[u8]) -> (usize, usize) {
    match der[1] {
        0x82 => (4, usize::from(u16::from_be_bytes([der[2], der[3]]))),
        0x81 => (3, usize::from(der[2])),
        short => (2, usize::from(short)),
    }
}

/// The values in a sequence.
fn parts(der: &[u8]) -> Vec<&[u8]> {
    let (header, content) = lengths(der);
    let mut rest = &der[header..header + content];
    let mut parts = Vec::new();
    while !rest.is_empty() {
        let (header, content) = lengths(rest);
        let (part, after) = rest.split_at(header + content);
        parts.push(part);
        rest = after;
    }
    parts
}

/// A sequence of `parts`.
fn sequence(parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let header = match content.len() {
        length @ ..0x80 => vec![0x30, length as u8],
        length @ ..0x100 => vec![0x30, 0x81, length as u8],
        length => [&[0x30, 0x82], &(length as u16).to_be_bytes()[..]].concat(),
    };
    [header, content].concat()
}

/// `der` as a certificate of version 1: without its version, and without extensions.
fn as_version_1(der: &[u8]) -> Vec<u8> {
    let outer = parts(der);
    let mut fields = parts(outer[0]);
    fields.retain(|it| ![0xa0, 0xa3].contains(&it[0]));
    sequence(&[&sequence(&fields), outer[1], outer[2]])
}

#[test]
fn a_root_of_version_1_is_trusted_and_no_other_certificate_is() {
    let [leaf, middle, root] = sign(&plan());
    assert_eq!(verify(&[&leaf, &middle], &as_version_1(&root), NAME), Ok(()));
    let refused = Err(CertificateError::UnsupportedVersion);
    assert_eq!(verify(&[&leaf, &as_version_1(&middle)], &root, NAME), refused);
    assert_eq!(verify(&[&as_version_1(&leaf), &middle], &root, NAME), refused);
}

#[test]
fn what_is_no_certificate_or_has_no_usable_key_is_no_anchor() {
    let [_, _, root] = sign(&plan());
    // A key on a curve that isn't supported: secp256k1 in the place of P-256.
    let curve = [0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
    let at = root.windows(8).position(|it| it == curve).expect("a curve");
    let mut strange = root.clone();
    strange[at + 7] = 6;
    assert_eq!(Anchor::from_certificate(&strange).err(), Some(CertificateError::UnsupportedKey));
    for length in 0..root.len() {
        assert!(Anchor::from_certificate(&root[..length]).is_err(), "{length} bytes");
    }
}

#[test]
fn constraints_of_a_root_on_names_hold() {
    let constrained = |permitted: &[GeneralSubtree], excluded: &[GeneralSubtree]| {
        check(|plan| plan.root.name_constraints = Some(subtrees(permitted, excluded)))
    };
    let net = |base| GeneralSubtree::IpAddress(CidrSubnet::from_v4_prefix(base, 24));
    assert_eq!(constrained(&[dns("test"), net([192, 0, 2, 0])], &[]), Ok(()));
    for (permitted, excluded) in [
        (&[dns("corp.example")][..], &[][..]),
        (&[net([10, 0, 0, 0])], &[]),
        (&[], &[dns("server.test")]),
        // The names of subjects count as well.
        (&[GeneralSubtree::DirectoryName(name("leaf"))], &[]),
    ] {
        let refused = Err(CertificateError::NameConstraint);
        assert_eq!(constrained(permitted, excluded), refused, "{permitted:?} {excluded:?}");
    }
    let mut plan = plan();
    let mut empty = CustomExtension::from_oid_content(&[2, 5, 29, 30], vec![0x30, 0]);
    empty.set_criticality(true);
    plan.root.custom_extensions.push(empty);
    let [_, _, root] = sign(&plan);
    assert_eq!(Anchor::from_certificate(&root).err(), Some(CertificateError::Malformed));
}

#[test]
fn an_anchor_with_the_right_name_and_another_key_is_refused() {
    let [leaf, middle, _] = sign(&plan());
    let [_, other_middle, other_root] = sign(&plan());
    let verified = verify(&[&leaf, &middle], &other_root, NAME);
    assert_eq!(verified, Err(CertificateError::BadSignature));
    let verified = verify(&[&leaf, &other_middle], &other_root, NAME);
    assert_eq!(verified, Err(CertificateError::BadSignature));
}

#[test]
fn more_certificates_than_any_chain_needs_are_refused() {
    let [leaf, middle, root] = sign(&plan());
    let chain = [&[&leaf[..]; 63][..], &[&middle]].concat();
    assert_eq!(verify(&chain, &root, NAME), Ok(()));
    let chain = [&[&leaf[..]; 64][..], &[&middle]].concat();
    assert_eq!(verify(&chain, &root, NAME), Err(CertificateError::TooManyCertificates));
}

#[test]
fn without_the_date_no_chain_is_trusted() {
    let [leaf, middle, root] = sign(&plan());
    let anchors = [Anchor::from_certificate(&root).expect("an anchor")];
    let verified = verify_chain(
        &mut security(),
        &[&leaf, &middle],
        &anchors,
        Purpose::Server,
        Some(NAME),
        None,
    );
    assert_eq!(verified, Err(CertificateError::TimeUnknown));
}

#[test]
fn a_server_is_no_client() {
    let [leaf, middle, root] = sign(&plan());
    let anchors = [Anchor::from_certificate(&root).expect("an anchor")];
    let verified = verify_chain(
        &mut security(),
        &[&leaf, &middle],
        &anchors,
        Purpose::Client,
        None,
        Some(DATE),
    );
    assert_eq!(verified, Err(CertificateError::ExtendedKeyUsage));
}

#[test]
fn no_bit_of_a_leaf_can_be_changed() {
    let [leaf, middle, root] = sign(&plan());
    // Every third bit, so that the test stays quick; each place of every kind is among them.
    for bit in (0..8 * leaf.len()).step_by(3) {
        let mut changed = leaf.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert!(verify(&[&changed, &middle], &root, NAME).is_err(), "bit {bit}");
    }
}

#[test]
fn no_end_of_a_certificate_can_be_cut_or_added_to() {
    let [leaf, _, _] = sign(&plan());
    assert_eq!(Certificate::parse(&leaf).expect("a certificate").common_name(), Some("leaf"));
    for length in 0..leaf.len() {
        assert!(Certificate::parse(&leaf[..length]).is_err(), "{length} bytes");
    }
    let longer = [&leaf[..], &[0]].concat();
    assert_eq!(Certificate::parse(&longer).err(), Some(CertificateError::Malformed));
}
