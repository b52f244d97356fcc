//! Machines that carry code compiled from their wasm: on a board behind a wall the same machines, faster; and
//! code that isn't what it says harms its own machine alone, which is interpreted from then on.

use tenure_cli::home::Home;
use tenure_kernel::{CompiledParts, host_functions};
use tenure_package::{CodeKind, Package, PackageBuilder};
use tenure_vm::{Image, Limits, translate};

use crate::boards::{RISCV32, again, device_at};
use crate::guests::{package, package_for};
use crate::harness::{Process, User, free_address, on};

fn install(user: &User, device: &Process, package: &str, name: &str) {
    let place = ["--as", name, "--grant", "all", "--device", &device.address];
    user.ok(&[&["install", package], &place[..]].concat());
}

/// A machine, as its device lists it.
fn listed(user: &User, device: &Process, name: &str) -> serde_json::Value {
    let list = user.json(&["list", "--device", &device.address]);
    let machines = list["machines"].as_array().unwrap();
    machines.iter().find(|machine| machine["name"] == name).unwrap().clone()
}

/// The package `counter`, with this in place of its compiled code.
fn counter_with(user: &User, name: &str, compiled: &[u8]) -> String {
    let bytes = std::fs::read(package("counter")).unwrap();
    let plain = Package::parse(&bytes).unwrap();
    let wasm = plain.code(CodeKind::WebAssembly).unwrap().to_vec();
    let builder = PackageBuilder::new(plain.manifest().clone(), wasm).unwrap();
    let builder = builder.compiled(CodeKind::Rv32, compiled.to_vec()).unwrap();
    let key = Home::at(user.home()).tenant_key().unwrap();
    let path = user.path(&format!("{name}.tenure"));
    std::fs::write(&path, builder.sign(&key).unwrap()).unwrap();
    path.to_str().unwrap().to_string()
}

/// Compiled code of these instructions, which says that it was made from the image of `counter`.
fn compiled_of(instructions: &[u32]) -> Vec<u8> {
    let bytes = std::fs::read(package("counter")).unwrap();
    let wasm = Package::parse(&bytes).unwrap().code(CodeKind::WebAssembly).unwrap().to_vec();
    let mut image = Vec::new();
    translate(&wasm, &host_functions(), &Limits::default(), &mut image).unwrap();
    let module_checksum = Image::parse(&image).unwrap().module_checksum();
    let code = instructions.iter().flat_map(|word| word.to_le_bytes()).collect();
    let parts = CompiledParts { kind: CodeKind::Rv32, module_checksum, entry: 0, code };
    parts.to_bytes().unwrap()
}

#[test]
fn compiled_machine_on_riscv32_answers_and_pays_as_interpreted_and_is_compiled_after_a_restart() {
    let user = User::new();
    let address = free_address();
    let mut device = device_at(RISCV32, &user, "attic", &address);
    let engine = |device: &Process, name: &str| listed(&user, device, name)["engine"].clone();
    for (guest, calls) in [
        ("counter", &[&["add", "7"][..], &["add"], &["value"]][..]),
        ("thermostat", &[&["set", "18"], &["read"]]),
    ] {
        let (fast, slow) = (format!("fast-{guest}"), format!("slow-{guest}"));
        install(&user, &device, &package_for(guest, "rv32"), &fast);
        install(&user, &device, &package(guest), &slow);
        let run = |name: &str| {
            let call = |call: &&[&str]| user.call(on(&device), &[&[name], *call].concat());
            let answers: Vec<String> = calls.iter().map(call).collect();
            (answers, listed(&user, &device, name)["fuel_used"].clone())
        };
        assert_eq!(run(&fast), run(&slow), "{guest}");
        assert_eq!(engine(&device, &fast), "native-speed");
        assert_eq!(engine(&device, &slow), "vm");
    }
    let crasher = [package_for("crasher", "rv32"), package("crasher")];
    for way in ["unreachable", "out_of_bounds", "stack_overflow", "division"] {
        let [fast, slow] = [("fast", &crasher[0]), ("slow", &crasher[1])].map(|(name, package)| {
            install(&user, &device, package, name);
            let told = user.call_error(on(&device), &[name, way]);
            let fault =
                device.wait_for_words(&format!("[{name}] fault: stopped while serving `{way}`: "));
            user.ok(&["remove", name, "--device", &device.address]);
            (told.replace(name, ""), fault.rsplit("stopped while").next().unwrap().to_string())
        });
        assert_eq!(fast, slow, "the same fault at the same place");
    }
    device.kill();
    device = again(RISCV32, &user, "attic", &address);
    assert_eq!(user.call(on(&device), &["fast-counter", "add"]), "9");
    assert_eq!(engine(&device, "fast-counter"), "native-speed");
}

