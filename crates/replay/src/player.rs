//! The player: boots a node on the flash of a record, hands it the same input, and compares what comes out.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};

use tenure_hal::simulated::RamFlash;
use tenure_hal::{Entropy, EntropyError, Flash as _, FlashGeometry, Instant, Peripheral};
use tenure_kernel::Profiler;
use tenure_node::{BootError, Config, Door as _, Moment, Node, Notice, Output, Parts};

use crate::entry::{
    ENTRY_BYTES_MAX, Entry, MAGIC, Noted, Reading, When, digest_of_output, digest_of_taken,
};
use crate::tape::digest_of_flash;

/// The largest part of a flash, in bytes.
const FLASH_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// The sizes that a sector may have, in bytes.
const SECTOR_BYTES: core::ops::RangeInclusive<u32> = 512..=64 * 1024;

/// A run that was repeated, and was the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// How often the node booted: once, and after each deep sleep.
    pub boots: u64,
    /// How many inputs it took.
    pub inputs: u64,
    /// How many outputs it gave.
    pub outputs: u64,
    /// The time of the last input.
    pub until: Instant,
    /// Whether the record has its end, at which the flash was the same, too. A device that was killed leaves none.
    pub is_complete: bool,
}

/// What a player asks and tells whoever has a run repeated.
pub trait Audience {
    /// Makes a node's configuration of the board's settings.
    ///
    /// # Errors
    /// Why it can't, as a text.
    fn config(&mut self, settings: &[u8]) -> Result<Config, String>;

    /// Is told of each input before the node takes it: its number, from 1 on, and its time.
    fn takes(&mut self, input: u64, at: Instant) {
        let _ = (input, at);
    }

    /// Is handed each notice, with its time.
    fn show(&mut self, at: Instant, notice: &Notice);

    /// Who is told what machines spend their fuel on, if anybody is; asked at each boot.
    fn profiler(&mut self) -> Option<Box<dyn Profiler>> {
        None
    }
}

/// Repeats the run that is recorded in `from`.
///
/// # Errors
/// As [`ReplayError`] says.
pub fn replay(from: &mut dyn Read, audience: &mut dyn Audience) -> Result<Replayed, ReplayError> {
    let mut magic = [0; MAGIC.len()];
    from.read_exact(&mut magic).map_err(|_| ReplayError::NotARecord)?;
    match magic.split_last() {
        Some((version, name)) if name == &MAGIC[..MAGIC.len() - 1] => {
            if *version != MAGIC[MAGIC.len() - 1] {
                return Err(ReplayError::Version(*version));
            }
        }
        _ => return Err(ReplayError::NotARecord),
    }
    let mut player = Player::default();
    while let Some(bytes) = next_entry(from)? {
        let entry = postcard::from_bytes(&bytes).map_err(|_| ReplayError::Malformed)?;
        player.play(entry, audience)?;
    }
    Ok(player.replayed)
}

/// Reads one entry; `None` at the end, and where the last one is torn.
fn next_entry(from: &mut dyn Read) -> Result<Option<Vec<u8>>, ReplayError> {
    let mut length = [0; 4];
    match from.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read.map_err(ReplayError::Read)?,
    }
    let length = u32::from_le_bytes(length) as usize;
    if length > ENTRY_BYTES_MAX {
        return Err(ReplayError::Malformed);
    }
    let mut bytes = Vec::new();
    from.take(length as u64).read_to_end(&mut bytes).map_err(ReplayError::Read)?;
    Ok((bytes.len() == length).then_some(bytes))
}

/// The flash of a device before it boots, part by part.
type Flashes = Vec<RamFlash>;

#[derive(Default)]
struct Player {
    settings: Vec<u8>,
    flashes: Flashes,
    node: Option<Node<RamFlash>>,
    /// The next readings of peripherals.
    readings: Arc<Mutex<VecDeque<Reading>>>,
    replayed: Replayed,
}

