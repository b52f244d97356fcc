//! Manifests and tags: what blobs belong together, and under which names.

use core::fmt;

use http::{StatusCode, header};
use rusqlite::{Connection, OptionalExtension as _, params};
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;
use tenure_package::Package;

use super::{
    CONTENT_DIGEST, Code, PACKAGE_TYPE, algorithm_of, blobs, digest_of, has_digest, is_media_type,
    is_tag,
};
use crate::exchange::{Exchange, Reply};
use crate::store::audit::{self, seconds};

/// The manifest of an image or an artifact (image spec 1.1).
pub(super) const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX_TYPE: &str = "application/vnd.oci.image.index.v1+json";
/// The longest manifest, in bytes: what a registry should take (distribution spec 1.1, "Pushing Manifests").
pub(super) const MANIFEST_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The most blobs or manifests that a manifest names.
const PARTS_MAX: usize = 64;
/// The most manifests of one key.
const MANIFESTS_OF_KEY_MAX: i64 = 10_000;
/// The most tags of one key.
const TAGS_OF_KEY_MAX: i64 = 10_000;
/// The most entries of a list of tags or referrers.
const LISTED_MAX: usize = 1_000;
/// The bytes of one answer about referrers, but for one that is longer by itself; and those of a descriptor beside its
/// annotations.
const REFERRERS_BYTES_MAX: usize = 256 * 1024;
const DESCRIPTOR_BYTES: usize = 512;

/// A manifest as it is written, whose fields depend on its type. Fields that aren't known count for nothing.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    schema_version: u32,
    media_type: Option<String>,
    artifact_type: Option<String>,
    config: Option<Descriptor>,
    layers: Option<Vec<Descriptor>>,
    manifests: Option<Vec<Descriptor>>,
    subject: Option<Descriptor>,
    annotations: Option<Annotations>,
}

/// A manifest that is well formed.
struct Manifest {
    parts: Parts,
    artifact_type: Option<String>,
    subject: Option<Descriptor>,
    annotations: String,
}

/// What a manifest holds together.
enum Parts {
    /// Blobs.
    Image { config: Descriptor, layers: Vec<Descriptor> },
    /// Other manifests.
    Index { manifests: Vec<Descriptor> },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    media_type: String,
    digest: String,
    size: i64,
}

/// Texts by their names, kept as they are written: there may be hundreds of thousands.
struct Annotations(Box<RawValue>);

