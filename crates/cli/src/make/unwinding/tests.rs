use wasmi::{Engine, Instance, Linker, Module as Loaded, Store};
use wasmparser::{Parser, Payload, Validator};

use super::*;

/// Calls `deep` by emscripten's way, which unwinds if it is told to; and what LLVM would do then.
const PROGRAM: &str = r#"(module
  (import "env" "invoke_ii" (func $invoke (param i32 i32) (result i32)))
  (import "env" "_emscripten_throw_longjmp" (func $throw))
  (memory (export "memory") 1)
  (table 3 funcref)
  (elem (i32.const 1) $deep $harmless)
  (global $__stack_pointer (mut i32) (i32.const 4096))
  (global $after (mut i32) (i32.const 0))
  (func $harmless (param i32) (result i32) (local.get 0))
  (func $deep (param $way i32) (result i32)
    (global.set $__stack_pointer (i32.sub (global.get $__stack_pointer) (i32.const 64)))
    (block $inner
      (br_if $inner (i32.eq (local.get $way) (i32.const 1)))
      ;; The aims are this block and, with 2, the function's end.
      (drop (block $value (result i32)
        (br_table $value 2 (local.get $way) (i32.eq (local.get $way) (i32.const 2)))))
      (drop (call $float (local.get $way)))
      (drop (i64.add (i64.const 1) (call $wide (local.get $way)))))
    (global.set $after (i32.add (global.get $after) (i32.const 1)))
    (global.set $__stack_pointer (i32.add (global.get $__stack_pointer) (i32.const 64)))
    (i32.add (local.get $way) (i32.const 100)))
  (func $float (param i32) (result f32) (drop (call $wide (local.get 0))) (f32.const 1))
  (func $wide (param i32) (result i64)
    (loop $again
      (if (i32.eqz (local.get 0)) (then (call $nothing (local.get 0)) (br $again))))
    (i64.const 2))
  (func $nothing (param i32) (if (i32.eqz (local.get 0)) (then (call $throw) (unreachable))))
  (func (export "run") (param i32) (result i32)
    (call $invoke (i32.const 1) (local.get 0)))
  (func (export "stack") (result i32) (global.get $__stack_pointer))
  (func (export "after") (result i32) (global.get $after))
  (func (export "by_pointer") (param i32) (result i32)
    (call_indirect (param i32) (result i32) (local.get 0) (i32.const 2)))
  (func (export "lost") (call $nothing (i32.const 0))))"#;

fn lowered(text: &str) -> Vec<u8> {
    let module = lower(&wat::parse_str(text).unwrap()).unwrap().unwrap();
    Validator::new().validate_all(&module).unwrap();
    module
}

fn instance(module: &[u8]) -> (Store<()>, Instance) {
    let engine = Engine::default();
    let module = Loaded::new(&engine, module).unwrap();
    let mut store = Store::new(&engine, ());
    let instance = Linker::new(&engine).instantiate_and_start(&mut store, &module).unwrap();
    (store, instance)
}

#[test]
fn module_without_jumps_stays_as_it_is() {
    let module = wat::parse_str("(module (import \"env\" \"draw\" (func)))").unwrap();
    assert!(lower(&module).unwrap().is_none());
}

#[test]
fn what_unwinds_returns_to_the_call_that_is_watched_and_the_stack_is_as_before() {
    let (mut store, instance) = instance(&lowered(PROGRAM));
    let mut call = |name: &str, parameter: Option<i32>| match parameter {
        Some(parameter) => {
            let function = instance.get_typed_func::<i32, i32>(&store, name).unwrap();
            function.call(&mut store, parameter).unwrap()
        }
        None => {
            let function = instance.get_typed_func::<(), i32>(&store, name).unwrap();
            function.call(&mut store, ()).unwrap()
        }
    };
    // It comes back with a zero, and behind the call nothing ran.
    assert_eq!(call("run", Some(0)), 0);
    assert_eq!((call("after", None), call("stack", None)), (0, 4096));
    // Out of the inner block, and out of the function with the way as its result: the branches' aims are as before.
    assert_eq!(call("run", Some(1)), 101);
    assert_eq!((call("after", None), call("stack", None)), (1, 4096));
    assert_eq!(call("run", Some(2)), 2);
    assert_eq!(call("after", None), 1);
    assert_eq!(call("by_pointer", Some(9)), 9);
    assert_eq!(call("run", Some(0)), 0);
}

#[test]
fn what_nobody_watches_stops_the_machine() {
    let (mut store, instance) = instance(&lowered(PROGRAM));
    let lost = instance.get_typed_func::<(), ()>(&store, "lost").unwrap();
    let error = lost.call(&mut store, ()).unwrap_err().to_string();
    assert!(error.contains("unreachable"), "{error}");
}

