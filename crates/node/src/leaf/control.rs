//! A leaf's own machine: the owner's functions that make sense there.

use alloc::string::ToString;
use alloc::vec::Vec;

use tenure_hal::Flash;
use tenure_store::{ReadError, ValueKind};
use tenure_wire::control::{
    Answer, Caller, ControlError, DeviceStatus, Enrol, Function, Functions, Hello, Join,
    ListMachines, MachineList, MachineStatus, MeshStatus, Service, TellTime, TreeNode, TreeQuery,
    TreeValue, dispatch,
};
use tenure_wire::directory::SignedRecord;
use tenure_wire::{CodeKind, PublicKey, Version};

use super::{Leaf, LeafNotice, Offered};
use crate::boot_error::BootError;
use crate::membership::status_of;
use crate::moment::Moment;

/// The most children of a place in a tree that one answer names.
const CHILDREN_MAX: usize = 24;
/// The firmware's version, read while it is compiled: a leaf has no use for the parser.
const FIRMWARE: Version = Version {
    major: number(env!("CARGO_PKG_VERSION_MAJOR")),
    minor: number(env!("CARGO_PKG_VERSION_MINOR")),
    patch: number(env!("CARGO_PKG_VERSION_PATCH")),
};

const fn number(text: &str) -> u16 {
    match u16::from_str_radix(text, 10) {
        Ok(number) => number,
        Err(_) => panic!("cargo gives numbers"),
    }
}

/// One call to a leaf's own machine.
struct Served<'a, 'm, F> {
    leaf: &'a mut Leaf<F>,
    moment: &'a Moment<'m>,
}

impl<F: Flash> Service for Served<'_, '_, F> {
    const SERVES: Functions = Functions::of(&[
        Function::hello,
        Function::status,
        Function::list,
        Function::tree,
        Function::enrol,
        Function::join,
        Function::time,
        Function::mesh,
        Function::record,
    ]);

    fn hello(&mut self, _: Hello) -> Answer<Hello> {
        Ok(Hello::own(env!("CARGO_PKG_VERSION")))
    }

    fn status(&mut self, (): ()) -> Answer<DeviceStatus> {
        Ok(self.leaf.status(self.moment))
    }

    fn list(&mut self, query: ListMachines) -> Answer<MachineList> {
        Ok(self.leaf.list(&query))
    }

    fn tree(&mut self, query: TreeQuery) -> Answer<TreeNode> {
        self.leaf.tree(&query)
    }

    fn enrol(&mut self, enrol: Enrol) -> Answer<()> {
        self.leaf.take_enrolment(self.moment, enrol)
    }

    fn join(&mut self, join: Join) -> Answer<()> {
        self.leaf
            .join_mesh(self.moment.now, &join.invitation)
            .map_err(|error| ControlError::Refused(error.to_string()))
    }

    fn time(&mut self, TellTime { unix_s }: TellTime) -> Answer<()> {
        if self.leaf.records_time.tell(self.moment.now, unix_s) {
            self.leaf.publish_at = self.moment.now;
        }
        Ok(())
    }

    fn mesh(&mut self, (): ()) -> Answer<MeshStatus> {
        status_of(self.leaf.mesh.as_ref())
    }

    fn record(&mut self, (): ()) -> Answer<Option<SignedRecord>> {
        Ok(self.leaf.signed_record(self.moment.now))
    }
}

impl<F: Flash> Leaf<F> {
    /// Serves one call to the device's own machine and returns the encoded answer.
    pub(super) fn serve_control(
        &mut self,
        moment: &Moment<'_>,
        caller: &PublicKey,
        name: &str,
        request: &[u8],
    ) -> Vec<u8> {
        let is_owner = *caller == self.config.owner.machine;
        let standing = if is_owner { Caller::Owner } else { Caller::Stranger };
        dispatch(&mut Served { leaf: self, moment }, standing, name, request)
    }

    fn take_enrolment(&mut self, moment: &Moment<'_>, enrol: Enrol) -> Answer<()> {
        let Self { identity, store, config, .. } = self;
        let named = (&config.name, config.owner);
        identity.enrol(store, named, enrol.enrolment, enrol.signature).map_err(
            |error| match error {
                BootError::Enrolment => ControlError::Refused(error.to_string()),
                error => ControlError::Device(error.to_string()),
            },
        )?;
        self.signed = None;
        self.publish_at = moment.now;
        self.notices.push_back(LeafNotice::Enrolled);
        Ok(())
    }

    fn status(&mut self, moment: &Moment<'_>) -> DeviceStatus {
        let heap = self.config.heap.map(|usage| usage().status(0, self.endpoint.answers_bytes()));
        DeviceStatus {
            name: self.config.name.clone(),
            key: self.identity.verifying_key(),
            device_machine: self.identity.machine_key,
            owner: self.config.owner.verifying_key,
            version: env!("CARGO_PKG_VERSION").to_string(),
            uptime_ms: moment.now.as_millis(),
            unix_s: Some(self.records_time.at(moment.now).seconds),
            boots: self.identity.boots,
            hub: None,
            machines: self.services.len() as u32,
            policy: "as they come".to_string(),
            fuel_per_second: 0,
            trash_machines: 0,
            trash_bytes: 0,
            code_bytes_free: 0,
            heap,
            record: self.signed_record(moment.now),
            revocations: 0,
            succession: 0,
            wear: None,
            changes_lost: self.changes_lost,
            machines_unreadable: 0,
            machines_max: 0,
        }
    }

    fn list(&self, query: &ListMachines) -> MachineList {
        let services = self.services.iter().skip(query.skip as usize);
        // One at a time: an answer here is short.
        let machines = services.take(1).map(|offered| self.status_of(offered)).collect();
        MachineList { machines, total: self.services.len() as u32 }
    }

    /// A service as a machine is shown. It has no package, no budget and no fuel, and the firmware's version.
    fn status_of(&self, offered: &Offered) -> MachineStatus {
        MachineStatus {
            id: offered.id,
            key: offered.key,
            version: FIRMWARE,
            tenant: self.config.owner.verifying_key,
            exports: offered.service.functions().iter().map(|name| name.to_string()).collect(),
            state: "in firmware".to_string(),
            tasks_done: offered.calls,
            at_native_speed: true,
            code: CodeKind::Thumb,
            ..MachineStatus::empty(offered.name.clone())
        }
    }

    fn tree(&mut self, query: &TreeQuery) -> Answer<TreeNode> {
        let offered = self.services.iter().find(|offered| offered.name == query.machine);
        let tree = offered.ok_or_else(|| ControlError::NoSuchMachine(query.machine.clone()))?.tree;
        let failed = |error: ReadError| ControlError::Refused(error.to_string());
        let (value, is_damaged) = match query.path.as_str() {
            "" => (None, false),
            path => match self.store.get(tree, path) {
                Err(ReadError::Corrupt | ReadError::Unsealable) => (None, true),
                value => (value.map_err(failed)?, false),
            },
        };
        let value = value.map(|value| match (value.kind, value.bytes) {
            (ValueKind::Text, bytes) => {
                TreeValue::Text(alloc::string::String::from_utf8_lossy(&bytes).into_owned())
            }
            (_, bytes) => TreeValue::Bytes(bytes),
        });
        let children = self.store.children(tree, &query.path).map_err(failed)?;
        let total = children.len() as u32;
        let page = children.into_iter().skip(query.skip as usize).take(CHILDREN_MAX);
        Ok(TreeNode { value, children: page.collect(), total, is_damaged })
    }
}
