//! The two keys that a backup holds: the owner's, from which the key of the owner's sessions follows, and the tenant's.

use anyhow::ensure;
use serde_json::{Value, json};
use tenure_crypto::SigningKey;
use zeroize::Zeroizing;

use crate::home::{Home, key_text, parse_key};
use crate::reach::client::OwnerKeys;

/// The first line of both keys as a text.
const HEAD: &str = "keys of tenure, version 1";
/// The longest text of both keys, in bytes.
pub(super) const TEXT_BYTES_MAX: usize = 512;

/// An owner's and a tenant's key. Each wipes itself.
pub(super) struct Pair {
    pub(super) owner: SigningKey,
    pub(super) tenant: SigningKey,
}

impl Pair {
    /// The keys of the user in `home`, of which the owner's is there already.
    pub(super) fn of(home: &Home) -> anyhow::Result<Self> {
        ensure!(
            home.has_owner_key(),
            "there is no owner's key in {} yet, and so nothing to back up",
            home.folder().display()
        );
        Ok(Self { owner: home.owner_key()?, tenant: home.tenant_key()? })
    }

    /// Whether `other` is the same keys.
    pub(super) fn is(&self, other: &Self) -> bool {
        let public = |pair: &Self| (pair.owner.verifying_key(), pair.tenant.verifying_key());
        public(self) == public(other)
    }

    /// Both keys as a text, which [`Self::from_text`] reads.
    pub(super) fn to_text(&self) -> Zeroizing<String> {
        // As long as it gets, or a shorter one would be left behind unwiped.
        let mut text = Zeroizing::new(String::with_capacity(TEXT_BYTES_MAX));
        text.push_str(HEAD);
        text.push('\n');
        for (name, key) in [("owner ", &self.owner), ("tenant ", &self.tenant)] {
            text.push_str(name);
            text.push_str(&key_text(key));
        }
        text
    }

    /// The keys in a text; `None` if it is another one.
    pub(super) fn from_text(text: &str) -> Option<Self> {
        let lines: Vec<&str> = text.lines().collect();
        let [HEAD, owner, tenant] = lines[..] else { return None };
        let owner = parse_key(owner.strip_prefix("owner ")?)?;
        let tenant = parse_key(tenant.strip_prefix("tenant ")?)?;
        Some(Self { owner, tenant })
    }

    /// The public keys, as `tenure key --own` shows them.
    pub(super) fn shown(&self) -> String {
        let owner = OwnerKeys::of_signing_key(self.owner.clone()).owner();
        let tenant = self.tenant.verifying_key();
        format!("owner   {}/{}\ntenant  {tenant}", owner.verifying_key, owner.machine)
    }

    /// The same in an object.
    pub(super) fn to_json(&self) -> Value {
        let owner = OwnerKeys::of_signing_key(self.owner.clone()).owner();
        json!({
            "owner_signing_key": owner.verifying_key.to_string(),
            "owner_machine_key": owner.machine.to_string(),
            "tenant_key": self.tenant.verifying_key().to_string(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_from_the_text_that_is_written_and_from_no_other() {
        let [owner, tenant] = [0x0f, 0xa0].map(|byte| SigningKey::from_bytes(&[byte; 32]));
        let pair = Pair { owner, tenant };
        let text = pair.to_text();
        let digits = |pair: &str| pair.repeat(32);
        let expected =
            format!("keys of tenure, version 1\nowner {}\ntenant {}\n", digits("0f"), digits("a0"));
        assert_eq!(*text, expected);
        assert!(text.len() <= TEXT_BYTES_MAX);
        assert!(Pair::from_text(&text).is_some_and(|read| read.is(&pair)));
        let others = [
            expected.replace("version 1", "version 2"),
            expected.replace("tenant", "owner"),
            expected.replace("a0a0", "a0"),
            expected.clone() + "more\n",
            String::new(),
        ];
        assert!(others.iter().all(|other| Pair::from_text(other).is_none()));
    }
}
