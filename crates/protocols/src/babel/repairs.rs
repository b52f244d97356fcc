//! Lines that didn't arrive: asked for, and given.

use alloc::vec::Vec;
use core::time::Duration;

use tenure_hal::Instant;
use tenure_mesh::{
    self as mesh, Context, Expires, Handles, Hears, NodeId, Outgoing, Reception, decode,
};

use super::link::{GAPS_MAX, Link, note_heard};
use super::table::News;
use super::{Babel, Chase, Missing, Update};
use crate::forwarding::{IN_CROWDS, watch};
use crate::interface::NextHopRated;

/// How long lines may be missing before they are asked for; twice that until they are again, longer if
/// many are missing, because the answer takes time as well, and twice as long each time nothing comes.
const MISSING_PAUSE: Duration = Duration::from_millis(100);
const MISSING_PAUSE_MAX: Duration = Duration::from_secs(5);
const PAUSES_UNTIL_AGAIN: u32 = 2;
const LINES_A_PAUSE: u32 = 32;
const PAUSES_FOR_LINES_MAX: u32 = 6;
const DOUBLINGS_MAX: u8 = 4;
/// So many neighbours with the best links are asked at once; others after so many pauses.
const CHASED_MAX: usize = 8;
const PAUSES_OF_OTHERS: u32 = 32;
/// The most pauses until a neighbour is asked again.
const PAUSES_MAX: u32 = 128;
/// Frames of lines sent again one after the other; more wait a moment.
const REPAIRS_AT_ONCE: usize = 4;
/// If so many neighbours miss lines, they are told to everybody.
const ASKERS_FOR_ALL: usize = 3;

/// Lines that a neighbour asked for: those told after one version and up to another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) by: NodeId,
    after: u32,
    to: u32,
}

impl Babel {
    /// Asks a neighbour for the lines of its table that are missing here, in a moment. Who was asked
    /// already goes on by itself. Where links come and go, nobody is asked: what is needed is searched for, and
    /// the first hello that comes when they stay again leads here.
    pub(super) fn chase(&mut self, neighbour: NodeId, context: &mut Context<'_, Self>) {
        if self.unrest.is_restless(context.now()) {
            return;
        }
        let Some(at) = self.place(neighbour) else { return };
        let Some((_, link)) = self.links.get(at) else { return };
        if !link.is_incomplete() || link.asks > 0 {
            return;
        }
        let pauses = self.pauses_until_asked(at);
        let after = context.random().around(missing_pause(self) * pauses);
        let ask_at = context.now() + after;
        if let Some((_, link)) = self.links.get_mut(at)
            && link.ask_at.is_none_or(|planned| ask_at < planned)
        {
            link.ask_at = Some(ask_at);
            self.chase_in(after, context);
        }
    }

    /// How many pauses a neighbour isn't asked for what is missing: one of those with the best links, or that ways lead
    /// over, is at once; what others know, these do as well, and most of it comes by itself.
    pub(super) fn pauses_until_asked(&self, at: usize) -> u32 {
        if !IN_CROWDS {
            return 1;
        }
        let (neighbour, link) = &self.links[at];
        let rank = (link.cost, *neighbour);
        let better = self.links.iter().filter(|(other, link)| (link.cost, *other) < rank).count();
        let is_useful = better < CHASED_MAX || self.table.leads_over(*neighbour);
        if is_useful { 1 } else { PAUSES_OF_OTHERS }
    }

    /// Notes that lines came of a neighbour that were missing: it isn't asked again as long as they do.
    pub(super) fn missing_came(&mut self, neighbour: NodeId, now: Instant) {
        let Some(at) = self.place(neighbour) else { return };
        let pause = missing_pause(self) * self.pauses_until_asked(at);
        let Some((_, link)) = self.links.get_mut(at) else { return };
        if !link.is_incomplete() {
            (link.asks, link.ask_at) = (0, None);
        } else if link.asks > 0 {
            (link.asks, link.ask_at) = (1, Some(now + pause * pauses_until_again(link)));
        }
    }

    pub(super) fn chase_in(&mut self, after: Duration, context: &mut Context<'_, Self>) {
        let at = context.now() + after;
        if self.chase_at.is_none_or(|planned| at < planned) {
            self.chase_at = Some(at);
            context.after(after, &Chase);
        }
    }

