//! A connection to the database of a hub, and the transactions on it.

use std::mem;
use std::time::{Duration, Instant};

use tenure_hub::{Failure, StorageError};
use tenure_wire::VerifyingKey;

use super::audit;
use super::desk::Desk;
use super::engine::Begin;
use super::error::{DatabaseError, failed};
use super::location::{Location, Place};
use super::lock::{Lock, lock};
use super::migrations::check;
use super::opening;
use super::postgres::Postgres;
use super::served::Served;
use super::shared::{self, Ahead, Heard, Process};
use super::sql::{self, Connection};
use super::sqlite::{self, OpenFile, Sqlite};
use super::steady::{Steady, Step};
use crate::owners::Owners;
use crate::running::{Running, Turn};

/// How long a write waits for its turn.
const TURN_TIMEOUT: Duration = Duration::from_secs(5);

/// How often room is made on a disk that is full, and how often it is looked whether there is some for the reserve.
const MAKES_ROOM_EVERY: Duration = Duration::from_secs(1);
const TENDED_EVERY: Duration = Duration::from_secs(30);

/// The pauses before a transaction is tried again, in milliseconds.
const WAITS_MS: [u64; 4] = [4, 16, 64, 256];

/// How long the directory waits for its turn at a server, which may stand still while others wait for it.
const TURN_AT_A_SERVER: Duration = Duration::from_millis(50);

/// A hub's database.
pub struct Database {
    pub(crate) connection: Connection,
    /// Why a write of the running transaction failed, so that all of it has to.
    failed: Option<StorageError>,
    /// The address of the pages, if there are any.
    pub(crate) pages: Option<String>,
    /// The most pages that this connection writes, if there is a limit.
    pages_max: Option<u32>,
    /// Whoever answers calls in sessions beside the directory, at a server.
    pub(crate) desk: Option<Box<dyn Desk>>,
    /// Packages that devices fetch.
    pub(crate) served: Served,
    /// The rollout that the last tick stepped last.
    pub(crate) ticked: i64,
    /// Whether there was a rollout under way then.
    pub(crate) has_open_rollouts: bool,
    /// The clock by which is forgotten.
    pub(crate) steady: Steady,
    /// Its step that the transaction which is under way writes; it comes again if that isn't kept.
    pub(crate) step: Option<Step>,
    /// This process, which may run the hub beside others.
    pub(crate) process: Process,
    /// Whether its clock was wrong until just now, by the database's.
    pub(crate) is_corrected: bool,
    /// Whether the database was away when the directory needed it last.
    is_away: bool,
    /// Whether the transaction that is under way has a record of a device.
    has_record: bool,
    /// Whether the last record of a device wasn't kept, whatever the reason.
    loses_records: bool,
    /// Whether the transaction that is under way found no room.
    is_full: bool,
    /// When room was made last on a disk that is full, and when it was last looked for the reserve.
    made_room_at: Option<Instant>,
    tended_at: Option<Instant>,
    /// The state that is shared with the pages.
    running: Running,
    /// Whether transactions wait for their turn.
    takes_turns: bool,
    /// The turn in which the transaction writes that is under way.
    turn: Option<Turn>,
    /// Held while the hub runs, so that no second one takes up the same folder.
    lock: Option<Lock>,
}

impl Database {
    /// Opens the database at `location` for a hub that runs, or makes one. A file belongs to this process until it is
    /// dropped; a server's may have other hubs beside this one.
    ///
    /// # Errors
    /// See [`DatabaseError`].
    pub fn open(location: impl Into<Location>) -> Result<Self, DatabaseError> {
        let location = location.into();
        match location.place() {
            Place::File(path) => {
                let lock = lock(path)?;
                let connection = opening::take_up(path, &lock)?;
                let sqlite = Sqlite::on(connection, OpenFile::at(path)?);
                let mut database = Self::on(Connection::on(sqlite));
                database.lock = Some(lock);
                database.steady = Steady::of(&database.connection)?;
                Ok(database)
            }
            Place::Server(server) => {
                server.migrate()?;
                let process = Process::new();
                let connection = Connection::on(Postgres::of_the_hub(server, process.name())?);
                let mut database = Self::on(connection);
                database.process = process;
                database.set_clock()?;
                database.steady = Steady::of(&database.connection)?;
                Ok(database)
            }
        }
    }

