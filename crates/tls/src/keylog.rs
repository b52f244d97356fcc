//! Secrets as the lines of an `SSLKEYLOGFILE`, by which developers read captured connections.

use core::fmt;

use tenure_crypto::HashValue;

/// The names of the kinds of secrets, in the order in which they become known.
const LABELS: [&str; 6] = [
    "CLIENT_EARLY_TRAFFIC_SECRET",
    "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
    "SERVER_HANDSHAKE_TRAFFIC_SECRET",
    "CLIENT_TRAFFIC_SECRET_0",
    "SERVER_TRAFFIC_SECRET_0",
    "EXPORTER_SECRET",
];

/// The secrets of one connection, which are wiped when it is dropped.
pub(crate) struct KeyLog {
    random: [u8; 32],
    secrets: [HashValue; LABELS.len()],
}

impl Default for KeyLog {
    fn default() -> Self {
        Self { random: [0; 32], secrets: [const { HashValue::EMPTY }; LABELS.len()] }
    }
}

impl KeyLog {
    pub(crate) fn set_random(&mut self, random: &[u8; 32]) {
        self.random = *random;
    }

    pub(crate) fn keep_early(&mut self, client: &HashValue) {
        self.secrets[0] = client.clone();
    }

    pub(crate) fn keep(&mut self, in_handshake: bool, client: &HashValue, server: &HashValue) {
        let first = if in_handshake { 1 } else { 3 };
        self.secrets[first] = client.clone();
        self.secrets[first + 1] = server.clone();
    }

    pub(crate) fn keep_exporter(&mut self, secret: &HashValue) {
        self.secrets[5] = secret.clone();
    }
}

/// The lines, each with its end; those that aren't known yet are left out.
#[derive(Clone, Copy)]
pub struct KeyLogLines<'a>(pub(crate) &'a KeyLog);

impl fmt::Display for KeyLogLines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (label, secret) in LABELS.iter().zip(&self.0.secrets) {
            if secret.is_empty() {
                continue;
            }
            write!(f, "{label} ")?;
            self.0.random.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
            f.write_str(" ")?;
            secret.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
            f.write_str("\n")?;
        }
        Ok(())
    }
}
