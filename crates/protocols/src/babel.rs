//! Routing by distance vectors that never form a loop: the Babel family (RFC 8966).
//!
//! ```text
//!                 first hello                hello that lists this node
//!   neighbour:  ───────────────▶ heard ──────────────────────────────▶ usable
//!                                  ▲     hellos missed, or a packet not taken and  │
//!                                  │     no acknowledgment within 300 ms           │
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
//! (§3.8), hello, IHU and the expected transmission count (§3.4, appendix A), acknowledgments (§3.3). Five
//! things differ, and make it no speaker of Babel's own packets:
//! - **Tables are kept equal by version.** A node numbers the lines that it tells; a hello says the
//!   latest number, and a neighbour that misses some asks for them. So nothing is repeated in case it
//!   was lost, where Babel sends its whole table every few seconds (§3.7.1), and what was lost is
//!   there a moment later instead of at the next full update. A digest in hellos shows that the tables are equal,
//!   so what somebody invented doesn't stay.
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

mod acknowledgments;
mod demand;
mod hellos;
mod link;
mod log;
mod repairs;
mod search;
pub mod table;
#[cfg(test)]
mod tests;
mod unrest;
mod updates;
mod wants;

use alloc::vec::Vec;
use core::time::Duration;

use litemap::LiteMap;
use serde::{Deserialize, Serialize};
use tenure_hal::Instant;
use tenure_mesh::{Context, NodeId, Protocol, Question, Serves};

use crate::forwarding::IN_CROWDS;
use crate::interface::{
    ANY_LIFE, LinkChanged, LinkDoubted, LinkDown, LinkFailing, LinkUp, NextHopRated, Route,
    RouteChanged, Routed,
};
use demand::Demand;
use hellos::{FIRST_PAUSE, FIRST_WITHIN};
use link::Link;
use repairs::Asked;
use search::Searched;
use table::{Entry, News, Seqno, Table};
use unrest::Unrest;
use wants::Wanted;

/// The metric of what can't be reached.
pub const INFINITE: u16 = u16::MAX;

/// So many neighbours leave the air to each other. Where there are more, pauses grow with their number,
/// so that what all of them say together doesn't.
const NEIGHBOURS_AT_EASE: u32 = 6;
/// So many neighbours pass a request on that all hear.
const PASSED_ON_BY: u64 = 10;

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

/// I am here (§4.6.5), and hear these (§4.6.6): for each, three bytes that stand for it in its present life,
/// and the share of its hellos that I hear, of 255.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Hello {
    /// Which of my lives this is.
    pub boot: u32,
    /// How many hellos I said in it before, modulo 2¹⁶.
    pub sequence: u16,
    /// Until the next one, in milliseconds.
    pub interval_ms: u16,
    /// The latest version of my table that was sent to everybody.
    pub version: u32,
    /// My own sequence number, if I am a destination and it is one of this boot.
    pub number: Option<u32>,
    /// The digest of my table, if that is what was sent up to `version`.
    pub digest: Option<[u8; 2]>,
    /// How many neighbours I can use.
    pub links: u8,
    /// Whether those that I hear follow.
    pub lists: bool,
}

/// The lines of my table from version `after` to version `to` (§4.6.9).
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Update {
    /// Which of my lives this is.
    pub boot: u32,
    /// The version after which the lines were told.
    pub after: u32,
    /// The version up to which they are complete.
    pub to: u32,
}

/// Tell me what your table says new from version `after` to version `to` (§4.6.10), and between the
/// pairs of versions that follow.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Missing {
    after: u32,
    to: u32,
}

/// Answer this with an [`Acknowledgment`] of the same number (§4.6.3).
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct AcknowledgmentRequest {
    number: u16,
}

/// The request of that number came (§4.6.4). It is for one neighbour, as the request was: so it shows that the link
/// carries both ways what is for one alone.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Acknowledgment {
    number: u16,
}

/// I need a way to `destination` by a sequence number as new as that (§4.6.11).
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Want {
    destination: NodeId,
    seqno: Seqno,
    hops: u8,
}

/// Somebody in reach of `hops` hops: tell who asks a way to `destination` by a sequence number as new as that.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Search {
    destination: NodeId,
    seqno: Seqno,
    hops: u8,
}

