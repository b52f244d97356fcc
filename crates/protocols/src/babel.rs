//! Routing by distance vectors that never form a loop: the Babel family (RFC 8966).
//!
//! ```text
//!                 first hello                hello that lists this node
//!   neighbour:  ───────────────▶ heard ──────────────────────────────▶ usable
//!                                  ▲     hellos missed, or a packet not taken and  │
//!                                  │     no sign of life within 300 ms             │
//!                                  └────────────────────────────────────────────────┘
//!                                  │ yet more hellos missed: forgotten
//!
//!                 an offer may be used            the last one that may is lost
//!   destination: ───────────────▶ reachable ────────────────────────────▶ lost ──┐
//!                                     ▲                                          │ retract, ask for
//!                                     └──────────────────────────────────────────┘ a newer seqno
//!                                           an offer with a newer seqno
//! ```
//!
//! From the RFC come the feasibility condition (§3.5.1), sequence numbers and requests for newer ones
//! (§3.8), hello, IHU and the expected transmission count (§3.4, appendix A). Five things differ, and
//! make it no speaker of Babel's own packets:
//! - **Tables are kept equal by version.** A node numbers the lines that it tells; a hello says the
//!   latest number, and a neighbour that misses some asks for them. So nothing is repeated in case it
//!   was lost, where Babel sends its whole table every few seconds (§3.7.1), and what was lost is
//!   there a moment later instead of at the next full update.
//! - **A sequence number begins with the boot** of its destination, and a way leads over one life of
//!   each node, from boot to boot: [`Routed::life`] says which of the next hop's. So who lost its
//!   feasibility distances in a reboot closes no loop, though others still count on what it told before.
//! - **Hellos come in quick succession** after boot, then at their steady pace; and one after each
//!   urgent update, whose version shows to who missed it that it did.
//! - **Pauses grow with the number of neighbours**, with what was sent last and with what is asked for,
//!   and updates become rarer while news doesn't end. Or a dense network, once its air is full, would go
//!   on filling it: lost hellos are lost links, which are news.
//! - **A newer sequence number alone is told to who asks for it**, and not to everybody (§3.7.2): each
//!   request would else cost a message of every node.
//!
//! Because its hellos find neighbours, it also tells the rest of the node what it finds ([`LinkUp`] and
//! so on); discovery needn't run beside it.
//!
//! Invariant: next hops never form a loop, whatever is lost or restarts; [`table`] says why.

mod link;
pub mod table;
#[cfg(test)]
mod tests;
mod wants;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_hal::Instant;
use tenure_mesh::{
    self as mesh, Context, Expires, Handles, Hears, NodeId, Outgoing, Protocol, Question,
    Reception, Serves,
};

use crate::interface::{
    ANY_LIFE, LinkChanged, LinkDoubted, LinkDown, LinkFailing, LinkUp, Route, RouteChanged, Routed,
};
use link::Link;
use table::{Entry, News, Seqno, Table};
use wants::Wanted;

/// The metric of what can't be reached.
pub const INFINITE: u16 = u16::MAX;

/// Hellos after boot: the pause grows by two fifths from the first until it is the steady one.
const FIRST_PAUSE: Duration = Duration::from_millis(150);
/// Everybody boots at once after a power cut; the first words are spread over this.
const FIRST_WITHIN: Duration = Duration::from_millis(40);
/// An extra hello, for somebody new, comes within this, and not sooner than that after the last.
const GREET_WITHIN: Duration = Duration::from_millis(25);
const GREET_PAUSE: Duration = Duration::from_millis(80);
/// Every so many hellos say whom this node hears; all do while neighbours are new.
const LIST_EVERY: u16 = 4;
const YOUNG_HELLOS: u16 = 16;
/// So many neighbours leave the air to each other. Where there are more, pauses grow with their number,
/// so that what all of them say together doesn't.
const NEIGHBOURS_AT_EASE: u32 = 6;
/// After lines were broadcast, how long until the next time; it doubles as long as news keeps coming,
/// and starts again once nothing came for four times as long. News that is urgent waits a quarter.
const FLUSH_PAUSE: Duration = Duration::from_millis(50);
const FLUSH_PAUSE_MAX: Duration = Duration::from_millis(300);
/// After urgent news a hello comes within this: who missed it sees so by the version.
const CONFIRMED_WITHIN: Duration = Duration::from_millis(100);
/// How long lines may be missing before they are asked for; four times that until they are again.
const MISSING_PAUSE: Duration = Duration::from_millis(100);
/// How long a neighbour has for a sign of life.
const DOUBT_PAUSE: Duration = Duration::from_millis(60);
/// Frames of lines sent one after the other; more wait a moment.
const UPDATES_AT_ONCE: usize = 4;
/// Lines beyond so many bytes at a time are followed by so long a pause for each byte, however urgent
/// more of them are: all that share the air leave room in it for hellos, or links that are lost for want
/// of them are more news.
const BYTES_AT_ONCE: usize = 512;
const PAUSE_PER_BYTE: Duration = Duration::from_micros(250);
/// If so many neighbours miss lines, they are told to everybody.
const ASKERS_FOR_ALL: usize = 3;
/// The longest encoding of a line.
const ENTRY_BYTES_MAX: usize = NodeId::BYTES + 5 + 5 + 3;
/// What a hello says of one neighbour.
const HEARD_BYTES: usize = NodeId::BYTES + 2;

