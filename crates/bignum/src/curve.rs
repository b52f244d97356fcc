//! Points on NIST's curves y² = x³ - 3x + b, in Jacobian coordinates: the affine point is (X/Z², Y/Z³).
//!
//! Sources: "dbl-2001-b" and "add-2007-bl" of the Explicit-Formulas Database, with products where
//! those have squares of sums.

use crate::field::{Field, LIMBS_MAX, Number, select};
use crate::limbs;

/// How many bits of a scalar one addition takes care of.
const WINDOW_BITS: usize = 3;
/// The odd multiples up to 2^WINDOW_BITS - 1.
const ODD_MULTIPLES: usize = 1 << (WINDOW_BITS - 1);

/// The same for the base point, whose multiples are known: more of them take flash, and no time.
const WINDOW_BITS_BASE: usize = 4;

/// A curve of prime order, as NIST has it.
pub struct Curve {
    pub(crate) field: Field,
    pub(crate) b: &'static [u32],
    pub(crate) order: &'static [u32],
    /// x and y of the base point times the odd numbers up to 2^WINDOW_BITS_BASE - 1.
    pub(crate) base_multiples: &'static [&'static [u32]; 2 << (WINDOW_BITS_BASE - 1)],
}

/// A point, at infinity if `z` is zero.
#[derive(Clone, Copy)]
pub(crate) struct Point {
    pub(crate) x: Number,
    pub(crate) y: Number,
    z: Number,
}

const ONE: Number = {
    let mut one = [0; LIMBS_MAX];
    one[0] = 1;
    one
};

impl Curve {
    /// The point with these coordinates, if it is on the curve.
    pub(crate) fn point(&self, x: &Number, y: &Number) -> Option<Point> {
        let field = &self.field;
        let length = field.limbs();
        let is_below =
            |number: &Number| number[..length].iter().rev().lt(field.modulus.iter().rev());
        // y² = (x² - 3) x + b
        let mut right = ONE;
        right[0] = 3;
        right = field.subtract(&field.square(x), &right);
        right = field.multiply(&right, x);
        right = field.add(&right, &number(self.b));
        let difference = field.subtract(&right, &field.square(y));
        let is_on_curve = field.is_zero(&difference) != 0;
        (is_below(x) && is_below(y) && is_on_curve).then_some(Point { x: *x, y: *y, z: ONE })
    }

    /// `scalar · point`, in a time that depends on neither. The scalar is not zero and below the order.
    pub(crate) fn multiply(&self, scalar: &Number, point: &Point) -> Point {
        let odd = self.odd_multiples(point);
        // An even scalar is replaced by its negative, which is odd as the order is, and the result negated.
        let length = self.field.limbs();
        let mut negated = number(self.order);
        limbs::subtract(&mut negated[..length], &scalar[..length], u32::MAX);
        let is_even = (scalar[0] & 1).wrapping_sub(1);
        let mut scalar = zeroize::Zeroizing::new(*scalar);
        select(&mut scalar, &negated, is_even);
        zeroize::Zeroize::zeroize(&mut negated);
        // Every digit is odd: with `windows` digits and half the scalar, its top bit set, the digit of a
        // window w is 2 w - 7. So no digit is skipped, and the sum never is at infinity.
        let windows = (32 * length).div_ceil(WINDOW_BITS);
        let mut sum = odd[0];
        for window in (0..windows).rev() {
            let mut bits = 0;
            for bit in 0..WINDOW_BITS {
                let place = window * WINDOW_BITS + bit + 1;
                let is_top = place == windows * WINDOW_BITS;
                let limb = scalar.get(place / 32).map_or(0, |limb| limb >> (place % 32) & 1);
                bits |= (limb | u32::from(is_top)) << bit;
            }
            // 0 to 3 are -7 to -1, 4 to 7 are 1 to 7.
            let is_minus = (bits >> (WINDOW_BITS - 1)).wrapping_sub(1);
            let index = (bits ^ is_minus) & (ODD_MULTIPLES as u32 - 1);
            let mut digit = odd[0];
            for (at, multiple) in odd.iter().enumerate().skip(1) {
                let is_it = ((index ^ at as u32).wrapping_sub(1) >> 31).wrapping_neg();
                digit.select(multiple, is_it);
            }
            let minus = self.field.subtract(&[0; LIMBS_MAX], &digit.y);
            select(&mut digit.y, &minus, is_minus);
            if window == windows - 1 {
                sum = digit;
                continue;
            }
            for _ in 0..WINDOW_BITS {
                sum = self.double(&sum);
            }
            let (mut next, x_is_same, _) = self.add_different(&sum, &digit, false);
            if window == 0 {
                // Only here may both be the same point, for the scalars 2, 6, 10 and 14 and their negatives.
                next.select(&self.double(&sum), x_is_same);
            }
            sum = next;
        }
        let minus = self.field.subtract(&[0; LIMBS_MAX], &sum.y);
        select(&mut sum.y, &minus, is_even);
        sum
    }

