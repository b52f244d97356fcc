//! Native machines on an emulated board: what they can do, and every way out that they haven't.

use tenure_wire::host_call::TABLE;

use crate::boards::{Board, CORTEX_M, RISCV32, again, device_at};
use crate::guests::{probe_with, renegade};
use crate::harness::{Process, User, free_ipv4_address, on};
use crate::secrets::{tell, tenant_of};

/// Addresses of a board that aren't a machine's, in hexadecimal.
struct Walls {
    /// Places of the kernel, of the devices on the bus, of the processor, of the flash, and of nobody.
    foreign: &'static [&'static str],
    /// Places to jump to.
    code: &'static [&'static str],
    /// Instructions for whoever is privileged, and those that are none.
    privileged: &'static [&'static str],
    /// A place in the kernel's memory.
    kernel: &'static str,
}

const RISCV32_WALLS: Walls = Walls {
    foreign: &["80400000", "80464000", "0", "2000000", "10000000", "22100000", "fffffffc"],
    code: &["80000000", "80400000", "0"],
    privileged: &["status", "protection", "vector", "return", "wait", "none"],
    kernel: "80410000",
};

const CORTEX_M_WALLS: Walls = Walls {
    // The processor's: vectors, reset, memory protection, interrupts, its timer.
    foreign: &[
        "20000000", "2000d000", "0", "10400", "40001000", "40004000", "21190000", "e000ed08",
        "e000ed0c", "e000ed94", "e000e100", "e000e010", "fffffffc",
    ],
    code: &["10400", "20000000", "0", "e000ed00"],
    privileged: &["coprocessor", "state", "debugger", "unaligned", "none"],
    kernel: "20010000",
};

/// A board whose neighbours of the machine under test are two in the vm.
fn board_with_neighbours(board: Board) -> (User, Process) {
    let user = User::new();
    let device = device_at(board, &user, "attic", &free_ipv4_address());
    user.install(&device, &["counter", "thermostat"]);
    assert_eq!(user.call(on(&device), &["counter", "add"]), "1");
    assert_eq!(user.call(on(&device), &["thermostat", "set", "18"]), "18.0");
    (user, device)
}

fn install(user: &User, device: &Process, package: &str, name: &str) {
    let place = ["--as", name, "--grant", "all", "--device", &device.address];
    user.ok(&[&["install", package], &place[..]].concat());
}

#[test]
fn riscv32_native_machine_in_rust_calls_stores_listens_and_keeps_to_its_budget() {
    let (user, device) = board_with_neighbours(RISCV32);
    check_daily_life(&user, device, RISCV32);
}

#[test]
fn a_native_machine_reads_the_secret_that_its_tenant_set_and_no_other() {
    let user = User::new();
    let device = device_at(RISCV32, &user, "attic", &free_ipv4_address());
    install(&user, &device, &renegade(), "renegade");
    let owner = user.json(&["key", "--own"])["owner_signing_key"].as_str().unwrap().to_string();
    let (tenant, at) = (tenant_of(&renegade()), ["--device", &device.address, "--owner", &owner]);
    let change = |action: &str, value: &str| {
        tell(&tenant, &[&[action, "wifi"], &at[..]].concat(), value).unwrap();
    };
    let read = |name: &str| user.call(on(&device), &["renegade", "read_secret", name]);
    assert_eq!(read("wifi"), "none");
    change("set", "correct-horse");
    assert_eq!(read("wifi"), "correct-horse");
    change("rotate", "another-horse");
    assert_eq!(read("wifi"), "another-horse");
    tenant.ok(&[&["secret", "remove", "wifi"], &at[..]].concat());
    assert_eq!(read("wifi"), "none");
}

