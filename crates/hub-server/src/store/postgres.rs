//! PostgreSQL as a hub's database: a server, whose connections may break at any moment.
//!
//! Invariants:
//! - A transaction that writes is `SERIALIZABLE`. One that others came between fails with [`Error::Conflict`].
//! - A hub's own connection shares an advisory lock with the other hubs of the database as long as it lasts; whoever moves
//!   the records has it alone. A process that lost its connection lost the lock with it, and writes nothing until it has
//!   it again.
//! - A server that stands still is waited for once, for a few seconds; until there is a connection again, which is made on
//!   another thread, everything fails at once.
//! - A transaction of a process that stands still ends with its connection, so that it keeps nobody waiting for long.

mod client;
mod faults;
mod schema;
mod server;
mod text;
mod values;

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use tokio_postgres::Statement;

use super::engine::{Begin, Dialect, Engine, Next, Room};
use super::sql::{Error, Row, Value};
use client::Client;
use text::of_postgres;

pub use server::{LocationError, Server};

/// The lock of the hubs that run: "TnHb".
const HUB_LOCK: i64 = 0x546E_4862;
/// The most statements that a connection keeps prepared.
const STATEMENTS_MAX: usize = 256;
/// How soon after a server didn't answer it is asked again.
const AGAIN: Duration = Duration::from_secs(1);
/// How long the lock of a process that ended just now is waited for, at the start: longer than the server's own limit.
const LOCK_PATIENCE: Duration = Duration::from_secs(8);
/// How long a connection may be idle before it is asked whether it still lives, and how long that may take.
const IDLE: Duration = Duration::from_secs(1);
const LIVES_TIMEOUT: Duration = Duration::from_secs(2);
/// The bytes of a page, as `--disk-max` counts them.
const PAGE_BYTES: i64 = 4096;
/// For how long the size of the database that was asked for last is taken for the one of now.
const SIZE_KEPT: Duration = Duration::from_secs(5);
/// The bounds of every connection: a transaction of a process that stands still ends, so that it keeps no other waiting.
///
/// A statement that has to read a table from end to end where that is off has a cost beyond all others, for which a server
/// that can would compile it (PostgreSQL 15, 32.1): a quarter of a second for a statement that takes microseconds.
const SETTINGS: &str = "SET idle_in_transaction_session_timeout = '10s'; SET bytea_output = 'hex'; \
     SELECT set_config('jit', 'off', false) FROM pg_settings WHERE name = 'jit'; \
     SELECT CASE current_setting('synchronous_commit') WHEN 'off' \
     THEN set_config('synchronous_commit', 'on', false) END";

/// The bounds of a directory's own, whose loop waits meanwhile. Two transactions that read a table from end to end are in each other's way, whatever they
/// write there (PostgreSQL 15, 13.2.3); by an index they see no more than they need, also of a small one.
const SETTINGS_OF_A_HUB: &str =
    "SET statement_timeout = '3s'; SET lock_timeout = '500ms'; SET enable_seqscan = off";
/// The same of others: those of pages, and those that read or move everything.
const SETTINGS_BESIDE: &str = "SET statement_timeout = '10s'; SET lock_timeout = '5s'";
const SETTINGS_OF_ALL: &str = "SET statement_timeout = '60s'; SET lock_timeout = '5s'";
/// How much longer than the server works at a statement its answer is waited for.
const ON_THE_WAY: Duration = Duration::from_secs(1);
/// How long a directory waits for a connection that is being made before it goes on without one.
const MAKING: Duration = Duration::from_secs(1);

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// A directory's own.
    Hub,
    /// It has the database for itself.
    Alone,
    /// Another one of the process that runs the hub.
    Beside,
    /// It changes nothing.
    Reader,
}

impl Role {
    /// The settings of such a connection, and how long an answer is waited for.
    fn bounds(self) -> (&'static str, Duration) {
        let (settings, statement_s) = match self {
            Self::Hub => (SETTINGS_OF_A_HUB, 3),
            Self::Beside => (SETTINGS_BESIDE, 10),
            Self::Alone | Self::Reader => (SETTINGS_OF_ALL, 60),
        };
        (settings, Duration::from_secs(statement_s) + ON_THE_WAY)
    }

