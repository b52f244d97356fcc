//! Routing on demand: AODV (RFC 3561).
//!
//! ```text
//!   route asked ──known──▶ answered
//!        │
//!        └──▶ request flooded, ring by ring (§6.4) ──reply──▶ route, answered
//!                    │ no reply in time: wider ring, then again, twice
//!                    └──▶ answered: no way
//!
//!   route ──not used for a while──▶ gone
//!     └──next hop lost──▶ broken: number raised, neighbours told (§6.11)
//! ```
//!
//! Neighbours come from discovery ([`LinkUp`]), so that only links that carry both ways are used
//! (§6.8's blacklist isn't needed) and no hellos of its own are sent (§6.9). A sequence number begins
//! with the boot of its node, which stands for the wait after a reboot (§6.13).
//!
//! Routes to one destination don't form a loop as long as each node keeps what it knew of the
//! destination's number (§6.1). A node that restarts doesn't; the boot in the numbers heals that with
//! the destination's next answer, and forwarding takes no packet twice meanwhile.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_hal::Instant;
use tenure_mesh::{
    Asker, Context, Expires, Handles, Hears, NodeId, Outgoing, Protocol, Question, Reception,
    Serves,
};

use crate::interface::{ANY_LIFE, LinkDown, LinkFailing, LinkUp, Route, RouteChanged, Routed};

#[cfg(test)]
mod tests;

/// §10: the first ring, by how much it grows, and from when on the whole network is asked.
const RING_START: u8 = 2;
const RING_STEP: u8 = 3;
const RING_THRESHOLD: u8 = 8;
/// §10: NET_DIAMETER.
const DIAMETER: u8 = 64;
/// §10: NODE_TRAVERSAL_TIME.
const HOP_TIME: Duration = Duration::from_millis(20);
/// §10: RREQ_RETRIES, after the whole network was asked once.
const RETRIES: u8 = 2;
/// §10: DELETE_PERIOD; a broken route's number is remembered so long.
const REMEMBERED_FOR: Duration = Duration::from_secs(60);
/// A flooded message is passed on within this, so that neighbours don't speak at once.
const JITTER: Duration = Duration::from_millis(8);
/// §10: PATH_DISCOVERY_TIME; so long a request is known as heard.
const HEARD_FOR: Duration = Duration::from_secs(4);

/// How a node takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// How long a route lasts that isn't used (§10: ACTIVE_ROUTE_TIMEOUT).
    pub route_lifetime: Duration,
    /// The most routes that are known.
    pub routes_max: usize,
    /// The most requests that are known as heard.
    pub requests_max: usize,
    /// The most questions that wait for a route.
    pub askers_max: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            route_lifetime: Duration::from_secs(10),
            routes_max: 256,
            requests_max: 128,
            askers_max: 32,
        }
    }
}

/// A question for the way to `destination` (§5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteRequest {
    originator: NodeId,
    originator_sequence: u64,
    request: u32,
    destination: NodeId,
    /// The last number that is known of the destination.
    destination_sequence: Option<u64>,
    hops: u8,
    ring: u8,
}

/// I know it, or am it. (§5.2)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteReply {
    originator: NodeId,
    destination: NodeId,
    destination_sequence: u64,
    hops: u8,
    lifetime_ms: u32,
}

/// A node that can't be reached by me any more, and its number then. (§5.3)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteError {
    destination: NodeId,
    destination_sequence: u64,
}

/// Time to pass on a request that was heard.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct PassOn;

/// Time to look after requests and routes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Tick;

/// The protocol.
#[derive(Debug)]
pub struct Aodv {
    config: Config,
    sequence: u64,
    request: u32,
    neighbours: Vec<NodeId>,
    routes: BTreeMap<NodeId, Known>,
    heard: Vec<(NodeId, u32, Instant)>,
    searches: Vec<Search>,
    askers: Vec<(NodeId, Asker<Route>)>,
    to_pass_on: Vec<RouteRequest>,
    tick_at: Option<Instant>,
}

/// A route, or what is remembered of one.
#[derive(Clone, Copy, Debug)]
struct Known {
    next: NodeId,
    hops: u8,
    /// `None` if it was learnt without one, from a neighbour's frame.
    sequence: Option<u64>,
    is_valid: bool,
    until: Instant,
}

/// A destination that is looked for.
#[derive(Clone, Copy, Debug)]
struct Search {
    destination: NodeId,
    ring: u8,
    tries: u8,
    until: Instant,
}