    /// `base_scalar` times the base point plus `scalar · point`, in a time that depends on them.
    pub(crate) fn multiply_public(
        &self,
        base_scalar: &Number,
        scalar: &Number,
        point: &Point,
    ) -> Point {
        let odd = self.odd_multiples(point);
        let mut sum = Point { x: ONE, y: ONE, z: [0; LIMBS_MAX] };
        let mut base_window = Window::<{ WINDOW_BITS_BASE + 1 }>::default();
        let mut window = Window::<{ WINDOW_BITS + 1 }>::default();
        let top = 32 * self.field.limbs();
        for bit in (0..=top).rev() {
            if bit != top {
                sum = self.double(&sum);
            }
            if let Some(digit) = window.step(scalar, bit) {
                sum = self.add(&sum, &self.signed(&odd[digit.index], &digit), false);
            }
            if let Some(digit) = base_window.step(base_scalar, bit) {
                sum = self.add(&sum, &self.signed(&self.base_multiple(digit.index), &digit), true);
            }
        }
        sum
    }

    /// `point`, or its negative if `digit` is.
    fn signed(&self, point: &Point, digit: &Digit) -> Point {
        let mut signed = *point;
        if digit.is_minus {
            signed.y = self.field.subtract(&[0; LIMBS_MAX], &point.y);
        }
        signed
    }

    /// The base point.
    pub(crate) fn base(&self) -> Point {
        self.base_multiple(0)
    }

    fn base_multiple(&self, index: usize) -> Point {
        let [x, y] = [0, 1].map(|at| number(self.base_multiples[2 * index + at]));
        Point { x, y, z: ONE }
    }

    /// Divides by z; a point at infinity becomes (0, 0), which is on no curve.
    pub(crate) fn affine(&self, point: &Point) -> (Number, Number) {
        let field = &self.field;
        let inverse = field.invert(&point.z);
        let square = field.square(&inverse);
        let x = field.multiply(&point.x, &square);
        let y = field.multiply(&field.multiply(&point.y, &square), &inverse);
        (field.canonical(&x), field.canonical(&y))
    }

    /// Whether the affine x of `point` is `x`; no for a point at infinity.
    pub(crate) fn has_x(&self, point: &Point, x: &Number) -> bool {
        let field = &self.field;
        let scaled = field.multiply(x, &field.square(&point.z));
        let difference = field.subtract(&scaled, &point.x);
        field.is_zero(&difference) != 0 && field.is_zero(&point.z) == 0
    }

    fn odd_multiples(&self, point: &Point) -> [Point; ODD_MULTIPLES] {
        let twice = self.double(point);
        let mut odd = [*point; ODD_MULTIPLES];
        for at in 1..ODD_MULTIPLES {
            odd[at] = self.add_different(&odd[at - 1], &twice, false).0;
        }
        odd
    }

    #[inline(never)]
    fn double(&self, point: &Point) -> Point {
        let field = &self.field;
        let delta = field.square(&point.z);
        let gamma = field.square(&point.y);
        let beta4 = field.shift(&field.multiply(&point.x, &gamma), 2);
        let mut alpha = field.subtract(&point.x, &delta);
        alpha = field.multiply(&alpha, &field.add(&point.x, &delta));
        alpha = field.add(&alpha, &field.add(&alpha, &alpha));
        let x = field.subtract(&field.square(&alpha), &field.add(&beta4, &beta4));
        let gamma_square8 = field.shift(&field.square(&gamma), 3);
        let y = field.multiply(&alpha, &field.subtract(&beta4, &x));
        let y = field.subtract(&y, &gamma_square8);
        let z = field.multiply(&point.y, &point.z);
        Point { x, y, z: field.add(&z, &z) }
    }