/// How a node takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The time between hellos when all is calm.
    pub hello_interval: Duration,
    /// The most neighbours; others aren't heard.
    pub neighbours_max: usize,
    /// The most destinations; others can't be reached.
    pub destinations_max: usize,
    /// Whether others are told how to reach this node.
    pub is_destination: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            hello_interval: Duration::from_secs(2),
            neighbours_max: 48,
            destinations_max: 1024,
            is_destination: true,
        }
    }
}

/// I am here (§4.6.5), and hear these (§4.6.6): for each, six bytes of its id, one of its boot, and
/// the share of its hellos that I hear, of 255.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Hello {
    boot: u32,
    sequence: u16,
    /// Until the next one, in milliseconds.
    interval_ms: u16,
    /// The latest version of my table that was sent to everybody.
    version: u32,
    lists: bool,
}

/// What my table says new from version `after` to version `to` (§4.6.9).
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Update {
    boot: u32,
    after: u32,
    to: u32,
}

/// Tell me what your table says new from version `after` to version `to` (§4.6.10).
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Missing {
    after: u32,
    to: u32,
}

/// I need a way to `destination` by a sequence number as new as that (§4.6.11).
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Want {
    destination: NodeId,
    seqno: Seqno,
    hops: u8,
}

/// Time for a hello.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Beat;

/// Time to tell what is new.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Flush;

/// Time to ask again for what is missing.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Chase;

/// The protocol.
#[derive(Debug)]
pub struct Babel {
    config: Config,
    boot: u32,
    table: Table,
    /// By id.
    links: Vec<(NodeId, Link)>,
    sequence: u16,
    pause: Duration,
    greeted_at: Option<Instant>,
    beat_at: Instant,
    /// Someone's view of the links has changed: say whom I hear.
    lists_next: bool,
    /// Up to where lines were broadcast.
    flushed: u32,
    flush_at: Option<Instant>,
    /// How urgent that is; when it was last, and for how long it isn't again.
    flush_news: News,
    flushed_at: Instant,
    flush_pause: Duration,
    /// No lines are sent before, whatever the news.
    silent_until: Instant,
    /// Who asked for lines after which version, and up to which.
    askers: Vec<(NodeId, Missing)>,
    chase_at: Option<Instant>,
    wants: BTreeMap<NodeId, Wanted>,
}

tenure_mesh::protocol! {
    Babel = 0x20, "babel";
    messages { Hello = 1, Update = 2, Missing = 3, Want = 4 }
    timers { Beat = 1, Flush = 2, Chase = 3 }
    serves { Route }
    hears { LinkDoubted, LinkFailing }
    tells { RouteChanged, LinkUp, LinkChanged, LinkDown }
}

impl Babel {
    /// The router of `node` in the life of number `boot`, which is higher than that of any life
    /// before.
    pub fn new(node: NodeId, boot: u32, config: Config) -> Self {
        let table = Table::new(node, boot, config.is_destination, config.destinations_max);
        Self {
            config,
            boot,
            // Nobody is there yet to be told of this node; who comes asks.
            flushed: table.version(),
            table,
            links: Vec::new(),
            sequence: 0,
            pause: FIRST_PAUSE,
            greeted_at: None,
            beat_at: Instant::BOOT,
            lists_next: true,
            flush_at: None,
            flushed_at: Instant::BOOT,
            flush_pause: Duration::ZERO,
            silent_until: Instant::BOOT,
            flush_news: News::None,
            askers: Vec::new(),
            chase_at: None,
            wants: BTreeMap::new(),
        }
    }

