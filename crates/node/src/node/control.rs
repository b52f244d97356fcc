//! The device's own machine: serves the owner's protocol.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use tenure_hal::{Flash, Instant};
use tenure_kernel::{InstallError, LookError, MachineInfo, State, unreadable};
use tenure_rpc::IncomingCallHandle;
use tenure_store::ValueKind;
#[cfg(feature = "experiments")]
use tenure_wire::control::ExperimentLog;
#[cfg(feature = "journals")]
use tenure_wire::control::JournalKeep;
#[cfg(feature = "bridge")]
use tenure_wire::control::OutsideStatus;
#[cfg(feature = "mesh")]
use tenure_wire::control::{Admission, Carry, Join, MeshStatus, MeshStranger, StrangersQuery};
use tenure_wire::control::{
    Answer, Caller, ChangeOwner, ControlError, DeviceStatus, Enrol, EventsPage, EventsQuery,
    FirmwareBegin, FirmwareStatus, FlashWear, Function, Functions, GrantQuery, GrantReport,
    HeapStatus, Hello, HubStatus, InstallBegin, InstallChunk, InstallCommit, LeaseNumber,
    ListMachines, LogPage, LogQuery, MachineList, MachineStatus, ReceiptForget, ReceiptPage,
    ReceiptQuery, Remove, Renew, Restart, Restore, RoomStatus, SecretList, Service, SnapshotBegin,
    SnapshotInfo, SnapshotRead, Start, Stop, TellTime, Trash, TrashEmpty, TrashRestore, TreeChange,
    TreeNode, TreeQuery, TreeValue, TrustHub, Unban, dispatch,
};
#[cfg(feature = "mesh")]
use tenure_wire::directory::Query;
use tenure_wire::directory::SignedRecord;
use tenure_wire::limits::PARAMETER_BYTES_MAX;
#[cfg(feature = "mesh")]
use tenure_wire::message::List;
use tenure_wire::path::{self, PathError};
use tenure_wire::{Budget, MachineId, Name, PublicKey};

use super::Node;
#[cfg(feature = "mesh")]
use crate::carriage::{CarryCall, PassCheck};
use crate::claim::Visit;
#[cfg(feature = "experiments")]
use crate::experiment::Experimenting;
use crate::install;
#[cfg(feature = "journals")]
use crate::journals;
use crate::log::Wanted;
#[cfg(feature = "mesh")]
use crate::membership::status_of;
use crate::moment::Moment;
use crate::services::Services;
use crate::snapshot;

/// How much room is left in an answer beside its list, in bytes.
const ANSWER_OVERHEAD: usize = 512;
/// The most bytes that one machine takes in a list, beside its texts.
const MACHINE_OVERHEAD: usize = 384;

/// The functions that this build doesn't serve.
const NOT_SERVED: Functions = {
    let mut left_out = Functions::of(&[]);
    if !cfg!(feature = "mesh") {
        left_out = left_out.and(Functions::of(&[
            Function::join,
            Function::mesh,
            Function::mesh_strangers,
            Function::mesh_admit,
            Function::mesh_find,
            Function::mesh_carry,
            Function::mesh_pass,
        ]));
    }
    if !cfg!(feature = "experiments") {
        let experiments = [Function::experiment_direct, Function::experiment_logs];
        left_out = left_out.and(Functions::of(&experiments));
    }
    if !cfg!(feature = "bridge") {
        left_out = left_out.and(Functions::of(&[Function::outside]));
    }
    if !cfg!(feature = "journals") {
        left_out = left_out.and(Functions::of(&[Function::journal_keep, Function::journal]));
    }
    left_out
};

/// One call to the device's own machine: the node, the moment and the caller.
struct Served<'a, 'm, F> {
    node: &'a mut Node<F>,
    moment: &'a mut Moment<'m>,
    caller: &'a PublicKey,
    /// By which it can be answered later, if it came over a session.
    handle: Option<IncomingCallHandle>,
}

impl<F: Flash> Service for Served<'_, '_, F> {
    const SERVES: Functions = Functions::ALL.without(NOT_SERVED);

    fn hello(&mut self, _: Hello) -> Answer<Hello> {
        Ok(Hello::own(env!("CARGO_PKG_VERSION")))
    }

    fn status(&mut self, (): ()) -> Answer<DeviceStatus> {
        Ok(self.device_status())
    }

