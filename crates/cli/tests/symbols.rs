//! `tenure inspect`, and faults that name function and source line.

mod common;

use common::Workbench;
use tenure_cli::make::symbols::{Site, Symbols, debug_path};
use tenure_package::{CodeKind, Package};

const HEAD: &str = "name = \"m\"\nversion = \"1.2.3\"\nlanguage = \"c\"\n";

/// The trap is in line 5, inlined into line 9.
const SOURCE: &str = "#include <tenure.h>

static volatile int wanted = 1;
static inline __attribute__((always_inline)) void check(void) {
    if (wanted) __builtin_trap();
}

TENURE_EXPORT(fail) {
    check();
}

static __attribute__((noinline)) void hidden(void) {
    tenure_info(\"%d\", wanted);
}

TENURE_EXPORT(show) {
    hidden();
    hidden();
}
";

fn built(source: &str) -> Workbench {
    let workbench = Workbench::new();
    let budget = "[budget]\nmemory_bytes = 65536\n[capabilities]\ncalls = [\"other\"]\n";
    let description = format!("{HEAD}{budget}[tree]\ngreeting = \"hello\"\nkey = [1, 255]\n");
    workbench.write(&[("m/tenure.toml", &description), ("m/src/main.c", source)]);
    workbench.tenure_ok(&["build", "m"]);
    workbench
}

fn inspect(workbench: &Workbench, arguments: &[&str]) -> serde_json::Value {
    let arguments = [&["inspect", "m/m.tenure", "--json"], arguments].concat();
    serde_json::from_str(&workbench.tenure_ok(&arguments)).unwrap()
}

/// Where the only `unreachable` of function `name` is.
fn unreachable_in(workbench: &Workbench, name: &str) -> Site {
    let report = inspect(workbench, &["--code"]);
    let functions = report["functions"].as_array().unwrap();
    let function = functions.iter().find(|function| function["name"] == name).unwrap();
    let code = function["code"].as_array().unwrap();
    let trap = code
        .iter()
        .find(|line| line["instruction"].as_str().unwrap().starts_with("unreachable"))
        .unwrap_or_else(|| panic!("no trap in {code:?}"));
    let number = |value: &serde_json::Value| value.as_u64().unwrap() as u32;
    Site { function: number(&function["index"]), offset: number(&trap["offset"]), in_module: false }
}

#[test]
fn inspect_tells_what_a_package_is() {
    let workbench = built(SOURCE);
    let bytes = std::fs::read(workbench.path("m/m.tenure")).unwrap();
    let package = Package::parse(&bytes).unwrap();
    let report = inspect(&workbench, &[]);
    assert_eq!(report["name"], "m");
    assert_eq!(report["digest"], package.digest().to_string());
    assert_eq!(report["exports"], serde_json::json!(["fail", "show"]));
    assert_eq!(report["budget"]["memory_bytes"], 65536);
    assert_eq!(report["capabilities"]["calls"], serde_json::json!(["other"]));
    assert_eq!(report["tree"]["greeting"]["text"], "hello");
    assert_eq!(report["tree"]["key"]["hex"], "01ff");
    assert_eq!(report["code_bytes"], package.code_bytes());
    assert!(report["image_bytes"].as_u64().unwrap() > 100);
    let (start, most) = (&report["ram_bytes_start"], &report["ram_bytes_max"]);
    assert!(start.as_u64().unwrap() < most.as_u64().unwrap(), "{report}");
    let text = workbench.tenure_ok(&["inspect", "m/m.tenure"]);
    for words in ["m 1.2.3", "offers      fail show", "calls       other", "greeting = \"hello\""] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn code_is_shown_with_names() {
    let workbench = built(SOURCE);
    let text = workbench.tenure_ok(&["inspect", "m/m.tenure", "--code"]);
    assert!(text.contains(" fail () -> ()\n  0x0000  "), "{text}");
    assert!(text.contains(" hidden () -> ()"), "a function that isn't exported: {text}");
}

#[test]
fn place_in_the_code_is_named_with_what_was_inlined() {
    let workbench = built(SOURCE);
    let site = unreachable_in(&workbench, "fail");
    let at = format!("{}:{:#x}", site.function, site.offset);
    let text = workbench.tenure_ok(&["inspect", "m/m.tenure", "--at", &at]);
    let line = "check (m/src/main.c:5), inlined into fail (m/src/main.c:9)\n";
    assert_eq!(text, line);
    let place = inspect(&workbench, &["--at", &at]);
    assert_eq!(place["function"], "fail");
    assert_eq!(place["lines"][1]["line"], 9);
    let beyond = workbench.tenure_error(&["inspect", "m/m.tenure", "--at", "9999:0"]);
    assert!(beyond.contains("has functions 0 to"), "{beyond}");
}

#[test]
fn package_has_no_debug_information_and_needs_none() {
    let workbench = built(SOURCE);
    let path = workbench.path("m/m.tenure");
    let bytes = std::fs::read(&path).unwrap();
    let package = Package::parse(&bytes).unwrap();
    let stripped = wasmparser::Parser::new(0)
        .parse_all(package.code(CodeKind::WebAssembly).unwrap())
        .all(|payload| !matches!(payload.unwrap(), wasmparser::Payload::CustomSection(_)));
    assert!(stripped);
    let site = unreachable_in(&workbench, "fail");
    std::fs::remove_file(debug_path(&path)).unwrap();
    let place = Symbols::beside(&path, &package).unwrap().place(site);
    assert_eq!((place.function.as_deref(), place.lines.len()), (Some("fail"), 0));
}

#[test]
fn debug_module_of_another_build_is_refused() {
    let workbench = built(SOURCE);
    let first = std::fs::read(workbench.path("m/m.debug.wasm")).unwrap();
    workbench.write(&[("m/src/main.c", &SOURCE.replace("= 1", "= 2"))]);
    workbench.tenure_ok(&["build", "m"]);
    std::fs::write(workbench.path("m/m.debug.wasm"), first).unwrap();
    let error = workbench.tenure_error(&["inspect", "m/m.tenure", "--code"]);
    assert!(error.contains("another build"), "{error}");
}

#[test]
fn damaged_debug_module_is_an_error_and_no_panic() {
    let workbench = built(SOURCE);
    let path = workbench.path("m/m.tenure");
    let bytes = std::fs::read(&path).unwrap();
    let package = Package::parse(&bytes).unwrap();
    let debug = std::fs::read(debug_path(&path)).unwrap();
    let site = unreachable_in(&workbench, "fail");
    for at in (8..debug.len()).step_by(97) {
        let mut damaged = debug.clone();
        damaged[at] ^= 0x55;
        for module in [&damaged[..], &debug[..at]] {
            if let Ok(symbols) = Symbols::of(&package, Some(module)) {
                symbols.place(site);
            }
        }
    }
}

#[test]
fn fault_of_a_rust_machine_names_function_and_line() {
    let workbench = Workbench::new();
    workbench.tenure_ok(&["new", "r", "--lang", "rust"]);
    let source = "#![no_std]

tenure::export!(entry);

fn entry() {
    stop();
}

#[inline(never)]
fn stop() {
    core::arch::wasm32::unreachable();
}
";
    workbench.write(&[("r/src/lib.rs", source)]);
    workbench.tenure_ok(&["build", "r"]);
    let fault = workbench.first_fault("r/r.tenure");
    assert_eq!(fault["place"]["function"], "r::stop", "{fault}");
    // The parts of `unreachable` itself come first.
    let line = fault["place"]["lines"].as_array().unwrap().last().unwrap();
    assert_eq!(line["line"], 11, "{fault}");
    assert!(line["file"].as_str().unwrap().ends_with("r/src/lib.rs"), "{fault}");
    let caller = fault["called_from"].as_array().unwrap().last().unwrap();
    assert_eq!(caller["function"], "entry", "{fault}");
    assert!(caller["lines"].as_array().unwrap().iter().any(|line| line["line"] == 6), "{fault}");
}
