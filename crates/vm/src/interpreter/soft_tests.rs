//! Beside this machine's floats.

use std::vec::Vec;

use super::*;

/// Numbers at which something changes, and many others.
fn samples() -> Vec<u64> {
    let mut list = Vec::new();
    for exponent in
        [0, 1, 2, 874, 897, 996, 1000, 1021, 1022, 1023, 1024, 1030, 1045, 1053, 1054, 1055]
            .into_iter()
            .chain([1074, 1075, 1076, 1085, 1086, 1087, 1150, 1151, 1500, 2045, 2046, 2047])
    {
        for fraction in
            [0, 1, 2, FRACTION, FRACTION - 1, 1 << 51, 1 << 51 | 1, 1 << 28, 1 << 29, 3 << 28]
        {
            list.push(exponent << 52 | fraction);
            list.push(SIGN | exponent << 52 | fraction);
        }
    }
    let mut random = 0x7E17_0004u64;
    for _ in 0..2000 {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        list.push(random);
        // Near one, where integers and halves are.
        list.push(random & !(0x7F8 << 52) | 1020 << 52);
    }
    list
}

fn hard(value: f64) -> u64 {
    canonical(value.to_bits())
}

fn hard_narrow(value: f32) -> u32 {
    if value.is_nan() { 0x7FC0_0000 } else { value.to_bits() }
}

#[test]
fn unary_same_as_this_machine() {
    for bits in samples() {
        let x = f64::from_bits(bits);
        let expected = [x.ceil(), x.floor(), x.trunc(), x.round_ties_even(), x.sqrt()].map(hard);
        for (operation, expected) in expected.into_iter().enumerate() {
            assert_eq!(unary(operation as u16, bits), expected, "{operation} of {bits:x}");
        }
        assert_eq!(narrow(bits), hard_narrow(x as f32), "{bits:x}");
        let narrowed = bits as u32;
        let y = f32::from_bits(narrowed);
        assert_eq!(widen(narrowed), hard(y as f64));
        let expected = [y.ceil(), y.floor(), y.trunc(), y.round_ties_even(), y.sqrt()];
        for (operation, expected) in expected.map(hard_narrow).into_iter().enumerate() {
            assert_eq!(narrow(unary(operation as u16, widen(narrowed))), expected, "{y}");
        }
    }
}

#[test]
fn binary_same_as_this_machine() {
    let list = samples();
    for (index, &a) in list.iter().enumerate() {
        for &b in list.iter().skip(index % 61).step_by(61) {
            let (x, y) = (f64::from_bits(a), f64::from_bits(b));
            for (operation, expected) in [x + y, x - y, x * y, x / y].into_iter().enumerate() {
                assert_eq!(
                    binary(operation as u16, a, b),
                    hard(expected),
                    "{operation} {a:x} {b:x}"
                );
            }
            for (operation, expected) in [x == y, x != y, x < y, x >= y].into_iter().enumerate() {
                assert_eq!(compare(operation as u16, a, b), expected, "{operation} {a:x} {b:x}");
            }
            let (c, d) = ((a >> 32) as u32 ^ a as u32, (b >> 32) as u32 ^ b as u32);
            let (x, y) = (f32::from_bits(c), f32::from_bits(d));
            for (operation, expected) in [x + y, x - y, x * y, x / y].into_iter().enumerate() {
                let found = narrow(binary(operation as u16, widen(c), widen(d)));
                assert_eq!(found, hard_narrow(expected), "{operation} {c:x} {d:x}");
            }
        }
    }
}

#[test]
fn extremes_order_zeros_and_let_nan_win() {
    let (zero, minus_zero, one) = (0, SIGN, ONE);
    assert_eq!(binary(4, zero, minus_zero), minus_zero);
    assert_eq!(binary(4, minus_zero, zero), minus_zero);
    assert_eq!(binary(5, minus_zero, zero), zero);
    assert_eq!(binary(5, zero, minus_zero), zero);
    assert_eq!(binary(4, one, zero), zero);
    assert_eq!(binary(5, one, zero), one);
    assert_eq!(binary(4, one, NAN | 1), NAN);
    assert_eq!(binary(5, SIGN | NAN, one), NAN);
}

#[test]
fn conversions_same_as_this_machine() {
    for bits in samples() {
        let x = f64::from_bits(bits);
        let to = |wide, signed| Integer { wide, signed, saturating: true };
        assert_eq!(truncate(bits, to(true, true)), Ok(x as i64 as u64), "{x}");
        assert_eq!(truncate(bits, to(true, false)), Ok(x as u64), "{x}");
        assert_eq!(truncate(bits, to(false, true)).map(|it| it as u32), Ok(x as i32 as u32), "{x}");
        assert_eq!(truncate(bits, to(false, false)), Ok(x as u32 as u64), "{x}");
        for shift in [0, 1, 9, 10, 11, 12, 31, 32, 33, 40, 63] {
            let integer = bits >> shift;
            assert_eq!(convert(integer, true, true), (integer as i64 as f64).to_bits());
            assert_eq!(convert(integer, false, true), (integer as f64).to_bits());
            let narrow = |signed| convert(integer, signed, false) as u32;
            assert_eq!(narrow(true), (integer as i64 as f32).to_bits());
            assert_eq!(narrow(false), (integer as f32).to_bits(), "{integer:x}");
        }
    }
}

#[test]
fn conversions_trap_where_the_integer_ends() {
    let to = |wide, signed| Integer { wide, signed, saturating: false };
    let of = |x: f64, to| truncate(x.to_bits(), to);
    assert_eq!(of(2147483648.0, to(false, true)), Err(Flow::IntegerOverflow));
    assert_eq!(of(2147483647.9, to(false, true)), Ok(0x7FFF_FFFF));
    assert_eq!(of(-2147483648.9, to(false, true)).map(|it| it as u32), Ok(0x8000_0000));
    assert_eq!(of(-2147483649.0, to(false, true)), Err(Flow::IntegerOverflow));
    assert_eq!(of(-0.9, to(false, false)), Ok(0));
    assert_eq!(of(-1.0, to(false, false)), Err(Flow::IntegerOverflow));
    assert_eq!(of(4294967295.9, to(false, false)), Ok(0xFFFF_FFFF));
    assert_eq!(of(18446744073709551616.0, to(true, false)), Err(Flow::IntegerOverflow));
    assert_eq!(of(9223372036854775808.0, to(true, true)), Err(Flow::IntegerOverflow));
    assert_eq!(of(-9223372036854775808.0, to(true, true)), Ok(1 << 63));
    assert_eq!(of(f64::NAN, to(true, true)), Err(Flow::InvalidConversion));
}
