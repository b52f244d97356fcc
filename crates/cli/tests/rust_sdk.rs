//! The Rust SDK: how parameters come in, results go out, and what happens when something fails.

mod common;

use common::Workbench;
use common::device::{Device, Queued};
use tenure_wire::PublicKey;
use tenure_wire::host_call::HostError;

const CARGO: &str = r#"
[package]
name = "probe"
version = "0.1.0"
edition = "2024"

[lib]
crate-type = ["cdylib"]

[dependencies]
tenure = { path = ".tenure/sdk/rust" }

[profile.release]
opt-level = "z"
lto = true
codegen-units = 1
panic = "abort"

[workspace]
exclude = [".tenure"]
"#;

const PROJECT: &str = r#"
name = "probe"
version = "0.1.0"
language = "rust"

[budget]
memory_bytes = 65536

[tree]
bytes = [1, 2, 255]
"#;

const PROGRAM: &str = r##"
#![no_std]
extern crate alloc;
use alloc::{format, string::String, vec, vec::Vec};
use core::time::Duration;
use tenure::{Error, Level, Which, log, tree};

tenure::export!(
    nothing, optional_bytes, optional_text, bytes, text, fails, panics, keys, stored, deleted,
    called, queued, waits, heap, levels,
);

fn nothing() {}

fn optional_bytes(parameter: Option<&[u8]>) -> Option<Vec<u8>> {
    parameter.map(|bytes| bytes.iter().rev().copied().collect())
}

fn optional_text(parameter: Option<&str>) -> Option<String> {
    parameter.map(|text| text.to_uppercase())
}

fn bytes(parameter: &[u8]) -> String {
    format!("{}", parameter.len())
}

fn text(parameter: &str) -> &'static str {
    if parameter.is_empty() { "empty" } else { "text" }
}

fn fails() -> Result<(), Error> {
    Err(Error::Denied)
}

fn panics() {
    panic!("number {}", 7);
}

fn keys() -> Result<String, Error> {
    let own = tenure::public_key()?;
    let peers = tenure::peers(Which::Local)?;
    let nobody = tenure::resolve("nobody")?;
    let parsed: tenure::PublicKey = format!("{}", peers[1]).parse().unwrap();
    assert_eq!((parsed, tenure::caller()?), (peers[1], Some(own)));
    Ok(format!("{} {own} {} {nobody:?}", peers.len(), peers[1].target()))
}

fn stored() -> Result<(), Error> {
    assert_eq!(tree::get("bytes")?, Some(vec![1, 2, 255]));
    assert_eq!(tree::text("bytes"), Err(Error::Invalid));
    assert_eq!(tree::get("nothing")?, None);
    tree::set_text("a.b", "text")?;
    tree::set("a.c", &[])?;
    assert_eq!(tree::text("a.b")?.as_deref(), Some("text"));
    assert_eq!(tree::get("a.c")?, Some(vec![]));
    assert_eq!(tree::children("a")?, ["b", "c"]);
    assert_eq!(tree::children("b")?, [""; 0]);
    Ok(())
}

fn deleted() -> Result<String, Error> {
    Ok(format!("{}", tree::delete("a")?))
}

fn called() -> Result<(), Error> {
    assert_eq!(tenure::call("x@y", "f", Some(b"p"))?.as_deref(), Some(&b"result"[..]));
    assert_eq!(tenure::call("x@y", "none", None)?, None);
    assert_eq!(tenure::call("x@y", "gone", None), Err(Error::Unreachable));
    assert_eq!(tenure::call("nobody", "f", None), Err(Error::NotFound));
    tenure::call_with_deadline("x@y", "f", None, Duration::from_secs(3))?;
    Ok(())
}

fn queued() -> Result<String, Error> {
    let task = tenure::queue("x@y", "f").parameter(b"").on_success("s").on_failure("e").retries(3);
    Ok(format!("{}", task.send()?))
}

fn waits() -> String {
    tenure::sleep(Duration::from_millis(1500));
    tenure::yield_now();
    let mut chance = [0; 4];
    tenure::random(&mut chance).unwrap();
    format!("{:?} {:?} {chance:?}", tenure::uptime(), tenure::unix_time())
}

