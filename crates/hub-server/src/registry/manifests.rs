//! Manifests and tags: what blobs belong together, and under which names.

mod listed;
mod written;

use http::{StatusCode, header};
use tenure_package::Package;

use super::{
    CONTENT_DIGEST, Code, PACKAGE_TYPE, blobs, digest_of, has_digest, is_media_type, is_tag,
};
use crate::exchange::{Exchange, Reply};
use crate::store::audit::{self, seconds};
use crate::store::sql::{self, Connection, OptionalExtension as _, params};
pub(super) use listed::{referrers, tags};
use written::{Descriptor, Manifest, Parts, read};
pub(super) use written::{MANIFEST_BYTES_MAX, MANIFEST_TYPE};

/// The most manifests of one key.
const MANIFESTS_OF_KEY_MAX: i64 = 10_000;
/// The most tags of one key.
const TAGS_OF_KEY_MAX: i64 = 10_000;
/// The signed description of a package.
struct Described {
    name: String,
    digest: String,
    version: String,
    tenant: String,
    bytes: i64,
}

/// `PUT …/manifests/REFERENCE`.
pub(super) fn put(
    connection: &Connection,
    exchange: &Exchange,
    repository: &str,
    reference: &str,
) -> Result<Reply, sql::Error> {
    let is_by_digest = reference.contains(':');
    if is_by_digest && !has_digest(&exchange.body, reference) {
        return Ok(Code::DigestInvalid.reply("the manifest doesn't have that digest"));
    }
    let digest = if is_by_digest { reference.to_string() } else { digest_of(&exchange.body) };
    if !is_by_digest && !is_tag(reference) {
        return Ok(Code::ManifestInvalid.reply("a tag is of letters, digits, and . _ -"));
    }
    let manifest = match read(exchange) {
        Ok(manifest) => manifest,
        Err(reply) => return Ok(reply),
    };
    let who = exchange.who.as_str();
    for part in manifest.parts.needed() {
        let size = match manifest.parts {
            Parts::Image { .. } => blobs::size(connection, who, &part.digest)?,
            Parts::Index { .. } => size(connection, exchange, repository, &part.digest)?,
        };
        if size != Some(part.size) {
            let text = "push first what it names; one is missing, or of another length";
            return Ok(Code::ManifestBlobUnknown.reply(text));
        }
    }
    let package = match package_of(connection, who, &manifest)? {
        Ok(package) => package,
        Err(reply) => return Ok(reply),
    };
    if find(connection, exchange, repository, &digest)?.is_none() {
        if count(connection, "SELECT count(*) FROM manifests WHERE who = ?1", who)?
            >= MANIFESTS_OF_KEY_MAX
        {
            return Ok(Code::Denied.reply("a key has 10,000 manifests here at most"));
        }
        // The annotations are kept apart, too, to be listed.
        let bytes = exchange.body.len() + manifest.annotations.len();
        if !blobs::has_bytes(connection, who, bytes)? {
            return Ok(blobs::no_room());
        }
    }
    let before = find(connection, exchange, repository, reference)?.map(|found| found.digest);
    if !is_by_digest
        && before.is_none()
        && count(connection, "SELECT count(*) FROM tags WHERE who = ?1", who)? >= TAGS_OF_KEY_MAX
    {
        return Ok(Code::Denied.reply("a key has 10,000 tags here at most"));
    }
    let id = insert(connection, exchange, repository, &digest, &manifest, package.as_ref())?;
    if !is_by_digest {
        let upsert = "INSERT INTO tags (who, repository, tag, manifest) VALUES (?1, ?2, ?3, ?4) \
             ON CONFLICT (who, repository, tag) DO UPDATE SET manifest = excluded.manifest";
        connection.statement(upsert).execute(params![who, repository, reference, id])?;
    }
    if before.as_ref() != Some(&digest) {
        note(connection, exchange, "pushed", repository, reference, &digest)?;
    }
    let reply = Reply::empty(StatusCode::CREATED)
        .with(header::LOCATION, format!("/v2/{repository}/manifests/{digest}"))
        .with(CONTENT_DIGEST, digest);
    Ok(match manifest.subject {
        Some(subject) => reply.with(header::HeaderName::from_static("oci-subject"), subject.digest),
        None => reply,
    })
}

