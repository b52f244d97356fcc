//! Which of WebAssembly's proposals a module needs that no device has, and what to tell its compiler.
//!
//! A module needs a proposal if it is valid with all of them, and not without that one. So a proposal is found whichever of
//! its rules the module uses.

use wasmparser::{Validator, WasmFeatures};

/// A proposal that is no part of the vm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// Its name.
    pub name: &'static str,
    /// How to do without, by compiler.
    pub without: &'static str,
    /// Its bits, as the validator has them.
    flag: WasmFeatures,
}

const MANAGED: &str = "build it with a compiler that brings its own memory management, as C, Rust, Zig, TinyGo and \
                       AssemblyScript do, and not for WasmGC";

/// The proposals, those that need others behind these.
const PROPOSALS: [Proposal; 13] = [
    Proposal {
        name: "stack switching",
        without: "build without it (no coroutines of the engine's; no --enable-stack-switching)",
        flag: WasmFeatures::STACK_SWITCHING,
    },
    Proposal {
        name: "relaxed SIMD",
        without: "build without it (no -mrelaxed-simd; Rust: no +relaxed-simd; AssemblyScript: no --enable relaxed-simd)",
        flag: WasmFeatures::RELAXED_SIMD,
    },
    Proposal {
        name: "SIMD",
        without: "build without it (no -msimd128; Rust: no +simd128; AssemblyScript: no --enable simd)",
        flag: WasmFeatures::SIMD,
    },
    Proposal {
        name: "shared-everything threads",
        without: "build it for one thread",
        flag: WasmFeatures::SHARED_EVERYTHING_THREADS,
    },
    Proposal {
        name: "threads",
        without: "build it for one thread (no -pthread and -matomics; Rust: no +atomics; Zig: -fsingle-threaded; \
                  AssemblyScript: no --enable threads)",
        flag: WasmFeatures::THREADS,
    },
    Proposal {
        name: "exception handling in its old encoding",
        without: "build without exceptions (-fno-exceptions, no -fwasm-exceptions and -sSUPPORT_LONGJMP=wasm; Rust: panic \
                  = \"abort\")",
        flag: WasmFeatures::LEGACY_EXCEPTIONS,
    },
    Proposal {
        name: "exception handling",
        without: "build without exceptions (-fno-exceptions, no -fwasm-exceptions and -sSUPPORT_LONGJMP=wasm; Rust: panic \
                  = \"abort\")",
        flag: WasmFeatures::EXCEPTIONS,
    },
    Proposal { name: "garbage collection", without: MANAGED, flag: WasmFeatures::GC },
    Proposal {
        name: "typed function references",
        without: MANAGED,
        flag: WasmFeatures::FUNCTION_REFERENCES,
    },
    Proposal {
        name: "multiple memories",
        without: "let it have one memory (no wasm-merge of modules that have their own; no -mmultimemory)",
        flag: WasmFeatures::MULTI_MEMORY,
    },
    Proposal {
        name: "memory control",
        without: "build without it",
        flag: WasmFeatures::MEMORY_CONTROL,
    },
    Proposal {
        name: "64-bit memory",
        without: "build it for wasm32 (no --target=wasm64, -sMEMORY64)",
        flag: WasmFeatures::MEMORY64,
    },
    Proposal {
        name: "wide arithmetic",
        without: "build without it (no -mwide-arithmetic; Rust: no +wide-arithmetic)",
        flag: WasmFeatures::WIDE_ARITHMETIC,
    },
];

/// The proposal that a module needs, if it is valid with all of them.
pub(crate) fn needed(module: &[u8]) -> Option<Proposal> {
    let is_valid = |features| Validator::new_with_features(features).validate_all(module).is_ok();
    let all = WasmFeatures::all();
    if !is_valid(all) {
        return None;
    }
    PROPOSALS.into_iter().find(|proposal| !is_valid(all.difference(proposal.flag)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proposals_are_named_whichever_of_their_rules_is_used() {
        for (text, name) in [
            ("(func (drop (v128.const i64x2 1 2)))", "SIMD"),
            (
                "(func (param v128) (drop (i8x16.relaxed_swizzle (local.get 0) (local.get 0))))",
                "relaxed SIMD",
            ),
            ("(memory 1 1 shared)", "threads"),
            ("(tag)", "exception handling"),
            ("(func (block $end (try_table (catch_all $end))))", "exception handling"),
            ("(func try catch_all end)", "exception handling in its old encoding"),
            ("(type (struct (field i32)))", "garbage collection"),
            ("(global i32 (i32.const 1)) (global i32 (global.get 0))", "garbage collection"),
            ("(func $f) (table 1 (ref func) (ref.func $f))", "typed function references"),
            ("(memory 1) (memory 1)", "multiple memories"),
            ("(memory i64 1)", "64-bit memory"),
            (
                "(func (param i64) (result i64 i64) (i64.mul_wide_u (local.get 0) (local.get 0)))",
                "wide arithmetic",
            ),
            ("(type $f (func)) (type $c (cont $f))", "stack switching"),
        ] {
            let module = wat::parse_str(format!("(module {text})")).unwrap();
            assert_eq!(needed(&module).map(|it| it.name), Some(name), "{text}");
        }
    }

    #[test]
    fn what_devices_take_needs_none_and_what_is_broken_neither() {
        for text in [
            "(func (result i32 i32) (i32.const 1) (i32.extend8_s (i32.const 2)))",
            "(memory 1) (func (memory.fill (i32.const 0) (i32.const 0) (i32.const 1)))",
            "(func (return_call 0))",
            "(global i32 (i32.add (i32.const 1) (i32.const 2)))",
            "(memory 1 (pagesize 1))",
            "(table 1 externref) (func (drop (i32.trunc_sat_f64_u (f64.const 1))))",
        ] {
            let module = wat::parse_str(format!("(module {text})")).unwrap();
            assert_eq!(needed(&module), None, "{text}");
        }
        let broken = wat::parse_str("(module (func (result i32)))").unwrap();
        assert_eq!(needed(&broken), None);
    }
}
