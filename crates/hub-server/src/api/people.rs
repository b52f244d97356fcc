//! People of a key: who they are, what their role opens, and the invitations by which they come.
//!
//! Invariants:
//! - A person belongs to one key, sees that key's rows alone, and opens no more than the role's scopes. A role signs nothing.
//! - Nobody gives or takes a role that opens more than the pass in hand does.
//! - An invitation is stored as its SHA-256 alone. It opens once, within a day.
//! - A change of the role and a dismissal end all that the person is signed in with, in the same transaction, and the
//!   invitations that are open of whoever may invite no longer.

use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tenure_wire::hub::Scope;
use utoipa::ToSchema;

use super::secrets::{hash, secret};
use super::sign_in::Holder;
use crate::exchange::{Exchange, Reply, no_room};
use crate::names::{NAME_CHARS_MAX, TOKEN, is_same, name_of_person};
use crate::store::audit::{self, seconds};
use crate::store::sql::{self, Connection, OptionalExtension as _, params};

/// The most people of one key, with those who are invited.
const PEOPLE_MAX: i64 = 1_000;
/// How long an invitation is good, in seconds.
const INVITATION_S: u64 = 24 * 60 * 60;

/// How far a person goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    /// Sees pages, lists and files.
    Viewer,
    /// Acknowledges alarms, watches logs, steers rollouts that were signed, and hands in receipts, too.
    Operator,
    /// Does all that the key may do at the hub: invites and dismisses people, too, and ends what others are signed in with.
    Owner,
}

impl Role {
    pub(crate) const ALL: [Self; 3] = [Self::Viewer, Self::Operator, Self::Owner];

    /// The word for it.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Owner => "owner",
        }
    }

    fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.word() == word)
    }

    /// What it opens. `passes` opens the person's own ones, and with `people` those of all.
    pub(super) const fn scopes(self) -> &'static [Scope] {
        match self {
            Self::Viewer => &[Scope::Read, Scope::Passes],
            Self::Operator => &[
                Scope::Read,
                Scope::Receipts,
                Scope::Rollouts,
                Scope::Passes,
                Scope::Logs,
                Scope::Alarms,
            ],
            Self::Owner => &Scope::ALL,
        }
    }
}

/// A person of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Person {
    /// The number of the row. Once the person is dismissed, another one may have it.
    pub(super) id: i64,
    pub(super) name: String,
}

/// A person with the key that it belongs to.
pub(super) struct Member {
    pub(super) owner: String,
    pub(super) person: Person,
    pub(super) role: Role,
}

/// Somebody who is to be invited.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewPerson {
    /// The name, which no other person of the key has.
    #[schema(max_length = 64)]
    name: String,
    role: Role,
}

/// Another role.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewRole {
    role: Role,
}

/// An invitation.
#[derive(Serialize, Deserialize, ToSchema)]
pub(crate) struct Invitation {
    pub(crate) name: String,
    pub(crate) role: Role,
    /// The code that opens it, once. It is told here alone.
    pub(crate) code: String,
    /// Until when, in seconds since 1970 UTC.
    pub(crate) ends_unix_s: u64,
}

/// Answers a `POST` below `/v1/people`, in the transaction that is under way.
///
/// # Errors
/// The database fails.
pub(super) fn answer(
    connection: &Connection,
    holder: &Holder,
    exchange: &Exchange,
) -> Result<Reply, sql::Error> {
    let segments: Vec<&str> = exchange.segments.iter().skip(2).map(String::as_str).collect();
    match segments[..] {
        [] => invite(connection, holder, exchange),
        [name, "role"] => change_role(connection, holder, exchange, name),
        [name, "dismiss"] => dismiss(connection, holder, exchange, name),
        _ => Ok(Reply::problem(StatusCode::NOT_FOUND, "there is nothing here")),
    }
}

