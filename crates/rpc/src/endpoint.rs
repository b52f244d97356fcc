//! One device's end of all its sessions: turns datagrams into events and calls into datagrams.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::hash::Hash;

use tenure_crypto::{StaticSecret, machine_id};
use tenure_hal::{Entropy, Instant};
use tenure_wire::datagram::Epoch;
use tenure_wire::{MachineId, PublicKey};

use crate::{
    CallError, CallHandle, Config, Declined, EndpointError, Event, IdentifyHandle,
    IncomingCallHandle, OutgoingCall, TooManyMachines,
};

/// One device's (or tool's, or hub's) end. `A` is the transport's address of a peer.
pub struct Endpoint<A> {
    config: Config,
    machines: Vec<(MachineId, StaticSecret)>,
    epoch: Epoch,
    outbox: VecDeque<(A, Vec<u8>)>,
    events: VecDeque<Event<A>>,
}

impl<A: Clone + Eq + Hash> Endpoint<A> {
    /// An endpoint that speaks for no machine yet. What was received before `now` is not
    /// remembered: peers are told so.
    ///
    /// # Errors
    /// [`EndpointError`] if the limits don't fit one another or there is no randomness.
    pub fn new(
        config: Config,
        _now: Instant,
        entropy: &mut dyn Entropy,
    ) -> Result<Self, EndpointError> {
        config.check().map_err(EndpointError::Config)?;
        let mut epoch = [0; 8];
        entropy.fill(&mut epoch).map_err(EndpointError::Entropy)?;
        Ok(Self {
            config,
            machines: Vec::new(),
            epoch: Epoch(epoch),
            outbox: VecDeque::new(),
            events: VecDeque::new(),
        })
    }

    /// Speaks for one more machine from now on.
    ///
    /// # Errors
    /// [`TooManyMachines`] beyond `Config::machines_max`.
    pub fn add_machine(&mut self, secret: StaticSecret) -> Result<MachineId, TooManyMachines> {
        let id = machine_id(&secret.public_key());
        if self.machines.len() >= self.config.machines_max {
            return Err(TooManyMachines);
        }
        self.machines.push((id, secret));
        Ok(id)
    }

    /// Speaks no longer for `machine`: its sessions end, its own calls fail, and replies to calls
    /// that it is still executing are dropped.
    pub fn remove_machine(&mut self, _now: Instant, machine: &MachineId) {
        self.machines.retain(|(id, _)| id != machine);
    }

    /// Names the machine whose key this device tells to anybody who asks: its own.
    pub fn identify_as(&mut self, _machine: &MachineId) {}

    /// The current epoch, to be published. It changes now and then: compare before publishing.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Calls a function of the machine that holds `peer`, in the name of the machine `from`.
    ///
    /// `route` is where the peer is believed to be, `epoch_hint` its epoch as published.
    ///
    /// # Errors
    /// [`CallError`] if the call can't be made; there is no event then.
    #[allow(clippy::too_many_arguments)]
    pub fn call(
        &mut self,
        _now: Instant,
        _entropy: &mut dyn Entropy,
        _from: &MachineId,
        _peer: &PublicKey,
        _route: A,
        _epoch_hint: Option<Epoch>,
        _call: OutgoingCall,
    ) -> Result<CallHandle, CallError> {
        Err(CallError::Busy)
    }

    /// Gives up on a call: there is no event for it. It may have been executed.
    pub fn cancel(&mut self, _now: Instant, _handle: CallHandle) {}

    /// Answers a call that came in. An answer to a call that is no longer known is dropped.
    pub fn reply(
        &mut self,
        _now: Instant,
        _handle: IncomingCallHandle,
        _result: Result<Option<Vec<u8>>, Declined>,
    ) {
    }

    /// Asks whoever is at `route` for its key and epoch.
    ///
    /// # Errors
    /// [`CallError::Busy`] if too many such questions are under way.
    pub fn identify(
        &mut self,
        _now: Instant,
        _entropy: &mut dyn Entropy,
        _route: A,
        _deadline: Instant,
    ) -> Result<IdentifyHandle, CallError> {
        Err(CallError::Busy)
    }

    /// Takes in a datagram that came from `from`. Whatever is in it, the worst that happens is that
    /// nothing does.
    pub fn receive(
        &mut self,
        _now: Instant,
        _entropy: &mut dyn Entropy,
        _from: A,
        _datagram: &[u8],
    ) {
    }

    /// Does what time has come for: sends again, gives up, forgets.
    pub fn poll(&mut self, _now: Instant, _entropy: &mut dyn Entropy) {}

    /// When to call [`Self::poll`] next, if nothing else happens.
    pub fn poll_at(&self) -> Option<Instant> {
        None
    }

    /// The next datagram to send, and where to.
    pub fn transmit(&mut self) -> Option<(A, Vec<u8>)> {
        self.outbox.pop_front()
    }

    /// The next event.
    pub fn event(&mut self) -> Option<Event<A>> {
        self.events.pop_front()
    }
}