#[test]
fn names_and_places_of_instructions_are_found_again() {
    let module = wat::parse_str(PROGRAM).unwrap();
    let lowered = lowered(PROGRAM);
    let (before, after) = (Program::read(&module).unwrap(), Program::read(&lowered).unwrap());
    let names = |program: &Program<'_>, name: &str| {
        let names = program.function_names();
        names.into_iter().find(|(_, it)| it == name).map(|(index, _)| index)
    };
    assert_eq!((names(&before, "deep"), names(&after, "deep")), (Some(3), Some(1)));
    assert_eq!(names(&after, "invoke_ii"), Some(10));
    let (_, moved) = after.customs.iter().find(|(name, _)| *name == Moved::SECTION).unwrap();
    let moved = Moved::from_bytes(moved);
    let operators = |program: &Program<'_>| {
        let bodies = program.bodies.iter().flat_map(|body| {
            body.get_operators_reader().unwrap().into_iter_with_offsets().map(Result::unwrap)
        });
        let code_at = program.code_at;
        bodies
            .map(|(operator, offset)| {
                // Its name, without indices and depths.
                let name = format!("{operator:?}");
                (name.split(' ').next().unwrap().to_owned(), offset - code_at)
            })
            .collect::<Vec<_>>()
    };
    let (before, after) = (operators(&before), operators(&after));
    // Each instruction of before is one of now, in order; those between belong to the one before them.
    let mut at = 0;
    let mut found = 0;
    for (name, offset) in &after {
        let Some(original) = moved.original(*offset as u64) else { break };
        if at < before.len() && original == before[at].1 as u64 {
            match *name == before[at].0 {
                true => (found, at) = (found + 1, at + 1),
                // The way out stands before the end, and belongs to it.
                false => assert_eq!(name, "Return", "at {offset:#x}"),
            }
        } else {
            assert_eq!(original, before[at - 1].1 as u64, "at {offset:#x}");
        }
    }
    assert_eq!(found, before.len());
}

#[test]
fn function_that_others_call_and_the_program_too_stops_the_machine_for_others_alone() {
    let text = r#"(module
      (import "env" "invoke_v" (func $invoke (param i32)))
      (import "env" "tenure_unwind" (func $unwind (param i32 i32)))
      (memory 1)
      (table 1 funcref)
      (elem (i32.const 0) $jump)
      (global $__stack_pointer (mut i32) (i32.const 4096))
      (func $jump (export "jump") (call $unwind (i32.const 16) (i32.const 5)))
      (func (export "run") (call $invoke (i32.const 0))))"#;
    let module = lowered(text);
    let program = Program::read(&module).unwrap();
    let imports: Vec<_> = program.imports.iter().map(|it| (it.module, it.name)).collect();
    assert_eq!(imports, [("tenure", "abort")]);
    let engine = Engine::default();
    let loaded = Loaded::new(&engine, &module).unwrap();
    let mut store = Store::new(&engine, Vec::new());
    let mut linker: Linker<Vec<(i32, i32)>> = Linker::new(&engine);
    let abort = |mut caller: wasmi::Caller<'_, Vec<(i32, i32)>>, at: i32, length: i32| {
        caller.data_mut().push((at, length));
    };
    linker.func_wrap("tenure", "abort", abort).unwrap();
    let instance = linker.instantiate_and_start(&mut store, &loaded).unwrap();
    let function = |store: &Store<_>, name| instance.get_typed_func::<(), ()>(store, name).unwrap();
    let run = function(&store, "run");
    run.call(&mut store, ()).unwrap();
    assert!(store.data().is_empty());
    let jump = function(&store, "jump");
    jump.call(&mut store, ()).unwrap_err();
    assert_eq!(*store.data(), [(16, 5)]);
}

#[test]
fn code_section_has_no_more_than_the_checks() {
    // A function that returns what a call gives needs no look behind it.
    let module = lowered(
        r#"(module
          (import "env" "_emscripten_throw_longjmp" (func $throw))
          (global $__stack_pointer (mut i32) (i32.const 4096))
          (func $jump (result i32) (call $throw) (i32.const 1))
          (func $passes (result i32) (call $jump))
          (func $returns (result i32) (return (call $jump)))
          (func (export "run") (drop (call $passes)) (drop (call $returns))))"#,
    );
    let bodies: Vec<usize> = Parser::new(0)
        .parse_all(&module)
        .filter_map(|payload| match payload.unwrap() {
            Payload::CodeSectionEntry(body) => Some(body.range().len()),
            _ => None,
        })
        .collect();
    // jump: locals, block, call, look, 1, return, end, 0, end.
    assert_eq!(bodies[..3], [1 + 2 + 2 + 4 + 2 + 1 + 1 + 2 + 1, 1 + 2 + 1, 1 + 2 + 1 + 1]);
}
