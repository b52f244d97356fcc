//! A body's code in memory: pieces of one size, so that long code neither moves as it grows nor asks the heap for a
//! large piece.

use alloc::vec::Vec;

const PIECE_BYTES: usize = 1024;

/// Code in 16-bit units, at even positions. Units for which the heap has no room count, and read as zero.
#[derive(Default)]
pub(super) struct Pieces {
    pieces: Vec<Vec<u8>>,
    length: usize,
    is_cut: bool,
}

impl Pieces {
    /// Bytes of the code.
    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// Whether the heap had no room for a part of it.
    pub(super) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Forgets the code, and keeps its memory.
    pub(super) fn clear(&mut self) {
        self.length = 0;
    }

    pub(super) fn push(&mut self, unit: u16) {
        let at = self.length;
        self.length += 2;
        if at / PIECE_BYTES == self.pieces.len() {
            match piece(&mut self.pieces) {
                Some(piece) => self.pieces.push(piece),
                None => self.is_cut = true,
            }
        }
        self.set(at, unit);
    }

    /// The unit at `at`; zero if there is none.
    pub(super) fn get(&self, at: usize) -> u16 {
        let bytes = self.pieces.get(at / PIECE_BYTES).and_then(|piece| {
            let at = at % PIECE_BYTES;
            piece.get(at..at + 2)
        });
        bytes.map_or(0, |bytes| u16::from_le_bytes([bytes[0], bytes[1]]))
    }

    /// Changes the unit at `at`, if there is one.
    pub(super) fn set(&mut self, at: usize, unit: u16) {
        let bytes = self.pieces.get_mut(at / PIECE_BYTES).and_then(|piece| {
            let at = at % PIECE_BYTES;
            piece.get_mut(at..at + 2)
        });
        if let Some(bytes) = bytes {
            bytes.copy_from_slice(&unit.to_le_bytes());
        }
    }

    /// Forgets the code from `length` on.
    pub(super) fn truncate(&mut self, length: usize) {
        self.length = length;
    }

    /// The code, piece by piece.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let lengths = (0..self.length).step_by(PIECE_BYTES);
        self.pieces.iter().zip(lengths).map(|(piece, from)| {
            let length = (self.length - from).min(PIECE_BYTES);
            &piece[..length]
        })
    }
}

/// A piece of zeros, with a place for it in `pieces`; `None` if the heap has no room.
fn piece(pieces: &mut Vec<Vec<u8>>) -> Option<Vec<u8>> {
    let mut piece = Vec::new();
    piece.try_reserve_exact(PIECE_BYTES).ok()?;
    pieces.try_reserve(1).ok()?;
    piece.resize(PIECE_BYTES, 0);
    Some(piece)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_over_several_pieces_is_read_changed_and_written_as_one() {
        let mut code = Pieces::default();
        let units = 3 * PIECE_BYTES / 2 + 5;
        (0..units).for_each(|unit| code.push(unit as u16));
        assert_eq!(code.len(), 2 * units);
        let last = 2 * PIECE_BYTES - 2;
        assert_eq!((code.get(last), code.get(last + 2)), (1023, 1024));
        code.set(last, 7);
        code.truncate(last + 4);
        let bytes: Vec<u8> = code.iter().flatten().copied().collect();
        assert_eq!(bytes.len(), last + 4);
        assert_eq!(bytes[last..], [7, 0, 0, 4]);
        code.clear();
        assert_eq!(code.iter().count(), 0);
        code.push(9);
        assert_eq!(code.iter().collect::<Vec<_>>(), [[9, 0]]);
    }
}
