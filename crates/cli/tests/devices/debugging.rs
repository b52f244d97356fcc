//! A machine's fault in a recorded run is stepped back into its cause: by commands, and by an editor's protocol.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::OnceLock;

use serde_json::{Value, json};
use tenure_testbed::Packages;

use crate::guests::{build_own, package};
use crate::harness::{Process, User, any_address, finish, on};
use crate::secrets::tenant_of;

/// A record of a device with a machine that has a fault in `work`, and the machine's package.
struct Recorded {
    record: String,
    package: String,
}

/// The machine `ledger`, in C.
fn ledger() -> &'static Recorded {
    static RECORDED: OnceLock<Recorded> = OnceLock::new();
    RECORDED.get_or_init(|| record("ledger"))
}

fn record(name: &str) -> Recorded {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap().keep();
    build_own(name, &folder, name);
    let text = |path: PathBuf| path.into_os_string().into_string().unwrap();
    let package = text(folder.join(format!("{name}.tenure")));
    let record = text(folder.join("record.tape"));
    let user = User::new();
    let mut command = user.command(&["device", "--data", "attic", "--listen", any_address()]);
    command.args(["--json", "--survives", "kill", "--record", &record]);
    let mut device = Process::start(command);
    user.ok(&["install", &package, "--grant", "all", "--device", &device.address]);
    user.call_error(on(&device), &[name, "work"]);
    device.wait_for_log(name, "stopped while serving `work`");
    assert_eq!(device.interrupt().code(), Some(0));
    Recorded { record, package }
}

fn source_of(name: &str, file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/devices").join(name).join("src").join(file)
}

/// The number of the only line of a guest's source that holds `text`.
fn line_of(name: &str, file: &str, text: &str) -> usize {
    let source = std::fs::read_to_string(source_of(name, file)).unwrap();
    let found: Vec<usize> = (1..)
        .zip(source.lines())
        .filter(|(_, line)| line.contains(text))
        .map(|(number, _)| number)
        .collect();
    assert_eq!(found.len(), 1, "{text}: {found:?}");
    found[0]
}

/// The debugger's answers to these commands, in order.
fn debugged(of: &Recorded, commands: &[&str]) -> Vec<String> {
    let user = User::new();
    let mut script = String::new();
    for command in commands {
        // An answer to `help quit` is known, and stands between the others.
        script += &format!("{command}\nhelp quit # the end of an answer\n");
    }
    std::fs::write(user.path("commands"), script).unwrap();
    let said = user.ok(&["debug", &of.record, "--package", &of.package, "--commands", "commands"]);
    let end = said.lines().find(|line| line.starts_with("quit ")).unwrap().to_owned() + "\n";
    let answers: Vec<String> = said.split(&end).map(str::to_owned).collect();
    assert_eq!(answers.len(), commands.len() + 1, "{said}");
    answers
}