    /// How long a connection that is being made is waited for.
    fn waits_for_a_connection(self) -> Duration {
        match self {
            Self::Hub => MAKING,
            Self::Beside | Self::Alone | Self::Reader => self.bounds().1,
        }
    }
}

/// A connection to the server, which is made anew when it broke.
pub(super) struct Postgres {
    server: Server,
    role: Role,
    /// The name of the process, on a directory's own connection.
    process: String,
    state: RefCell<State>,
    pages_max: Cell<Option<u32>>,
    size: Cell<Option<(Instant, i64)>>,
}

struct State {
    link: Option<Link>,
    transaction: Transaction,
    /// When the server didn't answer last.
    failed_at: Option<Instant>,
    /// How many connections there were.
    number: u64,
    /// The connection that another thread makes.
    making: Option<Receiver<Result<Link, Error>>>,
}

struct Link {
    client: Client,
    statements: HashMap<String, Statement>,
    used_at: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transaction {
    None,
    Open,
    /// A statement of it failed; whether the same may succeed when it is tried again.
    Failed {
        is_passing: bool,
    },
}

impl Transaction {
    /// The error of whatever comes after a statement that failed.
    fn failure(self) -> Option<Error> {
        match self {
            Self::Failed { is_passing: true } => Some(Error::Conflict),
            Self::Failed { is_passing: false } => Some(Error::Failed),
            Self::None | Self::Open => None,
        }
    }
}

impl Postgres {
    /// The own connection of a hub, in the process of that name.
    ///
    /// # Errors
    /// The server isn't there or refuses, or somebody has the database for himself.
    pub(super) fn of_the_hub(server: &Server, process: &str) -> Result<Self, Error> {
        Self::connected(server, Role::Hub, process)
    }

    /// The only connection that writes.
    ///
    /// # Errors
    /// The server isn't there or refuses, or hubs run.
    pub(super) fn alone(server: &Server) -> Result<Self, Error> {
        Self::connected(server, Role::Alone, "")
    }

    /// Another connection of the hub that runs.
    ///
    /// # Errors
    /// The server isn't there or refuses.
    pub(super) fn beside(server: &Server) -> Result<Self, Error> {
        Self::connected(server, Role::Beside, "")
    }

    /// A connection that changes nothing.
    ///
    /// # Errors
    /// The server isn't there or refuses.
    pub(super) fn to_read(server: &Server) -> Result<Self, Error> {
        Self::connected(server, Role::Reader, "")
    }

    fn connected(server: &Server, role: Role, process: &str) -> Result<Self, Error> {
        let link = Some(Link::make(server, role, process, true)?);
        let state = State {
            link,
            transaction: Transaction::None,
            failed_at: None,
            number: 1,
            making: None,
        };
        Ok(Self {
            server: server.clone(),
            role,
            process: process.to_string(),
            state: RefCell::new(state),
            pages_max: Cell::new(None),
            size: Cell::new(None),
        })
    }

    /// Runs `action` on the connection, in the transaction that is under way if there is one.
    fn on_link<T>(&self, action: impl FnOnce(&mut Link) -> Result<T, Error>) -> Result<T, Error> {
        let mut state = self.state.borrow_mut();
        if let Some(failure) = state.transaction.failure() {
            return Err(failure);
        }
        if state.transaction == Transaction::None {
            self.revive(&mut state)?;
        }
        let Some(link) = &mut state.link else {
            return Err(Error::Away("the connection broke".into()));
        };
        let done = action(link);
        link.used_at = Instant::now();
        if let (Err(error), Transaction::Open) = (&done, state.transaction) {
            state.transaction = Transaction::Failed { is_passing: error.is_passing() };
        }
        if matches!(done, Err(Error::Away(_))) {
            state.link = None;
        }
        done
    }

