//! The surroundings of the chip: its power supply and its reset controller. Starts the emulator again after
//! resets and sleeps, as the chip starts again, and keeps what stays powered.
//!
//! The emulator's RAM is a file, of which the firmware's page stays as it was in deep sleep, all of it
//! over a reset, and nothing when the power goes: noise comes in its place.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use signal_hook::consts::{SIGCHLD, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;
use tenure_boot::always_on::{
    BYTES, CAUSE_AT, STATUS_RESET, STATUS_SLEEP, STATUS_WATCHDOG, TIME_AT, WAKE_AT,
};
use tenure_hal::ResetCause;
use tenure_hal::simulated::Random;

/// The RAM of an emulated chip, as parts of its file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory {
    /// The length of the file.
    pub(super) bytes: u64,
    /// Where the firmware's variables lie, and how many bytes: what loses its content first.
    pub(super) variables: (u64, usize),
    /// Where the page lies that stays powered.
    pub(super) always_on: u64,
}

/// A brown-out: the supply falls too low for a moment.
const DIP: i32 = SIGUSR1;
/// A hand pulls the pin that wakes the chip.
const PIN: i32 = SIGUSR2;

/// Powers the chip, whose emulator is `command` and whose RAM is in the file `ram`, until it faults. Where
/// the emulator keeps its RAM to itself there is no `memory`, and every start finds it blank.
pub(super) fn power(
    command: impl Fn() -> Command,
    memory: Option<Memory>,
    ram: &Path,
) -> Result<()> {
    let signals = listen()?;
    let pid_file = ram.with_extension("pid");
    wait_for_the_last(&pid_file)?;
    let what = || format!("the memory of the device, {}", ram.display());
    let mut kept = memory.map(|memory| open(memory, ram)).transpose().with_context(what)?;
    let mut cause = ResetCause::PowerOn;
    let mut powered = Instant::now();
    loop {
        if !cause.keeps_retained_memory() {
            powered = Instant::now();
        }
        if let Some((file, memory)) = &mut kept {
            prepare(file, *memory, cause, powered.elapsed()).with_context(what)?;
        }
        let mut child = start(command(), &pid_file)?;
        cause = match wait(&mut child, &signals)? {
            None => ResetCause::BrownOut,
            Some(status) => match (status.code(), &mut kept) {
                (Some(STATUS_WATCHDOG), _) => ResetCause::Watchdog,
                (Some(STATUS_RESET), _) => ResetCause::Software,
                (Some(STATUS_SLEEP), Some((file, memory))) => {
                    let until = read_word(file, memory.always_on + WAKE_AT as u64);
                    sleep(until.with_context(what)?, powered, &signals)
                }
                _ => bail!("the device stopped: {status}"),
            },
        };
    }
}

/// Opens the file that is the chip's RAM.
fn open(memory: Memory, ram: &Path) -> std::io::Result<(File, Memory)> {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(ram)?;
    file.set_len(memory.bytes)?;
    Ok((file, memory))
}

/// Signals, as they come.
fn listen() -> Result<Receiver<i32>> {
    let mut signals = Signals::new([SIGCHLD, DIP, PIN]).context("can't listen for signals")?;
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let _ = signals.forever().try_for_each(|signal| sender.send(signal));
    });
    Ok(receiver)
}

/// Waits until the emulator of a supply that was killed is gone too.
fn wait_for_the_last(pid_file: &Path) -> Result<()> {
    let Ok(pid) = std::fs::read_to_string(pid_file) else { return Ok(()) };
    let name = format!("/proc/{}/comm", pid.trim());
    for _ in 0..200 {
        if !std::fs::read_to_string(&name).is_ok_and(|name| name.starts_with("qemu-system")) {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    bail!("the device is running already, as process {}", pid.trim())
}

/// Starts the emulator so that it ends with us, whatever ends us: that is cutting the power.
fn start(emulator: Command, pid_file: &Path) -> Result<Child> {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]).arg(emulator.get_program()).args(emulator.get_args());
    if let Some(folder) = emulator.get_current_dir() {
        command.current_dir(folder);
    }
    let child = command.spawn().context("cannot start the emulator by setpriv (util-linux)")?;
    std::fs::write(pid_file, child.id().to_string())
        .with_context(|| format!("cannot write {}", pid_file.display()))?;
    Ok(child)
}

/// The end of the emulator, or `None` if the supply has dipped.
fn wait(child: &mut Child, signals: &Receiver<i32>) -> Result<Option<ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait().context("the emulator is lost")? {
            return Ok(Some(status));
        }
        if signals.recv().context("no signals come")? == DIP {
            child.kill().and_then(|()| child.wait()).context("the emulator can't be killed")?;
            return Ok(None);
        }
    }
}

/// Waits for `until`, in microseconds since the power came, or for the pin.
fn sleep(until: u64, powered: Instant, signals: &Receiver<i32>) -> ResetCause {
    println!("the power is off; kill -USR2 {} wakes the device", std::process::id());
    loop {
        let left = Duration::from_micros(until).saturating_sub(powered.elapsed());
        match signals.recv_timeout(left) {
            Ok(PIN) | Err(RecvTimeoutError::Timeout) => return ResetCause::Wake,
            Ok(DIP) => return ResetCause::BrownOut,
            Ok(_) | Err(RecvTimeoutError::Disconnected) => {}
        }
    }
}

/// Gives the memory what it holds when the chip starts for `cause`, so long after the power came.
fn prepare(
    file: &mut File,
    memory: Memory,
    cause: ResetCause,
    since_power: Duration,
) -> std::io::Result<()> {
    let seed = since_power.as_nanos() as u64 ^ u64::from(std::process::id()) << 32;
    let mut noise = Random::new(seed);
    let mut forget = |at: u64, bytes: usize| write(file, at, &noise.bytes(bytes));
    if !cause.keeps_retained_memory() {
        forget(memory.always_on, BYTES)?;
    }
    if !matches!(cause, ResetCause::Watchdog | ResetCause::Software) {
        forget(memory.variables.0, memory.variables.1)?;
    }
    let cause = u32::from(cause.to_byte()).to_le_bytes();
    write(file, memory.always_on + CAUSE_AT as u64, &cause)?;
    let microseconds = since_power.as_micros() as u64;
    write(file, memory.always_on + TIME_AT as u64, &microseconds.to_le_bytes())
}

fn write(file: &mut File, at: u64, bytes: &[u8]) -> std::io::Result<()> {
    file.seek(SeekFrom::Start(at))?;
    file.write_all(bytes)
}

fn read_word(file: &mut File, at: u64) -> std::io::Result<u64> {
    let mut bytes = [0; 8];
    file.seek(SeekFrom::Start(at))?;
    file.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}
