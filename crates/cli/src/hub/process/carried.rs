//! The datagrams that come by connections to the pages' port, where a network blocks UDP.

use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use anyhow::Context as _;
use tenure_hub::{Hub, Moment};
use tenure_hub_server::{Database, Running};

/// The hub's thread's end of all connections.
pub(super) struct ByConnections {
    running: Running,
    /// Readable when a datagram came.
    rung: UnixStream,
}

impl ByConnections {
    /// Lets the pages of this hub take connections.
    ///
    /// # Errors
    /// The system has no pair of sockets.
    pub(super) fn listen(running: &Running) -> anyhow::Result<Self> {
        let rung = running.carried().listen().context("can't make a pair of sockets")?;
        Ok(Self { running: running.clone(), rung })
    }

    /// Hands the hub what came, `most` datagrams of it.
    pub(super) fn receive(&self, hub: &mut Hub<Database>, moment: &mut Moment<'_>, most: usize) {
        let carried = self.running.carried();
        for _ in 0..most {
            let Some((from, datagram)) = carried.take(&self.rung) else { break };
            hub.receive(moment, from.into(), &datagram);
            carried.judge(&from, hub.knows_host(&from.into()));
        }
    }
}

impl AsFd for ByConnections {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.rung.as_fd()
    }
}
