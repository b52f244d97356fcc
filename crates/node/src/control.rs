//! The device's own machine: what the owner asks of the device, done.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::Serialize;
use serde::de::Deserialize;
use tenure_hal::{Flash, Instant};
use tenure_kernel::{Installation, LookError, MachineInfo, MachineRecord, State};
use tenure_store::ValueKind;
use tenure_wire::PublicKey;
use tenure_wire::control::{
    Answer, ControlError, DeviceStatus, Enrol, GrantQuery, GrantReport, HeapStatus, InstallBegin,
    InstallChunk, InstallCommit, ListMachines, LogPage, LogQuery, MachineList, MachineStatus,
    Restart, TellTime, TreeNode, TreeQuery, TreeValue, Unban, function,
};
use tenure_wire::limits::PARAMETER_BYTES_MAX;

use crate::boot_error::BootError;
use crate::install;
use crate::node::{Moment, Node};

/// How much room is left in an answer beside its list, in bytes.
const ANSWER_OVERHEAD: usize = 512;
/// What one machine takes in a list, beside its texts, at most.
const MACHINE_OVERHEAD: usize = 384;

impl<F: Flash> Node<F> {
    /// Serves one call to the device's own machine; the answer is its encoded [`Answer`].
    pub(crate) fn serve_owner(
        &mut self,
        moment: &mut Moment<'_>,
        caller: &PublicKey,
        name: &str,
        parameter: &[u8],
    ) -> Vec<u8> {
        match name {
            function::RECORD => return encode(Ok(self.signed_record(moment))),
            function::SECRET_CHANGE => {
                return encode(self.change_secret(moment, caller, parameter));
            }
            function::SECRET_LIST => {
                return encode(self.list_secrets(moment.now, caller, parameter));
            }
            _ => {}
        }
        if *caller != self.config.owner.machine {
            return encode::<()>(Err(ControlError::NotOwner));
        }
        match name {
            function::STATUS => encode(Ok(self.status(moment))),
            function::LIST => encode(decode(parameter).map(|query| self.list(moment.now, &query))),
            function::INSTALL_BEGIN => encode(
                decode(parameter).and_then(|InstallBegin { bytes }| self.transfer.begin(bytes)),
            ),
            function::INSTALL_CHUNK => encode(
                decode(parameter)
                    .and_then(|InstallChunk { offset, bytes }| self.transfer.chunk(offset, bytes)),
            ),
            function::INSTALL_COMMIT => {
                encode(decode(parameter).and_then(|commit| self.commit(moment, &commit)))
            }
            function::REMOVE => {
                encode(decode(parameter).and_then(|remove| self.remove(moment, &remove)))
            }
            function::RENEW => {
                encode(decode(parameter).and_then(|renew| self.renew(moment, &renew)))
            }
            function::RESTART => {
                encode(decode(parameter).and_then(|restart| self.restart(moment, &restart)))
            }
            function::LEASE_NUMBER => {
                encode(decode(parameter).and_then(|query| self.lease_number(&query)))
            }
            function::TRASH => encode(Ok(self.list_trash())),
            function::TRASH_RESTORE => encode(
                decode(parameter).and_then(|restore| self.restore_from_trash(moment, &restore)),
            ),
            function::TRASH_EMPTY => {
                encode(decode(parameter).and_then(|empty| self.empty_trash(moment, &empty)))
            }
            function::HUB => encode(Ok(self.hub_status())),
            function::TRUST_HUB => {
                encode(decode(parameter).and_then(|trust| self.trust_hub(moment, &trust)))
            }
            function::GRANTS => encode(decode(parameter).and_then(|query| self.grants(&query))),
            function::RECEIPTS => encode(decode(parameter).and_then(|query| self.receipts(&query))),
            function::RECEIPTS_FORGET => {
                encode(decode(parameter).and_then(|forget| self.forget_receipts(&forget)))
            }
            function::RECEIPTS_CLOSE => {
                self.end_periods(moment);
                encode(Ok(()))
            }
            function::UNBAN => {
                encode(decode(parameter).and_then(|unban| self.unban(moment, &unban)))
            }
            function::TREE => encode(decode(parameter).and_then(|query| self.tree(&query))),
            function::LOG => encode(decode(parameter).map(|query| self.log_page(&query))),
            function::ENROL => {
                encode(decode(parameter).and_then(|enrol| self.take_enrolment(moment, enrol)))
            }
            function::TIME => {
                let told = decode(parameter);
                encode(told.map(|TellTime { unix_s }| self.owner_told_time(moment, unix_s)))
            }
            #[cfg(feature = "mesh")]
            function::JOIN => {
                encode(decode(parameter).and_then(|join| self.take_invitation(moment, &join)))
            }
            #[cfg(feature = "mesh")]
            function::MESH => encode(self.mesh_status()),
            #[cfg(feature = "mesh")]
            function::MESH_STRANGERS => {
                encode(decode(parameter).and_then(|query| self.strangers(moment.now, &query)))
            }
            #[cfg(feature = "mesh")]
            function::MESH_ADMIT => {
                encode(decode(parameter).and_then(|admission| self.admit(moment.now, admission)))
            }
            #[cfg(feature = "experiments")]
            function::EXPERIMENT_DIRECT => encode(self.direct_experiment(moment.now, parameter)),
            #[cfg(feature = "experiments")]
            function::EXPERIMENT_LOGS => encode(self.experiment_logs()),
            function::SNAPSHOT_BEGIN => {
                encode(decode(parameter).and_then(|begin| self.freeze(moment, &begin)))
            }
            function::SNAPSHOT_READ => encode(decode(parameter).and_then(|read| self.thaw(&read))),
            function::RESTORE => {
                encode(decode(parameter).and_then(|restore| self.restore(moment, &restore)))
            }
            function::FIRMWARE => encode(self.firmware_status(moment)),
            function::FIRMWARE_BEGIN => {
                encode(decode(parameter).and_then(|begin| self.begin_firmware(&begin)))
            }
            function::FIRMWARE_CHUNK => {
                encode(decode(parameter).and_then(|chunk| self.take_firmware_chunk(&chunk)))
            }
            function::FIRMWARE_COMMIT => encode(self.commit_firmware(moment.now)),
            function::EVENTS => encode(decode(parameter).map(|query| self.events_page(&query))),
            _ => encode::<()>(Err(ControlError::NoSuchFunction)),
        }
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
            &self.config,
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
            &self.config,
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
        if let Err(error) = self.kernel.install(moment.now, installation) {
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
        let restarted = self.kernel.restart_machine(moment.now, &restart.machine);
        restarted.map_err(install::not_installed)
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

    fn take_enrolment(&mut self, moment: &Moment<'_>, enrol: Enrol) -> Answer<()> {
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

/// The word for a machine that stands in flash.
fn in_flash(state: State) -> &'static str {
    match state {
        State::Ready => "coming",
        _ => "swapped",
    }
}

pub(crate) fn decode<'a, T: Deserialize<'a>>(parameter: &'a [u8]) -> Answer<T> {
    postcard::from_bytes(parameter).map_err(|_| ControlError::Malformed)
}

/// Encodes what has been built of valid parts, which can't fail but for want of memory.
pub(crate) fn encode<T: Serialize>(answer: Answer<T>) -> Vec<u8> {
    postcard::to_allocvec(&answer).unwrap_or_default()
}
