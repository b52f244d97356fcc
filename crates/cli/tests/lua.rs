//! Machines in Lua: the SDK, the language beside that of this computer, where errors are, what the build refuses.

mod common;

use std::process::Command;

use common::device::Device;
use common::{Workbench, text, toolchain};
use tenure_testbed::skip_without_tool;

/// The sources of the machine that most tests run.
const MAIN: &str = include_str!("lua/main.lua");
const LANGUAGE: &str = include_str!("lua/language.lua");
const OTHER: &str = include_str!("lua/other.lua");

/// The project `m` with these files in `src`.
fn project(workbench: &Workbench, memory_bytes: u32, files: &[(&str, &str)]) {
    let description = format!(
        "name = \"m\"\nversion = \"1.0.0\"\nlanguage = \"lua\"\n[budget]\nmemory_bytes = {memory_bytes}\n\
         stack_bytes = 16384\n[capabilities]\ncalls = [\"friend\", \"nobody\"]\n"
    );
    workbench.write(&[("m/tenure.toml", &description)]);
    for (name, text) in files {
        workbench.write(&[(&format!("m/src/{name}"), text)]);
    }
}

const FILES: [(&str, &str); 3] =
    [("main.lua", MAIN), ("language.lua", LANGUAGE), ("below/other.lua", OTHER)];

/// The machine of main.lua.
fn machine(workbench: &Workbench) -> Device {
    // What the device hasn't is refused at the build, but for what a script has itself.
    let main = MAIN.replace("return load(\"return 1\")", "return nil + 1");
    let files = FILES.map(|(name, text)| (name, if name == "main.lua" { &main } else { text }));
    project(workbench, 128 * 1024, &files);
    Device::with(&workbench.build("m"), |world| {
        let of = |function: &str| ("friend".to_owned(), function.to_owned());
        world.callees.insert(of("tell"), Ok(Some(b"told".to_vec())));
        world.callees.insert(of("nothing"), Ok(None));
    })
}

/// The line of main.lua that holds a text.
fn line_of(part: &str) -> usize {
    common::line_of(MAIN, part)
}

#[test]
fn machine_does_what_machines_do() {
    let Some(workbench) = Workbench::with_language("lua") else { return };
    let mut device = machine(&workbench);
    assert_eq!(device.world().log, ["false denied -4", "started 1 1.5 nil"]);
    assert_eq!(device.call("all", None), text("one two 2 told nil nil 0"));
    let absent = format!("-1 src/main.lua:{}: not found", line_of("pcall(function() tenure.call"));
    assert_eq!(device.call("absent", None), text(&absent));
    assert_eq!(device.call("various", None), text("32 32 5 1234567 nil nil 0 left"));
    assert_eq!(device.call("queued", None), text("1"));
    let queued = device.world().queued[0].clone();
    assert_eq!(
        (&*queued.function, &*queued.on_success, &*queued.on_failure),
        ("all", "all", "absent")
    );
    assert_eq!(device.call("kind", Some("é")), text("string 2"));
    assert_eq!(device.call("kind", Some("")), text("string 0"));
    assert_eq!(device.call("kind", None), text("nil nil"));
    assert_eq!(device.call("twice", None), text("second"));
    assert_eq!(device.call("number", None), text("2.5"));
    assert_eq!(device.call("truth", None), text("true"));
    assert_eq!(device.call("none", None), Ok(None));
    assert_eq!(device.call("shared", None), text("below.other true"));
}

#[test]
fn errors_that_nobody_catches_fail_the_call_with_file_and_line() {
    let Some(workbench) = Workbench::with_language("lua") else { return };
    let mut device = machine(&workbench);
    for (function, words, place) in [
        ("nothing", "attempt to index a nil value (local 'lamp')", "return lamp.lit"),
        ("unanswered", "not found", "tenure.call(\"nobody\", \"x\") end"),
        ("custom", "in words", "error(\"in words\")"),
        (
            "nameless",
            "bad argument #2 to 'every' (a function that is called later is a",
            "timers.every",
        ),
        ("dynamic", "attempt to perform arithmetic on a nil value", "function dynamic"),
        ("missing", "the project has no file for require 'absent'", "function missing"),
        ("deep", "deep", "error(\"deep\")"),
    ] {
        let error = device.call(function, None).unwrap_err();
        let place = match function {
            // The second call of that kind.
            "unanswered" => line_of("function unanswered"),
            _ => line_of(place),
        };
        let expected = format!("src/main.lua:{place}: {words}");
        assert!(error.contains(&expected), "{function}: {error}: {expected}");
    }
    for (function, words) in [
        ("table_", "table_ returns a table: a result is a string, a number or a boolean"),
        ("object", "table"),
        ("hold", "not enough memory"),
        ("nest", "C stack overflow"),
        ("from_other", "src/below/other.lua:7: elsewhere"),
    ] {
        let error = device.call(function, None).unwrap_err();
        assert!(error.contains(words), "{function}: {error}");
    }
    let error = device.call("recurse", None).unwrap_err();
    assert!(error.contains("stack overflow") || error.contains("not enough memory"), "{error}");
    device.world().log.clear();
    device.call("deep", None).unwrap_err();
    let (called, calls) = (line_of("inner(left - 1)"), line_of("inner(2)"));
    assert_eq!(
        device.world().log,
        [calls, called, called].map(|line| format!("  called at src/main.lua:{line}"))
    );
    // The machine goes on, and its memory is free again.
    assert_eq!(device.call("grow", None), text("459393"));
    assert!(device.memory_bytes() <= 128 * 1024);
}

