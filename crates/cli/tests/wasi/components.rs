//! Components: those of rustc, and those that `wit-component` makes here of a core module and a world.

use std::path::Path;
use std::process::Command;

use tenure_package::Package;
use tenure_testbed::{skip_without_compiler, skip_without_tool};

use crate::common::Workbench;
use crate::common::component::{LATER, MEMORY, component, encoder, later_program};
use crate::common::device::Device;
use crate::{BUDGET, HEAD};

/// A project whose module is `bytes`.
fn project(bytes: &[u8], description: &str) -> Workbench {
    let workbench = Workbench::new();
    let description = format!("{HEAD}module = \"made.wasm\"\n{BUDGET}{description}");
    workbench.write(&[("p/tenure.toml", &description)]);
    std::fs::write(workbench.path("p/made.wasm"), bytes).unwrap();
    workbench
}

fn built(bytes: &[u8], description: &str) -> Vec<u8> {
    project(bytes, description).build("p")
}

/// A part of `wasi:cli` and `wasi:io`, and a program's world.
const STREAMS: &str = "
package test:program;
world program {
  import wasi:cli/environment@0.2.3;
  import wasi:cli/exit@0.2.3;
  import wasi:cli/stdout@0.2.3;
  export wasi:cli/run@0.2.3;
}
package wasi:io@0.2.3 {
  interface error { resource error { to-debug-string: func() -> string; } }
  interface streams {
    use error.{error};
    variant stream-error { last-operation-failed(error), closed }
    resource output-stream {
      blocking-write-and-flush: func(contents: list<u8>) -> result<_, stream-error>;
    }
  }
}
package wasi:cli@0.2.3 {
  interface environment { get-environment: func() -> list<tuple<string, string>>; get-arguments: func() -> list<string>; }
  interface exit { exit: func(status: result); exit-with-code: func(status-code: u8); }
  interface stdout { use wasi:io/streams@0.2.3.{output-stream}; get-stdout: func() -> output-stream; }
  interface run { run: func() -> result; }
}";

/// Prints each argument, the first variable and its value, each with what stands at 8 behind it, and ends as `$end` does.
fn printer(end: &str) -> String {
    format!(
        "(module \
         (import \"wasi:cli/environment@0.2.3\" \"get-arguments\" (func $arguments (param i32))) \
         (import \"wasi:cli/environment@0.2.3\" \"get-environment\" (func $environment (param i32))) \
         (import \"wasi:cli/exit@0.2.3\" \"exit\" (func $exit (param i32))) \
         (import \"wasi:cli/exit@0.2.3\" \"exit-with-code\" (func $exit_with_code (param i32))) \
         (import \"wasi:cli/stdout@0.2.3\" \"get-stdout\" (func $stdout (result i32))) \
         (import \"wasi:io/streams@0.2.3\" \"[method]output-stream.blocking-write-and-flush\" \
          (func $write (param i32 i32 i32 i32))) \
         (import \"wasi:io/streams@0.2.3\" \"[resource-drop]output-stream\" (func $drop (param i32))) \
         {MEMORY} (data (i32.const 8) \"|\") \
         (func $print (param $string i32) (local $stream i32) \
          (local.set $stream (call $stdout)) \
          (call $write (local.get $stream) (i32.load (local.get $string)) (i32.load offset=4 (local.get $string)) (i32.const 16)) \
          (if (i32.load8_u (i32.const 16)) (then unreachable)) \
          (call $write (local.get $stream) (i32.const 8) (i32.const 1) (i32.const 16)) \
          (call $drop (local.get $stream))) \
         (global $is_ready (mut i32) (i32.const 0)) \
         (func (export \"_initialize\") (if (global.get $is_ready) (then unreachable)) (global.set $is_ready (i32.const 1))) \
         (func (export \"wasi:cli/run@0.2.3#run\") (result i32) (local $at i32) (local $left i32) \
          (if (i32.eqz (global.get $is_ready)) (then unreachable)) \
          (call $arguments (i32.const 32)) \
          (local.set $at (i32.load (i32.const 32))) \
          (local.set $left (i32.load (i32.const 36))) \
          (loop $all (if (local.get $left) (then \
           (call $print (local.get $at)) \
           (local.set $at (i32.add (local.get $at) (i32.const 8))) \
           (local.set $left (i32.sub (local.get $left) (i32.const 1))) (br $all)))) \
          (call $environment (i32.const 32)) \
          (if (i32.ne (i32.load (i32.const 36)) (i32.const 1)) (then unreachable)) \
          (call $print (i32.load (i32.const 32))) \
          (call $print (i32.add (i32.load (i32.const 32)) (i32.const 8))) \
          {end}))"
    )
}

