//! The services of a board that runs the interpreter behind a second wall.

use core::fmt;

/// Runs the interpreter where only some memory can be reached: unprivileged, under memory protection.
pub trait Wall: Send {
    /// Lets the interpreter run as `stay` says.
    ///
    /// # Errors
    /// [`Breach`] if it tried to leave; what it had written by then stays written.
    fn confine(&mut self, stay: Stay<'_>) -> Result<(), Breach>;

    /// Takes what the stays since the last call owe by the board's clock: the units of fuel by which compiled code took
    /// more of the processor than it counted. The machine pays them. Nothing where no clock can tell.
    fn take_overdraft(&mut self) -> u32 {
        0
    }
}

/// One stay in the interpreter.
#[derive(Debug)]
pub struct Stay<'s> {
    /// Memory that it may read: the image, a table, and an instruction apart from the image. Some are empty.
    pub readable: [&'s [u8]; 3],
    /// Memory that it may read and write: globals, stack and linear memory. Some are empty.
    pub writable: [&'s mut [u8]; 3],
    /// The interpreter's state, before the run and after it. It must lie in memory that the
    /// interpreter can reach too: copy it there, and back.
    pub words: &'s mut [usize],
    /// The function that runs; it takes the address of the words.
    pub enter: Entry<'s>,
}

impl Stay<'_> {
    /// Returns the address of the words for the function that runs, if it runs in this address space.
    ///
    /// Exposes the memory of the stay: the function makes pointers of the words' numbers. Until it has come
    /// back nothing else may touch that memory.
    pub fn expose(&mut self) -> *mut usize {
        for readable in self.readable {
            readable.as_ptr().expose_provenance();
        }
        for writable in &mut self.writable {
            writable.as_mut_ptr().expose_provenance();
        }
        self.words.as_mut_ptr()
    }
}

/// A function that runs behind the wall.
#[derive(Clone, Copy, Debug)]
pub enum Entry<'s> {
    /// The interpreter. Its code and constants are the program's.
    Interpreter(unsafe extern "C" fn(*mut usize)),
    /// Code that was compiled from the image, and its constants. It reaches nothing of the program, and
    /// nobody vouches for it.
    Compiled {
        /// Where it lies. It is read and executed, and runs at any address.
        code: &'s [u8],
        /// The offset in it of the function to call; odd for Thumb code, as its addresses are.
        at: usize,
    },
}

/// An attempt to leave. What it says is for people; the machine is to be stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Breach {
    /// The kind of access.
    pub cause: BreachCause,
    /// The address that it tried to reach; zero where that says nothing.
    pub address: usize,
    /// The address of the instruction that tried it.
    pub at: usize,
}

/// How a program tries to leave its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreachCause {
    /// It read what isn't its own.
    Read,
    /// It wrote what isn't its own.
    Write,
    /// It jumped to what isn't its code.
    Execute,
    /// It executed an instruction that it may not, or that is none.
    Instruction,
    /// It kept the processor longer than it may.
    Time,
    /// It took more of the processor, in many stays, than it counted fuel for.
    Unpaid,
    /// It came back with numbers that can't be.
    Numbers,
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cause, address, at } = *self;
        match cause {
            BreachCause::Read => write!(f, "read at {address:#x}, which isn't its own")?,
            BreachCause::Write => write!(f, "wrote at {address:#x}, which isn't its own")?,
            BreachCause::Execute => write!(f, "jumped to {address:#x}, which isn't its code")?,
            BreachCause::Instruction => f.write_str("executed an instruction that it may not")?,
            BreachCause::Time => f.write_str("kept the processor too long")?,
            BreachCause::Unpaid => {
                return f.write_str("took more of the processor than it counted fuel for");
            }
            BreachCause::Numbers => return f.write_str("came back with numbers that can't be"),
        }
        write!(f, ", from code at {at:#x}")
    }
}

/// The words that cross the wall, by their places in [`Stay::words`]: addresses, numbers of bytes and
/// elements. Those from [`PC`](word::PC) on are changed by a stay.
pub mod word {
    /// The image's first byte.
    pub const IMAGE: usize = 0;
    /// The first of the image's entries of functions.
    pub const FUNCTIONS: usize = 1;
    /// How many functions there are.
    pub const FUNCTION_COUNT: usize = 2;
    /// The first global.
    pub const GLOBALS: usize = 3;
    /// Behind the stack of frames.
    pub const STACK_END: usize = 4;
    /// The first element of the first table.
    pub const TABLE: usize = 5;
    /// How many elements it has.
    pub const TABLE_COUNT: usize = 6;
    /// The first byte of linear memory.
    pub const MEMORY: usize = 7;
    /// How many of its bytes are committed.
    pub const MEMORY_BYTES: usize = 8;
    /// The next instruction.
    pub const PC: usize = 9;
    /// The frame.
    pub const FRAME: usize = 10;
    /// The accumulator.
    pub const ACCUMULATOR: usize = 11;
    /// The address at which, going straight on, the fuel would be used up.
    pub const LIMIT: usize = 12;
    /// Why the stay has ended: one of [`flow`](super::flow).
    pub const FLOW: usize = 13;
    /// How many words there are.
    pub const COUNT: usize = 14;
}

/// Why a stay ends, as [`word::FLOW`] says it.
pub mod flow {
    use crate::interpreter::Flow;

    /// On with the next instruction: no reason to end a stay.
    pub(crate) const NEXT: usize = Flow::Next as usize;
    /// Fuel must be looked at; all else may go on where it is.
    pub const CHECK: usize = Flow::Check as usize;
    /// The outermost frame has returned.
    pub const DONE: usize = Flow::Done as usize;
    /// The instruction is executed outside.
    pub const OUTER: usize = Flow::Outer as usize;
    /// A memory access beyond the committed bytes.
    pub const ACCESS: usize = Flow::Access as usize;
    /// Compiled code doesn't go on here; the interpreter does. See [`Compiled`](crate::Compiled).
    pub const INTERPRET: usize = usize::MAX;

    /// The trap of this name, as the variants of [`TrapKind`](crate::TrapKind) that code ends in by itself.
    pub fn trap(name: &str) -> Option<usize> {
        Some(match name {
            "Unreachable" => Flow::Unreachable,
            "DivideByZero" => Flow::DivideByZero,
            "IntegerOverflow" => Flow::IntegerOverflow,
            "InvalidConversion" => Flow::InvalidConversion,
            "StackOverflow" => Flow::StackOverflow,
            "TableOutOfBounds" => Flow::TableOutOfBounds,
            "UninitializedElement" => Flow::UninitializedElement,
            "SignatureMismatch" => Flow::SignatureMismatch,
            _ => return None,
        } as usize)
    }
}
