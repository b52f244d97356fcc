//! Making room in what peers can fill: what was heard longest ago goes.

use alloc::vec::Vec;

use tenure_hal::Instant;

/// Makes room for one more of `entries_max` entries.
pub(crate) fn drop_oldest<T>(
    entries: &mut Vec<T>,
    entries_max: usize,
    heard: impl Fn(&T) -> Instant,
) {
    while !entries.is_empty() && entries.len() >= entries_max {
        let oldest = entries.iter().enumerate().min_by_key(|(_, entry)| heard(entry));
        if let Some((at, _)) = oldest {
            entries.swap_remove(at);
        }
    }
}
