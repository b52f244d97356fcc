//! The kinds of things in a digested script: see `digest`.
// The authors of scripts do not read them.
#![allow(dead_code)]

/// The request of a directive.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Optional name, module: it can be made.
    Module,
    /// Name, optional name of the instance.
    Register,
    /// A call that ends well.
    Invoke,
    /// A task, number of results u8, a pattern for each.
    Return,
    /// A task, name of the trap.
    Trap,
    /// A module that is none, or breaks a rule.
    Refused,
    /// A module whose imports do not exist.
    Unlinkable,
    /// A module that cannot even be written down as bytes.
    TextOnly,
}

pub(crate) const KINDS: [Kind; 8] = [
    Kind::Module,
    Kind::Register,
    Kind::Invoke,
    Kind::Return,
    Kind::Trap,
    Kind::Refused,
    Kind::Unlinkable,
    Kind::TextOnly,
];

/// An action with a result to check.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Task {
    /// Optional name of the instance, name of the function, number of arguments u8, they.
    Invoke,
    /// A module.
    Instantiate,
    /// Optional name of the instance, name of the global.
    Get,
}

/// The expected form of a result.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Pattern {
    /// Exactly the value that follows.
    Value,
    CanonicalNan,
    ArithmeticNan,
    /// A null reference.
    Null,
    /// A reference of the type that follows, not null.
    Reference,
    /// One of so many (u8) patterns.
    Either,
}

pub(crate) const PATTERNS: [Pattern; 6] = [
    Pattern::Value,
    Pattern::CanonicalNan,
    Pattern::ArithmeticNan,
    Pattern::Null,
    Pattern::Reference,
    Pattern::Either,
];