    fn room(&mut self, (): ()) -> Answer<RoomStatus> {
        Ok(room_of(&mut self.node.services))
    }

    fn list(&mut self, query: ListMachines) -> Answer<MachineList> {
        Ok(self.machines(&query))
    }

    fn install_begin(&mut self, InstallBegin { bytes }: InstallBegin) -> Answer<()> {
        let visit = self.visit();
        self.node.transfer.begin(bytes, visit)
    }

    fn install_chunk(&mut self, InstallChunk { offset, bytes }: InstallChunk<'_>) -> Answer<()> {
        let visit = self.visit();
        self.node.transfer.chunk(offset, bytes, visit)
    }

    fn install_commit(&mut self, commit: InstallCommit) -> Answer<MachineStatus> {
        self.commit(&commit)
    }

    fn remove(&mut self, remove: Remove) -> Answer<()> {
        self.node.tenancy().remove(self.moment, &remove)
    }

    fn renew(&mut self, renew: Renew) -> Answer<()> {
        self.node.tenancy().renew(self.moment, &renew)
    }

    fn lease_number(&mut self, query: LeaseNumber) -> Answer<u64> {
        self.node.tenancy().lease_number(&query)
    }

    fn trash(&mut self, (): ()) -> Answer<Trash> {
        Ok(self.node.tenancy().list_trash())
    }

    fn trash_restore(&mut self, restore: TrashRestore) -> Answer<()> {
        self.node.tenancy().restore_from_trash(self.moment, &restore)
    }

    fn trash_empty(&mut self, empty: TrashEmpty) -> Answer<()> {
        self.node.tenancy().empty_trash(self.moment, &empty)
    }

    fn unban(&mut self, unban: Unban) -> Answer<()> {
        self.pardon(&unban)
    }

    fn restart(&mut self, restart: Restart) -> Answer<()> {
        let restarted =
            self.node.services.kernel.tenancy(self.moment.now).restart(&restart.machine);
        restarted.map_err(unless_there(&restart.machine))
    }

    fn stop(&mut self, Stop { machine }: Stop) -> Answer<()> {
        let halted = self.node.services.kernel.tenancy(self.moment.now).halt(&machine);
        halted.map_err(unless_there(&machine))
    }

    fn start(&mut self, Start { machine }: Start) -> Answer<()> {
        let started = self.node.services.kernel.tenancy(self.moment.now).start(&machine);
        started.map_err(unless_there(&machine))
    }

    fn grants(&mut self, query: GrantQuery) -> Answer<GrantReport> {
        self.grants_of(&query)
    }

    fn receipts(&mut self, query: ReceiptQuery) -> Answer<ReceiptPage> {
        let Node { services, meter, .. } = &mut *self.node;
        meter.receipts(services, &query)
    }

    fn receipts_forget(&mut self, forget: ReceiptForget) -> Answer<()> {
        let Node { services, meter, .. } = &mut *self.node;
        meter.forget_receipts(services, &forget)
    }

    fn receipts_close(&mut self, (): ()) -> Answer<()> {
        let Node { services, clock, meter, .. } = &mut *self.node;
        meter.end_periods(services, clock, self.moment);
        Ok(())
    }

    fn change_owner(&mut self, change: ChangeOwner) -> Answer<()> {
        self.node.handover().change_owner(self.moment, self.caller, &change)
    }

    fn revoke(&mut self, list: &[u8]) -> Answer<()> {
        self.node.handover().take_revocations(self.moment, self.caller, list)
    }

    fn revoked(&mut self, (): ()) -> Answer<Option<Vec<u8>>> {
        Ok(self.node.services.ownership.signed_list.clone())
    }

    fn record(&mut self, (): ()) -> Answer<Option<SignedRecord>> {
        Ok(self.signed_record())
    }

    fn secret_change(&mut self, signed: &[u8]) -> Answer<()> {
        let Node { services, meter, secrets, .. } = &mut *self.node;
        secrets.change(services, meter, self.moment, (self.caller, signed))
    }

    fn secret_list(&mut self, signed: &[u8]) -> Answer<SecretList> {
        let Node { services, secrets, .. } = &mut *self.node;
        secrets.list(services, self.moment.now, self.caller, signed)
    }

    fn tree(&mut self, query: TreeQuery) -> Answer<TreeNode> {
        self.tree_node(&query)
    }

