//! C2SP's x509-limbo: certificate chains with the verdict that each must get, judged by `tenure_tls`.
//!
//! A case whose verdict differs has failed.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use serde::Deserialize;
use tenure_board_linux::LinuxEntropy;
use tenure_crypto::Software;
use tenure_tls::x509::{Anchor, CertificateError, Purpose, ServerName, UnixTime, verify_chain};

use super::judged::{Outcome, Record};

/// With the suite that docs/suites.md names.
const RECORD: Record = Record { named: NAMED, passed_min: 9_731 };

const NAMED: &[(&str, &[&str])] = &[
    (
        "there are no revocation lists",
        &[
            "crl::revoked-certificate-with-crl",
            "crl::crlnumber-missing",
            "crl::crlnumber-critical",
            "crl::issuer-missing-crlsign",
        ],
    ),
    (
        "an anchor is a name, a key and name constraints: nothing else in a root is judged",
        &[
            "rfc5280::aki::critical-aki",
            "rfc5280::aki::cross-signed-root-missing-aki",
            "rfc5280::ski::critical-ski",
            "rfc5280::ski::root-missing-ski",
            "rfc5280::validity::expired-root",
            "rfc5280::unknown-critical-extension-root",
            "rfc5280::root-missing-basic-constraints",
            "rfc5280::root-non-critical-basic-constraints",
            "rfc5280::root-inconsistent-ca-extensions",
            "webpki::aki::root-with-aki-missing-keyidentifier",
            "webpki::aki::root-with-aki-authoritycertissuer",
            "webpki::aki::root-with-aki-authoritycertserialnumber",
            "webpki::aki::root-with-aki-all-fields",
            "webpki::aki::root-with-aki-ski-mismatch",
            "webpki::eku::root-has-eku",
        ],
    ),
    (
        "common names decide nothing, so what they say is no reason to refuse",
        &[
            "webpki::cn::ipv4-hex-mismatch",
            "webpki::cn::ipv4-leading-zeros-mismatch",
            "webpki::cn::ipv6-uppercase-mismatch",
            "webpki::cn::ipv6-uncompressed-mismatch",
            "webpki::cn::ipv6-non-rfc5952-mismatch",
            "webpki::cn::punycode-not-in-san",
            "webpki::cn::utf8-vs-punycode-mismatch",
            "webpki::cn::not-in-san",
            "webpki::cn::case-mismatch",
        ],
    ),
    (
        "identifiers of keys decide nothing: a path is found by names and signatures",
        &[
            "rfc5280::aki::leaf-missing-aki",
            "rfc5280::aki::intermediate-missing-aki",
            "rfc5280::ski::intermediate-missing-ski",
        ],
    ),
    (
        "a rule for authorities and not for verifiers, whose breach lets nobody in",
        &[
            "rfc5280::san::noncritical-with-empty-subject",
            "rfc5280::serial::zero",
            "webpki::eku::ee-anyeku",
            "webpki::eku::ee-critical-eku",
            "webpki::eku::ee-without-eku",
            "webpki::san::san-critical-with-nonempty-subject",
            "webpki::malformed-aia",
            "webpki::forbidden-rsa-not-divisible-by-8-in-root",
            "webpki::forbidden-rsa-key-not-divisible-by-8-in-leaf",
        ],
    ),
    ("underscores in names are taken, as others do", &["rfc5280::san::underscore-dns"]),
    (
        "name constraints hold whether they are critical or not, and may begin with a dot, as in Go and webpki",
        &[
            "rfc5280::nc::permitted-dns-match-noncritical",
            "rfc5280::nc::invalid-dnsname-leading-period",
        ],
    ),
    (
        "there is no list of public suffixes: a wildcard needs a domain of two labels below it",
        &[
            "webpki::san::public-suffix-multi-label-wildcard-san",
            "webpki::san::public-suffix-private-namespace-wildcard-san",
        ],
    ),
    (
        "the longest path is a constant, and not set for a case",
        &["pathlen::max-chain-depth-0-exhausted", "pathlen::max-chain-depth-1-exhausted"],
    ),
    (
        "an authority is no server or client, as in webpki::ca-as-leaf, which expects the contrary",
        &["rfc5280::ca-as-leaf", "pathlen::validation-ignores-pathlen-in-leaf"],
    ),
];

