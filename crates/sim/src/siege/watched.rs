//! The view that a build for the hunt has of each key's use; other builds see nothing.

use tenure_hal::planted::Weakness;

/// Observations since [`begin`].
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    pub(super) sealed: u64,
    pub(super) nonce_used_twice: Option<String>,
    pub(super) signed: u64,
    pub(super) verified: u64,
    pub(super) text_bytes_max: usize,
}

/// Plants a weakness, or none, and begins to watch.
#[cfg(planted)]
pub(crate) fn begin(weakness: Option<Weakness>) {
    tenure_hal::planted::plant(weakness);
}

#[cfg(not(planted))]
pub(crate) fn begin(weakness: Option<Weakness>) {
    debug_assert!(weakness.is_none(), "this build can't plant: it lacks `--cfg planted`");
}

#[cfg(planted)]
pub(super) fn seen() -> Seen {
    let tenure_hal::planted::Seen { sealed, nonce_used_twice, signed, verified, text_bytes_max } =
        tenure_hal::planted::seen();
    Seen { sealed, nonce_used_twice, signed, verified, text_bytes_max }
}

#[cfg(not(planted))]
pub(super) fn seen() -> Seen {
    Seen::default()
}
