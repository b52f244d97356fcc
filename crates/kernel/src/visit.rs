//! Visits to servers outside, as they leave the kernel and come back.

use alloc::vec::Vec;

use tenure_hal::Instant;
use tenure_wire::capability::ReachPattern;
use tenure_wire::{MachineId, NoResult};

use crate::ask::Ask;
use crate::calls::CallId;

/// A machine's question on its way to a server outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutgoingVisit {
    /// Under which number to give the answer.
    pub id: CallId,
    /// The machine that asks.
    pub from: MachineId,
    /// Its question.
    pub ask: Ask,
    /// The requests that its lease grants, to which those that a redirect leads to belong, too.
    pub granted: Vec<ReachPattern>,
    /// When the answer is of no use any more.
    pub deadline: Instant,
    /// How often a server that can't be reached may be tried, at least once.
    pub attempts: u8,
}

/// The end of a visit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visited {
    /// The visit's number.
    pub id: CallId,
    /// The answer (`None` is null), or why there is none.
    pub result: Result<Option<Vec<u8>>, NoResult>,
    /// Why there is none, in words: the machine has them, as its log has.
    pub words: Vec<u8>,
    /// The bytes that were sent and received for it.
    pub traffic: (u64, u64),
}
