//! Blobs: taken whole, fetched whole or in parts.

use http::{StatusCode, header};
use tenure_http_listener::range::{self, Part};
use tenure_package::PACKAGE_BYTES_MAX;

use super::{CONTENT_DIGEST, Code, has_digest};
use crate::exchange::{Exchange, Reply};
use crate::store::audit::seconds;
use crate::store::forgetting::{self, Over};
use crate::store::sql::{self, Connection, OptionalExtension as _, params};
use crate::store::steady;

/// The longest blob: a package of the greatest length.
pub(crate) const BLOB_BYTES_MAX: usize = PACKAGE_BYTES_MAX;
/// The most bytes of blobs and manifests of one key.
const BYTES_OF_KEY_MAX: i64 = 256 << 20;
/// The most blobs of one key.
const BLOBS_OF_KEY_MAX: i64 = 20_000;
/// How long a blob that no manifest names is kept, in seconds.
const LOOSE_S: i64 = 24 * 60 * 60;
const NAMED_BY_NONE: &str = "NOT EXISTS (SELECT 1 FROM manifest_blobs b JOIN manifests m ON m.id = b.manifest \
     WHERE b.digest = blobs.digest AND m.who = ?1)";
/// How long after a sweep of a key's blobs the next one may follow, in seconds.
const SWEPT_S: u64 = 60 * 60;

/// Stores `bytes` if they have the digest `digest`.
pub(super) fn store(
    connection: &Connection,
    exchange: &Exchange,
    repository: &str,
    digest: &str,
    bytes: &[u8],
) -> Result<Reply, sql::Error> {
    if bytes.len() > BLOB_BYTES_MAX {
        return Ok(too_long());
    }
    if !has_digest(bytes, digest) {
        let text = "the bytes don't have that digest; it is sha256:… or sha512:…";
        return Ok(Code::DigestInvalid.reply(text));
    }
    if size(connection, &exchange.who, digest)?.is_none() {
        if !has_room(connection, &exchange.who, bytes.len())? {
            sweep(connection, exchange)?;
            if !has_room(connection, &exchange.who, bytes.len())? {
                return Ok(no_room());
            }
        }
        let insert = "INSERT INTO blobs (who, digest, size, taken_unix_s, bytes) \
             VALUES (?1, ?2, ?3, ?4, ?5)";
        let row =
            params![exchange.who, digest, bytes.len() as i64, seconds(exchange.unix_s), bytes];
        connection.statement(insert).execute(row)?;
    }
    Ok(Reply::empty(StatusCode::CREATED)
        .with(header::LOCATION, format!("/v2/{repository}/blobs/{digest}"))
        .with(CONTENT_DIGEST, digest))
}

/// The answer to a blob that is longer than any may be.
pub(super) fn too_long() -> Reply {
    Code::SizeInvalid.reply(&format!("a blob has {BLOB_BYTES_MAX} bytes at most"))
}

/// Whether a key may store another blob of `length` bytes.
fn has_room(connection: &Connection, who: &str, length: usize) -> Result<bool, sql::Error> {
    let count = "SELECT count(*) FROM blobs WHERE who = ?1";
    let count: i64 = connection.statement(count).query_row([who], |row| row.get(0))?;
    Ok(count < BLOBS_OF_KEY_MAX && has_bytes(connection, who, length)?)
}

/// Whether the blobs and manifests of a key may take `length` bytes more.
pub(super) fn has_bytes(
    connection: &Connection,
    who: &str,
    length: usize,
) -> Result<bool, sql::Error> {
    let sum = "SELECT CAST((SELECT coalesce(sum(size), 0) FROM blobs WHERE who = ?1) \
         + (SELECT coalesce(sum(size), 0) FROM manifests WHERE who = ?1) AS BIGINT)";
    let sum: i64 = connection.statement(sum).query_row([who], |row| row.get(0))?;
    Ok(sum.saturating_add(length as i64) <= BYTES_OF_KEY_MAX)
}

/// The answer if they may not.
pub(super) fn no_room() -> Reply {
    Code::Denied.reply("your packages take all the room that a key has here")
}

