//! Requests that wait for an answer: all of them but what a machine is asked for.

use std::net::SocketAddr;
use std::time::Duration;

use crate::answer::Answer;
use crate::block::Block;
use crate::format;
use crate::message::{Code, Method, Observe, Request};
use crate::transfers::Key;

/// How long an observer isn't told anything at most: then it is told the same again, and must acknowledge it.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(15 * 60);
/// How long an observer may believe what it was told (RFC 7641 §4.3.1): until the next is due, and lost once.
pub(crate) const BELIEVED_S: u32 = HEARTBEAT.as_secs() as u32 + 60;

/// A request, without what it asks a machine for.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    /// The client, and the resource.
    pub(crate) key: Key,
    pub(crate) token: Vec<u8>,
    /// The format that the answer is to have.
    pub(crate) accept: Option<u16>,
    pub(crate) observe: Option<Observe>,
    /// The last block of the request's payload, if that came in blocks.
    pub(crate) block1: Option<Block>,
    pub(crate) block2: Option<Block>,
    /// Entity tags of representations that the client has.
    pub(crate) tags: Vec<Vec<u8>>,
    /// The length of the request's datagram.
    pub(crate) request_bytes: usize,
}

impl Wish {
    /// The wish of a request that `peer` sends.
    pub(crate) fn of(peer: SocketAddr, request: &Request) -> Self {
        let asked = request.asked.as_ref().ok();
        let key = Key {
            peer,
            method: asked.map_or(Method::Other, |asked| asked.method),
            path: asked.map(|asked| asked.path.clone()).unwrap_or_default(),
            query: asked.and_then(|asked| asked.query.clone()),
            tag: asked.and_then(|asked| asked.request_tag.clone()),
        };
        Self {
            key,
            token: request.token.clone(),
            accept: asked.and_then(|asked| asked.accept),
            observe: asked.and_then(|asked| asked.observe),
            block1: asked.and_then(|asked| asked.block1),
            block2: asked.and_then(|asked| asked.block2),
            tags: asked.map(|asked| asked.tags.clone()).unwrap_or_default(),
            request_bytes: request.datagram_bytes,
        }
    }

    /// A result, or an event, as it is wanted.
    pub(crate) fn representation(&self, result: Option<&[u8]>, is_observed: bool) -> Answer {
        let Some((format, bytes)) = format::represent(result, self.accept) else {
            return Answer::not_acceptable();
        };
        let (code, max_age_s) = match self.key.method {
            // A machine's next result may be another one: no cache keeps it, but as long as its observer will be told.
            Method::Get | Method::Fetch => {
                (Code::Content, Some(if is_observed { BELIEVED_S } else { 0 }))
            }
            _ => (Code::Changed, None),
        };
        Answer { code, format, max_age_s, bytes }
    }
}