const WITH_VARIABLE: &str =
    "[wasi]\nstart = false\narguments = [\"-v\"]\nenvironment = { LANG = \"C.UTF-8\" }\n";

#[test]
fn component_prints_what_it_is_told_and_its_result_is_the_calls() {
    for (end, outcome) in [
        ("(i32.const 0)", Ok(None)),
        ("(i32.const 1)", Err("exit code 1".to_owned())),
        ("(call $exit (i32.const 0)) unreachable", Ok(None)),
        ("(call $exit (i32.const 1)) unreachable", Err("exit code 1".to_owned())),
        ("(call $exit_with_code (i32.const 42)) unreachable", Err("exit code 42".to_owned())),
    ] {
        let component = component(STREAMS, &printer(end));
        let package = built(&component, WITH_VARIABLE);
        assert_eq!(Package::parse(&package).unwrap().manifest().exports, ["run"]);
        let mut device = Device::start(&package);
        for _ in 0..2 {
            assert_eq!(device.call("run", Some("one 'and two'")), outcome, "{end}");
        }
        let log = &device.world().log;
        let lines: Vec<_> = log.iter().filter(|line| !line.starts_with("exit")).collect();
        assert_eq!(lines, ["p|-v|one|and two|LANG|C.UTF-8|"; 2], "{end}");
    }
}

#[test]
fn parameter_that_is_no_text_reaches_a_component_as_one() {
    let package = built(&component(STREAMS, &printer("(i32.const 0)")), WITH_VARIABLE);
    let mut device = Device::start(&package);
    // Latin-1; UTF-8; half of a surrogate pair; a character cut off.
    device.world().parameter = Some(b"na\xefve \xc3\xa4 \xed\xa0\x80 \xf0\x9f\x98".to_vec());
    assert_eq!(device.call_again("run"), Ok(None));
    assert_eq!(device.world().log, ["p|-v|na?ve|\u{e4}|???|???|LANG|C.UTF-8|"]);
}

#[test]
fn component_with_streams_alone_has_no_room_for_files() {
    let package = built(&component(STREAMS, &printer("(i32.const 0)")), WITH_VARIABLE);
    let device = Device::start(&package);
    // The program's page, and what the adapter has: stack, variables, constants, settings.
    let adapter_bytes = device.memory_bytes() - 65_536;
    assert!(adapter_bytes < 8192, "{adapter_bytes}");
}

/// A world that has host calls, and a machine with three functions.
const MACHINE: &str = "
package test:machine;
world machine {
  import tenure:machine/host@0.1.0;
  export keep: func();
  export look: func();
  export miss: func();
  export chance: func();
}";

const MACHINE_CODE: &str = "(module \
    (import \"tenure:machine/host@0.1.0\" \"tree-set\" (func $set (param i32 i32 i32 i32 i32 i32))) \
    (import \"tenure:machine/host@0.1.0\" \"tree-get\" (func $get (param i32 i32 i32 i32))) \
    (import \"tenure:machine/host@0.1.0\" \"random\" (func $random (param i32 i32))) \
    (import \"tenure:machine/host@0.1.0\" \"uptime-us\" (func $uptime (result i64))) \
    (import \"tenure:machine/host@0.1.0\" \"reply\" (func $reply (param i32 i32 i32 i32))) \
    (data (i32.const 8) \"greetinghello to all\") \
    (func (export \"keep\") \
     (call $set (i32.const 8) (i32.const 8) (i32.const 1) (i32.const 16) (i32.const 12) (i32.const 64)) \
     (if (i32.load8_u (i32.const 64)) (then unreachable)) \
     (if (i64.eqz (call $uptime)) (then unreachable)) \
     (call $reply (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 64))) \
    (func (export \"look\") \
     (call $get (i32.const 8) (i32.const 8) (i32.const 5) (i32.const 64)) \
     (if (i32.load8_u (i32.const 64)) (then unreachable)) \
     (if (i32.ne (i32.load (i32.const 76)) (i32.const 12)) (then unreachable)) \
     (call $reply (i32.const 1) (i32.load (i32.const 68)) (i32.load (i32.const 72)) (i32.const 96)) \
     (if (i32.load8_u (i32.const 96)) (then unreachable))) \
    (func (export \"miss\") \
     (call $get (i32.const 8) (i32.const 3) (i32.const 5) (i32.const 64)) \
     (if (i32.ne (i32.load8_u (i32.const 64)) (i32.const 1)) (then unreachable)) \
     (if (i32.load8_u (i32.const 68)) (then unreachable)) \
     (call $reply (i32.const 1) (i32.const 8) (i32.const 0) (i32.const 64))) \
    (func (export \"chance\") \
     (call $random (i32.const 6) (i32.const 64)) \
     (if (i32.load8_u (i32.const 64)) (then unreachable)) \
     (if (i32.ne (i32.load (i32.const 72)) (i32.const 6)) (then unreachable)) \
     (call $reply (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 64)))";

