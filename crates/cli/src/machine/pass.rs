//! `tenure pass`: lets a tenant reach a device by way of the owner's others.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use tenure_package::Pass;
use tenure_wire::Name;

use crate::home::Home;
use crate::reach::client::Client;
use crate::reach::whom::{Where, machine_named};
use crate::terminal::clock::{now_in_milliseconds, parse_span, time};
use crate::terminal::output::Output;
use crate::whole_file;

/// Let the tenant of a machine reach its device by way of your others.
///
/// The pass is a file for the tenant: with it, members of your mesh carry what the tenant and that device say to each
/// other, and nothing else. It counts until the machine's lease ends, unless you say otherwise. `tenure revoke tenant`
/// ends it before.
///
/// Example: tenure pass thermostat --device attic -o attic.pass
#[derive(clap::Args)]
pub struct Arguments {
    /// The machine, whose package says who the tenant is.
    machine: Name,
    /// For how long from now on, as in 30d or 12h.
    #[arg(long = "for", value_name = "SPAN", value_parser = parse_span)]
    lasts: Option<Duration>,
    /// The file to write.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    place: Where,
}

/// Runs `tenure pass`.
///
/// # Errors
/// The device has no such machine or can't be reached, or nobody says when the pass ends.
pub fn run(arguments: &Arguments, output: &Output) -> anyhow::Result<()> {
    let mut client = Client::new(&Home::from_environment()?)?;
    let device = arguments.place.connect(&mut client)?;
    let name = &arguments.machine;
    let known = machine_named(&mut client, &device, name)?;
    let now = now_in_milliseconds() / 1000;
    let end = arguments.lasts.map(|lasts| now.saturating_add(lasts.as_secs()));
    let ends_unix_s = end
        .or(known.term.ends_unix_s)
        .context("the machine's lease has no end: say how long the pass counts, as in --for 30d")?;
    ensure!(ends_unix_s > now, "the machine's lease is over; see `tenure renew`");
    let pass = Pass { tenant: known.tenant, device: device.status.key, ends_unix_s };
    let pass = pass.sign(&client.keys().signing_key)?;
    let path = &arguments.output;
    whole_file::write(path, pass).with_context(|| format!("can't write {}", path.display()))?;
    let (until, device) = (time(ends_unix_s), &device.status.name);
    output.line(
        &format!("wrote {}: the tenant of {name} reaches {device} until {until}", path.display()),
        &serde_json::json!({
            "pass": path,
            "device": device.as_str(),
            "tenant": known.tenant.to_string(),
            "ends": ends_unix_s,
        }),
    );
    Ok(())
}
