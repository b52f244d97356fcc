//! The types of a module in the making.

use std::convert::Infallible;

use wasm_encoder::TypeSection;
use wasm_encoder::reencode::{self, Reencode as _};
use wasmparser::FuncType;

use super::program::Program;

/// The types that are there, the program's own first.
pub(super) struct FunctionTypes {
    section: TypeSection,
    /// The same; those that aren't of functions are nothing.
    kinds: Vec<Option<FuncType>>,
}

impl FunctionTypes {
    /// Those of a program.
    ///
    /// # Errors
    /// One of them can't be written anew.
    pub(super) fn of(program: &Program<'_>) -> Result<Self, reencode::Error<Infallible>> {
        let mut section = TypeSection::new();
        if let Some(types) = program.type_section.clone() {
            reencode::RoundtripReencoder.parse_type_section(&mut section, types)?;
        }
        Ok(Self { section, kinds: program.types.clone() })
    }

    /// The index of a type, which is added if it isn't there.
    ///
    /// # Errors
    /// It can't be written.
    pub(super) fn index(&mut self, kind: FuncType) -> Result<u32, reencode::Error<Infallible>> {
        let found = self.kinds.iter().position(|it| it.as_ref() == Some(&kind));
        if let Some(found) = found {
            return Ok(found as u32);
        }
        let encoded = reencode::RoundtripReencoder.func_type(kind.clone())?;
        self.section.ty().func_type(&encoded);
        self.kinds.push(Some(kind));
        Ok(self.kinds.len() as u32 - 1)
    }

    /// The section with all of them.
    pub(super) fn section(&self) -> &TypeSection {
        &self.section
    }
}