/// `lui a1, PAGE`.
const fn page(page: u32) -> u32 {
    page << 12 | 11 << 7 | 0x37
}

const RETURN: u32 = 0x0000_8067;
const LOAD: u32 = 0x0005_A603;
const STORE: u32 = 0x00C5_A023;
const JUMP: u32 = 0x0005_8067;
/// `auipc a1, 0`.
const HERE: u32 = 0x0000_0597;
/// `sw a1, 52(a0)` and `sw a1, 36(a0)`: why the stay ends, and the next instruction.
const SAY_WHY: u32 = 0x02B5_2A23;
const SAY_WHERE: u32 = 0x02B5_2223;

#[test]
fn compiled_code_that_breaks_out_on_riscv32_is_contained_and_its_machine_is_interpreted_then() {
    let user = User::new();
    let mut device = device_at(RISCV32, &user, "attic", &free_address());
    user.install(&device, &["thermostat"]);
    assert_eq!(user.call(on(&device), &["thermostat", "set", "18"]), "18.0");
    let ways: &[(&str, &[u32], &str)] = &[
        ("kernel-read", &[page(0x80410), LOAD, RETURN], "read at 0x80410000"),
        ("kernel-write", &[page(0x80410), STORE, RETURN], "wrote at 0x80410000"),
        ("firmware-read", &[page(0x80010), LOAD, RETURN], "read at 0x80010000"),
        ("device-write", &[page(0x10000), STORE, RETURN], "wrote at 0x10000000"),
        ("itself-write", &[HERE, STORE, RETURN], "wrote at 0x22"),
        ("firmware-jump", &[page(0x80010), JUMP], "jumped to 0x80010000"),
        ("nowhere-jump", &[page(0), JUMP], "jumped to 0x0"),
        ("privileged", &[0x3005_9073, RETURN], "an instruction that it may not"),
        ("wait", &[0x1050_0073, RETURN], "an instruction that it may not"),
        ("none", &[0], "an instruction that it may not"),
        ("call", &[0x0000_0073, RETURN], "an instruction that it may not"),
        ("uncounted", &[0x0000_006F], "kept the processor too long"),
        ("again-and-again", &[0x0000_0593, SAY_WHY, RETURN], "numbers that can't be"),
        ("elsewhere", &[page(0x80410), SAY_WHERE, 0x0010_0593, SAY_WHY, RETURN], "numbers"),
    ];
    for (name, instructions, expected) in ways {
        install(&user, &device, &counter_with(&user, name, &compiled_of(instructions)), name);
        let fault = device.wait_for_words(&format!("[{name}] fault: stopped"));
        assert!(fault.contains(expected), "{name}: {fault}");
        assert_eq!(user.call(on(&device), &[name, "add", "5"]), "5", "{name} is interpreted");
        assert_eq!(listed(&user, &device, name)["engine"], "vm", "{name}");
        assert_eq!(user.call(on(&device), &["thermostat", "read"]), "18.0");
        user.ok(&["remove", name, "--device", &device.address]);
    }
}

#[test]
fn bad_compiled_code_is_refused_by_name_and_that_of_another_image_is_left_out() {
    let user = User::new();
    let device = device_at(RISCV32, &user, "attic", &free_address());
    let mut damaged = compiled_of(&[RETURN]);
    *damaged.last_mut().unwrap() ^= 1;
    for (compiled, expected) in [
        (damaged, "the compiled code is damaged"),
        (b"tnc\x02".to_vec(), "the compiled code is cut off"),
        (vec![0; 64], "not compiled code of this version"),
    ] {
        let bad = counter_with(&user, "bad", &compiled);
        let place = ["--grant", "all", "--device", &device.address];
        let refused = user.error(&[&["install", &bad], &place[..]].concat());
        assert!(refused.contains(expected), "{refused}");
    }
    let parts = CompiledParts {
        kind: CodeKind::Rv32,
        module_checksum: 1,
        entry: 0,
        code: RETURN.to_le_bytes().to_vec(),
    };
    let other = counter_with(&user, "other", &parts.to_bytes().unwrap());
    install(&user, &device, &other, "other");
    assert_eq!(user.call(on(&device), &["other", "add"]), "1");
    assert_eq!(listed(&user, &device, "other")["engine"], "vm");
    // Without a wall, or for another processor, the same package is interpreted.
    let linux = user.device("shed", None);
    install(&user, &linux, &package_for("counter", "rv32"), "counter");
    assert_eq!(user.call(on(&linux), &["counter", "add"]), "1");
    assert_eq!(listed(&user, &linux, "counter")["engine"], "vm");
}
