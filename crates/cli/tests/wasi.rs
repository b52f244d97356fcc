//! Programs that were made for WASI, as machines: modules of preview 1, and components of 0.2.

mod common;
#[path = "wasi/components.rs"]
mod components;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use common::device::Device;
use common::{Workbench, zig};
use tenure_cli::make::symbols::{Site, Symbols, debug_path};
use tenure_package::{CodeKind, Package};
use tenure_testbed::{skip_without_compiler, skip_without_tool};

const HEAD: &str = "name = \"p\"\nversion = \"1.0.0\"\n";
const BUDGET: &str = "[budget]\nmemory_bytes = 2000000\nstored_bytes = 200000\n";

/// A module in text, packed with what tenure.toml says besides.
fn module(text: &str, description: &str) -> (Workbench, Vec<u8>) {
    let workbench = Workbench::new();
    let description = format!("{HEAD}module = \"made.wasm\"\n{BUDGET}{description}");
    workbench.write(&[("p/tenure.toml", &description)]);
    std::fs::write(workbench.path("p/made.wasm"), wat::parse_str(text).unwrap()).unwrap();
    let package = workbench.build("p");
    (workbench, package)
}

/// Whether C programs for WASI can be compiled here.
fn has_wasi_libc() -> bool {
    let found = Path::new("/usr/include/wasm32-wasi/stdlib.h").is_file();
    if !found {
        skip_without_tool("wasi-libc");
    }
    found
}

/// A C program, packed with what tenure.toml says besides.
fn c_program(source: &str, description: &str) -> (Workbench, Vec<u8>) {
    let workbench = Workbench::new();
    let description = format!("{HEAD}language = \"c\"\n{BUDGET}{description}");
    workbench.write(&[("p/tenure.toml", &description), ("p/src/main.c", source)]);
    let package = workbench.build("p");
    (workbench, package)
}

const IMPORTS: &str = "(import \"wasi_snapshot_preview1\" \"fd_write\" (func $write (param i32 i32 i32 i32) (result i32))) \
                       (import \"wasi_snapshot_preview1\" \"proc_exit\" (func $exit (param i32)))";

/// Counts in its memory and in a global, prints both, and takes memory that it fills. Its start function runs first.
fn counter() -> String {
    format!(
        "(module {IMPORTS} (memory (export \"memory\") 1) (global $count (mut i32) (i32.const 0x30)) \
         (data (i32.const 0) \"\\10\\00\\00\\00\\05\\00\\00\\00\") (data (i32.const 16) \"0 0 \\0a\") \
         (func $start (i32.store8 (i32.const 18) (i32.add (i32.load8_u (i32.const 18)) (i32.const 1)))) (start $start) \
         (func (export \"_start\") (local $page i32) \
         (global.set $count (i32.add (global.get $count) (i32.const 1))) \
         (i32.store8 (i32.const 16) (global.get $count)) \
         (local.set $page (memory.grow (i32.const 1))) \
         (if (i32.or (i32.ne (local.get $page) (i32.const 1)) (i32.ne (memory.size) (i32.const 2))) (then unreachable)) \
         (if (i32.load (i32.const 65536)) (then unreachable)) \
         (memory.fill (i32.const 65536) (i32.const 7) (i32.const 65536)) \
         (if (i32.ne (i32.load8_u offset=3 (i32.const 131068)) (i32.const 7)) (then unreachable)) \
         (memory.copy (i32.const 19) (i32.const 18) (i32.const 1)) \
         (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 32)))))"
    )
}

#[test]
fn each_run_of_a_command_finds_memory_and_globals_as_at_its_beginning() {
    let (_workbench, package) = module(&counter(), "");
    let exports = Package::parse(&package).unwrap().manifest().exports.clone();
    assert_eq!(exports, ["run", "entry"]);
    let mut device = Device::start(&package);
    assert_eq!(device.call("run", None), Ok(None));
    assert_eq!(device.call("run", None), Ok(None));
    assert_eq!(device.world().log, ["1 11", "1 11", "1 11"], "once as it started, twice called");
}

#[test]
fn command_that_is_not_to_start_runs_when_it_is_called() {
    let (_workbench, package) = module(&counter(), "[wasi]\nstart = false\noutput = \"result\"\n");
    assert_eq!(Package::parse(&package).unwrap().manifest().exports, ["run"]);
    let mut device = Device::start(&package);
    assert_eq!(device.call("run", None), Ok(Some("1 11\n".into())));
    assert!(device.world().log.is_empty());
}

