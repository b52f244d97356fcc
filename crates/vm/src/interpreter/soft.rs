//! Floating point for cores without it, in as little code as possible.
//!
//! All is computed in 64 bits: widened first and narrowed afterwards, sums, products, quotients and roots of
//! 32-bit floats come out as if rounded once (53 >= 2 * 24 + 2; Figueroa, "When is double rounding
//! innocuous?", 1995). The compiler's own routines are three times as long, and twice as fast.

use super::state::Flow;

const SIGN: u64 = 1 << 63;
const ONE: u64 = 1023 << 52;
const HALF: u64 = 1022 << 52;
const INFINITY: u64 = 0x7FF << 52;
const NAN: u64 = 0x7FF8_0000_0000_0000;
const FRACTION: u64 = (1 << 52) - 1;

/// A format: bits of the significand below the leading one, largest exponent with its bias.
struct Format {
    fraction_bits: u32,
    exponent_max: i32,
}

const WIDE: Format = Format { fraction_bits: 52, exponent_max: 0x7FF };
const NARROW: Format = Format { fraction_bits: 23, exponent_max: 0xFF };

/// The float nearest to `significand * 2^(exponent - 62)`, without its sign; of ties the even one. The
/// last bit of the significand stands for all that were cut off.
#[inline(never)]
fn pack(exponent: i32, significand: u64, format: &Format) -> u64 {
    if significand == 0 {
        return 0;
    }
    // The leading one to bit 62.
    let shift = significand.leading_zeros() as i32 - 1;
    let significand = if shift < 0 { shift_right(significand, 1) } else { significand << shift };
    let biased = exponent - shift + (format.exponent_max >> 1);
    let infinity = (format.exponent_max as u64) << format.fraction_bits;
    if biased >= format.exponent_max {
        return infinity;
    }
    let (base, significand) = if biased > 0 {
        // The leading one adds one to the exponent.
        ((biased - 1) as u64, significand)
    } else {
        (0, shift_right(significand, (1 - biased) as u32))
    };
    let cut = 62 - format.fraction_bits;
    let (kept, rest, half) = (significand >> cut, significand << (64 - cut), 1 << 63);
    let up = rest > half || (rest == half && kept & 1 != 0);
    (base << format.fraction_bits) + kept + up as u64
}

/// Shifts right; a one that is cut off stays as the last bit.
fn shift_right(significand: u64, by: u32) -> u64 {
    if by > 63 {
        return (significand != 0) as u64;
    }
    let kept = significand >> by;
    kept | (kept << by != significand) as u64
}

/// Exponent and significand, as `pack` takes them, of a number that is neither zero nor infinite.
#[inline(never)]
fn unpack(bits: u64) -> (i32, u64) {
    let (exponent, fraction) = ((bits >> 52 & 0x7FF) as i32, bits & FRACTION);
    if exponent != 0 {
        return (exponent - 1023, (fraction | 1 << 52) << 10);
    }
    let shift = fraction.leading_zeros() as i32 - 1;
    (10 - 1022 - shift, fraction << shift)
}

pub(super) fn widen(bits: u32) -> u64 {
    let (sign, rest) = ((bits as u64 >> 31) << 63, bits & !(1 << 31));
    let exponent = (rest >> 23) as u64;
    sign | match exponent {
        0xFF if rest & 0x7F_FFFF != 0 => return NAN,
        0xFF => INFINITY,
        // A multiple of the smallest float.
        0 if rest != 0 => pack(62 - 149, rest as u64, &WIDE),
        0 => 0,
        _ => ((rest as u64) << 29) + ((1023 - 127) << 52),
    }
}

#[inline(never)]
pub(super) fn narrow(bits: u64) -> u32 {
    let sign = (bits >> 63 << 31) as u32;
    let rest = bits & !SIGN;
    sign | match rest {
        0 => 0,
        INFINITY => 0x7F80_0000,
        _ if is_nan(rest) => return 0x7FC0_0000,
        _ => {
            let (exponent, significand) = unpack(rest);
            pack(exponent, significand, &NARROW) as u32
        }
    }
}

