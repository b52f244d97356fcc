//! One instruction after the other, for who wants to know what each takes.

use super::{Instance, Outcome, Status};
use crate::{image::Image, interpreter};

/// More fuel than one instruction can take.
const PLENTY: u64 = 1 << 28;

impl Instance {
    /// Executes one instruction; gives the fuel for it and for what was owed before, in units, and how the run ends if
    /// it ends by that. An access to memory that is committed by it takes a second step.
    pub fn step(&mut self, image: &Image<'_>) -> (u64, Option<Outcome>) {
        let mut fuel = PLENTY;
        let entry = matches!(self.status, Status::Running) && self.is_of(image);
        let entry = entry.then(|| self.parts.entry(image)).flatten();
        let exit = entry.and_then(|entry| interpreter::execute_one(entry, None).ok());
        let outcome = match exit {
            Some(exit) => self.stop(image, &exit, &mut fuel),
            None => Some(self.stand(image, &mut fuel)),
        };
        (PLENTY - fuel, outcome)
    }

    /// Fuel that was used beyond what there was, in units; the next run pays it first.
    pub fn owed(&self) -> u64 {
        u64::from(self.debt.bytes() / super::UNIT_BYTES)
    }
}
