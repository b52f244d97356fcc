//! Dispatch: one function for each instruction that ends in a call of the next, or one `match`.
//!
//! The instructions themselves are generated from `build/isa.rs` and the same either way. Tail calls
//! are the faster: each instruction has its own indirect jump, and the registers of `State` stay in the
//! processor's. Without `become` they rely on the optimiser, which `build/main.rs` asks for; the test
//! `deep_run_keeps_the_native_stack_flat` would overflow without.

#[cfg(feature = "float")]
use super::float;
use super::state::{Context, Flow, State};
use crate::image::Image;
#[cfg(tail_dispatch)]
use crate::isa;

/// What `execute` needs to know of an instance.
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
    /// Bytes of code after which to stop at the next look.
    pub(crate) budget: usize,
    /// Execute one instruction.
    pub(crate) once: bool,
}

/// Where execution left off.
pub(crate) struct Exit {
    pub(crate) flow: Flow,
    pub(crate) pc: u32,
    pub(crate) frame: u32,
    pub(crate) accumulator: u32,
    /// Bytes of code that were executed.
    pub(crate) used: usize,
}

/// The largest budget for an image that lies here: `limit` must stay in the address space.
pub(crate) fn budget_max(image: &Image<'_>) -> usize {
    let end = image.bytes().as_ptr_range().end.addr();
    (usize::MAX - end).min(1 << 28)
}

/// Runs until something other than the next instruction is due.
pub(crate) fn execute(entry: Entry<'_>) -> Exit {
    let image = entry.image.bytes().as_ptr();
    let globals = entry.globals.as_mut_ptr().cast::<u8>();
    let stack = entry.stack.as_mut_ptr_range();
    let footer = &entry.image.footer;
    let pc = image.wrapping_add(entry.pc as usize);
    let limit = pc.addr().wrapping_add(entry.budget);
    let mut context = Context {
        memory_bytes: entry.memory.len(),
        image,
        functions: image.wrapping_add(footer.functions.at as usize),
        function_count: footer.functions.count,
        globals,
        stack_end: stack.end.cast::<u8>(),
        table: entry.table.as_ptr(),
        table_count: entry.table.len() as u32,
        #[cfg(tail_dispatch)]
        handlers: if entry.once { ONCE.as_ptr() } else { HANDLERS.as_ptr() },
        #[cfg(not(tail_dispatch))]
        once: entry.once,
        flow: Flow::Next,
        pc,
        frame: stack.start.cast::<u8>().wrapping_add(entry.frame as usize),
        accumulator: entry.accumulator,
        limit,
    };
    // SAFETY: `Instance` keeps `pc` at an instruction of a verified image and `frame` in the stack.
    unsafe { start(&mut context, entry.memory.as_mut_ptr()) };
    let end_limit = context.limit.wrapping_sub(context.pc.addr());
    Exit {
        flow: context.flow,
        pc: context.pc.addr().wrapping_sub(image.addr()) as u32,
        frame: context.frame.addr().wrapping_sub(stack.start.addr()) as u32,
        accumulator: context.accumulator,
        used: limit.wrapping_sub(pc.addr()).wrapping_sub(end_limit),
    }
}

fn initial_state(context: &mut Context, memory: *mut u8) -> State {
    State {
        pc: context.pc,
        frame: context.frame,
        memory,
        #[cfg(target_pointer_width = "32")]
        memory_bytes: context.memory_bytes,
        accumulator: context.accumulator,
        limit: context.limit,
        #[cfg(all(tail_dispatch, target_pointer_width = "32"))]
        handlers: context.handlers.cast(),
        context,
    }
}

impl State {
    #[inline(always)]
    unsafe fn leave(&self, flow: Flow) {
        // SAFETY: the context outlives the state.
        let context = unsafe { &mut *self.context };
        context.flow = flow;
        context.pc = self.pc;
        context.frame = self.frame;
        context.accumulator = self.accumulator;
        context.limit = self.limit;
    }
}

