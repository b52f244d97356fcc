//! The vm's second wall, on whatever memory protection a board has.

use alloc::vec::Vec;
use core::ops::RangeInclusive;

use tenure_hal::{Cause, Clock, Exit, Guard, RETURNED, Region, Violation};
use tenure_kernel::COMPILED_STACK_BYTES;
use tenure_vm::{Breach, BreachCause, Entry, Stay, Wall, word};

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
/// The same for compiled code, for which nobody vouches.
const COMPILED_MICROSECONDS: u32 = 500_000;

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
pub struct GuardedVm<G: Guard, C> {
    guard: G,
    clock: C,
    stack: G::Memory,
    /// Where the stack of the machine lies that ran last.
    last: usize,
    unpaid: Unpaid,
}

impl<G: Guard + Send, C: Clock + Send> GuardedVm<G, C> {
    /// A wall that `guard` stands for, with a clock that sees what compiled code takes; `None` if there is no
    /// memory for a stack.
    pub fn new(guard: G, clock: C) -> Option<Self> {
        let stack = guard.memory(STACK_BYTES, 0, None)?;
        let mut wall = Self { guard, clock, stack, last: 0, unpaid: Unpaid::default() };
        wall.measure_stays();
        Some(wall)
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
        let words = &mut [0; word::COUNT];
        let enter = Entry::Interpreter(do_nothing);
        let stay = Stay { readable: [&[]; 3], writable: [&mut [], &mut [], &mut []], words, enter };
        let end = self.confine(stay);
        debug_assert!(end.is_ok(), "{end:?}");
        self.clock.now().as_micros().saturating_sub(from_us)
    }
}

extern "C" fn do_nothing(_: *mut usize) {}

/// The accounts of compiled code, by its address. Machines that run the same code have one together: the code is
/// at fault.
#[derive(Debug, Default)]
struct Unpaid {
    accounts: Vec<Account>,
    /// The time that a stay may take unpaid, in microseconds.
    stay_us: u64,
}

/// The time that code took beyond what it paid for; below zero, what it paid for and didn't take, up to
/// [`COMPILED_MICROSECONDS`]. So a stay that lost the processor to others is set off by those around it.
#[derive(Clone, Copy, Debug)]
struct Account {
    code: usize,
    owed_us: i64,
    /// When that was, in microseconds since the device started.
    since_us: u64,
}

impl Account {
    /// The rest at a later time: either side goes with time, by [`FREE_SHARE_BITS`].
    fn left_us(self, now_us: u64) -> i64 {
        let gone_us = now_us.saturating_sub(self.since_us) >> FREE_SHARE_BITS;
        let left_us = self.owed_us.unsigned_abs().saturating_sub(gone_us).cast_signed();
        left_us * self.owed_us.signum()
    }
}

impl Unpaid {
    /// Counts a stay that lasted from one time to the other, in microseconds; returns whether its code took more
    /// than it may.
    fn count(&mut self, code: usize, [from_us, to_us]: [u64; 2], paid_bytes: usize) -> bool {
        const MOST_US: i64 = COMPILED_MICROSECONDS as i64;
        let before_us = self.forget(code).map_or(0, |account| account.left_us(from_us));
        let paid_us = paid_bytes as u64 / UNIT_BYTES * MICROSECONDS_PER_UNIT + self.stay_us;
        let took_us = to_us.saturating_sub(from_us).cast_signed();
        let owed_us = before_us.saturating_add(took_us).saturating_sub_unsigned(paid_us);
        if owed_us > MOST_US {
            return true;
        }
        if self.accounts.len() == self.accounts.capacity() {
            // Code that is gone leaves an account behind, which time empties.
            self.accounts.retain(|account| account.left_us(to_us) != 0);
        }
        self.accounts.push(Account { code, owed_us: owed_us.max(-MOST_US), since_us: to_us });
        false
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
                (enter, Region::Code(code), COMPILED_MICROSECONDS)
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
        // Code that broke out is interpreted from then on.
        if end.is_err() {
            self.unpaid.forget(code);
            return end;
        }
        let times_us = [from_us, self.clock.now().as_micros()];
        let paid_bytes = usize::try_from(ahead.wrapping_sub(paid_ahead(words))).unwrap_or(0);
        match self.unpaid.count(code, times_us, paid_bytes) {
            true => Err(Breach { cause: BreachCause::Unpaid, address: 0, at: 0 }),
            false => Ok(()),
        }
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
