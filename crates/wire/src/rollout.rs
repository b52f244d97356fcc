//! Rollouts as a device and its hub speak of them: the device asks, the hub names one step, the device
//! fetches the package in parts and says what it sees.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::{Digest, Label, Name, Version, list};

/// The most bytes of a package in one answer.
pub const PART_BYTES_MAX: usize = 4096;

/// A device asks its hub whether there is something to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkQuery {
    /// The outcome of the step that the hub named last.
    pub seen: Option<Seen>,
    /// The device's labels, at most [`LABELS_MAX`](crate::limits::LABELS_MAX), if the device started since it told
    /// them or the hub wants them.
    pub labels: Option<Labels>,
}

/// The labels of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Labels(#[serde(deserialize_with = "list::read")] pub Vec<Label>);

/// A machine of a rollout, as its device sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// The number of the rollout.
    pub rollout: u64,
    /// The device's sight of it.
    pub sight: Sight,
}

/// A device's sight of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sight {
    /// There is no machine of that name.
    Missing,
    /// The machine as it is.
    Machine {
        /// Its package.
        package: Digest,
        /// The version of that.
        version: Version,
        /// How often it failed.
        faults: u64,
        /// Its state, in the words of the owner's protocol.
        state: String,
        /// How it is thought of for its faults.
        repute: String,
    },
    /// The device doesn't take the step.
    Refused {
        /// Why, in words.
        reason: String,
    },
}

/// The hub's answer to a [`WorkQuery`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// The step to take now, if there is one.
    pub step: Option<Step>,
    /// In how many seconds to ask again, at the soonest.
    pub again_s: u32,
    /// Whether the hub doesn't know the device's labels.
    pub wants_labels: bool,
}

/// One step of a rollout on one device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The number of the rollout.
    pub rollout: u64,
    /// The machine.
    pub machine: Name,
    /// The task.
    pub task: Task,
}

/// A task with a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Task {
    /// To say how it is.
    Look,
    /// To update it.
    Update(Delivery),
    /// To put it back to the package that it had before.
    PutBack(Delivery),
    /// To remove it, where the mandate placed it and there was none before.
    Remove {
        /// The mandate as its owner signed it.
        #[serde(deserialize_with = "list::read")]
        mandate: Vec<u8>,
    },
}

/// A package to be fetched, and the owner's mandate for that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// The mandate as its owner signed it.
    #[serde(deserialize_with = "list::read")]
    pub mandate: Vec<u8>,
    /// The package.
    pub package: Digest,
    /// How long the package is, in bytes.
    pub bytes: u32,
}

/// A device asks for a part of a package that a step names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartQuery {
    /// The package.
    pub package: Digest,
    /// Where the part begins, in bytes.
    pub offset: u32,
}

/// The hub's answer to a [`PartQuery`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// At most [`PART_BYTES_MAX`] bytes.
    #[serde(deserialize_with = "list::read")]
    pub bytes: Vec<u8>,
}
