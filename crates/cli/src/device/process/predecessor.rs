//! A device that starts while the one before it still ends: after a kill the system may take a moment to let go
//! of what the process held.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;
use tenure_board_linux::{OpenError, OpenProblem};

use crate::terminal::output::Output;
use crate::terminal::stop::Stop;

/// The longest wait: a process that was killed while it writes ends when its disk has answered.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// The time between two attempts.
const AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Opens the flash in `folder` by `open`, again and again while another process holds it, and says so.
///
/// # Errors
/// As `open`; the other process still holds it after [`WAIT_MAX`], or the user has had enough.
pub(super) fn wait_for<T>(
    folder: &Path,
    open: impl Fn() -> anyhow::Result<T>,
    stop: &Stop,
    output: &Output,
) -> anyhow::Result<T> {
    let mut until = None;
    loop {
        let error = match open() {
            Err(error) if is_in_use(&error) => error,
            done => return done,
        };
        let until = *until.get_or_insert_with(|| {
            let (folder, seconds) = (folder.display(), WAIT_MAX.as_secs());
            output.line(
                &format!("another process has {folder} in use; waiting {seconds} s for its end"),
                &json!({ "event": "folder-in-use", "wait_s": seconds }),
            );
            Instant::now() + WAIT_MAX
        });
        if Instant::now() >= until || stop.is_requested() {
            return Err(error);
        }
        std::thread::sleep(AGAIN_AFTER);
    }
}

fn is_in_use(error: &anyhow::Error) -> bool {
    let problem = error.downcast_ref::<OpenError>().map(|error| &error.problem);
    matches!(problem, Some(OpenProblem::InUse))
}
