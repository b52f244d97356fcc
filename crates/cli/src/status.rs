//! `tenure status`: what a device is, and what it has left.

use serde_json::json;
use tenure_wire::control::{Client as _, RoomStatus};

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
    // A leaf has no room for machines, and an older version doesn't say how much it has.
    let room = client.at(&device.route).room(()).ok();
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
    ];
    lines.extend(room_lines(room, status.code_bytes_free, (promised, stored, stored_max)));
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
        "room": room.map(|room| json!({
            "memory_bytes_max": room.memory_bytes_max,
            "memory_bytes_left": memory_left(&room),
            "store_bytes_used": room.store_bytes_used,
            "store_bytes_max": room.store_bytes_max,
            "store_bytes_left": store_left(&room),
            "code_bytes_used": room.code_bytes_used,
            "code_bytes_max": room.code_bytes_max,
            "store_erases": room.store_erases,
        })),
    });
    output.line(&lines.join("\n"), &object);
    Ok(())
}

/// The rows on room: of memory, store and code flash, what is used and what is left, and how far the flash
/// is worn.
fn room_lines(
    room: Option<RoomStatus>,
    code_bytes_free: u32,
    (promised, stored, stored_max): (u64, u64, u64),
) -> Vec<String> {
    let Some(room) = room else {
        return vec![
            format!("memory    {promised} bytes are promised to machines"),
            format!("stored    {stored} bytes, of {stored_max} promised"),
            format!("code      {} bytes are free in one piece", code_bytes_free),
        ];
    };
    vec![
        format!(
            "memory    {} bytes left: {} of {} are promised to machines",
            memory_left(&room),
            room.memory_bytes_promised,
            room.memory_bytes_max
        ),
        format!(
            "store     {} bytes left: {} of {} are used; machines store {stored}, of {stored_max} \
             promised",
            store_left(&room),
            room.store_bytes_used,
            room.store_bytes_max
        ),
        format!(
            "code      {} bytes left, {} in one piece: {} of {} are used",
            room.code_bytes_max.saturating_sub(room.code_bytes_used),
            code_bytes_free,
            room.code_bytes_used,
            room.code_bytes_max
        ),
        format!(
            "flash     the store was erased {} times all over; NOR flash takes some 100,000",
            room.store_erases
        ),
    ]
}

fn memory_left(room: &RoomStatus) -> u64 {
    room.memory_bytes_max.saturating_sub(room.memory_bytes_promised)
}

fn store_left(room: &RoomStatus) -> u64 {
    room.store_bytes_max.saturating_sub(room.store_bytes_used)
}
