//! What a key is at this hub by itself, an owner, a tenant or nobody; and the end of what those had who are owners no longer.
//!
//! Invariant: on a hub of named owners (`--owner`) a key is an owner if it is named, and for no other reason: neither a device
//! that is listed nor a receipt makes one.

use tenure_wire::hub::Scope;

use crate::owners::Owners;
use crate::store::audit;
use crate::store::sql::{self, Connection};
use crate::store::{Database, DatabaseError};

/// The scopes of a key that is named in receipts alone.
pub(super) const SCOPES_OF_TENANT: [Scope; 3] = [Scope::Read, Scope::Receipts, Scope::Passes];

/// What a key is, where it is somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Owner,
    Tenant,
}

impl Standing {
    /// What opens to it at most.
    pub(super) const fn scopes(self) -> &'static [Scope] {
        match self {
            Self::Owner => &Scope::ALL,
            Self::Tenant => &SCOPES_OF_TENANT,
        }
    }
}

/// What the key `who` is that signs in now.
///
/// # Errors
/// The database fails.
pub(super) fn standing(
    connection: &Connection,
    owners: &Owners,
    who: &str,
) -> Result<Option<Standing>, sql::Error> {
    // On an open hub anybody's device names whom it likes as a tenant, which gives nobody room here for packages.
    let is_owner = match owners {
        Owners::Anybody => has_device(connection, who)?,
        Owners::Named(_) => owners.admit(who),
    };
    if is_owner {
        return Ok(Some(Standing::Owner));
    }
    let is_tenant = is_tenant(connection, who)?
        // An owner of an open hub whose devices have expired sees its bills still.
        || (*owners == Owners::Anybody && was_owner(connection, who)?);
    Ok(is_tenant.then_some(Standing::Tenant))
}

/// What a pass of the key `who` opens at most that was made before; `None` if nothing.
///
/// # Errors
/// The database fails.
pub(super) fn standing_of_pass(
    connection: &Connection,
    owners: &Owners,
    who: &str,
) -> Result<Option<Standing>, sql::Error> {
    if owners.admit(who) {
        return Ok(Some(Standing::Owner));
    }
    Ok(is_tenant(connection, who)?.then_some(Standing::Tenant))
}

impl Database {
    /// Ends what keys had that are owners here no longer: their people, and each pass that goes further than a tenant's. Keys
    /// that aren't tenants either keep nothing. Writes nothing where nothing is to be ended; what the database doesn't let
    /// it end counts for nothing all the same.
    pub fn end_former_owners(&mut self) {
        if let Err(error) = self.try_to_end_former_owners() {
            tracing::error!(reason = %error, "can't end what former owners are signed in with");
        }
    }

    fn try_to_end_former_owners(&mut self) -> Result<(), DatabaseError> {
        let owners = self.running().owners();
        let unix_s = self.running().unix_s();
        let former = self.look(|connection| {
            let query = "SELECT who FROM passes UNION SELECT owner FROM people";
            let keys: Vec<String> = connection.statement(query).query_map([], |row| row.get(0))?;
            let mut former = Vec::new();
            for who in keys.into_iter().filter(|who| !owners.admit(who)) {
                let excess = Excess::of(connection, who)?;
                former.extend(excess.is_any().then_some(excess));
            }
            Ok(former)
        })?;
        if former.is_empty() {
            return Ok(());
        }
        self.transact(|connection| {
            former.iter().try_for_each(|excess| excess.end(connection, unix_s))
        })
    }
}

/// What a key has that is more than it may have.
struct Excess {
    who: String,
    passes: Vec<i64>,
    people: i64,
}

impl Excess {
    fn of(connection: &Connection, who: String) -> Result<Self, sql::Error> {
        let is_tenant = is_tenant(connection, &who)?;
        let query = "SELECT id, scopes, person FROM passes WHERE who = ?1";
        let read = |row: &sql::Row<'_>| {
            let (id, scopes): (i64, String) = (row.get(0)?, row.get(1)?);
            let person: Option<i64> = row.get(2)?;
            let is_of_tenant =
                |word: &str| SCOPES_OF_TENANT.iter().any(|scope| scope.as_str() == word);
            let may_stay = is_tenant && person.is_none() && scopes.split(' ').all(is_of_tenant);
            Ok((!may_stay).then_some(id))
        };
        let passes: Vec<Option<i64>> = connection.statement(query).query_map([&who], read)?;
        let count = "SELECT count(*) FROM people WHERE owner = ?1";
        let people = connection.statement(count).query_row([&who], |row| row.get(0))?;
        Ok(Self { who, passes: passes.into_iter().flatten().collect(), people })
    }

    fn is_any(&self) -> bool {
        self.people > 0 || !self.passes.is_empty()
    }

    fn end(&self, connection: &Connection, unix_s: u64) -> Result<(), sql::Error> {
        for pass in &self.passes {
            connection.statement("DELETE FROM passes WHERE id = ?1").execute([*pass])?;
        }
        connection.statement("DELETE FROM people WHERE owner = ?1").execute([&self.who])?;
        let detail = format!("{} passes, {} people", self.passes.len(), self.people);
        let (who, by, action, subject, owner) = ("hub", "", "owner no longer", &*self.who, "");
        let event = audit::Event { unix_s, who, by, action, subject, detail: &detail, owner };
        audit::append(connection, &event)
    }
}

/// Whether a device of that owner is listed.
fn has_device(connection: &Connection, who: &str) -> Result<bool, sql::Error> {
    let query = "SELECT 1 FROM devices WHERE owner = ?1 AND length(kept) > 0 LIMIT 1";
    connection.statement(query).exists([who])
}

/// Whether a receipt names that key as its tenant.
fn is_tenant(connection: &Connection, who: &str) -> Result<bool, sql::Error> {
    connection.statement("SELECT 1 FROM receipts WHERE tenant = ?1 LIMIT 1").exists([who])
}

/// Whether a receipt names that key as its device's owner of then.
fn was_owner(connection: &Connection, who: &str) -> Result<bool, sql::Error> {
    connection.statement("SELECT 1 FROM receipts WHERE owner = ?1 LIMIT 1").exists([who])
}