#[test]
fn component_that_imports_host_calls_is_a_machine_with_the_functions_that_it_exports() {
    let component = component(MACHINE, &format!("{MACHINE_CODE} {MEMORY})"));
    let package = built(&component, "");
    let exports = Package::parse(&package).unwrap().manifest().exports.clone();
    assert_eq!(exports, ["keep", "look", "miss", "chance"]);
    let mut device = Device::start(&package);
    assert_eq!(device.call("miss", None), Ok(Some(String::new())));
    assert_eq!(device.call("keep", None), Ok(None));
    assert_eq!(device.world().tree["greeting"], b"hello to all");
    assert_eq!(device.call("look", None), Ok(Some("hello".into())), "as much as there is room for");
    assert_eq!(device.call("chance", None), Ok(None));
}

#[test]
fn component_of_0_3_goes_on_with_each_event() {
    let component = component(LATER, &later_program());
    let description = "[wasi]\nstart = false\nparameter = \"input\"\noutput = \"result\"\n";
    let mut device = Device::start(&built(&component, description));
    for _ in 0..2 {
        let answer = device.call("run", Some(", all"));
        assert_eq!(answer, Ok(Some("first and then, all".into())));
    }
    assert_eq!(device.world().slept_ms, 3000);
}

#[test]
fn program_in_a_component_with_an_adapter_of_others_is_linked_with_ours() {
    let world = "package test:program; world program {}";
    let text = "(module \
        (import \"wasi_snapshot_preview1\" \"fd_write\" (func $write (param i32 i32 i32 i32) (result i32))) \
        (memory (export \"memory\") 1) (data (i32.const 0) \"\\08\\00\\00\\00\\06\\00\\00\\00inside\") \
        (func (export \"_start\") (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 32)))))";
    let adapter = wasi_preview1_component_adapter_provider::WASI_SNAPSHOT_PREVIEW1_COMMAND_ADAPTER;
    let encoder = encoder(world, text).adapter("wasi_snapshot_preview1", adapter);
    let component = encoder.unwrap().encode().unwrap();
    let mut device = Device::start(&built(&component, "[wasi]\nstart = false\n"));
    assert_eq!(device.call("run", None), Ok(None));
    assert_eq!(device.world().log, ["inside"]);
}