#[test]
fn a_division_in_c_is_followed_back_to_who_wrote_the_zero() {
    let line = |text| format!("main.c:{}", line_of("ledger", "main.c", text));
    let (division, culprit) = (line("/ divisor"), line("divisor = number - 2"));
    let book =
        format!("break main.c:{}", line_of("ledger", "main.c", "account->balance += amount"));
    let said = debugged(
        ledger(),
        &[
            "continue",
            "backtrace",
            "print divisor",
            "print accounts[number].balance",
            "print accounts[1]",
            "log",
            "last-writer divisor",
            "print number",
            "print divisor",
            "next",
            "print divisor",
            "reverse-next",
            "where",
            "reverse-next",
            "reverse-finish",
            "finish",
            &format!("{book} if account->owner != 0 && amount == -11"),
            "reverse-continue",
            "print *account",
            "print kind",
            "locals",
            "up",
            "print round",
            "reverse-continue",
            "faults",
            "goto fault",
            "raw",
            "goto start",
            "reverse-stepi",
            "reverse-step",
            "reverse-next",
            "reverse-finish",
            "goto end",
            "continue",
            "memory 0x10 16",
            "delete 1",
            "goto start",
            "break worth",
            "continue",
            "print account.balance",
            "print &account == &accounts",
        ],
    );
    let has = |number: usize, words: &[&str]| {
        for word in words {
            assert!(said[number].contains(word), "{number}, {word}: {}\n\n{said:#?}", said[number]);
        }
    };
    has(0, &["fault: ", "divide by zero", "share at ", &division, "/ divisor;", "in `work`"]);
    has(1, &[">  0 share", "   1 work"]);
    has(2, &["0\n"]);
    has(3, &["110\n"]);
    has(4, &["{balance: 39, open: 1", "\"ben\"}"]);
    has(5, &["info"]);
    has(6, &["here 4 (0x4) becomes 0 (0x0)", "close_account at ", &culprit]);
    has(7, &["2\n"]);
    has(8, &["4\n"]);
    has(10, &["0\n"]);
    has(11, &["close_account at ", &culprit]);
    has(12, &[&culprit]);
    has(13, &["close_account at ", &line("open = 0")]);
    has(14, &["work at ", &line("close_account(round)")]);
    has(16, &["breakpoint 1 at "]);
    has(17, &["breakpoint 1\n", "book at "]);
    has(18, &["{balance: 50, open: 1", "\"ben\"}"]);
    has(19, &["WITHDRAWAL\n"]);
    has(20, &["account = 0x", "kind = WITHDRAWAL", "amount = -11"]);
    has(21, &["1 work at "]);
    has(22, &["1\n"]);
    has(23, &["the machine's history begins here"]);
    has(24, &["+", "divide by zero"]);
    has(25, &["fault: ", &division]);
    has(26, &["$0 = 0", "$g0 = "]);
    // There is nothing before the start, whatever way back is asked for.
    for number in 28..32 {
        has(number, &["the machine's history begins here\n", " at 0+0: "]);
    }
    has(33, &["the record ends here"]);
    has(34, &["0x00000010  "]);
    // The parameter is a copy, whose address is what the call takes.
    has(38, &["breakpoint 2\n", "worth at "]);
    has(39, &["110\n"]);
    has(40, &["0\n"]);
}

#[test]
fn a_fault_is_followed_back_in_the_journal_that_its_machine_kept() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap().keep();
    build_own("ledger", &folder, "ledger");
    let package = folder.join("ledger.tenure").into_os_string().into_string().unwrap();
    let owner = User::new();
    let mut device = owner.device("attic", None);
    let address = device.address.clone();
    let at = ["--device", &address];
    let install = ["install", &package, "--grant", "all", "--journal", "262144"];
    owner.ok(&[&install[..], &at[..]].concat());
    owner.call_error(on(&device), &["ledger", "work"]);
    device.wait_for_log("ledger", "stopped while serving `work`");
    // Its tenant has neither the device's record nor its keys.
    let tenant = tenant_of(&package);
    let key = owner.json(&["key", "--own"])["owner_signing_key"].as_str().unwrap().to_owned();
    let kept = tenant.path("kept").into_os_string().into_string().unwrap();
    let fetch = ["journal", "fetch", "ledger", "-o", &kept, "--owner", &key];
    tenant.ok(&[&fetch[..], &at[..]].concat());
    assert!(tenant.error(&["debug", &kept]).contains("add --package PACKAGE"));

    let journal = Recorded { record: kept.clone(), package: package.clone() };
    let said = debugged(
        &journal,
        &[
            "continue",
            "log",
            "print divisor",
            "last-writer divisor",
            "print number",
            "faults",
            "goto end",
            "continue",
        ],
    );
    let culprit = format!("main.c:{}", line_of("ledger", "main.c", "divisor = number - 2"));
    for (number, words) in [
        (0, "divide by zero"),
        (0, "share at "),
        (0, "ledger 0.1.0 at "),
        (0, "in `work`"),
        (1, "booked, anna has 110"),
        (2, "0\n"),
        (3, "here 4 (0x4) becomes 0 (0x0)"),
        (3, &culprit),
        (4, "2\n"),
        (5, "divide by zero"),
        (7, "the journal ends here"),
    ] {
        assert!(said[number].contains(words), "{number}, {words}: {said:#?}");
    }

    let units = |command: &[&str], name: &str| {
        let said = tenant.ok(&[command, &["--json"]].concat());
        let last: Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
        last[name].as_u64().unwrap()
    };
    let spent = units(&["profile", &kept, "--package", &package], "units");
    assert!(spent > 0);
    assert_eq!(spent, units(&["replay", &kept, "--package", &package], "fuel"));
    let twice = ["profile", &kept, "--package", &package, "--package", &package];
    assert_eq!(spent, units(&twice, "units"));
}

