//! A run's outcome for others to read: JSON, CSV, and a page that plays it back.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::scenario::Scenario;
use super::world::Outcome;

/// The page, but for the run's data.
const PAGE: &str = include_str!("page.html");
/// The placeholder in the page that the data replaces.
const PLACE: &str = "\"the run\"";

impl Outcome {
    /// The metrics and what came of the expectations.
    pub fn to_json(&self, scenario: &Scenario) -> Value {
        let verdicts: Vec<Value> = self
            .verdicts(scenario)
            .into_iter()
            .map(|it| json!({ "expected": it.expected, "was": it.was, "met": it.is_met }))
            .collect();
        json!({
            "scenario": scenario.name,
            "seed": scenario.seed,
            "nodes": scenario.topology.nodes(),
            "metrics": self.metrics,
            "expectations": verdicts,
        })
    }

    /// A line for each second.
    pub fn to_csv(&self) -> String {
        let mut csv = String::from(
            "second,sent,delivered,control_bytes,payload_bytes,collisions,reachable,aggregate_error\n",
        );
        for (number, second) in self.seconds.iter().enumerate() {
            let figure = |value: Option<f64>| value.map_or(String::new(), |it| format!("{it:.4}"));
            let (reachable, error) = (figure(second.reachable), figure(second.aggregate_error));
            // Writing to a String doesn't fail.
            let _ = writeln!(
                csv,
                "{number},{},{},{},{},{},{reachable},{error}",
                second.sent,
                second.delivered,
                second.control_bytes,
                second.payload_bytes,
                second.collisions,
            );
        }
        csv
    }

    /// A page that needs nothing but a browser: a map that plays the run back, and plots.
    pub fn to_html(&self, scenario: &Scenario) -> String {
        let data = json!({
            "about": scenario.about,
            "outcome": self.to_json(scenario),
            "seconds": self.seconds,
            "playback": self.playback,
        });
        // Nothing in a name may end the script that it stands in.
        PAGE.replacen(PLACE, &data.to_string().replace('<', "\\u003c"), 1)
    }
}
