//! RISC-V harts on one memory: one calls, the others serve. Runs under QEMU's `virt -smp 8`.
//!
//! The caller writes down a job and raises every other hart's software interrupt; a hart that waits
//! takes the job when it sees a new number, and counts itself done.
#![allow(unsafe_code)]

use core::arch::asm;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::{CORES_MAX, Cluster};

/// The harts 0 to `cores - 1` of a machine. One for the whole program, in a `static`.
pub struct Harts {
    cores: usize,
    /// The first of the software interrupt registers, a word for each hart (CLINT).
    msip: usize,
    job: UnsafeCell<Job>,
    /// Goes up with every job.
    number: AtomicU32,
    done: AtomicU32,
    busy: AtomicBool,
}

/// The function that a hart calls: `run(data, core)`.
#[derive(Clone, Copy)]
struct Job {
    run: unsafe fn(*const (), usize),
    data: *const (),
}

// SAFETY: `job` is written only by the hart that set `busy`, before `number` is released, and is
// read by the others only after they acquired it and before they count themselves done.
unsafe impl Sync for Harts {}

impl Harts {
    /// # Safety
    /// `msip` is the address of the machine's software interrupt registers; harts 1 to `cores - 1`
    /// call [`Self::serve`] of this very value.
    pub const unsafe fn new(cores: usize, msip: usize) -> Self {
        unsafe fn nothing(_: *const (), _: usize) {}
        let cores = match cores {
            0 => 1,
            1..CORES_MAX => cores,
            _ => CORES_MAX,
        };
        Self {
            cores,
            msip,
            job: UnsafeCell::new(Job { run: nothing, data: core::ptr::null() }),
            number: AtomicU32::new(0),
            done: AtomicU32::new(0),
            busy: AtomicBool::new(false),
        }
    }

    /// The loop of every hart but the caller, from its start on.
    pub fn serve(&self, hart: usize) -> ! {
        let mut last = 0;
        // SAFETY: lets software interrupts wake `wfi`; none is taken, as mstatus.MIE is off.
        unsafe { asm!("csrc mstatus, 8", "csrs mie, {}", in(reg) 8) };
        loop {
            let number = self.number.load(Ordering::Acquire);
            if number == last {
                // SAFETY: waits; the interrupt stays pending until it is cleared below.
                unsafe { asm!("wfi") };
                self.interrupt(hart, 0);
                continue;
            }
            last = number;
            // SAFETY: the job was written before `number`, and stays until this hart is done.
            unsafe {
                let Job { run, data } = *self.job.get();
                run(data, hart);
            }
            self.done.fetch_add(1, Ordering::Release);
        }
    }

    fn interrupt(&self, hart: usize, raised: u32) {
        // SAFETY: the register of `hart`, as `new`'s caller promised.
        unsafe { ((self.msip + 4 * hart) as *mut u32).write_volatile(raised) };
    }
}

impl Cluster for Harts {
    fn cores(&self) -> usize {
        self.cores
    }

    /// Called while another fork is under way, it does the work alone.
    fn fork<T: Send>(&self, parts: &mut [T], work: impl Fn(&mut T) + Sync) {
        if self.busy.swap(true, Ordering::Acquire) {
            return parts.iter_mut().for_each(work);
        }
        let task = Task { parts: parts.as_mut_ptr(), len: parts.len(), cores: self.cores, work };
        let run = run_of(&task);
        let data = core::ptr::from_ref(&task).cast();
        self.done.store(0, Ordering::Relaxed);
        // SAFETY: `busy` is ours, and no hart reads a job that it has not been told of.
        unsafe { *self.job.get() = Job { run, data } };
        self.number.fetch_add(1, Ordering::Release);
        (1..self.cores).for_each(|hart| self.interrupt(hart, 1));
        // SAFETY: as on the other harts, with the parts of core 0.
        unsafe { run(data, 0) };
        while self.done.load(Ordering::Acquire) as usize + 1 < self.cores {
            core::hint::spin_loop();
        }
        self.busy.store(false, Ordering::Release);
    }
}

/// A fork, as the harts see it.
struct Task<T, W> {
    parts: *mut T,
    len: usize,
    cores: usize,
    work: W,
}

/// Names the types that the pointer to a task loses.
fn run_of<T: Send, W: Fn(&mut T) + Sync>(_: &Task<T, W>) -> unsafe fn(*const (), usize) {
    run::<T, W>
}

/// Works on every part that is this core's: `core`, `core + cores`, …
///
/// # Safety
/// `task` is the `Task<T, W>` of a fork under way, and no two cores have one number.
unsafe fn run<T: Send, W: Fn(&mut T) + Sync>(task: *const (), core: usize) {
    // SAFETY: the fork keeps its task until every core is done.
    let task = unsafe { &*task.cast::<Task<T, W>>() };
    for part in (core..task.len).step_by(task.cores) {
        // SAFETY: within the parts, and no other core's.
        (task.work)(unsafe { &mut *task.parts.add(part) });
    }
}
