//! Machines that carry code compiled from their wasm: on a board behind a wall the same machines, faster; and
//! code that isn't what it says harms its own machine alone, which is interpreted from then on.

use tenure_cli::home::Home;
use tenure_kernel::{CompiledParts, host_functions};
use tenure_package::{CodeKind, Package, PackageBuilder};
use tenure_vm::{Image, Limits, translate};
use tenure_wire::Budget;

use crate::boards::{Board, CORTEX_M, RISCV32, again, device_at};
use crate::guests::{package, package_for};
use crate::harness::{Process, User, free_ipv4_address, on};

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

/// The package `counter`, with this in place of its code compiled for processors of that kind.
fn counter_with(user: &User, name: &str, kind: CodeKind, compiled: &[u8]) -> String {
    repacked(user, &package("counter"), name, Some((kind, compiled)), |_| {})
}

/// The package at `path` with this as its compiled code, and with another budget.
fn repacked(
    user: &User,
    path: &str,
    name: &str,
    compiled: Option<(CodeKind, &[u8])>,
    change: impl FnOnce(&mut Budget),
) -> String {
    let bytes = std::fs::read(path).unwrap();
    let plain = Package::parse(&bytes).unwrap();
    let wasm = plain.code(CodeKind::WebAssembly).unwrap().to_vec();
    let mut manifest = plain.manifest().clone();
    change(&mut manifest.budget);
    let mut builder = PackageBuilder::new(manifest, wasm).unwrap();
    if let Some((kind, code)) = compiled {
        builder = builder.compiled(kind, code.to_vec()).unwrap();
    }
    let key = Home::at(user.home()).tenant_key().unwrap();
    let path = user.path(&format!("{name}.tenure"));
    std::fs::write(&path, builder.sign(&key).unwrap()).unwrap();
    path.to_str().unwrap().to_string()
}

/// Compiled code that begins with its function, and says that it was made from the image of that package.
fn compiled_of(package: &str, kind: CodeKind, code: Vec<u8>) -> Vec<u8> {
    let bytes = std::fs::read(package).unwrap();
    let wasm = Package::parse(&bytes).unwrap().code(CodeKind::WebAssembly).unwrap().to_vec();
    let mut image = Vec::new();
    translate(&wasm, &host_functions(), &Limits::default(), &mut image).unwrap();
    let module_checksum = Image::parse(&image).unwrap().module_checksum();
    // Addresses of Thumb code are odd.
    let entry = (kind == CodeKind::Thumb).into();
    let parts = CompiledParts { kind, module_checksum, entry, code };
    parts.to_bytes().unwrap()
}

#[test]
fn compiled_machine_on_riscv32_answers_and_pays_as_interpreted_and_is_compiled_after_a_restart() {
    check_answers(RISCV32, "rv32");
}

#[test]
fn compiled_machine_on_cortex_m_answers_and_pays_as_interpreted_and_is_compiled_after_a_restart() {
    check_answers(CORTEX_M, "thumb");
}

