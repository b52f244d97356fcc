//! Paths that are found in many certificates: in any order, beside others of one name, in rings, and within a bound on
//! work.

mod common;

use common::pair::{LARGE, client_config, server_config, with_pair};
use common::security;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, GeneralSubtree, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, NameConstraints, date_time_ymd,
};
use tenure_crypto::PrivateKey;
use tenure_tls::x509::{Anchor, CertificateError, Purpose, ServerName, UnixTime, verify_chain};
use tenure_tls::{Error, Identity};

/// 2027-01-15.
const DATE: UnixTime = UnixTime(1_800_000_000);
const NAME: ServerName<'_> = ServerName::Dns("server.test");

/// An authority by its name and key, which may have several certificates.
struct Authority {
    params: CertificateParams,
    key: KeyPair,
}

fn authority(common: &str) -> Authority {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    Authority { params, key: KeyPair::generate().expect("a key") }
}

impl Authority {
    fn by(&self, issuer: &Authority) -> Vec<u8> {
        sign(&self.params, &self.key, issuer)
    }

    /// Its certificate by `issuer`, `change`d.
    fn changed_by(
        &self,
        issuer: &Authority,
        change: impl FnOnce(&mut CertificateParams),
    ) -> Vec<u8> {
        let mut params = self.params.clone();
        change(&mut params);
        sign(&params, &self.key, issuer)
    }
}

fn sign(params: &CertificateParams, key: &KeyPair, issuer: &Authority) -> Vec<u8> {
    let by = Issuer::from_params(&issuer.params, &issuer.key);
    params.signed_by(key, &by).expect("a certificate").der().to_vec()
}

/// A leaf for [`NAME`] by `issuer`, and its key.
fn leaf_by(issuer: &Authority) -> (Vec<u8>, KeyPair) {
    let mut params = CertificateParams::new(vec!["server.test".into()]).expect("a name");
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "leaf");
    let key = KeyPair::generate().expect("a key");
    (sign(&params, &key, issuer), key)
}

fn verify(chain: &[&[u8]], roots: &[&[u8]]) -> Result<(), CertificateError> {
    let anchors: Vec<_> =
        roots.iter().map(|root| Anchor::from_certificate(root).expect("an anchor")).collect();
    verify_chain(&mut security(), chain, &anchors, Purpose::Server, Some(NAME), Some(DATE))
}

#[test]
fn a_chain_in_any_order_is_trusted() {
    let [root, first, second, stranger] = ["root", "first", "second", "stranger"].map(authority);
    let (leaf, _) = leaf_by(&second);
    let root_der = root.by(&root);
    let others = [second.by(&first), first.by(&root), root_der.clone(), stranger.by(&stranger)];
    let mut orders = vec![vec![]];
    for _ in 0..others.len() {
        let longer = orders.iter().flat_map(|order| {
            let rest = (0..others.len()).filter(|it| !order.contains(it));
            rest.map(|it| [&order[..], &[it]].concat()).collect::<Vec<_>>()
        });
        orders = longer.collect();
    }
    assert_eq!(orders.len(), 24);
    for order in orders {
        let rest = order.iter().map(|it| &others[*it][..]);
        let chain: Vec<&[u8]> = std::iter::once(&leaf[..]).chain(rest).collect();
        assert_eq!(verify(&chain, &[&root_der]), Ok(()), "{order:?}");
    }
}

