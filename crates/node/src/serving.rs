//! Calls from outside that machines of this device serve, and how many each machine may hold.

use alloc::vec::Vec;
use litemap::LiteMap;

use tenure_hal::planted::{Weakness, is_planted};
use tenure_hal::{Flash, Instant};
use tenure_kernel::{IncomingCall, Standing, Ticket};
use tenure_rpc::{Endpoint, IncomingCallHandle, PeerAddress as _};
use tenure_wire::{Address, MachineId, NoResult};

use crate::services::Services;

/// How many of the calls that a device serves at a time are kept for its own machine, so that no
/// machine and no caller can lock the owner out.
const SERVED_FOR_OWNER: usize = 2;

/// A call that came from outside.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    pub(crate) handle: IncomingCallHandle,
    /// Where its caller is.
    pub(crate) from: Address,
    pub(crate) call: IncomingCall,
}

/// A call from outside that a machine is serving.
struct Served {
    handle: IncomingCallHandle,
    by: MachineId,
    /// Where its caller is, as long as that is known.
    from: Option<Address>,
}

/// All of them, by the number that the kernel knows each by.
#[derive(Default)]
pub(crate) struct Serving {
    served: LiteMap<Ticket, Served>,
    tickets: u64,
}

impl Serving {
    /// Whether no machine serves a call from outside.
    pub(crate) fn is_idle(&self) -> bool {
        self.served.is_empty()
    }

    /// How many calls from outside there were, by which the next one is numbered.
    pub(crate) fn tickets(&self) -> u64 {
        self.tickets
    }

    /// The calls from outside that are being served.
    pub(crate) fn calls(&self) -> impl Iterator<Item = (Ticket, IncomingCallHandle, MachineId)> {
        self.served.iter().map(|(ticket, served)| (*ticket, served.handle, served.by))
    }

    /// Tells the callers of a machine that is going that their calls have failed, while its sessions
    /// stand.
    pub(crate) fn end_calls_of(
        &mut self,
        endpoint: &mut Endpoint<Address>,
        now: Instant,
        machine: MachineId,
    ) {
        self.served.retain(|_, Served { handle, by, .. }| {
            if *by == machine {
                endpoint.reply(now, *handle, Err(NoResult::Execution));
            }
            *by != machine
        });
    }

    /// Takes up the calls that were being served before a deep sleep. Those whose machine starts afresh
    /// may have run; those that no machine had yet didn't.
    pub(crate) fn go_on<F: Flash>(
        &mut self,
        services: &mut Services<F>,
        now: Instant,
        tickets: u64,
        served: Vec<(Ticket, IncomingCallHandle, MachineId)>,
    ) {
        let Services { kernel, endpoint, .. } = services;
        self.tickets = tickets;
        for (ticket, handle, by) in served {
            if kernel.serving().any(|known| known == ticket) {
                self.served.insert(ticket, Served { handle, by, from: None });
            } else {
                endpoint.reply(now, handle, Err(NoResult::OutcomeUnknown));
            }
        }
        let is_served = |handle: &IncomingCallHandle| {
            self.served.values().any(|served| served.handle == *handle)
        };
        let unserved: Vec<_> = endpoint.incoming().filter(|one| !is_served(one)).collect();
        for handle in unserved {
            endpoint.reply(now, handle, Err(NoResult::Busy));
        }
    }

    /// Hands a call to the machine that it is for, while `waiting` callers wait for the directory to name
    /// them.
    pub(crate) fn deliver<F: Flash>(
        &mut self,
        services: &mut Services<F>,
        now: Instant,
        waiting: &[&Arrival],
        arrival: Arrival,
    ) {
        let has_room =
            arrival.call.standing == Standing::Owner || self.has_room(services, waiting, &arrival);
        let Arrival { handle, from, call } = arrival;
        if !has_room {
            return services.endpoint.reply(now, handle, Err(NoResult::Busy));
        }
        let ticket = Ticket(self.tickets);
        self.tickets += 1;
        let by = call.to;
        match services.kernel.deliver(now, call, ticket) {
            Ok(()) => {
                self.served.insert(ticket, Served { handle, by, from: Some(from) });
            }
            Err(error) => services.endpoint.reply(now, handle, Err(error)),
        }
    }

    /// Sends a machine's answer to the caller, if the call is still being served.
    pub(crate) fn answer(
        &mut self,
        endpoint: &mut Endpoint<Address>,
        now: Instant,
        ticket: Ticket,
        (result, words): (Result<Option<Vec<u8>>, NoResult>, &[u8]),
    ) {
        let Some(Served { handle, .. }) = self.served.remove(&ticket) else { return };
        match result {
            Err(reason) => endpoint.reply_failed(now, handle, reason, words),
            result => endpoint.reply(now, handle, result),
        }
    }

    /// Whether one more call is served, or waits, while `waiting` wait. A machine holds no more calls than are
    /// still free, and nor does a host of strangers: however many are hogged, others find some (dynamic
    /// thresholds, Choudhury and Hahne 1998).
    pub(crate) fn has_room<F>(
        &self,
        services: &Services<F>,
        waiting: &[&Arrival],
        arrival: &Arrival,
    ) -> bool {
        let is_weak = is_planted(Weakness::WaitingCallersUncounted);
        let waiting = if is_weak { &[] } else { waiting };
        let in_all = services.config.rpc.running_max.saturating_sub(SERVED_FOR_OWNER).max(1);
        let free = in_all.saturating_sub(self.served.len() + waiting.len());
        let served = self.served.values().map(|one| (one.by, one.from.as_ref()));
        let held = served.chain(waiting.iter().map(|one| (one.call.to, Some(&one.from))));
        let (mut of_machine, mut of_host) = (0, 0);
        for (by, from) in held {
            of_machine += usize::from(by == arrival.call.to);
            of_host += usize::from(from.is_some_and(|from| from.is_same_host(&arrival.from)));
        }
        let is_strangers = arrival.call.standing == Standing::Stranger;
        of_machine < free && (of_host < free || !is_strangers || is_weak)
    }
}