    /// The same for whoever wants the database for himself: no hub runs there until it is dropped.
    ///
    /// # Errors
    /// As [`Self::open`], or hubs run.
    pub(super) fn open_alone(location: &Location) -> Result<Self, DatabaseError> {
        match location.place() {
            Place::File(_) => Self::open(location),
            Place::Server(server) => {
                server.migrate()?;
                Ok(Self::on(Connection::on(Postgres::alone(server)?)))
            }
        }
    }

    /// The database at `location`, to be read alone.
    ///
    /// # Errors
    /// The database refuses, or there is none.
    pub fn read(location: impl Into<Location>) -> Result<Self, DatabaseError> {
        let location = location.into();
        Ok(Self::on(match location.place() {
            Place::File(path) => {
                let connection = sqlite::open_to_read(path)?;
                check(&connection)?;
                Connection::on(Sqlite::to_read(connection))
            }
            Place::Server(server) => Connection::on(Postgres::to_read(server)?),
        }))
    }

    /// Closes the database, and keeps its lock.
    pub(super) fn into_lock(mut self) -> Option<Lock> {
        self.lock.take()
    }

    /// Another connection to the database of the hub that runs.
    ///
    /// # Errors
    /// The database refuses.
    pub(crate) fn beside(location: &Location, running: &Running) -> Result<Self, DatabaseError> {
        let mut database = Self::on(match location.place() {
            Place::File(path) => {
                Connection::on(Sqlite::on(sqlite::open(path)?, OpenFile::at(path)?))
            }
            Place::Server(server) => Connection::on(Postgres::beside(server)?),
        });
        database.running = running.clone();
        database.follow_limit()?;
        Ok(database)
    }

    fn on(connection: Connection) -> Self {
        Self {
            connection,
            failed: None,
            pages: None,
            pages_max: None,
            desk: None,
            served: Served::default(),
            ticked: 0,
            has_open_rollouts: true,
            steady: Steady::default(),
            step: None,
            process: Process::new(),
            is_corrected: false,
            is_away: false,
            has_record: false,
            loses_records: false,
            is_full: false,
            made_room_at: None,
            tended_at: None,
            running: Running::default(),
            takes_turns: true,
            turn: None,
            lock: None,
        }
    }

    /// Lets `owners` alone sign in as owners, from now on; where none is named, whoever has a device listed. Says where the
    /// `pages` are.
    pub fn admit(&mut self, owners: Vec<VerifyingKey>, pages: Option<String>) {
        self.running.admit(Owners::of(&owners));
        self.pages = pages;
    }

    /// The state of the hub that runs, for its pages.
    pub fn running(&self) -> Running {
        self.running.clone()
    }

    /// Whether other hubs may run on the same database.
    pub(crate) fn is_shared(&self) -> bool {
        self.connection.is_shared()
    }

    /// Fails where the database isn't any longer where it was opened: nothing more of what is written would be found
    /// again.
    ///
    /// # Errors
    /// Somebody took its file away, or put another one in its place.
    pub fn check_place(&self) -> Result<(), DatabaseError> {
        Ok(self.connection.check_place()?)
    }

    /// Whether what devices say is kept: the database was there when the directory needed it last, and took the last
    /// record. A hub whose disk is full or whose database is away is as good as deaf, until a record is kept again.
    pub fn keeps_records(&self) -> bool {
        !self.is_away && !self.loses_records
    }

    /// Takes note that the transaction that is under way has a record of a device.
    pub(crate) fn note_record(&mut self) {
        self.has_record = true;
    }

    /// Takes note of what became of records that were stored apart from the transactions here.
    pub(crate) fn note_renewals(&mut self, failed: Option<&StorageError>) {
        self.is_away = failed.is_some_and(StorageError::is_away);
        self.loses_records = failed.is_some_and(|error| error.failure != Failure::Conflict);
    }

    /// The news of other hubs; and the database's time is this process's.
    ///
    /// # Errors
    /// The database fails.
    pub(crate) fn hear(&mut self) -> Result<Heard, StorageError> {
        let heard = self.process.hear(&self.connection).map_err(failed);
        self.is_away = heard.as_ref().is_err_and(StorageError::is_away);
        let heard = heard?;
        self.is_corrected |= self.correct_clock(heard.clock_ahead);
        Ok(heard)
    }

    /// Sets the clock of this process by the database's.
    fn set_clock(&self) -> Result<(), sql::Error> {
        self.correct_clock(shared::clock_ahead(&self.connection)?);
        Ok(())
    }

