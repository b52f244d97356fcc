//! Where devices, hubs and meshes are found.

use std::net::{SocketAddr, ToSocketAddrs as _};

use anyhow::Context as _;

/// The port that hubs listen on unless told otherwise.
pub const HUB_PORT: u16 = 7369;
/// The port that devices listen on unless told otherwise.
pub const DEVICE_PORT: u16 = 7370;
/// The port that meshes use unless told otherwise.
pub const MESH_PORT: u16 = 7371;

/// The most datagrams that a hub or a device takes in before it has its turn again, so that a
/// flood doesn't stop it.
pub const DATAGRAMS_PER_TURN: usize = 64;

/// Reads `HOST:PORT`, or `HOST` with `port`.
///
/// # Errors
/// The host isn't known.
pub fn address_of(text: &str, port: u16) -> anyhow::Result<SocketAddr> {
    let with_port = if text.contains(':') { text.to_string() } else { format!("{text}:{port}") };
    with_port
        .to_socket_addrs()
        .ok()
        .and_then(|mut addresses| addresses.next())
        .with_context(|| format!("`{text}` is no address; write HOST:PORT, as 127.0.0.1:{port}"))
}
