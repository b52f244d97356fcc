//! Notices for a program that watches a device, in a bounded queue.

use alloc::collections::VecDeque;
use alloc::string::String;

use tenure_wire::control::LogLine;
use tenure_wire::directory::Refusal;
use tenure_wire::{Name, PublicKey, Version};

/// The most notices that wait to be taken; older ones make room.
const NOTICES_MAX: usize = 256;

/// An event that a program which watches the device may want to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A line of a machine's log.
    Log(LogLine),
    /// The directory lists this device now.
    Registered,
    /// The directory refuses to list this device.
    Refused {
        /// Why.
        refusal: Refusal,
        /// How many devices it lists at most, if this one would be one too many and it says so.
        devices_max: Option<u32>,
    },
    /// The directory doesn't answer.
    HubSilent,
    /// The directory's address shows a key that the device doesn't trust, and isn't spoken to.
    HubKeyDiffers {
        /// The key that it shows.
        key: PublicKey,
    },
    /// The firmware that was on trial is well, and stays.
    FirmwareConfirmed {
        /// Its number.
        number: u32,
    },
    /// A machine was updated, or put back, by its owner's mandate.
    Mandated {
        /// The machine.
        machine: Name,
        /// The version that it has now.
        version: Version,
    },
    /// The hub named a step of a rollout that the device doesn't take.
    StepRefused {
        /// The machine.
        machine: Name,
        /// Why.
        reason: String,
    },
    /// The device was let into its owner's mesh, over the mesh.
    #[cfg(feature = "mesh")]
    InMesh {
        /// Its name there.
        node: tenure_mesh::NodeId,
    },
}

/// The notices that wait to be taken.
#[derive(Debug, Default)]
pub(crate) struct Notices(VecDeque<Notice>);

impl Notices {
    /// Adds a notice; the oldest makes room where there is none.
    pub(crate) fn push(&mut self, notice: Notice) {
        if self.0.len() >= NOTICES_MAX {
            self.0.pop_front();
        }
        self.0.push_back(notice);
    }

    /// Takes the oldest notice.
    pub(crate) fn pop(&mut self) -> Option<Notice> {
        self.0.pop_front()
    }
}