    /// Sees to it that there is a connection which lives.
    fn revive(&self, state: &mut State) -> Result<(), Error> {
        if state.link.as_mut().is_some_and(Link::lives) {
            return Ok(());
        }
        state.link = None;
        let away = || Error::Away(format!("{} doesn't answer", self.server));
        let (making, wait) = match state.making.take() {
            Some(making) if self.role == Role::Hub => (making, Duration::ZERO),
            Some(making) => (making, self.role.waits_for_a_connection()),
            None if state.failed_at.is_some_and(|at| at.elapsed() < AGAIN) => return Err(away()),
            None => (self.make_aside()?, self.role.waits_for_a_connection()),
        };
        let made = match making.recv_timeout(wait) {
            Ok(made) => made,
            Err(RecvTimeoutError::Timeout) => {
                state.making = Some(making);
                return Err(away());
            }
            Err(RecvTimeoutError::Disconnected) => Err(away()),
        };
        match made {
            Ok(link) => {
                (state.link, state.failed_at) = (Some(link), None);
                state.number += 1;
                Ok(())
            }
            Err(error) => {
                state.failed_at = Some(Instant::now());
                Err(error)
            }
        }
    }

    /// Has another thread make a connection, for as long as that takes.
    fn make_aside(&self) -> Result<Receiver<Result<Link, Error>>, Error> {
        let (sender, made) = channel();
        let (server, role, process) = (self.server.clone(), self.role, self.process.clone());
        let make = move || {
            // Nobody waits for it any more if the hub has ended.
            let _ = sender.send(Link::make(&server, role, &process, false));
        };
        let started = thread::Builder::new().name("database".into()).spawn(make);
        started.map_err(|error| Error::Away(format!("no thread for a connection: {error}")))?;
        Ok(made)
    }

    /// The most pages that the database may take.
    fn most(&self) -> i64 {
        self.pages_max.get().map_or(i64::MAX, i64::from)
    }

    /// The bytes that the database takes: as they were a moment ago while it is less than half full, and as they are
    /// from then on.
    fn size(&self) -> Result<i64, Error> {
        let is_good = |(at, bytes): &(Instant, i64)| {
            at.elapsed() < SIZE_KEPT && bytes / PAGE_BYTES < self.most() / 2
        };
        let known = self.size.get().filter(is_good);
        if let Some((_, bytes)) = known {
            return Ok(bytes);
        }
        let mut bytes = 0;
        self.query("SELECT pg_database_size(current_database())", &[], &mut |row| {
            bytes = row.get(0)?;
            Ok(Next::Enough)
        })?;
        self.size.set(Some((Instant::now(), bytes)));
        Ok(bytes)
    }
}

impl Link {
    /// A new connection. One that takes the lock waits for a process that ended just now, if it `may_wait`.
    fn make(server: &Server, role: Role, process: &str, may_wait: bool) -> Result<Self, Error> {
        let mut client = server.connect()?;
        let (settings, patience) = role.bounds();
        client.wait_for(patience.max(LOCK_PATIENCE));
        client.batch_execute(SETTINGS)?;
        client.batch_execute(SETTINGS_OF_ALL)?;
        match role {
            Role::Hub => {
                take_lock(&client, (SHARED_LOCK, may_wait), || Error::Taken)?;
                let moved = client.query_one("SELECT to_regclass('identity') IS NULL", &[])?;
                if moved.try_get(0)? {
                    return Err(Error::Moved);
                }
                client.query_one("SELECT set_config('tenure.process', $1, false)", &[&process])?;
            }
            Role::Alone => take_lock(&client, (LOCK_ALONE, may_wait), || Error::InUse)?,
            Role::Beside => {}
            Role::Reader => client.batch_execute("SET default_transaction_read_only = on")?,
        }
        client.batch_execute(settings)?;
        client.wait_for(patience);
        Ok(Self { client, statements: HashMap::new(), used_at: Instant::now() })
    }

    /// Whether the connection lives, as far as one can tell without asking after each statement.
    fn lives(&mut self) -> bool {
        let is_idle = self.used_at.elapsed() >= IDLE;
        !self.client.is_closed() && (!is_idle || self.client.answers(LIVES_TIMEOUT))
    }

