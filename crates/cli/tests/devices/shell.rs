//! The shell on a device: its lines from a pipe, and at a terminal.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Output, Stdio};

use crate::harness::{User, free_address, signal};
use crate::nat::{Nat, unaltered};
use crate::terminal::{self, wait_for};

/// Runs a shell to its end on these lines.
fn shell(user: &User, arguments: &[&str], lines: &str) -> Output {
    let mut command = user.command(&[&["shell"], arguments].concat());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // One that ends at its first failure doesn't read on.
    let _ = child.stdin.take().unwrap().write_all(lines.as_bytes());
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn lines_of_a_pipe_are_run_in_order_and_the_first_that_fails_ends_it_with_its_exit_code() {
    let user = User::new();
    let device = user.device("attic", None);
    user.install(&device, &["counter", "thermostat"]);
    user.ok(&["use", "attic"]);
    let lines = "# a comment\n\ncall counter add 41\ntree set thermostat 'a room.target' \"two words\"\n\
                 tree get thermostat 'a room.target'\nlist\nexit\ncall counter add 1\n";
    let output = shell(&user, &["attic"], lines);
    let (said, complaint) = (text(&output.stdout), text(&output.stderr));
    assert_eq!((output.status.code(), complaint.as_str()), (Some(0), ""));
    assert!(
        said.starts_with("41\nthermostat stores a room.target = \"two words\"\ntwo words\n"),
        "{said}"
    );
    assert!(said.contains("machine          version"), "{said}");
    assert_eq!(user.json(&["call", "counter", "value"])["result"], "41", "nothing after `exit`");

    let output = shell(&user, &[], "call counter nothing\ncall counter add 1\n");
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), String::new()));
    let complaint = text(&output.stderr);
    assert!(
        complaint.starts_with("error: line 1: counter has no function `nothing`"),
        "{complaint}"
    );
    let output = shell(&user, &[], "status\ncal counter value\ncall counter add 1\n");
    let complaint = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "as the command itself: {complaint}");
    assert!(complaint.contains("similar subcommand exists: 'call'"), "{complaint}");
    for (line, expected) in [
        ("call counter 'add", "line 1: a quote isn't closed"),
        ("call counter add -", "use `tenure call` itself"),
    ] {
        let output = shell(&user, &[], line);
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains(expected), "{}", text(&output.stderr));
    }
    let value = shell(&user, &["--json"], "call counter value");
    assert_eq!(text(&value.stdout), "{\"result\":\"41\"}\n", "without an end of the line too");
    let nobody = user.error(&["shell", "cellar"]);
    assert!(nobody.contains("no device of that name"), "{nobody}");
}

/// A shell at a terminal, and the end of the terminal at which a user sits.
fn at_terminal(user: &User, arguments: &[&str]) -> (Child, File) {
    let mut command = user.command(&[&["shell"], arguments].concat());
    command.env("TERM", "xterm");
    terminal::start(command)
}

#[test]
fn ctrl_c_ends_the_call_that_hangs_and_not_the_shell() {
    let user = User::new();
    let device = user.device("attic", None);
    user.install(&device, &["counter"]);
    let (mut child, mut terminal) = at_terminal(&user, &[&device.address]);
    wait_for(&mut terminal, "attic> ");
    terminal.write_all(b"call counter add\r").unwrap();
    wait_for(&mut terminal, "\n1");
    wait_for(&mut terminal, "attic> ");
    signal("STOP", device.id());
    // One that changes nothing: it may reach the device before it is interrupted.
    terminal.write_all(b"call counter value --timeout 100000\r").unwrap();
    // The editor leaves the terminal to the line.
    wait_for(&mut terminal, "\x1b[?2004l\r\n");
    // Twice, as an impatient user does.
    signal("INT", child.id());
    signal("INT", child.id());
    wait_for(&mut terminal, "error: interrupted");
    wait_for(&mut terminal, "attic> ");
    signal("CONT", device.id());
    terminal.write_all(b"call counter value\r").unwrap();
    wait_for(&mut terminal, "\n1");
    wait_for(&mut terminal, "attic> ");
    terminal.write_all(b"exit\r").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn lines_of_a_shell_share_their_sessions() {
    let user = User::new();
    let device = user.device("attic", None);
    user.install(&device, &["counter"]);
    let tap = Nat::before(device.socket_address(), unaltered);
    let lines = "call counter add\nstatus\ncall counter add\nlist\ncall counter add\n";
    let output = shell(&user, &[&tap.hub_address()], lines);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
    // The kind of an initiation is 1, and its sender's number of the session stands from byte 13 on.
    let initiations = tap.seen().into_iter().filter(|seen| seen.bytes[0] & 0xF == 1);
    let sessions: BTreeSet<Vec<u8>> = initiations.map(|one| one.bytes[13..17].to_vec()).collect();
    assert_eq!(sessions.len(), 2, "with the device's own machine, and with the counter");
}

#[test]
fn lines_of_a_shell_go_on_when_their_device_has_restarted() {
    let user = User::new();
    let address = free_address();
    let device = user.device_at("attic", &address, None);
    user.install(&device, &["counter"]);
    let mut command = user.command(&["shell", &device.address]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let (mut lines, answers) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut answers = BufReader::new(answers).lines().map(Result::unwrap);
    lines.write_all(b"call counter add\ncall counter add 2\n").unwrap();
    assert_eq!([answers.next().unwrap(), answers.next().unwrap()], ["1", "3"]);
    device.kill();
    let _device = user.device_at("attic", &address, None);
    lines.write_all(b"call counter add 3\n").unwrap();
    assert_eq!(answers.next().unwrap(), "6");
    drop(lines);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn prompt_at_a_terminal_completes_by_tab_and_goes_on_after_an_error() {
    let user = User::new();
    let device = user.device("attic", None);
    user.install(&device, &["counter"]);
    let (mut child, mut terminal) = at_terminal(&user, &[&device.address]);
    wait_for(&mut terminal, "attic> ");
    terminal.write_all(b"call cou\tv\t\r").unwrap();
    let shown = wait_for(&mut terminal, "\n0");
    assert!(shown.contains("counter") && shown.contains("value"), "{shown:?}");
    wait_for(&mut terminal, "attic> ");
    terminal.write_all(b"call nobody value\r").unwrap();
    wait_for(&mut terminal, "error: the device has no machine `nobody`");
    wait_for(&mut terminal, "attic> ");
    // Up twice, and with another function.
    terminal.write_all(b"\x1b[A\x1b[A\r").unwrap();
    wait_for(&mut terminal, "\n0");
    terminal.write_all(b"exit\r").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let history = user.path("home/shell_history");
    let mode = std::fs::metadata(&history).unwrap().permissions().mode();
    let lines = std::fs::read_to_string(&history).unwrap();
    assert!(lines.contains("call nobody value\n"), "{lines}");
    assert_eq!(mode & 0o777, 0o600, "parameters may be nobody else's business");
}
