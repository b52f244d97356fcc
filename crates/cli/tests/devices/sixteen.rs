//! Sixteen tenants' machines, in three languages, on a board with 400 KB of RAM.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tenure_cli::home::Home;
use tenure_cli::module::Module;
use tenure_cli::pack::pack;
use tenure_cli::project_file::ProjectFile;

use crate::boards::{RISCV32, device_at, free_address};
use crate::guests::build_small;
use crate::harness::{User, on};

/// What a machine of these may have: so that sixteen fit.
const BUDGET: &str = "memory_bytes = 8192\nstack_bytes = 2048\nstored_bytes = 4096";

/// Stores what it is given, and asks another; written in WebAssembly's own text.
const RELAY: &str = r#"(module
  (import "tenure" "parameter_length" (func $length (result i32)))
  (import "tenure" "parameter_read" (func $read (param i32 i32 i32) (result i32)))
  (import "tenure" "reply" (func $reply (param i32 i32) (result i32)))
  (import "tenure" "tree_set" (func $set (param i32 i32 i32 i32 i32) (result i32)))
  (import "tenure" "call" (func $call (param i32 i32 i32 i32 i32 i32 i32) (result i32)))
  (import "tenure" "result_read" (func $result (param i32 i32 i32) (result i32)))
  (memory 1)
  (data (i32.const 0) "lastadd")
  ;; Calls `add` of the machine that the parameter names, stores its answer and replies with it.
  (func (export "ask") (local $n i32)
    (local.set $n (call $length))
    (drop (call $read (i32.const 0) (i32.const 64) (local.get $n)))
    (local.set $n (call $call (i32.const 64) (local.get $n) (i32.const 4) (i32.const 3)
      (i32.const 0) (i32.const -1) (i32.const 0)))
    (if (i32.lt_s (local.get $n) (i32.const 0)) (then (unreachable)))
    (drop (call $result (i32.const 0) (i32.const 128) (local.get $n)))
    (if (call $set (i32.const 0) (i32.const 4) (i32.const 1) (i32.const 128) (local.get $n))
      (then (unreachable)))
    (drop (call $reply (i32.const 128) (local.get $n)))))"#;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("sixteen")
}

/// The packages, built once, each with the small budget.
fn packages() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        for app in ["counter", "thermostat", "spinner", "crasher"] {
            build_small(app, &folder(), BUDGET);
        }
        let relay = folder().join("relay");
        std::fs::create_dir_all(&relay).unwrap();
        let project = format!(
            "name = \"relay\"\nversion = \"0.1.0\"\nlanguage = \"c\"\n\n[budget]\n{BUDGET}\n\n\
             [capabilities]\ncalls = [\"*\"]\ncallers = [\"*\"]\n"
        );
        std::fs::write(relay.join("tenure.toml"), project).unwrap();
        let (project, wasm) = (ProjectFile::read(&relay).unwrap(), wat::parse_str(RELAY).unwrap());
        let key = Home::at(folder().join("tenant")).tenant_key().unwrap();
        let module = Module { memory_bytes: 256, ..Module::read(&wasm).unwrap() };
        let package = pack(&project, module, false, &key).unwrap();
        std::fs::write(folder().join("relay.tenure"), package).unwrap();
        folder()
    })
}

#[test]
fn sixteen_machines_in_three_languages_share_400_kb() {
    let user = User::new();
    let device = device_at(RISCV32, &user, "attic", &free_address());
    let install = |package: &str, name: &str| {
        let package = packages().join(format!("{package}.tenure"));
        let package = package.to_str().unwrap();
        let place = ["--grant", "all", "--device", &device.address];
        user.ok(&[&["install", package, "--as", name], &place[..]].concat());
    };
    install("spinner", "spinner");
    install("crasher", "crasher");
    // In C, in Rust, and in WebAssembly's text.
    for number in 1..=5 {
        install("counter", &format!("counter{number}"));
        install("thermostat", &format!("thermostat{number}"));
    }
    for number in 1..=4 {
        install("relay", &format!("relay{number}"));
    }
    for round in 1..=2 {
        for number in 1..=4 {
            let asked = user.call(
                on(&device),
                &[&format!("relay{number}"), "ask", &format!("counter{number}")],
            );
            assert_eq!(asked, format!("{round}"), "relay {number}");
        }
        let degrees = format!("1{round}");
        for number in 1..=5 {
            let set = [&format!("thermostat{number}"), "set", degrees.as_str()];
            assert_eq!(user.call(on(&device), &set), format!("{degrees}.0"));
        }
        user.call_error(on(&device), &["crasher", "out_of_bounds"]);
    }
    let list = user.json(&["list", "--device", &device.address]);
    let machines = list["machines"].as_array().unwrap();
    assert_eq!(machines.len(), 16);
    for machine in machines {
        let name = machine["name"].as_str().unwrap();
        let faults = machine["faults"].as_u64().unwrap();
        assert_eq!(faults > 0, name == "crasher", "{machine}");
    }
}
