//! Records as bytes, and back.
//!
//! The first byte of a record has its kind in the low half and its flags in the high one. Numbers are varints (LEB128),
//! those below zero folded (zigzag); byte strings have their length before them.

use alloc::string::String;
use alloc::vec::Vec;

use tenure_wire::{Digest, PublicKey};

use crate::memory::{Memory, Met};
use crate::record::{Event, Given, Mark, Record, Task, Why, Woken};

const TASK: u8 = 1;
const WOKEN: u8 = 2;
const GIVEN: u8 = 3;
const UPTIME: u8 = 4;
const UNIX: u8 = 5;
const RANDOM: u8 = 6;
const REFUSED: u8 = 7;
const AMENDED: u8 = 8;
const STOPPED: u8 = 9;
const MARK: u8 = 10;
const CHARGED: u8 = 11;
const SUSPENDED: u8 = 12;
const KIND: u8 = 0x0F;

/// A task that is called as its function was last.
const AS_BEFORE: u8 = 0x10;
/// A status is there.
const STATUS: u8 = 0x10;
/// Bytes are there.
const BYTES: u8 = 0x20;
/// An event is there.
const EVENT: u8 = 0x40;
/// The status is the length of bytes or event, and isn't there.
const LENGTH: u8 = 0x80;
/// A piece of a call that isn't done.
const MORE: u8 = 0x10;
/// Fuel and flash bytes are there.
const COSTS: u8 = 0x20;
/// A value is there, and not a deletion.
const VALUE: u8 = 0x10;
/// It is a text.
const TEXT: u8 = 0x20;
/// A digest is there.
const STATE: u8 = 0x10;
/// The number of a receipt is there.
const RECEIPT: u8 = 0x20;

/// The parts of a task that isn't as before.
const HAS_CALLER: u8 = 1;
const HAS_PARAMETER: u8 = 2;
const HAS_CALLBACK: u8 = 4;
const HAS_EVENT: u8 = 8;

/// The bytes can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// A writer of records.
#[derive(Clone, Debug, Default)]
pub(crate) struct Encoder {
    pub(crate) bytes: Vec<u8>,
    memory: Memory,
}

impl Encoder {
    pub(crate) fn record(&mut self, record: &Record) {
        match record {
            Record::Task(task) => self.task(task),
            Record::Woken(woken) => self.woken(woken),
            Record::Given(given) => self.given(given),
            Record::Uptime(us) => {
                self.bytes.push(UPTIME);
                self.number(us.wrapping_sub(self.memory.at_us));
                self.memory.at_us = *us;
            }
            Record::Unix(seconds) => {
                self.bytes.push(UNIX);
                self.signed(seconds.wrapping_sub(self.memory.unix_s));
                self.memory.unix_s = *seconds;
            }
            Record::Random(bytes) => {
                self.bytes.push(RANDOM);
                self.string(bytes);
            }
            Record::Refused { calls, error } => {
                self.bytes.push(REFUSED);
                self.number((*calls).into());
                self.signed((*error).into());
            }
            Record::Amended { fuel, path, value } => {
                let flags = match value {
                    None => 0,
                    Some((false, _)) => VALUE,
                    Some((true, _)) => VALUE | TEXT,
                };
                self.bytes.push(AMENDED | flags);
                self.number(*fuel);
                self.string(path.as_bytes());
                if let Some((_, bytes)) = value {
                    self.string(bytes);
                }
            }
            Record::Suspended { fuel } => {
                self.bytes.push(SUSPENDED);
                self.number(*fuel);
            }
            Record::Stopped { fuel, why } => {
                self.bytes.push(STOPPED);
                self.number(*fuel);
                self.bytes.push(why.number());
            }
            Record::Charged { fuel, flash_bytes } => {
                self.bytes.push(CHARGED);
                self.number(*fuel);
                self.number(*flash_bytes);
            }
            Record::Mark(mark) => self.mark(mark),
        }
    }

    fn task(&mut self, task: &Task) {
        let as_before = self.memory.repeats(task);
        self.bytes.push(TASK | if as_before { AS_BEFORE } else { 0 });
        let span = self.memory.pass_ms(task.at_ms);
        self.number(span);
        self.text(&task.function);
        if !as_before {
            let flag = |is_there: bool, flag: u8| if is_there { flag } else { 0 };
            let form = flag(task.caller.is_some(), HAS_CALLER)
                | flag(task.parameter.is_some(), HAS_PARAMETER)
                | flag(task.callback_of.is_some(), HAS_CALLBACK)
                | flag(task.event.is_some(), HAS_EVENT);
            self.bytes.push(form);
            if let Some(caller) = &task.caller {
                self.caller(caller);
            }
            if let Some(parameter) = &task.parameter {
                self.string(parameter);
            }
            if let Some(call) = task.callback_of {
                self.number(call.into());
            }
            if let Some(event) = &task.event {
                self.event(event);
            }
        }
        self.memory.remember(task);
    }

