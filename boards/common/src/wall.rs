//! The vm's second wall, on whatever memory protection a board has.

use alloc::vec::Vec;
use core::ops::RangeInclusive;

use tenure_hal::{Cause, Clock, Exit, Guard, RETURNED, Region, Violation};
use tenure_kernel::COMPILED_STACK_BYTES;
use tenure_vm::{Breach, BreachCause, Entry, OVERRUN_UNITS, Stay, Wall, word};

/// Bytes of the stack that the interpreter runs on; it is flat, so that this is enough for the
/// longest of its functions. A power of two, which any memory protection covers at once.
const STACK_BYTES: usize = 2048;
const _: () = assert!(COMPILED_STACK_BYTES + word::COUNT * WORD_BYTES + ALIGNMENT <= STACK_BYTES);
const WORD_BYTES: usize = size_of::<usize>();
/// Where a stack must begin, in bytes.
const ALIGNMENT: usize = 16;
/// The longest that one stay may take. Fuel ends it long before; this ends an interpreter that has
/// gone wrong.
const STAY_MICROSECONDS: u32 = 2_000_000;
/// The same for compiled code, for which nobody vouches, where the clock counts what others do.
const COMPILED_MICROSECONDS: u32 = 500_000;

/// Units whose time a stay may take beside those it pays for, to take up its frames' variables and write them down.
const STAY_UNITS: u64 = 96;
/// The step of the clock: what a span may seem longer than it is.
const CLOCK_STEP_NS: u64 = 1_000;
/// The most units that stays may save up for later ones by taking less than the longest time. Callers that were written down
/// take long to come back one by one, and had paid before.
const SAVED_UNITS: u64 = 32_768;
/// What is saved goes with a part of the time, as a power of two.
const SAVED_SHARE_BITS: u32 = 10;
/// Empty stays that are measured together, and how often.
const STAYS_TOGETHER: u64 = 32;
const MEASUREMENTS: usize = 4;

/// The time that a unit of fuel pays for, many times what the interpreter takes for one, and the bytes of code
/// in a unit.
const MICROSECONDS_PER_UNIT: u64 = 1;
const UNIT_BYTES: u64 = 2;
/// The time beside that for a stay to begin and end: so many times that of the shortest stay in which nothing is
/// done, between these bounds.
const MICROSECONDS_PER_STAY: RangeInclusive<u64> = 20..=2_000;
/// The same in an emulator, whose clock counts what its computer does for others, too, and which translates code anew
/// when memory protection changes: stays of a few instructions take a fifth of a millisecond, and some take many.
const EMULATED_MICROSECONDS_PER_STAY: u64 = 10_000;
const EMPTY_STAYS_PER_STAY: u64 = 8;
/// The empty stays that are measured.
const EMPTY_STAYS: u64 = 8;
/// The part of all time that compiled code may take unpaid, as a power of two: a sixteenth. A clock that jumps
/// now and then, as an emulator's does, stops no honest code.
const FREE_SHARE_BITS: u32 = 4;

/// Runs the interpreter unprivileged: it reaches the firmware's code, one machine's memory, and a
/// stack that is wiped when another machine follows. Compiled code runs so, too, and reaches itself in
/// place of the firmware.
///
/// Compiled code counts its fuel itself. Where the clock counts nothing else ([`Guard::UNIT_NS`]), it bills what that code
/// took beyond the longest time of an honest one, and a stay is over when its fuel can't pay for more. Elsewhere code
/// is stopped that took half a second too much.
pub struct GuardedVm<G: Guard, C> {
    guard: G,
    clock: C,
    stack: G::Memory,
    /// Where the stack of the machine lies that ran last.
    last: usize,
    unpaid: Unpaid,
    /// What a stay takes in which nothing is done, in nanoseconds, where the clock bills.
    stay_ns: u64,
    /// Units of fuel that the clock saw taken beyond what was counted, and that nobody has paid yet.
    overdraft: u32,
}

