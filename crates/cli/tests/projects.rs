//! `tenure new` and `tenure build`, as a user meets them.

mod common;

use common::device::Device;
use common::{Workbench, repository};
use expect_test::expect_file;
use tenure_package::Package;
use tenure_testbed::{skip_without_compiler, skip_without_tool};

fn new_project_builds_and_greets(language: &str) {
    new_project_builds_and_greets_within(language, 16 * 1024);
}

fn new_project_builds_and_greets_within(language: &str, bytes: usize) {
    let workbench = Workbench::new();
    workbench.tenure_ok(&["new", "greeter", "--lang", language]);
    let package = workbench.build("greeter");
    let mut device = Device::start(&package);
    let greeting = |text: &str| Ok(Some(text.to_owned()));
    assert_eq!(device.call("greet", Some("Ada")), greeting("Hello, Ada! You are number 1."));
    assert_eq!(device.call("greet", None), greeting("Hello, world! You are number 2."));
    assert_eq!(device.world().log, ["greeter has started"]);
    assert!(device.memory_bytes() <= bytes, "it stays within the default budget");
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
fn new_nihilo_project_builds_and_greets() {
    new_project_builds_and_greets_within("nihilo", 64 * 1024);
}

#[test]
fn new_cpp_project_builds_and_greets() {
    if std::path::Path::new("/usr/include/wasm32-wasi/stdlib.h").is_file() {
        return new_project_builds_and_greets_within("cpp", 64 * 1024);
    }
    let workbench = Workbench::new();
    workbench.tenure_ok(&["new", "greeter", "--lang", "cpp"]);
    let error = workbench.tenure_error(&["build", "greeter"]);
    assert!(error.contains("apt-get install wasi-libc"), "{error}");
}

/// Debian's releases of LLVM, whose `clang` is taken whatever its number is.
const CLANGS: [u32; 6] = [13, 14, 15, 16, 19, 22];

#[test]
fn new_project_in_c_builds_and_is_tested_with_each_clang_that_is_here() {
    for version in CLANGS {
        let folder = std::path::PathBuf::from(format!("/usr/lib/llvm-{version}/bin"));
        if ["clang", "wasm-ld"].iter().any(|name| !folder.join(name).is_file()) {
            skip_without_compiler(&format!("clang-{version} with lld-{version}"));
            continue;
        }
        for language in ["c", "nihilo"] {
            let workbench = Workbench::new();
            let with = |arguments: &[&str]| {
                let mut command = workbench.command(arguments);
                let output = command.env("PATH", &folder).output().unwrap();
                let error = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{version}: tenure {arguments:?}: {error}");
            };
            with(&["new", "greeter", "--lang", language]);
            with(&["build", "greeter"]);
            with(&["test", "greeter"]);
        }
    }
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

#[test]
fn project_that_finds_no_room_leaves_no_folder_in_the_way_of_the_next() {
    let workbench = Workbench::new();
    let new = workbench.command(&["new", "greeter", "--lang", "c"]);
    let mut command = std::process::Command::new("bash");
    command.args(["-c", "trap '' XFSZ; ulimit -f 4; exec \"$0\" \"$@\""]).arg(new.get_program());
    let output = command.args(new.get_args()).current_dir(workbench.path("")).output().unwrap();
    assert!(!output.status.success(), "the SDK has larger files");
    assert!(!workbench.path("greeter").exists());
    workbench.tenure_ok(&["new", "greeter", "--lang", "c"]);
}

#[test]
fn new_protocol_project_refers_to_the_sources_and_names_itself() {
    let workbench = Workbench::new();
    let said = workbench.tenure_ok(&["new", "--protocol", "elector"]);
    assert!(said.contains("cd elector && cargo run -- sim scenario.toml"), "{said}");
    let read = |file: &str| std::fs::read_to_string(workbench.path(file)).unwrap();
    for file in
        ["elector/Cargo.toml", "elector/src/lib.rs", "elector/scenario.toml", "elector/README.md"]
    {
        assert!(read(file).contains("elector") && !read(file).contains("{{"), "{file}");
    }
    let manifest: toml::Table = toml::from_str(&read("elector/Cargo.toml")).unwrap();
    for name in ["tenure-cli", "tenure-hal", "tenure-mesh", "tenure-protocols"] {
        let path = manifest["dependencies"][name]["path"].as_str().unwrap();
        assert!(std::path::Path::new(path).join("Cargo.toml").is_file(), "{path}");
    }
    let locked = read("elector/Cargo.lock");
    assert!(locked.contains("name = \"tenure-protocols\""));
}

#[test]
fn new_protocol_project_without_sources_says_where_they_are_missing() {
    let workbench = Workbench::new();
    let elsewhere = workbench.path("").display().to_string();
    let error = workbench.tenure_error(&["new", "--protocol", "elector", "--sources", &elsewhere]);
    assert!(error.contains("--sources FOLDER"), "{error}");
    assert!(!workbench.path("elector").exists());
}

#[test]
fn private_function_is_in_the_code_and_not_offered() {
    let workbench = Workbench::new();
    let description = format!("{HEAD}private = [\"on_moisture\"]\n");
    let source = format!("{SOURCE}TENURE_EXPORT(on_moisture) {{}}\n");
    workbench.write(&[("m/tenure.toml", &description), ("m/src/main.c", &source)]);
    let bytes = workbench.build("m");
    let package = Package::parse(&bytes).unwrap();
    assert_eq!(package.manifest().exports, ["run"]);
    let code = package.code(tenure_wire::CodeKind::WebAssembly).unwrap();
    assert!(code.windows(11).any(|name| name == b"on_moisture"), "a subscription finds it");
}

#[test]
fn function_with_parameters_is_said_not_to_be_callable() {
    let source = format!(
        "{SOURCE}__attribute__((export_name(\"add\"))) int add(int a, int b) {{ return a + b; }}\n"
    );
    let workbench = Workbench::new();
    workbench.write(&[("m/tenure.toml", HEAD), ("m/src/main.c", &source)]);
    let said = workbench.tenure_ok(&["build", "m"]);
    assert!(
        said.contains("offers  run\n") && said.contains("exports add too, which can't be called"),
        "{said}"
    );
    let report = workbench.tenure_ok(&["build", "m", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["uncallable"], serde_json::json!(["add"]));
    let error = complaint(&format!("{HEAD}exports = [\"add\"]\n"), &source);
    assert!(error.contains("\"add\", which has parameters or results"), "{error}");
}

/// The complaint of `tenure build` about a C project with this description and source.
fn complaint(description: &str, source: &str) -> String {
    let workbench = Workbench::new();
    workbench.write(&[("m/tenure.toml", description), ("m/src/main.c", source)]);
    workbench.tenure_error(&["build", "m"])
}

const HEAD: &str = "name = \"m\"\nversion = \"1.0.0\"\nlanguage = \"c\"\n";
const SOURCE: &str = "#include <tenure.h>\nTENURE_EXPORT(run) {}\n";

#[test]
fn mistakes_in_the_description_are_named() {
    let mut said = String::new();
    for description in [
        "name = \"M\"\n".to_string(),
        "name = \"m\"\nversion = \"1\"\n".to_string(),
        "name = \"m\"\nversion = \"1.0.0\"\nlanguage = \"go\"\n".to_string(),
        format!("{HEAD}[budget]\nmemory = 3\n"),
        format!("{HEAD}[budget]\nmemory_bytes = -3\n"),
        format!("{HEAD}exports = [\"walk\"]\n"),
        format!("{HEAD}private = [\"walk\"]\n"),
        format!("{HEAD}private = [\"entry\"]\n"),
        format!("{HEAD}exports = [\"run\"]\nprivate = [\"run\"]\n"),
        format!("{HEAD}[budget]\nmemory_bytes = 1024\n"),
        format!("{HEAD}[tree]\na.b = 3.5\n"),
        format!("{HEAD}[tree]\na = [1, 256]\n"),
        format!("{HEAD}[tree]\n\"a..b\" = \"\"\n"),
        format!("{HEAD}[capabilities]\ncalls = [\"a b\"]\n"),
        format!("{HEAD}[budget]\nqueue_length = 0\n"),
        format!("{HEAD}[budget]\nstack_bytes = 1\n"),
        format!("{HEAD}[build]\nstack_bytes = 1\n"),
        format!("{HEAD}[timers]\nwalk = {{ every = \"10s\" }}\n"),
        format!("{HEAD}[timers]\nrun = {{}}\n"),
        format!("{HEAD}[timers]\nrun = {{ every = \"9ms\" }}\n"),
        format!("{HEAD}[timers]\nrun = {{ every = \"10\" }}\n"),
        format!("{HEAD}[timers]\nrun = {{ at = \"24:00\" }}\n"),
        format!("{HEAD}[timers]\nrun = {{ at = \"0 0 31 apr *\" }}\n"),
        format!("{HEAD}[timers]\nrun = {{ every = \"1s\", zone = \"UTC\" }}\n"),
        format!("{HEAD}[timers]\nrun = {{ at = \"6:30\", zone = \"Europe/Berlim\" }}\n"),
        format!("zone = \"Asia/Gaza\"\n{HEAD}[timers]\nrun = {{ at = \"6:30\" }}\n"),
        format!("zone = \"Europe/Berlim\"\n{HEAD}"),
        format!("{HEAD}[capabilities]\npublish = [\"device.x\"]\n"),
    ] {
        let error = complaint(&description, SOURCE);
        assert!(error.starts_with("error: "), "{description}: {error}");
        said += &format!("{}\n\n{}\n\n\n", description.trim_end(), error.trim_end());
    }
    expect_file!["expected/mistakes_in_descriptions.txt"].assert_eq(&said);
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

/// Random formats, numbers and strings, in this library and in the one of the computer that the tests run on.
#[test]
fn c_library_formats_and_reads_as_the_hosts_does() {
    let sdk = repository().join("sdk/c");
    let folder = tempfile::tempdir().unwrap();
    let cc = |arguments: &[&str], source: &str, output: &str| {
        let mut command = std::process::Command::new("cc");
        command.args(["-std=c11", "-D_POSIX_C_SOURCE=200809L", "-O1", "-fno-builtin", "-w"]);
        command.current_dir(folder.path()).args(arguments).arg(sdk.join(source));
        let done = command.args(["-o", output]).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    let (headers, renamed) = (sdk.join("include"), sdk.join("tests/renamed.h"));
    for part in ["format", "string"] {
        let paths = [headers.to_str().unwrap(), renamed.to_str().unwrap()];
        let arguments = ["-c", "-I", paths[0], "-include", paths[1]];
        cc(&arguments, &format!("src/{part}.c"), &format!("{part}.o"));
    }
    cc(&["format.o", "string.o"], "tests/differential.c", "differential");
    let run = std::process::Command::new(folder.path().join("differential")).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stdout));
}

/// A project of these files, with a description that goes on after the head.
fn project(description: &str, files: &[(&str, &str)]) -> Vec<u8> {
    let workbench = Workbench::new();
    let memory = format!("{HEAD}[budget]\nmemory_bytes = 200000\n{description}");
    workbench.write(&[("m/tenure.toml", &memory)]);
    for (path, text) in files {
        workbench.write(&[(&format!("m/{path}"), text)]);
    }
    workbench.build("m")
}

const GLOBALS: &str = r#"
#include <tenure.h>
static int start = atoi("5"), plain = 5;
struct Hello { int count; Hello() : count(atoi("7")) { tenure_info("constructor ran"); } ~Hello() {} };
static Hello hello;
struct Shape { virtual int corners() const = 0; virtual ~Shape() {} };
struct Square : Shape { int corners() const override { return 4; } };
TENURE_EXPORT(count) {
    Shape *shape = new Square();
    char text[64];
    snprintf(text, sizeof text, "%d %d %d %d", ++start, ++plain, ++hello.count, shape->corners());
    delete shape;
    tenure_reply_text(text);
}
"#;

#[test]
fn globals_with_constructors_are_made_once_and_keep_their_values() {
    let mut device = Device::start(&project("", &[("src/main.cpp", GLOBALS)]));
    for expected in ["6 6 8 4", "7 7 9 4", "8 8 10 4"] {
        assert_eq!(device.call("count", None), Ok(Some(expected.into())));
    }
    assert_eq!(device.world().log, ["constructor ran"]);
}

/// Each allocation function of the standard's [new.delete], beside a plain `new` and `delete` of the program's own.
const ALLOCATIONS: &str = r#"
#include <new>
#include <stdlib.h>
#include <tenure.h>
#ifdef OWN
static int taken, given;
void *operator new(size_t size) { taken++; return malloc(size); }
void operator delete(void *memory) noexcept { given++; free(memory); }
#else
static int taken = 7, given = 6;
#endif
struct alignas(64) Wide { char bytes[64]; };
struct Small { int number; ~Small() {} };
static int called;
static void give_up() { called++; std::set_new_handler(nullptr); }
TENURE_EXPORT(run) {
    Small *one = new Small, *many = new Small[3];
    Small *perhaps = new (std::nothrow) Small, *several = new (std::nothrow) Small[2];
    delete one, delete[] many, delete perhaps, delete[] several;
    Wide *wide[] = {new Wide, new Wide[2], new (std::nothrow) Wide, new (std::nothrow) Wide[2]};
    size_t places = 0;
    for (Wide *it : wide) places |= (size_t)it;
    delete wide[0], delete[] wide[1], delete wide[2], delete[] wide[3];
    using std::align_val_t, std::nothrow;
    ::operator delete(::operator new(8, align_val_t(16), nothrow), align_val_t(16), nothrow);
    ::operator delete[](::operator new[](8, align_val_t(16), nothrow), align_val_t(16), nothrow);
    ::operator delete[](::operator new[](8, nothrow), nothrow);
    ::operator delete(::operator new(8), (size_t)8);
    ::operator delete(::operator new(8, align_val_t(2)), align_val_t(2));
    ::operator delete(::operator new(8, align_val_t(32)), (size_t)8, align_val_t(32));
    ::operator delete[](::operator new[](8, align_val_t(32)), (size_t)8, align_val_t(32));
    alignas(Small) char room[sizeof(Small)];
    std::launder(new (room) Small)->~Small();
    bool is_none = new (std::nothrow) char[1 << 24] == nullptr;
    std::set_new_handler(give_up);
    is_none = is_none && new (align_val_t(64), nothrow) char[1 << 24] == nullptr && called == 1;
    char text[64];
    snprintf(text, sizeof text, "%d %d %d %d", places % 64 == 0, is_none, taken, given);
    tenure_reply_text(text);
}
"#;

#[test]
fn each_allocation_function_of_cpp_is_there_and_calls_the_one_that_a_program_brings() {
    for defines in ["", "[build]\ndefines = [\"OWN\"]\n"] {
        let mut device = Device::start(&project(defines, &[("src/main.cpp", ALLOCATIONS)]));
        assert_eq!(device.call("run", None), Ok(Some("1 1 7 6".into())), "{defines}");
    }
}

#[test]
fn constructors_are_no_function_that_a_caller_could_run_again() {
    let bytes = project("", &[("src/main.cpp", GLOBALS)]);
    assert_eq!(Package::parse(&bytes).unwrap().manifest().exports, ["count"]);
}

#[test]
fn sources_in_folders_headers_defines_and_flags_are_taken_as_the_description_says() {
    let description = "[build]\ninclude = [\"headers\"]\ndefines = [\"STEP=3\", \"FAST\"]\nflags = [\"-Werror\"]\n";
    let main = "#include <tenure.h>\n#include <step.h>\n#ifndef FAST\n#error\n#endif\n\
                TENURE_EXPORT(run) { char text[8]; snprintf(text, sizeof text, \"%d\", step()); \
                tenure_reply_text(text); }\n";
    let files = [
        ("src/main.c", main),
        ("src/deep/er/step.c", "#include <step.h>\nint step(void) { return STEP; }\n"),
        ("headers/step.h", "int step(void);\n"),
    ];
    let mut device = Device::start(&project(description, &files));
    assert_eq!(device.call("run", None), Ok(Some("3".into())));
}

#[test]
fn module_that_another_tool_made_is_packed_as_it_is() {
    let workbench = Workbench::new();
    let text = "(module (import \"tenure\" \"reply\" (func $reply (param i32 i32) (result i32))) \
                (memory (export \"memory\") 1) (data (i32.const 8) \"hi\") (global $made (mut i32) (i32.const 0)) \
                (func (export \"_initialize\") (global.set $made (i32.const 2))) \
                (func (export \"greet\") (drop (call $reply (i32.const 8) (global.get $made)))))";
    let description = "name = \"m\"\nversion = \"1.0.0\"\nmodule = \"made.wasm\"\n[budget]\nmemory_bytes = 65536\n";
    workbench.write(&[("m/tenure.toml", description)]);
    let error = workbench.tenure_error(&["build", "m"]);
    assert!(error.contains("there is no m/made.wasm"), "{error}");
    std::fs::write(workbench.path("m/made.wasm"), wat::parse_str(text).unwrap()).unwrap();
    let mut device = Device::start(&workbench.build("m"));
    assert_eq!(device.call("greet", None), Ok(Some("hi".into())));
    workbench.write(&[("m/tenure.toml", &format!("language = \"c\"\n{description}"))]);
    let error = workbench.tenure_error(&["build", "m"]);
    assert!(error.contains("either `language`") && error.contains("or `module`"), "{error}");
}

/// All that a loader runs is run once, in its order, before the first call, and no caller can run it again: the start
/// function, then `_initialize` (WASI's "Application ABI"), which stands for `__wasm_call_ctors`.
#[test]
fn whatever_starts_a_module_runs_once_and_in_order() {
    let module = |exports: &str, start: &str| {
        wat::parse_str(format!(
            "(module (import \"tenure\" \"reply\" (func $reply (param i32 i32) (result i32))) \
             (memory (export \"memory\") 1) (global $length (mut i32) (i32.const 0)) \
             (func $note (param i32) (i32.store8 offset=16 (global.get $length) (local.get 0)) \
             (global.set $length (i32.add (global.get $length) (i32.const 1)))) \
             (func $start (call $note (i32.const 0x73))) (func $init (call $note (i32.const 0x69))) \
             (func $ctors (call $note (i32.const 0x63))) (func $nothing) \
             (func (export \"show\") (drop (call $reply (i32.const 16) (global.get $length)))) \
             {exports} {start} (@custom \"name\" \"\\ff\\ff\\ff\"))"
        ))
        .unwrap()
    };
    let export = |name: &str, function: &str| format!("(export \"{name}\" (func {function}))");
    let (init, ctors) = (export("_initialize", "$init"), export("__wasm_call_ctors", "$ctors"));
    let start = "(start $start)";
    for (exports, start, order) in [
        (String::new(), start, "s"),
        (init.clone(), "", "i"),
        (ctors.clone(), "", "c"),
        (init.clone(), start, "si"),
        (ctors.clone(), start, "sc"),
        (ctors.clone() + &init, "", "i"),
        (init.clone() + &ctors, start, "si"),
        (init.clone(), "(start $init)", "i"),
        (export("_initialize", "$nothing") + &ctors, start, "s"),
        (export("_initialize", "$nothing"), "", ""),
    ] {
        let workbench = Workbench::new();
        let description = "name = \"m\"\nversion = \"1.0.0\"\nmodule = \"made.wasm\"\n[budget]\nmemory_bytes = 65536\n";
        workbench.write(&[("m/tenure.toml", description)]);
        std::fs::write(workbench.path("m/made.wasm"), module(&exports, start)).unwrap();
        let bytes = workbench.build("m");
        assert_eq!(Package::parse(&bytes).unwrap().manifest().exports, ["show"], "{exports}");
        let mut device = Device::start(&bytes);
        for _ in 0..2 {
            assert_eq!(device.call("show", None), Ok(Some(order.into())), "{exports} {start}");
        }
    }
    let workbench = Workbench::new();
    let description = "name = \"m\"\nversion = \"1.0.0\"\nmodule = \"made.wasm\"\n";
    workbench.write(&[("m/tenure.toml", description)]);
    let odd = module(&export("_initialize", "$note"), "");
    std::fs::write(workbench.path("m/made.wasm"), odd).unwrap();
    let error = workbench.tenure_error(&["build", "m"]);
    assert!(error.contains("_initialize with parameters or results"), "{error}");
}

/// A module in the manner of AssemblyScript: texts are UTF-16, with their length before them.
fn module_that_aborts(message: &str, base: u32, memory: &str) -> Vec<u8> {
    let text = |text: &str| -> String {
        let units: Vec<u16> = text.encode_utf16().collect();
        let length = (units.len() as u32 * 2).to_le_bytes();
        let bytes = length.into_iter().chain(units.into_iter().flat_map(u16::to_le_bytes));
        bytes.map(|byte| format!("\\{byte:02x}")).collect()
    };
    let (file, message_at, file_at) = (text("assembly/lamp.ts"), base + 4, base + 260);
    let message_at = if message.is_empty() { 0 } else { message_at };
    wat::parse_str(format!(
        "(module (type $other (func (param i32) (result i32))) \
         (import \"tenure\" \"reply\" (func $reply (param i32 i32) (result i32))) \
         (import \"env\" \"abort\" (func $abort (param i32 i32 i32 i32))) \
         (import \"tenure\" \"uptime_us\" (func $uptime (result i64))) \
         (memory (export \"memory\") {memory}) (data (i32.const {base}) \"{}\") \
         (data (i32.const {}) \"{file}\") \
         (func $check (param i32) (if (local.get 0) (then \
         (call $abort (i32.const {message_at}) (i32.const {file_at}) (i32.const 1205) (i32.const 7)) unreachable))) \
         (func (export \"_initialize\") (call $check (i32.const 0)) (drop (call $uptime))) (func $start) (start $start) \
         (func (export \"good\") (call $check (i32.const 0)) (drop (call $reply (i32.const 4) (i32.const 0)))) \
         (func (export \"bad\") (call $check (i32.const 1))))",
        text(message),
        base + 256
    ))
    .unwrap()
}

#[test]
fn abort_of_assembly_script_is_a_fault_with_message_file_and_line() {
    let long = "x".repeat(100);
    for (message, base, told, memory) in [
        ("Index out of range", 2048, "Index out of range", "1"),
        ("caf\u{e9}\n", 2048, "caf??", "1"),
        ("", 2048, "abort", "1"),
        (&*long, 2048, &*long, "1"),
        ("low", 8, "low", "1"),
        ("low", 8, "low", "4096 (pagesize 1)"),
    ] {
        let workbench = Workbench::new();
        let description = "name = \"m\"\nversion = \"1.0.0\"\nmodule = \"made.wasm\"\n[budget]\nmemory_bytes = 65536\n";
        workbench.write(&[("m/tenure.toml", description)]);
        std::fs::write(workbench.path("m/made.wasm"), module_that_aborts(message, base, memory))
            .unwrap();
        let mut device = Device::start(&workbench.build("m"));
        assert_eq!(device.call("good", None), Ok(Some(String::new())));
        let error = device.call("bad", None).unwrap_err();
        assert!(error.contains(&format!("{told} in assembly/lamp.ts:1205:7")), "{error}");
    }
}

#[test]
fn imports_of_other_systems_are_refused_with_the_way_out() {
    for (import, words) in [
        ("\"wasi_unstable\" \"fd_write\" (func)", "built for WASI as it was before preview 1"),
        ("\"env\" \"abort\" (func (param i32))", "its type isn't that of AssemblyScript's"),
        ("\"env\" \"seed\" (func (result f64))", "Math.random"),
        ("\"env\" \"console.log\" (func (param i32))", "writes it to the log"),
        ("\"env\" \"invoke_vii\" (func)", "build without exceptions"),
        ("\"env\" \"draw\" (func)", "stands in tenure.h"),
    ] {
        let workbench = Workbench::new();
        let description = "name = \"m\"\nversion = \"1.0.0\"\nmodule = \"made.wasm\"\n";
        workbench.write(&[("m/tenure.toml", description)]);
        let module = wat::parse_str(format!("(module (import {import}))")).unwrap();
        std::fs::write(workbench.path("m/made.wasm"), module).unwrap();
        let error = workbench.tenure_error(&["build", "m"]);
        assert!(error.contains(words) && error.contains("which no device has"), "{error}");
    }
}

#[test]
fn module_that_is_too_large_is_refused_by_function_figure_and_limit() {
    let workbench = Workbench::new();
    let description = "name = \"m\"\nversion = \"1.0.0\"\nmodule = \"made.wasm\"\n";
    workbench.write(&[("m/tenure.toml", description)]);
    let deep = "(block ".repeat(5000) + &")".repeat(5000);
    let module = wat::parse_str(format!("(module (func (export \"run\")) (func $parse {deep}))"));
    std::fs::write(workbench.path("m/made.wasm"), module.unwrap()).unwrap();
    let error = workbench.tenure_error(&["build", "m"]);
    let expected = "devices don't run this code: `parse` nests its blocks 5,001 deep, and a device takes 4,096; ";
    assert!(error.contains(expected), "{error}");
    let module = wat::parse_str("(module (memory 20) (func (export \"run\")))");
    std::fs::write(workbench.path("m/made.wasm"), module.unwrap()).unwrap();
    let error = workbench.tenure_error(&["build", "m"]);
    assert!(
        error.contains("starts with 1310720 bytes") && error.contains("Zig: --stack"),
        "{error}"
    );
}

#[test]
fn heap_beside_the_standard_library_says_why_it_refuses() {
    if !std::path::Path::new("/usr/include/wasm32-wasi/stdlib.h").is_file() {
        return skip_without_tool("wasi-libc");
    }
    let source = "#include <errno.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <tenure.h>\n\
                  TENURE_EXPORT(run) { void *block = NULL; errno = 0; void *(*volatile take)(size_t) = malloc, *none = take(0x7fff1000); \
                  int of_malloc = errno, odd = posix_memalign(&block, 3, 8), small = posix_memalign(&block, 2, 8); \
                  int large = posix_memalign(&block, 64, 0x7fff0000), good = posix_memalign(&block, 64, 8); \
                  char text[64]; snprintf(text, sizeof text, \"%d %d %d %d %d %d\", none == NULL && of_malloc == ENOMEM, \
                  odd == EINVAL, small == EINVAL, large == ENOMEM, good, (int)((size_t)block % 64)); \
                  tenure_reply_text(text); }\n";
    let bytes = project("[build]\nlibrary = \"standard\"\n", &[("src/main.c", source)]);
    assert_eq!(Device::start(&bytes).call("run", None), Ok(Some("1 1 1 1 0 0".into())));
}

#[test]
fn headers_of_the_computer_are_not_those_of_a_machine() {
    if !std::path::Path::new("/usr/include/wasm32-wasi/stdlib.h").is_file() {
        return skip_without_tool("wasi-libc");
    }
    let source = "#include <sys/epoll.h>\n#include <tenure.h>\nTENURE_EXPORT(run) {}\n";
    for library in ["small", "standard"] {
        let error = complaint(&format!("{HEAD}[build]\nlibrary = \"{library}\"\n"), source);
        assert!(error.contains("'sys/epoll.h' file not found"), "{error}");
    }
}

const STANDARD: &str = r#"
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>
#include <tenure.h>
struct Shape { virtual double area() const = 0; virtual ~Shape() = default; };
struct Circle : Shape { double radius; Circle(double r) : radius(r) {} double area() const override { return M_PI * radius * radius; } };
static std::vector<std::string> names = {"bob", "ada"};
static std::map<std::string, int> counts;
TENURE_EXPORT(run) {
    std::unordered_map<std::string, int> hashed;
    for (const auto &name : names) { counts[name]++; hashed[name] = counts[name]; }
    std::sort(names.begin(), names.end());
    std::string all;
    for (const auto &name : names) all += name + "=" + std::to_string(hashed[name]) + " ";
    std::unique_ptr<Shape> one = std::make_unique<Circle>(2);
    auto other = std::make_shared<Circle>(1);
    char text[64];
    snprintf(text, sizeof text, "%.3f %.2e %g", one->area(), other->area(), strtod("0.25", nullptr));
    int whole; float part;
    sscanf("12 3.5", "%d %f", &whole, &part);
    std::function<int(int)> add = [&](int number) { return number + whole; };
    struct alignas(64) Wide { char bytes[64]; };
    auto wide = std::make_unique<Wide>();
    all += std::string(text) + " " + std::to_string(add(1)) + (reinterpret_cast<uintptr_t>(wide.get()) % 64 ? " crooked" : " straight");
    printf("to the log, %s\n", "formatted");
    tenure_reply_text(all.c_str());
}
"#;

const PLAIN_C: &str = r#"
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>
#include <tenure.h>
static int by_size(const void *one, const void *other) { return *(const int *)one - *(const int *)other; }
TENURE_EXPORT(plain) {
    int numbers[] = {3, 1, 2};
    qsort(numbers, 3, sizeof *numbers, by_size);
    char words[] = "a,b;c";
    int count = 0;
    for (char *word = strtok(words, ",;"); word; word = strtok(NULL, ",;")) count++;
    srand(7);
    char text[96];
    snprintf(text, sizeof text, "%d%d%d %d %c %" PRIu64 " %.1f %d", numbers[0], numbers[1], numbers[2], count, toupper('x'), UINT64_C(18446744073709551615), sqrt(2.25), time(NULL) == -1 && rand() >= 0);
    tenure_reply_text(text);
}
"#;

/// Streams bring locales along, and functions for the exit, which ask the library for memory by names of its own.
#[test]
fn streams_of_cpp_take_their_memory_from_the_one_heap() {
    if !std::path::Path::new("/usr/include/wasm32-wasi/c++/v1/vector").is_file() {
        return skip_without_tool("wasi-libc and libc++-dev-wasm32");
    }
    let source = "#include <iostream>\n#include <sstream>\n#include <tenure.h>\n\
                  extern \"C\" size_t malloc_usable_size(void *);\n\
                  TENURE_EXPORT(run) { std::ostringstream out; out << 5 << ' ' << 2.5; \
                  std::cout << \"hello \" << 7 << std::endl; void *block = malloc(20); \
                  if (malloc_usable_size(block) >= 20) tenure_reply_text(out.str().c_str()); free(block); }\n";
    let memory =
        "name = \"m\"\nversion = \"1.0.0\"\nlanguage = \"c\"\n[budget]\nmemory_bytes = 600000\n";
    let workbench = Workbench::new();
    let description = format!("{memory}[build]\nlibrary = \"standard\"\n");
    workbench.write(&[("m/tenure.toml", &description), ("m/src/main.cpp", source)]);
    let mut device = Device::start(&workbench.build("m"));
    assert_eq!(device.call("run", None), Ok(Some("5 2.5".into())));
    assert_eq!(device.world().log, ["hello 7"]);
}

#[test]
fn c_and_cpp_with_the_standard_library_do_what_they_do_elsewhere() {
    if !std::path::Path::new("/usr/include/wasm32-wasi/c++/v1/vector").is_file() {
        return skip_without_tool("wasi-libc and libc++-dev-wasm32");
    }
    let description = "[build]\nlibrary = \"standard\"\n";
    let files = [("src/main.cpp", STANDARD), ("src/plain.c", PLAIN_C)];
    let bytes = project(description, &files);
    let mut device = Device::start(&bytes);
    let expected = "ada=1 bob=1 12.566 3.14e+00 0.25 13 straight";
    assert_eq!(device.call("run", None), Ok(Some(expected.into())));
    let again = expected.replace("=1", "=2");
    assert_eq!(device.call("run", None), Ok(Some(again)), "globals keep what they hold");
    assert_eq!(device.world().log, ["to the log, formatted", "to the log, formatted"]);
    let plain = device.call("plain", None);
    assert_eq!(plain, Ok(Some("123 3 X 18446744073709551615 1.5 1".into())));
}

#[test]
fn standard_library_that_is_not_used_takes_no_room() {
    let code_bytes = |description: &str| {
        let package = project(description, &[("src/main.c", SOURCE)]);
        Package::parse(&package).unwrap().code_bytes()
    };
    if !std::path::Path::new("/usr/include/wasm32-wasi/stdlib.h").is_file() {
        skip_without_tool("wasi-libc");
    } else {
        let (small, standard) = (code_bytes(""), code_bytes("[build]\nlibrary = \"standard\"\n"));
        assert!(standard <= small + 64, "{standard} bytes, {small} without it");
    }
}

#[test]
fn rust_crate_with_the_standard_library_has_a_heap_that_grows() {
    let workbench = Workbench::new();
    let source = "#[unsafe(no_mangle)]\npub extern \"C\" fn run() {\n    \
                  let lists: Vec<Vec<u8>> = (0..50).map(|number| vec![number; 1000]).collect();\n    \
                  assert_eq!(std::hint::black_box(lists)[49][999], 49);\n}\n";
    workbench.write(&[
        (
            "m/tenure.toml",
            "name = \"m\"\nversion = \"1.0.0\"\nlanguage = \"rust\"\n[budget]\nmemory_bytes = 262144\n",
        ),
        (
            "m/Cargo.toml",
            "[package]\nname = \"m\"\nversion = \"1.0.0\"\nedition = \"2024\"\n[lib]\n[workspace]\n",
        ),
        ("m/src/lib.rs", source),
    ]);
    let mut device = Device::start(&workbench.build("m"));
    assert_eq!(device.call("run", None), Ok(None));
}
