//! Machines in Zig and AssemblyScript, by the compilers that `tenure toolchain` installs; and that command.

mod common;

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use common::device::Device;
use common::{Workbench, zig};

fn new_project_builds_greets_and_is_tested(language: &str, bytes: usize) {
    let workbench = Workbench::new();
    if !workbench.has_language(language) {
        return;
    }
    workbench.tenure_ok(&["new", "greeter", "--lang", language]);
    let mut device = Device::start(&workbench.build("greeter"));
    let greeting = |text: &str| Ok(Some(text.to_owned()));
    assert_eq!(device.call("greet", Some("Ada")), greeting("Hello, Ada! You are number 1."));
    assert_eq!(device.call("greet", None), greeting("Hello, world! You are number 2."));
    assert_eq!(device.world().log, ["greeter has started"]);
    assert!(device.memory_bytes() <= bytes, "it stays within its budget");
    let report = workbench.tenure_ok(&["test", "greeter"]);
    assert!(report.contains("4 of 4 tests passed"), "{report}");
}

#[test]
fn new_zig_project_builds_greets_and_is_tested() {
    new_project_builds_greets_and_is_tested("zig", 16 * 1024);
}

#[test]
fn new_assembly_script_project_builds_greets_and_is_tested() {
    new_project_builds_greets_and_is_tested("assemblyscript", 16 * 1024);
}

#[test]
fn new_java_script_project_builds_greets_and_is_tested() {
    new_project_builds_greets_and_is_tested("javascript", 32 * 1024);
}

#[test]
fn new_lua_project_builds_greets_and_is_tested() {
    new_project_builds_greets_and_is_tested("lua", 48 * 1024);
}

const ZIG: &str = r#"const std = @import("std");
const tenure = @import("tenure");
pub const panic = tenure.panic;
comptime { tenure.exports(.{ .entry = entry, .all = all, .wrong = wrong, .none = none, .grow = grow, .stop = stop }); }
var wanted: u32 = 1;
fn entry() void {
    // The pretended device has neither events nor timers.
    tenure.events.subscribe("device.temperature", .{ .policy = .latest_only, .handler = "all" }) catch |failure| {
        tenure.info("{s}", .{tenure.errorText(failure)});
    };
}
fn all(arena: std.mem.Allocator) ![]const u8 {
    try tenure.tree.set("a.one", "1");
    try tenure.tree.setText("a.two", "22");
    var names = try tenure.tree.list(arena, "a");
    var text: []const u8 = "";
    while (names.next()) |name| text = try std.fmt.allocPrint(arena, "{s}{s} ", .{ text, name });
    const gone = try tenure.tree.delete("a");
    const told = try tenure.call(arena, "friend", "tell", "me") orelse "null";
    const nothing = try tenure.call(arena, "friend", "nothing", null) orelse "null";
    const absent = if (tenure.call(arena, "nobody", "x", "")) |_| "there" else |failure| @errorName(failure);
    return std.fmt.allocPrint(arena, "{s}{d} {s} {s} {s}", .{ text, gone, told, nothing, absent });
}
fn wrong() !void {
    return tenure.Error.Invalid;
}
fn none() ?[]const u8 {
    return null;
}
fn grow(arena: std.mem.Allocator) ![]const u8 {
    var lengths: u64 = 0;
    var seed: u32 = 7;
    var blocks: [40][]u8 = @splat(&.{});
    for (0..4000) |_| {
        seed = seed *% 1664525 +% 1013904223;
        const block = &blocks[(seed >> 8) % blocks.len];
        for (block.*) |byte| if (byte != @as(u8, @truncate(block.len))) return error.Overwritten;
        tenure.allocator.free(block.*);
        block.* = try tenure.allocator.alloc(u8, (seed >> 16) % 600);
        @memset(block.*, @truncate(block.len));
        lengths += block.len;
    }
    for (blocks) |block| tenure.allocator.free(block);
    const wide = try tenure.allocator.alignedAlloc(u8, .@"64", 100);
    defer tenure.allocator.free(wide);
    return std.fmt.allocPrint(arena, "{d} {d}", .{ lengths, @intFromPtr(wide.ptr) % 64 });
}
fn stop() void {
    const pointer: *volatile u32 = &wanted;
    if (pointer.* == 1) @trap();
}
"#;

