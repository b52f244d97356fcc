//! Making an instance from an image: parses nothing, copies data segments.

use super::{Instance, InstanceConfig, StartError, Status, fuel::Debt, parts::Parts};
use crate::image::Image;

impl Instance {
    /// Makes an instance and commits its memory: all that is declared, or all that the budget allows.
    ///
    /// If the module names a start function, a call of it is prepared: `run` executes it first, and
    /// `prepare` says `Busy` until it is done.
    pub fn new(image: &Image<'_>, config: &InstanceConfig) -> Result<Instance, StartError> {
        let mut instance = Instance::bare(image, config);
        match instance.set_up(image, config, true) {
            Ok(()) => Ok(instance),
            Err(error) => Err(error),
        }
    }

    /// As [`Instance::new`], but commits memory as the program reaches it, growing the allocation.
    pub fn new_lazy(image: &Image<'_>, config: &InstanceConfig) -> Result<Instance, StartError> {
        let mut instance = Instance::bare(image, config);
        match instance.set_up(image, config, false) {
            Ok(()) => Ok(instance),
            Err(error) => Err(error),
        }
    }

    fn set_up(
        &mut self,
        image: &Image<'_>,
        config: &InstanceConfig,
        commit: bool,
    ) -> Result<(), StartError> {
        self.parts.allocate(image, config)?;
        self.parts.fill(image)?;
        if let Some(function) = image.start_function() {
            self.prepare(image, function, &[]).map_err(|_| StartError::StackBudget)?;
        }
        if commit {
            let memory = &mut self.parts.memory;
            let usable = memory.usable() as u64;
            memory.commit(usable).map_err(|_| StartError::OutOfMemory)?;
        }
        Ok(())
    }

    /// An instance for which nothing is allocated yet.
    pub(crate) fn bare(image: &Image<'_>, config: &InstanceConfig) -> Instance {
        Instance {
            token: image.token,
            status: Status::Idle,
            entry: 0,
            debt: Debt::NONE,
            parts: Parts::new(image, config),
        }
    }
}
