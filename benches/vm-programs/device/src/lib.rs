//! Runs a program twice, the first time to commit memory and to be compiled, and reports the second: `ran RESULT INSTRUCTIONS
//! FUEL`, with what both runs came to.
#![no_std]

extern crate alloc;

#[path = "../../../vm/device/src/heap.rs"]
mod heap;
#[path = "../../../vm/device/src/machine.rs"]
mod machine;
mod math;
#[cfg(not(feature = "vm"))]
#[path = "linked.rs"]
mod subject;
#[cfg(feature = "vm")]
#[path = "interpreted.rs"]
mod subject;

use subject::{Failed, Subject};
use tenure_bench_report::line;

#[global_allocator]
static HEAP: heap::Heap = heap::Heap::new();

unsafe extern "C" {
    static program_start: u8;
    static program_end: u8;
}

fn run() {
    if let Err(Failed(code)) = measure() {
        line(machine::write, &["failed"], &[code]);
        finish(false);
    }
}

fn measure() -> Result<(), Failed> {
    let mut subject = Subject::new(module())?;
    let first = subject.run()?;
    let mut second = Err(Failed(0));
    let instructions = machine::instructions(|| second = subject.run());
    let second = second?;
    line(machine::write, &["ran"], &[first, second, instructions, subject.fuel()]);
    Ok(())
}

/// The program as a module; nothing, if the program itself is linked.
fn module() -> &'static [u8] {
    let (start, end) = (&raw const program_start, &raw const program_end);
    // SAFETY: the linker's script puts the module between them.
    unsafe { core::slice::from_raw_parts(start, end.addr() - start.addr()) }
}

/// Ends the run.
fn finish(good: bool) -> ! {
    machine::exit(good)
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    line(machine::write, &["panicked"], &[]);
    finish(false)
}
