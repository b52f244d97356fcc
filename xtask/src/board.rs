//! `board`: builds the firmware of a board and runs it as a device in the emulator.

mod costs;
mod element;
pub(crate) mod esp32;
mod flash;
mod image;
mod publisher;
pub(crate) mod rp2040;
mod supply;

use std::fs::File;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use tenure_board_linux::NullModem;
use tenure_boot::Image;

use crate::setup::{self, Need};
use crate::{planted, process, toolchain};

pub(crate) use self::costs::Cost;
use self::flash::{Flash, Place};
use self::supply::Memory;

/// The mistake that can be compiled into a firmware: its engine lets a machine reach beyond its memory.
pub(crate) const UNCHECKED_MEMORY: &str = "unchecked_memory";
/// Cargo's name for what a debug build has for debuggers.
const DEBUG: &str = "CARGO_PROFILE_DEV_DEBUG";

/// Build a board's firmware and run it as a device in the emulator.
///
/// The folder holds the device: its flash, and so its keys, machines and what they stored. The
/// firmware is the same for all; what makes a device of it are the settings in its flash. The
/// command stands for the power supply: killing it is cutting the power. SIGUSR1 lets the supply
/// fall too low for a moment, SIGUSR2 wakes a device that sleeps.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cargo xtask board qemu-riscv32 --build-only\n  cargo xtask board qemu-riscv32 --data attic --owner SIGNING-KEY/MACHINE-KEY --hub 127.0.0.1:7369"
)]
pub(crate) struct Arguments {
    /// Which board.
    board: Board,
    /// Build the firmware, print where its image is, and end.
    #[arg(long)]
    build_only: bool,
    /// Run the board's own tests, as `cargo xtask test` does: the RP2040 from its boot ROM on, the image of an
    /// ESP32 by its maker's tool.
    #[arg(long, conflicts_with = "build_only")]
    check: bool,
    /// Write the firmware into the device's flash though it has one.
    #[arg(long)]
    flash: bool,
    /// The number that the firmware gets when it is written into the device's flash.
    #[arg(long, value_name = "N", default_value_t = 1)]
    number: u32,
    /// The folder that holds the device; made if it isn't there.
    #[arg(long, value_name = "DIR", required_unless_present_any = ["build_only", "check", "costs"])]
    data: Option<PathBuf>,
    /// Compile this deliberate mistake (a `--cfg`) into the firmware, for tests of what contains it.
    #[arg(long, value_name = "NAME", value_parser = [UNCHECKED_MEMORY], hide = true)]
    planted: Option<String>,
    /// Print what walls and calls cost in instructions, instead of being a device.
    #[arg(long, conflicts_with = "build_only")]
    costs: bool,
    /// Use this image of a firmware instead of building one.
    #[arg(long, value_name = "FILE")]
    firmware: Option<PathBuf>,
    #[command(flatten)]
    settings: Settings,
    #[command(flatten)]
    publisher: publisher::Options,
    /// Where the device can be reached from this computer.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7370")]
    listen: SocketAddr,
    /// Plug the network card into the link that `cargo xtask link` carries there, instead of one
    /// that leads to this computer.
    #[arg(long, value_name = "ADDR", conflicts_with = "listen")]
    link: Option<SocketAddr>,
    /// Plug a leaf's line of the mesh in here, such as into another leaf's service line, instead of
    /// laying one that begins in its folder.
    #[arg(long, value_name = "TTY")]
    mesh_line: Option<PathBuf>,
}

