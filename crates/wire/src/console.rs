//! The words in the lines of hubs and devices by which people and programs know what happened.

/// Before the address at which a hub or a device can be reached from now on.
pub const LISTENS_ON: &str = "listens on";
/// The hub has taken the device's record.
pub const LISTED: &str = "the hub lists this device";
/// Before the device's address in its owner's mesh.
pub const IN_MESH: &str = "in the mesh as";
/// Before the function in which a fault stopped a machine.
pub const WHILE_SERVING: &str = "while serving";
/// Before the address at which a server of TLS is reached.
pub const LISTENING_AT: &str = "listening at";
/// Before the address at which browsers get machines' pages.
pub const PAGES_LISTEN_ON: &str = "pages listen on";
/// Before the address at which clients of CoAP reach machines.
pub const COAP_LISTENS_ON: &str = "CoAP listens on";