#[test]
fn components_that_are_no_machine_are_refused_by_name() {
    let of = |package: &str, interface: &str| {
        format!(
            "package test:program; world program {{ import {interface}; export run: func(); }} {package}"
        )
    };
    let code = |import: &str| format!("(module {import} {MEMORY} (func (export \"run\")))");
    let http = "package wasi:http@0.2.0 { interface outgoing-handler { handle: func(); } }";
    let early = "package wasi:clocks@0.1.0 { interface monotonic-clock { now: func() -> u64; } }";
    let files = "package wasi:filesystem@0.3.0 { interface preopens { get-directories: func(); } }";
    let more = "package wasi:clocks@0.2.9 { interface monotonic-clock { fly: func() -> u64; } }";
    let other = "package wasi:clocks@0.2.9 { interface monotonic-clock { now: func() -> u32; } }";
    let own = "package my:parts@1.0.0 { interface engine { turn: func(); } }";
    let import = |module: &str, name: &str, kind: &str| {
        code(&format!("(import \"{module}\" \"{name}\" (func {kind}))"))
    };
    for (wit, text, words) in [
        (
            of(http, "wasi:http/outgoing-handler@0.2.0"),
            import("wasi:http/outgoing-handler@0.2.0", "handle", ""),
            "imports handle of wasi:http/outgoing-handler@0.2.0, which machines don't have; a machine reaches servers by",
        ),
        (
            of(early, "wasi:clocks/monotonic-clock@0.1.0"),
            import("wasi:clocks/monotonic-clock@0.1.0", "now", "(result i64)"),
            "imports now of wasi:clocks/monotonic-clock@0.1.0, which machines don't have; of WASI, preview 1, 0.2 and 0.3",
        ),
        (
            of(files, "wasi:filesystem/preopens@0.3.0"),
            import("wasi:filesystem/preopens@0.3.0", "get-directories", ""),
            "imports get-directories of wasi:filesystem/preopens@0.3.0, which machines don't have; of 0.3, there are",
        ),
        (
            of(more, "wasi:clocks/monotonic-clock@0.2.9"),
            import("wasi:clocks/monotonic-clock@0.2.9", "fly", "(result i64)"),
            "imports fly of wasi:clocks/monotonic-clock@0.2.9, which machines don't have; the interfaces that are there",
        ),
        (
            of(other, "wasi:clocks/monotonic-clock@0.2.9"),
            import("wasi:clocks/monotonic-clock@0.2.9", "now", "(result i32)"),
            "imports wasi:clocks/monotonic-clock@0.2.9.now with other parameters",
        ),
        (
            of(own, "my:parts/engine@1.0.0"),
            import("my:parts/engine@1.0.0", "turn", ""),
            "imports turn of my:parts/engine@1.0.0, which machines don't have; it is none of WASI's",
        ),
    ] {
        let error = project(&component(&wit, &text), "").tenure_error(&["build", "p"]);
        assert!(error.contains(words), "{error}");
    }
    for (text, words) in [
        ("(component)", "has 0 modules of code"),
        ("(component (core module) (core module (memory 1)))", "has 2 modules of code"),
        ("(component (component (core module)))", "holds other components with code"),
    ] {
        let error = project(&wat::parse_str(text).unwrap(), "").tenure_error(&["build", "p"]);
        assert!(error.contains(words), "{error}");
    }
}

/// Does what its first argument says.
const PROGRAM: &str = r#"
use std::io::{self, Read as _, Seek as _, Write as _};
use std::time::{Duration, Instant, SystemTime};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Err(error) = run(&words) {
        eprintln!("failed: {:?}", error.kind());
        std::process::exit(1);
    }
}

fn run(words: &[String]) -> io::Result<()> {
    match words.first().map(String::as_str).unwrap_or("") {
        "told" => println!("{words:?} {:?} {:?}", std::env::var("LANG"), std::env::var("NONE").is_err()),
        "input" => {
            let mut text = String::new();
            io::stdin().read_to_string(&mut text)?;
            println!("{}", text.len());
        }
        "time" => {
            let start = Instant::now();
            std::thread::sleep(Duration::from_millis(1500));
            println!("{}", start.elapsed().as_secs() >= 1);
        }
        "date" => println!("{:?}", SystemTime::UNIX_EPOCH.elapsed().map(|it| it.as_secs())),
        "chance" => {
            let map: std::collections::HashMap<u32, u32> = (0..9).map(|at| (at, at)).collect();
            println!("{}", map.values().sum::<u32>());
        }
        "files" => files()?,
        "missing" => drop(std::fs::read("/none/of/it")?),
        "panic" => panic!("on purpose"),
        _ => println!("nothing"),
    }
    Ok(())
}