/// Makes an invitation; one that wasn't opened yet is taken back.
fn invite(
    connection: &Connection,
    holder: &Holder,
    exchange: &Exchange,
) -> Result<Reply, sql::Error> {
    let NewPerson { name, role } = match serde_json::from_slice(&exchange.body) {
        Ok(new) => new,
        Err(error) => return Ok(Reply::problem(StatusCode::BAD_REQUEST, &error.to_string())),
    };
    if let Some(refusal) = beyond(holder, role) {
        return Ok(refusal);
    }
    if let Some(refusal) = no_room(connection)? {
        return Ok(refusal);
    }
    let Some(name) = name_of_person(&name) else {
        let text = format!(
            "a name is a line of 1 to {NAME_CHARS_MAX} letters that a reader sees, each word of one script, and doesn't \
             read like a token's"
        );
        return Ok(Reply::problem(StatusCode::UNPROCESSABLE_ENTITY, &text));
    };
    let Some(code) = secret() else {
        let text = "the hub has no randomness for a code now; try again";
        return Ok(Reply::problem(StatusCode::SERVICE_UNAVAILABLE, text));
    };
    let ends_unix_s = exchange.unix_s.saturating_add(INVITATION_S);
    let who = exchange.who.as_str();
    let known = named(connection, who, &name)?;
    let by = exchange.by.as_str();
    let (now, ends, code_hash) = (seconds(exchange.unix_s), seconds(ends_unix_s), hash(&code));
    match known {
        Some(known) if known.is_here => {
            let text = format!("{} is here already; dismiss that person first", known.name);
            return Ok(Reply::problem(StatusCode::CONFLICT, &text));
        }
        Some(known) if known.name != name => {
            let text = format!("{} is invited, whose name reads the same", known.name);
            return Ok(Reply::problem(StatusCode::CONFLICT, &text));
        }
        Some(known) => {
            // The former invitation is taken away with that.
            if let Some(refusal) = beyond(holder, known.role()) {
                return Ok(refusal);
            }
            let id = known.id;
            let update = "UPDATE people SET role = ?2, invited_by = ?3, invited_unix_s = ?4, code_hash = ?5, \
                 code_ends_unix_s = ?6 WHERE id = ?1";
            let row = params![id, role.word(), by, now, code_hash, ends];
            connection.statement(update).execute(row)?;
        }
        None => {
            let count = "SELECT count(*) FROM people WHERE owner = ?1";
            let count: i64 = connection.statement(count).query_row([who], |row| row.get(0))?;
            if count >= PEOPLE_MAX {
                let text = "a key has 1,000 people at most; dismiss one first";
                return Ok(Reply::problem(StatusCode::CONFLICT, text));
            }
            let insert = "INSERT INTO people (owner, name, role, invited_by, invited_unix_s, code_hash, \
                 code_ends_unix_s) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
            let row = params![who, name, role.word(), by, now, code_hash, ends];
            connection.statement(insert).execute(row)?;
        }
    }
    note(connection, exchange, "invited", &name, role.word())?;
    let invitation = Invitation { name, role, code, ends_unix_s };
    Ok(Reply::json(StatusCode::CREATED, &json!(invitation)))
}

/// Gives a person another role. What the person was signed in with is over, and with the next sign-in the new role counts.
fn change_role(
    connection: &Connection,
    holder: &Holder,
    exchange: &Exchange,
    name: &str,
) -> Result<Reply, sql::Error> {
    let NewRole { role } = match serde_json::from_slice(&exchange.body) {
        Ok(new) => new,
        Err(error) => return Ok(Reply::problem(StatusCode::BAD_REQUEST, &error.to_string())),
    };
    let Some(known) = named(connection, &exchange.who, name)? else { return unknown() };
    if let Some(refusal) = beyond(holder, known.role()).or_else(|| beyond(holder, role)) {
        return Ok(refusal);
    }
    // Who is to go less far is told so whatever the disk says.
    let is_more = role.scopes().iter().any(|scope| !known.role().scopes().contains(scope));
    if let Some(refusal) = if is_more { no_room(connection)? } else { None } {
        return Ok(refusal);
    }
    let Known { id, name, role: was, .. } = known;
    if was != role.word() {
        let update = "UPDATE people SET role = ?2 WHERE id = ?1";
        connection.statement(update).execute(params![id, role.word()])?;
        end_passes(connection, id)?;
        if !role.scopes().contains(&Scope::People) {
            take_back(connection, &exchange.who, |by| is_by(&name, by))?;
        }
        note(connection, exchange, "changed a role", &name, &format!("{was} to {}", role.word()))?;
    }
    Ok(Reply::empty(StatusCode::NO_CONTENT))
}

/// Forgets a person, or an invitation, with all passes. The name and the key are free again.
fn dismiss(
    connection: &Connection,
    holder: &Holder,
    exchange: &Exchange,
    name: &str,
) -> Result<Reply, sql::Error> {
    let Some(known) = named(connection, &exchange.who, name)? else { return unknown() };
    if let Some(refusal) = beyond(holder, known.role()) {
        return Ok(refusal);
    }
    let Known { id, name, role, .. } = known;
    end_passes(connection, id)?;
    connection.statement("DELETE FROM people WHERE id = ?1").execute([id])?;
    take_back(connection, &exchange.who, |by| is_by(&name, by))?;
    note(connection, exchange, "dismissed", &name, &role)?;
    Ok(Reply::empty(StatusCode::NO_CONTENT))
}

/// The refusal to give or take that role by a pass that opens less than the role does.
fn beyond(holder: &Holder, role: Role) -> Option<Reply> {
    let lacking: Vec<&str> = holder.lacks(role.scopes()).iter().map(|it| it.as_str()).collect();
    let text = format!(
        "this pass opens less than the role {}: it lacks {}; nobody gives or takes a role that goes further",
        role.word(),
        lacking.join(", ")
    );
    (!lacking.is_empty()).then(|| Reply::problem(StatusCode::FORBIDDEN, &text))
}

