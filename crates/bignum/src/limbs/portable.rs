//! The arithmetic in Rust, for every core that multiplies 32 bits to 64.

use super::Radix;

/// Adds `number` to `sum` where `mask` is all ones, zero where it is zero, and returns the carry.
///
/// # Panics
/// If the two have different lengths.
pub fn add(sum: &mut [u32], number: &[u32], mask: u32) -> u32 {
    assert_eq!(sum.len(), number.len());
    // A compiler that knows both of its values makes a branch of it.
    let mask = core::hint::black_box(mask);
    let mut carry = false;
    for (limb, other) in sum.iter_mut().zip(number) {
        let (value, first) = limb.overflowing_add(*other & mask);
        let (value, second) = value.overflowing_add(u32::from(carry));
        *limb = value;
        carry = first | second;
    }
    u32::from(carry)
}

/// Subtracts `number` from `difference` where `mask` is all ones, zero where it is zero, and returns
/// the borrow.
///
/// # Panics
/// If the two have different lengths.
pub fn subtract(difference: &mut [u32], number: &[u32], mask: u32) -> u32 {
    assert_eq!(difference.len(), number.len());
    // A compiler that knows both of its values makes a branch of it.
    let mask = core::hint::black_box(mask);
    let mut borrow = false;
    for (limb, other) in difference.iter_mut().zip(number) {
        let (value, first) = limb.overflowing_sub(*other & mask);
        let (value, second) = value.overflowing_sub(u32::from(borrow));
        *limb = value;
        borrow = first | second;
    }
    u32::from(borrow)
}

/// Adds to each limb of `sum` that of `columns`, below 2^30 either way, and returns what is carried, which may be
/// negative.
///
/// # Panics
/// If the two have different lengths.
pub fn add_small(sum: &mut [u32], columns: &[i32]) -> i32 {
    assert_eq!(sum.len(), columns.len());
    let mut carry = 0i64;
    for (limb, column) in sum.iter_mut().zip(columns) {
        carry += i64::from(*limb) + i64::from(*column);
        *limb = carry as u32;
        carry >>= 32;
    }
    carry as i32
}

/// Adds the product of `number` and `factor` to `sum`, and returns the limb above it.
///
/// # Panics
/// If `sum` and `number` have different lengths.
pub fn multiply_add(sum: &mut [u32], number: &[u32], factor: u32) -> u32 {
    assert_eq!(sum.len(), number.len());
    let mut carry = 0;
    for (limb, other) in sum.iter_mut().zip(number) {
        // At most (2^32 - 1)^2 + 2 (2^32 - 1), which is 2^64 - 1.
        let value = u64::from(*other) * u64::from(factor) + u64::from(*limb) + carry;
        *limb = value as u32;
        carry = value >> 32;
    }
    carry as u32
}

/// The product of `one` and `other`, in all limbs of `product`.
///
/// # Panics
/// If `product` is not as long as both together, or these have different lengths.
pub fn multiply(product: &mut [u32], one: &[u32], other: &[u32]) {
    let limbs = one.len();
    assert!(other.len() == limbs && product.len() == 2 * limbs);
    product[..limbs].fill(0);
    for (at, factor) in other.iter().enumerate() {
        product[at + limbs] = multiply_add(&mut product[at..at + limbs], one, *factor);
    }
}

/// The square of `number`, in all limbs of `product`.
///
/// # Panics
/// If `product` is not twice as long as `number`.
pub fn square(product: &mut [u32], number: &[u32]) {
    let limbs = number.len();
    assert_eq!(product.len(), 2 * limbs);
    product.fill(0);
    for at in 0..limbs {
        let (row, above) = product[2 * at + 1..].split_at_mut(limbs - 1 - at);
        above[0] = multiply_add(row, &number[at + 1..], number[at]);
    }
    // Twice what lies beside the diagonal, and the diagonal.
    let mut carry = 0u64;
    for (pair, limb) in product.chunks_exact_mut(2).zip(number) {
        let square = u64::from(*limb) * u64::from(*limb);
        let low = 2 * u64::from(pair[0]) + (square & 0xffff_ffff) + carry;
        let high = 2 * u64::from(pair[1]) + (square >> 32) + (low >> 32);
        pair.copy_from_slice(&[low as u32, high as u32]);
        carry = high >> 32;
    }
}

/// Adds each of the upper half of `columns` to the lower columns that `radix` says, from the top down, as often as
/// it says; sums stay within a column's 64 bits.
///
/// # Panics
/// If there is an odd number of columns, or a distance as long as half of them.
pub fn fold(columns: &mut [i64], radix: &Radix) {
    let limbs = columns.len() / 2;
    let Radix { plus, minus, either, either_is_minus } = *radix;
    assert!(columns.len() == 2 * limbs && plus < limbs && minus < limbs && either < limbs);
    for at in (0..limbs).rev() {
        let high = columns[limbs + at];
        columns[at] = columns[at].wrapping_add(high);
        columns[at + plus] = columns[at + plus].wrapping_add(high);
        columns[at + minus] = columns[at + minus].wrapping_sub(high);
        let other = if either_is_minus { high.wrapping_neg() } else { high };
        columns[at + either] = columns[at + either].wrapping_add(other);
    }
}
