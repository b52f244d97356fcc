//! An instance as bytes, and back.
//!
//! ```text
//! "TNVS", version u16, 0 u16, image length u32, image checksum u32
//! status u8 (0 idle, 1 running, 2 waiting, 3 done, 4 trapped), trap u8, host function u16,
//! entry, pc, frame, accumulator (these three 0 if no call is under way), debt: u32
//! slots in use u32, each u64: globals, then the stack up to the end of the current frame
//! pages u32, committed bytes u32, bytes in use u32, and they (what follows is zero)
//! tables u32, each: length u32, elements u32
//! data segments dropped, element segments dropped: words u32 each
//! CRC-32
//! ```
//!
//! All little-endian, and the same on every processor. The checksum finds damage; against forgery the
//! caller authenticates. Whatever the bytes are, resuming them neither panics nor breaks the sandbox:
//! every frame is checked against the image's code.

use alloc::vec::Vec;
use core::fmt;

use crate::{
    checksum::crc32,
    image::{FunctionIndex, Image},
    instance::{
        Debt, Instance, InstanceConfig, Parts, Position, Shortage, Stack, Status, Tables, TrapKind,
    },
    isa,
    memory::Memory,
};

const MAGIC: [u8; 4] = *b"TNVS";
const VERSION: u16 = 1;

/// Why bytes cannot be resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResumeError {
    /// No suspended instance begins here, or one of another version.
    NotSuspended,
    /// The checksum differs, or the bytes end early.
    Damaged,
    /// Suspended from another image.
    ForeignImage,
    /// The stack does not fit the configuration.
    StackBudget,
    /// The memory does not fit the configuration.
    MemoryBudget,
    /// The allocator had no room.
    OutOfMemory,
    /// The contents break a rule: not our own work.
    Forged,
}

impl fmt::Display for ResumeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            ResumeError::NotSuspended => "not a suspended instance of this version",
            ResumeError::Damaged => "suspended instance is damaged",
            ResumeError::ForeignImage => "suspended from another image",
            ResumeError::StackBudget => "suspended stack does not fit",
            ResumeError::MemoryBudget => "suspended memory does not fit",
            ResumeError::OutOfMemory => "no room for the instance",
            ResumeError::Forged => "suspended instance breaks a rule",
        })
    }
}

impl core::error::Error for ResumeError {}

impl From<Shortage> for ResumeError {
    fn from(shortage: Shortage) -> ResumeError {
        match shortage {
            Shortage::Stack => ResumeError::StackBudget,
            Shortage::Memory => ResumeError::OutOfMemory,
        }
    }
}

fn word(out: &mut Vec<u8>, word: u32) {
    out.extend_from_slice(&word.to_le_bytes());
}

fn words(out: &mut Vec<u8>, list: &[u32]) {
    word(out, list.len() as u32);
    for &item in list {
        word(out, item);
    }
}