#[test]
fn of_several_issuers_with_one_name_each_is_tried() {
    let [root, middle, stranger] = ["root", "middle", "stranger"].map(authority);
    let (leaf, _) = leaf_by(&middle);
    let root_der = root.by(&root);
    let good = middle.by(&root);
    let another_key = authority("middle");
    let bad = [
        middle.changed_by(&root, |it| it.not_after = date_time_ymd(2026, 12, 31)),
        middle.changed_by(&root, |it| it.is_ca = IsCa::ExplicitNoCa),
        middle.changed_by(&root, |it| it.key_usages = vec![KeyUsagePurpose::CrlSign]),
        middle.changed_by(&root, |it| {
            it.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
        }),
        middle.changed_by(&root, |it| {
            it.name_constraints = Some(NameConstraints {
                permitted_subtrees: vec![GeneralSubtree::DnsName("other.test".into())],
                excluded_subtrees: vec![],
            });
        }),
        middle.by(&stranger),
        another_key.by(&root),
        // Certificates that can't be read at all.
        vec![0x30, 1, 0],
        good[..good.len() - 1].to_vec(),
    ];
    for (index, bad) in bad.iter().enumerate() {
        assert!(verify(&[&leaf, bad], &[&root_der]).is_err(), "{index}");
        assert_eq!(verify(&[&leaf, bad, &good], &[&root_der]), Ok(()), "{index}");
        assert_eq!(verify(&[&leaf, &good, bad], &[&root_der]), Ok(()), "{index}");
    }
    let all: Vec<&[u8]> = [&leaf].into_iter().chain(&bad).chain([&good]).map(|it| &**it).collect();
    assert_eq!(verify(&all, &[&root_der]), Ok(()));
}

#[test]
fn an_expired_cross_signature_beside_a_trusted_root_does_no_harm() {
    let [old, root, middle] = ["old root", "root", "middle"].map(authority);
    let (leaf, _) = leaf_by(&middle);
    let cross = root.changed_by(&old, |it| it.not_after = date_time_ymd(2026, 12, 31));
    let (old_der, root_der) = (old.by(&old), root.by(&root));
    let chain = [&leaf[..], &middle.by(&root), &cross];
    assert_eq!(verify(&chain, &[&old_der, &root_der]), Ok(()));
    assert_eq!(verify(&chain, &[&old_der]), Err(CertificateError::Expired));
    // A valid one leads to the old root.
    let chain = [&leaf[..], &middle.by(&root), &cross, &root.by(&old)];
    assert_eq!(verify(&chain, &[&old_der]), Ok(()));
}

#[test]
fn authorities_that_signed_each_other_end_the_search() {
    let [root, first, second, stranger] = ["root", "first", "second", "stranger"].map(authority);
    let (leaf, _) = leaf_by(&first);
    let (root_der, stranger_der) = (root.by(&root), stranger.by(&stranger));
    let ring = [&leaf[..], &first.by(&second), &second.by(&first), &first.by(&first)];
    assert_eq!(verify(&ring, &[&stranger_der]), Err(CertificateError::UnknownIssuer));
    let way_out = second.by(&root);
    let with_a_way_out = [&ring[..], &[&way_out]].concat();
    assert_eq!(verify(&with_a_way_out, &[&root_der]), Ok(()));
}

#[test]
fn anchors_of_one_name_are_each_tried() {
    let (root, namesake) = (authority("root"), authority("root"));
    let (leaf, _) = leaf_by(&root);
    let (root_der, namesake_der) = (root.by(&root), namesake.by(&namesake));
    assert_eq!(verify(&[&leaf], &[&namesake_der, &root_der]), Ok(()));
    assert_eq!(verify(&[&leaf], &[&namesake_der]), Err(CertificateError::BadSignature));
}

#[test]
fn a_hostile_tangle_costs_a_bounded_number_of_steps() {
    // Each of seven names has nine keys, and each key is certified by one of the next name: nine to the power
    // of seven paths by name, none of which ends anywhere.
    let stranger = authority("stranger");
    let stranger_der = stranger.by(&stranger);
    let level = |number: usize| authority(&format!("level {number}"));
    let levels: Vec<Vec<Authority>> =
        (0..7).map(|number| (0..9).map(|_| level(number)).collect()).collect();
    let (leaf, _) = leaf_by(&levels[0][0]);
    let top = authority("top");
    let mut chain = vec![leaf];
    for (number, authorities) in levels.iter().enumerate() {
        let issuer = levels.get(number + 1).map_or(&top, |next| &next[0]);
        chain.extend(authorities.iter().map(|it| it.by(issuer)));
    }
    let chain: Vec<&[u8]> = chain.iter().map(|it| &**it).collect();
    assert_eq!(verify(&chain, &[&stranger_der]), Err(CertificateError::TooMuchWork));
}

