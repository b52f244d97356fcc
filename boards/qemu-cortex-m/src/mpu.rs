//! What the MPU is told: the windows of whoever runs unprivileged (ARMv7-M manual, B3.5).
//!
//! It has eight. What must be there at once (code, and the stack that exceptions write to) gets its
//! windows for good; the others are shared by what else the program reaches, which may take more than
//! there are: where an access fails that is the program's right, [`admit`] gives it a window, and it is
//! tried again.

use core::cell::UnsafeCell;
use core::ops::Range;

use tenure_board_common::Window;
use tenure_board_qemu_cortex_m::registers::Registers;
use tenure_hal::{Cause, Region, Violation};

// SAFETY: the MPU (manual, B3.5.4).
const MPU: Registers = unsafe { Registers::at(0xE000_ED90) };
const CONTROL: usize = 0x4;
const BASE: usize = 0xC;
const RULE: usize = 0x10;

/// It is on, and whoever is privileged reaches what no window forbids.
const ON: u32 = 0b101;
/// A base that names its window.
const NAMED: u32 = 1 << 4;
const ENABLED: u32 = 1;
/// Normal memory, written back (B3.5.9).
const NORMAL: u32 = 0b001_011 << 16;
const EXECUTE_NEVER: u32 = 1 << 28;
/// Who may do what: the firmware writes everywhere but to itself.
const ALL_WRITE: u32 = 0b011 << 24;
const ALL_READ: u32 = 0b010 << 24;
const READ_ONLY: u32 = 0b110 << 24;
const FIRMWARE_READ_ONLY: u32 = 0b101 << 24;

/// How many windows there are; where several cover a place, the last counts.
const WINDOWS: usize = 8;
/// Regions of one program at most.
const REGIONS: usize = 8;
/// The window of the firmware, told for good: from address 0, where the loader is, to behind the slot's
/// window, in eighths of a megabyte.
const FIRMWARE_WINDOW: (u32, u32) = (0, 0b1000_0000 << 8 | 19 << 1);
/// The windows that the code of one program takes at most.
const CODE_WINDOWS: usize = 4;

/// What the MPU was told last, so that it isn't told again.
struct Told {
    /// The ranges of those who ran last, with their rules.
    ranges: [(usize, usize, u32); REGIONS],
    count: usize,
    /// What the windows cover, from the second on.
    windows: [Range<usize>; WINDOWS],
    /// How many windows are in use; how many of them stay.
    used: usize,
    fixed: usize,
    /// The window that makes room next.
    next: usize,
}

struct OneCore(UnsafeCell<Told>);

// SAFETY: one core, and no handler looks at this.
unsafe impl Sync for OneCore {}

static TOLD: OneCore = OneCore(UnsafeCell::new(Told {
    ranges: [(0, 0, 0); REGIONS],
    count: 0,
    windows: [const { 0..0 }; WINDOWS],
    used: 1,
    fixed: 1,
    next: 1,
}));

fn told() -> &'static mut Told {
    // SAFETY: whoever calls this lets go of it before anybody else can.
    unsafe { &mut *TOLD.0.get() }
}

/// Turns memory protection on: nobody writes to the firmware, and nobody else reaches anything.
pub(crate) fn start() {
    for number in 1..WINDOWS {
        tell(number, (0, 0), 0);
    }
    tell(0, FIRMWARE_WINDOW, FIRMWARE_READ_ONLY | NORMAL | ENABLED);
    MPU.write(CONTROL, ON);
    synchronise();
}

/// The alignment and length of memory that one window can cover `bytes` of and, from its start on, others
/// of them `code_bytes`; `None` if that can't be.
pub(crate) fn room(bytes: usize, code_bytes: usize) -> Option<(usize, usize)> {
    const LENGTH_MIN: usize = 256;
    const PARTS: usize = 8;
    let whole = bytes.max(code_bytes).checked_next_power_of_two()?.max(LENGTH_MIN);
    if Window::covering(whole..whole + code_bytes).count() > CODE_WINDOWS {
        return None;
    }
    Some((whole, bytes.next_multiple_of(whole / PARTS)))
}

