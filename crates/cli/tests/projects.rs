//! `tenure new` and `tenure build`, as a user meets them.

mod common;

use common::device::Device;
use common::{Workbench, repository};
use tenure_package::Package;

fn new_project_builds_and_greets(language: &str) {
    let workbench = Workbench::new();
    workbench.tenure_ok(&["new", "greeter", "--lang", language]);
    let package = workbench.build("greeter");
    let mut device = Device::start(&package);
    let greeting = |text: &str| Ok(Some(text.to_owned()));
    assert_eq!(device.call("greet", Some("Ada")), greeting("Hello, Ada! You are number 1."));
    assert_eq!(device.call("greet", None), greeting("Hello, world! You are number 2."));
    assert_eq!(device.world().log, ["greeter has started"]);
    assert!(device.memory_bytes() <= 16 * 1024, "it stays within the default budget");
}

#[test]
fn new_rust_project_builds_and_greets() {
    new_project_builds_and_greets("rust");
}

#[test]
fn new_c_project_builds_and_greets() {
    new_project_builds_and_greets("c");
}

#[test]
fn package_is_signed_with_the_tenants_key() {
    let workbench = Workbench::new();
    workbench.tenure_ok(&["new", "m", "--lang", "c"]);
    let report = workbench.tenure_ok(&["build", "m", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let bytes = std::fs::read(workbench.path("m/m.tenure")).unwrap();
    let package = Package::parse(&bytes).unwrap();
    package.verify().unwrap();
    assert_eq!(report["digest"], package.digest().to_string());
    assert_eq!(report["tenant"], package.tenant().to_string());
    let again = workbench.build("m");
    assert_eq!(Package::parse(&again).unwrap().digest(), package.digest(), "builds repeat");
}

#[test]
fn existing_folder_is_left_alone() {
    let workbench = Workbench::new();
    workbench.write(&[("here/file", "text")]);
    let error = workbench.tenure_error(&["new", "here"]);
    assert!(error.contains("is there already"), "{error}");
    assert_eq!(std::fs::read_dir(workbench.path("here")).unwrap().count(), 1);
}

/// What `tenure build` complains of, for a C project with this description and source.
fn complaint(description: &str, source: &str) -> String {
    let workbench = Workbench::new();
    workbench.write(&[("m/tenure.toml", description), ("m/src/main.c", source)]);
    workbench.tenure_error(&["build", "m"])
}

const HEAD: &str = "name = \"m\"\nversion = \"1.0.0\"\nlanguage = \"c\"\n";
const SOURCE: &str = "#include <tenure.h>\nTENURE_EXPORT(run) {}\n";

#[test]
fn mistakes_in_the_description_are_named() {
    for (description, words) in [
        ("name = \"M\"\n", "line 1"),
        ("name = \"m\"\nversion = \"1\"\n", "three numbers"),
        ("name = \"m\"\nversion = \"1.0.0\"\nlanguage = \"go\"\n", "expected `rust` or `c`"),
        (&format!("{HEAD}[budget]\nmemory = 3\n"), "expected one of `memory_bytes`"),
        (&format!("{HEAD}[budget]\nmemory_bytes = -3\n"), "line 5"),
        (&format!("{HEAD}exports = [\"walk\"]\n"), "it has: run"),
        (&format!("{HEAD}[budget]\nmemory_bytes = 1024\n"), "set memory_bytes"),
        (&format!("{HEAD}[tree]\na.b = 3.5\n"), "sets a.b in [tree] to float"),
        (&format!("{HEAD}[tree]\na = [1, 256]\n"), "numbers from 0 to 255"),
        (&format!("{HEAD}[tree]\n\"a..b\" = \"\"\n"), "a path isn't"),
        (&format!("{HEAD}[capabilities]\ncalls = [\"a b\"]\n"), "machines are named NAME"),
    ] {
        let error = complaint(description, SOURCE);
        assert!(error.starts_with("error: ") && error.contains(words), "{description}: {error}");
    }
}

#[test]
fn code_that_needs_more_than_a_device_has_is_refused() {
    let source = "__attribute__((import_module(\"env\"), import_name(\"open\"))) int sys_open(void);\n\
                  __attribute__((export_name(\"run\"))) void run(void) { sys_open(); }\n";
    let error = complaint(HEAD, source);
    assert!(error.contains("env.open, which no device has"), "{error}");
}

#[test]
fn code_that_no_device_runs_is_refused() {
    let source = "typedef int vector __attribute__((vector_size(16)));\n\
                  __attribute__((target(\"simd128\"), export_name(\"run\"))) void run(void) {\n\
                  volatile vector v = {1, 2, 3, 4}; v = v + v; }\n";
    let error = complaint(HEAD, source);
    assert!(error.contains("devices don't run this code"), "{error}");
}

#[test]
fn code_that_does_not_compile_is_shown() {
    let error = complaint(HEAD, "int broken(\n");
    assert!(error.contains("src/main.c:1") && error.contains("doesn't compile"), "{error}");
    let workbench = Workbench::new();
    workbench.write(&[("m/tenure.toml", HEAD)]);
    assert!(workbench.tenure_error(&["build", "m"]).contains("m/src"));
    assert!(workbench.tenure_error(&["build"]).contains("tenure new"));
}

#[test]
fn c_library_passes_its_own_tests() {
    let workbench = Workbench::new();
    let source = std::fs::read_to_string(repository().join("sdk/c/tests/selftest.c")).unwrap();
    let description = format!("{HEAD}[budget]\nmemory_bytes = 65536\n");
    workbench.write(&[("m/tenure.toml", &description), ("m/src/main.c", &source)]);
    let bytes = workbench.build("m");
    let mut device = Device::start(&bytes);
    for function in &Package::parse(&bytes).unwrap().manifest().exports {
        let outcome = device.call(function, None);
        assert!(outcome.is_ok(), "{function}: {outcome:?} {:?}", device.world().log);
        if function == "key_target" {
            let key = tenure_wire::PublicKey(std::array::from_fn(|at| (at * 7 + 1) as u8));
            assert_eq!(outcome, Ok(Some(format!("#{key}"))));
        }
    }
}