/// The settings for the device's flash; a device that has settings keeps those not named.
#[derive(clap::Args)]
struct Settings {
    /// The owner's keys, `owner_signing_key/owner_machine_key` of `tenure key --own --json`.
    #[arg(long, value_name = "SIGNING-KEY/MACHINE-KEY")]
    owner: Option<String>,
    /// The device's name; by default its folder's.
    #[arg(long)]
    name: Option<String>,
    /// The directory to register with.
    #[arg(long, value_name = "ADDR")]
    hub: Option<SocketAddr>,
    /// The device's address on its network, with the bits of the prefix.
    #[arg(long, value_name = "ADDR/BITS", default_value = "10.0.2.15/24")]
    address: String,
    /// Where datagrams to other networks go.
    #[arg(long, value_name = "ADDR", default_value = "10.0.2.2")]
    gateway: Ipv4Addr,
    /// Whose firmware the device takes beside its owner's: a signing key.
    #[arg(long, value_name = "SIGNING-KEY")]
    maker: Option<String>,
    /// Turn the device off whenever nothing is due for so long; a timer turns it on again.
    #[arg(long, value_name = "SECONDS", conflicts_with = "duty_cycle")]
    deep_sleep_after: Option<String>,
    /// Let the device run and sleep by turns: 10/50 runs for ten seconds and sleeps for fifty.
    #[arg(long, value_name = "RUN/SLEEP")]
    duty_cycle: Option<String>,
}

/// A board without an operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Board {
    /// RISC-V without an operating system: QEMU's `virt`, cut down to the class of an ESP32-C3.
    QemuRiscv32,
    /// A Cortex-M3 without an operating system: QEMU's `mps2-an385`.
    QemuCortexM,
    /// The same firmware, built for the Cortex-M0+ (ARMv6-M).
    QemuCortexM0,
    /// A leaf with 64 KB of RAM: QEMU's `lm3s6965evb`, on two serial lines.
    #[value(alias = "leaf")]
    QemuLeaf,
    /// A device with 256 KB of flash and 32 KB of RAM that publishes by MQTT over TLS: QEMU's `mps2-an385`, with the code
    /// of a Cortex-M0+.
    #[value(alias = "publisher")]
    QemuPublisher,
    /// A Raspberry Pi Pico: an RP2040 with 2 MiB of flash, on two serial lines.
    #[value(alias = "pico")]
    Rp2040,
    /// Espressif's ESP32-C3; no emulator stands for it.
    Esp32c3,
    /// Espressif's ESP32-C6; no emulator stands for it.
    Esp32c6,
}

