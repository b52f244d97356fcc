//! The statistical side of constant time (after dudect): does sealing take another time for one
//! fixed key and text than for random ones? Welch's t-test; below 4.5 nothing is seen.

use std::hint::black_box;
use std::time::Instant;

use tenure_bench_report::{Row, Rows};
use tenure_cipher::backend::available;
use tenure_cipher::{Form, Ietf};

const SAMPLES: usize = 40_000;
const LEN: usize = 256;

/// Every backend of this machine.
pub(crate) fn measure(rows: &mut Rows) {
    let mut numbers = Xorshift(0x2545_f491_4f6c_dd1d);
    for backend in available() {
        let mut times: [Vec<f64>; 2] = [Vec::new(), Vec::new()];
        for _ in 0..SAMPLES {
            let random = numbers.next() & 1 == 1;
            let (mut key, mut text) = ([0u8; 32], [0u8; LEN]);
            for byte in key.iter_mut().chain(&mut text) {
                // Both classes draw the numbers, so that neither warms anything for itself.
                let drawn = numbers.next() as u8;
                *byte = if random { drawn } else { 0 };
            }
            let start = Instant::now();
            for _ in 0..4 {
                let state = Ietf::state::<10>(black_box(&key), &[0; 12]);
                black_box(backend.seal(&state, &[], black_box(&mut text)));
            }
            times[usize::from(random)].push(start.elapsed().as_nanos() as f64);
        }
        rows.push(Row {
            bench: format!("cipher/aead-timing/{LEN}"),
            target: "host".into(),
            subject: format!("tenure/{}", backend.name()),
            metric: "Welch's t, fixed against random secrets".into(),
            unit: "t",
            value: welch(&mut times),
        });
    }
}

/// Without the slowest tenth, which is the machine's noise.
fn welch(times: &mut [Vec<f64>; 2]) -> f64 {
    let mut all: Vec<f64> = times.iter().flatten().copied().collect();
    all.sort_by(f64::total_cmp);
    let limit = all[all.len() * 9 / 10];
    let [fixed, random] = times.each_mut().map(|times| {
        times.retain(|time| *time <= limit);
        let count = times.len() as f64;
        let mean = times.iter().sum::<f64>() / count;
        let variance = times.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / (count - 1.0);
        (mean, variance / count)
    });
    ((fixed.0 - random.0) / (fixed.1 + random.1).sqrt()).abs()
}

struct Xorshift(u64);

impl Xorshift {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}
