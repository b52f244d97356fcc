//! WASI's numbers of errors (`errno`), and which of them a failed host call is.

use crate::host::Error;

/// An error as WASI numbers it.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Errno(pub(crate) u16);

impl Errno {
    pub(crate) const BADF: Self = Self(8);
    pub(crate) const DQUOT: Self = Self(19);
    pub(crate) const EXIST: Self = Self(20);
    pub(crate) const FAULT: Self = Self(21);
    pub(crate) const FBIG: Self = Self(22);
    pub(crate) const ILSEQ: Self = Self(25);
    pub(crate) const INVAL: Self = Self(28);
    pub(crate) const IO: Self = Self(29);
    pub(crate) const ISDIR: Self = Self(31);
    pub(crate) const LOOP: Self = Self(32);
    pub(crate) const MFILE: Self = Self(33);
    pub(crate) const NAMETOOLONG: Self = Self(37);
    pub(crate) const NFILE: Self = Self(41);
    pub(crate) const NOENT: Self = Self(44);
    pub(crate) const NOSPC: Self = Self(51);
    pub(crate) const NOTDIR: Self = Self(54);
    pub(crate) const NOTEMPTY: Self = Self(55);
    pub(crate) const NOTSOCK: Self = Self(57);
    pub(crate) const NOTSUP: Self = Self(58);
    pub(crate) const OVERFLOW: Self = Self(61);
    pub(crate) const PERM: Self = Self(63);
    pub(crate) const SPIPE: Self = Self(70);
    pub(crate) const NOTCAPABLE: Self = Self(76);

    /// The error of a host call about the tree that returned this number.
    pub(crate) fn of_host(code: i32) -> Self {
        match Error::from_code(code) {
            Error::NotFound => Self::NOENT,
            Error::TooLong => Self::NAMETOOLONG,
            Error::Full | Error::StoredBudget => Self::NOSPC,
            Error::FlashBudget => Self::DQUOT,
            Error::Invalid => Self::ILSEQ,
            Error::Denied | Error::NotGranted => Self::PERM,
            _ => Self::IO,
        }
    }
}

/// The number that a function of WASI returns.
pub(crate) fn number(result: Result<(), Errno>) -> u32 {
    match result {
        Ok(()) => 0,
        Err(Errno(number)) => number.into(),
    }
}
