//! The mass that protocols pass on which spread a sum as if it were a fluid.

use core::ops::{Add, AddAssign, Mul, Neg, Sub};

use serde::{Deserialize, Serialize};

use crate::extremes::Extremes;
use crate::interface::Summary;

/// Some of the sum of all values, some of their number, and some of the one unit that one node has at
/// the start. The parts flow together, so their ratios come to the same everywhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Mass {
    /// Of the sum of values.
    pub sum: f64,
    /// Of the number of nodes.
    pub count: f64,
    /// Of the unit.
    pub unit: f64,
}

impl Mass {
    /// The contribution of a node with this value; one node of the network has the unit.
    pub fn of(value: f64, has_unit: bool) -> Self {
        Self { sum: value, count: 1.0, unit: if has_unit { 1.0 } else { 0.0 } }
    }

    /// Whether it is made of numbers.
    pub fn is_finite(&self) -> bool {
        self.sum.is_finite() && self.count.is_finite() && self.unit.is_finite()
    }

    /// The sum of all values by this share; `None` while no unit has come here.
    pub fn summary(&self, extremes: &Extremes) -> Option<Summary> {
        // Only the ratio of the parts matters: links take from all of them alike.
        if self.count <= 0.0 || self.unit <= f64::EPSILON * self.count {
            return None;
        }
        Some(Summary {
            count: self.count / self.unit,
            sum: self.sum / self.unit,
            min: extremes.min(),
            max: extremes.max(),
        })
    }

    fn zip(self, other: Self, join: fn(f64, f64) -> f64) -> Self {
        Self {
            sum: join(self.sum, other.sum),
            count: join(self.count, other.count),
            unit: join(self.unit, other.unit),
        }
    }
}

impl Add for Mass {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.zip(other, |one, other| one + other)
    }
}

impl AddAssign for Mass {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Mass {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self.zip(other, |one, other| one - other)
    }
}

impl Neg for Mass {
    type Output = Self;

    fn neg(self) -> Self {
        Self::default() - self
    }
}

impl Mul<f64> for Mass {
    type Output = Self;

    fn mul(self, factor: f64) -> Self {
        Self { sum: self.sum * factor, count: self.count * factor, unit: self.unit * factor }
    }
}
