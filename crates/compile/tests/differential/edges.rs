//! Modules for where comparisons and stops are delicate: memory's edges, and loops in loops.

use std::fmt::Write as _;

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
    let mut text = String::from(
        "(module (memory 1) (func $other (param i32) (result i32) (i32.mul (local.get 0) (i32.const 5)))",
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
