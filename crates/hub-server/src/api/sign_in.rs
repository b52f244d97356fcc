//! Passes to the pages and the API: made for a key that signs in over a session, good for its rows alone, or for a person of
//! that key as far as the role goes (`people`).
//!
//! Invariants:
//! - A secret is stored as its SHA-256 alone.
//! - A code opens one session of a browser, once, within two minutes.
//! - A statement that was signed for one hub or session is worth nothing at another.
//! - A pass opens the parts of the API that its scopes name; a session's pass is good in that session.
//! - A person's pass is over with the person: it is found together with its row, or not at all.
//! - Each use of a pass looks at the owners in force, and each act at whether the pass still is one ([`Holder::is_good`]).

use tenure_crypto::{Context, SigningKey, verify};
use tenure_wire::PublicKey;
use tenure_wire::hub::{Access, HubRefusal, Scope, SignIn, SignInStatement};

use super::people::{self, Person};
use super::secrets::{hash, secret};
use super::standing::{Standing, standing, standing_of_pass};
use crate::exchange::{Exchange, no_room};
use crate::names::TOKEN;
use crate::owners::Owners;
use crate::running::Running;
use crate::running::acts::Actor;
use crate::store::audit::{self, seconds};
use crate::store::forgetting::{self, Over};
use crate::store::sql::{self, Connection, OptionalExtension as _, params};
use crate::store::steady;

const SIGN_IN: Context = Context::new("hub sign-in");
/// How long a code is good, in seconds.
const CODE_S: u64 = 2 * 60;
/// How long a browser stays signed in, in seconds.
pub(crate) const PAGE_S: u64 = 12 * 60 * 60;
/// How long a pass for a session is good, in seconds.
const SESSION_S: u64 = 10 * 60;
const DAY_S: u64 = 24 * 60 * 60;
/// The longest that a token is good, in days.
const TOKEN_DAYS_MAX: u16 = 366;
/// The most passes of one key that are good at once, those for sessions apart.
const PASSES_MAX: i64 = 64;
/// The same of one person of a key.
const PASSES_OF_PERSON_MAX: i64 = 16;
/// The most passes for sessions of one key, or of one person; the oldest ends beyond that.
const SESSIONS_MAX: i64 = 16;
const HOUR_S: u64 = 60 * 60;
/// The most tokens that are forgotten at once.
const FORGOTTEN_AT_ONCE: i64 = 64;

/// The holder of a pass, and how far it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    /// The key.
    pub(crate) who: String,
    /// The words for its scopes, with spaces between.
    scopes: String,
    /// The person of that key, where it isn't the key itself.
    person: Option<Person>,
    /// The name of the token, where it is one.
    token: Option<String>,
    /// The hash of its secret, which no other one has.
    secret_hash: [u8; 32],
    /// The beginning of the hour of its last use, in seconds since 1970 UTC; `None` for passes of earlier versions.
    seen_unix_s: Option<i64>,
}

/// Where a browser is, as far as it says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Whence {
    /// Its kind and its system's.
    pub(crate) agent: String,
    /// The network.
    pub(crate) network: String,
}

/// Whose share of what is bounded a request takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Taker {
    /// A person of a key.
    Person(i64),
    /// A pass of the key itself.
    Pass([u8; 32]),
}

/// Who signs in, and how far that goes.
struct Asker {
    /// The key whose rows it sees.
    who: String,
    may: &'static [Scope],
    person: Option<Person>,
}

impl Holder {
    /// Whether the pass opens this part of the API.
    pub(crate) fn may(&self, scope: Scope) -> bool {
        // Passes of before there were `alarms` acknowledged by `rollouts`.
        let is_implied = scope == Scope::Alarms && has_word(&self.scopes, Scope::Rollouts);
        has_word(&self.scopes, scope) || is_implied
    }

    /// The scopes of that list that the pass doesn't open.
    pub(super) fn lacks(&self, scopes: &[Scope]) -> Vec<Scope> {
        scopes.iter().copied().filter(|scope| !self.may(*scope)).collect()
    }

    /// The name of the person; empty for the key itself.
    pub(crate) fn person(&self) -> &str {
        name_of(self.person.as_ref())
    }

