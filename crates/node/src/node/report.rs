//! How the node and its machines are, and their log, gathered for the hub.

use alloc::string::ToString as _;
use alloc::vec::Vec;

use tenure_hal::{Flash, Instant};
use tenure_kernel::{Kernel, MachineInfo};
use tenure_wire::hub::function;
use tenure_wire::report::{DeviceReport, METRICS_MAX, MachineReport};
use tenure_wire::{LogLevel, Name};

use super::{Node, control};
use crate::log::Wanted;
#[cfg(feature = "mesh")]
use crate::membership::neighbours_of;
use crate::moment::Moment;
use crate::outbound::Purpose;

/// Where in its tree a machine keeps numbers for its owner.
const METRICS_PATH: &str = "metrics";

impl<F: Flash> Node<F> {
    /// Tells the hub how the device is, when it is time to.
    pub(super) fn report(&mut self, moment: &mut Moment<'_>) {
        if !self.reporting.is_due(&self.hub, moment.now) {
            return;
        }
        let device = self.device_report(moment.now);
        let machines = self.machine_reports();
        let boot = self.services.identity.boots;
        let report = self.reporting.next(moment.now, boot, device, machines);
        let call = (function::REPORT, report, Purpose::Report);
        let Self { services, hub, outbound, reporting, .. } = self;
        if !hub.call(services, outbound, moment, call) {
            reporting.missed(moment.now);
        }
    }

    /// Asks the hub whether somebody watches the log there, with the lines that it wants, when it is time to.
    pub(super) fn share_log(&mut self, moment: &mut Moment<'_>) {
        if !self.live_log.is_due(&self.hub, moment.now) {
            return;
        }
        let page = self.live_log.wanted().map(|from| {
            let wanted = Wanted { machine: None, from, level: LogLevel::default() };
            let dropped = self.services.kernel.logs_dropped();
            self.log.page(&wanted, (moment.now, self.clock.unix_time(moment)), dropped)
        });
        let share = self.live_log.next(moment.now, self.services.identity.boots, page);
        let call = (function::LOG, share, Purpose::Log);
        let Self { services, hub, outbound, live_log, .. } = self;
        if !hub.call(services, outbound, moment, call) {
            live_log.missed(moment.now);
        }
    }

    fn device_report(&mut self, now: Instant) -> DeviceReport {
        DeviceReport {
            version: env!("CARGO_PKG_VERSION").to_string(),
            uptime_s: now.as_millis() / 1000,
            room: control::room_of(&mut self.services),
            heap: control::heap_of(self),
            #[cfg(feature = "mesh")]
            neighbours: self.mesh_stack().and_then(neighbours_of),
            #[cfg(not(feature = "mesh"))]
            neighbours: None,
        }
    }

    fn machine_reports(&mut self) -> Vec<MachineReport> {
        let kernel = &mut self.services.kernel;
        let mut machines: Vec<MachineReport> =
            kernel.machines().map(|info| machine_report(&info)).collect();
        for machine in &mut machines {
            machine.metrics = metrics_of(kernel, &machine.name);
        }
        machines
    }
}

fn machine_report(info: &MachineInfo<'_>) -> MachineReport {
    MachineReport {
        name: info.record.name.clone(),
        package: info.record.package,
        version: info.record.package_version,
        state: info.state.as_str().to_string(),
        repute: info.repute.as_str().to_string(),
        queue_length: info.queue_length as u32,
        tasks_done: info.tasks_done,
        fuel_used: info.fuel_used,
        waited_max_us: info.waited_max.as_micros() as u64,
        memory_bytes: info.memory_bytes as u32,
        memory_bytes_max: info.record.budget.memory_bytes,
        stored_bytes: info.stored_bytes as u32,
        metrics: Vec::new(),
    }
}

/// The whole numbers that a machine keeps as text below [`METRICS_PATH`]; other values there are none.
fn metrics_of<F: Flash>(kernel: &mut Kernel<F>, machine: &Name) -> Vec<(Name, i64)> {
    let Ok(look) = kernel.look(machine, METRICS_PATH) else { return Vec::new() };
    let mut metrics = Vec::new();
    for child in look.children.iter().take(METRICS_MAX) {
        let value = kernel.look(machine, &alloc::format!("{METRICS_PATH}.{child}"));
        let bytes = value.ok().and_then(|look| look.value).map(|value| value.bytes);
        let number = bytes.and_then(|bytes| core::str::from_utf8(&bytes).ok()?.trim().parse().ok());
        if let (Ok(name), Some(number)) = (child.parse(), number) {
            metrics.push((name, number));
        }
    }
    metrics
}