fn check_answers(board: Board, kind: &str) {
    let user = User::new();
    let address = free_ipv4_address();
    let mut device = device_at(board, &user, "attic", &address);
    let engine = |device: &Process, name: &str| listed(&user, device, name)["engine"].clone();
    for (guest, calls) in [
        ("counter", &[&["add", "7"][..], &["add"], &["value"]][..]),
        ("thermostat", &[&["set", "18"], &["read"]]),
    ] {
        let (fast, slow) = (format!("fast-{guest}"), format!("slow-{guest}"));
        install(&user, &device, &package_for(guest, kind), &fast);
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
    let crasher = [package_for("crasher", kind), package("crasher")];
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
    device = again(board, &user, "attic", &address);
    assert_eq!(user.call(on(&device), &["fast-counter", "add"]), "9");
    assert_eq!(engine(&device, "fast-counter"), "native-speed");
}

/// Instructions of RV32.
mod rv32 {
    /// `lui a1, PAGE`.
    pub(super) const fn page(page: u32) -> u32 {
        page << 12 | 11 << 7 | 0x37
    }

    pub(super) const RETURN: u32 = 0x0000_8067;
    pub(super) const LOAD: u32 = 0x0005_A603;
    pub(super) const STORE: u32 = 0x00C5_A023;
    pub(super) const JUMP: u32 = 0x0005_8067;
    /// `auipc a1, 0`.
    pub(super) const HERE: u32 = 0x0000_0597;
    /// `sw a1, 52(a0)` and `sw a1, 36(a0)`: why the stay ends, and the next instruction.
    pub(super) const SAY_WHY: u32 = 0x02B5_2A23;
    pub(super) const SAY_WHERE: u32 = 0x02B5_2223;
}

#[test]
fn compiled_code_that_breaks_out_on_riscv32_is_contained_and_its_machine_is_interpreted_then() {
    use rv32::{HERE, JUMP, LOAD, RETURN, SAY_WHERE, SAY_WHY, STORE, page};
    let ways: &[(&str, &[u32], &str)] = &[
        ("kernel-read", &[page(0x80410), LOAD, RETURN], "read at 0x80410000"),
        ("kernel-write", &[page(0x80410), STORE, RETURN], "wrote at 0x80410000"),
        ("firmware-read", &[page(0x80010), LOAD, RETURN], "read at 0x80010000"),
        ("device-write", &[page(0x10000), STORE, RETURN], "wrote at 0x10000000"),
        ("itself-write", &[HERE, STORE, RETURN], "wrote at 0x44"),
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
    let bytes = |code: &[u32]| code.iter().flat_map(|word| word.to_le_bytes()).collect();
    let ways = ways.iter().map(|(name, code, expected)| (*name, bytes(code), *expected));
    check_breaks(RISCV32, CodeKind::Rv32, ways);
}

/// Instructions of Thumb, as ARMv7-M has them.
mod thumb {
    /// `movw r1, LOW` and `movt r1, HIGH` (ARMv7-M manual, A7.7.76 and A7.7.79).
    pub(super) fn address(address: u32) -> [u16; 4] {
        let half = |opcode: u32, half: u32| {
            let first = opcode | half >> 12 | (half >> 11 & 1) << 10;
            let second = (half >> 8 & 7) << 12 | 1 << 8 | half & 0xFF;
            [first as u16, second as u16]
        };
        let ([a, b], [c, d]) = (half(0xF240, address & 0xFFFF), half(0xF2C0, address >> 16));
        [a, b, c, d]
    }

    pub(super) const RETURN: u16 = 0x4770;
    pub(super) const LOAD: u16 = 0x680A;
    pub(super) const STORE: u16 = 0x600A;
    pub(super) const JUMP: u16 = 0x4708;
    /// `mov r1, pc`.
    pub(super) const HERE: u16 = 0x4679;
    /// `mov sp, r1`.
    pub(super) const STACK: u16 = 0x468D;
    /// `str r1, [r0, #52]` and `str r1, [r0, #36]`: why the stay ends, and the next instruction.
    pub(super) const SAY_WHY: u16 = 0x6341;
    pub(super) const SAY_WHERE: u16 = 0x6241;
    pub(super) const CALL: u16 = 0xDF00;
    /// A branch to itself.
    pub(super) const STAY: u16 = 0xE7FE;
}

#[test]
fn compiled_code_that_breaks_out_on_cortex_m_is_contained_and_its_machine_is_interpreted_then() {
    use thumb::{CALL, HERE, JUMP, LOAD, RETURN, SAY_WHERE, SAY_WHY, STACK, STAY, STORE, address};
    // The kernel's memory, the firmware, a device, and memory protection's own registers.
    let at = |place: u32, rest: &[u16]| [&address(place), rest].concat();
    let ways: Vec<(&str, Vec<u16>, &str)> = vec![
        ("kernel-read", at(0x2000_4000, &[LOAD, RETURN]), "read at 0x20004000"),
        ("kernel-write", at(0x2000_4000, &[STORE, RETURN]), "wrote at 0x20004000"),
        ("firmware-read", at(0x0001_0000, &[LOAD, RETURN]), "read at 0x10000"),
        ("device-write", at(0x4000_4000, &[STORE, RETURN]), "wrote at 0x40004000"),
        ("protection-write", at(0xE000_ED94, &[STORE, RETURN]), "wrote at 0xe000ed94"),
        ("itself-write", vec![HERE, STORE, RETURN], "wrote at 0x21"),
        ("firmware-jump", at(0x0001_0001, &[JUMP]), "jumped to 0x10000"),
        ("nowhere-jump", at(1, &[JUMP]), "jumped to 0x0"),
        // No address of Thumb code is even; what is there can't be fetched to begin with.
        ("other-state", at(0x0001_0000, &[JUMP]), "jumped to 0x10000"),
        // Unprivileged, turning interrupts off does nothing (manual, B5.2.1), and waiting ends with one.
        ("privileged", vec![0xB672, STAY], "kept the processor too long"),
        ("wait", vec![0xBF30, 0xE7FD], "kept the processor too long"),
        ("none", vec![0xDE00], "an instruction that it may not"),
        ("call", vec![CALL, RETURN], "an instruction that it may not"),
        ("stack-elsewhere", at(0x2000_4000, &[STACK, CALL]), "wrote at 0x2000"),
        ("uncounted", vec![STAY], "kept the processor too long"),
        ("again-and-again", vec![0x2100, SAY_WHY, RETURN], "numbers that can't be"),
        ("elsewhere", at(0x2000_4000, &[SAY_WHERE, 0x2101, SAY_WHY, RETURN]), "numbers"),
    ];
    let bytes = |code: Vec<u16>| code.into_iter().flat_map(u16::to_le_bytes).collect();
    let ways = ways.into_iter().map(|(name, code, expected)| (name, bytes(code), expected));
    check_breaks(CORTEX_M, CodeKind::Thumb, ways);
}

/// Runs code that breaks out in each of these ways, by name, and what the device is to say of it: each takes
/// the place in flash that the one before it had.
fn check_breaks<'w>(
    board: Board,
    kind: CodeKind,
    ways: impl Iterator<Item = (&'w str, Vec<u8>, &'w str)>,
) {
    let user = User::new();
    let mut device = device_at(board, &user, "attic", &free_ipv4_address());
    user.install(&device, &["thermostat"]);
    assert_eq!(user.call(on(&device), &["thermostat", "set", "18"]), "18.0");
    for (name, code, expected) in ways {
        let compiled = compiled_of(&package("counter"), kind, code);
        install(&user, &device, &counter_with(&user, name, kind, &compiled), name);
        let fault = device.wait_for_words(&format!("[{name}] fault: stopped"));
        assert!(fault.contains(expected), "{name}: {fault}");
        assert_eq!(user.call(on(&device), &[name, "add", "5"]), "5", "{name} is interpreted");
        assert_eq!(listed(&user, &device, name)["engine"], "vm", "{name}");
        assert_eq!(user.call(on(&device), &["thermostat", "read"]), "18.0");
        user.ok(&["remove", name, "--for-good", "--device", &device.address]);
    }
}

/// The processor's instructions in a second, as its emulator counts them.
const INSTRUCTIONS_PER_SECOND: u64 = 125_000_000;
/// The most of them that a unit of fuel buys code that counts as little as it likes: 14 while it runs, the rest for its stays.
const INSTRUCTIONS_PER_UNIT: u64 = 18;

#[test]
fn forged_code_on_riscv32_pays_by_the_clock_and_holds_others_up_no_longer_than_it_pays_for() {
    use rv32::{RETURN, SAY_WHY};
    let user = User::new();
    let mut device = device_at(RISCV32, &user, "attic", &free_ipv4_address());
    let spinner = package_for("spinner", "rv32");
    let bytes = std::fs::read(&spinner).unwrap();
    let honest = Package::parse(&bytes).unwrap().compiled(CodeKind::Rv32).unwrap().to_vec();
    // lui a2, 0xE; addi a2, a2, -1; bne a2, zero, -4: 57,344 rounds, uncounted: .92 ms, where the wall stops
    // it after .96 when it has no fuel left.
    // li a1, -1: the interpreter goes on, and counts what it executes.
    let code = [0x0000_E637, 0xFFF6_0613, 0xFE06_1EE3, 0xFFF0_0593, SAY_WHY, RETURN];
    let code = code.iter().flat_map(|word: &u32| word.to_le_bytes()).collect();
    let forged = compiled_of(&spinner, CodeKind::Rv32, code);
    let put = |device: &Process, name: &str, code: Option<&[u8]>| {
        let compiled = code.map(|code| (CodeKind::Rv32, code));
        // No limit but its share.
        let change = |budget: &mut Budget| budget.fuel_per_second = 0;
        install(&user, device, &repacked(&user, &spinner, name, compiled, change), name);
    };
    let mut alone = |name: &str, code: Option<&[u8]>| {
        put(&device, name, code);
        let [speed] = speeds(&user, &mut device, [name]);
        user.ok(&["remove", name, "--for-good", "--device", &device.address]);
        speed
    };
    let interpreted = alone("interpreted", None);
    let compiled = alone("compiled", Some(&honest));
    let cheating = alone("cheating", Some(&forged));
    println!("units a second: {interpreted} interpreted, {compiled} compiled, {cheating} forged");
    // In the same time it pays a third of an interpreted one at least, and a twentieth of a compiled one.
    assert!(cheating >= INSTRUCTIONS_PER_SECOND / INSTRUCTIONS_PER_UNIT, "{cheating}");
    assert!(cheating >= interpreted / 3, "{cheating}, and {interpreted} interpreted");
    assert!(cheating >= compiled / 20, "{cheating}, and {compiled} compiled");
    // Turn by turn both pay the same, so that the honest one has as many turns as its neighbour pays for.
    put(&device, "forged", Some(&forged));
    put(&device, "honest", Some(&honest));
    let [honest, forged] = speeds(&user, &mut device, ["honest", "forged"]);
    println!("units a second beside each other: {honest} honest, {forged} forged");
    assert!(honest >= INSTRUCTIONS_PER_SECOND / (INSTRUCTIONS_PER_UNIT + 6), "{honest}");
    assert!(forged >= honest / 2, "{forged} forged, {honest} honest");
    for name in ["forged", "honest"] {
        assert_eq!(listed(&user, &device, name)["engine"], "native-speed");
        assert_eq!(listed(&user, &device, name)["faults"], 0, "{name}");
    }
}

/// The units of fuel that each of these machines uses in a second of its device's time, which is counted in instructions:
/// while the first says that it still spins, which it does every two seconds.
fn speeds<const N: usize>(user: &User, device: &mut Process, names: [&str; N]) -> [u64; N] {
    const SPAN_MS: u64 = 4_000;
    let spins = format!("[{}] info: still spinning", names[0]);
    let look = |device: &Process| {
        let status = user.json(&["status", "--device", &device.address]);
        let fuel = names.map(|name| listed(user, device, name)["fuel_used"].as_u64().unwrap());
        (status["uptime_ms"].as_u64().unwrap(), fuel)
    };
    device.wait_for_words(&spins);
    let (from_ms, before) = look(device);
    // Each look takes the device some time.
    let (to_ms, after) = loop {
        device.wait_for_words(&spins);
        let seen = look(device);
        if seen.0 >= from_ms + SPAN_MS {
            break seen;
        }
    };
    std::array::from_fn(|n| (after[n] - before[n]) * 1_000 / (to_ms - from_ms))
}

#[test]
fn dear_operations_compiled_on_riscv32_pay_what_they_pay_interpreted() {
    let user = User::new();
    let device = device_at(RISCV32, &user, "attic", &free_ipv4_address());
    install(&user, &device, &package_for("dear", "rv32"), "fast");
    install(&user, &device, &package("dear"), "slow");
    for function in ["divide", "narrow", "integers", "roots", "copies", "calls", "recursion"] {
        let [fast, slow] = ["fast", "slow"].map(|name| {
            let answer = user.call(on(&device), &[name, function]);
            (answer, listed(&user, &device, name)["fuel_used"].clone())
        });
        assert_eq!(fast, slow, "{function}");
    }
    assert_eq!(listed(&user, &device, "fast")["engine"], "native-speed");
}

#[test]
fn compiled_code_that_counts_too_little_on_cortex_m_is_stopped_and_interpreted_from_then_on() {
    use thumb::{RETURN, SAY_WHY, address};
    const CALLS_MAX: usize = 400;
    const HONEST_CALLS: usize = 100;
    let kind = CodeKind::Thumb;
    // Code that comes back after a while each time, with nothing done and nothing counted. The while lies between the stay
    // that this board lets code have unpaid, 10 ms, and the longest, 500 ms: an emulator takes from 20 to 100 ms for it, as
    // fast as its computer is.
    // subs r1, #1; bne to it: sixty million rounds. movs r1, #0; mvns r1, r1: the interpreter goes on.
    let code = [0x3901, 0xD1FD, 0x2100, 0x43C9, SAY_WHY, RETURN];
    let code = [&address(60 << 20)[..], &code].concat();
    let code = code.into_iter().flat_map(u16::to_le_bytes).collect();
    let user = User::new();
    let mut device = device_at(CORTEX_M, &user, "attic", &free_ipv4_address());
    install(&user, &device, &package_for("counter", "thumb"), "honest");
    let idle = counter_with(&user, "idle", kind, &compiled_of(&package("counter"), kind, code));
    install(&user, &device, &idle, "idle");
    let is_compiled = |name| listed(&user, &device, name)["engine"] == "native-speed";
    // It answers until it is stopped.
    let calls = (0..CALLS_MAX).take_while(|_| {
        let place = ["call", "idle", "add", "0", "--device", &device.address];
        is_compiled("idle") && user.command(&place).output().is_ok()
    });
    assert!(calls.count() < CALLS_MAX, "it is never stopped");
    for _ in 0..HONEST_CALLS {
        assert_eq!(user.call(on(&device), &["honest", "add", "0"]), "0");
    }
    assert!(is_compiled("honest"));
    assert!(!is_compiled("idle"));
    let fault = device.wait_for_words("[idle] fault: stopped");
    assert!(fault.contains("took more of the processor than it counted fuel for"), "{fault}");
    assert_eq!(user.call(on(&device), &["idle", "add", "5"]), "5", "it is interpreted");
}

#[test]
fn compiled_code_that_does_nothing_but_ask_the_host_stays_compiled_on_riscv32() {
    check_busy_with_the_host(RISCV32, "rv32");
}

#[test]
fn compiled_code_that_does_nothing_but_ask_the_host_stays_compiled_on_cortex_m() {
    check_busy_with_the_host(CORTEX_M, "thumb");
}

/// Each call of the host ends a stay, so that stays are short and begin and end dearly: ten thousand that were 50
/// us too dear each would be over what code may owe.
fn check_busy_with_the_host(board: Board, kind: &str) {
    let user = User::new();
    let device = device_at(board, &user, "attic", &free_ipv4_address());
    install(&user, &device, &package_for("probe", kind), "probe");
    for _ in 0..5 {
        assert_eq!(user.call(on(&device), &["probe", "ask_time", "2000"]), "2000");
    }
    assert_eq!(listed(&user, &device, "probe")["engine"], "native-speed");
}

#[test]
fn bad_compiled_code_is_refused_by_name_and_that_of_another_image_is_left_out() {
    let user = User::new();
    let device = device_at(RISCV32, &user, "attic", &free_ipv4_address());
    let mut damaged =
        compiled_of(&package("counter"), CodeKind::Rv32, rv32::RETURN.to_le_bytes().to_vec());
    *damaged.last_mut().unwrap() ^= 1;
    for (compiled, expected) in [
        (damaged, "the compiled code is damaged"),
        (b"tnc\x02".to_vec(), "the compiled code is cut off"),
        (vec![0; 64], "not compiled code of this version"),
    ] {
        let bad = counter_with(&user, "bad", CodeKind::Rv32, &compiled);
        let place = ["--grant", "all", "--device", &device.address];
        let refused = user.error(&[&["install", &bad], &place[..]].concat());
        assert!(refused.contains(expected), "{refused}");
    }
    let parts = CompiledParts {
        kind: CodeKind::Rv32,
        module_checksum: 1,
        entry: 0,
        code: rv32::RETURN.to_le_bytes().to_vec(),
    };
    let other = counter_with(&user, "other", CodeKind::Rv32, &parts.to_bytes().unwrap());
    install(&user, &device, &other, "other");
    assert_eq!(user.call(on(&device), &["other", "add"]), "1");
    assert_eq!(listed(&user, &device, "other")["engine"], "vm");
    // Without a wall, or for another processor, the same package is interpreted.
    let linux = user.device("shed", None);
    install(&user, &linux, &package_for("counter", "rv32"), "counter");
    assert_eq!(user.call(on(&linux), &["counter", "add"]), "1");
    assert_eq!(listed(&user, &linux, "counter")["engine"], "vm");
}