    fn tree_change(&mut self, change: TreeChange) -> Answer<u32> {
        let TreeChange { machine, path, value } = change;
        path::check_value(&path).map_err(no_path(&path))?;
        let mut tenancy = self.node.services.kernel.tenancy(self.moment.now);
        let changed = match value {
            Some(TreeValue::Text(text)) => {
                tenancy.set_value(&machine, &path, ValueKind::Text, text.as_bytes()).map(|()| 0)
            }
            Some(TreeValue::Bytes(bytes)) => {
                tenancy.set_value(&machine, &path, ValueKind::Bytes, &bytes).map(|()| 0)
            }
            None => tenancy.delete_values(&machine, &path),
        };
        changed.map(|values| values as u32).map_err(unless_there(&machine))
    }

    fn log(&mut self, query: LogQuery) -> Answer<LogPage> {
        let dropped = self.node.services.kernel.logs_dropped();
        let level = query.level.unwrap_or_default();
        let wanted = Wanted { machine: query.machine.as_ref(), from: query.from, level };
        let time = (self.moment.now, self.node.clock.unix_time(self.moment));
        Ok(self.node.log.page(&wanted, time, dropped))
    }

    fn enrol(&mut self, enrol: Enrol) -> Answer<()> {
        self.node.handover().take_enrolment(self.moment, enrol)
    }

    fn time(&mut self, TellTime { unix_s }: TellTime) -> Answer<()> {
        self.node.tenancy().owner_told_time(self.moment, unix_s);
        Ok(())
    }

    fn hub(&mut self, (): ()) -> Answer<Option<HubStatus>> {
        Ok(self.node.hub.status())
    }

    fn trust_hub(&mut self, trust: TrustHub) -> Answer<()> {
        let Node { services, hub, .. } = &mut *self.node;
        hub.trust(services, self.moment.now, &trust)
    }

    #[cfg(feature = "mesh")]
    fn join(&mut self, join: Join) -> Answer<()> {
        let joined = self.node.join_mesh(self.moment.now, &join.invitation);
        joined.map_err(|error| ControlError::Refused(error.to_string()))
    }

    #[cfg(feature = "mesh")]
    fn mesh(&mut self, (): ()) -> Answer<MeshStatus> {
        status_of(self.node.mesh_stack())
    }

    #[cfg(feature = "mesh")]
    fn mesh_strangers(&mut self, query: StrangersQuery) -> Answer<List<MeshStranger>> {
        let mesh = self.node.member.joined()?;
        Ok(List(mesh.doorstep.strangers(&mut mesh.stack, self.moment.now, &query)))
    }

    #[cfg(feature = "mesh")]
    fn mesh_admit(&mut self, admission: Admission) -> Answer<()> {
        let owner = &self.node.services.config.owner.verifying_key;
        let mesh = self.node.member.joined()?;
        mesh.doorstep.admit(&mut mesh.stack, owner, self.moment.now, admission)
    }

    #[cfg(feature = "mesh")]
    fn mesh_find(&mut self, query: Query) -> Answer<Option<SignedRecord>> {
        Ok(self.node.member.joined()?.find_record(&query))
    }

    #[cfg(feature = "mesh")]
    fn mesh_carry(&mut self, carry: Carry) -> Answer<List<Vec<u8>>> {
        let Node { services, member, .. } = &mut *self.node;
        let call = CarryCall { caller: self.caller, carry: &carry, handle: self.handle };
        member.joined()?.carry(services, self.moment.now, call).map(List)
    }

    #[cfg(feature = "mesh")]
    fn mesh_pass(&mut self, shown: &[u8]) -> Answer<SignedRecord> {
        let Node { services, member, secrets, clock, .. } = &mut *self.node;
        let check = PassCheck { services, secrets, clock };
        member.joined()?.take_pass(check, self.moment, self.caller, shown)
    }

    #[cfg(feature = "experiments")]
    fn experiment_direct(&mut self, signed: &[u8]) -> Answer<()> {
        let (stack, _) = self.node.member.experimenting()?;
        Experimenting::direct(stack, self.moment.now, signed)
    }

    #[cfg(feature = "experiments")]
    fn experiment_logs(&mut self, (): ()) -> Answer<List<ExperimentLog>> {
        let (stack, experimenting) = self.node.member.experimenting()?;
        Ok(List(experimenting.logs(stack)))
    }

