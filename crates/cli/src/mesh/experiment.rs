//! `tenure experiment`: starts, reconfigures and stops protocols on all devices of the mesh, shapes its
//! links, and collects what the devices noted, all by way of one of them.

use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};
use clap::Subcommand;
use serde_json::json;
use tenure_mesh::{NodeId, ProtocolNumber};
use tenure_node::experiment::{Settings, Value};
use tenure_protocols::experiment::{Order, sign};
use tenure_protocols::plug_in::{Entry, Registry, Start};
use tenure_wire::control::{Client as _, ExperimentLog, MeshStatus};
use tenure_wire::message::List;
use tenure_wire::printable::counted;

use crate::home::Home;
use crate::reach::client::{Client, Device};
use crate::reach::whom::Where;
use crate::terminal::clock::{parse_any_span, parse_span_or_seconds};
use crate::terminal::output::Output;

/// How long between two looks for logs.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// Make an experiment with your mesh: all devices that were started with `--experiments` take part.
///
/// An order is signed by you, given to one device, and spreads to all from there.
///
/// Examples: tenure experiment start gap --value machines --device 127.0.0.1:7370
/// tenure experiment shape attic cellar --lost 100
/// tenure experiment logs
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    order: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Start a protocol on all devices, or start it anew with other settings.
    ///
    /// While it runs, each device notes every two seconds what it has come to.
    Start {
        /// gap, flow-updating, limosense, push-sum, membership, or one that this program was built with.
        protocol: String,
        /// The time between its rounds, as in 500ms or 2s.
        #[arg(long, value_name = "SPAN", default_value = "1s", value_parser = parse_any_span)]
        interval: Duration,
        /// The contribution of each device to an aggregate: a number, `machines` or `uptime`.
        #[arg(long, default_value = "1", value_parser = parse_value, allow_negative_numbers = true)]
        value: Value,
        /// The protocol's own settings, in a form that it chooses.
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        settings: String,
        #[command(flatten)]
        place: Where,
    },
    /// Stop a protocol on all devices.
    Stop {
        /// As it was started.
        protocol: String,
        #[command(flatten)]
        place: Where,
    },
    /// Let the link between two devices lose messages, both ways.
    Shape {
        /// One of them, by its name, or as `tenure mesh` shows it.
        one: String,
        /// The other.
        other: String,
        /// How many percent: 100 cuts the link, 0 mends it.
        #[arg(long, value_name = "PERCENT", default_value_t = 100.0)]
        lost: f64,
        #[command(flatten)]
        place: Where,
    },
    /// Collect what all devices have noted, and print it.
    Logs {
        /// How long to wait for those that are slow; a number alone is seconds.
        #[arg(long, value_name = "SPAN", default_value = "20s", value_parser = parse_span_or_seconds)]
        wait: Duration,
        #[command(flatten)]
        place: Where,
    },
}

impl Verb {
    /// The device that is given the order.
    fn place(&self) -> &Where {
        match self {
            Self::Start { place, .. }
            | Self::Stop { place, .. }
            | Self::Shape { place, .. }
            | Self::Logs { place, .. } => place,
        }
    }
}