#[cfg(not(tail_dispatch))]
unsafe fn start(context: &mut Context, memory: *mut u8) {
    let once = context.once;
    let mut state = initial_state(context, memory);
    loop {
        // SAFETY: the caller's promise holds again after every instruction.
        let flow = unsafe { dispatch(state.opcode(), &mut state) };
        if flow != Flow::Next || once {
            let flow = if flow == Flow::Next { Flow::Check } else { flow };
            // SAFETY: the context is borrowed here.
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
// registers, eight on RISC-V and six on x86-64; the rest is in the context.
#[cfg(all(tail_dispatch, target_pointer_width = "64"))]
macro_rules! with_registers {
    ($s:ident: $($body:tt)*) => {
        unsafe fn handler(
            pc: *const u8,
            frame: *mut u8,
            memory: *mut u8,
            accumulator: u32,
            limit: usize,
            context: *mut Context,
        ) {
            #[allow(unused_mut)]
            let mut $s = State { pc, frame, memory, accumulator, limit, context };
            $($body)*
        }
    };
}
#[cfg(all(tail_dispatch, target_pointer_width = "64"))]
macro_rules! call_with_registers {
    ($s:ident, $function:expr) => {
        $function($s.pc, $s.frame, $s.memory, $s.accumulator, $s.limit, $s.context)
    };
}
#[cfg(all(tail_dispatch, target_pointer_width = "64"))]
pub(super) type Handler = unsafe fn(*const u8, *mut u8, *mut u8, u32, usize, *mut Context);

#[cfg(all(tail_dispatch, target_pointer_width = "32"))]
macro_rules! with_registers {
    ($s:ident: $($body:tt)*) => {
        unsafe fn handler(
            pc: *const u8,
            frame: *mut u8,
            memory: *mut u8,
            memory_bytes: usize,
            accumulator: u32,
            limit: usize,
            context: *mut Context,
            handlers: *const (),
        ) {
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
            $s.pc,
            $s.frame,
            $s.memory,
            $s.memory_bytes,
            $s.accumulator,
            $s.limit,
            $s.context,
            $s.handlers,
        )
    };
}
#[cfg(all(tail_dispatch, target_pointer_width = "32"))]
pub(super) type Handler =
    unsafe fn(*const u8, *mut u8, *mut u8, usize, u32, usize, *mut Context, *const ());

/// A handler that only notes why execution stops.
#[cfg(tail_dispatch)]
macro_rules! leaver {
    ($flow:expr) => {{
        with_registers! { s:
            // SAFETY: the context outlives the handlers.
            unsafe { s.leave($flow) }
        }
        handler as Handler
    }};
}

#[cfg(tail_dispatch)]
macro_rules! handler {
    ($operation:ident) => {{
        with_registers! { s:
            // SAFETY: `pc` is at this instruction, and afterwards at the next.
            unsafe {
                match $operation(&mut s) {
                    Flow::Next => {
                        let next = s.handler();
                        tail_call!(call_with_registers!(s, next))
                    }
                    flow => {
                        let leave = LEAVERS[flow as usize];
                        tail_call!(call_with_registers!(s, leave))
                    }
                }
            }
        }
        handler as Handler
    }};
}

#[cfg(tail_dispatch)]
static LEAVERS: [Handler; 14] = [
    leaver!(Flow::Next),
    leaver!(Flow::Check),
    leaver!(Flow::Done),
    leaver!(Flow::Outer),
    leaver!(Flow::Unreachable),
    leaver!(Flow::OutOfBounds),
    leaver!(Flow::Misaligned),
    leaver!(Flow::DivideByZero),
    leaver!(Flow::IntegerOverflow),
    leaver!(Flow::InvalidConversion),
    leaver!(Flow::StackOverflow),
    leaver!(Flow::TableOutOfBounds),
    leaver!(Flow::UninitializedElement),
    leaver!(Flow::SignatureMismatch),
];

/// Executes nothing: what follows a single instruction.
#[cfg(tail_dispatch)]
static ONCE: [Handler; isa::COUNT] = [leaver!(Flow::Check); isa::COUNT];

#[cfg(tail_dispatch)]
impl State {
    /// The handler of the instruction at `pc`.
    #[inline(always)]
    unsafe fn handler(&self) -> Handler {
        // SAFETY: verified opcodes are below `isa::COUNT`; the unit is the offset in 32-bit words.
        unsafe {
            #[cfg(target_pointer_width = "64")]
            let handlers = (*self.context).handlers;
            #[cfg(target_pointer_width = "32")]
            let handlers = self.handlers.cast::<Handler>();
            handlers.byte_add(self.opcode_unit() * (size_of::<Handler>() / 4)).read()
        }
    }
}

#[cfg(tail_dispatch)]
unsafe fn start(context: &mut Context, memory: *mut u8) {
    let s = initial_state(context, memory);
    // SAFETY: the caller's promise; the opcode is below `isa::COUNT`.
    unsafe {
        let first = HANDLERS[s.opcode_unit() / isa::OPCODE_SCALE as usize];
        call_with_registers!(s, first)
    }
}

/// The instructions. One expression serves several widths, so that some casts are to the same type.
#[allow(clippy::unnecessary_cast, clippy::identity_op)]
mod generated {
    #[cfg(feature = "float")]
    use super::float;
    #[cfg(tail_dispatch)]
    use super::{Context, Handler, LEAVERS, isa};
    use super::{Flow, State};

    include!(concat!(env!("OUT_DIR"), "/handlers.rs"));
}
#[cfg(tail_dispatch)]
use generated::HANDLERS;
#[cfg(not(tail_dispatch))]
use generated::dispatch;
