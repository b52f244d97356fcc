//! Ending cleanly on Ctrl-C.

use std::io::Read as _;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use signal_hook::SigId;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::terminal::output::has_reader;

/// The longest that Ctrl-C waits for a loop that rests.
const NAP: Duration = Duration::from_millis(200);
/// The complaint if the system refuses.
const FAILED: &str = "can't listen to signals";

/// Tells a loop that it was asked to end. Copies are told the same.
#[derive(Clone)]
pub struct Stop {
    requested: Arc<AtomicBool>,
    /// The listeners, until the last copy is dropped.
    listeners: Arc<Listeners>,
}

struct Listeners {
    ids: Vec<SigId>,
    /// A signal's handler writes to the second, after it has set the flag.
    pipe: (UnixStream, UnixStream),
}

impl Stop {
    /// Listens to Ctrl-C and to the request to terminate. A second signal ends the process at once.
    ///
    /// # Errors
    /// The system refuses.
    pub fn on_signals() -> anyhow::Result<Self> {
        let requested = Arc::new(AtomicBool::new(false));
        let mut listeners = Listeners::new()?;
        for signal in [SIGINT, SIGTERM] {
            let flag = requested.clone();
            let at_second = signal_hook::flag::register_conditional_shutdown(signal, 130, flag);
            listeners.ids.push(at_second.context(FAILED)?);
            listeners.listen(signal, &requested)?;
        }
        Ok(Self { requested, listeners: Arc::new(listeners) })
    }

    /// Listens to Ctrl-C, which ends no process from now on, however often it is pressed.
    ///
    /// # Errors
    /// The system refuses.
    pub fn on_interrupts() -> anyhow::Result<Self> {
        let requested = Arc::new(AtomicBool::new(false));
        let mut listeners = Listeners::new()?;
        listeners.listen(SIGINT, &requested)?;
        Ok(Self { requested, listeners: Arc::new(listeners) })
    }

    /// Waits for `span`; whether somebody still reads, and nobody has asked for an end meanwhile.
    pub fn rest(&self, span: Duration) -> bool {
        let mut left = span;
        let is_wanted = || has_reader() && !self.is_requested();
        while !left.is_zero() && is_wanted() {
            let nap = left.min(NAP);
            std::thread::sleep(nap);
            left -= nap;
        }
        is_wanted()
    }

    /// Whether it was asked to end.
    pub fn is_requested(&self) -> bool {
        self.requested.load(Ordering::Relaxed)
    }

    /// Forgets that it was asked.
    pub fn reset(&self) {
        self.requested.store(false, Ordering::Relaxed);
        let (mut heard, mut bytes) = (&self.listeners.pipe.0, [0; 16]);
        while heard.read(&mut bytes).is_ok_and(|length| length > 0) {}
    }
}

impl AsFd for Stop {
    /// Readable from the first signal on, so that a loop may wait for it beside its sockets.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listeners.pipe.0.as_fd()
    }
}

impl Listeners {
    fn new() -> anyhow::Result<Self> {
        let pipe = UnixStream::pair().context(FAILED)?;
        pipe.0.set_nonblocking(true).context(FAILED)?;
        Ok(Self { ids: Vec::new(), pipe })
    }

    fn listen(&mut self, signal: i32, flag: &Arc<AtomicBool>) -> anyhow::Result<()> {
        let listener = signal_hook::flag::register(signal, flag.clone());
        self.ids.push(listener.context(FAILED)?);
        let end = self.pipe.1.try_clone().context(FAILED)?;
        let waker = signal_hook::low_level::pipe::register(signal, end);
        self.ids.push(waker.context(FAILED)?);
        Ok(())
    }
}

impl Drop for Listeners {
    /// Listens no more: in a shell another command may have its own first signal.
    fn drop(&mut self) {
        for listener in self.ids.drain(..) {
            signal_hook::low_level::unregister(listener);
        }
    }
}

#[cfg(test)]
mod tests {
    use signal_hook::consts::SIGUSR1;
    use tenure_board_linux::{Woken, wait_any};
    use tenure_testbed::patience;

    use super::*;

    #[test]
    fn signal_ends_a_wait() {
        // By one that no other test of this process listens to.
        let requested = Arc::new(AtomicBool::new(false));
        let mut listeners = Listeners::new().unwrap();
        listeners.listen(SIGUSR1, &requested).unwrap();
        let stop = Stop { requested, listeners: Arc::new(listeners) };
        signal_hook::low_level::raise(SIGUSR1).unwrap();
        assert_eq!(wait_any(&[&stop], patience()), Ok(Woken::ByDatagram));
        assert!(stop.is_requested());
        stop.reset();
        assert_eq!(wait_any(&[&stop], Duration::ZERO), Ok(Woken::ByTimeout));
        assert!(!stop.is_requested());
    }
}
