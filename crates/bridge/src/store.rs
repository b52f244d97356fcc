//! The session with the broker in a file, so that it outlasts the process: the queue, and what is under way.

use std::fmt;
use std::path::Path;

use rusqlite::{Connection, Transaction};
use tenure_mqtt::{Change, Kept, Message, Outgoing, Qos, Stage};

/// The tables. `session` names the broker and the client for which the rest counts.
const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS session (name TEXT NOT NULL);
    CREATE TABLE IF NOT EXISTS outgoing (
        number INTEGER PRIMARY KEY, topic TEXT NOT NULL, payload BLOB NOT NULL, qos INTEGER NOT NULL,
        retain INTEGER NOT NULL, stage INTEGER NOT NULL, id INTEGER NOT NULL, publisher INTEGER NOT NULL DEFAULT 0
    );
    CREATE TABLE IF NOT EXISTS received (id INTEGER PRIMARY KEY);
    CREATE TABLE IF NOT EXISTS filters (filter TEXT PRIMARY KEY);
";
/// The version of the tables, in the file's `user_version`.
const VERSION: i32 = 2;
/// What the tables of version 1 lack.
const SINCE_1: &str = "ALTER TABLE outgoing ADD COLUMN publisher INTEGER NOT NULL DEFAULT 0;";

/// Why the file can't be used.
#[derive(Debug)]
pub enum StoreError {
    /// A later version wrote it.
    Version(i32),
    /// It is damaged or no database, or can't be written.
    Database(rusqlite::Error),
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(version) => {
                write!(f, "the bridge's queue has version {version}, of a later Tenure")
            }
            Self::Database(error) => write!(f, "the bridge's queue can't be used: {error}"),
        }
    }
}

impl std::error::Error for StoreError {}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

/// The file.
pub(crate) struct Store {
    connection: Connection,
    session: String,
}

impl Store {
    /// Opens or makes the file, for the session of that name. Of another session only the messages count that wait.
    ///
    /// # Errors
    /// [`StoreError`].
    pub(crate) fn open(path: &Path, session: &str) -> Result<(Self, Kept), StoreError> {
        let mut connection = Connection::open(path)?;
        // A killed process loses nothing that was committed, and neither does a loss of power.
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        let version = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
        if version > VERSION {
            return Err(StoreError::Version(version));
        }
        if version == 1 {
            connection.execute_batch(SINCE_1)?;
        }
        connection.execute_batch(TABLES)?;
        connection.pragma_update(None, "user_version", VERSION)?;
        let known = kept_session(&connection)?;
        if known.as_deref() != Some(session) {
            let transaction = connection.transaction()?;
            forget_session(&transaction)?;
            transaction.commit()?;
        }
        let kept = kept(&connection)?;
        Ok((Self { connection, session: session.into() }, kept))
    }

    /// Writes changes down, all or none.
    ///
    /// # Errors
    /// The disk is full, or the file is gone.
    pub(crate) fn keep(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        let transaction = self.connection.transaction()?;
        for change in changes {
            note(&transaction, &self.session, change)?;
        }
        Ok(transaction.commit()?)
    }
}

fn kept_session(connection: &Connection) -> rusqlite::Result<Option<String>> {
    let mut statement = connection.prepare("SELECT name FROM session")?;
    let mut names = statement.query_map([], |row| row.get(0))?;
    names.next().transpose()
}

fn kept(connection: &Connection) -> rusqlite::Result<Kept> {
    let has_session = kept_session(connection)?.is_some();
    let mut statement = connection.prepare(
        "SELECT number, topic, payload, qos, retain, stage, id, publisher FROM outgoing ORDER BY number",
    )?;
    let outgoing = statement.query_map([], |row| {
        let (stage, id): (u8, u16) = (row.get(5)?, row.get(6)?);
        Ok(Outgoing {
            number: row.get::<_, i64>(0)? as u64,
            message: Message {
                topic: row.get(1)?,
                payload: row.get(2)?,
                qos: Qos::from_number(row.get(3)?).unwrap_or_default(),
                retain: row.get(4)?,
            },
            stage: match stage {
                0 => Stage::Waiting,
                1 => Stage::Sent(id),
                _ => Stage::Released(id),
            },
            publisher: row.get::<_, i64>(7)? as u64,
        })
    })?;
    let outgoing = outgoing.collect::<rusqlite::Result<_>>()?;
    let mut received = connection.prepare("SELECT id FROM received")?;
    let received = received.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    let mut filters = connection.prepare("SELECT filter FROM filters")?;
    let filters = filters.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    Ok(Kept { has_session, outgoing, received, filters })
}

