//! Secrets that the tenant keeps on the device, apart from the package: keys, passwords, tokens.
//!
//! A machine reads those that its package asks for and its lease grants:
//!
//! ```no_run
//! # fn main() -> Result<(), tenure::Error> {
//! let password = tenure::secret::read("wifi")?.ok_or(tenure::Error::NotFound)?;
//! # drop(password); Ok(()) }
//! ```
//!
//! The tenant may set, change and remove them while the machine runs (`tenure secret`): read a secret
//! where it is used, rather than once at the start.

use alloc::vec::Vec;

use crate::status::{optional, read_whole};
use crate::{Error, host};

/// The secret `name`, or `None` if the tenant has set none of that name on this device.
///
/// # Errors
/// [`Error::NotGranted`], [`Error::Invalid`] (the name), [`Error::Full`] (the machine has too many
/// calls under way) or [`Error::Device`].
pub fn read(name: &str) -> Result<Option<Vec<u8>>, Error> {
    optional(read_whole(|into| {
        // SAFETY: each pointer and length is of a slice that lives until the call returns.
        unsafe { host::secret_read(name.as_ptr(), name.len(), into.as_mut_ptr(), into.len()) }
    }))
}
