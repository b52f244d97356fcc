//! A person with a key, at an address, who calls the device and may be called by it.

use std::time::Duration;

use tenure_crypto::{Seed, StaticSecret, machine_id};
use tenure_hal::Instant;
use tenure_hal::simulated::Random;
use tenure_rpc::{CallHandle, Config, Endpoint, Event, IncomingCallHandle, NoResult, OutgoingCall};
use tenure_wire::datagram::Epoch;
use tenure_wire::{Address, PublicKey};

use super::{DEVICE, address};

/// How a call ended.
pub(super) type Outcome = Result<Option<Vec<u8>>, NoResult>;

/// A person whose calls are each about an errand `E`.
pub(super) struct Person<E> {
    endpoint: Endpoint<Address>,
    pub(super) key: PublicKey,
    /// Where they are.
    pub(super) place: usize,
    calls: Vec<(CallHandle, E)>,
    done: Vec<(E, Outcome)>,
    incoming: Vec<(IncomingCallHandle, String, Vec<u8>)>,
}

impl<E> Person<E> {
    /// A person whose key nobody knows yet.
    pub(super) fn stranger(now: Instant, place: usize, random: &mut Random) -> Self {
        let seed = Seed::generate(random).expect("this source never fails");
        Self::with(now, place, seed.device_secret(), random)
    }

    pub(super) fn with(
        now: Instant,
        place: usize,
        secret: StaticSecret,
        random: &mut Random,
    ) -> Self {
        let key = secret.public_key();
        let mut endpoint =
            Endpoint::new(Config::large(), now, random).expect("the usual limits fit one another");
        let own = endpoint.add_machine(secret).expect("the first");
        endpoint.identify_as(&own);
        let (calls, done, incoming) = (Vec::new(), Vec::new(), Vec::new());
        Self { endpoint, key, place, calls, done, incoming }
    }

    pub(super) fn next_us(&self) -> u64 {
        self.endpoint.poll_at().map_or(u64::MAX, Instant::as_micros)
    }

    /// How many calls are under way.
    pub(super) fn waiting(&self) -> usize {
        self.calls.len()
    }

    pub(super) fn call(
        &mut self,
        now: Instant,
        random: &mut Random,
        to: &PublicKey,
        (function, parameter): (&str, Option<Vec<u8>>),
        epoch: Option<Epoch>,
        (errand, patience): (E, Duration),
    ) {
        let call = OutgoingCall {
            function: function.to_string(),
            parameter,
            deadline: now + patience,
            attempts: 40,
        };
        let own = machine_id(&self.key);
        let route = address(DEVICE);
        if let Ok(handle) = self.endpoint.call(now, random, &own, to, route, epoch, call) {
            self.calls.push((handle, errand));
        }
    }

    pub(super) fn receive(
        &mut self,
        now: Instant,
        random: &mut Random,
        from: Address,
        datagram: &[u8],
    ) {
        self.endpoint.receive(now, random, from, datagram);
    }

    /// Does what is due.
    pub(super) fn attend(&mut self, now: Instant, random: &mut Random) {
        self.endpoint.poll(now, random);
        while let Some(event) = self.endpoint.event() {
            match event {
                Event::CallDone { handle, result, .. } => {
                    if let Some(at) = self.calls.iter().position(|(one, _)| *one == handle) {
                        let (_, errand) = self.calls.swap_remove(at);
                        self.done.push((errand, result));
                    }
                }
                Event::IncomingCall { handle, function, parameter, .. } => {
                    self.incoming.push((handle, function, parameter.unwrap_or_default()));
                }
                _ => {}
            }
        }
    }

    /// The calls that ended since this was last asked.
    pub(super) fn done(&mut self) -> Vec<(E, Outcome)> {
        std::mem::take(&mut self.done)
    }

    /// The calls of this person's functions that came since this was last asked.
    pub(super) fn incoming(&mut self) -> Vec<(IncomingCallHandle, String, Vec<u8>)> {
        std::mem::take(&mut self.incoming)
    }

    pub(super) fn reply(&mut self, now: Instant, to: IncomingCallHandle, value: Option<Vec<u8>>) {
        self.endpoint.reply(now, to, Ok(value));
    }

    pub(super) fn transmit(&mut self) -> Option<Vec<u8>> {
        Some(self.endpoint.transmit()?.1)
    }
}