    /// Returns whether the clock was wrong.
    fn correct_clock(&self, ahead: Ahead) -> bool {
        let before_ms = self.running.clock_correction_ms();
        let now_ms = shared::correction_ms(before_ms, ahead);
        self.running.correct_clock(now_ms);
        now_ms != before_ms
    }

    /// Runs `action`, which reads only, on the database as it is at this moment; no writer waits for it. It runs again
    /// where the connection broke.
    ///
    /// # Errors
    /// The database fails.
    pub(crate) fn look<T>(
        &mut self,
        action: impl FnMut(&Connection) -> Result<T, sql::Error>,
    ) -> Result<T, DatabaseError> {
        self.within(Begin::ToRead, action)
    }

    /// Runs `action` in a transaction of its own, in a turn that the directory comes before. It runs again, a few times,
    /// where another transaction came between or the connection broke before the commit; of what it did then nothing
    /// counts.
    ///
    /// # Errors
    /// The database fails, or others write for too long; nothing was changed then.
    pub(crate) fn transact<T>(
        &mut self,
        action: impl FnMut(&Connection) -> Result<T, sql::Error>,
    ) -> Result<T, DatabaseError> {
        let _turn = self.running.others_write(TURN_TIMEOUT).ok_or(DatabaseError::Busy)?;
        self.follow_limit()?;
        self.within(Begin::ToWrite, action)
    }

