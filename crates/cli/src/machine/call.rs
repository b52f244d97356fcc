//! `tenure call`: calling a function of a machine.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use tenure_rpc::NoResult;
use tenure_wire::Target;
use tenure_wire::limits::{FUNCTION_BYTES_MAX, PARAMETER_BYTES_MAX};
use tenure_wire::printable::printable;

use crate::make::symbols::Site;
use crate::reach::client::{Client, Route};
use crate::reach::whom::Where;
use crate::terminal::clock::parse_span_or_seconds;
use crate::terminal::input;
use crate::terminal::output::{Beside, Output, hex, tell_beside};

/// The pause before a machine that is busy is called again.
const BUSY_AGAIN: Duration = Duration::from_millis(200);

/// Call a function of a machine and print its result.
///
/// The machine is one on the device, or with @ one on any device that the hub knows. The result goes to a file or a pipe
/// as it is, and to a terminal with a line's end.
///
/// Example: tenure call thermostat set 21.5
#[derive(clap::Args)]
pub struct Arguments {
    /// The machine: NAME, NAME@DEVICE, #ID or #KEY.
    machine: Target,
    /// The function.
    function: String,
    /// The parameter, as it is; `-` reads it from standard input. Without it the parameter is null.
    #[arg(allow_hyphen_values = true)]
    parameter: Option<OsString>,
    /// How long to wait for the device to be found and for its answer together, as in 2.5, 10s or 2m; a number alone is
    /// seconds.
    #[arg(long, value_name = "SPAN", default_value = "10s", value_parser = parse_span_or_seconds)]
    timeout: Duration,
    /// The pass of the device's owner, as `tenure pass` wrote it there: with it, --via is a device of that owner. The
    /// machine has to let you call it.
    #[arg(long, value_name = "FILE", requires = "via")]
    pass: Option<PathBuf>,
    #[command(flatten)]
    place: Where,
}

/// Runs `tenure call`.
///
/// # Errors
/// The machine isn't known, can't be reached, or fails.
pub fn run(arguments: &Arguments, client: &mut Client, output: &Output) -> anyhow::Result<()> {
    let parameter = read_parameter(arguments.parameter.as_deref())?;
    let function = &arguments.function;
    if function.is_empty() || function.len() > FUNCTION_BYTES_MAX {
        bail!("a function's name has 1 to {FUNCTION_BYTES_MAX} bytes");
    }
    let timeout = arguments.timeout;
    ensure!(!timeout.is_zero(), "--timeout 0 leaves no time for an answer");
    let (place, machine) = (&arguments.place, &arguments.machine);
    let begun = Instant::now();
    let ended_by = client.ends_by();
    client.end_by(begun.checked_add(timeout));
    let found = match &arguments.pass {
        Some(pass) => place.machine_by_pass(client, machine, pass),
        None => place.machine(client, machine),
    };
    let called = found.and_then(|route| {
        call(client, (&route, machine), (function.as_str(), parameter), (begun, timeout))
    });
    // A shell goes on with the same client.
    client.end_by(ended_by);
    let result = called?;
    print(result.as_deref(), output);
    Ok(())
}

/// Calls a function; while the machine, or the way to it, has no room for another call, again and again until
/// `timeout` is over.
fn call(
    client: &mut Client,
    (route, machine): (&Route, &Target),
    (function, parameter): (&str, Option<Vec<u8>>),
    (begun, timeout): (Instant, Duration),
) -> anyhow::Result<Option<Vec<u8>>> {
    let mut is_told = false;
    loop {
        let left = timeout.saturating_sub(begun.elapsed());
        let (failure, words) = match client.call_and_hear(route, function, parameter.clone(), left)
        {
            Ok(result) => return Ok(result),
            Err(failure) => failure,
        };
        if failure == NoResult::Busy && begun.elapsed() + BUSY_AGAIN < timeout {
            if !std::mem::replace(&mut is_told, true) {
                tell_beside(Beside::Waiting, &format!("{machine} is busy"));
            }
            client.pause(BUSY_AGAIN)?;
            continue;
        }
        let is_gone = failure == NoResult::Deadline && !client.is_there(route);
        let failure = if is_gone { NoResult::Unreachable } else { failure };
        let error = explain(failure, &words, machine, function);
        let is_silent = matches!(failure, NoResult::Unreachable | NoResult::Deadline);
        return Err(match is_silent.then(|| client.state_of_way(route)).flatten() {
            Some(state) => anyhow::anyhow!("{error}; {state}"),
            None => error,
        });
    }
}

fn read_parameter(argument: Option<&OsStr>) -> anyhow::Result<Option<Vec<u8>>> {
    let parameter = match argument {
        Some(argument) if argument == "-" => {
            let empty_is = "for an empty parameter write \"\" in place of -";
            Some(input::value(PARAMETER_BYTES_MAX + 1, empty_is)?)
        }
        argument => argument.map(|bytes| bytes.as_bytes().to_vec()),
    };
    if parameter.as_ref().is_some_and(|bytes| bytes.len() > PARAMETER_BYTES_MAX) {
        bail!("the parameter is over the limit of {PARAMETER_BYTES_MAX} bytes; send it in parts");
    }
    Ok(parameter)
}

