//! Uploads: a blob that comes in one request, or in parts that can be resumed.

use http::{StatusCode, header};
use tenure_http_listener::range::number;

use super::{BLOB_BYTES_MAX, Code, algorithm_of, blobs};
use crate::exchange::{Exchange, Reply};
use crate::store::audit::seconds;
use crate::store::forgetting::{self, Over};
use crate::store::sql::{self, Connection, Next, OptionalExtension as _, params};
use crate::store::steady;

/// The most uploads of one key that are under way.
const UPLOADS_OF_KEY_MAX: i64 = 8;
/// The most parts of an upload.
const PARTS_MAX: i64 = 1024;
/// How long an upload may take, in seconds.
const UPLOAD_S: i64 = 60 * 60;
const OVER: Over<'_> =
    Over { table: "uploads", owner: "who", condition: "began_unix_s < ?1", one: "upload" };

/// `POST …/blobs/uploads/`: begins an upload, takes the blob at once, or finds that it is there.
pub(super) fn begin(
    connection: &Connection,
    exchange: &Exchange,
    repository: &str,
) -> Result<Reply, sql::Error> {
    if let Some(digest) = exchange.parameter("digest") {
        return blobs::store(connection, exchange, repository, digest, &exchange.body);
    }
    if let Some(digest) =
        exchange.parameter("mount").filter(|digest| algorithm_of(digest).is_some())
        && let Some(bytes) = blobs::bytes(connection, &exchange.who, digest)?
    {
        return blobs::store(connection, exchange, repository, digest, &bytes);
    }
    let over = steady::unix_s(connection, seconds(exchange.unix_s))? - UPLOAD_S;
    forgetting::forget(connection, &OVER, params![over], exchange.unix_s)?;
    blobs::sweep(connection, exchange)?;
    let count = "SELECT count(*) FROM uploads WHERE who = ?1";
    let count: i64 = connection.statement(count).query_row([&exchange.who], |row| row.get(0))?;
    if count >= UPLOADS_OF_KEY_MAX {
        return Ok(Code::TooManyRequests.reply("end or cancel an upload first"));
    }
    let mut random = [0; 16];
    if getrandom::fill(&mut random).is_err() {
        return Ok(Reply::empty(StatusCode::SERVICE_UNAVAILABLE));
    }
    let id = data_encoding::HEXLOWER.encode(&random);
    let insert = "INSERT INTO uploads (id, who, repository, began_unix_s) VALUES (?1, ?2, ?3, ?4)";
    let row = params![id, exchange.who, repository, seconds(exchange.unix_s)];
    connection.statement(insert).execute(row)?;
    Ok(at(StatusCode::ACCEPTED, repository, &id, 0))
}

/// `GET …/blobs/uploads/ID`: how far it is.
pub(super) fn show(
    connection: &Connection,
    exchange: &Exchange,
    repository: &str,
    id: &str,
) -> Result<Reply, sql::Error> {
    Ok(match length(connection, exchange, repository, id)? {
        Some(length) => at(StatusCode::NO_CONTENT, repository, id, length),
        None => unknown(),
    })
}

/// `PATCH …/blobs/uploads/ID`: the next part.
pub(super) fn append(
    connection: &Connection,
    exchange: &Exchange,
    repository: &str,
    id: &str,
) -> Result<Reply, sql::Error> {
    let Some(length) = length(connection, exchange, repository, id)? else { return Ok(unknown()) };
    if let Some(refusal) = out_of_order(exchange, repository, id, length) {
        return Ok(refusal);
    }
    let sum = length + exchange.body.len();
    if sum > BLOB_BYTES_MAX {
        delete(connection, id)?;
        return Ok(blobs::too_long());
    }
    if !exchange.body.is_empty() {
        let count = "SELECT count(*) FROM upload_parts WHERE upload = ?1";
        let count: i64 = connection.statement(count).query_row([id], |row| row.get(0))?;
        if count >= PARTS_MAX {
            return Ok(Code::TooManyRequests.reply("an upload has 1,024 parts at most"));
        }
        let insert = "INSERT INTO upload_parts (upload, \"offset\", bytes) VALUES (?1, ?2, ?3)";
        let part = params![id, length as i64, exchange.body];
        connection.statement(insert).execute(part)?;
    }
    Ok(at(StatusCode::ACCEPTED, repository, id, sum))
}

