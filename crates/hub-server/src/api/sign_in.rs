//! Passes to the pages and the API: made for a key that signs in over a session, good for its rows alone.
//!
//! Invariants:
//! - A secret is stored as its SHA-256 alone.
//! - A code opens one session of a browser, once, within two minutes.
//! - A statement that was signed for one hub or session is worth nothing at another.
//! - A pass opens the parts of the API that its scopes name; a session's pass is good in that session.

use tenure_crypto::{Context, SigningKey, sha256, verify};
use tenure_wire::hub::{Access, HubRefusal, Scope, SignIn, SignInStatement};
use tenure_wire::{PublicKey, VerifyingKey};

use crate::store::audit::{self, seconds};
use crate::store::sql::{self, Connection, OptionalExtension as _, params};

const SIGN_IN: Context = Context::new("hub sign-in");
/// How long a code is good, in seconds.
const CODE_S: u64 = 2 * 60;
/// How long a browser stays signed in, in seconds.
pub(crate) const PAGE_S: u64 = 12 * 60 * 60;
/// How long a pass for a session is good, in seconds.
const SESSION_S: u64 = 10 * 60;
/// The scopes of a key on an open hub that has no device there, and is named in receipts alone.
const SCOPES_OF_TENANT: [Scope; 3] = [Scope::Read, Scope::Receipts, Scope::Passes];
const DAY_S: u64 = 24 * 60 * 60;
/// The longest that a token is good, in days.
const TOKEN_DAYS_MAX: u16 = 366;
/// The most passes of one key that are good at once, those for sessions apart.
const PASSES_MAX: i64 = 64;
/// The most passes for sessions of one key; the oldest ends beyond that.
const SESSIONS_MAX: i64 = 16;

/// The holder of a pass, and how far it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    /// The key.
    pub(crate) who: String,
    /// The words for its scopes, with spaces between.
    scopes: String,
}

impl Holder {
    /// Whether the pass opens this part of the API.
    pub(crate) fn may(&self, scope: Scope) -> bool {
        self.scopes.split(' ').any(|word| word == scope.as_str())
    }
}

/// A pass that is made.
struct New<'a> {
    kind: &'static str,
    who: &'a str,
    /// A token's name, or the key of the session.
    name: &'a str,
    scopes: String,
    lifetime_s: u64,
}

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
/// The database fails; or inside, why there is no pass.
pub(crate) fn sign_in(
    connection: &Connection,
    hub: PublicKey,
    session: PublicKey,
    request: &SignIn,
    owners: &[VerifyingKey],
    unix_s: u64,
) -> Result<Result<String, HubRefusal>, sql::Error> {
    let who = request.key.to_string();
    let is_owner = owners.contains(&request.key) || has_device(connection, &who)?;
    if !is_owner && !is_in_receipts(connection, &who)? {
        return Ok(Err(HubRefusal::UnknownKey));
    }
    // On an open hub anybody's device names whom it likes as a tenant, which gives nobody room here for packages.
    let is_open = owners.is_empty();
    let may: &[Scope] = if is_owner || !is_open { &Scope::ALL } else { &SCOPES_OF_TENANT };
    let statement = statement(hub, session, request.access.clone());
    if verify(&request.key, SIGN_IN, &statement, &request.signature).is_err() {
        return Ok(Err(HubRefusal::Signature));
    }
    forget_expired(connection, unix_s)?;
    let session = session.to_string();
    let (all, day) = (in_words(may), DAY_S);
    let new = match &request.access {
        Access::Page => New { kind: "code", who: &who, name: "", scopes: all, lifetime_s: CODE_S },
        Access::Token { name, days, scopes } => {
            if scopes.iter().any(|scope| !may.contains(scope)) {
                return Ok(Err(HubRefusal::TenantAlone));
            }
            let lifetime_s = u64::from(*days.min(&TOKEN_DAYS_MAX)) * day;
            let (name, scopes) = (name.as_str(), in_words(scopes));
            New { kind: "token", who: &who, name, scopes, lifetime_s }
        }
        Access::Session => {
            make_room_for_session(connection, &who)?;
            New { kind: "session", who: &who, name: &session, scopes: all, lifetime_s: SESSION_S }
        }
    };
    let count = "SELECT count(*) FROM passes WHERE who = ?1 AND kind <> 'session'";
    let count: i64 = connection.statement(count).query_row([&who], |row| row.get(0))?;
    if count >= PASSES_MAX && new.kind != "session" {
        return Ok(Err(HubRefusal::TooMany));
    }
    let Some(secret) = make(connection, &new, unix_s)? else {
        return Ok(Err(HubRefusal::Full));
    };
    match new.kind {
        "code" => note(connection, &who, "signed in", "", unix_s)?,
        "token" => note(connection, &who, "made a token", new.name, unix_s)?,
        // Each command makes one; what it changes is noted.
        _ => {}
    }
    Ok(Ok(secret))
}

