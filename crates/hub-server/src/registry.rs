//! Packages, kept by digest and served as a registry: the OCI distribution API 1.1 under `/v2/`.
//!
//! Invariants:
//! - Each key has repositories of its own; no request reaches another key's bytes, nor learns of them.
//! - A stored blob or manifest has the digest under which it is found.
//! - A manifest that says it is a package's names one package, which its tenant signed.
//! - The blobs, manifests and tags of a key, their bytes and the uploads under way are bounded.

mod artifact;
mod blobs;
mod manifests;
mod uploads;

use data_encoding::HEXLOWER;
use http::{Method, StatusCode, header};
use serde_json::json;
use tenure_crypto::{HashAlgorithm, sha256};

use crate::exchange::{Exchange, Reply};
use crate::store::space::{self, Keeps};
use crate::store::sql::{self, Connection, OptionalExtension as _};

pub use artifact::{Artifact, WasmArtifact};
use blobs::BLOB_BYTES_MAX;

/// The type of a package as an artifact and as a blob.
pub(crate) const PACKAGE_TYPE: &str = "application/vnd.tenure.package.v1";
/// The most bytes of a request's body: of a blob, or of a manifest.
pub(crate) const BODY_BYTES_MAX: usize = if BLOB_BYTES_MAX > manifests::MANIFEST_BYTES_MAX {
    BLOB_BYTES_MAX
} else {
    manifests::MANIFEST_BYTES_MAX
};
/// The header that tells a stored digest (distribution spec 1.1, "Pushing blobs").
const CONTENT_DIGEST: header::HeaderName = header::HeaderName::from_static("docker-content-digest");
/// The longest name of a repository, in bytes.
const REPOSITORY_BYTES_MAX: usize = 255;

/// An error code of the distribution spec 1.1, "Error codes". `RANGE_INVALID` is that of the registry from which the
/// spec was made: the spec has none for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    BlobUnknown,
    BlobUploadInvalid,
    BlobUploadUnknown,
    Denied,
    /// None of the specification's: RFC 4918, 11.5.
    DiskFull,
    DigestInvalid,
    ManifestBlobUnknown,
    ManifestInvalid,
    ManifestUnknown,
    NameInvalid,
    RangeInvalid,
    SizeInvalid,
    TooManyRequests,
    Unsupported,
}

impl Code {
    fn name_and_status(self) -> (&'static str, StatusCode) {
        match self {
            Self::BlobUnknown => ("BLOB_UNKNOWN", StatusCode::NOT_FOUND),
            Self::BlobUploadInvalid => ("BLOB_UPLOAD_INVALID", StatusCode::RANGE_NOT_SATISFIABLE),
            Self::BlobUploadUnknown => ("BLOB_UPLOAD_UNKNOWN", StatusCode::NOT_FOUND),
            Self::Denied => ("DENIED", StatusCode::FORBIDDEN),
            Self::DiskFull => ("DENIED", StatusCode::INSUFFICIENT_STORAGE),
            Self::DigestInvalid => ("DIGEST_INVALID", StatusCode::BAD_REQUEST),
            Self::ManifestBlobUnknown => ("MANIFEST_BLOB_UNKNOWN", StatusCode::NOT_FOUND),
            Self::ManifestInvalid => ("MANIFEST_INVALID", StatusCode::BAD_REQUEST),
            Self::ManifestUnknown => ("MANIFEST_UNKNOWN", StatusCode::NOT_FOUND),
            Self::NameInvalid => ("NAME_INVALID", StatusCode::BAD_REQUEST),
            Self::RangeInvalid => ("RANGE_INVALID", StatusCode::RANGE_NOT_SATISFIABLE),
            Self::SizeInvalid => ("SIZE_INVALID", StatusCode::PAYLOAD_TOO_LARGE),
            Self::TooManyRequests => ("TOOMANYREQUESTS", StatusCode::TOO_MANY_REQUESTS),
            Self::Unsupported => ("UNSUPPORTED", StatusCode::METHOD_NOT_ALLOWED),
        }
    }

