//! HTTP/1.1 as a client speaks it (RFC 9112), without sockets: a request as bytes, and a response from bytes.

mod body;
mod request;
mod response;

pub(crate) use body::{Body, Framing};
pub(crate) use request::{BadMessage, Connection, request};
pub(crate) use response::{BadResponse, Head};
