//! Says which Thumb the target has; the compiler does not tell (`target_feature = "thumb2"` is
//! unstable on ARM).

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(tenure_thumb, values(none(), \"v6m\", \"v7m\"))");
    println!("cargo::rustc-check-cfg=cfg(tenure_xpulp)");
    println!("cargo::rustc-check-cfg=cfg(tenure_portable)");
    println!("cargo::rustc-check-cfg=cfg(tenure_small_loop)");
    let target = std::env::var("TARGET").unwrap_or_default();
    let thumb = match target.split('-').next().unwrap_or_default() {
        "thumbv6m" | "thumbv8m.base" => "v6m",
        "thumbv7m" | "thumbv7em" | "thumbv8m.main" => "v7m",
        _ => return,
    };
    println!("cargo::rustc-cfg=tenure_thumb");
    println!("cargo::rustc-cfg=tenure_thumb=\"{thumb}\"");
}
