//! A tape: where a record is written, and the wrappers by which what a node reads gets onto it.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tenure_hal::{Entropy, EntropyError, Flash, FlashGeometry, Instant, Peripheral};
use tenure_node::Parts;

use crate::entry::{ENTRY_BYTES_MAX, Entry, MAGIC, Reading, digest};

/// A record that is being written. Its clones write on the same record.
#[derive(Clone)]
pub struct Tape(Arc<Mutex<Head>>);

struct Head {
    to: Box<dyn Write + Send>,
    /// Why nothing more is written.
    failed: Option<io::Error>,
    /// Whether that was asked.
    has_told: bool,
    /// Readings of peripherals during the input that is being taken.
    readings: Vec<Reading>,
}

impl Tape {
    /// Begins a record of a device that `settings` describe, in words that the board understands, and that is
    /// about to boot on the flash in `parts`. The record holds that flash, and so the device's keys.
    ///
    /// # Errors
    /// The record can't be written, or the flash can't be read.
    pub fn begin<F: Flash>(
        to: Box<dyn Write + Send>,
        settings: &[u8],
        parts: &mut Parts<F>,
    ) -> io::Result<Self> {
        let mut head = Head { to, failed: None, has_told: false, readings: Vec::new() };
        head.to.write_all(&MAGIC)?;
        head.write(&Entry::Settings(settings))?;
        let Parts { store, code, staging } = parts;
        for (part, flash) in (0..).zip([store, code, staging]) {
            let FlashGeometry { sector_bytes, sector_count, program_bytes } = flash.geometry();
            head.write(&Entry::Flash { part, sector_bytes, sector_count, program_bytes })?;
            let mut bytes = vec![0; sector_bytes as usize];
            for number in 0..sector_count {
                let read = flash.read(number * sector_bytes, &mut bytes);
                read.map_err(|error| io::Error::other(error.to_string()))?;
                if bytes.iter().any(|byte| *byte != 0xFF) {
                    head.write(&Entry::Sector { part, number, bytes: &bytes })?;
                }
            }
        }
        head.to.flush()?;
        Ok(Self(Arc::new(Mutex::new(head))))
    }

    /// Hands everything that was recorded to the system.
    pub fn flush(&self) {
        let mut head = self.head();
        let flushed = head.to.flush();
        head.note(flushed);
    }

    /// Why the record is given up, if it is and that wasn't asked before.
    pub fn failure(&self) -> Option<String> {
        let mut head = self.head();
        let why = head.failed.as_ref().filter(|_| !head.has_told)?.to_string();
        head.has_told = true;
        Some(why)
    }

    /// Wraps a peripheral so that what it reads is recorded.
    pub fn watch(&self, peripheral: Box<dyn Peripheral + Send>) -> Box<dyn Peripheral + Send> {
        Box::new(Watched { peripheral, tape: self.clone() })
    }

    pub(crate) fn write(&self, entry: &Entry<'_>) {
        let mut head = self.head();
        if head.failed.is_none() {
            let written = head.write(entry);
            head.note(written);
        }
    }

    /// Gives the record up.
    pub(crate) fn give_up(&self, why: &str) {
        self.head().note(Err(io::Error::other(why)));
    }

    /// Takes what peripherals said since it was last asked.
    pub(crate) fn readings(&self) -> Vec<Reading> {
        core::mem::take(&mut self.head().readings)
    }

    fn head(&self) -> MutexGuard<'_, Head> {
        // A thread that panicked has written whole entries.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Head {
    fn write(&mut self, entry: &Entry<'_>) -> io::Result<()> {
        let bytes = postcard::to_allocvec(entry).map_err(io::Error::other)?;
        if bytes.len() > ENTRY_BYTES_MAX {
            return Err(io::Error::other("an entry is too long"));
        }
        self.to.write_all(&(bytes.len() as u32).to_le_bytes())?;
        self.to.write_all(&bytes)
    }

    fn note(&mut self, result: io::Result<()>) {
        if let Err(error) = result {
            self.failed.get_or_insert(error);
        }
    }
}

/// Randomness that is kept as it is drawn.
pub(crate) struct Drawn<'a> {
    pub(crate) entropy: &'a mut dyn Entropy,
    pub(crate) bytes: Vec<u8>,
    /// Whether the source failed, which no record has.
    pub(crate) has_failed: bool,
}

impl Entropy for Drawn<'_> {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntropyError> {
        let filled = self.entropy.fill(bytes);
        self.has_failed |= filled.is_err();
        self.bytes.extend_from_slice(bytes);
        filled
    }
}

/// A peripheral whose readings are kept.
struct Watched {
    peripheral: Box<dyn Peripheral + Send>,
    tape: Tape,
}

impl Peripheral for Watched {
    fn name(&self) -> &str {
        self.peripheral.name()
    }

    fn poll(&mut self, now: Instant, publish: &mut dyn FnMut(&str, &[u8])) -> Option<Instant> {
        let mut readings = Vec::new();
        let next = self.peripheral.poll(now, &mut |part, bytes| {
            readings.push(Reading::Published { part: part.to_string(), bytes: bytes.to_vec() });
            publish(part, bytes);
        });
        let next_us = next.map(Instant::as_micros);
        readings.push(Reading::Polled { name: self.peripheral.name().to_string(), next_us });
        self.tape.head().readings.append(&mut readings);
        next
    }

    fn command(&mut self, now: Instant, part: &str, command: &[u8]) {
        self.peripheral.command(now, part, command);
    }
}

/// The digest of all three parts; `None` if one can't be read.
pub(crate) fn digest_of_flash<F: Flash>(parts: &mut Parts<F>) -> Option<u64> {
    let Parts { store, code, staging } = parts;
    let mut digests = Vec::new();
    for flash in [store, code, staging] {
        let FlashGeometry { sector_bytes, sector_count, .. } = flash.geometry();
        let mut bytes = vec![0; sector_bytes as usize * sector_count as usize];
        flash.read(0, &mut bytes).ok()?;
        digests.extend_from_slice(&digest(b"flash", &bytes).to_le_bytes());
    }
    Some(digest(b"parts", &digests))
}
