//! The least and the greatest value of a network, for protocols that spread sums.
//!
//! Extremes only need to be passed on: hearing one twice changes nothing. So that the value of a node
//! that left is forgotten, each has an age that only its owner keeps at 0; what is older than a message
//! needs to cross the network is dropped.

use serde::{Deserialize, Serialize};

/// An extreme is passed on over so many rounds; more than any network's diameter.
const AGE_MAX: u8 = 64;

/// The extremes as they are passed on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Extremes {
    min: Aged,
    max: Aged,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Aged {
    value: f64,
    age: u8,
}

impl Extremes {
    /// Those of one value, which is the node's own.
    pub fn of(value: f64) -> Self {
        let own = Aged { value, age: 0 };
        Self { min: own, max: own }
    }

    /// The least value.
    pub fn min(&self) -> f64 {
        self.min.value
    }

    /// The greatest value.
    pub fn max(&self) -> f64 {
        self.max.value
    }

    /// Another round began; `own` is the node's own value.
    pub fn round(&mut self, own: f64) {
        self.min.round(own, own <= self.min.value);
        self.max.round(own, own >= self.max.value);
    }

    /// Takes what a neighbour passes on.
    pub fn merge(&mut self, other: &Self) {
        self.min.merge(other.min, other.min.value < self.min.value);
        self.max.merge(other.max, other.max.value > self.max.value);
    }
}

impl Aged {
    fn round(&mut self, own: f64, is_own: bool) {
        self.age = self.age.saturating_add(1);
        if is_own || self.age > AGE_MAX {
            *self = Self { value: own, age: 0 };
        }
    }

    fn merge(&mut self, other: Self, is_further: bool) {
        if !other.value.is_finite() || other.age >= AGE_MAX {
            return;
        }
        let heard = Self { age: other.age + 1, ..other };
        if is_further {
            *self = heard;
        } else if other.value == self.value {
            self.age = self.age.min(heard.age);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What neighbours pass on of a value that its owner said so many rounds ago.
    fn heard(value: f64, age: u8) -> Extremes {
        let aged = Aged { value, age };
        Extremes { min: aged, max: aged }
    }

    #[test]
    fn the_same_extreme_is_as_young_as_the_youngest_word_of_it() {
        let mut here = Extremes::of(5.0);
        here.merge(&heard(9.0, 3));
        here.merge(&heard(1.0, 3));
        assert_eq!(
            (here.min, here.max),
            (Aged { value: 1.0, age: 4 }, Aged { value: 9.0, age: 4 })
        );
        // An older word of the same value changes nothing, a younger one counts.
        here.merge(&heard(9.0, 20));
        here.merge(&heard(1.0, 20));
        assert_eq!((here.min.age, here.max.age), (4, 4));
        here.merge(&heard(9.0, 1));
        here.merge(&heard(1.0, 1));
        assert_eq!((here.min.age, here.max.age), (2, 2));
    }

    #[test]
    fn extreme_that_nobody_has_any_more_is_forgotten_and_what_is_no_number_is_not_taken() {
        let mut here = Extremes::of(5.0);
        here.merge(&heard(9.0, AGE_MAX - 1));
        assert!((here.max() - 9.0).abs() < f64::EPSILON);
        here.round(5.0);
        assert!((here.max() - 5.0).abs() < f64::EPSILON && here.max.age == 0);
        for other in [heard(9.0, AGE_MAX), heard(f64::INFINITY, 0), heard(f64::NAN, 0)] {
            here.merge(&other);
            assert_eq!(here, Extremes::of(5.0));
        }
    }
}
