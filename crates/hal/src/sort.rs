//! One small sort for all: the standard library's takes four kilobytes of flash for each type that is sorted.

use core::cmp::Ordering;

/// Puts `values` in order; equal ones come in any order.
///
/// A heap sort (Williams, CACM 7(6), 1964): n log n comparisons at most, whatever a stranger chose the values to be,
/// and no memory.
pub fn sort<T: Ord>(values: &mut [T]) {
    sort_by(values, T::cmp);
}

/// As [`sort`], in the order that `compare` says.
pub fn sort_by<T>(values: &mut [T], mut compare: impl FnMut(&T, &T) -> Ordering) {
    let half = values.len() / 2;
    // The steps that make a heap, then those that take its greatest value away, one by one.
    for step in (0..values.len() + half).rev() {
        let (root, end) = match step.checked_sub(values.len()) {
            Some(root) => (root, values.len()),
            None => {
                values.swap(0, step);
                (0, step)
            }
        };
        sink(values, root, end, &mut compare);
    }
}

/// Lets the value at `root` sink until none below it is greater, in the heap that ends before `end`.
fn sink<T>(
    values: &mut [T],
    mut root: usize,
    end: usize,
    compare: &mut impl FnMut(&T, &T) -> Ordering,
) {
    loop {
        let mut child = 2 * root + 1;
        if child >= end {
            return;
        }
        if child + 1 < end && compare(&values[child], &values[child + 1]).is_lt() {
            child += 1;
        }
        if compare(&values[root], &values[child]).is_ge() {
            return;
        }
        values.swap(root, child);
        root = child;
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::SplitMix64;

    #[test]
    fn any_values_come_in_the_order_that_the_standard_library_gives_them() {
        let mut numbers = SplitMix64::new(7);
        for length in (0..40).chain([100, 1000]) {
            for kinds in [2, 10, u64::MAX] {
                let drawn: Vec<u64> = (0..length).map(|_| numbers.number() % kinds).collect();
                let mut expected = drawn.clone();
                expected.sort_unstable();
                let mut sorted = drawn.clone();
                sort(&mut sorted);
                assert_eq!(sorted, expected);
                // Values that are sorted already, and values that are the wrong way round.
                sort(&mut sorted);
                assert_eq!(sorted, expected);
                sort_by(&mut sorted, |one, two| two.cmp(one));
                expected.reverse();
                assert_eq!(sorted, expected);
            }
        }
    }
}
