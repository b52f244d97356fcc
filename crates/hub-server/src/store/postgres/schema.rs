//! Brings a database to the version of this program, forward only.

use postgres::Client;
use refinery::{Migration, Runner};

use super::Server;
use super::faults::in_words;
use crate::store::error::DatabaseError;
use crate::store::sql::Error;

/// The steps from each version to the next; a step that was released never changes.
const STEPS: [(&str, &str); 8] = [
    ("V1__hub", include_str!("../../../migrations/postgres/V1__hub.sql")),
    ("V2__several_hubs", include_str!("../../../migrations/postgres/V2__several_hubs.sql")),
    ("V3__alarms", include_str!("../../../migrations/postgres/V3__alarms.sql")),
    ("V4__people", include_str!("../../../migrations/postgres/V4__people.sql")),
    ("V5__clocks", include_str!("../../../migrations/postgres/V5__clocks.sql")),
    (
        "V6__alarms_on_the_hub",
        include_str!("../../../migrations/postgres/V6__alarms_on_the_hub.sql"),
    ),
    ("V7__ways", include_str!("../../../migrations/postgres/V7__ways.sql")),
    (
        "V8__packages_of_faults",
        include_str!("../../../migrations/postgres/V8__packages_of_faults.sql"),
    ),
];
/// The lock of the process that brings the database forward: others wait for it.
const SCHEMA_LOCK: i64 = 0x546E_4863;
/// The table of the steps that were taken.
const TAKEN: &str = "refinery_schema_history";

impl Server {
    /// Checks whose database it is, and brings it to this program's version in one transaction.
    ///
    /// # Errors
    /// It is another program's, or a newer version's, or isn't in UTF-8, or the server fails.
    pub(in crate::store) fn migrate(&self) -> Result<(), DatabaseError> {
        let mut client = self.connect_to_migrate()?;
        // It ends with this connection.
        client.execute("SELECT pg_advisory_lock($1)", &[&SCHEMA_LOCK]).map_err(Error::from)?;
        let encoding = text(&mut client, "SHOW server_encoding")?;
        if encoding != "UTF8" {
            let words = format!("the database is in {encoding}; make one with ENCODING 'UTF8'");
            return Err(Error::Postgres(words).into());
        }
        check_owner(&mut client)?;
        let migrations = STEPS.map(|(name, text)| Migration::unapplied(name, text));
        let migrations: Vec<Migration> = migrations
            .into_iter()
            .collect::<Result<_, _>>()
            .map_err(|error| Error::Postgres(in_words(&error)))?;
        let moved = "SELECT count(*) FROM pg_tables WHERE tablename = 'identity_moved' AND schemaname = current_schema()";
        if number(&mut client, moved)? > 0 {
            return Err(DatabaseError::Moved);
        }
        // Ungrouped, a step and the word that it was taken are two transactions, and a kill between them leaves one.
        let run = Runner::new(&migrations).set_grouped(true).run(&mut client);
        run.map(drop).map_err(|error| Error::Postgres(in_words(&error)).into())
    }
}

/// Whether the database is a hub's of a version that this program knows, or empty.
fn check_owner(client: &mut Client) -> Result<(), DatabaseError> {
    let known = number(
        client,
        &format!(
            "SELECT count(*) FROM pg_tables WHERE tablename = '{TAKEN}' AND schemaname = current_schema()"
        ),
    )?;
    if known == 0 {
        let others = "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()";
        return if number(client, others)? == 0 { Ok(()) } else { Err(DatabaseError::Foreign) };
    }
    let version = "SELECT CAST(coalesce(max(version), 0) AS BIGINT) FROM refinery_schema_history";
    let (version, known) = (number(client, version)?, STEPS.len() as i64);
    if version > known { Err(DatabaseError::Newer { version, known }) } else { Ok(()) }
}

fn number(client: &mut Client, query: &str) -> Result<i64, Error> {
    Ok(client.query_one(query, &[])?.try_get(0)?)
}

fn text(client: &mut Client, query: &str) -> Result<String, Error> {
    Ok(client.query_one(query, &[])?.try_get(0)?)
}
