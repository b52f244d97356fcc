//! The duties of every command: an end on Ctrl-C, JSON, help with an example, completions.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tenure_testbed::{patience, skip_without_tool, wait_until};

use crate::guests::package;
use crate::harness::{Process, User, any_address, finish, on, signal};
use crate::terminal::{start, wait_for, wait_for_at_most};

const COMMANDS: [&str; 31] = [
    "new",
    "build",
    "test",
    "run",
    "device",
    "hub",
    "install",
    "remove",
    "restart",
    "stop",
    "start",
    "rollback",
    "shell",
    "list",
    "call",
    "tree",
    "log",
    "events",
    "snapshot",
    "restore",
    "status",
    "top",
    "ping",
    "netcheck",
    "use",
    "devices",
    "key",
    "secret",
    "receipts",
    "bill",
    "completions",
];

#[test]
fn ctrl_c_ends_hub_device_and_run_cleanly() {
    let user = User::new();
    let hub = user.hub();
    let device = user.device("attic", Some(&hub));
    user.install(&device, &["spinner"]);
    assert_eq!(device.interrupt().code(), Some(0), "even while a machine spins");
    assert_eq!(hub.interrupt().code(), Some(0));
    let keep = ["run", &package("spinner"), "--keep", "--json"];
    assert_eq!(Process::start(user.command(&keep)).interrupt().code(), Some(0));
}

#[test]
fn run_shows_the_log_and_ends_when_nothing_is_left_to_do() {
    let user = User::new();
    let text = user.ok(&["run", &package("thermostat")]);
    assert!(text.contains("thermostat     info    holding 21.0 degrees"), "{text}");
}

#[test]
fn timers_of_the_description_and_of_nihilo_run_on_a_device() {
    let user = User::new();
    let folder = user.path("ticking");
    std::fs::create_dir_all(folder.join("src")).unwrap();
    let toml = "name = \"ticking\"\nversion = \"0.1.0\"\nlanguage = \"c\"\nprivate = [\"brought\"]\n\
                [timers]\nbrought = { every = \"50ms\" }\n";
    std::fs::write(folder.join("tenure.toml"), toml).unwrap();
    let source = "#include <nihilo.h>\n\
        NIH_VOID(brought, param) { logStr(\"brought along\"); }\n\
        NIH_VOID(tick, param) { logStr(param); queueCancel(\"tick\"); queueAfter(20, \"once\", nullptr); }\n\
        NIH_VOID(once, param) { logStr(param ? param : \"once, without\"); queueCancel(\"once\"); }\n\
        NIH_VOID(entry, param) {\n\
          queueSchedule(\"0 0 30 feb *\", \"tick\", nullptr); queueSchedule(\"06:30\", \"once\", \"x\");\n\
          queueCancel(\"once\"); queueEvery(20, \"tick\", \"set by itself\"); }\n";
    std::fs::write(folder.join("src/main.c"), source).unwrap();
    let mut device = Process::start(user.command(&["run", "ticking", "--keep", "--json"]));
    device.wait_for_log("ticking", "timer of tick: not well formed");
    device.wait_for_log("ticking", "set by itself");
    device.wait_for_log("ticking", "once, without");
    device.wait_for_log("ticking", "not found");
    device.wait_for_log("ticking", "brought along");
    device.wait_for_log("ticking", "brought along");
    let text = user.ok(&["inspect", "ticking/ticking.tenure"]);
    assert!(text.contains("brought every 50 ms"), "{text}");
}

#[test]
fn run_of_a_machine_that_fails_ends_with_an_error() {
    let user = User::new();
    let build = |name: &str, body: &str| {
        let folder = user.path(name);
        std::fs::create_dir_all(folder.join("src")).unwrap();
        let toml = format!("name = \"{name}\"\nversion = \"0.1.0\"\nlanguage = \"c\"\n");
        std::fs::write(folder.join("tenure.toml"), toml).unwrap();
        let source = format!("#include <tenure.h>\nTENURE_EXPORT(entry) {{ {body} }}\n");
        std::fs::write(folder.join("src/main.c"), source).unwrap();
    };
    build("trapping", "__builtin_trap();");
    let error = user.error_after(&["run", "trapping"]);
    assert_eq!(error, "trapping failed; its log says why");
    build("failing", "tenure_fail(\"no sensor\");");
    let error = user.error_after(&["run", "failing"]);
    assert_eq!(error, "failing logged an error");
    build("good", "tenure_info(\"well\");");
    assert!(user.ok(&["run", "good"]).contains("well"));
}

