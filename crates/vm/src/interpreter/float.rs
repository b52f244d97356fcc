//! Floating point as wasm defines it (wasm 2.0 §4.3.3), with one NaN: positive, quiet, empty.

use super::state::Flow;

macro_rules! float_operations {
    (
        $name:ident, $bits:ty, $signed:ty, $nan:literal, $infinity_upper:literal,
        $ceil:ident, $floor:ident, $trunc:ident, $rint:ident, $sqrt:ident
    ) => {
        pub(super) mod $name {
            pub(in super::super) fn canonical(value: $name) -> $bits {
                let bits = value.to_bits();
                if is_nan(bits) { $nan } else { bits }
            }

            /// By bits, as where floats are software a comparison is a call.
            #[inline(always)]
            fn is_nan(bits: $bits) -> bool {
                let upper = (bits >> (<$bits>::BITS - 32)) as u32;
                let is_rest = <$bits>::BITS > 32 && bits as u32 != 0;
                (upper << 1 | is_rest as u32) > $infinity_upper << 1
            }

            /// Numbers in the order of the floats; the negative zero is below the other.
            #[inline(always)]
            fn order(bits: $bits) -> $signed {
                let number = bits as $signed;
                number ^ ((number >> (<$bits>::BITS - 1)) as $bits >> 1) as $signed
            }

            pub(in super::super) fn minimum(a: $name, b: $name) -> $bits {
                let (a, b) = (a.to_bits(), b.to_bits());
                if is_nan(a) || is_nan(b) {
                    $nan
                } else if order(a) < order(b) {
                    a
                } else {
                    b
                }
            }

            pub(in super::super) fn maximum(a: $name, b: $name) -> $bits {
                let (a, b) = (a.to_bits(), b.to_bits());
                if is_nan(a) || is_nan(b) {
                    $nan
                } else if order(a) < order(b) {
                    b
                } else {
                    a
                }
            }

            pub(in super::super) fn ceil(value: $name) -> $name {
                libm::$ceil(value)
            }

            pub(in super::super) fn floor(value: $name) -> $name {
                libm::$floor(value)
            }

            pub(in super::super) fn trunc(value: $name) -> $name {
                libm::$trunc(value)
            }

            pub(in super::super) fn nearest(value: $name) -> $name {
                libm::$rint(value)
            }

            pub(in super::super) fn sqrt(value: $name) -> $name {
                libm::$sqrt(value)
            }
        }
    };
}

float_operations!(f32, u32, i32, 0x7FC0_0000, 0x7F80_0000u32, ceilf, floorf, truncf, rintf, sqrtf);
float_operations!(
    f64,
    u64,
    i64,
    0x7FF8_0000_0000_0000,
    0x7FF0_0000u32,
    ceil,
    floor,
    trunc,
    rint,
    sqrt
);

macro_rules! truncations {
    ($($name:ident -> $to:ty, $low:literal, $high:literal;)*) => {
        $(
            /// Bounds are exclusive; each is a float, or the integer bound itself is.
            pub(super) fn $name(value: ::core::primitive::f64) -> Result<$to, Flow> {
                if value > $low && value < $high {
                    Ok(value as $to)
                } else if value.is_nan() {
                    Err(Flow::InvalidConversion)
                } else {
                    Err(Flow::IntegerOverflow)
                }
            }
        )*
    };
}

truncations! {
    trunc_i32 -> i32, -2147483649.0, 2147483648.0;
    trunc_u32 -> u32, -1.0, 4294967296.0;
    // The next float below -2^63 is far away.
    trunc_i64 -> i64, -9223372036854777856.0, 9223372036854775808.0;
    trunc_u64 -> u64, -1.0, 18446744073709551616.0;
}
