//! The engines that run programs: the vm, behind the board's memory protection if it has one, and the one that the
//! board lends.

use alloc::boxed::Box;

use tenure_vm::{Compiled, Image, Outcome, Wall};
use tenure_wire::CodeKind;

use crate::compiled::CompiledCode;
use crate::fault::{Fault, FaultKind};
use crate::program::{Engine, Program};

/// The processors of a device, as the kernel sees them.
pub(crate) struct Processors {
    /// The board's engines beyond the vm.
    pub(crate) engine: Option<Box<dyn Engine>>,
    /// The board's memory protection.
    pub(crate) wall: Option<Box<dyn Wall>>,
    /// The processor whose compiled code the wall confines, if it does.
    pub(crate) compiled_kind: Option<CodeKind>,
    /// The device's speed, as far as it is known.
    pub(crate) fuel_per_second: u64,
    /// Who is told what they do.
    #[cfg(feature = "profile")]
    pub(crate) profile: crate::profile::Profile,
}

impl Processors {
    pub(crate) fn new(fuel_per_second: u64) -> Self {
        let fuel_per_second = fuel_per_second.max(1);
        Self {
            engine: None,
            wall: None,
            compiled_kind: None,
            fuel_per_second,
            #[cfg(feature = "profile")]
            profile: crate::profile::Profile::default(),
        }
    }

    /// The kind of code that the engine runs, if there is one.
    pub(crate) fn engine_kind(&self) -> Option<CodeKind> {
        self.engine.as_ref().map(|engine| engine.kind())
    }

    /// Lets a program run as far as `fuel` lasts: the code that was compiled from its image, or the image.
    pub(crate) fn run(
        &mut self,
        program: &mut Program,
        image: Option<&Image<'_>>,
        compiled: Option<CompiledCode<'_>>,
        fuel: &mut u64,
    ) -> Result<Outcome, Fault> {
        let fuel_per_ms = u32::try_from(self.fuel_per_second / 1000).unwrap_or(u32::MAX).max(1);
        let wall = self.wall.as_mut().map(|wall| &mut **wall as &mut dyn Wall);
        let outcome = match (wall, compiled) {
            (Some(wall), Some(code)) => {
                let mut wall = Compiled::new(wall, code.code(), code.entry());
                program.run(image, fuel, fuel_per_ms, Some(&mut wall))
            }
            (wall, _) => program.run(image, fuel, fuel_per_ms, wall),
        };
        let by_engine = matches!(program, Program::Engine(_));
        outcome.map_err(|kind: FaultKind| Fault { by_engine, ..Fault::of(kind) })
    }
}