/// Runs the acts of every machine; gives the device back, which has lost its power meanwhile.
fn check_daily_life(user: &User, mut device: Process, board: Board) -> Process {
    install(user, &device, &renegade(), "renegade");
    device.wait_for_words("renegade is up");
    let call = |words: &[&str]| user.call(on(&device), &[&["renegade"], words].concat());
    assert_eq!(call(&["count"]), "100 101");
    assert_eq!(call(&["count"]), "100 101 102", "its memory is kept between calls");
    user.json(&["call", "--device", &device.address, "renegade", "keep", "first"]);
    assert_eq!(call(&["keep", "second"]), "first");
    assert_eq!(call(&["ask", "thermostat read"]), "18.0");
    user.call_error(on(&device), &["renegade", "ask", "nobody read"]);
    device.wait_for_words("not found");
    let call = |words: &[&str]| user.call(on(&device), &[&["renegade"], words].concat());
    assert!(call(&["sleep", "50"]).parse::<u32>().unwrap() >= 50);
    assert_eq!(call(&["read_secret", "wifi"]), "none");
    assert!(user.call_error(on(&device), &["renegade", "read_secret", "bank"]).contains("failed"));
    device.wait_for_words("not granted");
    user.json(&["call", "--device", &device.address, "renegade", "listen"]);
    let call = |words: &[&str]| user.call(on(&device), &[&["renegade"], words].concat());
    assert_eq!(call(&["tell", "open"]), "1", "its own subscription has it");
    device.wait_for_words("door: open");
    let call = |words: &[&str]| user.call(on(&device), &[&["renegade"], words].concat());
    assert_eq!(call(&["doors"]), "1");
    let listed = user.json(&["list", "--device", &device.address]);
    let machine = listed["machines"].as_array().unwrap();
    let machine = machine.iter().find(|machine| machine["name"] == "renegade").unwrap();
    assert_eq!(machine["engine"], "native");
    // Stored values outlast the power; memory doesn't.
    let address = device.address.clone();
    device.kill();
    let device = again(board, user, "attic", &address);
    let call = |words: &[&str]| user.call(on(&device), &[&["renegade"], words].concat());
    assert_eq!(call(&["count"]), "100 101");
    assert_eq!(call(&["keep", "third"]), "second");
    device
}

#[test]
fn riscv32_native_machine_in_c_is_the_same_program_as_its_wasm() {
    let (user, device) = board_with_neighbours(RISCV32);
    check_machine_in_c(&user, &device, "rv32");
}

fn check_machine_in_c(user: &User, device: &Process, kind: &str) {
    let both = probe_with(&format!("code = [\"wasm\", \"{kind}\"]"));
    install(user, device, &both, "probe");
    let call =
        |device: &Process, words: &[&str]| user.call(on(device), &[&["probe"], words].concat());
    let counted: u32 = user.call(on(device), &["counter", "value"]).parse().unwrap();
    assert_eq!(call(device, &["call", "thermostat read"]), "18.0");
    assert_eq!(call(device, &["secret", "wifi"]), "not found");
    assert_eq!(call(device, &["queue", "counter add 1000 0"]), "queued");
    let next = format!("{}", counted + 2);
    assert_eq!(user.call(on(device), &["counter", "add"]), next, "the queued one was first");
    // Where no processor of that kind is, the same package runs in the vm.
    let linux = user.device("shed", None);
    install(user, &linux, &both, "probe");
    assert_eq!(call(&linux, &["secret", "wifi"]), "not found");
    let native_alone = ["install", &renegade(), "--grant", "none", "--device", &linux.address];
    let refused = user.error(&native_alone);
    assert!(refused.contains("runs wasm, and the package carries rv32 and thumb"), "{refused}");
}

/// Several machines of one package, asked in turn, so that none has to be waited for while it is kept
/// from running after a fault.
struct Gang<'a> {
    user: &'a User,
    members: Vec<String>,
    next: usize,
}

impl<'a> Gang<'a> {
    fn install(user: &'a User, device: &Process, count: usize) -> Self {
        let members: Vec<String> = (0..count).map(|number| format!("renegade-{number}")).collect();
        members.iter().for_each(|name| install(user, device, &renegade(), name));
        Self { user, members, next: 0 }
    }

