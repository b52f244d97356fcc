//! A machine as its visitors may know it.

use tenure_wire::Name;

/// A machine on the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: Name,
    /// The functions that it exports.
    pub functions: Vec<String>,
    /// Whether its lease lets visitors call it.
    pub is_open: bool,
    /// Whether its lease lets it publish events, so that its functions can be observed.
    pub publishes: bool,
}