    /// Who acts, as the audit log has it: the person, the token or both; empty for the key itself. No person's name reads like
    /// a token's (`names`).
    pub(crate) fn by(&self) -> String {
        let token = self.token.as_ref().map(|name| format!("{TOKEN}{name}"));
        let person = self.person.as_ref().map(|person| person.name.clone());
        person.into_iter().chain(token).collect::<Vec<_>>().join(", ")
    }

    /// By whom a change of this pass is made in the key's name.
    pub(super) fn actor(&self) -> Actor {
        match (&self.person, &self.token) {
            (Some(person), _) => Actor::Person(person.id),
            (None, Some(_)) => Actor::Tokens,
            (None, None) => Actor::Key,
        }
    }

    /// The number of the person; `None` for the key itself.
    pub(crate) fn person_id(&self) -> Option<i64> {
        self.person.as_ref().map(|person| person.id)
    }

    /// Whose share of what is bounded a request of this pass takes: that of the person, or of the pass itself.
    pub(crate) fn taker(&self) -> Taker {
        match &self.person {
            Some(person) => Taker::Person(person.id),
            None => Taker::Pass(self.secret_hash),
        }
    }

    /// The person who sees the own passes and not those of the key and of others; `None` for who sees all of them.
    pub(crate) fn sees_alone(&self) -> Option<i64> {
        let person = self.person.as_ref().filter(|_| !self.may(Scope::People));
        person.map(|person| person.id)
    }

    /// Whether the pass still is one, in the transaction that is under way: it may have been ended while the request was on its
    /// way.
    ///
    /// # Errors
    /// The database fails.
    pub(crate) fn is_good(&self, connection: &Connection, unix_s: u64) -> Result<bool, sql::Error> {
        let find = "SELECT 1 FROM passes WHERE secret_hash = ?1 AND expires_unix_s > ?2";
        connection.statement(find).exists(params![self.secret_hash, seconds(unix_s)])
    }

    /// Whether its last use was in an earlier hour.
    pub(crate) fn was_used_earlier(&self, unix_s: u64) -> bool {
        self.seen_unix_s.is_none_or(|seen| seen < hour_of(unix_s))
    }
}

/// The holder's columns. A pass of a person without a row is none.
const HOLDER: &str = "SELECT s.who, s.scopes, s.person, p.name, s.secret_hash, s.seen_unix_s, s.kind, s.name FROM passes s \
     LEFT JOIN people p ON p.id = s.person WHERE (s.person IS NULL OR p.id IS NOT NULL)";

