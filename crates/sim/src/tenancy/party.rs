//! A party on the network that calls the device, one call at a time.

use std::time::Duration;

use tenure_crypto::{StaticSecret, machine_id};
use tenure_hal::Instant;
use tenure_hal::simulated::Random;
use tenure_rpc::{CallHandle, Config, Endpoint, Event, NoResult, OutgoingCall};
use tenure_wire::{Address, PublicKey};

const PATIENCE: Duration = Duration::from_secs(4);

/// How a call ended.
pub(super) type Outcome = Result<Option<Vec<u8>>, NoResult>;

/// A party and its purpose: an errand `E`.
pub(super) struct Party<E> {
    endpoint: Endpoint<Address>,
    key: PublicKey,
    under_way: Option<(CallHandle, E)>,
    /// When they have something to do again.
    rests_until_us: u64,
}

impl<E> Party<E> {
    pub(super) fn new(place: usize, secret: StaticSecret, random: &mut Random) -> Self {
        let key = secret.public_key();
        let mut endpoint = Endpoint::new(Config::large(), Instant::BOOT, random)
            .expect("the usual limits fit one another");
        let own = endpoint.add_machine(secret).expect("the first");
        endpoint.identify_as(&own);
        Self { endpoint, key, under_way: None, rests_until_us: place as u64 * 100_000 }
    }

    /// When it wants to be attended to.
    pub(super) fn next_us(&self) -> u64 {
        let own = self.endpoint.poll_at().map_or(u64::MAX, Instant::as_micros);
        own.min(if self.under_way.is_none() { self.rests_until_us } else { u64::MAX })
    }

    pub(super) fn is_free(&self, now_us: u64) -> bool {
        self.under_way.is_none() && now_us >= self.rests_until_us
    }

    pub(super) fn rest_until(&mut self, at_us: u64) {
        self.rests_until_us = at_us;
    }

    pub(super) fn call(
        &mut self,
        now: Instant,
        random: &mut Random,
        (address, to): (Address, PublicKey),
        (function, parameter): (&str, Vec<u8>),
        errand: E,
    ) {
        let call = OutgoingCall {
            function: function.to_string(),
            parameter: Some(parameter),
            deadline: now + PATIENCE,
            attempts: 20,
        };
        let own = machine_id(&self.key);
        let handle = self.endpoint.call(now, random, &own, &to, address, None, call);
        self.under_way = Some((handle.expect("one call at a time"), errand));
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

    /// Does what is due; gives the errand that is done.
    pub(super) fn attend(&mut self, now: Instant, random: &mut Random) -> Option<(E, Outcome)> {
        self.endpoint.poll(now, random);
        let mut done = None;
        while let Some(event) = self.endpoint.event() {
            if let Event::CallDone { handle, result, .. } = event
                && let Some((_, errand)) = self.under_way.take_if(|(one, _)| *one == handle)
            {
                done = Some((errand, result));
            }
        }
        done
    }

    pub(super) fn transmit(&mut self) -> Option<(Address, Vec<u8>)> {
        self.endpoint.transmit()
    }
}
