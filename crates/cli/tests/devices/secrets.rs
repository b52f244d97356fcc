//! A tenant's secrets: set, read by the machines that may, rotated, removed, and seen nowhere else.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::Value;
use tenure_crypto::Seed;

use crate::guests::package;
use crate::harness::{Process, User, on};

const SECRET: &str = "correct-horse-battery-staple";
const ROTATED: &str = "another-horse-another-staple";

/// Runs `tenure secret` with a value on its standard input.
pub(crate) fn tell(user: &User, arguments: &[&str], value: &str) -> Result<Value, String> {
    let mut child = user
        .command(&[&["secret"], arguments, &["--json"]].concat())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that refuses before it reads closes the pipe.
    let _ = child.stdin.take().unwrap().write_all(value.as_bytes());
    let output = child.wait_with_output().unwrap();
    if output.status.success() {
        return Ok(serde_json::from_slice(&output.stdout).unwrap());
    }
    Err(String::from_utf8(output.stderr).unwrap())
}

/// An owner's device, and the tenant whose package it runs.
fn leased() -> (User, User, Process, String) {
    let owner = User::new();
    let device = owner.device("attic", None);
    owner.ok(&[
        "install",
        &package("probe"),
        "--device",
        &device.address,
        "--grant",
        "secrets=wifi",
    ]);
    let key = owner.json(&["key", "--own"])["owner_signing_key"].as_str().unwrap().to_string();
    (owner, tenant_of(&package("probe")), device, key)
}

/// The tenant who signed a package of these tests, which is done with a key of its own.
pub(crate) fn tenant_of(package: &str) -> User {
    let tenant = User::new();
    let made = std::path::Path::new(package).with_file_name("tenant").join("tenant.key");
    std::fs::create_dir_all(tenant.home()).unwrap();
    std::fs::copy(made, tenant.home().join("tenant.key")).unwrap();
    tenant
}

#[test]
fn a_secret_is_set_read_rotated_and_removed_while_its_machine_runs() {
    let (owner, tenant, device, owner_key) = leased();
    let at = ["--device", &device.address, "--owner", &owner_key];
    let read = |name: &str| owner.call(on(&device), &["probe", "secret", name]);
    assert_eq!(read("wifi"), "not found");
    assert_eq!(read("bank"), "not granted", "asked for, and not granted");
    let change =
        |action: &str, value: &str| tell(&tenant, &[&[action, "wifi"], &at[..]].concat(), value);
    assert!(change("rotate", SECRET).unwrap_err().contains("no secret wifi yet"));
    // What a command that failed leaves in a pipe is no secret.
    for nothing in ["", "\n", "\r\n"] {
        assert!(change("set", nothing).unwrap_err().contains("nothing came by standard input"));
    }
    let empty = tenant.path("empty");
    std::fs::write(&empty, "").unwrap();
    let set = ["secret", "set", "wifi", "--file", empty.to_str().unwrap()];
    assert!(tenant.error(&[&set[..], &at[..]].concat()).contains("--empty takes an empty value"));
    assert_eq!(change("set", &format!("{SECRET}\n")).unwrap()["set"], "wifi");
    assert_eq!(read("wifi"), SECRET);
    assert!(change("set", SECRET).unwrap_err().contains("is there already"));
    assert_eq!(change("rotate", ROTATED).unwrap()["rotated"], "wifi");
    assert_eq!(read("wifi"), ROTATED);
    let listed = tenant.json(&[&["secret", "list"], &at[..]].concat());
    assert_eq!(listed["secrets"][0]["name"], "wifi");
    assert!(!listed.to_string().contains("horse"));
    assert!(change("rotate", &"x".repeat(1025)).unwrap_err().contains("at most 1024"));

    device.kill();
    let device = owner.device("attic", None);
    let read = |name: &str| owner.call(on(&device), &["probe", "secret", name]);
    let at = ["--device", &device.address, "--owner", &owner_key];
    assert_eq!(read("wifi"), ROTATED, "it survives a loss of power");
    tenant.ok(&[&["secret", "remove", "wifi"], &at[..]].concat());
    assert_eq!(read("wifi"), "not found");
}

