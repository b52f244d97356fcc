//! A leaf with 64 KB of RAM on serial lines: its owner sits at one, a Linux device at the other.

use crate::boards::{LEAF, boot};
use crate::harness::{Process, User, on};

/// The leaf, enrolled and in its owner's mesh, and what reaches it by its service line.
struct Wired {
    user: User,
    leaf: Process,
    service: Process,
}

impl Wired {
    fn new() -> Self {
        let user = User::new();
        let leaf = boot(LEAF, &user, "leaf", None, &[]);
        let service = sit_at_line(&user);
        let mut wired = Self { user, leaf, service };
        let address = wired.service.address.clone();
        wired.user.ok(&["enrol", &address]);
        wired.leaf.wait_for_words("enrolled");
        wired.user.ok(&["invite", &address]);
        wired.leaf.wait_for_words("in its owner's mesh");
        wired
    }

    /// A Linux device at the other end of the leaf's other line.
    fn attic(&self) -> Process {
        let line = self.user.path("leaf/mesh");
        let fixed = ["device", "--data", "attic", "--listen", "127.0.0.1:0", "--json"];
        let mut command = self.user.command(&fixed);
        command.args(["--survives", "kill", "--mesh-serial"]).arg(line);
        Process::start(command)
    }

    /// What the owner gets of the leaf's thermostat at the service line.
    fn at_line(&self, call: &[&str]) -> String {
        self.user.call(on(&self.service), call)
    }
}

fn sit_at_line(user: &User) -> Process {
    let line = user.path("leaf/service");
    let arguments = ["serial", line.to_str().unwrap(), "--listen", "127.0.0.1:0", "--json"];
    Process::start(user.command(&arguments))
}

/// Asks a machine on `from` to call, again and again while ways and records are on their way.
#[track_caller]
fn check_call(user: &User, from: &Process, call: &str, expected: &str) {
    let ask = ["probe", "call", call];
    let answered = (0..100).any(|_| user.call(on(from), &ask) == expected);
    assert!(answered, "{call} gives {expected}");
}

#[test]
fn a_linux_device_calls_a_leaf_by_name_over_a_serial_line_and_the_leaf_calls_back() {
    let wired = Wired::new();
    let attic = wired.attic();
    let user = &wired.user;
    user.install(&attic, &["thermostat", "probe"]);
    check_call(user, &attic, "thermostat@leaf read", "21.0");
    // What a machine elsewhere sets, the owner finds, and the other way round.
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
    let service = sit_at_line(&user);
    assert_eq!(user.json(&["key", "--device", &service.address]), before);
    assert_eq!(user.call(on(&service), &["thermostat", "read"]), "16.5");
    let tree = user.json(&["tree", "thermostat", "--device", &service.address]);
    assert!(tree.to_string().contains("16.5"), "{tree}");
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