impl<'de> Deserialize<'de> for Annotations {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Texts;
        impl<'de> Visitor<'de> for Texts {
            type Value = ();

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("annotations, which are texts by their names")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
                while map.next_entry::<IgnoredAny, String>()?.is_some() {}
                Ok(())
            }
        }
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let mut written = serde_json::Deserializer::from_str(raw.get());
        written.deserialize_map(Texts).map_err(serde::de::Error::custom)?;
        Ok(Self(raw))
    }
}

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
) -> Result<Reply, rusqlite::Error> {
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
        connection.prepare_cached(upsert)?.execute(params![who, repository, reference, id])?;
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

/// Reads a manifest and checks its form.
///
/// # Errors
/// The answer that says what is wrong.
fn read(exchange: &Exchange) -> Result<Manifest, Reply> {
    if exchange.body.len() > MANIFEST_BYTES_MAX {
        return Err(Code::SizeInvalid.reply("a manifest has 4 MiB at most"));
    }
    let invalid = |text: &str| Code::ManifestInvalid.reply(text);
    let written = serde_json::from_slice::<Written>(&exchange.body)
        .map_err(|error| invalid(&format!("no manifest: {error}")))?;
    let said = exchange.header(&header::CONTENT_TYPE);
    let media_type = written.media_type.as_deref().or(said).unwrap_or(MANIFEST_TYPE);
    let is_of = |kind| [Some(media_type), said].iter().flatten().all(|it| is_media_type(it, kind));
    let parts = match (written.config, written.layers, written.manifests) {
        (Some(config), Some(layers), None) if is_of(MANIFEST_TYPE) => {
            Parts::Image { config, layers }
        }
        (None, None, Some(manifests)) if is_of(INDEX_TYPE) => Parts::Index { manifests },
        _ => {
            let text = format!(
                "manifests here are of type {MANIFEST_TYPE}, with `config` and `layers`, or {INDEX_TYPE}, with `manifests`"
            );
            return Err(invalid(&text));
        }
    };
    if written.schema_version != 2 {
        return Err(invalid("a manifest's `schemaVersion` is 2"));
    }
    let has_digest = |one: &Descriptor| algorithm_of(&one.digest).is_some();
    let are_well =
        parts.all().count() <= PARTS_MAX + 1 && parts.all().chain(&written.subject).all(has_digest);
    if !are_well {
        return Err(invalid("64 parts at most, each with a sha256 or sha512 digest"));
    }
    let annotations = written.annotations.map_or("{}".into(), |texts| texts.0.get().to_owned());
    let (artifact_type, subject) = (written.artifact_type, written.subject);
    Ok(Manifest { parts, artifact_type, subject, annotations })
}

impl Parts {
    fn media_type(&self) -> &'static str {
        match self {
            Self::Image { .. } => MANIFEST_TYPE,
            Self::Index { .. } => INDEX_TYPE,
        }
    }

    fn all(&self) -> impl Iterator<Item = &Descriptor> {
        let (first, others) = match self {
            Self::Image { config, layers } => (Some(config), layers),
            Self::Index { manifests } => (None, manifests),
        };
        others.iter().chain(first)
    }

    /// Those that must be here.
    fn needed(&self) -> impl Iterator<Item = &Descriptor> {
        self.all().filter(|part| !part.is_elsewhere())
    }

    /// Those that are blobs.
    fn blobs(&self) -> impl Iterator<Item = &Descriptor> {
        let is_image = matches!(self, Self::Image { .. });
        self.all().filter(move |_| is_image)
    }

    fn layers(&self) -> &[Descriptor] {
        match self {
            Self::Image { layers, .. } => layers,
            Self::Index { .. } => &[],
        }
    }
}

impl Descriptor {
    /// Whether the blob may be missing here (image spec 1.1, "Non-Distributable Layers").
    fn is_elsewhere(&self) -> bool {
        let kind = self.media_type.to_ascii_lowercase();
        kind.starts_with("application/vnd.oci.image.layer.nondistributable.")
    }

    fn is_package(&self) -> bool {
        is_media_type(&self.media_type, PACKAGE_TYPE)
    }
}

impl Manifest {
    /// The type of the artifact (image spec 1.1, "Guidelines for Artifact Usage"); none of an index that says none.
    fn kind(&self) -> &str {
        let of_config = match &self.parts {
            Parts::Image { config, .. } => &config.media_type,
            Parts::Index { .. } => "",
        };
        self.artifact_type.as_deref().unwrap_or(of_config)
    }
}

