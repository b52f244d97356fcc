//! Data at any address for kernels that load whole words.
#![allow(unsafe_code)]

#[cfg(any(target_arch = "riscv32", target_arch = "riscv64", tenure_thumb))]
use super::wipe::wipe;

use crate::chacha::Block;

/// The words of a block, in the machine's byte order, if it is aligned to words.
#[inline(always)]
pub(super) fn words_mut(block: &mut Block) -> Option<&mut [u32; 16]> {
    if !is_word_aligned(block.as_ptr()) {
        return None;
    }
    // SAFETY: aligned as the check above says, of the same size, and any bits are a valid word.
    Some(unsafe { &mut *block.as_mut_ptr().cast() })
}

/// The same for a block of Poly1305.
#[inline(always)]
pub(super) fn words(block: &[u8; 16]) -> Option<&[u32; 4]> {
    if !is_word_aligned(block.as_ptr()) {
        return None;
    }
    // SAFETY: aligned as the check above says, of the same size, and any bits are a valid word.
    Some(unsafe { &*block.as_ptr().cast() })
}

/// Blocks that are copied at a time when the data is not aligned.
#[cfg(any(target_arch = "riscv32", target_arch = "riscv64", tenure_thumb))]
const BLOCKS: usize = 4;

#[cfg(any(target_arch = "riscv32", target_arch = "riscv64", tenure_thumb))]
/// Calls `kernel` with `data`, or with aligned copies of its parts if `data` is not aligned to
/// words. The second argument is the number of blocks that went before.
pub(super) fn for_each_aligned(data: &mut [Block], mut kernel: impl FnMut(&mut [Block], u32)) {
    if is_word_aligned(data.as_ptr().cast()) {
        kernel(data, 0);
        return;
    }
    #[repr(align(4))]
    struct Aligned([Block; BLOCKS]);
    let mut copy = Aligned([[0; 64]; BLOCKS]);
    let mut before = 0;
    for part in data.chunks_mut(BLOCKS) {
        let copy = &mut copy.0[..part.len()];
        copy.copy_from_slice(part);
        kernel(copy, before);
        part.copy_from_slice(copy);
        before += part.len() as u32;
    }
    wipe(copy.0.as_flattened_mut());
}

/// The same for the blocks of a message to be authenticated.
#[cfg(any(target_arch = "riscv32", tenure_thumb))]
pub(super) fn for_each_aligned_chunk(data: &[[u8; 16]], mut kernel: impl FnMut(&[[u8; 16]])) {
    if is_word_aligned(data.as_ptr().cast()) {
        kernel(data);
        return;
    }
    #[repr(align(4))]
    struct Aligned([[u8; 16]; BLOCKS]);
    let mut copy = Aligned([[0; 16]; BLOCKS]);
    for part in data.chunks(BLOCKS) {
        let copy = &mut copy.0[..part.len()];
        copy.copy_from_slice(part);
        kernel(copy);
    }
    wipe(copy.0.as_flattened_mut());
}

fn is_word_aligned(data: *const u8) -> bool {
    data.addr().is_multiple_of(4)
}
