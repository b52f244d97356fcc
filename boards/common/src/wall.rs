//! The vm's second wall, on whatever memory protection a board has.

use alloc::boxed::Box;
use alloc::vec;

use tenure_hal::{Cause, Exit, Guard, RETURNED, Region, Violation};
use tenure_vm::{Breach, BreachCause, Stay, Wall};

/// Bytes of the stack that the interpreter runs on; it is flat, so that this is enough for the
/// longest of its functions.
const STACK_BYTES: usize = 2048;
const WORD_BYTES: usize = size_of::<usize>();
/// Where a stack must begin, in bytes.
const ALIGNMENT: usize = 16;
/// The longest that one stay may take. Fuel ends it long before; this ends an interpreter that has
/// gone wrong.
const STAY_MICROSECONDS: u32 = 2_000_000;

/// Runs the interpreter unprivileged: it reaches the firmware's code, one machine's memory, and a
/// stack that is wiped when another machine follows.
pub struct GuardedVm<G> {
    guard: G,
    stack: Box<[usize]>,
    /// Where the globals of the machine lie that ran last.
    last: usize,
}

impl<G: Guard> GuardedVm<G> {
    /// A wall that `guard` stands for.
    pub fn new(guard: G) -> Self {
        Self { guard, stack: vec![0; STACK_BYTES / WORD_BYTES].into(), last: 0 }
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
        let place = self.stack.len() - words.len();
        self.stack[place..].copy_from_slice(words);
        let argument = base + place * WORD_BYTES;
        let top = argument & !(ALIGNMENT - 1);
        let mut context = self.guard.enter(enter as usize, argument, top);
        let mut regions = [
            Region::Firmware,
            Region::Readable(image),
            Region::Readable(table),
            Region::Readable(apart),
            Region::Own(globals),
            Region::Own(stack),
            Region::Own(memory),
            Region::OwnWords(&mut self.stack),
        ];
        let exit = self.guard.run(&mut context, &mut regions, STAY_MICROSECONDS);
        words.copy_from_slice(&self.stack[place..]);
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