/// The package that a manifest is of, if it says that it is one's.
///
/// # Errors
/// SQLite fails; or inside, the answer that says why it is none.
fn package_of(
    connection: &Connection,
    who: &str,
    manifest: &Manifest,
) -> Result<Result<Option<Described>, Reply>, rusqlite::Error> {
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
fn count(connection: &Connection, query: &str, who: &str) -> Result<i64, rusqlite::Error> {
    connection.prepare_cached(query)?.query_row([who], |row| row.get(0))
}

/// Stores a manifest and what it names; returns its row.
fn insert(
    connection: &Connection,
    exchange: &Exchange,
    repository: &str,
    digest: &str,
    manifest: &Manifest,
    package: Option<&Described>,
) -> Result<i64, rusqlite::Error> {
    if let Some(found) = find(connection, exchange, repository, digest)? {
        return Ok(found.id);
    }
    let insert = "INSERT INTO manifests (who, repository, digest, media_type, artifact_type, subject, \
         annotations, bytes, pushed_unix_s, package, package_digest, version, tenant, package_bytes) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)";
    connection.prepare_cached(insert)?.execute(params![
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
    ])?;
    let id = connection.last_insert_rowid();
    let insert = "INSERT OR IGNORE INTO manifest_blobs (manifest, digest) VALUES (?1, ?2)";
    let mut insert = connection.prepare_cached(insert)?;
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
) -> Result<Option<i64>, rusqlite::Error> {
    let query =
        "SELECT length(bytes) FROM manifests WHERE who = ?1 AND repository = ?2 AND digest = ?3";
    let names = [exchange.who.as_str(), repository, digest];
    connection.prepare_cached(query)?.query_row(names, |row| row.get(0)).optional()
}

/// The manifest that a tag or a digest names.
fn find(
    connection: &Connection,
    exchange: &Exchange,
    repository: &str,
    reference: &str,
) -> Result<Option<Found>, rusqlite::Error> {
    let query = if reference.contains(':') {
        "SELECT id, digest, media_type, bytes FROM manifests WHERE who = ?1 AND repository = ?2 AND digest = ?3"
    } else {
        "SELECT m.id, m.digest, m.media_type, m.bytes FROM tags t JOIN manifests m ON m.id = t.manifest \
         WHERE t.who = ?1 AND t.repository = ?2 AND t.tag = ?3"
    };
    let found = |row: &rusqlite::Row<'_>| {
        let (id, digest, media_type) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(Found { id, digest, media_type, bytes: row.get(3)? })
    };
    let names = [exchange.who.as_str(), repository, reference];
    connection.prepare_cached(query)?.query_row(names, found).optional()
}

/// `GET …/manifests/REFERENCE`.
pub(super) fn fetch(
    connection: &Connection,
    exchange: &Exchange,
    repository: &str,
    reference: &str,
) -> Result<Reply, rusqlite::Error> {
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
) -> Result<Option<String>, rusqlite::Error> {
    let query = "SELECT bytes FROM manifests WHERE who = ?1 AND package_digest = ?2 LIMIT 1";
    let bytes: Option<Vec<u8>> =
        connection.prepare_cached(query)?.query_row([who, package], |row| row.get(0)).optional()?;
    let written = bytes.and_then(|bytes| serde_json::from_slice::<Written>(&bytes).ok());
    Ok(written.and_then(|written| Some(written.layers?.into_iter().next()?.digest)))
}

/// `DELETE …/manifests/REFERENCE`: a tag, or a manifest with its tags and the blobs that no other has.
pub(super) fn delete(
    connection: &Connection,
    exchange: &Exchange,
    repository: &str,
    reference: &str,
) -> Result<Reply, rusqlite::Error> {
    let Some(found) = find(connection, exchange, repository, reference)? else {
        return Ok(unknown());
    };
    if reference.contains(':') {
        if is_in_rollout(connection, &exchange.who, found.id)? {
            return Ok(Code::Denied.reply("a rollout needs this package; end that first"));
        }
        let named = "SELECT digest FROM manifest_blobs WHERE manifest = ?1";
        let mut statement = connection.prepare_cached(named)?;
        let rows = statement.query_map([found.id], |row| row.get::<_, String>(0))?;
        let named: Vec<String> = rows.collect::<Result<_, _>>()?;
        connection.prepare_cached("DELETE FROM manifests WHERE id = ?1")?.execute([found.id])?;
        for digest in named {
            blobs::delete_loose(connection, &exchange.who, Some(&digest), u64::MAX)?;
        }
    } else {
        let delete = "DELETE FROM tags WHERE who = ?1 AND repository = ?2 AND tag = ?3";
        let tag = [exchange.who.as_str(), repository, reference];
        connection.prepare_cached(delete)?.execute(tag)?;
    }
    note(connection, exchange, "deleted", repository, reference, &found.digest)?;
    Ok(Reply::empty(StatusCode::ACCEPTED))
}

