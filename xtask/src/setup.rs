//! Finds what a verb needs on this machine, and installs what is missing.
//!
//! As root, or with `CI=true`, it asks nothing. Where it may not install, it prints the one command
//! that does.

mod apt;
#[path = "../../crates/cli/src/make/programs.rs"]
mod programs;
#[path = "../../crates/cli/src/make/registry_tools.rs"]
#[allow(dead_code, reason = "the command's part of it")]
mod registry_tools;

use std::io::{BufRead, IsTerminal, Write};
use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail, ensure};
use tenure_testbed::Packages;

use self::registry_tools::RegistryTool;
use crate::toolchain::{
    self, BARE_METAL_TARGETS, CIPHER_TARGETS, STATIC_TARGET, WASI_TARGETS, WASM_TARGET,
    WITHOUT_ATOMICS_TARGET, nightly_cargo,
};
use crate::{c_compiler, paint, process};

/// Install what the other verbs need: Rust targets, clang with wasm-ld, emulators, valgrind.
#[derive(clap::Args)]
#[command(after_help = "Example: cargo xtask setup")]
pub(crate) struct Arguments {}

/// Something that a verb cannot do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// rustfmt and clippy.
    Lints,
    /// A Rust that builds guests.
    Wasm,
    /// The standard library of Rust for programs for WASI, where rustup is: nobody else has it.
    Wasi,
    /// A Rust that builds for microcontrollers.
    BareMetal,
    /// A Rust that builds static programs, where rustup is: nobody else has its standard library.
    StaticTarget,
    /// A C compiler for static programs.
    Musl,
    /// A clang that builds guests.
    Clang,
    /// The standard libraries of C and C++ for guests.
    GuestLibraries,
    /// A C++ compiler, for libFuzzer.
    CPlusPlus,
    /// QEMU for RISC-V and Arm, which runs what is built for other cores than this machine's.
    Emulators,
    /// valgrind, which watches where secrets go.
    Valgrind,
    /// Node.js with npm, and Python with pip, which run the emulator of an RP2040 and fetch its boot ROM and the
    /// tool of ESP32s.
    Node,
    /// The routing daemons that meshes are compared with.
    Routers,
    /// Other makers' clients, which speak with our servers: TLS, HTTP, registries of packages, CoAP. pip fetches aiocoap. And
    /// faketime, which shows a device a wrong clock; and the shells in which commands are completed.
    Clients,
    /// Other makers' servers, which our clients speak with: of pages, and of mails.
    Servers,
    /// A broker of MQTT with its clients.
    Broker,
    /// PostgreSQL, on which a hub may keep its database.
    Postgres,
    /// OpenSSL's command, which makes certificates.
    OpenSsl,
    /// Other makers' TLS, beside [`Need::Clients`]: GnuTLS, NSS, wolfSSL, Go and, by pip, tlslite-ng.
    TlsPeers,
    /// Chromium with its driver, which looks at the hub's pages.
    Browser,
    /// The clients of the registries that have compilers: npm with Node.js, and pip.
    Registries,
    /// Nightly Rust with Miri.
    Miri,
}

/// The languages whose compilers registries have, as `tenure toolchain` knows them.
const LANGUAGES: [RegistryTool; 4] =
    [RegistryTool::AssemblyScript, RegistryTool::Zig, RegistryTool::JavaScript, RegistryTool::Lua];

/// The programs of [`Need::TlsPeers`], and the header of its library.
const TLS_PEERS: [&str; 8] =
    ["gnutls-cli", "gnutls-serv", "tstclnt", "selfserv", "certutil", "pk12util", "go", "cc"];
const WOLFSSL: &str = "/usr/include/wolfssl/ssl.h";

/// The programs of [`Need::Clients`], and Debian's packages with them.
const CLIENTS: [(&str, &str); 7] = [
    ("curl", "curl"),
    ("openssl", "openssl"),
    ("skopeo", "skopeo"),
    ("coap-client-notls", "libcoap3-bin"),
    ("faketime", "faketime"),
    ("zsh", "zsh"),
    ("fish", "fish"),
];

/// The programs of [`Need::Servers`].
const SERVERS: [&str; 2] = ["nginx", "caddy"];

/// The programs of [`Need::Broker`].
const BROKER: [&str; 3] = ["mosquitto", "mosquitto_pub", "mosquitto_sub"];

/// The programs of [`Need::Browser`]; npm fetches the check of accessibility.
const BROWSER: [&str; 3] = ["chromium", "chromedriver", "npm"];