#[test]
fn a_machine_of_ones_own_on_a_device_of_ones_own_is_debugged_profiled_and_replayed_by_its_name() {
    let counter = package("counter");
    let user = tenant_of(&counter);
    let device = user.device("attic", None);
    let at = ["--device", &device.address];
    user.ok(&[&["install", &counter, "--grant", "all", "--journal", "262144"][..], &at].concat());
    assert_eq!(user.call(on(&device), &["counter", "add", "7"]), "7");
    let by_name = |command| [command, "counter@attic", "--package", &counter];
    let commands = user.path("commands");
    std::fs::write(&commands, "goto end\ncontinue\n").unwrap();
    let commands = ["--commands", commands.to_str().unwrap()];
    let said = user.ok(&[&by_name("debug")[..], &commands].concat());
    assert!(said.contains("the journal ends here"), "{said}");
    assert!(user.ok(&by_name("profile")).contains("add"));
    assert!(user.ok(&by_name("replay")).contains("the same run of counter"));
    let missing = user.error(&["debug", "nobody@attic", "--package", &counter]);
    assert!(missing.contains("the journal of nobody on attic: "), "{missing}");
    assert!(user.error(&["debug", "nobody.journal"]).contains("nobody.journal: "));
}

#[test]
fn a_panic_in_rust_is_followed_back_and_its_values_are_shown() {
    let gauge = record("gauge");
    let line = |text| line_of("gauge", "lib.rs", text);
    let said = debugged(
        &gauge,
        &[
            &format!("break src/lib.rs:{}", line("self.sum / self.count")),
            "continue",
            "print self.count",
            "print self.sum",
            "print self.unit",
            "last-writer self.count",
            "print reading",
            "delete 1",
            "continue",
        ],
    );
    assert!(said[1].contains("breakpoint 1\n"), "{said:#?}");
    let expected = [(2, "0\n"), (3, "205\n"), (4, "\"tenths\"\n"), (6, "Failed"), (6, "code: 7")];
    for (number, words) in expected {
        assert!(said[number].contains(words), "{number}, {words}: {said:#?}");
    }
    let culprit = format!("lib.rs:{}", line("Reading::Failed { .. } =>"));
    assert!(
        said[5].contains("here 1 (0x1) becomes 0 (0x0)") && said[5].contains(&culprit),
        "{said:#?}"
    );
    assert!(said[8].contains("fault: "), "{said:#?}");
    // Not in what aborts it, which is the innermost call.
    assert!(said[8].contains("src/lib.rs:"), "{said:#?}");
}

