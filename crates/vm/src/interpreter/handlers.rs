//! Dispatch: one function for each instruction that ends in a call of the next, or one `match`.
//!
//! The instructions themselves are generated from `build/isa.rs` and the same either way. Tail calls
//! are the faster: each instruction has its own indirect jump, and the registers of `State` stay in the
//! processor's. Without `become` they rely on the optimiser, which `build/main.rs` asks for; the test
//! `deep_run_keeps_the_native_stack_flat` would overflow without.

use core::mem::MaybeUninit;

#[cfg(feature = "float")]
use super::float;
use super::state::{Context, Flow, Position, State};
#[cfg(compact)]
use super::wide;
use crate::image::Image;
use crate::isa;
use crate::memory::LINE_BYTES;
use crate::wall::{Breach, Wall};

/// The facts of an instance that `execute` needs.
pub(crate) struct Entry<'e> {
    pub(crate) image: &'e Image<'e>,
    pub(crate) globals: &'e mut [u64],
    pub(crate) stack: &'e mut [u64],
    pub(crate) memory: &'e mut [u8],
    /// The first table.
    pub(crate) table: &'e [u32],
    /// Offset of the next instruction in the image, of its frame in the stack, in bytes.
    pub(crate) pc: u32,
    pub(crate) frame: u32,
    pub(crate) accumulator: u32,
}

/// Where execution left off.
pub(crate) struct Exit {
    pub(crate) flow: Flow,
    pub(crate) pc: u32,
    /// Counted from the first of the globals, which the stack follows.
    pub(crate) frame: u32,
    pub(crate) accumulator: u32,
    /// Bytes of code that were executed.
    pub(crate) used: u32,
}

/// Runs one instruction.
///
/// With a budget of nothing, an instruction that looks at the fuel stops behind itself. Any other is
/// executed from a copy with such an instruction behind it; it reads nothing of the code but itself.
#[cold]
#[inline(never)]
pub(crate) fn execute_one(entry: Entry<'_>, wall: Option<&mut dyn Wall>) -> Result<Exit, Breach> {
    let image = entry.image;
    let code = image.bytes().as_ptr();
    let start = entry.pc;
    let Some((opcode, length)) = isa::instruction_at(image.bytes(), start as usize) else {
        let Entry { pc, frame, accumulator, .. } = entry;
        let frame = frame + size_of_val(entry.globals) as u32;
        return Ok(Exit { flow: Flow::Unreachable, pc, frame, accumulator, used: 0 });
    };
    if isa::looks_at_fuel(opcode) {
        return Run { entry, pc: code.wrapping_add(start as usize), budget: 0 }.end(wall, &[]);
    }
    let units = length / 2;
    let mut copy = Copied([isa::CHECK * isa::OPCODE_SCALE; COPY_LINES_UNITS]);
    for (index, unit) in copy.0.iter_mut().enumerate().take(units) {
        *unit = isa::unit_at(image.bytes(), start as usize + 2 * index).unwrap_or(0);
    }
    let branch = isa::is_branch_on_condition(opcode);
    let mut displacement = 0;
    if branch && let Some(last) = copy.0.get_mut(units - 1) {
        // Taken, it leaves two instructions behind itself; not taken, one.
        displacement = core::mem::replace(last, COPY_BRANCH) as i16;
    }
    let apart = halves_as_bytes(&copy.0);
    let at = apart.as_ptr();
    let mut exit = Run { entry, pc: at, budget: 0 }.end(wall, apart)?;
    // `exit` counts from the image's first byte.
    let ran = exit.pc.wrapping_sub(at.addr().wrapping_sub(code.addr()) as u32);
    exit.pc = start;
    exit.used = 0;
    if ran != 0 {
        let taken = ran as usize == length + COPY_BRANCH as usize;
        let displacement = if taken { displacement as u32 } else { 0 };
        exit.used = length as u32 + isa::surcharge_bytes(opcode);
        exit.pc = (start + length as u32).wrapping_add(displacement);
    }
    Ok(exit)
}

fn halves_as_bytes(halves: &[u16]) -> &[u8] {
    // SAFETY: any half-word is two bytes.
    unsafe { core::slice::from_raw_parts(halves.as_ptr().cast(), size_of_val(halves)) }
}