impl Board {
    pub(crate) const ALL: [Self; 8] = [
        Self::QemuRiscv32,
        Self::QemuCortexM,
        Self::QemuCortexM0,
        Self::QemuLeaf,
        Self::QemuPublisher,
        Self::Rp2040,
        Self::Esp32c3,
        Self::Esp32c6,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::QemuRiscv32 => "qemu-riscv32",
            Self::QemuCortexM => "qemu-cortex-m",
            Self::QemuCortexM0 => "qemu-cortex-m0",
            Self::QemuLeaf => "qemu-leaf",
            Self::QemuPublisher => "qemu-publisher",
            Self::Rp2040 => "rp2040",
            Self::Esp32c3 => "esp32c3",
            Self::Esp32c6 => "esp32c6",
        }
    }

    pub(crate) fn target(self) -> &'static str {
        match self {
            Self::QemuRiscv32 | Self::Esp32c6 => "riscv32imac-unknown-none-elf",
            Self::Esp32c3 => toolchain::WITHOUT_ATOMICS_TARGET,
            Self::QemuCortexM | Self::QemuLeaf => "thumbv7m-none-eabi",
            Self::QemuCortexM0 | Self::QemuPublisher | Self::Rp2040 => toolchain::SMALLEST_TARGET,
        }
    }

    /// The name of the folder that its firmware is built in.
    fn firmware(self) -> &'static str {
        match self {
            Self::QemuRiscv32 => "qemu-riscv32",
            Self::QemuCortexM | Self::QemuCortexM0 => "qemu-cortex-m",
            Self::QemuLeaf => "qemu-leaf",
            Self::QemuPublisher => "qemu-publisher",
            Self::Rp2040 => "rp2040",
            Self::Esp32c3 | Self::Esp32c6 => "esp32",
        }
    }

    /// The features that make its folder's firmware this board's.
    fn own_features(self) -> &'static str {
        match self {
            Self::QemuRiscv32 | Self::QemuCortexM | Self::QemuCortexM0 | Self::QemuLeaf => "",
            Self::QemuPublisher | Self::Rp2040 => "",
            Self::Esp32c3 | Self::Esp32c6 => self.name(),
        }
    }

    pub(crate) fn folder(self, root: &Path) -> PathBuf {
        root.join("boards").join(self.firmware())
    }

    fn has_emulator(self) -> bool {
        !matches!(self, Self::Esp32c3 | Self::Esp32c6)
    }

    /// The size of its flash's file.
    fn flash_bytes(self) -> usize {
        match self {
            // The part that the firmware isn't in.
            Self::QemuLeaf => 16 << 10,
            Self::Rp2040 => 2 << 20,
            _ => 4 << 20,
        }
    }

    /// Its RAM, as the linker scripts of its loader and firmware divide it; `None` where the emulator
    /// keeps it to itself.
    fn memory(self) -> Option<Memory> {
        match self {
            Self::QemuRiscv32 => Some(Memory {
                bytes: 8 << 20,
                variables: (4 << 20, 400 << 10),
                always_on: 0x48_0000,
            }),
            // Variables lie in RAM of its own, which no file stands for.
            Self::QemuCortexM | Self::QemuCortexM0 => {
                Some(Memory { bytes: 16 << 20, variables: (0, 0), always_on: 4 << 20 })
            }
            Self::QemuLeaf | Self::QemuPublisher | Self::Rp2040 | Self::Esp32c3 | Self::Esp32c6 => {
                None
            }
        }
    }

    /// Whether its emulator starts with a loader of ours, which takes a flat image from a slot.
    fn has_loader(self) -> bool {
        matches!(self, Self::QemuRiscv32 | Self::QemuCortexM | Self::QemuCortexM0 | Self::Rp2040)
    }

    /// Builds the firmware, and gives its file.
    pub(crate) fn build(self, root: &Path) -> Result<PathBuf> {
        self.build_variant(Variant::Product, root)
    }

    /// As [`Self::build`], of a variant of the firmware; the loader is built beside it.
    fn build_variant(self, variant: Variant<'_>, root: &Path) -> Result<PathBuf> {
        let target = self.target();
        let toolchain = toolchain::for_target(target)
            .with_context(|| format!("no toolchain for {target}; run `cargo xtask setup`"))?;
        let mut command = toolchain.cargo(&self.folder(root), "build", target);
        command.env("CARGO_TARGET_DIR", self.products(root)).args(["--quiet", "--release"]);
        command.args(["--features", self.own_features()]);
        // Tables of lines are no part of what is flashed: who wants none in tests wants none here.
        if std::env::var(DEBUG).is_ok_and(|debug| debug == "none") {
            command.env("CARGO_PROFILE_RELEASE_DEBUG", "none");
        }
        match variant {
            Variant::Product => {}
            Variant::Costs => {
                // The loader has no heap, and what is counted needs one.
                command.args(["--bin", &format!("tenure-board-{}", self.firmware())]);
                command.args(["--features", costs::FEATURE]);
            }
            Variant::Planted(mistake) => {
                // The engine has it, and the board what becomes of it.
                let board = format!("tenure-board-{}", self.firmware());
                planted::plant_in(&mut command, mistake, &["tenure-vm", &board])?;
            }
        }
        let flags = short_paths(root);
        // Join the board's own flags; `RUSTFLAGS` would take their place.
        command.args(["--config", &format!("target.{target}.rustflags={flags:?}")]);
        // All variants are built to one place, where another process may build another one at any time.
        let _only = self.lock(root)?;
        process::run_for_firmware(&mut command)?;
        let built = self.product("board", root);
        let copy = built.with_extension(variant.extension());
        let partial = built.with_extension("partial");
        std::fs::copy(&built, &partial)
            .and_then(|_| std::fs::rename(&partial, &copy))
            .with_context(|| format!("cannot write {}", copy.display()))?;
        Ok(copy)
    }

    /// Waits until no other process builds this board's firmware, and keeps others from it as long as the file is
    /// open.
    fn lock(self, root: &Path) -> Result<File> {
        let folder = self.products(root);
        let path = folder.join(format!("{}.lock", self.firmware()));
        std::fs::create_dir_all(&folder)
            .and_then(|()| File::create(&path))
            .and_then(|file| file.lock().map(|()| file))
            .with_context(|| format!("cannot lock {}", path.display()))
    }

    fn products(self, root: &Path) -> PathBuf {
        toolchain::target_folder(root).join("boards")
    }

    /// Where the board's firmware or its loader is, once it is built.
    fn product(self, what: &str, root: &Path) -> PathBuf {
        let folder = self.products(root).join(self.target()).join("release");
        folder.join(format!("tenure-{what}-{}", self.firmware()))
    }
}

