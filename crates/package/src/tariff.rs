//! The price of usage. Money is whole millionths of the tariff's unit; nothing is ever rounded up.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString as _};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use tenure_wire::usage::Usage;

use crate::Receipt;

/// Prices, in millionths of [`Tariff::currency`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tariff {
    /// The name of a whole unit.
    pub currency: String,
    /// For each hour that the device counted, whatever was used.
    pub hour: u64,
    /// For a million of fuel.
    pub fuel_million: u64,
    /// For a second of the processor.
    pub run_second: u64,
    /// For a period, by each KiB of the most memory that was in use in it.
    pub memory_kib: u64,
    /// For a MiB of code in flash, for a day.
    pub code_mib_day: u64,
    /// For a MiB in the tree, for a day.
    pub stored_mib_day: u64,
    /// For a thousand writes to flash.
    pub flash_thousand_writes: u64,
    /// For a MiB written to flash.
    pub flash_mib: u64,
    /// For a thousand messages.
    pub messages_thousand: u64,
    /// For a MiB sent.
    pub air_mib: u64,
    /// The part of the sum that leases of a tier pay, in hundredths; a tier that isn't named pays all of it.
    #[serde(deserialize_with = "tiers")]
    pub tiers_percent: BTreeMap<u16, u64>,
}

const MIB: u128 = 1 << 20;
const DAY_MS: u128 = 24 * 60 * 60 * 1000;

impl Tariff {
    /// The price of a receipt, in millionths.
    pub fn price(&self, receipt: &Receipt) -> u128 {
        let lines: u128 = self.lines(receipt).iter().map(|(_, price)| price).sum();
        let percent = self.tiers_percent.get(&receipt.tier).copied().unwrap_or(100);
        lines * u128::from(percent) / 100
    }

    /// The price of each part of a receipt before its tier counts, in millionths, each rounded down.
    pub fn lines(&self, receipt: &Receipt) -> [(&'static str, u128); 10] {
        let Usage {
            fuel,
            run_us,
            memory_bytes_peak,
            code_byte_ms,
            stored_byte_ms,
            flash_writes,
            flash_bytes,
            messages,
            air_bytes,
        } = receipt.usage;
        let cost = |amount: u64, rate: u64, per: u128| u128::from(amount) * u128::from(rate) / per;
        [
            ("time", cost(receipt.counted_ms, self.hour, 3_600_000)),
            ("fuel", cost(fuel, self.fuel_million, 1_000_000)),
            ("run time", cost(run_us, self.run_second, 1_000_000)),
            ("memory", cost(memory_bytes_peak, self.memory_kib, 1024)),
            ("code", cost(code_byte_ms, self.code_mib_day, MIB * DAY_MS)),
            ("stored", cost(stored_byte_ms, self.stored_mib_day, MIB * DAY_MS)),
            ("flash writes", cost(flash_writes, self.flash_thousand_writes, 1000)),
            ("flash bytes", cost(flash_bytes, self.flash_mib, MIB)),
            ("messages", cost(messages, self.messages_thousand, 1000)),
            ("air", cost(air_bytes, self.air_mib, MIB)),
        ]
    }
}

/// Tiers by their number, which formats like TOML have as text: one that none can be is an error, as an unknown key is.
fn tiers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<u16, u64>, D::Error> {
    let texts = BTreeMap::<String, u64>::deserialize(deserializer)?;
    let tier = |(text, percent): (String, u64)| {
        // One spelling for each tier, so that none is named twice.
        let tier = text.parse::<u16>().ok().filter(|tier| tier.to_string() == text);
        let unknown = || {
            D::Error::custom(alloc::format!(
                "`{text}` is no tier: those are whole numbers from 0 to {}, such as `4`",
                u16::MAX
            ))
        };
        Ok((tier.ok_or_else(unknown)?, percent))
    };
    texts.into_iter().map(tier).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure_wire::{Digest, MachineId, VerifyingKey};

    fn receipt(tier: u16, usage: Usage) -> Receipt {
        Receipt {
            owner: VerifyingKey([1; 32]),
            tenant: VerifyingKey([2; 32]),
            machine: MachineId([4; 12]),
            name: "store".parse().unwrap(),
            package: Digest([5; 32]),
            lease: 9,
            tier,
            period_s: 86_400,
            number: 0,
            previous: crate::NO_RECEIPT,
            began_unix_s: None,
            ended_unix_s: None,
            counted_ms: 5_400_000,
            usage,
        }
    }

    #[test]
    fn each_part_is_priced_in_whole_millionths_and_rounded_down() {
        let day_of_two_mib = 2 * (1 << 20) * 24 * 60 * 60 * 1000;
        let usage = Usage {
            fuel: 2_500_000,
            run_us: 1_999_999,
            memory_bytes_peak: 16 * 1024,
            code_byte_ms: day_of_two_mib,
            stored_byte_ms: day_of_two_mib / 4,
            flash_writes: 1500,
            flash_bytes: 3 << 20,
            messages: 999,
            air_bytes: 1 << 19,
        };
        let mut tariff = Tariff {
            hour: 10,
            fuel_million: 3,
            run_second: 100,
            memory_kib: 1,
            code_mib_day: 1000,
            stored_mib_day: 1000,
            flash_thousand_writes: 10,
            flash_mib: 7,
            messages_thousand: 1,
            air_mib: 5,
            ..Tariff::default()
        };
        let lines = tariff.lines(&receipt(1, usage)).map(|(_, price)| price);
        assert_eq!(lines, [15, 7, 199, 16, 2000, 500, 15, 21, 0, 2]);
        assert_eq!(tariff.price(&receipt(1, usage)), 2775);
        tariff.tiers_percent.insert(2, 150);
        tariff.tiers_percent.insert(0, 50);
        assert_eq!(tariff.price(&receipt(2, usage)), 4162);
        assert_eq!(tariff.price(&receipt(0, usage)), 1387);
    }

    #[test]
    fn the_largest_amounts_do_not_overflow() {
        let most = u64::MAX;
        let usage = Usage {
            fuel: most,
            run_us: most,
            memory_bytes_peak: most,
            code_byte_ms: most,
            stored_byte_ms: most,
            flash_writes: most,
            flash_bytes: most,
            messages: most,
            air_bytes: most,
        };
        let tariff = Tariff { fuel_million: most, memory_kib: most, ..Tariff::default() };
        assert!(tariff.price(&receipt(1, usage)) > u128::from(most));
    }
}