    /// Which life of the node this is, by boots.
    pub fn life(&self) -> u32 {
        self.boot
    }

    /// Its routes.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// The neighbours that can be used, and what their links cost.
    pub fn neighbours(&self) -> impl Iterator<Item = (NodeId, u16)> + '_ {
        let usable = self.links.iter().filter(|(_, link)| link.cost < INFINITE);
        usable.map(|(neighbour, link)| (*neighbour, link.cost))
    }

    /// The next hop on the way to `to`, and in which of its lives.
    pub fn next_hop(&self, to: NodeId) -> Option<(NodeId, u32)> {
        let (neighbour, _) = self.table.route(to)?;
        let at = self.links.binary_search_by_key(&neighbour, |(known, _)| *known).ok()?;
        Some((neighbour, self.links[at].1.boot))
    }

    /// A pause, the longer the more neighbours share the air.
    fn shared(&self, pause: Duration) -> Duration {
        pause * (self.links.len() as u32).max(NEIGHBOURS_AT_EASE) / NEIGHBOURS_AT_EASE
    }

    fn link(&mut self, neighbour: NodeId) -> Option<&mut Link> {
        let at = self.links.binary_search_by_key(&neighbour, |(known, _)| *known).ok()?;
        Some(&mut self.links[at].1)
    }
}

impl Protocol for Babel {
    fn start(&mut self, context: &mut Context<'_, Self>) {
        let first = context.random().below_span(FIRST_WITHIN);
        self.beat_in(first, context);
    }
}

/// Hellos, and what links are worth.
impl Babel {
    fn beat_in(&mut self, after: Duration, context: &mut Context<'_, Self>) {
        self.beat_at = context.now() + after;
        context.after(after, &Beat);
    }

    /// Lets a hello come soon, for a neighbour that needs it.
    fn greet(&mut self, context: &mut Context<'_, Self>) {
        let now = context.now();
        let ready_at = self.greeted_at.map_or(now, |at| (at + self.shared(GREET_PAUSE)).max(now));
        let at = ready_at + context.random().below_span(GREET_WITHIN);
        self.lists_next = true;
        if at < self.beat_at {
            self.beat_in(at.since(now), context);
        }
    }

    fn say_hello(&mut self, context: &mut Context<'_, Self>) {
        let pause = context.random().around(self.pause);
        self.pause = (self.pause * 7 / 5).min(self.config.hello_interval);
        self.greeted_at = Some(context.now());
        self.beat_in(pause, context);
        let is_young = self.sequence < YOUNG_HELLOS;
        let is_unheard = self.links.iter().any(|(_, link)| link.cost == INFINITE);
        let is_due = self.sequence.is_multiple_of(LIST_EVERY);
        let lists = self.lists_next || is_young || is_unheard || is_due;
        self.lists_next = false;
        let mut body = Vec::new();
        if lists {
            let room = context.payload_bytes_max().saturating_sub(32) / HEARD_BYTES;
            for (neighbour, link) in self.links.iter().take(room) {
                body.extend_from_slice(&neighbour.to_bytes());
                body.extend_from_slice(&[link.boot as u8, link.heard_here()]);
            }
        }
        let hello = Hello {
            boot: self.boot,
            sequence: self.sequence,
            interval_ms: (pause.as_millis() as u16).max(1),
            // Lines that were told and not yet sent are none that anybody misses.
            version: self.flushed,
            lists,
        };
        self.sequence = self.sequence.wrapping_add(1);
        context.transmit(&hello, Outgoing { body: &body, ..Outgoing::default() });
    }

    /// Counts hellos that didn't come, and drops who is gone.
    fn expire_links(&mut self, context: &mut Context<'_, Self>) {
        let now = context.now();
        let mut at = 0;
        while at < self.links.len() {
            let (neighbour, link) = &mut self.links[at];
            let neighbour = *neighbour;
            link.expire(now);
            if link.is_gone() {
                self.links.remove(at);
                let affected = self.table.forget(neighbour);
                self.select(&affected, context);
                continue;
            }
            self.renew_cost(neighbour, context);
            at += 1;
        }
    }