/// The words after `rustup` for [`Need::Miri`]; it builds the standard library from its source.
const NIGHTLY_WITH_MIRI: [&str; 9] =
    ["toolchain", "install", "nightly", "--profile", "minimal", "-c", "miri", "-c", "rust-src"];

/// Whole machines, and processes of other cores.
const EMULATORS: [&str; 4] =
    ["qemu-system-riscv32", "qemu-system-arm", "qemu-riscv64", "qemu-aarch64"];

/// The needs of all tests.
pub(crate) const TESTS: [Need; 14] = [
    Need::Lints,
    Need::Wasm,
    Need::Wasi,
    Need::Registries,
    Need::BareMetal,
    Need::Clang,
    Need::GuestLibraries,
    Need::Emulators,
    Need::Clients,
    Need::Servers,
    Need::Broker,
    Need::Postgres,
    Need::Browser,
    Need::Valgrind,
];

/// The needs of the hub's image.
pub(crate) const IMAGE: [Need; 2] = [Need::StaticTarget, Need::Musl];

/// The needs of the tests that run without the slow checks: guests, and emulated boards.
pub(crate) const QUICK_TESTS: [Need; 13] = [
    Need::Lints,
    Need::Wasm,
    Need::Wasi,
    Need::Registries,
    Need::BareMetal,
    Need::Clang,
    Need::GuestLibraries,
    Need::Emulators,
    Need::Clients,
    Need::Servers,
    Need::Broker,
    Need::Postgres,
    Need::Browser,
];

pub(crate) fn run(_: &Arguments, root: &Path) -> Result<()> {
    ensure(&TESTS)?;
    ensure(&IMAGE)?;
    ensure_languages()?;
    fetch_packages(root)?;
    println!("Nothing is missing.");
    Ok(())
}

/// Installs what is missing of `needs`; an error says what to do by hand.
pub(crate) fn ensure(needs: &[Need]) -> Result<()> {
    let missing = missing(needs);
    if missing.is_empty() {
        return Ok(());
    }
    println!("{}", paint::stdout().strong("Missing on this machine:"));
    for need in &missing {
        println!("  {}", need.in_words());
    }
    if !may_install()? {
        bail!("not installed. {}", by_hand(&missing));
    }
    install_with_rustup(&missing);
    let missing = self::missing(needs);
    if !missing.is_empty() {
        install_with_apt(&missing)?;
    }
    let missing = self::missing(needs);
    if !missing.is_empty() {
        bail!("still missing after the installation. {}", by_hand(&missing));
    }
    Ok(())
}

