//! The proof that the keys of a backup hold a device.

use anyhow::Context as _;
use tenure_wire::Name;

use super::pair::Pair;
use crate::home::Home;
use crate::reach::client::{Client, OwnerKeys};
use crate::reach::whom::Where;

/// The device by which a backup is proved.
#[derive(clap::Args)]
pub(super) struct Check {
    /// Prove that the backup holds this device of yours, in a session with the keys as they are in the backup, before anything is
    /// said or written; without DEVICE that of `tenure use`, else 127.0.0.1:7370.
    #[arg(long, value_name = "DEVICE", num_args = 0..=1)]
    check: Option<Option<String>>,
    /// The hub, which knows where named devices are.
    #[arg(long, value_name = "ADDR", env = "TENURE_HUB")]
    hub: Option<String>,
}

impl Check {
    /// The device that takes the keys of a backup for its owner's, if one is to be asked.
    ///
    /// # Errors
    /// It can't be reached, or has another owner.
    pub(super) fn prove(&self, home: &Home, pair: &Pair) -> anyhow::Result<Option<Name>> {
        let Some(device) = &self.check else { return Ok(None) };
        let keys = OwnerKeys::of_signing_key(pair.owner.clone());
        let mut client = Client::with_keys(home, keys)?;
        let place = Where { device: device.clone(), hub: self.hub.clone(), via: None };
        // It answers nobody but its owner how it is.
        let device = place.connect(&mut client).context("the backup isn't proved")?;
        Ok(Some(device.status.name))
    }
}