impl Player {
    fn play(&mut self, entry: Entry<'_>, audience: &mut dyn Audience) -> Result<(), ReplayError> {
        match entry {
            Entry::Settings(settings) => self.settings = settings.to_vec(),
            Entry::Flash { part, sector_bytes, sector_count, program_bytes } => {
                let geometry = FlashGeometry { sector_bytes, sector_count, program_bytes };
                self.add_flash(part, geometry)?;
            }
            Entry::Sector { part, number, bytes } => {
                let flash = self.flashes.get_mut(usize::from(part));
                let flash = flash.ok_or(ReplayError::Malformed)?;
                let offset = number as usize * flash.geometry().sector_bytes as usize;
                let sector = flash.bytes_mut().get_mut(offset..offset.saturating_add(bytes.len()));
                sector.ok_or(ReplayError::Malformed)?.copy_from_slice(bytes);
            }
            Entry::Boot { when, entropy } => self.boot(when, entropy, audience)?,
            Entry::Attach { now_us, name } => {
                let readings = Arc::clone(&self.readings);
                let peripheral = Box::new(Played { name: name.to_string(), readings });
                let attached = self.node()?.attach(Instant::from_micros(now_us), peripheral);
                attached.map_err(|error| self.differs(error.to_string()))?;
            }
            Entry::Take { when, input, entropy, readings, taken } => {
                audience.takes(self.replayed.inputs + 1, when.now());
                self.take(when, input, (entropy, readings), taken)?;
            }
            Entry::Give { outlet, digest } => {
                let output = self.node()?.give(outlet.outlet());
                self.replayed.outputs += u64::from(output.is_some());
                if output.as_ref().map(digest_of_output) != digest {
                    return Err(self.differs(match output {
                        Some(output) => format!("another output: {output:?}"),
                        None => format!("no output of {outlet:?}"),
                    }));
                }
                if let Some(Output::Notice(notice)) = &output {
                    audience.show(self.replayed.until, notice);
                }
            }
            Entry::End { flash } => {
                let node = self.node.take().ok_or(ReplayError::Malformed)?;
                if digest_of_flash(&mut node.into_parts()) != Some(flash) {
                    return Err(self.differs("the flash is another at the end".to_string()));
                }
                self.replayed.is_complete = true;
            }
        }
        Ok(())
    }

    fn add_flash(&mut self, part: u8, geometry: FlashGeometry) -> Result<(), ReplayError> {
        let bytes = u64::from(geometry.sector_bytes) * u64::from(geometry.sector_count);
        let is_next = usize::from(part) == self.flashes.len() && part < 3;
        if !is_next || bytes == 0 || bytes > FLASH_BYTES_MAX {
            return Err(ReplayError::Malformed);
        }
        let is_sound = SECTOR_BYTES.contains(&geometry.sector_bytes)
            && geometry.sector_bytes.is_power_of_two()
            && geometry.program_bytes.is_power_of_two()
            && geometry.program_bytes <= 256;
        if !is_sound {
            return Err(ReplayError::Malformed);
        }
        self.flashes.push(RamFlash::new(geometry));
        Ok(())
    }

    fn boot(
        &mut self,
        when: When,
        entropy: &[u8],
        audience: &mut dyn Audience,
    ) -> Result<(), ReplayError> {
        let parts = match self.node.take() {
            Some(node) => node.into_parts(),
            None => {
                let flashes: [RamFlash; 3] = core::mem::take(&mut self.flashes)
                    .try_into()
                    .map_err(|_| ReplayError::Malformed)?;
                let [store, code, staging] = flashes;
                Parts { store, code, staging }
            }
        };
        let config = audience.config(&self.settings).map_err(ReplayError::Settings)?;
        let mut drawn = Recalled(entropy);
        let mut moment =
            Moment { now: when.now(), unix_time: when.unix_time(), entropy: &mut drawn };
        let mut node = Node::boot(config, parts, &mut moment).map_err(ReplayError::Boot)?;
        if let Some(profiler) = audience.profiler() {
            node.use_profiler(profiler);
        }
        self.node = Some(node);
        self.replayed.boots += 1;
        self.replayed.until = when.now();
        Ok(())
    }

