//! Emulated boards without an operating system, beside Linux devices.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tenure_testbed::skip_without_right;
use tenure_wire::console::{LISTED, LISTENS_ON};

use crate::guests::renegade;
use crate::harness::{
    Chance, Process, User, any_address, by, finish, free_ipv4_address, on, signal,
};
use crate::kill::{Writer, Written, identity};

/// A board, by the name that the developer's command knows, and the deliberate mistake in its firmware.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Board {
    name: &'static str,
    planted: Option<&'static str>,
}

pub(crate) const RISCV32: Board = Board { name: "qemu-riscv32", planted: None };
/// With the deliberate mistake in its vm.
pub(crate) const UNCHECKED: Board = Board { planted: Some("unchecked_memory"), ..RISCV32 };
pub(crate) const CORTEX_M: Board = Board { name: "qemu-cortex-m", planted: None };
const UNCHECKED_CORTEX_M: Board = Board { planted: Some("unchecked_memory"), ..CORTEX_M };
/// On serial lines alone.
pub(crate) const LEAF: Board = Board { name: "qemu-leaf", planted: None };
/// With 32 KB of RAM, on Ethernet; no node.
pub(crate) const PUBLISHER: Board = Board { name: "qemu-publisher", planted: None };
const CORTEX_M0: Board = Board { name: "qemu-cortex-m0", planted: None };

/// The board's firmware: what `cargo xtask test` built before the tests, or else built once by the first who asks.
pub(crate) fn firmware(board: Board) -> PathBuf {
    static BUILT: Mutex<BTreeMap<Board, Arc<OnceLock<PathBuf>>>> = Mutex::new(BTreeMap::new());
    if let Some(list) = std::env::var_os("TENURE_FIRMWARE") {
        return listed(board, &std::fs::read_to_string(list).unwrap());
    }
    // Whoever waits for one board's keeps nobody from another's.
    let built =
        BUILT.lock().unwrap_or_else(PoisonError::into_inner).entry(board).or_default().clone();
    built.get_or_init(|| build(board)).clone()
}

/// The file in the list of `cargo xtask test`, which has a line `BOARD MISTAKE FILE` for each firmware.
fn listed(Board { name, planted }: Board, list: &str) -> PathBuf {
    let of = format!("{name} {} ", planted.unwrap_or("-"));
    let file = list.lines().find_map(|line| line.strip_prefix(&of));
    file.unwrap_or_else(|| {
        panic!("cargo xtask test doesn't build {of}: see xtask/src/test/firmware.rs")
    })
    .into()
}

fn build(Board { name, planted }: Board) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new("cargo")
        .args(["run", "--quiet", "--package", "xtask", "--"])
        .args(["board", name, "--build-only"])
        .args(planted.iter().flat_map(|mistake| ["--planted", mistake]))
        .current_dir(here.join("../.."))
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "the firmware of {name} can't be built: {error}");
    let firmware = String::from_utf8(output.stdout).unwrap();
    firmware.lines().last().unwrap().into()
}

/// The developer's command, which building a firmware has built.
pub(crate) fn xtask(user: &User, arguments: &[&str]) -> Command {
    let tenure = Path::new(env!("CARGO_BIN_EXE_tenure"));
    let mut command = Command::new(tenure.with_file_name("xtask"));
    // Where cargo found the tests isn't where the command comes from.
    command.args(arguments).current_dir(user.path("")).env_remove("CARGO_MANIFEST_DIR");
    command
}

/// The device `name` on the emulated board; `place` says where it is plugged in.
pub(crate) fn boot(
    board: Board,
    user: &User,
    name: &str,
    hub: Option<&Process>,
    place: &[&str],
) -> Process {
    let keys = user.json(&["key", "--own"]);
    let key = |which: &str| keys[which].as_str().unwrap().to_string();
    let owner = key("owner_signing_key") + "/" + &key("owner_machine_key");
    let firmware = firmware(board);
    let mut arguments = vec!["board", board.name, "--firmware", firmware.to_str().unwrap()];
    arguments.extend(["--data", name]);
    arguments.extend(["--owner", &owner]);
    hub.iter().for_each(|hub| arguments.extend(["--hub", &hub.address]));
    let mut device = Process::spawn(xtask(user, &[&arguments[..], place].concat()));
    device.wait_for_words(LISTENS_ON);
    device
}

