//! Visitors' calls in turn: who is let in, who waits, and whose call is made next, so that one host, or somebody who sends in the
//! names of many, leaves a machine's places to others.
//!
//! Of a machine's places a host has fewer than are free (the dynamic threshold of Choudhury and Hahne, 1998); those who wait are
//! served in turn by host. An address that hasn't proved itself may be anybody's, so it has one place while others wait, comes
//! after those that have, and makes room for them.

use std::net::{IpAddr, SocketAddr};

use tenure_hal::Instant;
use tenure_wire::Name;

use super::{Asking, Server, Whom};
use crate::answer::{AGAIN, Answer};
use crate::hosts::host_of;
use crate::message::Code;

/// The most calls of visitors that wait or are under way, with answers that aren't acknowledged yet.
pub(crate) const CALLS_MAX: usize = 64;
/// The most of one host.
pub(crate) const CALLS_OF_HOST_MAX: usize = 8;
/// The most calls of one machine that are under way. It serves one at a time; the others wait in its queue.
pub(crate) const CALLS_OF_MACHINE_MAX: usize = 4;
/// The most calls of one machine, with those that wait here.
pub(crate) const PLACES_OF_MACHINE_MAX: usize = 16;

impl Asking {
    /// The client that waits for the answer, if it is a visitor.
    fn peer(&self) -> Option<SocketAddr> {
        match &self.whom {
            Whom::Visitor(visitor) => Some(visitor.wish.key.peer),
            Whom::Observers(_) => None,
        }
    }

    fn host(&self) -> Option<IpAddr> {
        self.peer().map(|peer| host_of(peer.ip()))
    }

    fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }
}

impl Server {
    /// Makes room for one more call of a machine by a client, or finds that there is.
    ///
    /// # Errors
    /// The answer to the visitor who finds none.
    pub(super) fn admit(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        machine: &Name,
    ) -> Result<(), Answer> {
        let host = host_of(peer.ip());
        let of_host = self.visitors(|asking| asking.host() == Some(host));
        if of_host + self.confirmables.answers_to(host) >= CALLS_OF_HOST_MAX {
            // RFC 8516.
            let text = "you ask for too much at once";
            return Err(Answer::error_for(Code::TooManyRequests, text, AGAIN));
        }
        let of_machine = self.visitors(|asking| asking.machine == *machine);
        if of_machine >= PLACES_OF_MACHINE_MAX && !self.displace(now, peer, Some(machine)) {
            return Err(self.no_room(now, peer));
        }
        let of_all = self.visitors(|_| true) + self.confirmables.all_answers();
        if of_all >= CALLS_MAX && !self.displace(now, peer, None) {
            return Err(self.no_room(now, peer));
        }
        Ok(())
    }

    /// The calls of a machine that are under way.
    pub(super) fn calls_of(&self, machine: &Name) -> usize {
        self.under_way(machine).count()
    }

    /// Begins the calls of those whose turn it is.
    pub(super) fn begin_waiting(&mut self, now: Instant) {
        while let Some(number) = self.next_waiting(now) {
            let Some(asking) = self.asking.get_mut(&number) else { return };
            // The machine has its time from here on.
            asking.begun = now;
            self.calls.extend(asking.waiting.take());
        }
    }

    /// The number of the call that is made next: of the host with the fewest under way, of an address that has proved itself, and
    /// then the one that has waited longest.
    fn next_waiting(&self, now: Instant) -> Option<u32> {
        let due = self.asking.iter().filter_map(|(number, asking)| {
            let (peer, host) = (asking.peer()?, asking.host()?);
            let under_way = self.under_way(&asking.machine);
            let own = under_way.filter(|other| other.host() == Some(host)).count();
            let free = CALLS_OF_MACHINE_MAX.saturating_sub(self.calls_of(&asking.machine));
            let is_proved = self.proofs.is_proved(now, peer);
            let other_waits = self.asking.values().any(|other| {
                other.is_waiting() && other.machine == asking.machine && other.host() != Some(host)
            });
            let may = own < free && (is_proved || own == 0 || !other_waits);
            (asking.is_waiting() && may).then_some((own, !is_proved, *number))
        });
        due.min().map(|(_, _, number)| number)
    }

    /// Takes the place of a visitor who waits, of those for a machine if one is named: of an address that hasn't proved itself,
    /// for one that has; else of the host with the most, if that has more than the newcomer's would. `false` if there is none.
    fn displace(&mut self, now: Instant, newcomer: SocketAddr, machine: Option<&Name>) -> bool {
        let is_within = |asking: &Asking| machine.is_none_or(|machine| asking.machine == *machine);
        let count = |host| self.visitors(|other| is_within(other) && other.host() == Some(host));
        let own = count(host_of(newcomer.ip()));
        let is_proved = self.proofs.is_proved(now, newcomer);
        let waiting = self.asking.iter().filter_map(|(number, asking)| {
            let (peer, host) = (asking.peer()?, asking.host()?);
            let is_weak = is_proved && !self.proofs.is_proved(now, peer);
            let gives_way = host != host_of(newcomer.ip()) && (is_weak || count(host) > own + 1);
            let is_meant = asking.is_waiting() && is_within(asking) && gives_way;
            is_meant.then(|| (is_weak, count(host), *number))
        });
        let Some((_, _, number)) = waiting.max() else { return false };
        let Some(Asking { whom: Whom::Visitor(visitor), .. }) = self.asking.remove(&number) else {
            return false;
        };
        let answer = self.no_room(now, visitor.wish.key.peer);
        self.deliver(now, &visitor, answer, None);
        true
    }

    /// The answer to a client that finds no place: to prove its address, by which it comes before those that don't (RFC 9175
    /// §2.3), or to come again.
    fn no_room(&self, now: Instant, peer: SocketAddr) -> Answer {
        match self.proofs.is_proved(now, peer) {
            true => Answer::error_for(Code::ServiceUnavailable, "too many visitors at once", AGAIN),
            false => {
                Answer::error(Code::Unauthorized, "too many visitors at once: repeat the Echo")
            }
        }
    }

    fn under_way(&self, machine: &Name) -> impl Iterator<Item = &Asking> {
        self.asking
            .values()
            .filter(move |asking| asking.machine == *machine && !asking.is_waiting())
    }

    /// How many visitors there are of a kind.
    fn visitors(&self, is_meant: impl Fn(&Asking) -> bool) -> usize {
        self.asking.values().filter(|asking| asking.peer().is_some() && is_meant(asking)).count()
    }
}