/// Whether a rollout that isn't over may still need the package of the manifest in row `manifest`: as the
/// one it brings, or as one that it puts back.
fn is_in_rollout(
    connection: &Connection,
    who: &str,
    manifest: i64,
) -> Result<bool, rusqlite::Error> {
    let query = "SELECT 1 FROM manifests m JOIN rollouts r ON r.who = m.who \
         WHERE m.id = ?2 AND m.who = ?1 AND r.state IN ('running', 'paused', 'rolling back') \
         AND (r.package_digest = m.package_digest OR EXISTS (SELECT 1 FROM rollout_devices d \
         WHERE d.rollout = r.id AND d.was = m.package_digest))";
    connection.prepare_cached(query)?.exists(params![who, manifest])
}

/// `GET …/tags/list`, in alphabetical order whatever their case (distribution spec 1.1, "Listing Tags"), `n` at a
/// time behind `last`. Two that differ in case alone have the order of their bytes.
pub(super) fn tags(
    connection: &Connection,
    exchange: &Exchange,
    repository: &str,
) -> Result<Reply, rusqlite::Error> {
    let exists = "SELECT 1 FROM manifests WHERE who = ?1 AND repository = ?2";
    if !connection.prepare_cached(exists)?.exists([exchange.who.as_str(), repository])? {
        return Ok(unknown());
    }
    let wanted = exchange.parameter("n").and_then(|n| n.parse().ok()).unwrap_or(LISTED_MAX);
    let count = wanted.min(LISTED_MAX);
    let query = "SELECT tag FROM tags WHERE who = ?1 AND repository = ?2 \
         AND (tag COLLATE NOCASE, tag) > (?3, ?3) ORDER BY tag COLLATE NOCASE, tag LIMIT ?4";
    let last = exchange.parameter("last").unwrap_or("");
    let mut statement = connection.prepare_cached(query)?;
    let names = params![exchange.who, repository, last, count as i64 + 1];
    let rows = statement.query_map(names, |row| row.get::<_, String>(0))?;
    let mut tags: Vec<String> = rows.collect::<Result<_, _>>()?;
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
pub(super) fn referrers(
    connection: &Connection,
    exchange: &Exchange,
    repository: &str,
    digest: &str,
) -> Result<Reply, rusqlite::Error> {
    if algorithm_of(digest).is_none() {
        return Ok(Code::DigestInvalid.reply("a digest is sha256:… or sha512:… here"));
    }
    let kind = exchange.parameter("artifactType");
    let last: i64 = exchange.parameter("last").and_then(|last| last.parse().ok()).unwrap_or(0);
    let query = "SELECT id, digest, length(bytes), artifact_type, annotations, media_type FROM manifests \
         WHERE who = ?1 AND repository = ?2 AND subject = ?3 AND (?4 IS NULL OR artifact_type = ?4 COLLATE NOCASE) \
         AND id > ?5 ORDER BY id LIMIT ?6";
    let mut statement = connection.prepare_cached(query)?;
    let names = params![exchange.who, repository, digest, kind, last, LISTED_MAX as i64 + 1];
    let mut rows = statement.query(names)?;
    let (mut manifests, mut bytes, mut next) = (Vec::new(), 0, None);
    let mut shown = last;
    while let Some(row) = rows.next()? {
        let annotations: String = row.get(4)?;
        bytes += annotations.len() + DESCRIPTOR_BYTES;
        let is_full = bytes > REFERRERS_BYTES_MAX || manifests.len() == LISTED_MAX;
        if is_full && !manifests.is_empty() {
            next = Some(shown);
            break;
        }
        shown = row.get(0)?;
        manifests.push(Referrer {
            media_type: row.get(5)?,
            digest: row.get(1)?,
            size: row.get(2)?,
            artifact_type: row.get(3)?,
            annotations: RawValue::from_string(annotations).ok(),
        });
    }
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
) -> Result<(), rusqlite::Error> {
    let subject = match reference.contains(':') {
        true => format!("{repository}@{reference}"),
        false => format!("{repository}:{reference}"),
    };
    let event = audit::Event {
        unix_s: exchange.unix_s,
        who: &exchange.who,
        action,
        subject: &subject,
        detail: digest,
        owner: &exchange.who,
    };
    audit::append(connection, &event)
}
