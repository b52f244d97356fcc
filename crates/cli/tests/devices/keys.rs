//! Keys that outlive their computer: backups of them, as a file and as words, and their recovery.

use std::fs::Permissions;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::Value;

use crate::harness::User;
use crate::terminal::{start, wait_for};

const PASSPHRASE: &str = "correct horse battery staple";

/// A file of the user's that nobody else may read, by its path.
fn secret(user: &User, name: &str, text: &str) -> String {
    let path = user.path(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Runs a command to which `input` comes by standard input.
fn fed(user: &User, arguments: &[&str], input: &str) -> Output {
    let mut command = user.command(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// Whether both users have the same keys, and nobody else may read them.
fn has_keys_of(user: &User, other: &User) -> bool {
    ["owner.key", "tenant.key"].iter().all(|name| {
        let (own, others) = (user.home().join(name), other.home().join(name));
        mode(&own) == 0o600 && std::fs::read(own).unwrap() == std::fs::read(others).unwrap()
    })
}

#[test]
fn keys_in_a_file_are_recovered_elsewhere_and_hold_the_device() {
    let (user, laptop) = (User::new(), User::new());
    let device = user.device("attic", None);
    let own = user.json(&["key", "--own"]);
    assert!(own["backed_up_unix_s"].is_null(), "{own}");
    assert!(user.ok(&["key", "--own"]).contains("\nbackup  none yet; "));
    let (file, passphrase) = (user.path("keys.age"), secret(&user, "passphrase", PASSPHRASE));
    let named = [file.to_str().unwrap(), "--passphrase-file", &passphrase];
    let backup = [&["key", "backup", "--to"], &named[..]].concat();
    let made = user.json(&[&backup[..], &["--check", &device.address]].concat());
    assert_eq!((&made["backup"], &made["checked"]), (&"file".into(), &"attic".into()));
    assert_eq!(made["owner_signing_key"], own["owner_signing_key"]);
    assert_eq!(mode(&file), 0o600);
    assert!(std::fs::read(&file).unwrap().starts_with(b"age-encryption.org/v1\n"));
    assert!(user.json(&["key", "--own"])["backed_up_unix_s"].is_u64());
    assert!(user.ok(&["key", "--own"]).contains("\nbackup  of 20"));
    assert!(user.error(&backup).contains("is there already"));

    let recover = [&["key", "recover", "--from"], &named[..]].concat();
    let done = laptop.json(&[&recover[..], &["--check", &device.address]].concat());
    assert_eq!((&done["recovered"], &done["checked"]), (&true.into(), &"attic".into()));
    assert!(has_keys_of(&laptop, &user));
    assert!(laptop.json(&["key", "--own"])["backed_up_unix_s"].is_u64());
    laptop.ok(&["list", "--device", &device.address]);
    // The same again, with the passphrase from a pipe.
    let piped = ["key", "recover", "--json", "--from", named[0], "--passphrase-file", "-"];
    let output = fed(&laptop, &piped, &format!("{PASSPHRASE}\n"));
    let done: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(done["recovered"], false, "they are there already");

    // Keys of before count no longer, and neither does their backup.
    user.ok(&["owner", "change", "--yes"]);
    assert!(user.json(&["key", "--own"])["backed_up_unix_s"].is_null());
}

#[test]
fn keys_in_words_are_recovered_from_what_was_printed_and_from_what_is_typed() {
    let user = User::new();
    let device = user.device("attic", None);
    let check = ["--check", &device.address];
    let made = user.json(&[&["key", "backup", "--words"], &check[..]].concat());
    assert_eq!((&made["backup"], &made["checked"]), (&"words".into(), &"attic".into()));
    let list = |name: &str| -> Vec<String> {
        let words = made[name].as_array().unwrap();
        words.iter().map(|word| word.as_str().unwrap().to_owned()).collect()
    };
    let (owner, tenant) = (list("owner_words").join(" "), list("tenant_words").join(" "));
    let printed = user.ok(&["key", "backup", "--words"]);
    for input in [printed, format!("{owner}\n{tenant}\n")] {
        let laptop = User::new();
        let recover = [&["key", "recover", "--words", "--json"], &check[..]].concat();
        let output = fed(&laptop, &recover, &input);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let done: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(done["checked"], "attic");
        assert!(has_keys_of(&laptop, &user));
    }

    let laptop = User::new();
    let (mut child, mut terminal) = start(laptop.command(&["key", "recover", "--words"]));
    let (first, rest) = owner.split_once(' ').unwrap();
    for (question, line) in [
        ("the owner's words from 1 on, without numbers: ", first),
        ("the owner's words from 2 on, without numbers: ", rest),
        ("the tenant's words from 1 on, without numbers: ", &tenant),
    ] {
        wait_for(&mut terminal, question);
        terminal.write_all(format!("{line}\n").as_bytes()).unwrap();
    }
    wait_for(&mut terminal, "the keys of the backup are in");
    assert!(child.wait().unwrap().success());
    assert!(has_keys_of(&laptop, &user));
}

#[test]
fn backup_that_is_wrong_is_refused_with_its_reason_and_nothing_is_written() {
    let (user, stranger, laptop) = (User::new(), User::new(), User::new());
    let device = user.device("attic", None);
    stranger.ok(&["key", "--own"]);
    let passphrase = secret(&user, "passphrase", PASSPHRASE);
    let other = secret(&user, "other", "another passphrase\n");
    let empty = secret(&user, "empty", "\n");
    let exposed = user.path("exposed");
    std::fs::write(&exposed, PASSPHRASE).unwrap();
    std::fs::set_permissions(&exposed, Permissions::from_mode(0o644)).unwrap();
    let exposed = exposed.to_str().unwrap();
    let paths = ["keys.age", "strangers.age", "cut.age"].map(|name| user.path(name));
    let [file, strangers, cut] = [0, 1, 2].map(|at| paths[at].to_str().unwrap());
    for (user, file) in [(&user, file), (&stranger, strangers)] {
        user.ok(&["key", "backup", "--to", file, "--passphrase-file", &passphrase]);
    }
    let whole = std::fs::read(file).unwrap();
    std::fs::write(cut, &whole[..whole.len() - 7]).unwrap();
    let strangers_key = stranger.json(&["key", "--own"])["owner_signing_key"].clone();
    let strangers_key = strangers_key.as_str().unwrap();
    for (file, passphrase, more, why) in [
        (file, &*other, &[][..], "keys.age: the passphrase is not the one of this backup"),
        (cut, &passphrase, &[], "cut.age: it is cut short or changed"),
        (&passphrase, &passphrase, &[], "it is no backup"),
        (file, &empty, &[], "empty is empty"),
        (file, exposed, &[], "others may read"),
        (strangers, &passphrase, &["--check", &device.address], "another owner"),
        (file, &passphrase, &["--key", strangers_key], "the backup is of the owner's key"),
    ] {
        let recover = ["key", "recover", "--from", file, "--passphrase-file", passphrase];
        let error = laptop.error(&[&recover, more].concat());
        assert!(error.contains(why), "{why}: {error}");
        assert!(!laptop.home().exists(), "{why}");
    }
    let error = laptop.error(&["key", "recover", "--from", file]);
    assert!(error.contains("--passphrase-file"), "{error}");

    let words = user.ok(&["key", "backup", "--words"]);
    let misspelt = words.replacen(" 3. ", " 3. x", 1);
    let swapped = words.replacen(" 3. ", " 4. ", 1);
    for (input, why) in [
        (&*misspelt, "word 3 of the owner's list, `x"),
        (&*swapped, "the owner's list has word 4 where word 3 belongs"),
        ("legal winner thank", "the owner's list has 3 words, and not 24"),
        ("", "nothing came by standard input"),
    ] {
        let output = fed(&laptop, &["key", "recover", "--words"], input);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(1) && error.contains(why), "{why}: {error}");
        assert!(!laptop.home().exists(), "{why}");
    }
}

#[test]
fn other_keys_are_never_replaced_by_those_of_a_backup() {
    let (user, laptop) = (User::new(), User::new());
    for user in [&user, &laptop] {
        user.ok(&["key", "--own"]);
    }
    let words = user.ok(&["key", "backup", "--words"]);
    let read = |name: &str| std::fs::read(laptop.home().join(name)).unwrap();
    let before = ["owner.key", "tenant.key"].map(read);
    let output = fed(&laptop, &["key", "recover", "--words"], &words);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("holds another key than the backup"), "{error}");
    assert_eq!(["owner.key", "tenant.key"].map(read), before);
}

#[test]
fn backup_of_no_keys_and_with_a_short_passphrase_is_refused() {
    let user = User::new();
    let file = user.path("keys.age");
    let short = secret(&user, "short", "secret\n");
    let backup = ["key", "backup", "--to", "keys.age", "--passphrase-file", &short];
    assert!(user.error(&backup).contains("nothing to back up"));
    assert!(!user.home().exists());
    user.ok(&["key", "--own"]);
    assert!(user.error(&backup).contains("fewer than 12 letters"));
    assert!(user.error(&["key", "backup", "--to", "keys.age"]).contains("--passphrase-file"));
    assert!(!file.exists());
    assert!(user.json(&["key", "--own"])["backed_up_unix_s"].is_null());
}

#[test]
fn passphrase_is_asked_for_twice_and_never_shown() {
    let user = User::new();
    user.ok(&["key", "--own"]);
    for (again, end) in
        [("correct horse", "the two passphrases differ"), (PASSPHRASE, "wrote keys.age")]
    {
        let (mut child, mut terminal) = start(user.command(&["key", "backup", "--to", "keys.age"]));
        wait_for(&mut terminal, "passphrase of the backup: ");
        terminal.write_all(format!("{PASSPHRASE}\n").as_bytes()).unwrap();
        let shown = wait_for(&mut terminal, "the same again: ");
        assert!(!shown.contains("correct"), "{shown}");
        terminal.write_all(format!("{again}\n").as_bytes()).unwrap();
        let shown = wait_for(&mut terminal, end);
        assert!(!shown.contains("correct"), "{shown}");
        assert_eq!(child.wait().unwrap().success(), again == PASSPHRASE);
        assert_eq!(user.path("keys.age").exists(), again == PASSPHRASE);
    }
}

#[test]
fn first_device_says_that_there_is_no_backup_and_later_ones_are_silent() {
    let user = User::new();
    let says_so = |name: &str| {
        let told = user.device(name, None).interrupt_and_read();
        told.contains("backup of your keys in ") && told.contains("tenure key backup --to FILE")
    };
    assert_eq!(["attic", "attic", "cellar"].map(says_so), [true, false, false]);
}
