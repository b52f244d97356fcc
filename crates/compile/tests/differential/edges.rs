//! Modules for where comparisons and stops are delicate: memory's edges, loops in loops, and bytes that are moved; and for
//! floats at the edges of their roundings and roots.

use std::fmt::Write as _;

use super::common::Random;

/// Ways to use an address: accesses whose addresses differ by constants, which share a comparison.
const ACCESSES: [&str; 9] = [
    "(i32.load offset=0 (local.get 0))",
    "(i32.load offset=40000 (local.get 0))",
    // Base and offset over 2^32.
    "(i32.load offset=4294967295 (local.get 0))",
    "(i32.load8_u offset=4294967292 (local.get 0))",
    // Upwards and downwards from the same value; constants that wrap.
    "(i32.add (i32.load offset=4 (local.get 0)) (i32.load8_u offset=200 (local.get 0)))",
    "(i32.add (i32.load (local.get 0)) (i32.load (i32.add (local.get 0) (i32.const -8))))",
    "(i32.add (i32.load (local.get 0)) (i32.load offset=100 (i32.add (local.get 0) (i32.const -100))))",
    // The second is out of bounds where the first has written already.
    "(i32.store offset=2 (local.get 0) (i32.const 7)) (i64.store offset=9 (local.get 0) (i64.const -1)) (i32.load8_u offset=3 (local.get 0))",
    // The second isn't reached where the first is far from the end.
    "(if (i32.lt_u (i32.load8_u (local.get 0)) (i32.const 200)) (then (return (i32.const 5)))) (i32.load offset=250 (local.get 0))",
];

/// Aligned or not, around the beginning, the end of 64 KiB, and 2^31 and 2^32.
const ADDRESSES: [u32; 26] = [
    0,
    1,
    3,
    7,
    8,
    99,
    100,
    101,
    1000,
    25_532,
    25_533,
    65_280,
    65_281,
    65_286,
    65_520,
    65_524,
    65_527,
    65_528,
    65_532,
    65_533,
    65_535,
    65_536,
    0x7FFF_FFFC,
    0x8000_0000,
    0xFFFF_FFFC,
    0xFFFF_FFFF,
];

/// A module for each kind of access, which is done at each address in an export of its own; once in a straight line,
/// once in a loop.
pub(crate) fn of_memory() -> impl Iterator<Item = String> {
    ACCESSES.iter().map(|accesses| {
        let mut text = format!(
            "(module (memory 1 1)
             (func $line (param i32) (result i32) {accesses})
             (func $loop (param i32) (result i32) (local $left i32) (local $sum i32)
               (local.set $left (i32.const 3))
               (loop (local.set $sum (i32.add (local.get $sum) (call $line (local.get 0))))
                 (br_if 0 (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))
               (local.get $sum))"
        );
        for address in ADDRESSES.map(u32::cast_signed) {
            for way in ["line", "loop"] {
                let _ = write!(
                    text,
                    "(func (export \"{way} {address}\") (result i32) (call ${way} (i32.const {address})))"
                );
            }
        }
        text + ")"
    })
}

/// Loops four deep, some side by side, without calls and with; each level has a variable of its own, one that
/// nothing changes, and more code in a straight line than goes between two looks at the fuel.
pub(crate) fn of_loops() -> String {
    // With data behind it, all memory that is reached is there from the start.
    let mut text = String::from(
        "(module (memory 1) (data (i32.const 1100) \"!\") (func $other (param i32) (result i32) (i32.mul (local.get 0) (i32.const 5)))",
    );
    let mix = "(local.set $x (i32.xor (i32.mul (local.get $x) (local.get $kept)) (i32.load (i32.and (local.get $x) (i32.const 1023)))))";
    let long = mix.repeat(60);
    let with = |inner: &str, level: u32, times: u32| {
        format!(
            "(local.set $n{level} (i32.const {times}))
             (loop $l{level}
               {mix} {inner} {mix}
               (i32.store (i32.and (local.get $x) (i32.const 1020)) (local.get $n{level}))
               (br_if $l{level} (local.tee $n{level} (i32.sub (local.get $n{level}) (i32.const 1)))))"
        )
    };
    let call = "(local.set $x (call $other (local.get $x)))";
    for (name, innermost) in [("plain", mix), ("calls", call), ("long", long.as_str())] {
        let deepest = with(innermost, 4, 2);
        let third = with(&deepest, 3, 2);
        let side = with("", 5, 3);
        let second = with(&format!("{third} {side}"), 2, 2);
        let first = with(&second, 1, 2);
        let _ = write!(
            text,
            "(func (export \"{name}\") (result i32)
               (local $x i32) (local $kept i32) (local $n1 i32) (local $n2 i32) (local $n3 i32) (local $n4 i32) (local $n5 i32)
               (local.set $x (i32.const 12345)) (local.set $kept (i32.const 69069))
               {first} (local.get $x))"
        );
    }
    text + ")"
}

