//! `tenure fleet status`: how a fleet is, in a moment, from the few rows that the hub sums it up in.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tenure_hub_server::encoded_in_address;
use tenure_wire::Name;
use tenure_wire::printable::{counted, printable};

use crate::home::Home;
use crate::hub::faults::{ago, at_hub, log_of_faults, newest, told};
use crate::hub::session::HubSession;
use crate::reach::client::Client;
use crate::reach::whom::Where;
use crate::terminal::output::Output;

/// The states of devices, in the order in which they are told.
const STATES: [&str; 5] = ["well", "updating", "unwell", "silent", "shut"];
/// The states of rollouts that go on, and of those that came to another end than was meant.
const OPEN: [&str; 3] = ["rolling back", "paused", "running"];
const STOPPED: [&str; 2] = ["rolled back", "ended"];
/// For how long back faults are shown, in seconds, and the most of them.
const FAULTS_S: u64 = 24 * 60 * 60;
const FAULTS_MAX: usize = 3;
/// The most rows of each list that has no bound of its own, and of rollouts that are over.
const ROWS_MAX: usize = 8;
const STOPPED_MAX: usize = 2;
/// The rows that are asked for at once of a list with long ones, and of the states, which are short.
const AT_ONCE: usize = 4;
const STATES_AT_ONCE: usize = 16;
/// The most steps that are proposed.
const STEPS_MAX: usize = 5;

/// Show how your fleet is, and what to do first.
///
/// A device counts once, by its gravest reason: as silent, shut, unwell, updating in a rollout, or well. Versions, open
/// alarms, rollouts that go on or were stopped, and the faults of the last day follow, then the commands that come
/// first.
///
/// Example: tenure fleet status
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The hub: HOST:PORT, or HOST:PORT#KEY; by default that of `tenure use`.
    #[arg(long, value_name = "ADDR", env = "TENURE_HUB")]
    hub: Option<String>,
}

/// The rows that the hub sums a fleet up in.
#[derive(Default)]
struct Summary {
    states: Vec<Value>,
    versions: Vec<Value>,
    alarms: Vec<Value>,
    rollouts: Vec<Value>,
    faults: Vec<Value>,
    /// The lists that have more rows than are shown.
    more: Vec<&'static str>,
}

/// A command that comes first, and why.
struct Step {
    command: String,
    why: String,
}

/// Runs `tenure fleet status`.
///
/// # Errors
/// The hub can't be reached, or doesn't know this user.
pub(super) fn run(arguments: &Arguments, output: &Output) -> anyhow::Result<()> {
    let hub = arguments.hub.as_deref();
    let home = Home::from_environment()?;
    let mut client = Client::new(&home)?;
    let place = Where { device: None, hub: hub.map(String::from), via: None };
    let mut session = HubSession::open(&mut client, &place, home.owner_key()?)?;
    let summary = Summary::ask(&mut session, &mut client)?;
    let steps = summary.steps(hub);
    output.line(&summary.text(&steps, client.unix_s()), &summary.object(&steps));
    Ok(())
}