/// One that can be reached at `address`, enrolled.
pub(crate) fn device_at(board: Board, user: &User, name: &str, address: &str) -> Process {
    let mut device = boot(board, user, name, None, &["--listen", address]);
    device.address = address.to_string();
    user.ok(&["enrol", address]);
    device
}

/// The same device once more, at the same address.
pub(crate) fn again(board: Board, user: &User, name: &str, address: &str) -> Process {
    let mut device = boot(board, user, name, None, &["--listen", address]);
    device.address = address.to_string();
    device
}

#[test]
fn riscv32_runs_machines_and_keeps_what_they_store_when_its_power_is_cut() {
    check_power_cuts(RISCV32, 3);
}

#[test]
fn cortex_m_runs_machines_and_keeps_what_they_store_when_its_power_is_cut() {
    check_power_cuts(CORTEX_M, 3);
}

#[test]
fn cortex_m0_runs_machines_and_keeps_what_they_store_when_its_power_is_cut() {
    let (user, device) = check_power_cuts(CORTEX_M0, 1);
    // Without memory protection it takes no code of its processor's.
    let place = ["--grant", "none", "--device", &device.address];
    let refused = user.error(&[&["install", &renegade()], &place[..]].concat());
    assert!(refused.contains("runs wasm, and the package carries rv32 and thumb"), "{refused}");
}

/// Cuts a board's power in the middle of writes; gives it back as it is afterwards.
fn check_power_cuts(board: Board, cuts: u32) -> (User, Process) {
    let user = User::new();
    let mut chance = Chance::new();
    let address = free_ipv4_address();
    let mut device = device_at(board, &user, "attic", &address);
    user.install(&device, &["counter", "thermostat", "crasher", "spinner"]);
    assert_eq!(user.call(on(&device), &["thermostat", "set", "18"]), "18.0");
    let trap = user.call_error(on(&device), &["crasher", "out_of_bounds"]);
    assert!(trap.contains("trap: out of bounds memory access, in function "), "{trap}");
    device.wait_for_words("out of bounds");
    let before = identity(&user, &device);
    for _ in 0..cuts {
        let writer = Writer::start(&user, &device);
        let written = writer.kill_after(1 + chance.below(30), || device.kill());
        device = again(board, &user, "attic", &address);
        written.check(user.call(on(&device), &["counter", "value"]).parse().unwrap());
        assert_eq!(identity(&user, &device), before);
        assert_eq!(user.call(on(&device), &["thermostat", "read"]), "18.0");
        // A cut finds the spinner at work more often than not, and is nobody's fault.
        assert_eq!(faults(&user, &device, "spinner"), 0);
    }
    (user, device)
}

/// How often a machine has failed, as far as it counts.
pub(crate) fn faults(user: &User, device: &Process, machine: &str) -> u64 {
    let list = user.json(&["list", "--device", &device.address]);
    let mut machines = list["machines"].as_array().unwrap().iter();
    machines.find(|it| it["name"] == machine).unwrap()["faults"].as_u64().unwrap()
}

/// The address on this computer of what the link carries as `station`.
fn place_of(link: &mut Process, station: &str) -> String {
    let line = link.wait_for_words(&format!("{station}:7370 is at "));
    line.rsplit(' ').next().unwrap().to_string()
}

/// Two boards and a Linux device on one network, with a hub, over a link that loses and reorders.
struct House {
    user: User,
    hub: Process,
    link: Process,
    /// Where the link carries frames.
    at: String,
    devices: BTreeMap<&'static str, Process>,
}

/// The boards in the house, and their addresses on its network; the third device is a Linux one.
const ON_BOARDS: [(&str, Board, &str); 2] =
    [("attic", RISCV32, "10.1.0.5"), ("cellar", CORTEX_M, "10.1.0.6")];
const NAMES: [&str; 3] = ["attic", "cellar", "shed"];