#[test]
fn language_gives_what_it_gives_on_this_computer() {
    let Some(workbench) = Workbench::with_language("lua") else { return };
    let mut device = machine(&workbench);
    workbench.write(&[("native.c", include_str!("lua/native.c"))]);
    let sources = toolchain("lua-551.1.0").unwrap().join("engine/vendor/lua-src/lua-5.5.1");
    let compiled = Command::new("cc")
        .args(["-O1", "-w", "-I", "m/.tenure/sdk/lua", "-I"])
        .arg(sources)
        .args(["native.c", "-lm", "-o", "native"])
        .current_dir(workbench.path("."))
        .status();
    if !compiled.is_ok_and(|status| status.success()) {
        return skip_without_tool("cc");
    }
    let output = Command::new(workbench.path("native"))
        .arg(workbench.path("m/src/language.lua"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let expected = String::from_utf8(output.stdout).unwrap();
    assert!(expected.lines().count() > 20, "{expected}");
    assert_eq!(device.call("language_", None), Ok(Some(expected)));
}

#[test]
fn script_with_an_error_at_the_start_stops_its_machine_with_the_place() {
    let Some(workbench) = Workbench::with_language("lua") else { return };
    let main = "local other = require \"other\"\nfunction run() return other.limit end\n";
    let other = "local limit = 3\n\nerror(\"not today\")\n";
    project(&workbench, 65536, &[("main.lua", main), ("other.lua", other)]);
    workbench.tenure_ok(&["build", "m"]);
    let output = workbench.tenure(&["run", "m/m.tenure"]);
    assert!(!output.status.success());
    let said = String::from_utf8(output.stdout).unwrap() + &String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("src/other.lua:3: not today"), "{said}");
}

#[test]
fn name_that_the_module_or_the_project_has_not_is_refused_at_the_build_with_its_place() {
    let Some(workbench) = Workbench::with_language("lua") else { return };
    let lib = "return { half = 1 }\n";
    for (source, words) in [
        (
            "local tenure = require(\"tenure\")\nfunction run()\n  return tenure.uptime()\nend\n",
            "src/main.lua:3: tenure has no uptime; did you mean uptime_us?",
        ),
        (
            "local tenure = require(\"tenure\")\nlocal function tell() tenure.log.inf(\"x\") end\nfunction run() tell() end\n",
            "src/main.lua:2: log has no inf; did you mean info?",
        ),
        (
            "local log = require(\"tenure\").log\nfunction run()\n  log.trace(\"x\")\nend\n",
            "src/main.lua:3: log has no trace; it has error, warning, info, debug",
        ),
        (
            "local tenure = require(\"tenure\")\nlocal tree = tenure.tree\nfunction run() return function() return tree.gett(\"x\") end end\n",
            "src/main.lua:3: tree has no gett; did you mean get?",
        ),
        (
            "local tenure = require(\"tenure\")\nlocal log, tree = tenure.log, tenure.tree\nfunction run() log.inf(tree) end\n",
            "src/main.lua:3: log has no inf; did you mean info?",
        ),
        (
            "function run() return require(\"tenure\").timrs end\n",
            "src/main.lua:1: tenure has no timrs; did you mean timers?",
        ),
        (
            "local lib = require(\"belw.lib\")\n",
            "src/main.lua:1: the project has no belw.lib; did you mean below.lib?",
        ),
    ] {
        project(&workbench, 65536, &[("main.lua", source), ("below/lib.lua", lib)]);
        let error = workbench.tenure_error(&["build", "m"]);
        assert!(error.contains(words) && error.contains("m doesn't compile"), "{source}: {error}");
    }
    // What is one's own, or asked for in a way that may fail, is no mistake.
    let own = "local lib = require(\"below.lib\")\nlocal ok = pcall(require, \"gone\")\nlocal log = require(\"tenure\").log\n\
               log = { mine = function() return 7 end }\nlocal function inner(tenure) return tenure.anything end\n\
               function run() return log.mine() + lib.half + inner({ anything = ok and 1 or 2 }) end\n";
    project(&workbench, 65536, &[("main.lua", own), ("below/lib.lua", lib)]);
    assert_eq!(Device::start(&workbench.build("m")).call("run", None), text("10"));
}

#[test]
fn what_devices_have_not_is_refused_at_the_build_with_its_place() {
    let Some(workbench) = Workbench::with_language("lua") else { return };
    for (source, words) in [
        ("function run()\n  io.write(1)\nend\n", "src/main.lua:2: there is no io on devices"),
        ("function run() return os.time() end\n", "tenure.unix_time_s"),
        ("local f = load(\"return 1\")\n", "src/main.lua:1: there is no load on devices"),
        ("function run()\n  return (\nend\n", "src/main.lua:3: unexpected symbol near 'end'"),
    ] {
        project(&workbench, 65536, &[("main.lua", source)]);
        let error = workbench.tenure_error(&["build", "m"]);
        assert!(error.contains(words) && error.contains("m doesn't compile"), "{source}: {error}");
    }
    // What is assigned is one's own.
    let own = "os = { time = function() return 5 end }\nfunction run() return os.time() end\n";
    project(&workbench, 65536, &[("main.lua", own)]);
    assert_eq!(Device::start(&workbench.build("m")).call("run", None), text("5"));
}
