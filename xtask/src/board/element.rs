//! The surroundings of a board: a bus with a secure element, which no emulator has, behind a serial line of the emulator.
//!
//! The model of the chip is that of the driver's tests. Its keys are kept in a file, as a chip keeps them when its power is
//! cut; the line's protocol stands in the firmware's driver (`boards/qemu-publisher/src/line.rs`).

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use tenure_board_linux::LinuxEntropy;
use tenure_crypto::element::simulated::SimulatedChip;
use tenure_hal::I2c as _;

/// The line, in the folder of the device.
pub(super) const LINE: &str = "element.line";
/// The keys, in the same folder: a line for each slot, of hexadecimal digits.
const KEYS: &str = "element.keys";
const SLOTS: usize = 16;

const WRITE: u8 = b'W';
const READ: u8 = b'R';
const TIME: u8 = b'T';
const DONE: &[u8] = b"+";
const NOT_ACKNOWLEDGED: &[u8] = b"-";

/// A chip whose keys are in a file.
struct Element {
    chip: SimulatedChip<LinuxEntropy>,
    keys: PathBuf,
    kept: String,
}

/// Plays the element of the device in `folder` until this process ends.
pub(super) fn play(folder: &Path) -> Result<()> {
    let mut element = Element::open(folder.join(KEYS))?;
    let path = folder.join(LINE);
    let what = || format!("can't lay the line {}", path.display());
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error).with_context(what),
        _ => {}
    }
    let listener = UnixListener::bind(&path).with_context(what)?;
    std::thread::spawn(move || {
        // Each emulator is the chip's power.
        for emulator in listener.incoming().map_while(Result::ok) {
            element.chip.cut_power();
            if let Err(error) = element.serve(&emulator) {
                eprintln!("the secure element: {error:#}");
            }
        }
    });
    Ok(())
}

impl Element {
    fn open(keys: PathBuf) -> Result<Self> {
        let what = || format!("the keys of the secure element, {}", keys.display());
        let kept = match std::fs::read_to_string(&keys) {
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            kept => kept.with_context(what)?,
        };
        let mut chip = SimulatedChip::new(LinuxEntropy);
        for (slot, line) in kept.lines().enumerate().filter(|(_, line)| !line.is_empty()) {
            let secret = secret_of(line).with_context(what)?;
            if !chip.restore(slot, &secret) {
                bail!("{}: slot {slot} has no key of P-256", keys.display());
            }
        }
        Ok(Self { chip, keys, kept })
    }

    /// Answers the questions of an emulator, until it ends.
    fn serve(&mut self, emulator: &UnixStream) -> Result<()> {
        let (mut from, mut to) = (emulator, emulator);
        let mut kind = [0];
        // An emulator that is killed may reset the line.
        while from.read_exact(&mut kind).is_ok() {
            let answer = self.answer(kind[0], &mut from)?;
            self.keep()?;
            if to.write_all(&answer).is_err() {
                break;
            }
        }
        Ok(())
    }

    fn answer(&mut self, kind: u8, from: &mut impl Read) -> Result<Vec<u8>> {
        if kind == TIME {
            let mut us = [0; 4];
            from.read_exact(&mut us)?;
            self.chip.wait_us(u32::from_be_bytes(us));
            return Ok(DONE.to_vec());
        }
        let mut header = [0; 2];
        from.read_exact(&mut header)?;
        let [address, length] = header;
        let mut bytes = vec![0; length.into()];
        let passed = match kind {
            WRITE => {
                from.read_exact(&mut bytes)?;
                self.chip.write(address, &bytes).map(|()| Vec::new())
            }
            READ => self.chip.read(address, &mut bytes).map(|()| bytes),
            other => bail!("{other:#04x} is no question of the line"),
        };
        Ok(passed.map_or(NOT_ACKNOWLEDGED.to_vec(), |read| [DONE, &read].concat()))
    }

    /// Writes the keys down if they changed.
    fn keep(&mut self) -> Result<()> {
        let line = |slot| self.chip.secret_of(slot).map(|secret| hex(&secret)).unwrap_or_default();
        let keys: String = (0..SLOTS).map(|slot| line(slot) + "\n").collect();
        if keys.trim() != self.kept.trim() {
            let partial = self.keys.with_extension("partial");
            std::fs::write(&partial, &keys)
                .and_then(|()| std::fs::rename(&partial, &self.keys))
                .with_context(|| format!("cannot write {}", self.keys.display()))?;
            self.kept = keys;
        }
        Ok(())
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn secret_of(line: &str) -> Option<[u8; 32]> {
    let (pairs, []) = line.as_bytes().as_chunks::<2>() else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let bytes: Option<Vec<u8>> =
        pairs.iter().map(|[high, low]| Some((digit(*high)? << 4 | digit(*low)?) as u8)).collect();
    bytes?.try_into().ok()
}
