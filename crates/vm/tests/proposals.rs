//! A module that needs a proposal which this engine hasn't is refused by the proposal's name.

mod common;

use common::assemble;
use tenure_vm::{Invalid, Limits, NoHostFunctions, TranslateError, TranslateErrorKind, translate};

/// Fields of modules, each valid with the proposal of that name and not without it.
const MISSING: &[(&str, &[&str])] = &[
    ("SIMD", &["(func (drop (v128.const i64x2 1 2)))", "(func (param v128))"]),
    (
        "threads",
        &["(memory 1 1 shared)", "(memory 1) (func (drop (i32.atomic.load (i32.const 0))))"],
    ),
    (
        "exception handling",
        &[
            "(tag)",
            "(func (param exnref))",
            "(func (block $end (try_table (catch_all $end))))",
            "(func try catch_all end)",
        ],
    ),
    (
        "garbage collection",
        &[
            "(type (struct (field i32)))",
            "(rec (type (func)) (type (func)))",
            "(func (param anyref))",
            "(func (drop (ref.null any)))",
            "(func (drop (ref.i31 (i32.const 1))))",
            "(global i32 (i32.const 1)) (global i32 (global.get 0))",
            "(memory 1) (global $base i32 (i32.const 8)) (data (global.get $base) \"\")",
        ],
    ),
    (
        "typed function references",
        &[
            "(type $f (func)) (func (param (ref $f)))",
            "(type $f (func)) (func (drop (ref.null $f)))",
            "(type $f (func)) (global funcref (ref.null $f))",
            "(type $f (func)) (elem (ref null $f) (ref.null $f))",
            "(type $f (func)) (func (param funcref) (call_ref $f (local.get 0)))",
            "(func $f) (table 1 funcref (ref.func $f))",
            "(func $f) (table 1 (ref func) (ref.func $f))",
        ],
    ),
    (
        "multiple memories",
        &[
            "(memory 1) (memory 1)",
            "(memory 0) (memory 1) (func (drop (i32.load 1 (i32.const 0))))",
            "(memory 0) (memory 1) (func (memory.fill 1 (i32.const 0) (i32.const 0) (i32.const 1)))",
        ],
    ),
    ("64-bit memory", &["(memory i64 1)", "(table i64 1 funcref)"]),
    (
        "wide arithmetic",
        &["(func (param i64) (result i64 i64) (i64.mul_wide_u (local.get 0) (local.get 0)))"],
    ),
    (
        "stack switching",
        &[
            "(type $f (func)) (type $c (cont $f))",
            "(func (param contref))",
            "(func (param nullcontref))",
            "(func (suspend 0))",
        ],
    ),
];

fn refusal(fields: &str) -> TranslateError {
    let wasm = assemble(&format!("(module {fields})"));
    let refused = translate(&wasm, &NoHostFunctions, &Limits::default(), &mut Vec::new());
    refused.expect_err(fields)
}

#[test]
fn proposals_that_are_missing_are_named() {
    for (name, modules) in MISSING {
        for fields in *modules {
            let refused = refusal(fields).to_string();
            let named = format!("unsupported feature: {name} at byte ");
            assert!(refused.starts_with(&named), "{fields}: {refused}");
        }
    }
}

#[test]
fn what_no_proposal_permits_is_invalid() {
    for (fields, reason) in [
        ("(global i32 (global.get 1)) (global i32 (i32.const 1))", Invalid::UnknownGlobal),
        ("(global i32 (global.get 0))", Invalid::UnknownGlobal),
        ("(global (mut i32) (i32.const 1)) (global i32 (global.get 0))", Invalid::ConstantRequired),
        ("(memory 1) (data (memory 1) (i32.const 0) \"\")", Invalid::UnknownMemory),
    ] {
        assert_eq!(refusal(fields).kind, TranslateErrorKind::Invalid(reason), "{fields}");
    }
}