/// The package that a manifest is of, if it says that it is one's.
///
/// # Errors
/// The database fails; or inside, the answer that says why it is none.
fn package_of(
    connection: &Connection,
    who: &str,
    manifest: &Manifest,
) -> Result<Result<Option<Described>, Reply>, sql::Error> {
    let layers = manifest.parts.layers();
    let is_package = is_media_type(manifest.kind(), PACKAGE_TYPE);
    if !is_package && !layers.iter().any(Descriptor::is_package) {
        return Ok(Ok(None));
    }
    let invalid = |text: &str| Ok(Err(Code::ManifestInvalid.reply(text)));
    let [layer] = layers else {
        return invalid("the manifest of a package has one layer: the package");
    };
    if !is_package || !layer.is_package() {
        return invalid("artifact and layer of a package both have its type");
    }
    let bytes = blobs::bytes(connection, who, &layer.digest)?.unwrap_or_default();
    let package = match Package::parse(&bytes) {
        Ok(package) => package,
        Err(error) => return invalid(&format!("the layer is no package: {error}")),
    };
    if let Err(error) = package.verify() {
        return invalid(&format!("the layer is no package: {error}"));
    }
    Ok(Ok(Some(Described {
        name: package.manifest().name.to_string(),
        digest: package.digest().to_string(),
        version: package.manifest().version.to_string(),
        tenant: package.tenant().to_string(),
        bytes: layer.size,
    })))
}

/// The number of rows that `query` counts of a key.
fn count(connection: &Connection, query: &str, who: &str) -> Result<i64, sql::Error> {
    connection.statement(query).query_row([who], |row| row.get(0))
}

/// Stores a manifest and what it names; returns its row.
fn insert(
    connection: &Connection,
    exchange: &Exchange,
    repository: &str,
    digest: &str,
    manifest: &Manifest,
    package: Option<&Described>,
) -> Result<i64, sql::Error> {
    if let Some(found) = find(connection, exchange, repository, digest)? {
        return Ok(found.id);
    }
    let insert = "INSERT INTO manifests (who, repository, digest, media_type, artifact_type, subject, \
         annotations, bytes, pushed_unix_s, package, package_digest, version, tenant, package_bytes) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14) RETURNING id";
    let row = params![
        exchange.who,
        repository,
        digest,
        manifest.parts.media_type(),
        manifest.kind(),
        manifest.subject.as_ref().map(|subject| &subject.digest),
        manifest.annotations,
        exchange.body,
        seconds(exchange.unix_s),
        package.map(|package| &package.name),
        package.map(|package| &package.digest),
        package.map(|package| &package.version),
        package.map(|package| &package.tenant),
        package.map(|package| package.bytes),
    ];
    let id = connection.statement(insert).query_row(row, |row| row.get(0))?;
    let insert =
        "INSERT INTO manifest_blobs (manifest, digest) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
    let insert = connection.statement(insert);
    for blob in manifest.parts.blobs() {
        insert.execute(params![id, blob.digest])?;
    }
    Ok(id)
}

struct Found {
    id: i64,
    digest: String,
    media_type: String,
    bytes: Vec<u8>,
}

/// The bytes of the manifest with that digest, if it is in the repository.
fn size(
    connection: &Connection,
    exchange: &Exchange,
    repository: &str,
    digest: &str,
) -> Result<Option<i64>, sql::Error> {
    let query =
        "SELECT length(bytes) FROM manifests WHERE who = ?1 AND repository = ?2 AND digest = ?3";
    let names = [exchange.who.as_str(), repository, digest];
    connection.statement(query).query_row(names, |row| row.get(0)).optional()
}

/// The manifest that a tag or a digest names.
fn find(
    connection: &Connection,
    exchange: &Exchange,
    repository: &str,
    reference: &str,
) -> Result<Option<Found>, sql::Error> {
    let query = if reference.contains(':') {
        "SELECT id, digest, media_type, bytes FROM manifests WHERE who = ?1 AND repository = ?2 AND digest = ?3"
    } else {
        "SELECT m.id, m.digest, m.media_type, m.bytes FROM tags t JOIN manifests m ON m.id = t.manifest \
         WHERE t.who = ?1 AND t.repository = ?2 AND t.tag = ?3"
    };
    let found = |row: &sql::Row<'_>| {
        let (id, digest, media_type) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(Found { id, digest, media_type, bytes: row.get(3)? })
    };
    let names = [exchange.who.as_str(), repository, reference];
    connection.statement(query).query_row(names, found).optional()
}

