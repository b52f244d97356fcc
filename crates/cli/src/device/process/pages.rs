//! The pages of a device's machines, served by the device itself.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::Context as _;
use serde_json::json;
use tenure_board_linux::FileFlash;
use tenure_node::Node;
use tenure_pages::{Origins, Pages};
use tenure_wire::console::PAGES_LISTEN_ON;
use tenure_wire::{Address, Name};

use super::visited::{Machines, visitor};
use crate::reach::network::listener_at;
use crate::terminal::output::Output;

/// The file in the device's folder that holds the key of its visitors.
const KEY_FILE: &str = "pages.key";

/// Pages that are served, and what they know of the device's machines.
pub(super) struct DevicePages(Machines);

impl DevicePages {
    /// Serves the pages of the machines on the device `name`, which listens at `device`, to browsers at `listen`.
    ///
    /// # Errors
    /// Nobody can listen there, or the key of the visitors can't be kept in `folder`.
    pub(super) fn serve(
        listen: SocketAddr,
        folder: &Path,
        device: (&Name, SocketAddr),
        output: &Output,
    ) -> anyhow::Result<Self> {
        let machines = Machines::default();
        let listener = listener_at(listen).context("no pages")?;
        let visitor = visitor(&folder.join(KEY_FILE), device, &machines)?;
        let key = visitor.key();
        let origins = Origins { domain: None, only: None };
        let pages = Pages { origins, visits: visitor, by_proxy: false };
        let address = tenure_pages::serve(listener, pages).context("no pages")?;
        let text =
            format!("{PAGES_LISTEN_ON} {}, and call machines as #{key}", Address::Udp(address));
        let object =
            json!({ "event": "pages", "address": address.to_string(), "key": key.to_string() });
        output.line(&text, &object);
        Ok(Self(machines))
    }

    /// Notes which machines there are.
    pub(super) fn update(&self, node: &Node<FileFlash>) {
        self.0.update(node);
    }
}