/// Compiler flags that shorten the paths in panics' messages: firmware has the same bytes wherever it is built,
/// and no more of them than tell the place.
fn short_paths(root: &Path) -> Vec<String> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    let registries = home.and_then(|home| std::fs::read_dir(home.join("registry/src")).ok());
    let registries = registries.into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let mut folders: Vec<PathBuf> = registries.chain([root.to_path_buf()]).collect();
    // The order in which a folder is read isn't the next build's.
    folders.sort();
    let remap = |folder: &PathBuf| format!("--remap-path-prefix={}/=", folder.display());
    folders.iter().map(remap).collect()
}

/// The kinds of a board's firmware.
#[derive(Clone, Copy)]
enum Variant<'a> {
    /// The shipped one.
    Product,
    /// A program that counts what walls and calls cost.
    Costs,
    /// The product with a deliberate mistake, by the name of its `--cfg`.
    Planted(&'a str),
}

impl<'a> Variant<'a> {
    /// The ending of its file's name.
    fn extension(self) -> &'a str {
        match self {
            Variant::Product => image::PRODUCT,
            Variant::Costs => costs::FEATURE,
            Variant::Planted(mistake) => mistake,
        }
    }
}

/// Builds a firmware, with a deliberate mistake if one is named; returns the file that its emulator starts.
pub(crate) fn image(board: Board, planted: Option<&str>, root: &Path) -> Result<PathBuf> {
    let built = board.build_variant(planted.map_or(Variant::Product, Variant::Planted), root)?;
    if board == Board::Rp2040 {
        // The same, linked for the other slot: what an update brings while slot A runs.
        image::write(&built.with_file_name("tenure-board-rp2040-b"))?;
    }
    // Others take the program as it is linked.
    if board.has_loader() { image::write(&built) } else { Ok(built) }
}

pub(crate) fn run(arguments: &Arguments, root: &Path) -> Result<()> {
    let board = arguments.board;
    if arguments.costs {
        return print_costs(board, root);
    }
    setup::ensure(&[Need::BareMetal, Need::Emulators])?;
    if arguments.check {
        return match board {
            Board::Rp2040 => rp2040::check(root),
            Board::Esp32c3 | Board::Esp32c6 => esp32::check(board, root),
            _ => bail!("{} has no tests of its own; `cargo test` runs devices on it", board.name()),
        };
    }
    let firmware = match &arguments.firmware {
        Some(file) => file.clone(),
        None => {
            let image = self::image(board, arguments.planted.as_deref(), root)?;
            if board == Board::Rp2040 {
                rp2040::write_uf2(&image, arguments.number, root)?;
            }
            image
        }
    };
    let Some(data) = &arguments.data else {
        println!("{}", firmware.display());
        return Ok(());
    };
    if !board.has_emulator() {
        bail!("no emulator stands for {}; boards/README.md says how to flash one", board.name());
    }
    if board == Board::QemuLeaf {
        return run_leaf(data, &firmware, arguments);
    }
    if board == Board::QemuPublisher {
        return publisher::run(data, &firmware, arguments);
    }
    if board == Board::Rp2040 {
        return rp2040::run(data, &firmware, arguments, root);
    }
    if arguments.mesh_line.is_some() {
        bail!("only a leaf has a line of the mesh; others are plugged into a link by --link");
    }
    let flash = prepare_flash(board, data, &firmware, arguments)?;
    let loader = std::path::absolute(board.product("loader", root)).context("no current folder")?;
    let ram = std::path::absolute(data.join("ram.img")).context("no current folder")?;
    let emulator = || match board {
        Board::QemuRiscv32 => riscv32(&loader, flash.path(), &ram, arguments),
        _ => cortex_m(&loader, data, &ram, arguments),
    };
    supply::power(emulator, board.memory(), &ram)
}