fn files() -> io::Result<()> {
    std::fs::create_dir_all("/deep/down")?;
    let long: String = (0..900).map(|number| format!("line {number}\n")).collect();
    std::fs::write("/deep/long.txt", &long)?;
    std::fs::write("/deep/short.txt", "short")?;
    let mut file = std::fs::OpenOptions::new().append(true).open("/deep/short.txt")?;
    file.write_all(b" and longer")?;
    drop(file);
    let mut file = std::fs::OpenOptions::new().read(true).write(true).open("/deep/long.txt")?;
    file.seek(io::SeekFrom::Start(2040))?;
    file.write_all(b"over the edge of a part")?;
    file.seek(io::SeekFrom::End(-9))?;
    let mut end = String::new();
    file.read_to_string(&mut end)?;
    file.set_len(5000)?;
    drop(file);
    let long = std::fs::read("/deep/long.txt")?;
    let sum = long.iter().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add((*byte).into()));
    println!("{end:?} {} {sum}", long.len());
    std::fs::rename("/deep/short.txt", "/deep/down/moved.txt")?;
    println!("{}", std::fs::read_to_string("/deep/down/moved.txt")?);
    let mut names = std::fs::read_dir("/deep")?
        .map(|entry| {
            let entry = entry?;
            let state = entry.metadata()?;
            Ok(format!("{:?} {} {}", entry.file_name(), state.is_dir(), if state.is_dir() { 0 } else { state.len() }))
        })
        .collect::<io::Result<Vec<_>>>()?;
    names.sort();
    println!("{names:?}");
    println!("{:?}", std::fs::remove_dir("/deep/down").map_err(|error| error.kind()));
    std::fs::remove_file("/deep/down/moved.txt")?;
    std::fs::remove_dir("/deep/down")?;
    println!("{:?}", std::fs::metadata("/deep/down").map_err(|error| error.kind()).is_err());
    Ok(())
}
"#;

/// The program for a target, if rustc has that.
fn rust_program(target: &str) -> Option<Vec<u8>> {
    let libdir = ["--print", "target-libdir", "--target", target];
    let found = Command::new("rustc").args(libdir).output().ok().filter(|it| it.status.success());
    let folder = found.map(|it| String::from_utf8(it.stdout).unwrap());
    if !folder.is_some_and(|folder| Path::new(folder.trim()).is_dir()) {
        // Only rustup has it; Debian's Rust goes without.
        match Command::new("rustup").arg("--version").output() {
            Ok(_) => skip_without_tool(&format!("Rust's standard library for {target}")),
            Err(_) => skip_without_compiler(&format!("Rust's standard library for {target}")),
        }
        return None;
    }
    let workbench = Workbench::new();
    workbench.write(&[("main.rs", PROGRAM)]);
    let mut rustc = Command::new("rustc");
    rustc.args(["--edition", "2024", "--target", target, "-Copt-level=z", "-Cpanic=abort"]);
    rustc.args(["-Cstrip=debuginfo", "main.rs", "-o", "main.wasm"]).current_dir(workbench.path(""));
    let output = rustc.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(std::fs::read(workbench.path("main.wasm")).unwrap())
}

#[test]
fn component_of_rustc_does_what_the_same_program_for_preview_1_does() {
    let (Some(module), Some(component)) =
        (rust_program("wasm32-wasip1"), rust_program("wasm32-wasip2"))
    else {
        return;
    };
    let description = "[wasi]\nstart = false\nenvironment = { LANG = \"C\" }\n";
    let mut devices = [module, component].map(|bytes| Device::start(&built(&bytes, description)));
    for words in
        ["told 'a b' ä", "time", "chance", "input", "files", "files", "missing", "panic", "nothing"]
    {
        let [one, other] = devices.each_mut().map(|device| {
            device.world().log.clear();
            let outcome = device.call("run", Some(words));
            (outcome, device.world().log.clone(), device.world().slept_ms)
        });
        if words == "panic" {
            // The trap's words name its place in the code, which differs.
            assert!(one.0.is_err() && other.0.is_err());
            assert_eq!(one.1, other.1);
            continue;
        }
        assert_eq!(other, one, "{words}");
        assert!(!one.1.is_empty(), "{words}");
    }
    let [one, other] = devices.each_mut().map(|device| device.world().tree.clone());
    assert_eq!(other, one);
    // The device doesn't know the time. Preview 1 has an error for that, and 0.2 hasn't.
    let [one, other] = devices.each_mut().map(|device| {
        device.world().log.clear();
        (device.call("run", Some("date")).is_ok(), device.world().log.pop())
    });
    assert!(!one.0, "{one:?}");
    assert_eq!(other, (true, Some("Ok(0)".into())));
}

#[test]
fn component_of_rustc_reads_the_parameter_and_its_output_is_the_result() {
    let Some(component) = rust_program("wasm32-wasip2") else { return };
    let description = "[wasi]\nstart = false\narguments = [\"input\"]\nparameter = \"input\"\noutput = \"result\"\n";
    let mut device = Device::start(&built(&component, description));
    let text = "x".repeat(7000);
    assert_eq!(device.call("run", Some(&text)), Ok(Some("7000\n".into())));
    assert_eq!(device.call("run", None), Ok(Some("0\n".into())));
}
