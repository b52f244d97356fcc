//! Connections by the rules of visits, for what speaks another protocol than HTTP.

use std::fmt;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Instant;

use tenure_wire::MachineId;
use tenure_wire::url::Host;

use crate::stream::connect;
use crate::{Failure, Shared};

/// Opens connections: a name leads to the public network alone, and an address where it says.
#[derive(Clone)]
pub struct Dialer {
    shared: Arc<Shared>,
    from: MachineId,
}

/// There is no connection; why, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undialled(String);

impl fmt::Display for Undialled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Undialled {}

impl Dialer {
    pub(crate) fn new(shared: Arc<Shared>, from: MachineId) -> Self {
        Self { shared, from }
    }

    /// A TCP connection to a port of `host`, by `deadline`. It blocks.
    ///
    /// # Errors
    /// [`Undialled`]: the name has no address, or none on the public network, or nobody answers there in time.
    pub fn dial(&self, host: &Host, port: u16, deadline: Instant) -> Result<TcpStream, Undialled> {
        let find = |name: &str| self.shared.names.addresses(name, self.from, deadline);
        let connected = connect((host, port), find, deadline);
        connected.map_err(|Failure { words, .. }| Undialled(words.into_owned()))
    }
}
