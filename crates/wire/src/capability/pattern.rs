//! How rights name machines.

use alloc::borrow::ToOwned;
use alloc::string::String;
use core::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use super::Peer;
use crate::serialized_as_text::serialized_as_text;
use crate::{Name, PublicKey};

/// Machines.
///
/// | text | machines |
/// |---|---|
/// | `*` | any at all |
/// | `store` | the one of that name on the same device |
/// | `store@attic` | the one of that name on the device `attic` |
/// | `store@*` | those of that name on any device of the owner's |
/// | `*@attic` | all on the device `attic` |
/// | `*@*` | all on any device of the owner's |
/// | `#k7w3m-…` (62 characters) | the one with that public key |
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum PeerPattern {
    /// Any machine at all.
    Any,
    /// The one of that name on the same device.
    Here(Name),
    /// By name and device; `None` is any.
    Named {
        /// The machine's name.
        machine: Option<Name>,
        /// Its device's name.
        device: Option<Name>,
    },
    /// The one with that key, wherever it is.
    Key(PublicKey),
}

impl PeerPattern {
    /// Whether `peer` is one of them.
    pub fn matches(&self, peer: &Peer<'_>) -> bool {
        match self {
            Self::Any => true,
            Self::Here(name) => peer.is_here && peer.machine == Some(name),
            Self::Named { machine, device } => {
                let machine_fits =
                    peer.machine.is_some_and(|one| machine.as_ref().is_none_or(|two| one == two));
                let device_fits = match device {
                    None => peer.is_here || peer.device.is_some(),
                    Some(device) => peer.device == Some(device),
                };
                machine_fits && device_fits
            }
            Self::Key(key) => peer.key == Some(key),
        }
    }

    /// Whether all that `other` matches are surely among them.
    pub fn covers(&self, other: &Self) -> bool {
        let fits = |wide: &Option<Name>, narrow: &Option<Name>| wide.is_none() || wide == narrow;
        match (self, other) {
            (Self::Any, _) => true,
            (Self::Named { machine, device: None }, Self::Here(name)) => {
                machine.as_ref().is_none_or(|machine| machine == name)
            }
            (
                Self::Named { machine, device },
                Self::Named { machine: other_machine, device: other_device },
            ) => fits(machine, other_machine) && fits(device, other_device),
            (one, other) => one == other,
        }
    }
}

impl FromStr for PeerPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        if text == "*" {
            return Ok(Self::Any);
        }
        if let Some(key) = text.strip_prefix('#') {
            return key.parse().map(Self::Key).map_err(|_| PatternError::Key);
        }
        let part = |text: &str| match text {
            "*" => Ok(None),
            name => name.parse().map(Some).map_err(|_| PatternError::Form),
        };
        match text.split_once('@') {
            Some((machine, device)) => {
                Ok(Self::Named { machine: part(machine)?, device: part(device)? })
            }
            None => text.parse().map(Self::Here).map_err(|_| PatternError::Form),
        }
    }
}

impl fmt::Display for PeerPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |name: &Option<Name>| name.as_ref().map_or("*", Name::as_str).to_owned();
        match self {
            Self::Any => f.write_str("*"),
            Self::Here(name) => write!(f, "{name}"),
            Self::Named { machine, device } => write!(f, "{}@{}", part(machine), part(device)),
            Self::Key(key) => write!(f, "#{key}"),
        }
    }
}

serialized_as_text!(PeerPattern);

/// Why a text names no machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatternError {
    /// It is in none of the forms.
    Form,
    /// The text after `#` is no public key.
    Key,
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form => f.write_str(
                "machines are named NAME (on the same device), NAME@DEVICE, with * for any of \
                 either, #KEY, or * for any machine at all",
            ),
            Self::Key => f.write_str("what follows # is no public key"),
        }
    }
}

impl core::error::Error for PatternError {}
