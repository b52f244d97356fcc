//! Leaves with 64 KB of RAM on serial lines: a Linux device is at one line, at the other sits the owner, or
//! another device.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::time::Duration;

use tenure_testbed::{skip_without_right, wait_until};

use crate::boards::{LEAF, boot};
use crate::harness::{Process, User, any_address, on, signal};

/// The moments within a call that are tried lie so far apart.
const STEP: Duration = Duration::from_millis(15);
/// How long the answer to a stopped caller is looked for.
const LOOK: Duration = Duration::from_secs(1);

/// A leaf, enrolled and in its owner's mesh, and what reaches it by its service line.
struct Wired {
    user: User,
    leaf: Process,
    service: Process,
}

impl Wired {
    fn new() -> Self {
        let user = User::new();
        let (leaf, service) = leaf_in_mesh(&user, "leaf", &[]);
        Self { user, leaf, service }
    }

    /// A Linux device at the other end of the leaf's other line.
    fn attic(&self) -> Process {
        device_at_line(&self.user, "attic", "leaf/mesh")
    }

    /// The answer of the leaf's thermostat to the owner at the service line.
    fn at_line(&self, call: &[&str]) -> String {
        self.user.call(on(&self.service), call)
    }
}

/// A leaf that its owner enrols and invites; and what reaches it by its service line.
fn leaf_in_mesh(user: &User, name: &str, place: &[&str]) -> (Process, Process) {
    let mut leaf = boot(LEAF, user, name, None, place);
    let service = sit_at_line(user, name);
    user.ok(&["enrol", &service.address]);
    leaf.wait_for_words("enrolled");
    user.ok(&["invite", &service.address]);
    leaf.wait_for_words("in its owner's mesh");
    (leaf, service)
}

/// A Linux device in the mesh, at the end of a line.
fn device_at_line(user: &User, name: &str, line: &str) -> Process {
    let fixed = ["device", "--data", name, "--listen", any_address(), "--json"];
    let mut command = user.command(&fixed);
    command.args(["--survives", "kill", "--mesh-serial"]).arg(user.path(line));
    Process::start(command)
}

fn sit_at_line(user: &User, leaf: &str) -> Process {
    let line = user.path(&format!("{leaf}/service"));
    let arguments = ["serial", line.to_str().unwrap(), "--listen", any_address(), "--json"];
    Process::start(user.command(&arguments))
}

/// Asks a machine on `from` to call, again and again while ways and records are on their way.
#[track_caller]
fn check_call(user: &User, from: &Process, call: &str, expected: &str) {
    user.call_until(from, &["probe", "call", call], expected);
}

/// Whether the memory of a leaf's emulator, and the chip's RAM with it, holds `text`; `None` where this system
/// doesn't let us look.
fn memory_holds(user: &User, leaf: &str, text: &str) -> Option<bool> {
    const REGION_BYTES_MAX: u64 = 64 << 20;
    let process = std::fs::read_to_string(user.path(&format!("{leaf}/ram.pid"))).unwrap();
    let place = format!("/proc/{}", process.trim());
    let maps = std::fs::read_to_string(format!("{place}/maps")).unwrap();
    let Ok(mut memory) = std::fs::File::open(format!("{place}/mem")) else {
        skip_without_right("read another process's memory");
        return None;
    };
    let regions = maps.lines().filter_map(|line| {
        let (range, rights) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let bound = |text| u64::from_str_radix(text, 16).ok();
        // Code that was translated to the host's is none of the chip's memory, and large.
        rights.starts_with("rw-").then_some((bound(start)?, bound(end)?))
    });
    let regions = regions.filter(|(start, end)| end - start <= REGION_BYTES_MAX);
    let (mut found, mut looked) = (false, false);
    for (start, end) in regions {
        let mut bytes = vec![0; (end - start) as usize];
        memory.seek(SeekFrom::Start(start)).unwrap();
        // Pages that nobody has are no memory.
        let is_read = memory.read_exact(&mut bytes).is_ok();
        looked |= is_read;
        found |= is_read && bytes.windows(text.len()).any(|part| part == text.as_bytes());
    }
    looked.then_some(found)
}