/// Installs the compilers of languages that registries have, as `tenure toolchain install` does.
pub(crate) fn ensure_languages() -> Result<()> {
    let missing: Vec<_> =
        LANGUAGES.into_iter().filter(|compiler| compiler.installed().is_none()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let languages: Vec<_> = missing.iter().map(|compiler| compiler.language()).collect();
    println!("Missing on this machine: the compilers of {}", languages.join(" and "));
    let command = format!("tenure toolchain install {}", languages.join(" "));
    if !may_install()? {
        println!("Not installed; tests of these languages are left out. Run this once: {command}");
        return Ok(());
    }
    println!("Installing: {command}");
    missing.iter().try_for_each(|compiler| compiler.install().map(drop))
}

/// Fetches the packages of registries that tests use, so that no test waits for it; they stay in the target folder.
pub(crate) fn fetch_packages(root: &Path) -> Result<()> {
    let among = &toolchain::temporary_folder(root);
    let failed: Vec<String> = std::thread::scope(|scope| {
        let fetch = |packages: Packages| {
            let fetched = packages.fetch(among);
            fetched.err().map(|error| format!("{}: {error}", packages.name()))
        };
        // Each waits for its registry.
        let threads = Packages::ALL.map(|packages| scope.spawn(move || fetch(packages)));
        let all = threads.into_iter().filter_map(|it| it.join().expect("the thread returns"));
        all.collect()
    });
    ensure!(failed.is_empty(), "packages of tests can't be fetched: {}", failed.join("; "));
    Ok(())
}

/// Whether registries have the compiler of the language, as `tenure toolchain` calls it.
pub(crate) fn is_in_a_registry(language: &str) -> bool {
    LANGUAGES.into_iter().any(|compiler| compiler.language() == language)
}

fn has_pip() -> bool {
    process::succeeds(Command::new("python3").args(["-m", "pip", "--version"]))
}

/// Whether a Python has aiosmtpd: the first on the path, or Debian's.
fn has_mail_server() -> bool {
    let imports = |python| process::succeeds(Command::new(python).args(["-c", "import aiosmtpd"]));
    ["python3", "/usr/bin/python3"].into_iter().any(imports)
}

fn missing(needs: &[Need]) -> Vec<Need> {
    needs.iter().copied().filter(|need| !need.is_met()).collect()
}

impl Need {
    fn is_met(self) -> bool {
        match self {
            Need::Lints => ["fmt", "clippy"]
                .iter()
                .all(|tool| process::succeeds(Command::new("cargo").args([tool, "--version"]))),
            Need::Wasm => toolchain::for_target(WASM_TARGET).is_some(),
            Need::Wasi => {
                process::find_program("rustup").is_none()
                    || WASI_TARGETS.into_iter().all(toolchain::active_has)
            }
            Need::StaticTarget => {
                process::find_program("rustup").is_none() || toolchain::active_has(STATIC_TARGET)
            }
            Need::Musl => process::find_program("musl-gcc").is_some(),
            Need::BareMetal => {
                let further = CIPHER_TARGETS.iter().chain([&WITHOUT_ATOMICS_TARGET]);
                let mut targets = BARE_METAL_TARGETS.iter().chain(further);
                targets.all(|target| toolchain::for_target(target).is_some())
            }
            Need::Clang => c_compiler::find().is_some(),
            Need::GuestLibraries => {
                Path::new("/usr/include/wasm32-wasi/c++/v1/vector").is_file()
                    || std::env::var_os("WASI_SYSROOT").is_some()
            }
            Need::CPlusPlus => process::find_program("c++").is_some(),
            Need::Emulators => {
                EMULATORS.iter().all(|emulator| process::find_program(emulator).is_some())
            }
            Need::Valgrind => process::find_program("valgrind").is_some(),
            Need::Node | Need::Registries => {
                ["node", "npm", "python3"].iter().all(|tool| process::find_program(tool).is_some())
                    && has_pip()
            }
            Need::Routers => {
                ["batmand", "babeld"].iter().all(|daemon| process::find_program(daemon).is_some())
            }
            Need::Clients => {
                CLIENTS.iter().all(|(client, _)| process::find_program(client).is_some())
                    && has_pip()
            }
            Need::Servers => {
                SERVERS.iter().all(|server| tenure_testbed::find_server(server).is_some())
                    && has_mail_server()
            }
            Need::Broker => {
                BROKER.iter().all(|program| tenure_testbed::find_server(program).is_some())
            }
            Need::Postgres => tenure_testbed::has_postgres(),
            Need::OpenSsl => process::find_program("openssl").is_some(),
            Need::TlsPeers => {
                TLS_PEERS.iter().all(|program| process::find_program(program).is_some())
                    && Path::new(WOLFSSL).is_file()
                    && has_pip()
            }
            Need::Browser => BROWSER.iter().all(|program| process::find_program(program).is_some()),
            Need::Miri => process::succeeds(nightly_cargo().args(["miri", "--version"])),
        }
    }

    fn in_words(self) -> &'static str {
        match self {
            Need::Lints => "rustfmt and clippy, which check how the code is written",
            Need::Wasm => "the Rust target wasm32-unknown-unknown, which builds guests",
            Need::Wasi => {
                "the Rust targets wasm32-wasip1 and wasm32-wasip2, which build programs for WASI"
            }
            Need::BareMetal => {
                "the Rust targets for microcontrollers (RV32, RV64, ARMv6-M, ARMv7-M, AArch64), \
                 which prove that the core needs no operating system"
            }
            Need::StaticTarget => "the Rust target for musl, which builds static programs",
            Need::Musl => "musl-gcc, which compiles C for static programs",
            Need::Clang => "clang 15 or later with wasm-ld of the same release (C guests)",
            Need::GuestLibraries => {
                "the standard libraries of C and C++ for WebAssembly (wasi-libc, libc++)"
            }
            Need::CPlusPlus => "a C++ compiler called c++, which builds libFuzzer",
            Need::Emulators => {
                "qemu-system-riscv32, qemu-system-arm, qemu-riscv64 and qemu-aarch64, which run \
                 what is built for other cores"
            }
            Need::Valgrind => "valgrind, which checks that no branch depends on a secret",
            Need::Node => {
                "Node.js, npm and Python with pip, for the emulator of an RP2040 and the tool of ESP32s"
            }
            Need::Registries => "Node.js, npm and Python with pip, which fetch compilers of guests",
            Need::Routers => "batmand and babeld, with which meshes are compared",
            Need::Clients => {
                "curl, openssl, skopeo, libcoap's client and Python with pip, which speak with our servers in tests; \
                 faketime, which shows them wrong clocks; and zsh and fish, which complete our commands"
            }
            Need::Servers => {
                "nginx, Caddy and aiosmtpd, which our clients speak with in tests, or hubs are behind"
            }
            Need::Broker => "Mosquitto with its clients, a broker of MQTT",
            Need::Postgres => "PostgreSQL 15 or later, on which hubs of tests keep their databases",
            Need::OpenSsl => "openssl, which makes certificates",
            Need::TlsPeers => {
                "GnuTLS, NSS, wolfSSL, Go and Python with pip, which speak TLS with us"
            }
            Need::Browser => "Chromium with its driver, and npm, which look at the hub's pages",
            Need::Miri => {
                "nightly Rust with Miri, which runs code and sees what is undefined in it"
            }
        }
    }

    /// The words after `rustup`, if rustup has it.
    fn rustup_arguments(self) -> Option<Vec<&'static str>> {
        match self {
            Need::Lints => Some(vec!["component", "add", "rustfmt", "clippy"]),
            Need::Wasm => Some(vec!["target", "add", WASM_TARGET]),
            Need::Wasi => Some([&["target", "add"][..], &WASI_TARGETS].concat()),
            Need::StaticTarget => Some(vec!["target", "add", STATIC_TARGET]),
            Need::BareMetal => {
                let further = [WITHOUT_ATOMICS_TARGET];
                let add = ["target", "add"];
                Some([&add, &BARE_METAL_TARGETS[..], &CIPHER_TARGETS, &further].concat())
            }
            Need::Miri => Some(NIGHTLY_WITH_MIRI.to_vec()),
            Need::Musl
            | Need::Clang
            | Need::GuestLibraries
            | Need::CPlusPlus
            | Need::Emulators
            | Need::Valgrind
            | Need::Node
            | Need::Registries
            | Need::Routers
            | Need::Clients
            | Need::OpenSsl
            | Need::Servers
            | Need::Broker
            | Need::Postgres
            | Need::TlsPeers
            | Need::Browser => None,
        }
    }
}