/// Lets programs reach `regions`, and nothing else, though not all at once; `false` if the hardware has
/// too few windows. Exceptions write to `frame`.
pub(crate) fn allow(regions: &[Region<'_>], frame: usize) -> bool {
    let told = told();
    if regions.len() > REGIONS {
        return false;
    }
    let mut regions_and_ranges = regions.iter().zip(&told.ranges);
    if told.count == regions.len()
        && regions_and_ranges.all(|(region, last)| range_of(region) == *last)
    {
        return true;
    }
    for (region, last) in regions.iter().zip(&mut told.ranges) {
        *last = range_of(region);
    }
    told.count = regions.len();
    let before = told.used;
    let allowed = told.begin(frame);
    if !allowed {
        told.count = 0;
    }
    for number in told.used..before {
        tell(number, (0, 0), 0);
    }
    synchronise();
    allowed
}

/// Gives what a program reached for a window, if it is its right and has none.
pub(crate) fn admit(regions: &[Region<'_>], violation: &Violation) -> bool {
    let Violation { cause, address, .. } = *violation;
    let told = told();
    let is_allowed = |region: &&Region<'_>| match region {
        Region::Own(_) => matches!(cause, Cause::Read | Cause::Write),
        Region::Readable(_) => cause == Cause::Read,
        Region::Firmware | Region::Code(_) => false,
    };
    let window = regions.iter().filter(is_allowed).find_map(|region| {
        let (start, end, rule) = range_of(region);
        Some((Window::around(address, &(start..end))?, rule))
    });
    let Some((window, rule)) = window else { return false };
    if told.windows[1..told.used].iter().any(|covered| covered.contains(&address)) {
        return false;
    }
    if told.used < WINDOWS {
        told.add(&window, rule);
    } else if told.fixed < WINDOWS {
        told.put(told.next, &window, rule);
        told.next = if told.next + 1 < WINDOWS { told.next + 1 } else { told.fixed };
    } else {
        return false;
    }
    synchronise();
    true
}

/// Where a region begins and ends, and the rule; of the firmware, which has a window of its own, the rule
/// alone.
#[inline(always)]
fn range_of(region: &Region<'_>) -> (usize, usize, u32) {
    let range = region.addresses().unwrap_or_default();
    let rule = match region {
        Region::Firmware => READ_ONLY,
        Region::Readable(_) => ALL_READ | EXECUTE_NEVER,
        Region::Code(_) => ALL_READ,
        Region::Own(_) => ALL_WRITE | EXECUTE_NEVER,
    };
    (range.start, range.end, rule)
}

impl Told {
    /// Tells the windows that must be there from the beginning, and as many of the others as there are.
    fn begin(&mut self, frame: usize) -> bool {
        self.used = 1;
        let ranges = self.ranges;
        let ranges = &ranges[..self.count];
        let firmware = match ranges.iter().any(|(.., rule)| *rule == READ_ONLY) {
            true => READ_ONLY,
            false => FIRMWARE_READ_ONLY,
        };
        tell(0, FIRMWARE_WINDOW, firmware | NORMAL | ENABLED);
        let code = ranges.iter().find(|(.., rule)| *rule == ALL_READ);
        let stack = ranges.iter().find(|(start, end, rule)| {
            *rule == ALL_WRITE | EXECUTE_NEVER && (*start..*end).contains(&frame)
        });
        if let Some(&(start, end, rule)) = stack {
            // Memory right behind code begins with the code, whose own windows count there.
            let start = code.filter(|code| code.1 == start).map_or(start, |code| code.0);
            let Some(window) = Window::around(frame, &(start..end)) else { return false };
            self.add(&window, rule);
        }
        if let Some(&(start, end, rule)) = code {
            for window in Window::covering(start..end) {
                if self.used == WINDOWS {
                    return false;
                }
                self.add(&window, rule);
            }
        }
        (self.fixed, self.next) = (self.used, self.used);
        for range in ranges {
            let is_fixed = Some(range) == code || Some(range) == stack;
            let (start, end, rule) = *range;
            if self.used < WINDOWS
                && !is_fixed
                && let Some(window) = Window::around(start, &(start..end))
            {
                self.add(&window, rule);
            }
        }
        true
    }

    fn add(&mut self, window: &Window, rule: u32) {
        self.put(self.used, window, rule);
        self.used += 1;
    }

    fn put(&mut self, number: usize, window: &Window, rule: u32) {
        self.windows[number] = window.addresses();
        tell(number, window.registers(), rule | NORMAL | ENABLED);
    }
}

/// Tells the MPU a window.
fn tell(number: usize, (base, covered): (u32, u32), rule: u32) {
    MPU.write(BASE, base | NAMED | number as u32);
    MPU.write(RULE, covered | rule);
}

/// What was told counts from the next instruction on.
fn synchronise() {
    cortex_m::asm::dsb();
    cortex_m::asm::isb();
}
