//! Says whether the target is ARMv6-M; the compiler does not tell (`target_feature = "thumb2"` is
//! unstable on ARM).

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(tenure_armv6m)");
    let target = std::env::var("TARGET").unwrap_or_default();
    if target.starts_with("thumbv6m") || target.starts_with("thumbv8m.base") {
        println!("cargo::rustc-cfg=tenure_armv6m");
    }
}
