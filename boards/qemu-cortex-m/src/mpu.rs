//! The settings of the MPU: the windows of an unprivileged program (ARMv7-M manual, B3.5).
//!
//! It has eight. A program's memory is made so that they hold all of it: they are worked out once, when it
//! gets it, and written in one go when another ran before. Of what a function of the firmware reaches, or code
//! that was compiled from an image, the stack, which exceptions write to, gets a window for good; the others are
//! shared by the rest, which may take more than there are: where an access fails that is its right, [`admit`]
//! gives it a window, and it is tried again.

use core::arch::global_asm;
use core::cell::UnsafeCell;
use core::ops::Range;

use tenure_board_common::{Told, Window};
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
/// No window.
const OFF: [u32; 2] = [0, 0];
const ENABLED: u32 = 1;
/// Normal memory, written back (B3.5.9).
const NORMAL: u32 = 0b001_011 << 16;
const EXECUTE_NEVER: u32 = 1 << 28;
/// The firmware's rights: it writes everywhere but to itself.
const ALL_WRITE: u32 = 0b011 << 24;
const ALL_READ: u32 = 0b010 << 24;
const READ_ONLY: u32 = 0b110 << 24;
const FIRMWARE_READ_ONLY: u32 = 0b101 << 24;

/// How many windows there are; where several cover a place, the last counts.
const WINDOWS: usize = 8;
/// The window of the firmware, told for good: from address 0, where the loader is, to behind the slot's
/// window, in eighths of a megabyte.
const FIRMWARE_WINDOW: (u32, u32) = (0, 0b1000_0000 << 8 | 19 << 1);
/// The windows that the code of one program takes at most.
const CODE_WINDOWS: usize = 4;

/// The registers of all windows of a program: base and rule of each (MPU_RBAR and MPU_RASR).
pub(crate) type Windows = [[u32; 2]; WINDOWS];

/// The last settings of the MPU.
struct Protection {
    told: Told,
    /// The memory that the windows cover, from the second on.
    windows: [Range<usize>; WINDOWS],
    /// How many windows are in use; how many of them stay.
    used: usize,
    fixed: usize,
    /// The window that makes room next.
    next: usize,
}

struct OneCore(UnsafeCell<Protection>);

// SAFETY: one core, and no handler looks at this.
unsafe impl Sync for OneCore {}

static PROTECTION: OneCore = OneCore(UnsafeCell::new(Protection {
    told: Told::nothing(),
    windows: [const { 0..0 }; WINDOWS],
    used: 1,
    fixed: 1,
    next: 1,
}));

fn protection() -> &'static mut Protection {
    // SAFETY: whoever calls this lets go of it before anybody else can.
    unsafe { &mut *PROTECTION.0.get() }
}

