//! Membership for small networks: every node announces itself to all, and whoever hasn't for a
//! while is no member any more.
//!
//! Source: the membership protocol that Yggdrasil's paper shows as its example (Costa, Leitão et al.,
//! "Yggdrasil", SAC 2020, Algorithm 1); `docs/mesh.md` sets it beside this. Announcements travel by
//! whichever broadcast runs.
//!
//! ```text
//!           announcement: MemberUp
//!  unknown ─────────────────────────► member
//!     ▲                                │  ▲ announcement
//!     └────────────────────────────────┘  └─┘
//!       none for three periods: MemberDown
//! ```

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_hal::Instant;
use tenure_mesh::{Awaits, Context, Expires, Hears, NodeId, Protocol, Question, Serves};

use crate::interface::{MemberDown, MemberUp, Members, Port, Publish, Published};

#[cfg(test)]
mod tests;

/// The most members that are known; a network of more runs [`crate::hyparview`].
const MEMBERS_MAX: usize = 1024;

/// Membership for small networks.
#[derive(Debug)]
pub struct Membership {
    period: Duration,
    members: BTreeMap<NodeId, Instant>,
}

/// It is time to announce oneself, and to look who hasn't.
#[derive(Debug, Serialize, Deserialize)]
struct Beat;

tenure_mesh::protocol! {
    Membership = 12, "membership";
    timers { Beat = 1 }
    serves { Members }
    asks { Publish }
    hears { Published }
    tells { MemberUp, MemberDown }
}

impl Membership {
    /// Announces itself every `period`.
    pub fn new(period: Duration) -> Self {
        Self { period, members: BTreeMap::new() }
    }

    /// How many members are known.
    pub fn members(&self) -> usize {
        self.members.len()
    }
}

impl Protocol for Membership {
    fn start(&mut self, context: &mut Context<'_, Self>) {
        context.after(Duration::ZERO, &Beat);
    }
}

impl Expires<Beat> for Membership {
    fn expire(&mut self, _: Beat, context: &mut Context<'_, Self>) {
        context.ask(&Publish { port: Port::MEMBERS }, &[]);
        let (now, patience) = (context.now(), self.period * 3);
        let is_silent = |_: &NodeId, heard: &mut Instant| now.since(*heard) >= patience;
        for (member, _) in self.members.extract_if(.., is_silent) {
            context.tell(&MemberDown { member }, &[]);
        }
        context.after_about(self.period, &Beat);
    }
}

impl Hears<Published> for Membership {
    fn hear(&mut self, published: Published, _: &[u8], context: &mut Context<'_, Self>) {
        let Published { from: member, port } = published;
        let room = self.members.len() < MEMBERS_MAX || self.members.contains_key(&member);
        if port == Port::MEMBERS && room && self.members.insert(member, context.now()).is_none() {
            context.tell(&MemberUp { member }, &[]);
        }
    }
}

impl Serves<Members> for Membership {
    fn serve(
        &mut self,
        _: Members,
        _: &Question<'_, Members>,
        _: &mut Context<'_, Self>,
    ) -> Option<Vec<NodeId>> {
        Some(self.members.keys().copied().collect())
    }
}

/// An announcement that isn't taken is one that is lost.
impl Awaits<Publish> for Membership {}