fn is_nan(bits: u64) -> bool {
    bits & !SIGN > INFINITY
}

fn canonical(bits: u64) -> u64 {
    if is_nan(bits) { NAN } else { bits }
}

/// In the order of the instructions: add, subtract, multiply, divide, minimum, maximum.
#[inline(never)]
pub(super) fn binary(operation: u16, a: u64, b: u64) -> u64 {
    if is_nan(a) || is_nan(b) {
        return NAN;
    }
    let sign = (a ^ b) & SIGN;
    let (x, y) = (a & !SIGN, b & !SIGN);
    match operation {
        0 => add(a, b),
        1 => add(a, b ^ SIGN),
        2 if x == INFINITY || y == INFINITY => {
            if x == 0 || y == 0 {
                NAN
            } else {
                sign | INFINITY
            }
        }
        2 if x == 0 || y == 0 => sign,
        2 => sign | multiply(x, y),
        3 if x == y && (x == 0 || x == INFINITY) => NAN,
        3 if x == 0 || y == INFINITY => sign,
        3 if y == 0 || x == INFINITY => sign | INFINITY,
        3 => sign | divide(x, y),
        // Of two zeros the negative one is less.
        _ if (rank(a) < rank(b)) == (operation == 4) => a,
        _ => b,
    }
}

/// Of numbers that are no NaN.
fn add(a: u64, b: u64) -> u64 {
    let (large, small) = if a & !SIGN < b & !SIGN { (b, a) } else { (a, b) };
    let opposed = (large ^ small) & SIGN != 0;
    if large & !SIGN == INFINITY {
        return if opposed && small & !SIGN == INFINITY { NAN } else { large };
    }
    if small & !SIGN == 0 {
        // Of two zeros the sum is positive, unless both are negative.
        return if large & !SIGN == 0 { large & small } else { large };
    }
    let (exponent, augend) = unpack(large);
    let (lower, addend) = unpack(small);
    // One bit of room above.
    let addend = shift_right(addend >> 1, (exponent - lower) as u32);
    let augend = augend >> 1;
    let sum = if opposed { augend - addend } else { augend + addend };
    let sign = if sum == 0 { 0 } else { large & SIGN };
    sign | pack(exponent + 1, sum, &WIDE)
}

/// Of positive finite numbers: 53 times 53 bits, in halves of 27 and 26.
fn multiply(a: u64, b: u64) -> u64 {
    let ((a_exponent, a), (b_exponent, b)) = (unpack(a), unpack(b));
    let halves = |significand: u64| (significand >> 37, significand >> 10 & 0x7FF_FFFF);
    let ((a_high, a_low), (b_high, b_low)) = (halves(a), halves(b));
    let middle = a_high * b_low + a_low * b_high;
    let low = ((middle & 0xFFFF) << 27) + a_low * b_low;
    let high = ((a_high * b_high) << 11) + (middle >> 16) + (low >> 43);
    let product = high | (low & ((1 << 43) - 1) != 0) as u64;
    pack(a_exponent + b_exponent + 1, product, &WIDE)
}

/// Of positive finite numbers, bit by bit.
fn divide(a: u64, b: u64) -> u64 {
    let ((a_exponent, mut rest), (b_exponent, divisor)) = (unpack(a), unpack(b));
    let mut quotient = 0;
    for _ in 0..62 {
        quotient <<= 1;
        if rest >= divisor {
            rest -= divisor;
            quotient |= 1;
        }
        rest <<= 1;
    }
    // The first bit of a quotient is that of one.
    pack(a_exponent - b_exponent + 1, quotient | (rest != 0) as u64, &WIDE)
}

/// Ascending with the number, -0 before +0.
fn rank(bits: u64) -> i64 {
    if bits & SIGN != 0 { (bits ^ !SIGN) as i64 } else { bits as i64 }
}

/// In the order of the instructions: equal, not equal, less, greater or equal.
#[inline(never)]
pub(super) fn compare(operation: u16, a: u64, b: u64) -> bool {
    if is_nan(a) || is_nan(b) {
        return operation == 1;
    }
    let equal = a == b || (a | b) & !SIGN == 0;
    match operation {
        0 => equal,
        1 => !equal,
        2 => !equal && rank(a) < rank(b),
        _ => equal || rank(a) >= rank(b),
    }
}