    #[cfg(feature = "bridge")]
    fn outside(&mut self, (): ()) -> Answer<OutsideStatus> {
        let date = self.node.date(self.moment);
        Ok(OutsideStatus { date, ..OutsideStatus::clone(&self.node.outside) })
    }

    #[cfg(feature = "journals")]
    fn journal_keep(&mut self, keep: JournalKeep) -> Answer<()> {
        journals::set(&mut self.node.services, self.moment.now, &keep)
    }

    #[cfg(feature = "journals")]
    fn journal(&mut self, question: &[u8]) -> Answer<Vec<u8>> {
        let Node { services, secrets, .. } = &mut *self.node;
        journals::piece(services, secrets, self.moment, (self.caller, question))
    }

    fn snapshot_begin(&mut self, begin: SnapshotBegin) -> Answer<SnapshotInfo> {
        let visit = self.visit();
        let Node { services, transfer, .. } = &mut *self.node;
        snapshot::begin(transfer, &mut services.kernel, self.moment, visit, &begin)
    }

    fn snapshot_read(&mut self, read: SnapshotRead) -> Answer<Vec<u8>> {
        let visit = self.visit();
        snapshot::read(&mut self.node.transfer, visit, &read)
    }

    fn restore(&mut self, restore: Restore) -> Answer<()> {
        let Node { services, transfer, .. } = &mut *self.node;
        let now = self.moment.now;
        let restored = snapshot::restore(transfer, &mut services.kernel, now, &restore);
        // It was started afresh, whatever its lease says.
        self.node.tenancy().attend_to_leases(self.moment);
        restored
    }

    fn firmware(&mut self, (): ()) -> Answer<FirmwareStatus> {
        self.node.firmware.status(&self.node.services, self.moment.now)
    }

    fn firmware_begin(&mut self, begin: FirmwareBegin) -> Answer<()> {
        let visit = self.visit();
        self.node.firmware.begin(&self.node.services, visit, &begin)
    }

    fn firmware_chunk(&mut self, chunk: InstallChunk<'_>) -> Answer<()> {
        let visit = self.visit();
        self.node.firmware.chunk(visit, &chunk)
    }

    fn firmware_commit(&mut self, (): ()) -> Answer<()> {
        self.node.firmware.commit(self.moment.now)
    }

    fn events(&mut self, query: EventsQuery) -> Answer<EventsPage> {
        Ok(self.node.peripherals.events_page(&self.node.services.kernel, &query))
    }
}

impl<F: Flash> Served<'_, '_, F> {
    /// The caller as one who brings or fetches something in parts.
    fn visit(&self) -> Visit {
        Visit { caller: self.handle.map(|handle| handle.caller()), now: self.moment.now }
    }

    fn device_status(&mut self) -> DeviceStatus {
        let (trash_machines, trash_bytes) = self.node.tenancy().trash_use();
        let record = self.signed_record();
        let heap = heap_of(self.node);
        let wear = wear_of(self.node);
        let Self { node, moment, .. } = self;
        let Services { config, identity, ownership, kernel, .. } = &mut node.services;
        let vouched_s = node.clock.vouched_time(moment).map(|time| time.seconds);
        DeviceStatus {
            name: config.name.clone(),
            key: identity.verifying_key(),
            device_machine: identity.machine_key,
            owner: config.owner.verifying_key,
            version: env!("CARGO_PKG_VERSION").to_string(),
            uptime_ms: moment.now.as_millis(),
            unix_s: vouched_s.map(|known_s| {
                known_s.max(node.meter.latest_unix_s(moment.now).unwrap_or(known_s))
            }),
            boots: identity.boots,
            hub: node.hub.address().map(|address| (address.clone(), node.hub.is_listed())),
            machines: kernel.machines().count() as u32,
            policy: config.kernel.policy.to_string(),
            fuel_per_second: node.calibration.fuel_per_second(),
            trash_machines,
            trash_bytes,
            code_bytes_free: kernel.code().free_bytes(),
            heap,
            record,
            revocations: ownership.revoked.number,
            succession: ownership.kept.as_ref().map_or(0, |kept| kept.number),
            wear: Some(wear),
            changes_lost: node.mount_report.changes_lost as u32,
            machines_unreadable: unreadable(kernel).count() as u32,
            machines_max: config.kernel.machines_max as u32,
        }
    }