/// Displacement of a branch in a copy, in bytes.
const COPY_BRANCH: u16 = 4;
/// The longest instruction that does not look at the fuel, and what a branch may reach behind it.
const COPY_UNITS: usize = isa::UNITS_MAX + COPY_BRANCH as usize / 2 + 1;
/// The size of a copy's own memory, in the steps of memory protection.
const COPY_LINES_UNITS: usize = COPY_UNITS.next_multiple_of(LINE_BYTES / 2);

/// A copy of an instruction, and room that is nobody's.
#[cfg_attr(target_arch = "arm", repr(align(32)))]
struct Copied([u16; COPY_LINES_UNITS]);

/// One stay in the interpreter. The context is kept apart: its address goes to the handlers, and what
/// lies beside it would have to lie in memory too.
pub(crate) struct Run<'e> {
    pub(super) entry: Entry<'e>,
    pub(super) pc: *const u8,
    pub(super) budget: usize,
}

impl<'e> Run<'e> {
    /// A run until something other than the next instruction is due; `budget` is the number of bytes of
    /// code after which to stop at the next look, at most the image's `room`.
    #[inline(always)]
    pub(crate) fn with_budget(entry: Entry<'e>, budget: u32) -> Run<'e> {
        let pc = entry.image.bytes().as_ptr().wrapping_add(entry.pc as usize);
        Run { entry, pc, budget: budget as usize }
    }

    #[inline(always)]
    pub(crate) fn context(&mut self) -> Context {
        let image = self.entry.image.bytes().as_ptr();
        let functions = self.entry.image.token.functions;
        Context {
            #[cfg(target_pointer_width = "64")]
            memory_bytes: self.entry.memory.len(),
            image,
            functions: image.wrapping_add(functions.at as usize),
            function_count: functions.count,
            globals: self.entry.globals.as_mut_ptr().cast(),
            stack_end: self.entry.stack.as_mut_ptr_range().end.cast(),
            table: self.entry.table.as_ptr(),
            table_count: self.entry.table.len() as u32,
            position: MaybeUninit::uninit(),
        }
    }

    /// Runs with a context that `self` gave.
    #[inline(always)]
    pub(crate) fn start(&mut self, context: &mut Context) -> Flow {
        let state = State {
            pc: self.pc,
            frame: self.stack_start().wrapping_add(self.entry.frame as usize),
            memory: self.entry.memory.as_mut_ptr(),
            #[cfg(target_pointer_width = "32")]
            memory_bytes: self.entry.memory.len(),
            accumulator: self.entry.accumulator,
            limit: self.pc.addr().wrapping_add(self.budget),
            context,
            #[cfg(all(tail_dispatch, target_pointer_width = "32"))]
            handlers: HANDLERS.as_ptr().cast(),
        };
        // SAFETY: `Instance` keeps `pc` at an instruction of a verified image, or of a copy of one, and
        // `frame` in the stack.
        unsafe { start(state) }
    }

    /// Runs to the end, behind `wall` if there is one. `apart` is the code if it isn't the image's.
    pub(crate) fn end(mut self, wall: Option<&mut dyn Wall>, apart: &[u8]) -> Result<Exit, Breach> {
        if let Some(wall) = wall {
            return self.confine(wall, apart);
        }
        let mut context = self.context();
        let flow = self.start(&mut context);
        Ok(self.exit(&context, flow))
    }

    fn stack_start(&mut self) -> *mut u8 {
        self.entry.stack.as_mut_ptr().cast()
    }

    /// Bytes of code that were executed.
    #[inline(always)]
    pub(crate) fn used(&self, context: &Context) -> u32 {
        let Position { pc, limit, .. } = context.position();
        self.budget.wrapping_sub(limit.wrapping_sub(pc.addr())) as u32
    }

    /// Where `start` left off.
    #[inline(always)]
    pub(crate) fn exit(self, context: &Context, flow: Flow) -> Exit {
        let Position { pc, frame, accumulator, .. } = context.position();
        Exit {
            flow,
            pc: pc.addr().wrapping_sub(context.image.addr()) as u32,
            frame: frame.addr().wrapping_sub(context.globals.addr()) as u32,
            accumulator,
            used: self.used(context),
        }
    }
}

impl Context {
    #[inline(always)]
    pub(super) fn position(&self) -> Position {
        // SAFETY: asked for after `start` only, every way out of which goes through `State::leave`.
        unsafe { self.position.assume_init() }
    }
}

impl State {
    #[inline(always)]
    unsafe fn leave(&self, flow: Flow) -> Flow {
        let State { pc, frame, accumulator, limit, .. } = *self;
        // SAFETY: the context outlives the state.
        unsafe { (*self.context).position.write(Position { pc, frame, accumulator, limit }) };
        flow
    }
}

/// # Safety
/// As `Run::start` promises of the state.
#[cfg(not(tail_dispatch))]
pub(super) unsafe fn start(mut state: State) -> Flow {
    loop {
        // SAFETY: the caller's promise holds again after every instruction.
        let flow = unsafe { dispatch(state.opcode(), &mut state) };
        if flow != Flow::Next {
            // SAFETY: the context is borrowed by the caller.
            return unsafe { state.leave(flow) };
        }
    }
}

/// Calls a function in tail position: guaranteed with `become`, else by the optimiser.
#[cfg(all(tail_dispatch, feature = "become"))]
macro_rules! tail_call {
    ($call:expr) => {
        become $call
    };
}
#[cfg(all(tail_dispatch, not(feature = "become")))]
macro_rules! tail_call {
    ($call:expr) => {
        return $call
    };
}

// Handlers take the registers as arguments. There are as many as the calling convention passes in
// registers, eight on RISC-V and six on x86-64; the rest is in the context. The first shares its register
// with the result of a handler that leaves, on most processors: it is one that is not needed by then.
#[cfg(all(tail_dispatch, target_pointer_width = "64"))]
macro_rules! with_registers {
    ($(#[$attribute:meta])* $s:ident: $($body:tt)*) => {
        $(#[$attribute])*
        unsafe fn handler(
            context: *mut Context,
            pc: *const u8,
            frame: *mut u8,
            memory: *mut u8,
            accumulator: u32,
            limit: usize,
        ) -> Flow {
            #[allow(unused_mut)]
            let mut $s = State { pc, frame, memory, accumulator, limit, context };
            $($body)*
        }
    };
}
#[cfg(all(tail_dispatch, target_pointer_width = "64"))]
macro_rules! call_with_registers {
    ($s:ident, $function:expr) => {
        $function($s.context, $s.pc, $s.frame, $s.memory, $s.accumulator, $s.limit)
    };
}
#[cfg(all(tail_dispatch, target_pointer_width = "64"))]
pub(super) type Handler = unsafe fn(*mut Context, *const u8, *mut u8, *mut u8, u32, usize) -> Flow;

#[cfg(all(tail_dispatch, target_pointer_width = "32"))]
macro_rules! with_registers {
    ($(#[$attribute:meta])* $s:ident: $($body:tt)*) => {
        $(#[$attribute])*
        unsafe fn handler(
            handlers: *const (),
            pc: *const u8,
            frame: *mut u8,
            memory: *mut u8,
            memory_bytes: usize,
            accumulator: u32,
            limit: usize,
            context: *mut Context,
        ) -> Flow {
            #[allow(unused_mut)]
            let mut $s =
                State { pc, frame, memory, memory_bytes, accumulator, limit, context, handlers };
            $($body)*
        }
    };
}
#[cfg(all(tail_dispatch, target_pointer_width = "32"))]
macro_rules! call_with_registers {
    ($s:ident, $function:expr) => {
        $function(
            $s.handlers,
            $s.pc,
            $s.frame,
            $s.memory,
            $s.memory_bytes,
            $s.accumulator,
            $s.limit,
            $s.context,
        )
    };
}
#[cfg(all(tail_dispatch, target_pointer_width = "32"))]
pub(super) type Handler =
    unsafe fn(*const (), *const u8, *mut u8, *mut u8, usize, u32, usize, *mut Context) -> Flow;

#[cfg(tail_dispatch)]
macro_rules! handler {
    ($operation:ident, $($followers:tt)*) => {{
        with_registers! { s:
            // SAFETY: `pc` is at this instruction, and afterwards at the next.
            unsafe {
                match $operation(&mut s) {
                    Flow::Next => go_on!(s, $($followers)*),
                    // Every call ends so, and some are short.
                    Flow::Done => s.leave(Flow::Done),
                    flow => leave!(s, flow),
                }
            }
        }
        handler as Handler
    }};
}

/// Goes on with the next instruction: at once if it is one of those that often follow, else by a jump.
#[cfg(tail_dispatch)]
macro_rules! go_on {
    ($s:ident,) => {{
        let next = $s.handler();
        tail_call!(call_with_registers!($s, next))
    }};
    ($s:ident, $unit:literal $operation:ident ($($its:tt)*) $($others:tt)*) => {
        if $s.opcode_unit() == $unit {
            match $operation(&mut $s) {
                Flow::Next => go_on!($s, $($its)*),
                flow => leave!($s, flow),
            }
        } else {
            go_on!($s, $($others)*)
        }
    };
}

#[cfg(all(tail_dispatch, target_pointer_width = "64"))]
macro_rules! leave {
    ($s:ident, $flow:expr) => {
        $s.leave($flow)
    };
}
#[cfg(all(tail_dispatch, target_pointer_width = "32"))]
macro_rules! leave {
    ($s:ident, $flow:expr) => {{
        // Out of line: nearly every instruction has such a way out.
        $s.handlers = core::ptr::without_provenance($flow as usize);
        tail_call!(call_with_registers!($s, LEAVE))
    }};
}

/// Leaves for the reason that lies where the handlers' address did.
#[cfg(all(tail_dispatch, target_pointer_width = "32"))]
const LEAVE: Handler = {
    with_registers! { #[inline(never)] s:
        // SAFETY: `leave!` makes a number of a `Flow`.
        unsafe { s.leave(core::mem::transmute::<u8, Flow>(s.handlers.addr() as u8)) }
    }
    handler
};

#[cfg(tail_dispatch)]
impl State {
    /// The handler of the instruction at `pc`.
    #[inline(always)]
    unsafe fn handler(&self) -> Handler {
        // SAFETY: verified opcodes are below `isa::COUNT`; the unit is the offset in 32-bit words.
        unsafe {
            #[cfg(target_pointer_width = "64")]
            let handlers = HANDLERS.as_ptr();
            #[cfg(target_pointer_width = "32")]
            let handlers = self.handlers.cast::<Handler>();
            handlers.byte_add(self.opcode_unit() * (size_of::<Handler>() / 4)).read()
        }
    }
}

/// # Safety
/// As `Run::start` promises of the state.
#[cfg(tail_dispatch)]
#[inline(always)]
pub(super) unsafe fn start(s: State) -> Flow {
    // SAFETY: the caller's promise.
    unsafe {
        #[cfg(target_pointer_width = "64")]
        let first = FIRST;
        #[cfg(target_pointer_width = "32")]
        let first = s.handler();
        call_with_registers!(s, first)
    }
}

/// Goes to the first instruction. `start` becomes part of other crates, and a table that they name would
/// be one that the handlers find through another.
#[cfg(all(tail_dispatch, target_pointer_width = "64"))]
const FIRST: Handler = {
    with_registers! { #[inline(never)] s:
        // SAFETY: `pc` is at an instruction.
        unsafe {
            let next = s.handler();
            tail_call!(call_with_registers!(s, next))
        }
    }
    handler
};

/// The handlers by opcode, for the register that holds them on cores of 32 bits.
#[cfg(all(tail_dispatch, target_pointer_width = "32"))]
pub(super) fn handlers() -> *const Handler {
    HANDLERS.as_ptr()
}

/// The instructions. One expression serves several widths, so that some casts are to the same type.
#[allow(clippy::identity_op, clippy::manual_range_patterns, clippy::unnecessary_cast)]
mod generated {
    #[cfg(all(tail_dispatch, target_pointer_width = "32"))]
    use super::LEAVE;
    #[cfg(feature = "float")]
    use super::float;
    #[cfg(compact)]
    use super::wide;
    #[cfg(tail_dispatch)]
    use super::{Context, Handler, isa};
    use super::{Flow, State};

    include!(concat!(env!("OUT_DIR"), "/handlers.rs"));
}
#[cfg(tail_dispatch)]
use generated::HANDLERS;
#[cfg(not(tail_dispatch))]
use generated::dispatch;
