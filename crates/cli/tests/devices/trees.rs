//! A machine's tree, read and changed by its device's owner.

use std::ffi::OsStr;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::process::Stdio;

use tenure_wire::path;

use crate::harness::{User, finish, on};

#[test]
fn value_that_the_owner_sets_is_what_the_machine_reads_next() {
    let user = User::new();
    crate::guests::package("counter");
    let mut device = user.device("attic", None);
    user.install(&device, &["counter"]);
    assert_eq!(user.call(on(&device), &["counter", "add", "41"]), "41");
    let address = device.address.clone();
    let at = ["--device", &address];
    let ok = |words: &[&str]| user.ok(&[&["tree"], words, &at].concat());
    let error = |words: &[&str]| user.error(&[&["tree"], words, &at].concat());
    let shown = ok(&["counter"]);
    let (path, _) = shown.split_once(" = ").unwrap();
    assert_eq!(ok(&["get", "counter", path]), "41", "to a pipe as it is");
    let text = ok(&["set", "counter", path, "7"]);
    assert_eq!(text, format!("counter stores {path} = \"7\"\n"));
    device.wait_for_log("counter", &format!("its owner set `{path}`"));
    assert_eq!(user.call(on(&device), &["counter", "value"]), "7");
    ok(&["set", "counter", "kept.bytes", "--hex", "00ff"]);
    ok(&["set", "counter", "kept.below", "-5"]);
    assert_eq!(ok(&["counter", "kept"]), "kept.below = \"-5\"\nkept.bytes = 0x00ff\n");
    let text = ok(&["set", "counter", "kept.below", "say \"a\\b\"\n"]);
    assert_eq!(text, "counter stores kept.below = \"say \\\"a\\\\b\\\"\\n\"\n");
    assert_eq!(
        user.json(&[&["tree", "delete", "counter", "kept"], &at[..]].concat())["deleted"],
        2
    );
    let refused = error(&["delete", "counter", "kept"]);
    assert_eq!(refused, "counter stores nothing at `kept`");
    let long = "v".repeat(2049);
    let refused = error(&["set", "counter", "kept", &long]);
    assert!(refused.contains("limit of 2048 bytes"), "{refused}");
    for path in ["kept..below", ".kept", "kept\n", "kept.\u{85}", &"p".repeat(129)] {
        let rule = path::check_value(path).unwrap_err();
        let named = path::refusal(path, rule);
        assert_eq!(error(&["set", "counter", path, "1"]), named);
        assert_eq!(error(&["get", "counter", path]), named);
        assert_eq!(error(&["delete", "counter", path]), named);
        assert_eq!(error(&["counter", path]), named);
    }
    let refused = error(&["set", "kettle", "kept", "1"]);
    assert!(refused.contains("no machine `kettle`"), "{refused}");
    let value = "v".repeat(2000);
    for number in 0..8 {
        let path = format!("many.{number}");
        let filled =
            user.command(&[&["tree", "set", "counter", &path, &value], &at[..]].concat()).output();
        let filled = filled.unwrap();
        if !filled.status.success() {
            let error = String::from_utf8(filled.stderr).unwrap();
            assert!(error.contains("its budget has too little room"), "{error}");
            return;
        }
    }
    panic!("what the owner sets counts against the machine's budget");
}

#[test]
fn value_of_any_bytes_that_is_read_and_set_again_stays_the_same() {
    let user = User::new();
    let device = user.device("attic", None);
    user.install(&device, &["counter"]);
    let at = ["--device", &device.address];
    let get = || {
        let output =
            user.command(&[&["tree", "get", "counter", "kept"], &at[..]].concat()).output();
        output.unwrap().stdout
    };
    let set = |value: &[u8]| {
        let mut set = user.command(&["tree", "set", "counter", "kept"]);
        set.args(at).arg("--").arg(OsStr::from_bytes(value));
        assert!(set.output().unwrap().status.success(), "{value:?}");
        assert_eq!(get(), value);
    };
    for value in [&b"21.5"[..], b"21.5\n", b"-5", b"--json", b"\xff\x01-\r\n"] {
        set(value);
        let mut set = user.command(&[&["tree", "set", "counter", "kept", "-"], &at[..]].concat());
        let mut child = set.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(&get()).unwrap();
        assert!(child.wait().unwrap().success());
        assert_eq!(get(), value);
    }
    // Of a command that failed before a pipe comes the same: nothing. So the line says an empty value.
    let mut piped = user.command(&[&["tree", "set", "counter", "kept", "-"], &at[..]].concat());
    piped.stdin(Stdio::null());
    let refused = finish(piped);
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && error.contains("write \"\" in place of -"), "{error}");
    assert_eq!(get(), b"\xff\x01-\r\n", "and what was there stays");
    set(b"");
}
