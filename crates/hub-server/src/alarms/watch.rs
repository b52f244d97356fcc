//! The clock of alarms: looks at each rule again and again, raises what is to be raised, and ends what is over.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tenure_kernel::CallId;
use tenure_package::Tariff;
use tenure_reach::Reach;
use tenure_wire::Name;

use super::mails::Mails;
use super::place::THE_HUB;
use super::queue::{self, Outcome};
use super::rules::{Condition, Rule, Rules};
use super::seen::{self, Now, Seen};
use super::states;
use super::webhooks::{self, Sent};
use crate::running::Running;
use crate::store::shared::{ALARMS, Process};
use crate::store::space::{self, Keeps};
use crate::store::sql::{Connection, Error};
use crate::store::{Database, DatabaseError, Location};

/// How long the thread sleeps between two turns.
const PAUSE: Duration = Duration::from_secs(1);
/// How often a rule is looked at, in seconds; and one of bills, for which receipts are verified.
const EVERY_S: u64 = 10;
const BILLS_EVERY_S: u64 = 600;
/// How often it is looked for alarms that needn't be kept any more, in seconds.
const FORGOTTEN_EVERY_S: u64 = 60 * 60;
/// How long a condition doesn't hold before its alarm is over, in seconds, so that none comes and goes with each report.
const CALM_S: u64 = 60;
/// The most alarms that change in one transaction.
const AT_ONCE: usize = 64;

/// The bytes that an alarm may add to the database, with its entries in the audit log and a message to each server.
const ALARM_BYTES: usize = 32 * 1024;

/// What becomes of an alarm.
enum Change<'a> {
    Raised(&'a Rule, Seen),
    /// With why, and whom that is told.
    Over(i64, &'static str, &'a [Name]),
}

/// The rules of a hub that runs, and its database beside it.
pub struct Alarms {
    database: Database,
    /// This one among those of other processes.
    process: Process,
    rules: Rules,
    tariff: Option<Tariff>,
    /// When each rule is looked at next.
    due_unix_s: Vec<u64>,
    forgets_unix_s: u64,
    /// Since when the conditions of alarms haven't held, by the alarms' numbers.
    calm_since: BTreeMap<i64, u64>,
    /// The way to servers.
    reach: Reach,
    /// The messages to servers whose answers aren't there yet.
    under_way: Vec<Sent>,
    /// The mails that are sent.
    mails: Mails,
    /// What came of others, until that is written.
    outcomes: Vec<Outcome>,
    /// The number of the last request.
    calls: u32,
    /// Where people find the hub's pages, if that is known.
    pages_url: Option<String>,
}

impl Alarms {
    /// Alarms by `rules` in the database of the hub that runs; bills are by `tariff`, and servers are reached by `reach`.
    ///
    /// # Errors
    /// The database refuses.
    pub fn open(
        location: &Location,
        running: &Running,
        rules: Rules,
        tariff: Option<Tariff>,
        reach: Reach,
    ) -> Result<Self, DatabaseError> {
        Ok(Self {
            database: Database::beside(location, running)?,
            process: Process::new(),
            due_unix_s: vec![0; rules.rules.len()],
            rules,
            tariff,
            forgets_unix_s: 0,
            calm_since: BTreeMap::new(),
            reach,
            under_way: Vec::new(),
            mails: Mails::new(),
            outcomes: Vec::new(),
            calls: 0,
            pages_url: None,
        })
    }

    /// Has messages link to devices' pages below that address, if it is known.
    #[must_use]
    pub fn linking_to(mut self, pages_url: Option<String>) -> Self {
        self.pages_url = pages_url;
        self
    }

    /// Takes a turn about every second on a thread of its own, until the process ends.
    ///
    /// # Errors
    /// The system has no thread.
    pub fn start(mut self) -> std::io::Result<()> {
        let watch = move || {
            loop {
                let unix_s = self.database.running().unix_s();
                if let Err(error) = self.turn(unix_s) {
                    tracing::error!(reason = %error, "can't look at the rules of alarms");
                }
                std::thread::sleep(PAUSE);
            }
        };
        std::thread::Builder::new().name("alarms".into()).spawn(watch).map(drop)
    }

