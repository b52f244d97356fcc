//! The report on a connection: version, suite, group, certificates, timing.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use serde_json::{Value, json};
use tenure_crypto::{Group, HashAlgorithm, PublicKeyRef, SignatureAlgorithm};
use tenure_tls::x509::{AlternativeName, Certificate, UnixTime, parse_public_key};
use tenure_tls::{Suite, scheme_name};

use crate::terminal::output::hex;

/// The facts of a connection that both ends know.
pub(super) struct Facts {
    pub(super) suite: Option<Suite>,
    pub(super) group: Option<Group>,
    pub(super) signature: Option<SignatureAlgorithm>,
    pub(super) protocol: Option<String>,
    pub(super) is_resumed: bool,
}

impl Facts {
    /// The facts in one line, as a server's log wants them.
    pub(super) fn line(&self) -> String {
        let mut words = vec!["TLS 1.3"];
        words.extend(self.suite.map(Suite::name));
        words.extend(self.group.map(Group::name));
        words.extend(self.signature.and_then(scheme_name));
        words.extend(self.protocol.as_deref());
        if self.is_resumed {
            words.push("resumed");
        }
        words.join(", ")
    }

    pub(super) fn rows(&self) -> Vec<(&'static str, String)> {
        let mut rows = vec![("version", "TLS 1.3".to_owned())];
        let mut add = |name, value: Option<&str>| {
            rows.extend(value.map(|value| (name, value.to_owned())));
        };
        add("suite", self.suite.map(Suite::name));
        add("group", self.group.map(Group::name));
        add("signature", self.signature.and_then(scheme_name));
        add("protocol", self.protocol.as_deref());
        add("resumed", Some(if self.is_resumed { "yes" } else { "no" }));
        rows
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "version": "TLS 1.3",
            "suite": self.suite.map(Suite::name),
            "group": self.group.map(Group::name),
            "signature": self.signature.and_then(scheme_name),
            "protocol": self.protocol,
            "resumed": self.is_resumed,
        })
    }
}

/// One certificate of the peer, or its key alone.
pub(super) struct Shown {
    subject: String,
    issuer: Option<String>,
    names: Vec<String>,
    valid: Option<(String, String)>,
    key: &'static str,
    /// SHA-256 of the `SubjectPublicKeyInfo`.
    key_digest: String,
}

impl Shown {
    /// The facts worth knowing of `der`, as far as it can be read.
    pub(super) fn new(der: &[u8]) -> Self {
        let unreadable = |key_info: &[u8], subject: &str| Self {
            subject: subject.to_owned(),
            issuer: None,
            names: Vec::new(),
            valid: None,
            key: parse_public_key(key_info).map_or("unknown", |key| key_name(&key)),
            key_digest: digest(key_info),
        };
        if parse_public_key(der).is_ok() {
            return unreadable(der, "a key alone");
        }
        let Ok(certificate) = Certificate::parse(der) else {
            return unreadable(der, "not readable");
        };
        let unnamed = || "no common name".to_owned();
        Self {
            subject: certificate.common_name().map_or_else(unnamed, str::to_owned),
            issuer: Some(certificate.issuer_common_name().map_or_else(unnamed, str::to_owned)),
            names: certificate.alternative_names().map(name_text).collect(),
            valid: Some((
                date(certificate.validity.not_before),
                date(certificate.validity.not_after),
            )),
            key: key_name(&certificate.key),
            key_digest: digest(certificate.key_info),
        }
    }

    /// The subject, for an error that concerns this certificate.
    pub(super) fn subject(&self) -> &str {
        &self.subject
    }

    /// Whether it names itself as its issuer.
    pub(super) fn is_self_issued(&self) -> bool {
        self.issuer.as_ref() == Some(&self.subject)
    }

    pub(super) fn line(&self) -> String {
        let mut text = self.subject.clone();
        if let Some(issuer) = &self.issuer {
            text += &format!(", issued by {issuer}");
        }
        if let Some((from, to)) = &self.valid {
            text += &format!(", valid {from} to {to}");
        }
        text += &format!(", {} key {}", self.key, &self.key_digest[..16]);
        if !self.names.is_empty() {
            text += &format!(", for {}", self.names.join(" "));
        }
        text
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "subject": self.subject,
            "issuer": self.issuer,
            "names": self.names,
            "valid_from": self.valid.as_ref().map(|it| &it.0),
            "valid_to": self.valid.as_ref().map(|it| &it.1),
            "key": self.key,
            "key_sha256": self.key_digest,
        })
    }
}

/// Milliseconds with one decimal.
pub(super) fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 10_000.0).round() / 10.0
}

fn digest(bytes: &[u8]) -> String {
    hex(&HashAlgorithm::Sha256.digest(&[bytes]))
}

fn key_name(key: &PublicKeyRef<'_>) -> &'static str {
    match key {
        PublicKeyRef::P256(_) => "P-256",
        PublicKeyRef::P384(_) => "P-384",
        PublicKeyRef::Ed25519(_) => "Ed25519",
        PublicKeyRef::Rsa { modulus, .. } => match modulus.len() {
            ..=255 => "RSA (too short)",
            256 => "RSA-2048",
            384 => "RSA-3072",
            512 => "RSA-4096",
            _ => "RSA",
        },
    }
}

fn name_text(name: AlternativeName<'_>) -> String {
    match name {
        AlternativeName::Dns(name) => name.to_owned(),
        AlternativeName::Ipv4(address) => Ipv4Addr::from(address).to_string(),
        AlternativeName::Ipv6(address) => Ipv6Addr::from(address).to_string(),
    }
}

/// The day of `time`.
fn date(time: UnixTime) -> String {
    let since = Duration::from_secs(time.0.max(0).unsigned_abs());
    let text = humantime::format_rfc3339_seconds(std::time::UNIX_EPOCH + since).to_string();
    text[..10].to_owned()
}