/// `GET …/manifests/REFERENCE`.
pub(super) fn fetch(
    connection: &Connection,
    exchange: &Exchange,
    repository: &str,
    reference: &str,
) -> Result<Reply, sql::Error> {
    Ok(match find(connection, exchange, repository, reference)? {
        Some(found) => Reply { body: found.bytes, ..Reply::empty(StatusCode::OK) }
            .with(header::CONTENT_TYPE, found.media_type)
            .with(CONTENT_DIGEST, found.digest),
        None => unknown(),
    })
}

/// The digest of the blob that is the package with the digest `package`.
pub(super) fn layer_of_package(
    connection: &Connection,
    who: &str,
    package: &str,
) -> Result<Option<String>, sql::Error> {
    let query = "SELECT bytes FROM manifests WHERE who = ?1 AND package_digest = ?2 LIMIT 1";
    let bytes: Option<Vec<u8>> =
        connection.statement(query).query_row([who, package], |row| row.get(0)).optional()?;
    Ok(bytes.and_then(|bytes| written::first_layer(&bytes)))
}

/// `DELETE …/manifests/REFERENCE`: a tag, or a manifest with its tags and the blobs that no other has.
pub(super) fn delete(
    connection: &Connection,
    exchange: &Exchange,
    repository: &str,
    reference: &str,
) -> Result<Reply, sql::Error> {
    let Some(found) = find(connection, exchange, repository, reference)? else {
        return Ok(unknown());
    };
    if reference.contains(':') {
        if is_in_rollout(connection, &exchange.who, found.id)? {
            return Ok(Code::Denied.reply("a rollout needs this package; end that first"));
        }
        let named = "SELECT digest FROM manifest_blobs WHERE manifest = ?1";
        let statement = connection.statement(named);
        let named: Vec<String> = statement.query_map([found.id], |row| row.get(0))?;
        connection.statement("DELETE FROM manifests WHERE id = ?1").execute([found.id])?;
        for digest in named {
            blobs::delete_loose(connection, &exchange.who, &digest)?;
        }
    } else {
        let delete = "DELETE FROM tags WHERE who = ?1 AND repository = ?2 AND tag = ?3";
        let tag = [exchange.who.as_str(), repository, reference];
        connection.statement(delete).execute(tag)?;
    }
    note(connection, exchange, "deleted", repository, reference, &found.digest)?;
    Ok(Reply::empty(StatusCode::ACCEPTED))
}

/// Whether a rollout that isn't over may still need the package of the manifest in row `manifest`: as the
/// one it brings, or as one that it puts back.
fn is_in_rollout(connection: &Connection, who: &str, manifest: i64) -> Result<bool, sql::Error> {
    let query = "SELECT 1 FROM manifests m JOIN rollouts r ON r.who = m.who \
         WHERE m.id = ?2 AND m.who = ?1 AND r.state IN ('running', 'paused', 'rolling back') \
         AND (r.package_digest = m.package_digest OR EXISTS (SELECT 1 FROM rollout_devices d \
         WHERE d.rollout = r.id AND d.was = m.package_digest))";
    connection.statement(query).exists(params![who, manifest])
}

fn unknown() -> Reply {
    Code::ManifestUnknown.reply("there is no such manifest or tag")
}

fn note(
    connection: &Connection,
    exchange: &Exchange,
    action: &str,
    repository: &str,
    reference: &str,
    digest: &str,
) -> Result<(), sql::Error> {
    let subject = match reference.contains(':') {
        true => format!("{repository}@{reference}"),
        false => format!("{repository}:{reference}"),
    };
    let event = audit::Event {
        unix_s: exchange.unix_s,
        who: &exchange.who,
        by: &exchange.by,
        action,
        subject: &subject,
        detail: digest,
        owner: &exchange.who,
    };
    audit::append(connection, &event)
}
