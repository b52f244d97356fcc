//! ARMv6-M, whose one multiplication returns the lower 32 bits: four of them, of halves, for each pair
//! of limbs.
#![allow(unsafe_code)]

use core::arch::global_asm;

use super::Radix;

global_asm!(include_str!("armv6m.s"), options(raw));

unsafe extern "C" {
    fn tenure_add(sum: *mut u32, number: *const u32, limbs: usize, mask: u32) -> u32;
    fn tenure_add_small(sum: *mut u32, columns: *const i32, limbs: usize) -> i32;
    fn tenure_subtract(difference: *mut u32, number: *const u32, limbs: usize, mask: u32) -> u32;
    fn tenure_multiply_add(sum: *mut u32, number: *const u32, limbs: usize, factor: u32) -> u32;
    fn tenure_multiply(product: *mut u32, one: *const u32, other: *const u32, limbs: usize);
    fn tenure_square(product: *mut u32, number: *const u32, limbs: usize);
    fn tenure_fold(columns: *mut i64, limbs: usize, distances: *const u32);
}

/// As [`super::portable::add`].
///
/// # Panics
/// If the two have different lengths.
pub fn add(sum: &mut [u32], number: &[u32], mask: u32) -> u32 {
    assert!(!sum.is_empty() && sum.len() == number.len());
    // SAFETY: both have as many limbs, at least one; the kernel reads one and writes the other.
    unsafe { tenure_add(sum.as_mut_ptr(), number.as_ptr(), sum.len(), mask) }
}

/// As [`super::portable::add_small`].
///
/// # Panics
/// If the two have different lengths.
pub fn add_small(sum: &mut [u32], columns: &[i32]) -> i32 {
    assert!(!sum.is_empty() && sum.len() == columns.len());
    // SAFETY: as above.
    unsafe { tenure_add_small(sum.as_mut_ptr(), columns.as_ptr(), sum.len()) }
}

/// As [`super::portable::subtract`].
///
/// # Panics
/// If the two have different lengths.
pub fn subtract(difference: &mut [u32], number: &[u32], mask: u32) -> u32 {
    assert!(!difference.is_empty() && difference.len() == number.len());
    // SAFETY: as above.
    unsafe { tenure_subtract(difference.as_mut_ptr(), number.as_ptr(), difference.len(), mask) }
}

/// As [`super::portable::multiply_add`].
///
/// # Panics
/// If `sum` and `number` have different lengths.
pub fn multiply_add(sum: &mut [u32], number: &[u32], factor: u32) -> u32 {
    assert!(!sum.is_empty() && sum.len() == number.len());
    // SAFETY: as above.
    unsafe { tenure_multiply_add(sum.as_mut_ptr(), number.as_ptr(), number.len(), factor) }
}

/// As [`super::portable::multiply`].
///
/// # Panics
/// If `product` is not as long as both together, or these have different lengths.
pub fn multiply(product: &mut [u32], one: &[u32], other: &[u32]) {
    let limbs = one.len();
    assert!(limbs > 0 && other.len() == limbs && product.len() == 2 * limbs);
    // SAFETY: the lengths were checked; the kernel writes to the product alone.
    unsafe { tenure_multiply(product.as_mut_ptr(), one.as_ptr(), other.as_ptr(), limbs) }
}

/// As [`super::portable::square`].
///
/// # Panics
/// If `product` is not twice as long as `number`.
pub fn square(product: &mut [u32], number: &[u32]) {
    let limbs = number.len();
    assert!(limbs > 0 && product.len() == 2 * limbs);
    // SAFETY: as above.
    unsafe { tenure_square(product.as_mut_ptr(), number.as_ptr(), limbs) }
}

/// As [`super::portable::fold`].
///
/// # Panics
/// If there is no column, an odd number of them, or a distance as long as the limbs.
pub fn fold(columns: &mut [i64], radix: &Radix) {
    let limbs = columns.len() / 2;
    let Radix { plus, minus, either, either_is_minus } = *radix;
    assert!(limbs > 0 && columns.len() == 2 * limbs);
    assert!(plus < limbs && minus < limbs && either < limbs);
    let bytes = |distance: usize| 8 * distance as u32;
    let distances =
        [bytes(plus), bytes(minus), bytes(either), u32::from(either_is_minus).wrapping_neg()];
    // SAFETY: the lengths were checked; the kernel changes columns alone, the highest below twice the limbs.
    unsafe { tenure_fold(columns.as_mut_ptr(), limbs, distances.as_ptr()) }
}
