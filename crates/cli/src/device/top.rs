//! `tenure top`: what machines take of their device, measured from one moment to the next.

use std::time::Duration;

use serde_json::{Value, json};
use tenure_wire::control::{Client as _, DeviceStatus, MachineStatus};
use tenure_wire::printable::span;

use crate::machine::list::serves;
use crate::reach::client::{Client, Device};
use crate::reach::whom::{Where, machines};
use crate::terminal::clock::parse_span_or_seconds;
use crate::terminal::output::{Output, width_of};

/// The shortest time from one measurement to the next, so that looking costs the device little.
const EVERY_MIN: Duration = Duration::from_millis(100);
/// The codes that clear a terminal and begin at its first line.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Show what machines take of a device, again and again: fuel, memory, queue, waits.
///
/// The machine that takes the most fuel comes first. Ctrl-C ends it.
///
/// Example: tenure top --device attic
#[derive(clap::Args)]
pub struct Arguments {
    /// Measure once, and end.
    #[arg(long)]
    once: bool,
    /// How long to measure, as in 500ms or 2s; a number alone is seconds.
    #[arg(long, value_name = "SPAN", default_value = "1s", value_parser = parse_span_or_seconds)]
    every: Duration,
    #[command(flatten)]
    place: Where,
}

/// Runs `tenure top`.
///
/// # Errors
/// The device can't be reached, or isn't this user's.
pub fn run(arguments: &Arguments, client: &mut Client, output: &Output) -> anyhow::Result<()> {
    let every = arguments.every.max(EVERY_MIN);
    let stop = client.stop()?;
    let device = arguments.place.connect(client)?;
    let mut before = Sample::take(client, &device)?;
    while stop.rest(every) {
        let now = Sample::take(client, &device)?;
        let rows = rows(&before, &now);
        if output.is_json() {
            output.line("", &object(&now, &rows));
        } else {
            if !arguments.once {
                output.steer(CLEAR);
            }
            output.line(&text(&now, &rows), &Value::Null);
        }
        if arguments.once {
            return Ok(());
        }
        before = now;
    }
    Ok(())
}

/// A device at one moment.
struct Sample {
    status: DeviceStatus,
    machines: Vec<MachineStatus>,
}

impl Sample {
    fn take(client: &mut Client, device: &Device) -> anyhow::Result<Self> {
        let status = client.at(&device.route).status(())?;
        Ok(Self { status, machines: machines(client, device)? })
    }
}

/// The work of a machine between two moments, by the second.
struct Row<'a> {
    machine: &'a MachineStatus,
    fuel_per_second: u64,
    tasks_per_second: f64,
}

/// The machines at `now`, the one that takes the most fuel first. What a machine did since the device booted
/// counts for one that came, and for all after a restart of the device.
fn rows<'a>(before: &Sample, now: &'a Sample) -> Vec<Row<'a>> {
    let is_same_boot = before.status.boots == now.status.boots;
    let since_ms = if is_same_boot { before.status.uptime_ms } else { 0 };
    let span_ms = now.status.uptime_ms.saturating_sub(since_ms).max(1);
    let mut rows: Vec<Row<'_>> = now
        .machines
        .iter()
        .map(|machine| {
            let known = before.machines.iter().find(|known| known.id == machine.id);
            let known = known.filter(|_| is_same_boot);
            let fuel = machine.fuel_used.saturating_sub(known.map_or(0, |known| known.fuel_used));
            let tasks =
                machine.tasks_done.saturating_sub(known.map_or(0, |known| known.tasks_done));
            Row {
                machine,
                fuel_per_second: (u128::from(fuel) * 1000 / u128::from(span_ms)) as u64,
                tasks_per_second: tasks as f64 * 1000.0 / span_ms as f64,
            }
        })
        .collect();
    rows.sort_by(|one, other| {
        let by_fuel = other.fuel_per_second.cmp(&one.fuel_per_second);
        by_fuel.then_with(|| one.machine.name.cmp(&other.machine.name))
    });
    rows
}

fn text(now: &Sample, rows: &[Row<'_>]) -> String {
    let DeviceStatus { name, policy, hub, .. } = &now.status;
    let hub = match hub {
        None => "no hub".to_owned(),
        Some((address, true)) => format!("hub {address}"),
        Some((address, false)) => format!("hub {address} is silent"),
    };
    let up = span(Duration::from_secs(now.status.uptime_ms / 1000));
    let mut text = format!("{name}, up {up}, {policy}, {hub}");
    if let Some(heap) = now.status.heap {
        text += &format!(", heap {} of {} bytes", heap.used_bytes, heap.total_bytes);
    }
    let width = width_of(rows.iter().map(|row| row.machine.name.as_str()));
    text += &format!(
        "\n{:<width$} {:<9} {:>12} {:>8} {:>19} {:>7} {:>10}",
        "machine", "state", "fuel/s", "tasks/s", "memory", "queue", "waited ms"
    );
    for Row { machine, fuel_per_second, tasks_per_second } in rows {
        let serves = serves(machine).map_or(String::new(), |serves| format!("  {serves}"));
        text += &format!(
            "\n{:<width$} {:<9} {fuel_per_second:>12} {tasks_per_second:>8.1} {:>19} {:>7} {:>10.1}{serves}",
            machine.name.as_str(),
            machine.state,
            format!("{}/{}", machine.memory_bytes, machine.budget.memory_bytes),
            format!("{}/{}", machine.queue_length, machine.budget.queue_length),
            machine.waited_max_us as f64 / 1000.0,
        );
    }
    text
}

fn object(now: &Sample, rows: &[Row<'_>]) -> Value {
    let machines: Vec<Value> = rows
        .iter()
        .map(|Row { machine, fuel_per_second, tasks_per_second }| {
            json!({
                "name": machine.name.as_str(),
                "state": machine.state,
                "fuel_per_second": fuel_per_second,
                "tasks_per_second": tasks_per_second,
                "memory_bytes": machine.memory_bytes,
                "memory_bytes_max": machine.budget.memory_bytes,
                "queue_length": machine.queue_length,
                "queue_length_max": machine.budget.queue_length,
                "waited_max_us": machine.waited_max_us,
                "serves": machine.serves,
                "serves_ms": machine.serves_ms,
            })
        })
        .collect();
    json!({
        "device": now.status.name.as_str(),
        "uptime_ms": now.status.uptime_ms,
        "heap_used_bytes": now.status.heap.map(|heap| heap.used_bytes),
        "hub_answers": now.status.hub.as_ref().map(|(_, answers)| *answers),
        "machines": machines,
    })
}
