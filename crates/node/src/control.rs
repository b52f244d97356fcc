//! The device's own machine: serves the owner's protocol.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use tenure_hal::{Flash, Instant};
use tenure_kernel::{InstallError, Installation, LookError, MachineInfo, MachineRecord, State};
use tenure_store::ValueKind;
#[cfg(feature = "experiments")]
use tenure_wire::control::ExperimentLog;
#[cfg(feature = "mesh")]
use tenure_wire::control::{Admission, Join, MeshStatus, MeshStranger, StrangersQuery};
use tenure_wire::control::{
    Answer, Caller, ChangeOwner, ControlError, DeviceStatus, Enrol, EventsPage, EventsQuery,
    FirmwareBegin, FirmwareStatus, Function, Functions, GrantQuery, GrantReport, HeapStatus, Hello,
    HubStatus, InstallBegin, InstallChunk, InstallCommit, LeaseNumber, ListMachines, LogPage,
    LogQuery, MachineList, MachineStatus, ReceiptForget, ReceiptPage, ReceiptQuery, Remove, Renew,
    Restart, Restore, SecretList, Service, SnapshotBegin, SnapshotInfo, SnapshotRead, Start, Stop,
    TellTime, Trash, TrashEmpty, TrashRestore, TreeNode, TreeQuery, TreeValue, TrustHub, Unban,
    dispatch,
};
use tenure_wire::directory::SignedRecord;
use tenure_wire::limits::PARAMETER_BYTES_MAX;
#[cfg(feature = "mesh")]
use tenure_wire::message::List;
use tenure_wire::{Name, PublicKey};

use crate::boot_error::BootError;
use crate::install;
use crate::node::{Moment, Node};

/// How much room is left in an answer beside its list, in bytes.
const ANSWER_OVERHEAD: usize = 512;
/// What one machine takes in a list, beside its texts, at most.
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
        ]));
    }
    if !cfg!(feature = "experiments") {
        let experiments = [Function::experiment_direct, Function::experiment_logs];
        left_out = left_out.and(Functions::of(&experiments));
    }
    left_out
};

/// One call to the device's own machine: the node, the moment and the caller.
struct Served<'a, 'm, F> {
    node: &'a mut Node<F>,
    moment: &'a mut Moment<'m>,
    caller: &'a PublicKey,
}

impl<F: Flash> Service for Served<'_, '_, F> {
    const SERVES: Functions = Functions::ALL.without(NOT_SERVED);

    fn hello(&mut self, _: Hello) -> Answer<Hello> {
        Ok(Hello::own(env!("CARGO_PKG_VERSION")))
    }

    fn status(&mut self, (): ()) -> Answer<DeviceStatus> {
        Ok(self.node.status(self.moment))
    }

    fn list(&mut self, query: ListMachines) -> Answer<MachineList> {
        Ok(self.node.list(self.moment.now, &query))
    }

    fn install_begin(&mut self, InstallBegin { bytes }: InstallBegin) -> Answer<()> {
        self.node.transfer.begin(bytes)
    }

    fn install_chunk(&mut self, InstallChunk { offset, bytes }: InstallChunk<'_>) -> Answer<()> {
        self.node.transfer.chunk(offset, bytes)
    }

    fn install_commit(&mut self, commit: InstallCommit) -> Answer<MachineStatus> {
        self.node.commit(self.moment, &commit)
    }

    fn remove(&mut self, remove: Remove) -> Answer<()> {
        self.node.remove(self.moment, &remove)
    }

    fn renew(&mut self, renew: Renew) -> Answer<()> {
        self.node.renew(self.moment, &renew)
    }

    fn lease_number(&mut self, query: LeaseNumber) -> Answer<u64> {
        self.node.lease_number(&query)
    }

    fn trash(&mut self, (): ()) -> Answer<Trash> {
        Ok(self.node.list_trash())
    }

    fn trash_restore(&mut self, restore: TrashRestore) -> Answer<()> {
        self.node.restore_from_trash(self.moment, &restore)
    }

    fn trash_empty(&mut self, empty: TrashEmpty) -> Answer<()> {
        self.node.empty_trash(self.moment, &empty)
    }

    fn unban(&mut self, unban: Unban) -> Answer<()> {
        self.node.unban(self.moment, &unban)
    }

    fn restart(&mut self, restart: Restart) -> Answer<()> {
        self.node.restart(self.moment, &restart)
    }

    fn stop(&mut self, Stop { machine }: Stop) -> Answer<()> {
        let halted = self.node.kernel.tenancy(self.moment.now).halt(&machine);
        halted.map_err(unless_there(&machine))
    }

