//! A server's ticket in a file, for the next connection to it.
//!
//! On resumption no certificate is shown (RFC 8446 §4.6.1): a ticket stands for what was checked when
//! it came. Its file says what that was, and a connection that asks for anything else forgets it.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use tenure_crypto::Sha256;
use tenure_tls::{PreSharedKey, Suite, Ticket, Trust};

use crate::home::private_file;
use crate::terminal::output::hex;

/// The contents of the file; bytes are in hexadecimal digits.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredTicket {
    /// The [`Scope`] that it is good for; none in files of before there were any.
    #[serde(default)]
    scope: String,
    suite: String,
    identity: String,
    key: String,
    age_add: u32,
    lifetime_s: u32,
    early_data_bytes_max: u32,
    /// The application protocol of the connection that it came on; empty if none was agreed on.
    #[serde(default)]
    protocol: String,
    /// When it came, in milliseconds since 1970.
    received_ms: u64,
}

/// All that a ticket vouches for, as a digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Scope(String);

impl Scope {
    /// The scope of connections to `host` and `port` as `name`, with the certificates `own_chain`.
    pub(super) fn new(
        (host, port): (&str, u16),
        name: &str,
        trust: &Trust<'_>,
        own_chain: &[&[u8]],
    ) -> Self {
        let mut parts: Vec<Vec<u8>> = Vec::new();
        let kind = match trust {
            Trust::Anchors { anchors, without_date } => {
                parts.extend(anchors.iter().map(|anchor| {
                    let constraints = anchor.name_constraints.unwrap_or_default();
                    [anchor.name, anchor.key_info, constraints].concat()
                }));
                parts.extend(without_date.iter().map(|key| key.to_vec()));
                "anchors"
            }
            Trust::Keys(keys) => {
                parts.extend(keys.iter().map(|key| key.to_vec()));
                "keys"
            }
        };
        // The order in which files name them means nothing.
        parts.sort();
        parts.dedup();
        let mut hash = Sha256::new();
        let mut add = |part: &[u8]| {
            hash.update(&(part.len() as u64).to_be_bytes());
            hash.update(part);
        };
        for text in [host, &port.to_string(), &name.to_ascii_lowercase(), kind] {
            add(text.as_bytes());
        }
        add(&(parts.len() as u64).to_be_bytes());
        parts.iter().for_each(|part| add(part));
        own_chain.iter().for_each(|part| add(part));
        Self(hex(&hash.finish().0))
    }
}

/// The same, ready for a connection.
pub(super) struct UsableTicket {
    identity: Vec<u8>,
    key: zeroize::Zeroizing<Vec<u8>>,
    suite: Suite,
    obfuscated_age: u32,
    early_data_bytes_max: u32,
    protocol: Vec<u8>,
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    since.as_millis() as u64
}

impl StoredTicket {
    /// The ticket of a connection of `scope` that agreed on `protocol`.
    pub(super) fn new(scope: &Scope, ticket: &Ticket<'_>, protocol: Option<&[u8]>) -> Self {
        Self {
            scope: scope.0.clone(),
            suite: ticket.suite.name().to_owned(),
            identity: hex(ticket.identity),
            key: hex(&ticket.key),
            age_add: ticket.age_add,
            lifetime_s: ticket.lifetime_s,
            early_data_bytes_max: ticket.early_data_bytes_max,
            protocol: hex(protocol.unwrap_or_default()),
            received_ms: now_ms(),
        }
    }

    pub(super) fn save(&self, path: &Path) -> anyhow::Result<()> {
        private_file::replace(path, serde_json::to_string(self)?.as_bytes())
    }

