//! Reports, receipts and lines of logs that devices bring, the revocations that their owners sign, and what is left of those
//! that were forgotten.

pub(crate) mod logs;
pub(crate) mod past;
pub(crate) mod receipts;
pub(crate) mod reports;
pub(crate) mod revoked;