    fn machines(&self, query: &ListMachines) -> MachineList {
        let mut room = PARAMETER_BYTES_MAX - ANSWER_OVERHEAD;
        let (node, now) = (&*self.node, self.moment.now);
        let kernel = &node.services.kernel;
        let machines = kernel.machines().map(|info| status_of_machine(node, now, &info));
        let machines = machines.chain(unreadable(kernel).filter_map(crate::unreadable::status));
        let fitting = machines.skip(query.skip as usize).take_while(|machine| {
            let texts: usize = machine.exports.iter().map(|export| export.len() + 2).sum();
            let bytes = MACHINE_OVERHEAD
                + texts
                + machine.last_fault.as_ref().map_or(0, String::len)
                + machine.serves.as_ref().map_or(0, String::len);
            let fits = bytes <= room;
            room = room.saturating_sub(bytes);
            fits
        });
        MachineList {
            machines: fitting.collect(),
            total: (kernel.machines().count() + unreadable(kernel).count()) as u32,
        }
    }

    /// Makes a machine of the package that was transferred.
    fn commit(&mut self, commit: &InstallCommit) -> Answer<MachineStatus> {
        let (mut tenancy, transfer) = self.node.tenancy_and_transfer();
        let id = tenancy.install(self.moment, transfer.complete()?, &commit.placement)?;
        status_of_installed(self.node, self.moment.now, id)
    }

    fn grants_of(&self, query: &GrantQuery) -> Answer<GrantReport> {
        let found =
            self.node.services.kernel.machines().find(|info| info.record.name == query.machine);
        let info = found.ok_or_else(|| ControlError::NoSuchMachine(query.machine.clone()))?;
        Ok(GrantReport { uses: info.grants.uses(), denied: info.grants.denied() })
    }

    fn pardon(&mut self, unban: &Unban) -> Answer<()> {
        self.node
            .services
            .kernel
            .pardon(self.moment.now, &unban.machine)
            .map_err(|_| ControlError::NoSuchMachine(unban.machine.clone()))
    }

    fn tree_node(&mut self, query: &TreeQuery) -> Answer<TreeNode> {
        path::check_node(&query.path).map_err(no_path(&query.path))?;
        let look = self.node.services.kernel.look(&query.machine, &query.path).map_err(
            |error| match error {
                LookError::NoSuchMachine => ControlError::NoSuchMachine(query.machine.clone()),
                LookError::Store(error) => ControlError::Refused(error.to_string()),
            },
        )?;
        let value = look.value.map(|value| match (value.kind, String::from_utf8(value.bytes)) {
            (ValueKind::Text, Ok(text)) => TreeValue::Text(text),
            (_, Ok(text)) => TreeValue::Bytes(text.into_bytes()),
            (_, Err(error)) => TreeValue::Bytes(error.into_bytes()),
        });
        let total = look.children.len() as u32;
        let taken = match &value {
            Some(TreeValue::Text(text)) => text.len(),
            Some(TreeValue::Bytes(bytes)) => bytes.len(),
            None => 0,
        };
        let mut room = PARAMETER_BYTES_MAX - ANSWER_OVERHEAD - taken;
        let children = look.children.into_iter().skip(query.skip as usize).take_while(|child| {
            let fits = child.len() + 2 <= room;
            room = room.saturating_sub(child.len() + 2);
            fits
        });
        Ok(TreeNode { value, children: children.collect(), total, is_damaged: look.is_damaged })
    }

    /// The device's statement about itself, signed; `None` if it isn't enrolled.
    fn signed_record(&mut self) -> Option<SignedRecord> {
        let Node { services, clock, directory, .. } = &mut *self.node;
        directory.signed_record(services, clock, self.moment)
    }
}

/// How much room there is for machines.
pub(super) fn room_of<F: Flash>(services: &mut Services<F>) -> RoomStatus {
    let Services { config, kernel, .. } = services;
    let promised = kernel.machines().map(|info| {
        let Budget { memory_bytes, stack_bytes, .. } = info.record.budget;
        u64::from(memory_bytes) + u64::from(stack_bytes)
    });
    let memory_bytes_promised = promised.sum();
    let memory_bytes_max = config.kernel.memory_bytes_max as u64;
    let (code_bytes_used, code_bytes_max) = kernel.code().occupancy();
    let store = kernel.store().occupancy();
    RoomStatus {
        memory_bytes_promised,
        memory_bytes_max,
        store_bytes_used: store.charged_bytes,
        store_bytes_max: store.charge_bytes_max,
        code_bytes_used,
        code_bytes_max,
        store_erases: store.sectors_opened.div_ceil(store.sectors.max(1)),
    }
}

