//! `TASK INPUT OUTPUT`, by semihosting: executes the official suite or legs of a journey, or counts
//! instructions.
//!
//! Needs unsafe code to be a bare machine: the entry, the heap, semihosting.
#![no_std]
#![no_main]

extern crate alloc;

#[path = "../../spec/format.rs"]
mod format;
mod fuel;
#[path = "../../emulated/journey.rs"]
mod journey;
#[path = "../../spec/linker.rs"]
mod linker;
mod machine;
#[path = "../../spec/script.rs"]
mod script;

use core::{
    alloc::{GlobalAlloc, Layout},
    cell::UnsafeCell,
    ptr::NonNull,
};

use alloc::{format, vec::Vec};
use linked_list_allocator::Heap;

struct HeapOfOneHart(UnsafeCell<Heap>);

// SAFETY: one hart, no interrupts.
unsafe impl Sync for HeapOfOneHart {}

#[global_allocator]
static HEAP: HeapOfOneHart = HeapOfOneHart(UnsafeCell::new(Heap::empty()));

// SAFETY: the heap's own promise; one hart, no interrupts.
unsafe impl GlobalAlloc for HeapOfOneHart {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        let heap = unsafe { &mut *self.0.get() };
        heap.allocate_first_fit(layout).map_or(core::ptr::null_mut(), NonNull::as_ptr)
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller hands back what it was given.
        unsafe { (*self.0.get()).deallocate(NonNull::new_unchecked(block), layout) };
    }
}

fn run() {
    let (start, length) = machine::heap();
    // SAFETY: the linker leaves this memory to the heap; called once.
    unsafe { (*HEAP.0.get()).init(start, length) };
    let arguments = machine::arguments();
    let words: Vec<&str> = arguments.split_whitespace().collect();
    let &[task, input, output] = words.as_slice() else { panic!("TASK INPUT OUTPUT") };
    let input = machine::read(input);
    match task {
        "suite" => machine::write(output, &suite(&input)),
        "journey" => machine::write(output, &journey::legs(&input)),
        "fuel" => machine::write(output, &fuel::count(&input)),
        _ => panic!("no such task"),
    }
}

/// Files of directives, each with its name; a line for each: the name, how many passed, the lines that
/// did not.
fn suite(mut input: &[u8]) -> Vec<u8> {
    let mut report = Vec::new();
    while !input.is_empty() {
        let name = journey::take(&mut input);
        let directives = journey::take(&mut input);
        let mut failures = Vec::new();
        let passed = script::run(directives, &mut |line, reason| {
            failures.extend(format!(" {line}").bytes());
            machine::print(&format!("{}:{line}: {reason}\n", name.escape_ascii()));
        });
        report.extend_from_slice(name);
        report.extend(format!(" {passed}").bytes());
        report.append(&mut failures);
        report.push(b'\n');
    }
    report
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    machine::print(&format!("{info}\n"));
    machine::exit(false)
}
