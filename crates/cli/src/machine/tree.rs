//! `tenure tree`: what a machine stores, shown and changed by its device's owner.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

use anyhow::{Context as _, anyhow, bail, ensure};
use serde_json::{Value, json};
use tenure_wire::Name;
use tenure_wire::control::{Client as _, TreeChange, TreeNode, TreeQuery, TreeValue};
use tenure_wire::limits::VALUE_BYTES_MAX;
use tenure_wire::path;
use tenure_wire::printable::{counted, printable};

use crate::reach::client::{Client, Device};
use crate::reach::pages::TreeWalk;
use crate::reach::whom::Where;
use crate::terminal::input;
use crate::terminal::output::{Output, hex};

/// Show what a machine stores, or change it.
///
/// Example: tenure tree thermostat settings
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Arguments {
    /// The machine.
    #[arg(required = true)]
    machine: Option<Name>,
    /// The place in its tree (a.b.c); by default all of it.
    #[arg(default_value = "")]
    path: String,
    #[command(flatten)]
    place: Where,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(clap::Subcommand)]
enum Action {
    Get(GetArguments),
    Set(SetArguments),
    Delete(DeleteArguments),
}

/// Print one value: to a file or a pipe as it is, to a terminal with a line's end.
///
/// Example: tenure tree get thermostat target
#[derive(clap::Args)]
struct GetArguments {
    /// The machine.
    machine: Name,
    /// The place in its tree (a.b.c).
    path: String,
    #[command(flatten)]
    place: Where,
}

/// Set a value. The machine goes on running, and finds it when it reads that path next.
///
/// The value counts against what the machine may store. What `tree get` wrote to a file or a pipe is the same value again;
/// a line's end that `echo` adds is part of it. An empty one is written `""`: a pipe that brings nothing is refused.
///
/// Example: tenure tree set thermostat target 21.5
#[derive(clap::Args)]
struct SetArguments {
    /// The machine.
    machine: Name,
    /// The place in its tree (a.b.c).
    path: String,
    /// The value; `-` reads it from standard input, as it is.
    #[arg(allow_hyphen_values = true)]
    value: OsString,
    /// The value is bytes, in hexadecimal digits.
    #[arg(long)]
    hex: bool,
    #[command(flatten)]
    place: Where,
}

/// Delete a value and all below it.
///
/// Example: tenure tree delete thermostat readings
#[derive(clap::Args)]
struct DeleteArguments {
    /// The machine.
    machine: Name,
    /// The place in its tree (a.b.c).
    path: String,
    #[command(flatten)]
    place: Where,
}

/// Runs `tenure tree`.
///
/// # Errors
/// The device can't be reached or has no such machine, there is nothing at that place, or the machine's budget
/// has no room for the value.
pub fn run(arguments: &Arguments, client: &mut Client, output: &Output) -> anyhow::Result<()> {
    check_path(arguments)?;
    match &arguments.action {
        None => {
            let machine = arguments.machine.as_ref().context("name a machine")?;
            show((arguments.place.connect(client)?, client), machine, &arguments.path, output)
        }
        Some(Action::Get(GetArguments { machine, path, place })) => {
            get((place.connect(client)?, client), machine, path, output)
        }
        Some(Action::Set(set_arguments)) => {
            let SetArguments { machine, path, value, hex, place } = set_arguments;
            let value = value_of(value, *hex)?;
            set((place.connect(client)?, client), (machine, path), value, output)
        }
        Some(Action::Delete(DeleteArguments { machine, path, place })) => {
            delete((place.connect(client)?, client), machine, path, output)
        }
    }
}

/// Refuses a path that is none before a device is asked.
fn check_path(arguments: &Arguments) -> anyhow::Result<()> {
    let (path, checked) = match &arguments.action {
        None => (&arguments.path, path::check_node(&arguments.path)),
        Some(Action::Get(GetArguments { path, .. })) => (path, path::check_node(path)),
        Some(Action::Set(SetArguments { path, .. })) => (path, path::check_value(path)),
        Some(Action::Delete(DeleteArguments { path, .. })) => (path, path::check_node(path)),
    };
    checked.map_err(|error| anyhow!(path::refusal(path, error)))
}

/// Shows what `machine` stores at `path` and below.
fn show(
    (device, client): (Device, &mut Client),
    machine: &Name,
    path: &str,
    output: &Output,
) -> anyhow::Result<()> {
    let ask = |path: &str, skip| {
        let query = TreeQuery { machine: machine.clone(), path: path.to_string(), skip };
        client.at(&device.route).tree(query)
    };
    let values = TreeWalk::values(ask, path)?;
    if values.is_empty() && !path.is_empty() {
        bail!("{machine} stores nothing at `{path}`");
    }
    if output.is_json() {
        let object: serde_json::Map<String, Value> = values
            .iter()
            .map(|(path, value)| (path.clone(), shown_object(value.as_ref())))
            .collect();
        output.line("", &json!({ "machine": machine.as_str(), "tree": object }));
        return Ok(());
    }
    for (path, value) in &values {
        let line = match value {
            Some(value) => format!("{} = {}", printable(path), value_text(value)),
            None => format!("{} is damaged: set it again, or delete it", printable(path)),
        };
        output.line(&line, &Value::Null);
    }
    Ok(())
}

