//! Acknowledgments (RFC 8966 §3.3): whether a link carries what is for one neighbour alone, there and back.
//!
//! Hellos show what a link does with frames for everybody, and there are links that carry those and nothing else, in
//! one direction or both. A frame that arrives shows nothing of the other direction. So a link in doubt is trusted
//! again by an answer to a request of this node's, and by nothing that only came.

use core::time::Duration;

use tenure_mesh::{Context, Handles, Hears, NodeId, Reception};

use super::link::note_heard;
use super::{Acknowledgment, AcknowledgmentRequest, Babel};
use crate::forwarding::IN_CROWDS;
use crate::interface::{LinkDoubted, LinkFailing};

/// How long a neighbour has to acknowledge.
const DOUBT_PAUSE: Duration = Duration::from_millis(60);

impl Babel {
    /// Asks a neighbour that carries no packets for an acknowledgment, now and then.
    pub(super) fn retry(&mut self, neighbour: NodeId, context: &mut Context<'_, Self>) {
        if let Some(link) = self.link(neighbour)
            && link.is_to_be_retried()
        {
            self.request_acknowledgment(neighbour, context);
        }
    }

    /// Asks a neighbour for an acknowledgment; all that it is asked for until it is trusted have one number, so that a
    /// late one counts.
    pub(super) fn request_acknowledgment(
        &mut self,
        neighbour: NodeId,
        context: &mut Context<'_, Self>,
    ) {
        let fresh = self.requests;
        let Some(link) = self.link(neighbour) else { return };
        let number = *link.requested.get_or_insert(fresh);
        if number == fresh {
            self.requests = fresh.wrapping_add(1);
        }
        context.send(neighbour, &AcknowledgmentRequest { number });
    }

    /// Doubts a neighbour, unless it is in doubt already.
    fn doubt(&mut self, neighbour: NodeId, context: &mut Context<'_, Self>) {
        if let Some(link) = self.link(neighbour)
            && !link.is_doubted()
        {
            link.doubt();
            self.doubts_at = context.now();
            self.chase_in(Duration::ZERO, context);
        }
    }

    /// Asks all who are in doubt once more, and gives those up that were asked often enough.
    pub(super) fn ask_doubted(&mut self, context: &mut Context<'_, Self>) {
        let now = context.now();
        if IN_CROWDS && now < self.doubts_at {
            if self.links.iter().any(|(_, link)| link.is_doubted()) {
                self.chase_in(self.doubts_at.since(now), context);
            }
            return;
        }
        let mut is_any = false;
        for at in 0..self.links.len() {
            let (neighbour, link) = &mut self.links[at];
            if !link.is_doubted() {
                continue;
            }
            is_any = true;
            let neighbour = *neighbour;
            link.doubt();
            self.request_acknowledgment(neighbour, context);
            self.renew_cost(neighbour, context);
        }
        if is_any {
            let pause = if IN_CROWDS { self.shared(DOUBT_PAUSE) } else { DOUBT_PAUSE };
            self.doubts_at = now + pause;
            self.chase_in(pause, context);
        }
    }
}

impl Handles<AcknowledgmentRequest> for Babel {
    fn handle(
        &mut self,
        AcknowledgmentRequest { number }: AcknowledgmentRequest,
        reception: Reception<'_>,
        context: &mut Context<'_, Self>,
    ) {
        note_heard(&mut self.links, reception.from, context.now());
        if reception.addressed {
            context.send(reception.from, &Acknowledgment { number });
        }
    }
}

impl Handles<Acknowledgment> for Babel {
    fn handle(
        &mut self,
        Acknowledgment { number }: Acknowledgment,
        reception: Reception<'_>,
        context: &mut Context<'_, Self>,
    ) {
        let Some(link) = self.link(reception.from) else { return };
        if !reception.addressed || link.requested != Some(number) {
            return;
        }
        link.trust();
        self.renew_cost(reception.from, context);
        // A way that was found over the link can be used and told only now.
        self.answer_all_searches(context);
    }
}

impl Hears<LinkFailing> for Babel {
    fn hear(&mut self, failing: LinkFailing, _: &[u8], context: &mut Context<'_, Self>) {
        if !self.unrest.is_restless(context.now()) {
            return self.doubt(failing.neighbour, context);
        }
        // Where links come and go, one that takes no datagram has gone.
        if let Some(link) = self.link(failing.neighbour) {
            link.give_up();
            self.renew_cost(failing.neighbour, context);
        }
    }
}

impl Hears<LinkDoubted> for Babel {
    fn hear(&mut self, doubted: LinkDoubted, _: &[u8], context: &mut Context<'_, Self>) {
        self.doubt(doubted.neighbour, context);
    }
}
