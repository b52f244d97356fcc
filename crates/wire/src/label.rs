//! Labels of devices, by which an owner selects many at once.

use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Name;

/// A label of a device, as `site=harbour`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Label {
    /// The subject.
    pub key: Name,
    /// The value.
    pub value: Name,
}

impl FromStr for Label {
    type Err = LabelError;

    fn from_str(text: &str) -> Result<Self, LabelError> {
        let (key, value) = text.split_once('=').ok_or(LabelError)?;
        let name = |text: &str| text.parse::<Name>().map_err(|_| LabelError);
        Ok(Self { key: name(key)?, value: name(value)? })
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.key, self.value)
    }
}

/// A text is no label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LabelError;

impl fmt::Display for LabelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a label is KEY=VALUE, both of a-z, 0-9, - and _, a letter first")
    }
}

impl core::error::Error for LabelError {}
