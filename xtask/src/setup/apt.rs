//! The names of Debian's packages, and how they are installed.

use std::process::Command;

use anyhow::Result;

use super::{Need, is_root, may_ask};
use crate::process::{self, LLVM_RELEASES};

pub(super) fn exists() -> bool {
    process::find_program("apt-get").is_some()
}

/// The packages that meet `needs`.
pub(super) fn packages(needs: &[Need]) -> Vec<String> {
    let mut packages: Vec<String> = Vec::new();
    for need in needs {
        packages.extend(match need {
            Need::Lints => vec!["rustfmt-web".into(), "rust-web-clippy".into()],
            // Debian's newest Rust, which builds `core` from its source for any target.
            Need::Wasm | Need::BareMetal => {
                let linker = format!("lld-{}", newest_clang());
                vec!["rustc-web".into(), "cargo-web".into(), "rust-web-src".into(), linker]
            }
            Need::GuestLibraries => {
                let release = newest_clang();
                let of_release = ["libc++-", "libc++abi-", "libclang-rt-"];
                let of_release = of_release.map(|name| format!("{name}{release}-dev-wasm32"));
                of_release.into_iter().chain(["wasi-libc".into()]).collect()
            }
            Need::CPlusPlus => vec!["g++".into()],
            Need::Emulators => {
                vec!["qemu-system-arm".into(), "qemu-system-misc".into(), "qemu-user".into()]
            }
            Need::Valgrind => vec!["valgrind".into()],
            // Debian has no nightly Rust, no Rust for musl, and of WebAssembly's libraries those without a system.
            Need::Miri | Need::Wasi | Need::StaticTarget => Vec::new(),
            Need::Musl => vec!["musl-tools".into()],
            Need::Node | Need::Registries => [absent("node", "nodejs"), absent("npm", "npm")]
                .into_iter()
                .flatten()
                .chain(["python3-pip".into()])
                .collect(),
            Need::Routers => vec!["batmand".into(), "babeld".into()],
            Need::Browser => ["chromium", "chromium-driver"]
                .into_iter()
                .map(String::from)
                .chain(absent("npm", "npm"))
                .collect(),
            Need::Clients => super::CLIENTS
                .map(|(_, package)| package)
                .into_iter()
                .chain(["python3-pip"])
                .map(String::from)
                .collect(),
            Need::Servers => {
                ["nginx-light", "caddy", "python3-aiosmtpd"].map(String::from).to_vec()
            }
            Need::Broker => ["mosquitto", "mosquitto-clients"].map(String::from).to_vec(),
            Need::Postgres => vec!["postgresql".into()],
            Need::OpenSsl => vec!["openssl".into()],
            Need::TlsPeers => {
                ["gnutls-bin", "libnss3-tools", "libwolfssl-dev", "golang-go", "gcc", "python3-pip"]
                    .map(String::from)
                    .to_vec()
            }
            Need::Clang => {
                let release = newest_clang();
                vec![format!("clang-{release}"), format!("lld-{release}")]
            }
        });
    }
    packages.sort();
    packages.dedup();
    packages
}

/// The package that has this program, unless the machine has the program already: Node.js of another source
/// conflicts with Debian's npm.
fn absent(program: &str, package: &str) -> Option<String> {
    process::find_program(program).is_none().then(|| package.to_string())
}

/// The newest release of clang of which apt has both the compiler and the linker.
fn newest_clang() -> u32 {
    let names = process::quiet_capture(Command::new("apt-cache").args(["pkgnames", "clang-"]))
        .unwrap_or_default();
    let linkers = process::quiet_capture(Command::new("apt-cache").args(["pkgnames", "lld-"]))
        .unwrap_or_default();
    newest_of(&names, &linkers).unwrap_or(*LLVM_RELEASES.start())
}

fn newest_of(compilers: &str, linkers: &str) -> Option<u32> {
    compilers
        .lines()
        .filter_map(|name| name.strip_prefix("clang-")?.parse().ok())
        .filter(|release| linkers.lines().any(|name| name == format!("lld-{release}")))
        .max()
}

/// Another program that installs, such as a second setup or the system's own upgrades, is waited for, in seconds.
const WAITS: &str = "-oDPkg::Lock::Timeout=600";

/// Refreshes the list of packages; what fails here fails again, with a better message, on install.
pub(super) fn update() {
    println!("Looking up packages: apt-get update");
    let _ = process::run(privileged().args(["apt-get", "-qq", WAITS, "update"]));
}

/// Installs, but never at the price of another package.
pub(super) fn install(packages: &[String]) -> Result<()> {
    let options = ["-qq", WAITS, "-y", "--no-install-recommends", "--no-remove"];
    process::run(privileged().args(["apt-get", "install"]).args(options).args(packages))
}

/// The command that a person would type for [`install`].
pub(super) fn command_line(packages: &[String]) -> String {
    let sudo = if is_root() { "" } else { "sudo " };
    format!("{sudo}apt-get install --no-remove {}", packages.join(" "))
}

fn privileged() -> Command {
    let mut command = Command::new(if is_root() { "env" } else { "sudo" });
    if !is_root() {
        if !may_ask() {
            command.arg("--non-interactive");
        }
        command.arg("env");
    }
    command.arg("DEBIAN_FRONTEND=noninteractive");
    command
}

#[cfg(test)]
mod tests {
    use super::newest_of;

    #[test]
    fn newest_clang_is_compared_as_number_and_needs_its_linker() {
        let compilers = "clang-9\nclang-19\nclang-22\nclang-format\nclang-22-doc";
        assert_eq!(newest_of(compilers, "lld-9\nlld-19"), Some(19));
        assert_eq!(newest_of(compilers, "lld-22-dev"), None);
    }
}
