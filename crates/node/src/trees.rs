//! The node's own trees in the store: their numbers, the paths in them, and how the store is mounted.

use tenure_hal::{Entropy, Flash};
use tenure_store::{MountReport, Store, TreeId};

use crate::boot_error::BootError;

/// The tree of values that aren't sealed, the seed first of all; the kernel's trees count up from 0.
pub(crate) const NODE_TREE: TreeId = TreeId(u16::MAX);
/// The tree of values that are sealed: tenants' secrets, receipts.
pub(crate) const SEALED_TREE: TreeId = TreeId(NODE_TREE.0 - 1);

pub(crate) const SEED_PATH: &str = "seed";
/// The public keys that follow from the seed: to compute them takes a small processor a tenth of a second.
pub(crate) const KEYS_PATH: &str = "keys";
pub(crate) const BOOTS_PATH: &str = "boots";
pub(crate) const ENROLMENT_PATH: &str = "enrolment";
pub(crate) const HUB_PATH: &str = "hub";
pub(crate) const NETWORK_PATH: &str = "network";
/// Has a child for each machine that was updated by a mandate.
#[cfg(feature = "rollouts")]
pub(crate) const FOLLOWED_PATH: &str = "followed";
/// The numbers of former owners' newest mandates.
#[cfg(feature = "rollouts")]
pub(crate) const FORMER_MANDATES_PATH: &str = "former-mandates";
#[cfg(feature = "experiments")]
pub(crate) const ORDERS_PATH: &str = "experiment orders";

/// Mounts the store on `flash`, or makes a blank flash one, with a salt that no tenant can know.
///
/// # Errors
/// The flash holds something else, or there is no randomness; nothing was overwritten.
pub(crate) fn mount_or_format<F: Flash>(
    flash: F,
    entropy: &mut dyn Entropy,
) -> Result<(Store<F>, MountReport), BootError> {
    let mut salt = [0; 4];
    entropy.fill(&mut salt).map_err(|_| BootError::Entropy)?;
    Store::mount_or_format(flash, u32::from_le_bytes(salt)).map_err(BootError::Mount)
}