fn explain(failure: NoResult, words: &str, machine: &Target, function: &str) -> anyhow::Error {
    let named = as_argument(machine);
    anyhow::Error::msg(match failure {
        NoResult::Execution if !words.is_empty() => {
            format!("`{function}` failed: {}{}", printable(words), log_of_fault(words, &named))
        }
        NoResult::Execution => {
            format!("`{function}` failed: execution error; see `tenure log {named}`")
        }
        NoResult::NoSuchFunction => {
            let list = match machine {
                Target::Remote { device, .. } => format!("tenure list --device {device}"),
                _ => "tenure list".to_owned(),
            };
            format!("{machine} has no function `{function}`; see what it has with `{list}`")
        }
        NoResult::NoSuchMachine => {
            format!("{machine} is not on its device any more; the call was not executed")
        }
        NoResult::AllegedlyGone => format!(
            "somebody at its device's address says that {machine} is not there any more; that needn't \
             be the device, and the call may have been executed"
        ),
        NoResult::Denied => format!(
            "{machine} doesn't let you call it: you aren't its owner, and its lease names no \
             machine of yours"
        ),
        NoResult::Busy => format!("{machine} is busy: its queue is full; try again"),
        NoResult::Unreachable => {
            format!(
                "the device of {machine} doesn't answer; is it running? The call may have been executed"
            )
        }
        NoResult::Deadline => {
            format!("{machine} gave no answer in time; it may still run (see --timeout)")
        }
        NoResult::OutcomeUnknown => format!(
            "outcome unknown: the device of {machine} lost track of the call; it restarted, or had no session left for \
             you among its callers. Look whether the call was executed before you make it again"
        ),
        NoResult::Stopped { again_in } => format!(
            "{machine} was stopped for a fault and starts again in {:.1} s; the call wasn't executed: \
             try again then, or give it more time by --timeout; why, says `tenure log {named}`",
            again_in.as_secs_f32()
        ),
        NoResult::Banned => format!(
            "{machine} is banned for repeated faults; the call wasn't executed. Why, says `tenure log \
             {named}`; its owner lifts that by `tenure unban {named}`, or by installing a better one"
        ),
        NoResult::Halted => format!(
            "{machine} was stopped by its owner: `tenure start {named}` starts it again; a call that it \
             was serving may have been executed in part"
        ),
        NoResult::Overspent if !words.is_empty() => {
            format!("`{function}` was stopped: {}{}", printable(words), log_of_fault(words, &named))
        }
        NoResult::Overspent => format!(
            "`{function}` was stopped: it took more fuel, memory or stack than the lease of {machine} \
             has; see `tenure inspect PACKAGE --installed` and `tenure log {named}`"
        ),
        NoResult::Asleep { again_in } => format!(
            "the device of {machine} sleeps and wakes in {:.1} s; a call that had begun goes on then: \
             give it more time by --timeout, or look before you call again",
            again_in.as_secs_f32()
        ),
        failure => format!("{machine}: {failure}"),
    })
}

/// A machine as commands take it that are about one by its name, and its device.
fn as_argument(machine: &Target) -> String {
    match machine {
        Target::Local(name) => name.to_string(),
        Target::Remote { machine, device } => format!("{machine} --device {device}"),
        Target::Own | Target::Id(_) | Target::Key(_) => "MACHINE".to_owned(),
    }
}

/// The command that shows functions and lines of a fault's places, if `words` name one.
fn log_of_fault(words: &str, named: &str) -> String {
    let has_place = Site::in_text(words).is_some();
    let hint = format!("; `tenure log {named} --package FILE` names functions and source lines");
    if has_place { hint } else { String::new() }
}

fn print(result: Option<&[u8]>, output: &Output) {
    let text = result.map(std::str::from_utf8);
    if output.is_json() {
        let object = match (result, text) {
            (None, _) => serde_json::json!({ "result": null }),
            (_, Some(Ok(text))) => serde_json::json!({ "result": text }),
            (Some(bytes), _) => serde_json::json!({ "result_hex": hex(bytes) }),
        };
        return output.line("", &object);
    }
    match (result, text) {
        (None, _) => {}
        (_, Some(Ok(text))) => output.words(text),
        (Some(bytes), _) => output.bytes(bytes),
    }
}

#[cfg(test)]
mod tests {
    use tenure_wire::MachineId;

    use super::*;

    #[test]
    fn commands_that_a_failed_call_proposes_are_taken_whatever_the_machine_was_named_by() {
        let failures = [
            NoResult::Execution,
            NoResult::NoSuchFunction,
            NoResult::Stopped { again_in: Duration::from_secs(1) },
            NoResult::Banned,
            NoResult::Halted,
            NoResult::Overspent,
        ];
        let id = format!("#{}", MachineId([7; 12]));
        for target in ["lamp", "lamp@attic", &id] {
            let target: Target = target.parse().unwrap();
            for (failure, words) in failures.iter().flat_map(|it| {
                [(*it, ""), (*it, "trap: unreachable executed, in function 31 at offset 0x0")]
            }) {
                let told = explain(failure, words, &target, "toggle").to_string();
                let proposed = told.split('`').skip(1).step_by(2);
                let proposed: Vec<_> = proposed.filter(|it| it.starts_with("tenure ")).collect();
                assert!(!proposed.is_empty(), "{told}");
                for command in proposed {
                    let command = command.replace("MACHINE", "lamp");
                    let words = command.split_whitespace();
                    let taken = crate::command_line::command().try_get_matches_from(words);
                    assert!(taken.is_ok(), "{command}: {told}");
                }
            }
        }
    }

    #[test]
    fn refusal_that_anybody_may_have_sent_is_not_told_as_a_fact() {
        let words = |failure| {
            let machine: Target = "lamp".parse().unwrap();
            explain(failure, "", &machine, "toggle").to_string()
        };
        let alleged = words(NoResult::AllegedlyGone);
        assert!(alleged.contains("somebody") && alleged.contains("may have been executed"));
        assert!(words(NoResult::Unreachable).contains("may have been executed"));
        assert!(words(NoResult::NoSuchMachine).contains("was not executed"));
    }
}
