//! The owner's own changes to the tree of a machine that goes on running.
//!
//! A value counts against the machine's budget for what it stores, and is billed for as long as it stands. The
//! write itself takes nothing of the flash that the machine may wear out in a day: it isn't the machine's.

use tenure_hal::Flash;
use tenure_store::{DeleteError, SetError, ValueKind};
use tenure_wire::LogLevel;
use tenure_wire::Name;
use tenure_wire::limits::{PATH_BYTES_MAX, VALUE_BYTES_MAX};

use crate::install_error::InstallError;
use crate::parts::Parts;
use crate::tenancy::Tenancy;

impl<F: Flash> Tenancy<'_, F> {
    /// Sets a value of a machine's tree. The machine finds it there when it reads that path next, and its log
    /// names the path.
    ///
    /// # Errors
    /// [`InstallError::NotFound`], [`InstallError::Values`] if path or value is not allowed,
    /// [`InstallError::StoredBudget`], or the store's; the tree is as before then.
    pub fn set_value(
        &mut self,
        name: &Name,
        path: &str,
        kind: ValueKind,
        value: &[u8],
    ) -> Result<(), InstallError> {
        if path.len() > PATH_BYTES_MAX || value.len() > VALUE_BYTES_MAX {
            return Err(InstallError::Values);
        }
        let Parts { machines, storage, .. } = &mut *self.parts;
        let machine = machines.with_name_mut(name).ok_or(InstallError::NotFound)?;
        let slot = machine.slot;
        let bytes = storage.store.record_bytes(slot.tree(), path, value);
        if !storage.has_budget_for(machine, path, bytes)? {
            return Err(InstallError::StoredBudget);
        }
        storage.bill(machine, self.now);
        let mut tree = storage.tree(machine).ok_or(InstallError::Store)?;
        tree.set(path, kind, value).map_err(of_setting)?;
        #[cfg(feature = "journal")]
        note(machine, path, Some((kind == ValueKind::Text, value)));
        self.parts.log(self.now, slot, LogLevel::Info, &alloc::format!("its owner set `{path}`"));
        Ok(())
    }

    /// Deletes the value at `path` of a machine's tree and all below it; returns how many values are gone.
    ///
    /// # Errors
    /// [`InstallError::NotFound`], [`InstallError::Values`] if the path is none, or the store's; each value is
    /// as before then, or gone.
    pub fn delete_values(&mut self, name: &Name, path: &str) -> Result<usize, InstallError> {
        if path.is_empty() || path.len() > PATH_BYTES_MAX {
            return Err(InstallError::Values);
        }
        let Parts { machines, storage, .. } = &mut *self.parts;
        let machine = machines.with_name_mut(name).ok_or(InstallError::NotFound)?;
        let slot = machine.slot;
        storage.bill(machine, self.now);
        let mut tree = storage.tree(machine).ok_or(InstallError::Store)?;
        let values = tree.delete(path).map_err(of_deleting)?;
        #[cfg(feature = "journal")]
        note(machine, path, None);
        if values > 0 {
            let line = alloc::format!("its owner deleted `{path}`");
            self.parts.log(self.now, slot, LogLevel::Info, &line);
        }
        Ok(values)
    }
}

/// Writes a change into the machine's journal.
#[cfg(feature = "journal")]
fn note(machine: &mut crate::machine::Machine, path: &str, value: Option<(bool, &[u8])>) {
    let fuel = machine.task_fuel();
    machine.note(|| tenure_journal::Record::Amended {
        fuel,
        path: path.into(),
        value: value.map(|(is_text, bytes)| (is_text, bytes.to_vec())),
    });
}

fn of_setting(error: SetError) -> InstallError {
    match error {
        SetError::Path(_) | SetError::ValueTooLong { .. } => InstallError::Values,
        SetError::Full => InstallError::StoreFull,
        _ => InstallError::Store,
    }
}

fn of_deleting(error: DeleteError) -> InstallError {
    match error {
        DeleteError::Path(_) => InstallError::Values,
        DeleteError::Full => InstallError::StoreFull,
        _ => InstallError::Store,
    }
}