#[test]
fn a_hostile_tangle_costs_a_bounded_number_of_signatures() {
    // The anchor signed all of 63 namesakes of the leaf's issuer, which have other keys.
    let root = authority("root");
    let root_der = root.by(&root);
    let (leaf, _) = leaf_by(&authority("middle"));
    let middles: Vec<_> = (0..63).map(|_| authority("middle").by(&root)).collect();
    let rest = middles.iter().map(|it| &**it);
    let chain: Vec<&[u8]> = std::iter::once(&leaf[..]).chain(rest).collect();
    assert_eq!(verify(&chain, &[&root_der]), Err(CertificateError::TooMuchWork));
    assert_eq!(verify(&chain[..20], &[&root_der]), Err(CertificateError::BadSignature));
}

#[test]
fn names_times_constraints_are_compared_within_a_bound() {
    let (root, middle) = (authority("root"), authority("middle"));
    let root_der = root.by(&root);
    let mut params = CertificateParams::new(vec!["server.test".into(); 600]).expect("names");
    params.distinguished_name = DistinguishedName::new();
    let leaf = sign(&params, &KeyPair::generate().expect("a key"), &middle);
    let middle_der = middle.changed_by(&root, |it| {
        let base = |number| GeneralSubtree::DnsName(format!("{number}.test"));
        it.name_constraints = Some(NameConstraints {
            permitted_subtrees: vec![],
            excluded_subtrees: (0..600).map(base).collect(),
        });
    });
    let verified = verify(&[&leaf, &middle_der], &[&root_der]);
    assert_eq!(verified, Err(CertificateError::TooMuchWork));
}

/// The end of a handshake whose server shows `chain`, and the place of the refused certificate.
fn connect(chain: &[&[u8]], key: &KeyPair, root: &[u8]) -> (Result<(), Error>, usize) {
    let pkcs8 = key.serialize_der();
    let scalar: [u8; 32] = pkcs8[36..68].try_into().expect("32 bytes");
    let identities = [Identity { chain, key: PrivateKey::P256(&scalar) }];
    let anchors = [Anchor::from_certificate(root).expect("an anchor")];
    let mut ended = None;
    with_pair(&client_config(&anchors), &server_config(&identities), LARGE, |pair| {
        let (client, _) = pair.run();
        let result = client.map(|_| assert!(pair.client.is_connected()));
        ended = Some((result, pair.client.refused_certificate()));
    });
    ended.expect("the pair ran")
}

#[test]
fn server_that_sends_its_chain_in_disorder_is_connected_to() {
    let [root, first, second, stranger] = ["root", "first", "second", "stranger"].map(authority);
    let (leaf, key) = leaf_by(&second);
    let root_der = root.by(&root);
    let expired = second.changed_by(&first, |it| it.not_after = date_time_ymd(2026, 12, 31));
    let chain = [
        &leaf[..],
        &root_der,
        &expired,
        &stranger.by(&stranger),
        &first.by(&root),
        &second.by(&first),
    ];
    assert_eq!(connect(&chain, &key, &root_der), (Ok(()), 2));
    // Without the good one, the refusal names the bad one by its place.
    let (ended, at) = connect(&chain[..5], &key, &root_der);
    assert_eq!((ended, at), (Err(CertificateError::Expired.into()), 2));
}

#[test]
fn certificate_that_can_not_be_read_is_passed_over_and_named_if_nothing_else_helps() {
    let [root, middle] = ["root", "middle"].map(authority);
    let (leaf, key) = leaf_by(&middle);
    let (root_der, good) = (root.by(&root), middle.by(&root));
    let damaged = [0x30, 1, 0];
    assert_eq!(connect(&[&leaf, &damaged, &good], &key, &root_der).0, Ok(()));
    let (ended, at) = connect(&[&leaf, &root_der, &damaged], &key, &root_der);
    assert_eq!((ended, at), (Err(CertificateError::Malformed.into()), 2));
    let (ended, at) = connect(&[&leaf, &good], &key, &middle.by(&middle));
    assert_eq!((ended, at), (Ok(()), 0));
}
