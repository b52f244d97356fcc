//! Hellos, and what links are worth (RFC 8966 §3.4).

use alloc::vec::Vec;
use core::time::Duration;

use tenure_mesh::{Context, Expires, Handles, NodeId, Outgoing, Reception};

use super::link::Link;
use super::table::{Distance, Entry, Seqno};
use super::{Babel, Beat, Hello, INFINITE};
use crate::forwarding::IN_CROWDS;
use crate::interface::{LinkChanged, LinkDown, LinkUp};

/// Hellos after boot: the pause grows by two fifths from the first until it is the steady one.
pub(super) const FIRST_PAUSE: Duration = Duration::from_millis(150);
/// Everybody boots at once after a power cut; the first words are spread over this.
pub(super) const FIRST_WITHIN: Duration = Duration::from_millis(40);
/// An extra hello, for somebody new, comes within this, and not sooner than that after the last.
const GREET_WITHIN: Duration = Duration::from_millis(25);
/// Of more neighbours each says hello more rarely, and all together do.
const GREET_PAUSE: Duration = Duration::from_millis(80);
const GREET_PAUSE_RESTLESS: Duration = Duration::from_millis(1000);
/// Every so many hellos say whom this node hears; all do while neighbours are new.
const LIST_EVERY: u16 = 4;
const YOUNG_HELLOS: u16 = 16;
/// A neighbour that can use fewer itself is in need of this one.
const LONELY_LINKS: u8 = 12;
/// The line of a hello for one neighbour.
const HEARD_BYTES: usize = 4;

/// Stands for a node in one of its lives: 24 bits, of which two of a node's neighbours have the same once in
/// 16 million. Then one of them takes the other's share for its own.
fn mark(node: NodeId, boot: u32) -> [u8; HEARD_BYTES - 1] {
    let mixed = (node.number() ^ u64::from(boot) << 17).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let [a, b, c, ..] = mixed.to_be_bytes();
    [a, b, c]
}

impl Babel {
    pub(super) fn beat_in(&mut self, after: Duration, context: &mut Context<'_, Self>) {
        self.beat_at = context.now() + after;
        context.after(after, &Beat);
    }

    /// Lets a hello come soon, for a neighbour that needs it.
    fn greet(&mut self, context: &mut Context<'_, Self>) {
        let now = context.now();
        let is_restless = self.unrest.is_restless(now);
        let pause = match is_restless {
            true => GREET_PAUSE_RESTLESS,
            false if !IN_CROWDS => self.shared(GREET_PAUSE),
            false => self.shared(self.shared(GREET_PAUSE)),
        };
        let ready_at = self.greeted_at.map_or(now, |at| (at + pause).max(now));
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
        let is_new = |link: &Link| link.cost == INFINITE && link.is_new();
        let is_unheard = self.links.iter().any(|(_, link)| is_new(link));
        let is_due = self.sequence.is_multiple_of(LIST_EVERY);
        let lists = self.lists_next || is_young || is_unheard || is_due;
        self.lists_next = false;
        let mut body = Vec::new();
        if lists {
            let room = context.payload_bytes_max().saturating_sub(32) / HEARD_BYTES;
            for (neighbour, link) in self.links.iter().take(room) {
                body.extend_from_slice(&mark(*neighbour, link.boot));
                body.push(link.heard_here());
            }
        }
        let hello = Hello {
            boot: self.boot,
            sequence: self.sequence,
            interval_ms: (pause.as_millis() as u16).max(1),
            // Lines that were told and not yet sent are none that anybody misses.
            version: self.flushed,
            number: self.number_of_boot(),
            digest: (lists && self.flushed == self.table.version())
                .then(|| self.table.told_digest().to_be_bytes()),
            // A leaf has room for few.
            links: if IN_CROWDS { self.links().count() as u8 } else { 0 },
            lists,
        };
        self.sequence = self.sequence.wrapping_add(1);
        context.transmit(&hello, Outgoing { body: &body, ..Outgoing::default() });
    }