impl Summary {
    fn ask(session: &mut HubSession, client: &mut Client) -> anyhow::Result<Self> {
        let mut more: Vec<&'static str> = Vec::new();
        let mut few = |name: &'static str, filter: &str, bounds| -> anyhow::Result<Vec<Value>> {
            let (rows, has_more) =
                session.first_rows(client, &format!("{name}{filter}"), bounds)?;
            if has_more && !more.contains(&name) {
                more.push(name);
            }
            Ok(rows)
        };
        let states = few("fleet-states", "", [STATES_AT_ONCE, STATES_AT_ONCE])?;
        let versions = few("fleet-versions", "", [ROWS_MAX, ROWS_MAX])?;
        let alarms = few("open-alarms", "", [AT_ONCE, ROWS_MAX])?;
        let mut rollouts = Vec::new();
        for state in OPEN {
            let filter = format!("?state={}", encoded_in_address(state));
            rollouts.extend(few("rollouts", &filter, [AT_ONCE, AT_ONCE])?);
        }
        // Of those that are over the newest ones alone are of interest.
        let (latest, _) = session.first_rows(client, "rollouts", [AT_ONCE, ROWS_MAX])?;
        let is_stopped = |row: &Value| STOPPED.iter().any(|state| row["state"] == *state);
        rollouts.extend(latest.into_iter().filter(is_stopped).take(STOPPED_MAX));
        let (faults, has_more) = newest(session, client, (FAULTS_S, None), FAULTS_MAX)?;
        more.extend(has_more.then_some("fault-issues"));
        Ok(Self { states, versions, alarms, rollouts, faults, more })
    }

    /// How many devices are in that state.
    fn count(&self, state: &str) -> u64 {
        let rows = self.states.iter().filter(|row| row["state"] == state);
        rows.map(|row| number(row, "devices")).fold(0, u64::saturating_add)
    }

    fn devices(&self) -> u64 {
        self.states.iter().map(|row| number(row, "devices")).fold(0, u64::saturating_add)
    }

    fn object(&self, steps: &[Step]) -> Value {
        let Self { states, versions, alarms, rollouts, faults, more } = self;
        let counts = STATES.map(|state| (state.to_string(), json!(self.count(state))));
        let step = |step: &Step| json!({ "command": step.command, "why": step.why });
        json!({
            "devices": self.devices(),
            "counts": Value::Object(counts.into_iter().collect()),
            "states": states,
            "versions": versions,
            "alarms": alarms,
            "rollouts": rollouts,
            "faults": faults,
            "more": more,
            "first": steps.iter().map(step).collect::<Vec<_>>(),
        })
    }

    fn text(&self, steps: &[Step], now: u64) -> String {
        if self.devices() == 0 {
            return "the hub knows no device of yours; one that runs with --hub registers itself"
                .into();
        }
        let mut lines = vec![self.heading()];
        lines.extend(self.states.iter().filter(|row| row["state"] != "well").map(state_line));
        lines.push(self.versions_line());
        lines.extend(self.alarms.iter().map(|alarm| alarm_line(alarm, now)));
        lines.extend(self.rollouts.iter().map(rollout_line));
        lines.extend(self.faults.iter().map(|issue| format!("! {}", told(issue, now))));
        if !self.more.is_empty() {
            lines.push(format!("there is more on the hub's pages: /{}", self.more.join(", /")));
        }
        match steps {
            [] => lines.push("nothing to do".to_string()),
            _ => lines.push("first:".to_string()),
        }
        lines.extend(steps.iter().map(|Step { command, why }| format!("  {command}    # {why}")));
        lines.join("\n")
    }

    /// How many devices there are in each state.
    fn heading(&self) -> String {
        let counts = STATES.map(|state| (self.count(state), state)).into_iter();
        let counts = counts.filter(|(count, _)| *count > 0);
        let counts: Vec<String> = counts.map(|(count, state)| format!("{count} {state}")).collect();
        format!("{}: {}", counted(self.devices(), "device"), counts.join(", "))
    }

    fn versions_line(&self) -> String {
        let version = |row: &Value| {
            let version = row["version"].as_str().map_or_else(|| "not told".into(), printable);
            format!("{version} on {}", number(row, "devices"))
        };
        let versions: Vec<String> = self.versions.iter().map(version).collect();
        format!("software: {}", versions.join(", "))
    }

    /// The commands that come first, the most urgent one at the head.
    fn steps(&self, hub: Option<&str>) -> Vec<Step> {
        let about = |reasons: &[&str]| -> Vec<Step> {
            let is_one = |row: &&Value| reasons.iter().any(|reason| row["reason"] == *reason);
            self.states.iter().filter(is_one).filter_map(|row| step_of(row, hub)).collect()
        };
        let mut steps = about(&["lost-changes", "damaged-flash"]);
        steps.extend(self.rollouts.iter().filter_map(|rollout| step_of_rollout(rollout, hub)));
        steps.extend(about(&["banned", "faults"]));
        steps.extend(self.alarms.iter().filter_map(|alarm| step_of_alarm(alarm, hub)));
        steps.extend(about(&["away-days", "away-hours", "away", "no-relay"]));
        steps.extend(about(&["store-full", "heap-full", "flash-worn"]));
        let mut known = BTreeSet::new();
        steps.retain(|step| known.insert(step.command.clone()));
        steps.truncate(STEPS_MAX);
        steps
    }
}

