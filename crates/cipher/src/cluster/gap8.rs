//! The cluster of a GAP8 and its DMA engine, through the PMSIS interface of the GAP SDK.
//!
//! PMSIS' functions are `static inline`, so a C file of the program has to give them names:
//! `gap8/tenure_gap8.c`. Run on a model of the core with a stand-in for PMSIS; never on the chip.
#![allow(unsafe_code)]

use core::ffi::c_void;

use super::{Cluster, Dma, Transfer};

unsafe extern "C" {
    /// `pi_cl_team_fork`: calls `entry(argument)` on this many cores; returns when all are back.
    fn tenure_gap8_fork(cores: u32, entry: extern "C" fn(*mut c_void), argument: *mut c_void);
    /// `pi_core_id`.
    fn tenure_gap8_core() -> u32;
    /// `pi_cl_dma_memcpy` of at most [`LEN_MAX`] bytes, with direction EXT2LOC if `inward` is not 0; the number to wait for.
    fn tenure_gap8_copy(to: *mut u8, from: *const u8, len: u32, inward: u32) -> u32;
    /// `pi_cl_dma_wait`.
    fn tenure_gap8_wait(number: u32);
}

/// PMSIS counts the bytes of a transfer in 16 bits.
const LEN_MAX: usize = u16::MAX as usize;

/// Where the cluster's own memory, L1, starts (GAP8 memory map).
const L1: core::ops::Range<usize> = 0x1000_0000..0x1001_0000;

/// The eight cores, called from the cluster's core 0.
#[derive(Clone, Copy, Debug)]
pub struct Gap8(());

impl Gap8 {
    /// # Safety
    /// The caller runs on the cluster of a GAP8, on its core 0, and makes no second value.
    pub const unsafe fn new() -> Self {
        Self(())
    }
}

impl Cluster for Gap8 {
    fn cores(&self) -> usize {
        8
    }

    fn fork<T: Send>(&self, parts: &mut [T], work: impl Fn(&mut T) + Sync) {
        let mut task = Task { parts: parts.as_mut_ptr(), len: parts.len(), cores: 8, work };
        let entry = entry_of(&task);
        // SAFETY: the task lives until the fork returns, which is when every core is done.
        unsafe { tenure_gap8_fork(8, entry, core::ptr::from_mut(&mut task).cast()) }
    }
}

/// A fork, as the cores see it.
struct Task<T, W> {
    parts: *mut T,
    len: usize,
    cores: usize,
    work: W,
}

/// Names the types that the pointer to a task loses.
fn entry_of<T: Send, W: Fn(&mut T) + Sync>(_: &Task<T, W>) -> extern "C" fn(*mut c_void) {
    entry::<T, W>
}

extern "C" fn entry<T: Send, W: Fn(&mut T) + Sync>(task: *mut c_void) {
    // SAFETY: `fork` passes its task, and waits for every core.
    let (task, core) = unsafe { (&*task.cast::<Task<T, W>>(), tenure_gap8_core() as usize) };
    for part in (core..task.len).step_by(task.cores) {
        // SAFETY: within the parts, and no other core's: the numbers of cores differ.
        (task.work)(unsafe { &mut *task.parts.add(part) });
    }
}

impl Dma for Gap8 {
    fn overlap(&mut self, transfers: [Option<Transfer<'_>>; 2], work: impl FnOnce()) {
        let numbers = transfers.map(|transfer| {
            let transfer = transfer?;
            let (from, to, len) = transfer.raw();
            let inward = match (L1.contains(&from.addr()), L1.contains(&to.addr())) {
                (false, true) if len <= LEN_MAX => 1,
                (true, false) if len <= LEN_MAX => 0,
                // The engine moves between near and far memory, and so much at a time.
                _ => {
                    transfer.by_core();
                    return None;
                }
            };
            let (from, to, len) = transfer.into_raw();
            // SAFETY: both buffers are borrowed until this function returns, after the waits.
            Some(unsafe { tenure_gap8_copy(to, from, len as u32, inward) })
        });
        work();
        for number in numbers.into_iter().flatten() {
            // SAFETY: waits for a copy started above.
            unsafe { tenure_gap8_wait(number) }
        }
    }
}
