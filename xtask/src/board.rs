//! `board`: builds the firmware of a board and runs it as a device in the emulator.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::setup::{self, Need};
use crate::{process, toolchain};

/// Build a board's firmware and run it as a device in the emulator.
///
/// The folder holds the device: its flash, and so its keys, machines and what they stored. The
/// firmware is the same for all; what makes a device of it are the settings in its flash. The
/// command becomes the emulator: killing it is cutting the power.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cargo xtask board qemu-riscv32 --build-only\n  cargo xtask board qemu-riscv32 --data attic --owner SIGNING-KEY/MACHINE-KEY --hub 127.0.0.1:7369"
)]
pub(crate) struct Arguments {
    /// Which board.
    board: Board,
    /// Build the firmware, print where it is, and end.
    #[arg(long)]
    build_only: bool,
    /// The folder that holds the device; made if it isn't there.
    #[arg(long, value_name = "DIR", required_unless_present = "build_only")]
    data: Option<PathBuf>,
    /// Features of the firmware, for tests.
    #[arg(long, value_name = "NAMES", default_value = "", hide = true)]
    features: String,
    /// Use this firmware instead of building one.
    #[arg(long, value_name = "FILE")]
    firmware: Option<PathBuf>,
    #[command(flatten)]
    settings: Settings,
    /// Where the device can be reached from this computer.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7370")]
    listen: SocketAddr,
    /// Plug the network card into the link that `cargo xtask link` carries there, instead of one
    /// that leads to this computer.
    #[arg(long, value_name = "ADDR", conflicts_with = "listen")]
    link: Option<SocketAddr>,
}

/// What is written into the device's flash; a device that has settings keeps those not named.
#[derive(clap::Args)]
struct Settings {
    /// The owner's keys, `owner_signing_key/owner_machine_key` of `tenure key --own --json`.
    #[arg(long, value_name = "SIGNING-KEY/MACHINE-KEY")]
    owner: Option<String>,
    /// What the device is called; by default as its folder.
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
}

/// A board that an emulator stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Board {
    /// RISC-V without an operating system: QEMU's `virt`, cut down to the class of an ESP32-C3.
    QemuRiscv32,
    /// A Cortex-M3 without an operating system: QEMU's `mps2-an385`.
    QemuCortexM,
    /// The same firmware, built for the Cortex-M0+ (ARMv6-M).
    QemuCortexM0,
}

impl Board {
    pub(crate) const ALL: [Self; 3] = [Self::QemuRiscv32, Self::QemuCortexM, Self::QemuCortexM0];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::QemuRiscv32 => "qemu-riscv32",
            Self::QemuCortexM => "qemu-cortex-m",
            Self::QemuCortexM0 => "qemu-cortex-m0",
        }
    }

    pub(crate) fn target(self) -> &'static str {
        match self {
            Self::QemuRiscv32 => "riscv32imac-unknown-none-elf",
            Self::QemuCortexM => "thumbv7m-none-eabi",
            Self::QemuCortexM0 => toolchain::SMALLEST_TARGET,
        }
    }

    /// The name of the folder that its firmware is built in.
    fn firmware(self) -> &'static str {
        match self {
            Self::QemuRiscv32 => "qemu-riscv32",
            Self::QemuCortexM | Self::QemuCortexM0 => "qemu-cortex-m",
        }
    }

    pub(crate) fn folder(self, root: &Path) -> PathBuf {
        root.join("boards").join(self.firmware())
    }

    /// The size of its flash's file.
    fn flash_bytes(self) -> usize {
        match self {
            // The bank of flash is of this size or none.
            Self::QemuRiscv32 => 32 << 20,
            Self::QemuCortexM | Self::QemuCortexM0 => 4 << 20,
        }
    }

    /// Builds the firmware, and gives its file.
    pub(crate) fn build(self, root: &Path) -> Result<PathBuf> {
        self.build_with("", root)
    }

    /// As [`Self::build`], with these of the firmware's features.
    fn build_with(self, features: &str, root: &Path) -> Result<PathBuf> {
        let target = self.target();
        let toolchain = toolchain::for_target(target)
            .with_context(|| format!("no toolchain for {target}; run `cargo xtask setup`"))?;
        let mut command = toolchain.cargo(&self.folder(root), "build", target);
        let products = toolchain::target_folder(root).join("boards");
        command.env("CARGO_TARGET_DIR", &products).args(["--quiet", "--release"]);
        process::run(command.args(["--features", features]))?;
        let built =
            products.join(target).join("release").join(format!("tenure-board-{}", self.firmware()));
        if features.is_empty() {
            return Ok(built);
        }
        // The next build without them would take its place.
        let copy = built.with_extension(features);
        std::fs::copy(&built, &copy).with_context(|| format!("cannot write {}", copy.display()))?;
        Ok(copy)
    }
}