#[test]
fn commands_that_cannot_be_say_where_and_why() {
    let Recorded { record, package } = ledger();
    let user = User::new();
    let fails = |commands: &str, package: &[&str]| {
        std::fs::write(user.path("commands"), commands).unwrap();
        let arguments = [&["debug", record, "--commands", "commands"], package].concat();
        user.error_after(&arguments)
    };
    let known = ["--package", package];
    for (commands, why) in [
        ("where\nstp\n", "line 2: stp: there is no command stp; did you mean `step`?"),
        ("break nowhere.c:1", "no code of a file nowhere.c; it has "),
        ("break main.c:9999", "main.c has no code in line 9999 or below"),
        ("break work if ==", "is no expression"),
        ("goto 1", "a moment is LEG+UNITS"),
        ("break share\ncontinue\nprint nobody", "there is no variable nobody here"),
        ("break share\ncontinue\nlast-writer divisor - 1", "something follows"),
        ("delete 7", "there is no breakpoint 7"),
        ("memory 0xffffffff 16", "there are no 16 bytes"),
        ("goto fault\nlast-writer 0x8000 8", "nobody has written it before"),
        ("watch 0xfffffff0 32", "there is no such memory"),
        ("watch 0x400 0", "a range of 1 to 4096 bytes"),
    ] {
        let error = fails(commands, &known);
        assert!(error.contains("commands: line ") && error.contains(why), "{why}: {error}");
    }
    // Of a package alone, without NAME.debug.wasm, the exported functions have names and nothing has lines.
    std::fs::copy(package, user.path("bare.tenure")).unwrap();
    let bare = ["--package", "bare.tenure"];
    for (commands, why) in [
        ("break main.c:30", "no lines of its code are known; NAME.debug.wasm must lie beside"),
        ("break share", "it has no function share"),
        ("break work\ncontinue\nprint divisor", "with NAME.debug.wasm beside it"),
    ] {
        let error = fails(commands, &bare);
        assert!(error.contains("commands: line ") && error.contains(why), "{why}: {error}");
    }
    let commands = "break work if $g0 > 0\ncontinue\nlocals\nnext\ngoto fault\nreverse-continue\n";
    std::fs::write(user.path("commands"), commands).unwrap();
    let output = user.command(&[&["debug", record, "--commands", "commands"][..], &bare].concat());
    let output = finish(output);
    let beside = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(beside.starts_with("note: no bare.debug.wasm lies beside bare.tenure"), "{beside}");
    let said = String::from_utf8(output.stdout).unwrap();
    let stops = said.matches("breakpoint 1\nledger 0.1.0 at ").count();
    assert!(stops == 2 && said.contains("none that is known; `raw` shows"), "{said}");
    let error = fails("break work", &[]);
    assert!(error.contains("name its package by --package"), "{error}");
    let error = fails("where", &["--machine", "nobody"]);
    assert!(error.contains("the record has no machine nobody"), "{error}");
    let tape = std::fs::read(record).unwrap();
    std::fs::write(user.path("half.tape"), &tape[..tape.len() - 40]).unwrap();
    std::fs::write(user.path("commands"), "goto end\ncontinue\n").unwrap();
    let half = user.ok(&["debug", "half.tape", "--commands", "commands"]);
    assert!(half.contains("the record breaks off here"), "{half}");
    let half = user.ok(&["profile", "half.tape", "--svg", "half.svg"]);
    assert!(half.contains("the record breaks off") && half.contains("drawn to"), "{half}");
    assert!(!user.path("half.svg.part").exists() && user.path("half.svg").exists());
    assert_eq!(user.json(&["profile", "half.tape"])["complete"], false);
}

/// A client of the Debug Adapter Protocol.
struct Client<R, W> {
    from: BufReader<R>,
    to: W,
    sent: i64,
    /// Events that nobody has waited for yet.
    events: Vec<Value>,
}

impl<R: std::io::Read, W: std::io::Write> Client<R, W> {
    fn new(from: R, to: W) -> Self {
        Self { from: BufReader::new(from), to, sent: 0, events: Vec::new() }
    }

