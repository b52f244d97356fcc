//! Records that devices on the same network show of themselves, and look-ups that wait for one.

use alloc::vec::Vec;
use core::time::Duration;

use tenure_hal::Flash;
use tenure_rpc::{IdentifyHandle, Identity};
use tenure_wire::control::{Function, decode_answer};
use tenure_wire::directory::{Found, Query, SignedRecord};
use tenure_wire::{Address, PublicKey};

use super::Exchange;
use crate::moment::Moment;
use crate::outbound::{Purpose, Waiter};

/// How long a neighbour may take to tell its key.
const KEY_TIMEOUT: Duration = Duration::from_secs(2);
/// How long it may take to show its record, and how often it is asked meanwhile.
const RECORD_TIMEOUT: Duration = Duration::from_secs(4);
const ATTEMPTS: u8 = 4;

impl<F: Flash> Exchange<'_, F> {
    /// Waits for what `query` asks for from the devices on this network; `false` if there are none.
    pub(super) fn await_nearby(&mut self, moment: &Moment<'_>, query: &Query) -> bool {
        if self.neighbours.is_empty() {
            return false;
        }
        let last_seen = self.directory.last_record(query).map(|entry| entry.seen_at.clone());
        self.neighbours.want(moment.now, query, last_seen.as_ref());
        true
    }

    /// Asks the neighbours that are to be asked now, and ends look-ups that wait in vain.
    pub(crate) fn attend_to_neighbours(&mut self, moment: &mut Moment<'_>) {
        while let Some(address) = self.neighbours.due(moment.now).cloned() {
            let until = moment.now + KEY_TIMEOUT;
            let handle = self.services.endpoint.identify(moment.now, address.clone(), until).ok();
            self.neighbours.asked(moment.now, &address, handle);
        }
        for query in self.neighbours.given_up(moment.now) {
            self.neighbours.wanted.retain(|(wanted, _)| *wanted != query);
            // The mesh may still answer, and ends the wait by itself.
            if !self.is_in_mesh() {
                self.release(moment, &query, false);
            }
        }
    }

    /// Takes a neighbour's answer to the question for its key, and asks that key's holder for its record.
    /// Returns whether the question was one to a neighbour.
    pub(crate) fn neighbour_identified(
        &mut self,
        moment: &mut Moment<'_>,
        handle: IdentifyHandle,
        identity: Option<Identity>,
    ) -> bool {
        let Some(address) = self.neighbours.asked_by(handle) else { return false };
        let Some(Identity { key: Some(key), epoch }) = identity else {
            self.neighbours.silent(&address);
            return true;
        };
        let own = self.services.identity.machine;
        if key == self.services.identity.machine_key {
            self.neighbours.forget(&address);
            return true;
        }
        let call = tenure_rpc::OutgoingCall {
            function: Function::record.name().into(),
            parameter: Some(Vec::new()),
            deadline: moment.now + RECORD_TIMEOUT,
            attempts: ATTEMPTS,
        };
        let route = address.clone();
        let endpoint = &mut self.services.endpoint;
        match endpoint.call(moment.now, moment.entropy, &own, &key, route, Some(epoch), call) {
            Ok(handle) => {
                self.neighbours.shown(&address, key);
                self.outbound.insert(handle, Purpose::Record { address, key });
            }
            Err(_) => self.neighbours.silent(&address),
        }
        true
    }

    /// Takes a neighbour's answer to the question for its record. The record counts if the device that holds
    /// `key` in this session is the one that it is about: so its address is where that device is, or somebody
    /// passes on what it says.
    pub(crate) fn record_shown(
        &mut self,
        moment: &mut Moment<'_>,
        (address, key): (&Address, &PublicKey),
        answer: Option<Vec<u8>>,
    ) {
        let Some(answer) = answer else { return self.neighbours.silent(address) };
        let shown = decode_answer::<Option<SignedRecord>>(&answer).ok().flatten();
        let is_own = shown.is_some_and(|record| {
            let found = Found { record, seen_at: address.clone() };
            self.directory.learn_from_itself(&self.services.ownership.revoked, found, key)
        });
        self.neighbours.answered(address, is_own);
        if !is_own {
            return;
        }
        let known = |query: &&Query| {
            self.directory
                .last_record(query)
                .is_some_and(|entry| entry.record.device_machine == *key)
        };
        let wanted = self.neighbours.wanted.iter().map(|(query, _)| query);
        let told: Vec<Query> = wanted.filter(known).cloned().collect();
        for query in told {
            self.neighbours.wanted.retain(|(wanted, _)| *wanted != query);
            self.directory.trust_again(&query);
            self.release(moment, &query, true);
        }
    }

    /// Lets those go on who waited for what `query` asks for.
    fn release(&mut self, moment: &mut Moment<'_>, query: &Query, answered: bool) {
        for waiter in self.outbound.take_waiters(query) {
            // A caller whose name nobody told in all that time is a stranger.
            let answered = answered || matches!(waiter, Waiter::Caller(..));
            self.record_arrived(moment, waiter, answered);
        }
    }

    #[cfg(feature = "mesh")]
    fn is_in_mesh(&self) -> bool {
        self.mesh.is_some()
    }

    #[cfg(not(feature = "mesh"))]
    fn is_in_mesh(&self) -> bool {
        false
    }
}
