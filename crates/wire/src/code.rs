//! The kinds of code that machines are made of.

use core::fmt;

use serde::{Deserialize, Serialize};

/// A kind of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CodeKind {
    /// A WebAssembly module.
    #[serde(rename = "wasm")]
    WebAssembly,
    /// A binary for RISC-V processors with the instructions RV32IMC.
    Rv32,
    /// A binary for Cortex-M processors, in the instructions that all of them have (ARMv6-M).
    Thumb,
}

impl CodeKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::WebAssembly, Self::Rv32, Self::Thumb];

    /// Its name, as in `tenure.toml`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::WebAssembly => "wasm",
            Self::Rv32 => "rv32",
            Self::Thumb => "thumb",
        }
    }
}

impl fmt::Display for CodeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
