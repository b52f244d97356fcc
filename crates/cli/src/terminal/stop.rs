//! Ending cleanly on Ctrl-C.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use signal_hook::SigId;
use signal_hook::consts::{SIGINT, SIGTERM};

/// Tells a loop that it was asked to end. Copies are told the same.
#[derive(Clone)]
pub struct Stop {
    requested: Arc<AtomicBool>,
    /// The listeners, until the last copy is dropped.
    _listeners: Arc<Listeners>,
}

#[derive(Default)]
struct Listeners(Vec<SigId>);

impl Stop {
    /// Listens to Ctrl-C and to the request to terminate. A second signal ends the process at once.
    ///
    /// # Errors
    /// The system refuses.
    pub fn on_signals() -> anyhow::Result<Self> {
        let requested = Arc::new(AtomicBool::new(false));
        let mut listeners = Listeners::default();
        for signal in [SIGINT, SIGTERM] {
            let flag = requested.clone();
            let at_second = signal_hook::flag::register_conditional_shutdown(signal, 130, flag);
            listeners.0.push(at_second.context("can't listen to signals")?);
            listeners.listen(signal, &requested)?;
        }
        Ok(Self { requested, _listeners: Arc::new(listeners) })
    }

    /// Listens to Ctrl-C, which ends no process from now on, however often it is pressed.
    ///
    /// # Errors
    /// The system refuses.
    pub fn on_interrupts() -> anyhow::Result<Self> {
        let requested = Arc::new(AtomicBool::new(false));
        let mut listeners = Listeners::default();
        listeners.listen(SIGINT, &requested)?;
        Ok(Self { requested, _listeners: Arc::new(listeners) })
    }

    /// Whether it was asked to end.
    pub fn is_requested(&self) -> bool {
        self.requested.load(Ordering::Relaxed)
    }

    /// Forgets that it was asked.
    pub fn reset(&self) {
        self.requested.store(false, Ordering::Relaxed);
    }
}

impl Listeners {
    fn listen(&mut self, signal: i32, flag: &Arc<AtomicBool>) -> anyhow::Result<()> {
        let listener = signal_hook::flag::register(signal, flag.clone());
        self.0.push(listener.context("can't listen to signals")?);
        Ok(())
    }
}

impl Drop for Listeners {
    /// Listens no more: in a shell another command may have its own first signal.
    fn drop(&mut self) {
        for listener in self.0.drain(..) {
            signal_hook::low_level::unregister(listener);
        }
    }
}
