//! The services of a leaf in the place of machines: they are part of its firmware.

use alloc::string::String;
use alloc::vec::Vec;

use tenure_hal::{Flash, Instant};
use tenure_rpc::NoResult;
use tenure_store::{ReadError, SetError, Store, TreeId, Value, ValueKind};
use tenure_wire::{Name, PublicKey};

/// A service: it is called as a machine is, by its name, over a session with a key of its own.
pub trait Service {
    /// The functions that may be called.
    fn functions(&self) -> &[&str];

    /// Serves a call of one of its functions.
    fn call(&mut self, call: &ServiceCall<'_>, tree: &mut dyn ServiceTree) -> Outcome;

    /// Goes on with the call that it answered by [`Outcome::Ask`], now that `answer` has come.
    ///
    /// # Errors
    /// The answer to the caller in the place of a result.
    fn go_on(
        &mut self,
        answer: Result<Option<Vec<u8>>, NoResult>,
        tree: &mut dyn ServiceTree,
    ) -> Result<Option<Vec<u8>>, NoResult>;
}

/// A call of a service.
#[derive(Clone, Copy, Debug)]
pub struct ServiceCall<'a> {
    /// Which function.
    pub function: &'a str,
    /// The parameter.
    pub parameter: Option<&'a [u8]>,
    /// The caller: the owner, or a machine on a device of theirs.
    pub caller: PublicKey,
    /// When it is called.
    pub now: Instant,
}

/// The outcome of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Its result, or what the caller is told in its place.
    Done(Result<Option<Vec<u8>>, NoResult>),
    /// First another machine is asked.
    Ask(Ask),
}

/// A call that a service makes in order to answer one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Which machine.
    pub machine: Name,
    /// On which device of the same owner.
    pub device: Name,
    /// Which of its functions.
    pub function: String,
    /// With what.
    pub parameter: Option<Vec<u8>>,
}

/// The values of a service, in a tree of its own.
pub trait ServiceTree {
    /// The value at `path`.
    ///
    /// # Errors
    /// As the store's.
    fn get(&mut self, path: &str) -> Result<Option<Value>, ReadError>;

    /// Sets the value at `path`: when it returns `Ok`, it survives a loss of power.
    ///
    /// # Errors
    /// As the store's.
    fn set(&mut self, path: &str, kind: ValueKind, value: &[u8]) -> Result<(), SetError>;
}

/// The tree of one service.
pub(super) struct Tree<'a, F> {
    pub(super) store: &'a mut Store<F>,
    pub(super) id: TreeId,
}

impl<F: Flash> ServiceTree for Tree<'_, F> {
    fn get(&mut self, path: &str) -> Result<Option<Value>, ReadError> {
        self.store.get(self.id, path)
    }

    fn set(&mut self, path: &str, kind: ValueKind, value: &[u8]) -> Result<(), SetError> {
        self.store.set(self.id, path, kind, value)
    }
}