fn word(row: &Value, name: &str) -> String {
    row[name].as_str().map_or_else(|| "?".to_string(), printable)
}

fn number(row: &Value, name: &str) -> u64 {
    row[name].as_u64().unwrap_or(0)
}

/// A device of a row, and how many others it stands for.
fn named(row: &Value, count: u64) -> String {
    let device = word(row, "device");
    match count {
        0 | 1 => device,
        _ => format!("{device} and {} more", count - 1),
    }
}

fn state_line(row: &Value) -> String {
    let (state, count) = (word(row, "state"), number(row, "devices"));
    let sign = if state == "updating" { '~' } else { '!' };
    format!("{sign} {count} {state}: {}: {}", word(row, "detail"), named(row, count))
}

fn alarm_line(alarm: &Value, now: u64) -> String {
    let count = number(alarm, "alarms");
    let on = match alarm["device"].as_str() {
        Some("") => "the hub".to_string(),
        _ => named(alarm, count),
    };
    let [rule, condition, state] = ["rule", "condition", "state"].map(|name| word(alarm, name));
    let oldest = ago(&alarm["raised"], now);
    format!("! alarm {rule} ({condition}): {count} {state}, the oldest {oldest}: {on}")
}

fn rollout_line(rollout: &Value) -> String {
    let [machine, version, state] = ["machine", "version", "state"].map(|name| word(rollout, name));
    let reason = match word(rollout, "reason").as_str() {
        "" | "?" => String::new(),
        reason => format!(" ({reason})"),
    };
    let [id, healthy, devices] = ["id", "healthy", "devices"].map(|name| number(rollout, name));
    let sign = if state == "running" { '~' } else { '!' };
    format!(
        "{sign} rollout {id}: {machine} to {version}, {state}{reason}; {healthy} of {devices} are healthy"
    )
}

/// The command for devices that aren't well for one reason.
fn step_of(row: &Value, hub: Option<&str>) -> Option<Step> {
    let device: Name = row["device"].as_str()?.parse().ok()?;
    let command = match (row["reason"].as_str()?, hub) {
        ("lost-changes" | "damaged-flash" | "banned", _) => log_of_faults(None, &device, hub),
        ("faults", _) => at_hub("tenure faults --since 1d", hub),
        ("store-full", _) => at_hub(&format!("tenure trash list --device {device}"), hub),
        ("no-relay", None) => "tenure devices --hub".to_string(),
        ("no-relay", Some(_)) => at_hub("tenure devices", hub),
        _ => at_hub(&format!("tenure status --device {device}"), hub),
    };
    let why = format!("{}: {}", named(row, number(row, "devices")), word(row, "detail"));
    Some(Step { command, why })
}

/// The command for a rollout that waits for somebody, or was taken back.
fn step_of_rollout(rollout: &Value, hub: Option<&str>) -> Option<Step> {
    let (id, state) = (rollout["id"].as_u64()?, word(rollout, "state"));
    let command = at_hub(&format!("tenure rollout status {id}"), hub);
    (state != "running").then(|| Step { command, why: format!("rollout {id} is {state}") })
}

/// The command for an alarm that nobody has taken up.
fn step_of_alarm(alarm: &Value, hub: Option<&str>) -> Option<Step> {
    let device: Name = alarm["device"].as_str()?.parse().ok()?;
    let command = at_hub(&format!("tenure status --device {device}"), hub);
    let why = format!("alarm {}: {}", word(alarm, "rule"), named(alarm, number(alarm, "alarms")));
    (alarm["state"] == "raised").then_some(Step { command, why })
}

#[cfg(test)]
mod tests;