fn shown_object(value: Option<&TreeValue>) -> Value {
    value.map_or_else(|| json!({ "damaged": true }), value_object)
}

/// Prints the value at `path` alone.
fn get(
    (device, client): (Device, &mut Client),
    machine: &Name,
    path: &str,
    output: &Output,
) -> anyhow::Result<()> {
    let query = TreeQuery { machine: machine.clone(), path: path.to_string(), skip: 0 };
    let node: TreeNode = client.at(&device.route).tree(query)?;
    ensure!(!node.is_damaged, "the value at `{path}` is damaged: set it again, or delete it");
    let value = node.value.with_context(|| match node.total {
        0 => format!("{machine} stores nothing at `{path}`"),
        _ => format!(
            "{machine} stores no value at `{path}`, but below it: tenure tree {machine} {path}"
        ),
    })?;
    match (&value, output.is_json()) {
        (value, true) => output.line(
            "",
            &json!({ "machine": machine.as_str(), "path": path, "value": value_object(value) }),
        ),
        (TreeValue::Text(text), false) => output.words(text),
        (TreeValue::Bytes(bytes), false) => output.bytes(bytes),
    }
    Ok(())
}

/// Sets the value at a path of a machine's tree.
fn set(
    (device, client): (Device, &mut Client),
    (machine, path): (&Name, &str),
    value: TreeValue,
    output: &Output,
) -> anyhow::Result<()> {
    let text = format!("{machine} stores {} = {}", printable(path), value_text(&value));
    let object =
        json!({ "machine": machine.as_str(), "path": path, "value": value_object(&value) });
    let change =
        TreeChange { machine: machine.clone(), path: path.to_string(), value: Some(value) };
    client.at(&device.route).tree_change(change)?;
    output.line(&text, &object);
    Ok(())
}

/// Deletes what `machine` stores at `path` and below.
fn delete(
    (device, client): (Device, &mut Client),
    machine: &Name,
    path: &str,
    output: &Output,
) -> anyhow::Result<()> {
    ensure!(!path.is_empty(), "say what to delete; see `tenure tree {machine}`");
    let change = TreeChange { machine: machine.clone(), path: path.to_string(), value: None };
    let values = client.at(&device.route).tree_change(change)?;
    ensure!(values > 0, "{machine} stores nothing at `{path}`");
    let what = counted(values, "value");
    output.line(
        &format!("deleted {what} of {machine} at {}", printable(path)),
        &json!({ "machine": machine.as_str(), "path": path, "deleted": values }),
    );
    Ok(())
}

/// The value that an argument means: itself, standard input, or bytes in hexadecimal digits.
fn value_of(argument: &OsStr, is_hex: bool) -> anyhow::Result<TreeValue> {
    let bytes = match argument.as_bytes() {
        b"-" => {
            input::value(VALUE_BYTES_MAX * 2 + 2, "for an empty value write \"\" in place of -")?
        }
        bytes => bytes.to_vec(),
    };
    let value = match is_hex {
        true => {
            let digits = bytes.trim_ascii();
            let bytes = data_encoding::HEXLOWER_PERMISSIVE.decode(digits);
            TreeValue::Bytes(bytes.context("--hex takes an even number of hexadecimal digits")?)
        }
        false => match String::from_utf8(bytes) {
            Ok(text) => TreeValue::Text(text),
            Err(error) => TreeValue::Bytes(error.into_bytes()),
        },
    };
    let length = match &value {
        TreeValue::Text(text) => text.len(),
        TreeValue::Bytes(bytes) => bytes.len(),
    };
    ensure!(length <= VALUE_BYTES_MAX, "the value is over the limit of {VALUE_BYTES_MAX} bytes");
    Ok(value)
}

fn value_text(value: &TreeValue) -> String {
    match value {
        TreeValue::Text(text) => {
            let escaped = text.replace('\\', r"\\").replace('"', r#"\""#).replace('\n', r"\n");
            format!("\"{}\"", printable(&escaped))
        }
        TreeValue::Bytes(bytes) => format!("0x{}", hex(bytes)),
    }
}

fn value_object(value: &TreeValue) -> Value {
    match value {
        TreeValue::Text(text) => json!({ "text": text }),
        TreeValue::Bytes(bytes) => json!({ "hex": hex(bytes) }),
    }
}