impl Instance {
    /// Appends the instance to `out`. Possible at any time but while it runs.
    pub fn suspend(&self, image: &Image<'_>, out: &mut Vec<u8>) {
        let begin = out.len();
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&[0; 2]);
        word(out, self.token.length);
        word(out, self.token.checksum);
        let (status, trap, function) = match self.status {
            Status::Idle => (0, 0, 0),
            Status::Running => (1, 0, 0),
            Status::Waiting { function, .. } => (2, 0, function),
            Status::Done => (3, 0, 0),
            Status::Trapped { kind } => (4, kind as u8, 0),
        };
        out.extend_from_slice(&[status, trap]);
        out.extend_from_slice(&function.to_le_bytes());
        let stands = !matches!(self.status, Status::Idle | Status::Done);
        let Position { pc, frame, accumulator } = self.parts.position;
        let position = if stands { [pc, frame, accumulator] } else { [0; 3] };
        word(out, self.entry);
        position.iter().for_each(|&field| word(out, field));
        word(out, self.debt.bytes());
        let slots = slots_in_use(self, image);
        word(out, slots.len() as u32);
        for slot in slots {
            out.extend_from_slice(&slot.to_le_bytes());
        }
        let memory = self.parts.memory.bytes();
        let used = memory.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        for field in [self.parts.memory.pages(), memory.len() as u32, used as u32] {
            word(out, field);
        }
        out.extend_from_slice(&memory[..used]);
        let tables = self.parts.tables.all();
        word(out, tables.len() as u32);
        for table in tables {
            words(out, table);
        }
        for marks in self.parts.segments.marks() {
            words(out, marks);
        }
        let checksum = crc32(&out[begin..]);
        word(out, checksum);
    }

    /// Forgets what [`Instance::suspend`] doesn't write: what the stack holds above the frame in use. From there on the
    /// instance is the one that [`Instance::resume`] makes of it, to the byte. No program can tell the difference, but later
    /// frames begin with what stood in their place.
    pub fn forget_dead_slots(&mut self, image: &Image<'_>) {
        let in_use = slots_in_use(self, image).len();
        self.parts.stack.wipe_from(in_use);
    }

    /// Rebuilds an instance from what [`Instance::suspend`] wrote.
    pub fn resume(
        image: &Image<'_>,
        bytes: &[u8],
        config: &InstanceConfig,
    ) -> Result<Instance, ResumeError> {
        let (body, checksum) =
            bytes.split_at_checked(bytes.len().wrapping_sub(4)).ok_or(ResumeError::NotSuspended)?;
        let mut reader = Reader(body);
        if reader.take(4)? != MAGIC || reader.half()? != VERSION || reader.half()? != 0 {
            return Err(ResumeError::NotSuspended);
        }
        if checksum != crc32(body).to_le_bytes() {
            return Err(ResumeError::Damaged);
        }
        if reader.word()? != image.token.length || reader.word()? != image.token.checksum {
            return Err(ResumeError::ForeignImage);
        }
        let mut instance = Instance::bare(image, config);
        instance.parts.allocate(image, config)?;
        let status = reader.half()?.to_le_bytes();
        let function = reader.half()?;
        instance.entry = reader.word()?;
        let Parts { position, stack, memory, tables, segments } = &mut instance.parts;
        position.pc = reader.word()?;
        position.frame = reader.word()?;
        position.accumulator = reader.word()?;
        instance.debt = Debt::from_bytes(reader.word()?).ok_or(ResumeError::Forged)?;
        read_slots(&mut reader, stack)?;
        read_memory(&mut reader, image, memory)?;
        read_tables(&mut reader, image, tables, memory)?;
        for marks in segments.marks_mut() {
            read_words(&mut reader, marks)?;
        }
        if !reader.0.is_empty() {
            return Err(ResumeError::Forged);
        }
        instance.status = instance.read_status(image, status, function)?;
        Ok(instance)
    }

    fn read_status(
        &self,
        image: &Image<'_>,
        [status, trap]: [u8; 2],
        function: u16,
    ) -> Result<Status, ResumeError> {
        Ok(match status {
            0 => Status::Idle,
            3 => {
                // The results are read from the stack.
                let entry = image.function_entry(self.entry).ok_or(ResumeError::Forged)?;
                if self.parts.stack.frames_from(0).len() < entry.results as usize {
                    return Err(ResumeError::StackBudget);
                }
                Status::Done
            }
            1 | 2 | 4 => {
                let opcode = self.check_frames(image)?;
                match status {
                    1 => Status::Running,
                    4 => Status::Trapped {
                        kind: TrapKind::from_byte(trap).ok_or(ResumeError::Forged)?,
                    },
                    _ if opcode != isa::HOST => return Err(ResumeError::Forged),
                    _ => self.waiting(image, function)?,
                }
            }
            _ => return Err(ResumeError::Forged),
        })
    }

    fn waiting(&self, image: &Image<'_>, function: u16) -> Result<Status, ResumeError> {
        let pc = self.parts.position.pc;
        let stub = image.function_at(pc).ok_or(ResumeError::Forged)?;
        let status = Status::waiting(image, stub, pc).ok_or(ResumeError::Forged)?;
        match status {
            Status::Waiting { function: found, .. } if found == function => Ok(status),
            _ => Err(ResumeError::Forged),
        }
    }

    /// Checks that every frame is one that execution could have left: it fits the stack, execution goes
    /// on at an instruction, and below it lies the frame of a call. The opcode at which it stands.
    fn check_frames(&self, image: &Image<'_>) -> Result<u16, ResumeError> {
        let stack = self.parts.stack.frames_from(0);
        let Position { mut pc, mut frame, .. } = self.parts.position;
        let mut standing = None;
        loop {
            let function = image.function_at(pc).ok_or(ResumeError::Forged)?;
            let entry = image.function_entry(function).ok_or(ResumeError::Forged)?;
            let position = pc - entry.code;
            let (before, at) = neighbours(image, function, position).ok_or(ResumeError::Forged)?;
            let calls =
                matches!(before, Some(isa::CALL | isa::CALL_INDIRECT | isa::CALL_INDIRECT_TABLE));
            if standing.is_some() && !calls {
                return Err(ResumeError::Forged);
            }
            standing.get_or_insert(at);
            let end = frame as usize + entry.frame_bytes as usize;
            if frame % 8 != 0 || end / 8 > stack.len() {
                return Err(ResumeError::StackBudget);
            }
            let link = stack[(frame as usize + entry.link as usize) / 8] as u32;
            if link == 0 {
                let outermost = frame == 0 && image.function_entry(self.entry).is_some();
                let same_results = image.signature(FunctionIndex(function)).map(|own| {
                    image
                        .signature(FunctionIndex(self.entry))
                        .is_some_and(|entry| own.results().eq(entry.results()))
                });
                // A tail call may have replaced the function that was entered.
                return match standing {
                    Some(opcode) if outermost && same_results == Some(true) => Ok(opcode),
                    _ => Err(ResumeError::Forged),
                };
            }
            let delta = link.checked_sub(2).and_then(|at| isa::unit_at(image.bytes(), at as usize));
            let delta = delta.filter(|&delta| delta != 0).ok_or(ResumeError::Forged)?;
            frame = frame.checked_sub(delta as u32).ok_or(ResumeError::Forged)?;
            pc = link;
        }
    }
}

