//! `tenure trash`: what was removed from a device and can be fetched back.

use std::time::Duration;

use anyhow::bail;
use tenure_wire::control::{Client as _, Trash, TrashEmpty, TrashRestore, TrashedMachine};
use tenure_wire::printable::span;
use tenure_wire::{MachineId, Name};

use crate::home::Home;
use crate::machine::down::if_down;
use crate::reach::client::{Client, Device};
use crate::reach::whom::{Where, machine_named};
use crate::terminal::output::Output;

/// List the machines that were removed from a device, fetch one back, or delete them for good.
///
/// A machine goes to the trash when it is removed, and when its lease is over and its grace as well. It
/// stays there for a week that the device is on, and its tenant pays for the flash that it takes.
///
/// Example: tenure trash restore thermostat
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// List the machines in the trash.
    List(Place),
    /// Fetch a machine back: it starts again with its key and what it had stored.
    Restore(Named),
    /// Delete what is in the trash, with all it stored.
    Empty(Empty),
}

#[derive(clap::Args)]
struct Place {
    #[command(flatten)]
    place: Where,
}

#[derive(clap::Args)]
struct Named {
    /// The machine, by the name that it had, or by its id.
    machine: String,
    #[command(flatten)]
    place: Where,
}

#[derive(clap::Args)]
struct Empty {
    /// Only this machine, by the name that it had, or by its id.
    machine: Option<String>,
    #[command(flatten)]
    place: Where,
}

/// Runs `tenure trash`.
///
/// # Errors
/// The device can't be reached, has no such machine in its trash, or has no room for it any more.
pub fn run(arguments: &Arguments, output: &Output) -> anyhow::Result<()> {
    let mut client = Client::new(&Home::from_environment()?)?;
    match &arguments.action {
        Action::List(Place { place }) => {
            let device = place.connect(&mut client)?;
            let machines = machines_in_trash(&mut client, &device)?;
            list(&machines, output);
        }
        Action::Restore(Named { machine, place }) => {
            let device = place.connect(&mut client)?;
            let found = find(&machines_in_trash(&mut client, &device)?, machine)?;
            let restore = TrashRestore { machine: found.id };
            client.at(&device.route).trash_restore(restore)?;
            let state = machine_named(&mut client, &device, &found.name)?;
            output.line(
                &format!("{} is back on {}{}", found.name, device.status.name, if_down(&state)),
                &serde_json::json!({
                    "restored": found.name.as_str(),
                    "id": found.id.to_string(),
                    "state": state.state,
                }),
            );
        }
        Action::Empty(Empty { machine, place }) => {
            let device = place.connect(&mut client)?;
            let machines = machines_in_trash(&mut client, &device)?;
            let only = machine.as_deref().map(|machine| find(&machines, machine)).transpose()?;
            let empty = TrashEmpty { machine: only.as_ref().map(|machine| machine.id) };
            client.at(&device.route).trash_empty(empty)?;
            let deleted: Vec<&TrashedMachine> = match &only {
                Some(machine) => vec![machine],
                None => machines.iter().collect(),
            };
            let names: Vec<&str> = deleted.iter().map(|machine| machine.name.as_str()).collect();
            output.line(
                &match names.is_empty() {
                    true => "the trash is empty".to_string(),
                    false => format!("deleted for good: {}", names.join(", ")),
                },
                &serde_json::json!({ "deleted": names }),
            );
        }
    }
    Ok(())
}

fn machines_in_trash(client: &mut Client, device: &Device) -> anyhow::Result<Vec<TrashedMachine>> {
    let Trash { machines } = client.at(&device.route).trash(())?;
    Ok(machines)
}

/// The machine in the trash that `text` names, or has for an id.
fn find(machines: &[TrashedMachine], text: &str) -> anyhow::Result<TrashedMachine> {
    let (name, id) = (text.parse::<Name>().ok(), text.parse::<MachineId>().ok());
    let is_it =
        |machine: &&TrashedMachine| Some(&machine.name) == name.as_ref() || Some(machine.id) == id;
    let found: Vec<&TrashedMachine> = machines.iter().filter(is_it).collect();
    match found[..] {
        [machine] => Ok(machine.clone()),
        [] => bail!("there is no machine `{text}` in the trash; see `tenure trash list`"),
        _ => bail!("{} machines in the trash had that name; say which by its id", found.len()),
    }
}

fn list(machines: &[TrashedMachine], output: &Output) {
    let lines: Vec<String> = machines.iter().map(line).collect();
    let text = if lines.is_empty() { "the trash is empty".to_owned() } else { lines.join("\n") };
    let objects: Vec<_> = machines
        .iter()
        .map(|machine| {
            serde_json::json!({
                "name": machine.name.as_str(),
                "id": machine.id.to_string(),
                "package": machine.package.as_str(),
                "tenant": machine.tenant.to_string(),
                "stored_bytes": machine.stored_bytes,
                "code_bytes": machine.code_bytes,
                "left_s": machine.left_s,
            })
        })
        .collect();
    output.line(&text, &serde_json::json!({ "trash": objects }));
}

fn line(machine: &TrashedMachine) -> String {
    let left = span(Duration::from_secs(machine.left_s));
    let bytes = machine.stored_bytes + machine.code_bytes;
    format!("{}  {}  {bytes} bytes of flash, stays for {left}", machine.name, machine.id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure_wire::VerifyingKey;

    fn machine(name: &str, id: u8) -> TrashedMachine {
        TrashedMachine {
            name: name.parse().unwrap(),
            id: MachineId([id; 12]),
            package: name.parse().unwrap(),
            tenant: VerifyingKey([1; 32]),
            stored_bytes: 10,
            code_bytes: 20,
            left_s: 60,
        }
    }

    #[test]
    fn a_name_that_two_had_needs_the_id_to_say_which() {
        let machines = [machine("one", 1), machine("one", 2), machine("other", 3)];
        assert_eq!(find(&machines, "other").unwrap().id, MachineId([3; 12]));
        assert_eq!(find(&machines, &MachineId([2; 12]).to_string()).unwrap(), machines[1]);
        assert!(find(&machines, "one").unwrap_err().to_string().contains("by its id"));
        assert!(find(&machines, "none").unwrap_err().to_string().contains("tenure trash list"));
        assert!(line(&machines[0]).contains("30 bytes of flash, stays for 1m"));
    }
}
