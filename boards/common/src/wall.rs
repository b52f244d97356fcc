//! The vm's second wall, on whatever memory protection a board has.

use tenure_hal::{Cause, Exit, Guard, RETURNED, Region, Violation};
use tenure_kernel::COMPILED_STACK_BYTES;
use tenure_vm::{Breach, BreachCause, Entry, Stay, Wall, word};

/// Bytes of the stack that the interpreter runs on; it is flat, so that this is enough for the
/// longest of its functions. A power of two, which any memory protection covers at once.
const STACK_BYTES: usize = 2048;
const _: () = assert!(COMPILED_STACK_BYTES + word::COUNT * WORD_BYTES + ALIGNMENT <= STACK_BYTES);
const WORD_BYTES: usize = size_of::<usize>();
/// Where a stack must begin, in bytes.
const ALIGNMENT: usize = 16;
/// The longest that one stay may take. Fuel ends it long before; this ends an interpreter that has
/// gone wrong.
const STAY_MICROSECONDS: u32 = 2_000_000;
/// The same for compiled code, for which nobody vouches.
const COMPILED_MICROSECONDS: u32 = 500_000;

/// Runs the interpreter unprivileged: it reaches the firmware's code, one machine's memory, and a
/// stack that is wiped when another machine follows. Compiled code runs so, too, and reaches itself in
/// place of the firmware.
pub struct GuardedVm<G: Guard> {
    guard: G,
    stack: G::Memory,
    /// Where the globals of the machine lie that ran last.
    last: usize,
}

impl<G: Guard> GuardedVm<G> {
    /// A wall that `guard` stands for; `None` if there is no memory for a stack.
    pub fn new(guard: G) -> Option<Self> {
        let stack = guard.memory(STACK_BYTES, 0, None)?;
        Some(Self { guard, stack, last: 0 })
    }
}

impl<G: Guard + Send> Wall for GuardedVm<G> {
    fn confine(&mut self, stay: Stay<'_>) -> Result<(), Breach> {
        let Stay { readable: [image, table, apart], writable, words, enter } = stay;
        let [globals, stack, memory] = writable;
        let machine = stack.as_ptr().addr();
        if self.last != machine {
            self.stack.fill(0);
            self.last = machine;
        }
        let base = self.stack.as_ptr().expose_provenance();
        let place = self.stack.len() - size_of_val(words);
        for (bytes, word) in self.stack[place..].chunks_exact_mut(WORD_BYTES).zip(&*words) {
            bytes.copy_from_slice(&word.to_ne_bytes());
        }
        let argument = base + place;
        let top = argument & !(ALIGNMENT - 1);
        let (enter, runs, microseconds) = match enter {
            Entry::Interpreter(enter) => {
                (enter as usize, Region::Readable(apart), STAY_MICROSECONDS)
            }
            Entry::Compiled { code, at } => {
                let enter = code.as_ptr().expose_provenance() + at;
                (enter, Region::Code(code), COMPILED_MICROSECONDS)
            }
        };
        let mut context = self.guard.enter(enter, argument, top);
        let mut regions = [
            Region::Readable(image),
            Region::Readable(table),
            runs,
            Region::Own(globals),
            Region::Own(stack),
            Region::Own(memory),
            Region::Own(&mut self.stack),
        ];
        let exit = self.guard.run_firmware(&mut context, &mut regions, microseconds);
        let (left, _) = self.stack[place..].as_chunks();
        words.iter_mut().zip(left).for_each(|(word, bytes)| *word = usize::from_ne_bytes(*bytes));
        match exit {
            Exit::Call if self.guard.call(&context).number == RETURNED => Ok(()),
            Exit::Call => Err(breach(Violation { cause: Cause::Instruction, address: 0, at: 0 })),
            Exit::Time => Err(Breach { cause: BreachCause::Time, address: 0, at: 0 }),
            Exit::Violation(violation) => Err(breach(violation)),
        }
    }
}

/// A violation as the vm knows it.
pub(crate) fn breach(violation: Violation) -> Breach {
    let Violation { cause, address, at } = violation;
    let cause = match cause {
        Cause::Read => BreachCause::Read,
        Cause::Write => BreachCause::Write,
        Cause::Execute => BreachCause::Execute,
        Cause::Instruction => BreachCause::Instruction,
    };
    Breach { cause, address, at }
}
