//! Passes to the pages and the API: made for a key that signs in over a session, good for its rows alone.
//!
//! Invariants:
//! - A secret is stored as its SHA-256 alone.
//! - A code opens one session of a browser, once, within two minutes.
//! - A statement that was signed for one hub or session is worth nothing at another.

use rusqlite::{Connection, OptionalExtension as _, params};
use tenure_crypto::{Context, SigningKey, sha256, verify};
use tenure_wire::hub::{Access, HubRefusal, SignIn, SignInStatement};
use tenure_wire::{PublicKey, VerifyingKey};

use crate::audit::{self, seconds};

const SIGN_IN: Context = Context::new("hub sign-in");
/// How long a code is good, in seconds.
const CODE_S: u64 = 2 * 60;
/// How long a browser stays signed in, in seconds.
pub(crate) const PAGE_S: u64 = 12 * 60 * 60;
const DAY_S: u64 = 24 * 60 * 60;
/// The longest that a token is good, in days.
const TOKEN_DAYS_MAX: u16 = 366;
/// The most passes of one key that are good at once.
const PASSES_MAX: i64 = 64;

/// Asks for a pass: the request to send to the hub with key `hub`, in a session of `session`.
pub fn request(key: &SigningKey, hub: PublicKey, session: PublicKey, access: Access) -> SignIn {
    let statement = statement(hub, session, access.clone());
    SignIn { key: key.verifying_key(), signature: key.sign(SIGN_IN, &statement), access }
}

fn statement(hub: PublicKey, session: PublicKey, access: Access) -> Vec<u8> {
    let statement = SignInStatement { hub, session, access };
    postcard::to_allocvec(&statement).unwrap_or_default()
}

/// Checks a request and makes its pass, in the transaction that is under way. Returns the secret.
///
/// # Errors
/// SQLite fails; or inside, why there is no pass.
pub(crate) fn sign_in(
    connection: &Connection,
    hub: PublicKey,
    session: PublicKey,
    request: &SignIn,
    owners: &[VerifyingKey],
    unix_s: u64,
) -> Result<Result<String, HubRefusal>, rusqlite::Error> {
    let who = request.key.to_string();
    if !owners.contains(&request.key) && !is_known(connection, &who)? {
        return Ok(Err(HubRefusal::UnknownKey));
    }
    let statement = statement(hub, session, request.access.clone());
    if verify(&request.key, SIGN_IN, &statement, &request.signature).is_err() {
        return Ok(Err(HubRefusal::Signature));
    }
    let (kind, name, lifetime_s) = match &request.access {
        Access::Page => ("code", String::new(), CODE_S),
        Access::Token { name, days } => {
            ("token", name.to_string(), u64::from(*days.min(&TOKEN_DAYS_MAX)) * DAY_S)
        }
    };
    forget_expired(connection, unix_s)?;
    let count = "SELECT count(*) FROM passes WHERE who = ?1";
    let count: i64 = connection.prepare_cached(count)?.query_row([&who], |row| row.get(0))?;
    if count >= PASSES_MAX {
        return Ok(Err(HubRefusal::TooMany));
    }
    let Some(secret) = make(connection, kind, &who, &name, unix_s, lifetime_s)? else {
        return Ok(Err(HubRefusal::Full));
    };
    note(
        connection,
        &who,
        if kind == "code" { "signed in" } else { "made a token" },
        &name,
        unix_s,
    )?;
    Ok(Ok(secret))
}

/// Exchanges a code for the secret of a browser's session; `None` if the code isn't good.
pub(crate) fn open_page(
    connection: &Connection,
    code: &str,
    unix_s: u64,
) -> Result<Option<String>, rusqlite::Error> {
    let take = "DELETE FROM passes WHERE secret_hash = ?1 AND kind = 'code' AND expires_unix_s > ?2 \
         RETURNING who";
    let who: Option<String> = connection
        .prepare_cached(take)?
        .query_row(params![hash(code), seconds(unix_s)], |row| row.get(0))
        .optional()?;
    match who {
        Some(who) => make(connection, "page", &who, "", unix_s, PAGE_S),
        None => Ok(None),
    }
}

/// The key for which `secret` is a pass of this `kind`.
pub(crate) fn holder(
    connection: &Connection,
    kind: &str,
    secret: &str,
    unix_s: u64,
) -> Result<Option<String>, rusqlite::Error> {
    let find =
        "SELECT who FROM passes WHERE secret_hash = ?1 AND kind = ?2 AND expires_unix_s > ?3";
    let pass = params![hash(secret), kind, seconds(unix_s)];
    connection.prepare_cached(find)?.query_row(pass, |row| row.get(0)).optional()
}

/// Ends the pass with `secret`.
pub(crate) fn sign_out(connection: &Connection, secret: &str) -> Result<(), rusqlite::Error> {
    let delete = "DELETE FROM passes WHERE secret_hash = ?1 AND kind = 'page'";
    connection.prepare_cached(delete)?.execute([hash(secret)]).map(drop)
}

/// Ends pass number `id` of `who`; returns whether there was one.
pub(crate) fn revoke(
    connection: &Connection,
    who: &str,
    id: i64,
    unix_s: u64,
) -> Result<bool, rusqlite::Error> {
    let delete = "DELETE FROM passes WHERE id = ?1 AND who = ?2 RETURNING name";
    let name: Option<String> = connection
        .prepare_cached(delete)?
        .query_row(params![id, who], |row| row.get(0))
        .optional()?;
    if let Some(name) = &name {
        note(connection, who, "revoked a pass", name, unix_s)?;
    }
    Ok(name.is_some())
}

/// Whether a key owns a device here, or a receipt names it.
fn is_known(connection: &Connection, who: &str) -> Result<bool, rusqlite::Error> {
    let known = "SELECT 1 FROM devices WHERE owner = ?1 UNION ALL SELECT 1 FROM receipts WHERE tenant = ?1 \
         UNION ALL SELECT 1 FROM receipts WHERE owner = ?1 LIMIT 1";
    connection.prepare_cached(known)?.exists([who])
}

fn forget_expired(connection: &Connection, unix_s: u64) -> Result<(), rusqlite::Error> {
    let delete = "DELETE FROM passes WHERE expires_unix_s <= ?1";
    connection.prepare_cached(delete)?.execute([seconds(unix_s)]).map(drop)
}

/// Makes a pass; `None` if the system has no randomness.
fn make(
    connection: &Connection,
    kind: &str,
    who: &str,
    name: &str,
    unix_s: u64,
    lifetime_s: u64,
) -> Result<Option<String>, rusqlite::Error> {
    let mut random = [0; 20];
    if getrandom::fill(&mut random).is_err() {
        return Ok(None);
    }
    let secret: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let insert = "INSERT INTO passes (secret_hash, kind, who, name, made_unix_s, expires_unix_s) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let expires = seconds(unix_s.saturating_add(lifetime_s));
    let row = params![hash(&secret), kind, who, name, seconds(unix_s), expires];
    connection.prepare_cached(insert)?.execute(row)?;
    Ok(Some(secret))
}

fn note(
    connection: &Connection,
    who: &str,
    action: &str,
    subject: &str,
    unix_s: u64,
) -> Result<(), rusqlite::Error> {
    let event = audit::Event { unix_s, who, action, subject, detail: "", owner: who };
    audit::append(connection, &event)
}

fn hash(secret: &str) -> [u8; 32] {
    sha256(&[secret.as_bytes()]).0
}
