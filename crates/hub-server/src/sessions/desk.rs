//! Calls in sessions that are answered on a thread of their own, by a connection of their own, so that whoever hears the devices
//! waits for no server.
//!
//! Invariants:
//! - A call is answered once what it wrote is safe, or with a refusal if nothing of it is.
//! - No more calls wait than [`WAITING_MAX`]; the next ones are told to come again.

use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

use tenure_hub::{Answered, Failure, ServiceCall, Storage as _};
use tenure_wire::{NoResult, PublicKey};

use crate::store::desk::Desk;
use crate::store::sql;
use crate::store::{Database, DatabaseError, Location, at_a_desk};

/// The most calls that wait. With those that are answered they are fewer than a hub's sessions run at once (256): records come
/// by the same sessions, and always have room there.
const WAITING_MAX: usize = 128;
/// The most calls that share one commit.
const AT_ONCE: usize = 64;
/// How often a batch is tried that other transactions are in the way of.
const TRIES: usize = 4;

/// The way to the thread that answers.
struct Thread {
    calls: SyncSender<Asked>,
    answers: Receiver<(u64, Answered)>,
    /// Answers that need no thread.
    refused: Vec<(u64, Answered)>,
}

/// A call as it was asked.
struct Asked {
    number: u64,
    peer: PublicKey,
    hub: PublicKey,
    function: String,
    parameter: Vec<u8>,
    unix_s: u64,
    /// Where the pages are.
    pages: Option<String>,
}

/// Has calls in sessions be answered beside the directory, where its database, which is there, is at a server: whoever hears the
/// devices waits for none of them.
///
/// # Errors
/// The database refuses, or the system has no thread.
pub fn answer_beside(database: &mut Database, location: &Location) -> Result<(), DatabaseError> {
    if let Some(at_the_desk) = at_a_desk(database, location)? {
        database.desk = Some(Box::new(Thread::begin(at_the_desk)?));
    }
    Ok(())
}

impl Thread {
    /// It ends with this.
    fn begin(mut database: Database) -> Result<Self, DatabaseError> {
        let (calls, asked) = sync_channel::<Asked>(WAITING_MAX);
        let (answer, answers) = channel();
        let answering = move || {
            while let Ok(first) = asked.recv() {
                let others = asked.try_iter().take(AT_ONCE - 1);
                let batch: Vec<Asked> = [first].into_iter().chain(others).collect();
                answer_all(&mut database, &batch, &answer);
            }
        };
        let started = thread::Builder::new().name("calls".into()).spawn(answering);
        started.map_err(|error| sql::Error::Away(format!("no thread for calls: {error}")))?;
        Ok(Self { calls, answers, refused: Vec::new() })
    }
}

impl Desk for Thread {
    fn take(&mut self, number: u64, call: &ServiceCall<'_>, pages: Option<&str>) {
        let asked = Asked {
            number,
            peer: *call.peer,
            hub: *call.hub,
            function: call.function.into(),
            parameter: call.parameter.into(),
            unix_s: call.unix_s,
            pages: pages.map(Into::into),
        };
        if self.calls.try_send(asked).is_err() {
            self.refused.push((number, Database::away()));
        }
    }

    fn answers(&mut self) -> Vec<(u64, Answered)> {
        self.refused.drain(..).chain(self.answers.try_iter()).collect()
    }
}

/// Answers calls that share one commit.
fn answer_all(database: &mut Database, batch: &[Asked], answer: &Sender<(u64, Answered)>) {
    let mut answers = Vec::new();
    for tried in 1..=TRIES {
        answers = batch.iter().map(|asked| answer_one(database, asked)).collect();
        let failure = match database.commit() {
            Ok(()) => break,
            Err(error) => error.failure,
        };
        if failure == Failure::Conflict && tried < TRIES {
            continue;
        }
        // One that was declined wrote nothing.
        for kept in answers.iter_mut().filter(|kept| kept.is_ok()) {
            *kept = match failure {
                Failure::Refused => Err(NoResult::Execution),
                Failure::Unsure => Err(NoResult::OutcomeUnknown),
                Failure::Away | Failure::Conflict => Database::away(),
            };
        }
        break;
    }
    for (asked, kept) in batch.iter().zip(answers) {
        // Nobody waits for it if the hub has ended.
        let _ = answer.send((asked.number, kept));
    }
}

fn answer_one(database: &mut Database, asked: &Asked) -> Answered {
    let Asked { peer, hub, function, parameter, unix_s, pages, .. } = asked;
    database.pages.clone_from(pages);
    database.serve(&ServiceCall { peer, hub, function, parameter, unix_s: *unix_s })
}
