//! An instruction in C, as the passes over a function see it: what it touches, and where execution goes on.

/// A variable of a frame: a slot's half (twice its index, plus one for the upper), or the accumulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Variable {
    /// Half of a slot.
    Half(u32),
    /// The accumulator.
    Accumulator,
}

/// Where execution goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// With what follows.
    Through,
    /// With what follows, and fuel is looked at there.
    Check,
    /// Where the only target is.
    Jump,
    /// There, if the last statement's condition holds.
    Branch,
    /// At one of the targets.
    Table,
    /// In a function.
    Call,
    /// In a function that an element of the first table names.
    CallIndirect,
    /// In the caller.
    Return,
    /// Nowhere.
    Trap,
    /// With what follows, once so many bytes are filled or moved; outside if fuel or memory don't suffice for all of them.
    Bulk,
    /// Outside: what isn't compiled is left to the runtime, or to the interpreter.
    Outside,
}

/// An instruction in C.
#[derive(Debug)]
pub(crate) struct Lowered {
    /// Statements; of what moves bytes, the declaration of `to`, `from` and `count`; of a branch, an expression: whether it is taken; of a table, the index.
    pub(crate) text: String,
    pub(crate) reads: Vec<Variable>,
    pub(crate) writes: Vec<Variable>,
    pub(crate) next: Next,
    /// The memory that it reads or writes.
    pub(crate) access: Option<Access>,
    /// The sum that all it writes is then, if it is one.
    pub(crate) sum: Option<Sum>,
}

/// An address: a variable's value, if one is named, plus a constant.
pub(crate) type Sum = (Option<Variable>, u32);

/// An access to memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub(crate) address: Sum,
    /// From its address to its last byte.
    pub(crate) reach: u32,
}

/// The name of a slot's variable of 32 bits.
pub(crate) fn name(half: u32) -> String {
    let upper = if half % 2 == 1 { "h" } else { "" };
    format!("s{}{upper}", half / 2)
}