/// A pass that is made.
struct New<'a> {
    kind: &'static str,
    who: &'a str,
    person: Option<i64>,
    /// A token's name, or the key of the session.
    name: &'a str,
    scopes: &'a str,
    lifetime_s: u64,
    whence: &'a Whence,
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
    running: &Running,
    unix_s: u64,
) -> Result<Result<String, HubRefusal>, sql::Error> {
    // Before anything else is said: who knows a key alone learns nothing of it here.
    let statement = statement(hub, session, request.access.clone());
    if verify(&request.key, SIGN_IN, &statement, &request.signature).is_err() {
        return Ok(Err(HubRefusal::Signature));
    }
    let asker = match asker(connection, request, &running.owners(), unix_s)? {
        Ok(asker) => asker,
        Err(refusal) => return Ok(Err(refusal)),
    };
    forget_expired(connection, unix_s)?;
    let session = session.to_string();
    let (who, person) = (asker.who.as_str(), asker.person.as_ref().map(|person| person.id));
    let actor = person.map_or(Actor::Key, Actor::Person);
    let (kind, name, scopes, lifetime_s) = match &request.access {
        Access::Page | Access::Invitation { .. } => ("code", "", asker.may, CODE_S),
        Access::Token { name, days, scopes } => {
            if scopes.iter().any(|scope| !asker.may.contains(scope)) {
                let is_person = asker.person.is_some();
                return Ok(Err(if is_person { HubRefusal::Role } else { HubRefusal::TenantAlone }));
            }
            let lifetime_s = u64::from(*days.min(&TOKEN_DAYS_MAX)) * DAY_S;
            ("token", name.as_str(), scopes.as_slice(), lifetime_s)
        }
        Access::Session => {
            make_room_for_session(connection, who, person)?;
            ("session", session.as_str(), asker.may, SESSION_S)
        }
    };
    if kind != "session" && has_many(connection, (who, person), unix_s)? {
        return Ok(Err(HubRefusal::TooMany));
    }
    // Whoever only signs in leaves nothing behind that grows; so an owner does, too, to put somebody out.
    if matches!(request.access, Access::Token { .. } | Access::Invitation { .. }) {
        if no_room(connection)?.is_some() {
            return Ok(Err(HubRefusal::Full));
        }
        if !running.acts().take(who, actor, unix_s) {
            return Ok(Err(HubRefusal::TooMany));
        }
    }
    if let Access::Invitation { code } = &request.access {
        let key = request.key.to_string();
        if !people::join(connection, code, &key, unix_s)? {
            return Ok(Err(HubRefusal::Invitation));
        }
        note(connection, &asker, "opened an invitation", &key, unix_s)?;
    }
    let (scopes, whence) = (in_words(scopes), Whence::default());
    let new = New { kind, who, person, name, scopes: &scopes, lifetime_s, whence: &whence };
    let Some(secret) = make(connection, &new, unix_s)? else {
        return Ok(Err(HubRefusal::Full));
    };
    match kind {
        "code" if running.acts().is_first_sign_in(who, actor, unix_s) => {
            note(connection, &asker, "signed in", "", unix_s)?;
        }
        "token" => note(connection, &asker, "made a token", name, unix_s)?,
        // A sign-in more of this day; or a command's, of which each makes one, and what it changes is noted.
        _ => {}
    }
    Ok(Ok(secret))
}

/// Who the holder of a key is here, whose signature was checked: the person whose invitation it opens, a person, an owner, or a
/// tenant.
///
/// # Errors
/// The database fails; or inside, why it is nobody.
fn asker(
    connection: &Connection,
    request: &SignIn,
    owners: &Owners,
    unix_s: u64,
) -> Result<Result<Asker, HubRefusal>, sql::Error> {
    let who = request.key.to_string();
    // Whose key is an owner no longer has no people either.
    let is_in_force = |member: &people::Member| owners.admit(&member.owner);
    let known = people::of_key(connection, &who)?.filter(is_in_force);
    let standing = standing(connection, owners, &who)?;
    let is_owner = standing == Some(Standing::Owner);
    if let Access::Invitation { code } = &request.access {
        let invited = people::invited(connection, code, unix_s)?.filter(is_in_force);
        return Ok(match invited {
            None => Err(HubRefusal::Invitation),
            Some(_) if known.is_some() || is_owner => Err(HubRefusal::KnownKey),
            Some(member) => Ok(member.into()),
        });
    }
    if let Some(member) = known {
        return Ok(Ok(member.into()));
    }
    let asker = |standing: Standing| Asker { who, may: standing.scopes(), person: None };
    Ok(standing.map(asker).ok_or(HubRefusal::UnknownKey))
}

impl From<people::Member> for Asker {
    fn from(member: people::Member) -> Self {
        let people::Member { owner, person, role } = member;
        Self { who: owner, may: role.scopes(), person: Some(person) }
    }
}

/// Exchanges a code for the secret of a browser's session, which goes as far as the code; `None` if the code isn't good.
pub(crate) fn open_page(
    connection: &Connection,
    code: &str,
    whence: &Whence,
    unix_s: u64,
) -> Result<Option<String>, sql::Error> {
    let take = "DELETE FROM passes WHERE secret_hash = ?1 AND kind = 'code' AND expires_unix_s > ?2 \
         RETURNING who, scopes, person";
    let read = |row: &sql::Row<'_>| {
        Ok((row.get::<String>(0)?, row.get::<String>(1)?, row.get::<Option<i64>>(2)?))
    };
    let taken = connection.statement(take);
    let taken = taken.query_row(params![hash(code), seconds(unix_s)], read).optional()?;
    match taken {
        Some((who, scopes, person)) => {
            let (kind, name, lifetime_s) = ("page", "", PAGE_S);
            let (who, scopes) = (who.as_str(), scopes.as_str());
            let new = New { kind, who, person, name, scopes, lifetime_s, whence };
            make(connection, &new, unix_s)
        }
        None => Ok(None),
    }
}