    fn start(&mut self, Start { machine }: Start) -> Answer<()> {
        let started = self.node.kernel.tenancy(self.moment.now).start(&machine);
        started.map_err(unless_there(&machine))
    }

    fn grants(&mut self, query: GrantQuery) -> Answer<GrantReport> {
        self.node.grants(&query)
    }

    fn receipts(&mut self, query: ReceiptQuery) -> Answer<ReceiptPage> {
        self.node.receipts(&query)
    }

    fn receipts_forget(&mut self, forget: ReceiptForget) -> Answer<()> {
        self.node.forget_receipts(&forget)
    }

    fn receipts_close(&mut self, (): ()) -> Answer<()> {
        self.node.end_periods(self.moment);
        Ok(())
    }

    fn change_owner(&mut self, change: ChangeOwner) -> Answer<()> {
        self.node.change_owner(self.moment, self.caller, &change)
    }

    fn revoke(&mut self, list: &[u8]) -> Answer<()> {
        self.node.take_revocations(self.moment, self.caller, list)
    }

    fn revoked(&mut self, (): ()) -> Answer<Option<Vec<u8>>> {
        Ok(self.node.ownership.signed_list.clone())
    }

    fn record(&mut self, (): ()) -> Answer<Option<SignedRecord>> {
        Ok(self.node.signed_record(self.moment))
    }

    fn secret_change(&mut self, signed: &[u8]) -> Answer<()> {
        self.node.change_secret(self.moment, self.caller, signed)
    }

    fn secret_list(&mut self, signed: &[u8]) -> Answer<SecretList> {
        self.node.list_secrets(self.moment.now, self.caller, signed)
    }

    fn tree(&mut self, query: TreeQuery) -> Answer<TreeNode> {
        self.node.tree(&query)
    }

    fn log(&mut self, query: LogQuery) -> Answer<LogPage> {
        Ok(self.node.log_page(&query))
    }

    fn enrol(&mut self, enrol: Enrol) -> Answer<()> {
        self.node.take_enrolment(self.moment, enrol)
    }

    fn time(&mut self, TellTime { unix_s }: TellTime) -> Answer<()> {
        self.node.owner_told_time(self.moment, unix_s);
        Ok(())
    }

    fn hub(&mut self, (): ()) -> Answer<Option<HubStatus>> {
        Ok(self.node.hub_status())
    }

    fn trust_hub(&mut self, trust: TrustHub) -> Answer<()> {
        self.node.trust_hub(self.moment, &trust)
    }

    #[cfg(feature = "mesh")]
    fn join(&mut self, join: Join) -> Answer<()> {
        self.node.take_invitation(self.moment, &join)
    }

    #[cfg(feature = "mesh")]
    fn mesh(&mut self, (): ()) -> Answer<MeshStatus> {
        self.node.mesh_status()
    }

    #[cfg(feature = "mesh")]
    fn mesh_strangers(&mut self, query: StrangersQuery) -> Answer<List<MeshStranger>> {
        self.node.strangers(self.moment.now, &query).map(List)
    }

    #[cfg(feature = "mesh")]
    fn mesh_admit(&mut self, admission: Admission) -> Answer<()> {
        self.node.admit(self.moment.now, admission)
    }

    #[cfg(feature = "experiments")]
    fn experiment_direct(&mut self, signed: &[u8]) -> Answer<()> {
        self.node.direct_experiment(self.moment.now, signed)
    }

    #[cfg(feature = "experiments")]
    fn experiment_logs(&mut self, (): ()) -> Answer<List<ExperimentLog>> {
        self.node.experiment_logs().map(List)
    }

    fn snapshot_begin(&mut self, begin: SnapshotBegin) -> Answer<SnapshotInfo> {
        self.node.freeze(self.moment, &begin)
    }

    fn snapshot_read(&mut self, read: SnapshotRead) -> Answer<Vec<u8>> {
        self.node.thaw(&read)
    }

    fn restore(&mut self, restore: Restore) -> Answer<()> {
        self.node.restore(self.moment, &restore)
    }

    fn firmware(&mut self, (): ()) -> Answer<FirmwareStatus> {
        self.node.firmware_status(self.moment)
    }

    fn firmware_begin(&mut self, begin: FirmwareBegin) -> Answer<()> {
        self.node.begin_firmware(&begin)
    }

    fn firmware_chunk(&mut self, chunk: InstallChunk<'_>) -> Answer<()> {
        self.node.take_firmware_chunk(&chunk)
    }

