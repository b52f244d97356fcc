//! Experiments with a deployment's mesh: what an order of the owner starts, stops and shapes here, and
//! what is noted of it.
//!
//! A device takes part if it was started so. It runs a broadcast that repairs what is lost, end-to-end
//! acknowledgements, topology control and the experiment manager then; everything else is started by
//! orders, which reach all devices from whichever the owner gives them to.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_hal::{Flash, Instant};
use tenure_mesh::{HostEvent, NodeId, ProtocolNumber, decode};
use tenure_protocols::babel::Babel;
use tenure_protocols::broadcast::{Broadcast, Limits};
use tenure_protocols::experiment::{Experiment, Order, carry_out};
use tenure_protocols::flooding::Everything;
use tenure_protocols::interface::{Contribute, Directed, LinkUp, LogArrived, Note, Ordered};
use tenure_protocols::plug_in::{Registry, Start};
use tenure_protocols::reliable::{self, Reliable};
use tenure_protocols::reliable_broadcast::{self, ReliableBroadcast};
use tenure_protocols::topology_control;
use tenure_wire::VerifyingKey;
use tenure_wire::control::{Answer, ControlError, ExperimentLog};

use crate::membership::{MeshStack, name_of};
use crate::services::Services;

/// How often what the protocols have come to is noted.
const NOTE_EVERY: Duration = Duration::from_secs(2);
/// The most logs that are kept for the owner, and how many bytes of theirs one answer carries.
const LOGS_MAX: usize = 64;
const ANSWER_BYTES_MAX: usize = 48 * 1024;
/// The shortest time between two rounds of a protocol.
const INTERVAL_MIN: Duration = Duration::from_millis(50);

/// How an order starts a protocol: the head of the settings in [`Order::Start`]. The protocol's own settings follow it
/// as text.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The time between rounds, in milliseconds.
    pub interval_ms: u32,
    /// The contribution of each node.
    pub value: Value,
}

/// The contribution of a node to an aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Value {
    /// The same on each.
    Number(f64),
    /// How many machines it has.
    Machines,
    /// For how many seconds it is up.
    Uptime,
}

/// A device's part in experiments.
pub(crate) struct Experimenting {
    /// The notes of the nodes, this one too, as they were collected last.
    logs: Vec<(NodeId, Vec<u8>)>,
    /// The experiment that was started last and not stopped, and the value that it was given.
    running: Vec<(ProtocolNumber, Value)>,
    note_at: Option<Instant>,
    registry: Registry,
}

impl Experimenting {
    /// Starts what every experiment needs, for orders of `owner` with numbers above `floor`.
    pub(crate) fn start(
        now: Instant,
        owner: VerifyingKey,
        floor: u64,
        registry: Registry,
        stack: &mut MeshStack,
    ) -> Self {
        stack.start(now, Reliable::new(reliable::Config::default()));
        stack.start(now, Broadcast::new(Everything::default(), Limits::default()));
        stack.start(now, ReliableBroadcast::new(reliable_broadcast::Config::default()));
        stack.start(now, Experiment::new(owner, floor));
        // It was started in the line before, and can intercept.
        let _ = topology_control::put_in_place(stack, now);
        stack.subscribe::<Ordered>();
        stack.subscribe::<LogArrived>();
        Self { logs: Vec::new(), running: Vec::new(), note_at: None, registry }
    }

    pub(crate) fn wakes_at(&self) -> Option<Instant> {
        self.note_at
    }

    /// Gives the deployment an order that the owner signed.
    pub(crate) fn direct(stack: &mut MeshStack, now: Instant, signed: &[u8]) -> Answer<()> {
        let directed = stack
            .act::<Experiment, _>(now, |experiment, context| experiment.direct(signed, context));
        match directed {
            Some(Directed::UnderWay) => Ok(()),
            Some(Directed::Refused) => Err(ControlError::Refused(
                "the order isn't signed by the owner, or a later one was given".to_string(),
            )),
            None => Err(takes_no_part()),
        }
    }

    /// The logs that have come.
    pub(crate) fn logs(&self, stack: &MeshStack) -> Vec<ExperimentLog> {
        let mut room = ANSWER_BYTES_MAX;
        let fitting = self.logs.iter().take_while(|(_, log)| {
            let fits = log.len() <= room;
            room = room.saturating_sub(log.len());
            fits
        });
        let told = fitting.map(|(node, log)| ExperimentLog {
            node: node.to_string(),
            device: name_of(stack, *node),
            text: String::from_utf8_lossy(log).into_owned(),
        });
        told.collect()
    }

