//! Where frames go: a buffer that stands for the radio, and three between it and the camera.

use std::fmt;
use std::io;

use tenure_cipher::ChaCha20;
use tenure_cipher::cluster::threads::{CopyEngine, Threads};
use tenure_cipher::cluster::{Cluster, StreamError};

use crate::camera::{FRAME_BYTES, Frame};

/// Bytes of each of the three: a frame takes three of them.
const BUFFER_BYTES: usize = 32 * 1024;
/// For show: a real camera agrees on one with its peer.
const KEY: [u8; 32] = [0x5a; 32];

/// The way out.
pub(crate) struct Link {
    sent: Vec<u8>,
    buffers: [Vec<u8>; 3],
    cluster: Threads,
    engine: CopyEngine,
}

/// Why nothing can be streamed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The system gave no thread.
    Threads(io::Error),
    /// The engine refused the frame.
    Stream(StreamError),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Threads(error) => write!(f, "the system gives no threads: {error}"),
            Self::Stream(error) => write!(f, "the frame cannot be encrypted: {error}"),
        }
    }
}

impl Link {
    /// With so many threads; with one for each processor, if `cores` does not say.
    pub(crate) fn new(cores: Option<usize>) -> Result<Self, Failure> {
        let cluster = cores.map_or_else(Threads::available, Threads::new);
        Ok(Self {
            sent: vec![0; FRAME_BYTES],
            buffers: [(); 3].map(|()| vec![0; BUFFER_BYTES]),
            cluster: cluster.map_err(Failure::Threads)?,
            engine: CopyEngine::new().map_err(Failure::Threads)?,
        })
    }

    /// Threads that encrypt.
    pub(crate) fn cores(&self) -> usize {
        self.cluster.cores()
    }

    /// Sends the frame as it is.
    pub(crate) fn send(&mut self, frame: &Frame<'_>) {
        self.sent.copy_from_slice(frame.pixels);
    }

    /// Encrypts the frame on its way. Its number is its nonce: it never comes twice under one key.
    pub(crate) fn send_encrypted(&mut self, frame: &Frame<'_>) -> Result<(), Failure> {
        let [a, b, c] = &mut self.buffers;
        let buffers = [&mut a[..], &mut b[..], &mut c[..]];
        stream_of(frame.number)
            .stream_on(&self.cluster, &mut self.engine, frame.pixels, &mut self.sent, buffers)
            .map_err(Failure::Stream)
    }
}

fn stream_of(number: u64) -> ChaCha20 {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&number.to_le_bytes());
    ChaCha20::with_key(&KEY, &nonce)
}

#[cfg(test)]
mod tests {
    use super::{Link, stream_of};
    use crate::camera::Camera;

    #[test]
    fn frame_is_sent_as_one_core_encrypts_it() {
        for cores in [1, 2, 5] {
            let mut link = Link::new(Some(cores)).unwrap();
            let mut camera = Camera::default();
            for _ in 0..3 {
                let frame = camera.take();
                link.send_encrypted(&frame).unwrap();
                let mut expected = frame.pixels.to_vec();
                stream_of(frame.number).xor(&mut expected).unwrap();
                assert!(link.sent == expected, "frame {}, {cores} cores", frame.number);
            }
        }
    }
}
