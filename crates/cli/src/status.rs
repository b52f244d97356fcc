//! `tenure status`: what a device is, and what it has left.

use serde_json::json;

use crate::client::Client;
use crate::home::Home;
use crate::output::Output;
use crate::whom::{Where, machines};

/// Show what a device is: its version, clock and hub, and what its machines use and it has left.
///
/// Example: tenure status --device attic
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    place: Where,
}

/// Runs `tenure status`.
///
/// # Errors
/// The device can't be reached, or isn't this user's.
pub fn run(arguments: &Arguments, output: &Output) -> anyhow::Result<()> {
    let mut client = Client::new(&Home::from_environment()?)?;
    let device = arguments.place.connect(&mut client)?;
    let machines = machines(&mut client, &device)?;
    let status = &device.status;
    let sum = |of: fn(&tenure_wire::Budget) -> u32| -> u64 {
        machines.iter().map(|machine| u64::from(of(&machine.budget))).sum()
    };
    let promised = sum(|budget| budget.memory_bytes.saturating_add(budget.stack_bytes));
    let stored_max = sum(|budget| budget.stored_bytes);
    let stored: u64 = machines.iter().map(|machine| u64::from(machine.stored_bytes)).sum();
    let hub = status.hub.as_ref().map(|(address, answers)| {
        let answers = if *answers { "answers" } else { "is silent" };
        format!("{address}, {answers}")
    });
    let uptime = std::time::Duration::from_secs(status.uptime_ms / 1000);
    let mut lines = vec![
        format!("device    {}, at {}, key {}", status.name, device.route.address, device.route.key),
        format!("software  {}", status.version),
        format!("up        {}, boot {}", humantime::format_duration(uptime), status.boots),
        format!("time      {}", status.unix_s.map_or("not known".into(), crate::lease::time)),
        format!("hub       {}", hub.unwrap_or_else(|| "none".into())),
        format!("machines  {}, scheduled {}", status.machines, status.policy),
        format!("memory    {promised} bytes are promised to machines"),
        format!("stored    {stored} bytes, of {stored_max} promised"),
        format!("code      {} bytes are free in one piece", status.code_bytes_free),
    ];
    if let Some(heap) = status.heap {
        lines.push(format!(
            "heap      {} of {} bytes used, {} at most so far",
            heap.used_bytes, heap.total_bytes, heap.peak_bytes
        ));
    }
    let object = json!({
        "device": status.name.as_str(),
        "address": device.route.address.to_string(),
        "key": device.route.key.to_string(),
        "version": status.version,
        "uptime_ms": status.uptime_ms,
        "boots": status.boots,
        "unix_s": status.unix_s,
        "hub": status.hub.as_ref().map(|(address, answers)| json!({ "address": address.to_string(), "answers": answers })),
        "machines": status.machines,
        "policy": status.policy,
        "memory_bytes_promised": promised,
        "stored_bytes": stored,
        "stored_bytes_promised": stored_max,
        "code_bytes_free": status.code_bytes_free,
    });
    output.line(&lines.join("\n"), &object);
    Ok(())
}
