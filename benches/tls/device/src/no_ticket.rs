//! The place of a ticket in images that keep none.

use tenure_tls::PreSharedKey;

#[derive(Clone)]
pub(crate) struct Kept;

impl Kept {
    pub(crate) fn none() -> Self {
        Self
    }

    pub(crate) fn pre_shared_key(&self) -> Option<PreSharedKey<'_>> {
        None
    }
}