    /// Does what is due at `unix_s`, seconds since 1970 UTC, unless another process does it.
    ///
    /// # Errors
    /// The database fails; what is due then comes again.
    pub fn turn(&mut self, unix_s: u64) -> Result<(), DatabaseError> {
        // Whoever has the lease: this process sent it.
        self.settle(unix_s)?;
        let is_shared = self.database.is_shared();
        if is_shared && !self.process.may_lease(&self.database.connection, ALARMS)? {
            return Ok(());
        }
        let mut done = Ok(());
        for index in 0..self.rules.rules.len() {
            let rule = &self.rules.rules[index];
            let every_s = match rule.when {
                Condition::Bill { .. } => BILLS_EVERY_S,
                _ => EVERY_S,
            };
            if !is_due(self.due_unix_s[index], every_s, unix_s) {
                continue;
            }
            // One rule that fails keeps no other from being looked at.
            match self.look_at(index, unix_s) {
                Ok(()) => self.due_unix_s[index] = unix_s + every_s,
                Err(error) => done = Err(error),
            }
        }
        if is_due(self.forgets_unix_s, FORGOTTEN_EVERY_S, unix_s) {
            self.end_of_others(unix_s)?;
            self.write(Vec::new(), unix_s, true)?;
            self.forgets_unix_s = unix_s + FORGOTTEN_EVERY_S;
        }
        self.tell(unix_s)?;
        done
    }

    /// Writes what came of messages.
    fn settle(&mut self, unix_s: u64) -> Result<(), DatabaseError> {
        let Self { database, reach, under_way, mails, outcomes, .. } = self;
        outcomes.extend(webhooks::ended(reach, under_way));
        outcomes.extend(mails.ended());
        if outcomes.is_empty() {
            return Ok(());
        }
        database.transact(|connection| {
            outcomes.iter().try_for_each(|outcome| queue::settle(connection, outcome, unix_s))
        })?;
        outcomes.clear();
        Ok(())
    }

    /// Sends the messages that are due.
    fn tell(&mut self, unix_s: u64) -> Result<(), DatabaseError> {
        let is_shared = self.database.is_shared();
        let Self { database, process, rules, reach, under_way, mails, calls, pages_url, .. } = self;
        let due = database.look(|connection| queue::due(connection, unix_s))?;
        if due.is_empty() {
            return Ok(());
        }
        let is_ours = database.transact(|connection| {
            if is_shared && !process.lease(connection, ALARMS)? {
                return Ok(false);
            }
            queue::claim(connection, &due, rules, unix_s)?;
            Ok::<bool, Error>(true)
        })?;
        if is_ours {
            for waiting in due {
                let waiting = match pages_url {
                    Some(url) => waiting.linked(url),
                    None => waiting,
                };
                let Some(waiting) = mails.send(reach, &rules.emails, waiting) else { continue };
                *calls = calls.wrapping_add(1);
                let call = CallId(*calls);
                under_way.extend(webhooks::send(reach, &rules.webhooks, waiting, call, unix_s));
            }
        }
        Ok(())
    }