    fn receive(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert!(self.from.read_line(&mut line).unwrap() > 0, "the adapter has ended");
            match line.trim().strip_prefix("Content-Length: ") {
                Some(text) => length = text.parse().unwrap(),
                None if line.trim().is_empty() => break,
                None => panic!("{line}"),
            }
        }
        let mut bytes = vec![0; length];
        self.from.read_exact(&mut bytes).unwrap();
        serde_json::from_slice(&bytes).unwrap()
    }

    fn send(&mut self, text: &str) {
        write!(self.to, "Content-Length: {}\r\n\r\n{text}", text.len()).unwrap();
        self.to.flush().unwrap();
    }

    fn answer(&mut self) -> Value {
        loop {
            let message = self.receive();
            if message["type"] == "response" {
                return message;
            }
            self.events.push(message);
        }
    }

    fn request(&mut self, command: &str, arguments: Value) -> Value {
        self.sent += 1;
        let request = json!({
            "seq": self.sent, "type": "request", "command": command, "arguments": arguments,
        });
        self.send(&request.to_string());
        let answer = self.answer();
        assert_eq!(
            (&answer["request_seq"], &answer["command"]),
            (&self.sent.into(), &command.into())
        );
        answer
    }

    /// The body of the answer to a request that must go well.
    fn ok(&mut self, command: &str, arguments: Value) -> Value {
        let answer = self.request(command, arguments);
        assert_eq!(answer["success"], true, "{command}: {answer}");
        answer["body"].clone()
    }

    fn event(&mut self, name: &str) -> Value {
        loop {
            if let Some(at) = self.events.iter().position(|event| event["event"] == name) {
                return self.events.remove(at)["body"].clone();
            }
            let message = self.receive();
            assert_eq!(message["type"], "event", "{message}");
            self.events.push(message);
        }
    }

    /// Lets the first machine go; gives why it stopped, and the function and line of the innermost call.
    fn go(&mut self, command: &str) -> (String, String, u64) {
        self.ok(command, json!({ "threadId": 1 }));
        self.stopped()
    }

    fn stopped(&mut self) -> (String, String, u64) {
        let event = self.event("stopped");
        let frame = self.frames().remove(0);
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        (text(&event["reason"]), text(&frame["name"]), frame["line"].as_u64().unwrap())
    }

    fn frames(&mut self) -> Vec<Value> {
        let body = self.ok("stackTrace", json!({ "threadId": 1, "startFrame": 0, "levels": 20 }));
        body["stackFrames"].as_array().unwrap().clone()
    }

    fn evaluate(&mut self, expression: &str) -> Value {
        let frame = self.frames()[0]["id"].clone();
        self.ok(
            "evaluate",
            json!({ "expression": expression, "frameId": frame, "context": "watch" }),
        )
    }
}

fn adapter(user: &User, arguments: &[&str]) -> Child {
    let mut command = user.command(&[&["debug", "--dap"], arguments].concat());
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command.spawn().unwrap()
}