#[test]
fn exit_ends_a_program_wherever_it_is_and_its_code_is_the_result() {
    // The exit is two calls deep, the second of them by a pointer, and each caller would trap if it went on.
    let text = |code: u32| {
        format!(
            "(module {IMPORTS} (memory (export \"memory\") 1) (type $pick (func (param i32) (result i64))) (table funcref (elem $deep)) \
             (func $deep (param i32) (result i64) (call $exit (local.get 0)) unreachable) \
             (func $middle (result f64) (i32.const 5) (call_indirect (type $pick) (i32.const {code}) (i32.const 0)) \
             unreachable) \
             (func $harmless (result i32) (i32.const 1)) \
             (func (export \"_start\") (drop (call $harmless)) (drop (call $middle)) unreachable))"
        )
    };
    for (code, expected) in [(0, Ok(None)), (33, Err("exit code 33".to_owned()))] {
        let (_workbench, package) = module(&text(code), "[wasi]\nstart = false\n");
        let mut device = Device::start(&package);
        for _ in 0..2 {
            let outcome = device.call("run", None);
            assert_eq!(outcome, expected);
        }
    }
}

#[test]
fn address_beyond_the_memory_traps_and_none_reaches_below_it() {
    for access in ["(i32.load (i32.const -4))", "(i32.load offset=4294967295 (i32.const 0))"] {
        let text = format!(
            "(module {IMPORTS} (memory (export \"memory\") 1) (func (export \"_start\") (drop {access})))"
        );
        let (_workbench, package) = module(&text, "[wasi]\nstart = false\n");
        assert!(Device::start(&package).call("run", None).is_err(), "{access}");
    }
    for call in [
        "(memory.fill (i32.const -16) (i32.const 1) (i32.const 8))",
        "(memory.copy (i32.const 0) (i32.const -16) (i32.const 8))",
    ] {
        let text = format!(
            "(module {IMPORTS} (memory (export \"memory\") 1) (func (export \"_start\") {call}))"
        );
        let (_workbench, package) = module(&text, "[wasi]\nstart = false\n");
        assert!(Device::start(&package).call("run", None).is_err(), "{call}");
    }
}

#[test]
fn library_keeps_its_memory_and_calls_its_device_as_any_machine_does() {
    let text = format!(
        "(module {IMPORTS} (import \"tenure\" \"reply\" (func $reply (param i32 i32) (result i32))) \
         (memory (export \"memory\") 1) (data (i32.const 32) \"0\") \
         (func $add (i32.store8 (i32.const 32) (i32.add (i32.load8_u (i32.const 32)) (i32.const 1)))) \
         (func (export \"_initialize\") (call $add)) \
         (func (export \"count\") (call $add) (drop (call $reply (i32.const 32) (i32.const 1)))) \
         (func (export \"nothing\") (drop (call $reply (i32.const 0) (i32.const 0)))) \
         (func (export \"leave\") (call $exit (i32.const 4))))"
    );
    let (_workbench, package) = module(&text, "");
    let exports = Package::parse(&package).unwrap().manifest().exports.clone();
    assert_eq!(exports, ["count", "nothing", "leave"]);
    let mut device = Device::start(&package);
    assert_eq!(device.call("count", None), Ok(Some("2".into())));
    assert_eq!(device.call("count", None), Ok(Some("3".into())));
    assert_eq!(device.call("nothing", None), Ok(None), "null stays null");
    let error = device.call("leave", None).unwrap_err();
    assert!(error.contains("exit code 4"), "{error}");
}

