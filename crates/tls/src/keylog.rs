//! Secrets as the lines of an `SSLKEYLOGFILE`, by which developers read captured connections.

use core::fmt;

use tenure_crypto::HashValue;

/// The secrets of one connection.
pub(crate) struct KeyLog {
    random: [u8; 32],
    /// Of the client and the server, in the handshake and after.
    secrets: [[HashValue; 2]; 2],
}

impl Default for KeyLog {
    fn default() -> Self {
        const NONE: [HashValue; 2] = [HashValue::EMPTY, HashValue::EMPTY];
        Self { random: [0; 32], secrets: [NONE, NONE] }
    }
}

impl KeyLog {
    pub(crate) fn set_random(&mut self, random: &[u8; 32]) {
        self.random = *random;
    }

    pub(crate) fn keep(&mut self, in_handshake: bool, client: &HashValue, server: &HashValue) {
        self.secrets[usize::from(!in_handshake)] = [client.clone(), server.clone()];
    }
}

/// The lines, each with its end; those that aren't known yet are left out.
#[derive(Clone, Copy)]
pub struct KeyLogLines<'a>(pub(crate) &'a KeyLog);

impl fmt::Display for KeyLogLines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const LABELS: [[&str; 2]; 2] = [
            ["CLIENT_HANDSHAKE_TRAFFIC_SECRET", "SERVER_HANDSHAKE_TRAFFIC_SECRET"],
            ["CLIENT_TRAFFIC_SECRET_0", "SERVER_TRAFFIC_SECRET_0"],
        ];
        let labels = LABELS.iter().flatten();
        for (label, secret) in labels.zip(self.0.secrets.iter().flatten()) {
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