    /// The answer that says so.
    pub(crate) fn reply(self, message: &str) -> Reply {
        let (code, status) = self.name_and_status();
        Reply::json(status, &json!({ "errors": [{ "code": code, "message": message }] }))
    }
}

/// Answers a request under `/v2/`, in a transaction of its own.
///
/// # Errors
/// The database fails.
pub(crate) fn answer(connection: &Connection, exchange: &Exchange) -> Result<Reply, sql::Error> {
    let segments: Vec<&str> = exchange.segments.iter().skip(1).map(String::as_str).collect();
    let method = &exchange.method;
    let is_read = exchange.is_read();
    let stores = matches!(*method, Method::POST | Method::PUT | Method::PATCH);
    if stores && !space::is_left(connection, Keeps::Registry, exchange.body.len())? {
        return Ok(Code::DiskFull.reply("the hub has no room for more packages: see --disk-max"));
    }
    match segments[..] {
        [] | [""] if is_read => Ok(Reply::json(StatusCode::OK, &json!({}))),
        [] | [""] => unsupported("GET, HEAD"),
        [ref name @ .., "blobs", "uploads"] | [ref name @ .., "blobs", "uploads", ""] => {
            named(name, |repository| match *method {
                Method::POST => uploads::begin(connection, exchange, repository),
                _ => unsupported("POST"),
            })
        }
        [ref name @ .., "blobs", "uploads", id] => named(name, |repository| match *method {
            Method::GET | Method::HEAD => uploads::show(connection, exchange, repository, id),
            Method::PATCH => uploads::append(connection, exchange, repository, id),
            Method::PUT => uploads::finish(connection, exchange, repository, id),
            Method::DELETE => uploads::cancel(connection, exchange, repository, id),
            _ => unsupported("GET, HEAD, PATCH, PUT, DELETE"),
        }),
        [ref name @ .., "blobs", digest] => named(name, |_| match *method {
            Method::GET | Method::HEAD => blobs::fetch(connection, exchange, digest),
            Method::DELETE => blobs::delete(connection, exchange, digest),
            _ => unsupported("GET, HEAD, DELETE"),
        }),
        [ref name @ .., "manifests", reference] => named(name, |repository| match *method {
            Method::GET | Method::HEAD => {
                manifests::fetch(connection, exchange, repository, reference)
            }
            Method::PUT => manifests::put(connection, exchange, repository, reference),
            Method::DELETE => manifests::delete(connection, exchange, repository, reference),
            _ => unsupported("GET, HEAD, PUT, DELETE"),
        }),
        [ref name @ .., "tags", "list"] if is_read => {
            named(name, |repository| manifests::tags(connection, exchange, repository))
        }
        [ref name @ .., "referrers", digest] if is_read => {
            named(name, |repository| manifests::referrers(connection, exchange, repository, digest))
        }
        [.., "tags", "list"] | [.., "referrers", _] => unsupported("GET, HEAD"),
        _ => Ok(Code::NameInvalid.reply("there is nothing under this path")),
    }
}

/// `GET /v1/packages/DIGEST`: a package by its own digest, whatever repository it is in; or a part of it.
///
/// # Errors
/// The database fails.
pub(crate) fn package(
    connection: &Connection,
    exchange: &Exchange,
    digest: &str,
) -> Result<Reply, sql::Error> {
    match manifests::layer_of_package(connection, &exchange.who, digest)? {
        Some(layer) => blobs::fetch(connection, exchange, &layer),
        None => Ok(Code::ManifestUnknown.reply("there is no such package")),
    }
}

/// The bytes of a key's package by its own digest.
pub(crate) fn package_bytes(
    connection: &Connection,
    who: &str,
    digest: &str,
) -> Result<Option<Vec<u8>>, sql::Error> {
    match manifests::layer_of_package(connection, who, digest)? {
        Some(layer) => blobs::bytes(connection, who, &layer),
        None => Ok(None),
    }
}

