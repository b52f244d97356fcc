//! Machines in JavaScript: the SDK, the language beside Node.js', where errors are, what the build refuses.

mod common;

use std::process::Command;

use common::device::Device;
use common::{Workbench, text, toolchain};

/// The sources of the machine that most tests run.
const MAIN: &str = include_str!("javascript/main.js");
const LANGUAGE: &str = include_str!("javascript/language.js");
const SHAPES: &str = include_str!("javascript/shapes.js");
/// Functions of the library that call others or convert values, where those throw.
const THROWERS: &str = include_str!("javascript/throwers.js");

/// The project `m` with these files in `src`.
fn project(workbench: &Workbench, memory_bytes: u32, files: &[(&str, &str)]) {
    let description = format!(
        "name = \"m\"\nversion = \"1.0.0\"\nlanguage = \"javascript\"\n[budget]\nmemory_bytes = {memory_bytes}\n\
         stack_bytes = 6144\n[capabilities]\ncalls = [\"friend\", \"nobody\"]\n"
    );
    workbench.write(&[("m/tenure.toml", &description)]);
    for (name, text) in files {
        workbench.write(&[(&format!("m/src/{name}"), text)]);
    }
}

/// The machine of main.js, and the lines that it logged at its start.
fn machine(workbench: &Workbench) -> Device {
    project(
        workbench,
        64 * 1024,
        &[("main.js", MAIN), ("language.js", LANGUAGE), ("shapes.js", SHAPES)],
    );
    Device::with(&workbench.build("m"), |world| {
        let of = |function: &str| ("friend".to_owned(), function.to_owned());
        world.callees.insert(of("tell"), Ok(Some(b"told".to_vec())));
        world.callees.insert(of("nothing"), Ok(None));
    })
}

