//! The ticket of the first connection, for the second.

use semihosting::process::exit;
use tenure_tls::{PreSharedKey, Suite, Ticket};

const IDENTITY_BYTES_MAX: usize = 320;

#[derive(Clone)]
pub(crate) struct Kept {
    identity: [u8; IDENTITY_BYTES_MAX],
    length: usize,
    key: [u8; 32],
    age_add: u32,
}

impl Kept {
    pub(crate) fn none() -> Self {
        Self { identity: [0; IDENTITY_BYTES_MAX], length: 0, key: [0; 32], age_add: 0 }
    }

    pub(crate) fn keep(&mut self, ticket: &Ticket<'_>) {
        self.length = ticket.identity.len();
        let Some(identity) = self.identity.get_mut(..self.length) else { exit(11) };
        identity.copy_from_slice(ticket.identity);
        self.key.copy_from_slice(&ticket.key);
        self.age_add = ticket.age_add;
    }

    pub(crate) fn pre_shared_key(&self) -> Option<PreSharedKey<'_>> {
        (self.length > 0).then_some(PreSharedKey {
            identity: &self.identity[..self.length],
            key: &self.key,
            suite: Suite::ChaCha20Poly1305Sha256,
            is_external: false,
            obfuscated_age: self.age_add,
            early_data_bytes_max: 0,
        })
    }
}
