//! `tenure device`: a device as a process.

mod arguments;
mod bridging;
mod coap;
mod dates;
mod hub_names;
mod hub_way;
mod noted;
mod outside;
mod pace;
mod pages;
mod predecessor;
mod reaching;
mod running;
mod servers;
mod settings;
mod shown;
mod visited;

use std::path::Path;
use std::time::Duration;

use anyhow::anyhow;
use serde_json::json;
use tenure_board_linux::{Durability, FileFlash, SECTOR_BYTES, UdpLink, Watchdog};
use tenure_node::{BootError, Config, Door as _, Input, Parts};
use tenure_protocols::plug_in::Registry;

use crate::home::{Home, keep_memory_private};
use crate::machine::inspect::ROOMY_BYTES;
use crate::make::pack::STORE_BYTES;
use crate::reach::discovery;
use crate::reach::network::{DEVICE_PORT, address_of};
use crate::terminal::output::Output;
use crate::terminal::stop::Stop;
pub use arguments::Arguments;
use bridging::Bridging;
use dates::SharedDate;
use hub_names::{HubNames, NamedHub};
use reaching::Reaching;
pub use running::Running;
use settings::{Settings, Start, settings};
pub use shown::show;

/// The file that says whose device a data folder is, and what it is called.
const SETTINGS: &str = "device.toml";
/// The file that is the device's flash.
const FLASH: &str = "flash.bin";
/// How the flash is split: 2 MiB for the store, 4 MiB for images, 2 MiB for an arriving package.
const STORE_SECTORS: u32 = STORE_BYTES / SECTOR_BYTES;
const CODE_SECTORS: u32 = 1024;
const STAGING_SECTORS: u32 = 512;
/// Where a device listens if nobody says.
const LISTEN: &str = "127.0.0.1:7370";
/// The word by which a device starts this program as the compiler of a machine at native speed.
#[cfg(feature = "native-speed")]
pub(crate) const COMPILE: &str = "compile-for-a-device";
/// The trace that the watchdog leaves when it bites, and how long the loop may stand still.
const WATCHDOG: &str = "watchdog.bin";
const WATCHDOG_PERIOD: Duration = Duration::from_secs(60);