    /// Takes an event that has to do with experiments.
    pub(crate) fn take_part<F: Flash>(
        &mut self,
        services: &mut Services<F>,
        stack: &mut MeshStack,
        now: Instant,
        event: &HostEvent,
    ) {
        if let Some((ordered, order)) = event.notification::<Ordered>() {
            // The number first: an order whose number can't be kept would count again after a boot.
            let Services { identity, kernel, .. } = services;
            match identity.keep_order(kernel.store(), ordered.number) {
                Ok(()) => self.obey(kernel.machines().count(), stack, now, (&ordered, order)),
                Err(_) => note(stack, now, "an order isn't carried out: its number can't be kept"),
            }
        } else if let Some((LogArrived { from }, log)) = event.notification::<LogArrived>() {
            let logs = &mut self.logs;
            if from == stack.node() {
                // The director's own is the first of a collection; those before are of an earlier one.
                logs.clear();
            }
            if logs.len() < LOGS_MAX && logs.iter().all(|(node, _)| *node != from) {
                logs.push((from, log.to_vec()));
            }
        }
    }

    /// Notes the figures of the protocols that run, when that is due.
    pub(crate) fn note_progress(&mut self, stack: &mut MeshStack, now: Instant) {
        let uptime = now.as_millis() as f64 / 1000.0;
        if self.note_at.is_none_or(|at| now < at) {
            return;
        }
        self.note_at = (!self.running.is_empty()).then_some(now + NOTE_EVERY);
        for (protocol, value) in &self.running {
            if *value == Value::Uptime {
                stack.request(&Contribute { value: uptime }, &[]);
            }
            let Some(entry) = self.registry.numbered(*protocol) else { continue };
            let mut figures: Vec<String> = Vec::new();
            entry
                .figures(stack, now, &mut |name, value| figures.push(format!("{name} {value:.3}")));
            if !figures.is_empty() {
                note(stack, now, &figures.join(" "));
            }
        }
    }

    /// Carries out an order, and notes how that went.
    fn obey(
        &mut self,
        machines: usize,
        stack: &mut MeshStack,
        now: Instant,
        (ordered, bytes): (&Ordered, &[u8]),
    ) {
        let Some((order, [])) = decode::<Order>(bytes) else {
            return note(stack, now, "an order isn't carried out: it is of another version");
        };
        let name = |number: ProtocolNumber| {
            let found = self.registry.numbered(number);
            found.map_or_else(|| format!("protocol {}", number.0), |entry| entry.name().to_string())
        };
        let node = stack.node();
        let has_unit = ordered.director == node;
        let mut prepared = None;
        let (order, text) = match order {
            Order::Start { protocol, settings } => {
                let Some((head, own)) = decode::<Settings>(&settings) else {
                    let text = "a start isn't carried out: its settings are of another version";
                    return note(stack, now, text);
                };
                let value = match head.value {
                    Value::Number(value) => value,
                    Value::Machines => machines as f64,
                    Value::Uptime => now.as_millis() as f64 / 1000.0,
                };
                let interval = Duration::from_millis(head.interval_ms.into()).max(INTERVAL_MIN);
                let mut text = format!("start {} with {value}, every {interval:?}", name(protocol));
                let settings = String::from_utf8_lossy(own).into_owned();
                let started =
                    Start { node, life: 0, interval, value, has_unit, settings: &settings };
                match self.registry.numbered(protocol).map(|entry| entry.make(&started)) {
                    Some(Ok(made)) => prepared = Some(made),
                    Some(Err(error)) => text = format!("{text}: {error}"),
                    None => text = format!("{text}: this device doesn't have it"),
                }
                if prepared.is_some() {
                    self.running.retain(|(running, _)| *running != protocol);
                    self.running.push((protocol, head.value));
                    self.note_at = Some(now + NOTE_EVERY);
                }
                (Order::Start { protocol, settings: Vec::new() }, text)
            }
            Order::Stop { protocol } => {
                self.running.retain(|(running, _)| *running != protocol);
                (Order::Stop { protocol }, format!("stop {}", name(protocol)))
            }
            Order::Shape { one, other, lost_permille } => {
                let text = format!("lose {lost_permille} of 1000 between {one} and {other}");
                (Order::Shape { one, other, lost_permille }, text)
            }
            Order::Collect => return,
        };
        let knows = |number| self.registry.numbered(number).is_some();
        let done = carry_out(stack, now, &order, knows, |_, _| prepared);
        if let Order::Start { protocol, .. } = order
            && done
        {
            // It wasn't there when the links came up.
            let router = stack.protocol::<Babel>();
            let links: Vec<LinkUp> = router.iter().flat_map(|router| router.links()).collect();
            for link in links {
                stack.tell_one(protocol, &link, &[]);
            }
        }
        note(stack, now, &if done { text } else { format!("{text}: not done") });
    }
}

/// Notes a line in this node's log of the experiment.
fn note(stack: &mut MeshStack, now: Instant, text: &str) {
    let line = format!("{:.1} {text}", now.as_millis() as f64 / 1000.0);
    stack.request(&Note, line.as_bytes());
}

pub(crate) fn takes_no_part() -> ControlError {
    let text = "the device takes no part in experiments: start it with --experiments";
    ControlError::Refused(text.to_string())
}
