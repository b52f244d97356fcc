//! Ending cleanly on Ctrl-C.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use signal_hook::SigId;
use signal_hook::consts::{SIGINT, SIGTERM};

/// Tells a loop that it was asked to end. A second signal ends the process at once.
pub struct Stop {
    requested: Arc<AtomicBool>,
    /// The listeners, until this is dropped.
    listeners: Vec<SigId>,
}

impl Stop {
    /// Listens to Ctrl-C and to the request to terminate.
    ///
    /// # Errors
    /// The system refuses.
    pub fn on_signals() -> anyhow::Result<Self> {
        let requested = Arc::new(AtomicBool::new(false));
        let mut stop = Self { requested, listeners: Vec::new() };
        for signal in [SIGINT, SIGTERM] {
            stop.listen(signal).context("can't listen to signals")?;
        }
        Ok(stop)
    }

    /// Whether it was asked to end.
    pub fn is_requested(&self) -> bool {
        self.requested.load(Ordering::Relaxed)
    }

    fn listen(&mut self, signal: i32) -> std::io::Result<()> {
        let flag = &self.requested;
        let at_second = signal_hook::flag::register_conditional_shutdown(signal, 130, flag.clone());
        self.listeners.push(at_second?);
        self.listeners.push(signal_hook::flag::register(signal, flag.clone())?);
        Ok(())
    }
}

impl Drop for Stop {
    /// Listens no more: in a shell another command may have its own first signal.
    fn drop(&mut self) {
        for listener in self.listeners.drain(..) {
            signal_hook::low_level::unregister(listener);
        }
    }
}