tenure_mesh::protocol! {
    Aodv = 0x23, "aodv";
    messages { RouteRequest = 1, RouteReply = 2, RouteError = 3 }
    timers { Tick = 1, PassOn = 2 }
    serves { Route }
    hears { LinkUp, LinkDown, LinkFailing }
    tells { RouteChanged }
}

impl Protocol for Aodv {}

impl Aodv {
    /// The router in the life of number `boot`, which is higher than that of any life before.
    pub fn new(boot: u32, config: Config) -> Self {
        Self {
            config,
            sequence: u64::from(boot) << 32,
            request: 0,
            neighbours: Vec::new(),
            routes: BTreeMap::new(),
            heard: Vec::new(),
            searches: Vec::new(),
            askers: Vec::new(),
            to_pass_on: Vec::new(),
            tick_at: None,
        }
    }

    /// The next hop to a node, if a route to it is known.
    pub fn next_hop(&self, to: NodeId) -> Option<NodeId> {
        self.routes.get(&to).filter(|known| known.is_valid).map(|known| known.next)
    }

    /// Writes down a route if it is newer or shorter than what is known (§6.2).
    fn learn(&mut self, to: NodeId, offered: Known, context: &mut Context<'_, Self>) -> bool {
        if to == context.node() {
            return false;
        }
        let known = self.routes.get(&to).copied();
        let is_better = known.is_none_or(|known| match (known.sequence, offered.sequence) {
            (Some(old), Some(new)) => {
                new > old || (new == old && (!known.is_valid || offered.hops < known.hops))
            }
            (None, _) => true,
            (Some(_), None) => false,
        });
        if !is_better {
            return false;
        }
        if known.is_none() && self.routes.len() >= self.config.routes_max {
            self.forget_one();
        }
        self.routes.insert(to, offered);
        if known.filter(|known| known.is_valid).map(|known| known.next) != Some(offered.next) {
            context.tell(&RouteChanged { destination: to, next_hop: Some(offered.next) }, &[]);
        }
        self.found(to, offered.next, context);
        self.tick_by(offered.until, context);
        true
    }

    /// Answers who waited for a way to `to`.
    fn found(&mut self, to: NodeId, next: NodeId, context: &mut Context<'_, Self>) {
        self.searches.retain(|search| search.destination != to);
        self.answer(to, Some(next), context);
    }

    fn answer(&mut self, to: NodeId, next_hop: Option<NodeId>, context: &mut Context<'_, Self>) {
        self.askers.retain(|(destination, asker)| {
            let is_this = *destination == to;
            if is_this {
                context.answer(asker, &Routed { next_hop, life: ANY_LIFE });
            }
            !is_this
        });
    }

    /// Drops the route that ends first, of those that are broken if there are any.
    fn forget_one(&mut self) {
        let first = self.routes.iter().min_by_key(|(_, known)| (known.is_valid, known.until));
        if let Some(to) = first.map(|(to, _)| *to) {
            self.routes.remove(&to);
        }
    }

    /// Floods a request one ring wide (§6.3, §6.4).
    fn search(&mut self, mut search: Search, context: &mut Context<'_, Self>) {
        self.request = self.request.wrapping_add(1);
        // §6.3: before a node originates a request, it raises its own number.
        self.sequence += 1;
        let own = context.node();
        self.note_heard(own, self.request, context.now());
        let request = RouteRequest {
            originator: own,
            originator_sequence: self.sequence,
            request: self.request,
            destination: search.destination,
            destination_sequence: self
                .routes
                .get(&search.destination)
                .and_then(|known| known.sequence),
            hops: 0,
            ring: search.ring,
        };
        context.broadcast(&request);
        // §10: RING_TRAVERSAL_TIME, and for the last tries a binary back-off (§6.3).
        let hops = u32::from(search.ring) + 2;
        search.until = context.now() + HOP_TIME * 2 * hops * (1 << search.tries);
        self.searches.push(search);
        self.tick_by(search.until, context);
    }

    /// Whether a request was not heard before.
    fn note_heard(&mut self, originator: NodeId, request: u32, now: Instant) -> bool {
        self.heard.retain(|(_, _, at)| now.since(*at) < HEARD_FOR);
        if self.heard.iter().any(|(from, number, _)| (*from, *number) == (originator, request)) {
            return false;
        }
        if self.heard.len() >= self.config.requests_max {
            self.heard.remove(0);
        }
        self.heard.push((originator, request, now));
        true
    }