/// Grows, shrinks and aligns, and takes memory back.
fn heap() -> &'static str {
    #[repr(align(64))]
    struct Aligned(u8);
    for round in 0..200_u32 {
        let mut lists: Vec<Vec<u32>> = (0..20).map(|n| vec![n; (round * 7 + n) as usize % 90]).collect();
        lists.retain(|list| list.len() % 2 == 0);
        lists.iter_mut().for_each(|list| list.extend(0..9));
        let aligned = alloc::boxed::Box::new(Aligned(7));
        assert!(aligned.0 == 7 && &raw const *aligned as usize % 64 == 0);
        for list in &lists {
            assert!(list[..list.len() - 9].iter().all(|n| *n == list[0]));
        }
    }
    assert!(Vec::<u8>::new().try_reserve(1 << 30).is_err());
    "good"
}

fn levels() {
    log!("{}", "x".repeat(300));
    log!(Level::Error, "{}é", "y".repeat(255));
}
"##;

fn device() -> Device {
    let workbench = Workbench::new();
    workbench.write(&[
        ("probe/tenure.toml", PROJECT),
        ("probe/Cargo.toml", CARGO),
        ("probe/src/lib.rs", PROGRAM),
    ]);
    Device::with(&workbench.build("probe"), |world| {
        world.local_peers = vec![[1; 32], [2; 32]];
        let function = |name: &str| ("x@y".to_owned(), name.to_owned());
        world.callees.insert(function("f"), Ok(Some(b"result".to_vec())));
        world.callees.insert(function("none"), Ok(None));
        world.callees.insert(function("gone"), Err(HostError::Unreachable));
    })
}

#[test]
fn machine_in_rust_does_what_the_documentation_says() {
    let mut device = device();
    let some = |text: &str| Ok(Some(text.to_owned()));

    // A null parameter, an empty one, one that isn't there but must be.
    assert_eq!(device.call("nothing", Some("ignored")), Ok(None));
    assert_eq!(device.call("optional_bytes", None), Ok(None));
    assert_eq!(device.call("optional_bytes", Some("abc")), some("cba"));
    assert_eq!(device.call("optional_text", Some("")), some(""));
    assert_eq!(device.call("optional_text", Some("abc")), some("ABC"));
    assert_eq!(device.call("bytes", Some("abc")), some("3"));
    assert_eq!(device.call("text", Some("")), some("empty"));
    assert!(device.call("text", None).unwrap_err().contains("the parameter is null"));
    assert!(device.call("bytes", None).unwrap_err().contains("the parameter is null"));

    // Failures say why, in the machine's own log.
    assert!(device.call("fails", None).unwrap_err().contains("denied"));
    let panic = device.call("panics", None).unwrap_err();
    assert!(panic.contains("src/lib.rs:") && panic.contains("number 7"), "{panic}");

    let keys = format!("2 {} #{} None", PublicKey([7; 32]), PublicKey([2; 32]));
    assert_eq!(device.call("keys", None), some(&keys));
    assert_eq!(device.world().peers_asked, 1, "it costs a message");
    assert_eq!(device.call("stored", None), Ok(None));
    assert_eq!(device.call("deleted", None), some("2"));
    assert_eq!(device.call("called", None), Ok(None));
    assert_eq!(device.call("queued", None), some("1"));
    let call = Queued {
        target: "x@y".into(),
        function: "f".into(),
        parameter: Some(Vec::new()),
        on_success: "s".into(),
        on_failure: "e".into(),
    };
    assert_eq!(device.world().queued, [call]);
    assert_eq!(device.call("waits", None), some("1.234567s None [4, 4, 4, 4]"));
    assert_eq!(device.world().slept_ms, 1500);
    assert_eq!(device.call("heap", None), some("good"));
    assert!(device.memory_bytes() < 48 * 1024, "memory comes back");
    device.call("levels", None).unwrap();
    assert_eq!(device.world().log, ["x".repeat(253) + "…", "y".repeat(253) + "…"]);
}

#[test]
fn parameter_that_is_not_text_fails_the_call() {
    let mut device = device();
    device.world().parameter = Some(vec![0xff]);
    assert!(device.call_again("text").unwrap_err().contains("not text"));
}
