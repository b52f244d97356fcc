//! A synthetic source of frames: a gradient that moves.

/// Bytes of a frame: 324 columns, 244 rows, one byte a pixel (an HM01B0 sensor's).
pub(crate) const FRAME_BYTES: usize = 324 * 244;
/// How often the camera has a new one.
pub(crate) const FRAMES_PER_SECOND: u32 = 60;

/// The camera.
pub(crate) struct Camera {
    number: u64,
    pixels: Vec<u8>,
}

/// The last picture.
pub(crate) struct Frame<'a> {
    /// Never the same twice.
    pub(crate) number: u64,
    /// [`FRAME_BYTES`] of them.
    pub(crate) pixels: &'a [u8],
}

impl Default for Camera {
    fn default() -> Self {
        Self { number: 0, pixels: vec![0; FRAME_BYTES] }
    }
}

impl Camera {
    /// The next frame.
    pub(crate) fn take(&mut self) -> Frame<'_> {
        self.number += 1;
        let shift = self.number as u8;
        for (i, pixel) in self.pixels.iter_mut().enumerate() {
            *pixel = (i as u8).wrapping_add(shift);
        }
        Frame { number: self.number, pixels: &self.pixels }
    }
}