/// Runs a leaf, whose firmware its emulator takes as it is linked; the ends of its lines are in `data`.
fn run_leaf(data: &Path, firmware: &Path, arguments: &Arguments) -> Result<()> {
    let mut flash = Flash::open(data, Board::QemuLeaf.flash_bytes(), Place::LEAF)?;
    if let Some(text) = settings_text(data, &arguments.settings, &flash)? {
        flash.write_settings(&text)?;
    }
    let service = lay_line(&data.join("service"))?;
    let mesh = match &arguments.mesh_line {
        Some(line) => line.canonicalize().with_context(|| line.display().to_string())?,
        None => lay_line(&data.join("mesh"))?,
    };
    let firmware = std::path::absolute(firmware).context("no current folder")?;
    let emulator = || leaf(&firmware, data, [&mesh, &service]);
    supply::power(emulator, Board::QemuLeaf.memory(), &data.join("ram.img"))
}

/// Lays a line whose outer end is called `name`; gives the terminal device that is the chip's UART.
fn lay_line(name: &Path) -> Result<PathBuf> {
    let what = || format!("can't lay the line {}", name.display());
    let line = NullModem::lay().with_context(what)?;
    let [chip_end, end] = line.ends();
    match std::fs::remove_file(name) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error).with_context(what),
        _ => {}
    }
    std::os::unix::fs::symlink(end, name).with_context(what)?;
    Ok(chip_end.to_owned())
}

fn leaf(firmware: &Path, data: &Path, lines: [&Path; 2]) -> Command {
    let mut command = Command::new("qemu-system-arm");
    command
        .args(["-M", "lm3s6965evb", "-action", "watchdog=poweroff"])
        .args(["-display", "none", "-monitor", "none", "-serial", "stdio"]);
    for line in lines {
        command.arg("-serial").arg(line);
    }
    command
        // The firmware finds its flash in the folder that it runs in.
        .args(["-semihosting-config", "enable=on,target=native"])
        .arg("-kernel")
        .arg(firmware)
        .current_dir(data);
    command
}

fn print_costs(board: Board, root: &Path) -> Result<()> {
    setup::ensure(&[Need::BareMetal, Need::Emulators])?;
    for Cost { what, instructions } in board.costs(root)? {
        println!("{instructions:>6} instructions  {what}");
    }
    Ok(())
}

fn riscv32(loader: &Path, flash: &Path, ram: &Path, arguments: &Arguments) -> Command {
    let mut command = Command::new("qemu-system-riscv32");
    command
        .args(["-M", "virt,memory-backend=ram", "-m", "8M", "-object"])
        .arg(memory_backend(Board::QemuRiscv32, ram))
        .arg("-object")
        .arg(memory_in_file("flash", flash, Board::QemuRiscv32.flash_bytes() as u64))
        .args(["-device", "ivshmem-plain,memdev=flash,addr=2"])
        .args(["-device", "i6300esb,addr=1", "-action", "watchdog=poweroff"])
        .args(["-display", "none", "-monitor", "none"])
        .args(["-cpu", "rv32,s=false,h=false,f=false,d=false", "-serial", "stdio"])
        // Each instruction takes eight nanoseconds, as at 125 MHz, whatever else this computer does: by that time the
        // firmware bills compiled code (`boards/qemu-riscv32/src/guard.rs`).
        .args(["-icount", "shift=3"])
        .args(["-global", "virtio-mmio.force-legacy=false", "-device", "virtio-rng-device"])
        .arg("-bios")
        .arg(loader);
    let card = format!("virtio-net-device,netdev=n0,mac={}", hardware_address(arguments));
    command.args(["-netdev", &network(arguments, "id=n0"), "-device", &card]);
    command
}

fn cortex_m(loader: &Path, data: &Path, ram: &Path, arguments: &Arguments) -> Command {
    let mut command = Command::new("qemu-system-arm");
    let card = format!("model=lan9118,mac={}", hardware_address(arguments));
    command
        .args(["-M", "mps2-an385,memory-backend=ram", "-object"])
        .arg(memory_backend(Board::QemuCortexM, ram))
        .args(["-action", "watchdog=poweroff"])
        .args(["-display", "none", "-monitor", "none", "-serial", "stdio"])
        .args(["-nic", &network(arguments, &card)])
        // The firmware finds its flash in the folder that it runs in.
        .args(["-semihosting-config", "enable=on,target=native"])
        .arg("-kernel")
        .arg(loader)
        .current_dir(data);
    command
}

