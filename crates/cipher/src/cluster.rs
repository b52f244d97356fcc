//! Many cores: fork-join over the blocks of a message, and a stream in which transfer in, work and
//! transfer out overlap in three buffers.
//!
//! A machine offers [`Cluster`] and [`Dma`]. Both are structured: what they borrow they give back
//! when the call returns, so that a buffer cannot be touched while a transfer or a core uses it,
//! nor a transfer be forgotten.

use core::fmt;

use crate::backend;
use crate::chacha::{BLOCK_BYTES, Block, Form, State};
use crate::stream::{KeystreamEnd, Stream};

#[cfg(all(feature = "gap8", target_arch = "riscv32"))]
pub mod gap8;
#[cfg(all(target_arch = "riscv32", target_has_atomic = "32"))]
pub mod harts;
#[cfg(feature = "std")]
pub mod threads;

/// Cores among which a message is cut at most.
pub const CORES_MAX: usize = 16;

/// Cores that work at once.
pub trait Cluster {
    /// How many there are; at least one.
    fn cores(&self) -> usize;

    /// Calls `work` once for every part, each on a core of its own as far as there are cores, and
    /// returns when all are done.
    fn fork<T: Send>(&self, parts: &mut [T], work: impl Fn(&mut T) + Sync);
}

/// An engine that copies between near and far memory while the cores work.
pub trait Dma {
    /// Starts the transfers, calls `work`, and returns when all of them are done.
    fn overlap(&mut self, transfers: [Option<Transfer<'_>>; 2], work: impl FnOnce());
}

/// A copy between buffers of one length.
#[derive(Debug)]
pub struct Transfer<'a> {
    from: &'a [u8],
    to: &'a mut [u8],
}

impl<'a> Transfer<'a> {
    /// As many bytes as both have.
    pub fn new(from: &'a [u8], to: &'a mut [u8]) -> Self {
        let len = from.len().min(to.len());
        Self { from: &from[..len], to: &mut to[..len] }
    }

    /// Does it with the core that calls.
    pub fn by_core(self) {
        self.to.copy_from_slice(self.from);
    }

    /// Where it would go from and to, and how many bytes, to decide who does it.
    pub fn raw(&self) -> (*const u8, *const u8, usize) {
        (self.from.as_ptr(), self.to.as_ptr(), self.to.len())
    }

    /// Source, destination and length, for an engine.
    pub fn into_raw(self) -> (*const u8, *mut u8, usize) {
        (self.from.as_ptr(), self.to.as_mut_ptr(), self.to.len())
    }
}

/// One core at work: no cluster at all, and the reference for tests.
#[derive(Clone, Copy, Debug)]
pub struct OneCore;

impl Cluster for OneCore {
    fn cores(&self) -> usize {
        1
    }

    fn fork<T: Send>(&self, parts: &mut [T], work: impl Fn(&mut T) + Sync) {
        parts.iter_mut().for_each(work);
    }
}

/// Copies by the core: no overlap.
impl Dma for OneCore {
    fn overlap(&mut self, transfers: [Option<Transfer<'_>>; 2], work: impl FnOnce()) {
        transfers.into_iter().flatten().for_each(Transfer::by_core);
        work();
    }
}

/// Streaming failed; nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamError {
    /// The caller's message is longer than what is left of the keystream.
    TooLong,
    /// The caller's source and destination have different lengths.
    LengthsDiffer,
    /// The caller's three buffers differ in length or hold no whole blocks.
    Buffers,
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLong => "the message is longer than what is left of the keystream",
            Self::LengthsDiffer => "source and destination have different lengths",
            Self::Buffers => "the three buffers must have one length, a multiple of 64",
        })
    }
}

impl core::error::Error for StreamError {}

impl<const DOUBLE_ROUNDS: usize, F: Form> Stream<DOUBLE_ROUNDS, F> {
    /// [`Stream::xor`] by all cores of a cluster.
    pub fn xor_on(&mut self, cluster: &impl Cluster, data: &mut [u8]) -> Result<(), KeystreamEnd> {
        if data.len() as u128 > self.remaining() {
            return Err(KeystreamEnd);
        }
        self.xor_with(data, |state, blocks| fork(cluster, state, DOUBLE_ROUNDS, blocks));
        Ok(())
    }

    /// Encrypts `from`, in far memory, to `to`, there too, through three near buffers: while the
    /// cores work on one, the engine fills the next and empties the last.
    pub fn stream_on(
        &mut self,
        cluster: &impl Cluster,
        dma: &mut impl Dma,
        from: &[u8],
        to: &mut [u8],
        buffers: [&mut [u8]; 3],
    ) -> Result<(), StreamError> {
        let [mut work, mut next, mut last] = buffers;
        let size = work.len();
        if size == 0 || size % BLOCK_BYTES > 0 || next.len() != size || last.len() != size {
            return Err(StreamError::Buffers);
        }
        if from.len() != to.len() {
            return Err(StreamError::LengthsDiffer);
        }
        if from.len() as u128 > self.remaining() {
            return Err(StreamError::TooLong);
        }
        let mut arriving = from.chunks(size);
        let mut leaving = to.chunks_mut(size);
        let mut ready = arriving.next();
        dma.overlap([ready.map(|from| Transfer::new(from, work)), None], || ());
        let mut worked = 0;
        while let Some(chunk) = ready {
            let following = arriving.next();
            let fill = following.map(|from| Transfer::new(from, next));
            let empty = if worked > 0 {
                leaving.next().map(|to| Transfer::new(&last[..worked], to))
            } else {
                None
            };
            let data = &mut work[..chunk.len()];
            dma.overlap([fill, empty], || {
                self.xor_with(data, |state, blocks| fork(cluster, state, DOUBLE_ROUNDS, blocks));
            });
            worked = chunk.len();
            ready = following;
            (work, next, last) = (next, last, work);
        }
        let empty = leaving.next().map(|to| Transfer::new(&last[..worked], to));
        dma.overlap([empty, None], || ());
        Ok(())
    }
}

/// The work of one core.
struct Part<'a> {
    state: State,
    data: &'a mut [Block],
}

/// Cuts the blocks among the cores.
fn fork(cluster: &impl Cluster, state: &State, double_rounds: usize, data: &mut [Block]) {
    let cores = cluster.cores().clamp(1, CORES_MAX).min(data.len());
    let mut counter = state.counter();
    let mut rest = data;
    let mut parts: [Option<Part<'_>>; CORES_MAX] = [const { None }; CORES_MAX];
    for (core, part) in parts.iter_mut().take(cores).enumerate() {
        // The first of them take one more where the blocks do not divide.
        let count = rest.len().div_ceil(cores - core);
        let (data, later) = core::mem::take(&mut rest).split_at_mut(count);
        let mut state = state.clone();
        state.set_counter(counter);
        counter = counter.wrapping_add(count as u32);
        *part = Some(Part { state, data });
        rest = later;
    }
    cluster.fork(&mut parts[..cores], |part| {
        if let Some(Part { state, data }) = part {
            backend::native().xor(state, double_rounds, data);
        }
    });
}