#[derive(Deserialize)]
struct Suite {
    testcases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    id: String,
    validation_kind: String,
    trusted_certs: Vec<String>,
    untrusted_intermediates: Vec<String>,
    peer_certificate: String,
    validation_time: Option<String>,
    expected_result: String,
    expected_peer_name: Option<PeerName>,
}

#[derive(Deserialize)]
struct PeerName {
    kind: String,
    value: String,
}

pub(super) fn run(from: &Path, verbose: bool) -> Result<()> {
    let mut outcomes = BTreeMap::new();
    for case in read(from)?.testcases {
        let judged = case.judge().with_context(|| case.id.clone())?;
        let outcome = match (judged, case.is_good()?) {
            (Ok(()), true) | (Err(_), false) => Outcome::Passed,
            (Ok(()), false) => Outcome::Failed("accepted".to_owned()),
            (Err(error), true) => Outcome::Failed(format!("refused, as {error}")),
        };
        outcomes.insert(case.id, outcome);
    }
    RECORD.judge(&outcomes, verbose)
}

/// The suite in `path`, which `xz` opens if its name says so.
fn read(path: &Path) -> Result<Suite> {
    let failed = || format!("can't read {}", path.display());
    let bytes = if path.extension().is_some_and(|it| it == "xz") {
        let output = Command::new("xz").args(["-dc", "--"]).arg(path).output();
        let output = output.context("xz isn't installed").with_context(failed)?;
        if !output.status.success() {
            bail!("{}: {}", failed(), String::from_utf8_lossy(&output.stderr).trim());
        }
        output.stdout
    } else {
        std::fs::read(path).with_context(failed)?
    };
    serde_json::from_slice(&bytes).with_context(failed)
}

impl Case {
    fn is_good(&self) -> Result<bool> {
        match &*self.expected_result {
            "SUCCESS" => Ok(true),
            "FAILURE" => Ok(false),
            other => bail!("{}: an unknown result, {other}", self.id),
        }
    }

    /// The verdict on the chain; an anchor that can't be one vouches for nothing.
    fn judge(&self) -> Result<Result<(), CertificateError>> {
        let trusted = ders(&self.trusted_certs)?;
        let peer = std::slice::from_ref(&self.peer_certificate);
        let chain = [ders(peer)?, ders(&self.untrusted_intermediates)?].concat();
        let purpose = match &*self.validation_kind {
            "SERVER" => Purpose::Server,
            "CLIENT" => Purpose::Client,
            other => bail!("an unknown kind of validation, {other}"),
        };
        let name = self.expected_peer_name.as_ref().map(PeerName::name).transpose()?;
        let anchors: Result<Vec<_>, _> =
            trusted.iter().map(|der| Anchor::from_certificate(der)).collect();
        let anchors = match anchors {
            Ok(anchors) => anchors,
            Err(error) => return Ok(Err(error)),
        };
        let chain: Vec<&[u8]> = chain.iter().map(|der| &**der).collect();
        let mut security = Software::new(LinuxEntropy);
        let date = Some(self.date()?);
        Ok(verify_chain(&mut security, &chain, &anchors, purpose, name, date))
    }

    /// The time of validation; today, if the case names none.
    fn date(&self) -> Result<UnixTime> {
        let time = match &self.validation_time {
            Some(text) => humantime::parse_rfc3339(&text.replace("+00:00", "Z"))?,
            None => SystemTime::now(),
        };
        Ok(UnixTime(time.duration_since(UNIX_EPOCH)?.as_secs() as i64))
    }
}

impl PeerName {
    fn name(&self) -> Result<ServerName<'_>> {
        Ok(match &*self.kind {
            "DNS" => ServerName::Dns(&self.value),
            "IP" => match self.value.parse()? {
                std::net::IpAddr::V4(address) => ServerName::Ipv4(address.octets()),
                std::net::IpAddr::V6(address) => ServerName::Ipv6(address.octets()),
            },
            other => bail!("an unknown kind of name, {other}"),
        })
    }
}

/// The certificates of `pems`, each of one.
fn ders(pems: &[String]) -> Result<Vec<CertificateDer<'static>>> {
    let ders: Result<Vec<_>, _> =
        pems.iter().map(|pem| CertificateDer::from_pem_slice(pem.as_bytes())).collect();
    ders.map_err(|error| anyhow::anyhow!("damaged PEM: {error:?}"))
}
