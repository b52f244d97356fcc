//! Bytes from an interrupt to the main loop: a ring with one writer and one reader on one core.

use core::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

/// Room for a frame and a half at 115,200 bits a second, while the processor is busy with a signature.
const BYTES: usize = 2048;

/// The ring. Its two counters only grow, each written by one side.
#[derive(Debug)]
pub(crate) struct Inbox {
    bytes: [AtomicU8; BYTES],
    pushed: AtomicUsize,
    popped: AtomicUsize,
}

impl Inbox {
    pub(crate) const fn new() -> Self {
        Self {
            bytes: [const { AtomicU8::new(0) }; BYTES],
            pushed: AtomicUsize::new(0),
            popped: AtomicUsize::new(0),
        }
    }

    /// Takes a byte; one that finds no room is lost. For the interrupt alone.
    pub(crate) fn push(&self, byte: u8) {
        let pushed = self.pushed.load(Ordering::Relaxed);
        if pushed.wrapping_sub(self.popped.load(Ordering::Acquire)) < BYTES {
            self.bytes[pushed % BYTES].store(byte, Ordering::Relaxed);
            self.pushed.store(pushed.wrapping_add(1), Ordering::Release);
        }
    }

    /// The oldest byte. For the main loop alone.
    pub(crate) fn pop(&self) -> Option<u8> {
        let popped = self.popped.load(Ordering::Relaxed);
        if popped == self.pushed.load(Ordering::Acquire) {
            return None;
        }
        let byte = self.bytes[popped % BYTES].load(Ordering::Relaxed);
        self.popped.store(popped.wrapping_add(1), Ordering::Release);
        Some(byte)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pushed.load(Ordering::Acquire) == self.popped.load(Ordering::Relaxed)
    }
}

const _: () = assert!(BYTES.is_power_of_two(), "the counters may run over");
