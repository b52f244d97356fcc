//! The plan of a rollout: what its owner signs. It says how far whoever carries it out may go.

use super::gates::Gates;
use data_encoding::{BASE64, HEXLOWER};
use serde::{Deserialize, Serialize};
use tenure_crypto::{Context, SigningKey, verify};
use tenure_package::{Mandate, Selector};
use tenure_wire::limits::LABELS_MAX;
use tenure_wire::{Digest, Label, Name, Signature, VerifyingKey, Version};
use utoipa::ToSchema;

const PLAN: Context = Context::new("rollout plan");
/// The most devices that a rollout names, however many the hub lists: its plan is signed with them, and labels select more.
pub(super) const DEVICES_MAX: usize = 10_000;
/// The most stages of a rollout.
const STAGES_MAX: usize = 32;

pub(super) const STAGES_FAULT: &str = "32 stages at most, each of 1 to all devices, or 1% to 100%, and none of \
                                       fewer than the one before";
const OTHER_MANDATE: &str = "the mandate and the plan differ: sign both anew";

/// The plan of a rollout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The machine that is updated on each device.
    pub machine: Name,
    /// The digest of the package.
    pub package: Digest,
    /// The package's tenant: devices may be put back to packages of this one alone.
    pub tenant: VerifyingKey,
    /// The oldest version that a device may be updated from and put back to.
    pub from: Version,
    /// The devices, in the order in which they are updated; none if labels select them.
    #[serde(default)]
    pub devices: Vec<Name>,
    /// The labels of the devices; then they are updated by their names' order, and such that come later last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<Label>,
    /// How far each stage goes: a number of devices, or `10%` of them; behind the last one, all.
    pub stages: Vec<String>,
    /// For how long a device must do well, in seconds.
    pub soak_s: i64,
    /// The most faults of a machine in that time.
    #[serde(default)]
    pub faults_max: i64,
    /// Gates on what devices report beside that.
    #[serde(default, skip_serializing_if = "Gates::is_none")]
    pub gates: Gates,
    /// The most devices that may fail.
    #[serde(default)]
    pub failures_max: i64,
    /// Whether it pauses when a gate fails, and doesn't roll back.
    #[serde(default)]
    pub pause_on_failure: bool,
    /// Until when devices may be updated, in seconds since 1970 UTC.
    pub ends_unix_s: i64,
}

/// A plan as its owner signed it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SignedPlan {
    /// The plan in JSON, as it was signed.
    pub plan: String,
    /// The signature over it, in hexadecimal digits.
    pub signature: String,
    /// The mandate that the devices follow, as the owner signed it, in base 64; without it the owner's command
    /// carries the plan out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub mandate: Option<String>,
}

/// Why a plan isn't taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The owner didn't sign these words.
    #[error("the plan isn't signed by its owner")]
    Signature,
    /// It is no plan.
    #[error("the plan can't be read: {0}")]
    Form(String),
    /// It asks for what can't be.
    #[error("{0}")]
    Fault(&'static str),
}

impl SignedPlan {
    /// Signs a plan.
    pub fn sign(plan: &Plan, owner: &SigningKey) -> Self {
        let plan = serde_json::to_string(plan).unwrap_or_default();
        let signature = owner.sign(PLAN, plan.as_bytes()).to_bytes();
        Self { plan, signature: HEXLOWER.encode(&signature), mandate: None }
    }

    /// The same for devices that follow `mandate`, as the owner signed it.
    #[must_use]
    pub fn with_mandate(self, mandate: &[u8]) -> Self {
        Self { mandate: Some(BASE64.encode(mandate)), ..self }
    }

