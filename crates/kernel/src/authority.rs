//! Who may call whom: the grants of both sides, asked before a call is on its way and before it is
//! queued.

use alloc::string::{String, ToString};

use tenure_hal::{Flash, Instant};
use tenure_wire::capability::{NotGranted, Peer};
use tenure_wire::host_call::HostError;
use tenure_wire::{Grants, MachineId, Name, PublicKey, Target};

use crate::calls::Request;
use crate::effect::LogLevel;
use crate::kernel::{DeliverError, Kernel};
use crate::task::{IncomingCall, Standing};

impl<F: Flash> Kernel<F> {
    /// Whether a call from outside to machine `to` can only be judged once the caller's name is
    /// known, which its key alone doesn't tell.
    pub fn needs_name_of(&self, caller: &PublicKey, to: MachineId) -> bool {
        let callee = self.slot_of_id(to).and_then(|slot| self.machine(slot));
        callee.is_some_and(|machine| machine.grants.depends_on_name(caller))
    }

    /// Lets a call from outside in, or notes why not: in the log of the machine that is called, and
    /// of a stranger in the log of the device.
    pub(crate) fn admit(
        &mut self,
        now: Instant,
        slot: usize,
        call: &IncomingCall,
    ) -> Result<(), DeliverError> {
        let key = call.caller.as_ref();
        let caller = match &call.standing {
            Standing::Owner => return Ok(()),
            Standing::Stranger => Peer { key, ..Peer::default() },
            Standing::Named { machine, device } => {
                Peer { machine: Some(machine), device: Some(device), is_here: false, key }
            }
        };
        let Some(machine) = self.machine_mut(slot) else { return Err(DeliverError::NoSuchMachine) };
        let Err(denied) = machine.grants.admit(&caller) else { return Ok(()) };
        let name = machine.record.name.clone();
        // A stranger has no part of the machine's log.
        match (&call.standing, self.config.device.clone()) {
            (Standing::Stranger, Some(device)) => {
                self.log_denial(slot, now, device, alloc::format!("{name}: {denied}"));
            }
            _ => self.log_denial(slot, now, name, denied.to_string()),
        }
        Err(DeliverError::Denied)
    }

    /// Lets a call of another machine of this device in; of the machine itself, always.
    pub(crate) fn admit_local(
        &mut self,
        now: Instant,
        slot: usize,
        caller: usize,
    ) -> Result<(), DeliverError> {
        if slot == caller {
            return Ok(());
        }
        let Some(machine) = self.machine(caller) else { return Err(DeliverError::Denied) };
        let (name, key) = (machine.record.name.clone(), machine.public_key());
        let device = self.config.device.clone();
        let peer =
            Peer { machine: Some(&name), device: device.as_ref(), is_here: true, key: Some(&key) };
        self.ask(now, slot, |grants| grants.admit(&peer)).map_err(|_| DeliverError::Denied)
    }

    /// Whether the machine in `slot` may make the call that it asks for.
    pub(crate) fn check_call(
        &mut self,
        slot: usize,
        now: Instant,
        request: &Request,
    ) -> Result<(), HostError> {
        let Request::Call { target, .. } = request else { return Ok(()) };
        let here = self.local_slot(slot, target).flatten();
        if here == Some(slot) {
            return Ok(());
        }
        let own_name = self.config.device.clone();
        let device = own_name.as_ref();
        let found = here.and_then(|here| self.machine(here));
        let found = found.map(|machine| (machine.record.name.clone(), machine.public_key()));
        let callee = match (&found, target) {
            (Some((name, key)), _) => {
                Peer { machine: Some(name), device, is_here: true, key: Some(key) }
            }
            (None, Target::Own) => return Ok(()),
            (None, Target::Local(name)) => {
                Peer { machine: Some(name), device, is_here: true, key: None }
            }
            (None, Target::Remote { machine, device: there }) => Peer {
                machine: Some(machine),
                device: Some(there),
                is_here: device == Some(there),
                key: None,
            },
            (None, Target::Id(_)) => Peer::default(),
            (None, Target::Key(key)) => Peer { key: Some(key), ..Peer::default() },
        };
        self.ask(now, slot, |grants| grants.call(&callee)).map_err(|_| HostError::NotGranted)
    }

    /// Asks the machine in `slot` for a right; where it has none, its log says which, once a minute.
    pub(crate) fn ask(
        &mut self,
        now: Instant,
        slot: usize,
        right: impl FnOnce(&mut Grants) -> Result<(), NotGranted>,
    ) -> Result<(), NotGranted> {
        let Some(machine) = self.machine_mut(slot) else { return right(&mut Grants::default()) };
        let name = machine.record.name.clone();
        let asked = right(&mut machine.grants);
        asked.inspect_err(|denied| self.log_denial(slot, now, name, denied.to_string()))
    }

    /// Counts that something was denied to the machine in `slot`, or to a caller of it, and says so in
    /// the log `of` somebody, once a minute.
    fn log_denial(&mut self, slot: usize, now: Instant, of: Name, denied: String) {
        let Some(machine) = self.machine_mut(slot) else { return };
        let lines = machine.denials.get_or_insert_default().count(now, denied);
        for line in lines {
            self.log(now, of.clone(), LogLevel::Warning, line);
        }
    }
}
