//! Where blocks are worked on: an implementation of [`Operations`] and [`Backend`] per instruction set.

use crate::chacha::State;
use crate::construction::{self, AeadError, Tag};
pub use crate::operations::Operations;

mod aligned;
#[cfg(tenure_thumb)]
pub mod arm;
#[cfg(any(target_arch = "riscv32", target_arch = "riscv64", tenure_thumb))]
mod hoist;
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
pub mod neon;
pub mod portable;
#[cfg(any(target_arch = "riscv32", target_arch = "riscv64"))]
pub mod riscv;
pub(crate) mod wipe;
#[cfg(target_arch = "x86_64")]
pub mod x86;

/// The whole construction on an instruction set. Those that work on many blocks at once have ways of their own.
pub trait Backend: Operations {
    /// Encrypts `data` and authenticates `header` and `data` (RFC 8439 §2.8.1), from the state of
    /// block 0 with counter 0. `data` is at most 2^38 - 64 bytes.
    fn seal(&self, state: &State, header: &[u8], data: &mut [u8]) -> Tag {
        construction::seal(self, state, header, data)
    }

    /// Checks `tag` and decrypts; if the tag is wrong, `data` is as it was.
    fn open(
        &self,
        state: &State,
        header: &[u8],
        data: &mut [u8],
        tag: &Tag,
    ) -> Result<(), AeadError> {
        construction::open(self, state, header, data, tag)
    }
}

/// The fastest backend for the core this runs on; the portable one in builds with
/// `--cfg tenure_portable`.
#[inline]
#[allow(unreachable_code, reason = "at most one of these stays, but for the override")]
pub fn native() -> &'static dyn Backend {
    #[cfg(tenure_portable)]
    return &portable::Portable;
    #[cfg(all(target_arch = "riscv32", tenure_xpulp))]
    return const { &riscv::xpulp::Xpulp::by_build() };
    #[cfg(all(
        any(target_arch = "riscv32", target_arch = "riscv64"),
        any(target_feature = "zbb", target_feature = "zbkb"),
        not(tenure_xpulp)
    ))]
    return const { &riscv::Rotate::by_target_feature() };
    #[cfg(all(
        any(target_arch = "riscv32", target_arch = "riscv64"),
        target_feature = "m",
        not(any(target_feature = "zbb", target_feature = "zbkb", tenure_xpulp))
    ))]
    return &riscv::Scalar;
    #[cfg(target_arch = "x86_64")]
    return x86::native();
    #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
    return &neon::Neon;
    #[cfg(tenure_thumb = "v7m")]
    return &arm::V7m;
    #[cfg(tenure_thumb = "v6m")]
    return &arm::V6m;
    &portable::Portable
}

/// Every backend that this machine can run, the portable one first; for tests and tables.
///
/// On cores that cannot be asked these are the ones that the compiler was told of.
pub fn available() -> impl Iterator<Item = &'static dyn Backend> {
    let portable: &'static dyn Backend = &portable::Portable;
    #[cfg(target_arch = "x86_64")]
    let others = x86::available().into_iter().flatten();
    #[cfg(not(target_arch = "x86_64"))]
    let others = core::iter::once(native());
    core::iter::once(portable).chain(others)
}
