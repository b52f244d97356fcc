//! A scenario run with many seeds: the mean of each figure, and how sure it is.

use std::collections::BTreeMap;

use super::{Metrics, Options, Scenario, ScenarioError, run};

/// A figure over many seeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Figure {
    /// How many runs have it.
    pub runs: u32,
    /// Its mean.
    pub mean: f64,
    /// Half the width of the interval that holds the true mean with 95 % confidence (Student's t), if
    /// there are two runs at least.
    pub confidence: Option<f64>,
    /// The least.
    pub least: f64,
    /// The greatest.
    pub most: f64,
}

/// Student's t for 95 %, by degrees of freedom from 1 on; beyond, it is that of the normal distribution.
const T_95: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];
const T_95_NORMAL: f64 = 1.960;

impl Figure {
    /// The figure that has these values.
    pub fn of(values: &[f64]) -> Self {
        let runs = values.len();
        if runs == 0 {
            return Self::default();
        }
        let mean = values.iter().sum::<f64>() / runs as f64;
        let confidence = (runs > 1).then(|| {
            let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
            let deviation = (squares / (runs - 1) as f64).sqrt();
            let t = T_95.get(runs - 2).copied().unwrap_or(T_95_NORMAL);
            t * deviation / (runs as f64).sqrt()
        });
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Self { runs: runs as u32, mean, confidence, least, most }
    }
}

/// Runs `scenario` with each of `seeds`; returns each figure by its name, and the seeds with which an
/// expectation wasn't met. `progress` hears which seed is done.
///
/// # Errors
/// The scenario's first mistake.
pub fn run_many(
    scenario: &Scenario,
    seeds: impl IntoIterator<Item = u64>,
    options: Options,
    mut progress: impl FnMut(u64, &Metrics),
) -> Result<(BTreeMap<&'static str, Figure>, Vec<u64>), ScenarioError> {
    let mut values: BTreeMap<&'static str, Vec<f64>> = BTreeMap::new();
    let mut missed = Vec::new();
    for seed in seeds {
        let scenario = Scenario { seed, ..scenario.clone() };
        let outcome = run(&scenario, options, |_| ())?;
        if outcome.verdicts(&scenario).iter().any(|verdict| !verdict.is_met) {
            missed.push(seed);
        }
        for (name, value) in figures(&outcome.metrics) {
            values.entry(name).or_default().push(value);
        }
        progress(seed, &outcome.metrics);
    }
    let figures = values.into_iter().map(|(name, values)| (name, Figure::of(&values)));
    Ok((figures.collect(), missed))
}

/// The figures of one run that a mean says something about.
fn figures(metrics: &Metrics) -> impl Iterator<Item = (&'static str, f64)> {
    let delivery = (metrics.sent > 0).then(|| metrics.delivery());
    // Of whole devices it isn't counted.
    let parted = delivery.filter(|_| metrics.devices.is_none());
    [
        ("converged s", metrics.converged_s),
        ("delivery", delivery),
        ("latency median ms", delivery.map(|_| metrics.latency_median_ms)),
        ("latency 99 % ms", delivery.map(|_| metrics.latency_99_ms)),
        ("control B/s a node", Some(metrics.control_bytes_per_node_second)),
        ("payload B/s a node", Some(metrics.payload_bytes_per_node_second)),
        ("given up: no way", delivery.map(|_| metrics.given_up.no_way as f64)),
        ("given up: not taken", delivery.map(|_| metrics.given_up.not_taken as f64)),
        ("sent while parted", parted.map(|_| metrics.sent_while_parted as f64)),
        ("arrived twice", Some(metrics.duplicates as f64)),
        ("loops", Some(metrics.loops as f64)),
        ("collisions", Some(metrics.collisions as f64)),
        ("average off by", metrics.aggregate_error),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name, value?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_has_the_confidence_that_students_t_gives_it() {
        // By hand: mean 5, deviation 2.138, t(7) = 2.365.
        let figure = Figure::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        assert_eq!((figure.runs, figure.mean, figure.least, figure.most), (8, 5.0, 2.0, 9.0));
        assert!((figure.confidence.unwrap() - 1.7877).abs() < 1e-3, "{figure:?}");
        assert_eq!(Figure::of(&[3.0]).confidence, None);
    }

    #[test]
    fn each_seed_counts_as_if_it_were_run_alone() {
        let text = "name = 'line'\nseconds = 4\n[topology]\nshape = 'line'\nnodes = 3\n\
                    [[traffic]]\nevery_ms = 100\nfrom_s = 1\n[[expect]]\nconverged_within_s = 0.001";
        let scenario = Scenario::parse(text).unwrap();
        let (figures, missed) = run_many(&scenario, [1, 2], Options::default(), |_, _| ()).unwrap();
        let alone = |seed| {
            let scenario = Scenario { seed, ..scenario.clone() };
            run(&scenario, Options::default(), |_| ())
                .unwrap()
                .metrics
                .control_bytes_per_node_second
        };
        let figure = figures["control B/s a node"];
        assert!((figure.mean - (alone(1) + alone(2)) / 2.0).abs() < 1e-9);
        assert_eq!((figure.runs, missed), (2, vec![1, 2]));
    }
}