    /// The sum of any two points, the second not at infinity; `is_affine` says that its z is one.
    fn add(&self, one: &Point, other: &Point, is_affine: bool) -> Point {
        if self.field.is_zero(&one.z) != 0 {
            return *other;
        }
        let (sum, x_is_same, y_is_same) = self.add_different(one, other, is_affine);
        // Opposite points have a sum whose z is zero, as it should be.
        if x_is_same & y_is_same != 0 { self.double(one) } else { sum }
    }

    /// The sum of two different points, neither at infinity, and whether their x and y are the same.
    #[inline(never)]
    fn add_different(&self, one: &Point, other: &Point, is_affine: bool) -> (Point, u32, u32) {
        let field = &self.field;
        let (mut x1, mut y1, mut z) = (one.x, one.y, one.z);
        if !is_affine {
            let square = field.square(&other.z);
            x1 = field.multiply(&x1, &square);
            y1 = field.multiply(&y1, &field.multiply(&square, &other.z));
            z = field.multiply(&z, &other.z);
        }
        let square = field.square(&one.z);
        let h = field.subtract(&field.multiply(&other.x, &square), &x1);
        let y2 = field.multiply(&other.y, &field.multiply(&square, &one.z));
        let r = field.subtract(&y2, &y1);
        let z = field.multiply(&z, &h);
        let square = field.square(&h);
        let cube = field.multiply(&square, &h);
        let v = field.multiply(&x1, &square);
        let x = field.subtract(&field.square(&r), &cube);
        let x = field.subtract(&x, &field.add(&v, &v));
        let y = field.multiply(&r, &field.subtract(&v, &x));
        let y = field.subtract(&y, &field.multiply(&y1, &cube));
        (Point { x, y, z }, field.is_zero(&h), field.is_zero(&r))
    }
}

impl Point {
    fn select(&mut self, other: &Self, mask: u32) {
        select(&mut self.x, &other.x, mask);
        select(&mut self.y, &other.y, mask);
        select(&mut self.z, &other.z, mask);
    }
}

/// An odd multiple to add or to subtract.
struct Digit {
    /// Half of it, rounded down.
    index: usize,
    is_minus: bool,
}

/// The windows of a scalar, read from the top down, whose digits are odd and have a sign: "wMOF" (Okeya and others,
/// "Signed binary representations revisited"). The digit at each bit is the bit below it less the bit itself, so that
/// signs alternate, and `DIGITS` of them come to no more than the largest odd multiple of one bit less.
#[derive(Default)]
struct Window<const DIGITS: usize> {
    digit: Option<Digit>,
    /// Where it is added.
    end: usize,
    /// How many bits up to here the windows before this one took.
    taken: usize,
}

impl<const DIGITS: usize> Window<DIGITS> {
    /// The digit to add after the doubling for `bit`; bits are asked for from the one above the scalar down.
    fn step(&mut self, scalar: &Number, bit: usize) -> Option<Digit> {
        let at =
            |bit: usize| (scalar.get(bit / 32).map_or(0, |limb| limb >> (bit % 32)) & 1) as i32;
        // The bit below `bit`: nothing stands below the point.
        let below = |bit: usize| bit.checked_sub(1).map_or(0, at);
        if self.taken > 0 {
            self.taken -= 1;
        } else if at(bit) != below(bit) {
            let last = (bit + 1).saturating_sub(DIGITS);
            let value = (last..=bit).rev().fold(0, |value, bit| 2 * value + below(bit) - at(bit));
            let zeros = value.trailing_zeros();
            let index = (value.unsigned_abs() >> zeros) as usize / 2;
            self.digit = Some(Digit { index, is_minus: value < 0 });
            self.end = last + zeros as usize;
            self.taken = bit - last;
        }
        if self.end == bit { self.digit.take() } else { None }
    }
}

/// A number of as many limbs as `limbs` has, and zeros.
pub(crate) fn number(limbs: &[u32]) -> Number {
    let mut number = [0; LIMBS_MAX];
    number[..limbs.len()].copy_from_slice(limbs);
    number
}