#[test]
fn what_cannot_be_linked_is_refused_by_name() {
    let wasi = |name: &str, kind: &str| {
        format!("(import \"wasi_snapshot_preview1\" \"{name}\" (func {kind}))")
    };
    for (text, words) in [
        (format!("(module {})", wasi("fd_fly", "")), "WASI preview 1 has no such function"),
        (format!("(module {})", wasi("fd_write", "(param i64)")), "with other parameters than"),
        (
            format!(
                "(module {} (func (export \"_start\") (param i32)))",
                wasi("sched_yield", "(result i32)")
            ),
            "_start with parameters or results",
        ),
        (
            format!(
                "(module {} (import \"env\" \"memory\" (memory 1)))",
                wasi("sched_yield", "(result i32)")
            ),
            "has one memory of 32 bits",
        ),
        (
            format!(
                "(module {} (import \"env\" \"draw\" (func)))",
                wasi("sched_yield", "(result i32)")
            ),
            "the code needs env.draw, which no device has",
        ),
        (
            "(module (func (export \"run\")))".to_owned(),
            "has [wasi], and the code imports nothing of WASI",
        ),
    ] {
        let workbench = Workbench::new();
        workbench.write(&[(
            "p/tenure.toml",
            &format!("{HEAD}module = \"made.wasm\"\n{BUDGET}[wasi]\n"),
        )]);
        std::fs::write(workbench.path("p/made.wasm"), wat::parse_str(text).unwrap()).unwrap();
        let error = workbench.tenure_error(&["build", "p"]);
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn build_says_what_a_program_will_miss() {
    let text = "(module (import \"wasi_snapshot_preview1\" \"path_link\" \
                (func (param i32 i32 i32 i32 i32 i32 i32) (result i32))) (memory (export \"memory\") 1) (func (export \"_start\")))";
    let workbench = Workbench::new();
    workbench.write(&[("p/tenure.toml", &format!("{HEAD}module = \"made.wasm\"\n{BUDGET}"))]);
    std::fs::write(workbench.path("p/made.wasm"), wat::parse_str(text).unwrap()).unwrap();
    let said = workbench.tenure_ok(&["build", "p"]);
    assert!(said.contains("misses  path_link: a file has one name (ENOTSUP)"), "{said}");
}

#[test]
fn program_that_opens_no_file_has_neither_room_nor_code_for_them() {
    let (_workbench, small) = module(&counter(), "");
    let with_files = counter().replacen(
        "(module ",
        "(module (import \"wasi_snapshot_preview1\" \"path_unlink_file\" (func (param i32 i32 i32) (result i32))) ",
        1,
    );
    let (_workbench, large) = module(&with_files, "");
    let code_bytes = |package: &[u8]| Package::parse(package).unwrap().code_bytes();
    assert!(code_bytes(&small) < 5120, "{}", code_bytes(&small));
    assert!(code_bytes(&large) > code_bytes(&small));
    let memory_bytes = |package: &[u8]| Device::start(package).memory_bytes();
    assert_eq!(memory_bytes(&large) - memory_bytes(&small), 24 * 1024);
}

const ARGUMENTS: &str = r#"
#include <stdio.h>
#include <stdlib.h>
int main(int count, char **arguments) {
    for (int at = 0; at < count; at++) printf("[%s]", arguments[at]);
    printf(" %s %s\n", getenv("LANG"), getenv("EMPTY") ? "empty" : "none");
    return count > 4 ? 2 : 0;
}
"#;

#[test]
fn arguments_and_variables_are_those_of_the_project_and_of_the_call() {
    if !has_wasi_libc() {
        return;
    }
    let wasi =
        "[wasi]\narguments = [\"-v\", \"a b\"]\nenvironment = { LANG = \"C\", EMPTY = \"\" }\n";
    let (_workbench, package) = c_program(ARGUMENTS, wasi);
    let mut device = Device::start(&package);
    assert_eq!(device.world().log, ["[p][-v][a b] C empty"]);
    assert_eq!(device.call("run", Some("one")), Ok(None));
    let words = "  'x y' \"q\\\"\" \\ z ";
    assert_eq!(device.call("run", Some(words)), Err("exit code 2".into()));
    let log =
        ["[p][-v][a b] C empty", "[p][-v][a b][one] C empty", "[p][-v][a b][x y][q\"][ z] C empty"];
    assert_eq!(device.world().log, log);
}

const UPPER: &str = r#"
#include <ctype.h>
#include <stdio.h>
int main(void) {
    for (int character; (character = getchar()) != EOF;) putchar(toupper(character));
    fprintf(stderr, "done");
    return 0;
}
"#;

#[test]
fn parameter_can_be_the_input_and_the_output_the_result() {
    if !has_wasi_libc() {
        return;
    }
    let (_workbench, package) =
        c_program(UPPER, "[wasi]\nstart = false\nparameter = \"input\"\noutput = \"result\"\n");
    let mut device = Device::start(&package);
    assert_eq!(device.call("run", Some("many\nlines")), Ok(Some("MANY\nLINES".into())));
    assert_eq!(device.call("run", None), Ok(Some(String::new())));
    assert_eq!(device.world().log, ["done", "done"]);
    let long = "x".repeat(9000);
    let error = device.call("run", Some(&long)).unwrap_err();
    assert!(error.contains("longer than 8192 bytes"), "{error}");
}

/// Does what its arguments say to files.
const FILES: &str = r#"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
static int failed(const char *what) { printf("%s: %s", what, strerror(errno)); return 1; }
int main(int count, char **words) {
    const char *verb = words[1], *path = count > 2 ? words[2] : "";
    if (!strcmp(verb, "write") || !strcmp(verb, "append")) {
        FILE *file = fopen(path, *verb == 'w' ? "w" : "a");
        if (!file) return failed("fopen");
        long times = count > 4 ? atol(words[4]) : 1;
        for (long at = 0; at < times; at++) fputs(words[3], file);
        if (fclose(file)) return failed("fclose");
    } else if (!strcmp(verb, "read")) {
        FILE *file = fopen(path, "r");
        if (!file) return failed("fopen");
        char text[64];
        size_t length;
        while ((length = fread(text, 1, sizeof text, file))) fwrite(text, 1, length, stdout);
        fclose(file);
    } else if (!strcmp(verb, "sum")) {
        FILE *file = fopen(path, "r");
        if (!file) return failed("fopen");
        unsigned long sum = 0, length = 0;
        for (int byte; (byte = fgetc(file)) != EOF; length++) sum = sum * 31 + byte;
        printf("%lu %lu", length, sum);
    } else if (!strcmp(verb, "poke")) {
        int file = open(path, O_RDWR);
        if (file < 0 || lseek(file, atol(words[3]), SEEK_SET) < 0) return failed("open");
        if (write(file, words[4], strlen(words[4])) < 0) return failed("write");
        if (close(file)) return failed("close");
    } else if (!strcmp(verb, "cut")) {
        if (truncate(path, atol(words[3]))) return failed("truncate");
    } else if (!strcmp(verb, "list")) {
        DIR *folder = opendir(path);
        if (!folder) return failed("opendir");
        for (struct dirent *entry; (entry = readdir(folder));)
            printf("%s%s ", entry->d_name, entry->d_type == DT_DIR ? "/" : "");
        closedir(folder);
    } else if (!strcmp(verb, "stat")) {
        struct stat state;
        if (stat(path, &state)) return failed("stat");
        printf("%s %lld", S_ISDIR(state.st_mode) ? "folder" : "file", (long long)state.st_size);
    } else if (!strcmp(verb, "mkdir")) {
        if (mkdir(path, 0777)) return failed("mkdir");
    } else if (!strcmp(verb, "rm")) {
        if (remove(path)) return failed("remove");
    } else if (!strcmp(verb, "mv")) {
        if (rename(path, words[3])) return failed("rename");
    } else if (!strcmp(verb, "empty")) {
        DIR *folder = opendir(path);
        char name[300];
        for (struct dirent *entry; (entry = readdir(folder));) {
            snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
            if (entry->d_name[0] != '.' && remove(name)) return failed("remove");
        }
    } else if (!strcmp(verb, "abandon")) {
        int file = open(path, O_WRONLY | O_TRUNC);
        write(file, "half", 4);
        __builtin_trap();
    } else if (!strcmp(verb, "unlinked")) {
        int file = open(path, O_RDWR);
        char text[8] = {0};
        if (unlink(path) || access(path, F_OK) == 0 || read(file, text, 4) < 0) return failed("unlink");
        printf("%s", text);
    }
    return 0;
}
"#;

const WITH_FILES: &str = "[wasi]\nstart = false\noutput = \"result\"\n";

/// The program's answer to these arguments, or how it failed.
fn told(device: &mut Device, words: &str) -> String {
    match device.call("run", Some(words)) {
        Ok(said) => said.unwrap_or_default(),
        Err(error) => error,
    }
}

#[test]
fn files_are_the_machines_tree() {
    if !has_wasi_libc() {
        return;
    }
    let (_workbench, package) = c_program(FILES, WITH_FILES);
    let mut device = Device::start(&package);
    device.world().tree.insert("set.by.others".into(), b"theirs".to_vec());
    let mut tell = |words: &str| told(&mut device, words);
    assert_eq!(tell("write /notes.txt hello"), "");
    assert_eq!(tell("append notes.txt ' world'"), "");
    assert_eq!(tell("read /notes.txt"), "hello world");
    assert_eq!(tell("read /set/by/others"), "theirs");
    assert_eq!(tell("stat /set/by"), "folder 0");
    assert_eq!(tell("stat /notes.txt"), "file 11");
    assert_eq!(tell("poke notes.txt 6 W"), "");
    assert_eq!(tell("cut notes.txt 7"), "");
    assert_eq!(tell("read notes.txt"), "hello W");
    assert_eq!(tell("mkdir /logs"), "");
    assert_eq!(tell("mkdir /logs"), "exit code 1");
    assert_eq!(tell("write /logs/%a.b x"), "");
    assert_eq!(tell("list /"), "./ ../ logs/ notes.txt set/ ");
    assert_eq!(tell("list /logs"), "./ ../ %a.b ");
    assert_eq!(tell("mv /logs /set/old"), "");
    assert_eq!(tell("list /set/old"), "./ ../ %a.b ");
    assert_eq!(tell("rm /set/old"), "exit code 1", "it isn't empty");
    assert_eq!(tell("mv /set/old/%a.b notes.txt"), "");
    assert_eq!(tell("read notes.txt"), "x");
    assert_eq!(tell("rm /set/old"), "");
    assert_eq!(tell("rm /set/by/others"), "");
    assert_eq!(tell("list /set/by"), "./ ../ ", "a folder stays when its last file goes");
    assert_eq!(tell("read /nothing"), "exit code 1");
    assert_eq!(tell("unlinked notes.txt"), "x");
    assert_eq!(tell("list /"), "./ ../ set/ ");
    let tree = &device.world().tree;
    assert_eq!(tree.keys().collect::<Vec<_>>(), ["set.by.%"], "nothing is left behind");
}

#[test]
fn files_names_are_written_in_the_tree_as_in_urls() {
    if !has_wasi_libc() {
        return;
    }
    let files = "[wasi.files]\n\"/etc/app.conf\" = \"app.conf\"\n\"/big\" = \"big\"\n";
    let workbench = Workbench::new();
    let description = format!("{HEAD}language = \"c\"\n{BUDGET}{WITH_FILES}{files}");
    let big = "0123456789".repeat(500);
    workbench.write(&[
        ("p/tenure.toml", &description),
        ("p/src/main.c", FILES),
        ("p/app.conf", "answer = 42\n"),
        ("p/big", &big),
    ]);
    let mut device = Device::start(&workbench.build("p"));
    assert_eq!(device.world().tree.get("etc.app%2Econf"), Some(&b"answer = 42\n".to_vec()));
    assert_eq!(told(&mut device, "read /etc/app.conf"), "answer = 42\n");
    assert_eq!(told(&mut device, "stat /big"), "file 5000");
    assert_eq!(told(&mut device, "poke /big 2047 XY"), "");
    assert_eq!(told(&mut device, "read /big"), big[..2047].to_owned() + "XY" + &big[2049..]);
    assert_eq!(told(&mut device, "write a.b c"), "");
    assert_eq!(device.world().tree.get("a%2Eb"), Some(&b"c".to_vec()));
}

/// A file of many parts that is written, changed in the middle, cut and made longer, against the same done here.
#[test]
fn large_file_holds_what_was_written_to_it() {
    if !has_wasi_libc() {
        return;
    }
    let sum = |content: &[u8]| {
        let hash = |sum: u32, byte: &u8| sum.wrapping_mul(31).wrapping_add((*byte).into());
        format!("{} {}", content.len(), content.iter().fold(0, hash))
    };
    let (_workbench, package) = c_program(FILES, WITH_FILES);
    let mut device = Device::start(&package);
    let mut expected: Vec<u8> = "sixteen letters.".repeat(3000).into_bytes();
    assert_eq!(told(&mut device, "write f 'sixteen letters.' 3000"), "");
    assert_eq!(told(&mut device, "sum f"), sum(&expected));
    for at in [0, 2047, 4096, 30_000, 47_990, 48_000] {
        assert_eq!(told(&mut device, &format!("poke f {at} 'changed here'")), "");
        expected.resize(expected.len().max(at + 12), 0);
        expected[at..at + 12].copy_from_slice(b"changed here");
        assert_eq!(told(&mut device, "sum f"), sum(&expected), "changed at {at}");
    }
    for length in [40_000, 40_960, 2048, 100, 60_000, 0, 5000] {
        assert_eq!(told(&mut device, &format!("cut f {length}")), "");
        expected.resize(length, 0);
        assert_eq!(told(&mut device, "sum f"), sum(&expected), "of length {length}");
    }
    let stored: usize = device.world().tree.values().map(Vec::len).sum();
    assert!(stored < 5000 + 200, "{stored} bytes are left of a file of 5,000");
    assert_eq!(told(&mut device, "rm f"), "");
    assert!(device.world().tree.is_empty(), "{:?}", device.world().tree.keys());
}

/// After each write to the tree the power may fail: what a program that begins then sees is as before, or as after.
#[test]
fn power_cut_at_any_write_leaves_a_file_as_it_was_or_as_it_is() {
    if !has_wasi_libc() {
        return;
    }
    let (_workbench, package) = c_program(FILES, WITH_FILES);
    for (prepared, work, looked_at) in [
        (&["write f old"][..], "write f newer", &["read f"][..]),
        (&["write f 'old text. ' 600"], "write f 'new text. ' 700", &["sum f"]),
        (&["write f 'old text. ' 600"], "poke f 2040 'over the edge'", &["sum f"]),
        (&["write f 'old text. ' 600"], "cut f 3000", &["sum f"]),
        (&["write f 'old text. ' 100"], "append f 'more text. ' 300", &["sum f"]),
        (&["write f 'old text. ' 600"], "rm f", &["sum f"]),
        (&["write f new", "write g old"], "mv f g", &["read g", "read f"]),
        (&["write f 'new text. ' 600", "write g 'old text. ' 300"], "mv f g", &["sum g", "sum f"]),
        (
            &["mkdir d", "write d/f 'text. ' 600", "write d/g x"],
            "mv d e",
            &["list e", "sum e/f", "list d"],
        ),
    ] {
        let mut device = Device::start(&package);
        for words in prepared {
            assert_eq!(told(&mut device, words), "");
        }
        let look = |tree: BTreeMap<String, Vec<u8>>| -> Vec<String> {
            let mut device = Device::with(&package, |world| world.tree = tree);
            looked_at.iter().map(|words| told(&mut device, words)).collect()
        };
        let before = look(device.world().tree.clone());
        device.world().past = Some(Vec::new());
        assert_eq!(told(&mut device, work), "");
        let after = look(device.world().tree.clone());
        assert_ne!(before, after, "{work}");
        let past = device.world().past.take().unwrap();
        assert!(!past.is_empty());
        let mut is_done = false;
        for (number, tree) in past.into_iter().enumerate() {
            let seen = look(tree);
            is_done |= seen == after;
            let expected = if is_done { &after } else { &before };
            assert_eq!(&seen, expected, "{work}, cut behind write {number}");
        }
    }
}

#[test]
fn program_that_fails_leaves_its_files_as_they_were() {
    if !has_wasi_libc() {
        return;
    }
    let (_workbench, package) = c_program(FILES, WITH_FILES);
    let mut device = Device::start(&package);
    assert_eq!(told(&mut device, "write f whole"), "");
    assert!(device.call("run", Some("abandon f")).is_err());
    let tree = device.world().tree.clone();
    let mut device = Device::with(&package, |world| world.tree = tree);
    assert_eq!(told(&mut device, "read f"), "whole");
}

#[test]
fn folder_can_be_emptied_while_it_is_read() {
    if !has_wasi_libc() {
        return;
    }
    let (_workbench, package) = c_program(FILES, WITH_FILES);
    let mut device = Device::start(&package);
    assert_eq!(told(&mut device, "mkdir d"), "");
    for number in 0..300 {
        assert_eq!(told(&mut device, &format!("write d/a-file-with-number-{number} x")), "");
    }
    assert_eq!(told(&mut device, "empty d"), "");
    assert_eq!(told(&mut device, "list d"), "./ ../ ");
}

const SLEEPER: &str = r#"
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include <sys/random.h>
int main(void) {
    sleep(2);
    usleep(1500);
    struct timespec now;
    unsigned char bytes[3] = {0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    printf("%lld.%09ld %d %d", (long long)now.tv_sec, now.tv_nsec, getentropy(bytes, 3), bytes[2]);
    return 0;
}
"#;

#[test]
fn sleep_clocks_and_randomness_are_the_devices() {
    if !has_wasi_libc() {
        return;
    }
    let (_workbench, package) = c_program(SLEEPER, WITH_FILES);
    let mut device = Device::start(&package);
    assert_eq!(told(&mut device, ""), "1.234567000 0 4");
    assert_eq!(device.world().slept_ms, 2002);
}

/// The trap is in line 5, inlined into line 9.
const TRAP: &str = "#include <stdio.h>

static volatile int wanted = 1;
static inline __attribute__((always_inline)) void check(void) {
    if (wanted) __builtin_trap();
}

int main(void) {
    check();
    puts(\"unreached\");
    return 0;
}
";

#[test]
fn fault_names_the_line_of_a_program_that_was_linked_anew() {
    if !has_wasi_libc() {
        return;
    }
    let (workbench, bytes) = c_program(TRAP, "[wasi]\nstart = false\n");
    workbench.tenure_ok(&["build", "p"]);
    let path = workbench.path("p/p.tenure");
    let debug = std::fs::read(debug_path(&path)).unwrap();
    let package = Package::parse(&bytes).unwrap();
    let symbols = Symbols::of(&package, Some(&debug)).unwrap();
    let report = workbench.tenure_ok(&["inspect", "p/p.tenure", "--json", "--code"]);
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let functions = report["functions"].as_array().unwrap();
    // Where each trap is in the image, and what is known of it.
    let mut lines = Vec::new();
    for function in functions {
        for line in function["code"].as_array().into_iter().flatten() {
            if !line["instruction"].as_str().unwrap().starts_with("unreachable") {
                continue;
            }
            let number = |value: &serde_json::Value| value.as_u64().unwrap() as u32;
            let site = Site {
                function: number(&function["index"]),
                offset: number(&line["offset"]),
                in_module: false,
            };
            let place = symbols.place(site);
            lines.push(place.lines.iter().map(|line| line.line).collect::<Vec<_>>());
        }
    }
    assert!(lines.contains(&vec![5, 9]), "{lines:?}");
    assert!(package.code(CodeKind::WebAssembly).is_some());
}

/// The tests of the language, run by the very software of devices.
fn tested(workbench: &Workbench, project: &str) {
    let tests = "[[test]]\nname = \"it sorts\"\ncall = \"run\"\nparameter = \"pear apple fig\"\n\
                 expect = \"apple fig pear 3\\n\"\n[[test]]\nname = \"it remembers\"\ncall = \"run\"\n\
                 parameter = \"nut\"\nexpect = \"nut 4\\n\"\n";
    workbench.write(&[(&format!("{project}/tests.toml"), tests)]);
    let said = workbench.tenure_ok(&["test", project]);
    assert!(said.contains("2 of 2 tests passed"), "{said}");
}

const SORT_IN_RUST: &str = r#"
use std::io::Write as _;
fn main() -> std::io::Result<()> {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    words.sort();
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open("/seen/words.txt")
        .or_else(|_| { std::fs::create_dir("/seen")?; std::fs::File::create("/seen/words.txt") })?;
    words.iter().try_for_each(|word| writeln!(file, "{word}"))?;
    drop(file);
    let seen = std::fs::read_to_string("/seen/words.txt")?;
    println!("{} {}", words.join(" "), seen.lines().count());
    Ok(())
}
"#;

#[test]
fn rust_program_with_its_standard_library_runs() {
    let libdir = ["--print", "target-libdir", "--target", "wasm32-wasip1"];
    let found = Command::new("rustc").args(libdir).output().ok().filter(|it| it.status.success());
    let folder = found.map(|it| String::from_utf8(it.stdout).unwrap());
    if !folder.is_some_and(|folder| Path::new(folder.trim()).is_dir()) {
        // Only rustup has it; Debian's Rust goes without.
        let rustup = Command::new("rustup").arg("--version").output().is_ok();
        return match rustup {
            true => skip_without_tool("Rust's standard library for wasm32-wasip1"),
            false => skip_without_compiler("Rust's standard library for wasm32-wasip1"),
        };
    }
    let workbench = Workbench::new();
    let manifest =
        "[package]\nname = \"p\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n";
    workbench.write(&[
        (
            "p/tenure.toml",
            &format!("{HEAD}language = \"rust\"\n{BUDGET}stack_bytes = 16384\n{WITH_FILES}"),
        ),
        ("p/Cargo.toml", manifest),
        ("p/src/main.rs", SORT_IN_RUST),
    ]);
    tested(&workbench, "p");
}

const SORT_IN_C: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
static int by_text(const void *one, const void *other) { return strcmp(*(char *const *)one, *(char *const *)other); }
int main(int count, char **words) {
    qsort(words + 1, count - 1, sizeof *words, by_text);
    mkdir("/seen", 0777);
    FILE *file = fopen("/seen/words.txt", "a+");
    for (int at = 1; at < count; at++) {
        fprintf(file, "%s\n", words[at]);
        printf("%s ", words[at]);
    }
    rewind(file);
    int lines = 0;
    for (int byte; (byte = fgetc(file)) != EOF;) lines += byte == '\n';
    printf("%d\n", lines);
    return fclose(file);
}
"#;

#[test]
fn c_program_runs_as_another_compiler_made_it() {
    if !has_wasi_libc() {
        return;
    }
    // The module that this makes is nobody's but clang's, and is packed as it is.
    let workbench = Workbench::new();
    workbench.write(&[
        ("p/tenure.toml", &format!("{HEAD}language = \"c\"\n{BUDGET}{WITH_FILES}")),
        ("p/src/main.c", SORT_IN_C),
        ("m/tenure.toml", &format!("{HEAD}module = \"p.wasm\"\n{BUDGET}{WITH_FILES}")),
    ]);
    tested(&workbench, "p");
    std::fs::copy(workbench.path("p/target/p.wasm"), workbench.path("m/p.wasm")).unwrap();
    tested(&workbench, "m");
}

const IN_ZIG: &str = r#"
const std = @import("std");
var runs: u32 = 0;
pub fn main() void {
    runs += 1;
    const memory = std.heap.page_allocator.alloc(u8, 100000) catch unreachable;
    memory[99999] = 7;
    std.debug.print("run {d} of {d}\n", .{ runs, memory[99999] });
    std.process.exit(3);
}
"#;

#[test]
fn zig_program_runs_as_its_compiler_made_it() {
    let Some(mut zig) = zig() else { return skip_without_tool("zig") };
    let workbench = Workbench::new();
    let description = format!("{HEAD}module = \"main.wasm\"\n{BUDGET}[wasi]\nstart = false\n");
    workbench.write(&[("p/tenure.toml", &description), ("p/main.zig", IN_ZIG)]);
    zig.args([
        "build-exe",
        "main.zig",
        "-target",
        "wasm32-wasi",
        "-O",
        "ReleaseSmall",
        "--stack",
        "16384",
    ]);
    zig.current_dir(workbench.path("p")).env("ZIG_GLOBAL_CACHE_DIR", workbench.path("cache"));
    let output = zig.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut device = Device::start(&workbench.build("p"));
    for _ in 0..2 {
        assert_eq!(device.call("run", None), Err("exit code 3".into()));
    }
    assert_eq!(device.world().log, ["run 1 of 7", "run 1 of 7"]);
}

#[test]
fn zig_project_with_a_main_is_a_program() {
    if zig().is_none() {
        return skip_without_tool("zig");
    }
    let workbench = Workbench::new();
    let wasi = "[build]\nstack_bytes = 16384\n[wasi]\nstart = false\n";
    let description = format!("{HEAD}language = \"zig\"\n{BUDGET}{wasi}");
    workbench.write(&[("p/tenure.toml", &description), ("p/src/main.zig", IN_ZIG)]);
    let mut device = Device::start(&workbench.build("p"));
    assert_eq!(device.call("run", None), Err("exit code 3".into()));
    assert_eq!(device.world().log, ["run 1 of 7"]);
}

#[test]
fn emscriptens_notice_of_a_grown_memory_needs_nobody() {
    let text = format!(
        "(module {IMPORTS} (import \"env\" \"emscripten_notify_memory_growth\" (func $notice (param i32))) \
         (memory (export \"memory\") 1) (func (export \"_start\") (call $notice (memory.grow (i32.const 1)))))"
    );
    let (_workbench, package) = module(&text, "");
    assert_eq!(Device::start(&package).call("run", None), Ok(None));
}
