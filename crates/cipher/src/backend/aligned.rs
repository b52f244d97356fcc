//! Data at any address for kernels that load whole words.

use zeroize::Zeroize;

use crate::chacha::Block;

/// Blocks that are copied at a time when the data is not aligned.
const BLOCKS: usize = 4;

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
    copy.0.as_flattened_mut().zeroize();
}

/// The same for the blocks of a message to be authenticated.
#[cfg(not(target_arch = "riscv64"))]
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
    copy.0.as_flattened_mut().zeroize();
}

fn is_word_aligned(data: *const u8) -> bool {
    data.addr().is_multiple_of(4)
}
