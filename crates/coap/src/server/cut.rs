//! Answers cut to what a visitor asks for and its address may get (RFC 7959 §2.4).

use tenure_crypto::sha256;
use tenure_hal::Instant;

use super::Server;
use crate::answer::Answer;
use crate::block::{BLOCK_BYTES_MAX, Block, EXPONENT_MAX, size_of_exponent};
use crate::message::{Code, ECHO_BYTES, Method, Reply, TAG_BYTES, Type};
use crate::transfers::{Key, UPLOAD_BYTES_MAX};
use crate::wish::Wish;

/// The byte between options and payload.
const MARKER_BYTES: usize = 1;

impl Server {
    /// The reply that an answer is, or its block that is wanted. An answer of which more is to come is kept for the requests
    /// for it.
    pub(super) fn cut(
        &mut self,
        now: Instant,
        wish: &Wish,
        answer: Answer,
        observe: Option<u32>,
    ) -> Reply {
        let peer = wish.key.peer;
        let room = self.proofs.room(now, peer, wish.request_bytes);
        let mut reply = Reply::new(answer.code);
        (reply.max_age_s, reply.observe) = (answer.max_age_s, observe);
        reply.block1 = wish.block1.filter(|_| ends_upload(answer.code));
        if answer.code == Code::RequestEntityTooLarge {
            reply.size1 = Some(UPLOAD_BYTES_MAX as u32);
        }
        if !answer.is_success() {
            reply.payload = answer.bytes;
            reply.echo =
                (answer.code == Code::Unauthorized).then(|| self.proofs.echo_for(now, peer));
            if reply.message(Type::Confirmable, 0, &wish.token).len() > room.bytes {
                reply.payload.clear();
            }
            return reply;
        }
        if matches!(wish.key.method, Method::Get | Method::Fetch) {
            let tag = tag_of(&answer);
            reply.tag = Some(tag);
            if wish.key.method == Method::Get && wish.tags.iter().any(|known| *known == tag) {
                // RFC 7252 §5.6.2: the client has it already.
                reply.code = Code::Valid;
                return reply;
            }
        }
        reply.format = answer.format;
        let length = |reply: &Reply| reply.message(Type::Confirmable, 0, &wish.token).len();
        let bytes = answer.bytes.len();
        let fits_whole = length(&reply) + MARKER_BYTES + bytes <= room.bytes;
        if wish.block2.is_none() && bytes <= BLOCK_BYTES_MAX && fits_whole {
            reply.payload = answer.bytes;
            return reply;
        }
        let offset = wish.block2.map_or(0, Block::offset);
        if offset > 0 && offset >= bytes {
            return Reply {
                payload: b"the answer has no such block".into(),
                ..Reply::new(Code::BadRequest)
            };
        }
        // Both options are counted as long as they can be.
        reply.block2 = Some(Block::at(size_of_exponent(EXPONENT_MAX) << 19, EXPONENT_MAX, true));
        reply.echo = (!room.is_proved).then_some([0; ECHO_BYTES]);
        let left = room.bytes.saturating_sub(length(&reply) + MARKER_BYTES);
        let size_max = wish.block2.map_or(BLOCK_BYTES_MAX, Block::size);
        let fits = |exponent: &u8| size_of_exponent(*exponent) <= size_max.min(left);
        let exponent = (0..=EXPONENT_MAX).rev().find(fits).unwrap_or(0);
        let end = bytes.min(offset + size_of_exponent(exponent));
        let more = end < bytes;
        reply.block2 = Some(Block::at(offset, exponent, more));
        let is_shortened = more && size_of_exponent(exponent) < size_max;
        reply.echo = reply.echo.filter(|_| is_shortened).map(|_| self.proofs.echo_for(now, peer));
        reply.payload = answer.bytes[offset..end].to_vec();
        if more && offset == 0 {
            self.downloads.keep(now, wish.key.of_download(), answer);
        }
        reply
    }
}

impl Key {
    /// The key of the answer: the name of an upload isn't repeated when its answer is fetched.
    pub(super) fn of_download(&self) -> Self {
        Self { tag: None, ..self.clone() }
    }
}

/// Whether a reply with that code to the last block of a payload says that it was taken (RFC 7959 §2.3).
fn ends_upload(code: Code) -> bool {
    !matches!(code, Code::RequestEntityTooLarge | Code::RequestEntityIncomplete)
}

/// The entity tag of a representation: another one of the same resource has another (RFC 7252 §5.10.6).
fn tag_of(answer: &Answer) -> [u8; TAG_BYTES] {
    let format = answer.format.map(u16::to_be_bytes).unwrap_or_default();
    let digest = sha256(&[&format, &answer.bytes]);
    *digest.0.first_chunk().expect("a digest of 32 bytes has 4")
}
