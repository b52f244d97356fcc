//! `tenure rollback`: the package that a machine had before.

use anyhow::bail;
use serde_json::json;
use tenure_wire::Name;

use crate::home::Home;
use crate::machine::grant::Grant;
use crate::machine::install::update;
use crate::machine::kept_packages::KeptPackages;
use crate::reach::client::Client;
use crate::reach::whom::{Where, machine_named};
use crate::terminal::output::Output;

/// Put back the package that a machine had before.
///
/// Your computer keeps the last four that it installed on each machine; given again, the command goes one
/// further back. The machine keeps its key and what it stores now: to put that back too, take a `tenure snapshot`
/// before an update.
///
/// Example: tenure rollback thermostat
#[derive(clap::Args)]
pub struct Arguments {
    /// The machine.
    machine: Name,
    /// Its rights, as for `tenure install`; by default those that it has now.
    #[arg(long, value_name = "WHAT")]
    grant: Vec<Grant>,
    #[command(flatten)]
    place: Where,
}

/// Runs `tenure rollback`.
///
/// # Errors
/// No package before the present one is kept, or the device can't be reached or refuses it.
pub fn run(arguments: &Arguments, output: &Output) -> anyhow::Result<()> {
    let home = Home::from_environment()?;
    let mut client = Client::new(&home)?;
    let device = arguments.place.connect(&mut client)?;
    let (name, on) = (&arguments.machine, &device.status.name);
    let known = machine_named(&mut client, &device, name)?;
    let before = KeptPackages::of(&home)?.before(&known.id, &known.digest.to_string())?;
    let Some(before) = before else {
        bail!(
            "nothing before {name} {} on {on} is kept here: it is the first that this computer, with these \
             keys, installed there, or another one did; install what you mean with `tenure install`",
            known.version
        );
    };
    let machine = update(&mut client, &device, &before, &known, &arguments.grant)?;
    let (was, version) = (known.version, machine.version);
    let text = match was == version {
        true => format!("rolled {name} back to the build of {version} before on {on}"),
        false => format!("rolled {name} back from {was} to {version} on {on}"),
    };
    output.line(
        &text,
        &json!({
            "rolled_back": name.as_str(),
            "device": on.as_str(),
            "version": version,
            "version_before": was,
            "digest": machine.digest.to_string(),
            "state": machine.state,
        }),
    );
    Ok(())
}
