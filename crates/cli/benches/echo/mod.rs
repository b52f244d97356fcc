//! The machine of several benches, which returns what it is given.

use anyhow::Result;
use tenure_cli::home::Home;
use tenure_package::{Manifest, PackageBuilder, Version};
use tenure_wire::Budget;

const ECHO: &str = r#"(module
  (import "tenure" "parameter_length" (func $parameter_length (result i32)))
  (import "tenure" "parameter_read" (func $parameter_read (param i32 i32 i32) (result i32)))
  (import "tenure" "reply" (func $reply (param i32 i32) (result i32)))
  (memory 1)
  (func (export "echo") (local $length i32)
    (local.set $length (call $parameter_length))
    (drop (call $parameter_read (i32.const 0) (i32.const 1024) (local.get $length)))
    (drop (call $reply (i32.const 1024) (local.get $length)))))"#;

/// Its package under that name, signed by the tenant of `home`.
pub(crate) fn package(name: &str, home: &Home) -> Result<Vec<u8>> {
    let manifest = Manifest {
        exports: vec!["echo".into()],
        budget: Budget { memory_bytes: 64 * 1024, ..Budget::default() },
        ..Manifest::new(name.parse()?, Version { major: 0, minor: 1, patch: 0 })
    };
    Ok(PackageBuilder::new(manifest, wat::parse_str(ECHO)?)?.sign(&home.tenant_key()?)?)
}
