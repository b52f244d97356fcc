//! `tenure status`: what a device is, and what it has left.

mod outside;

use serde_json::json;
use tenure_wire::control::{Client as _, DeviceStatus, FlashWear, RoomStatus};
use tenure_wire::printable::span;

use crate::reach::client::Client;
use crate::reach::whom::{Where, machines};
use crate::terminal::output::Output;

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
pub fn run(arguments: &Arguments, client: &mut Client, output: &Output) -> anyhow::Result<()> {
    let device = arguments.place.connect(client)?;
    let machines = machines(client, &device)?;
    let status = &device.status;
    // A leaf has no room for machines, and an older version doesn't say how much it has.
    let room = client.at(&device.route).room(()).ok();
    // Most devices have no ways outside, and an older version doesn't say.
    let outside = client.at(&device.route).outside(()).unwrap_or_default();
    let asked = outside::Asked { uptime_ms: status.uptime_ms, unix_s: status.unix_s };
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
    let at = client.link.shown(&device.route.address);
    let mut lines = vec![
        format!("device    {}, at {at}, key {}", status.name, device.route.key),
        format!("software  {}", status.version),
        format!("up        {}, boot {}", span(uptime), status.boots),
        outside::time_line(status.unix_s, outside.date),
        format!("hub       {}", hub.unwrap_or_else(|| "none".into())),
        machines_line(status),
    ];
    lines.extend(room_lines(room, status.code_bytes_free, (promised, stored, stored_max)));
    lines.extend(status.wear.map(|wear| wear_line(&wear, status.uptime_ms)));
    lines.extend(damage_lines(status));
    lines.extend(outside::lines(&outside, asked));
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
        "machines_max": (status.machines_max > 0).then_some(status.machines_max),
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
        "flash": status.wear.map(|wear| json!({
            "erases_per_sector": erases_per_sector(&wear),
            "erases_rated": wear.rated_per_sector,
            "worn_share": wear.rated_per_sector.map(|rated| erases_per_sector(&wear) / f64::from(rated)),
            "years_left": years_left(&wear, status.uptime_ms),
        })),
        "changes_lost": status.changes_lost,
        "machines_unreadable": status.machines_unreadable,
        "outside": outside::object(&outside, asked),
    });
    output.line(&lines.join("\n"), &object);
    Ok(())
}

/// The row on machines: how many there are, how many it takes, and how their turns are planned.
fn machines_line(status: &DeviceStatus) -> String {
    let of = match status.machines_max {
        0 => String::new(),
        most => format!(" of {most}"),
    };
    format!("machines  {}{of}, scheduled {}", status.machines, status.policy)
}

/// The rows on room: of memory, store and code flash, what is used and what is left.
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
    ]
}

/// What damaged flash has cost, if it has.
fn damage_lines(status: &DeviceStatus) -> Vec<String> {
    let mut lines = Vec::new();
    if status.changes_lost > 0 {
        lines.push(format!(
            "damage    acknowledged changes that can't be read any more: {}; such a value is an error (`tenure tree` shows \
             it), or the one before, unless it was set again since",
            status.changes_lost
        ));
    }
    if status.machines_unreadable > 0 {
        let unreadable = status.machines_unreadable;
        lines.push(format!(
            "damage    machines whose record can't be read: {unreadable}; see `tenure list`"
        ));
    }
    lines
}

/// The shortest uptime after which the rate of erases says something.
const RATE_AFTER_MS: u64 = 24 * 60 * 60 * 1000;
/// The longest life that is told in years: other parts of a device last less.
const YEARS_MAX: f64 = 100.0;

/// How far the flash below the store is worn, and how long it lasts at the rate since the boot.
fn wear_line(wear: &FlashWear, uptime_ms: u64) -> String {
    let mean = erases_per_sector(wear);
    let Some(rated) = wear.rated_per_sector else {
        return format!(
            "flash     each sector of the store was erased {mean:.1} times; the device doesn't know how many it bears"
        );
    };
    let life = match years_left(wear, uptime_ms) {
        Some(years) if years >= YEARS_MAX => {
            format!("; the rest lasts more than {YEARS_MAX} years at the rate since its boot")
        }
        Some(years) => format!("; the rest lasts {years:.1} years at the rate since its boot"),
        None => String::new(),
    };
    format!(
        "flash     {:.2} % worn: each sector of the store was erased {mean:.1} times, of {rated} that it bears{life}",
        100.0 * mean / f64::from(rated)
    )
}

fn erases_per_sector(wear: &FlashWear) -> f64 {
    f64::from(wear.erases) / f64::from(wear.sectors.max(1))
}

/// The years until the flash has borne what its maker promises, at the rate since the boot; `None` where no promise
/// is known, or the device has been up for less than a day.
fn years_left(wear: &FlashWear, uptime_ms: u64) -> Option<f64> {
    const YEAR_MS: f64 = 365.25 * 24.0 * 60.0 * 60.0 * 1000.0;
    let rated = f64::from(wear.rated_per_sector?);
    if uptime_ms < RATE_AFTER_MS {
        return None;
    }
    let left = (rated * f64::from(wear.sectors) - f64::from(wear.erases)).max(0.0);
    let per_ms = f64::from(wear.erases_since_boot.max(1)) / uptime_ms as f64;
    Some(left / per_ms / YEAR_MS)
}

fn memory_left(room: &RoomStatus) -> u64 {
    room.memory_bytes_max.saturating_sub(room.memory_bytes_promised)
}

fn store_left(room: &RoomStatus) -> u64 {
    room.store_bytes_max.saturating_sub(room.store_bytes_used)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_MS: u64 = 24 * 60 * 60 * 1000;

    #[test]
    fn wear_is_a_share_of_what_the_flash_bears_and_years_at_the_rate_since_the_boot() {
        let wear = FlashWear {
            sectors: 100,
            erases: 500_000,
            erases_since_boot: 2_000,
            rated_per_sector: Some(100_000),
        };
        let line = wear_line(&wear, 4 * DAY_MS);
        assert!(line.starts_with("flash     5.00 % worn"), "{line}");
        // 9,500,000 erases are left, 500 a day.
        assert!(line.ends_with("lasts 52.0 years at the rate since its boot"), "{line}");
        assert_eq!(years_left(&wear, DAY_MS - 1), None, "too early to tell");
        let idle = FlashWear { erases_since_boot: 0, ..wear };
        assert!(wear_line(&idle, 400 * DAY_MS).contains("more than 100 years"));
        let over = FlashWear { erases: 20_000_000, ..wear };
        assert_eq!(years_left(&over, 4 * DAY_MS), Some(0.0));
        let unknown = FlashWear { rated_per_sector: None, sectors: 0, ..wear };
        assert!(wear_line(&unknown, DAY_MS).contains("doesn't know how many it bears"));
    }
}
