//! A device's machines and events for clients of CoAP.

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use serde_json::json;
use tenure_board_linux::{BindError, FileFlash, LinuxEntropy};
use tenure_coap::{Calls, Coap, Config, Entry, NoAnswer};
use tenure_hal::Entropy as _;
use tenure_kernel::{MachineInfo, MachineRecord};
use tenure_node::Node;
use tenure_pages::NoPage;
use tenure_wire::capability::Peer;
use tenure_wire::console::COAP_LISTENS_ON;
use tenure_wire::{Address, MachineId, Name, PublicKey, Target, Topic, TopicPattern};

use super::visited::{Machines, visitor};
use crate::reach::visitor::Visitor;
use crate::terminal::output::Output;

/// The file in the device's folder that holds the key of these visitors.
const KEY_FILE: &str = "coap.key";
/// The most patterns of topics that a device's pipeline has for one subscriber.
const PATTERNS_MAX: usize = 8;

/// The fewest patterns of topics that the bridge and the clients of CoAP hear of together.
///
/// # Errors
/// They are more than a device has.
pub(super) fn heard(
    bridged: &[TopicPattern],
    observed: &[TopicPattern],
) -> anyhow::Result<Vec<TopicPattern>> {
    let patterns = TopicPattern::fewest(bridged.iter().chain(observed));
    ensure!(
        patterns.len() <= PATTERNS_MAX,
        "the topics of --coap-events and of the bridge's file are more than {PATTERNS_MAX} patterns; one like \
         `room.*` means many topics"
    );
    Ok(patterns)
}

/// A server of CoAP, and what it knows of the device's machines.
pub(super) struct DeviceCoap {
    coap: Coap,
    /// The key that machines see.
    key: PublicKey,
    machines: Machines,
    entries: Vec<Entry>,
    /// How often each machine had published something.
    published: BTreeMap<MachineId, u64>,
}

impl DeviceCoap {
    /// Serves the machines on the device `name`, which listens at `device`, and the events of these topics at `listen`.
    ///
    /// # Errors
    /// Nobody can listen there, or the key of the visitors can't be kept in `folder`.
    pub(super) fn serve(
        listen: SocketAddr,
        events: Vec<TopicPattern>,
        folder: &Path,
        device: (&Name, SocketAddr),
        output: &Output,
    ) -> anyhow::Result<Self> {
        let socket = UdpSocket::bind(listen)
            .map_err(|error| BindError { address: listen, error })
            .context("no CoAP")?;
        let machines = Machines::default();
        let visitor = visitor(&folder.join(KEY_FILE), device, &machines)?;
        let key = visitor.key();
        let mut secret = [0; 32];
        LinuxEntropy.fill(&mut secret)?;
        let config = Config { events, secret };
        let coap = Coap::serve(socket, config, Visitors(visitor)).context("no CoAP")?;
        let address = coap.address();
        let text =
            format!("{COAP_LISTENS_ON} {}, and calls machines as #{key}", Address::Udp(address));
        let object =
            json!({ "event": "coap", "address": address.to_string(), "key": key.to_string() });
        output.line(&text, &object);
        Ok(Self { coap, key, machines, entries: Vec::new(), published: BTreeMap::new() })
    }

    /// Notes which machines there are, and which have published something.
    pub(super) fn update(&mut self, node: &Node<FileFlash>) {
        self.machines.update(node);
        let key = self.key;
        let mut known = self.entries.iter();
        let is_known =
            |machine: MachineInfo<'_>| known.next().is_some_and(|it| is(it, machine.record, &key));
        if !node.machines().all(is_known) || known.next().is_some() {
            self.entries = node.machines().map(|machine| entry(machine.record, &key)).collect();
            self.published.retain(|id, _| node.machines().any(|machine| machine.id == *id));
            self.coap.machines(self.entries.clone());
        }
        for machine in node.machines() {
            let published = machine.grants.published();
            let before = self.published.insert(machine.id, published);
            if before.is_some_and(|before| before != published) {
                self.coap.stirred(&machine.record.name);
            }
        }
    }

    /// Where it listens, and the state of the server.
    pub(super) fn state(&self) -> (Address, tenure_coap::Figures) {
        (Address::Udp(self.coap.address()), self.coap.figures())
    }

    /// Hands over an event, which goes to those alone who may observe it.
    pub(super) fn event(&self, topic: &Topic, payload: &[u8]) {
        self.coap.event(topic, payload);
    }
}

fn entry(record: &MachineRecord, key: &PublicKey) -> Entry {
    Entry {
        name: record.name.clone(),
        functions: record.exports.clone(),
        is_open: lets_in(record, key),
        publishes: publishes(record),
    }
}

/// Whether nothing of a machine has changed.
fn is(entry: &Entry, record: &MachineRecord, key: &PublicKey) -> bool {
    entry.name == record.name
        && entry.functions == record.exports
        && entry.is_open == lets_in(record, key)
        && entry.publishes == publishes(record)
}

/// Whether a machine's lease lets these visitors call it. Nobody knows more of them than their key.
fn lets_in(record: &MachineRecord, key: &PublicKey) -> bool {
    let visitor = Peer { key: Some(key), ..Peer::default() };
    record.grants.callers.iter().any(|pattern| pattern.matches(&visitor))
}

fn publishes(record: &MachineRecord) -> bool {
    !record.grants.publish.is_empty()
}

/// The calls of these visitors.
#[derive(Clone)]
struct Visitors(Visitor);

impl Calls for Visitors {
    async fn call(
        &self,
        machine: Name,
        function: String,
        parameter: Option<Vec<u8>>,
        end: Instant,
    ) -> Result<Option<Vec<u8>>, NoAnswer> {
        let result = self.0.call_function(Target::Local(machine), function, parameter, end).await;
        result.map_err(|reason| match reason {
            NoPage::Unknown => NoAnswer::Unknown,
            NoPage::Failed(reason) => NoAnswer::Failed(reason),
            NoPage::Away => NoAnswer::Away,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_of_a_bridge_and_of_clients_come_once_and_too_many_are_refused() {
        let patterns = |texts: &[&str]| {
            texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<TopicPattern>>()
        };
        let both = heard(&patterns(&["room.*", "door"]), &patterns(&["room.attic", "door", "*"]));
        assert_eq!(both.unwrap(), patterns(&["*"]));
        let both = heard(&patterns(&["room.attic", "door"]), &patterns(&["room.*", "door"]));
        assert_eq!(both.unwrap(), patterns(&["door", "room.*"]));
        let many: Vec<String> = (0..9).map(|number| format!("room{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(heard(&[], &patterns(&many[..8])).is_ok());
        let error = heard(&patterns(&many[..4]), &patterns(&many[4..])).unwrap_err();
        assert!(error.to_string().contains("more than 8 patterns"), "{error}");
    }
}
