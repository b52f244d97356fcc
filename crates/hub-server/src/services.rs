//! The hub's functions beside the directory, called over sessions.

use serde::de::DeserializeOwned;
use tenure_hub::ServiceCall;
use tenure_wire::NoResult;
use tenure_wire::hub::{Answer, HubRefusal, Pass, Receipts, SignIn, Taken, function};

use crate::database::Database;
use crate::{receipts, sign_in};

impl Database {
    /// Answers a call of a function that isn't the directory's; the caller commits.
    ///
    /// # Errors
    /// There is no such function.
    pub(crate) fn serve(&mut self, call: &ServiceCall<'_>) -> Result<Option<Vec<u8>>, NoResult> {
        let answer = match call.function {
            function::SIGN_IN => postcard::to_allocvec(&self.sign_in(call)),
            function::TAKE_RECEIPTS => postcard::to_allocvec(&self.take_receipts(call)),
            _ => return Err(NoResult::NoSuchFunction),
        };
        answer.map(Some).map_err(|_| NoResult::Execution)
    }

    fn sign_in(&mut self, call: &ServiceCall<'_>) -> Answer<Pass> {
        let request: SignIn = read(call.parameter)?;
        let url = self.pages.clone().ok_or(HubRefusal::NoPages)?;
        let mut done = Err(HubRefusal::Full);
        let written = self.write(|database| {
            let (hub, session, owners) = (*call.hub, *call.peer, &database.owners);
            let connection = &database.connection;
            done = sign_in::sign_in(connection, hub, session, &request, owners, call.unix_s)?;
            Ok(())
        });
        written.map_err(|_| HubRefusal::Full)?;
        done.map(|secret| Pass { secret, url })
    }

    fn take_receipts(&mut self, call: &ServiceCall<'_>) -> Answer<Taken> {
        let Receipts { receipts } = read(call.parameter)?;
        let mut done = Err(HubRefusal::Full);
        let written = self.write(|database| {
            done = receipts::take(&database.connection, &receipts, call.unix_s)?;
            Ok(())
        });
        written.map_err(|_| HubRefusal::Full)?;
        done
    }
}

fn read<T: DeserializeOwned>(parameter: &[u8]) -> Answer<T> {
    postcard::from_bytes(parameter).map_err(|_| HubRefusal::Malformed)
}
