//! A heap without room: a module is refused, and neither translation nor check ends the process.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use common::assemble;
use tenure_vm::{
    Image, ImageError, ImageSink, Limits, NoHostFunctions, SinkFull, TranslateError,
    TranslateErrorKind, translate,
};

/// The system's allocator, which counts what this thread takes and gives it as much as [`Heap`] says.
struct Counting;

/// What a thread may still take, and what it took.
#[derive(Clone, Copy)]
struct Heap {
    /// Allocations until the next one that fails.
    until_failure: usize,
    /// Whether those after it fail as well.
    stays_full: bool,
    allocations: usize,
    bytes: isize,
    bytes_max: isize,
    piece_bytes_max: usize,
}

const AMPLE: Heap = Heap {
    until_failure: usize::MAX,
    stays_full: false,
    allocations: 0,
    bytes: 0,
    bytes_max: 0,
    piece_bytes_max: 0,
};

thread_local! {
    static HEAP: Cell<Heap> = const { Cell::new(AMPLE) };
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: memory comes from the system's allocator, and goes back to it; null says that there is none.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let mut heap = HEAP.get();
        let fails = heap.until_failure == 0;
        if !fails || !heap.stays_full {
            heap.until_failure = heap.until_failure.wrapping_sub(1);
        }
        if !fails {
            heap.allocations += 1;
            heap.bytes += layout.size() as isize;
            heap.bytes_max = heap.bytes_max.max(heap.bytes);
            heap.piece_bytes_max = heap.piece_bytes_max.max(layout.size());
        }
        HEAP.set(heap);
        if fails {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller keeps the contract that this is under.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        let heap = HEAP.get();
        HEAP.set(Heap { bytes: heap.bytes - layout.size() as isize, ..heap });
        // SAFETY: as above; it came from there.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// Runs `act` on a heap, and returns what became of that.
fn on<T>(heap: Heap, act: impl FnOnce() -> T) -> (T, Heap) {
    HEAP.set(heap);
    let outcome = act();
    (outcome, HEAP.replace(AMPLE))
}

/// Takes an image without taking memory: its length, and its bytes folded (FNV-1a).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Folded(usize, u64);

impl Folded {
    const NOTHING: Folded = Folded(0, 0xcbf2_9ce4_8422_2325);
}

impl ImageSink for Folded {
    fn write(&mut self, bytes: &[u8]) -> Result<(), SinkFull> {
        for &byte in bytes {
            self.1 = (self.1 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        self.0 += bytes.len();
        Ok(())
    }
}

fn fold(wasm: &[u8]) -> Result<Folded, TranslateError> {
    let mut image = Folded::NOTHING;
    translate(wasm, &NoHostFunctions, &Limits::widest(), &mut image).map(|()| image)
}

fn corpus() -> impl Iterator<Item = Vec<u8>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus");
    let files = std::fs::read_dir(folder).expect("the corpus is in the repository");
    files.map(|file| std::fs::read(file.expect("a file").path()).expect("readable"))
}

/// A module whose one function is so many times longer than what a piece of memory holds, with operands, blocks and
/// branches of all kinds.
fn long_function() -> Vec<u8> {
    let lines = "
        (local.set 1 (i32.add (local.get 0) (i32.const 12345678)))
        (block (block (block (br_table 0 1 2 (local.get 1))) (br 0)))
        (loop (if (i32.lt_u (local.get 0) (local.get 1)) (then (local.set 1 (call $two)) (local.set 0)) (else (br 0))))
        (i64.store (i32.const 8) (i64.mul (i64.load (local.get 0)) (i64.extend_i32_u (local.get 1))))"
        .repeat(800);
    assemble(&format!(
        "(module (memory 1) (table 8 funcref) (elem (i32.const 0) $two $two)
           (global (mut i32) (i32.const 1)) (data (i32.const 64) \"data\")
           (func $two (result i32 i32) (i32.const 1) (i32.const 2))
           (func (export \"long\") (param i32) (result i32) (local i32) {lines} (local.get 1)))"
    ))
}

#[test]
fn module_for_which_the_heap_has_no_room_is_refused_wherever_that_shows() {
    let mut modules: Vec<_> = corpus().filter(|wasm| fold(wasm).is_ok()).collect();
    assert!(modules.len() > 20, "modules that need nothing of a host");
    modules.push(long_function());
    for wasm in modules {
        let (whole, ample) = on(AMPLE, || fold(&wasm));
        let whole = whole.expect("it was translated before");
        for until_failure in 0..ample.allocations {
            for stays_full in [false, true] {
                let (outcome, _) = on(Heap { until_failure, stays_full, ..AMPLE }, || fold(&wasm));
                let error = outcome.expect_err("an allocation failed");
                assert_eq!(error.kind, TranslateErrorKind::OutOfMemory);
            }
        }
        let enough = Heap { until_failure: ample.allocations, stays_full: true, ..AMPLE };
        assert_eq!(on(enough, || fold(&wasm)).0, Ok(whole));
    }
}

#[test]
fn image_for_whose_check_the_heap_has_no_room_is_refused() {
    let mut image = Vec::new();
    translate(&long_function(), &NoHostFunctions, &Limits::default(), &mut image).expect("valid");
    let (checked, ample) = on(AMPLE, || Image::parse(&image).map(drop));
    assert_eq!(checked, Ok(()));
    for until_failure in 0..ample.allocations {
        let full = Heap { until_failure, stays_full: true, ..AMPLE };
        let (checked, _) = on(full, || Image::parse(&image).map(drop));
        assert_eq!(checked, Err(ImageError::OutOfMemory));
    }
}

#[test]
fn long_function_takes_its_codes_memory_once_and_in_small_pieces() {
    let wasm = long_function();
    let (whole, taken) = on(AMPLE, || fold(&wasm));
    let Folded(image_bytes, _) = whole.expect("valid");
    assert!(image_bytes > 50_000, "{image_bytes} bytes are no long function");
    let beyond = taken.bytes_max - image_bytes as isize;
    assert!(beyond < 4_096, "{beyond} bytes beyond the code");
    assert!(taken.piece_bytes_max <= 4_096, "a piece of {} bytes", taken.piece_bytes_max);
}
