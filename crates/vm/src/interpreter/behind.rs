//! The interpreter behind a second wall, as a board's `Wall` runs it.
//!
//! Numbers cross the wall, and nothing else. They go in as addresses of the memory that the run may reach,
//! which the wall exposes ([`Stay::expose`]) when nothing else holds that memory any more. Numbers that come
//! back are compared with image and stack before they are used: the interpreter may be wrong, and the rest of
//! this crate, which is safe code, isn't led astray by it.

use core::mem::MaybeUninit;
use core::ptr::{with_exposed_provenance, with_exposed_provenance_mut};

use super::handlers::{Exit, Run, start};
use super::state::{Context, Flow, State};
use crate::isa;
use crate::memory::as_bytes_mut;
use crate::wall::word::{
    ACCUMULATOR, COUNT as WORDS, FLOW, FRAME, FUNCTION_COUNT, FUNCTIONS, GLOBALS, IMAGE, LIMIT,
    MEMORY, MEMORY_BYTES, PC, STACK_END, TABLE, TABLE_COUNT,
};
use crate::wall::{Breach, BreachCause, Entry, Stay, Wall};

impl Run<'_> {
    /// As `start` and `exit`, behind `wall`. `apart` is the code to be run if it isn't the image's.
    pub(super) fn confine(self, wall: &mut dyn Wall, apart: &[u8]) -> Result<Exit, Breach> {
        let Run { entry, pc, budget } = self;
        let (bytes, functions) = (entry.image.bytes(), entry.image.token.functions);
        let image = bytes.as_ptr().addr();
        let globals = entry.globals.as_ptr().addr();
        let stack = entry.stack.as_ptr_range();
        let (start, end) = (stack.start.addr(), stack.end.addr());
        let table_count = entry.table.len();
        let limit = pc.addr().wrapping_add(budget);
        let mut words = [0; WORDS];
        words[IMAGE] = image;
        words[FUNCTIONS] = image + functions.at as usize;
        words[FUNCTION_COUNT] = functions.count as usize;
        words[GLOBALS] = globals;
        words[STACK_END] = end;
        words[TABLE] = entry.table.as_ptr().addr();
        words[TABLE_COUNT] = table_count;
        words[MEMORY] = entry.memory.as_ptr().addr();
        words[MEMORY_BYTES] = entry.memory.len();
        words[PC] = pc.addr();
        words[FRAME] = start + entry.frame as usize;
        words[ACCUMULATOR] = entry.accumulator as usize;
        words[LIMIT] = limit;
        words[FLOW] = usize::MAX;
        wall.confine(Stay {
            readable: [bytes, words_as_bytes(entry.table), apart],
            writable: [as_bytes_mut(entry.globals), as_bytes_mut(entry.stack), entry.memory],
            words: &mut words,
            enter: Entry::Interpreter(enter),
        })?;
        let exit = Exit {
            flow: Flow::from_number(words[FLOW]).ok_or(IMPOSSIBLE)?,
            pc: words[PC].wrapping_sub(image) as u32,
            frame: words[FRAME].wrapping_sub(globals) as u32,
            accumulator: words[ACCUMULATOR] as u32,
            used: budget.wrapping_sub(words[LIMIT].wrapping_sub(words[PC])) as u32,
        };
        let code = if apart.is_empty() { bytes } else { apart };
        let ran = words[PC].wrapping_sub(code.as_ptr().addr());
        let frames = start - globals..=end - globals;
        let is_possible = ran < code.len()
            && exit.frame.is_multiple_of(8)
            && frames.contains(&(exit.frame as usize))
            && exit.used as usize <= budget + OVERRUN_BYTES;
        if is_possible { Ok(exit) } else { Err(IMPOSSIBLE) }
    }
}

/// The breach of an interpreter that returned impossible numbers.
pub(crate) const IMPOSSIBLE: Breach = Breach { cause: BreachCause::Numbers, address: 0, at: 0 };
/// The stack that may be used beyond a budget: the pushes between two checks, and a call of a function with as
/// many locals as a frame holds, with room to spare.
pub(crate) const OVERRUN_BYTES: usize = 4 * isa::WINDOW_UNITS + 2 * 8192;

fn words_as_bytes(words: &[u32]) -> &[u8] {
    // SAFETY: any word is four bytes.
    unsafe { core::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) }
}

/// Runs the interpreter on what the words name.
///
/// # Safety
/// As for `Run::start`; `words` are `WORDS` of them.
unsafe extern "C" fn enter(words: *mut usize) {
    // SAFETY: the caller's promise.
    let words = unsafe { &mut *words.cast::<[usize; WORDS]>() };
    let mut context = Context {
        #[cfg(target_pointer_width = "64")]
        memory_bytes: words[MEMORY_BYTES],
        image: with_exposed_provenance(words[IMAGE]),
        functions: with_exposed_provenance(words[FUNCTIONS]),
        function_count: words[FUNCTION_COUNT] as u32,
        globals: with_exposed_provenance_mut(words[GLOBALS]),
        stack_end: with_exposed_provenance(words[STACK_END]),
        table: with_exposed_provenance(words[TABLE]),
        table_count: words[TABLE_COUNT] as u32,
        position: MaybeUninit::uninit(),
    };
    let state = State {
        pc: with_exposed_provenance(words[PC]),
        frame: with_exposed_provenance_mut(words[FRAME]),
        memory: with_exposed_provenance_mut(words[MEMORY]),
        #[cfg(target_pointer_width = "32")]
        memory_bytes: words[MEMORY_BYTES],
        accumulator: words[ACCUMULATOR] as u32,
        limit: words[LIMIT],
        context: &mut context,
        #[cfg(all(tail_dispatch, target_pointer_width = "32"))]
        handlers: super::handlers::handlers().cast(),
    };
    // SAFETY: the caller's promise.
    let flow = unsafe { start(state) };
    let position = context.position();
    words[PC] = position.pc.addr();
    words[FRAME] = position.frame.addr();
    words[ACCUMULATOR] = position.accumulator as usize;
    words[LIMIT] = position.limit;
    words[FLOW] = flow as usize;
}
