//! Tickets of servers (RFC 8446 §4.6.1), for connections that begin without certificates.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tenure_tls::{Client, Keep, PreSharedKey, Suite};
use zeroize::Zeroizing;

use crate::{Dates, Scope};

/// The most tickets that are kept, and the most of one scope. A server sends two for each connection, as a rule.
const TICKETS_MAX: usize = 16;
const TICKETS_OF_SCOPE_MAX: usize = 2;
/// The longest ticket that is kept, in bytes: some servers put the client's certificates into it.
const TICKET_BYTES_MAX: usize = 4096;
/// How long a certificate counts that was judged: then it is to be shown anew.
const JUDGED_FOR: Duration = Duration::from_secs(24 * 60 * 60);
/// How far the device's date may jump meanwhile. Beyond that a certificate was judged by another date than today's.
const DATE_JUMP_MAX: Duration = Duration::from_secs(60 * 60);

/// The tickets of one client. Copies have the same.
#[derive(Clone, Default)]
pub struct Tickets(Arc<Mutex<VecDeque<Kept>>>);

/// When a certificate was judged, and by which date; `None` where none is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Judged {
    at: Instant,
    date: Option<Duration>,
}

/// A ticket.
struct Kept {
    scope: Scope,
    identity: Vec<u8>,
    key: Zeroizing<Vec<u8>>,
    suite: Suite,
    age_add: u32,
    lifetime: Duration,
    received: Instant,
    judged: Judged,
}

/// A ticket for one connection.
pub struct ReadyTicket {
    kept: Kept,
    age: Duration,
}

/// Keeps the tickets of one connection.
pub struct Keeper {
    tickets: Tickets,
    scope: Scope,
    /// If the server shows a certificate.
    now: Judged,
    /// If it takes the ticket.
    before: Option<Judged>,
}

impl Tickets {
    /// For a new connection of `scope`: a ticket, if there is one that is good, and the keeper of those that come. A ticket is
    /// good for one connection (RFC 8446 §C.4).
    pub fn begin(&self, scope: Scope, dates: &Dates) -> (Option<ReadyTicket>, Keeper) {
        let date = dates.date().map(|date| date.since_1970);
        let now = Judged { at: Instant::now(), date };
        let ready = self.take(&scope, now);
        let before = ready.as_ref().map(|ready| ready.kept.judged);
        (ready, Keeper { tickets: self.clone(), scope, now, before })
    }

    fn take(&self, scope: &Scope, now: Judged) -> Option<ReadyTicket> {
        let mut kept = self.lock();
        kept.retain(|ticket| ticket.is_good(now));
        let latest = kept.iter().rposition(|ticket| ticket.scope == *scope)?;
        let kept = kept.remove(latest)?;
        let age = now.at.saturating_duration_since(kept.received);
        Some(ReadyTicket { kept, age })
    }

    /// Keeps a ticket; the oldest of its scope, or of all, makes room.
    fn keep(&self, ticket: Kept) {
        let mut kept = self.lock();
        let of_scope = kept.iter().filter(|one| one.scope == ticket.scope).count();
        let oldest = kept.iter().position(|one| one.scope == ticket.scope);
        if of_scope >= TICKETS_OF_SCOPE_MAX
            && let Some(oldest) = oldest
        {
            kept.remove(oldest);
        } else if kept.len() >= TICKETS_MAX {
            kept.pop_front();
        }
        kept.push_back(ticket);
    }

    /// The tickets; a thread that panicked left them whole.
    fn lock(&self) -> MutexGuard<'_, VecDeque<Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    /// Whether its server still takes it, and what it vouches for still counts.
    fn is_good(&self, now: Judged) -> bool {
        let since = |before: Instant| now.at.saturating_duration_since(before);
        let is_same_date = match (self.judged.date, now.date) {
            (Some(then), Some(date)) => {
                date.abs_diff(then + since(self.judged.at)) <= DATE_JUMP_MAX
            }
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        since(self.received) < self.lifetime && since(self.judged.at) < JUDGED_FOR && is_same_date
    }
}

impl ReadyTicket {
    /// The same as TLS offers it. Early data isn't sent: whoever is on the way could send it again.
    pub fn key(&self) -> PreSharedKey<'_> {
        PreSharedKey {
            identity: &self.kept.identity,
            key: &self.kept.key,
            suite: self.kept.suite,
            is_external: false,
            obfuscated_age: (self.age.as_millis() as u32).wrapping_add(self.kept.age_add),
            early_data_bytes_max: 0,
        }
    }
}