    fn renew_cost(&mut self, neighbour: NodeId, context: &mut Context<'_, Self>) {
        let Some(link) = self.link(neighbour) else { return };
        let was_up = link.cost < INFINITE;
        if link.renew_cost() {
            let (cost, quality) = (link.cost, link.quality());
            match (was_up, cost < INFINITE) {
                (false, _) => context.tell(&LinkUp { neighbour, quality }, &[]),
                (true, true) => context.tell(&LinkChanged { neighbour, quality }, &[]),
                (true, false) => context.tell(&LinkDown { neighbour }, &[]),
            }
            let affected = self.table.set_cost(neighbour, cost);
            self.select(&affected, context);
        }
    }

    /// The link to a neighbour, which may be new or have begun a new life.
    fn meet(
        &mut self,
        from: NodeId,
        hello: &Hello,
        context: &mut Context<'_, Self>,
    ) -> Option<usize> {
        let fresh = Link::new(hello.boot, hello.sequence);
        match self.links.binary_search_by_key(&from, |(known, _)| *known) {
            Ok(at) if self.links[at].1.boot == hello.boot => Some(at),
            // What is left of an earlier life says nothing of this one.
            Ok(at) if self.links[at].1.boot > hello.boot => None,
            Ok(at) => {
                let earlier = core::mem::replace(&mut self.links[at].1, fresh);
                if earlier.cost < INFINITE {
                    context.tell(&LinkDown { neighbour: from }, &[]);
                }
                let affected = self.table.forget(from);
                self.select(&affected, context);
                self.greet(context);
                Some(at)
            }
            Err(_) if self.links.len() >= self.config.neighbours_max => None,
            Err(at) => {
                self.links.insert(at, (from, fresh));
                self.greet(context);
                Some(at)
            }
        }
    }

    /// Asks for the lines of a neighbour's table that are missing here, in a moment.
    fn chase(&mut self, context: &mut Context<'_, Self>) {
        let after = context.random().around(self.shared(MISSING_PAUSE));
        self.chase_in(after, context);
    }

    /// Asks a neighbour for a sign of life.
    fn doubt(&mut self, neighbour: NodeId, context: &mut Context<'_, Self>) {
        if let Some(link) = self.link(neighbour)
            && !link.is_doubted()
        {
            link.doubt();
            self.chase_in(Duration::ZERO, context);
        }
    }

    fn chase_in(&mut self, after: Duration, context: &mut Context<'_, Self>) {
        let at = context.now() + after;
        if self.chase_at.is_none_or(|planned| at < planned) {
            self.chase_at = Some(at);
            context.after(after, &Chase);
        }
    }
}

impl Expires<Beat> for Babel {
    fn expire(&mut self, _: Beat, context: &mut Context<'_, Self>) {
        self.expire_links(context);
        self.say_hello(context);
    }
}

impl Handles<Hello> for Babel {
    fn handle(&mut self, hello: Hello, reception: Reception<'_>, context: &mut Context<'_, Self>) {
        let Some(at) = self.meet(reception.from, &hello, context) else { return };
        let link = &mut self.links[at].1;
        let interval = Duration::from_millis(hello.interval_ms.into());
        link.hello(hello.sequence, interval, context.now());
        link.version = link.version.max(hello.version);
        if hello.lists {
            let own = context.node().to_bytes();
            let (heard, _) = reception.body.as_chunks::<HEARD_BYTES>();
            let share = heard.iter().find_map(|[id @ .., boot, share]| {
                (*id == own && *boot == self.boot as u8).then_some(*share)
            });
            self.links[at].1.heard_there(share.unwrap_or(0));
            if share.is_none() {
                self.greet(context);
            }
        }
        self.renew_cost(reception.from, context);
        let Some(link) = self.link(reception.from) else { return };
        if link.cost < INFINITE && link.gap().is_some() {
            self.chase(context);
        }
    }
}

/// What routes are told, and learnt.
impl Babel {
    /// Selects anew, and says what came of it.
    fn select(&mut self, destinations: &[NodeId], context: &mut Context<'_, Self>) {
        let mut urgency = News::None;
        for destination in destinations {
            urgency = urgency.max(self.select_one(*destination, context));
        }
        self.flush(urgency, context);
    }

