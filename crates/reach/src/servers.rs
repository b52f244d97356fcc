//! Whom servers are judged by, and what the device shows them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;

use tenure_tls_client::{Authorities, Judges};
use tenure_wire::url::Origin;
use zeroize::Zeroizing;

/// The certificates of the authorities that servers are judged by, in DER, or why there are none.
pub type Loaded = Result<Vec<Vec<u8>>, String>;

/// What the owner says of one server.
#[derive(Clone, Debug, Default)]
pub struct Server {
    /// Whom it is judged by; without it, by the device's authorities.
    pub trust: Option<ServerTrust>,
    /// What it is shown, if it asks who comes.
    pub identity: Option<ClientIdentity>,
}

/// What a server proves.
#[derive(Clone, Debug)]
pub enum ServerTrust {
    /// A chain to one of these authorities, in DER.
    Authorities(Vec<Vec<u8>>),
    /// One of these keys (`SubjectPublicKeyInfo` in DER), whatever its certificate says.
    Keys(Vec<Vec<u8>>),
}

/// The device's certificate for a server.
#[derive(Clone)]
pub struct ClientIdentity {
    /// Its chain in DER, the device's own certificate first.
    pub chain: Vec<Vec<u8>>,
    /// The key of the first, in DER.
    pub key: Zeroizing<Vec<u8>>,
}

impl fmt::Debug for ClientIdentity {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientIdentity").field("chain", &self.chain.len()).finish_non_exhaustive()
    }
}

/// Servers by their origins, and the device's authorities for all others.
pub struct Servers {
    load: Box<dyn Fn() -> Loaded + Send + Sync>,
    /// Loaded and parsed once a server is to be judged by them.
    loaded: OnceLock<Result<Authorities, String>>,
    known: BTreeMap<Origin, Known>,
}

/// What the owner says of one server, parsed.
struct Known {
    trust: Option<Trusted>,
    identity: Option<ClientIdentity>,
}

/// What a server proves, parsed.
enum Trusted {
    Authorities(Authorities),
    Keys(Vec<Vec<u8>>),
}

impl Servers {
    /// Servers that the authorities of `load` vouch for, where they speak TLS. It is called once a server does.
    pub fn new(load: impl Fn() -> Loaded + Send + Sync + 'static) -> Self {
        Self { load: Box::new(load), loaded: OnceLock::new(), known: BTreeMap::new() }
    }

    /// The same, but for what is said of each of `known`.
    #[must_use]
    pub fn with(mut self, known: BTreeMap<Origin, Server>) -> Self {
        let parsed = known.into_iter().map(|(origin, server)| (origin, Known::of(server)));
        self.known = parsed.collect();
        self
    }

    /// Whom the server at `origin` is judged by, or why nobody could vouch for it.
    pub(crate) fn judges_of(&self, origin: &Origin) -> Result<Judges<'_>, &str> {
        match self.known.get(origin).and_then(|server| server.trust.as_ref()) {
            Some(Trusted::Authorities(authorities)) => Ok(Judges::Authorities(authorities)),
            Some(Trusted::Keys(keys)) => Ok(Judges::Keys(keys)),
            None => {
                let load = || (self.load)().map(|ders| Authorities::new(&ders));
                match self.loaded.get_or_init(load) {
                    Ok(authorities) => Ok(Judges::Authorities(authorities)),
                    Err(why) => Err(why),
                }
            }
        }
    }

    /// What the server at `origin` is shown.
    pub(crate) fn identity_for(&self, origin: &Origin) -> Option<&ClientIdentity> {
        self.known.get(origin)?.identity.as_ref()
    }
}

impl Known {
    fn of(Server { trust, identity }: Server) -> Self {
        let trust = trust.map(|trust| match trust {
            ServerTrust::Authorities(ders) => Trusted::Authorities(Authorities::new(&ders)),
            ServerTrust::Keys(keys) => Trusted::Keys(keys),
        });
        Self { trust, identity }
    }
}