/// The holder of `secret`, if it is a pass of this `kind`.
pub(crate) fn holder(
    connection: &Connection,
    kind: &str,
    secret: &str,
    owners: &Owners,
    unix_s: u64,
) -> Result<Option<Holder>, sql::Error> {
    let find = format!("{HOLDER} AND s.secret_hash = ?1 AND s.kind = ?2 AND s.expires_unix_s > ?3");
    find_holder(connection, owners, &find, params![hash(secret), kind, seconds(unix_s)])
}

/// A browser's session that is open, of the key itself or of a person who may do all that the key may here.
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
    owners: &Owners,
    unix_s: u64,
) -> Result<Option<Session>, sql::Error> {
    find_session(connection, owners, "s.secret_hash = ?1", params![hash(secret), seconds(unix_s)])
}

/// The browser's session with this number, if it is open.
pub(crate) fn session_by_id(
    connection: &Connection,
    id: i64,
    owners: &Owners,
    unix_s: u64,
) -> Result<Option<Session>, sql::Error> {
    find_session(connection, owners, "s.id = ?1", params![id, seconds(unix_s)])
}

fn find_session(
    connection: &Connection,
    owners: &Owners,
    which: &'static str,
    pass: &[&dyn sql::ToSql],
) -> Result<Option<Session>, sql::Error> {
    let find = format!(
        "SELECT s.id, s.who, s.secret_hash, s.person, s.scopes FROM passes s WHERE {which} \
         AND s.kind = 'page' AND s.expires_unix_s > ?2"
    );
    let session = |row: &sql::Row<'_>| {
        let (person, scopes): (Option<i64>, String) = (row.get(3)?, row.get(4)?);
        let is_all = person.is_none() || has_word(&scopes, Scope::People);
        let session = Session { id: row.get(0)?, who: row.get(1)?, secret_hash: row.get(2)? };
        Ok(is_all.then_some((session, person.is_some())))
    };
    let found = connection.statement(&find).query_row(pass, session).optional()?.flatten();
    let Some((session, is_person)) = found else { return Ok(None) };
    Ok(match standing_of_pass(connection, owners, &session.who)? {
        Some(Standing::Owner) => Some(session),
        Some(Standing::Tenant) => (!is_person).then_some(session),
        None => None,
    })
}

/// The holder of `secret`, if it is a pass for the session of `session`.
pub(crate) fn holder_in_session(
    connection: &Connection,
    session: &PublicKey,
    secret: &str,
    owners: &Owners,
    unix_s: u64,
) -> Result<Option<Holder>, sql::Error> {
    let find = format!(
        "{HOLDER} AND s.secret_hash = ?1 AND s.kind = 'session' AND s.name = ?2 AND s.expires_unix_s > ?3"
    );
    let pass = params![hash(secret), session.to_string(), seconds(unix_s)];
    find_holder(connection, owners, &find, pass)
}

/// The holder that a statement finds, as far as its key goes by the owners in force.
fn find_holder(
    connection: &Connection,
    owners: &Owners,
    find: &str,
    pass: &[&dyn sql::ToSql],
) -> Result<Option<Holder>, sql::Error> {
    let holder = |row: &sql::Row<'_>| {
        let (id, name): (Option<i64>, Option<String>) = (row.get(2)?, row.get(3)?);
        let (kind, token): (String, String) = (row.get(6)?, row.get(7)?);
        Ok(Holder {
            who: row.get(0)?,
            scopes: row.get(1)?,
            person: id.zip(name).map(|(id, name)| Person { id, name }),
            token: (kind == "token").then_some(token),
            secret_hash: row.get(4)?,
            seen_unix_s: row.get(5)?,
        })
    };
    let found: Option<Holder> = connection.statement(find).query_row(pass, holder).optional()?;
    let Some(mut holder) = found else { return Ok(None) };
    match standing_of_pass(connection, owners, &holder.who)? {
        Some(Standing::Owner) => return Ok(Some(holder)),
        Some(Standing::Tenant) if holder.person.is_none() => {}
        _ => return Ok(None),
    }
    let left = Standing::Tenant.scopes().iter().copied().filter(|scope| holder.may(*scope));
    holder.scopes = in_words(&left.collect::<Vec<_>>());
    Ok(Some(holder))
}