/// In the order of the instructions: up, down, to zero, to the nearest; square root.
#[inline(never)]
pub(super) fn unary(operation: u16, bits: u64) -> u64 {
    if operation == 4 { square_root(bits) } else { round(operation, bits) }
}

fn round(operation: u16, bits: u64) -> u64 {
    let exponent = (bits >> 52 & 0x7FF) as i32 - 1023;
    if exponent >= 52 {
        return canonical(bits);
    }
    // Below one all bits but the sign are fraction.
    let mask = if exponent < 0 { !SIGN } else { FRACTION >> exponent };
    let (base, fraction) = (bits & !mask, bits & mask);
    if fraction == 0 {
        return bits;
    }
    let away = match operation {
        0 => bits & SIGN == 0,
        1 => bits & SIGN != 0,
        2 => false,
        _ if exponent < 0 => fraction > HALF,
        _ => {
            let half = (mask >> 1) + 1;
            // The last bit of the integer; of 1.5 it is the exponent's, which is odd.
            fraction > half || (fraction == half && base & (mask + 1) != 0)
        }
    };
    match (away, exponent < 0) {
        (false, _) => base,
        (true, false) => base + mask + 1,
        (true, true) => base | ONE,
    }
}

/// Bit by bit: 53 of them, and one to round by.
fn square_root(bits: u64) -> u64 {
    if bits & !SIGN == 0 || bits == INFINITY {
        return bits;
    }
    if bits & SIGN != 0 || is_nan(bits) {
        return NAN;
    }
    let (exponent, significand) = unpack(bits);
    // Two bits of the radicand at a time, from the top.
    let mut significand = significand << (exponent & 1);
    let (mut root, mut rest) = (0u64, 0u64);
    for _ in 0..54 {
        rest = rest << 2 | significand >> 62;
        significand <<= 2;
        let trial = root << 2 | 1;
        root <<= 1;
        if rest >= trial {
            rest -= trial;
            root |= 1;
        }
    }
    pack(exponent >> 1, root << 9 | (rest != 0) as u64, &WIDE)
}

/// What an integer of a float is to be.
#[derive(Clone, Copy)]
pub(super) struct Integer {
    pub(super) wide: bool,
    pub(super) signed: bool,
    pub(super) saturating: bool,
}

#[inline(never)]
pub(super) fn truncate(bits: u64, to: Integer) -> Result<u64, Flow> {
    if is_nan(bits) {
        return if to.saturating { Ok(0) } else { Err(Flow::InvalidConversion) };
    }
    let negative = bits & SIGN != 0;
    let ones = if to.wide { u64::MAX } else { u32::MAX as u64 };
    let max = match (to.signed, negative) {
        (true, _) => (ones >> 1) + negative as u64,
        (false, false) => ones,
        (false, true) => 0,
    };
    let exponent = (bits >> 52 & 0x7FF) as i32 - 1023;
    let significand = bits & FRACTION | 1 << 52;
    let magnitude = match exponent {
        ..0 => Some(0),
        0..52 => Some(significand >> (52 - exponent)),
        52..64 => Some(significand << (exponent - 52)),
        _ => None,
    };
    let magnitude = match magnitude.filter(|&magnitude| magnitude <= max) {
        Some(magnitude) => magnitude,
        None if to.saturating => max,
        None => return Err(Flow::IntegerOverflow),
    };
    Ok(if negative { magnitude.wrapping_neg() } else { magnitude })
}

/// The float nearest to an integer.
pub(super) fn convert(integer: u64, signed: bool, wide: bool) -> u64 {
    let negative = signed && integer >> 63 != 0;
    let magnitude = if negative { integer.wrapping_neg() } else { integer };
    let (format, sign) = if wide { (&WIDE, 63) } else { (&NARROW, 31) };
    (negative as u64) << sign | pack(62, magnitude, format)
}

#[cfg(test)]
#[path = "soft_tests.rs"]
mod tests;