    fn select_one(&mut self, to: NodeId, context: &mut Context<'_, Self>) -> News {
        let selection = self.table.select(to);
        let route = self.table.route(to);
        if selection.is_changed {
            let next_hop = route.map(|(neighbour, _)| neighbour);
            context.tell(&RouteChanged { destination: to, next_hop }, &[]);
        }
        let mut news = selection.news;
        if let Some((_, distance)) = route
            && self.wants.get(&to).is_some_and(|wanted| distance.seqno >= wanted.seqno)
        {
            self.wants.remove(&to);
            news = News::AtOnce;
        }
        if news > News::None {
            self.table.tell(to, context.now());
        }
        if let Some(seqno) = selection.wanted {
            self.want(to, seqno, route.is_none(), context);
        }
        news
    }

    /// Lets what was told be sent, the sooner the more urgent.
    fn flush(&mut self, urgency: News, context: &mut Context<'_, Self>) {
        let (least, within) = match urgency {
            News::None => return,
            News::Later => (400, 400),
            News::Soon => (15, 30),
            News::AtOnce => (2, 10),
        };
        self.flush_news = self.flush_news.max(urgency);
        let spread = context.random().below_span(Duration::from_millis(within));
        let is_urgent = urgency == News::AtOnce;
        let pause = if is_urgent { self.flush_pause / 4 } else { self.flush_pause };
        let rested_at = self.flushed_at + pause / 2 + context.random().below_span(pause / 2);
        let at = (context.now() + Duration::from_millis(least) + spread).max(rested_at);
        let at = at.max(self.silent_until);
        if self.flush_at.is_none_or(|planned| at < planned) {
            self.flush_at = Some(at);
            context.after(at.since(context.now()), &Flush);
        }
    }

    /// Sends what is new to everybody, and what single neighbours missed to them; to everybody too,
    /// if several missed some.
    ///
    /// Gives how many bytes that were.
    fn send_updates(&mut self, context: &mut Context<'_, Self>) -> usize {
        let mut sent_bytes = 0;
        let askers = core::mem::take(&mut self.askers);
        let gaps = askers.iter().map(|(_, Missing { after, to })| (*after, *to));
        if askers.len() >= ASKERS_FOR_ALL
            && let Some(gap) = gaps.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))
        {
            sent_bytes += self.send_lines(mesh::Destination::All, gap, context).1;
        } else {
            for (neighbour, Missing { after, to }) in askers {
                let receiver = mesh::Destination::One(neighbour);
                sent_bytes += self.send_lines(receiver, (after, to), context).1;
            }
        }
        if self.flushed < self.table.version() {
            let new = (self.flushed, self.table.version());
            let (flushed, bytes) = self.send_lines(mesh::Destination::All, new, context);
            self.flushed = flushed;
            sent_bytes += bytes;
        }
        sent_bytes
    }

    /// Sends the lines told after one version and up to another, as many as fit into a few frames;
    /// gives the version up to which they were sent, and how many bytes they took.
    fn send_lines(
        &self,
        to: mesh::Destination,
        (mut after, last): (u32, u32),
        context: &mut Context<'_, Self>,
    ) -> (u32, usize) {
        let room = context.payload_bytes_max().saturating_sub(24);
        let mut lines = self.table.told_between(after, last).peekable();
        let mut sent_bytes = 0;
        for _ in 0..UPDATES_AT_ONCE {
            let (mut body, mut until) = (Vec::new(), after);
            while body.len() + ENTRY_BYTES_MAX <= room
                && let Some((version, entry)) = lines.next()
            {
                // Serialising a few numbers into memory doesn't fail.
                body = postcard::to_extend(&entry, body).unwrap_or_default();
                until = version;
            }
            if lines.peek().is_none() {
                until = last.min(self.table.version());
            }
            let update = Update { boot: self.boot, after, to: until };
            context.transmit(&update, Outgoing { to, body: &body, ..Outgoing::default() });
            sent_bytes += body.len();
            after = until;
            if lines.peek().is_none() {
                break;
            }
        }
        (after, sent_bytes)
    }
}