/// Runs `tenure experiment`.
///
/// # Errors
/// The device isn't the user's or takes no part, a name is unknown, or not all logs come.
pub fn run(arguments: &Arguments, registry: Registry, output: &Output) -> anyhow::Result<()> {
    let named = |name: &str| registry.named(name).map_err(|error| anyhow!("{error}"));
    let entry = match &arguments.order {
        Verb::Start { protocol, .. } | Verb::Stop { protocol, .. } => Some(named(protocol)?),
        Verb::Shape { .. } | Verb::Logs { .. } => None,
    };
    let number = entry.map_or(ProtocolNumber::HOST, Entry::number);
    let home = Home::from_environment()?;
    let mut client = Client::new(&home)?;
    let device = arguments.order.place().connect(&mut client)?;
    let status: MeshStatus = client.at(&device.route).mesh(())?;
    let (order, done) = match &arguments.order {
        Verb::Start { protocol: name, interval, value, settings: own, .. } => {
            let interval_ms = interval.as_millis().try_into().context("--interval is too long")?;
            let node = status.node.parse().context("the device has no name in the mesh")?;
            let (interval, settings) = (*interval, own.as_str());
            let start = Start { node, life: 0, interval, value: 0.0, has_unit: false, settings };
            // Settings that mean nothing are refused here, and not only noted by the devices.
            entry.map(|entry| entry.make(&start)).transpose()?;
            let mut settings = postcard::to_allocvec(&Settings { interval_ms, value: *value })?;
            settings.extend_from_slice(own.as_bytes());
            (Order::Start { protocol: number, settings }, format!("start {name}"))
        }
        Verb::Stop { protocol: name, .. } => {
            (Order::Stop { protocol: number }, format!("stop {name}"))
        }
        Verb::Shape { one, other, lost, .. } => {
            if !(0.0..=100.0).contains(lost) {
                bail!("--lost takes percent, from 0 to 100");
            }
            let [one, other] = [one, other].map(|name| node_of(name, &device, &status));
            let (one, other) = (one?, other?);
            let lost_permille = (lost * 10.0).round() as u16;
            let text = format!("lose {lost} % between {one} and {other}");
            (Order::Shape { one, other, lost_permille }, text)
        }
        Verb::Logs { wait, .. } => {
            direct(&mut client, &home, (&device, &status), &Order::Collect)?;
            return collect(&mut client, &device, &status, *wait, output);
        }
    };
    direct(&mut client, &home, (&device, &status), &order)?;
    output.line(
        &format!("under way to all devices: {done}"),
        &json!({ "event": "ordered", "order": done }),
    );
    Ok(())
}

/// Gives a device the order, for all.
fn direct(
    client: &mut Client,
    home: &Home,
    (device, status): (&Device, &MeshStatus),
    order: &Order,
) -> anyhow::Result<()> {
    let director = status.node.parse().context("the device has no name in the mesh")?;
    let signed = sign(&client.keys().signing_key, home.next_number(0), director, order);
    client.at(&device.route).experiment_direct(&signed)
}

/// Prints the logs as they come, until those of all are here that the device has ways to.
fn collect(
    client: &mut Client,
    device: &Device,
    status: &MeshStatus,
    patience: Duration,
    output: &Output,
) -> anyhow::Result<()> {
    let deadline = Instant::now() + patience;
    let expected = status.ways.len() + 1;
    let mut shown: Vec<String> = Vec::new();
    while shown.len() < expected {
        let List(logs) = client.at(&device.route).experiment_logs(())?;
        for ExperimentLog { node, device, text } in logs {
            if shown.contains(&node) {
                continue;
            }
            let name = device.as_ref().map_or(node.as_str(), |name| name.as_str());
            let lines: Vec<_> = text.lines().collect();
            let object = json!({ "device": name, "node": node, "lines": lines });
            if output.is_json() {
                output.line("", &object);
            } else {
                lines.iter().for_each(|line| output.line(&format!("{name:<16} {line}"), &object));
            }
            shown.push(node);
        }
        if Instant::now() >= deadline {
            bail!(
                "{} of {} sent their logs in time; were the others started with \
                 --experiments?",
                shown.len(),
                counted(expected, "device")
            );
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    Ok(())
}

/// The node that a user means: by its id, or by its device's name.
fn node_of(name: &str, device: &Device, status: &MeshStatus) -> anyhow::Result<NodeId> {
    let named = |way: &&tenure_wire::control::MeshWay| {
        way.to == name || way.device.as_ref().is_some_and(|device| device.as_str() == name)
    };
    let node = if name == device.status.name.as_str() || name == status.node {
        Some(&status.node)
    } else {
        status.ways.iter().find(named).map(|way| &way.to)
    };
    let node = node.with_context(|| format!("no device `{name}` is known; see `tenure mesh`"))?;
    Ok(node.parse()?)
}

fn parse_value(text: &str) -> anyhow::Result<Value> {
    match text {
        "machines" => Ok(Value::Machines),
        "uptime" => Ok(Value::Uptime),
        number => match number.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(Value::Number(value)),
            _ => Err(anyhow!("a number, `machines` or `uptime`")),
        },
    }
}
