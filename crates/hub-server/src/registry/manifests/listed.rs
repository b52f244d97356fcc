//! Lists of a repository's tags, and of the manifests whose subject is another one.

use http::{StatusCode, header};
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::unknown;
use super::written::INDEX_TYPE;
use crate::exchange::{Exchange, Reply};
use crate::registry::{Code, algorithm_of};
use crate::store::sql::{self, Connection, Next, params};

/// The most entries of a list of tags or referrers.
const LISTED_MAX: usize = 1_000;
/// The bytes of one answer about referrers, but for one that is longer by itself; and those of a descriptor beside its
/// annotations.
const REFERRERS_BYTES_MAX: usize = 256 * 1024;
const DESCRIPTOR_BYTES: usize = 512;

/// `GET …/tags/list`, in alphabetical order whatever their case (distribution spec 1.1, "Listing Tags"), `n` at a
/// time behind `last`. Two that differ in case alone have the order of their bytes.
pub(in crate::registry) fn tags(
    connection: &Connection,
    exchange: &Exchange,
    repository: &str,
) -> Result<Reply, sql::Error> {
    let exists = "SELECT 1 FROM manifests WHERE who = ?1 AND repository = ?2";
    if !connection.statement(exists).exists([exchange.who.as_str(), repository])? {
        return Ok(unknown());
    }
    let wanted = exchange.parameter("n").and_then(|n| n.parse().ok()).unwrap_or(LISTED_MAX);
    let count = wanted.min(LISTED_MAX);
    let query = "SELECT tag FROM tags WHERE who = ?1 AND repository = ?2 \
         AND (lower(tag), tag) > (?3, ?4) ORDER BY lower(tag), tag LIMIT ?5";
    let last = exchange.parameter("last").unwrap_or("");
    let statement = connection.statement(query);
    let lower = last.to_ascii_lowercase();
    let names = params![exchange.who, repository, lower, last, count as i64 + 1];
    let mut tags: Vec<String> = statement.query_map(names, |row| row.get(0))?;
    let has_more = tags.len() > count;
    tags.truncate(count);
    let reply = Reply::json(StatusCode::OK, &json!({ "name": repository, "tags": tags }));
    Ok(match tags.last().filter(|_| has_more) {
        Some(last) => reply.with(
            header::LINK,
            format!("</v2/{repository}/tags/list?n={count}&last={last}>; rel=\"next\""),
        ),
        None => reply,
    })
}

/// A manifest in an answer about referrers.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Referrer {
    media_type: String,
    digest: String,
    size: i64,
    #[serde(skip_serializing_if = "String::is_empty")]
    artifact_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<Box<RawValue>>,
}

/// The answer, which is an index.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Referrers {
    schema_version: u32,
    media_type: &'static str,
    manifests: Vec<Referrer>,
}

/// `GET …/referrers/DIGEST`: the manifests whose subject it is, as an index; those behind the row `last`, as many as fit
/// [`REFERRERS_BYTES_MAX`], with a link to the rest (distribution spec 1.1, "Listing Referrers").
pub(in crate::registry) fn referrers(
    connection: &Connection,
    exchange: &Exchange,
    repository: &str,
    digest: &str,
) -> Result<Reply, sql::Error> {
    if algorithm_of(digest).is_none() {
        return Ok(Code::DigestInvalid.reply("a digest is sha256:… or sha512:… here"));
    }
    let kind = exchange.parameter("artifactType");
    let last: i64 = exchange.parameter("last").and_then(|last| last.parse().ok()).unwrap_or(0);
    let query = "SELECT id, digest, length(bytes), artifact_type, annotations, media_type FROM manifests \
         WHERE who = ?1 AND repository = ?2 AND subject = ?3 AND (CAST(?4 AS TEXT) IS NULL OR lower(artifact_type) = ?4) \
         AND id > ?5 ORDER BY id LIMIT ?6";
    let statement = connection.statement(query);
    let lower = kind.map(str::to_ascii_lowercase);
    let names = params![exchange.who, repository, digest, lower, last, LISTED_MAX as i64 + 1];
    let (mut manifests, mut bytes, mut next) = (Vec::new(), 0, None);
    let mut shown = last;
    statement.each(names, |row| {
        let annotations: String = row.get(4)?;
        bytes += annotations.len() + DESCRIPTOR_BYTES;
        let is_full = bytes > REFERRERS_BYTES_MAX || manifests.len() == LISTED_MAX;
        if is_full && !manifests.is_empty() {
            next = Some(shown);
            return Ok(Next::Enough);
        }
        shown = row.get(0)?;
        manifests.push(Referrer {
            media_type: row.get(5)?,
            digest: row.get(1)?,
            size: row.get(2)?,
            artifact_type: row.get(3)?,
            annotations: RawValue::from_string(annotations).ok(),
        });
        Ok(Next::Row)
    })?;
    let index = Referrers { schema_version: 2, media_type: INDEX_TYPE, manifests };
    let body = serde_json::to_vec(&index).unwrap_or_default();
    let mut reply =
        Reply { body, ..Reply::empty(StatusCode::OK) }.with(header::CONTENT_TYPE, INDEX_TYPE);
    if let Some(last) = next {
        let mut parameters = form_urlencoded::Serializer::new(String::new());
        parameters.append_pair("last", &last.to_string());
        if let Some(kind) = kind {
            parameters.append_pair("artifactType", kind);
        }
        let place = format!("/v2/{repository}/referrers/{digest}?{}", parameters.finish());
        reply = reply.with(header::LINK, format!("<{place}>; rel=\"next\""));
    }
    Ok(match kind {
        Some(_) => {
            reply.with(header::HeaderName::from_static("oci-filters-applied"), "artifactType")
        }
        None => reply,
    })
}
