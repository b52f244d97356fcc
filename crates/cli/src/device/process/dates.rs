//! The date by which a device judges certificates, for what runs beside its loop.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tenure_board_linux::FileFlash;
use tenure_node::{Moment, Node};
use tenure_tls_client::{Date, Dates};
use tenure_wire::control::DateStatus;

/// The date as the node knew it last, and when that was; `None` while it doesn't. Copies know the same.
#[derive(Clone, Default)]
pub(super) struct SharedDate(Arc<Mutex<Option<(DateStatus, Instant)>>>);

impl SharedDate {
    /// Notes the node's date at this moment.
    pub(super) fn note(&self, node: &Node<FileFlash>, moment: &Moment<'_>) {
        let date = node.date(moment).map(|date| (date, Instant::now()));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = date;
    }

    /// The same, as TLS asks for it.
    pub(super) fn dates(&self) -> Dates {
        let Self(noted) = self.clone();
        Dates::new(move || {
            let noted = *noted.lock().unwrap_or_else(PoisonError::into_inner);
            let (DateStatus { unix_s, teller }, at) = noted?;
            Some(Date { since_1970: Duration::from_secs(unix_s) + at.elapsed(), teller })
        })
    }
}
