//! The interpreter's registers, and what instructions do to them.

use core::mem::MaybeUninit;

use crate::{
    image::{FUNCTION_BYTES, FunctionEntry, Image},
    isa,
};

/// Cores that trap, or are slow, when a word is read from an address that is not its multiple.
pub(crate) const STRICT_ALIGNMENT: bool = cfg!(any(
    strict_alignment,
    target_arch = "riscv32",
    target_arch = "riscv64",
    all(target_arch = "arm", not(target_feature = "v7"))
));

/// False only where a benchmark asks what metering costs: `RUSTFLAGS="--cfg unmetered"`.
pub(crate) const METERED: bool = cfg!(not(unmetered));

/// A deliberate mistake, for tests of what contains it: addresses from 1 MiB on aren't checked in builds
/// with `--cfg unchecked_memory`.
#[inline(always)]
fn is_unchecked(address: u32) -> bool {
    cfg!(unchecked_memory) && address >= 1 << 20
}

/// How an instruction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Flow {
    /// On with the instruction at `pc`.
    Next,
    /// Fuel must be looked at; `pc` is at the next instruction.
    Check,
    /// The outermost frame has returned.
    Done,
    /// An instruction that is executed outside of the interpreter; `pc` is at it. Traps, too, leave `pc`
    /// at the instruction that caused them.
    Outer,
    Unreachable,
    /// A memory access beyond the committed bytes.
    Access,
    DivideByZero,
    IntegerOverflow,
    #[cfg_attr(not(feature = "float"), allow(dead_code))]
    InvalidConversion,
    StackOverflow,
    TableOutOfBounds,
    UninitializedElement,
    SignatureMismatch,
}

impl Flow {
    /// The end that a number stands for.
    pub(super) fn from_number(number: usize) -> Option<Flow> {
        use Flow::*;
        const ALL: [Flow; 13] = [
            Next,
            Check,
            Done,
            Outer,
            Unreachable,
            Access,
            DivideByZero,
            IntegerOverflow,
            InvalidConversion,
            StackOverflow,
            TableOutOfBounds,
            UninitializedElement,
            SignatureMismatch,
        ];
        ALL.get(number).copied()
    }
}

/// State that does not fit registers, for the time of one `execute`.
pub(crate) struct Context {
    #[cfg(target_pointer_width = "64")]
    pub(super) memory_bytes: usize,
    /// First byte of the image.
    pub(super) image: *const u8,
    /// First of the image's function entries.
    pub(super) functions: *const u8,
    pub(super) function_count: u32,
    pub(super) globals: *mut u8,
    pub(super) stack_end: *const u8,
    pub(super) table: *const u32,
    pub(super) table_count: u32,
    /// Where execution left off.
    pub(super) position: MaybeUninit<Position>,
}

/// Registers that outlive an `execute`.
#[derive(Clone, Copy)]
pub(super) struct Position {
    pub(super) pc: *const u8,
    pub(super) frame: *mut u8,
    pub(super) accumulator: u32,
    pub(super) limit: usize,
}

/// The registers.
pub(super) struct State {
    pub(super) pc: *const u8,
    pub(super) frame: *mut u8,
    pub(super) memory: *mut u8,
    #[cfg(target_pointer_width = "32")]
    pub(super) memory_bytes: usize,
    pub(super) accumulator: u32,
    /// `pc` beyond which fuel must be looked at.
    pub(super) limit: usize,
    pub(super) context: *mut Context,
    #[cfg(all(tail_dispatch, target_pointer_width = "32"))]
    pub(super) handlers: *const (),
}

/// Fuel for entering a function, beside the call's length: its locals are cleared.
pub(crate) const fn entry_units(zeros: usize) -> usize {
    2 + zeros / 2
}