    fn firmware_commit(&mut self, (): ()) -> Answer<()> {
        self.node.commit_firmware(self.moment.now)
    }

    fn events(&mut self, query: EventsQuery) -> Answer<EventsPage> {
        Ok(self.node.events_page(&query))
    }
}

impl<F: Flash> Node<F> {
    /// Serves one call to the device's own machine and returns the encoded answer.
    pub(crate) fn serve_control(
        &mut self,
        moment: &mut Moment<'_>,
        caller: &PublicKey,
        name: &str,
        request: &[u8],
    ) -> Vec<u8> {
        let is_owner = *caller == self.config.owner.machine;
        let standing = if is_owner { Caller::Owner } else { Caller::Stranger };
        dispatch(&mut Served { node: self, moment, caller }, standing, name, request)
    }

    fn status(&mut self, moment: &Moment<'_>) -> DeviceStatus {
        let (trash_machines, trash_bytes) = self.trash_use();
        let vouched_s = self.vouched_time(moment).map(|time| time.seconds);
        DeviceStatus {
            name: self.config.name.clone(),
            key: self.identity.verifying_key(),
            device_machine: self.identity.machine_key,
            owner: self.config.owner.verifying_key,
            version: env!("CARGO_PKG_VERSION").to_string(),
            uptime_ms: moment.now.as_millis(),
            unix_s: vouched_s.map(|known_s| {
                known_s.max(self.meter.latest_unix_s(moment.now).unwrap_or(known_s))
            }),
            boots: self.identity.boots,
            hub: self.config.hub.as_ref().map(|hub| (hub.address.clone(), self.is_registered())),
            machines: self.kernel.machines().count() as u32,
            policy: self.config.kernel.policy.to_string(),
            fuel_per_second: self.calibration.fuel_per_second(),
            trash_machines,
            trash_bytes,
            code_bytes_free: self.kernel.code().free_bytes(),
            heap: self.heap_status(),
            record: self.signed_record(moment),
            revocations: self.ownership.revoked.number,
            succession: self.ownership.kept.as_ref().map_or(0, |kept| kept.number),
        }
    }

    fn heap_status(&self) -> Option<HeapStatus> {
        let usage = self.config.heap?();
        Some(usage.status(self.heap_bytes_before, self.endpoint.answers_bytes()))
    }

    fn list(&self, now: Instant, query: &ListMachines) -> MachineList {
        let mut room = PARAMETER_BYTES_MAX - ANSWER_OVERHEAD;
        let machines =
            self.kernel.machines().skip(query.skip as usize).map(|info| self.status_of(now, &info));
        let fitting = machines.take_while(|machine| {
            let texts: usize = machine.exports.iter().map(|export| export.len() + 2).sum();
            let bytes = MACHINE_OVERHEAD
                + texts
                + machine.last_fault.as_ref().map_or(0, String::len)
                + machine.serves.as_ref().map_or(0, String::len);
            let fits = bytes <= room;
            room = room.saturating_sub(bytes);
            fits
        });
        MachineList { machines: fitting.collect(), total: self.kernel.machines().count() as u32 }
    }

    /// Makes a machine of the package that was transferred.
    fn commit(&mut self, moment: &mut Moment<'_>, commit: &InstallCommit) -> Answer<MachineStatus> {
        let package = self.transfer.complete()?;
        let installation = install::prepare(
            &mut self.kernel,
            &self.identity,
            (&self.config, &self.ownership),
            moment.entropy,
            package,
            &commit.placement,
        );
        let installation = installation.map_err(|error| self.without_room(error))?;
        self.take_in(moment, installation)
    }

    /// Puts a package that is at hand on the device, as its owner would from afar.
    ///
    /// # Errors
    /// As [`ControlError`] says; the device is as before then.
    pub fn install(
        &mut self,
        moment: &mut Moment<'_>,
        package: &[u8],
        placement: &[u8],
    ) -> Answer<MachineStatus> {
        let installation = install::prepare(
            &mut self.kernel,
            &self.identity,
            (&self.config, &self.ownership),
            moment.entropy,
            package,
            placement,
        );
        let installation = installation.map_err(|error| self.without_room(error))?;
        self.take_in(moment, installation)
    }