    /// The mandate as its owner signed it, if there is one that says what `plan` does.
    ///
    /// # Errors
    /// See [`PlanError`].
    pub(crate) fn open_mandate(
        &self,
        owner: &VerifyingKey,
        plan: &Plan,
        version: &str,
    ) -> Result<Option<Vec<u8>>, PlanError> {
        let Some(text) = &self.mandate else { return Ok(None) };
        let form = |error: &dyn std::fmt::Display| PlanError::Form(error.to_string());
        let bytes = BASE64.decode(text.as_bytes()).map_err(|error| form(&error))?;
        let mandate = Mandate::verify(&bytes, owner).map_err(|error| form(&error))?;
        let ends_unix_s = i64::try_from(mandate.ends_unix_s).unwrap_or(i64::MAX);
        let is_for = |name: &Name| match &mandate.devices {
            Selector::Names(names) => names.contains(name),
            Selector::Labels(_) => false,
        };
        let is_by = match &mandate.devices {
            Selector::Names(_) => plan.labels.is_empty(),
            Selector::Labels(labels) => *labels == plan.labels,
        };
        let is_same = mandate.machine == plan.machine
            && mandate.package == plan.package
            && mandate.tenant == plan.tenant
            && mandate.from == plan.from
            && mandate.version.to_string() == version
            && ends_unix_s == plan.ends_unix_s
            && is_by
            && plan.devices.iter().all(is_for);
        if is_same { Ok(Some(bytes)) } else { Err(PlanError::Fault(OTHER_MANDATE)) }
    }

    /// The plan, if `owner` signed it and it makes sense.
    ///
    /// # Errors
    /// See [`PlanError`].
    pub fn open(&self, owner: &VerifyingKey) -> Result<Plan, PlanError> {
        let signature = HEXLOWER.decode(self.signature.as_bytes()).unwrap_or_default();
        let signature: [u8; 64] = signature.try_into().map_err(|_| PlanError::Signature)?;
        verify(owner, PLAN, self.plan.as_bytes(), &Signature::from_bytes(&signature))
            .map_err(|_| PlanError::Signature)?;
        let plan: Plan =
            serde_json::from_str(&self.plan).map_err(|error| PlanError::Form(error.to_string()))?;
        match plan.fault() {
            Some(fault) => Err(PlanError::Fault(fault)),
            None => Ok(plan),
        }
    }
}

impl Plan {
    /// How many of `count` devices each stage reaches in all, the last one all of them; `None` if a stage
    /// reaches none, too many, or fewer than the one before.
    pub fn reaches(&self, count: usize) -> Option<Vec<i64>> {
        let count = i64::try_from(count).ok()?;
        let reach = |text: &String| {
            let reach = match text.strip_suffix('%') {
                Some(percent) => {
                    let percent: i64 = percent.parse().ok()?;
                    (1..=100).contains(&percent).then_some((count * percent + 99) / 100)?
                }
                None => text.parse().ok()?,
            };
            (1..=count).contains(&reach).then_some(reach)
        };
        let mut reaches: Vec<i64> = self.stages.iter().map(reach).collect::<Option<_>>()?;
        // Those that labels select may become more.
        reaches.push(if self.labels.is_empty() { count } else { i64::from(u32::MAX) });
        reaches.dedup();
        reaches.is_sorted().then_some(reaches)
    }

    /// The first thing that is wrong with it.
    fn fault(&self) -> Option<&'static str> {
        let mut names: Vec<&Name> = self.devices.iter().collect();
        names.sort_unstable();
        names.dedup();
        let is_natural = |number: i64| (0..=1_000_000).contains(&number);
        if self.devices.is_empty() == self.labels.is_empty() || self.devices.len() > DEVICES_MAX {
            Some("a rollout has 1 to 10,000 devices, or labels that select them")
        } else if self.labels.len() > LABELS_MAX {
            Some("a rollout has 16 labels at most")
        } else if names.len() != self.devices.len() {
            Some("a device is named twice")
        } else if self.stages.len() > STAGES_MAX {
            Some(STAGES_FAULT)
        } else if !(1..=30 * 24 * 60 * 60).contains(&self.soak_s) {
            Some("a device soaks for 1 second to 30 days")
        } else if !is_natural(self.faults_max) || !is_natural(self.failures_max) {
            Some("faults and failures are 0 to 1,000,000")
        } else if !self.gates.are_sound() {
            Some("gates have no negative bounds on fuel and waits, and 8 metrics at most")
        } else {
            None
        }
    }
}
