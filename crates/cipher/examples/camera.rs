//! A camera whose frames are encrypted by a cluster on their way out: 324 × 244 bytes, 60 a second.
//!
//! `cargo run --release -p tenure-cipher --features std --example camera [-- SECONDS]`
//!
//! Prints the frame rate with and without encryption, first as the camera gives frames, then as
//! fast as they can be made, and checks one frame.

use std::time::{Duration, Instant};

use tenure_cipher::ChaCha20;
use tenure_cipher::cluster::threads::{CopyEngine, Threads};

const FRAME_BYTES: usize = 324 * 244;
const FRAMES_PER_SECOND: u32 = 60;
/// One of the three buffers between the camera's memory and the link's.
const BUFFER_BYTES: usize = 32 * 1024;
const KEY: [u8; 32] = [0x5a; 32];

fn main() {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(2);
    let duration = Duration::from_secs(seconds);
    check_a_frame();
    let interval = Some(Duration::from_secs(1) / FRAMES_PER_SECOND);
    for (what, interval) in [("as the camera gives them", interval), ("as fast as possible", None)]
    {
        for encrypted in [false, true] {
            let frames = run(duration, interval, encrypted);
            let rate = f64::from(frames) / duration.as_secs_f64();
            let how = if encrypted { "encrypted" } else { "plain    " };
            println!("{how} {rate:>9.1} frames/s, {what}");
        }
    }
}

/// Frames that arrived within `duration`.
fn run(duration: Duration, interval: Option<Duration>, encrypted: bool) -> u32 {
    let mut camera = Camera::default();
    let mut link = Link::new();
    let start = Instant::now();
    let mut frames = 0;
    while start.elapsed() < duration {
        let (number, frame) = camera.take();
        if encrypted {
            link.send_encrypted(number, frame);
        } else {
            link.send(frame);
        }
        frames += 1;
        if let Some(interval) = interval {
            std::thread::sleep((interval * frames).saturating_sub(start.elapsed()));
        }
    }
    frames
}

/// A synthetic source: a gradient that moves.
struct Camera {
    number: u64,
    frame: Vec<u8>,
}

impl Default for Camera {
    fn default() -> Self {
        Self { number: 0, frame: vec![0; FRAME_BYTES] }
    }
}

impl Camera {
    fn take(&mut self) -> (u64, &[u8]) {
        self.number += 1;
        let shift = self.number as u8;
        for (i, pixel) in self.frame.iter_mut().enumerate() {
            *pixel = (i as u8).wrapping_add(shift);
        }
        (self.number, &self.frame)
    }
}

/// Where frames go: a buffer that stands for the radio.
struct Link {
    sent: Vec<u8>,
    buffers: [Vec<u8>; 3],
    cluster: Threads,
}

impl Link {
    fn new() -> Self {
        let buffers = [(); 3].map(|()| vec![0; BUFFER_BYTES]);
        Self { sent: vec![0; FRAME_BYTES], buffers, cluster: Threads::available() }
    }

    fn send(&mut self, frame: &[u8]) {
        self.sent.copy_from_slice(frame);
    }

    /// A frame's number is its nonce: it never comes twice under one key.
    fn send_encrypted(&mut self, number: u64, frame: &[u8]) {
        let mut nonce = [0; 12];
        nonce[4..].copy_from_slice(&number.to_le_bytes());
        let mut stream = ChaCha20::with_key(&KEY, &nonce);
        let [a, b, c] = &mut self.buffers;
        stream
            .stream_on(&self.cluster, &mut CopyEngine, frame, &mut self.sent, [a, b, c])
            .expect("a frame is shorter than a keystream");
    }
}

fn check_a_frame() {
    let mut camera = Camera::default();
    let mut link = Link::new();
    let (number, frame) = camera.take();
    link.send_encrypted(number, frame);
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&number.to_le_bytes());
    let mut expected = frame.to_vec();
    ChaCha20::with_key(&KEY, &nonce).xor(&mut expected).expect("short enough");
    assert!(link.sent == expected, "a frame was encrypted wrongly");
}