    /// Doesn't let that one be the next.
    fn spare(&mut self, name: &str) {
        if self.members[self.next] == name {
            self.next = (self.next + 1) % self.members.len();
        }
    }

    /// Lets the next one try; it must be stopped with a line in its log that has these words.
    fn is_stopped(&mut self, device: &mut Process, attempt: &[&str], words: &[&str]) {
        let name = self.members[self.next].clone();
        self.next = (self.next + 1) % self.members.len();
        let error = self.user.call_error(on(device), &[&[&*name], attempt].concat());
        assert!(error.contains(" failed: "), "{attempt:?}: {error}");
        let line = device.wait_for_words(&format!("[{name}] fault: stopped"));
        for words in words {
            assert!(line.contains(words), "{attempt:?}: {line}");
        }
        self.user.ok(&["unban", &name, "--device", &device.address]);
    }

    /// Lets the next one pass a pointer that isn't its own to a host call: it must be told that this
    /// failed, or be stopped for it.
    fn is_stopped_or_refused(&mut self, device: &mut Process, attempt: &str) {
        let name = self.members[self.next].clone();
        let call = ["call", "--device", &device.address, &name, "bad_pointer", attempt, "--json"];
        let output = self.user.command(&call).output().unwrap();
        if !output.status.success() {
            self.next = (self.next + 1) % self.members.len();
            let line = device.wait_for_words(&format!("[{name}] fault: stopped"));
            let pointer = line.contains("passed the host a pointer outside its memory");
            assert!(pointer || attempt.starts_with("20 ") && line.contains("aborted"), "{line}");
            self.user.ok(&["unban", &name, "--device", &device.address]);
            return;
        }
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let result: i32 = answer["result"].as_str().unwrap().parse().unwrap();
        assert!(result < 0, "{attempt}: {answer}");
    }
}

#[test]
fn riscv32_native_machine_that_breaks_out_is_stopped_alone_with_cause_and_address() {
    let (user, mut device) = board_with_neighbours(RISCV32);
    let mut gang = Gang::install(&user, &device, 3);
    check_ways_out(&user, &mut device, &mut gang, &RISCV32_WALLS);
}

fn check_ways_out(user: &User, device: &mut Process, gang: &mut Gang<'_>, walls: &Walls) {
    let wall = "memory protection: it ";
    let counted: u32 = user.call(on(device), &["counter", "value"]).parse().unwrap();
    let neighbour = user.call(on(device), &["renegade-0", "place"]);
    for place in walls.foreign.iter().copied().chain([&*neighbour]) {
        gang.spare("renegade-0");
        let wrote = format!("{wall}wrote at 0x{place}, which isn't its own, from code at 0x");
        gang.is_stopped(device, &["write", place], &[&wrote]);
        let read = format!("{wall}read at 0x{place}, which isn't its own, from code at 0x");
        gang.spare("renegade-0");
        gang.is_stopped(device, &["read", place], &[&read]);
    }
    for place in walls.code {
        let jumped = format!("{wall}jumped to 0x{place}, which isn't its code");
        gang.is_stopped(device, &["jump", place], &[&jumped]);
    }
    for which in walls.privileged {
        let words = [wall, "executed an instruction that it may not, from code at 0x"];
        gang.is_stopped(device, &["privileged", which], &words);
    }
    gang.is_stopped(device, &["overflow"], &[wall, "wrote at 0x"]);
    gang.is_stopped(device, &["number", "none"], &[wall, "executed an instruction"]);
    gang.is_stopped(device, &["number", "arguments"], &[wall, "read at 0xfffffff0"]);
    gang.is_stopped(device, &["write_code"], &["pointer outside its memory"]);
    gang.is_stopped(device, &["grow"], &["aborted"]);
    gang.is_stopped(device, &["crash"], &["aborted"]);
    // Its neighbours, and what they hold, are as they were; and so are the culprits, started anew.
    assert_eq!(user.call(on(device), &["counter", "add"]), format!("{}", counted + 1));
    assert_eq!(user.call(on(device), &["thermostat", "read"]), "18.0");
    assert_eq!(user.call(on(device), &["renegade-0", "count"]), "100 101");
}

