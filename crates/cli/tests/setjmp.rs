//! C's setjmp and longjmp in machines: what C promises of them, against the computer's own, and where faults are then.

mod common;

use std::process::Command;

use common::Workbench;
use common::device::Device;
use tenure_testbed::skip_without_tool;

const HEAD: &str = "name = \"m\"\nversion = \"1.0.0\"\nlanguage = \"c\"\n[budget]\nmemory_bytes = 65536\n\
                    stack_bytes = 16384\n[capabilities]\ncalls = [\"friend@cellar\"]\n";
/// What C promises, a function for each.
const MAIN: &str = include_str!("setjmp/main.c");
/// Functions that call one another and jump as chance has it, on any computer.
const RANDOM: &str = include_str!("setjmp/random.c");

/// The results of the functions of main.c that wait for nobody.
const RESULTS: [(&str, &str); 8] = [
    // Three jumps of values 1, 2, 3, and a walk through the same frames without one.
    ("deep", "3 4 1048580"),
    ("values", "1 -7 -7"),
    ("nested", "12 7 6"),
    ("two", "3 2 0"),
    ("callback", "5 10 0"),
    ("often", "10000 0 0"),
    ("own", "3 0 0"),
    ("deep", "3 4 1048580"),
];

fn machine(description: &str) -> (Workbench, Vec<u8>) {
    let workbench = Workbench::new();
    let description = format!("{HEAD}{description}");
    workbench.write(&[("m/tenure.toml", &description), ("m/src/main.c", MAIN)]);
    let package = workbench.build("m");
    (workbench, package)
}

/// The line of main.c that holds a text.
fn line_of(part: &str) -> u32 {
    1 + MAIN.lines().position(|line| line.contains(part)).unwrap() as u32
}

#[test]
fn setjmp_and_longjmp_do_what_c_promises() {
    let (_workbench, package) = machine("");
    let mut device = Device::with(&package, |world| {
        let told = ("friend@cellar".to_owned(), "tell".to_owned());
        world.callees.insert(told, Ok(Some(b"told".to_vec())));
    });
    for (function, expected) in RESULTS {
        assert_eq!(device.call(function, None), Ok(Some(expected.into())), "{function}");
    }
    assert_eq!(device.call("waits", None), Ok(Some("104 4 4".into())));
}

#[test]
fn machine_that_waits_between_both_jumps_all_the_same() {
    let (workbench, _) = machine("");
    let mut tests =
        "[[machine]]\nname = \"friend@cellar\"\nanswers = { tell = \"told\" }\n".to_owned();
    let waits = [("waits", "104 4 4")];
    for (function, expected) in RESULTS.into_iter().chain(waits).chain(RESULTS) {
        tests += &format!(
            "[[test]]\nname = \"{function}\"\ncall = \"{function}\"\nexpect = \"{expected}\"\n"
        );
    }
    workbench.write(&[("m/tests.toml", &tests)]);
    let report = workbench.tenure_ok(&["test", "m"]);
    assert!(report.contains("17 of 17 tests passed"), "{report}");
}

#[test]
fn jump_to_a_function_that_has_returned_stops_the_machine_with_a_message() {
    let (_workbench, package) = machine("");
    for function in ["lost", "jumper"] {
        let mut device = Device::start(&package);
        let error = device.call(function, None).unwrap_err();
        assert!(
            error.contains("longjmp, and the function that called setjmp isn't running any more"),
            "{function}: {error}"
        );
    }
}

