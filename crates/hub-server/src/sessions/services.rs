//! The hub's functions beside the directory, called over sessions.

use opentelemetry::trace::SpanKind;
use opentelemetry::{Context, KeyValue};
use serde::de::DeserializeOwned;
use tenure_hub::{Failure, ServiceCall, StorageError};
use tenure_wire::NoResult;
use tenure_wire::hub::{
    Access, Answer, HubRefusal, Pass, Receipts, Request, Response, SignIn, Taken, function,
};
use tenure_wire::limits::PARAMETER_BYTES_MAX;
use tenure_wire::live_log::{LogShare, LogWish};
use tenure_wire::report::{Report, Reported};
use tenure_wire::rollout::{PART_BYTES_MAX, Part, PartQuery, Work, WorkQuery};

use crate::api::sign_in;
use crate::devices::{logs, receipts, reports};
use crate::store::{Database, failed, sql};
use crate::traces::Traced;
use crate::{api, registry, rollouts};

/// Answers a call, in bytes.
type Serve = fn(&mut Database, &ServiceCall<'_>) -> postcard::Result<Vec<u8>>;

/// The functions that are answered here; spans have their names.
const FUNCTIONS: [(&str, Serve); 7] = [
    (function::SIGN_IN, |hub, call| postcard::to_allocvec(&hub.sign_in(call))),
    (function::REQUEST, |hub, call| postcard::to_allocvec(&hub.request(call))),
    (function::TAKE_RECEIPTS, |hub, call| postcard::to_allocvec(&hub.take_receipts(call))),
    (function::WORK, |hub, call| postcard::to_allocvec(&hub.work(call))),
    (function::PART, |hub, call| postcard::to_allocvec(&hub.part(call))),
    (function::REPORT, |hub, call| postcard::to_allocvec(&hub.report(call))),
    (function::LOG, |hub, call| postcard::to_allocvec(&hub.log(call))),
];

impl Database {
    /// Answers a call of a function that isn't the directory's; the caller commits.
    ///
    /// # Errors
    /// There is no such function.
    pub(crate) fn serve(&mut self, call: &ServiceCall<'_>) -> Result<Option<Vec<u8>>, NoResult> {
        let known = FUNCTIONS.into_iter().find(|(name, _)| *name == call.function);
        let (name, serve) = known.ok_or(NoResult::NoSuchFunction)?;
        let of_sessions = [KeyValue::new("rpc.system", "tenure")];
        let traced = Traced::begin(name, SpanKind::Server, of_sessions, &Context::new());
        let answer = serve(self, call);
        traced.end(answer.is_ok());
        answer.map(Some).map_err(|_| NoResult::Execution)
    }

    /// The answer to a call of which nothing was kept.
    pub(super) fn away() -> Result<Option<Vec<u8>>, NoResult> {
        let answer: Answer<()> = Err(HubRefusal::Away);
        postcard::to_allocvec(&answer).map(Some).map_err(|_| NoResult::Execution)
    }

    fn sign_in(&mut self, call: &ServiceCall<'_>) -> Answer<Pass> {
        let request: SignIn = read(call.parameter)?;
        let url = match (&self.pages, &request.access) {
            (Some(url), _) => url.clone(),
            // A session needs no pages.
            (None, Access::Session) => String::new(),
            (None, _) => return Err(HubRefusal::NoPages),
        };
        let mut done = Err(HubRefusal::Full);
        let written = self.write(|database| {
            let (hub, session, running) = (*call.hub, *call.peer, database.running());
            let connection = &database.connection;
            done = sign_in::sign_in(connection, hub, session, &request, &running, call.unix_s)?;
            Ok(())
        });
        written.map_err(refused)?;
        done.map(|secret| Pass { secret, url })
    }

    /// A request to the API in a session: the same one as over HTTP, with the same answer.
    fn request(&mut self, call: &ServiceCall<'_>) -> Answer<Response> {
        let request: Request = read(call.parameter)?;
        let mut done = Err(HubRefusal::Full);
        let written = self.write(|database| {
            let running = database.running();
            let owners = running.owners();
            let connection = &database.connection;
            let (peer, now) = (call.peer, call.unix_s);
            let holder = sign_in::holder_in_session(connection, peer, &request.pass, &owners, now)?;
            done = match holder {
                Some(holder) => Ok(api::answer(connection, &holder, &request, now, &running)?),
                None => Err(HubRefusal::Pass),
            };
            Ok(())
        });
        written.map_err(refused)?;
        let response = done?;
        let length = |(name, value): &(String, String)| name.len() + value.len() + 8;
        let headers: usize = response.headers.iter().map(length).sum();
        if headers + response.body.len() + 32 > PARAMETER_BYTES_MAX {
            return Err(HubRefusal::TooLong);
        }
        Ok(response)
    }

    fn take_receipts(&mut self, call: &ServiceCall<'_>) -> Answer<Taken> {
        let Receipts { receipts } = read(call.parameter)?;
        let mut done = Err(HubRefusal::Full);
        let written = self.write(|database| {
            done = receipts::take(&database.connection, &receipts, call.unix_s)?;
            Ok(())
        });
        written.map_err(refused)?;
        done
    }

    /// A device's question for its next step.
    fn work(&mut self, call: &ServiceCall<'_>) -> Answer<Work> {
        let query: WorkQuery = read(call.parameter)?;
        let mut done = Err(HubRefusal::Full);
        let written = self.write(|database| {
            let (connection, peer, now) = (&database.connection, call.peer, call.unix_s);
            let hears_since = database.running().hears_since_unix_s(now);
            done = rollouts::work(connection, peer, &query, now, hears_since)?;
            Ok(())
        });
        written.map_err(refused)?;
        done
    }

    /// A device's word on how it and its machines are.
    fn report(&mut self, call: &ServiceCall<'_>) -> Answer<Reported> {
        let report: Report = read(call.parameter)?;
        let mut done = Err(HubRefusal::Full);
        let written = self.write(|database| {
            done = reports::take(&database.connection, call.peer, &report, call.unix_s)?;
            Ok(())
        });
        written.map_err(refused)?;
        done
    }

    /// A device's question whether somebody watches its log.
    fn log(&mut self, call: &ServiceCall<'_>) -> Answer<LogWish> {
        let share: LogShare = read(call.parameter)?;
        let taken =
            logs::take(&self.connection, self.running().logs(), call.peer, &share, call.unix_s);
        taken.map_err(unread)?
    }

    /// A device's question for a part of a package.
    fn part(&mut self, call: &ServiceCall<'_>) -> Answer<Part> {
        let query: PartQuery = read(call.parameter)?;
        let package = query.package.to_string();
        let owner = rollouts::owner_of_package(&self.connection, call.peer, &package);
        let owner = owner.map_err(unread)??;
        let Self { connection, served, .. } = self;
        let read = |owner: &str, package: &str| registry::package_bytes(connection, owner, package);
        let bytes = served.bytes(owner, package, read).map_err(unread)?;
        let from = usize::try_from(query.offset).unwrap_or(usize::MAX).min(bytes.len());
        let to = (from + PART_BYTES_MAX).min(bytes.len());
        Ok(Part { bytes: bytes[from..to].to_vec() })
    }
}

/// The answer to what couldn't be written.
fn refused(error: StorageError) -> HubRefusal {
    if error.failure == Failure::Refused { HubRefusal::Full } else { HubRefusal::Away }
}

fn unread(error: sql::Error) -> HubRefusal {
    refused(failed(error))
}

fn read<T: DeserializeOwned>(parameter: &[u8]) -> Answer<T> {
    postcard::from_bytes(parameter).map_err(|_| HubRefusal::Malformed)
}

#[cfg(test)]
mod tests;