/// How far the flash below the store is worn.
fn wear_of<F: Flash>(node: &mut Node<F>) -> FlashWear {
    let Services { config, kernel, .. } = &mut node.services;
    let store = kernel.store().occupancy();
    FlashWear {
        sectors: store.sectors,
        erases: store.sectors_opened,
        erases_since_boot: store.sectors_opened.saturating_sub(node.sectors_opened_before),
        rated_per_sector: config.flash_erases_rated,
    }
}

/// The device's heap, if it has one of a fixed size.
pub(super) fn heap_of<F: Flash>(node: &Node<F>) -> Option<HeapStatus> {
    let usage = node.services.config.heap?();
    Some(usage.status(node.heap_bytes_before, node.services.endpoint.answers_bytes()))
}

/// Serves one call to the device's own machine and returns the encoded answer. One that came over a session may be
/// [held](Member::holds) instead.
pub(super) fn serve<F: Flash>(
    node: &mut Node<F>,
    moment: &mut Moment<'_>,
    (caller, handle): (&PublicKey, Option<IncomingCallHandle>),
    (name, request): (&str, &[u8]),
) -> Vec<u8> {
    let is_owner = *caller == node.services.config.owner.machine;
    let standing = if is_owner { Caller::Owner } else { Caller::Stranger };
    dispatch(&mut Served { node, moment, caller, handle }, standing, name, request)
}

/// The status of a machine that has just been installed.
pub(super) fn status_of_installed<F: Flash>(
    node: &Node<F>,
    now: Instant,
    id: MachineId,
) -> Answer<MachineStatus> {
    let info = node.services.kernel.machines().find(|info| info.id == id);
    info.map(|info| status_of_machine(node, now, &info))
        .ok_or_else(|| ControlError::Device("the machine is gone again".to_string()))
}

fn status_of_machine<F: Flash>(
    node: &Node<F>,
    now: Instant,
    info: &MachineInfo<'_>,
) -> MachineStatus {
    let record = info.record;
    MachineStatus {
        name: record.name.clone(),
        id: info.id,
        key: record.public_key,
        package: record.package_name.clone(),
        version: record.package_version,
        digest: record.package,
        tenant: record.tenant,
        exports: record.exports.clone(),
        state: match info.state {
            State::Ready if info.is_throttled => "throttled",
            state if info.is_swapped => in_flash(state),
            state => state.as_str(),
        }
        .to_string(),
        queue_length: info.queue_length as u32,
        tasks_done: info.tasks_done,
        fuel_used: info.fuel_used,
        faults: info.faults,
        repute: info.repute.as_str().to_string(),
        last_fault: info.last_fault.map(|fault| fault.to_string()),
        memory_bytes: info.memory_bytes as u32,
        stored_bytes: info.stored_bytes as u32,
        budget: record.budget,
        share: record.share,
        term: record.term,
        lease_unix_s: node.meter.lease_unix_s(&info.id),
        lease_number: record.placement,
        grace_left_s: node.meter.grace_left_s(&info.id, &record.term),
        base_bytes: record.base.map_or(0, |base| base.bytes),
        at_native_speed: info.on_engine,
        code: record.code,
        waited_max_us: info.waited_max.as_micros() as u64,
        wait_bound_us: node.calibration.time_of(info.wait_fuel_max).as_micros() as u64,
        serves: info.serves.map(|serves| serves.function.to_string()),
        serves_ms: info.serves.map_or(0, |serves| now.since(serves.begun).as_millis() as u64),
    }
}

/// The answer to the owner about a machine that the kernel left as it is.
fn unless_there(name: &Name) -> impl FnOnce(InstallError) -> ControlError {
    |error| match error {
        InstallError::NotFound => ControlError::NoSuchMachine(name.clone()),
        error => install::not_installed(error),
    }
}

/// The refusal of a path that is none.
fn no_path(path: &str) -> impl FnOnce(PathError) -> ControlError {
    |error| ControlError::Refused(path::refusal(path, error))
}

/// The word for a machine that stands in flash.
fn in_flash(state: State) -> &'static str {
    match state {
        State::Ready => "coming",
        _ => "swapped",
    }
}