    fn within<T>(
        &self,
        how: Begin,
        mut action: impl FnMut(&Connection) -> Result<T, sql::Error>,
    ) -> Result<T, DatabaseError> {
        let mut waits = waits();
        let mut has_made_room = false;
        loop {
            let error = match self.once(how, &mut action) {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            let is_full = how == Begin::ToWrite && error.is_full();
            if is_full && !mem::replace(&mut has_made_room, true) && self.connection.make_room() {
                continue;
            }
            // Whether the former try was kept nobody knows: whoever asked decides.
            let may_succeed = matches!(error.failure(), Failure::Conflict | Failure::Away);
            match waits.next().filter(|_| may_succeed) {
                Some(wait) => std::thread::sleep(wait),
                None => return Err(error.into()),
            }
        }
    }

    fn once<T>(
        &self,
        how: Begin,
        action: impl FnOnce(&Connection) -> Result<T, sql::Error>,
    ) -> Result<T, sql::Error> {
        self.connection.begin(how)?;
        action(&self.connection)
            .and_then(|done| self.connection.commit().map(|()| done).map_err(sql::Error::of_commit))
            .inspect_err(|_| self.connection.roll_back())
    }

    /// Limits the database to `pages` pages, beyond which a write fails as on a full disk, on this and each
    /// connection beside it; `None` takes the limit away.
    ///
    /// # Errors
    /// The database refuses.
    pub fn limit_pages(&mut self, pages: Option<u32>) -> Result<(), DatabaseError> {
        self.running.limit_pages(pages);
        Ok(self.follow_limit()?)
    }

    /// Takes the limit over that the hub has now: it may have another one since this connection was opened.
    fn follow_limit(&mut self) -> Result<(), sql::Error> {
        let pages = self.running.pages_max();
        if self.pages_max != pages {
            self.connection.limit_pages(pages)?;
            self.pages_max = pages;
        }
        Ok(())
    }

    /// Checks the whole audit log; returns its last entry, or `None` if there is none.
    ///
    /// # Errors
    /// The database fails; or inside, where the chain is broken.
    pub fn verify_audit(
        &self,
    ) -> Result<Result<Option<audit::Entry>, audit::Broken>, DatabaseError> {
        Ok(audit::verify(&self.connection)?)
    }

    /// Runs `action` in the transaction that the next commit ends. After an error nothing of that
    /// transaction counts: the engine may have rolled back more than the one statement.
    pub(crate) fn write(
        &mut self,
        action: impl FnOnce(&mut Self) -> Result<(), sql::Error>,
    ) -> Result<(), StorageError> {
        if let Some(error) = &self.failed {
            return Err(after(error));
        }
        let done = self.begin().and_then(|()| action(self));
        done.map_err(|error| {
            self.roll_back();
            self.is_full |= error.is_full();
            let error = failed(error);
            self.failed = Some(error.clone());
            error
        })
    }

    /// Commits the transaction in which [`Self::write`] wrote, if there is one.
    ///
    /// # Errors
    /// The database fails, or a write of it did; nothing of it counts then.
    pub(crate) fn commit_written(&mut self) -> Result<(), StorageError> {
        let has_record = mem::take(&mut self.has_record);
        let step = self.step.take();
        let committed = self.commit_once();
        if let (Some(step), Ok(())) = (step, &committed) {
            self.steady.keep(&step);
        }
        if has_record {
            self.loses_records = committed.is_err();
        }
        let is_full = mem::take(&mut self.is_full);
        committed.map_err(|error| match is_full && self.makes_room() {
            // Who asks does all of it again.
            true => StorageError { failure: Failure::Conflict, ..error },
            false => error,
        })
    }

    /// Makes room on a disk that is full, once a second; returns whether there may be some now.
    fn makes_room(&mut self) -> bool {
        if self.made_room_at.is_some_and(|at| at.elapsed() < MAKES_ROOM_EVERY) {
            return false;
        }
        self.made_room_at = Some(Instant::now());
        self.connection.make_room()
    }

    /// Has the reserve be there again once there is room, and looks for that now and then.
    pub(crate) fn tend_reserve(&mut self) {
        if self.tended_at.is_none_or(|at| at.elapsed() >= TENDED_EVERY) {
            self.tended_at = Some(Instant::now());
            self.connection.keep_reserve();
        }
    }

    fn commit_once(&mut self) -> Result<(), StorageError> {
        if let Some(error) = self.failed.take() {
            self.is_away = error.is_away();
            self.roll_back();
            return Err(after(&error));
        }
        if !self.connection.is_in_transaction() {
            return Ok(());
        }
        let committed = self.connection.commit();
        self.is_full |= committed.as_ref().is_err_and(sql::Error::is_full);
        let committed = committed.map_err(|error| failed(error.of_commit()));
        if committed.is_err() {
            self.roll_back();
        }
        self.end_turn();
        self.is_away = committed.as_ref().is_err_and(StorageError::is_away);
        committed
    }

    fn roll_back(&mut self) {
        self.connection.roll_back();
        self.end_turn();
    }

    /// Begins a transaction, unless one is under way.
    fn begin(&mut self) -> Result<(), sql::Error> {
        if !self.connection.is_in_transaction() && self.failed.is_none() {
            // Where transactions find out by themselves that they are in each other's way, turns only spare them that.
            let patience = if self.is_shared() { TURN_AT_A_SERVER } else { TURN_TIMEOUT };
            self.turn = self.takes_turns.then(|| self.running.directory_writes(patience)).flatten();
            self.connection.begin(Begin::ToWrite)?;
        }
        Ok(())
    }

    /// Ends the turn in which the transaction wrote that is over.
    fn end_turn(&mut self) {
        self.turn = None;
    }
}

/// Another connection to the database, at a server, of the hub that runs: one that writes as its directory does, on another thread.
/// `None` for a file, which has one writer.
///
/// # Errors
/// The database refuses.
pub(crate) fn at_a_desk(
    directory: &Database,
    location: &Location,
) -> Result<Option<Database>, DatabaseError> {
    let Place::Server(server) = location.place() else { return Ok(None) };
    // The directory hears of what is done there as of another process's.
    let name = format!("{}-calls", directory.process.name());
    let mut database = Database::on(Connection::on(Postgres::of_the_hub(server, &name)?));
    database.running = directory.running.clone();
    database.takes_turns = false;
    database.follow_limit()?;
    Ok(Some(database))
}

impl Drop for Database {
    fn drop(&mut self) {
        if self.process.lease > 0 {
            self.connection.roll_back();
            // Other hubs wait for the end of the lease if they must.
            let _ = self.process.give_back(&self.connection);
        }
    }
}

/// The pauses before a transaction is tried again, each up to half shorter or longer, so that two that are in each other's way
/// aren't again.
fn waits() -> impl Iterator<Item = Duration> {
    WAITS_MS.into_iter().map(|wait_ms| {
        let mut random = [128];
        // Without randomness it is the pause itself.
        let _ = getrandom::fill(&mut random);
        Duration::from_millis(wait_ms) * (128 + u32::from(random[0])) / 256
    })
}

/// The error of what comes after a write that failed in the same transaction.
fn after(error: &StorageError) -> StorageError {
    StorageError { reason: "a write before it failed".into(), failure: error.failure }
}