/// Offsets in a function entry of the image.
const ENTRY_FRAME: usize = 4;
const ENTRY_LINK: usize = 6;
const ENTRY_ZEROS: usize = 8;
const ENTRY_TYPE: usize = 10;
const ENTRY_PARAMS: usize = 12;
const ENTRY_RESULTS: usize = 14;
const ENTRY_SHIFT: usize = 4;
const _: () = assert!(FUNCTION_BYTES == 1 << ENTRY_SHIFT);

/// Whether alignment matters, and a word may be read at `at` at once. Elsewhere cores with strict alignment take it byte by byte,
/// in place: leaving the interpreter for it would take as long as thirty instructions.
#[inline(always)]
fn is_word_aligned(at: *const u8) -> bool {
    STRICT_ALIGNMENT && at.addr().is_multiple_of(4)
}

/// Reads a 16-bit number of the image.
///
/// # Safety
/// `at` must be readable, and even where alignment is strict.
#[inline(always)]
unsafe fn half(at: *const u8) -> u16 {
    // SAFETY: the caller's promise.
    unsafe {
        if STRICT_ALIGNMENT { at.cast::<u16>().read() } else { at.cast::<u16>().read_unaligned() }
    }
}

/// Reads a 32-bit number of the image's tables.
///
/// # Safety
/// `at` must be readable, and a multiple of four where alignment is strict.
#[inline(always)]
unsafe fn word(at: *const u8) -> u32 {
    // SAFETY: the caller's promise.
    unsafe {
        if STRICT_ALIGNMENT { at.cast::<u32>().read() } else { at.cast::<u32>().read_unaligned() }
    }
}

/// Reads the entry of a function.
pub(crate) fn function_entry(image: &Image<'_>, function: u32) -> Option<FunctionEntry> {
    let table = image.token.functions;
    if function >= table.count {
        return None;
    }
    // SAFETY: `Image` holds the whole table in its bytes, aligned where it must be.
    unsafe {
        let start = image.bytes().as_ptr().add(table.at as usize);
        let entry = start.add((function as usize) << ENTRY_SHIFT);
        Some(FunctionEntry {
            code: word(entry),
            frame_bytes: half(entry.add(ENTRY_FRAME)),
            link: half(entry.add(ENTRY_LINK)),
            zeros: half(entry.add(ENTRY_ZEROS)),
            canonical: half(entry.add(ENTRY_TYPE)),
            params: half(entry.add(ENTRY_PARAMS)),
            results: half(entry.add(ENTRY_RESULTS)),
        })
    }
}

// Every method relies on the invariants in the head of `interpreter`: `n` is the place of a unit in the
// instruction at `pc`, and operands name slots of the frame.
impl State {
    #[inline(always)]
    pub(super) unsafe fn unit(&self, n: usize) -> usize {
        // SAFETY: the instruction at `pc` is whole.
        unsafe { half(self.pc.add(2 * n)) as usize }
    }

    #[inline(always)]
    pub(super) unsafe fn immediate(&self, n: usize) -> i16 {
        // SAFETY: as above.
        unsafe { self.unit(n) as i16 }
    }

    #[inline(always)]
    pub(super) unsafe fn wide(&self, n: usize) -> i32 {
        // SAFETY: as above.
        unsafe { (self.unit(n) | self.unit(n + 1) << 16) as i32 }
    }

    #[inline(always)]
    pub(super) unsafe fn read32(&self, n: usize) -> u32 {
        // SAFETY: the operand is the offset of a slot in the frame, a multiple of 8.
        unsafe { self.frame.add(self.unit(n)).cast::<u32>().read() }
    }

    #[inline(always)]
    pub(super) unsafe fn read64(&self, n: usize) -> u64 {
        // SAFETY: as above.
        unsafe { self.frame.add(self.unit(n)).cast::<u64>().read() }
    }

    #[inline(always)]
    pub(super) unsafe fn write32(&mut self, n: usize, value: u32) {
        // SAFETY: as above.
        unsafe { self.frame.add(self.unit(n)).cast::<u32>().write(value) }
    }