#[test]
fn riscv32_native_machine_that_spins_is_preempted_while_others_answer() {
    let (user, device) = board_with_neighbours(RISCV32);
    check_preemption(&user, &device);
}

fn check_preemption(user: &User, device: &Process) {
    let counted: u32 = user.call(on(device), &["counter", "value"]).parse().unwrap();
    install(user, device, &renegade(), "renegade");
    let spin = ["call", "--device", &device.address, "renegade", "spin"];
    assert!(user.error(&spin).contains("no answer in time"));
    for count in counted + 1..counted + 6 {
        assert_eq!(user.call(on(device), &["counter", "add"]), format!("{count}"));
    }
    // Replaced, it is another machine of the same name, and nothing was rebooted.
    install(user, device, &renegade(), "renegade");
    assert_eq!(user.call(on(device), &["renegade", "count"]), "100 101");
    assert_eq!(user.call(on(device), &["counter", "value"]), format!("{}", counted + 5));
}

#[test]
fn riscv32_bad_pointers_in_every_host_call_end_that_machine_or_are_refused() {
    let (user, mut device) = board_with_neighbours(RISCV32);
    let mut gang = Gang::install(&user, &device, 3);
    check_pointers(&user, &mut device, &mut gang, &RISCV32_WALLS);
}

fn check_pointers(user: &User, device: &mut Process, gang: &mut Gang<'_>, walls: &Walls) {
    let counted: u32 = user.call(on(device), &["counter", "value"]).parse().unwrap();
    const CALLS: [u16; 27] = [
        0, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 17, 18, 19, 20, 25, 26, 27, 28, 30, 31, 32, 34,
        35, 37, 40,
    ];
    let asked: Vec<u16> = TABLE
        .iter()
        .filter(|call| call.parameters.iter().any(|parameter| parameter.kind.slots() == 2))
        .map(|call| call.number)
        .collect();
    assert_eq!(asked, CALLS, "a host call with pointers that no test passes a bad one to");
    for number in asked {
        // The kernel's memory; and a range that would begin in the machine's and wrap around.
        let attempt = format!("{number} {} 40", walls.kernel);
        gang.is_stopped_or_refused(device, &attempt);
    }
    for number in ["0", "7", "9", "17"] {
        for range in ["fffffff0 20", "8 ffffffff", "80000000 10"] {
            let attempt = format!("{number} {range}");
            gang.is_stopped_or_refused(device, &attempt);
        }
    }
    assert_eq!(user.call(on(device), &["counter", "add"]), format!("{}", counted + 1));
    assert_eq!(user.call(on(device), &["thermostat", "read"]), "18.0");
}

/// All of it on one device that isn't started anew in between, but for the loss of power.
#[test]
fn cortex_m_native_machines_do_what_machines_do_and_no_more() {
    let (user, device) = board_with_neighbours(CORTEX_M);
    let mut device = check_daily_life(&user, device, CORTEX_M);
    check_machine_in_c(&user, &device, "thumb");
    check_preemption(&user, &device);
    // There the processor lets everybody wait, until the machine's time is over.
    assert_eq!(user.call(on(&device), &["renegade", "privileged", "wait"]), "wait");
    for name in ["renegade", "probe"] {
        user.ok(&["remove", name, "--for-good", "--device", &device.address]);
    }
    let mut gang = Gang::install(&user, &device, 3);
    check_ways_out(&user, &mut device, &mut gang, &CORTEX_M_WALLS);
    check_pointers(&user, &mut device, &mut gang, &CORTEX_M_WALLS);
}