/// Notes that a pass was used in this hour.
pub(crate) fn note_use(
    connection: &Connection,
    holder: &Holder,
    unix_s: u64,
) -> Result<(), sql::Error> {
    let update = "UPDATE passes SET seen_unix_s = ?2 WHERE secret_hash = ?1";
    let row = params![holder.secret_hash, hour_of(unix_s)];
    connection.statement(update).execute(row).map(drop)
}

/// Ends the pass with `secret`.
pub(crate) fn sign_out(connection: &Connection, secret: &str) -> Result<(), sql::Error> {
    let delete = "DELETE FROM passes WHERE secret_hash = ?1 AND kind = 'page'";
    connection.statement(delete).execute([hash(secret)]).map(drop)
}

/// Ends pass number `id`, with the open invitations that a token made, if it is one that `holder` sees; returns whether there was one.
pub(crate) fn revoke(
    connection: &Connection,
    holder: &Holder,
    exchange: &Exchange,
    id: i64,
) -> Result<bool, sql::Error> {
    const ENDED: &str =
        "RETURNING kind, name, (SELECT p.name FROM people p WHERE p.id = passes.person)";
    let (all, own) = (
        format!("DELETE FROM passes WHERE id = ?1 AND who = ?2 {ENDED}"),
        format!("DELETE FROM passes WHERE id = ?1 AND who = ?2 AND person = ?3 {ENDED}"),
    );
    let who = holder.who.as_str();
    let read = |row: &sql::Row<'_>| {
        Ok((row.get::<String>(0)?, row.get::<String>(1)?, row.get::<Option<String>>(2)?))
    };
    let ended = match holder.sees_alone() {
        None => connection.statement(&all).query_row(params![id, who], read),
        Some(person) => connection.statement(&own).query_row(params![id, who, person], read),
    };
    let Some((kind, name, of)) = ended.optional()? else { return Ok(false) };
    let (action, subject, detail) = ("revoked a pass", &*name, of.as_deref().unwrap_or_default());
    let (unix_s, by) = (exchange.unix_s, &*exchange.by);
    let event = audit::Event { unix_s, who, by, action, subject, detail, owner: who };
    // Sign-ins and their ends, over and over, fill no disk.
    if exchange.is_noted && no_room(connection)?.is_none() {
        audit::append(connection, &event)?;
    }
    if kind == "token" {
        let token = format!("{TOKEN}{name}");
        let inviter = if detail.is_empty() { token } else { format!("{detail}, {token}") };
        people::take_back(connection, who, |invited_by| invited_by == inviter)?;
    }
    Ok(true)
}

/// Forgets what is over.
///
/// What lasts for days stays a day of hearing longer, for the case that the clock is wrong; it is good for nothing meanwhile.
fn forget_expired(connection: &Connection, unix_s: u64) -> Result<(), sql::Error> {
    let now = seconds(unix_s);
    let long_over = steady::unix_s(connection, now)? - steady::GRACE_S;
    let tokens = "SELECT id, who, name FROM passes WHERE kind = 'token' AND expires_unix_s <= ?1 \
         ORDER BY expires_unix_s LIMIT ?2";
    let tokens: Vec<(i64, String, String)> =
        connection.statement(tokens).query_map([long_over, FORGOTTEN_AT_ONCE], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })?;
    for (id, who, name) in tokens {
        connection.statement("DELETE FROM passes WHERE id = ?1").execute([id])?;
        let (action, subject, detail) = ("forgot a token that is over", &*name, "");
        let event =
            audit::Event { unix_s, who: "hub", by: "", action, subject, detail, owner: &who };
        audit::append(connection, &event)?;
    }
    let pages = Over {
        table: "passes",
        owner: "who",
        condition: "kind = 'page' AND expires_unix_s <= ?1",
        one: "sign-in",
    };
    forgetting::forget(connection, &pages, params![long_over], unix_s)?;
    // What is good for minutes alone.
    let delete = "DELETE FROM passes WHERE kind IN ('code', 'session') AND expires_unix_s <= ?1";
    connection.statement(delete).execute([now]).map(drop)
}