    fn woken(&mut self, woken: &Woken) {
        let length = length_of(woken.bytes.as_ref(), woken.event.as_ref());
        let is_length = woken.status.is_some() && woken.status == length;
        let mut flags = 0;
        flags |= if woken.status.is_some() { STATUS } else { 0 };
        flags |= if woken.bytes.is_some() { BYTES } else { 0 };
        flags |= if woken.event.is_some() { EVENT } else { 0 };
        flags |= if is_length { LENGTH } else { 0 };
        self.bytes.push(WOKEN | flags);
        let span = self.memory.pass_ms(woken.at_ms);
        self.number(span);
        if let Some(status) = woken.status.filter(|_| !is_length) {
            self.signed(status.into());
        }
        if let Some(bytes) = &woken.bytes {
            self.string(bytes);
        }
        if let Some(event) = &woken.event {
            self.event(event);
        }
    }

    fn given(&mut self, given: &Given) {
        let is_length = length_of(None, given.event.as_ref()) == Some(given.value);
        let mut flags = 0;
        flags |= if given.more { MORE } else { 0 };
        flags |= if given.event.is_some() { EVENT } else { 0 };
        flags |= if given.fuel > 0 || given.flash_bytes > 0 { COSTS } else { 0 };
        flags |= if is_length { LENGTH } else { 0 };
        self.bytes.push(GIVEN | flags);
        if !is_length {
            self.signed(given.value.into());
        }
        if let Some(event) = &given.event {
            self.event(event);
        }
        if flags & COSTS != 0 {
            self.number(given.fuel);
            self.number(given.flash_bytes);
        }
    }

    fn mark(&mut self, mark: &Mark) {
        let mut flags = 0;
        flags |= if mark.state.is_some() { STATE } else { 0 };
        flags |= if mark.receipt.is_some() { RECEIPT } else { 0 };
        self.bytes.push(MARK | flags);
        self.number(mark.fuel);
        self.number(mark.turns);
        self.number(mark.total);
        self.number(mark.unpaid);
        if let Some(Digest(state)) = &mark.state {
            self.bytes.extend(state);
        }
        if let Some(number) = mark.receipt {
            self.number(number);
        }
    }

    fn event(&mut self, event: &Event) {
        self.text(&event.topic);
        self.number(event.dropped);
        self.string(&event.payload);
    }

    fn text(&mut self, text: &str) {
        match self.memory.meet_text(text) {
            Met::Before(number) => self.number(number as u64),
            Met::New(number) => {
                self.number(number as u64);
                self.string(text.as_bytes());
            }
        }
    }

    fn caller(&mut self, caller: &PublicKey) {
        match self.memory.meet_caller(caller) {
            Met::Before(number) => self.number(number as u64),
            Met::New(number) => {
                self.number(number as u64);
                self.bytes.extend(caller.0);
            }
        }
    }

    pub(crate) fn string(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.bytes.extend(bytes);
    }

    fn signed(&mut self, number: i64) {
        self.number(((number << 1) ^ (number >> 63)) as u64);
    }

    pub(crate) fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }
}

/// The length that a status may stand for.
fn length_of(bytes: Option<&Vec<u8>>, event: Option<&Event>) -> Option<i32> {
    let length = bytes.map(Vec::len).or(event.map(|event| event.payload.len()))?;
    i32::try_from(length).ok()
}

/// A reader of records.
#[derive(Clone, Debug)]
pub(crate) struct Decoder<'a> {
    rest: &'a [u8],
    memory: Memory,
}