fn note(transaction: &Transaction<'_>, session: &str, change: &Change) -> rusqlite::Result<()> {
    match change {
        Change::SessionBegan => {
            forget_session(transaction)?;
            transaction.execute("INSERT INTO session VALUES (?)", [session])?;
        }
        Change::Queued(Outgoing { number, message, stage, publisher }) => {
            let Message { topic, payload, qos, retain } = message;
            let (stage, id) = numbers_of(*stage);
            let (number, publisher) = (*number as i64, *publisher as i64);
            let row = (number, topic, payload, qos.number(), retain, stage, id, publisher);
            transaction.execute("INSERT INTO outgoing VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)?;
        }
        Change::Moved(number, stage) => {
            let (stage, id) = numbers_of(*stage);
            let row = (stage, id, *number as i64);
            transaction.execute("UPDATE outgoing SET stage = ?, id = ? WHERE number = ?", row)?;
        }
        Change::Done(number) => {
            transaction.execute("DELETE FROM outgoing WHERE number = ?", [*number as i64])?;
        }
        Change::Received(id) => {
            transaction.execute("INSERT OR REPLACE INTO received VALUES (?)", [id])?;
        }
        Change::Released(id) => {
            transaction.execute("DELETE FROM received WHERE id = ?", [id])?;
        }
        Change::Subscribed(filter) => {
            transaction.execute("INSERT OR REPLACE INTO filters VALUES (?)", [filter])?;
        }
        Change::Unsubscribed(filter) => {
            transaction.execute("DELETE FROM filters WHERE filter = ?", [filter])?;
        }
    }
    Ok(())
}

fn forget_session(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    transaction.execute_batch(
        "DELETE FROM session; DELETE FROM received; DELETE FROM filters; UPDATE outgoing SET stage = 0;",
    )
}

fn numbers_of(stage: Stage) -> (u8, u16) {
    match stage {
        Stage::Waiting => (0, 0),
        Stage::Sent(id) => (1, id),
        Stage::Released(id) => (2, id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outgoing(number: u64, stage: Stage) -> Outgoing {
        let (topic, payload) = (format!("home/{number}"), vec![number as u8; 3]);
        let message = Message { topic, payload, qos: Qos::ExactlyOnce, retain: true };
        Outgoing { number, message, stage, publisher: u64::MAX - number }
    }

    #[test]
    fn file_of_the_version_before_keeps_its_messages() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bridge.db");
        let connection = Connection::open(&path).unwrap();
        let before = TABLES.replace(", publisher INTEGER NOT NULL DEFAULT 0", "");
        connection.execute_batch(&before).unwrap();
        let row =
            "INSERT INTO outgoing VALUES (7, 'a', X'31', 1, 0, 0, 0); PRAGMA user_version = 1";
        connection.execute_batch(row).unwrap();
        drop(connection);
        for _ in 0..2 {
            let (_, kept) = Store::open(&path, "one").unwrap();
            assert_eq!((kept.outgoing[0].number, kept.outgoing[0].publisher), (7, 0));
        }
    }

    #[test]
    fn what_was_kept_is_there_after_a_restart_and_of_another_session_only_what_waits() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bridge.db");
        let (mut store, kept) = Store::open(&path, "one").unwrap();
        assert_eq!(kept, Kept::default());
        let changes = [
            Change::SessionBegan,
            Change::Subscribed("a/#".into()),
            Change::Subscribed("b".into()),
            Change::Unsubscribed("a/#".into()),
            Change::Queued(outgoing(1, Stage::Waiting)),
            Change::Queued(outgoing(2, Stage::Waiting)),
            Change::Queued(outgoing(3, Stage::Waiting)),
            Change::Moved(1, Stage::Sent(7)),
            Change::Moved(2, Stage::Released(8)),
            Change::Done(3),
            Change::Received(5),
            Change::Received(6),
            Change::Released(5),
        ];
        store.keep(&changes).unwrap();
        drop(store);
        let (store, kept) = Store::open(&path, "one").unwrap();
        let stages = [outgoing(1, Stage::Sent(7)), outgoing(2, Stage::Released(8))];
        let expected = Kept {
            has_session: true,
            outgoing: stages.to_vec(),
            received: vec![6],
            filters: vec!["b".into()],
        };
        assert_eq!(kept, expected);
        drop(store);
        let (_, kept) = Store::open(&path, "another").unwrap();
        let waiting = [outgoing(1, Stage::Waiting), outgoing(2, Stage::Waiting)];
        assert_eq!(kept, Kept { outgoing: waiting.to_vec(), ..Kept::default() });
    }

    #[test]
    fn file_that_is_none_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bridge.db");
        std::fs::write(&path, vec![b'x'; 4096]).unwrap();
        assert!(matches!(Store::open(&path, "one"), Err(StoreError::Database(_))));
        std::fs::remove_file(&path).unwrap();
        let (store, _) = Store::open(&path, "one").unwrap();
        store.connection.pragma_update(None, "user_version", 9).unwrap();
        drop(store);
        assert!(matches!(Store::open(&path, "one"), Err(StoreError::Version(9))));
    }
}
