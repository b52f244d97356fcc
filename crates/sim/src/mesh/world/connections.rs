//! Connected components of the mesh, and how much of its own component each node knows.

use std::collections::BTreeSet;

use tenure_protocols::forwarding::HOPS_MAX;

use super::super::occupant::Occupant;
use super::super::participant::{UNIT_HOLDER, value_of};
use super::super::scenario::Aggregation;
use super::{Event, LOOK_US, World};

/// In larger meshes only so many destinations are looked at.
const DESTINATIONS_LOOKED_AT: u32 = 100;

/// More hops than any way has.
const NEVER_REACHED: u32 = u32::MAX;

impl World {
    /// The furthest that a node is off with average and number of the nodes that it is connected to.
    pub(super) fn aggregate_errors(&self) -> Option<(f64, f64)> {
        let aggregation = self.scenario.protocols.aggregation?;
        let parts = self.parts();
        let needs_unit = aggregation != Aggregation::Gap;
        let (mut average_error, mut count_error) = (0.0_f64, 0.0_f64);
        // Nobody can count where nobody has the unit to count by.
        for part in parts.iter().filter(|part| !needs_unit || part.contains(&UNIT_HOLDER)) {
            let count = part.len() as f64;
            let average = part.iter().map(|number| value_of(*number)).sum::<f64>() / count;
            for number in part {
                let seat = &self.seats[*number as usize];
                let summary = seat.occupant.as_ref().and_then(Occupant::summary);
                let (average_here, count_here) =
                    summary.map_or((f64::INFINITY, f64::INFINITY), |it| (it.average(), it.count));
                average_error = average_error.max((average_here - average).abs());
                count_error = count_error.max((count_here - count).abs());
            }
        }
        Some((average_error, count_error))
    }

    /// The nodes that are on, by which of them hear each other over any number of hops.
    fn parts(&self) -> Vec<Vec<u32>> {
        let is_on = |number: &u32| self.seats[*number as usize].occupant.is_some();
        let mut left: BTreeSet<u32> = (0..self.seats.len() as u32).filter(is_on).collect();
        let mut parts = Vec::new();
        while let Some(first) = left.pop_first() {
            let mut part = vec![first];
            let mut at = 0;
            while let Some(&from) = part.get(at) {
                at += 1;
                let joined = |to: &u32| self.hears(from, *to) && self.hears(*to, from);
                part.extend(left.extract_if(.., joined));
            }
            parts.push(part);
        }
        parts
    }

    /// Looks who reaches whom, until every node was switched on and all that are on reach each other.
    pub(super) fn look(&mut self) {
        if self.metrics.converged_s.is_some() {
            return;
        }
        let are_all_here = self.seats.iter().all(|seat| seat.boots > 0);
        if are_all_here && self.reachable() >= 1.0 {
            self.metrics.converged_s = Some(self.now_us as f64 / 1e6);
        } else {
            let pause_us = LOOK_US * (self.seats.len() as u64).div_ceil(200);
            self.agenda.plan(self.now_us + pause_us, Event::Look);
        }
    }

    /// The share of ordered pairs of nodes that are on between which next hops lead, by no more hops than
    /// datagrams make.
    pub(super) fn reachable(&self) -> f64 {
        let count = self.seats.len() as u32;
        let is_on = |number: u32| self.seats[number as usize].occupant.is_some();
        let (mut pairs, mut reached) = (0_u64, 0_u64);
        let destinations = self.destinations();
        let every = destinations.div_ceil(DESTINATIONS_LOOKED_AT).max(1);
        for to in (0..destinations).step_by(every as usize).filter(|to| is_on(*to)) {
            // In how many hops each node reaches `to`: unknown, or known from a way that passed it.
            let mut known: Vec<Option<u32>> = vec![None; count as usize];
            known[to as usize] = Some(0);
            for from in (0..count).filter(|from| is_on(*from)) {
                let mut way = Vec::new();
                let mut at = from;
                let end = loop {
                    if let Some(hops) = known[at as usize] {
                        break hops;
                    }
                    known[at as usize] = Some(NEVER_REACHED);
                    way.push(at);
                    match self.next_hop(at, to).filter(|next| self.hears(at, *next)) {
                        Some(next) => at = next,
                        None => break NEVER_REACHED,
                    }
                };
                for (passed, hops) in way.iter().rev().zip(1..) {
                    known[*passed as usize] = Some(end.saturating_add(hops));
                }
                pairs += 1;
                let hops = known[from as usize].unwrap_or(NEVER_REACHED);
                reached += u64::from(hops <= u32::from(HOPS_MAX) + 1);
            }
        }
        if pairs == 0 { 0.0 } else { reached as f64 / pairs as f64 }
    }

    /// Looks for circles that not a route closed that changed, but a node that became willing to pass on.
    pub(super) fn look_for_loops(&mut self) {
        let count = self.seats.len() as u32;
        for to in 0..self.destinations() {
            // From where each node was first come by.
            let mut passed: Vec<Option<u32>> = vec![None; count as usize];
            passed[to as usize] = Some(to);
            for from in (0..count).filter(|from| *from != to) {
                let mut at = from;
                while passed[at as usize].is_none() {
                    passed[at as usize] = Some(from);
                    let Some(next) = self.next_hop(at, to) else { break };
                    at = next;
                }
                if passed[at as usize] == Some(from) {
                    self.check_loop(at, to);
                }
            }
        }
    }

    /// How many nodes others have ways to.
    fn destinations(&self) -> u32 {
        let count = self.seats.len() as u32;
        self.scenario.protocols.destinations.map_or(count, |destinations| destinations.min(count))
    }

    fn hears(&self, from: u32, to: u32) -> bool {
        self.medium.reaches(from, to)
    }

    /// The longest way between two nodes by next hops, of those that arrive.
    pub(super) fn hops_max(&self) -> u32 {
        let count = self.seats.len() as u32;
        let destinations = self.destinations();
        let every = destinations.div_ceil(DESTINATIONS_LOOKED_AT).max(1);
        let mut longest = 0;
        for to in (0..destinations).step_by(every as usize) {
            // How many hops it is from each node, as far as that is known.
            let mut known: Vec<Option<u32>> = vec![None; count as usize];
            known[to as usize] = Some(0);
            for from in 0..count {
                let mut way = Vec::new();
                let mut at = from;
                while known[at as usize].is_none() && way.len() <= count as usize {
                    way.push(at);
                    let Some(next) = self.next_hop(at, to) else { break };
                    at = next;
                }
                let Some(rest) = known[at as usize] else { continue };
                for (hops, passed) in (rest + 1..).zip(way.iter().rev()) {
                    known[*passed as usize] = Some(hops);
                    longest = longest.max(hops);
                }
            }
        }
        longest
    }
}