const ASSEMBLY_SCRIPT: &str = r#"import { call, errorText, events, fail, log, Policy, reply, tree } from "tenure";

let wanted: i32 = 1;

export function entry(): void {
  // The pretended device has neither events nor timers.
  const status = events.subscribe("device.temperature", "all", Policy.LatestOnly);
  log.info(errorText(status));
}

export function all(): void {
  tree.setBytes("a.one", String.UTF8.encode("1"));
  tree.set("a.two", "22");
  const names = tree.list("a").join(" ");
  const gone = tree.remove("a");
  const told = call("friend", "tell", "me").value;
  const nothing = call("friend", "nothing").value;
  const absent = call("nobody", "x", "").error;
  reply(`${names} ${gone} ${told === null ? "null" : told} ${nothing === null ? "null" : nothing} ${errorText(absent)}`);
}

export function wrong(): void {
  fail("Invalid");
}

export function none(): void {}

export function say(): void {
  console.log("logged");
  console.warn("warned");
  console.assert(wanted == 2, "two");
  trace("traced", 2, 1.5, 2);
}

export function grow(): void {
  const blocks = new Map<i32, Uint8Array>();
  let lengths: u64 = 0;
  let seed: u32 = 7;
  for (let round = 0; round < 4000; round++) {
    seed = seed * 1664525 + 1013904223;
    const length = <i32>((seed >> 16) % 600);
    const block = new Uint8Array(length);
    blocks.set((seed >> 8) % 40, block.fill(<u8>length));
    lengths += length;
  }
  const keys = blocks.keys();
  for (let at = 0; at < keys.length; at++) {
    const block = blocks.get(keys[at]);
    for (let byte = 0; byte < block.length; byte++) assert(block[byte] == <u8>block.length);
  }
  reply(`${lengths} ${Math.random() < 1 ? 0 : 1}`);
}

export function stop(): void {
  const odd = [1, 2, 3];
  if (odd.length > 7) wanted = odd[wanted];
  if (wanted == 1) unreachable();
}
"#;

fn project(workbench: &Workbench, language: &str, file: &str, source: &str) {
    let description = format!(
        "name = \"m\"\nversion = \"1.0.0\"\nlanguage = \"{language}\"\n[budget]\nmemory_bytes = 262144\n\
         [capabilities]\ncalls = [\"friend\", \"nobody\"]\nsubscribe = [\"device.temperature\"]\n"
    );
    workbench.write(&[("m/tenure.toml", &description), (&format!("m/{file}"), source)]);
}

/// Checks what both SDKs do, in calls of a pretended device; the fault of `stop` is in this line of the file.
fn does_what_machines_do(language: &str, file: &str, source: &str, absent: &str) {
    let workbench = Workbench::new();
    if !workbench.has_language(language) {
        return;
    }
    project(&workbench, language, file, source);
    let package = workbench.build("m");
    let mut device = Device::with(&package, |world| {
        let of = |function: &str| ("friend".to_owned(), function.to_owned());
        world.callees.insert(of("tell"), Ok(Some(b"told".to_vec())));
        world.callees.insert(of("nothing"), Ok(None));
    });
    assert_eq!(device.world().log, ["denied"]);
    let text = format!("one two 2 told null {absent}");
    assert_eq!(device.call("all", None), Ok(Some(text)));
    assert_eq!(device.call("none", None), Ok(None));
    assert!(device.call("wrong", None).unwrap_err().contains("Invalid"));
    let lengths = device.call("grow", None).unwrap().unwrap();
    assert_eq!(lengths, "1178832 0");
    assert!(device.memory_bytes() <= 256 * 1024);
    assert!(device.call("stop", None).is_err());
    let line = 1 + source
        .lines()
        .position(|it| it.contains("trap()") || it.contains("unreachable()"))
        .unwrap();
    let package = std::fs::canonicalize(workbench.path("m.tenure")).unwrap();
    let place = place_of_trap(&workbench, package.to_str().unwrap());
    assert!(place.contains(&format!("{file}:{line})")), "{place}");
}