/// Takes back the open invitations of the key `who` that were made by whom `is_meant` says.
///
/// # Errors
/// The database fails.
pub(super) fn take_back(
    connection: &Connection,
    who: &str,
    is_meant: impl Fn(&str) -> bool,
) -> Result<(), sql::Error> {
    let open = "SELECT id, invited_by FROM people WHERE owner = ?1 AND person_key IS NULL";
    let read = |row: &sql::Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let open: Vec<(i64, String)> = connection.statement(open).query_map([who], read)?;
    for (id, _) in open.iter().filter(|(_, by)| is_meant(by)) {
        connection.statement("DELETE FROM people WHERE id = ?1").execute([*id])?;
    }
    Ok(())
}

/// Whether somebody who acted, as the audit log has it, is that person, with a token or without.
fn is_by(name: &str, by: &str) -> bool {
    let rest = by.strip_prefix(name);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(&format!(", {TOKEN}")))
}

fn end_passes(connection: &Connection, person: i64) -> Result<(), sql::Error> {
    connection.statement("DELETE FROM passes WHERE person = ?1").execute([person]).map(drop)
}

/// A person or an invitation, found by the name.
struct Known {
    id: i64,
    name: String,
    role: String,
    /// Whether the invitation was opened.
    is_here: bool,
}

impl Known {
    /// The role; one that isn't known counts as the one that goes furthest.
    fn role(&self) -> Role {
        Role::of_word(&self.role).unwrap_or(Role::Owner)
    }
}

/// The person of the key `who` with that name, or else the one with a name that reads the same.
fn named(connection: &Connection, who: &str, name: &str) -> Result<Option<Known>, sql::Error> {
    let query = "SELECT id, name, role, person_key FROM people WHERE owner = ?1 ORDER BY id";
    let read = |row: &sql::Row<'_>| {
        let is_here = row.get::<Option<String>>(3)?.is_some();
        Ok(Known { id: row.get(0)?, name: row.get(1)?, role: row.get(2)?, is_here })
    };
    let mut people: Vec<Known> = connection.statement(query).query_map([who], read)?;
    let exactly = people.iter().position(|known| known.name == name);
    let found = exactly.or_else(|| people.iter().position(|known| is_same(&known.name, name)));
    Ok(found.map(|index| people.swap_remove(index)))
}

fn unknown() -> Result<Reply, sql::Error> {
    Ok(Reply::problem(StatusCode::NOT_FOUND, "there is no such person"))
}

fn note(
    connection: &Connection,
    exchange: &Exchange,
    action: &str,
    subject: &str,
    detail: &str,
) -> Result<(), sql::Error> {
    let Exchange { unix_s, who, by, .. } = exchange;
    let event = audit::Event { unix_s: *unix_s, who, by, action, subject, detail, owner: who };
    audit::append(connection, &event)
}

/// The person who signs in with this key.
///
/// # Errors
/// The database fails.
pub(super) fn of_key(connection: &Connection, key: &str) -> Result<Option<Member>, sql::Error> {
    find_member(connection, "person_key = ?1", params![key])
}

/// The person whose invitation this code opens now.
///
/// # Errors
/// The database fails.
pub(super) fn invited(
    connection: &Connection,
    code: &str,
    unix_s: u64,
) -> Result<Option<Member>, sql::Error> {
    let which = "code_hash = ?1 AND code_ends_unix_s > ?2";
    find_member(connection, which, params![hash(code), seconds(unix_s)])
}

fn find_member(
    connection: &Connection,
    which: &'static str,
    of: &[&dyn sql::ToSql],
) -> Result<Option<Member>, sql::Error> {
    let find = format!("SELECT owner, id, name, role FROM people WHERE {which}");
    let read = |row: &sql::Row<'_>| {
        let (owner, role) = (row.get(0)?, row.get::<String>(3)?);
        let person = Person { id: row.get(1)?, name: row.get(2)? };
        Ok(Role::of_word(&role).map(|role| Member { owner, person, role }))
    };
    Ok(connection.statement(&find).query_row(of, read).optional()?.flatten())
}

/// Opens an invitation for a key that is nobody's here, which is the person's from then on. Returns whether it was there to be opened.
///
/// # Errors
/// The database fails.
pub(super) fn join(
    connection: &Connection,
    code: &str,
    key: &str,
    unix_s: u64,
) -> Result<bool, sql::Error> {
    let update = "UPDATE people SET person_key = ?2, joined_unix_s = ?3, code_hash = NULL, code_ends_unix_s = NULL \
         WHERE code_hash = ?1 AND code_ends_unix_s > ?3";
    let row = params![hash(code), key, seconds(unix_s)];
    Ok(connection.statement(update).execute(row)? == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_open_what_the_documentation_says() {
        let documented = include_str!("../../../../docs/hub.md");
        for role in Role::ALL {
            assert_eq!(Role::of_word(role.word()), Some(role));
            let scopes: Vec<&str> = role.scopes().iter().map(|scope| scope.as_str()).collect();
            let scopes = match scopes.len() == Scope::ALL.len() {
                true => "all of them".to_string(),
                false => format!("`{}`", scopes.join("`, `")),
            };
            let row = format!("| {} | {scopes} |", role.word());
            assert!(documented.contains(&row), "docs/hub.md lacks: {row}");
        }
    }
}