/// How long a key's package is, in bytes.
pub(crate) fn package_length(
    connection: &Connection,
    who: &str,
    digest: &str,
) -> Result<Option<u32>, sql::Error> {
    let query =
        "SELECT package_bytes FROM manifests WHERE who = ?1 AND package_digest = ?2 LIMIT 1";
    connection.statement(query).query_row([who, digest], |row| row.get(0)).optional()
}

/// Whether the registry of `who` holds the package with this digest.
pub(crate) fn has_package(
    connection: &Connection,
    who: &str,
    package: &str,
) -> Result<bool, sql::Error> {
    let query = "SELECT 1 FROM manifests WHERE who = ?1 AND package_digest = ?2";
    connection.statement(query).exists([who, package])
}

/// The answer to a method other than those in `allowed`, which it names (RFC 9110 15.5.6).
fn unsupported(allowed: &str) -> Result<Reply, sql::Error> {
    let reply = Code::Unsupported.reply(&format!("this takes {allowed}"));
    Ok(reply.with(header::ALLOW, allowed))
}

/// Runs `action` if the segments before are the name of a repository.
fn named(
    segments: &[&str],
    action: impl FnOnce(&str) -> Result<Reply, sql::Error>,
) -> Result<Reply, sql::Error> {
    let name = segments.join("/");
    let is_name = !segments.is_empty() && segments.iter().all(|part| is_component(part));
    if is_name && name.len() <= REPOSITORY_BYTES_MAX {
        action(&name)
    } else {
        Ok(Code::NameInvalid
            .reply("a repository's name is of a-z, 0-9, and single . _ - / between"))
    }
}

/// Whether `text` is a component of a name: `[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*` (distribution spec 1.1,
/// "Pulling manifests").
fn is_component(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let between = text.split(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    let is_separator =
        |run: &str| matches!(run, "" | "." | "_" | "__") || run.bytes().all(|byte| byte == b'-');
    let bytes = text.as_bytes();
    bytes.first().is_some_and(|first| is_plain(*first))
        && bytes.last().is_some_and(|last| is_plain(*last))
        && between.into_iter().all(is_separator)
}

/// Whether `text` is a tag: `[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}`.
fn is_tag(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.len() <= 128
        && text.bytes().next().is_some_and(is_word)
        && text.bytes().all(|byte| is_word(byte) || b".-".contains(&byte))
}

/// The algorithm of a digest: `sha256:` and 64 digits, or `sha512:` and 128 (image spec 1.1, "Registered
/// algorithms"). `None` if `text` is none of them.
fn algorithm_of(text: &str) -> Option<HashAlgorithm> {
    let (algorithm, digits) = match text.split_once(':')? {
        ("sha256", digits) => (HashAlgorithm::Sha256, digits),
        ("sha512", digits) => (HashAlgorithm::Sha512, digits),
        _ => return None,
    };
    let is_digest = digits.len() == 2 * algorithm.digest_bytes()
        && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    is_digest.then_some(algorithm)
}

/// Whether `bytes` have the digest `digest`.
fn has_digest(bytes: &[u8], digest: &str) -> bool {
    algorithm_of(digest).is_some_and(|algorithm| {
        let found = HEXLOWER.encode(&algorithm.digest(&[bytes]));
        digest.split_once(':').is_some_and(|(_, digits)| digits == found)
    })
}

/// Whether a media type is `expected`: its letters have no case, and parameters make it no other
/// (RFC 9110 8.3.1).
fn is_media_type(text: &str, expected: &str) -> bool {
    let kind = text.split_once(';').map_or(text, |(kind, _)| kind);
    kind.trim().eq_ignore_ascii_case(expected)
}

/// The digest of `bytes` as a registry writes it: `sha256:` and 64 hexadecimal digits.
pub fn digest_of(bytes: &[u8]) -> String {
    format!("sha256:{}", HEXLOWER.encode(&sha256(&[bytes]).0))
}
