//! The protection of frames: a trait, because the cryptography is a layer above.

/// A frame's number, never the same twice under one key: who sends, in which of its lives, and how
/// many frames it sent before. The salt keeps it so where the epoch doesn't: after flash was put back,
/// on a cloned device, or where a node starts twice in one boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameNumber {
    /// The sender.
    pub sender: crate::NodeId,
    /// Which of the sender's lives.
    pub epoch: u32,
    /// Drawn at random for this life; zeros where frames aren't sealed.
    pub salt: Salt,
    /// How many frames it sent in it before.
    pub sequence: u32,
}

/// A random number for each life of a node.
pub type Salt = [u8; 8];

/// Seals the frames that a node sends, and opens those it gets.
pub trait Seal: Send {
    /// Whether frames are sealed at all. Where they aren't, anybody is believed.
    const SEALS: bool;
    /// How many bytes sealing adds.
    const OVERHEAD_BYTES: usize;

    /// Encrypts `frame` from `header_bytes` on where it stands, and appends what proves it and the
    /// header.
    fn seal(&self, number: &FrameNumber, header_bytes: usize, frame: &mut alloc::vec::Vec<u8>);

    /// Decrypts `sealed` where it stands and gives what was in it; `None` if it or `header` isn't
    /// what was sealed.
    fn open<'a>(
        &self,
        number: &FrameNumber,
        header: &[u8],
        sealed: &'a mut [u8],
    ) -> Option<&'a [u8]>;
}

/// No protection: for measuring, and for interoperating with the careless.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unsealed;

impl Seal for Unsealed {
    const SEALS: bool = false;
    const OVERHEAD_BYTES: usize = 0;

    fn seal(&self, _: &FrameNumber, _: usize, _: &mut alloc::vec::Vec<u8>) {}

    fn open<'a>(&self, _: &FrameNumber, _: &[u8], sealed: &'a mut [u8]) -> Option<&'a [u8]> {
        Some(sealed)
    }
}
