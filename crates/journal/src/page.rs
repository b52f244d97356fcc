//! Pages: the unit in which a journal is written, chained and fetched.

use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};
use tenure_wire::{Budget, Digest, LogLevel, MachineId, Name, PublicKey};

use crate::encoding::{Decoder, Encoder, Malformed};
use crate::record::Record;

/// The longest page that is read, in bytes. One that begins with a machine's state has its memory and its tree.
pub const PAGE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A page begins with a machine's state.
const WITH_START: u8 = 1;

/// A machine as it is where a journal can be replayed from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// The machine.
    pub machine: MachineId,
    /// Its public key.
    pub public_key: PublicKey,
    /// Its name.
    pub name: Name,
    /// The package that it runs.
    pub package: Digest,
    /// Its budget.
    pub budget: Budget,
    /// The least grave of its lines that its log takes.
    pub log: LogLevel,
    /// Whether its tree is sealed, which makes each value longer on flash.
    pub is_sealed: bool,
    /// The smallest part of the store's flash that is erased, in bytes: it bounds what a value may be.
    pub sector_bytes: u32,
    /// The smallest part of it that is programmed, in bytes: what is written is as long as so many of them.
    pub program_bytes: u32,
    /// Whether nothing that was billed since the page before is missing.
    pub continues: bool,
    /// Fuel that it owed: it is billed afterwards, and was used before.
    pub owed: u64,
    /// The time, in milliseconds since boot.
    pub at_ms: u64,
    /// Memory, stack, tree and all else that the kernel says of it, in the kernel's form.
    pub state: Vec<u8>,
}

/// A page of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Its number: one more than that of the page before.
    pub number: u64,
    /// The machine's state, if a replay may begin here.
    pub start: Option<Start>,
    /// All that entered the machine, in order.
    pub records: Vec<Record>,
}

impl Page {
    /// The page in `bytes`.
    ///
    /// # Errors
    /// As [`PageError`] says.
    pub fn parse(bytes: &[u8]) -> Result<Self, PageError> {
        if bytes.len() > PAGE_BYTES_MAX {
            return Err(PageError::TooLong);
        }
        let page = Self::read(bytes).map_err(|Malformed| PageError::Malformed)?;
        match page.to_bytes() {
            Some(canonical) if canonical == bytes => Ok(page),
            _ => Err(PageError::NotCanonical),
        }
    }

    fn read(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut decoder = Decoder::new(bytes);
        let number = decoder.number()?;
        let start = match decoder.byte()? {
            0 => None,
            WITH_START => Some(postcard::from_bytes(decoder.string()?).map_err(|_| Malformed)?),
            _ => return Err(Malformed),
        };
        let mut records = Vec::new();
        while !decoder.is_at_end() {
            records.push(decoder.record()?);
        }
        Ok(Self { number, start, records })
    }

    /// The page as bytes; `None` if its state can't be encoded.
    pub fn to_bytes(&self) -> Option<Vec<u8>> {
        let mut writer = PageWriter::begin(self.number, self.start.as_ref())?;
        self.records.iter().for_each(|record| writer.write(record));
        Some(writer.finish())
    }
}

/// A page that is being written.
#[derive(Clone, Debug)]
pub struct PageWriter {
    encoder: Encoder,
    /// How long the page was before its first record, in bytes.
    head_bytes: usize,
}

impl PageWriter {
    /// An empty page; `None` if the state can't be encoded.
    pub fn begin(number: u64, start: Option<&Start>) -> Option<Self> {
        let mut encoder = Encoder::default();
        encoder.number(number);
        match start {
            None => encoder.bytes.push(0),
            Some(start) => {
                encoder.bytes.push(WITH_START);
                encoder.string(&postcard::to_allocvec(start).ok()?);
            }
        }
        let head_bytes = encoder.bytes.len();
        Some(Self { encoder, head_bytes })
    }

    /// Adds a record.
    pub fn write(&mut self, record: &Record) {
        self.encoder.record(record);
    }

    /// How long its records are so far, in bytes.
    pub fn record_bytes(&self) -> usize {
        self.encoder.bytes.len() - self.head_bytes
    }

    /// The page as bytes.
    pub fn finish(self) -> Vec<u8> {
        self.encoder.bytes
    }
}

/// Why bytes are no page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageError {
    /// They are longer than a page may be.
    TooLong,
    /// They can't be read.
    Malformed,
    /// They can be read, and are not what a device writes for that.
    NotCanonical,
}

impl fmt::Display for PageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLong => "the page is too long",
            Self::Malformed => "the page can't be read",
            Self::NotCanonical => "the page isn't written as a device writes it",
        })
    }
}

impl core::error::Error for PageError {}