#[test]
fn a_linux_device_calls_a_leaf_by_name_over_a_serial_line_and_the_leaf_calls_back() {
    let wired = Wired::new();
    let attic = wired.attic();
    let user = &wired.user;
    user.install(&attic, &["thermostat", "probe"]);
    check_call(user, &attic, "thermostat@leaf read", "21.0");
    // The owner finds the degrees that a machine elsewhere sets, and the other way round.
    check_call(user, &attic, "thermostat@leaf set 17.5", "17.5");
    assert_eq!(wired.at_line(&["thermostat", "read"]), "17.5");
    assert_eq!(user.call(on(&attic), &["thermostat", "set", "19"]), "19.0");
    assert_eq!(wired.at_line(&["thermostat", "follow", "thermostat@attic"]), "19.0");
    check_call(user, &attic, "thermostat@leaf read", "19.0");
    let status = user.json(&["mesh", &wired.service.address]);
    assert_eq!(status["ways"][0]["device"], "attic", "{status}");
}

#[test]
fn a_leaf_keeps_who_it_is_and_what_it_was_told_when_its_power_is_cut() {
    let Wired { user, leaf, service } = Wired::new();
    let place = on(&service);
    let set = user.call(place, &["thermostat", "set", "16.5"]);
    assert_eq!(set, "16.5");
    let before = user.json(&["key", "--device", &service.address]);
    leaf.kill();
    service.interrupt();
    let mut leaf = boot(LEAF, &user, "leaf", None, &[]);
    leaf.wait_for_words("in its owner's mesh");
    let service = sit_at_line(&user, "leaf");
    assert_eq!(user.json(&["key", "--device", &service.address]), before);
    assert_eq!(user.call(on(&service), &["thermostat", "read"]), "16.5");
    let tree = user.json(&["tree", "thermostat", "--device", &service.address]);
    assert!(tree.to_string().contains("16.5"), "{tree}");
}

#[test]
fn leaves_in_a_line_carry_calls_that_they_cant_read() {
    let Wired { user, leaf: _leaf, service } = Wired::new();
    let attic = device_at_line(&user, "attic", "leaf/mesh");
    // The owner leaves the first leaf's line to the second one.
    service.interrupt();
    let line = user.path("leaf/service");
    let place = ["--mesh-line", line.to_str().unwrap()];
    let (_porch, service) = leaf_in_mesh(&user, "porch", &place);
    user.install(&attic, &["thermostat", "probe"]);
    check_call(&user, &attic, "thermostat@porch read", "21.0");
    assert_eq!(user.call(on(&service), &["thermostat", "follow", "thermostat@attic"]), "21.0");
    // And the second one's to a Linux device, two leaves away from the other.
    service.interrupt();
    let cellar = device_at_line(&user, "cellar", "porch/service");
    user.install(&cellar, &["probe"]);
    check_call(&user, &cellar, "thermostat@attic read", "21.0");
    let words = "17.2468013579086";
    let middle = &words[4..14];
    for _ in 0..3 {
        check_call(&user, &cellar, &format!("probe@attic echo {words}"), words);
        for leaf in ["leaf", "porch"] {
            let has_seen = memory_holds(&user, leaf, middle);
            assert_ne!(has_seen, Some(true), "{leaf} has seen what it carried");
        }
    }
    // The called leaf keeps its answer until the caller has acknowledged it. The caller is stopped once its request
    // has left and before the answer comes, at a moment that is sought.
    let call = format!("thermostat@leaf set {words}");
    let place = ["call", "--device", &cellar.address, "probe", "call", &call];
    let mut moments = (0..).map(|step| STEP * step);
    wait_until(|| {
        let mut command = user.command(&place);
        let call = std::thread::spawn(move || command.output());
        std::thread::sleep(moments.next().unwrap());
        signal("STOP", cellar.id());
        std::thread::sleep(LOOK);
        let holds = memory_holds(&user, "leaf", middle);
        signal("CONT", cellar.id());
        call.join().unwrap().unwrap();
        if holds == Some(false) { Err("it isn't found where it must be") } else { Ok(()) }
    });
    assert_ne!(memory_holds(&user, "porch", middle), Some(true));
}

#[test]
fn a_leaf_says_what_it_cant_do() {
    let Wired { user, leaf: _leaf, service } = Wired::new();
    let address = ["--device", &service.address];
    let stored = user.call_error(on(&service), &["thermostat", "set", "warm"]);
    assert!(stored.contains("execution"), "{stored}");
    let package = crate::guests::package("counter");
    let install = [&["install", &package, "--grant", "all"][..], &address].concat();
    let refused = user.error_after(&install);
    assert!(refused.contains("doesn't know this request"), "{refused}");
    let stranger = User::new();
    let denied = stranger.error(&["list", "--device", &service.address]);
    assert!(denied.contains("another owner"), "{denied}");
}
