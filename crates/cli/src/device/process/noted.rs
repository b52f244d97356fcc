//! A device that runs where its owner's keys are is known to the owner's commands from its start on: `tenure revoke` and
//! `tenure owner change` tell it, though none has spoken with it yet. The owner is told there of keys that have no backup.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use tenure_node::Door as _;
use tenure_wire::PublicKey;
use tenure_wire::control::Client as _;

use super::Running;
use crate::home::known::Known;
use crate::home::{Home, backup};
use crate::reach::client::OwnerKeys;
use crate::terminal::output::{Beside, tell, tell_beside};

/// Notes a device in `home`, if it is enrolled and its owner's keys are there. A device that can't be noted runs all the same.
pub(super) fn note(device: &mut Running, home: &Home) {
    if let Err(error) = try_to_note(device, home) {
        let text = format!(
            "commands like `tenure revoke` don't know this device until one reaches it: {}",
            tell(&error)
        );
        tell_beside(Beside::Warning, &text);
    }
    if let Err(error) = tell_of_backup(device, home) {
        let text = format!("it isn't known whether your keys have a backup: {}", tell(&error));
        tell_beside(Beside::Warning, &text);
    }
}

/// Tells an owner without a backup so, at the first device that runs where the owner's keys are.
fn tell_of_backup(device: &mut Running, home: &Home) -> anyhow::Result<()> {
    if !home.has_owner_key() {
        return Ok(());
    }
    let owner = OwnerKeys::of(home)?.owner();
    let is_owners = owner == device.node.node().owner();
    if is_owners && backup::is_to_be_told(home, &owner.verifying_key)? {
        let folder = home.folder().display();
        let text = format!("backup of your keys in {folder}: {}", backup::NONE_YET);
        tell_beside(Beside::Note, &text);
    }
    Ok(())
}

fn try_to_note(device: &mut Running, home: &Home) -> anyhow::Result<()> {
    let is_owners =
        home.has_owner_key() && OwnerKeys::of(home)?.owner() == device.node.node().owner();
    if !is_owners || !device.node.node().is_enrolled() {
        return Ok(());
    }
    let record = device.with_moment(|node, moment| node.as_owner(moment).record(()))?;
    let Some(Ok(record)) = record.map(|record| tenure_directory::open_whenever(&record)) else {
        return Ok(());
    };
    let mut known = Known::of(home)?;
    // Where a command has met it is better known than from here, unless that was on this computer, as it is now.
    let is_elsewhere =
        |(key, at): (PublicKey, SocketAddr)| key == record.device_machine && !at.ip().is_loopback();
    let is_known = known.device(&record.enrolment.device)?.is_some_and(is_elsewhere);
    if is_known {
        return Ok(());
    }
    let taken = known.taken_name(&record.enrolment.device, &record.device_machine);
    known.met_device(&record, &from_here(device.address()).into(), None)?;
    if let Some(taken) = taken {
        tell_beside(Beside::Note, &taken);
    }
    Ok(())
}

/// The address at which this computer reaches what listens there.
fn from_here(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        match address {
            SocketAddr::V4(_) => address.set_ip(Ipv4Addr::LOCALHOST.into()),
            SocketAddr::V6(_) => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        }
    }
    address
}
