//! The hub's pages, and those of machines: who calls them for visitors, and where the hub's own database says they are.

use anyhow::Context as _;
use tenure_crypto::{Seed, hmac_sha256};
use tenure_hub::Storage as _;
use tenure_hub_server::{Database, DatabaseError, Entrance, Location, Pages, Running, Visitors};
use tenure_package::Tariff;
use tenure_pages::{Entry, NoPage, Origins};
use tenure_wire::{PublicKey, Target};

use crate::reach::client::Route;
use crate::reach::visitor::{Finds, Visitor};
use crate::reach::whom::machine_of;

/// The salts of the keys by which the hub calls machines. They follow from its seed, so that a backup has them, too.
const OWNERS: &[u8; 16] = b"owners' visits  ";
const GUESTS: &[u8; 16] = b"guests' visits  ";
/// The label of the key of tickets to pages, which follows from it as well: a page that is open outlives the process.
const TICKETS: &[u8] = b"tenure 1 tickets to pages";

/// Pages that are served.
pub(super) struct Served {
    /// The address under which browsers reach them.
    pub(super) url: String,
    /// The key by which machines are called for a device's owner.
    pub(super) owners: PublicKey,
    /// The key by which they are called for others.
    pub(super) guests: PublicKey,
}

/// How the pages are served.
pub(super) struct Serving {
    pub(super) entrance: Entrance,
    /// The hub's database.
    pub(super) location: Location,
    pub(super) tariff: Option<Tariff>,
    /// The address under which browsers reach them, if it isn't the listener's.
    pub(super) url: Option<String>,
    /// Whether those who aren't signed in see machines' pages.
    pub(super) are_strangers_let_in: bool,
}

impl Serving {
    /// Starts the pages of the hub whose database is open.
    ///
    /// # Errors
    /// The hub has no seed yet, or there is no thread or socket.
    pub(super) fn start(self, database: &mut Database) -> anyhow::Result<Served> {
        let seed = database.seed()?.context("the hub has no keys yet")?;
        let seed = Seed::from_bytes(&seed);
        let running = database.running();
        let visitor = |salt| {
            let (location, running) = (self.location.clone(), running.clone());
            let finder = InDatabase { location, database: None, running };
            Visitor::new(seed.machine_secret(salt), finder)
        };
        let (owners, guests) = (visitor(OWNERS)?, visitor(GUESTS)?);
        let keys = (owners.key(), guests.key());
        let has_tls = self.entrance.certificates.is_some();
        let is_by_tls =
            has_tls || self.url.as_deref().is_some_and(|url| url.starts_with("https://"));
        let pages = Pages {
            database: self.location,
            tariff: self.tariff,
            is_by_tls,
            // Whoever has TLS of another's comes by a proxy.
            is_by_proxy: is_by_tls && !has_tls,
            running,
        };
        let host = self.url.as_deref().and_then(host_of).map(str::to_ascii_lowercase);
        let strangers = Origins { domain: host, only: None };
        let strangers = self.are_strangers_let_in.then_some(strangers);
        let ticket_key = Seed::from_bytes(&hmac_sha256(seed.as_bytes(), &[TICKETS]));
        let visitors = Visitors { owners, guests, strangers, ticket_key };
        let address = tenure_hub_server::serve(self.entrance, pages, visitors)
            .context("can't serve pages")?;
        let scheme = if has_tls { "https" } else { "http" };
        let url = self.url.unwrap_or_else(|| format!("{scheme}://{address}"));
        Ok(Served { url, owners: keys.0, guests: keys.1 })
    }
}

/// The host in an address of pages, without its port (RFC 3986 §3.2).
fn host_of(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split('/').next()?;
    authority.split(':').next().filter(|host| !host.is_empty())
}

/// Finds machines in the hub's database.
struct InDatabase {
    location: Location,
    /// The connection, once it was needed.
    database: Option<Database>,
    /// The hub that runs, whose clock says which records are over.
    running: Running,
}

impl InDatabase {
    fn way(&mut self, machine: &Target) -> Result<Result<Route, NoPage>, DatabaseError> {
        let Target::Remote { device, .. } = machine else { return Ok(Err(NoPage::Unknown)) };
        let found = opened(&mut self.database, &self.location)?.found(device)?;
        let Some(found) = found else { return Ok(Err(NoPage::Unknown)) };
        // A record that is over is of a device that was silent since.
        let Ok(record) = tenure_directory::open(&found.record, self.running.unix_s()) else {
            return Ok(Err(NoPage::Away));
        };
        let Ok(key) = machine_of(&record, machine) else { return Ok(Err(NoPage::Unknown)) };
        Ok(Ok(Route { key, address: found.seen_at, epoch: Some(record.epoch) }))
    }
}

fn opened<'a>(
    database: &'a mut Option<Database>,
    location: &Location,
) -> Result<&'a Database, DatabaseError> {
    match database {
        Some(database) => Ok(database),
        none => Ok(none.insert(Database::read(location)?)),
    }
}

impl Finds for InDatabase {
    fn machine(&mut self, machine: &Target) -> Result<Route, NoPage> {
        self.way(machine).unwrap_or_else(|_| {
            // One that failed isn't used again.
            self.database = None;
            Err(NoPage::Away)
        })
    }

    /// The hub's own pages list the machines, each owner's to that owner.
    fn entries(&mut self) -> Result<Vec<Entry>, NoPage> {
        Ok(Vec::new())
    }
}
