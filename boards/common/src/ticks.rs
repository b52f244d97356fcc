//! Ticks of a board's counter as microseconds.

/// `ticks / PER_MICROSECOND`, in halves: the clock is read at each call of a native machine, and the processor
/// divides 32 bits at a time.
pub fn microseconds<const PER_MICROSECOND: u32>(ticks: u64) -> u64 {
    // 2^32 is so many times that, and a rest.
    let times = const { u32::MAX / PER_MICROSECOND };
    let rest = const { u32::MAX % PER_MICROSECOND + 1 };
    let (high, low) = ((ticks >> 32) as u32, ticks as u32);
    let carried = high % PER_MICROSECOND;
    let below = carried * rest + low % PER_MICROSECOND;
    let low = carried * times + low / PER_MICROSECOND + below / PER_MICROSECOND;
    u64::from(high / PER_MICROSECOND) << 32 | u64::from(low)
}

#[cfg(test)]
mod tests {
    use super::microseconds;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn they_are_what_dividing_gives(ticks: u64) {
            for ticks in [ticks, ticks >> 31, ticks << 32, ticks << 32 | 0xFFFF_FFFF] {
                prop_assert_eq!(microseconds::<10>(ticks), ticks / 10);
                prop_assert_eq!(microseconds::<25>(ticks), ticks / 25);
                prop_assert_eq!(microseconds::<64>(ticks), ticks / 64);
            }
        }
    }
}
