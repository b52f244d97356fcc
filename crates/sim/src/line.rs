//! The parser of machines' log lines: four letters, then bytes in hexadecimal.

/// A call's identification, which its caller draws.
pub(crate) type CallId = u64;

/// A line of a machine of [`crate::guests`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A machine started; its public key.
    Key([u8; 32]),
    /// A counter started with this number in its tree.
    Have(u32),
    /// A counter ran a call and stored this number.
    Ran(CallId, u32),
    /// A counter is told to run a call that it remembers.
    Twice(CallId),
    /// A counter's write failed with this status.
    WriteFailed(i32),
    /// A straight caller calls.
    Called(CallId),
    /// Its call is over, with this status and result: identification and number.
    Done(CallId, i32, (CallId, u32)),
    /// A queueing caller puts a call into the queue.
    Queued(CallId),
    /// The queue didn't take it.
    NotQueued(CallId),
    /// The callback of success was called with this result.
    Succeeded(CallId, u32),
    /// The callback of failure was called.
    Failed,
    /// A ticker runs.
    Tick,
}

impl Line {
    /// The line in `text`, or `None` for what isn't a machine's own word, such as the kernel's.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (letters, digits) = text.split_at_checked(4)?;
        let mut fields = Fields(decode(digits)?);
        let line = match letters {
            "self" => Self::Key(fields.take()?),
            "have" => Self::Have(fields.word()?),
            "runs" => Self::Ran(fields.id()?, fields.word()?),
            "twic" => Self::Twice(fields.id()?),
            "errr" => Self::WriteFailed(fields.word()? as i32),
            "call" => Self::Called(fields.id()?),
            "done" => {
                Self::Done(fields.id()?, fields.word()? as i32, (fields.id()?, fields.word()?))
            }
            "queu" => Self::Queued(fields.id()?),
            "nope" => Self::NotQueued(fields.id()?),
            "okay" => Self::Succeeded(fields.id()?, fields.word()?),
            "fail" => Self::Failed,
            "tick" => Self::Tick,
            _ => return None,
        };
        Some(line)
    }
}

/// An event as a listener logs it: its topic, and its first bytes.
pub(crate) fn heard(text: &str) -> Option<(String, Vec<u8>)> {
    let event = decode(text.strip_prefix("hear")?)?;
    let end = event.iter().position(|byte| *byte == 0)?;
    Some((String::from_utf8(event[..end].to_vec()).ok()?, event[end + 1..].to_vec()))
}

/// The path at which a counter remembers that it ran a call.
pub(crate) fn mark_of(id: CallId) -> String {
    let mut path = String::from("r.");
    for byte in id.to_le_bytes() {
        path += &format!("{byte:02x}");
    }
    path
}

struct Fields(Vec<u8>);

impl Fields {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let taken = self.0.get(..N)?.try_into().ok()?;
        self.0.drain(..N);
        Some(taken)
    }

    fn id(&mut self) -> Option<CallId> {
        self.take().map(u64::from_le_bytes)
    }

    fn word(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }
}

pub(crate) fn decode(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}
