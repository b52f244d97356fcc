//! Reports, receipts and lines of logs that devices bring, and the revocations that their owners sign.

pub(crate) mod logs;
pub(crate) mod receipts;
pub(crate) mod reports;
pub(crate) mod revoked;
