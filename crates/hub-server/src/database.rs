//! The database file of a hub: opening it, its lock, copies of it.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::Duration;

use rusqlite::backup::Backup;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use tenure_hub::{Accepted, Storage};
use tenure_wire::VerifyingKey;
use tenure_wire::hub::{HubRefusal, Taken};

use crate::audit;
use crate::error::DatabaseError;
use crate::migrations::migrate;
use crate::receipts;
use crate::running::{Running, Turn};
use crate::served::Served;

/// How long a write waits for that of another connection.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// How many pages a backup copies at a time.
const BACKUP_PAGES: i32 = 256;

/// A hub's database.
pub struct Database {
    pub(crate) connection: Connection,
    /// Whether a write of the running transaction failed, so that all of it has to.
    pub(crate) has_failed: bool,
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

    /// Stores those of `receipts` that are new.
    ///
    /// # Errors
    /// SQLite fails; or inside, the first receipt that isn't taken.
    pub(crate) fn hand_in(
        &mut self,
        receipts: &[Vec<u8>],
        unix_s: u64,
    ) -> Result<Result<Taken, HubRefusal>, DatabaseError> {
        self.transact(|connection| receipts::take(connection, receipts, unix_s))
    }

    /// Takes over the identity and the records of another storage, all or nothing. Returns how many
    /// records there were.
    ///
    /// # Errors
    /// The other storage can't be read, or this one can't be written.
    pub fn import(&mut self, from: &mut dyn Storage, unix_s: u64) -> Result<usize, DatabaseError> {
        if let Some(seed) = from.seed()? {
            self.set_seed(&seed)?;
        }
        let mut count = 0;
        for kept in from.records()? {
            let Ok(record) = tenure_directory::open_whenever(&kept.record) else { continue };
            self.put(&Accepted { kept: &kept, record: &record, unix_s })?;
            count += 1;
        }
        self.begin()?;
        audit::append(
            &self.connection,
            &audit::Event {
                unix_s,
                who: "hub",
                action: "import",
                subject: "",
                detail: &format!("{count} devices"),
                owner: "",
            },
        )?;
        self.commit()?;
        Ok(count)
    }

    /// Copies the database at `from` to the new file `to` while a hub may run on it: the copy is of one
    /// moment. The copy holds the hub's seed, and is readable by its user alone.
    ///
    /// # Errors
    /// There is no database, `to` exists, or the disk is full; no half copy is left.
    pub fn back_up(from: &Path, to: &Path) -> Result<(), DatabaseError> {
        let mut source = Self::read(from)?.connection;
        let file = private().write(true).create_new(true).open(to);
        drop(file.map_err(failed("make", to))?);
        let copied = copy(&mut source, to);
        if copied.is_err() {
            let _ = std::fs::remove_file(to);
        }
        copied
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

    /// Begins a transaction, unless one is under way.
    pub(crate) fn begin(&mut self) -> Result<(), rusqlite::Error> {
        if self.connection.is_autocommit() && !self.has_failed {
            // Another process that writes, as a restore might, is waited for by SQLite.
            self.turn = self.running.directory_writes(BUSY_TIMEOUT);
            self.connection.execute_batch("BEGIN IMMEDIATE")?;
        }
        Ok(())
    }

    /// Ends the turn in which the transaction wrote that is over.
    pub(crate) fn end_turn(&mut self) {
        self.turn = None;
    }
}

fn copy(source: &mut Connection, to: &Path) -> Result<(), DatabaseError> {
    let mut target = Connection::open(to)?;
    target.pragma_update(None, "synchronous", "FULL")?;
    // A backup begins anew when another connection has written between two of its steps, so that one beside a
    // steady writer would never end. Its first read holds the snapshot; writers go on in the log meanwhile.
    let snapshot = source.transaction()?;
    snapshot.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    Backup::new(&snapshot, &mut target)?.run_to_completion(BACKUP_PAGES, Duration::ZERO, None)?;
    drop(snapshot);
    let verdict: String = target.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if verdict != "ok" {
        return Err(DatabaseError::Foreign);
    }
    // A copy is one file; whoever opens it as a hub's turns the log on again.
    target.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(()))?;
    Ok(())
}

/// The lock beside a database.
pub(crate) struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing isn't enough: a process that is being started holds the file until it has become another program.
        // A lock that can't be let go of ends when both have closed it.
        let _ = self.0.unlock();
    }
}

/// Takes the lock beside the database at `path`.
fn lock(path: &Path) -> Result<Lock, DatabaseError> {
    let beside = path.with_extension("lock");
    let file = private().write(true).create(true).truncate(false).open(&beside);
    let file = file.map_err(failed("open", &beside))?;
    match file.try_lock() {
        Ok(()) => Ok(Lock(file)),
        Err(TryLockError::WouldBlock) => Err(DatabaseError::InUse(path.to_path_buf())),
        Err(TryLockError::Error(source)) => Err(failed("lock", &beside)(source)),
    }
}

/// Makes the file, readable by its user alone, before SQLite would with the usual rights.
fn create_private(path: &Path) -> Result<(), DatabaseError> {
    let made = private().write(true).create(true).truncate(false).open(path);
    made.map(drop).map_err(failed("open", path))
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> DatabaseError {
    let path = path.to_path_buf();
    move |source| DatabaseError::File { action, path, source }
}
