//! Commands at a terminal, and colours there and elsewhere.

use std::fs::File;
use std::io::Read as _;
use std::process::{Child, Command};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use tenure_testbed::patience;

use crate::harness::{User, on};

/// Starts a command at a terminal; gives the end of the terminal at which a user sits.
pub(crate) fn start(mut command: Command) -> (Child, File) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let path = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let end = || File::options().read(true).write(true).open(&path).unwrap();
    command.stdin(end()).stdout(end()).stderr(end());
    (command.spawn().unwrap(), File::from(master))
}

/// Reads what a terminal shows up to these words.
pub(crate) fn wait_for(terminal: &mut File, words: &str) -> String {
    wait_for_at_most(terminal, words, patience())
        .unwrap_or_else(|seen| panic!("{words:?} doesn't come: {seen}"))
}

/// The same, for as long at most as nothing comes; else what was there.
pub(crate) fn wait_for_at_most(
    terminal: &mut File,
    words: &str,
    silence: Duration,
) -> Result<String, String> {
    let (mut seen, mut byte) = (Vec::new(), [0]);
    while !seen.ends_with(words.as_bytes()) {
        let limit = Timespec { tv_sec: silence.as_secs() as i64, tv_nsec: 0 };
        let ready = poll(&mut [PollFd::new(terminal, PollFlags::IN)], Some(&limit)).unwrap();
        if ready == 0 {
            return Err(String::from_utf8_lossy(&seen).into_owned());
        }
        assert_eq!(terminal.read(&mut byte).unwrap(), 1, "{}", String::from_utf8_lossy(&seen));
        seen.push(byte[0]);
    }
    Ok(String::from_utf8_lossy(&seen).into_owned())
}

#[test]
fn colours_of_a_log_follow_the_terminal_and_the_environment() {
    let user = User::new();
    let mut device = user.device("attic", None);
    user.install(&device, &["crasher"]);
    user.call_error(on(&device), &["crasher", "unreachable"]);
    device.wait_for_log("crasher", "stopped while serving");
    let log = |environment: &[(&str, &str)]| {
        let mut command = user.command(&["log", "crasher", "--device", &device.address]);
        for name in ["CI", "CLICOLOR", "CLICOLOR_FORCE", "NO_COLOR"] {
            command.env_remove(name);
        }
        command.env("TERM", "xterm").envs(environment.iter().copied());
        command
    };
    let is_coloured = |text: &str| match (text.contains("\x1b[31m"), text.contains('\x1b')) {
        (true, true) => true,
        (false, false) => false,
        _ => panic!("{text:?}"),
    };
    for (environment, expected) in [
        (&[][..], false),
        (&[("CLICOLOR_FORCE", "1")], true),
        (&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], false),
    ] {
        let output = log(environment).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("stopped while serving"), "{text}");
        assert_eq!(is_coloured(&text), expected, "in a pipe, with {environment:?}: {text}");
    }
    for (environment, expected) in [
        (&[][..], true),
        (&[("NO_COLOR", "")], true),
        (&[("NO_COLOR", "1")], false),
        (&[("CLICOLOR", "0")], false),
        (&[("TERM", "dumb")], false),
    ] {
        let (mut child, mut terminal) = start(log(environment));
        let text = wait_for(&mut terminal, "stopped while serving");
        assert_eq!(is_coloured(&text), expected, "at a terminal, with {environment:?}: {text}");
        assert!(child.wait().unwrap().success());
    }
}
