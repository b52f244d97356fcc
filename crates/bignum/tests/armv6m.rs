//! The assembly of ARMv6-M on an emulated core.

use std::path::Path;
use std::process::Command;

use tenure_testbed::{patience, skip_without_tool};

#[test]
fn assembly_on_an_emulated_core_does_what_the_portable_code_does() {
    const TARGET: &str = "thumbv6m-none-eabi";
    let device = Path::new(env!("CARGO_MANIFEST_DIR")).join("device");
    let products = Path::new(env!("CARGO_TARGET_TMPDIR")).join("device");
    let build = Command::new("cargo")
        .current_dir(device)
        .env_remove("RUSTFLAGS")
        .args(["build", "--quiet", "--release", "--target", TARGET, "--target-dir"])
        .arg(&products)
        .output()
        .expect("cargo runs this test");
    let said = String::from_utf8_lossy(&build.stderr);
    if said.contains("target may not be installed") {
        skip_without_tool(TARGET);
        return;
    }
    assert!(build.status.success(), "{said}");
    let run = Command::new("timeout")
        .arg(patience().as_secs().to_string())
        .args(["qemu-system-arm", "-M", "mps2-an385", "-nographic", "-monitor", "none"])
        .args(["-serial", "null", "-semihosting-config", "enable=on,target=native", "-kernel"])
        .arg(products.join(TARGET).join("release/tenure-bignum-device"))
        .status()
        .expect("timeout runs");
    if run.code() == Some(127) {
        skip_without_tool("qemu-system-arm");
        return;
    }
    assert_eq!(run.code(), Some(0), "the number is that of the step in device/src/main.rs");
}
