//! Where a native machine stands, written down: what outlasts a sleep with the power off.
//!
//! Little-endian words of 8 bytes: what must be the same for it to go on, then its registers and its host
//! call, then its memory behind the code, in which runs of zeros are counted and not written. Its code comes
//! from its binary. What is read is checked for its form; what its registers hold can do no harm that its
//! code couldn't.

use alloc::vec::Vec;

use tenure_hal::Context;

use super::{Call, WORDS_MAX};

/// The version of this form.
const VERSION: u64 = 1;
const WORD_BYTES: usize = size_of::<u64>();
/// The length of what is written or left out of memory at a time, in bytes.
const GRAIN: usize = 32;

/// The part that must be as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The address of its memory.
    pub(super) base: usize,
    /// How long that is, and how much of it is code.
    pub(super) bytes: usize,
    pub(super) code_bytes: usize,
    /// The number of the firmware, where functions of the machine return to.
    pub(super) firmware: usize,
}

/// The part that changes as it runs, its memory aside.
#[derive(Clone, Debug, Default)]
pub(super) struct Stand {
    /// Its registers, where a call is under way.
    pub(super) context: Context,
    pub(super) is_under_way: bool,
    /// The host call that it has made last; whether it waits in it.
    pub(super) call: Call,
    pub(super) waits: bool,
    /// The fuel that was used beyond what was given.
    pub(super) overspent: u64,
}

/// Writes it down, with room for `spare` bytes behind; `None` if there is no memory for that.
pub(super) fn write(place: &Place, stand: &Stand, own: &[u8], spare: usize) -> Option<Vec<u8>> {
    let mut length = spare;
    write_parts(place, stand, own, &mut |part| length += part.len());
    let mut state = Vec::new();
    state.try_reserve_exact(length).ok()?;
    write_parts(place, stand, own, &mut |part| state.extend_from_slice(part));
    Some(state)
}

fn write_parts(place: &Place, stand: &Stand, own: &[u8], write: &mut impl FnMut(&[u8])) {
    let mut word = |word: u64| write(&word.to_le_bytes());
    word(VERSION);
    for one in [place.base, place.bytes, place.code_bytes, place.firmware] {
        word(one as u64);
    }
    word(u64::from(stand.is_under_way));
    word(u64::from(stand.waits));
    word(stand.overspent);
    word(stand.call.count as u64);
    stand.call.arguments.iter().for_each(|argument| word(*argument));
    stand.context.words.iter().for_each(|register| word(*register as u64));
    let mut rest = own;
    while !rest.is_empty() {
        let is_zero = |grain: &&[u8]| grain.iter().all(|byte| *byte == 0);
        let zeros = GRAIN * rest.chunks(GRAIN).take_while(is_zero).count();
        let behind = &rest[zeros.min(rest.len())..];
        let bytes = GRAIN * behind.chunks(GRAIN).take_while(|grain| !is_zero(grain)).count();
        let (run, behind) = behind.split_at(bytes.min(behind.len()));
        write(&(zeros as u64).to_le_bytes());
        write(&(run.len() as u64).to_le_bytes());
        write(run);
        rest = behind;
    }
}

/// The written state, as far as it stands before the memory.
pub(super) struct Written<'a> {
    pub(super) place: Place,
    pub(super) stand: Stand,
    memory: Reader<'a>,
}

/// Reads what [`write`] gave; `None` if it isn't that.
pub(super) fn read(state: &[u8]) -> Option<Written<'_>> {
    let mut state = Reader(state);
    if state.word()? != VERSION {
        return None;
    }
    let (base, bytes) = (state.length()?, state.length()?);
    let place = Place { base, bytes, code_bytes: state.length()?, firmware: state.length()? };
    let mut stand = Stand {
        is_under_way: state.word()? != 0,
        waits: state.word()? != 0,
        overspent: state.word()?,
        ..Stand::default()
    };
    stand.call.count = state.length().filter(|count| *count <= WORDS_MAX)?;
    for argument in &mut stand.call.arguments {
        *argument = state.word()?;
    }
    for word in &mut stand.context.words {
        *word = state.length()?;
    }
    Some(Written { place, stand, memory: state })
}

impl Written<'_> {
    /// Makes the machine's own memory what it was; gives whether all of it was there.
    pub(super) fn restore(mut self, own: &mut [u8]) -> bool {
        own.fill(0);
        let mut rest = own;
        while !rest.is_empty() {
            let run = |memory: &mut Reader<'_>| Some((memory.length()?, memory.length()?));
            let Some((zeros, bytes)) = run(&mut self.memory) else { return false };
            // Zeros are counted in whole grains.
            let behind = rest.split_at_mut(zeros.min(rest.len())).1;
            let (Some(run), true) = (self.memory.bytes(bytes), bytes <= behind.len()) else {
                return false;
            };
            if zeros == 0 && bytes == 0 {
                return false;
            }
            let (place, behind) = behind.split_at_mut(bytes);
            place.copy_from_slice(run);
            rest = behind;
        }
        self.memory.0.is_empty()
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }

    fn word(&mut self) -> Option<u64> {
        let bytes = self.bytes(WORD_BYTES)?;
        bytes.first_chunk().map(|word| u64::from_le_bytes(*word))
    }

    fn length(&mut self) -> Option<usize> {
        usize::try_from(self.word()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use tenure_testbed::frozen;

    use super::*;

    #[test]
    fn state_of_version_1_is_written_and_read() {
        let place = Place { base: 0x8000_0000, bytes: 256, code_bytes: 64, firmware: 0x2000_0000 };
        let mut stand =
            Stand { is_under_way: true, waits: true, overspent: 300, ..Stand::default() };
        stand.context.words[1] = 0x8000_0010;
        stand.call.count = 2;
        stand.call.arguments[..2].copy_from_slice(&[5, 6]);
        let mut own = [0; 192];
        own[64..70].copy_from_slice(b"frozen");
        let written = write(&place, &stand, &own, 0).unwrap();
        let bytes = frozen(env!("CARGO_MANIFEST_DIR"), "suspended-native-1", &written);
        let read = read(&bytes).unwrap();
        assert_eq!(read.place, place);
        assert_eq!((read.stand.context.words[1], read.stand.overspent), (0x8000_0010, 300));
        assert_eq!(read.stand.call.arguments[..2], [5, 6]);
        let mut restored = [1; 192];
        assert!(read.restore(&mut restored));
        assert_eq!(restored, own);
        let mut later = bytes.clone();
        later[0] += 1;
        assert!(super::read(&later).is_none(), "another version isn't guessed at");
    }
}
