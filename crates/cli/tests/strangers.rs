//! Projects that a stranger wrote, as they come by a clone: what building them may write, read and run.
//!
//! Those here carry a finished module or a script, so that no code of theirs runs and every mischief is that of the build.

mod common;

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::Command;

use common::Workbench;
use tenure_testbed::skip_without_tool;

const DESCRIPTION: &str = "name = \"evil\"\nversion = \"1.0.0\"\nmodule = \"m.wasm\"\n";

/// A program for WASI.
const PROGRAM: &str =
    "(module (import \"wasi_snapshot_preview1\" \"sched_yield\" (func (result i32)))
    (memory (export \"memory\") 1) (func (export \"_start\")))";

/// A project whose module is there, beside a file that is the builder's.
fn project(description: &str) -> Workbench {
    let workbench = Workbench::new();
    workbench.write(&[("evil/tenure.toml", description), ("builders/key", "secret")]);
    let module = wat::parse_str("(module (func (export \"run\")))").unwrap();
    fs::write(workbench.path("evil/m.wasm"), module).unwrap();
    workbench
}

#[test]
fn links_of_a_cloned_project_lead_a_build_nowhere() {
    // B-1: the debug module brought a key into ~/.ssh/authorized_keys; the SDK's text took a file's place.
    for link in [
        "evil.debug.wasm",
        "evil.tenure",
        ".tenure",
        ".tenure/sdk",
        ".tenure/sdk/zig/panic.zig",
        "target",
        "target/evil.wasm",
        "Cargo.lock",
    ] {
        for goal in ["builders/key", "builders", "builders/planted"] {
            let workbench = project(DESCRIPTION);
            let path = workbench.path("evil").join(link);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            symlink(workbench.path(goal), &path).unwrap();
            for command in ["build", "run", "test"] {
                workbench.write(&[(
                    "evil/tests.toml",
                    "[[test]]\nname = \"a\"\ncall = \"run\"\nexpect = \"\"\n",
                )]);
                let error = workbench.tenure_error(&[command, "evil"]);
                assert!(
                    error.contains(link) && error.contains("is a link"),
                    "{command}, {link} to {goal}: {error}"
                );
            }
            assert_eq!(fs::read_to_string(workbench.path("builders/key")).unwrap(), "secret");
            assert_eq!(fs::read_dir(workbench.path("builders")).unwrap().count(), 1, "{link}");
        }
    }
    project(DESCRIPTION).tenure_ok(&["build", "evil"]);
}

#[test]
fn output_that_is_a_link_or_a_further_name_of_a_file_is_replaced() {
    // B-1: what the user names himself, in a folder that he has cloned.
    let workbench = project(DESCRIPTION);
    symlink(workbench.path("builders/key"), workbench.path("out.tenure")).unwrap();
    fs::hard_link(workbench.path("builders/key"), workbench.path("out.debug.wasm")).unwrap();
    workbench.tenure_ok(&["build", "evil", "-o", "out.tenure"]);
    assert!(workbench.path("out.tenure").symlink_metadata().unwrap().is_file());
    assert_eq!(fs::read_to_string(workbench.path("builders/key")).unwrap(), "secret");
    symlink(workbench.path("builders"), workbench.path("evil/out")).unwrap();
    let error = workbench.tenure_error(&["build", "evil", "-o", "evil/out/key"]);
    assert!(error.contains("evil/out is a link"), "{error}");
    assert_eq!(fs::read_to_string(workbench.path("builders/key")).unwrap(), "secret");
    // A name of the system's is written to.
    workbench.tenure_ok(&["build", "evil", "-o", "/dev/null"]);
}

#[test]
fn link_to_nothing_is_no_place_for_a_new_project() {
    // B-1: `tenure new`.
    let workbench = Workbench::new();
    fs::create_dir(workbench.path("builders")).unwrap();
    symlink(workbench.path("builders/planted"), workbench.path("fresh")).unwrap();
    let error = workbench.tenure_error(&["new", "fresh", "--lang", "lua"]);
    assert!(error.contains("fresh is there already"), "{error}");
    assert_eq!(fs::read_dir(workbench.path("builders")).unwrap().count(), 0);
}

#[test]
fn files_from_outside_a_project_are_not_packed_by_whatever_name() {
    // B-7: an absolute path, `..`, links of files and folders; `module` and `sources` likewise.
    let workbench = project(DESCRIPTION);
    symlink("../builders/key", workbench.path("evil/link")).unwrap();
    symlink("../builders", workbench.path("evil/folder")).unwrap();
    fs::create_dir(workbench.path("evil/below")).unwrap();
    symlink("../../builders/key", workbench.path("evil/below/key")).unwrap();
    let absolute = workbench.path("builders/key").display().to_string();
    for path in
        [&absolute, "../builders/key", "../builders", "link", "folder", "below", "folder/key"]
    {
        let files = format!("{DESCRIPTION}[wasi.files]\n\"/key\" = \"{path}\"\n");
        workbench.write(&[("evil/tenure.toml", &files)]);
        fs::write(workbench.path("evil/m.wasm"), wat::parse_str(PROGRAM).unwrap()).unwrap();
        let error = workbench.tenure_error(&["build", "evil"]);
        assert!(error.contains("lies outside the project's folder"), "{path}: {error}");
    }
    for description in [
        "module = \"../builders/m.wasm\"\n",
        "language = \"c\"\n[build]\nsources = [\"../builders/m.c\"]\n",
        "language = \"c\"\n[build]\nsources = [\"linked.c\"]\n",
        "language = \"c\"\n[build]\ninclude = [\"../builders\"]\n",
        "language = \"lua\"\n[build]\nsources = [\"linked.lua\"]\n",
        "language = \"javascript\"\n[build]\nsources = [\"../builders/m.c\"]\n",
    ] {
        workbench.write(&[
            ("evil/tenure.toml", &format!("name = \"evil\"\nversion = \"1.0.0\"\n{description}")),
            ("builders/m.c", ""),
            ("builders/m.wasm", ""),
        ]);
        for name in ["linked.c", "linked.lua"] {
            let _ = symlink("../builders/m.c", workbench.path("evil").join(name));
        }
        let error = workbench.tenure_error(&["build", "evil"]);
        assert!(error.contains("lies outside the project's folder"), "{description}: {error}");
    }
}

#[test]
fn file_without_an_end_keeps_no_build_waiting() {
    // B-7: a device that gives zeros for ever, and a pipe that nobody writes to.
    for name in ["tenure.toml", "tests.toml", "m.wasm", "file"] {
        for goal in ["/dev/zero", "pipe"] {
            let files = format!("{DESCRIPTION}[wasi.files]\n\"/x\" = \"file\"\n");
            let workbench = project(&files);
            let tests = "[[test]]\nname = \"a\"\ncall = \"run\"\nexpect = \"\"\n";
            workbench.write(&[("evil/file", "x"), ("evil/tests.toml", tests)]);
            fs::write(workbench.path("evil/m.wasm"), wat::parse_str(PROGRAM).unwrap()).unwrap();
            let path = workbench.path("evil").join(name);
            fs::remove_file(&path).unwrap();
            if goal == "pipe" {
                let made = Command::new("mkfifo").arg(&path).status();
                assert!(made.is_ok_and(|status| status.success()));
            } else {
                symlink(goal, &path).unwrap();
            }
            let error = workbench.tenure_error(&["test", "evil"]);
            let is_named = ["no file", "outside", "make it first"];
            assert!(is_named.iter().any(|why| error.contains(why)), "{name} {goal}: {error}");
        }
    }
}

#[test]
fn errors_of_a_hostile_debug_module_steer_no_terminal() {
    // B-6: what it imports is named in the error.
    let workbench = project(DESCRIPTION);
    workbench.tenure_ok(&["build", "evil"]);
    let module = "(module (import \"\\1b[31mZ\\c2\\9b\\e2\\80\\ae.\" \"\\1b]0;x\\07\" (func)))";
    let module = wat::parse_str(module).unwrap();
    fs::write(workbench.path("evil/evil.debug.wasm"), module).unwrap();
    for words in [&["run", "evil/evil.tenure"][..], &["--json", "run", "evil/evil.tenure"]] {
        let output = workbench.tenure(words);
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        let is_bad = |character| tenure_wire::printable::misleads(character) && character != '\n';
        assert!(!said.chars().any(is_bad), "{said:?}");
        assert!(said.contains("faults won't be explained"), "{said}");
        if words[0] == "--json" {
            let is_object = |line: &str| serde_json::from_str::<serde_json::Value>(line).is_ok();
            assert!(said.lines().all(is_object), "{said}");
        }
    }
}

/// Programs and modules that note that they ran, as a folder brings them along.
fn snares(workbench: &Workbench) {
    let python = "open('python-ran', 'w').close()\n";
    let node = "require('fs').writeFileSync('node-ran', '')\n";
    let shell = "#!/bin/sh\ntouch \"$(dirname \"$0\")/../shell-ran\"\n";
    workbench.write(&[
        ("evil/ziglang.py", python),
        ("evil/ziglang/__main__.py", python),
        ("evil/pip.py", python),
        ("evil/sitecustomize.py", python),
        ("evil/node_modules/assemblyscript/bin/asc.js", node),
        ("evil/rust-toolchain.toml", "[toolchain]\npath = \"/nonexistent/evil\"\n"),
        ("evil/tenure.toml", "name = \"evil\"\nversion = \"1.0.0\"\nlanguage = \"zig\"\n"),
        ("evil/src/main.zig", "export fn run() void {}\n"),
    ]);
    for program in
        ["rustc", "cargo", "clang", "node", "zig", "tinygo", "python3", "npm", "asc", "sh"]
    {
        workbench
            .write(&[(&format!("evil/bin/{program}"), shell), (&format!("evil/{program}"), shell)]);
        for place in ["evil/bin", "evil"] {
            let all = fs::Permissions::from_mode(0o755);
            fs::set_permissions(workbench.path(place).join(program), all).unwrap();
        }
    }
}

#[test]
fn toolchain_list_and_install_run_nothing_of_the_current_folder() {
    // B-2: modules of Python and Node, rustup's file, and folders of PATH that are other ones in each folder.
    let workbench = Workbench::new();
    snares(&workbench);
    let folder = workbench.path("evil");
    let path = std::env::var("PATH").unwrap();
    let paths =
        [path.clone(), format!("bin:{path}"), format!(":{path}"), format!(".:./bin:{path}:")];
    for path in paths.into_iter().chain(["", ".", "bin"].map(str::to_owned)) {
        for words in [&["toolchain", "list"][..], &["toolchain", "install", "zig"], &["build"]] {
            let output = Command::new(env!("CARGO_BIN_EXE_tenure"))
                .args(words)
                .current_dir(&folder)
                .env("PATH", &path)
                .env("PYTHONPATH", ".")
                .env("TENURE_HOME", workbench.path("home"))
                .env("TENURE_TOOLCHAINS", workbench.path("toolchains"))
                // No registry: `install` fails, after whatever it runs.
                .env("PIP_NO_INDEX", "1")
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            for mark in ["python-ran", "node-ran", "shell-ran"] {
                let ran = folder.join(mark).exists() || workbench.path(mark).exists();
                assert!(!ran, "{mark} by {words:?} with PATH={path}: {said}");
            }
            if words == ["toolchain", "list"] {
                assert!(output.status.success(), "{said}");
            }
        }
    }
}

/// Runs `tenure` as another user of this computer, with a home of that user's.
fn tenure_as(user: u32, workbench: &Workbench, words: &[&str]) -> Option<(bool, String)> {
    use std::os::unix::process::CommandExt as _;
    let output = Command::new(env!("CARGO_BIN_EXE_tenure"))
        .args(words)
        .current_dir(workbench.path("."))
        .env("TENURE_HOME", workbench.path("users"))
        .env_remove("CI")
        .env_remove("SUDO_UID")
        .uid(user)
        .gid(user)
        .output()
        .ok()?;
    let said = [output.stdout, output.stderr].concat();
    Some((output.status.success(), String::from_utf8_lossy(&said).into_owned()))
}

#[test]
fn project_in_a_folder_of_another_user_is_built_once_the_user_trusts_it() {
    // Building is running: B-2, "beside it".
    let workbench = project(DESCRIPTION);
    fs::create_dir(workbench.path("users")).unwrap();
    let (stranger, user) = (1_234_501, 1_234_502);
    let given = |place: &str, to: u32| {
        std::os::unix::fs::chown(workbench.path(place), Some(to), Some(to)).is_ok()
    };
    let is_given = given("evil", stranger) && given("users", user) && given(".", user);
    if !is_given || tenure_as(user, &workbench, &["--version"]).is_none_or(|(ran, _)| !ran) {
        return skip_without_tool("root, to make folders of other users");
    }
    let all = fs::Permissions::from_mode(0o777);
    fs::set_permissions(workbench.path("evil"), all).unwrap();
    let tenure = |words: &[&str]| tenure_as(user, &workbench, words).unwrap();
    for words in [&["build", "evil"][..], &["run", "evil"], &["--json", "build", "evil"]] {
        let (built, said) = tenure(words);
        assert!(!built && said.contains("belongs to another user (uid 1234501)"), "{said}");
        assert!(said.contains("tenure build --trust "), "{said}");
        assert!(!workbench.path("evil/.tenure").exists());
    }
    let (built, said) = tenure(&["build", "--trust", "evil"]);
    assert!(built, "{said}");
    // It is remembered.
    let (built, said) = tenure(&["build", "evil"]);
    assert!(built, "{said}");
    // A folder of one's own, with a project file of another's.
    given("evil", user);
    fs::remove_file(workbench.path("users/trusted-projects")).unwrap();
    assert!(tenure(&["build", "evil"]).0);
    given("evil/tenure.toml", stranger);
    assert!(!tenure(&["build", "evil"]).0);
}