/// The slots of the stack up to the end of the frame in use.
fn slots_in_use<'i>(instance: &'i Instance, image: &Image<'_>) -> &'i [u64] {
    let frame_bytes = match instance.status {
        Status::Idle => 0,
        Status::Done => image.function_entry(instance.entry).map_or(0, |entry| entry.link as usize),
        _ => {
            let Position { pc, frame, .. } = instance.parts.position;
            let function = image.function_at(pc).unwrap_or(0);
            let entry = image.function_entry(function);
            frame as usize + entry.map_or(0, |entry| entry.frame_bytes as usize)
        }
    };
    instance.parts.stack.in_use(frame_bytes)
}

/// The instruction that ends at `position` of a function's code, and the one that begins there.
fn neighbours(image: &Image<'_>, function: u32, position: u32) -> Option<(Option<u16>, u16)> {
    let code = image.code(FunctionIndex(function))?;
    let mut before = None;
    let mut at = 0;
    while at <= position as usize {
        let (opcode, length) = isa::instruction_at(code, at)?;
        if at == position as usize {
            return Some((before, opcode));
        }
        before = Some(opcode);
        at += length;
    }
    None
}

fn read_slots(reader: &mut Reader<'_>, stack: &mut Stack) -> Result<(), ResumeError> {
    let count = reader.word()? as usize;
    if !stack.holds_globals(count) {
        return Err(ResumeError::Forged);
    }
    let bytes = reader.take(count.checked_mul(8).ok_or(ResumeError::Damaged)?)?;
    stack.restore(bytes).ok_or(ResumeError::StackBudget)
}

fn read_memory(
    reader: &mut Reader<'_>,
    image: &Image<'_>,
    memory: &mut Memory,
) -> Result<(), ResumeError> {
    let (pages, committed, used) = (reader.word()?, reader.word()? as u64, reader.word()?);
    let bytes = reader.take(used as usize)?;
    let more = pages.checked_sub(memory.pages()).ok_or(ResumeError::Forged)?;
    if used as u64 > committed {
        return Err(ResumeError::Forged);
    }
    memory.grow(more, image.memory_bytes_max()).ok_or(ResumeError::MemoryBudget)?;
    if committed > memory.declared() {
        return Err(ResumeError::Forged);
    }
    if committed > memory.usable() as u64 {
        return Err(ResumeError::MemoryBudget);
    }
    memory.commit_exactly(committed as usize).map_err(|_| ResumeError::OutOfMemory)?;
    memory.bytes_mut()[..used as usize].copy_from_slice(bytes);
    Ok(())
}

fn read_tables(
    reader: &mut Reader<'_>,
    image: &Image<'_>,
    tables: &mut Tables,
    memory: &mut Memory,
) -> Result<(), ResumeError> {
    let count = tables.all().len();
    if reader.word()? as usize != count {
        return Err(ResumeError::Forged);
    }
    for index in 0..count {
        let before = tables.all()[index].len();
        let length = reader.word()? as usize;
        let maximum = Tables::maximum(image, index as u32).max(before as u32);
        if length < before || length > maximum as usize {
            return Err(ResumeError::Forged);
        }
        let bytes = reader.take(length.checked_mul(4).ok_or(ResumeError::Damaged)?)?;
        let more = length - before;
        let ceded = more.checked_mul(size_of::<u32>()).and_then(|bytes| memory.cede(bytes));
        ceded.ok_or(ResumeError::MemoryBudget)?;
        tables.restore(index, more, bytes).map_err(|_| ResumeError::OutOfMemory)?;
    }
    Ok(())
}

fn read_words(reader: &mut Reader<'_>, list: &mut [u32]) -> Result<(), ResumeError> {
    if reader.word()? as usize != list.len() {
        return Err(ResumeError::Forged);
    }
    for item in list {
        *item = reader.word()?;
    }
    Ok(())
}

struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    fn take(&mut self, count: usize) -> Result<&'b [u8], ResumeError> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(ResumeError::Damaged)?;
        self.0 = rest;
        Ok(taken)
    }

    fn half(&mut self) -> Result<u16, ResumeError> {
        Ok(self.take(2)?.first_chunk().map_or(0, |&bytes| u16::from_le_bytes(bytes)))
    }

    fn word(&mut self) -> Result<u32, ResumeError> {
        Ok(self.take(4)?.first_chunk().map_or(0, |&bytes| u32::from_le_bytes(bytes)))
    }
}