#[test]
fn output_that_finds_no_room_is_an_error_and_one_that_nobody_reads_is_none() {
    let user = User::new();
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let commands: [&[&str]; 8] = [
        &["key", "--own"],
        &["key", "--own", "--json"],
        &["completions", "bash"],
        &["--help"],
        &["--version"],
        &["list", "--help"],
        &["help", "secret", "set"],
        &["--json", "--version"],
    ];
    for command in commands {
        let child =
            user.command(command).stdout(full()).stderr(std::process::Stdio::piped()).output();
        let output = child.unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{command:?}: {error}");
        assert!(error.contains("standard output: No space left"), "{command:?}: {error}");
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let closed =
            user.command(command).stdout(writer).stderr(std::process::Stdio::piped()).output();
        let output = closed.unwrap();
        assert!(
            output.status.success(),
            "{command:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

/// Killed and back before a question is given up: the new life numbers its lines anew.
#[test]
fn log_that_is_followed_has_the_first_lines_of_a_device_that_is_back_at_once() {
    let user = User::new();
    let address = crate::harness::free_address();
    let mut device = user.device_at("attic", &address, None);
    user.install(&device, &["thermostat"]);
    let mut log =
        Process::spawn(user.command(&["log", "--follow", "--json", "--device", &address]));
    log.wait_for_log("thermostat", "holding");
    for _ in 0..3 {
        device.kill();
        device = user.device_at("attic", &address, None);
        // It says this once, as its first line.
        log.wait_for_log("thermostat", "holding");
    }
}

#[test]
fn log_that_is_followed_goes_on_after_a_restart() {
    let user = User::new();
    let address = crate::harness::free_address();
    let device = user.device_at("attic", &address, None);
    user.install(&device, &["thermostat"]);
    let mut log =
        Process::spawn(user.command(&["log", "--follow", "--json", "--device", &address]));
    log.wait_for_log("thermostat", "holding");
    device.kill();
    log.wait_for_event("silent");
    let _device = user.device_at("attic", &address, None);
    log.wait_for_event("back");
    log.wait_for_log("thermostat", "holding");
    let status = user.json(&["status", "--device", &address]);
    assert_eq!(
        (&status["device"], &status["machines"], &status["boots"]),
        (&"attic".into(), &1.into(), &2.into())
    );
    let room = &status["room"];
    for left in ["memory_bytes_left", "store_bytes_left", "code_bytes_max", "store_erases"] {
        assert!(room[left].is_u64(), "{left}: {status}");
    }
    let flash = &status["flash"];
    assert!(flash["erases_per_sector"].as_f64().unwrap() >= 0.0, "{status}");
    assert!(flash["erases_rated"].is_null(), "nobody knows what lies below a file: {status}");
    let used =
        room["memory_bytes_max"].as_u64().unwrap() - room["memory_bytes_left"].as_u64().unwrap();
    assert_eq!(status["memory_bytes_promised"], used);
    assert!(user.ok(&["status", "--device", &address]).contains("memory    "));
    let met = user.json(&["devices"]);
    assert_eq!(
        (&met["devices"][0]["device"], &met["devices"][0]["answers"]),
        (&"attic".into(), &true.into())
    );
    let unknown = user.error(&["use", "atic"]);
    assert!(
        unknown.starts_with("`atic` is none of the devices that you have met: attic"),
        "{unknown}"
    );
    assert_eq!(user.json(&["use"])["device"], serde_json::Value::Null, "nothing is set");
    user.ok(&["use", "attic"]);
    assert_eq!(user.json(&["list"])["device"], "attic", "the name needs no hub and no address");
}

#[test]
fn run_lets_its_machines_be_called() {
    let user = User::new();
    let keep = ["run", &package("counter"), "--keep", "--json"];
    let device = Process::start(user.command(&keep));
    assert_eq!(user.call(on(&device), &["counter", "add", "3"]), "3");
}

#[test]
fn every_command_speaks_json() {
    let user = User::new();
    user.json(&["new", "greeter", "--lang", "c"]);
    assert!(user.json(&["build", "greeter"])["digest"].is_string());
    for line in user.ok(&["run", &package("thermostat"), "--json"]).lines() {
        assert!(serde_json::from_str::<Value>(line).unwrap().is_object());
    }
    let mut hub = user.hub();
    let device = user.device("attic", Some(&hub));
    let at = ["--device", &device.address];
    let json = |command: &[&str]| user.json(&[command, &at].concat());
    assert_eq!(
        json(&["install", &package("thermostat"), "--grant", "all"])["installed"],
        "thermostat"
    );
    hub.wait_until_listed("attic", 1);
    assert_eq!(json(&["list"])["machines"][0]["name"], "thermostat");
    assert_eq!(
        user.json(&["list", "--all", "--hub", &hub.address])["machines"][0]["device"],
        "attic"
    );
    assert_eq!(json(&["call", "thermostat", "read"])["result"], "21.0");
    assert_eq!(json(&["tree", "thermostat"])["tree"]["target"]["text"], "21.0");
    assert!(json(&["key"])["machine_key"].is_string());
    assert!(json(&["key", "thermostat"])["key"].is_string());
    assert!(user.json(&["key", "--own"])["tenant_key"].is_string());
    let log = user.ok(&[&["log", "thermostat", "--json"][..], &at].concat());
    for line in log.lines() {
        let line = serde_json::from_str::<Value>(line).unwrap();
        assert_eq!(line["machine"], "thermostat");
        assert!(line["unix_s"].is_u64() && line["boot"] == 1, "{line}");
    }
    assert!(log.contains("holding 21.0 degrees"));
    let grave = ["log", "thermostat", "--level", "warning", "--json"];
    assert!(!user.ok(&[&grave[..], &at].concat()).contains("holding 21.0 degrees"));
    assert_eq!(json(&["remove", "thermostat"])["removed"], "thermostat");
    let mut following =
        Process::spawn(user.command(&[&["log", "--follow", "--json"][..], &at].concat()));
    following.wait_for_log("thermostat", "holding 21.0 degrees");
    signal("INT", following.id());
    assert_eq!(following.wait().code(), Some(0), "Ctrl-C is how following ends");
}

#[test]
fn errors_are_json_too_if_asked_for() {
    let user = User::new();
    let output = finish(user.command(&["install", "missing.tenure", "--json"]));
    assert_eq!(output.status.code(), Some(1));
    let error: Value = serde_json::from_slice(&output.stderr).unwrap();
    assert!(error["error"].as_str().unwrap().contains("can't read missing.tenure"), "{error}");
    let output = finish(user.command(&["list", "--nosuch", "--json"]));
    assert_eq!(output.status.code(), Some(2));
    let error: Value = serde_json::from_slice(&output.stderr).unwrap();
    assert!(
        error["error"].as_str().unwrap().starts_with("unexpected argument '--nosuch'"),
        "{error}"
    );
    let output = finish(user.command(&["call", "--", "--json", "--nosuch"]));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("error: "), "it is the machine's");
    assert!(user.ok(&["list", "--help", "--json"]).contains("Usage: tenure list"));
}

#[test]
fn device_prints_of_logs_what_it_is_told_to_and_keeps_all() {
    let user = User::new();
    let folder = user.path("talker");
    std::fs::create_dir_all(folder.join("src")).unwrap();
    let toml = "name = \"talker\"\nversion = \"0.1.0\"\nlanguage = \"c\"\n";
    std::fs::write(folder.join("tenure.toml"), toml).unwrap();
    let source = "#include <tenure.h>\n\
        TENURE_EXPORT(entry) { tenure_info(\"%s\", \"\"); tenure_info(\"%0300d\", 7); tenure_error(\"grave\"); }\n";
    std::fs::write(folder.join("src/main.c"), source).unwrap();
    user.ok(&["build", "talker"]);
    let command = [
        "device",
        "--data",
        "attic",
        "--listen",
        any_address(),
        "--print-level",
        "error",
        "--json",
    ];
    let mut device = Process::start(user.command(&command));
    user.ok(&["install", "talker/talker.tenure", "--device", &device.address]);
    device.wait_for_log("talker", "grave");
    assert!(!device.seen().iter().any(|line| line["level"] == "info"), "{:?}", device.seen());
    let log = user.ok(&["log", "talker", "--device", &device.address]);
    let said: Vec<&str> =
        log.lines().filter_map(|line| line.split_once("info    ")).map(|(_, said)| said).collect();
    let cut = format!("{}…", "0".repeat(253));
    assert_eq!(said[said.len() - 2..], ["", &cut], "{log}");
}

#[test]
fn every_commands_help_has_an_example() {
    let user = User::new();
    for command in COMMANDS {
        let help = user.ok(&[command, "--help"]);
        assert!(help.contains(&format!("Example: tenure {command}")), "{help}");
        let short = user.ok(&[command, "-h"]);
        assert!(short.contains("Usage: tenure"), "{short}");
    }
    let help = user.ok(&["--help"]);
    for command in COMMANDS {
        assert!(help.contains(command), "{help}");
    }
}

/// The words that `shell` gets to complete the last of these.
fn completed(user: &User, shell: &str, words: &[&str]) -> Vec<String> {
    let mut command = user.command(&[]);
    command.env("TENURE_COMPLETE", shell).env("_CLAP_IFS", "\n");
    command.env("_CLAP_COMPLETE_INDEX", (words.len()).to_string());
    command.args(["--", "tenure"]).args(words);
    let output = finish(command);
    assert!(output.status.success(), "{shell} {words:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    // Words stand before what explains them.
    text.lines().map(|line| line.split(['\t', ':']).next().unwrap().to_string()).collect()
}

#[test]
fn each_shell_completes_commands_devices_machines_functions_and_rights() {
    let user = User::new();
    let device = user.device("attic", None);
    user.install(&device, &["counter", "climate"]);
    user.ok(&["use", "attic"]);
    for (shell, check) in [("bash", Some("bash")), ("zsh", None), ("fish", None)] {
        let script = user.ok(&["completions", shell]);
        assert!(script.contains("TENURE_COMPLETE"), "{script}");
        if let Some(check) = check {
            let path = user.path("completions");
            std::fs::write(&path, &script).unwrap();
            assert!(Command::new(check).arg("-n").arg(&path).status().unwrap().success());
        }
        let complete = |words: &[&str]| completed(&user, shell, words);
        let commands = complete(&[""]);
        for command in COMMANDS {
            assert!(
                commands.iter().any(|word| word == command),
                "{shell}: {command}: {commands:?}"
            );
        }
        assert_eq!(complete(&["call", ""])[..2], ["counter", "climate"], "{shell}");
        assert_eq!(complete(&["call", "counter", "v"]), ["value"], "{shell}");
        assert_eq!(complete(&["call", "counter", "--device", "a"]), ["attic"], "{shell}");
        assert_eq!(complete(&["ping", "a"]), ["attic"], "{shell}");
        assert_eq!(complete(&["tree", "get", "co"]), ["counter"], "{shell}");
        let rights = complete(&["install", &package("climate"), "--grant", "p"]);
        assert!(rights.contains(&"peripherals=heater".to_string()), "{shell}: {rights:?}");
    }
    // Bash cuts a word at these signs, and its pieces mean the device all the same.
    let (host, port) = device.address.rsplit_once(':').unwrap();
    let pieces = ["call", "--device", "=", host, ":", port, "cou"];
    if !host.contains(':') {
        assert_eq!(completed(&user, "bash", &pieces), ["counter"]);
    }
    // Another tenant's function has a name that a shell would run.
    let folder = user.path("sly");
    std::fs::create_dir_all(folder.join("src")).unwrap();
    let toml = "name = \"sly\"\nversion = \"0.1.0\"\nlanguage = \"c\"\n";
    std::fs::write(folder.join("tenure.toml"), toml).unwrap();
    let source = "__attribute__((export_name(\"$(reboot)\"))) void a(void) {}\n\
                  __attribute__((export_name(\"plain_1\"))) void b(void) {}\n";
    std::fs::write(folder.join("src/main.c"), source).unwrap();
    user.ok(&["install", "sly"]);
    for shell in ["bash", "zsh", "fish"] {
        assert_eq!(completed(&user, shell, &["call", "sly", ""])[..1], ["plain_1"], "{shell}");
        let words = completed(&user, shell, &["call", "sly", ""]).join(" ");
        assert!(!words.contains("reboot"), "{shell}: {words}");
    }
    device.kill();
    assert_eq!(completed(&user, "bash", &["call", "c"]), Vec::<String>::new(), "nobody answers");
}

/// A shell for which the command is that of the tests.
fn shell_of(user: &User, shell: &str) -> Command {
    let tenure = user.command(&[]);
    let mut command = Command::new(shell);
    for (name, value) in tenure.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let folder = Path::new(tenure.get_program()).parent().unwrap().display();
    let path = format!("{folder}:{}", std::env::var("PATH").unwrap());
    command.env("PATH", path).env("TERM", "dumb").env_remove("EDITOR").env_remove("VISUAL");
    command.current_dir(tenure.get_current_dir().unwrap());
    command
}

/// Types a line and Tab, until the shell shows these words. A device that is too slow for somebody who has pressed Tab, as on
/// a busy computer, is asked again.
fn tab(shell: &mut File, line: &str, words: &str) {
    const SILENCE: Duration = Duration::from_secs(10);
    wait_until(|| {
        shell.write_all(line.as_bytes()).unwrap();
        shell.write_all(b"\t").unwrap();
        let shown = wait_for_at_most(shell, words, SILENCE);
        // The line goes, and the prompt is there again.
        shell.write_all(b"\x05\x15").unwrap();
        shown.map(drop).map_err(|seen| format!("{words:?} doesn't come: {seen}"))
    });
}

/// Each shell as it runs: what is begun goes on behind `--option=`, behind options with values, before others, and behind `@`.
#[test]
fn words_are_completed_in_each_shell_wherever_they_stand_in_a_line() {
    let user = User::new();
    let device = user.device("attic", None);
    user.install(&device, &["counter"]);
    user.ok(&["use", "attic"]);
    let back = |count: usize| "\x02".repeat(count);
    let at = format!("--device={}", device.address);
    let cases = [
        ("tenure call --device=at".to_string(), "tic"),
        ("tenure call --device at".to_string(), "tic"),
        (format!("tenure call {at} cou"), "nter"),
        (format!("tenure call --device {} counter val", device.address), "ue"),
        ("tenure call --timeout 5 --device=attic counter val".to_string(), "ue"),
        ("tenure log --level=warn".to_string(), "ing"),
        ("tenure log --level warn".to_string(), "ing"),
        (format!("tenure tree get cou {at}{}", back(at.len() + 1)), "nter"),
        ("tenure call counter@at".to_string(), "tic"),
    ];
    for (shell, setup) in [("bash", ""), ("zsh", "autoload -Uz compinit; compinit -u -D; ")] {
        if Command::new(shell).arg("--version").output().is_err() {
            skip_without_tool(shell);
            continue;
        }
        let script = user.path(&format!("completions.{shell}"));
        std::fs::write(&script, user.ok(&["completions", shell])).unwrap();
        let mut command = shell_of(&user, shell);
        command.args(if shell == "bash" {
            &["--norc", "--noprofile", "-i"][..]
        } else {
            &["-f", "-i"]
        });
        let (mut child, mut terminal) = start(command);
        let ready = format!("{setup}source {}; echo rea''dy\n", script.display());
        terminal.write_all(ready.as_bytes()).unwrap();
        wait_for(&mut terminal, "ready");
        for (line, words) in &cases {
            tab(&mut terminal, line, words);
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    if Command::new("fish").arg("--version").output().is_err() {
        return skip_without_tool("fish");
    }
    let script = user.path("completions.fish");
    std::fs::write(&script, user.ok(&["completions", "fish"])).unwrap();
    for (line, words) in cases.iter().filter(|(line, _)| !line.contains('\x02')) {
        let mut command = shell_of(&user, "fish");
        let asked = format!("source {}; complete -C '{line}'", script.display());
        command.args(["--no-config", "-c", &asked]);
        let output = finish(command);
        let text = String::from_utf8(output.stdout).unwrap();
        let (_, begun) = line.rsplit_once(' ').unwrap();
        assert!(text.contains(&format!("{begun}{words}")), "{line}: {text}");
    }
}

#[test]
fn followers_end_with_their_reader() {
    let user = User::new();
    let device = user.device("attic", None);
    user.install(&device, &["thermostat"]);
    let at = ["--device", &device.address];
    for words in
        [&["log", "--follow"][..], &["top", "--every", "0.1"], &["log", "--follow", "--json"]]
    {
        read_one_line_of(user.command(&[words, &at].concat()));
    }
    read_one_line_of(user.command(&["ping", &device.address, "--interval", "50ms"]));
    read_one_line_of(user.command(&["run", &package("thermostat"), "--keep"]));
}

/// Reads one line of what a command prints and no more; the command has to end then.
fn read_one_line_of(mut command: Command) {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let id = child.id();
    let (sender, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(child.wait()));
    let Ok(status) = ended.recv_timeout(patience()) else {
        signal("KILL", id);
        panic!("{command:?} goes on without a reader")
    };
    assert!(status.unwrap().success() && !line.is_empty(), "{command:?}: {line}");
}
