//! The thread's ends of what it and its device hand each other.

use std::collections::VecDeque;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError};

use crate::state::SharedState;
use crate::{Published, Said};

/// The thread's end of what comes from the device.
pub(crate) struct FromDevice {
    pub(crate) events: Receiver<Published>,
    /// Events for which there was no room.
    pub(crate) lost: Arc<AtomicU64>,
    pub(crate) is_over: Arc<AtomicBool>,
    /// Readable when there is something to do.
    pub(crate) woken: UnixStream,
    /// Makes that readable.
    pub(crate) waker: UnixStream,
}

/// The thread's end of what goes to the device.
pub(crate) struct ToDevice {
    sender: SyncSender<Said>,
    teller: UnixStream,
    /// The rest, for which the device has had no room yet.
    waiting: VecDeque<Said>,
    /// For the device to read.
    pub(crate) state: SharedState,
}

impl ToDevice {
    pub(crate) fn new(sender: SyncSender<Said>, teller: UnixStream, state: SharedState) -> Self {
        Self { sender, teller, waiting: VecDeque::new(), state }
    }

    /// Says something, once there is room for it.
    pub(crate) fn say(&mut self, said: Said) {
        self.waiting.push_back(said);
        self.hand_over();
    }

    /// Whether the device has had room for all that was said.
    pub(crate) fn is_taken(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Hands over what waits, as far as there is room.
    pub(crate) fn hand_over(&mut self) {
        let mut has_told = false;
        while let Some(said) = self.waiting.pop_front() {
            match self.sender.try_send(said) {
                Ok(()) => has_told = true,
                Err(TrySendError::Full(said)) => {
                    self.waiting.push_front(said);
                    break;
                }
                // The device is gone.
                Err(TrySendError::Disconnected(_)) => {}
            }
        }
        if has_told {
            // A full pipe wakes it anyhow.
            let _ = (&self.teller).write(&[0]);
        }
    }
}