    fn look_at(&mut self, index: usize, unix_s: u64) -> Result<(), DatabaseError> {
        let rule = self.rules.rules[index].clone();
        let running = self.database.running();
        let hears_since_unix_s = running.hears_since_unix_s(unix_s);
        let (jump, listed) = (running.jump(unix_s), running.listed());
        let now = Now { unix_s, hears_since_unix_s, jump, listed, tariff: self.tariff.as_ref() };
        let looked = self.database.look(|connection| {
            let open = states::open_of_rule(connection, rule.name.as_str())?;
            Ok((seen::devices(connection, &rule, &now)?, open))
        })?;
        let (Some(seen), open) = looked else { return Ok(()) };
        // A device that another owner has now isn't the one of before.
        let holds: BTreeSet<(&str, &str)> =
            seen.iter().map(|seen| (seen.device.as_str(), seen.owner.as_str())).collect();
        let mut changes = Vec::new();
        for (id, device, owner) in &open {
            if holds.contains(&(device.as_str(), owner.as_str())) {
                self.calm_since.remove(id);
                continue;
            }
            let since = self.calm_since.entry(*id).or_insert(unix_s);
            *since = unix_s.min(*since);
            if unix_s - *since >= CALM_S {
                let why = "its condition doesn't hold any more";
                changes.push(Change::Over(*id, why, &rule.tell));
            }
        }
        // One on a device that another owner had is over first; one on the hub is each owner's.
        let known: BTreeSet<(&str, &str)> =
            open.iter().map(|(_, device, owner)| key_of(device, owner)).collect();
        let is_new = |seen: &&Seen| !known.contains(&key_of(&seen.device, &seen.owner));
        let new = seen.iter().filter(is_new);
        changes.extend(new.map(|seen| Change::Raised(&rule, seen.clone())));
        self.write(changes, unix_s, false)
    }

    /// Ends the alarms of rules that aren't in the file any more.
    fn end_of_others(&mut self, unix_s: u64) -> Result<(), DatabaseError> {
        let known: BTreeSet<&str> =
            self.rules.rules.iter().map(|rule| rule.name.as_str()).collect();
        let gone = self.database.look(|connection| {
            let mut gone = Vec::new();
            for rule in states::open_rules(connection)? {
                if !known.contains(rule.as_str()) {
                    gone.extend(states::open_of_rule(connection, &rule)?);
                }
            }
            Ok(gone)
        })?;
        let changes = gone.into_iter().map(|(id, ..)| Change::Over(id, "its rule is gone", &[]));
        self.write(changes.collect(), unix_s, false)
    }

    /// Writes what becomes of alarms, some at once, each time with the lease if there may be others.
    fn write(
        &mut self,
        changes: Vec<Change<'_>>,
        unix_s: u64,
        forgets: bool,
    ) -> Result<(), DatabaseError> {
        let is_shared = self.database.is_shared();
        let Self { database, process, calm_since, .. } = self;
        let none: &[Change<'_>] = &[];
        let parts = changes.chunks(AT_ONCE).chain(forgets.then_some(none));
        for part in parts {
            let is_ours = database.transact(|connection| {
                if is_shared && !process.lease(connection, ALARMS)? {
                    return Ok(false);
                }
                for change in part {
                    write(connection, change, unix_s)?;
                }
                if forgets {
                    states::forget(connection, unix_s)?;
                }
                Ok::<bool, Error>(true)
            })?;
            if !is_ours {
                return Ok(());
            }
            for change in part {
                if let Change::Over(id, ..) = change {
                    calm_since.remove(id);
                }
            }
        }
        Ok(())
    }
}

/// Whether what is done so often is due, which was to be done then: also where the clock went back since.
fn is_due(due_unix_s: u64, every_s: u64, unix_s: u64) -> bool {
    !(unix_s + 1..=unix_s + every_s).contains(&due_unix_s)
}

/// What a rule has one alarm on at a time.
fn key_of<'a>(device: &'a str, owner: &'a str) -> (&'a str, &'a str) {
    (device, if device == THE_HUB { owner } else { "" })
}

fn write(connection: &Connection, change: &Change<'_>, unix_s: u64) -> Result<(), Error> {
    match change {
        // It is raised once there is room: alarms never take that of the directory.
        Change::Raised(..) if !space::is_left(connection, Keeps::History, ALARM_BYTES)? => Ok(()),
        Change::Raised(rule, seen) => match states::raise(connection, rule, seen, unix_s)? {
            Some(id) => queue::put(connection, id, &rule.tell, unix_s),
            None => Ok(()),
        },
        Change::Over(id, why, tell) => match states::end(connection, *id, why, unix_s)? {
            true => queue::put(connection, *id, tell, unix_s),
            false => Ok(()),
        },
    }
}

impl Drop for Alarms {
    fn drop(&mut self) {
        if self.database.is_shared() {
            // Another process waits for the lease's end if it must.
            let _ = self.process.give_back(&self.database.connection);
        }
    }
}