    /// The ticket in `path` if it is for `scope` and still good; none if there is no file. One that
    /// isn't is deleted.
    pub(super) fn load(path: &Path, scope: &Scope) -> anyhow::Result<Option<UsableTicket>> {
        if !path.exists() {
            return Ok(None);
        }
        let damaged = || format!("{} is no ticket; remove it to begin anew", path.display());
        let text = std::fs::read(path).with_context(|| format!("can't read {}", path.display()))?;
        let stored: Self = serde_json::from_slice(&text).with_context(damaged)?;
        let age_ms = now_ms().saturating_sub(stored.received_ms);
        if stored.scope != scope.0 || age_ms > u64::from(stored.lifetime_s) * 1000 {
            std::fs::remove_file(path)
                .with_context(|| format!("can't remove {}", path.display()))?;
            return Ok(None);
        }
        let suite = Suite::ALL.iter().find(|suite| suite.name() == stored.suite);
        Ok(Some(UsableTicket {
            identity: bytes_of_hex(&stored.identity).with_context(damaged)?,
            key: zeroize::Zeroizing::new(bytes_of_hex(&stored.key).with_context(damaged)?),
            suite: *suite.with_context(damaged)?,
            obfuscated_age: (age_ms as u32).wrapping_add(stored.age_add),
            early_data_bytes_max: stored.early_data_bytes_max,
            protocol: bytes_of_hex(&stored.protocol).with_context(damaged)?,
        }))
    }
}

impl UsableTicket {
    /// The key for a connection that offers `protocols`. Early data goes with it where the ticket's is one of
    /// them: a server takes it under no other (RFC 8446 §4.2.10).
    pub(super) fn key(&self, protocols: &[&[u8]]) -> PreSharedKey<'_> {
        let is_same = self.protocol.is_empty() || protocols.contains(&&*self.protocol);
        PreSharedKey {
            identity: &self.identity,
            key: &self.key,
            suite: self.suite,
            is_external: false,
            obfuscated_age: self.obfuscated_age,
            early_data_bytes_max: if is_same { self.early_data_bytes_max } else { 0 },
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

#[cfg(test)]
mod tests {
    use tenure_tls::x509::Anchor;

    use super::*;

    const ANCHOR: Anchor<'_> = Anchor { name: b"root", key_info: b"key", name_constraints: None };

    fn scope_of(anchors: &[Anchor<'_>], chain: &[&[u8]]) -> Scope {
        let trust = Trust::Anchors { anchors, without_date: &[] };
        Scope::new(("host", 443), "device.test", &trust, chain)
    }

    #[test]
    fn scope_changes_with_each_of_its_parts_and_not_with_their_order() {
        let other = Anchor { name: b"other", ..ANCHOR };
        let trust = Trust::Anchors { anchors: &[ANCHOR], without_date: &[] };
        let first = scope_of(&[ANCHOR], &[]);
        for different in [
            Scope::new(("other", 443), "device.test", &trust, &[]),
            Scope::new(("host", 444), "device.test", &trust, &[]),
            Scope::new(("host", 443), "other.test", &trust, &[]),
            Scope::new(("host", 443), "device.test", &Trust::Keys(&[b"key"]), &[]),
            scope_of(&[], &[]),
            scope_of(&[other], &[]),
            scope_of(&[ANCHOR, other], &[]),
            scope_of(&[Anchor { key_info: b"other", ..ANCHOR }], &[]),
            scope_of(&[Anchor { name_constraints: Some(b"test"), ..ANCHOR }], &[]),
            scope_of(&[ANCHOR], &[b"own"]),
        ] {
            assert_ne!(first, different);
        }
        assert_eq!(scope_of(&[ANCHOR, other], &[]), scope_of(&[other, ANCHOR], &[]));
        assert_eq!(first, Scope::new(("host", 443), "DEVICE.test", &trust, &[]));
    }

    #[test]
    fn early_data_goes_with_a_ticket_where_its_protocol_is_offered() {
        for (protocol, offered, bytes) in [
            (&b"h2"[..], &[&b"mqtt"[..], b"h2"][..], 100),
            (b"h2", &[b"mqtt"], 0),
            (b"h2", &[], 0),
            (b"", &[b"mqtt"], 100),
            (b"", &[], 100),
        ] {
            let ticket = UsableTicket {
                identity: Vec::new(),
                key: Vec::new().into(),
                suite: Suite::ChaCha20Poly1305Sha256,
                obfuscated_age: 0,
                early_data_bytes_max: 100,
                protocol: protocol.to_vec(),
            };
            assert_eq!(ticket.key(offered).early_data_bytes_max, bytes);
        }
    }
}