/// The operations of floats with one operand whose result has fewer bits than the operand.
pub(crate) const ROUNDINGS: [&str; 5] = ["ceil", "floor", "nearest", "sqrt", "trunc"];

/// A module in which each export does one of these operations to floats of both signs, on either side of halves and whole
/// numbers, the least and the largest, and none.
pub(crate) fn of_roundings() -> String {
    let mut text = String::from("(module");
    for (width, fraction_bits, bias) in [(32, 23, 127_u64), (64, 52, 1023)] {
        let sign = 1_u64 << (width - 1);
        let exponents = [0, 1, 2, 3, 11, fraction_bits - 1, fraction_bits, fraction_bits + 1];
        let exponents = exponents.map(|e| bias + e).into_iter();
        let all = exponents.chain([0, 1, bias - 2, bias - 1, 2 * bias, 2 * bias + 1]);
        let least = all.map(|exponent| exponent << fraction_bits);
        // The float itself and those beside it, and its like in the middle of its power of two.
        let near =
            |bits: u64| [bits, bits + 1, bits.saturating_sub(1), bits | 1 << (fraction_bits - 1)];
        for operation in ROUNDINGS {
            let name = format!("f{width}.{operation}");
            let _ = write!(
                text,
                "(func (export \"{name}\") (result i64) (local i64) (local.set 0 (i64.const 7))"
            );
            for bits in least.clone().flat_map(near).flat_map(|bits| [bits, bits | sign]) {
                let bits = bits & (sign | (sign - 1));
                let of_bits = match width {
                    32 => format!(
                        "(i64.extend_i32_u (i32.reinterpret_f32 ({name} (f32.reinterpret_i32 (i32.const {})))))",
                        bits as u32 as i32
                    ),
                    _ => format!(
                        "(i64.reinterpret_f64 ({name} (f64.reinterpret_i64 (i64.const {}))))",
                        bits.cast_signed()
                    ),
                };
                let _ = write!(
                    text,
                    "(local.set 0 (i64.add (i64.mul (local.get 0) (i64.const 31)) {of_bits}))"
                );
            }
            text += "(local.get 0))";
        }
    }
    text + ")"
}

/// Modules that fill and move bytes, little and much, to and from addresses of all kinds, onto themselves too; the last of
/// each are beyond memory's end.
pub(crate) fn of_moves() -> impl Iterator<Item = String> {
    const MEMORY_BYTES: u64 = 3_000;
    (0..8).map(|seed| {
        let mut random = Random::new(seed);
        // All that it is to have, at once; then a number in each place.
        let mut text = format!(
            "(module (memory {MEMORY_BYTES} (pagesize 1)) (func (export \"run\") (local $i i32)
             (i32.store8 (i32.const {}) (i32.const 1))
             (loop $next (i32.store8 (local.get $i) (i32.mul (local.get $i) (i32.const 73)))
               (br_if $next (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 300))))",
            MEMORY_BYTES - 1
        );
        for round in 0..30 {
            let most = [4, 20, 100, 300][round % 4];
            let count = random.below(most);
            let to = random.below(MEMORY_BYTES - most);
            let near = (to + random.below(40)).saturating_sub(20).min(MEMORY_BYTES - most);
            let from = if random.below(2) == 0 { near } else { random.below(MEMORY_BYTES - most) };
            let operation = if random.below(4) == 0 { "fill" } else { "copy" };
            let _ = write!(
                text,
                "(memory.{operation} (i32.const {to}) (i32.const {from}) (i32.const {count}))"
            );
        }
        let end = MEMORY_BYTES - 5;
        text + &match seed {
            0 => format!("(memory.copy (i32.const {end}) (i32.const 0) (i32.const 6))))"),
            1 => format!("(memory.copy (i32.const 0) (i32.const {end}) (i32.const 6))))"),
            2 => format!("(memory.fill (i32.const {end}) (i32.const 0) (i32.const 6))))"),
            3 => "(memory.copy (i32.const 8) (i32.const -4) (i32.const 8))))".into(),
            4 => "(memory.fill (i32.const 8) (i32.const 1) (i32.const -1))))".into(),
            5 => format!("(memory.copy (i32.const {end}) (i32.const {end}) (i32.const 5))))"),
            6 => format!("(memory.fill (i32.const {}) (i32.const 1) (i32.const 0))))", end + 5),
            _ => format!("(memory.fill (i32.const {}) (i32.const 1) (i32.const 0))))", end + 6),
        }
    })
}
