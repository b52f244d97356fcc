//! Gates on what devices report: fuel a call, waits, and a machine's own metrics.
//!
//! A device passes such a gate only by reports that it sent since its update.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use tenure_wire::Name;
use utoipa::ToSchema;

use super::Rollout;
use crate::store::sql::{self, Connection, OptionalExtension as _, params};

/// The most metrics that a rollout watches.
pub(super) const METRICS_MAX: usize = 8;

/// Bounds on what an updated machine may do, beside its faults.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Gates {
    /// The most fuel a call, on average since the update, in units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub fuel_per_call_max: Option<i64>,
    /// The longest that the machine may wait for its turn, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub waited_us_max: Option<i64>,
    /// Bounds on numbers that the machine keeps in its tree below `metrics`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<MetricGate>,
}

/// A bound on one metric.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MetricGate {
    /// The metric.
    #[schema(value_type = String)]
    pub name: Name,
    /// The least that it may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub at_least: Option<i64>,
    /// The most that it may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub at_most: Option<i64>,
}

/// The text is no bound on a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write NAME<=NUMBER or NAME>=NUMBER, with a whole number")]
pub struct NoMetricGate;

impl FromStr for MetricGate {
    type Err = NoMetricGate;

    fn from_str(text: &str) -> Result<Self, NoMetricGate> {
        let read = |sign: &str| {
            let (name, number) = text.split_once(sign)?;
            Some((name.trim().parse().ok()?, number.trim().parse::<i64>().ok()?))
        };
        match (read("<="), read(">=")) {
            (Some((name, most)), _) => Ok(Self { name, at_least: None, at_most: Some(most) }),
            (_, Some((name, least))) => Ok(Self { name, at_least: Some(least), at_most: None }),
            (None, None) => Err(NoMetricGate),
        }
    }
}

impl fmt::Display for MetricGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, at_least, at_most } = self;
        match (at_least, at_most) {
            (Some(least), Some(most)) => write!(f, "{name} from {least} to {most}"),
            (Some(least), None) => write!(f, "{name} at least {least}"),
            (None, Some(most)) => write!(f, "{name} at most {most}"),
            (None, None) => write!(f, "{name} is told"),
        }
    }
}

/// The word of a device's reports on the gates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// They hold.
    Holds,
    /// The reports don't tell yet.
    Unknown(String),
    /// One doesn't.
    Fails(String),
}

impl Gates {
    /// Whether faults, bans and heartbeats are all that is looked at.
    pub(crate) fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Whether each bound makes sense.
    pub(super) fn are_sound(&self) -> bool {
        let is_natural = |number: &Option<i64>| number.is_none_or(|number| number >= 0);
        self.metrics.len() <= METRICS_MAX
            && is_natural(&self.fuel_per_call_max)
            && is_natural(&self.waited_us_max)
    }

    /// The gates in words.
    pub(crate) fn words(&self) -> Vec<String> {
        let fuel = self.fuel_per_call_max.map(|most| format!("fuel a call at most {most} units"));
        let waited = self.waited_us_max.map(|most| format!("longest wait at most {most} µs"));
        let metrics = self.metrics.iter().map(|gate| format!("metric {gate}"));
        fuel.into_iter().chain(waited).chain(metrics).collect()
    }

    /// Holds them against what `device` reported since its update at `updated`.
    ///
    /// # Errors
    /// The database fails.
    pub(super) fn judge(
        &self,
        connection: &Connection,
        rollout: &Rollout,
        device: &str,
        updated: i64,
    ) -> Result<Verdict, sql::Error> {
        if self.is_none() {
            return Ok(Verdict::Holds);
        }
        // The first report with a package has nothing that was used since; a later one does.
        let query = "SELECT m.package_calls, m.package_fuel, m.package_waited_us FROM machine_reports m \
             JOIN reports r ON r.device = m.device WHERE m.device = ?1 AND m.machine = ?2 AND m.package = ?3 \
             AND m.taken_unix_s >= ?4 AND r.taken_unix_s > m.package_unix_s";
        let names = params![device, rollout.machine, rollout.package_digest, updated];
        let read = |row: &sql::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        let used: Option<(i64, i64, i64)> =
            connection.statement(query).query_row(names, read).optional()?;
        let Some((calls, fuel, waited_us)) = used else {
            return Ok(Verdict::Unknown("it hasn't reported since its update".into()));
        };
        let per_call = fuel / calls.max(1);
        if let Some(most) = self.fuel_per_call_max.filter(|most| calls > 0 && per_call > *most) {
            return Ok(Verdict::Fails(format!(
                "{per_call} units of fuel a call, {most} are allowed"
            )));
        }
        if let Some(most) = self.waited_us_max.filter(|most| waited_us > *most) {
            return Ok(Verdict::Fails(format!("waited {waited_us} µs, {most} are allowed")));
        }
        for gate in &self.metrics {
            let query =
                "SELECT value FROM metrics WHERE device = ?1 AND machine = ?2 AND name = ?3";
            let names = [device, &rollout.machine, gate.name.as_str()];
            let value: Option<i64> =
                connection.statement(query).query_row(names, |row| row.get(0)).optional()?;
            let Some(value) = value else {
                return Ok(Verdict::Unknown(format!("it tells no metric {}", gate.name)));
            };
            let is_within = gate.at_least.is_none_or(|least| value >= least)
                && gate.at_most.is_none_or(|most| value <= most);
            if !is_within {
                return Ok(Verdict::Fails(format!(
                    "metric {} is {value}, and must be {gate}",
                    gate.name
                )));
            }
        }
        Ok(Verdict::Holds)
    }
}