#[test]
fn an_editor_steps_backwards_from_a_fault_into_its_cause() {
    let user = User::new();
    let mut child = adapter(&user, &[]);
    let (from, to) = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
    let mut client = Client::new(from, to);
    let Recorded { record, package } = ledger();
    let line = |text| line_of("ledger", "main.c", text) as u64;
    let (open, culprit, division) = (line("open = 0"), line("= number - 2"), line("/ divisor"));
    let can = client.ok("initialize", json!({ "adapterID": "tenure", "linesStartAt1": true }));
    for what in ["StepBack", "ConditionalBreakpoints", "DataBreakpoints", "ReadMemoryRequest"] {
        assert_eq!(can[format!("supports{what}")], true, "{what}: {can}");
    }
    assert_eq!(client.request("threads", json!({}))["success"], false, "nothing is launched");
    let missing = client.request("launch", json!({ "record": "nothing.tape" }));
    assert_eq!(missing["success"], false, "{missing}");
    client.ok("launch", json!({ "record": record, "packages": [package] }));
    client.event("initialized");
    let source = json!({ "path": "src/main.c" });
    let set = client.ok(
        "setBreakpoints",
        json!({
            "source": source, "breakpoints": [{ "line": division }, { "line": 100_000 }],
        }),
    );
    let verified: Vec<_> =
        set["breakpoints"].as_array().unwrap().iter().map(|one| one["verified"].clone()).collect();
    assert_eq!(verified, [true, false], "{set}");
    let functions =
        json!({ "breakpoints": [{ "name": "close_account", "condition": "number == 2" }] });
    client.ok("setFunctionBreakpoints", functions);
    client.ok("configurationDone", json!({}));
    let close = || "close_account".to_owned();
    assert_eq!(client.stopped(), ("function breakpoint".into(), close(), open));
    let threads = client.ok("threads", json!({}));
    assert_eq!(threads["threads"][0]["name"], "ledger 0.1.0");

    let frames = client.frames();
    assert_eq!(frames[1]["name"], "work");
    let scopes = client.ok("scopes", json!({ "frameId": frames[1]["id"] }));
    let locals = &scopes["scopes"][0]["variablesReference"];
    let locals = client.ok("variables", json!({ "variablesReference": locals }));
    let round = locals["variables"].as_array().unwrap().iter().find(|one| one["name"] == "round");
    assert_eq!(round.unwrap()["value"], "2", "{locals}");
    let accounts = client.evaluate("accounts");
    let parts =
        client.ok("variables", json!({ "variablesReference": accounts["variablesReference"] }));
    assert_eq!(parts["variables"].as_array().unwrap().len(), 3, "{parts}");
    let ben = client.evaluate("accounts[1].owner");
    assert!(ben["result"].as_str().unwrap().ends_with("\"ben\""), "{ben}");

    assert_eq!(client.go("next"), ("step".into(), close(), culprit));
    assert_eq!(client.go("stepBack"), ("function breakpoint".into(), close(), open));
    let frame = client.frames()[0]["id"].clone();
    let data = client.ok("dataBreakpointInfo", json!({ "name": "divisor", "frameId": frame }));
    client.ok("setDataBreakpoints", json!({ "breakpoints": [{ "dataId": data["dataId"] }] }));
    assert_eq!(client.go("continue").0, "data breakpoint");
    let divisor = client.evaluate("divisor");
    assert_eq!(divisor["result"], "0", "{divisor}");
    let memory = json!({ "memoryReference": divisor["memoryReference"], "count": 4 });
    assert_eq!(client.ok("readMemory", memory)["data"], "AAAAAA==");
    assert_eq!(client.go("continue"), ("breakpoint".into(), "share".into(), division));
    assert_eq!(client.go("continue"), ("exception".into(), "share".into(), division));
    let fault = client.ok("exceptionInfo", json!({ "threadId": 1 }));
    assert!(fault["description"].as_str().unwrap().contains("divide by zero"), "{fault}");
    assert_eq!(client.go("reverseContinue"), ("breakpoint".into(), "share".into(), division));
    assert_eq!(client.go("reverseContinue"), ("data breakpoint".into(), close(), culprit));
    assert_eq!(client.evaluate("divisor")["result"], "4");
    let id = &data["dataId"];
    let refused =
        json!([{ "dataId": id, "accessType": "read" }, { "dataId": id, "hitCondition": "3" }]);
    let refused = client.ok("setDataBreakpoints", json!({ "breakpoints": refused }));
    for one in refused["breakpoints"].as_array().unwrap() {
        assert!(one["verified"] == false && one["message"].is_string(), "{refused}");
    }
    assert_eq!(client.go("stepOut").1, "work");
    let said = json!({ "expression": "goto start", "frameId": 1, "context": "repl" });
    let said = client.ok("evaluate", said);
    assert!(said["result"].as_str().unwrap().contains("at 0+0"), "{said}");
    assert_eq!(client.stopped().0, "goto");

    for (command, arguments) in [
        ("nonsense", json!({})),
        ("setBreakpoints", json!({ "source": 7 })),
        ("variables", json!({ "variablesReference": 1_000_000 })),
        ("stackTrace", json!({ "threadId": -5 })),
        ("scopes", json!({ "frameId": i64::MIN })),
        ("readMemory", json!({ "memoryReference": "0:0", "count": 1_u64 << 40 })),
        ("evaluate", json!({ "expression": "(".repeat(3000), "frameId": 1 })),
        ("launch", json!({ "record": record })),
    ] {
        let answer = client.request(command, arguments);
        assert!(answer["success"] == false && answer["message"].is_string(), "{command}: {answer}");
    }
    client.send("no json");
    assert_eq!(client.answer()["success"], false);
    client.ok("disconnect", json!({}));
    assert_eq!(child.wait().unwrap().code(), Some(0));
    // A message of which nobody knows where it ends is the end.
    let mut child = adapter(&user, &[record]);
    let mut to = child.stdin.take().unwrap();
    to.write_all(b"Content-Length: 99999999999\r\n\r\n").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

/// A debugger that listens, with these arguments besides, its address and its token.
fn listening(
    user: &User,
    arguments: &[&str],
) -> (Child, BufReader<ChildStdout>, SocketAddr, String) {
    let mut command = user.command(&["debug", "--dap-listen", "127.0.0.1:0", "--json"]);
    let mut listening = command.args(arguments).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    let mut lines = BufReader::new(listening.stdout.take().unwrap());
    lines.read_line(&mut said).unwrap();
    let said: Value = serde_json::from_str(&said).unwrap();
    let address = said["address"].as_str().unwrap().parse().unwrap();
    (listening, lines, address, said["token"].as_str().unwrap().to_owned())
}

#[test]
fn an_editor_connects_by_a_socket_of_this_computer_alone() {
    let user = User::new();
    let Recorded { record, package } = ledger();
    let refused = user.error(&["debug", record, "--dap-listen", "0.0.0.0:0"]);
    assert!(refused.contains("isn't this computer's alone"), "{refused}");
    let (mut child, _lines, address, token) = listening(&user, &["--package", package, record]);
    // One after the other, whatever became of those before.
    for begun in ["Content-Length: 100\r\n\r\n{", "POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}"]
    {
        TcpStream::connect(address).unwrap().write_all(begun.as_bytes()).unwrap();
    }
    let mut gone = Client::new(std::io::empty(), TcpStream::connect(address).unwrap());
    for command in ["initialize", "attach", "configurationDone", "continue"] {
        let arguments = json!({ "threadId": 1, "token": token });
        let request =
            json!({ "seq": 1, "type": "request", "command": command, "arguments": arguments });
        gone.send(&request.to_string());
    }
    drop(gone);
    for _ in 0..2 {
        let stream = TcpStream::connect(address).unwrap();
        let mut client = Client::new(stream.try_clone().unwrap(), stream);
        client.ok("initialize", json!({}));
        client.ok("attach", json!({ "stopOnEntry": true, "token": token }));
        client.event("initialized");
        client.ok("configurationDone", json!({}));
        assert_eq!(client.event("stopped")["reason"], "entry");
        client.ok("disconnect", json!({}));
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn client_without_the_token_or_with_files_of_its_own_is_told_nothing_and_keeps_nobody_out() {
    // B-3, B-4, B-11.
    let user = User::new();
    let Recorded { record, package } = ledger();
    let (mut child, _lines, address, token) = listening(&user, &["--package", package, record]);
    // One that is silent; it has its time, and then the next one's turn comes.
    let silent = TcpStream::connect(address).unwrap();
    let connected = || {
        let stream = TcpStream::connect(address).unwrap();
        let mut client = Client::new(stream.try_clone().unwrap(), stream);
        client.ok("initialize", json!({}));
        client
    };
    let mut stranger = connected();
    for arguments in [
        json!({}),
        json!({ "record": record, "packages": [package] }),
        json!({ "token": "" }),
        json!({ "token": &token[1..] }),
        json!({ "token": token, "record": "/etc/passwd" }),
        json!({ "token": token, "record": "m@attic" }),
        json!({ "token": token, "packages": ["/tmp/evil.tenure"] }),
    ] {
        for command in ["launch", "attach"] {
            let answer = stranger.request(command, arguments.clone());
            assert_eq!(answer["success"], false, "{command} {arguments}: {answer}");
        }
        let answer = stranger.request("evaluate", json!({ "expression": "list" }));
        assert_eq!(answer["success"], false, "{answer}");
    }
    drop(stranger);
    let mut client = connected();
    let named =
        json!({ "token": token, "record": record, "packages": [package], "stopOnEntry": true });
    client.ok("launch", named);
    client.event("initialized");
    client.ok("disconnect", json!({}));
    drop(silent);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_client_by_the_makers_of_vs_code_steps_backwards() {
    let Some(folder) = Packages::Editor.of_test(env!("CARGO_TARGET_TMPDIR")) else { return };
    let user = User::new();
    let Recorded { record, package } = ledger();
    let (mut child, _lines, address, token) = listening(&user, &["--package", package, record]);
    let line = |text| line_of("ledger", "main.c", text).to_string();
    let mut node = Command::new("node");
    node.arg("steps.cjs").arg(address.port().to_string()).args([record, package]);
    node.args([line("/ divisor"), line("= number - 2"), token]).current_dir(folder);
    let output = finish(node);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
