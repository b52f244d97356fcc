//! A host's threads as a cluster, and one thread as its copy engine.

use std::num::NonZero;
use std::thread;

use super::{CORES_MAX, Cluster, Dma, Transfer};

/// As many threads as asked for; they live as long as one fork.
#[derive(Clone, Copy, Debug)]
pub struct Threads(usize);

impl Threads {
    /// One for each processor.
    pub fn available() -> Self {
        Self::new(thread::available_parallelism().map_or(1, NonZero::get))
    }

    /// This many, between one and [`CORES_MAX`].
    pub fn new(cores: usize) -> Self {
        Self(cores.clamp(1, CORES_MAX))
    }
}

impl Cluster for Threads {
    fn cores(&self) -> usize {
        self.0
    }

    fn fork<T: Send>(&self, parts: &mut [T], work: impl Fn(&mut T) + Sync) {
        let Some((first, others)) = parts.split_first_mut() else { return };
        thread::scope(|scope| {
            let work = &work;
            for part in others {
                scope.spawn(move || work(part));
            }
            work(first);
        });
    }
}

/// A thread that copies while the caller works.
#[derive(Clone, Copy, Debug)]
pub struct CopyEngine;

impl Dma for CopyEngine {
    fn overlap(&mut self, transfers: [Option<Transfer<'_>>; 2], work: impl FnOnce()) {
        thread::scope(|scope| {
            scope.spawn(move || transfers.into_iter().flatten().for_each(Transfer::by_core));
            work();
        });
    }
}
