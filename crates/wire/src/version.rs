//! A package's version, `major.minor.patch`.

use alloc::string::String;
use core::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::serialized_as_text::serialized_as_text;

/// A version; later ones compare as greater.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(try_from = "String", into = "String")]
pub struct Version {
    /// Grows when callers have to change.
    pub major: u16,
    /// Grows when there is something new.
    pub minor: u16,
    /// Grows when something was mended.
    pub patch: u16,
}

impl FromStr for Version {
    type Err = VersionError;

    fn from_str(text: &str) -> Result<Self, VersionError> {
        let mut parts = text.split('.').map(number);
        let mut next = || parts.next().flatten().ok_or(VersionError);
        let version = Self { major: next()?, minor: next()?, patch: next()? };
        if parts.next().is_some() { Err(VersionError) } else { Ok(version) }
    }
}

/// A number in its one form: digits without leading zeros.
fn number(text: &str) -> Option<u16> {
    let canonical = text == "0" || !text.starts_with(['0', '+']);
    text.parse().ok().filter(|_| canonical)
}

serialized_as_text!(Version);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// A text is no version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionError;

impl fmt::Display for VersionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a version is three numbers from 0 to 65535, such as 1.0.2")
    }
}

impl core::error::Error for VersionError {}

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;

    use super::*;

    #[test]
    fn version_is_three_numbers_in_their_one_form() {
        for text in ["0.0.0", "1.2.3", "65535.0.10"] {
            assert_eq!(text.parse::<Version>().map(|version| version.to_string()), Ok(text.into()));
        }
        for text in ["", "1", "1.2", "1.2.3.4", "1.2.x", "01.2.3", "+1.2.3", "1.2.65536", "1..2"] {
            assert_eq!(text.parse::<Version>(), Err(VersionError), "{text}");
        }
    }
}