#[test]
fn fault_behind_a_jump_names_its_line_and_those_of_the_calls() {
    let workbench = Workbench::new();
    let source = format!("{MAIN}\nTENURE_EXPORT(entry) {{\n    tenure_export_fault();\n}}\n");
    workbench.write(&[("m/tenure.toml", HEAD), ("m/src/main.c", &source)]);
    workbench.tenure_ok(&["build", "m"]);
    let fault = workbench.first_fault("m/m.tenure");
    let is_line = |place: &serde_json::Value, part: &str| {
        let lines = place["lines"].as_array().unwrap();
        lines.iter().any(|line| {
            line["line"] == line_of(part) && line["file"].as_str().unwrap().ends_with("main.c")
        })
    };
    assert!(is_line(&fault["place"], "the line of the fault"), "{fault}");
    let callers = fault["called_from"].as_array().unwrap();
    let mut places = std::iter::once(&fault["place"]).chain(callers);
    assert!(places.any(|place| is_line(place, "the line of the call")), "{fault}");
}

#[test]
fn random_jumps_come_out_as_on_this_computer() {
    const SEEDS: usize = 300;
    let workbench = Workbench::new();
    workbench.write(&[("m/tenure.toml", HEAD), ("m/src/main.c", RANDOM)]);
    let native = Command::new("cc")
        .args(["-O1", "-o"])
        .arg(workbench.path("native"))
        .arg(workbench.path("m/src/main.c"))
        .status();
    if !native.is_ok_and(|status| status.success()) {
        return skip_without_tool("cc");
    }
    let expected =
        Command::new(workbench.path("native")).arg(SEEDS.to_string()).output().unwrap().stdout;
    let expected = String::from_utf8(expected).unwrap();
    assert_eq!(expected.lines().count(), SEEDS);
    let mut device = Device::start(&workbench.build("m"));
    for (seed, expected) in expected.lines().enumerate() {
        let traced = device.call("run", Some(&seed.to_string()));
        assert_eq!(traced, Ok(Some(expected.into())), "seed {seed}");
    }
}

const WITH_THE_LIBRARY: &str = r#"
#include <csetjmp>
#include <string>
#include <tenure.h>

static std::jmp_buf place;

static void deep(int left) {
    std::string name(left, 'x');
    if (left == 0) {
        std::longjmp(place, 5);
    }
    deep(left - 1);
    tenure_info("%s", name.c_str());
}

TENURE_EXPORT(run) {
    int came = setjmp(place);
    if (came == 0) {
        deep(3);
    }
    tenure_reply_text(std::to_string(came).c_str());
}
"#;

#[test]
fn cpp_with_the_standard_library_has_them_too() {
    if !std::path::Path::new("/usr/include/wasm32-wasi/stdlib.h").is_file() {
        return skip_without_tool("wasi-libc");
    }
    let workbench = Workbench::new();
    let description = format!("{HEAD}[build]\nlibrary = \"standard\"\n");
    workbench.write(&[("m/tenure.toml", &description), ("m/src/main.cpp", WITH_THE_LIBRARY)]);
    let mut device = Device::start(&workbench.build("m"));
    assert_eq!(device.call("run", None), Ok(Some("5".into())));
}

const PROGRAM: &str = r#"
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

static jmp_buf place;

static void deep(int left) {
    if (left == 0) {
        longjmp(place, 5);
    }
    deep(left - 1);
    puts("back");
}

int main(void) {
    int came = setjmp(place);
    printf("%d\n", came);
    if (came == 0) {
        deep(3);
    }
    if (came == 5) {
        exit(0);
    }
    puts("not reached");
    return 1;
}
"#;

#[test]
fn program_for_wasi_jumps_and_exits() {
    if !std::path::Path::new("/usr/include/wasm32-wasi/stdlib.h").is_file() {
        return skip_without_tool("wasi-libc");
    }
    let workbench = Workbench::new();
    let description = format!("{HEAD}[wasi]\nstart = false\n").replace("65536", "200000");
    workbench.write(&[("m/tenure.toml", &description), ("m/src/main.c", PROGRAM)]);
    let mut device = Device::start(&workbench.build("m"));
    assert_eq!(device.call("run", None), Ok(None));
    assert_eq!(device.call("run", None), Ok(None));
    assert_eq!(device.world().log, ["0", "5", "0", "5"]);
}
