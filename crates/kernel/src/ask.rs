//! The questions of machines to servers outside.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use tenure_wire::Url;
use tenure_wire::capability::Method;

/// A question to a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ask {
    /// A request. Its answer is the head of the server's, and of the body what one result holds beside it.
    Request {
        /// The request's method.
        method: Method,
        /// Where it goes.
        url: Url,
        /// Fields, an empty line and a body, as in a message of HTTP; `None` if it has none.
        message: Option<Vec<u8>>,
    },
    /// The next part of the body of the machine's last answer; null after the last.
    More,
}

impl Ask {
    /// How long its message is, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Request { message: Some(message), .. } => message.len(),
            Self::Request { .. } | Self::More => 0,
        }
    }

    /// Whether asking twice changes nothing more than asking once.
    pub(crate) fn is_safe(&self) -> bool {
        matches!(self, Self::Request { method, .. } if method.is_safe())
    }
}
