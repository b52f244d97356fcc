//! Ending cleanly on Ctrl-C.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use signal_hook::consts::{SIGINT, SIGTERM};

/// Tells a loop that it was asked to end. A second signal ends the process at once.
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Listens to Ctrl-C and to the request to terminate.
    ///
    /// # Errors
    /// The system refuses.
    pub fn on_signals() -> anyhow::Result<Self> {
        let requested = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register_conditional_shutdown(signal, 130, requested.clone())
                .and_then(|_| signal_hook::flag::register(signal, requested.clone()))
                .context("can't listen to signals")?;
        }
        Ok(Self(requested))
    }

    /// Whether it was asked to end.
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
