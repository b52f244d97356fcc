//! Sixteen tenants' machines, in three languages, on a board with 400 KB of RAM: all of them subscribe,
//! call and store, one spins, one traps.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde_json::Value;
use tenure_cli::home::Home;
use tenure_cli::make::module::Module;
use tenure_cli::make::pack::{CompiledCode, Linked, pack};
use tenure_cli::make::project_file::ProjectFile;
use tenure_cli::make::refusal::Names;
use tenure_testbed::wait_until;

use crate::boards::{RISCV32, device_at};
use crate::guests::build_own;
use crate::harness::{Process, User, finish, free_ipv4_address};

/// The most that a machine may take beyond its linear memory: its stack, which is 1 KiB here, instance,
/// queue, record and subscription.
const MACHINE_BYTES_MAX: u64 = 4096;
/// The most that the node may take beside its machines, sessions and answers under way included.
const NODE_BYTES_MAX: u64 = 64 * 1024;

/// As `tenants/c` and `tenants/rust`, in WebAssembly's own text.
const IN_TEXT: &str = r#"(module
  (import "tenure" "parameter_read" (func $parameter (param i32 i32 i32) (result i32)))
  (import "tenure" "parameter_length" (func $length (result i32)))
  (import "tenure" "reply" (func $reply (param i32 i32) (result i32)))
  (import "tenure" "tree_get" (func $get (param i32 i32 i32 i32) (result i32)))
  (import "tenure" "tree_set" (func $set (param i32 i32 i32 i32 i32) (result i32)))
  (import "tenure" "call" (func $call (param i32 i32 i32 i32 i32 i32 i32) (result i32)))
  (import "tenure" "result_read" (func $result (param i32 i32 i32) (result i32)))
  (import "tenure" "subscribe" (func $subscribe (param i32 i32 i32 i32 i32 i32) (result i32)))
  (memory 1)
  (data (i32.const 0) "roundheardanswervalue")
  (func $must (param $error i32)
    (if (i32.lt_s (local.get $error) (i32.const 0)) (then (unreachable))))
  (func (export "entry")
    (call $must (call $subscribe (i32.const 0) (i32.const 5) (i32.const 0) (i32.const 2)
      (i32.const 5) (i32.const 5))))
  (func (export "heard") (local $n i32)
    (local.set $n (call $length))
    (drop (call $parameter (i32.const 0) (i32.const 64) (local.get $n)))
    (call $must (call $set (i32.const 5) (i32.const 5) (i32.const 1) (i32.const 64)
      (local.get $n))))
  (func (export "value") (local $n i32)
    (local.set $n (call $get (i32.const 5) (i32.const 5) (i32.const 64) (i32.const 32)))
    (call $must (local.get $n))
    (drop (call $reply (i32.const 64) (local.get $n))))
  (func (export "ask") (local $n i32)
    (local.set $n (call $length))
    (drop (call $parameter (i32.const 0) (i32.const 64) (local.get $n)))
    (local.set $n (call $call (i32.const 64) (local.get $n) (i32.const 16) (i32.const 5)
      (i32.const 0) (i32.const -1) (i32.const 0)))
    (call $must (local.get $n))
    (drop (call $result (i32.const 0) (i32.const 128) (local.get $n)))
    (call $must (call $set (i32.const 10) (i32.const 6) (i32.const 1) (i32.const 128)
      (local.get $n)))
    (drop (call $reply (i32.const 128) (local.get $n)))))"#;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("sixteen")
}

/// The packages, built once.
fn packages() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        build_own("tenants/c", &folder(), "tenant-c");
        build_own("tenants/rust", &folder(), "tenant-rust");
        let like = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/devices/tenants/c");
        let mut project = ProjectFile::read(&like).unwrap();
        project.name = "tenant-text".parse().unwrap();
        let wasm = wat::parse_str(IN_TEXT).unwrap();
        let key = Home::at(folder().join("tenant")).tenant_key().unwrap();
        let module = Module { memory_bytes: 256, ..Module::read(&wasm).unwrap() };
        let package = pack(
            &project,
            vec![CompiledCode::module(module, Linked::InPages, Names::new())],
            vec![],
            vec![],
            &key,
        )
        .unwrap();
        std::fs::write(folder().join("tenant-text.tenure"), package).unwrap();
        folder()
    })
}

/// Which language machine number `number` is written in: the first and the last two in C.
fn language(number: usize) -> &'static str {
    ["c", "rust", "text"][number % 3]
}

fn name(number: usize) -> String {
    format!("tenant{number}")
}

/// How often something is asked for whose outcome the device doesn't know.
const ATTEMPTS: usize = 5;

const COUNT: usize = 16;
/// Those that go wrong; both in C.
const SPINS: usize = 12;
const TRAPS: usize = 15;

/// One device's view of its sixteen machines.
struct Tenants<'a> {
    user: &'a User,
    device: &'a Process,
}

