//! Elects a leader: of the nodes that reach each other, the one with the lowest id.
//!
//! ```text
//!              a better claim
//!  leads ───────────────────────► follows
//!    ▲                              │ ▲ its leader's claim
//!    └──────────────────────────────┘ └─┘
//!        no claim for four rounds
//! ```

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_hal::Instant;
use tenure_mesh::{Context, Expires, Handles, NodeId, Protocol, Reception};
use tenure_protocols::plug_in::{BadSettings, PlugIn, Start};

/// A claim that has made so many hops isn't passed on.
const HOPS_MAX: u8 = 16;

/// The protocol's state on one node.
pub struct Leader {
    interval: Duration,
    /// The best claim that was heard, and when.
    heard: Option<(NodeId, Instant)>,
}

/// A message: this node leads.
#[derive(Serialize, Deserialize)]
pub struct Claim {
    leader: NodeId,
    /// How many nodes have passed the claim on.
    hops: u8,
}

/// A timer: the next round begins.
#[derive(Serialize, Deserialize)]
pub struct Round;

tenure_mesh::protocol! {
    // Numbers from 128 on are free. The name stands in scenarios and in orders of experiments.
    Leader = 130, "{{name}}";
    messages { Claim = 1 }
    timers { Round = 1 }
}

impl Leader {
    /// A node that begins a round every `interval`.
    pub fn new(interval: Duration) -> Self {
        Self { interval, heard: None }
    }

    /// The leader, as the node `own` knows it.
    pub fn leader(&self, own: NodeId, now: Instant) -> NodeId {
        let lately = self.heard.filter(|(_, at)| now.since(*at) < self.interval * 4);
        lately.map_or(own, |(leader, _)| leader.min(own))
    }
}

impl Protocol for Leader {
    fn start(&mut self, context: &mut Context<'_, Self>) {
        context.every(self.interval, &Round);
    }
}

impl Expires<Round> for Leader {
    fn expire(&mut self, _: Round, context: &mut Context<'_, Self>) {
        let own = context.node();
        if self.leader(own, context.now()) == own {
            context.broadcast(&Claim { leader: own, hops: 0 });
        }
    }
}

impl Handles<Claim> for Leader {
    fn handle(
        &mut self,
        Claim { leader, hops }: Claim,
        _: Reception<'_>,
        context: &mut Context<'_, Self>,
    ) {
        let (own, now) = (context.node(), context.now());
        let is_known =
            |(known, at): (NodeId, Instant)| known == leader && now.since(at) < self.interval / 2;
        let is_better = leader < own && leader <= self.leader(own, now);
        if is_better && !self.heard.is_some_and(is_known) && hops < HOPS_MAX {
            self.heard = Some((leader, now));
            context.broadcast(&Claim { leader, hops: hops + 1 });
        }
    }
}

impl PlugIn for Leader {
    fn make(start: &Start<'_>) -> Result<Self, BadSettings> {
        if !start.settings.is_empty() {
            return Err(BadSettings { takes: "an interval, and no other settings" });
        }
        Ok(Self::new(start.interval))
    }

    fn figures(&self, node: NodeId, now: Instant, figure: &mut dyn FnMut(&'static str, f64)) {
        let leader = self.leader(node, now);
        figure("leader", leader.number() as f64);
        figure("leads", f64::from(u8::from(leader == node)));
    }
}