/// Turns memory protection on: nobody writes to the firmware, and nobody else reaches anything.
pub(crate) fn start() {
    for number in 1..WINDOWS {
        tell(number, OFF);
    }
    tell(0, [FIRMWARE_WINDOW.0, FIRMWARE_WINDOW.1 | FIRMWARE_READ_ONLY | NORMAL | ENABLED]);
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

/// The windows of a program whose memory begins at `start` and is `taken` bytes long, as [`room`] says, the
/// first `code_bytes` of it code.
pub(crate) fn windows_of(start: usize, taken: usize, code_bytes: usize) -> Option<Windows> {
    let all = start..start + taken;
    let own = Window::around(start, &all).filter(|window| window.addresses() == all)?;
    // Where several cover a place, the last counts.
    let code =
        Window::covering(start..start + code_bytes).map(|window| (window, rule(false, true)));
    let firmware = [FIRMWARE_WINDOW.0, FIRMWARE_WINDOW.1 | FIRMWARE_READ_ONLY | NORMAL | ENABLED];
    let mut windows = [OFF; WINDOWS];
    windows[0] = firmware;
    let each = core::iter::once((own, rule(true, false))).chain(code);
    for (number, (window, rule)) in each.enumerate() {
        *windows.get_mut(number + 1)? = registers(&window, rule);
    }
    for (number, [base, _]) in windows.iter_mut().enumerate() {
        *base |= NAMED | number as u32;
    }
    Some(windows)
}

/// Lets the program whose memory is at `start` reach it, and nothing else.
#[inline(always)]
pub(crate) fn allow_program(start: usize, windows: &Windows) {
    if protection().told.is_news(start) {
        // SAFETY: it reads that many words and no more, and what they say holds for whoever is
        // unprivileged; nobody runs so meanwhile.
        unsafe { tell_all(windows) };
    }
}

unsafe extern "C" {
    /// Tells the MPU all windows, which counts from the next instruction on.
    fn tell_all(windows: *const Windows);
}

// Four windows at a time, by the registers that are there for it (B3.5.4).
global_asm!(
    ".section .text.tell_all, \"ax\"",
    ".global tell_all",
    ".type tell_all, %function",
    ".thumb_func",
    "tell_all:",
    "push {{r4-r9, lr}}",
    "ldr r1, =0xE000ED9C",
    "ldmia r0!, {{r2-r9}}",
    "stmia r1, {{r2-r9}}",
    "ldmia r0!, {{r2-r9}}",
    "stmia r1, {{r2-r9}}",
    "dsb",
    "isb",
    "pop {{r4-r9, pc}}",
    ".ltorg",
);

/// The last settings may not hold any more: memory is given to somebody.
pub(crate) fn forget() {
    protection().told.forget();
}

/// Lets a function reach `regions`, and the firmware if none of them is code, and nothing else, though not all
/// at once; `false` if the hardware has too few windows. Exceptions write to `frame`.
pub(crate) fn allow(regions: &[Region<'_>], frame: usize) -> bool {
    let protection = protection();
    match protection.told.are_news(regions) {
        None => return false,
        Some(false) => return true,
        Some(true) => {}
    }
    let allowed = protection.begin(frame);
    if !allowed {
        protection.told.forget();
    }
    for number in protection.used..WINDOWS {
        tell(number, OFF);
    }
    synchronise();
    allowed
}

/// Gives what a function reached for a window, if it is its right and has none.
pub(crate) fn admit(regions: &[Region<'_>], violation: &Violation) -> bool {
    let Violation { cause, address, .. } = *violation;
    let protection = protection();
    let is_allowed = |region: &&Region<'_>| match region {
        Region::Own(_) => matches!(cause, Cause::Read | Cause::Write),
        Region::Readable(_) => cause == Cause::Read,
        Region::Code(_) => matches!(cause, Cause::Read | Cause::Execute),
    };
    let window = regions.iter().filter(is_allowed).find_map(|region| {
        let window = Window::around(address, &region.addresses())?;
        Some((window, rule(region.is_own(), region.is_code())))
    });
    let Some((window, rule)) = window else { return false };
    if protection.windows[1..protection.used].iter().any(|covered| covered.contains(&address)) {
        return false;
    }
    if protection.used < WINDOWS {
        protection.add(&window, rule);
    } else if protection.fixed < WINDOWS {
        protection.put(protection.next, &window, rule);
        let next = protection.next + 1;
        protection.next = if next < WINDOWS { next } else { protection.fixed };
    } else {
        return false;
    }
    synchronise();
    true
}

impl Protection {
    /// Tells the windows that must be there from the beginning, and as many of the others as there are.
    fn begin(&mut self, frame: usize) -> bool {
        self.used = 1;
        let runs_firmware = !self.told.ranges().iter().any(|range| range.is_code);
        let firmware = if runs_firmware { READ_ONLY } else { FIRMWARE_READ_ONLY };
        tell(0, [FIRMWARE_WINDOW.0, FIRMWARE_WINDOW.1 | firmware | NORMAL | ENABLED]);
        let stack = self
            .told
            .ranges()
            .iter()
            .position(|range| range.is_own && (range.start..range.end).contains(&frame));
        if let Some(stack) = stack {
            let range = self.told.ranges()[stack];
            let Some(window) = Window::around(frame, &(range.start..range.end)) else {
                return false;
            };
            self.add(&window, rule(true, false));
        }
        (self.fixed, self.next) = (self.used, self.used);
        for number in 0..self.told.ranges().len() {
            let range = self.told.ranges()[number];
            if self.used < WINDOWS
                && Some(number) != stack
                && let Some(window) = Window::around(range.start, &(range.start..range.end))
            {
                self.add(&window, rule(range.is_own, range.is_code));
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
        tell(number, registers(window, rule));
    }
}

/// The rule of a window that is read, or written or executed too.
fn rule(is_own: bool, is_code: bool) -> u32 {
    let access = if is_own { ALL_WRITE } else { ALL_READ };
    access | if is_code { 0 } else { EXECUTE_NEVER }
}

/// Base and rule of a window.
fn registers(window: &Window, rule: u32) -> [u32; 2] {
    let (base, covered) = window.registers();
    [base, covered | rule | NORMAL | ENABLED]
}

/// Tells the MPU a window.
fn tell(number: usize, [base, rule]: [u32; 2]) {
    MPU.write(BASE, base | NAMED | number as u32);
    MPU.write(RULE, rule);
}

/// The settings count from the next instruction on.
fn synchronise() {
    cortex_m::asm::dsb();
    cortex_m::asm::isb();
}