/// What Node.js prints of a script, in a folder with the sources.
fn node(workbench: &Workbench, script: &str) -> String {
    workbench.write(&[("m/src/package.json", "{ \"type\": \"module\" }\n")]);
    let output = Command::new("node")
        .args(["--input-type=module", "--eval", script])
        .current_dir(workbench.path("m/src"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The line of main.js that holds a text.
fn line_of(part: &str) -> usize {
    common::line_of(MAIN, part)
}

#[test]
fn machine_does_what_machines_do() {
    let Some(workbench) = Workbench::with_language("javascript") else { return };
    let mut device = machine(&workbench);
    assert_eq!(device.world().log, ["denied -4 {\"started\":1} [1,null]"]);
    assert_eq!(device.call("all", None), text("one three two 1.5 2 3 told null null 0"));
    assert_eq!(device.call("absent", None), text(r#"{"message":"not found","code":-1}"#));
    let various = device.call("various", None).unwrap().unwrap();
    assert!(various.starts_with("[32,5,true,true,"), "{various}");
    assert!(various.ends_with(",true,0,null,\"number\",true]"), "{various}");
    assert_eq!(device.call("secretly", None), text("denied"));
    assert_eq!(device.call("kind", Some("é")), text("string false"));
    assert_eq!(device.call("kind", Some("")), text("string false"));
    assert_eq!(device.call("kind", None), text("undefined false"));
    assert_eq!(device.call("bytes", Some("abc")), text("bc"));
    assert_eq!(device.call("twice", None), text("second"));
    assert_eq!(device.call("none", None), Ok(None));
}

#[test]
fn exception_that_a_function_called_by_the_library_throws_is_never_lost() {
    let Some(workbench) = Workbench::with_language("javascript") else { return };
    project(&workbench, 64 * 1024, &[("main.js", THROWERS)]);
    let mut device = Device::start(&workbench.build("m"));
    assert_eq!(device.call("silent", None), text("[]"));
    assert_eq!(device.call("after", None), text("[1,null]"));
    let caught = text("caught InternalError: out of memory");
    assert_eq!(device.call("recovers", None), caught);
    assert_eq!(device.call("recovers", None), caught);
}

#[test]
fn errors_that_nobody_catches_fail_the_call_with_message_file_and_line() {
    let Some(workbench) = Workbench::with_language("javascript") else { return };
    let mut device = machine(&workbench);
    for (function, words, place) in [
        ("deep", "TypeError: cannot read property 'property' of undefined", "nothing.property"),
        ("arrow", "RangeError: from an arrow", "new RangeError"),
        ("custom", "Odd: one", "super(message)"),
        ("unanswered", "Error: not found", "  call(\"nobody\", \"x\")"),
        ("nameless", "TypeError: a function without a name is named by a text", "timers.every"),
        ("dynamic", "TypeError: no code and no regular expression", "new RegExp(text)"),
        ("hold", "InternalError: out of memory", "\"y\".repeat"),
        ("long", "Error: ééééé", "\"é\".repeat(300)"),
        ("recurse", "InternalError: out of memory", "recurse() + 1"),
    ] {
        let error = device.call(function, None).unwrap_err();
        let place = format!(" at src/main.js:{}", line_of(place));
        assert!(error.contains(words) && error.contains(&place), "{function}: {error}{place}");
    }
    assert!(device.call("words", None).unwrap_err().contains("just words"));
    assert!(device.call("object", None).unwrap_err().contains("{\"code\":7}"));
    device.world().log.clear();
    device.call("deep", None).unwrap_err();
    let (called, calls) = (line_of("inner(left - 1)"), line_of("inner(2)"));
    assert_eq!(
        device.world().log,
        [calls, called, called].map(|line| format!("  called at src/main.js:{line}"))
    );
    // The machine goes on, and its memory is free again.
    assert_eq!(device.call("grow", None), text("590015"));
    assert_eq!(device.memory_bytes(), 64 * 1024);
}

#[test]
fn language_gives_what_node_gives() {
    let Some(workbench) = Workbench::with_language("javascript") else { return };
    let mut device = machine(&workbench);
    let script = "import { language } from \"./language.js\"; process.stdout.write(language());";
    let expected = node(&workbench, script);
    assert_eq!(device.call("language", None), Ok(Some(expected)));
}

#[test]
fn json_is_read_and_refused_as_by_node() {
    let Some(workbench) = Workbench::with_language("javascript") else { return };
    let mut device = machine(&workbench);
    let deepest = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    let texts = [
        r#"{"a":[1,2.5e3,0.1,"xé\u00e9\ud83d\ude00\n\"",true,false,null],"b":{},"":"\/"}"#,
        " [ ] ",
        "\t{\r\n}",
        "\"\"",
        "\"a\"",
        "\"\\u0041\"",
        "0",
        "-1e-2",
        "9007199254740993",
        "{\"__proto__\":1}",
        "{\"a\":1,\"a\":2}",
        &deepest,
        "01",
        "1.",
        ".5",
        "1e",
        "-",
        "+1",
        "{\"a\":}",
        "{a:1}",
        "{\"a\" 1}",
        "{\"a\":1,}",
        "[1,]",
        "[1 2]",
        "[",
        "\"open",
        "\"\\x\"",
        "\"\\u12g4\"",
        "\"line\nfeed\"",
        "tru",
        "nulls",
        "1 2",
        "",
    ];
    let script = format!(
        "for (const text of {}) {{ let made; try {{ made = JSON.stringify(JSON.parse(text)); }} catch {{ made = \"\"; }} \
         console.log(made); }}",
        serde_json::to_string(&texts[..]).unwrap()
    );
    let expected = node(&workbench, &script);
    assert_eq!(expected.lines().count(), texts.len());
    for (given, expected) in texts.iter().zip(expected.lines()) {
        let made = device.call("json", Some(given));
        // A text that is a result is replied as it is.
        let made = made.map(|it| match given.trim_start().starts_with('"') {
            true => serde_json::to_string(&it.unwrap_or_default()).unwrap(),
            false => it.unwrap_or_else(|| "null".into()),
        });
        match expected.is_empty() {
            true => assert!(made.clone().unwrap_err().contains("SyntaxError"), "{given}: {made:?}"),
            false => assert_eq!(made.as_deref(), Ok(expected), "{given}"),
        }
    }
}

#[test]
fn script_that_throws_at_the_start_stops_its_machine_with_the_place() {
    let Some(workbench) = Workbench::with_language("javascript") else { return };
    let other = "export const limit = 3;\n\nthrow new Error(\"not today\");\n";
    let main = "import { limit } from \"./other\";\nexport function run() { return limit; }\n";
    project(&workbench, 65536, &[("main.js", main), ("other.js", other)]);
    workbench.tenure_ok(&["build", "m"]);
    let output = workbench.tenure(&["run", "m/m.tenure"]);
    assert!(!output.status.success());
    let said = String::from_utf8(output.stdout).unwrap() + &String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("Error: not today at src/other.js:3"), "{said}");
}

#[test]
fn what_devices_have_not_is_refused_at_the_build_with_its_place() {
    let Some(workbench) = Workbench::with_language("javascript") else { return };
    for (source, words) in [
        (
            "export async function run() {}\n",
            "src/main.js:1:1: a call waits for its result by itself",
        ),
        ("export function* run() {}\n", "src/main.js:1:1: there are no generators"),
        (
            "\n  setTimeout(1);\n",
            "src/main.js:2:3: there is no setTimeout on devices: timers.after",
        ),
        ("const all = new Map();\n", "src/main.js:1:17: there is no Map on devices"),
        ("class Lamp {\n  #lit;\n}\n", "src/main.js:2:3: there are no private names"),
        ("const n = 1n;\n", "src/main.js:1:11: there are no integers of any length"),
        ("export default function run() {}\n", "src/main.js:1:1: export functions by their names"),
        ("import { x } from \"./gone\";\n", "src/main.js:1:1: there is no file src/gone"),
        ("import fs from \"fs\";\n", "src/main.js:1:1: fs: \"tenure\" and files of the project"),
        ("import tenure from \"tenure\";\n", "write: import { log, tree } from \"tenure\""),
        ("export function run() {\n  return (;\n}\n", "src/main.js:2:11: Expression expected"),
        ("export const run = () => /(/;\n", "src/main.js:1"),
    ] {
        project(&workbench, 65536, &[("main.js", source)]);
        let error = workbench.tenure_error(&["build", "m"]);
        assert!(error.contains(words) && error.contains("m doesn't compile"), "{source}: {error}");
    }
    // What is declared or is a property is one's own.
    let own = "class Map {}\nexport function run(all = {}) { return [new Map(), all.Set, { Proxy: 1 }].length; }\n";
    project(&workbench, 8192, &[("main.js", own)]);
    let error = workbench.tenure_error(&["build", "m"]);
    assert!(error.contains("but tenure.toml asks for 8192; set memory_bytes"), "{error}");
    project(&workbench, 65536, &[("main.js", own)]);
    assert_eq!(Device::start(&workbench.build("m")).call("run", None), text("3"));
}

#[test]
fn import_of_what_is_not_there_is_refused_at_the_build_with_its_place_and_what_was_meant() {
    let Some(workbench) = Workbench::with_language("javascript") else { return };
    let lib = "export const half = 1;\nexport function warm() {}\nconst hidden = 2;\nexport { hidden as seen };\n";
    for (source, words) in [
        (
            "import { log, tre, uptime_us } from \"tenure\";\n",
            "src/main.js:1:15: \"tenure\" has no tre; did you mean tree?",
        ),
        (
            "import {\n  log,\n  uptime_us,\n} from \"tenure\";\n",
            "src/main.js:3:3: \"tenure\" has no uptime_us; did you mean uptimeUs?",
        ),
        (
            "import { nonsense } from \"tenure\";\n",
            "has no nonsense; it has parameterBytes, reply,",
        ),
        (
            "import * as all from \"tenure\";\nexport const run = () => all.tre;\n",
            "src/main.js:2:30: \"tenure\" has no tre; did you mean tree?",
        ),
        (
            "import { log as l } from \"tenure\";\nexport const run = () => l.inf(1);\n",
            "src/main.js:2:28: l has no inf; did you mean info?",
        ),
        (
            "import { hlf } from \"./lib.js\";\n",
            "src/main.js:1:10: src/lib.js has no hlf; did you mean half?",
        ),
        (
            "import { hidden } from \"./lib\";\n",
            "src/main.js:1:10: src/lib.js has no hidden; it has half, warm, seen",
        ),
        ("export { cold } from \"./lib\";\n", "src/main.js:1:10: src/lib.js has no cold;"),
        ("import lib from \"./lib\";\n", "src/main.js:1:1: there is no default in files"),
    ] {
        project(&workbench, 65536, &[("main.js", source), ("lib.js", lib)]);
        let error = workbench.tenure_error(&["build", "m"]);
        assert!(error.contains(words) && error.contains("m doesn't compile"), "{source}: {error}");
        assert!(!error.contains("Node.js"), "{error}");
    }
    // A name that a function has of its own, and one that is asked for without being called, are no mistakes.
    let own = "import { log, tree } from \"tenure\";\nimport { half, seen as other } from \"./lib\";\n\
               const of = (log) => log.length;\nexport function run() { return `${of([1])}${half}${other}${typeof tree.none}`; }\n";
    project(&workbench, 65536, &[("main.js", own), ("lib.js", lib)]);
    assert_eq!(Device::start(&workbench.build("m")).call("run", None), text("112undefined"));
}

#[test]
fn typescript_is_taken_too() {
    let Some(workbench) = Workbench::with_language("javascript") else { return };
    let main = "import { half } from \"./half.js\";\ninterface Asked { value: number }\n\
                export function run(text: string): number {\n  const asked: Asked = JSON.parse(text);\n  \
                return half(asked.value);\n}\n";
    let half = "export const half = (value: number): number => value / 2;\n";
    project(&workbench, 65536, &[("main.ts", main), ("half.ts", half)]);
    let mut device = Device::start(&workbench.build("m"));
    assert_eq!(device.call("run", Some("{\"value\":5}")), text("2.5"));
}

#[test]
fn tests_of_the_engines_makers_pass() {
    let Some(workbench) = Workbench::with_language("javascript") else { return };
    let tests =
        toolchain("javascript-1.0.0").unwrap().join("engine/vendor/rmquickjs-sys/mquickjs/tests");
    for name in ["test_language", "test_closure", "test_loop", "test_builtin"] {
        let test = std::fs::read_to_string(tests.join(name).with_extension("js")).unwrap();
        // What compiles code on the device isn't there.
        let test = test
            .replace(
                "new Function(\"a\", \"b\", \"return a + b;\")",
                "function (a, b) { return a + b; }",
            )
            .replace("new RegExp(repeat(\"(?:\", n) + \"a+\" + repeat(\")\", n))", "/a+/");
        let test = without_functions(
            &test,
            &[
                "test_global_eval",
                "test_large_eval_parse_stack",
                "test_line_column_numbers",
                "eval_error",
            ],
        );
        let test = format!("{test}\nexport function run() {{ return \"passed\"; }}\n");
        project(&workbench, 256 * 1024, &[("main.js", &test)]);
        let mut device = Device::start(&workbench.build("m"));
        assert_eq!(device.call("run", None), text("passed"), "{name}");
    }
}

/// A script without these functions and their calls.
fn without_functions(script: &str, names: &[&str]) -> String {
    let mut kept = String::new();
    let mut is_left_out = false;
    for line in script.lines() {
        is_left_out |= names.iter().any(|name| line.starts_with(&format!("function {name}(")));
        let is_call = names.iter().any(|name| line == format!("{name}();"));
        if !is_left_out && !is_call {
            kept += line;
        }
        kept += "\n";
        is_left_out &= line != "}";
    }
    kept
}
