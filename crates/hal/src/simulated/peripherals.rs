//! Peripherals that follow a script, for trying machines out and for tests. What they do depends on
//! the time alone, so they do the same in every run.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use crate::{Instant, Peripheral};

/// The longest payload of an event that a camera makes, in bytes: a part of a frame and its header.
const CHUNK_BYTES: usize = 1024;
/// The bytes before the pixels of a part of a frame.
const CHUNK_HEADER_BYTES: usize = 12;
/// How often a peripheral can be told to read, at the most.
const PERIOD_MIN: Duration = Duration::from_millis(10);

/// A value from a moment on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// When, counted from boot.
    pub at: Duration,
    /// In thousandths.
    pub value: i64,
}

/// When something that happens again and again happens next.
#[derive(Clone, Copy, Debug)]
struct Period {
    every: Duration,
    next: Option<Instant>,
}

impl Period {
    fn new(every: Duration) -> Self {
        Self { every: every.max(PERIOD_MIN), next: None }
    }

    /// Whether it is due; if so, it is due again a period later. What was missed is left out.
    fn is_due(&mut self, now: Instant) -> bool {
        let due = self.next.is_none_or(|next| next <= now);
        if due {
            let regular = self.next.unwrap_or(now) + self.every;
            self.next = Some(if regular > now { regular } else { now + self.every });
        }
        due
    }

    /// Follows the command `period`, in milliseconds.
    fn command(&mut self, now: Instant, part: &str, command: &[u8]) {
        let text = core::str::from_utf8(command).unwrap_or_default();
        if part == "period"
            && let Ok(millis) = text.trim().parse::<u32>()
        {
            self.every = Duration::from_millis(millis.into()).max(PERIOD_MIN);
            self.next = Some(now + self.every);
        }
    }
}

/// A thermometer: says its temperature in degrees, as text such as `21.5`, once a period. Between the
/// points of its script the temperature changes evenly. The command `period` says how often, in
/// milliseconds.
#[derive(Clone, Debug)]
pub struct Thermometer {
    name: String,
    period: Period,
    points: Vec<Point>,
}

impl Thermometer {
    /// One that reads every `period` what `points`, in the order of their times, say.
    pub fn new(name: &str, period: Duration, points: Vec<Point>) -> Self {
        Self { name: name.into(), period: Period::new(period), points }
    }

    /// The measured value, in thousandths.
    fn value(&self, now: Instant) -> i64 {
        let now = now.since(Instant::BOOT);
        let after = self.points.iter().position(|point| point.at > now);
        match after {
            None => self.points.last().map_or(0, |last| last.value),
            Some(0) => self.points[0].value,
            Some(next) => {
                let (from, to) = (self.points[next - 1], self.points[next]);
                let whole = (to.at - from.at).as_micros().max(1) as i128;
                let part = (now - from.at).as_micros() as i128;
                from.value + ((to.value - from.value) as i128 * part / whole) as i64
            }
        }
    }
}

impl Peripheral for Thermometer {
    fn name(&self) -> &str {
        &self.name
    }

    fn poll(&mut self, now: Instant, publish: &mut dyn FnMut(&str, &[u8])) -> Option<Instant> {
        if self.period.is_due(now) {
            let value = self.value(now);
            let sign = if value < 0 { "-" } else { "" };
            let (whole, part) = (value.unsigned_abs() / 1000, value.unsigned_abs() % 1000 / 100);
            publish("", format!("{sign}{whole}.{part}").as_bytes());
        }
        self.period.next
    }

    fn command(&mut self, now: Instant, part: &str, command: &[u8]) {
        self.period.command(now, part, command);
    }
}

/// A button: says `pressed` and `released` when its script does.
#[derive(Clone, Debug)]
pub struct Button {
    name: String,
    presses: Vec<Duration>,
    held: Duration,
    /// How many changes it has told of: two a press.
    told: Option<usize>,
}

impl Button {
    /// One that is pressed at each of `presses`, in order and counted from boot, for as long as
    /// `held`.
    pub fn new(name: &str, presses: Vec<Duration>, held: Duration) -> Self {
        Self { name: name.into(), presses, held, told: None }
    }

    fn change(&self, number: usize) -> Option<Instant> {
        let pressed = *self.presses.get(number / 2)?;
        Some(Instant::BOOT + if number.is_multiple_of(2) { pressed } else { pressed + self.held })
    }
}

impl Peripheral for Button {
    fn name(&self) -> &str {
        &self.name
    }

