//! A link: datagrams in and out, best effort.

use core::fmt;

/// The longest datagram that a device sends or takes over UDP, in bytes: IPv6's smallest MTU (RFC 8200
/// §5) less the headers of IPv6 and UDP. So no router ever has to cut one up.
pub const DATAGRAM_BYTES_MAX: usize = 1280 - 40 - 8;

/// Something that carries datagrams to and from neighbours; it may lose, repeat and reorder them.
pub trait Link {
    /// Where a datagram goes to or comes from, as this link writes it.
    type Address: Clone + PartialEq + fmt::Debug;

    /// The largest datagram in bytes that the link carries.
    fn datagram_bytes_max(&self) -> usize;

    /// Hands one datagram to the link.
    ///
    /// # Errors
    /// As [`LinkError`] says; `Ok` promises nothing about delivery.
    fn send(&mut self, to: &Self::Address, datagram: &[u8]) -> Result<(), LinkError>;

    /// Takes the next datagram that arrived, if there is one, into `into`; gives its length and
    /// its sender. A datagram longer than `into` is dropped.
    ///
    /// # Errors
    /// [`LinkError::Hardware`] when the link itself is broken.
    fn receive(&mut self, into: &mut [u8]) -> Result<Option<(usize, Self::Address)>, LinkError>;

    /// How strong the signal of the datagram was that was received last, in dBm, where the link is
    /// a radio that knows.
    fn signal_dbm(&self) -> Option<i8> {
        None
    }
}

/// Why a link didn't take a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkError {
    /// The link's queue is full; later it may not be.
    Busy,
    /// The datagram is longer than the link carries.
    TooLong,
    /// No way to that address from here.
    Unreachable,
    /// The link itself is broken.
    Hardware,
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Busy => "the link is busy",
            Self::TooLong => "the datagram is longer than the link carries",
            Self::Unreachable => "no way to that address",
            Self::Hardware => "the link failed",
        })
    }
}

impl core::error::Error for LinkError {}