impl<G: Guard + Send, C: Clock + Send> GuardedVm<G, C> {
    /// A wall that `guard` stands for, with a clock that sees what compiled code takes; `None` if there is no
    /// memory for a stack.
    pub fn new(guard: G, clock: C) -> Option<Self> {
        let stack = guard.memory(STACK_BYTES, 0, None)?;
        let (unpaid, stay_ns, overdraft) = (Unpaid::default(), 0, 0);
        let mut wall = Self { guard, clock, stack, last: 0, unpaid, stay_ns, overdraft };
        match G::UNIT_NS {
            Some(_) => {
                wall.unpaid.fades_bits = SAVED_SHARE_BITS;
                wall.measure_stay();
            }
            None => wall.measure_stays(),
        }
        Some(wall)
    }

    /// Measures what a stay takes in which nothing is done, and before which memory protection is told anew.
    fn measure_stay(&mut self) {
        const LINES: [u8; 64] = [0; 64];
        let measure = |wall: &mut Self| {
            let from_us = wall.clock.now().as_micros();
            for stay in 0..STAYS_TOGETHER {
                wall.stay_in_nothing(&LINES[..if stay & 1 == 0 { 32 } else { 64 }]);
            }
            wall.clock.now().as_micros().saturating_sub(from_us)
        };
        let shortest_us = (0..MEASUREMENTS).map(|_| measure(self)).min().unwrap_or(0);
        self.stay_ns = (shortest_us + 1) * 1_000 / STAYS_TOGETHER;
    }

    /// What compiled code is billed by, where the clock may.
    fn price(&self) -> Option<Price> {
        Some(Price { stay_ns: self.stay_ns, unit_ns: u64::from(G::UNIT_NS?) })
    }

    /// The same in an emulator, where compiled code is stopped later.
    pub fn emulated(mut self) -> Self {
        self.unpaid.stay_us = EMULATED_MICROSECONDS_PER_STAY;
        self
    }

    /// Measures how long a stay takes here in which nothing is done. The shortest counts: the others may have waited
    /// for a processor that an emulator shares.
    fn measure_stays(&mut self) {
        let shortest_us = (0..EMPTY_STAYS).map(|_| self.empty_stay_us()).min().unwrap_or(0);
        let stay_us = shortest_us.saturating_mul(EMPTY_STAYS_PER_STAY);
        let (least, most) = MICROSECONDS_PER_STAY.into_inner();
        self.unpaid.stay_us = stay_us.clamp(least, most);
    }

    /// The microseconds that a stay takes in which nothing is done.
    fn empty_stay_us(&mut self) -> u64 {
        let from_us = self.clock.now().as_micros();
        self.stay_in_nothing(&[]);
        self.clock.now().as_micros().saturating_sub(from_us)
    }

    /// A stay that may read these bytes, and does nothing.
    fn stay_in_nothing(&mut self, reads: &[u8]) {
        let words = &mut [0; word::COUNT];
        let enter = Entry::Interpreter(do_nothing);
        let readable = [reads, &[], &[]];
        let stay = Stay { readable, writable: [&mut [], &mut [], &mut []], words, enter };
        let end = self.confine(stay);
        debug_assert!(end.is_ok(), "{end:?}");
    }
}

/// The time that honest compiled code takes at most, by a clock that counts nothing else.
#[derive(Clone, Copy, Debug)]
struct Price {
    /// For a stay to begin and end.
    stay_ns: u64,
    /// For a unit of fuel.
    unit_ns: u64,
}

impl Price {
    /// The longest stay of honest code that uses so many units, in nanoseconds.
    fn longest_ns(self, units: u64) -> u64 {
        let units_ns = units.saturating_add(STAY_UNITS).saturating_mul(self.unit_ns);
        units_ns.saturating_add(self.stay_ns + CLOCK_STEP_NS)
    }

    /// When a stay is over that has fuel for so many units, in microseconds.
    fn alarm_us(self, units: u64) -> u32 {
        let longest_us = self.longest_ns(units.saturating_add(OVERRUN_UNITS.into())) / 1_000;
        u32::try_from(longest_us).map_or(COMPILED_MICROSECONDS, |us| us.min(COMPILED_MICROSECONDS))
    }

    /// What stays may save up at most, in microseconds.
    fn saved_us(self) -> i64 {
        (SAVED_UNITS * self.unit_ns / 1_000).cast_signed()
    }