    #[inline(always)]
    pub(super) unsafe fn write64(&mut self, n: usize, value: u64) {
        // SAFETY: as above.
        unsafe { self.frame.add(self.unit(n)).cast::<u64>().write(value) }
    }

    /// The first slot of the frame is where a result is expected.
    #[inline(always)]
    pub(super) unsafe fn result32(&mut self, value: u32) {
        // SAFETY: a frame has at least one slot.
        unsafe { self.frame.cast::<u32>().write(value) }
    }

    #[inline(always)]
    pub(super) unsafe fn result64(&mut self, value: u64) {
        // SAFETY: as above.
        unsafe { self.frame.cast::<u64>().write(value) }
    }

    #[inline(always)]
    pub(super) unsafe fn global32(&self, n: usize) -> *mut u32 {
        // SAFETY: the operand is the offset of a global.
        unsafe { (*self.context).globals.add(self.unit(n)).cast() }
    }

    #[inline(always)]
    pub(super) unsafe fn global64(&self, n: usize) -> *mut u64 {
        // SAFETY: as above.
        unsafe { (*self.context).globals.add(self.unit(n)).cast() }
    }

    #[inline(always)]
    pub(super) unsafe fn advance(&mut self, units: usize) -> Flow {
        // SAFETY: control cannot leave a function at its end, so another instruction follows.
        self.pc = unsafe { self.pc.add(2 * units) };
        Flow::Next
    }

    /// Writes the accumulator to the slot that the last of the instruction's `units` names.
    #[inline(always)]
    pub(super) unsafe fn store_accumulator(&mut self, units: usize) -> Flow {
        // SAFETY: as above.
        unsafe {
            self.write32(units - 1, self.accumulator);
            self.advance(units)
        }
    }

    /// Goes where the displacement in unit `n`, the last, points.
    #[inline(always)]
    pub(super) unsafe fn jump(&mut self, n: usize) -> Flow {
        // SAFETY: branches lead to instructions of the same function.
        unsafe {
            let displacement = self.immediate(n) as isize;
            self.pc = self.pc.add(2 * n + 2).offset(displacement);
            if METERED {
                self.limit = self.limit.wrapping_add_signed(displacement);
            }
        }
        self.look()
    }

    /// Goes to `to`, after an instruction that ends at `end`.
    #[inline(always)]
    fn go(&mut self, end: *const u8, to: *const u8) -> Flow {
        if METERED {
            self.limit = self.limit.wrapping_add(to.addr().wrapping_sub(end.addr()));
        }
        self.pc = to;
        self.look()
    }

    /// Takes fuel beside what an instruction's length is.
    #[inline(always)]
    fn burn(&mut self, units: usize) {
        if METERED {
            self.limit = self.limit.wrapping_sub(2 * units);
        }
    }

    /// The end of an instruction with a surcharge: what went before was its work.
    #[inline(always)]
    pub(super) fn surcharge(&mut self, units: usize) -> Flow {
        self.burn(units);
        self.look()
    }

    #[inline(always)]
    fn look(&self) -> Flow {
        if METERED && self.pc.addr() > self.limit { Flow::Check } else { Flow::Next }
    }

    #[inline(always)]
    pub(super) unsafe fn jump_far(&mut self, n: usize) -> Flow {
        // SAFETY: as above.
        unsafe {
            let end = self.pc.add(2 * n + 4);
            let displacement = self.wide(n) as isize;
            self.go(end, end.offset(displacement))
        }
    }

    /// Unit `n` counts the displacements that follow; the last is for every index beyond.
    #[inline(always)]
    pub(super) unsafe fn jump_table(&mut self, index: u32, n: usize) -> Flow {
        // SAFETY: there is at least one displacement; each leads to an instruction.
        unsafe {
            let count = self.unit(n);
            let table = self.pc.add(2 * n + 2);
            let field = table.add(2 * (index as usize).min(count - 1));
            let displacement = half(field) as i16 as isize;
            self.go(table, field.add(2).offset(displacement))
        }
    }