/// The length of a key's blob, if it is there.
pub(super) fn size(
    connection: &Connection,
    who: &str,
    digest: &str,
) -> Result<Option<i64>, sql::Error> {
    let query = "SELECT size FROM blobs WHERE who = ?1 AND digest = ?2";
    connection.statement(query).query_row([who, digest], |row| row.get(0)).optional()
}

/// `GET …/blobs/DIGEST`, or a part of it.
pub(super) fn fetch(
    connection: &Connection,
    exchange: &Exchange,
    digest: &str,
) -> Result<Reply, sql::Error> {
    let Some(bytes) = bytes(connection, &exchange.who, digest)? else {
        return Ok(Code::BlobUnknown.reply("there is no such blob"));
    };
    let found = |status| {
        Reply::empty(status)
            .with(header::CONTENT_TYPE, "application/octet-stream")
            .with(header::ACCEPT_RANGES, "bytes")
            .with(CONTENT_DIGEST, digest)
    };
    let length = bytes.len();
    Ok(match range::part(&exchange.method, &exchange.headers, length, None) {
        // The answer to HEAD says it, too, where there are no bytes (distribution spec 1.1, "Checking if content
        // exists").
        Part::Whole => Reply { body: bytes, ..found(StatusCode::OK) }
            .with(header::CONTENT_LENGTH, length.to_string()),
        Part::Bytes { first, last } => {
            let body = bytes[first..=last].to_vec();
            Reply { body, ..found(StatusCode::PARTIAL_CONTENT) }
                .with(header::CONTENT_RANGE, format!("bytes {first}-{last}/{length}"))
        }
        Part::Behind => Code::RangeInvalid
            .reply("the blob has no such part")
            .with(header::CONTENT_RANGE, format!("bytes */{length}")),
    })
}

/// The bytes of a key's blob.
pub(super) fn bytes(
    connection: &Connection,
    who: &str,
    digest: &str,
) -> Result<Option<Vec<u8>>, sql::Error> {
    let query = "SELECT bytes FROM blobs WHERE who = ?1 AND digest = ?2";
    connection.statement(query).query_row([who, digest], |row| row.get(0)).optional()
}

/// `DELETE …/blobs/DIGEST`, if no manifest names it.
pub(super) fn delete(
    connection: &Connection,
    exchange: &Exchange,
    digest: &str,
) -> Result<Reply, sql::Error> {
    if size(connection, &exchange.who, digest)?.is_none() {
        return Ok(Code::BlobUnknown.reply("there is no such blob"));
    }
    if !delete_loose(connection, &exchange.who, digest)? {
        return Ok(Code::Denied.reply("a manifest names this blob; delete that first"));
    }
    Ok(Reply::empty(StatusCode::ACCEPTED))
}

/// Deletes the blobs of a key that no manifest has named for a day. It looks at each blob of the key, so a key
/// has one sweep an hour, however often it asks.
pub(super) fn sweep(connection: &Connection, exchange: &Exchange) -> Result<(), sql::Error> {
    let due = "INSERT INTO sweeps (who, swept_unix_s) VALUES (?1, ?2) \
         ON CONFLICT (who) DO UPDATE SET swept_unix_s = ?2 WHERE sweeps.swept_unix_s NOT BETWEEN ?3 AND ?2";
    let recent = exchange.unix_s.saturating_sub(SWEPT_S);
    let row = params![exchange.who, seconds(exchange.unix_s), seconds(recent)];
    if connection.statement(due).execute(row)? == 0 {
        return Ok(());
    }
    let before = steady::unix_s(connection, seconds(exchange.unix_s))? - LOOSE_S;
    let condition = format!("who = ?1 AND taken_unix_s < ?2 AND {NAMED_BY_NONE}");
    let over = Over { table: "blobs", owner: "who", condition: &condition, one: "blob" };
    forgetting::forget(connection, &over, params![exchange.who, before], exchange.unix_s)
}

/// Deletes the blob of `who` with `digest`, if no manifest names it; returns whether it did.
pub(super) fn delete_loose(
    connection: &Connection,
    who: &str,
    digest: &str,
) -> Result<bool, sql::Error> {
    let delete = format!("DELETE FROM blobs WHERE who = ?1 AND digest = ?2 AND {NAMED_BY_NONE}");
    Ok(connection.statement(&delete).execute([who, digest])? > 0)
}