    /// The units that the dearest code would have counted in so many microseconds.
    fn units_in(self, us: u64) -> u32 {
        u32::try_from(us.saturating_mul(1_000).div_ceil(self.unit_ns)).unwrap_or(u32::MAX)
    }
}

extern "C" fn do_nothing(_: *mut usize) {}

/// The accounts of compiled code, by its address. Machines that run the same code have one together: the code is
/// at fault.
#[derive(Debug)]
struct Unpaid {
    accounts: Vec<Account>,
    /// The time that a stay may take unpaid, in microseconds.
    stay_us: u64,
    /// The part of the time by which accounts fade, as a power of two.
    fades_bits: u32,
}

impl Default for Unpaid {
    fn default() -> Self {
        Self { accounts: Vec::new(), stay_us: 0, fades_bits: FREE_SHARE_BITS }
    }
}

/// The time that code took beyond what it paid for; below zero, what it paid for and didn't take, up to
/// [`COMPILED_MICROSECONDS`] or [`SAVED_UNITS`]. So a stay that lost the processor to others is set off by those around it.
#[derive(Clone, Copy, Debug)]
struct Account {
    code: usize,
    owed_us: i64,
    /// When that was, in microseconds since the device started.
    since_us: u64,
}

impl Account {
    /// The rest at a later time: either side goes with that part of it.
    fn left_us(self, now_us: u64, fades_bits: u32) -> i64 {
        let gone_us = now_us.saturating_sub(self.since_us) >> fades_bits;
        let left_us = self.owed_us.unsigned_abs().saturating_sub(gone_us).cast_signed();
        left_us * self.owed_us.signum()
    }
}

impl Unpaid {
    /// Counts a stay that lasted from one time to the other, in microseconds; returns whether its code took more
    /// than it may.
    fn count(&mut self, code: usize, times_us: [u64; 2], paid_bytes: usize) -> bool {
        const MOST_US: i64 = COMPILED_MICROSECONDS as i64;
        let paid_us = paid_bytes as u64 / UNIT_BYTES * MICROSECONDS_PER_UNIT + self.stay_us;
        let owed_us = self.owed_us(code, times_us, paid_us);
        if owed_us > MOST_US {
            return true;
        }
        self.open(Account { code, owed_us: owed_us.max(-MOST_US), since_us: times_us[1] });
        false
    }

    /// Counts such a stay where the clock bills it; returns the microseconds that it took beyond those it might take, and
    /// beyond what was saved before.
    fn bill(&mut self, code: usize, times_us: [u64; 2], longest_us: u64, saved_us: i64) -> u64 {
        let owed_us = self.owed_us(code, times_us, longest_us);
        self.open(Account { code, owed_us: owed_us.clamp(-saved_us, 0), since_us: times_us[1] });
        owed_us.max(0).cast_unsigned()
    }

    /// The time that code owes after a stay that lasted from one time to the other and has paid for some of it; its
    /// account is closed.
    fn owed_us(&mut self, code: usize, [from_us, to_us]: [u64; 2], paid_us: u64) -> i64 {
        let fades_bits = self.fades_bits;
        let before_us = self.forget(code).map_or(0, |account| account.left_us(from_us, fades_bits));
        let took_us = to_us.saturating_sub(from_us).cast_signed();
        before_us.saturating_add(took_us).saturating_sub_unsigned(paid_us)
    }

    fn open(&mut self, account: Account) {
        if self.accounts.len() == self.accounts.capacity() {
            // Code that is gone leaves an account behind, which time empties.
            let (now_us, fades_bits) = (account.since_us, self.fades_bits);
            self.accounts.retain(|account| account.left_us(now_us, fades_bits) != 0);
        }
        self.accounts.push(account);
    }

    /// Closes the account of the code at this address: other code may lie there soon.
    fn forget(&mut self, code: usize) -> Option<Account> {
        let at = self.accounts.iter().position(|account| account.code == code)?;
        Some(self.accounts.swap_remove(at))
    }
}

/// Bytes of code that are still paid for, by the words of a stay.
fn paid_ahead(words: &[usize]) -> isize {
    words[word::LIMIT].wrapping_sub(words[word::PC]).cast_signed()
}