/// Runs `tenure device` until it is told to stop.
///
/// # Errors
/// The folder isn't a device's, the address is taken, or the flash fails.
pub fn run(arguments: &Arguments, registry: Registry, output: &Output) -> anyhow::Result<()> {
    let stop = Stop::on_signals()?;
    keep_memory_private();
    let home = Home::from_environment()?;
    let (settings, is_new) = settings(&arguments.data, arguments, &home)?;
    let listen = address_of(settings.listen.as_deref().unwrap_or(LISTEN), DEVICE_PORT)?;
    let named_hub = NamedHub::of(&arguments.hub, listen)?;
    let bridge = arguments.bridge.as_deref();
    let bridge = bridge.map(|path| bridging::load(path, &settings.name)).transpose()?;
    let bridged = bridge.as_ref().map(|bridge| bridge.rules.patterns()).unwrap_or_default();
    let bridged = coap::heard(&bridged, &arguments.coap_events)?;
    let coap = arguments.coap.as_deref();
    let coap = coap.map(|text| address_of(text, tenure_coap::PORT)).transpose()?;
    let hub_names = HubNames::start(named_hub, output)?;
    let (hub, hub_also_at) = hub_names.found();
    let mut start =
        Start { settings, sleep: arguments.sleep, hub, hub_also_at, bite: None, bridged };
    start.config(registry)?;
    let Settings { reach_authorities, reach_servers, .. } = &start.settings;
    let date = SharedDate::default();
    let reaching =
        Reaching::new(reach_authorities.clone(), reach_servers.as_deref(), date.dates())?;
    let detour = hub_way::detour(&hub_names, &start.settings, date.dates())?;
    // A port that is in use leaves no folder behind. A device that was there waits for the one before it first.
    let free = is_new.then(|| UdpLink::bind(listen)).transpose()?;
    if is_new {
        settings::make(&arguments.data, &start.settings)?;
    }
    let mut parts = {
        let open = || open_flash(&arguments.data, arguments.survives.into());
        predecessor::wait_for(&arguments.data, open, &stop, output)?
    };
    // From here on no other process has the folder in use: what stands in it is this one's.
    settings::keep(&arguments.data, &start.settings)?;
    start.bite = Watchdog::take_bite(&arguments.data.join(WATCHDOG))?;
    let config = start.config(registry)?;
    let tape =
        arguments.record.as_deref().map(|path| start.record(path, &mut parts)).transpose()?;
    let Start { settings, .. } = start;
    // A device that was here before runs its machines also while its network isn't up yet.
    let (link, is_there) =
        free.map_or_else(|| UdpLink::bind_or_await(listen), |link| Ok((link, true)))?;
    if !is_there {
        output.line(
            &format!("no network interface has the address {} yet; the device runs, and listens there once one has", listen.ip()),
            &json!({ "event": "address-missing", "address": listen.to_string() }),
        );
    }
    let native_speed = settings.native_speed.unwrap_or(true);
    let data = &arguments.data;
    let started = Running::start(config.clone(), parts, link, &home, data, tape, native_speed);
    let mut device = started.map_err(|error| {
        let path = arguments.data.join(FLASH);
        match error.downcast_ref() {
            Some(BootError::Mount(_)) => anyhow!(
                "{}: {error}; put back a copy of it, or move it away to begin a new device",
                path.display()
            ),
            _ => error.context(path.display().to_string()),
        }
    })?;
    noted::note(&mut device, &home);
    if let Some(mut link) = settings.mesh.open()? {
        link.use_thread(settings.mesh_own_thread);
        device.enter_mesh(link, &home, output)?;
    }
    device.judge_by(date.clone());
    device.find_hub_by(hub_names, detour);
    device.reaching = Some(reaching);
    let start = |bridge| Bridging::start(bridge, date.dates(), &arguments.data);
    device.bridging = bridge.map(start).transpose()?;
    if let Some(path) = &arguments.peripherals {
        device.attach(crate::device::peripherals::load(path)?)?;
    }
    if settings.discover.unwrap_or_else(|| discovery::is_usual_at(device.address())) {
        device.discover(output);
    }
    device.print_level = arguments.print_level;
    device.announce_mount(output);
    device.announce(output);
    if let Some(listen) = arguments.pages {
        device.serve_pages(listen, output)?;
    }
    if let Some(listen) = coap {
        device.serve_coap(listen, arguments.coap_events.clone(), output)?;
    }
    let watchdog = Watchdog::set(&arguments.data.join(WATCHDOG), WATCHDOG_PERIOD);
    device.node().use_retained(Box::new(watchdog.retained()));
    while !stop.is_requested() {
        watchdog.feed();
        let wake = device.turn(output)?;
        match device.bedtime() {
            Some(bedtime) => device = device.sleep(bedtime, &config, (&stop, &watchdog), output)?,
            None => device.rest(wake, &stop)?,
        }
    }
    device.with_moment(|node, moment| node.take(moment, Input::Checkpoint));
    device.finish(output);
    output.line("stopped", &json!({ "event": "stopped" }));
    Ok(())
}

/// The kernel's limits on a computer with room to spare.
pub fn roomy_kernel() -> tenure_kernel::Config {
    tenure_kernel::Config {
        machines_max: 32,
        // On what the flash is a file of.
        swap_erasures_per_day: 4_000,
        memory_bytes_max: ROOMY_BYTES,
        parameter_bytes_max: 8 * 1024 * 1024,
        slice_fuel: 200_000,
        fuel_per_second: 300_000_000,
        effects_max: 1024,
        log_bytes_per_second: 16 * 1024,
        ..tenure_kernel::Config::default()
    }
}

/// The configuration of a device as its record has it.
///
/// # Errors
/// The record is of a device that this build can't be.
pub fn recorded_config(settings: &[u8], registry: Registry) -> anyhow::Result<Config> {
    serde_json::from_slice::<Start>(settings)?.config(registry)
}

/// Opens the flash of a device, or makes it, and splits it in three.
///
/// # Errors
/// It is in use by another process, damaged, or can't be made.
pub fn open_flash(folder: &Path, durability: Durability) -> anyhow::Result<Parts<FileFlash>> {
    let bytes = (STORE_SECTORS + CODE_SECTORS + STAGING_SECTORS) * SECTOR_BYTES;
    let flash = FileFlash::open_or_create(&folder.join(FLASH), bytes, durability)?;
    let [store, code, staging] = flash.split([STORE_SECTORS, CODE_SECTORS, STAGING_SECTORS])?;
    Ok(Parts { store, code, staging })
}
