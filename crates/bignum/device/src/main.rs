//! Compares every function of `limbs` with the portable one, for lengths from 1 to 20 and limbs that carry in
//! every way, and two of the curves' results with published ones. Ends with 0, or with the step that differed.
#![no_std]
#![no_main]

use core::panic::PanicInfo;

use cortex_m as _;
use semihosting::process::exit;
use tenure_bignum::limbs::{self, Radix, portable};
use tenure_bignum::{BASE, P256, x25519};

const LENGTH_MAX: usize = 20;
const ROUNDS: usize = 40;

/// Limbs of all ones, of zeros, of halves, and others in between.
struct Limbs(u32);

impl Limbs {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        match self.0 >> 28 {
            0..=3 => u32::MAX,
            4 => 0,
            5 => 0xffff_0000,
            6 => 0x0000_ffff,
            7 => 0x8000_0001,
            _ => self.0.rotate_left(13) ^ self.0 >> 5,
        }
    }

    fn number(&mut self) -> [u32; LENGTH_MAX] {
        core::array::from_fn(|_| self.next())
    }
}

#[cortex_m_rt::entry]
fn main() -> ! {
    let mut limbs = Limbs(1);
    for round in 0..ROUNDS {
        for length in 1..=LENGTH_MAX {
            let numbers = [(); 2].map(|()| limbs.number());
            compare(&numbers[0][..length], &numbers[1][..length], limbs.next(), round);
            compare_small(&numbers[0][..length], &numbers[1][..length]);
            compare_fold(&numbers[0][..length], &numbers[1][..length], round);
        }
    }
    // RFC 7748 §6.1: Alice's public key; FIPS 186's example P-256 base point times 2.
    let alice = x25519(
        b"\x77\x07\x6d\x0a\x73\x18\xa5\x7d\x3c\x16\xc1\x72\x51\xb2\x66\x45\
          \xdf\x4c\x2f\x87\xeb\xc0\x99\x2a\xb1\x77\xfb\xa5\x1d\xb9\x2c\x2a",
        &BASE,
    );
    check(alice[..4] == [0x85, 0x20, 0xf0, 0x09], 7);
    let (mut two, mut public) = ([0; 32], [0; 65]);
    two[31] = 2;
    check(P256.public_key(&two, &mut public).is_ok(), 8);
    check(public[..5] == [4, 0x7c, 0xf2, 0x7b, 0x18], 9);
    exit(0)
}

fn compare(one: &[u32], other: &[u32], factor: u32, round: usize) {
    let length = one.len();
    let mask = if round.is_multiple_of(4) { 0 } else { u32::MAX };
    let mut room = [[0; 2 * LENGTH_MAX]; 2];
    let [ours, theirs] = &mut room;
    let (ours, theirs) = (&mut ours[..2 * length], &mut theirs[..2 * length]);
    limbs::multiply(ours, one, other);
    portable::multiply(theirs, one, other);
    check(ours == theirs, 2);
    limbs::square(ours, one);
    portable::square(theirs, one);
    check(ours == theirs, 3);
    let (ours, theirs) = (&mut ours[..length], &mut theirs[..length]);
    let carries =
        [limbs::multiply_add(ours, other, factor), portable::multiply_add(theirs, other, factor)];
    check(carries[0] == carries[1] && ours == theirs, 4);
    let carries = [limbs::add(ours, other, mask), portable::add(theirs, other, mask)];
    check(carries[0] == carries[1] && ours == theirs, 5);
    let borrows = [limbs::subtract(ours, one, mask), portable::subtract(theirs, one, mask)];
    check(borrows[0] == borrows[1] && ours == theirs, 6);
}

/// Columns of both signs, as large as they may be.
fn compare_small(number: &[u32], columns: &[u32]) {
    let (mut ours, mut theirs, mut small) = ([0; LENGTH_MAX], [0; LENGTH_MAX], [0; LENGTH_MAX]);
    let length = number.len();
    ours[..length].copy_from_slice(number);
    theirs[..length].copy_from_slice(number);
    small.iter_mut().zip(columns).for_each(|(small, column)| *small = (*column as i32) >> 2);
    let carries = [
        limbs::add_small(&mut ours[..length], &small[..length]),
        portable::add_small(&mut theirs[..length], &small[..length]),
    ];
    check(carries[0] == carries[1] && ours == theirs, 10);
}

/// Distances of all sizes, and both signs of the last.
fn compare_fold(low: &[u32], high: &[u32], round: usize) {
    let length = low.len();
    let distance = |step: usize| (round * step + 1) % length;
    let radix = Radix {
        plus: distance(3),
        minus: distance(1),
        either: distance(7),
        either_is_minus: round.is_multiple_of(2),
    };
    let mut ours = [0; 2 * LENGTH_MAX];
    for (column, limb) in ours.iter_mut().zip(low.iter().chain(high)) {
        *column = i64::from(*limb);
    }
    let mut theirs = ours;
    limbs::fold(&mut ours[..2 * length], &radix);
    portable::fold(&mut theirs[..2 * length], &radix);
    check(ours == theirs, 11);
}

fn check(is_right: bool, step: i32) {
    if !is_right {
        exit(step);
    }
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    exit(1)
}