impl Keep for Keeper {
    fn keep(&mut self, client: &Client<'_, '_>) {
        let Some(ticket) = client.ticket() else { return };
        if ticket.identity.len() > TICKET_BYTES_MAX {
            return;
        }
        // On resumption no certificate was shown: the one of before counts on.
        let judged = self.before.filter(|_| client.is_resumed()).unwrap_or(self.now);
        self.tickets.keep(Kept {
            scope: self.scope,
            identity: ticket.identity.to_vec(),
            key: Zeroizing::new(ticket.key.to_vec()),
            suite: ticket.suite,
            age_add: ticket.age_add,
            lifetime: Duration::from_secs(ticket.lifetime_s.into()),
            received: Instant::now(),
            judged,
        });
    }
}

impl fmt::Debug for ReadyTicket {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadyTicket").field("age", &self.age).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Authorities, Judges};

    const HOUR: Duration = Duration::from_secs(60 * 60);
    const DATE: Duration = Duration::from_secs(1_800_000_000);

    fn scope(holder: &str) -> Scope {
        Scope::new(
            holder.as_bytes(),
            "https://a",
            Judges::Authorities(&Authorities::default()),
            &[],
        )
    }

    fn ticket(holder: &str, number: u8, judged: Judged) -> Kept {
        Kept {
            scope: scope(holder),
            identity: vec![number],
            key: vec![number; 32].into(),
            suite: Suite::ChaCha20Poly1305Sha256,
            age_add: 7,
            lifetime: 48 * HOUR,
            received: judged.at,
            judged,
        }
    }

    fn number(ready: Option<ReadyTicket>) -> Option<u8> {
        ready.map(|ready| ready.key().identity[0])
    }

    #[test]
    fn ticket_is_used_once_the_latest_first_and_within_its_scope() {
        let (tickets, now) = (Tickets::default(), Judged { at: Instant::now(), date: Some(DATE) });
        for (holder, of_holder) in [("a", 1), ("a", 2), ("a", 3), ("b", 4)] {
            tickets.keep(ticket(holder, of_holder, now));
        }
        let take = |holder| number(tickets.take(&scope(holder), now));
        assert_eq!([take("a"), take("a"), take("a")], [Some(3), Some(2), None]);
        assert_eq!([take("c"), take("b"), take("b")], [None, Some(4), None]);
    }

    #[test]
    fn tickets_are_bounded_and_the_oldest_makes_room() {
        let (tickets, now) = (Tickets::default(), Judged { at: Instant::now(), date: Some(DATE) });
        for of_holder in 0..=TICKETS_MAX as u8 {
            tickets.keep(ticket(&of_holder.to_string(), of_holder, now));
        }
        assert_eq!(tickets.lock().len(), TICKETS_MAX);
        assert_eq!(number(tickets.take(&scope("0"), now)), None);
        assert_eq!(number(tickets.take(&scope("1"), now)), Some(1));
    }

    #[test]
    fn ticket_is_good_until_its_lifetime_ends_the_certificate_is_a_day_old_or_the_date_jumps() {
        let at = Instant::now();
        let judged = Judged { at, date: Some(DATE) };
        let later = |span: Duration, jump: Duration| Judged {
            at: at + span,
            date: Some(DATE + span + jump),
        };
        let still = Duration::ZERO;
        let good = ticket("a", 1, judged);
        assert!(good.is_good(judged) && good.is_good(later(23 * HOUR, HOUR)));
        assert!(!good.is_good(later(24 * HOUR, still)), "the certificate is judged anew each day");
        // A ticket that came on a connection that was resumed vouches for no more than the one before.
        let resumed = Kept { received: at + 23 * HOUR, ..ticket("a", 1, judged) };
        assert!(resumed.is_good(later(23 * HOUR, still)));
        assert!(!resumed.is_good(later(24 * HOUR, still)));
        let short = Kept { lifetime: HOUR, ..ticket("a", 1, judged) };
        assert!(!short.is_good(later(HOUR, still)));
        assert!(!good.is_good(later(HOUR, 2 * HOUR)), "the owner set the date");
        assert!(!good.is_good(Judged { at, date: Some(DATE - 2 * HOUR) }));
        assert!(!good.is_good(Judged { at, date: None }));
        let undated = Judged { at, date: None };
        assert!(
            ticket("a", 1, undated).is_good(undated) && !ticket("a", 1, undated).is_good(judged)
        );
    }

    #[test]
    fn age_that_the_server_is_told_counts_from_when_the_ticket_came() {
        let at = Instant::now();
        let judged = Judged { at, date: None };
        let kept = ticket("a", 1, judged);
        let ready = ReadyTicket { kept, age: Duration::from_millis(5) };
        assert_eq!(ready.key().obfuscated_age, 12);
        let kept = Kept { age_add: u32::MAX, ..ticket("a", 1, judged) };
        assert_eq!(ReadyTicket { kept, age: Duration::from_millis(5) }.key().obfuscated_age, 4);
    }
}
