//! What a device's TLS clients know beside a connection: the date by which certificates are judged, authorities, servers' tickets.
//!
//! Invariants:
//! - A device that doesn't know the date judges no certificate by one: the connection fails, and its error says how the device
//!   learns the date.
//! - A ticket is used for one connection, with the trust and the certificates of the one that it came on. A server's certificate
//!   is judged anew once a day, and when the date jumps.
#![forbid(unsafe_code)]

mod authorities;
mod date;
mod scope;
mod tickets;

pub use authorities::Authorities;
pub use date::{Date, Dates, explain};
pub use scope::{Judges, Scope};
pub use tickets::{Keeper, ReadyTicket, Tickets};