/// Where the only `unreachable` of the function `stop` is, as `tenure inspect` says it.
fn place_of_trap(workbench: &Workbench, package: &str) -> String {
    let report = workbench.tenure_ok(&["inspect", package, "--code", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let functions = report["functions"].as_array().unwrap();
    let named = |it: &&serde_json::Value| it["name"].as_str().is_some_and(|name| name == "stop");
    let function = functions.iter().find(named).unwrap();
    let code = function["code"].as_array().unwrap();
    let is_trap =
        |it: &&serde_json::Value| it["instruction"].as_str().unwrap().starts_with("unreachable");
    let trap = code.iter().rfind(is_trap).unwrap();
    let at = format!("{}:{}", function["index"], trap["offset"]);
    workbench.tenure_ok(&["inspect", package, "--at", &at])
}

#[test]
fn zig_machine_does_what_machines_do_and_its_fault_has_a_line() {
    does_what_machines_do("zig", "src/main.zig", ZIG, "NotFound");
}

#[test]
fn assembly_script_machine_does_what_machines_do_and_its_fault_has_a_line() {
    does_what_machines_do("assemblyscript", "assembly/index.ts", ASSEMBLY_SCRIPT, "not found");
}

#[test]
fn assembly_script_machine_lives_in_less_than_a_page_and_its_aborts_and_faults_have_lines() {
    let workbench = Workbench::new();
    if !workbench.has_language("assemblyscript") {
        return;
    }
    let source = "import { parameter, reply } from \"tenure\";\nlet wanted: i32 = 1;\n\
                  export function greet(): void { reply(\"Hello, \" + parameter()!); }\n\
                  export function wrong(): void {\n  assert(wanted == 2, \"not two\");\n}\n\
                  export function stop(): void {\n  if (wanted == 1) unreachable();\n}\n";
    project(&workbench, "assemblyscript", "assembly/index.ts", source);
    let wide = std::fs::read_to_string(workbench.path("m/tenure.toml")).unwrap();
    let asking = |bytes: u32| wide.replace("= 262144", &format!("= {bytes}"));
    workbench.write(&[("m/tenure.toml", &asking(7_000))]);
    let error = workbench.tenure_error(&["build", "m"]);
    assert!(
        error.contains("take ") && error.contains("asks for 6992; set memory_bytes"),
        "{error}"
    );
    workbench.write(&[("m/tenure.toml", &asking(12_000))]);
    let mut device = Device::start(&workbench.build("m"));
    for round in 0..2_000 {
        let whom = format!("number {round}");
        assert_eq!(device.call("greet", Some(&whom)), Ok(Some(format!("Hello, {whom}"))));
    }
    assert_eq!(device.memory_bytes(), 12_000);
    let error = device.call("wrong", None).unwrap_err();
    assert!(error.contains("not two in assembly/index.ts:5:3"), "{error}");
    let package = workbench.path("m.tenure");
    let place = place_of_trap(&workbench, package.to_str().unwrap());
    assert!(place.contains("assembly/index.ts:8)"), "{place}");
}

#[test]
fn zig_panic_has_its_message_in_the_log_on_the_usual_stack() {
    let workbench = Workbench::new();
    if !workbench.has_language("zig") {
        return;
    }
    let source = "const tenure = @import(\"tenure\");\npub const panic = tenure.panic;\n\
                  comptime { tenure.exports(.{ .stop = stop }); }\nvar index: usize = 9;\n\
                  fn stop() void {\n    const at: *volatile usize = &index;\n\
                  const three = [_]u8{ 1, 2, 3 };\n    tenure.info(\"{d}\", .{three[at.*]});\n}\n";
    project(&workbench, "zig", "src/main.zig", source);
    let description = std::fs::read_to_string(workbench.path("m/tenure.toml")).unwrap();
    let flags = format!("{description}[build]\nflags = [\"-OReleaseSafe\"]\n");
    workbench.write(&[("m/tenure.toml", &flags)]);
    let mut device = Device::start(&workbench.build("m"));
    let error = device.call("stop", None).unwrap_err();
    assert!(error.contains("index out of bounds: index 9, len 3"), "{error}");
}

#[test]
fn what_assembly_script_says_to_a_console_is_in_the_log() {
    let workbench = Workbench::new();
    if !workbench.has_language("assemblyscript") {
        return;
    }
    project(&workbench, "assemblyscript", "assembly/index.ts", ASSEMBLY_SCRIPT);
    let mut device = Device::start(&workbench.build("m"));
    assert_eq!(device.call("say", None), Ok(None));
    assert_eq!(
        device.world().log,
        ["denied", "logged", "warned", "Assertion failed: two", "traced 1.5 2.0"]
    );
}

#[test]
fn zig_module_with_a_stack_of_16_mebibytes_runs_where_its_budget_has_room() {
    let workbench = Workbench::new();
    if !workbench.has_language("zig") {
        return;
    }
    let source = "extern \"tenure\" fn reply(at: [*]const u8, length: usize) i32;\n\
                  export fn run() void { _ = reply(\"here\", 4); }\n";
    let description = |memory: u32| {
        format!(
            "name = \"m\"\nversion = \"1.0.0\"\nmodule = \"m.wasm\"\n[budget]\nmemory_bytes = {memory}\n"
        )
    };
    workbench.write(&[("m/tenure.toml", &description(65536)), ("m/m.zig", source)]);
    let mut zig = zig().unwrap();
    zig.args(["build-exe", "m.zig", "-target", "wasm32-freestanding", "-fno-entry", "-rdynamic"]);
    zig.args(["-OReleaseSmall", "--stack", "16777216", "--cache-dir", "cache"])
        .current_dir(workbench.path("m"));
    assert!(zig.status().unwrap().success());
    let error = workbench.tenure_error(&["build", "m"]);
    assert!(
        error.contains("starts with 16842752 bytes") && error.contains("Zig: --stack"),
        "{error}"
    );
    workbench.write(&[("m/tenure.toml", &description(16_842_752))]);
    let said = workbench.tenure_ok(&["build", "m"]);
    assert!(
        said.contains("boards  refuse it, and larger devices take it: the module begins"),
        "{said}"
    );
    workbench.write(&[(
        "m/tests.toml",
        "[[test]]\nname = \"it runs\"\ncall = \"run\"\nexpect = \"here\"\n",
    )]);
    let report = workbench.tenure_ok(&["test", "m"]);
    assert!(report.contains("1 of 1 test passed"), "{report}");
}

/// A client of a registry that writes down its words, and the file that is asked for.
fn client(name: &str, file: &str) -> String {
    format!(
        "#!/bin/sh\necho {name} \"$@\" >> \"$SAID\"\n\
         for word; do test \"$last\" = --prefix -o \"$last\" = --target && folder=$word; last=$word; done\n\
         cat \"$folder/package-lock.json\" >> \"$SAID\" 2> /dev/null\n\
         {{ mkdir -p \"$folder/$(dirname {file})\" && echo tool > \"$folder/{file}\"; }}\n"
    )
}

#[test]
fn toolchains_of_registries_are_pinned_and_lie_in_a_folder_of_tenures_own() {
    let workbench = Workbench::new();
    let asc = "node_modules/assemblyscript/bin/asc.js";
    workbench.write(&[
        ("bin/npm", &client("npm", asc)),
        ("bin/python3", &client("python3", "ziglang/zig")),
        ("bin/cargo", "#!/bin/sh\necho cargo \"$@\" >> \"$SAID\"\ncat Cargo.lock >> \"$SAID\"\n"),
        ("broken/npm", "#!/bin/sh\nexit 3\n"),
    ]);
    for program in ["bin/npm", "bin/python3", "bin/cargo", "broken/npm"] {
        let all = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(workbench.path(program), all).unwrap();
    }
    let said = workbench.path("said");
    let install = |folder: &str, language: &str| {
        let path = format!("{}:/usr/bin:/bin", workbench.path(folder).display());
        let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
        command.args(["toolchain", "install", language]).env("PATH", path).env("SAID", &said);
        command.env("TENURE_TOOLCHAINS", workbench.path("toolchains")).output().unwrap()
    };
    let failed = install("broken", "assemblyscript");
    let error = String::from_utf8(failed.stderr).unwrap();
    assert!(!failed.status.success() && error.contains("apt-get install nodejs npm"), "{error}");
    assert_eq!(std::fs::read_dir(workbench.path("toolchains")).unwrap().count(), 0);
    for (language, place, words) in [
        ("assemblyscript", format!("assemblyscript-0.28.20/{asc}"), "assemblyscript@0.28.20"),
        ("zig", "zig-0.17.1/ziglang/zig".to_owned(), "ziglang==0.17.1"),
    ] {
        for _ in 0..2 {
            let output = install("bin", language);
            let text = String::from_utf8(output.stdout).unwrap();
            assert!(output.status.success() && text.contains(&place), "{text}");
        }
        assert!(workbench.path("toolchains").join(&place).is_file());
        let said = std::fs::read_to_string(&said).unwrap();
        assert_eq!(said.lines().filter(|line| line.contains(words)).count(), 1, "{said}");
        // What lost a part is fetched again, as a whole.
        std::fs::remove_file(workbench.path("toolchains").join(&place)).unwrap();
        let output = install("bin", language);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{error}");
        assert!(workbench.path("toolchains").join(&place).is_file());
    }
    // JavaScript's come by their digests, and what isn't whole isn't kept.
    let failed = install("bin", "javascript");
    let error = String::from_utf8(failed.stderr).unwrap();
    assert!(!failed.status.success() && error.contains("typescript.js was fetched"), "{error}");
    let said = std::fs::read_to_string(&said).unwrap();
    for words in [
        "cargo vendor --quiet --locked",
        "9069c14e079e0e1b0fb1155d98fa18ca11a7ee5529734885fb4a3c8c3fe282b2",
        "npm ci",
        "sha512-jl1vZzPDinLr9eUt3J/t7V6FgNEw9QjvBPdysz9KfQDD41fQrC2Y4vKQdiaUpFT4bXlb1RHhLpp8wtm6M5TgSw==",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    // So does Lua's.
    let failed = install("bin", "lua");
    let error = String::from_utf8(failed.stderr).unwrap();
    assert!(!failed.status.success() && error.contains("lua.h was fetched"), "{error}");
    let digest = "41d22b201501a536c0f5a96c7589b268b559172b20fb029064434e38ddcecb1f";
    assert!(std::fs::read_to_string(workbench.path("said")).unwrap().contains(digest));
    assert_eq!(std::fs::read_dir(workbench.path("toolchains")).unwrap().count(), 2);
}

#[test]
fn toolchains_for_all_of_a_computer_are_installed_only_if_that_is_said() {
    let workbench = Workbench::new();
    for (language, words) in [
        ("c", "apt-get install -y --no-remove clang-22 lld-22"),
        ("cpp", "libc++-22-dev-wasm32"),
        ("rust", "rustup target add wasm32-unknown-unknown wasm32-wasip1"),
    ] {
        let error = workbench.tenure_error(&["toolchain", "install", language]);
        assert!(error.contains("add --system, or run: ") && error.contains(words), "{error}");
    }
    let listed = workbench.languages();
    let names: Vec<&str> = listed.keys().map(String::as_str).collect();
    assert_eq!(names, ["assemblyscript", "c", "cpp", "javascript", "lua", "rust", "tinygo", "zig"]);
    if listed["tinygo"]["is_there"] == false {
        let error = workbench.tenure_error(&["toolchain", "install", "tinygo"]);
        assert!(error.contains("get it from tinygo.org"), "{error}");
    }
}
