//! `tenure faults`: the faults of all devices, as the hub knows them: those that are alike are one issue.

use std::time::Duration;

use serde_json::{Value, json};
use tenure_wire::Name;
use tenure_wire::printable::{counted, printable, span};

use crate::home::Home;
use crate::hub::session::HubSession;
use crate::reach::client::Client;
use crate::reach::whom::Where;
use crate::terminal::clock::{parse_seconds, rough};
use crate::terminal::output::Output;

/// The most issues that are shown.
const SHOWN_MAX: usize = 20;
/// The issues that are asked for at once: as many of the longest fit an answer.
const AT_ONCE: usize = 4;

/// Show the faults of all your devices, those that are alike as one.
///
/// The newest come first. Each is told with its package and place, how often it was and on how many devices, and the
/// commands that open it. The hub makes them of the newest 20,000 faults, and keeps faults for 90 days.
///
/// Example: tenure faults --since 1d --package thermostat
#[derive(clap::Args)]
pub struct Arguments {
    /// The hub: HOST:PORT, or HOST:PORT#KEY; by default that of `tenure use`.
    #[arg(long, value_name = "ADDR", env = "TENURE_HUB")]
    hub: Option<String>,
    /// Only those of this package; one that the hub doesn't have is called as its machine.
    #[arg(long, value_name = "NAME")]
    package: Option<Name>,
    /// For how long back to look.
    #[arg(long, value_name = "SPAN", default_value = "7d", value_parser = parse_seconds)]
    since: u64,
}

/// Runs `tenure faults`.
///
/// # Errors
/// The hub can't be reached, or doesn't know this user.
pub fn run(arguments: &Arguments, output: &Output) -> anyhow::Result<()> {
    let Arguments { hub, package, since } = arguments;
    let hub = hub.as_deref();
    let home = Home::from_environment()?;
    let mut client = Client::new(&home)?;
    let place = Where { device: None, hub: hub.map(String::from), via: None };
    let mut session = HubSession::open(&mut client, &place, home.owner_key()?)?;
    let asked = (*since, package.as_ref());
    let (mut issues, has_more) = newest(&mut session, &mut client, asked, SHOWN_MAX)?;
    let mut texts: Vec<String> =
        issues.iter().map(|issue| with_commands(issue, client.unix_s(), hub)).collect();
    if issues.is_empty() {
        texts.push(format!("no faults in the last {}", span(Duration::from_secs(*since))));
    }
    if has_more {
        texts.push(format!(
            "these are the newest {SHOWN_MAX}; --package and --since show fewer, /fault-issues of the hub's pages all"
        ));
    }
    for issue in &mut issues {
        let commands = commands(issue, hub);
        if let Some(row) = issue.as_object_mut() {
            row.insert("commands".to_string(), json!(commands));
        }
    }
    let object = json!({ "issues": issues, "more": has_more, "since_s": since });
    output.line(&texts.join("\n"), &object);
    Ok(())
}

/// The issues of the last so many seconds, of a package or of all, the newest `most`; and whether there are more.
///
/// # Errors
/// The hub can't be reached, or refuses.
pub(super) fn newest(
    session: &mut HubSession,
    client: &mut Client,
    (since_s, package): (u64, Option<&Name>),
    most: usize,
) -> anyhow::Result<(Vec<Value>, bool)> {
    let of_package = package.map_or_else(String::new, |package| format!("&package={package}"));
    let list = format!("fault-issues?within_s={since_s}{of_package}");
    session.first_rows(client, &list, [AT_ONCE, most])
}

/// An issue in two lines, at the moment `now`.
pub(super) fn told(issue: &Value, now: u64) -> String {
    let word = |name: &str| issue[name].as_str().map(printable);
    let number = |name: &str| issue[name].as_u64();
    let of = match (word("package"), word("version")) {
        (Some(package), Some(version)) => format!("{package} {version}"),
        (Some(package), None) => package,
        (None, _) => "the device itself".to_string(),
    };
    let running = match number("running") {
        Some(1) => " (1 runs it now)".to_string(),
        Some(count) => format!(" ({count} run it now)"),
        None => String::new(),
    };
    format!(
        "{of}: {}\n  {} on {}{running}, the last {}, the first {}",
        word("text").unwrap_or_default(),
        counted(number("faults").unwrap_or(0), "fault"),
        counted(number("devices").unwrap_or(0), "device"),
        ago(&issue["last"], now),
        ago(&issue["first"], now)
    )
}