    fn poll(&mut self, now: Instant, publish: &mut dyn FnMut(&str, &[u8])) -> Option<Instant> {
        let passed = |from: usize| {
            (from..).take_while(|number| self.change(*number).is_some_and(|at| at <= now)).count()
        };
        // Nobody saw an event before the first poll.
        let told = self.told.unwrap_or_else(|| passed(0));
        let now_told = told + passed(told);
        for number in told..now_told {
            let pressed = number.is_multiple_of(2);
            publish("", if pressed { b"pressed" } else { b"released" });
        }
        self.told = Some(now_told);
        self.change(now_told)
    }

    fn command(&mut self, _: Instant, _: &str, _: &[u8]) {}
}

/// A lamp: the commands `on` and `off` switch it, and it says which it is whenever that changes.
#[derive(Clone, Debug)]
pub struct Lamp {
    name: String,
    on: bool,
    told: Option<bool>,
}

impl Lamp {
    /// One that is off.
    pub fn new(name: &str) -> Self {
        Self { name: name.into(), on: false, told: None }
    }
}

impl Peripheral for Lamp {
    fn name(&self) -> &str {
        &self.name
    }

    fn poll(&mut self, _: Instant, publish: &mut dyn FnMut(&str, &[u8])) -> Option<Instant> {
        if self.told != Some(self.on) {
            self.told = Some(self.on);
            publish("", if self.on { b"on" } else { b"off" });
        }
        None
    }

    fn command(&mut self, _: Instant, part: &str, command: &[u8]) {
        match (part, command) {
            ("", b"on") => self.on = true,
            ("", b"off") => self.on = false,
            _ => {}
        }
    }
}

/// A camera: takes a picture once a period, or at the command `capture`, in which a bright square
/// moves. A byte a pixel, row by row.
///
/// A whole picture is longer than an event, so it comes in parts under `frame`: its number, where the
/// part begins and how long the whole is, four bytes each and little-endian, then up to 1,012 pixels.
/// Under `thumbnail` it comes in one, eight pixels wide and high: for who wants the latest alone.
#[derive(Clone, Debug)]
pub struct Camera {
    name: String,
    width: u16,
    height: u16,
    period: Period,
    number: u32,
    wanted: bool,
}

impl Camera {
    /// One with so many pixels that takes a picture every `period`.
    pub fn new(name: &str, width: u16, height: u16, period: Duration) -> Self {
        let (width, height) = (width.max(8), height.max(8));
        Self {
            name: name.into(),
            width,
            height,
            period: Period::new(period),
            number: 0,
            wanted: false,
        }
    }

    /// The pixel at a place of picture `number`.
    fn pixel(&self, number: u32, across: u32, down: u32) -> u8 {
        let (width, height) = (u32::from(self.width), u32::from(self.height));
        let side = height.min(width) / 4 + 1;
        let inside = |at: u32, size: u32| (at + size - number * 3 % size) % size < side;
        if inside(across, width) && inside(down, height) { 255 } else { 16 }
    }

    fn publish_frame(&self, publish: &mut dyn FnMut(&str, &[u8])) {
        let whole = u32::from(self.width) * u32::from(self.height);
        let step = (CHUNK_BYTES - CHUNK_HEADER_BYTES) as u32;
        for offset in (0..whole).step_by(step as usize) {
            let mut chunk = Vec::with_capacity(CHUNK_BYTES);
            for field in [self.number, offset, whole] {
                chunk.extend_from_slice(&field.to_le_bytes());
            }
            let pixels = offset..(offset + step).min(whole);
            let width = u32::from(self.width);
            chunk.extend(pixels.map(|at| self.pixel(self.number, at % width, at / width)));
            publish("frame", &chunk);
        }
        let (across, down) = (u32::from(self.width) / 8, u32::from(self.height) / 8);
        let thumbnail: [u8; 64] = core::array::from_fn(|at| {
            self.pixel(self.number, at as u32 % 8 * across, at as u32 / 8 * down)
        });
        publish("thumbnail", &thumbnail);
    }
}

impl Peripheral for Camera {
    fn name(&self) -> &str {
        &self.name
    }

    fn poll(&mut self, now: Instant, publish: &mut dyn FnMut(&str, &[u8])) -> Option<Instant> {
        if self.period.is_due(now) || core::mem::take(&mut self.wanted) {
            self.publish_frame(publish);
            self.number += 1;
        }
        self.period.next
    }

    fn command(&mut self, now: Instant, part: &str, command: &[u8]) {
        self.wanted |= part.is_empty() && command == b"capture";
        self.period.command(now, part, command);
    }
}

#[cfg(test)]
mod tests;