/// Exchanges a code for the secret of a browser's session; `None` if the code isn't good.
pub(crate) fn open_page(
    connection: &Connection,
    code: &str,
    unix_s: u64,
) -> Result<Option<String>, sql::Error> {
    let take = "DELETE FROM passes WHERE secret_hash = ?1 AND kind = 'code' AND expires_unix_s > ?2 \
         RETURNING who";
    let who: Option<String> = connection
        .statement(take)
        .query_row(params![hash(code), seconds(unix_s)], |row| row.get(0))
        .optional()?;
    match who {
        Some(who) => {
            let (who, name, scopes) = (who.as_str(), "", in_words(&Scope::ALL));
            make(connection, &New { kind: "page", who, name, scopes, lifetime_s: PAGE_S }, unix_s)
        }
        None => Ok(None),
    }
}

/// The holder of `secret`, if it is a pass of this `kind`.
pub(crate) fn holder(
    connection: &Connection,
    kind: &str,
    secret: &str,
    unix_s: u64,
) -> Result<Option<Holder>, sql::Error> {
    let find = "SELECT who, scopes FROM passes WHERE secret_hash = ?1 AND kind = ?2 AND expires_unix_s > ?3";
    find_holder(connection, find, params![hash(secret), kind, seconds(unix_s)])
}

/// A browser's session that is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Session {
    /// The number of its pass. Once the pass is over, another one may have it.
    pub(crate) id: i64,
    /// The key that is signed in.
    pub(crate) who: String,
    /// The hash of its secret, which no other one has.
    pub(crate) secret_hash: [u8; 32],
}

/// The browser's session whose secret this is, if it is open.
pub(crate) fn session_of(
    connection: &Connection,
    secret: &str,
    unix_s: u64,
) -> Result<Option<Session>, sql::Error> {
    find_session(connection, "secret_hash = ?1", params![hash(secret), seconds(unix_s)])
}

/// The browser's session with this number, if it is open.
pub(crate) fn session_by_id(
    connection: &Connection,
    id: i64,
    unix_s: u64,
) -> Result<Option<Session>, sql::Error> {
    find_session(connection, "id = ?1", params![id, seconds(unix_s)])
}

fn find_session(
    connection: &Connection,
    which: &'static str,
    pass: &[&dyn sql::ToSql],
) -> Result<Option<Session>, sql::Error> {
    let find = format!(
        "SELECT id, who, secret_hash FROM passes WHERE {which} AND kind = 'page' AND expires_unix_s > ?2"
    );
    let session = |row: &sql::Row<'_>| {
        Ok(Session { id: row.get(0)?, who: row.get(1)?, secret_hash: row.get(2)? })
    };
    connection.statement(&find).query_row(pass, session).optional()
}

/// The holder of `secret`, if it is a pass for the session of `session`.
pub(crate) fn holder_in_session(
    connection: &Connection,
    session: &PublicKey,
    secret: &str,
    unix_s: u64,
) -> Result<Option<Holder>, sql::Error> {
    let find = "SELECT who, scopes FROM passes WHERE secret_hash = ?1 AND kind = 'session' \
         AND name = ?2 AND expires_unix_s > ?3";
    let pass = params![hash(secret), session.to_string(), seconds(unix_s)];
    find_holder(connection, find, pass)
}

