(module
  (import "tenure" "uptime_us" (func $uptime (result i64)))
  (import "tenure" "parameter_length" (func $length (result i32)))
  (import "tenure" "yield_now" (func $yield))
  (memory 1)
  (func (export "nothing"))
  (func (export "spin") (loop (br 0)))
  (func (export "give_way") (loop (call $yield) (br 0)))
  (func (export "loops") (local $left i32)
    (local.set $left (i32.const 1000))
    (loop
      (local.set $left (i32.sub (local.get $left) (i32.const 1)))
      (br_if 0 (local.get $left))))
  (func (export "calls") (local $left i32)
    (local.set $left (i32.const 1000))
    (loop
      (drop (call $length))
      (local.set $left (i32.sub (local.get $left) (i32.const 1)))
      (br_if 0 (local.get $left)))))