impl House {
    fn new() -> Self {
        let user = User::new();
        // The link is the developer's command too.
        firmware(RISCV32);
        let mut link = Process::spawn(xtask(&user, &["link", "--lose", "50", "--reorder", "50"]));
        let carries = link.wait_for_words("link carries frames at ");
        let at = carries.rsplit(' ').next().unwrap().to_string();
        // Boards reach it by IPv4 alone.
        let hub = user.hub_at("127.0.0.1:0");
        let shed = user.device_at("shed", "127.0.0.1:0", Some(&hub.address));
        let mut house = Self { user, hub, link, at, devices: BTreeMap::from([("shed", shed)]) };
        for (name, _, station) in ON_BOARDS {
            let mut device = house.power(name);
            device.address = place_of(&mut house.link, station);
            house.user.ok(&["enrol", &device.address]);
            device.wait_for_words(LISTED);
            house.devices.insert(name, device);
        }
        for (degrees, name) in NAMES.iter().enumerate() {
            let device = &house.devices[name];
            house.user.install(device, &["thermostat", "probe", "counter"]);
            house.hub.wait_until_listed(name, 3);
            house.user.call(on(device), &["thermostat", "set", &format!("1{degrees}")]);
        }
        house
    }

    /// Starts a board.
    fn power(&self, name: &str) -> Process {
        let (_, board, station) = *ON_BOARDS.iter().find(|(known, ..)| *known == name).unwrap();
        let address = format!("{station}/24");
        let network = ["--gateway", "10.1.0.1", "--address", &address, "--link", &self.at];
        boot(board, &self.user, name, Some(&self.hub), &network)
    }

    /// Takes a device's power away and gives it back.
    fn cut(&mut self, name: &'static str) {
        let device = self.devices.remove(name).unwrap();
        let address = device.address.clone();
        device.kill();
        let device = match name {
            "shed" => self.user.device_at(name, &address, Some(&self.hub.address)),
            _ => {
                let mut device = self.power(name);
                device.address = address;
                device.wait_for_words(LISTED);
                device
            }
        };
        self.devices.insert(name, device);
    }

    /// Each calls each by its name, itself too.
    fn check_calls_in_all_directions(&self) {
        for from in NAMES {
            for (degrees, to) in NAMES.iter().enumerate() {
                let asked = format!("thermostat@{to} read");
                let answer = self.user.call(on(&self.devices[from]), &["probe", "call", &asked]);
                assert_eq!(answer, format!("1{degrees}.0"), "{asked} from {from}");
            }
        }
    }
}

/// Lets a machine on the device at `from` count on `to` until `enough` says so.
fn count_across(user: &User, from: &str, to: &str, enough: &AtomicBool) -> Written {
    let asked = format!("counter@{to} add");
    let (mut last, mut unanswered) = (0, 0);
    while !enough.load(Ordering::Relaxed) {
        let call = ["call", "--json", "--timeout", "3", "--device", from, "probe", "call", &asked];
        let output = finish(user.command(&call));
        let answer = serde_json::from_slice::<serde_json::Value>(&output.stdout).ok();
        // A line that isn't a number is a reason why there was none.
        match answer.and_then(|answer| answer["result"].as_str()?.parse().ok()) {
            Some(count) => last = count,
            None => unanswered += 1,
        }
    }
    Written { last, unanswered }
}

#[test]
fn two_boards_and_a_linux_device_lose_no_acknowledged_write_when_killed_on_a_bad_link() {
    let mut chance = Chance::new();
    let mut house = House::new();
    house.check_calls_in_all_directions();
    // Each at least once, the others by chance.
    let more = [NAMES[chance.below(3)], NAMES[chance.below(3)]];
    for victim in NAMES.into_iter().chain(more) {
        let others: Vec<&str> = NAMES.into_iter().filter(|name| *name != victim).collect();
        let from = others[chance.below(2)];
        let writes = 1 + chance.below(12);
        let enough = AtomicBool::new(false);
        let (user, device) = (&house.user, &house.devices[victim]);
        let from = house.devices[from].address.as_str();
        let written = std::thread::scope(|scope| {
            let across = scope.spawn(|| count_across(user, from, victim, &enough));
            let writer = Writer::start(user, device);
            let here = writer.kill_after(writes, || signal("KILL", device.id()));
            enough.store(true, Ordering::Relaxed);
            let there = across.join().unwrap();
            let unanswered = here.unanswered + there.unanswered;
            Written { last: here.last.max(there.last), unanswered }
        });
        house.cut(victim);
        let kept = house.user.call(on(&house.devices[victim]), &["counter", "value"]);
        written.check(kept.parse().unwrap());
    }
    house.check_calls_in_all_directions();
    assert_eq!(house.user.call(by(&house.hub), &["thermostat@attic", "read"]), "10.0");
}

/// A pair of network interfaces, if this system lets us have one.
struct InterfacePair([String; 2]);