    #[inline(always)]
    pub(super) unsafe fn jump_table_far(&mut self, index: u32, n: usize) -> Flow {
        // SAFETY: as for `jump_table`.
        unsafe {
            let count = self.unit(n);
            let table = self.pc.add(2 * n + 2);
            let field = table.add(4 * (index as usize).min(count - 1));
            let displacement = (half(field) as u32 | (half(field.add(2)) as u32) << 16) as i32;
            self.go(table, field.add(4).offset(displacement as isize))
        }
    }

    #[inline(always)]
    pub(super) unsafe fn pass_check(&mut self, units: usize) -> Flow {
        // SAFETY: as for `advance`.
        unsafe { self.advance(units) };
        self.look()
    }

    #[inline(always)]
    pub(super) unsafe fn call(&mut self, function: usize, units: usize) -> Flow {
        // SAFETY: the index is one of a function, or was compared with their number.
        unsafe {
            let entry = (*self.context).functions.add(function << ENTRY_SHIFT);
            self.enter(entry, units)
        }
    }

    #[inline(always)]
    pub(super) unsafe fn call_indirect(
        &mut self,
        canonical: usize,
        index: u32,
        units: usize,
    ) -> Flow {
        // SAFETY: the index is compared before it is used.
        unsafe {
            let context = &*self.context;
            if index >= context.table_count {
                return Flow::TableOutOfBounds;
            }
            // References are numbers plus one; null is zero and fails this comparison too.
            let function = context.table.add(index as usize).read().wrapping_sub(1);
            if function >= context.function_count {
                return Flow::UninitializedElement;
            }
            let entry = context.functions.add((function as usize) << ENTRY_SHIFT);
            if half(entry.add(ENTRY_TYPE)) as usize != canonical {
                return Flow::SignatureMismatch;
            }
            self.enter(entry, units)
        }
    }

    /// Enters a function; the frame's distance is the last of the call's `units`.
    #[inline(always)]
    unsafe fn enter(&mut self, entry: *const u8, units: usize) -> Flow {
        // SAFETY: the new frame is used only after it was compared with the stack's end. Frames are at
        // most 64 KiB, so that the sums stay in, or next to, the address space of the stack: see `Entry`.
        unsafe {
            let context = &*self.context;
            let frame = self.frame.wrapping_add(self.unit(units - 1));
            let frame_bytes = half(entry.add(ENTRY_FRAME)) as usize;
            if frame.addr() + frame_bytes > context.stack_end.addr() {
                return Flow::StackOverflow;
            }
            let end = self.pc.add(2 * units);
            let mut slot = frame.add(half(entry.add(ENTRY_LINK)) as usize).cast::<u64>();
            slot.cast::<u32>().write(end.addr().wrapping_sub(context.image.addr()) as u32);
            // Volatile, or the compiler makes a call of it, for which registers must be saved.
            let zeros = half(entry.add(ENTRY_ZEROS)) as usize;
            if zeros & 1 != 0 {
                slot = slot.add(1);
                slot.write_volatile(0);
            }
            let last = slot.add(zeros & !1);
            while slot != last {
                slot.add(1).write_volatile(0);
                slot = slot.add(2);
                slot.write_volatile(0);
            }
            self.frame = frame;
            self.burn(entry_units(zeros));
            self.go(end, context.image.add(word(entry) as usize))
        }
    }

    /// Returns through the link in the slot that unit `n` names; the instruction has `units`.
    #[inline(always)]
    pub(super) unsafe fn return_to(&mut self, n: usize, units: usize) -> Flow {
        // SAFETY: a link is zero in the outermost frame, elsewhere the end of a call whose last unit is
        // the distance to the caller's frame.
        unsafe {
            let link = self.read32(n);
            if link == 0 {
                return Flow::Done;
            }
            let end = self.pc.add(2 * units);
            let to = (*self.context).image.add(link as usize);
            self.frame = self.frame.sub(half(to.sub(2)) as usize);
            self.go(end, to)
        }
    }

