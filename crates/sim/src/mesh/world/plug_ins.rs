//! Further protocols of the nodes, which the program's registry knows by name.

use std::collections::BTreeMap;
use std::time::Duration;

use tenure_protocols::plug_in::{Registry, Start};

use super::super::measure::FigureRange;
use super::super::occupant::Occupant;
use super::super::participant::{UNIT_HOLDER, id_of, value_of};
use super::super::scenario::{PlugInPlan, Scenario, ScenarioError};
use super::World;

/// Checks that the registry knows each protocol, and that its settings mean something to it.
pub(super) fn check(scenario: &Scenario, registry: Registry) -> Result<(), ScenarioError> {
    for plan in &scenario.plug_ins {
        let entry = registry
            .named(&plan.name)
            .map_err(|error| ScenarioError::UnknownProtocol(error.to_string()))?;
        let number = plan.nodes.first().copied().unwrap_or_default();
        entry
            .make(&start(plan, number, 1))
            .map_err(|error| ScenarioError::Settings(format!("`{}`: {error}", plan.name)))?;
    }
    Ok(())
}

fn start(plan: &PlugInPlan, number: u32, life: u32) -> Start<'_> {
    Start {
        node: id_of(number),
        life,
        interval: Duration::from_millis(plan.interval_ms.into()),
        value: plan.value.unwrap_or_else(|| value_of(number)),
        has_unit: number == UNIT_HOLDER,
        settings: &plan.settings,
    }
}

impl World {
    /// Starts the protocol of that index wherever it is due.
    pub(super) fn plug_in(&mut self, index: usize) {
        self.plugged_in[index] = true;
        for number in 0..self.seats.len() as u32 {
            if self.plug_in_at(index, number) {
                self.turn(number);
            }
        }
    }

    /// Starts the protocols that are due on a node that was just switched on.
    pub(super) fn plug_in_all(&mut self, number: u32) {
        for index in 0..self.scenario.plug_ins.len() {
            if self.plugged_in[index] {
                self.plug_in_at(index, number);
            }
        }
    }

    /// Starts a protocol on a node, if the node is on and to run it; whether it does.
    fn plug_in_at(&mut self, index: usize, number: u32) -> bool {
        let plan = &self.scenario.plug_ins[index];
        let is_meant = plan.nodes.is_empty() || plan.nodes.contains(&number);
        let seat = &mut self.seats[number as usize];
        let now = seat.clock.local(self.now_us);
        let Some(participant) = seat.occupant.as_mut().and_then(Occupant::bare) else {
            return false;
        };
        // Names and settings were checked before the run.
        let entry = self.options.registry.named(&plan.name).ok().filter(|_| is_meant);
        let prepared = entry.and_then(|entry| entry.make(&start(plan, number, seat.boots)).ok());
        let Some(prepared) = prepared else { return false };
        participant.plug_in(now, prepared);
        true
    }

    /// The figures of the protocols at the end.
    pub(super) fn figures(&mut self) -> BTreeMap<String, FigureRange> {
        let mut values: BTreeMap<String, (u32, Vec<f64>)> = BTreeMap::new();
        for plan in &self.scenario.plug_ins {
            let Ok(entry) = self.options.registry.named(&plan.name) else { continue };
            let mut running = 0;
            for (seat, number) in self.seats.iter_mut().zip(0..) {
                let now = seat.clock.local(self.now_us);
                let is_meant = plan.nodes.is_empty() || plan.nodes.contains(&number);
                let participant = seat.occupant.as_mut().and_then(Occupant::bare);
                let Some(participant) = participant.filter(|_| is_meant) else { continue };
                running += 1;
                participant.figures(entry, now, &mut |name, value| {
                    let key = format!("{} {name}", plan.name);
                    values.entry(key).or_default().1.push(value);
                });
            }
            let of_plan = format!("{} ", plan.name);
            let figures = values.iter_mut().filter(|(name, _)| name.starts_with(&of_plan));
            figures.for_each(|(_, (nodes, _))| *nodes = running);
        }
        let range = |nodes: u32, values: &[f64]| FigureRange {
            nodes,
            known: values.len() as u32,
            least: values.iter().copied().fold(f64::INFINITY, f64::min),
            mean: values.iter().sum::<f64>() / values.len() as f64,
            most: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        };
        values.into_iter().map(|(name, (nodes, of_it))| (name, range(nodes, &of_it))).collect()
    }
}
