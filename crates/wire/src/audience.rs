//! The callers who are told a machine's own words on its failures.

use serde::{Deserialize, Serialize};

/// The callers who are told why a call of a machine failed, in the machine's own words and with the place of a fault;
/// all others learn that it failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Audience {
    /// The device's owner alone.
    #[default]
    Owner,
    /// All who may call the function.
    Callers,
}

impl Audience {
    /// Its name in manifests.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Callers => "callers",
        }
    }
}