/// The line that was searched for, for who passed the search on.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Found {
    boot: u32,
    entry: Entry,
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
    /// The neighbours that asked for lines: after which version, and up to which.
    asked: Vec<Asked>,
    chase_at: Option<Instant>,
    /// How many neighbours were asked for acknowledgments, modulo 2¹⁶.
    requests: u16,
    /// When neighbours in doubt are asked again.
    doubts_at: Instant,
    wants: LiteMap<NodeId, Wanted>,
    demand: Demand,
    /// The searches of others, by destination.
    searches: LiteMap<NodeId, Searched>,
    search_budget: search::Budget,
    unrest: Unrest,
}

tenure_mesh::protocol! {
    Babel = 0x20, "babel";
    messages {
        Hello = 1, Update = 2, Missing = 3, Want = 4, Search = 5, Found = 6,
        AcknowledgmentRequest = 7, Acknowledgment = 8
    }
    timers { Beat = 1, Flush = 2, Chase = 3 }
    serves { Route }
    hears { LinkDoubted, LinkFailing, NextHopRated }
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
            // The own line is told with the first that is learnt.
            flushed: 0,
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
            asked: Vec::new(),
            chase_at: None,
            requests: 0,
            doubts_at: Instant::BOOT,
            wants: LiteMap::new(),
            demand: Demand::default(),
            searches: LiteMap::new(),
            search_budget: search::Budget::default(),
            unrest: Unrest::default(),
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

    /// The cost of the link to a neighbour; [`INFINITE`] if it can't be used.
    pub fn cost(&self, neighbour: NodeId) -> u16 {
        self.place(neighbour).map_or(INFINITE, |at| self.links[at].1.cost)
    }

    /// The links that can be used, and how good they are.
    pub fn links(&self) -> impl Iterator<Item = LinkUp> + '_ {
        let usable = self.links.iter().filter(|(_, link)| link.cost < INFINITE);
        usable.map(|(neighbour, link)| LinkUp { neighbour: *neighbour, quality: link.quality() })
    }

    /// The next hop on the way to `to`, and in which of its lives.
    pub fn next_hop(&self, to: NodeId) -> Option<(NodeId, u32)> {
        let (neighbour, _) = self.table.route(to)?;
        Some((neighbour, self.links[self.place(neighbour)?].1.boot))
    }

    /// A pause, the longer the more neighbours share the air.
    fn shared(&self, pause: Duration) -> Duration {
        pause * (self.links.len() as u32).max(NEIGHBOURS_AT_EASE) / NEIGHBOURS_AT_EASE
    }

    /// Whether it is this node's turn to pass on what all neighbours hear, so that as many do on average as suffice
    /// (Haas, Halpern and Li, "Gossip-based ad hoc routing", INFOCOM 2002).
    fn is_among_few(&self, context: &mut Context<'_, Self>) -> bool {
        let links = self.links.len() as u64;
        !IN_CROWDS || context.random().below(links.max(1)) < PASSED_ON_BY
    }

    fn link(&mut self, neighbour: NodeId) -> Option<&mut Link> {
        let at = self.place(neighbour)?;
        Some(&mut self.links[at].1)
    }

    /// Where a neighbour's link stands.
    fn place(&self, neighbour: NodeId) -> Option<usize> {
        self.links.binary_search_by_key(&neighbour, |(known, _)| *known).ok()
    }
}

impl Protocol for Babel {
    fn start(&mut self, context: &mut Context<'_, Self>) {
        self.unrest.begin(context.now());
        let first = context.random().below_span(FIRST_WITHIN);
        self.beat_in(first, context);
    }
}

impl Serves<Route> for Babel {
    fn serve(
        &mut self,
        request: Route,
        _: &Question<'_, Route>,
        context: &mut Context<'_, Self>,
    ) -> Option<Routed> {
        let next = self.next_hop(request.destination);
        // A neighbour that takes nothing now will have answered, or have been given up, in a moment.
        let next = next.filter(|(neighbour, _)| {
            self.place(*neighbour).is_none_or(|at| !self.links[at].1.is_doubted())
        });
        self.need(request.destination, context);
        let next_hop = next.map(|(neighbour, _)| neighbour);
        Some(Routed { next_hop, life: next.map_or(ANY_LIFE, |(_, life)| life) })
    }
}
