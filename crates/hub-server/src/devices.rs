//! What devices tell the hub, and what their owners say of them: reports, receipts, lines of logs, revocations.

pub(crate) mod logs;
pub(crate) mod receipts;
pub(crate) mod reports;
pub(crate) mod revoked;
