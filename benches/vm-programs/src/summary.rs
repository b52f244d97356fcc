//! Figures of a program, and over all.

use tenure_bench_report::Row;

use crate::SUBJECTS;
use crate::emulator::Run;

/// A program's runs, in the order of the subjects.
pub struct Counts {
    pub program: String,
    pub runs: [Run; 4],
}

const NATIVE: usize = 0;
const WASM3: usize = 1;
const SHIPPED: usize = 2;
const FAST: usize = 3;

/// (name, subject, the one that it is compared with).
const RATIOS: [(&str, usize, usize); 5] = [
    ("shipped / wasm3", SHIPPED, WASM3),
    ("at 3 / wasm3", FAST, WASM3),
    ("wasm3 / native", WASM3, NATIVE),
    ("shipped / native", SHIPPED, NATIVE),
    ("at 3 / native", FAST, NATIVE),
];

impl Counts {
    /// Instructions by subject.
    pub fn rows(&self) -> impl Iterator<Item = Row> {
        SUBJECTS.iter().zip(&self.runs).map(|(subject, run)| {
            let value = f64::from(run.instructions);
            row("vm-programs", subject, &self.program, "instructions", value)
        })
    }

    fn ratio(&self, of: usize, over: usize) -> f64 {
        f64::from(self.runs[of].instructions) / f64::from(self.runs[over].instructions)
    }
}

/// Each program's ratios, their geometric means, and the worst.
pub fn ratios(all: &[Counts]) -> Vec<Row> {
    let mut rows = Vec::new();
    for counts in all {
        for (name, of, over) in RATIOS {
            rows.push(ratio(name, &counts.program, counts.ratio(of, over)));
        }
    }
    for (name, of, over) in RATIOS {
        let ratios: Vec<f64> = all.iter().map(|counts| counts.ratio(of, over)).collect();
        rows.push(ratio(name, "geometric mean", geometric_mean(&ratios)));
        rows.push(ratio(name, "worst", ratios.into_iter().fold(0.0, f64::max)));
    }
    rows
}

/// Instructions that a unit of fuel buys.
pub fn fuel(all: &[Counts]) -> Vec<Row> {
    let of = |counts: &Counts, subject: usize| {
        let run = counts.runs[subject];
        let value = f64::from(run.instructions) / f64::from(run.fuel);
        row("vm-programs/fuel", SUBJECTS[subject], &counts.program, "instructions a unit", value)
    };
    all.iter().flat_map(|counts| [of(counts, SHIPPED), of(counts, FAST)]).collect()
}

fn geometric_mean(of: &[f64]) -> f64 {
    let logarithms: f64 = of.iter().map(|value| value.ln()).sum();
    (logarithms / of.len() as f64).exp()
}

fn ratio(name: &str, metric: &str, value: f64) -> Row {
    row("vm-programs/ratios", name, metric, "ratio", value)
}

fn row(bench: &str, subject: &str, metric: &str, unit: &'static str, value: f64) -> Row {
    let [bench, subject, metric] = [bench, subject, metric].map(String::from);
    Row { bench, target: "riscv32".into(), subject, metric, unit, value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_of_a_ratio_and_its_inverse_is_one() {
        assert!((geometric_mean(&[4.0, 0.25]) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn ratios_end_with_their_means_and_the_worst() {
        let run = |instructions| Run { results: [0; 2], instructions, fuel: 10 };
        let counts = |program: &str, shipped| Counts {
            program: program.into(),
            runs: [run(10), run(100), run(shipped), run(50)],
        };
        let rows = ratios(&[counts("a", 400), counts("b", 25)]);
        let of = |metric: &str| {
            let is = |row: &&Row| row.metric == metric && row.subject == "shipped / wasm3";
            rows.iter().find(is).map(|row| row.value)
        };
        assert_eq!((of("a"), of("b"), of("worst")), (Some(4.0), Some(0.25), Some(4.0)));
        assert!((of("geometric mean").unwrap() - 1.0).abs() < 1e-12);
    }
}
