//! The connections that a ticket is good for.

use tenure_crypto::Sha256;

use crate::Authorities;

/// Whoever vouches for a server.
#[derive(Clone, Copy, Debug)]
pub enum Judges<'a> {
    /// Authorities, of which one leads to its certificate.
    Authorities(&'a Authorities),
    /// Its own keys (`SubjectPublicKeyInfo` in DER), of which it proves one.
    Keys(&'a [Vec<u8>]),
}

/// All that a ticket vouches for, as a digest: on resumption no certificate is shown (RFC 8446 §4.6.1), neither the server's nor
/// the client's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scope([u8; 32]);

impl Scope {
    /// The connections of `holder` to the server at `origin`, a URL's scheme, host and port, which `judges` vouch for and which
    /// is shown the certificates `own_chain`.
    pub fn new(holder: &[u8], origin: &str, judges: Judges<'_>, own_chain: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        let mut add = |part: &[u8]| {
            hash.update(&(part.len() as u64).to_be_bytes());
            hash.update(part);
        };
        add(holder);
        add(origin.as_bytes());
        match judges {
            Judges::Authorities(authorities) => {
                add(b"authorities");
                add(authorities.digest());
            }
            Judges::Keys(keys) => {
                add(b"keys");
                let mut keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
                keys.sort_unstable();
                keys.dedup();
                add(&(keys.len() as u64).to_be_bytes());
                keys.into_iter().for_each(&mut add);
            }
        }
        own_chain.iter().for_each(|part| add(part));
        Self(hash.finish().0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scope_changes_with_each_of_its_parts_and_not_with_the_order_of_keys() {
        let none = Authorities::default();
        let keys = |keys: &[&[u8]]| keys.iter().map(|key| key.to_vec()).collect::<Vec<_>>();
        let (one, two) = (keys(&[b"one"]), keys(&[b"one", b"two"]));
        let origin = "https://a.example:443";
        let scopes = [
            Scope::new(b"m", origin, Judges::Keys(&one), &[]),
            Scope::new(b"n", origin, Judges::Keys(&one), &[]),
            Scope::new(b"m", "https://a.example:444", Judges::Keys(&one), &[]),
            Scope::new(b"m", "https://b.example:443", Judges::Keys(&one), &[]),
            Scope::new(b"m", origin, Judges::Keys(&two), &[]),
            Scope::new(b"m", origin, Judges::Keys(&[]), &[]),
            Scope::new(b"m", origin, Judges::Authorities(&none), &[]),
            Scope::new(b"m", origin, Judges::Keys(&one), &[b"own"]),
            Scope::new(b"m", origin, Judges::Keys(&one), &[b"own", b"issuer"]),
        ];
        for (index, scope) in scopes.iter().enumerate() {
            assert!(!scopes[..index].contains(scope), "{index}");
        }
        let other = keys(&[b"two", b"one", b"one"]);
        assert_eq!(Scope::new(b"m", origin, Judges::Keys(&other), &[]), scopes[4]);
    }
}
