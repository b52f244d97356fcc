//! Whether a run came to what its scenario expects.

use super::measure::FigureRange;
use super::scenario::{Expectation, Figured, Hearing, Scenario};
use super::world::Outcome;
use crate::peripherals::Heard;

/// The last seconds of a run, which count as its end.
const END_SECONDS: usize = 30;

/// An expectation, and what came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The expectation, in words.
    pub expected: String,
    /// The measured value, in words.
    pub was: String,
    /// Whether that is what was expected.
    pub is_met: bool,
}

impl Outcome {
    /// Verdicts on each expectation, and on the two that every run has: no loop, where the router
    /// promises none, and nothing delivered twice.
    pub fn verdicts(&self, scenario: &Scenario) -> Vec<Verdict> {
        let metrics = &self.metrics;
        let mut verdicts = Vec::new();
        if scenario.protocols.router.is_loop_free() {
            let was = self.first_loop.clone().unwrap_or_else(|| "none".to_string());
            verdicts.push(verdict("next hops form no loop", was, metrics.loops == 0));
        }
        let duplicates = metrics.duplicates;
        verdicts.push(verdict("nothing arrives twice", duplicates, duplicates == 0));
        if let Some(devices) = &metrics.devices {
            let was = self.violation.clone().unwrap_or_else(|| "so they do".to_string());
            let expected = "devices keep what they promise";
            verdicts.push(verdict(expected, was, self.violation.is_none()));
            let taken = devices.replays_taken;
            verdicts.push(verdict("no frame is taken twice", taken, taken == 0));
        }
        verdicts.extend(scenario.expectations.iter().map(|it| self.verdict(it)));
        verdicts
    }

    fn verdict(&self, expectation: &Expectation) -> Verdict {
        let metrics = &self.metrics;
        match *expectation {
            Expectation::ConvergedWithinS(most) => {
                let was =
                    metrics.converged_s.map_or("never".to_string(), |at| format!("{at:.2} s"));
                let is_met = metrics.converged_s.is_some_and(|at| at <= most);
                verdict(format!("every way is known within {most} s"), was, is_met)
            }
            Expectation::DeliveryAtLeast(least) => {
                let share = metrics.delivery();
                verdict(format!("delivery at least {least}"), format!("{share:.4}"), share >= least)
            }
            Expectation::DeliveryInTheEndAtLeast(least) => {
                let last = self.seconds.iter().rev().take(END_SECONDS);
                let (sent, delivered) = last.fold((0, 0), |(sent, delivered), second| {
                    (sent + second.sent, delivered + second.delivered)
                });
                let share = if sent == 0 { 1.0 } else { delivered as f64 / sent as f64 };
                let expected = format!("delivery at least {least} in the end");
                verdict(expected, format!("{share:.4}"), share >= least)
            }
            Expectation::ControlBytesPerSecondAtMost(most) => {
                let bytes = metrics.control_bytes_per_node_second;
                let expected = format!("at most {most} bytes of control a node and second");
                verdict(expected, format!("{bytes:.1}"), bytes <= most)
            }
            Expectation::RecoveredWithinS(most) => {
                let was: Vec<String> = metrics.recovered_s.iter().map(|it| words(*it)).collect();
                let is_met = metrics.recovered_s.iter().all(|it| it.is_some_and(|it| it <= most));
                verdict(
                    format!("each pair is served again within {most} s"),
                    was.join(", "),
                    is_met,
                )
            }
            Expectation::AggregateWithin(most) => {
                let error = self.aggregate_error_in_the_end();
                verdict(
                    format!("averages right within {most}"),
                    format!("{error:.4}"),
                    error <= most,
                )
            }
            Expectation::HopsAtMost(most) => {
                let hops = metrics.hops_max;
                verdict(format!("ways of at most {most} hops"), hops, hops <= most)
            }
            Expectation::Heard(ref hearing) => self.hearing(hearing),
            Expectation::Figure(ref figured) => self.figure(figured),
            Expectation::BroadcastsCompleteAtLeast(least) => {
                let share = metrics.broadcasts_complete as f64 / metrics.broadcasts.max(1) as f64;
                let expected = format!("a share of {least} of the broadcasts reaches everybody");
                verdict(expected, format!("{share:.4}"), share >= least)
            }
            Expectation::TransmissionsPerBroadcastAtMost(most) => {
                let number = metrics.transmissions_per_broadcast;
                let expected = format!("at most {most} transmissions a broadcast");
                verdict(expected, format!("{number:.1}"), number <= most)
            }
        }
    }
}

impl Outcome {
    /// The furthest that an average is off, in half of the last seconds at least. Where links lose a third
    /// of all frames, somebody is just changing its parent or begins anew at any single instant; what
    /// doesn't settle is off in most of them.
    fn aggregate_error_in_the_end(&self) -> f64 {
        let last = self.seconds.iter().rev().take(END_SECONDS);
        let mut errors: Vec<f64> =
            last.map(|second| second.aggregate_error.unwrap_or(f64::INFINITY)).collect();
        let is_watched = self.seconds.iter().any(|second| second.aggregate_error.is_some());
        if !is_watched {
            return self.metrics.aggregate_error.unwrap_or(f64::INFINITY);
        }
        errors.sort_by(f64::total_cmp);
        errors[errors.len() / 2]
    }

    /// The verdict on a protocol's figure, which each node that runs the protocol must have.
    fn figure(&self, figured: &Figured) -> Verdict {
        let Figured { protocol, name, at_least, at_most } = figured;
        let bounds = [("at least", at_least), ("at most", at_most)];
        let bounds = bounds
            .iter()
            .filter_map(|(word, bound)| bound.as_ref().map(|bound| format!(" {word} {bound}")));
        let expected = format!("{protocol} {name}{} on each node", bounds.collect::<String>());
        let Some(range) = self.metrics.figures.get(&format!("{protocol} {name}")) else {
            return verdict(expected, "on no node", false);
        };
        let FigureRange { nodes, known, least, most, .. } = *range;
        let is_met = known == nodes
            && at_least.is_none_or(|bound| least >= bound)
            && at_most.is_none_or(|bound| most <= bound);
        verdict(expected, format!("{least} to {most} on {known} of {nodes}"), is_met)
    }

    fn hearing(&self, hearing: &Hearing) -> Verdict {
        let Hearing { node, topic, at_least, at_most, last, within } = hearing;
        let heard = self
            .metrics
            .devices
            .as_ref()
            .and_then(|devices| devices.heard.get(&format!("node{node} {topic}")).cloned());
        let heard = heard.unwrap_or_default();
        let in_range = |[least, most]: &[f64; 2]| {
            heard.range.is_some_and(|[lowest, highest]| *least <= lowest && highest <= *most)
        };
        let is_met = heard.events >= *at_least
            && at_most.is_none_or(|most| heard.events <= most)
            && last.as_ref().is_none_or(|last| *last == heard.last)
            && within.as_ref().is_none_or(in_range);
        let Heard { events, last, range } = &heard;
        let range = range.map_or(String::new(), |[least, most]| format!(", {least} to {most}"));
        let was = format!("{events} events{range}, the last `{}`", last.escape_debug());
        verdict(format!("what node {node} hears of {topic}"), was, is_met)
    }
}

fn verdict(expected: impl ToString, was: impl ToString, is_met: bool) -> Verdict {
    Verdict { expected: expected.to_string(), was: was.to_string(), is_met }
}

fn words(seconds: Option<f64>) -> String {
    seconds.map_or("never".to_string(), |seconds| format!("{seconds:.2} s"))
}
