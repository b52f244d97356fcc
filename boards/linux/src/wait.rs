//! Sleeping until a link has something.

use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tenure_hal::LinkError;

/// Why [`wait_any`] came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// A datagram has arrived.
    ByDatagram,
    /// The time is over.
    ByTimeout,
    /// A signal came.
    BySignal,
}

/// Sleeps until one of `links` can receive, `timeout` is over or a signal came.
///
/// # Errors
/// [`LinkError::Hardware`] if the system refuses, so that a loop doesn't spin unnoticed.
pub fn wait_any(links: &[&dyn AsFd], timeout: Duration) -> Result<Woken, LinkError> {
    let timeout = Timespec {
        tv_sec: timeout.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    };
    let polled = links.iter().map(|link| PollFd::from_borrowed_fd(link.as_fd(), PollFlags::IN));
    match poll(&mut polled.collect::<Vec<_>>(), Some(&timeout)) {
        Ok(0) => Ok(Woken::ByTimeout),
        Ok(_) => Ok(Woken::ByDatagram),
        Err(rustix::io::Errno::INTR) => Ok(Woken::BySignal),
        Err(_) => Err(LinkError::Hardware),
    }
}
