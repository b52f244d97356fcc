//! The time as this computer has it.

/// Placements and enrolments are numbered by the time they are made, so that a later one counts
/// more.
pub fn now_in_milliseconds() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}
