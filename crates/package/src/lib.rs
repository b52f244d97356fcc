//! Signed documents. Tenants sign packages, from which machines are made, and secrets on their way to a device.
//! Owners sign placements, passes, mandates and lists of revoked keys. Devices sign receipts. Owners or makers sign
//! firmware.
//!
//! Two signatures stand between code and a device: the tenant's on the [`Package`] says what runs,
//! the owner's on the [`Placement`] says where, under which name and with what budget.
//!
//! Invariants:
//! - A [`Package`] is a checked view: whatever it hands out is within the limits of its format.
//! - What is signed is exactly the bytes before the signature; nothing is encoded anew to verify.
//! - A [`Placement`] that came in as bytes has been verified; there is no other way to get one.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod builder;
mod firmware;
#[cfg(feature = "journals")]
mod journal;
mod layout;
mod mandate;
mod manifest;
mod package;
mod pass;
mod placement;
mod receipt;
mod renewal;
mod revocations;
mod secret;
mod signed;
mod snapshot;
mod tariff;
mod tree;

pub use builder::PackageBuilder;
pub use firmware::{FirmwareError, FirmwareFile, RELEASE_BYTES_MAX, Release};
#[cfg(feature = "journals")]
pub use journal::{
    Commitment, Journal, JournalError, JournalHead, JournalPiece, JournalPlace, JournalQuery,
    JournalRequest, NO_PAGES, SealedPiece, head_after,
};
pub use layout::{
    CODE_BYTES_MAX, COMPILED_BYTES_MAX, MANIFEST_BYTES_MAX, PACKAGE_BYTES_MAX, TREE_BYTES_MAX,
};
pub use mandate::{MANDATE_BYTES_MAX, Mandate, MandateError, Placed, Selector};
pub use manifest::{DESCRIPTION_BYTES_MAX, EXPORTS_MAX, Engine, Manifest, ManifestError};
pub use package::{Package, PackageError};
pub use pass::{Pass, PassError, PassShown};
pub use placement::{PLACEMENT_BYTES_MAX, Placement, PlacementError};
pub use receipt::{NO_RECEIPT, Receipt, ReceiptChain, ReceiptError, digest_of_receipt};
pub use renewal::Renewal;
pub use revocations::{
    REVOCATIONS_BYTES_MAX, REVOKED_HUBS_MAX, REVOKED_MAX, Revocations, RevocationsError,
    RevokedDevice,
};
pub use secret::{SecretChange, SecretError, SecretQuery};
pub use snapshot::{Snapshot, SnapshotError, SnapshotWriter};
pub use tariff::Tariff;
pub use tenure_wire::{CodeKind, Version, VersionError};
pub use tree::{Entry, Tree, TreeError, ValueKind};