impl Tenants<'_> {
    fn install(&self) {
        for number in 0..COUNT {
            let package = packages().join(format!("tenant-{}.tenure", language(number)));
            let package = package.to_str().unwrap();
            self.ok("install", &[package, "--as", &name(number), "--grant", "all"]);
        }
    }

    /// Lets all hear a round, says by how many it was taken, and waits until those of `numbers` have
    /// heard it, stored it, and asked each other.
    fn round(&self, round: &str, numbers: &[usize]) -> String {
        let heard_by = self.call(&["tenant0", "announce", round]);
        for (place, number) in numbers.iter().enumerate() {
            let asked = name(numbers[(place + 1) % numbers.len()]);
            // Its publication is heard once its turn comes, which a call waits for.
            let answer = self.call(&[&name(*number), "ask", &asked]);
            assert_eq!(answer, round, "{asked}, asked by {number}");
        }
        heard_by
    }

    /// Runs a command of `tenure` on the device. All that is done here may be done twice, so that what
    /// the full device has lost track of is asked for again.
    fn ok(&self, verb: &str, rest: &[&str]) -> String {
        let arguments = [&[verb, "--device", &self.device.address], rest].concat();
        let mut is_first = true;
        for _ in 0..ATTEMPTS {
            let output = finish(self.user.command(&arguments));
            let error = String::from_utf8_lossy(&output.stderr);
            if output.status.success() {
                return String::from_utf8(output.stdout).unwrap();
            }
            let is_removed = !is_first && error.contains("there is no machine");
            if is_removed {
                return String::new();
            }
            assert!(error.contains("outcome unknown"), "tenure {arguments:?}: {error}");
            is_first = false;
        }
        panic!("tenure {arguments:?}: no outcome is known");
    }

    fn json(&self, verb: &str, rest: &[&str]) -> Value {
        serde_json::from_str(&self.ok(verb, &[&["--json"], rest].concat())).unwrap()
    }

    fn call(&self, call: &[&str]) -> String {
        let answer = self.json("call", call);
        answer["result"].as_str().unwrap().to_string()
    }

    fn list(&self) -> Value {
        self.json("list", &[])
    }

    fn remove_all(&self) {
        for number in 0..COUNT {
            self.ok("remove", &[&name(number), "--for-good"]);
        }
    }

    /// The list once nobody has anything to do.
    fn list_at_rest(&self) -> Value {
        wait_until(|| {
            let list = self.list();
            let mut machines = list["machines"].as_array().unwrap().iter();
            match machines.all(|it| it["state"] == "idle" && it["queue_length"] == 0) {
                true => Ok(list),
                false => Err(format!("they don't come to rest: {list}")),
            }
        })
    }
}

#[test]
fn sixteen_machines_in_three_languages_share_400_kb() {
    let user = User::new();
    let device = device_at(RISCV32, &user, "attic", &free_ipv4_address());
    let tenants = Tenants { user: &user, device: &device };
    let all: Vec<usize> = (0..COUNT).collect();
    tenants.install();
    assert_eq!(tenants.round("first", &all), "16");
    tenants.remove_all();
    // The node's own tables have now grown as far as they do.
    let empty = tenants.list_at_rest();

    tenants.install();
    assert_eq!(tenants.round("second", &all), "16");
    check_memory(&tenants.list_at_rest(), &empty);
    tenants.call(&[&name(SPINS), "will", "spin"]);
    tenants.call(&[&name(TRAPS), "will", "trap"]);
    let good: Vec<usize> = all.into_iter().filter(|it| ![SPINS, TRAPS].contains(it)).collect();
    assert_eq!(tenants.round("third", &good), "16");
    tenants.round("fourth", &good);
    for machine in tenants.list()["machines"].as_array().unwrap() {
        let faults = machine["faults"].as_u64().unwrap();
        assert_eq!(faults > 0, machine["name"] == name(TRAPS), "{machine}");
        let idle = machine["state"] == "idle";
        assert!(idle != (machine["name"] == name(SPINS)), "{machine}");
    }
}

/// Holds a device to the budgets: `full` is its list with all machines, `empty` the one without any.
/// Sessions and log are the same in both. What is kept of answers depends on which datagrams got lost,
/// and is the node's.
fn check_memory(full: &Value, empty: &Value) {
    let machines = full["machines"].as_array().unwrap();
    assert_eq!(machines.len(), COUNT);
    let memory: u64 = machines.iter().map(|it| it["memory_bytes"].as_u64().unwrap()).sum();
    let bytes = |list: &Value, which: &str| list["heap"][which].as_u64().unwrap();
    let [with, without] =
        [full, empty].map(|list| bytes(list, "used_bytes") - bytes(list, "answers_bytes"));
    let each = (with - without - memory) / COUNT as u64;
    let board = bytes(empty, "board_bytes");
    let node = bytes(empty, "used_bytes") - board;
    println!("linear memory of 16 machines: {memory} bytes; RAM of each beyond it: {each} bytes");
    let peak = bytes(full, "peak_bytes") - (with - without) - board;
    println!(
        "RAM of the node beside machines: {node} bytes, {peak} at most; drivers: {board} bytes"
    );
    assert!(each <= MACHINE_BYTES_MAX, "a machine takes {each} bytes beyond its memory");
    assert!(node <= NODE_BYTES_MAX, "the node takes {node} bytes beside its machines");
}