    /// Sends what neighbours missed to them, and to everybody if several missed the same; gives how
    /// many bytes that were.
    pub(super) fn send_repairs(&mut self, context: &mut Context<'_, Self>) -> usize {
        let mut sent_bytes = 0;
        for _ in 0..REPAIRS_AT_ONCE {
            let first = self.asked.iter().min_by_key(|asked| (asked.after, asked.to)).copied();
            let Some(Asked { by, after, to }) = first else { break };
            let (body, until) = self.lines(after, to, context);
            let others = self.asked.iter().filter(|asked| asked.after < until);
            let receiver = match others.count() {
                ASKERS_FOR_ALL.. => mesh::Destination::All,
                _ => mesh::Destination::One(by),
            };
            let update = Update { boot: self.boot, after, to: until };
            context
                .transmit(&update, Outgoing { to: receiver, body: &body, ..Outgoing::default() });
            sent_bytes += body.len();
            self.asked.retain_mut(|asked| {
                if asked.by != by && receiver != mesh::Destination::All {
                    return true;
                }
                asked.after = asked.after.max(until);
                asked.after < asked.to
            });
        }
        sent_bytes
    }
}

/// The time in which what was lost may come by itself: the longer the more neighbours ask, and the more of them know it.
fn missing_pause(babel: &Babel) -> Duration {
    let pause = babel.shared(MISSING_PAUSE);
    if IN_CROWDS { babel.shared(pause).min(MISSING_PAUSE_MAX) } else { pause }
}

/// How many pauses a neighbour has to send what is missing.
fn pauses_until_again(link: &Link) -> u32 {
    let missing: u32 = link.gaps().map(|(after, to)| to - after).sum();
    PAUSES_UNTIL_AGAIN + (missing / LINES_A_PAUSE).min(PAUSES_FOR_LINES_MAX)
}

fn ask(neighbour: NodeId, link: &Link, context: &mut Context<'_, Babel>) {
    let mut gaps = link.gaps();
    let Some((after, to)) = gaps.next() else { return };
    let mut body = Vec::new();
    for gap in gaps {
        // Serialising two numbers into memory doesn't fail.
        body = postcard::to_extend(&gap, body).unwrap_or_default();
    }
    let to_one = mesh::Destination::One(neighbour);
    context.transmit(
        &Missing { after, to },
        Outgoing { to: to_one, body: &body, ..Outgoing::default() },
    );
}

impl Expires<Chase> for Babel {
    fn expire(&mut self, _: Chase, context: &mut Context<'_, Self>) {
        self.chase_at = None;
        let now = context.now();
        let pause = missing_pause(self);
        let mut next = None::<Instant>;
        for at in 0..self.links.len() {
            let others_pauses = self.pauses_until_asked(at);
            let Some((neighbour, link)) = self.links.get_mut(at) else { break };
            if !link.is_incomplete() {
                (link.asks, link.ask_at) = (0, None);
            }
            let is_due = link.ask_at.is_some_and(|at| at <= now);
            if is_due {
                ask(*neighbour, link, context);
                let pauses = (others_pauses * pauses_until_again(link)) << link.asks;
                let pause = context.random().around(pause * pauses.min(PAUSES_MAX));
                link.asks = (link.asks + 1).min(DOUBLINGS_MAX);
                link.ask_at = Some(now + pause);
            }
            next = next.into_iter().chain(link.ask_at).min();
        }
        self.ask_doubted(context);
        if let Some(at) = next {
            self.chase_in(at.since(now), context);
        }
        self.send_wants(context);
        self.pass_searches_on(context);
    }
}

impl Handles<Missing> for Babel {
    fn handle(
        &mut self,
        missing: Missing,
        reception: Reception<'_>,
        context: &mut Context<'_, Self>,
    ) {
        let (by, version) = (reception.from, self.table.version());
        note_heard(&mut self.links, by, context.now());
        if self.link(by).is_none() {
            return;
        }
        self.asked.retain(|asked| asked.by != by);
        let mut gap = Some((missing.after, missing.to));
        let mut rest = reception.body;
        for _ in 0..GAPS_MAX {
            let Some((after, to)) = gap.take() else { break };
            if after < to && self.asked.len() < self.config.neighbours_max {
                self.asked.push(Asked { by, after: after.min(version), to: to.min(version) });
            }
            if let Some((more, after_it)) = decode(rest) {
                (gap, rest) = (Some(more), after_it);
            }
        }
        self.flush(News::Soon, context);
    }
}

impl Hears<NextHopRated> for Babel {
    fn hear(&mut self, rated: NextHopRated, _: &[u8], context: &mut Context<'_, Self>) {
        // Where nothing is watched, nobody says so.
        if !watch::IS_ON {
            return;
        }
        let affected = self.table.set_passes_on(rated.neighbour, rated.passes_on);
        self.select(&affected, context);
    }
}
