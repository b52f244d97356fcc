//! Answers to visitors, before they are cut into blocks: results, and the reasons why there is none.

use std::time::Duration;

use tenure_wire::NoResult;

use crate::message::Code;

/// Why a call has no result for a visitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    /// Nobody knows such a machine.
    Unknown,
    /// The machine gave no result.
    Failed(NoResult),
    /// The device can't be asked.
    Away,
}

/// A representation, or an error.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) code: Code,
    /// The content format; an error's text has none (RFC 7252 §5.5.2).
    pub(crate) format: Option<u16>,
    /// How long a cache may keep it, in seconds; of a 5.03 or 4.29 when another request is worth it.
    pub(crate) max_age_s: Option<u32>,
    pub(crate) bytes: Vec<u8>,
}

/// When another request is worth it, if nobody knows better.
pub(crate) const AGAIN: Duration = Duration::from_secs(2);

impl Answer {
    /// An error in words.
    pub(crate) fn error(code: Code, text: &str) -> Self {
        Self { code, format: None, max_age_s: None, bytes: text.into() }
    }

    /// An error that may be over `again` later (RFC 7252 §5.9.3.4, RFC 8516 §4).
    pub(crate) fn error_for(code: Code, text: &str, again: Duration) -> Self {
        let seconds = again.as_millis().div_ceil(1000).clamp(1, u32::MAX.into());
        Self { max_age_s: Some(seconds as u32), ..Self::error(code, text) }
    }

    /// Whether it is a representation.
    pub(crate) fn is_success(&self) -> bool {
        matches!(self.code, Code::Content | Code::Changed | Code::Valid)
    }

    /// Whether the same request may be answered otherwise soon.
    pub(crate) fn is_passing(&self) -> bool {
        matches!(
            self.code,
            Code::InternalServerError
                | Code::ServiceUnavailable
                | Code::GatewayTimeout
                | Code::TooManyRequests
        )
    }
}

impl From<NoAnswer> for Answer {
    fn from(reason: NoAnswer) -> Self {
        let unavailable = |text, again| Self::error_for(Code::ServiceUnavailable, text, again);
        let reason = match reason {
            NoAnswer::Unknown => return Self::no_machine(),
            NoAnswer::Away => return unavailable("the device can't be reached", AGAIN),
            NoAnswer::Failed(reason) => reason,
        };
        let again = reason.again_in().unwrap_or(AGAIN);
        match reason {
            NoResult::NoSuchMachine | NoResult::NotFound => Self::no_machine(),
            NoResult::NoSuchFunction => Self::no_function(),
            NoResult::Denied => Self::denied(),
            NoResult::Execution | NoResult::Overspent => {
                Self::error(Code::InternalServerError, "the machine failed; its log says why")
            }
            NoResult::TooLong => {
                Self::error(Code::InternalServerError, "the machine's result is too long")
            }
            NoResult::Busy => unavailable("the machine is busy", again),
            NoResult::Deadline => Self::error(Code::GatewayTimeout, "the machine took too long"),
            NoResult::Unreachable | NoResult::AllegedlyGone | NoResult::Deferred { .. } => {
                unavailable("the device can't be reached", again)
            }
            NoResult::Stopped { .. } | NoResult::Asleep { .. } => {
                unavailable("the machine is stopped or asleep for now", again)
            }
            // Its owner has to do something first.
            _ => Self::error(Code::ServiceUnavailable, "the machine can't be called now"),
        }
    }
}

impl Answer {
    pub(crate) fn no_machine() -> Self {
        Self::error(Code::NotFound, "no machine of that name is here")
    }

    pub(crate) fn no_function() -> Self {
        Self::error(Code::NotFound, "the machine has no such function")
    }

    pub(crate) fn denied() -> Self {
        Self::error(Code::Forbidden, "the machine's lease lets no visitors call it")
    }

    pub(crate) fn not_acceptable() -> Self {
        Self::error(Code::NotAcceptable, "it can't be had in that format")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_an_error_in_words_and_those_that_pass_say_when() {
        for reason in NoResult::ALL {
            let answer = Answer::from(NoAnswer::Failed(*reason));
            assert!(!answer.is_success() && !answer.bytes.is_empty(), "{reason:?}");
        }
        let again_in = Duration::from_millis(2100);
        let stopped = Answer::from(NoAnswer::Failed(NoResult::Stopped { again_in }));
        assert_eq!((stopped.code, stopped.max_age_s), (Code::ServiceUnavailable, Some(3)));
        assert_eq!(Answer::from(NoAnswer::Failed(NoResult::Busy)).max_age_s, Some(2));
        assert_eq!(Answer::from(NoAnswer::Failed(NoResult::Denied)).code, Code::Forbidden);
        assert_eq!(Answer::from(NoAnswer::Unknown).code, Code::NotFound);
    }
}