    /// The address of `bytes` bytes of memory whose last lies `reach` after `address`, if they exist.
    #[inline(always)]
    pub(super) unsafe fn locate(
        &self,
        address: u32,
        reach: usize,
        bytes: usize,
    ) -> Result<*mut u8, Flow> {
        #[cfg(target_pointer_width = "64")]
        let last = {
            let last = address as usize + reach;
            // SAFETY: the context outlives the state.
            if last >= unsafe { (*self.context).memory_bytes } && !is_unchecked(address) {
                return Err(Flow::Access);
            }
            last
        };
        #[cfg(target_pointer_width = "32")]
        let last = {
            let last = (address as usize).wrapping_add(reach);
            let is_outside = last < address as usize || last >= self.memory_bytes;
            if is_outside && !is_unchecked(address) {
                return Err(Flow::Access);
            }
            last
        };
        // SAFETY: `last` is below the length of memory, and `bytes - 1` is at most `reach`.
        Ok(unsafe { self.memory.add(last).sub(bytes - 1) })
    }

    #[inline(always)]
    pub(super) unsafe fn load8(&self, at: *mut u8) -> u8 {
        // SAFETY: `locate` gave the address.
        unsafe { at.read() }
    }

    #[inline(always)]
    pub(super) unsafe fn load16(&self, at: *mut u8) -> u16 {
        // SAFETY: as above. Where alignment is strict, two bytes take as long as looking at the address.
        unsafe { at.cast::<u16>().read_unaligned() }
    }

    #[inline(always)]
    pub(super) unsafe fn load32(&self, at: *mut u8) -> u32 {
        // SAFETY: as above.
        unsafe {
            if is_word_aligned(at) {
                at.cast::<u32>().read()
            } else {
                at.cast::<u32>().read_unaligned()
            }
        }
    }

    #[inline(always)]
    pub(super) unsafe fn load64(&self, at: *mut u8) -> u64 {
        // SAFETY: as above.
        unsafe {
            if is_word_aligned(at) {
                word(at) as u64 | (word(at.add(4)) as u64) << 32
            } else {
                at.cast::<u64>().read_unaligned()
            }
        }
    }

    #[inline(always)]
    pub(super) unsafe fn store8(&mut self, at: *mut u8, value: u8) {
        // SAFETY: as above.
        unsafe { at.write(value) }
    }

    #[inline(always)]
    pub(super) unsafe fn store16(&mut self, at: *mut u8, value: u16) {
        // SAFETY: as for `load16`.
        unsafe { at.cast::<u16>().write_unaligned(value) }
    }

    #[inline(always)]
    pub(super) unsafe fn store32(&mut self, at: *mut u8, value: u32) {
        // SAFETY: as above.
        unsafe {
            if is_word_aligned(at) {
                at.cast::<u32>().write(value)
            } else {
                at.cast::<u32>().write_unaligned(value)
            }
        }
    }

    #[inline(always)]
    pub(super) unsafe fn store64(&mut self, at: *mut u8, value: u64) {
        // SAFETY: as above.
        unsafe {
            if is_word_aligned(at) {
                at.cast::<u32>().write(value as u32);
                at.add(4).cast::<u32>().write((value >> 32) as u32);
            } else {
                at.cast::<u64>().write_unaligned(value)
            }
        }
    }

    /// Opcode unit of the instruction at `pc`.
    #[inline(always)]
    pub(super) unsafe fn opcode_unit(&self) -> usize {
        // SAFETY: an instruction begins at `pc`.
        unsafe { self.unit(0) }
    }

    #[cfg(any(compact, not(tail_dispatch)))]
    #[inline(always)]
    pub(super) unsafe fn opcode(&self) -> u16 {
        // SAFETY: as above.
        (unsafe { self.opcode_unit() }) as u16 / isa::OPCODE_SCALE
    }
}

#[cfg(tail_dispatch)]
const _: () = assert!(isa::OPCODE_SCALE == 4);
