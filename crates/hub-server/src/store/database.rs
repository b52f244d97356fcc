//! A connection to the database of a hub, and the transactions on it.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use tenure_hub::StorageError;
use tenure_wire::VerifyingKey;

use super::audit;
use super::error::{DatabaseError, failed};
use super::lock::{Lock, create_private, lock};
use super::migrations::migrate;
use super::served::Served;
use crate::running::{Running, Turn};

/// How long a write waits for that of another connection.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// A hub's database.
pub struct Database {
    pub(crate) connection: Connection,
    /// Whether a write of the running transaction failed, so that all of it has to.
    has_failed: bool,
    /// The owners whose devices are listed, who may always sign in.
    pub(crate) owners: Vec<VerifyingKey>,
    /// The address of the pages, if there are any.
    pub(crate) pages: Option<String>,
    /// Packages that devices fetch.
    pub(crate) served: Served,
    /// The rollout that the last tick stepped last.
    pub(crate) ticked: i64,
    /// The state that is shared with the pages.
    running: Running,
    /// The turn in which the transaction writes that is under way.
    turn: Option<Turn>,
    /// Held while the hub runs, so that no second one takes up the same folder.
    _lock: Option<Lock>,
}

impl Database {
    /// Opens the database at `path` for the hub that runs, or makes one; it belongs to this process until
    /// it is dropped.
    ///
    /// # Errors
    /// See [`DatabaseError`].
    pub fn open(path: &Path) -> Result<Self, DatabaseError> {
        let lock = lock(path)?;
        let mut database = Self::connect(path)?;
        migrate(&mut database.connection)?;
        database._lock = Some(lock);
        Ok(database)
    }

    /// The database at `path`, to be read alone.
    ///
    /// # Errors
    /// SQLite refuses, or there is none.
    pub fn read(path: &Path) -> Result<Self, DatabaseError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        Ok(Self::on(connection))
    }

    /// Another connection to the database of the hub that runs.
    ///
    /// # Errors
    /// SQLite refuses.
    pub(crate) fn beside(path: &Path, running: &Running) -> Result<Self, DatabaseError> {
        let mut database = Self::connect(path)?;
        database.running = running.clone();
        database.limit_connection(running.pages_max())?;
        Ok(database)
    }

    fn connect(path: &Path) -> Result<Self, DatabaseError> {
        create_private(path)?;
        let connection = Connection::open(path)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        // The answer is the new mode; a file system without shared memory keeps the old one, which is as safe.
        connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        connection.pragma_update(None, "trusted_schema", false)?;
        Ok(Self::on(connection))
    }

    fn on(connection: Connection) -> Self {
        let (owners, pages) = (Vec::new(), None);
        Self {
            connection,
            has_failed: false,
            owners,
            pages,
            served: Served::default(),
            ticked: 0,
            running: Running::default(),
            turn: None,
            _lock: None,
        }
    }

    /// Lets `owners` sign in although no device of theirs is listed yet, and says where the `pages` are.
    pub fn admit(&mut self, owners: Vec<VerifyingKey>, pages: Option<String>) {
        (self.owners, self.pages) = (owners, pages);
    }

    /// The state of the hub that runs, for its pages.
    pub fn running(&self) -> Running {
        self.running.clone()
    }

    /// Runs `action`, which reads only, on the database as it is at this moment; no writer waits for it.
    ///
    /// # Errors
    /// SQLite fails.
    pub(crate) fn look<T>(
        &mut self,
        action: impl FnOnce(&Connection) -> Result<T, rusqlite::Error>,
    ) -> Result<T, DatabaseError> {
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Deferred)?;
        let seen = action(&transaction)?;
        transaction.commit()?;
        Ok(seen)
    }

    /// Runs `action` in a transaction of its own, in a turn that the directory comes before.
    ///
    /// # Errors
    /// SQLite fails, or others write for too long; nothing was changed then.
    pub(crate) fn transact<T>(
        &mut self,
        action: impl FnOnce(&Connection) -> Result<T, rusqlite::Error>,
    ) -> Result<T, DatabaseError> {
        let _turn = self.running.others_write(BUSY_TIMEOUT).ok_or(DatabaseError::Busy)?;
        let behavior = TransactionBehavior::Immediate;
        let transaction = self.connection.transaction_with_behavior(behavior)?;
        let done = action(&transaction)?;
        transaction.commit()?;
        Ok(done)
    }

    /// Limits the database to `pages` pages, beyond which a write fails as on a full disk, on this and each
    /// connection that is opened beside it; `None` takes the limit away.
    ///
    /// # Errors
    /// SQLite refuses.
    pub fn limit_pages(&mut self, pages: Option<u32>) -> Result<(), DatabaseError> {
        self.running.limit_pages(pages);
        self.limit_connection(pages)
    }

    /// `max_page_count` is a connection's own.
    fn limit_connection(&mut self, pages: Option<u32>) -> Result<(), DatabaseError> {
        let pages = pages.map_or(i64::from(u32::MAX) - 1, i64::from);
        let set = format!("PRAGMA max_page_count = {pages}");
        Ok(self.connection.query_row(&set, [], |_| Ok(()))?)
    }

    /// Checks the whole audit log; returns its last entry, or `None` if there is none.
    ///
    /// # Errors
    /// SQLite fails; or inside, where the chain is broken.
    pub fn verify_audit(
        &self,
    ) -> Result<Result<Option<audit::Entry>, audit::Broken>, DatabaseError> {
        Ok(audit::verify(&self.connection)?)
    }

    /// Runs `action` in the transaction that the next commit ends. After an error nothing of that
    /// transaction counts: SQLite may have rolled back more than the one statement.
    pub(crate) fn write(
        &mut self,
        action: impl FnOnce(&mut Self) -> Result<(), rusqlite::Error>,
    ) -> Result<(), StorageError> {
        if self.has_failed {
            return Err(StorageError("a write before it failed".into()));
        }
        let done = self.begin().and_then(|()| action(self));
        done.map_err(|error| {
            self.has_failed = true;
            self.roll_back();
            failed(error)
        })
    }

    /// Commits the transaction in which [`Self::write`] wrote, if there is one.
    ///
    /// # Errors
    /// SQLite fails, or a write of it did; nothing of it counts then.
    pub(crate) fn commit_written(&mut self) -> Result<(), StorageError> {
        if std::mem::take(&mut self.has_failed) {
            self.roll_back();
            return Err(StorageError("a write before it failed".into()));
        }
        if self.connection.is_autocommit() {
            return Ok(());
        }
        let committed = self.connection.execute_batch("COMMIT").map_err(failed);
        if committed.is_err() {
            self.roll_back();
        }
        self.end_turn();
        committed
    }

    fn roll_back(&mut self) {
        if !self.connection.is_autocommit() {
            // A transaction that can't be rolled back ends with the connection.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
        self.end_turn();
    }

    /// Begins a transaction, unless one is under way.
    fn begin(&mut self) -> Result<(), rusqlite::Error> {
        if self.connection.is_autocommit() && !self.has_failed {
            // Another process that writes, as a restore might, is waited for by SQLite.
            self.turn = self.running.directory_writes(BUSY_TIMEOUT);
            self.connection.execute_batch("BEGIN IMMEDIATE")?;
        }
        Ok(())
    }

    /// Ends the turn in which the transaction wrote that is over.
    fn end_turn(&mut self) {
        self.turn = None;
    }
}
