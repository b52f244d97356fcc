//! The common part of both commands: the time, the key log, sending what TLS made.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use tenure_tls::Now;

/// The time, as a connection needs it, on a clock that begins at `start`.
pub(super) fn now(start: Instant) -> Now {
    Now::new(start.elapsed(), SystemTime::now().duration_since(UNIX_EPOCH).ok())
}

/// Sends as much of `output` as goes through at once, and returns how much that was.
pub(super) fn send(stream: &mut TcpStream, output: &[u8]) -> std::io::Result<usize> {
    loop {
        return match stream.write(output) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) if is_patience(&error) => Ok(0),
            other => other,
        };
    }
}

/// Whether an error only says that nothing went through in time.
pub(super) fn is_patience(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// Appends `lines` to the key log at `path`, which only its owner may read if it is new.
pub(super) fn log_keys(path: Option<&Path>, lines: &str) -> anyhow::Result<()> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let Some(path) = path else { return Ok(()) };
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(lines.as_bytes()))
        .with_context(|| format!("can't write {}", path.display()))
}
