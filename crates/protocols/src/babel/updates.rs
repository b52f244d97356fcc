//! Lines of the table: which are told, when they are sent, and what is learnt from others' (RFC 8966 §3.7).

use alloc::vec::Vec;
use core::time::Duration;

use tenure_mesh::{Context, Expires, Handles, NodeId, Outgoing, Reception, decode};

use super::link::note_heard;
use super::table::{Entry, News, Place, Selection};
use super::{Babel, Flush, Update};
use crate::forwarding::IN_CROWDS;
use crate::interface::RouteChanged;

/// After lines were broadcast, how long until the next time; it doubles as long as news keeps coming,
/// and starts again once nothing came for four times as long. News that is urgent waits a quarter.
const FLUSH_PAUSE: Duration = Duration::from_millis(50);
const FLUSH_PAUSE_MAX: Duration = Duration::from_millis(300);
/// Each update is lost to some of many neighbours, who ask for it: fewer and longer ones are better. No pause is longer than this.
const FLUSH_PAUSE_DENSE: Duration = Duration::from_secs(3);
const FLUSH_PAUSE_RESTLESS: Duration = Duration::from_millis(1500);
/// After urgent news a hello comes within this: who missed it sees so by the version.
const CONFIRMED_WITHIN: Duration = Duration::from_millis(100);
/// It comes no sooner than that after the last, however urgent news follow each other.
const CONFIRMED_PAUSE: Duration = Duration::from_millis(300);
/// Frames of lines sent one after the other; more wait a moment.
const UPDATES_AT_ONCE: usize = 4;
/// Lines beyond so many bytes at a time are followed by so long a pause for each byte, however urgent
/// more of them are: all that share the air leave room in it for hellos, or links that are lost for want
/// of them are more news.
const BYTES_AT_ONCE: usize = 512;
const PAUSE_PER_BYTE: Duration = Duration::from_micros(250);
/// The longest encoding of a line.
const ENTRY_BYTES_MAX: usize = NodeId::BYTES + 5 + 5 + 3;

impl Babel {
    /// Selects anew, and says what came of it.
    pub(super) fn select(&mut self, places: &[Place], context: &mut Context<'_, Self>) {
        let mut urgency = News::None;
        for place in places {
            urgency = urgency.max(self.select_one(*place, context));
        }
        self.flush(urgency, context);
    }

    fn select_one(&mut self, place: Place, context: &mut Context<'_, Self>) -> News {
        let selection = self.table.select(place);
        let Selection { destination, route, is_changed, mut news, wanted, is_blocked } = selection;
        if is_changed {
            let next_hop = route.map(|(neighbour, _)| neighbour);
            context.tell(&RouteChanged { destination, next_hop }, &[]);
        }
        if let Some((_, distance)) = route
            && self.wants.get(&destination).is_some_and(|wanted| distance.seqno >= wanted.seqno)
        {
            self.wants.remove(&destination);
            // Where ways are searched for, those who asked are answered, and nobody else.
            let is_restless = self.unrest.is_restless(context.now());
            news = if is_restless { news.max(News::Later) } else { News::AtOnce };
        }
        if news > News::None {
            self.table.tell(place, context.now());
        }
        if let Some(seqno) = wanted {
            self.want(destination, seqno, route.is_none() || is_blocked, context);
        }
        news
    }

    /// Writes down a line that came by itself, and says what came of it.
    pub(super) fn learn_line(
        &mut self,
        from: NodeId,
        entry: Entry,
        context: &mut Context<'_, Self>,
    ) {
        let urgency = self.learn(from, entry, context);
        self.flush(urgency, context);
    }

    /// Writes down a line; returns how much neighbours need to hear of what came of it.
    fn learn(&mut self, from: NodeId, entry: Entry, context: &mut Context<'_, Self>) -> News {
        let affected = self.table.learn(from, entry, context.now());
        if entry.destination == context.node() {
            let is_invented = self.table.outbid(entry.distance.seqno);
            return if is_invented { News::AtOnce } else { News::None };
        }
        affected.map_or(News::None, |place| self.select_one(place, context))
    }

    /// Believes destinations anew of which only what can't follow was heard for a while.
    pub(super) fn believe_anew(&mut self, context: &mut Context<'_, Self>) {
        while let Some((destination, place)) = self.table.believe_anew(context.now()) {
            self.wants.remove(&destination);
            self.select(&[place], context);
        }
    }

