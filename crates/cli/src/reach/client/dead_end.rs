//! Where the way to a device in the mesh ends, now that nothing comes from there: members are asked one after the other, as
//! far as they answer.

use std::time::{Duration, Instant};

use tenure_mesh::NodeId;
use tenure_wire::control::{Client as _, MeshStatus, MeshWay};
use tenure_wire::directory::Query;
use tenure_wire::{Address, Name};

use super::{Client, Route, Silent};

/// How long it may take, once a carried call has failed, to find out where the way ends.
const WALK_TIMEOUT: Duration = Duration::from_secs(2);
/// The most members that are asked.
const HOPS_MAX: usize = 16;
/// The most devices that are named, and that are looked up for it.
const NAMED_MAX: usize = 8;
const LOOKED_UP_MAX: usize = 32;

/// The answer of a member that is asked for its ways.
enum Asked {
    Answers(MeshStatus),
    Silent,
    /// It tells its ways to its owner alone, and that is another.
    Refuses,
}

/// A device that is or was in the mesh.
struct Met {
    name: String,
    node: String,
}

impl Client {
    /// Where the way to `route` ends by way of the member that carries datagrams, now that nothing comes from there; `None` if
    /// no member does, or that can't be found out.
    pub fn state_of_way(&mut self, route: &Route) -> Option<String> {
        let Address::Mesh(to) = route.address else { return None };
        let until = self.until;
        self.end_by(Some(Instant::now() + WALK_TIMEOUT));
        let told = self.walk(&NodeId::from_bytes(to).to_string());
        self.end_by(until);
        told
    }

    fn walk(&mut self, to: &str) -> Option<String> {
        let via = self.via.as_mut()?;
        let mut member = via.name().to_owned();
        let Some(mut status) = via.status() else {
            return Some(format!("{member}, which carries for it, doesn't answer either"));
        };
        for _ in 0..HOPS_MAX {
            let Some(way) = way_to(&status, to) else {
                return Some(lost(&member, &status, &met_in_mesh(self)));
            };
            if way.next_hop == to {
                return Some(format!(
                    "{member} hears it without a relay, so it is busy or just gone"
                ));
            }
            let (relay, node) = (name_of(&status, &way.next_hop), way.next_hop.parse().ok()?);
            status = match self.ask(&node) {
                Asked::Answers(status) => status,
                Asked::Silent => {
                    return Some(format!(
                        "the way there leads from {member} to the relay {relay}, which doesn't answer: it is gone or out \
                         of reach"
                    ));
                }
                Asked::Refuses => {
                    return Some(format!(
                        "the way there leads from {member} to {relay}, which answers: it, or what lies behind it, has \
                         lost the way"
                    ));
                }
            };
            member = relay;
        }
        None
    }

    /// Asks a node of the mesh for its ways.
    fn ask(&mut self, node: &NodeId) -> Asked {
        let address = Address::Mesh(node.to_bytes());
        let Ok(Some(identity)) = self.identify_at(&address) else { return Asked::Silent };
        let Some(key) = identity.key else { return Asked::Refuses };
        let route = Route { key, address, epoch: Some(identity.epoch) };
        match self.at(&route).mesh(()) {
            Ok(status) => Asked::Answers(status),
            Err(error) if error.downcast_ref::<Silent>().is_some() => Asked::Silent,
            Err(_) => Asked::Refuses,
        }
    }
}

/// The devices that this user knows and whose records the member holds: they are or were in its mesh.
fn met_in_mesh(client: &mut Client) -> Vec<Met> {
    let known = client.known.devices_and_members();
    let names: Vec<Name> = known.filter_map(|[name, ..]| name.parse().ok()).collect();
    let Some(via) = &mut client.via else { return Vec::new() };
    let found = names.into_iter().take(LOOKED_UP_MAX).filter_map(|name| {
        let found = via.find(&Query::Device(name.clone())).ok()??;
        let Address::Mesh(node) = found.seen_at else { return None };
        Some(Met { name: name.to_string(), node: NodeId::from_bytes(node).to_string() })
    });
    found.collect()
}

fn way_to<'a>(status: &'a MeshStatus, to: &str) -> Option<&'a MeshWay> {
    status.ways.iter().find(|way| way.to == to)
}

/// The name of a node's device, if its record has come; else the node's own.
fn name_of(status: &MeshStatus, node: &str) -> String {
    let device = way_to(status, node).and_then(|way| way.device.as_ref());
    device.map_or_else(|| node.to_owned(), Name::to_string)
}

/// Says that `member` has lost the way, whom it still reaches, and whom of those that were `met` in its mesh it doesn't.
fn lost(member: &str, status: &MeshStatus, met: &[Met]) -> String {
    let reached = status.ways.iter().map(|way| name_of(status, &way.to)).collect();
    let gone =
        met.iter().filter(|met| met.node != status.node && way_to(status, &met.node).is_none());
    let gone: Vec<String> = gone.map(|met| met.name.clone()).collect();
    let no_longer = match gone.is_empty() {
        true => String::new(),
        false => format!(", and no longer {}", several(gone)),
    };
    format!(
        "{member} has no way there any more: the device or a relay before it is gone or out of reach; it still reaches \
         {}{no_longer}",
        several(reached)
    )
}

/// The first of these names, in order.
fn several(mut names: Vec<String>) -> String {
    names.sort();
    names.truncate(NAMED_MAX);
    if names.is_empty() { "nobody".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn way_that_is_lost_is_told_with_whom_the_member_still_reaches_and_whom_no_longer() {
        let way = |to: &str, device: Option<&str>| MeshWay {
            to: to.to_owned(),
            device: device.map(|name| name.parse().unwrap()),
            next_hop: "n2".to_owned(),
            metric: 64,
        };
        let told = |ways, met: &[(&str, &str)]| {
            let status = MeshStatus { node: "n1".to_owned(), neighbours: 1, ways };
            let met = met
                .iter()
                .map(|(name, node)| Met { name: (*name).to_owned(), node: (*node).to_owned() });
            lost("m1", &status, &met.collect::<Vec<_>>())
        };
        let two = || vec![way("n2", Some("m2")), way("n3", None)];
        assert!(told(two(), &[]).starts_with("m1 has no way there any more"));
        assert!(told(two(), &[]).ends_with("it still reaches m2, n3"), "{}", told(two(), &[]));
        let met = [("m5", "n5"), ("m1", "n1"), ("m2", "n2"), ("m4", "n4")];
        assert!(told(two(), &met).ends_with("reaches m2, n3, and no longer m4, m5"));
        assert!(told(Vec::new(), &[]).ends_with("reaches nobody"));
    }
}
