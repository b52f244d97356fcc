//! The room on the disk that is left for the directory: what people push and what devices tell of their past never
//! takes it, so that a full disk costs nobody their registration. Nor do new devices and what people change take the last of it,
//! which is for dismissals, revocations and the ends of passes: whoever filled the disk can be put out.

use super::engine::Room;
use super::sql::{self, Connection};

/// The kinds of rows that stop before the disk's limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeps {
    /// Packages and whatever else is pushed.
    Registry,
    /// Receipts, reports, and what people change and begin, which go on after the registry is full.
    History,
    /// New devices, which go on after those.
    Devices,
}

/// The bytes that a device's report may add to the database: 64 machines, 32 faults and their lines.
pub(crate) const REPORT_BYTES: usize = 64 * 1024;
/// The pages beyond their bytes that rows may take: of indexes, and of trees that grow.
const PAGES_BESIDE: i64 = 16;

impl Keeps {
    /// The share of the limit that this kind leaves to those that matter more.
    fn left_alone(self, pages_max: i64) -> i64 {
        match self {
            Self::Registry => pages_max / 8,
            Self::History => pages_max / 16,
            Self::Devices => pages_max / 32,
        }
    }
}

/// Whether so many bytes more of that kind leave enough of the disk's limit, as this connection has it.
///
/// # Errors
/// The database fails.
pub(crate) fn is_left(
    connection: &Connection,
    keeps: Keeps,
    bytes: usize,
) -> Result<bool, sql::Error> {
    let Room { used, most, page_bytes } = connection.room()?;
    let wanted = i64::try_from(bytes).unwrap_or(i64::MAX) / page_bytes.max(1) + PAGES_BESIDE;
    Ok(used.saturating_add(wanted) <= most - keeps.left_alone(most))
}