/// How long ago a moment is that the hub told.
pub(super) fn ago(moment: &Value, now: u64) -> String {
    let passed_s = moment.as_u64().map(|moment| now.saturating_sub(moment));
    passed_s.map_or_else(|| "at an unknown time".to_string(), |s| format!("{} ago", rough(s)))
}

/// The command that shows the lines of faults in a device's log, of all its machines or of one.
pub(super) fn log_of_faults(machine: Option<&Name>, device: &Name, hub: Option<&str>) -> String {
    let command = match machine {
        Some(machine) => format!("tenure log {machine} --device {device} --level fault"),
        None => format!("tenure log --device {device} --level fault"),
    };
    at_hub(&command, hub)
}

/// A command for the hub that this one was given.
pub(super) fn at_hub(command: &str, hub: Option<&str>) -> String {
    let Some(hub) = hub else { return command.to_string() };
    let quoted = shlex::try_quote(hub).map_or_else(|_| hub.to_owned(), Into::into);
    format!("{command} --hub {quoted}")
}

fn with_commands(issue: &Value, now: u64, hub: Option<&str>) -> String {
    let mut text = told(issue, now);
    for command in commands(issue, hub) {
        let beside = match command.starts_with("tenure debug ") {
            true => "    # if it keeps a journal (`tenure journal keep`)",
            false => "",
        };
        text += &format!("\n  {command}{beside}");
    }
    text
}

/// The commands that open an issue, where it happened last.
fn commands(issue: &Value, hub: Option<&str>) -> Vec<String> {
    let name = |column: &str| -> Option<Name> { issue[column].as_str()?.parse().ok() };
    let (machine, device) = (name("machine"), name("device"));
    let log = device.as_ref().map(|device| log_of_faults(machine.as_ref(), device, hub));
    let debug =
        machine.zip(device).map(|(machine, device)| format!("tenure debug {machine}@{device}"));
    log.into_iter().chain(debug).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn issue() -> Value {
        json!({
            "package": "thermostat", "version": "1.2.0", "text": "trap: unreachable in function 7 at 0x41",
            "faults": 12, "devices": 3, "running": 5, "last": 9_760, "first": 1_000,
            "device": "attic", "machine": "north", "digest": "5f",
        })
    }

    #[test]
    fn issue_is_told_whole_with_commands_that_are_taken() {
        let text = with_commands(&issue(), 10_000, Some("hub.example:7369#k"));
        assert_eq!(
            text,
            "thermostat 1.2.0: trap: unreachable in function 7 at 0x41\n  \
             12 faults on 3 devices (5 run it now), the last 4 min ago, the first 2 h ago\n  \
             tenure log north --device attic --level fault --hub 'hub.example:7369#k'\n  \
             tenure debug north@attic    # if it keeps a journal (`tenure journal keep`)"
        );
        for command in commands(&issue(), Some("hub.example:7369#k")) {
            let words = shlex::split(&command).unwrap();
            let taken = crate::command_line::command().try_get_matches_from(words);
            assert!(taken.is_ok(), "{command}");
        }
    }

    #[test]
    fn fault_of_the_device_itself_is_opened_by_its_log_alone() {
        let mut issue = issue();
        for column in ["package", "version", "machine", "running"] {
            issue[column] = Value::Null;
        }
        let text = with_commands(&issue, 10_000, None);
        assert!(text.starts_with("the device itself: trap: "), "{text}");
        assert!(text.ends_with("\n  tenure log --device attic --level fault"), "{text}");
        assert!(text.contains("12 faults on 3 devices, the last"), "{text}");
    }

    #[test]
    fn hub_puts_no_word_of_its_own_into_a_command() {
        let mut issue = issue();
        issue["machine"] = "north; reboot".into();
        assert_eq!(commands(&issue, None), ["tenure log --device attic --level fault"]);
        issue["device"] = "$(reboot)".into();
        assert_eq!(commands(&issue, None), Vec::<String>::new());
        assert!(!with_commands(&json!(7), 0, None).contains("tenure"));
    }
}
