//! `tenure restart`, `tenure stop` and `tenure start`: whether a machine runs.

use anyhow::bail;
use tenure_wire::Name;
use tenure_wire::control::{Client as _, Restart, Start, Stop};

use crate::machine::down::{if_down, kept_down};
use crate::reach::client::{Client, Device};
use crate::reach::whom::{Where, machine_named};
use crate::terminal::output::Output;

/// Start a machine again from its entry, whatever it is in the middle of.
///
/// Its memory and its tasks go, and its callers are told so; what it stored and its timers stay.
///
/// Example: tenure restart thermostat
#[derive(clap::Args)]
pub struct RestartArguments {
    #[command(flatten)]
    named: Named,
}

/// Stop a machine until `tenure start`; it stays so over updates and restarts of its device.
///
/// Its callers are told that its owner stopped it. What it stored stays, and so does its lease.
///
/// Example: tenure stop thermostat
#[derive(clap::Args)]
pub struct StopArguments {
    #[command(flatten)]
    named: Named,
}

/// Start a machine that was stopped, from its entry.
///
/// Example: tenure start thermostat
#[derive(clap::Args)]
pub struct StartArguments {
    #[command(flatten)]
    named: Named,
}

#[derive(clap::Args)]
struct Named {
    /// The machine.
    machine: Name,
    #[command(flatten)]
    place: Where,
}

impl Named {
    /// The machine, and a session with its device.
    fn connect(&self, client: &mut Client) -> anyhow::Result<(Name, Device)> {
        let device = self.place.connect(client)?;
        Ok((self.machine.clone(), device))
    }
}

/// Runs `tenure restart`.
///
/// # Errors
/// The device has no such machine, can't be reached, or something keeps the machine from running.
pub fn restart(
    arguments: &RestartArguments,
    client: &mut Client,
    output: &Output,
) -> anyhow::Result<()> {
    let (machine, device) = arguments.named.connect(client)?;
    let restarted = client.at(&device.route).restart(Restart { machine: machine.clone() });
    if let Err(error) = restarted {
        // The refusal names all causes that there are; the machine's state says which one it is.
        let state = machine_named(client, &device, &machine).ok();
        return match state.as_ref().and_then(kept_down) {
            Some(why) => bail!("{machine} isn't restarted: {why}"),
            None => Err(error),
        };
    }
    tell("restarted", &machine, (&device, client), output)
}

/// Runs `tenure stop`.
///
/// # Errors
/// The device has no such machine, or can't be reached.
pub fn stop(arguments: &StopArguments, client: &mut Client, output: &Output) -> anyhow::Result<()> {
    let (machine, device) = arguments.named.connect(client)?;
    client.at(&device.route).stop(Stop { machine: machine.clone() })?;
    tell("stopped", &machine, (&device, client), output)
}

/// Runs `tenure start`.
///
/// # Errors
/// The device has no such machine, or can't be reached.
pub fn start(
    arguments: &StartArguments,
    client: &mut Client,
    output: &Output,
) -> anyhow::Result<()> {
    let (machine, device) = arguments.named.connect(client)?;
    client.at(&device.route).start(Start { machine: machine.clone() })?;
    tell("started", &machine, (&device, client), output)
}

/// Says what was done, and what keeps the machine from running all the same, if anything does.
fn tell(
    done: &str,
    machine: &Name,
    (device, client): (&Device, &mut Client),
    output: &Output,
) -> anyhow::Result<()> {
    let state = machine_named(client, device, machine)?;
    let down = if done == "stopped" { String::new() } else { if_down(&state) };
    let device = &device.status.name;
    let text = match (done, down.is_empty()) {
        // It doesn't run for that.
        ("started", false) => format!("took back the stop of {machine} on {device}{down}"),
        _ => format!("{done} {machine} on {device}{down}"),
    };
    output.line(
        &text,
        &serde_json::json!({ done: machine.as_str(), "device": device.as_str(), "state": state.state }),
    );
    Ok(())
}