    /// A neighbour is lost: so are the routes by it (§6.11).
    fn lose(&mut self, neighbour: NodeId, context: &mut Context<'_, Self>) {
        self.neighbours.retain(|known| *known != neighbour);
        let by_it =
            self.routes.iter().filter(|(_, known)| known.is_valid && known.next == neighbour);
        let lost: Vec<NodeId> = by_it.map(|(to, _)| *to).collect();
        for to in lost {
            self.break_route(to, None, context);
        }
    }

    /// Marks a route as broken, raises its number, and tells neighbours.
    fn break_route(&mut self, to: NodeId, sequence: Option<u64>, context: &mut Context<'_, Self>) {
        let Some(known) = self.routes.get_mut(&to) else { return };
        known.is_valid = false;
        known.until = context.now() + REMEMBERED_FOR;
        let raised = known.sequence.map_or(0, |number| number + 1);
        let destination_sequence = sequence.unwrap_or(raised).max(raised);
        known.sequence = Some(destination_sequence);
        context.tell(&RouteChanged { destination: to, next_hop: None }, &[]);
        let error = RouteError { destination: to, destination_sequence };
        context.transmit(&error, Outgoing { patience: JITTER, ..Outgoing::default() });
    }

    fn reply(&self, to: NodeId, reply: &RouteReply, context: &mut Context<'_, Self>) {
        if let Some(next) = self.next_hop(to) {
            context.send(next, reply);
        }
    }

    fn tick_by(&mut self, at: Instant, context: &mut Context<'_, Self>) {
        if self.tick_at.is_none_or(|planned| at < planned) {
            self.tick_at = Some(at);
            context.after(at.since(context.now()) + Duration::from_millis(1), &Tick);
        }
    }
}

impl Handles<RouteRequest> for Aodv {
    fn handle(
        &mut self,
        request: RouteRequest,
        reception: Reception<'_>,
        context: &mut Context<'_, Self>,
    ) {
        let (now, from) = (context.now(), reception.from);
        if !self.neighbours.contains(&from)
            || !self.note_heard(request.originator, request.request, now)
        {
            return;
        }
        let hops = request.hops.saturating_add(1);
        let until = now + self.config.route_lifetime;
        let back = Known {
            next: from,
            hops,
            sequence: Some(request.originator_sequence),
            is_valid: true,
            until,
        };
        self.learn(request.originator, back, context);
        let lifetime_ms = self.config.route_lifetime.as_millis() as u32;
        if request.destination == context.node() {
            // §6.6.1: at least as new as the one that was asked for.
            self.sequence = self.sequence.max(request.destination_sequence.unwrap_or(0));
            let reply = RouteReply {
                originator: request.originator,
                destination: request.destination,
                destination_sequence: self.sequence,
                hops: 0,
                lifetime_ms,
            };
            return self.reply(request.originator, &reply, context);
        }
        // §6.6.2: a node that knows a way that is new enough answers for the destination.
        if let Some(known) = self.routes.get(&request.destination).copied()
            && known.is_valid
            && known.next != from
            && let Some(sequence) = known.sequence
            && request.destination_sequence.is_none_or(|wanted| sequence >= wanted)
        {
            let reply = RouteReply {
                originator: request.originator,
                destination: request.destination,
                destination_sequence: sequence,
                hops: known.hops,
                lifetime_ms: known.until.since(now).as_millis() as u32,
            };
            return self.reply(request.originator, &reply, context);
        }
        if hops < request.ring && self.to_pass_on.len() < self.config.requests_max {
            if self.to_pass_on.is_empty() {
                let after = context.random().below_span(JITTER);
                context.after(after, &PassOn);
            }
            self.to_pass_on.push(RouteRequest { hops, ..request });
        }
    }
}

impl Expires<PassOn> for Aodv {
    fn expire(&mut self, _: PassOn, context: &mut Context<'_, Self>) {
        for request in self.to_pass_on.drain(..) {
            context.broadcast(&request);
        }
    }
}

impl Handles<RouteReply> for Aodv {
    fn handle(
        &mut self,
        reply: RouteReply,
        reception: Reception<'_>,
        context: &mut Context<'_, Self>,
    ) {
        if !self.neighbours.contains(&reception.from) {
            return;
        }
        let hops = reply.hops.saturating_add(1);
        let lifetime = Duration::from_millis(reply.lifetime_ms.into());
        let way = Known {
            next: reception.from,
            hops,
            sequence: Some(reply.destination_sequence),
            is_valid: true,
            until: context.now() + lifetime.min(self.config.route_lifetime),
        };
        self.learn(reply.destination, way, context);
        // §6.7: it is passed on if this is the way that is taken.
        let is_taken = self.next_hop(reply.destination) == Some(reception.from);
        if is_taken && reply.originator != context.node() {
            self.reply(reply.originator, &RouteReply { hops, ..reply }, context);
        }
    }
}