    fn take(
        &mut self,
        when: When,
        input: Noted<'_>,
        (entropy, readings): (&[u8], Vec<Reading>),
        expected: u64,
    ) -> Result<(), ReplayError> {
        self.replayed.inputs += 1;
        self.replayed.until = when.now();
        self.queue().extend(readings);
        let named = format!("{input:?}");
        let input = input.input().ok_or_else(|| self.differs(format!("no {named}")))?;
        let mut drawn = Recalled(entropy);
        let mut moment =
            Moment { now: when.now(), unix_time: when.unix_time(), entropy: &mut drawn };
        let taken = self.node()?.take(&mut moment, input);
        if digest_of_taken(&taken) != expected {
            return Err(self.differs(format!("another response: {taken:?}")));
        }
        if !drawn.0.is_empty() {
            return Err(self.differs("less randomness was drawn".to_string()));
        }
        let unread = core::mem::take(&mut *self.queue()).len();
        if unread > 0 {
            return Err(self.differs("a peripheral wasn't read".to_string()));
        }
        Ok(())
    }

    fn queue(&self) -> std::sync::MutexGuard<'_, VecDeque<Reading>> {
        self.readings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn node(&mut self) -> Result<&mut Node<RamFlash>, ReplayError> {
        self.node.as_mut().ok_or(ReplayError::Malformed)
    }

    fn differs(&self, how: String) -> ReplayError {
        ReplayError::Differs { input: self.replayed.inputs, at: self.replayed.until, how }
    }
}

/// Randomness as it was drawn. A node that draws more than that is told that there is none.
struct Recalled<'a>(&'a [u8]);

impl Entropy for Recalled<'_> {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntropyError> {
        let (now, later) = self.0.split_at_checked(bytes.len()).ok_or(EntropyError)?;
        bytes.copy_from_slice(now);
        self.0 = later;
        Ok(())
    }
}

/// A peripheral that reads again what was read.
struct Played {
    name: String,
    readings: Arc<Mutex<VecDeque<Reading>>>,
}

impl Peripheral for Played {
    fn name(&self) -> &str {
        &self.name
    }

    fn poll(&mut self, _: Instant, publish: &mut dyn FnMut(&str, &[u8])) -> Option<Instant> {
        let mut readings = self.readings.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match readings.pop_front() {
                Some(Reading::Published { part, bytes }) => publish(&part, &bytes),
                Some(Reading::Polled { name, next_us }) if name == self.name => {
                    return next_us.map(Instant::from_micros);
                }
                // One that is read where it wasn't differs in what is left, or in what follows.
                other => {
                    readings.extend(other);
                    return None;
                }
            }
        }
    }

    fn command(&mut self, _: Instant, _: &str, _: &[u8]) {}
}

/// Why a run can't be repeated, or isn't the same.
#[derive(Debug)]
pub enum ReplayError {
    /// It is no record.
    NotARecord,
    /// It is of that version, which this build doesn't read.
    Version(u8),
    /// It can't be read.
    Read(io::Error),
    /// An entry is damaged or out of order.
    Malformed,
    /// The board's settings can't be understood; the text says why.
    Settings(String),
    /// The node doesn't boot.
    Boot(BootError),
    /// The run differs from the record.
    Differs {
        /// At this input, counted from 1, or after it.
        input: u64,
        /// Its time.
        at: Instant,
        /// The difference.
        how: String,
    },
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotARecord => f.write_str("the file is no record of a device"),
            Self::Version(version) => write!(
                f,
                "the record is of version {version}, and this build reads version {}",
                MAGIC[MAGIC.len() - 1]
            ),
            Self::Read(error) => write!(f, "the record can't be read: {error}"),
            Self::Malformed => f.write_str("the record is damaged"),
            Self::Settings(error) => write!(f, "the record's settings can't be used: {error}"),
            Self::Boot(error) => write!(f, "the recorded device doesn't start: {error}"),
            Self::Differs { input, at, how } => write!(
                f,
                "the run differs from the record at input {input}, {} ms after the start: {how}",
                at.as_millis()
            ),
        }
    }
}

impl std::error::Error for ReplayError {}
