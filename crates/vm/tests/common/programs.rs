//! Programs that use what can be stopped in the middle of.

/// Programs with an export `run`: calls, loops, tables, bulk memory, 64-bit and host calls.
pub(crate) const PROGRAMS: &[(&str, &str)] = &[
    (
        "recursion",
        "(module
           (func $fib (param i32) (result i32)
             (if (result i32) (i32.lt_s (local.get 0) (i32.const 2))
               (then (local.get 0))
               (else (i32.add (call $fib (i32.sub (local.get 0) (i32.const 1)))
                              (call $fib (i32.sub (local.get 0) (i32.const 2)))))))
           (func (export \"run\") (result i32) (call $fib (i32.const 6))))",
    ),
    (
        "memory",
        "(module (memory 1) (data $d \"suspended\")
           (func (export \"run\") (result i64) (local $i i32) (local $sum i64)
             (memory.init $d (i32.const 5) (i32.const 0) (i32.const 9))
             (memory.fill (i32.const 100) (i32.const 7) (i32.const 300))
             (memory.copy (i32.const 103) (i32.const 100) (i32.const 297))
             (memory.copy (i32.const 3) (i32.const 5) (i32.const 90))
             (data.drop $d)
             (loop $l
               (local.set $sum (i64.add (i64.mul (local.get $sum) (i64.const 31))
                                        (i64.load8_u (local.get $i))))
               (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1)))
                                   (i32.const 200))))
             (local.get $sum)))",
    ),
    (
        "tables",
        "(module (table $t 4 20 funcref) (table $u 2 funcref) (elem $e func $a $b $a)
           (elem (table $u) (i32.const 0) func $b $a) (type $f (func (param i32) (result i32)))
           (func $a (type $f) (i32.add (local.get 0) (i32.const 3)))
           (func $b (type $f) (return_call $a (i32.mul (local.get 0) (i32.const 5))))
           (func (export \"run\") (result i32 i32 i32)
             (table.init $t $e (i32.const 1) (i32.const 0) (i32.const 3))
             (drop (table.grow $t (ref.func $b) (i32.const 3)))
             (table.copy $t $t (i32.const 3) (i32.const 1) (i32.const 3))
             (table.fill $t (i32.const 0) (ref.func $a) (i32.const 1))
             (call_indirect $t (type $f) (i32.const 7) (i32.const 4))
             (call_indirect $u (type $f) (i32.const 7) (i32.const 0))
             (table.size $t)))",
    ),
    (
        "host",
        "(module (import \"host\" \"twice\" (func $twice (param i32) (result i32)))
           (global $g (mut i64) (i64.const 9)) (memory 1)
           (func $deep (param i32 i64) (result i64)
             (if (i32.eqz (local.get 0)) (then (return (local.get 1))))
             (global.set $g (i64.add (global.get $g) (i64.extend_i32_u (call $twice (local.get 0)))))
             (call $deep (i32.sub (local.get 0) (i32.const 1)) (i64.xor (local.get 1) (global.get $g))))
           (func (export \"run\") (result i64 i32)
             (call $deep (i32.const 4) (i64.const 77)) (i32.const 8))
           (func (export \"unused\") (result i32) (memory.grow (i32.const 1))))",
    ),
    (
        "trap",
        "(module (memory 1) (func $f (param i32) (result i32)
             (i32.load (i32.add (local.get 0) (call $g (local.get 0)))))
           (func $g (param i32) (result i32) (i32.div_s (i32.const 12) (local.get 0)))
           (func (export \"run\") (result i32) (i32.add (call $f (i32.const 3)) (call $f (i32.const 0)))))",
    ),
    (
        "floats",
        "(module
           (func $step (param f64 f32) (result f64)
             (f64.add (f64.sqrt (local.get 0))
                      (f64.promote_f32 (f32.div (local.get 1) (f32.const 3.1)))))
           (func (export \"run\") (result f64 i64 i32) (local $i i32) (local $x f64) (local $sum i64)
             (local.set $x (f64.const 1e6))
             (loop $l
               (local.set $x (call $step (local.get $x) (f32.convert_i32_u (local.get $i))))
               (local.set $sum (i64.add (i64.rotl (local.get $sum) (i64.const 7))
                                        (i64.trunc_sat_f64_s (f64.mul (local.get $x) (f64.const 1e9)))))
               (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1)))
                                   (i32.const 30))))
             (local.get $x) (local.get $sum)
             (i32.reinterpret_f32 (f32.sub (f32.const inf) (f32.const inf)))))",
    ),
];