impl InterfacePair {
    fn new() -> Option<Self> {
        // Linux allows 15 characters.
        let names = ["a", "b"].map(|end| format!("tb{}{end}", std::process::id()));
        let [one, other] = &names;
        let made = ip(&["link", "add", one, "type", "veth", "peer", "name", other])
            && names.iter().all(|name| ip(&["link", "set", name, "up"]));
        made.then_some(Self(names))
    }
}

impl Drop for InterfacePair {
    fn drop(&mut self) {
        ip(&["link", "delete", &self.0[0]]);
    }
}

fn ip(words: &[&str]) -> bool {
    let output = Command::new("ip").args(words).output();
    output.is_ok_and(|output| output.status.success())
}

#[test]
fn boards_and_a_linux_device_reach_each_other_by_raw_frames_alone() {
    let user = User::new();
    firmware(RISCV32);
    // Without the rights to make interfaces, the boards are among themselves.
    let interfaces = InterfacePair::new();
    let mut arguments = vec!["link"];
    match &interfaces {
        Some(InterfacePair([end, _])) => arguments.extend(["--interface", end]),
        None => skip_without_right("make network interfaces"),
    }
    let mut link = Process::spawn(xtask(&user, &arguments));
    let carries = link.wait_for_words("link carries frames at ");
    let at = carries.rsplit(' ').next().unwrap();
    // A hub that isn't there: a board is heard on the link because it calls it, and knows nobody who
    // isn't heard in the mesh.
    let plugged = |board: Board, name: &str, station: &str, link: &mut Process| {
        let address = format!("{station}/24");
        let place = ["--gateway", "10.1.0.1", "--address", &address, "--link", at];
        let nobody = ["--hub", "127.0.0.1:9"];
        let mut device = boot(board, &user, name, None, &[&place[..], &nobody].concat());
        device.address = place_of(link, station);
        user.ok(&["enrol", &device.address]);
        user.ok(&["invite", &device.address]);
        device
    };
    let attic = plugged(RISCV32, "attic", "10.1.0.5", &mut link);
    let cellar = plugged(CORTEX_M, "cellar", "10.1.0.6", &mut link);
    let mut devices = vec![("attic", attic), ("cellar", cellar)];
    if let Some(InterfacePair([_, end])) = &interfaces {
        let fixed = ["device", "--data", "shed", "--listen", any_address(), "--json"];
        let command = [&fixed[..], &["--survives", "kill", "--mesh-interface", end]].concat();
        devices.push(("shed", Process::start(user.command(&command))));
    }
    for (degrees, (_, device)) in devices.iter().enumerate() {
        user.install(device, &["thermostat", "probe"]);
        user.call(on(device), &["thermostat", "set", &format!("1{degrees}")]);
    }
    for (_, from) in &devices {
        for (degrees, (to, _)) in devices.iter().enumerate() {
            let asked = format!("thermostat@{to} read");
            // The records of what was just installed take a moment to cross the mesh.
            user.call_until(from, &["probe", "call", &asked], &format!("1{degrees}.0"));
        }
    }
}

#[test]
fn riscv32_contains_a_vm_that_does_not_check_memory() {
    // Around its own memory lie the kernel's and its neighbours'; further off, what isn't RAM.
    check_containment(UNCHECKED, &["100000", "fffff000", "fffe0000", "7fffffff"]);
}

#[test]
fn cortex_m_contains_a_vm_that_does_not_check_memory() {
    // As above; between its memory and the kernel's is what protects: see `boards/common/src/pmsa.rs`.
    check_containment(UNCHECKED_CORTEX_M, &["100000", "fffff000", "fffe0000", "c0000000"]);
}

fn check_containment(board: Board, places: &[&str]) {
    let user = User::new();
    let mut device = device_at(board, &user, "attic", &free_ipv4_address());
    user.install(&device, &["counter", "thermostat", "probe"]);
    assert_eq!(user.call(on(&device), &["counter", "add"]), "1");
    for (place, count) in places.iter().zip(2..) {
        user.call_error(on(&device), &["probe", "poke", place]);
        let words = device.wait_for_words("memory protection");
        assert!(words.contains("it wrote at 0x"), "{words}");
        assert!(words.contains("which isn't its own, from code at 0x"), "{words}");
        // Its neighbours, and what they hold, are as they were.
        assert_eq!(user.call(on(&device), &["counter", "add"]), format!("{count}"));
        assert_eq!(user.call(on(&device), &["thermostat", "read"]), "21.0");
    }
}
