//! For how long leases count: what an owner says of it, and `tenure renew`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::bail;
use tenure_package::Renewal;
use tenure_wire::control::{Client as _, MachineStatus, Renew};
use tenure_wire::{Name, Term};

use crate::client::{AHEAD_S_MAX, Client};
use crate::clock::now_in_milliseconds;
use crate::home::Home;
use crate::install::next_lease_number;
use crate::output::Output;
use crate::whom::{Where, machines};

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
    let known = machines(&mut client, &device)?.into_iter().find(|machine| machine.name == *name);
    let Some(known) = known else {
        bail!("{} has no machine `{name}`; see `tenure list`", device.status.name);
    };
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
    output.line(
        &format!("the lease of {name} {}", in_words(&term)),
        &serde_json::json!({ "renewed": name.as_str(), "term": term }),
    );
    Ok(())
}

/// A term as a sentence goes on.
pub fn in_words(term: &Term) -> String {
    match term.ends_unix_s {
        None => "has no end".to_string(),
        Some(end) => {
            let grace = humantime::format_duration(Duration::from_secs(term.grace_s));
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
    let left = humantime::format_duration(Duration::from_secs(left));
    Some(format!("{}: its lease {when} {left}", machine.name))
}

/// A time in the words of RFC 3339.
pub fn time(unix_s: u64) -> String {
    // A date that no calendar has is far enough away.
    let at = UNIX_EPOCH.checked_add(Duration::from_secs(unix_s.min(LAST_UNIX_S)));
    humantime::format_rfc3339_seconds(at.unwrap_or(UNIX_EPOCH)).to_string()
}

/// The last second of the year 9999.
const LAST_UNIX_S: u64 = 253_402_300_799;

fn parse_seconds(text: &str) -> Result<u64, String> {
    parse_span(text).map(|span| span.as_secs())
}

/// A span of time as in 30d, 12h or 90s.
///
/// # Errors
/// It is none, or shorter than a second.
pub fn parse_span(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(span) if span.as_secs() > 0 => Ok(span),
        _ => Err("write a span of time, as in 30d, 12h or 90s".to_string()),
    }
}

fn parse_time(text: &str) -> Result<u64, String> {
    let whole =
        if text.len() == "2027-01-31".len() { format!("{text}T00:00:00Z") } else { text.into() };
    let at = humantime::parse_rfc3339_weak(&whole).ok();
    at.and_then(|at: SystemTime| at.duration_since(UNIX_EPOCH).ok())
        .map(|since| since.as_secs())
        .ok_or_else(|| "write a date, as in 2027-01-31, or 2027-01-31T12:00:00Z".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_spans_are_read_as_they_are_written() {
        assert_eq!(parse_time("1970-01-02"), Ok(86_400));
        assert_eq!(parse_time("2027-01-31T12:00:00Z").map(time), Ok("2027-01-31T12:00:00Z".into()));
        assert_eq!(parse_seconds("30d"), Ok(30 * 86_400));
        assert!(
            ["tomorrow", "", "31.1.2027", "1960-01-01"]
                .iter()
                .all(|text| parse_time(text).is_err())
        );
        assert!(["0s", "x", "5"].iter().all(|text| parse_seconds(text).is_err()));
        assert_eq!(time(u64::MAX), "9999-12-31T23:59:59Z");
    }
}