/// The emulator's RAM, in a file.
fn memory_backend(board: Board, ram: &Path) -> String {
    memory_in_file("ram", ram, board.memory().map_or(0, |memory| memory.bytes))
}

/// Memory of the emulator that a file holds.
fn memory_in_file(name: &str, file: &Path, bytes: u64) -> String {
    format!("memory-backend-file,id={name},share=on,size={bytes},mem-path={}", escaped(file))
}

/// The emulator's option for a card, and `more` of its options.
fn network(arguments: &Arguments, more: &str) -> String {
    match arguments.link {
        Some(link) => format!("socket,{more},connect={link}"),
        None => {
            // An IPv6 address is refused by the emulator, which says why.
            let (host, port) = (arguments.listen.ip(), arguments.listen.port());
            format!("user,{more},hostfwd=udp:{host}:{port}-:{DEVICE_PORT}")
        }
    }
}

/// The port that devices listen on.
const DEVICE_PORT: u16 = 7370;

/// A locally administered address made of the device's IPv4 address, which is unique on its link.
fn hardware_address(arguments: &Arguments) -> String {
    let address = arguments.settings.address.split('/').next().unwrap_or_default();
    let octets = address.parse::<Ipv4Addr>().unwrap_or(Ipv4Addr::UNSPECIFIED).octets();
    let [a, b, c, d] = octets;
    format!("52:54:{a:02x}:{b:02x}:{c:02x}:{d:02x}")
}

/// A comma separates options of the emulator; two are one in a value.
fn escaped(path: &Path) -> String {
    path.to_string_lossy().replace(',', ",,")
}

/// The device's flash, made if it isn't there, with firmware and settings.
fn prepare_flash(
    board: Board,
    data: &Path,
    firmware: &Path,
    arguments: &Arguments,
) -> Result<Flash> {
    let mut flash = Flash::open(data, board.flash_bytes(), Place::NODE)?;
    let image = std::fs::read(firmware)
        .with_context(|| format!("cannot read the firmware {}", firmware.display()))?;
    match flash.firmware()? {
        None => flash.flash_firmware(&image, arguments.number)?,
        Some(_) if arguments.flash => flash.flash_firmware(&image, arguments.number)?,
        Some(state) if state.good != Image::new(state.good.slot, state.good.number, &image) => {
            let number = state.good.number;
            eprintln!("the device has firmware {number} in flash; --flash writes this one there");
        }
        Some(_) => {}
    }
    if let Some(text) = settings_text(data, &arguments.settings, &flash)? {
        let network = &arguments.settings;
        let (address, gateway) = (&network.address, network.gateway);
        let mut text = format!("{text}address={address}\ngateway={gateway}\n");
        let lines = [
            ("hub", network.hub.map(|hub| hub.to_string())),
            ("maker", network.maker.clone()),
            ("deep-sleep-after", network.deep_sleep_after.clone()),
            ("duty-cycle", network.duty_cycle.clone()),
        ];
        for (key, value) in lines {
            text += &value.map(|value| format!("{key}={value}\n")).unwrap_or_default();
        }
        flash.write_settings(&text)?;
    }
    Ok(flash)
}

/// The settings of every device: its name and its owner; `None` to leave what the flash holds.
fn settings_text(data: &Path, settings: &Settings, flash: &Flash) -> Result<Option<String>> {
    let Some(owner) = &settings.owner else {
        if !flash.has_settings() {
            bail!(
                "the device in {} has no settings yet; say whose it is with --owner",
                data.display()
            );
        }
        return Ok(None);
    };
    let name = settings.name_in(data)?;
    Ok(Some(format!("name={name}\nowner={owner}\n")))
}

impl Settings {
    /// The name of the device in the folder `data`.
    fn name_in(&self, data: &Path) -> Result<String> {
        if let Some(name) = &self.name {
            return Ok(name.clone());
        }
        let last = data.file_name().context("name the device with --name")?;
        Ok(last.to_string_lossy().to_lowercase())
    }
}