    /// The own sequence number, if it is one of this boot: one that outbids a lie may be of a later one, and
    /// stands in the lines alone.
    fn number_of_boot(&self) -> Option<u32> {
        let seqno = self.table.own_seqno();
        (self.config.is_destination && seqno.boot == self.boot).then_some(seqno.number)
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
                self.forget_link(at, context);
                continue;
            }
            let is_outdated = link.is_outdated(now);
            self.renew_cost(neighbour, context);
            if is_outdated && self.unrest.is_restless(now) {
                self.forget_lines(neighbour, context);
            }
            at += 1;
        }
    }

    pub(super) fn renew_cost(&mut self, neighbour: NodeId, context: &mut Context<'_, Self>) {
        let Some(link) = self.link(neighbour) else { return };
        let was_up = link.cost < INFINITE;
        if link.renew_cost() {
            let (cost, quality) = (link.cost, link.quality());
            if was_up != (cost < INFINITE) {
                self.unrest.note(!was_up, self.links.len(), context.now());
            }
            match (was_up, cost < INFINITE) {
                (false, _) => context.tell(&LinkUp { neighbour, quality }, &[]),
                (true, true) => context.tell(&LinkChanged { neighbour, quality }, &[]),
                (true, false) => context.tell(&LinkDown { neighbour }, &[]),
            }
            let affected = self.table.set_cost(neighbour, cost);
            self.select(&affected, context);
        }
    }

    #[inline(never)]
    fn forget_link(&mut self, at: usize, context: &mut Context<'_, Self>) {
        let (neighbour, link) = self.links.remove(at);
        // It made room for another.
        if IN_CROWDS && link.cost < INFINITE {
            context.tell(&LinkDown { neighbour }, &[]);
        }
        self.asked.retain(|asked| asked.by != neighbour);
        let affected = self.table.forget(neighbour);
        self.select(&affected, context);
    }

    /// Whether a neighbour's digest is that of its table as it is known here, if all of it is.
    fn agrees(&self, from: NodeId, hello: &Hello) -> bool {
        let is_known =
            self.place(from).is_some_and(|at| self.links[at].1.knows_up_to(hello.version));
        let learnt = is_known.then(|| self.table.learnt_digest(from)).flatten();
        learnt.zip(hello.digest).is_none_or(|(learnt, told)| learnt.to_be_bytes() == told)
    }

    /// Forgets the lines of a neighbour: some line was never told, or one that was is taken for known and isn't, so
    /// somebody lied. Next hops may form a loop by such a line. All are asked for anew.
    #[inline(never)]
    fn forget_lines(&mut self, from: NodeId, context: &mut Context<'_, Self>) {
        let Some(link) = self.link(from) else { return };
        link.forget_lines();
        let affected = self.table.forget_lines(from);
        self.select(&affected, context);
    }

    /// The neighbour that makes room for another one: one that can't be used, and isn't heard or isn't new. For one that
    /// has few, the one with the worst link that has more.
    fn least_useful(&self, is_for_lonely: bool) -> Option<usize> {
        if !IN_CROWDS {
            let is_idle = |(_, link): &(NodeId, Link)| link.cost == INFINITE && link.is_silent();
            return self.links.iter().position(is_idle);
        }
        let worst = self.links.iter().enumerate().filter(|(_, (_, link))| {
            let is_idle = link.cost == INFINITE && (link.is_silent() || !link.is_new());
            is_idle || is_for_lonely && !link.is_lonely
        });
        worst.max_by_key(|(_, (_, link))| link.cost).map(|(at, _)| at)
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
            // The rest of an earlier life says nothing of this one.
            Ok(at) if self.links[at].1.boot > hello.boot && !self.links[at].1.is_silent() => None,
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
            Err(_) => {
                if self.links.len() >= self.config.neighbours_max {
                    let is_lonely =
                        IN_CROWDS && hello.links < LONELY_LINKS && self.is_among_few(context);
                    let least = self.least_useful(is_lonely)?;
                    self.forget_link(least, context);
                }
                let at = self.links.partition_point(|(known, _)| *known < from);
                self.links.insert(at, (from, fresh));
                self.greet(context);
                Some(at)
            }
        }
    }
}

impl Expires<Beat> for Babel {
    fn expire(&mut self, _: Beat, context: &mut Context<'_, Self>) {
        self.expire_links(context);
        self.believe_anew(context);
        self.say_hello(context);
    }
}

impl Handles<Hello> for Babel {
    fn handle(&mut self, hello: Hello, reception: Reception<'_>, context: &mut Context<'_, Self>) {
        let Some(at) = self.meet(reception.from, &hello, context) else { return };
        let link = &mut self.links[at].1;
        // A neighbour that promises its next hello much later than this node would isn't waited for.
        let longest = self.config.hello_interval * 3 / 2;
        let interval = Duration::from_millis(hello.interval_ms.into()).min(longest);
        link.is_lonely = IN_CROWDS && hello.links < LONELY_LINKS;
        link.hello(hello.sequence, interval, context.now());
        let is_contradicted = link.tells_up_to(hello.version);
        if hello.lists {
            let own = mark(context.node(), self.boot);
            let (heard, _) = reception.body.as_chunks::<HEARD_BYTES>();
            let share =
                heard.iter().find_map(|[mark @ .., share]| (*mark == own).then_some(*share));
            link.heard_there(share.unwrap_or(0));
            if share.is_none() && link.is_new() {
                self.greet(context);
            }
        }
        self.renew_cost(reception.from, context);
        self.retry(reception.from, context);
        if let Some(number) = hello.number {
            let seqno = Seqno { boot: hello.boot, number };
            let entry =
                Entry { destination: reception.from, distance: Distance { seqno, metric: 0 } };
            self.learn_line(reception.from, entry, context);
        }
        if is_contradicted || !self.agrees(reception.from, &hello) {
            self.forget_lines(reception.from, context);
        }
        self.chase(reception.from, context);
    }
}
