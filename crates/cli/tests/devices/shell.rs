//! The shell on a device: its lines from a pipe, and at a terminal.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Output, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::harness::User;

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

/// Reads what a terminal shows up to these words.
fn wait_for(terminal: &mut File, words: &str) -> String {
    let (mut seen, mut byte) = (Vec::new(), [0]);
    while !seen.ends_with(words.as_bytes()) {
        assert_eq!(terminal.read(&mut byte).unwrap(), 1, "{}", String::from_utf8_lossy(&seen));
        seen.push(byte[0]);
    }
    String::from_utf8_lossy(&seen).into_owned()
}

#[test]
fn prompt_at_a_terminal_completes_by_tab_and_goes_on_after_an_error() {
    let user = User::new();
    let device = user.device("attic", None);
    user.install(&device, &["counter"]);
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let path = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let end = || File::options().read(true).write(true).open(&path).unwrap();
    let mut command = user.command(&["shell", &device.address]);
    command.env("TERM", "xterm").stdin(end()).stdout(end()).stderr(end());
    let mut child = command.spawn().unwrap();
    // So that the test's end of the terminal ends when the shell's does.
    drop(command);
    let mut terminal = File::from(master);
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
