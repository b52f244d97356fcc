//! What a board gives that runs the interpreter behind a second wall.

use core::fmt;

/// Runs the interpreter where only some memory can be reached: unprivileged, under memory protection.
pub trait Wall: Send {
    /// Lets the interpreter run as `stay` says.
    ///
    /// # Errors
    /// [`Breach`] if it tried to leave; what it had written by then stays written.
    fn confine(&mut self, stay: Stay<'_>) -> Result<(), Breach>;
}

/// One stay in the interpreter.
#[derive(Debug)]
pub struct Stay<'s> {
    /// What it may read: the image, a table, and an instruction apart from the image. Some are empty.
    pub readable: [&'s [u8]; 3],
    /// What it may read and write: globals, stack and linear memory. Some are empty.
    pub writable: [&'s mut [u8]; 3],
    /// What it begins with, and what it leaves off with. They are to lie in memory that the
    /// interpreter can reach too: copy them there, and back.
    pub words: &'s mut [usize],
    /// The interpreter; it takes the address of the words. Its code and constants are the program's.
    pub enter: unsafe extern "C" fn(*mut usize),
}

/// An attempt to leave. What it says is for people; the machine is to be stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Breach {
    /// What was tried.
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
            BreachCause::Numbers => return f.write_str("came back with numbers that can't be"),
        }
        write!(f, ", from code at {at:#x}")
    }
}