impl<'a> Decoder<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, memory: Memory::default() }
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn record(&mut self) -> Result<Record, Malformed> {
        let first = self.byte()?;
        let flags = first & !KIND;
        Ok(match first & KIND {
            TASK => Record::Task(self.task(flags)?),
            WOKEN => Record::Woken(self.woken(flags)?),
            GIVEN => Record::Given(self.given(flags)?),
            UPTIME => {
                self.memory.at_us = self.memory.at_us.wrapping_add(self.number()?);
                Record::Uptime(self.memory.at_us)
            }
            UNIX => {
                self.memory.unix_s = self.memory.unix_s.wrapping_add(self.signed()?);
                Record::Unix(self.memory.unix_s)
            }
            RANDOM => Record::Random(self.string()?.to_vec()),
            REFUSED => {
                let calls = u32::try_from(self.number()?).map_err(|_| Malformed)?;
                Record::Refused { calls, error: self.status()? }
            }
            AMENDED => {
                let (fuel, path) = (self.number()?, self.utf8()?);
                let value = match flags & VALUE {
                    0 => None,
                    _ => Some((flags & TEXT != 0, self.string()?.to_vec())),
                };
                Record::Amended { fuel, path, value }
            }
            STOPPED => {
                let fuel = self.number()?;
                let why = Why::of_number(self.byte()?).ok_or(Malformed)?;
                Record::Stopped { fuel, why }
            }
            SUSPENDED => Record::Suspended { fuel: self.number()? },
            CHARGED => Record::Charged { fuel: self.number()?, flash_bytes: self.number()? },
            MARK => Record::Mark(self.mark(flags)?),
            _ => return Err(Malformed),
        })
    }

    fn task(&mut self, flags: u8) -> Result<Task, Malformed> {
        let span = self.number()?;
        let at_ms = self.memory.after_ms(span);
        let function = self.text()?;
        let mut task = Task { at_ms, function, ..Task::default() };
        if flags & AS_BEFORE != 0 {
            (task.caller, task.parameter) = self.memory.last_of(&task.function).ok_or(Malformed)?;
        } else {
            let form = self.byte()?;
            if form & HAS_CALLER != 0 {
                task.caller = Some(self.caller()?);
            }
            if form & HAS_PARAMETER != 0 {
                task.parameter = Some(self.string()?.to_vec());
            }
            if form & HAS_CALLBACK != 0 {
                task.callback_of = Some(u32::try_from(self.number()?).map_err(|_| Malformed)?);
            }
            if form & HAS_EVENT != 0 {
                task.event = Some(self.event()?);
            }
        }
        self.memory.remember(&task);
        Ok(task)
    }

    fn woken(&mut self, flags: u8) -> Result<Woken, Malformed> {
        let span = self.number()?;
        let mut woken = Woken { at_ms: self.memory.after_ms(span), ..Woken::default() };
        if flags & STATUS != 0 && flags & LENGTH == 0 {
            woken.status = Some(self.status()?);
        }
        if flags & BYTES != 0 {
            woken.bytes = Some(self.string()?.to_vec());
        }
        if flags & EVENT != 0 {
            woken.event = Some(self.event()?);
        }
        if flags & LENGTH != 0 {
            woken.status = length_of(woken.bytes.as_ref(), woken.event.as_ref());
        }
        Ok(woken)
    }

    fn given(&mut self, flags: u8) -> Result<Given, Malformed> {
        let mut given = Given { more: flags & MORE != 0, ..Given::default() };
        if flags & LENGTH == 0 {
            given.value = self.status()?;
        }
        if flags & EVENT != 0 {
            given.event = Some(self.event()?);
        }
        if flags & LENGTH != 0 {
            given.value = length_of(None, given.event.as_ref()).ok_or(Malformed)?;
        }
        if flags & COSTS != 0 {
            (given.fuel, given.flash_bytes) = (self.number()?, self.number()?);
        }
        Ok(given)
    }

    fn mark(&mut self, flags: u8) -> Result<Mark, Malformed> {
        let (fuel, turns, total) = (self.number()?, self.number()?, self.number()?);
        let mut mark = Mark { fuel, turns, total, unpaid: self.number()?, ..Mark::default() };
        if flags & STATE != 0 {
            mark.state = Some(Digest(self.array()?));
        }
        if flags & RECEIPT != 0 {
            mark.receipt = Some(self.number()?);
        }
        Ok(mark)
    }

    fn event(&mut self) -> Result<Event, Malformed> {
        let (topic, dropped) = (self.text()?, self.number()?);
        Ok(Event { topic, dropped, payload: self.string()?.to_vec() })
    }

    fn text(&mut self) -> Result<String, Malformed> {
        let number = self.number()?;
        match self.memory.text(number).ok_or(Malformed)? {
            Ok(text) => Ok(text),
            Err(()) => {
                let text = self.utf8()?;
                self.memory.meet_text(&text);
                Ok(text)
            }
        }
    }

    fn caller(&mut self) -> Result<PublicKey, Malformed> {
        let number = self.number()?;
        match self.memory.caller(number).ok_or(Malformed)? {
            Ok(caller) => Ok(caller),
            Err(()) => {
                let caller = PublicKey(self.array()?);
                self.memory.meet_caller(&caller);
                Ok(caller)
            }
        }
    }

    fn utf8(&mut self) -> Result<String, Malformed> {
        let text = core::str::from_utf8(self.string()?).map_err(|_| Malformed)?;
        Ok(text.into())
    }

    pub(crate) fn string(&mut self) -> Result<&'a [u8], Malformed> {
        let length = usize::try_from(self.number()?).map_err(|_| Malformed)?;
        let (string, rest) = self.rest.split_at_checked(length).ok_or(Malformed)?;
        self.rest = rest;
        Ok(string)
    }

    fn array(&mut self) -> Result<[u8; 32], Malformed> {
        let (array, rest) = self.rest.split_first_chunk().ok_or(Malformed)?;
        self.rest = rest;
        Ok(*array)
    }

    fn status(&mut self) -> Result<i32, Malformed> {
        i32::try_from(self.signed()?).map_err(|_| Malformed)
    }

    fn signed(&mut self) -> Result<i64, Malformed> {
        let number = self.number()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    pub(crate) fn number(&mut self) -> Result<u64, Malformed> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Malformed)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Malformed> {
        let (byte, rest) = self.rest.split_first().ok_or(Malformed)?;
        self.rest = rest;
        Ok(*byte)
    }
}
