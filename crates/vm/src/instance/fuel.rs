//! Fuel, counted in bytes of code, and what is owed of it.
//!
//! Invariant: no more is owed than [`DEBT_BYTES_MAX`], and always whole units.

/// Bytes of code that a unit of fuel stands for.
pub(super) const UNIT_BYTES: u32 = 2;
/// Fuel that is handed to the interpreter at a time.
const PORTION_UNITS: u64 = 1 << 28;

/// The most that may be owed, in bytes of code; an instruction may add half of it.
const DEBT_BYTES_MAX: u32 = 1 << 28;

/// Bytes of code that stand for memory that was cleared and moved: a unit for each granule, even where there
/// are gigabytes.
pub(super) fn moving_bytes(moved: u64) -> u32 {
    const GRANULE: u64 = 8;
    const MOST: u64 = (DEBT_BYTES_MAX / UNIT_BYTES / 2) as u64;
    (moved / GRANULE).min(MOST) as u32 * UNIT_BYTES
}

/// Fuel that the last instruction took beyond what there was, in bytes of code.
#[derive(Clone, Copy)]
pub(crate) struct Debt(u32);

impl Debt {
    pub(crate) const NONE: Debt = Debt(0);

    /// So many bytes of code, if that much may be owed.
    pub(crate) fn from_bytes(bytes: u32) -> Option<Debt> {
        (bytes <= DEBT_BYTES_MAX && bytes.is_multiple_of(UNIT_BYTES)).then_some(Debt(bytes))
    }

    pub(crate) fn bytes(self) -> u32 {
        self.0
    }

    pub(super) fn is_paid(self) -> bool {
        self.0 == 0
    }

    /// Bytes of code that fuel allows after what is owed; at most a portion at a time.
    #[inline(always)]
    pub(super) fn budget(self, fuel: u64) -> i32 {
        fuel.min(PORTION_UNITS) as i32 * UNIT_BYTES as i32 - self.0 as i32
    }

    /// As `charge`, for `used` bytes of code that are within the budget.
    #[inline(always)]
    pub(super) fn pay(&mut self, fuel: &mut u64, used: u32) {
        *fuel -= ((self.0 + used) / UNIT_BYTES) as u64;
        self.0 = 0;
    }

    /// Takes fuel for what is owed and for `used` bytes of code; what there is no fuel for is owed.
    pub(super) fn charge(&mut self, fuel: &mut u64, used: u32) {
        let units = (self.0 + used) / UNIT_BYTES;
        let rest = fuel.checked_sub(units as u64);
        self.0 = if rest.is_some() { 0 } else { (units - *fuel as u32) * UNIT_BYTES };
        *fuel = rest.unwrap_or(0);
    }

    /// So many bytes of code more are taken from the next fuel.
    pub(super) fn owe(&mut self, bytes: u32) {
        self.0 = self.0.saturating_add(bytes).min(DEBT_BYTES_MAX);
    }
}