fn install_with_rustup(missing: &[Need]) {
    if process::find_program("rustup").is_none() {
        return;
    }
    for arguments in missing.iter().filter_map(|need| need.rustup_arguments()) {
        println!("Installing: rustup {}", arguments.join(" "));
        if process::run(Command::new("rustup").args(&arguments)).is_err() {
            println!("rustup could not download it (no network?).");
        }
    }
}

fn install_with_apt(missing: &[Need]) -> Result<()> {
    if !apt::exists() {
        bail!("no package manager known here. {}", by_hand(missing));
    }
    apt::update();
    let packages = apt::packages(missing);
    if packages.is_empty() {
        bail!("apt has no package for it. {}", by_hand(missing));
    }
    println!("Installing: {}", apt::command_line(&packages));
    if apt::install(&packages).is_err() {
        bail!("apt-get could not install it (see above; no network?). {}", by_hand(missing));
    }
    Ok(())
}

/// The line to type, or the thing to look for where we know no command.
fn by_hand(missing: &[Need]) -> String {
    let mut commands = Vec::new();
    let mut words = Vec::new();
    let mut left = Vec::new();
    for need in missing {
        match need.rustup_arguments() {
            Some(arguments) if process::find_program("rustup").is_some() => {
                commands.push(format!("rustup {}", arguments.join(" ")));
            }
            _ => left.push(*need),
        }
    }
    let packages = apt::packages(&left);
    if !packages.is_empty() && apt::exists() {
        commands.push(apt::command_line(&packages));
    } else {
        words.extend(left.iter().map(|need| need.in_words()));
    }
    let mut text = String::new();
    if !commands.is_empty() {
        text += &format!("Run this once: {}", commands.join(" && "));
    }
    if !words.is_empty() {
        text += &format!("\nInstall by your system's means: {}", words.join("; "));
    }
    text
}

/// Root and CI are not asked; a person is asked once; without a terminal the answer is no.
fn may_install() -> Result<bool> {
    if is_root() || is_ci() {
        return Ok(true);
    }
    if !may_ask() {
        return Ok(false);
    }
    print!("Install it now? [Y/n] ");
    std::io::stdout().flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "" | "y" | "yes"))
}

fn may_ask() -> bool {
    std::io::stdin().is_terminal() && !is_ci()
}

fn is_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true")
}

/// Whether we run as the superuser.
fn is_root() -> bool {
    process::quiet_capture(Command::new("id").arg("-u")).is_some_and(|id| id.trim() == "0")
}
