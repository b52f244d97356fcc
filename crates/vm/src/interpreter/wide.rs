//! Division and counting of bits for cores of 32, in little code.

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

/// Quotient and remainder; the divisor is not zero. By divisions of 32 bits, of which cores have an
/// instruction, where the compiler's own takes one bit at a time (Warren, "Hacker's Delight", 9-5).
fn divide_unsigned(dividend: u64, divisor: u64) -> (u64, u64) {
    let (high, low) = ((dividend >> 32) as u32, dividend as u32);
    let (divisor_high, divisor_low) = ((divisor >> 32) as u32, divisor as u32);
    if divisor_high == 0 {
        let (first, high) =
            if high < divisor_low { (0, high) } else { (high / divisor_low, high % divisor_low) };
        let (second, rest) = if high == 0 {
            (low / divisor_low, low % divisor_low)
        } else {
            divide_two_words(high, low, divisor_low)
        };
        return ((first as u64) << 32 | second as u64, rest as u64);
    }
    // One word of quotient, at most one too large, by the divisor's upper 32 bits.
    let shift = leading_zeros(divisor_high);
    let upper = ((divisor << shift) >> 32) as u32;
    let (estimate, _) = divide_two_words(high >> 1, (dividend >> 1) as u32, upper);
    let mut quotient = (((estimate as u64) << shift) >> 31).saturating_sub(1);
    let mut rest = dividend.wrapping_sub(quotient.wrapping_mul(divisor));
    if rest >= divisor {
        quotient += 1;
        rest -= divisor;
    }
    (quotient, rest)
}

/// Two words by one that is larger than the upper of them; in two digits of 16 bits (Knuth, 4.3.1, D).
#[inline(never)]
fn divide_two_words(high: u32, low: u32, divisor: u32) -> (u32, u32) {
    let shift = leading_zeros(divisor);
    let divisor = divisor << shift;
    let dividend = ((high as u64) << 32 | low as u64) << shift;
    let (digit_high, digit_low) = (divisor >> 16, divisor & 0xFFFF);
    let (high, low) = ((dividend >> 32) as u32, dividend as u32);
    let digit = |rest: u32, next: u32| {
        let (mut digit, mut left) = (rest / digit_high, rest % digit_high);
        while digit > 0xFFFF || digit * digit_low > (left << 16 | next) {
            digit -= 1;
            left += digit_high;
            if left > 0xFFFF {
                break;
            }
        }
        (digit, (rest << 16 | next).wrapping_sub(digit.wrapping_mul(divisor)))
    };
    let (first, rest) = digit(high, low >> 16);
    let (second, rest) = digit(rest, low & 0xFFFF);
    (first << 16 | second, rest >> shift)
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
        _ => ones(low, high),
    }
}

/// Of two words at once, in fields of 2, 4 and 8 bits (Warren, "Hacker's Delight", 5-1): their sums of four bits fit into four.
#[inline(never)]
fn ones(low: u32, high: u32) -> u32 {
    let of_four = |word: u32| {
        let of_two = word - (word >> 1 & 0x5555_5555);
        (of_two & 0x3333_3333) + (of_two >> 2 & 0x3333_3333)
    };
    let both = of_four(low) + of_four(high);
    ((both & 0x0F0F_0F0F) + (both >> 4 & 0x0F0F_0F0F)).wrapping_mul(0x0101_0101) >> 24
}

fn leading_zeros(word: u32) -> u32 {
    if word == 0 {
        return 32;
    }
    let (mut word, mut zeros) = (word, 0);
    // One after the other: a loop takes twice as long.
    let mut skip = |by: u32| {
        if word >> (32 - by) == 0 {
            word <<= by;
            zeros += by;
        }
    };
    skip(16);
    skip(8);
    skip(4);
    skip(2);
    skip(1);
    zeros
}

fn trailing_zeros(word: u32) -> u32 {
    ones((word & word.wrapping_neg()).wrapping_sub(1), 0)
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