pub(crate) fn run(arguments: &Arguments, root: &Path) -> Result<()> {
    let board = arguments.board;
    setup::ensure(&[Need::BareMetal, Need::Emulators])?;
    let firmware = match &arguments.firmware {
        Some(file) => file.clone(),
        None => board.build_with(&arguments.features, root)?,
    };
    let Some(data) = &arguments.data else {
        println!("{}", firmware.display());
        return Ok(());
    };
    let flash = prepare_flash(board, data, &arguments.settings)?;
    let mut command = match board {
        Board::QemuRiscv32 => riscv32(&firmware, &flash, arguments),
        Board::QemuCortexM | Board::QemuCortexM0 => cortex_m(&firmware, data, arguments)?,
    };
    // The device is this process from here on; it returns only if it can't be.
    Err(command.exec()).context("cannot start the emulator")
}

fn riscv32(firmware: &Path, flash: &Path, arguments: &Arguments) -> Command {
    let mut command = Command::new("qemu-system-riscv32");
    command
        .args(["-M", "virt", "-m", "8M", "-display", "none", "-monitor", "none"])
        .args(["-cpu", "rv32,s=false,h=false,f=false,d=false", "-serial", "stdio"])
        .args(["-global", "virtio-mmio.force-legacy=false", "-device", "virtio-rng-device"])
        .arg("-bios")
        .arg(firmware)
        .arg("-drive")
        .arg(format!("if=pflash,unit=1,format=raw,file={}", escaped(flash)));
    let card = format!("virtio-net-device,netdev=n0,mac={}", hardware_address(arguments));
    command.args(["-netdev", &network(arguments, "id=n0"), "-device", &card]);
    command
}

fn cortex_m(firmware: &Path, data: &Path, arguments: &Arguments) -> Result<Command> {
    let mut command = Command::new("qemu-system-arm");
    let card = format!("model=lan9118,mac={}", hardware_address(arguments));
    command
        .args(["-M", "mps2-an385", "-display", "none", "-monitor", "none", "-serial", "stdio"])
        .args(["-nic", &network(arguments, &card)])
        // The firmware finds its flash in the folder that it runs in.
        .args(["-semihosting-config", "enable=on,target=native"])
        .arg("-kernel")
        .arg(std::path::absolute(firmware).context("no current folder")?)
        .current_dir(data);
    Ok(command)
}

/// What the emulator plugs a card into, and `more` of its options.
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

/// Where in flash the settings stand: behind the firmware's part.
const SETTINGS_OFFSET: u64 = 1 << 20;
const SETTINGS_BYTES: usize = 4096;

/// The device's flash file, made if it isn't there, with its settings.
fn prepare_flash(board: Board, data: &Path, settings: &Settings) -> Result<PathBuf> {
    std::fs::create_dir_all(data)
        .with_context(|| format!("can't make the folder {}", data.display()))?;
    let path = data.join("flash.img");
    let what = || format!("the flash of the device, {}", path.display());
    if !path.exists() {
        // Whole or not at all: a file of another size is no flash.
        let blank = data.join("flash.new");
        std::fs::write(&blank, vec![0xFF; board.flash_bytes()]).with_context(what)?;
        std::fs::rename(&blank, &path).with_context(what)?;
    }
    let mut file = OpenOptions::new().read(true).write(true).open(&path).with_context(what)?;
    let Some(owner) = &settings.owner else {
        if read_settings(&mut file).with_context(what)?[0] == 0xFF {
            bail!(
                "the device in {} has no settings yet; say whose it is with --owner",
                data.display()
            );
        }
        return Ok(path);
    };
    let name = match &settings.name {
        Some(name) => name.clone(),
        None => {
            let last = data.file_name().context("name the device with --name")?;
            last.to_string_lossy().to_lowercase()
        }
    };
    let (address, gateway) = (&settings.address, settings.gateway);
    let mut text = format!("name={name}\nowner={owner}\naddress={address}\ngateway={gateway}\n");
    if let Some(hub) = settings.hub {
        text += &format!("hub={hub}\n");
    }
    let mut sector = text.into_bytes();
    sector.resize(SETTINGS_BYTES, 0xFF);
    if read_settings(&mut file).with_context(what)? != sector {
        file.seek(SeekFrom::Start(SETTINGS_OFFSET)).with_context(what)?;
        file.write_all(&sector).with_context(what)?;
    }
    Ok(path)
}

fn read_settings(file: &mut File) -> std::io::Result<Vec<u8>> {
    let mut sector = vec![0; SETTINGS_BYTES];
    file.seek(SeekFrom::Start(SETTINGS_OFFSET))?;
    file.read_exact(&mut sector)?;
    Ok(sector)
}