    fn take_in(
        &mut self,
        moment: &Moment<'_>,
        installation: Installation,
    ) -> Answer<MachineStatus> {
        let (id, record) = (installation.id, installation.record.clone());
        let MachineRecord { name, salt, .. } = record.clone();
        if record.term.is_over(self.lease_time_s(moment, id, &record.term)) {
            self.kernel.code().release_all(record.extents());
            return Err(ControlError::Refused("the lease would be over already".to_string()));
        }
        let replaces = self.kernel.machines().any(|info| info.record.name == name);
        if replaces {
            self.end_lease(moment, id);
        }
        if let Err(error) = self.kernel.tenancy(moment.now).install(installation) {
            self.kernel.code().release_all(record.extents());
            return Err(self.without_room(install::not_installed(error)));
        }
        if !replaces {
            self.speak_for(id, &salt);
            self.take_up_ledger(moment, id);
        }
        self.register_soon(moment.now);
        self.lease_signed(moment, id, &record.term);
        let info = self.kernel.machines().find(|info| info.id == id);
        info.map(|info| self.status_of(moment.now, &info))
            .ok_or_else(|| ControlError::Device("the machine is gone again".to_string()))
    }

    /// The error, which says what the trash holds if the device is full.
    fn without_room(&self, error: ControlError) -> ControlError {
        match (error, self.trash_use()) {
            (ControlError::Full(what), (machines, bytes)) if machines > 0 => {
                ControlError::Full(alloc::format!(
                    "{what}; the trash holds {machines} machines and {bytes} bytes, which \
                     `tenure trash empty` frees"
                ))
            }
            (error, _) => error,
        }
    }

    fn grants(&self, query: &GrantQuery) -> Answer<GrantReport> {
        let found = self.kernel.machines().find(|info| info.record.name == query.machine);
        let info = found.ok_or_else(|| ControlError::NoSuchMachine(query.machine.clone()))?;
        Ok(GrantReport { uses: info.grants.uses(), denied: info.grants.denied() })
    }

    fn unban(&mut self, moment: &Moment<'_>, unban: &Unban) -> Answer<()> {
        self.kernel
            .pardon(moment.now, &unban.machine)
            .map_err(|_| ControlError::NoSuchMachine(unban.machine.clone()))
    }

    fn restart(&mut self, moment: &Moment<'_>, restart: &Restart) -> Answer<()> {
        let restarted = self.kernel.tenancy(moment.now).restart(&restart.machine);
        restarted.map_err(unless_there(&restart.machine))
    }

    fn tree(&mut self, query: &TreeQuery) -> Answer<TreeNode> {
        let look = self.kernel.look(&query.machine, &query.path).map_err(|error| match error {
            LookError::NoSuchMachine => ControlError::NoSuchMachine(query.machine.clone()),
            LookError::Store(error) => ControlError::Refused(error.to_string()),
        })?;
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
        Ok(TreeNode { value, children: children.collect(), total })
    }

    pub(crate) fn take_enrolment(&mut self, moment: &Moment<'_>, enrol: Enrol) -> Answer<()> {
        self.directory.forget_signed();
        self.enrol(enrol.enrolment, enrol.signature).map_err(|error| match error {
            BootError::Enrolment => ControlError::Refused(error.to_string()),
            error => ControlError::Device(error.to_string()),
        })?;
        self.register_soon(moment.now);
        Ok(())
    }

    fn status_of(&self, now: Instant, info: &MachineInfo<'_>) -> MachineStatus {
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
            lease_unix_s: self.lease_unix_s(&info.id),
            lease_number: record.placement,
            grace_left_s: self.grace_left_s(&info.id, &record.term),
            base_bytes: record.base.map_or(0, |base| base.bytes),
            at_native_speed: info.on_engine,
            code: record.code,
            waited_max_us: info.waited_max.as_micros() as u64,
            wait_bound_us: self.calibration.time_of(info.wait_fuel_max).as_micros() as u64,
            serves: info.serves.map(|serves| serves.function.to_string()),
            serves_ms: info.serves.map_or(0, |serves| now.since(serves.begun).as_millis() as u64),
        }
    }

    fn log_page(&self, query: &LogQuery) -> LogPage {
        self.log.page(query.machine.as_ref(), query.from, self.kernel.logs_dropped())
    }
}

/// What the owner is told of a machine that the kernel left as it is.
fn unless_there(name: &Name) -> impl FnOnce(InstallError) -> ControlError {
    |error| match error {
        InstallError::NotFound => ControlError::NoSuchMachine(name.clone()),
        error => install::not_installed(error),
    }
}

/// The word for a machine that stands in flash.
fn in_flash(state: State) -> &'static str {
    match state {
        State::Ready => "coming",
        _ => "swapped",
    }
}
