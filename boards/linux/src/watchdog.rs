//! A watchdog for a device that is a process: a thread that ends it when its loop stands still.
//!
//! Retained memory of a microcontroller is memory of the process here. A bite writes it to
//! a file, which the next start finds; a process that is killed, as if it had lost its power, leaves
//! none.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use tenure_hal::Retained;

/// How often the thread looks, in each period.
const LOOKS: u32 = 5;
/// The status with which a process ends that its watchdog bit: a temporary failure (`EX_TEMPFAIL`,
/// sysexits.h), so that a supervisor starts it again.
pub const BITTEN: i32 = 75;

/// A watchdog that has been set.
#[derive(Debug)]
pub struct Watchdog {
    fed: Arc<AtomicU64>,
    retained: RetainedBytes,
}

/// Memory of which a bite keeps a copy.
#[derive(Clone, Debug, Default)]
pub struct RetainedBytes(Arc<Mutex<Vec<u8>>>);

impl RetainedBytes {
    fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Retained for RetainedBytes {
    fn write(&mut self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.clear();
        kept.extend_from_slice(bytes);
    }
}

impl Watchdog {
    /// The retained memory that a bite left in `file`, if the last process ended by one; it is asked for once.
    ///
    /// # Errors
    /// The file system's.
    pub fn take_bite(file: &Path) -> io::Result<Option<Vec<u8>>> {
        match fs::read(file) {
            Ok(bytes) => fs::remove_file(file).map(|()| Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sets the watchdog: unless it is fed within each `period`, it leaves what is retained in `file`, says so to standard
    /// error and ends the process with [`BITTEN`].
    pub fn set(file: &Path, period: Duration) -> Self {
        Self::set_to(file, period, move || {
            let _ = writeln!(io::stderr(), "{}", last_words(period));
            std::process::exit(BITTEN)
        })
    }

    fn set_to(file: &Path, period: Duration, bite: impl FnOnce() + Send + 'static) -> Self {
        let watchdog = Self { fed: Arc::default(), retained: RetainedBytes::default() };
        let (fed, retained) = (Arc::downgrade(&watchdog.fed), watchdog.retained.clone());
        let file: PathBuf = file.to_owned();
        thread::spawn(move || {
            let (mut last, mut hungry) = (0, 0);
            // Looks are counted, not time, so that a process that was stopped isn't bitten.
            while hungry < LOOKS {
                thread::sleep(period / LOOKS);
                let Some(fed) = fed.upgrade() else { return };
                let now = fed.load(Ordering::Relaxed);
                hungry = if now == last { hungry + 1 } else { 0 };
                last = now;
            }
            // Without the file the bite is put down to nobody; the process ends all the same.
            let _ = fs::write(&file, retained.bytes());
            bite();
        });
        watchdog
    }

    /// Says that the loop goes on.
    pub fn feed(&self) {
        self.fed.fetch_add(1, Ordering::Relaxed);
    }

    /// The memory of which a bite keeps a copy.
    pub fn retained(&self) -> RetainedBytes {
        self.retained.clone()
    }
}

/// What a process says that its watchdog ends.
fn last_words(period: Duration) -> String {
    format!(
        "error: the device's loop has done nothing for {} s, so its watchdog ends the process, with the status {BITTEN}; \
         started again, the device puts that down to the machine whose turn it was, if it was one's",
        period.as_secs()
    )
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn process_that_its_watchdog_ends_says_why_and_with_which_status() {
        let words = last_words(Duration::from_secs(60));
        assert!(words.starts_with("error: ") && words.contains("60 s") && words.contains("75"));
    }

    #[test]
    fn a_bite_leaves_what_was_retained_once() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("watchdog.bin");
        assert_eq!(Watchdog::take_bite(&file).unwrap(), None);
        let (sender, bitten) = mpsc::channel();
        let bite = move || sender.send(()).unwrap();
        let watchdog = Watchdog::set_to(&file, Duration::from_millis(5), bite);
        watchdog.retained().write(b"who was running");
        bitten.recv().unwrap();
        assert_eq!(Watchdog::take_bite(&file).unwrap().as_deref(), Some(&b"who was running"[..]));
        assert_eq!(Watchdog::take_bite(&file).unwrap(), None);
    }

    #[test]
    fn a_watchdog_that_is_gone_bites_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let (sender, bitten) = mpsc::channel::<()>();
        let bite = move || sender.send(()).unwrap();
        drop(Watchdog::set_to(&folder.path().join("w"), Duration::from_millis(5), bite));
        assert!(bitten.recv().is_err(), "the thread ends");
    }
}
