//! One function of a device's own machine, called by the owner's protocol.

use std::time::Duration;

use anyhow::{Context as _, anyhow};
use tenure_wire::Address;
use tenure_wire::control::{Function, decode_answer};

use super::{CONTROL_TIMEOUT, Client, NoResult, Route};
use crate::terminal::output::{Beside, tell_beside};

/// How often a device is asked again that said when, and how long it is waited for each time at most.
const BUSY_MAX: u32 = 3;
const BUSY_FOR_MAX: Duration = Duration::from_secs(10);

impl Client {
    /// Calls one function of a device's own machine; the answer is still encoded. One that is busy is asked again when it
    /// says.
    pub(super) fn call_control(
        &mut self,
        route: &Route,
        function: Function,
        request: &[u8],
    ) -> anyhow::Result<Vec<u8>> {
        for _ in 0..BUSY_MAX {
            let answer = self.call_control_once(route, function, request)?;
            let Err(refusal) = decode_answer::<()>(&answer) else { return Ok(answer) };
            let Some(wait) = refusal.again_in() else { return Ok(answer) };
            let wait = wait.min(BUSY_FOR_MAX);
            tell_beside(Beside::Waiting, &format!("{refusal}, as this command does now"));
            self.pause(wait)?;
        }
        self.call_control_once(route, function, request)
    }

    fn call_control_once(
        &mut self,
        route: &Route,
        function: Function,
        request: &[u8],
    ) -> anyhow::Result<Vec<u8>> {
        let called = called_again_if_lost(function, || {
            let request = Some(request.to_vec());
            let handle = self.start_call(route, function.name(), request, CONTROL_TIMEOUT)?;
            self.end_of_call(handle, Some(&route.address)).map_err(|(reason, _)| reason)
        });
        called
            .map_err(|failure| unanswered(failure, &route.address))?
            .context("the device gave no answer to that request: it runs another version")
    }
}

/// Calls `function` once, and once more if the device lost track of the call, as one that restarts does, and a second
/// call changes nothing more.
fn called_again_if_lost<T>(
    function: Function,
    mut call: impl FnMut() -> Result<T, NoResult>,
) -> Result<T, NoResult> {
    match call() {
        Err(NoResult::OutcomeUnknown) if is_idempotent(function) => call(),
        result => result,
    }
}

/// Whether a second call of `function` changes nothing more than the first did (RFC 9110 §9.2.2 has the term for methods).
fn is_idempotent(function: Function) -> bool {
    use Function as F;
    match function {
        F::hello | F::status | F::room | F::list | F::lease_number | F::trash | F::grants => true,
        F::receipts | F::record | F::secret_list | F::tree | F::log | F::hub | F::revoked => true,
        F::mesh | F::mesh_strangers | F::mesh_find | F::firmware | F::events => true,
        F::snapshot_read | F::receipts_forget | F::time | F::journal | F::journal_keep => true,
        // Each puts into force what is signed, and the same again is in force already.
        F::enrol | F::trust_hub | F::revoke | F::change_owner | F::join | F::mesh_admit => true,
        _ => false,
    }
}

/// A device that answered before gives no answer any more.
#[derive(Debug, thiserror::Error)]
#[error("the device at {0} stopped answering")]
pub struct Silent(Address);

fn unanswered(failure: NoResult, address: &Address) -> anyhow::Error {
    match failure {
        NoResult::Unreachable | NoResult::Deadline => Silent(address.clone()).into(),
        NoResult::NoSuchFunction => anyhow!(
            "the device at {address}: it can't do that: it is a hub, or a device of another version"
        ),
        failure => anyhow!("the device at {address}: {failure}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_that_a_device_lost_track_of_is_made_again_where_that_changes_nothing_more() {
        let calls = |function, outcomes: &[Result<u8, NoResult>]| {
            let mut left = outcomes.iter();
            let result = called_again_if_lost(function, || *left.next().expect("no third call"));
            (result, outcomes.len() - left.len())
        };
        const LOST: Result<u8, NoResult> = Err(NoResult::OutcomeUnknown);
        assert_eq!(calls(Function::join, &[LOST, Ok(1)]), (Ok(1), 2));
        assert_eq!(calls(Function::join, &[LOST, LOST]), (LOST, 2), "once more, and not for ever");
        assert_eq!(calls(Function::install_commit, &[LOST, Ok(1)]), (LOST, 1));
        let denied = Err(NoResult::Denied);
        assert_eq!(calls(Function::status, &[denied, Ok(1)]), (denied, 1));
    }
}
