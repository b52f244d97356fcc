//! Whether links come and go around a node, as where nodes move, or stay.
//!
//! Where they stay, tables that are equal everywhere are worth their bytes: each change is told to all, and
//! everything that is missing is asked for. Where they don't, most of what a table says is over before it is
//! needed, and ways are looked for when they are.

use core::time::Duration;

use tenure_hal::Instant;

use crate::forwarding::IN_CROWDS;

/// Links that come up in this time after boot were there before.
const SETTLES_WITHIN: Duration = Duration::from_secs(10);
/// One change of a link is forgotten in this time.
const FORGOTTEN_IN: Duration = Duration::from_secs(6);
/// A change of one of so few links; one of more links is a smaller part of them, and more of them lose hellos to
/// each other's frames.
const CHANGE: u32 = 16;
const LINKS_AT_EASE: u32 = 12;
/// The most changes that are remembered, how many make a node restless, and at how few it is calm again.
const CHANGES_MAX: u32 = 6 * CHANGE;
const RESTLESS_AT: u32 = 3 * CHANGE;
const CALM_AT: u32 = CHANGE;

/// How many links came or went lately.
#[derive(Debug, Default)]
pub(super) struct Unrest {
    began_at: Option<Instant>,
    changes: u32,
    forgotten_at: Option<Instant>,
    is_restless: bool,
}

impl Unrest {
    /// The node boots.
    pub(super) fn begin(&mut self, now: Instant) {
        self.began_at = Some(now);
    }

    /// One of so many links came up or went down. Where none went lately, those that come are of nodes that were switched
    /// on.
    pub(super) fn note(&mut self, is_up: bool, links: usize, now: Instant) {
        if self.began_at.is_some_and(|at| now.since(at) < SETTLES_WITHIN) {
            return;
        }
        self.pass(now);
        if self.changes == 0 {
            if is_up {
                return;
            }
            self.forgotten_at = Some(now);
        }
        let links = if IN_CROWDS { (links as u32).max(LINKS_AT_EASE) } else { LINKS_AT_EASE };
        self.changes = (self.changes + CHANGE * LINKS_AT_EASE / links).min(CHANGES_MAX);
        self.is_restless |= self.changes >= RESTLESS_AT;
    }

    /// Forgets changes as time passes; whether links come and go.
    pub(super) fn is_restless(&mut self, now: Instant) -> bool {
        self.pass(now);
        self.is_restless
    }

    fn pass(&mut self, now: Instant) {
        let Some(at) = self.forgotten_at else { return };
        let forgotten = (now.since(at).as_millis() / FORGOTTEN_IN.as_millis()) as u32;
        self.forgotten_at = Some(at + FORGOTTEN_IN * forgotten);
        self.changes = self.changes.saturating_sub(CHANGE.saturating_mul(forgotten));
        self.is_restless &= self.changes > CALM_AT;
    }
}
