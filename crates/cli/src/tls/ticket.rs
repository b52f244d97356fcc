//! A server's ticket in a file, for the next connection to it.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use tenure_tls::{PreSharedKey, Suite, Ticket};

use crate::output::hex;
use crate::private_file;

/// The contents of the file; bytes are in hexadecimal digits.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredTicket {
    server: String,
    suite: String,
    identity: String,
    key: String,
    age_add: u32,
    lifetime_s: u32,
    early_data_bytes_max: u32,
    /// When it came, in milliseconds since 1970.
    received_ms: u64,
}

/// The same, ready for a connection.
pub(super) struct UsableTicket {
    identity: Vec<u8>,
    key: zeroize::Zeroizing<Vec<u8>>,
    suite: Suite,
    obfuscated_age: u32,
    early_data_bytes_max: u32,
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    since.as_millis() as u64
}

impl StoredTicket {
    pub(super) fn new(server: &str, ticket: &Ticket<'_>) -> Self {
        Self {
            server: server.to_owned(),
            suite: ticket.suite.name().to_owned(),
            identity: hex(ticket.identity),
            key: hex(&ticket.key),
            age_add: ticket.age_add,
            lifetime_s: ticket.lifetime_s,
            early_data_bytes_max: ticket.early_data_bytes_max,
            received_ms: now_ms(),
        }
    }

    pub(super) fn save(&self, path: &Path) -> anyhow::Result<()> {
        private_file::replace(path, serde_json::to_string(self)?.as_bytes())
    }

    /// The ticket in `path` if it is for `server` and still good; none if there is no file.
    pub(super) fn load(path: &Path, server: &str) -> anyhow::Result<Option<UsableTicket>> {
        if !path.exists() {
            return Ok(None);
        }
        let damaged = || format!("{} is no ticket; remove it to begin anew", path.display());
        let text = std::fs::read(path).with_context(|| format!("can't read {}", path.display()))?;
        let stored: Self = serde_json::from_slice(&text).with_context(damaged)?;
        let age_ms = now_ms().saturating_sub(stored.received_ms);
        if stored.server != server || age_ms > u64::from(stored.lifetime_s) * 1000 {
            return Ok(None);
        }
        let suite = Suite::ALL.iter().find(|suite| suite.name() == stored.suite);
        Ok(Some(UsableTicket {
            identity: bytes_of_hex(&stored.identity).with_context(damaged)?,
            key: zeroize::Zeroizing::new(bytes_of_hex(&stored.key).with_context(damaged)?),
            suite: *suite.with_context(damaged)?,
            obfuscated_age: (age_ms as u32).wrapping_add(stored.age_add),
            early_data_bytes_max: stored.early_data_bytes_max,
        }))
    }
}

impl UsableTicket {
    pub(super) fn key(&self) -> PreSharedKey<'_> {
        PreSharedKey {
            identity: &self.identity,
            key: &self.key,
            suite: self.suite,
            is_external: false,
            obfuscated_age: self.obfuscated_age,
            early_data_bytes_max: self.early_data_bytes_max,
        }
    }
}

/// The bytes that `text` is in hexadecimal digits.
pub(super) fn bytes_of_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|digit| digit.to_digit(16).map(|it| it as u8)).collect();
    let digits = digits.filter(|digits| digits.len().is_multiple_of(2))?;
    Some(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}
