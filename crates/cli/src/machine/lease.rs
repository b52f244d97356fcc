//! For how long leases count: what an owner says of it, and `tenure renew`.

use std::time::Duration;

use anyhow::bail;
use tenure_package::Renewal;
use tenure_wire::control::{Client as _, LeaseNumber, MachineStatus, Renew};
use tenure_wire::printable::span;
use tenure_wire::{Name, Term};

use crate::home::Home;
use crate::machine::down::if_down;
use crate::reach::client::{AHEAD_S_MAX, Client, Device};
use crate::reach::whom::{Where, machine_named};
use crate::terminal::clock::{now_in_milliseconds, parse_seconds, parse_time, time};
use crate::terminal::output::Output;

/// For how long a lease counts; what isn't said stays as it is, and is at first without an end.
#[derive(clap::Args)]
pub struct TermArguments {
    /// When the lease ends: the machine is stopped then (2027-01-31, or 2027-01-31T12:00:00Z).
    #[arg(long, value_name = "WHEN", value_parser = parse_time, group = "end")]
    until: Option<u64>,
    /// How long the lease lasts from now on, as in 30d or 12h.
    #[arg(long = "for", value_name = "SPAN", value_parser = parse_seconds, group = "end")]
    lasts: Option<u64>,
    /// The lease has no end.
    #[arg(long, group = "end")]
    no_end: bool,
    /// How long the machine's data is kept after the end; at first 7d.
    #[arg(long, value_name = "SPAN", value_parser = parse_seconds)]
    grace: Option<u64>,
    /// How long one receipt is for; at first as the device's `--receipts-every` says.
    #[arg(long, value_name = "SPAN", value_parser = parse_seconds)]
    receipts_every: Option<u64>,
}

impl TermArguments {
    /// The term that they name, where `known` is the machine's.
    pub fn over(&self, known: Term) -> Term {
        let now = now_in_milliseconds() / 1000;
        let end = self.until.or(self.lasts.map(|lasts| now.saturating_add(lasts)));
        Term {
            signed_unix_s: now,
            ends_unix_s: if self.no_end { None } else { end.or(known.ends_unix_s) },
            grace_s: self.grace.unwrap_or(known.grace_s),
            receipts_every_s: self.receipts_every.unwrap_or(known.receipts_every_s),
        }
    }

    /// Whether they name nothing.
    pub fn is_empty(&self) -> bool {
        self.until.or(self.lasts).or(self.grace).or(self.receipts_every).is_none() && !self.no_end
    }
}

/// Let a machine's lease go on, or end it sooner.
///
/// A machine whose lease is over starts again, with what it had stored.
///
/// Example: tenure renew thermostat --for 30d
#[derive(clap::Args)]
pub struct Arguments {
    /// The machine.
    machine: Name,
    #[command(flatten)]
    term: TermArguments,
    /// The lease ends now, or ended when --until says: the machine is stopped at once.
    #[arg(long, conflicts_with_all = ["lasts", "no_end"])]
    end_now: bool,
    #[command(flatten)]
    place: Where,
}

/// Runs `tenure renew`.
///
/// # Errors
/// The device has no such machine, or can't be reached.
pub fn run(arguments: &Arguments, output: &Output) -> anyhow::Result<()> {
    if arguments.term.is_empty() && !arguments.end_now {
        bail!("say until when: --for 30d, --until 2027-01-31, --no-end, or --end-now");
    }
    let mut client = Client::new(&Home::from_environment()?)?;
    let device = arguments.place.connect(&mut client)?;
    let name = &arguments.machine;
    let known = machine_named(&mut client, &device, name)?;
    if known.lease_unix_s > now_in_milliseconds() / 1000 + AHEAD_S_MAX {
        client.set_time(&device.route)?;
    }
    let mut term = arguments.term.over(known.term);
    let now = term.signed_unix_s;
    match arguments.end_now {
        true => term.ends_unix_s = Some(term.ends_unix_s.filter(|end| *end <= now).unwrap_or(now)),
        false if term.is_over(now) => bail!(
            "{} is over already; say a later end, or --end-now if {name} is to stop at once",
            time(term.ends_unix_s.unwrap_or(now))
        ),
        false => {}
    }
    let renewal = Renewal {
        device: device.status.key,
        machine: name.clone(),
        term,
        sequence: next_lease_number(&mut client, &device, name)?,
    };
    let renewal = renewal.sign(&client.keys().signing_key)?;
    let renew = Renew { renewal, ends_now: arguments.end_now };
    client.at(&device.route).renew(renew)?;
    let down = match arguments.end_now {
        true => String::new(),
        false => if_down(&machine_named(&mut client, &device, name)?),
    };
    output.line(
        &format!("the lease of {name} {}{down}", in_words(&term)),
        &serde_json::json!({ "renewed": name.as_str(), "term": term }),
    );
    Ok(())
}

/// The number of the next placement or renewal of a machine: the one after that which is in force.
///
/// # Errors
/// The device's.
pub fn next_lease_number(
    client: &mut Client,
    device: &Device,
    machine: &Name,
) -> anyhow::Result<u64> {
    let query = LeaseNumber { machine: machine.clone() };
    let last: u64 = client.at(&device.route).lease_number(query)?;
    Ok(last.saturating_add(1))
}

/// A term as a sentence goes on.
pub fn in_words(term: &Term) -> String {
    match term.ends_unix_s {
        None => "has no end".to_string(),
        Some(end) => {
            let grace = span(Duration::from_secs(term.grace_s));
            format!("ends {}, and its data is kept for {grace} that the device is on", time(end))
        }
    }
}

/// The words of a list on the lease of a machine, if it has an end.
pub fn line(machine: &MachineStatus) -> Option<String> {
    let end = machine.term.ends_unix_s?;
    let left = end.saturating_sub(machine.lease_unix_s);
    let (when, left) = match left {
        0 => {
            (format!("is over since {}; it goes to the trash in", time(end)), machine.grace_left_s)
        }
        _ => (format!("ends {}, in", time(end)), left),
    };
    let left = span(Duration::from_secs(left));
    Some(format!("{}: its lease {when} {left}", machine.name))
}