impl Handles<RouteError> for Aodv {
    fn handle(
        &mut self,
        error: RouteError,
        reception: Reception<'_>,
        context: &mut Context<'_, Self>,
    ) {
        let is_by_it = self.next_hop(error.destination) == Some(reception.from);
        if is_by_it {
            self.break_route(error.destination, Some(error.destination_sequence), context);
        }
    }
}

impl Expires<Tick> for Aodv {
    fn expire(&mut self, _: Tick, context: &mut Context<'_, Self>) {
        let now = context.now();
        self.tick_at = None;
        let due = self.searches.extract_if(.., |search| search.until <= now).collect::<Vec<_>>();
        for search in due {
            let Search { destination, ring, tries, .. } = search;
            match (ring, tries) {
                (DIAMETER, RETRIES) => self.answer(destination, None, context),
                (DIAMETER, _) => self.search(Search { tries: tries + 1, ..search }, context),
                (ring, _) if ring >= RING_THRESHOLD => {
                    self.search(Search { ring: DIAMETER, ..search }, context);
                }
                (ring, _) => self.search(Search { ring: ring + RING_STEP, ..search }, context),
            }
        }
        let ended = self.routes.iter().filter(|(_, known)| known.until <= now);
        let ended: Vec<(NodeId, bool)> = ended.map(|(to, known)| (*to, known.is_valid)).collect();
        for (to, is_valid) in ended {
            if is_valid {
                // §6.11: an unused route ends silently; its number is remembered for a while.
                if let Some(known) = self.routes.get_mut(&to) {
                    known.is_valid = false;
                    known.until = now + REMEMBERED_FOR;
                }
                context.tell(&RouteChanged { destination: to, next_hop: None }, &[]);
            } else {
                self.routes.remove(&to);
            }
        }
        let searches = self.searches.iter().map(|search| search.until);
        if let Some(at) = searches.chain(self.routes.values().map(|known| known.until)).min() {
            self.tick_by(at, context);
        }
    }
}

impl Hears<LinkUp> for Aodv {
    fn hear(&mut self, up: LinkUp, _: &[u8], context: &mut Context<'_, Self>) {
        if !self.neighbours.contains(&up.neighbour) {
            self.neighbours.push(up.neighbour);
        }
        let until = context.now() + self.config.route_lifetime;
        let way = Known { next: up.neighbour, hops: 1, sequence: None, is_valid: true, until };
        self.learn(up.neighbour, way, context);
    }
}

impl Hears<LinkDown> for Aodv {
    fn hear(&mut self, down: LinkDown, _: &[u8], context: &mut Context<'_, Self>) {
        self.lose(down.neighbour, context);
    }
}

impl Hears<LinkFailing> for Aodv {
    fn hear(&mut self, failing: LinkFailing, _: &[u8], context: &mut Context<'_, Self>) {
        let is_up = self.neighbours.contains(&failing.neighbour);
        self.lose(failing.neighbour, context);
        // Discovery decides whether the link is down; until then the neighbour may be asked again.
        if is_up {
            self.neighbours.push(failing.neighbour);
        }
    }
}

impl Serves<Route> for Aodv {
    fn serve(
        &mut self,
        request: Route,
        question: &Question<'_, Route>,
        context: &mut Context<'_, Self>,
    ) -> Option<Routed> {
        let to = request.destination;
        let until = context.now() + self.config.route_lifetime;
        if let Some(known) = self.routes.get_mut(&to).filter(|known| known.is_valid) {
            // §6.2: a route in use doesn't end, nor does that to its next hop.
            known.until = until;
            let next = known.next;
            if let Some(hop) = self.routes.get_mut(&next).filter(|hop| hop.is_valid) {
                hop.until = until;
            }
            return Some(Routed { next_hop: Some(next), life: ANY_LIFE });
        }
        if self.askers.len() >= self.config.askers_max {
            return Some(Routed { next_hop: None, life: ANY_LIFE });
        }
        self.askers.push((to, question.keep()));
        if !self.searches.iter().any(|search| search.destination == to) {
            let search = Search { destination: to, ring: RING_START, tries: 0, until };
            self.search(search, context);
        }
        None
    }
}