    fn statement(&mut self, text: &str) -> Result<Statement, Error> {
        if let Some(known) = self.statements.get(text) {
            return Ok(known.clone());
        }
        if self.statements.len() >= STATEMENTS_MAX {
            self.statements.clear();
        }
        let statement = self.client.prepare(&of_postgres(text))?;
        self.statements.insert(text.to_string(), statement.clone());
        Ok(statement)
    }
}

/// The functions that take a lock: one that waits, and one that doesn't.
type TakeLock = [&'static str; 2];
const SHARED_LOCK: TakeLock =
    ["SELECT pg_advisory_lock_shared($1)", "SELECT pg_try_advisory_lock_shared($1)"];
const LOCK_ALONE: TakeLock = ["SELECT pg_advisory_lock($1)", "SELECT pg_try_advisory_lock($1)"];

fn take_lock(
    client: &Client,
    ([waits, tries], may_wait): (TakeLock, bool),
    refused: fn() -> Error,
) -> Result<(), Error> {
    if may_wait {
        return match client.query_one(waits, &[&HUB_LOCK]) {
            Ok(_) => Ok(()),
            Err(Error::Locked(_)) => Err(refused()),
            Err(error) => Err(error),
        };
    }
    let taken = client.query_one(tries, &[&HUB_LOCK])?;
    if taken.try_get(0)? { Ok(()) } else { Err(refused()) }
}

impl Engine for Postgres {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    fn storable<'t>(&self, text: &'t str) -> Cow<'t, str> {
        text::storable(text)
    }

    fn execute(&self, text: &str, values: &[Value<'_>]) -> Result<usize, Error> {
        self.on_link(|link| {
            let statement = link.statement(text)?;
            let changed = link.client.execute(&statement, values)?;
            Ok(usize::try_from(changed).unwrap_or(usize::MAX))
        })
    }

    fn query(
        &self,
        text: &str,
        values: &[Value<'_>],
        see: &mut dyn FnMut(&Row<'_>) -> Result<Next, Error>,
    ) -> Result<(), Error> {
        self.on_link(|link| {
            let statement = link.statement(text)?;
            link.client.each(&statement, values, |row| see(&Row::of(row)))
        })
    }

    /// Asked of the server in one row, however many rows the statement has.
    fn exists(&self, text: &str, values: &[Value<'_>]) -> Result<bool, Error> {
        let mut exists = false;
        self.query(&format!("SELECT EXISTS ({text})"), values, &mut |row| {
            exists = row.get(0)?;
            Ok(Next::Enough)
        })?;
        Ok(exists)
    }

    fn begin(&self, how: Begin) -> Result<(), Error> {
        if (self.role, how) == (Role::Reader, Begin::ToWrite) {
            return Err(Error::Postgres("it was opened to be read alone".into()));
        }
        let text = match how {
            Begin::ToRead => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            Begin::ToWrite => "BEGIN ISOLATION LEVEL SERIALIZABLE READ WRITE",
        };
        self.on_link(|link| link.client.batch_execute(text))?;
        self.state.borrow_mut().transaction = Transaction::Open;
        Ok(())
    }

    fn commit(&self) -> Result<(), Error> {
        // PostgreSQL answers the commit of a failed transaction as if it were good, and takes it back.
        let failure = self.state.borrow().transaction.failure();
        if let Some(failure) = failure {
            self.roll_back()?;
            return Err(failure);
        }
        let done = self.on_link(|link| link.client.batch_execute("COMMIT"));
        self.state.borrow_mut().transaction = Transaction::None;
        done
    }

    fn roll_back(&self) -> Result<(), Error> {
        let mut state = self.state.borrow_mut();
        state.transaction = Transaction::None;
        let Some(link) = &mut state.link else { return Ok(()) };
        let done = link.client.batch_execute("ROLLBACK");
        if done.is_err() {
            state.link = None;
        }
        done
    }

    fn is_in_transaction(&self) -> bool {
        self.state.borrow().transaction != Transaction::None
    }

    fn number(&self) -> u64 {
        self.state.borrow().number
    }

    fn room(&self) -> Result<Room, Error> {
        let used = self.size()? / PAGE_BYTES;
        Ok(Room { used, most: self.most(), page_bytes: PAGE_BYTES })
    }

    fn limit_pages(&self, pages: Option<u32>) -> Result<(), Error> {
        self.pages_max.set(pages);
        Ok(())
    }
}
