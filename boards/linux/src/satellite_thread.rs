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
use tenure_mesh::{Dispatcher, Parcel, Queues, Satellite, SatelliteNumber, Stack, Timers};

use crate::LinuxClock;

#[cfg(test)]
mod tests;

/// A satellite on a thread of its own. The thread ends when this is dropped.
#[derive(Debug)]
pub struct SatelliteThread {
    number: SatelliteNumber,
    /// `None` once the thread is told to end.
    events: Option<Sender<Parcel>>,
    wanted: Receiver<Parcel>,
    /// Can be read when something is wanted.
    bell: OwnedFd,
    thread: Option<JoinHandle<()>>,
}

impl SatelliteThread {
    /// Runs `satellite`, whose protocols have been started, as part of `stack`. Its time is that of
    /// `clock`, which must be the stack's.
    ///
    /// # Errors
    /// The system has no thread, or no file descriptor, left.
    pub fn start<D, Q, T, P, R>(
        stack: &mut Stack<D, Q, T>,
        mut satellite: Satellite<P, R>,
        clock: LinuxClock,
    ) -> io::Result<Self>
    where
        D: Dispatcher,
        Q: Queues,
        T: Timers,
        P: Queues + Send + 'static,
        R: Timers + Send + 'static,
    {
        let bell = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        let ring = bell.try_clone()?;
        let (events, inbox) = channel();
        let (outbox, wanted) = channel();
        let protocols = satellite.protocols();
        let thread = std::thread::Builder::new().name("mesh satellite".to_owned());
        let thread = thread.spawn(move || run(&mut satellite, clock, &inbox, &outbox, &ring))?;
        let number = stack.attach(&protocols);
        Ok(Self { number, events: Some(events), wanted, bell, thread: Some(thread) })
    }

    /// Hands events to the thread, and what its protocols want done to the stack; to be called
    /// whenever the stack was polled, and when the thread rings.
    pub fn exchange<D: Dispatcher, Q: Queues, T: Timers>(
        &mut self,
        clock: LinuxClock,
        stack: &mut Stack<D, Q, T>,
    ) {
        // What rings after this is met the next time.
        let _ = rustix::io::read(&self.bell, &mut [0; 8]);
        while let Some(parcel) = stack.parcel_for(self.number) {
            // A thread whose protocol panicked takes nothing any more; the stack lives on.
            let _ = self.events.as_ref().map(|events| events.send(parcel));
        }
        while let Ok(parcel) = self.wanted.try_recv() {
            stack.accept(clock.now(), parcel);
        }
    }

    /// Whether the thread runs: a protocol that panics ends it.
    pub fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Ends the thread, and takes its protocols out of the stack.
    pub fn stop<D: Dispatcher, Q: Queues, T: Timers>(self, stack: &mut Stack<D, Q, T>) {
        stack.detach(self.number);
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