fn find_holder(
    connection: &Connection,
    find: &str,
    pass: &[&dyn sql::ToSql],
) -> Result<Option<Holder>, sql::Error> {
    let holder = |row: &sql::Row<'_>| Ok(Holder { who: row.get(0)?, scopes: row.get(1)? });
    connection.statement(find).query_row(pass, holder).optional()
}

/// Ends the pass with `secret`.
pub(crate) fn sign_out(connection: &Connection, secret: &str) -> Result<(), sql::Error> {
    let delete = "DELETE FROM passes WHERE secret_hash = ?1 AND kind = 'page'";
    connection.statement(delete).execute([hash(secret)]).map(drop)
}

/// Ends pass number `id` of `who`; returns whether there was one.
pub(crate) fn revoke(
    connection: &Connection,
    who: &str,
    id: i64,
    unix_s: u64,
) -> Result<bool, sql::Error> {
    let delete = "DELETE FROM passes WHERE id = ?1 AND who = ?2 RETURNING name";
    let name: Option<String> =
        connection.statement(delete).query_row(params![id, who], |row| row.get(0)).optional()?;
    if let Some(name) = &name {
        note(connection, who, "revoked a pass", name, unix_s)?;
    }
    Ok(name.is_some())
}

/// Whether a device of that owner is listed.
fn has_device(connection: &Connection, who: &str) -> Result<bool, sql::Error> {
    let query = "SELECT 1 FROM devices WHERE owner = ?1 LIMIT 1";
    connection.statement(query).exists([who])
}

/// Whether a receipt names that key, as its tenant or as the device's owner of then.
fn is_in_receipts(connection: &Connection, who: &str) -> Result<bool, sql::Error> {
    let query = "SELECT 1 FROM receipts WHERE tenant = ?1 UNION ALL \
         SELECT 1 FROM receipts WHERE owner = ?1 LIMIT 1";
    connection.statement(query).exists([who])
}

fn forget_expired(connection: &Connection, unix_s: u64) -> Result<(), sql::Error> {
    let delete = "DELETE FROM passes WHERE expires_unix_s <= ?1";
    connection.statement(delete).execute([seconds(unix_s)]).map(drop)
}

/// Ends the oldest passes for sessions of `who`, so that there is room for one more.
fn make_room_for_session(connection: &Connection, who: &str) -> Result<(), sql::Error> {
    let delete = "DELETE FROM passes WHERE id IN (SELECT id FROM passes WHERE who = ?1 AND kind = 'session' \
         ORDER BY id DESC LIMIT 1000000 OFFSET ?2)";
    connection.statement(delete).execute(params![who, SESSIONS_MAX - 1]).map(drop)
}

/// Scopes as they are stored.
fn in_words(scopes: &[Scope]) -> String {
    let mut scopes = scopes.to_vec();
    scopes.sort_unstable();
    scopes.dedup();
    scopes.into_iter().map(Scope::as_str).collect::<Vec<_>>().join(" ")
}

/// Makes a pass; `None` if the system has no randomness.
fn make(connection: &Connection, new: &New<'_>, unix_s: u64) -> Result<Option<String>, sql::Error> {
    let mut random = [0; 20];
    if getrandom::fill(&mut random).is_err() {
        return Ok(None);
    }
    let secret = data_encoding::HEXLOWER.encode(&random);
    let insert = "INSERT INTO passes (secret_hash, kind, who, name, scopes, made_unix_s, expires_unix_s) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let New { kind, who, name, scopes, lifetime_s } = new;
    let expires = seconds(unix_s.saturating_add(*lifetime_s));
    let row = params![hash(&secret), kind, who, name, scopes, seconds(unix_s), expires];
    connection.statement(insert).execute(row)?;
    Ok(Some(secret))
}

fn note(
    connection: &Connection,
    who: &str,
    action: &str,
    subject: &str,
    unix_s: u64,
) -> Result<(), sql::Error> {
    let event = audit::Event { unix_s, who, action, subject, detail: "", owner: who };
    audit::append(connection, &event)
}

fn hash(secret: &str) -> [u8; 32] {
    sha256(&[secret.as_bytes()]).0
}
