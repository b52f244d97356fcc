//! A thread for protocols whose handlers take long: a [`Satellite`] that doesn't hold up its stack.
//!
//! Events go to the thread and what its protocols want done comes back over channels, which the
//! stack's bound of waiting parcels keeps short.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, eventfd};
use tenure_hal::Clock as _;
use tenure_mesh::{Parcel, Queues, Satellite, Timers};

use crate::LinuxClock;

#[cfg(test)]
mod tests;

/// A satellite on a thread of its own. The thread ends when this is dropped.
#[derive(Debug)]
pub struct SatelliteThread {
    /// `None` once the thread is told to end.
    events: Option<Sender<Parcel>>,
    wanted: Receiver<Parcel>,
    /// Can be read when something is wanted.
    bell: OwnedFd,
    thread: Option<JoinHandle<()>>,
}

impl SatelliteThread {
    /// Runs `satellite`, whose protocols have been started and are attached to their stack. Its time is that of
    /// `clock`, which must be the stack's.
    ///
    /// # Errors
    /// The system has no thread, or no file descriptor, left.
    pub fn start<P, R>(mut satellite: Satellite<P, R>, clock: LinuxClock) -> io::Result<Self>
    where
        P: Queues + Send + 'static,
        R: Timers + Send + 'static,
    {
        let bell = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        let ring = bell.try_clone()?;
        let (events, inbox) = channel();
        let (outbox, wanted) = channel();
        let thread = std::thread::Builder::new().name("mesh satellite".to_owned());
        let thread = thread.spawn(move || run(&mut satellite, clock, &inbox, &outbox, &ring))?;
        Ok(Self { events: Some(events), wanted, bell, thread: Some(thread) })
    }

    /// Hands the thread an event.
    pub fn hand_over(&self, event: Parcel) {
        // A thread whose protocol panicked takes nothing any more; the stack lives on.
        let _ = self.events.as_ref().map(|events| events.send(event));
    }

    /// The next action that the thread's protocols want of the stack; to be asked until there is none, whenever the
    /// stack was polled and when the thread rings.
    pub fn wanted(&self) -> Option<Parcel> {
        // A later ring is met the next time.
        let _ = rustix::io::read(&self.bell, &mut [0; 8]);
        self.wanted.try_recv().ok()
    }

    /// Whether the thread runs: a protocol that panics ends it.
    pub fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }
}

impl AsFd for SatelliteThread {
    /// Can be read when something is wanted of the stack: see [`crate::wait_any`].
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

impl Drop for SatelliteThread {
    fn drop(&mut self) {
        self.events = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run<P: Queues, R: Timers>(
    satellite: &mut Satellite<P, R>,
    clock: LinuxClock,
    inbox: &Receiver<Parcel>,
    outbox: &Sender<Parcel>,
    bell: &OwnedFd,
) {
    loop {
        let next = satellite.poll(clock.now());
        let mut rings = false;
        while let Some(parcel) = satellite.parcel() {
            rings |= outbox.send(parcel).is_ok();
        }
        if rings {
            let _ = rustix::io::write(bell, &1_u64.to_ne_bytes());
        }
        let event = match next {
            Some(at) => inbox.recv_timeout(at.since(clock.now())),
            None => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match event {
            Ok(parcel) => satellite.accept(&parcel),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}
