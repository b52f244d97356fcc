//! x86-64: SSE2 on every machine, AVX2 and AVX-512 where the processor has them.
#![allow(unsafe_code)]

mod avx2;
mod avx512;
mod detect;
mod poly44;
mod sse2;

pub use avx2::Avx2;
pub use avx512::Avx512;
pub use sse2::Sse2;

use super::Backend;

/// The fastest backend of this machine.
#[inline]
pub(super) fn native() -> &'static dyn Backend {
    if let Some(avx512) = Avx512::detect() {
        avx512
    } else if let Some(avx2) = Avx2::detect() {
        avx2
    } else {
        &Sse2
    }
}

/// Every backend that this machine can run.
pub(super) fn available() -> [Option<&'static dyn Backend>; 3] {
    [
        Some(&Sse2),
        Avx2::detect().map(|backend| backend as &dyn Backend),
        Avx512::detect().map(|backend| backend as &dyn Backend),
    ]
}