impl<G: Guard + Send, C: Clock + Send> Wall for GuardedVm<G, C> {
    fn confine(&mut self, stay: Stay<'_>) -> Result<(), Breach> {
        let Stay { readable: [image, table, apart], writable, words, enter } = stay;
        let [globals, stack, memory] = writable;
        let machine = stack.as_ptr().addr();
        if self.last != machine {
            self.stack.fill(0);
            self.last = machine;
        }
        let base = self.stack.as_ptr().expose_provenance();
        let place = self.stack.len() - size_of_val(words);
        for (bytes, word) in self.stack[place..].chunks_exact_mut(WORD_BYTES).zip(&*words) {
            bytes.copy_from_slice(&word.to_ne_bytes());
        }
        let argument = base + place;
        let top = argument & !(ALIGNMENT - 1);
        let (enter, runs, microseconds) = match enter {
            Entry::Interpreter(enter) => {
                (enter as usize, Region::Readable(apart), STAY_MICROSECONDS)
            }
            Entry::Compiled { code, at } => {
                let enter = code.as_ptr().expose_provenance() + at;
                let ahead = u64::try_from(paid_ahead(words)).unwrap_or(0) / UNIT_BYTES;
                let alarm_us = self.price().map_or(COMPILED_MICROSECONDS, |it| it.alarm_us(ahead));
                (enter, Region::Code(code), alarm_us)
            }
        };
        let compiled = match &runs {
            Region::Code(code) => Some(code.as_ptr().addr()),
            _ => None,
        };
        let (from_us, ahead) = (self.clock.now().as_micros(), paid_ahead(words));
        let mut context = self.guard.enter(enter, argument, top);
        let mut regions = [
            Region::Readable(image),
            Region::Readable(table),
            runs,
            Region::Own(globals),
            Region::Own(stack),
            Region::Own(memory),
            Region::Own(&mut self.stack),
        ];
        let exit = self.guard.run_firmware(&mut context, &mut regions, microseconds);
        let (left, _) = self.stack[place..].as_chunks();
        words.iter_mut().zip(left).for_each(|(word, bytes)| *word = usize::from_ne_bytes(*bytes));
        let end = match exit {
            Exit::Call if self.guard.call(&context).number == RETURNED => Ok(()),
            Exit::Call => Err(breach(Violation { cause: Cause::Instruction, address: 0, at: 0 })),
            Exit::Time => Err(Breach { cause: BreachCause::Time, address: 0, at: 0 }),
            Exit::Violation(violation) => Err(breach(violation)),
        };
        let Some(code) = compiled else { return end };
        let times_us = [from_us, self.clock.now().as_micros()];
        // Code that broke out has paid nothing: what it says isn't taken.
        let paid_bytes = match end {
            Ok(()) => usize::try_from(ahead.wrapping_sub(paid_ahead(words))).unwrap_or(0),
            Err(_) => 0,
        };
        let price = self.price();
        if let Some(price) = price {
            let longest_us = price.longest_ns(paid_bytes as u64 / UNIT_BYTES) / 1_000;
            let owes_us = self.unpaid.bill(code, times_us, longest_us, price.saved_us());
            self.overdraft = self.overdraft.saturating_add(price.units_in(owes_us));
        }
        // It is interpreted from then on.
        if end.is_err() {
            self.unpaid.forget(code);
            return end;
        }
        if price.is_some() {
            return Ok(());
        }
        match self.unpaid.count(code, times_us, paid_bytes) {
            true => Err(Breach { cause: BreachCause::Unpaid, address: 0, at: 0 }),
            false => Ok(()),
        }
    }

    fn take_overdraft(&mut self) -> u32 {
        core::mem::take(&mut self.overdraft)
    }
}

/// A violation as the vm knows it.
pub(crate) fn breach(violation: Violation) -> Breach {
    let Violation { cause, address, at } = violation;
    let cause = match cause {
        Cause::Read => BreachCause::Read,
        Cause::Write => BreachCause::Write,
        Cause::Execute => BreachCause::Execute,
        Cause::Instruction => BreachCause::Instruction,
    };
    Breach { cause, address, at }
}

#[cfg(test)]
mod tests;
