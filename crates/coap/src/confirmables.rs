//! Messages of the server's own that wait for an acknowledgement, and are sent again until it comes (RFC 7252 §4.2).

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tenure_hal::Instant;

use crate::hosts::host_of;

/// How long the first wait for an acknowledgement is, before chance makes it up to half as long again (ACK_TIMEOUT and
/// ACK_RANDOM_FACTOR, RFC 7252 §4.8).
const ACK_TIMEOUT: Duration = Duration::from_secs(2);
/// How often a message is sent again (MAX_RETRANSMIT).
pub(crate) const MAX_RETRANSMIT: u8 = 4;

/// The content of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum About {
    /// The answer to a request.
    Answer,
    /// A notification for this observer.
    Notification(u64),
}

/// A message that is under way.
struct Confirmable {
    peer: SocketAddr,
    id: u16,
    bytes: Vec<u8>,
    about: About,
    /// When it is sent again, or given up.
    at: Instant,
    /// The wait until then.
    wait: Duration,
    /// How often it is sent again yet.
    left: u8,
}

/// All that are under way.
#[derive(Default)]
pub(crate) struct Confirmables(Vec<Confirmable>);

/// The fate of a message whose time has come.
pub(crate) enum Due {
    /// It is to be sent again.
    Again(SocketAddr, Vec<u8>),
    /// Nobody acknowledges it.
    GivenUp(About),
}

impl Confirmables {
    /// Takes note of a message that is sent now and `again` times more; `chance` makes its waits longer.
    pub(crate) fn sent(
        &mut self,
        now: Instant,
        (peer, id): (SocketAddr, u16),
        bytes: Vec<u8>,
        about: About,
        (again, chance): (u8, u16),
    ) {
        let wait = ACK_TIMEOUT + (ACK_TIMEOUT / 2 * u32::from(chance)) / u32::from(u16::MAX);
        self.0.push(Confirmable { peer, id, bytes, about, at: now + wait, wait, left: again });
    }

    /// Ends a message that its receiver has acknowledged or reset; returns what it said.
    pub(crate) fn end(&mut self, peer: SocketAddr, id: u16) -> Option<About> {
        let at = self.0.iter().position(|one| one.peer == peer && one.id == id)?;
        Some(self.0.swap_remove(at).about)
    }

    /// The next message whose time has come.
    pub(crate) fn due(&mut self, now: Instant) -> Option<Due> {
        let at = self.0.iter().position(|one| one.at <= now)?;
        let one = &mut self.0[at];
        if one.left == 0 {
            return Some(Due::GivenUp(self.0.swap_remove(at).about));
        }
        one.left -= 1;
        one.wait *= 2;
        one.at = now + one.wait;
        Some(Due::Again(one.peer, one.bytes.clone()))
    }

    /// When the next message's time has come.
    pub(crate) fn due_at(&self) -> Option<Instant> {
        self.0.iter().map(|one| one.at).min()
    }

    /// Whether something is under way to a peer: notifications wait for one another (NSTART, RFC 7641 §4.5.1).
    pub(crate) fn is_under_way_to(&self, peer: SocketAddr) -> bool {
        self.0.iter().any(|one| one.peer == peer)
    }

    /// How many answers a host hasn't acknowledged yet.
    pub(crate) fn answers_to(&self, host: IpAddr) -> usize {
        self.answers().filter(|one| host_of(one.peer.ip()) == host).count()
    }

    /// How many answers there are in all.
    pub(crate) fn all_answers(&self) -> usize {
        self.answers().count()
    }

    /// How many messages there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Forgets the notification that is under way to an observer.
    pub(crate) fn forget(&mut self, observer: u64) {
        self.0.retain(|one| one.about != About::Notification(observer));
    }

    fn answers(&self) -> impl Iterator<Item = &Confirmable> {
        self.0.iter().filter(|one| one.about == About::Answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_is_sent_again_after_waits_that_double_until_it_is_acknowledged_or_given_up() {
        let peer: SocketAddr = ([192, 0, 2, 1], 1).into();
        let mut confirmables = Confirmables::default();
        for (chance, first_ms) in [(0, 2000), (u16::MAX, 3000)] {
            let mut now = Instant::BOOT;
            confirmables.sent(now, (peer, 7), vec![1], About::Answer, (MAX_RETRANSMIT, chance));
            for again in 0..=MAX_RETRANSMIT {
                assert!(confirmables.is_under_way_to(peer) && confirmables.due(now).is_none());
                let at = confirmables.due_at().unwrap();
                assert_eq!(at.since(now), Duration::from_millis(first_ms << again));
                now = at;
                match confirmables.due(now).unwrap() {
                    Due::Again(to, bytes) => assert_eq!((to, bytes), (peer, vec![1])),
                    Due::GivenUp(about) => {
                        assert_eq!((about, again), (About::Answer, MAX_RETRANSMIT));
                    }
                }
            }
            assert!(!confirmables.is_under_way_to(peer));
        }
        let about = About::Notification(3);
        confirmables.sent(Instant::BOOT, (peer, 8), vec![2], about, (MAX_RETRANSMIT, 0));
        assert_eq!(confirmables.end(([192, 0, 2, 2], 1).into(), 8), None);
        assert_eq!(confirmables.end(peer, 7), None);
        assert_eq!(confirmables.end(peer, 8), Some(about));
        assert_eq!(confirmables.end(peer, 8), None);
    }
}
