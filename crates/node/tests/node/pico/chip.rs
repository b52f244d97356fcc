//! An RP2040 in its emulator, driven step by step over pipes (`tools/rp2040/lockstep.mjs`), and the lines at its UARTs.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::rc::Rc;

use tenure_hal::LinkError;
use tenure_mesh::Port;

/// How far a step goes.
pub(super) const STEP_US: u32 = 1000;
/// The bytes of a step at 115,200 bits a second, with a start and a stop bit each.
const BYTES_PER_STEP: usize = 11;
/// Where the settings stand in the flash (boards/README.md).
const SETTINGS: core::ops::Range<usize> = 0xA000..0xB000;

type Bytes = Rc<RefCell<VecDeque<u8>>>;

/// One end of a serial line.
#[derive(Clone, Debug, Default)]
pub(super) struct End {
    arriving: Bytes,
    leaving: Bytes,
}

impl End {
    /// The line's other end.
    pub(super) fn other(&self) -> Self {
        Self { arriving: self.leaving.clone(), leaving: self.arriving.clone() }
    }
}

impl Port for End {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, LinkError> {
        let mut arriving = self.arriving.borrow_mut();
        let count = arriving.len().min(into.len());
        into.iter_mut().zip(arriving.drain(..count)).for_each(|(place, byte)| *place = byte);
        Ok(count)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<usize, LinkError> {
        self.leaving.borrow_mut().extend(bytes);
        Ok(bytes.len())
    }
}

/// The output of `cargo xtask board rp2040 --check` about its files.
fn from_environment(name: &str) -> PathBuf {
    let value = std::env::var_os(name);
    value.unwrap_or_else(|| panic!("{name} is set by cargo xtask board rp2040 --check")).into()
}

/// A Pico, powered.
pub(super) struct Chip {
    emulator: Child,
    requests: ChildStdin,
    answers: ChildStdout,
    /// The chip's ends of the lines at its UARTs.
    pub(super) lines: [End; 2],
    /// Instructions since power came.
    pub(super) instructions: u64,
    /// Erases and programs of its flash so far.
    pub(super) flash_operations: u32,
    /// How often the power was cut in the middle of one.
    pub(super) cuts: u32,
    /// All that its console showed.
    pub(super) console: String,
    /// Bytes on the second UART since the last zero: text, or a frame.
    unfinished: Vec<u8>,
}

impl Chip {
    /// One with the firmware and these settings in its flash.
    pub(super) fn power_on(settings: &str, seed: u32) -> Self {
        let mut flash = std::fs::read(from_environment("FLASH")).unwrap();
        flash[SETTINGS].fill(0xFF);
        flash[SETTINGS.start..][..settings.len()].copy_from_slice(settings.as_bytes());
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("pico-{seed}.img"));
        std::fs::write(&file, flash).unwrap();
        let rig = from_environment("RIG").join("lockstep.mjs");
        let mut command = Command::new("node");
        command.arg(rig).arg(from_environment("BOOTROM")).arg(file).arg(seed.to_string());
        let mut emulator =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("node runs");
        Self {
            requests: emulator.stdin.take().unwrap(),
            answers: emulator.stdout.take().unwrap(),
            emulator,
            lines: Default::default(),
            instructions: 0,
            flash_operations: 0,
            cuts: 0,
            console: String::new(),
            unfinished: Vec::new(),
        }
    }

    /// Lets it begin a step, with the bytes that its lines bring.
    pub(super) fn begin_step(&mut self) {
        let mut request = STEP_US.to_le_bytes().to_vec();
        for line in &mut self.lines {
            let mut bytes = [0; BYTES_PER_STEP];
            let count = line.read(&mut bytes).unwrap();
            request.extend((count as u16).to_le_bytes());
            request.extend(&bytes[..count]);
        }
        self.requests.write_all(&request).expect("the chip runs");
    }

    /// Lets the power be cut in the middle of the flash operation with that number from here on, and come back at once.
    pub(super) fn cut_in(&mut self, operation: u32) {
        let request = [(u32::MAX - 1).to_le_bytes(), operation.to_le_bytes()].concat();
        self.requests.write_all(&request).expect("the chip runs");
    }

    /// Cuts the power and brings it back.
    pub(super) fn power_cycle(&mut self) {
        self.requests.write_all(&u32::MAX.to_le_bytes()).expect("the chip runs");
        self.console.clear();
        self.unfinished.clear();
        self.end_step();
    }

    /// Waits for the end of the step; what it sent is on its lines then.
    pub(super) fn end_step(&mut self) {
        let mut instructions = [0; 8];
        self.answers.read_exact(&mut instructions).expect("the chip runs");
        self.instructions = u64::from_le_bytes(instructions);
        self.flash_operations = self.number();
        let cuts = self.number();
        if std::mem::replace(&mut self.cuts, cuts) != cuts {
            self.console.clear();
            self.unfinished.clear();
        }
        for line in 0..self.lines.len() {
            let mut bytes = vec![0; self.number() as usize];
            self.answers.read_exact(&mut bytes).expect("the chip runs");
            self.lines[line].write(&bytes).unwrap();
            if line == 1 {
                bytes.into_iter().for_each(|byte| self.show(byte));
            }
        }
    }

    fn number(&mut self) -> u32 {
        let mut bytes = [0; 4];
        self.answers.read_exact(&mut bytes).expect("the chip runs");
        u32::from_le_bytes(bytes)
    }

    /// The console is text between zeros; a frame has bytes that are none.
    fn show(&mut self, byte: u8) {
        if byte != 0 {
            self.unfinished.push(byte);
            return;
        }
        let part = std::mem::take(&mut self.unfinished);
        if part.iter().all(|byte| *byte == b'\n' || matches!(byte, b' '..=b'~')) {
            self.console += core::str::from_utf8(&part).unwrap();
        }
    }
}

impl Drop for Chip {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.emulator.kill();
        let _ = self.emulator.wait();
    }
}
