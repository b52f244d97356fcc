//! The features that the processor has and the operating system saves (Intel SDM volume 1, §14.3, §15.2).

use core::arch::x86_64::{__cpuid, __cpuid_count, _xgetbv};
use core::sync::atomic::{AtomicU8, Ordering};

/// Instruction sets beyond SSE2.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Level {
    Unknown,
    Sse2,
    Avx2,
    /// AVX-512 F, BW, DQ, VL and IFMA.
    Avx512,
}

/// The features of this computer; detected once.
#[inline]
pub(super) fn level() -> Level {
    static LEVEL: AtomicU8 = AtomicU8::new(Level::Unknown as u8);
    match LEVEL.load(Ordering::Relaxed) {
        level if level == Level::Avx512 as u8 => Level::Avx512,
        level if level == Level::Avx2 as u8 => Level::Avx2,
        level if level == Level::Sse2 as u8 => Level::Sse2,
        _ => {
            let level = ask();
            LEVEL.store(level as u8, Ordering::Relaxed);
            level
        }
    }
}

#[cold]
fn ask() -> Level {
    const OSXSAVE: u32 = 1 << 27;
    const YMM_STATE: u64 = 0b110;
    const ZMM_STATE: u64 = 0b1110_0110;
    const AVX2: u32 = 1 << 5;
    // Bits of leaf 7's EBX: F, DQ, IFMA, BW, VL.
    const AVX512: u32 = 1 << 16 | 1 << 17 | 1 << 21 | 1 << 30 | 1 << 31;
    if __cpuid(0).eax < 7 || __cpuid(1).ecx & OSXSAVE == 0 {
        return Level::Sse2;
    }
    let saved = saved_state();
    let features = __cpuid_count(7, 0).ebx;
    if saved & ZMM_STATE == ZMM_STATE && features & AVX512 == AVX512 && features & AVX2 != 0 {
        Level::Avx512
    } else if saved & YMM_STATE == YMM_STATE && features & AVX2 != 0 {
        Level::Avx2
    } else {
        Level::Sse2
    }
}

/// Register sets that the operating system saves. Only where CPUID says OSXSAVE.
fn saved_state() -> u64 {
    #[target_feature(enable = "xsave")]
    fn read() -> u64 {
        // SAFETY: the function's target feature says that the instruction exists.
        unsafe { _xgetbv(0) }
    }
    // SAFETY: `ask` has checked OSXSAVE.
    unsafe { read() }
}
