//! Packages that devices fetch part by part, kept in memory meanwhile.

use super::sql;

/// The most packages that are kept.
const SERVED_MAX: usize = 4;

/// The packages that were asked for last, the latest first.
#[derive(Default)]
pub(crate) struct Served(Vec<Package>);

struct Package {
    owner: String,
    digest: String,
    bytes: Vec<u8>,
}

impl Served {
    /// The bytes of a package in its owner's registry, which `read` looks up by owner and digest if they aren't kept;
    /// none if it isn't there.
    ///
    /// # Errors
    /// `read` fails.
    pub(crate) fn bytes(
        &mut self,
        owner: String,
        digest: String,
        read: impl FnOnce(&str, &str) -> Result<Option<Vec<u8>>, sql::Error>,
    ) -> Result<&[u8], sql::Error> {
        let Self(packages) = self;
        let is_it = |one: &Package| one.owner == owner && one.digest == digest;
        let package = match packages.iter().position(is_it) {
            Some(known) => packages.remove(known),
            None => {
                let found = read(&owner, &digest)?;
                // One that isn't there may be pushed at any moment, here or at another hub.
                let Some(bytes) = found else { return Ok(&[]) };
                Package { bytes, owner, digest }
            }
        };
        packages.truncate(SERVED_MAX - 1);
        packages.insert(0, package);
        Ok(&packages[0].bytes)
    }
}
