//! A host's threads as a cluster, and one thread as its copy engine. The threads live as long as
//! the cluster: starting one takes longer than encrypting 100 KiB.
#![allow(unsafe_code)]

use std::any::Any;
use std::boxed::Box;
use std::io;
use std::mem::transmute;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::{self, JoinHandle};
use std::vec::Vec;

use super::{CORES_MAX, Cluster, Dma, Transfer};

/// The calling thread and others that wait for work.
#[derive(Debug)]
pub struct Threads {
    others: Vec<Worker>,
    /// Held by the fork under way.
    forking: Mutex<()>,
}

impl Threads {
    /// One for each processor. The error is the system's, which gave no thread.
    pub fn available() -> io::Result<Self> {
        Self::new(thread::available_parallelism().map_or(1, NonZero::get))
    }

    /// This many, between one and [`CORES_MAX`].
    pub fn new(cores: usize) -> io::Result<Self> {
        let others =
            (1..cores.clamp(1, CORES_MAX)).map(|_| Worker::start()).collect::<Result<_, _>>();
        Ok(Self { others: others?, forking: Mutex::new(()) })
    }
}

impl Cluster for Threads {
    fn cores(&self) -> usize {
        1 + self.others.len()
    }

    /// Called while another fork is under way, it does the work alone. A panic of `work` is the
    /// caller's, once every thread is back.
    fn fork<T: Send>(&self, parts: &mut [T], work: impl Fn(&mut T) + Sync) {
        let _forking = match self.forking.try_lock() {
            Ok(guard) => guard,
            // A fork that panicked has waited for its threads all the same.
            Err(TryLockError::Poisoned(guard)) => guard.into_inner(),
            Err(TryLockError::WouldBlock) => return parts.iter_mut().for_each(work),
        };
        let work = &work;
        let share = parts.len().div_ceil(self.cores());
        let mut shares = parts.chunks_mut(share);
        let first = shares.next().unwrap_or_default();
        let mut tasks: Vec<_> =
            shares.map(|share| move || share.iter_mut().for_each(work)).collect();
        let mut pending: Vec<_> =
            self.others.iter().zip(&mut tasks).map(|(worker, task)| worker.begin(task)).collect();
        first.iter_mut().for_each(work);
        for pending in pending.drain(..) {
            pending.finish();
        }
    }
}

/// A thread that copies while the caller works.
#[derive(Debug)]
pub struct CopyEngine(Worker);

impl CopyEngine {
    /// The error is the system's, which gave no thread.
    pub fn new() -> io::Result<Self> {
        Worker::start().map(Self)
    }
}

impl Dma for CopyEngine {
    fn overlap(&mut self, transfers: [Option<Transfer<'_>>; 2], work: impl FnOnce()) {
        let mut transfers = transfers;
        let mut copy = || {
            transfers.iter_mut().filter_map(Option::take).for_each(Transfer::by_core);
        };
        let pending = self.0.begin(&mut copy);
        work();
        pending.finish();
    }
}

/// A thread that does one task after the other.
#[derive(Debug)]
struct Worker {
    slot: Arc<Slot>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Slot {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Idle,
    Begun(Task),
    /// With what the task panicked, if it did.
    Done(Option<Box<dyn Any + Send>>),
    Stopping,
}

/// A task of a [`Pending`], which outlives it.
struct Task(*mut (dyn FnMut() + Send));

// SAFETY: the pointer is to something `Send` that the `Pending` borrows exclusively.
unsafe impl Send for Task {}

impl core::fmt::Debug for Task {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Task")
    }
}

impl Worker {
    fn start() -> io::Result<Self> {
        let slot = Arc::new(Slot::default());
        let theirs = Arc::clone(&slot);
        let thread = thread::Builder::new().name("cipher".into()).spawn(move || theirs.serve())?;
        Ok(Self { slot, thread: Some(thread) })
    }

    /// Has the thread do `task`, which is borrowed until the answer is dropped. It must be dropped:
    /// both callers do so before they return, or unwind.
    fn begin<'a>(&'a self, task: &'a mut (dyn FnMut() + Send + 'a)) -> Pending<'a> {
        // SAFETY: `Pending` waits for the thread before the borrow ends; only the lifetime changes.
        let task = unsafe {
            transmute::<*mut (dyn FnMut() + Send + 'a), *mut (dyn FnMut() + Send + 'static)>(task)
        };
        self.slot.set(State::Begun(Task(task)));
        Pending { slot: &self.slot }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.slot.set(State::Stopping);
        if let Some(thread) = self.thread.take() {
            // A task's panic was caught: the thread itself has none.
            let _ = thread.join();
        }
    }
}

impl Slot {
    /// The thread's loop, from its start on.
    fn serve(&self) {
        loop {
            let task = {
                let mut state = self.lock();
                loop {
                    match &*state {
                        State::Begun(task) => break task.0,
                        State::Stopping => return,
                        State::Idle | State::Done(_) => state = self.wait(state),
                    }
                }
            };
            // SAFETY: the task lives, and is nobody else's, until `Done` stands in the slot.
            let result = catch_unwind(AssertUnwindSafe(|| unsafe { (*task)() }));
            self.set(State::Done(result.err()));
        }
    }

    fn set(&self, state: State) {
        *self.lock() = state;
        self.changed.notify_all();
    }

    /// No code that could panic runs under the lock.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }
}

/// A task under way; dropping it waits for its end.
#[derive(Debug)]
struct Pending<'a> {
    slot: &'a Slot,
}

impl Pending<'_> {
    /// Waits, and panics as the task did.
    fn finish(self) {
        if let Some(panic) = self.wait() {
            resume_unwind(panic);
        }
    }

    fn wait(&self) -> Option<Box<dyn Any + Send>> {
        let mut state = self.slot.lock();
        loop {
            match &mut *state {
                State::Begun(_) => state = self.slot.wait(state),
                State::Done(panic) => {
                    let panic = panic.take();
                    *state = State::Idle;
                    return panic;
                }
                State::Idle | State::Stopping => return None,
            }
        }
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.wait();
    }
}
