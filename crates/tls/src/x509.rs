//! Certificates (RFC 5280) and whether a chain of them vouches for a server or a client.

mod certificate;
mod constraints;
mod der;
mod directory_name;
mod error;
mod name;
mod path;
mod private_key;
mod time;

pub use certificate::{Certificate, Validity, parse_public_key};
pub use error::CertificateError;
pub use name::{AlternativeName, ServerName};
pub use path::{Anchor, Purpose, verify_chain};
pub(crate) use path::{CERTIFICATES_MAX, Policy, Search, check_leaf, nth_of};
pub use private_key::parse_private_key;
pub use time::UnixTime;
