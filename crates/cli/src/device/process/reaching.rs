//! The requests that a device's machines send to servers outside.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use tenure_board_linux::FileFlash;
use tenure_hal::Instant;
use tenure_node::{Door as _, Input, Moment};
use tenure_reach::{Reach, Servers};
use tenure_replay::Recorded;
use tenure_tls_client::Dates;

use super::servers;
use crate::tls::files::Authorities;

/// The way of machines to servers outside.
pub(super) struct Reaching(Reach);

impl Reaching {
    /// Servers are judged by the authorities in the files at `paths`, or by the system's if there are none, but for those
    /// of which the file `single` says more; their certificates are judged by `dates`.
    ///
    /// # Errors
    /// `single` can't be used, or the system has no pair of sockets.
    pub(super) fn new(
        paths: Vec<PathBuf>,
        single: Option<&Path>,
        dates: Dates,
    ) -> anyhow::Result<Self> {
        let reach = Reach::new(judged(paths, single)?, dates);
        reach.map(Self).context("machines can't reach servers")
    }

    /// The state of all requests.
    pub(super) fn state(&self) -> tenure_reach::State {
        self.0.state()
    }

    /// Hands in what servers have answered.
    pub(super) fn receive(&mut self, moment: &mut Moment<'_>, node: &mut Recorded<FileFlash>) {
        while let Some(visited) = self.0.visited() {
            node.take(moment, Input::Visited(visited));
        }
    }

    /// Sends what machines ask.
    pub(super) fn transmit(&mut self, now: Instant, node: &mut Recorded<FileFlash>) {
        while let Some(visit) = node.visit() {
            self.0.visit(now, visit);
        }
    }
}

/// Servers, and whom they are judged by.
///
/// # Errors
/// `single` can't be used.
pub(super) fn judged(paths: Vec<PathBuf>, single: Option<&Path>) -> anyhow::Result<Servers> {
    let known = single.map(servers::load).transpose()?.unwrap_or_default();
    let load = move || match Authorities::load(&paths) {
        Ok(authorities) => Ok(authorities.certificates()),
        Err(error) => Err(format!("{error:#}")),
    };
    Ok(Servers::new(load).with(known))
}

impl AsFd for Reaching {
    /// Readable when a server has answered.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