#[test]
fn nobody_but_a_tenant_with_a_machine_there_keeps_secrets_on_a_device() {
    let (owner, tenant, device, owner_key) = leased();
    let at = ["--device", &device.address];
    let refused = tell(&tenant, &[&["set", "wifi"], &at[..]].concat(), SECRET).unwrap_err();
    assert!(refused.contains("belongs to") && refused.contains("--owner"), "{refused}");
    let stranger = User::new();
    let set = ["secret", "set", "wifi", "--owner", &owner_key];
    let refused = tell(&stranger, &[&set[1..], &at[..]].concat(), SECRET).unwrap_err();
    assert!(refused.contains("the tenant has no machine on this device"), "{refused}");
    let refused = tell(&owner, &[&["set", "wifi"], &at[..]].concat(), SECRET).unwrap_err();
    assert!(refused.contains("the tenant has no machine"), "not even the owner: {refused}");
}

#[test]
fn no_flash_log_snapshot_or_package_holds_a_secret_or_a_private_key() {
    let (owner, tenant, mut device, owner_key) = leased();
    let at = ["--device", &device.address, "--owner", &owner_key];
    tell(&tenant, &[&["set", "wifi"], &at[..]].concat(), SECRET).unwrap();
    assert_eq!(owner.call(on(&device), &["probe", "secret", "wifi"]), SECRET);
    tell(&tenant, &[&["rotate", "wifi"], &at[..]].concat(), ROTATED).unwrap();
    let log = owner.ok(&["log", "--json", "--device", &device.address]);
    let tree = owner.ok(&["tree", "probe", "--json", "--device", &device.address]);
    owner.ok(&["snapshot", "probe", "-o", "probe.snapshot", "--device", &device.address]);
    let snapshot = std::fs::read(owner.path("probe.snapshot")).unwrap();
    device.wait_for_event("mounted");
    device.kill();
    let flash = std::fs::read(owner.path("attic/flash.bin")).unwrap();
    let package = std::fs::read(package("probe")).unwrap();
    let places = [&flash, log.as_bytes(), tree.as_bytes(), &package, &snapshot];
    let holds = |place: &[u8], bytes: &[u8]| place.windows(bytes.len()).any(|part| part == bytes);
    for needle in [SECRET, ROTATED, &SECRET[..12]] {
        assert!(places.iter().all(|place| !holds(place, needle.as_bytes())), "{needle}");
    }
    // The seed stands in the flash once, in the record of its own: what a software device has
    // instead of a secure element. What is derived from it stands nowhere.
    let at = flash.windows(4).position(|part| part == b"seed").unwrap() + 4;
    let seed: [u8; 32] = flash[at..at + 32].try_into().unwrap();
    assert_eq!(flash.windows(32).filter(|part| *part == seed).count(), 1);
    assert!(places[1..].iter().all(|place| !holds(place, &seed)));
    let derived = Seed::from_bytes(&seed);
    let signing = derived.device_signing_key();
    assert!(places.iter().all(|place| !holds(place, &*signing.to_bytes())));
    let mut agreement = [0; 32];
    tenure_crypto::hkdf_sha256(&[], &seed, &[b"tenure 1 device agreement"], &mut agreement);
    let public = tenure_crypto::StaticSecret::from_bytes(&agreement).public_key();
    assert_eq!(public, derived.device_secret().public_key(), "the label is the one in use");
    assert!(places.iter().all(|place| !holds(place, &agreement)));
    for key in ["owner.key", "tenant.key"] {
        for user in [&owner, &tenant] {
            let Ok(hex) = std::fs::read_to_string(user.home().join(key)) else { continue };
            let bytes: Vec<u8> = (0..32)
                .map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap())
                .collect();
            assert!(places.iter().all(|place| !holds(place, &bytes)), "{key}");
        }
    }
}