    /// Lets what was told be sent, the sooner the more urgent.
    pub(super) fn flush(&mut self, urgency: News, context: &mut Context<'_, Self>) {
        let is_restless = self.unrest.is_restless(context.now());
        let (least, within) = match urgency {
            News::None => return,
            News::Later if is_restless => (2000, 1000),
            News::Soon if is_restless => (500, 500),
            News::AtOnce if is_restless => (200, 200),
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

    /// Sends what is new to everybody; gives how many bytes that were.
    fn send_news(&mut self, context: &mut Context<'_, Self>) -> usize {
        let mut sent_bytes = 0;
        for _ in 0..UPDATES_AT_ONCE {
            let (after, last) = (self.flushed, self.table.version());
            if after >= last {
                break;
            }
            let (body, until) = self.lines(after, last, context);
            let update = Update { boot: self.boot, after, to: until };
            context.transmit(&update, Outgoing { body: &body, ..Outgoing::default() });
            sent_bytes += body.len();
            self.flushed = until;
        }
        sent_bytes
    }

    /// The lines told after one version and up to another, as many as fit into a frame; and the version
    /// up to which they are.
    pub(super) fn lines(
        &self,
        after: u32,
        last: u32,
        context: &Context<'_, Self>,
    ) -> (Vec<u8>, u32) {
        let room = context.payload_bytes_max().saturating_sub(24);
        let (mut body, mut until) = (Vec::new(), after);
        for (version, entry) in self.table.told_between(after, last) {
            if body.len() + ENTRY_BYTES_MAX > room {
                return (body, until);
            }
            // Serialising a few numbers into memory doesn't fail.
            body = postcard::to_extend(&entry, body).unwrap_or_default();
            until = version;
        }
        (body, last.min(self.table.version()))
    }
}

impl Expires<Flush> for Babel {
    fn expire(&mut self, _: Flush, context: &mut Context<'_, Self>) {
        self.flush_at = None;
        let now = context.now();
        let is_calm = now.since(self.flushed_at) > self.flush_pause * 4;
        let is_restless = self.unrest.is_restless(now);
        let longest = match is_restless {
            true => self.shared(FLUSH_PAUSE_RESTLESS),
            false if !IN_CROWDS => self.shared(FLUSH_PAUSE_MAX),
            false => self.shared(self.shared(FLUSH_PAUSE_MAX)).min(FLUSH_PAUSE_DENSE),
        };
        let longer = (self.flush_pause * 2).min(longest);
        self.flush_pause = if is_calm { FLUSH_PAUSE } else { longer };
        self.flushed_at = now;
        let sent_bytes = self.send_repairs(context) + self.send_news(context);
        let sent_bytes = sent_bytes.saturating_sub(BYTES_AT_ONCE);
        self.silent_until = now + self.shared(PAUSE_PER_BYTE) * sent_bytes as u32;
        if self.flushed < self.table.version() || !self.asked.is_empty() {
            self.flush(News::Soon, context);
        }
        let news = core::mem::replace(&mut self.flush_news, News::None);
        if news == News::AtOnce && !is_restless {
            let at = now + context.random().around(CONFIRMED_WITHIN * 4 / 5);
            let said_at = self.greeted_at.filter(|_| IN_CROWDS);
            let at = said_at.map_or(at, |said_at| at.max(said_at + CONFIRMED_PAUSE));
            if at < self.beat_at {
                self.beat_in(at.since(now), context);
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
        note_heard(&mut self.links, reception.from, now);
        let Some(link) = self.link(reception.from) else { return };
        if link.boot != update.boot {
            return;
        }
        if update.to <= link.known {
            return self.renew_cost(reception.from, context);
        }
        let known = link.known;
        link.learn(update.after, update.to);
        if link.known > known {
            self.missing_came(reception.from, now);
        }
        let mut lines = reception.body;
        let mut urgency = News::None;
        while let Some((entry, rest)) = decode::<Entry>(lines) {
            lines = rest;
            urgency = urgency.max(self.learn(reception.from, entry, context));
        }
        self.flush(urgency, context);
        self.renew_cost(reception.from, context);
        self.chase(reception.from, context);
    }
}