impl Expires<Flush> for Babel {
    fn expire(&mut self, _: Flush, context: &mut Context<'_, Self>) {
        self.flush_at = None;
        let now = context.now();
        let is_calm = now.since(self.flushed_at) > self.flush_pause * 4;
        let longer = (self.flush_pause * 2).min(self.shared(FLUSH_PAUSE_MAX));
        self.flush_pause = if is_calm { FLUSH_PAUSE } else { longer };
        self.flushed_at = now;
        let sent_bytes = self.send_updates(context).saturating_sub(BYTES_AT_ONCE);
        self.silent_until = now + self.shared(PAUSE_PER_BYTE) * sent_bytes as u32;
        if self.flushed < self.table.version() {
            self.flush(News::Soon, context);
        }
        if core::mem::replace(&mut self.flush_news, News::None) == News::AtOnce {
            let after = context.random().around(CONFIRMED_WITHIN * 4 / 5);
            if now + after < self.beat_at {
                self.beat_in(after, context);
            }
        }
    }
}

impl Handles<Update> for Babel {
    fn handle(
        &mut self,
        update: Update,
        reception: Reception<'_>,
        context: &mut Context<'_, Self>,
    ) {
        let now = context.now();
        let Some(link) = self.link(reception.from) else { return };
        if link.boot != update.boot {
            return;
        }
        link.trust();
        if update.to <= link.known {
            return self.renew_cost(reception.from, context);
        }
        link.learn(update.after, update.to);
        let is_incomplete = link.gap().is_some() && link.cost < INFINITE;
        let mut lines = reception.body;
        let mut urgency = News::None;
        while let Ok((entry, rest)) = postcard::take_from_bytes::<Entry>(lines) {
            lines = rest;
            if self.table.learn(reception.from, entry, now) {
                urgency = urgency.max(self.select_one(entry.destination, context));
            }
        }
        self.flush(urgency, context);
        if is_incomplete {
            self.chase(context);
        }
    }
}

impl Handles<Missing> for Babel {
    fn handle(
        &mut self,
        missing: Missing,
        reception: Reception<'_>,
        context: &mut Context<'_, Self>,
    ) {
        if let Some(link) = self.link(reception.from) {
            link.trust();
            // Who has all lines is told so: it may ask for a sign of life.
            self.askers.retain(|(asker, _)| *asker != reception.from);
            if self.askers.len() < self.config.neighbours_max {
                self.askers.push((reception.from, missing));
            }
            self.flush(News::Soon, context);
        }
    }
}

impl Expires<Chase> for Babel {
    fn expire(&mut self, _: Chase, context: &mut Context<'_, Self>) {
        self.chase_at = None;
        let (mut doubts, mut incomplete) = (Vec::new(), false);
        for (neighbour, link) in &mut self.links {
            let gap = link.gap().filter(|_| link.cost < INFINITE);
            if link.is_doubted() || gap.is_some() {
                let (after, to) = gap.unwrap_or((link.version, link.version));
                context.send(*neighbour, &Missing { after, to });
            }
            if link.is_doubted() {
                link.doubt();
                doubts.push(*neighbour);
            }
            incomplete |= gap.is_some();
        }
        for neighbour in &doubts {
            self.renew_cost(*neighbour, context);
        }
        if !doubts.is_empty() {
            self.chase_in(DOUBT_PAUSE, context);
        } else if incomplete {
            let after = context.random().around(self.shared(MISSING_PAUSE * 4));
            self.chase_in(after, context);
        }
        self.send_wants(context);
    }
}

impl Hears<LinkFailing> for Babel {
    fn hear(&mut self, failing: LinkFailing, _: &[u8], context: &mut Context<'_, Self>) {
        self.doubt(failing.neighbour, context);
    }
}

impl Hears<LinkDoubted> for Babel {
    fn hear(&mut self, doubted: LinkDoubted, _: &[u8], context: &mut Context<'_, Self>) {
        self.doubt(doubted.neighbour, context);
    }
}

impl Serves<Route> for Babel {
    fn serve(
        &mut self,
        request: Route,
        _: &Question<'_, Route>,
        _: &mut Context<'_, Self>,
    ) -> Option<Routed> {
        let next = self.next_hop(request.destination);
        let next_hop = next.map(|(neighbour, _)| neighbour);
        Some(Routed { next_hop, life: next.map_or(ANY_LIFE, |(_, life)| life) })
    }
}
