//! Pages of machines over HTTP: a visitor's request is a call of the function [`FUNCTION`], its result the answer.
//!
//! A machine is a tenant's, and so is its page. Each has an origin of its own, `NAME.DEVICE.localhost` or below another
//! domain, so that a browser keeps one tenant's scripts, cookies and storage from another's page (RFC 6454 §4). A visitor
//! calls with the key of these pages and never with the owner's: a machine whose lease doesn't let that key call it has
//! no page.
//!
//! A server that has one host for all of them, as the hub, gives each page a path instead ([`Visit::below`]): the page is
//! confined there, and what the browser keeps for the host doesn't reach the machine.
//!
//! Invariants:
//! - A host that no page has is refused, so that no name of a stranger's reaches a page (DNS rebinding).
//! - A browser keeps cookies by host, whatever the port: that of a hub's session reaches no machine, and none sets it.
//! - What passes of a machine's answer is on a list; what isn't known there is dropped.
//! - A change that a browser asks for is made only if the request comes from that page itself.
//! - Connections, headers, bodies, calls under way, those that wait, and the length of a page are bounded; so are
//!   streams of events, and none waits in a machine.
//! - A machine's answer is an allegation: malformed or without an end, it concerns that visitor alone.
#![forbid(unsafe_code)]

mod answer;
mod conditional;
mod cookies;
mod events;
mod fence;
mod index;
mod machines;
mod origin;
mod parts;
mod request;
mod serve;
mod turns;
mod visits;

pub use cookies::HUB_SESSION;
pub use machines::{Cookies, Machines, PageBody, Visit};
pub use origin::Origins;
pub use serve::{Pages, serve};
pub use visits::{Entry, NoPage, Visits};

/// The function that a machine with pages exports.
pub const FUNCTION: &str = "http";
