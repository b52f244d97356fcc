//! Division and counting of bits for cores of 32, in as little code as possible: the compiler's own is
//! several times as long, and faster where numbers are large.

use super::state::Flow;

/// In the order of the instructions: quotient with and without signs, remainder with and without.
pub(super) fn divide(operation: u16, a: u64, b: u64) -> Result<u64, Flow> {
    let (signed, remainder) = (operation & 1 == 0, operation & 2 != 0);
    if b == 0 {
        return Err(Flow::DivideByZero);
    }
    let negative = |value: u64| signed && value >> 63 != 0;
    let (dividend, divisor) = (magnitude(a, negative(a)), magnitude(b, negative(b)));
    let (quotient, rest) = divide_unsigned(dividend, divisor);
    if remainder {
        return Ok(magnitude(rest, negative(a)));
    }
    let opposed = negative(a) != negative(b);
    // Only the least number divided by -1 has a quotient too large for its sign.
    if signed && !opposed && quotient >> 63 != 0 {
        return Err(Flow::IntegerOverflow);
    }
    Ok(magnitude(quotient, opposed))
}

/// A number without, or again with, its sign.
fn magnitude(value: u64, negative: bool) -> u64 {
    if negative { value.wrapping_neg() } else { value }
}

/// Quotient and remainder, bit by bit; the divisor is not zero.
fn divide_unsigned(dividend: u64, divisor: u64) -> (u64, u64) {
    if (dividend | divisor) >> 32 == 0 {
        let (dividend, divisor) = (dividend as u32, divisor as u32);
        return ((dividend / divisor) as u64, (dividend % divisor) as u64);
    }
    let (mut quotient, mut rest) = (dividend, 0u64);
    for _ in 0..64 {
        // What leaves the quotient at the top enters the rest; the rest is below the divisor.
        let carry = rest >> 63 != 0;
        rest = rest << 1 | quotient >> 63;
        quotient <<= 1;
        if carry || rest >= divisor {
            rest = rest.wrapping_sub(divisor);
            quotient |= 1;
        }
    }
    (quotient, rest)
}

/// In the order of the instructions: leading zeros, trailing zeros, ones.
pub(super) fn count(operation: u16, value: u64, wide: bool) -> u32 {
    let (low, high) = (value as u32, (value >> 32) as u32);
    match operation {
        0 if !wide => leading_zeros(low),
        0 if high == 0 => 32 + leading_zeros(low),
        0 => leading_zeros(high),
        1 if low != 0 || !wide => trailing_zeros(low),
        1 => 32 + trailing_zeros(high),
        _ => ones(low) + ones(high),
    }
}

#[inline(never)]
fn ones(word: u32) -> u32 {
    word.count_ones()
}

fn leading_zeros(word: u32) -> u32 {
    let word = [1, 2, 4, 8, 16].into_iter().fold(word, |word, by| word | word >> by);
    32 - ones(word)
}

fn trailing_zeros(word: u32) -> u32 {
    ones((word & word.wrapping_neg()).wrapping_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_counted_as_this_machine_does() {
        for shift in 0..64 {
            for value in [0, 1, 5, u64::MAX, 0x8000_0000_0000_0001].map(|value| value << shift) {
                let narrow = value as u32;
                let counts = [value.leading_zeros(), value.trailing_zeros(), value.count_ones()];
                let narrow_counts =
                    [narrow.leading_zeros(), narrow.trailing_zeros(), narrow.count_ones()];
                for operation in 0..3 {
                    assert_eq!(count(operation, value, true), counts[operation as usize]);
                    let narrow_count = narrow_counts[operation as usize];
                    assert_eq!(count(operation, narrow as u64, false), narrow_count);
                }
            }
        }
    }

    #[test]
    fn quotients_and_remainders_are_those_of_this_machine() {
        let mut numbers = std::vec![0, 1, 2, 3, 10, u64::MAX, u64::MAX - 1, 1 << 63, (1 << 63) - 1];
        let mut random = 0x7E17_0005u64;
        for shift in 0..64 {
            random = random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
            numbers.extend([random >> shift, (random >> shift).wrapping_neg(), 1 << shift]);
        }
        for &a in &numbers {
            for &b in &numbers {
                let (x, y) = (a as i64, b as i64);
                let of = |value: Option<i64>| value.map(|value| value as u64);
                let zero = if b == 0 { Flow::DivideByZero } else { Flow::IntegerOverflow };
                assert_eq!(divide(0, a, b), of(x.checked_div(y)).ok_or(zero), "{x} / {y}");
                assert_eq!(divide(1, a, b), a.checked_div(b).ok_or(zero), "{a} / {b}");
                if b != 0 {
                    assert_eq!(divide(2, a, b), Ok(x.wrapping_rem(y) as u64), "{x} % {y}");
                    assert_eq!(divide(3, a, b), Ok(a % b), "{a} % {b}");
                }
            }
        }
    }
}