/// Whether a key, or a person of it, has as many passes as can be good at once, those for sessions apart.
fn has_many(
    connection: &Connection,
    (who, person): (&str, Option<i64>),
    unix_s: u64,
) -> Result<bool, sql::Error> {
    let of_key = "SELECT count(*) FROM passes WHERE who = ?1 AND person IS NULL AND kind <> 'session' \
         AND expires_unix_s > ?2";
    let of_person = "SELECT count(*) FROM passes WHERE person = ?1 AND kind <> 'session' AND expires_unix_s > ?2";
    let (count, now) = (|row: &sql::Row<'_>| row.get::<i64>(0), seconds(unix_s));
    Ok(match person {
        None => connection.statement(of_key).query_row(params![who, now], count)? >= PASSES_MAX,
        Some(id) => {
            connection.statement(of_person).query_row([id, now], count)? >= PASSES_OF_PERSON_MAX
        }
    })
}

/// Ends the oldest passes for sessions of a key, or of a person of it, so that there is room for one more.
fn make_room_for_session(
    connection: &Connection,
    who: &str,
    person: Option<i64>,
) -> Result<(), sql::Error> {
    let of_key = "DELETE FROM passes WHERE id IN (SELECT id FROM passes WHERE who = ?1 AND person IS NULL \
         AND kind = 'session' ORDER BY id DESC LIMIT 1000000 OFFSET ?2)";
    let of_person = "DELETE FROM passes WHERE id IN (SELECT id FROM passes WHERE person = ?1 \
         AND kind = 'session' ORDER BY id DESC LIMIT 1000000 OFFSET ?2)";
    match person {
        None => connection.statement(of_key).execute(params![who, SESSIONS_MAX - 1]),
        Some(id) => connection.statement(of_person).execute([id, SESSIONS_MAX - 1]),
    }
    .map(drop)
}

/// Scopes as they are stored.
fn in_words(scopes: &[Scope]) -> String {
    let mut scopes = scopes.to_vec();
    scopes.sort_unstable();
    scopes.dedup();
    scopes.into_iter().map(Scope::as_str).collect::<Vec<_>>().join(" ")
}

fn has_word(scopes: &str, scope: Scope) -> bool {
    scopes.split(' ').any(|word| word == scope.as_str())
}

/// Makes a pass; `None` if the system has no randomness.
fn make(connection: &Connection, new: &New<'_>, unix_s: u64) -> Result<Option<String>, sql::Error> {
    let Some(secret) = secret() else { return Ok(None) };
    let insert = "INSERT INTO passes (secret_hash, kind, who, name, scopes, made_unix_s, expires_unix_s, person, \
         seen_unix_s, from_network, agent) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
    let New { kind, who, person, name, scopes, lifetime_s, whence } = new;
    let Whence { agent, network } = whence;
    let (made, expires) = (seconds(unix_s), seconds(unix_s.saturating_add(*lifetime_s)));
    let (hash, seen) = (hash(&secret), hour_of(unix_s));
    let row = params![hash, kind, who, name, scopes, made, expires, person, seen, network, agent];
    connection.statement(insert).execute(row)?;
    Ok(Some(secret))
}

fn note(
    connection: &Connection,
    asker: &Asker,
    action: &str,
    subject: &str,
    unix_s: u64,
) -> Result<(), sql::Error> {
    let (who, by) = (asker.who.as_str(), name_of(asker.person.as_ref()));
    let event = audit::Event { unix_s, who, by, action, subject, detail: "", owner: who };
    audit::append(connection, &event)
}

fn name_of(person: Option<&Person>) -> &str {
    person.map_or("", |person| person.name.as_str())
}

/// The beginning of the hour, as the database stores it.
fn hour_of(unix_s: u64) -> i64 {
    seconds(unix_s / HOUR_S * HOUR_S)
}
