//! `tenure fleet drift`: what differs now between a fleet and its file, as lines and as an exit status.

use serde_json::{Value, json};
use tenure_package::Package;
use tenure_wire::Name;
use tenure_wire::control::MachineStatus;
use tenure_wire::printable::counted;

use super::file::Fleet;
use super::{Action, Change, FileArguments, Installation, Opened, are_same, changes};
use crate::machine::grant::describe;
use crate::reach::whom::machines;
use crate::terminal::clock::time;
use crate::terminal::output::Output;
use crate::terminal::verdict::Verdict;

/// The exit status of a fleet that differs, as `terraform plan -detailed-exitcode` has it.
const DIFFERS: u8 = 2;

/// Show what differs now between the fleet and the file, and change nothing.
///
/// Ends with the exit status 0 if nothing differs, with 2 if something does or a device can't be reached, and with 1 if
/// it can't be told: as a step that runs each night wants it.
///
/// Example: tenure fleet drift fleet.toml --json
#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    file: FileArguments,
    /// Count the machines and devices that the file doesn't name, too.
    #[arg(long)]
    whole: bool,
}

/// One thing that differs.
struct Difference {
    sign: char,
    /// What differs, in a word.
    what: &'static str,
    machine: Name,
    there: Option<String>,
    wanted: Option<String>,
}

impl Difference {
    fn show(&self, device: &Name, output: &Output) {
        let Self { sign, what, machine, there, wanted } = self;
        let there_or_none = there.as_deref().unwrap_or("none");
        let wanted_or_none = match (*what, wanted) {
            ("unnamed", _) => "the file doesn't name it".to_string(),
            (_, wanted) => format!("the file says {}", wanted.as_deref().unwrap_or("absent")),
        };
        output.line(
            &format!("{sign} {machine} on {device}: {what}: {there_or_none}; {wanted_or_none}"),
            &json!({
                "device": device.as_str(),
                "machine": machine.as_str(),
                "difference": what,
                "there": there,
                "wanted": wanted,
            }),
        );
    }
}

/// Runs `tenure fleet drift`.
///
/// # Errors
/// The file makes no sense, or the hub can't be reached; and [`Verdict`] where something differs.
pub(super) fn run(arguments: &Arguments, output: &Output) -> anyhow::Result<()> {
    let Arguments { file, whole } = arguments;
    let Opened { mut client, listed, fleet } = file.open()?;
    let (mut count, mut unreachable) = (0, Vec::new());
    for (name, wishes) in &fleet.wishes {
        let found = file.place_of(name).connect(&mut client).and_then(|device| {
            let there = machines(&mut client, &device)?;
            let mut found = Vec::new();
            for change in changes(&mut client, (&device, &there), wishes, &fleet)? {
                found.extend(differences(&change, &fleet)?);
            }
            let unnamed = there.iter().filter(|machine| !wishes.contains_key(&machine.name));
            if *whole {
                found.extend(unnamed.map(surplus));
            }
            Ok(found)
        });
        match found {
            Ok(found) => {
                found.iter().for_each(|difference| difference.show(name, output));
                count += found.len();
            }
            Err(error) => {
                let heard = listed.iter().find(|device| device.name == *name);
                let heard = heard.and_then(|device| device.heard_unix_s).map(time);
                tell_of_silence(name, heard.as_deref(), &error, output);
                unreachable.push(name.to_string());
            }
        }
    }
    if *whole {
        for device in listed.iter().filter(|device| !fleet.wishes.contains_key(&device.name)) {
            let name = device.name.as_str();
            output.line(
                &format!("? {name}: the file doesn't name it"),
                &json!({ "device": name, "difference": "unnamed" }),
            );
            count += 1;
        }
    }
    conclude(output, (fleet.wishes.len(), count), &unreachable)
}

/// What a change would take away.
fn differences(change: &Change, fleet: &Fleet) -> anyhow::Result<Vec<Difference>> {
    let difference = |sign, what, there: Option<String>, wanted: Option<String>| {
        let machine = change.machine.clone();
        Difference { sign, what, machine, there, wanted }
    };
    let known = change.known.as_ref();
    let installation = match &change.action {
        Action::Remove => {
            let there = known.map(|known| known.version.to_string());
            return Ok(vec![difference('-', "extra", there, None)]);
        }
        Action::Install(installation) => installation,
    };
    let Installation { package, version, grants, was_granted } = &**installation;
    let Some(known) = known else {
        return Ok(vec![difference('+', "missing", None, Some(version.to_string()))]);
    };
    let mut found = Vec::new();
    let digest = Package::parse(&fleet.packages[*package])?.digest();
    if known.version != *version {
        let (there, wanted) = (known.version.to_string(), version.to_string());
        found.push(difference('~', "version", Some(there), Some(wanted)));
    } else if known.digest != digest {
        // The same version was built twice.
        let (there, wanted) = (known.digest.to_string(), digest.to_string());
        found.push(difference('~', "package", Some(there), Some(wanted)));
    }
    if !are_same(grants, was_granted) {
        let (there, wanted) = (describe(was_granted), describe(grants));
        found.push(difference('~', "lease", Some(there), Some(wanted)));
    }
    Ok(found)
}

/// A machine that the file doesn't name.
fn surplus(machine: &MachineStatus) -> Difference {
    Difference {
        sign: '?',
        what: "unnamed",
        machine: machine.name.clone(),
        there: Some(machine.version.to_string()),
        wanted: None,
    }
}

/// Says that nobody knows how a device is.
fn tell_of_silence(device: &Name, heard: Option<&str>, error: &anyhow::Error, output: &Output) {
    let since = heard.map_or("the hub never heard it".to_string(), |heard| {
        format!("the hub heard it last at {heard}")
    });
    output.line(
        &format!("! {device}: not reachable; {since}: {error:#}"),
        &json!({
            "device": device.as_str(),
            "difference": "unreachable",
            "heard": heard,
            "error": format!("{error:#}"),
        }),
    );
}

/// Says how it is in all.
fn conclude(
    output: &Output,
    (devices, differences): (usize, usize),
    unreachable: &[String],
) -> anyhow::Result<()> {
    let away = match unreachable {
        [] => String::new(),
        names => format!("; not reachable: {}", names.join(", ")),
    };
    let text = match differences {
        0 => format!("{}, nothing differs{away}", counted(devices, "device")),
        _ => {
            format!("{}, {}{away}", counted(devices, "device"), counted(differences, "difference"))
        }
    };
    let object: Value =
        json!({ "devices": devices, "differences": differences, "unreachable": unreachable });
    output.line(&text, &object);
    if differences == 0 && unreachable.is_empty() {
        return Ok(());
    }
    Err(Verdict { status: DIFFERS, words: "the fleet isn't as the file says" }.into())
}
