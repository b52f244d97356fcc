//! Host calls about a machine's tree.

use alloc::vec::Vec;

use tenure_hal::Flash;
use tenure_store::ValueKind;
use tenure_wire::host_call::{GuestBuffer, GuestBytes, GuestText, HostError};
use tenure_wire::limits::{PATH_BYTES_MAX, VALUE_BYTES_MAX};

use super::{Status, Stop, check_flash, text};
use crate::cost;
use crate::machine::Progress;
use crate::program::Program;
use crate::turn::Turn;

impl<F: Flash> Turn<'_, '_, F> {
    pub(super) fn tree_set(&mut self, path: GuestText, kind: u32, value: GuestBytes) -> Status {
        self.door().ask_failure()?;
        let now = self.now();
        let path = path_of(&self.program, path)?;
        if value.length() > VALUE_BYTES_MAX {
            return Err(HostError::TooLong.into());
        }
        let bytes = value.read(self.program.memory())?;
        let kind = match kind {
            0 => ValueKind::Bytes,
            1 if core::str::from_utf8(bytes).is_ok() => ValueKind::Text,
            _ => return Err(HostError::Invalid.into()),
        };
        let (storage, machine) = (&mut self.parts.storage, &mut *self.machine);
        let appended = storage.store.record_bytes(machine.slot.tree(), path, bytes);
        if !storage.has_budget_for(machine, path, appended)? {
            return Err(HostError::StoredBudget.into());
        }
        check_flash(storage, machine, now)?;
        storage.tree(machine).ok_or(HostError::Device)?.set(path, kind, bytes)?;
        machine.charge_flash(now, appended);
        Ok(0)
    }

    pub(super) fn tree_get(&mut self, path: GuestText, into: GuestBuffer) -> Status {
        self.door().ask_failure()?;
        let path = path_of(&self.program, path)?;
        let tree = self.parts.storage.tree(&mut self.machine);
        let value = tree.ok_or(HostError::Device)?.get(path)?.ok_or(HostError::NotFound)?;
        into.write(self.program.memory_mut(), &value.bytes)?;
        Ok(value.bytes.len())
    }

    pub(super) fn tree_delete(&mut self, path: GuestText) -> Status {
        self.door().ask_failure()?;
        let now = self.now();
        let mut progress = self.machine.take_progress();
        let path = path_of(&self.program, path)?;
        let (storage, machine) = (&mut self.parts.storage, &mut *self.machine);
        if progress.deletion.is_new() {
            check_flash(storage, machine, now)?;
        }
        storage.bill(machine, now);
        let mut tree = storage.tree(machine).ok_or(HostError::Device)?;
        let step = tree.delete_step(path, &mut progress.deletion, cost::PIECE_VALUES)?;
        self.extra_cost += cost::of_deleting(&step);
        if step.written_bytes > 0 {
            machine.charge_flash(now, step.written_bytes);
        }
        match progress.deletion {
            ref deletion if deletion.is_done() => Ok(deletion.values),
            _ => Err(Stop::More(progress)),
        }
    }

    pub(super) fn tree_list(&mut self, path: GuestText, into: GuestBuffer) -> Status {
        self.door().ask_failure()?;
        let Progress { mut bytes, mut last_name, .. } = self.machine.take_progress();
        let path = path_of(&self.program, path)?;
        let mut tree = self.parts.storage.tree(&mut self.machine).ok_or(HostError::Device)?;
        let mut list = Vec::new();
        let mut names = 0;
        while names < cost::PIECE_NAMES {
            let next = tree.next_child(path, last_name.as_deref())?;
            let Some(name) = next else { break };
            list.extend_from_slice(name.as_bytes());
            list.push(0);
            last_name = Some(name);
            names += 1;
        }
        self.extra_cost += cost::of_names(names.max(1), list.len());
        into.write_at(self.program.memory_mut(), bytes, &list)?;
        bytes += list.len();
        if names < cost::PIECE_NAMES {
            return Ok(bytes);
        }
        Err(Stop::More(Progress { bytes, last_name, ..Progress::default() }))
    }
}

fn path_of(program: &Program, path: GuestText) -> Result<&str, Stop> {
    text(program, path, PATH_BYTES_MAX)
}