/// `PUT …/blobs/uploads/ID?digest=…`: the last part, if any, and the digest of the whole.
pub(super) fn finish(
    connection: &Connection,
    exchange: &Exchange,
    repository: &str,
    id: &str,
) -> Result<Reply, sql::Error> {
    let Some(length) = length(connection, exchange, repository, id)? else { return Ok(unknown()) };
    if let Some(refusal) = out_of_order(exchange, repository, id, length) {
        return Ok(refusal);
    }
    if length + exchange.body.len() > BLOB_BYTES_MAX {
        delete(connection, id)?;
        return Ok(blobs::too_long());
    }
    let parts = "SELECT bytes FROM upload_parts WHERE upload = ?1 ORDER BY \"offset\"";
    let mut bytes = Vec::with_capacity(length + exchange.body.len());
    {
        let statement = connection.statement(parts);
        statement.each([id], |row| {
            bytes.extend(row.get::<Vec<u8>>(0)?);
            Ok(Next::Row)
        })?;
    }
    bytes.extend_from_slice(&exchange.body);
    let digest = exchange.parameter("digest").unwrap_or("");
    let reply = blobs::store(connection, exchange, repository, digest, &bytes)?;
    delete(connection, id)?;
    Ok(reply)
}

/// `DELETE …/blobs/uploads/ID`.
pub(super) fn cancel(
    connection: &Connection,
    exchange: &Exchange,
    repository: &str,
    id: &str,
) -> Result<Reply, sql::Error> {
    if length(connection, exchange, repository, id)?.is_none() {
        return Ok(unknown());
    }
    delete(connection, id)?;
    Ok(Reply::empty(StatusCode::NO_CONTENT))
}

/// How many bytes of an upload of this key are there.
fn length(
    connection: &Connection,
    exchange: &Exchange,
    repository: &str,
    id: &str,
) -> Result<Option<usize>, sql::Error> {
    let query = "SELECT (SELECT coalesce(max(\"offset\" + length(bytes)), 0) FROM upload_parts WHERE upload = u.id) \
         FROM uploads u WHERE u.id = ?1 AND u.who = ?2 AND u.repository = ?3";
    let statement = connection.statement(query);
    let names = [id, &exchange.who, repository];
    let length: Option<i64> = statement.query_row(names, |row| row.get(0)).optional()?;
    Ok(length.and_then(|length| usize::try_from(length).ok()))
}

fn delete(connection: &Connection, id: &str) -> Result<(), sql::Error> {
    connection.statement("DELETE FROM uploads WHERE id = ?1").execute([id]).map(drop)
}

/// The answer to a part that says it doesn't begin where the `length` bytes before it end; the upload stays as it is.
fn out_of_order(exchange: &Exchange, repository: &str, id: &str, length: usize) -> Option<Reply> {
    let range = exchange.header(&header::CONTENT_RANGE)?;
    if is_next(range, length, exchange.body.len()) {
        return None;
    }
    let reply = Code::BlobUploadInvalid.reply("the part doesn't begin where the last one ended");
    Some(
        reply
            .with(header::RANGE, range_of(length))
            .with(header::LOCATION, format!("/v2/{repository}/blobs/uploads/{id}")),
    )
}

/// Whether a `Content-Range` is `bytes` bytes behind the first `length`: `FIRST-LAST`, as the distribution
/// spec has it, or `bytes FIRST-LAST/LENGTH`, as RFC 9110 14.4 does.
fn is_next(range: &str, length: usize, bytes: usize) -> bool {
    let range = match range.split_once(' ') {
        Some((unit, range)) if unit.eq_ignore_ascii_case("bytes") => range.trim_start(),
        _ => range,
    };
    let range = range.split_once('/').map_or(range, |(range, _)| range);
    let Some((first, last)) = range.split_once('-') else { return false };
    let (Some(first), Some(last)) = (number(first), number(last)) else { return false };
    first == length && last.checked_sub(first).and_then(|most| most.checked_add(1)) == Some(bytes)
}

fn at(status: StatusCode, repository: &str, id: &str, length: usize) -> Reply {
    Reply::empty(status)
        .with(header::LOCATION, format!("/v2/{repository}/blobs/uploads/{id}"))
        .with(header::RANGE, range_of(length))
}

fn range_of(length: usize) -> String {
    format!("0-{}", length.saturating_sub(1))
}

fn unknown() -> Reply {
    Code::BlobUploadUnknown.reply("there is no such upload, or it took more than an hour")
}
