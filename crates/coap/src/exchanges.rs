//! The requests of the last minutes, so that one that comes again isn't done again (RFC 7252 §4.5).

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tenure_hal::Instant;

use crate::confirmables::MAX_RETRANSMIT;
use crate::hosts::host_of;

/// How long a message's id means that message (EXCHANGE_LIFETIME, RFC 7252 §4.8.2).
pub(crate) const EXCHANGE_LIFETIME: Duration = Duration::from_secs(247);
/// The most requests that are remembered.
pub(crate) const EXCHANGES_MAX: usize = 1024;
/// The most of one host.
pub(crate) const EXCHANGES_OF_HOST_MAX: usize = 256;

/// A request: who sent it, and its message's id.
pub(crate) type Key = (SocketAddr, u16);

/// The state of an exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// There is no answer yet.
    Open,
    /// There is none yet, and the client knows that it will come in a message of its own.
    Acknowledged,
    /// The answer, as it was sent.
    Answered {
        /// Its datagram.
        bytes: Vec<u8>,
        /// How often it is sent again.
        again: u8,
    },
    /// The answer was sent in a message of its own.
    Separate,
}

impl State {
    /// The answer, just sent. A client that doesn't get it sends its request four times more at most (MAX_RETRANSMIT).
    pub(crate) fn answered(bytes: Vec<u8>) -> Self {
        Self::Answered { bytes, again: MAX_RETRANSMIT }
    }

    fn is_over(&self) -> bool {
        matches!(self, Self::Answered { .. } | Self::Separate)
    }
}

/// The requests that are remembered.
#[derive(Default)]
pub(crate) struct Exchanges {
    states: BTreeMap<Key, State>,
    /// In the order in which they came, with the time until which they count.
    order: VecDeque<(Instant, Key)>,
    of_host: BTreeMap<IpAddr, usize>,
}

impl Exchanges {
    /// The state of a request that came before.
    pub(crate) fn state(&self, key: &Key) -> Option<&State> {
        self.states.get(key)
    }

    /// The answer to a request that came again, if it has no more than `room` bytes and wasn't sent too often.
    pub(crate) fn again(&mut self, key: &Key, room: usize) -> Option<Vec<u8>> {
        match self.states.get_mut(key) {
            Some(State::Answered { bytes, again }) if bytes.len() <= room => {
                *again = again.checked_sub(1)?;
                Some(bytes.clone())
            }
            _ => None,
        }
    }

    /// Remembers a request. A host, or all, that have too many lose their oldest that is over: it would be done again.
    pub(crate) fn begin(&mut self, now: Instant, key: Key) {
        self.expire(now);
        let host = host_of(key.0.ip());
        if self.of_host.get(&host).is_some_and(|count| *count >= EXCHANGES_OF_HOST_MAX) {
            self.forget_oldest(|key| host_of(key.0.ip()) == host);
        }
        if self.states.len() >= EXCHANGES_MAX {
            self.forget_oldest(|_| true);
        }
        self.states.insert(key, State::Open);
        self.order.push_back((now + EXCHANGE_LIFETIME, key));
        *self.of_host.entry(host).or_default() += 1;
    }

    /// Notes what has become of a request.
    pub(crate) fn note(&mut self, key: &Key, state: State) {
        if let Some(known) = self.states.get_mut(key) {
            *known = state;
        }
    }

    /// Forgets those whose time is over.
    pub(crate) fn expire(&mut self, now: Instant) {
        while let Some((_, key)) = self.order.pop_front_if(|(until, _)| *until <= now) {
            self.forget(&key);
        }
    }

    /// When the next one is forgotten.
    pub(crate) fn expire_at(&self) -> Option<Instant> {
        self.order.front().map(|(until, _)| *until)
    }

    fn forget_oldest(&mut self, is_meant: impl Fn(&Key) -> bool) {
        let is_over = |key: &Key| self.states.get(key).is_none_or(State::is_over);
        let oldest = self.order.iter().position(|(_, key)| is_meant(key) && is_over(key));
        if let Some((_, key)) = oldest.and_then(|at| self.order.remove(at)) {
            self.forget(&key);
        }
    }

    fn forget(&mut self, key: &Key) {
        self.states.remove(key);
        let host = host_of(key.0.ip());
        if let Some(count) = self.of_host.get_mut(&host) {
            *count -= 1;
            if *count == 0 {
                self.of_host.remove(&host);
            }
        }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        assert_eq!(self.states.len(), self.order.len());
        assert_eq!(self.states.len(), self.of_host.values().sum::<usize>());
        self.states.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(host: u8, id: u16) -> Key {
        (([127, 0, 0, host], 5683).into(), id)
    }

    #[test]
    fn request_is_remembered_for_the_lifetime_of_its_exchange() {
        let (mut exchanges, now) = (Exchanges::default(), Instant::BOOT);
        exchanges.begin(now, key(1, 7));
        exchanges.note(&key(1, 7), State::answered(vec![1]));
        assert_eq!(exchanges.state(&key(1, 7)), Some(&State::answered(vec![1])));
        for _ in 0..MAX_RETRANSMIT {
            assert_eq!(exchanges.again(&key(1, 7), 0), None);
            assert_eq!(exchanges.again(&key(1, 7), 1), Some(vec![1]));
        }
        assert_eq!(exchanges.again(&key(1, 7), 1), None);
        assert_eq!(exchanges.state(&key(2, 7)), None);
        exchanges.expire(now + EXCHANGE_LIFETIME - Duration::from_millis(1));
        assert_eq!(exchanges.len(), 1);
        exchanges.expire(exchanges.expire_at().unwrap());
        assert_eq!((exchanges.len(), exchanges.expire_at()), (0, None));
    }

    #[test]
    fn storm_of_one_host_costs_none_of_another_s_and_a_storm_of_all_the_oldest() {
        let (mut exchanges, now) = (Exchanges::default(), Instant::BOOT);
        let begin = |exchanges: &mut Exchanges, key: Key| {
            exchanges.begin(now, key);
            exchanges.note(&key, State::Separate);
        };
        exchanges.begin(now, key(1, 0));
        begin(&mut exchanges, key(1, 1));
        for id in 0..2000 {
            begin(&mut exchanges, key(2, id));
        }
        assert_eq!(exchanges.len(), 2 + EXCHANGES_OF_HOST_MAX);
        for host in 3..=200 {
            for id in 0..20 {
                begin(&mut exchanges, key(host, id));
            }
        }
        assert_eq!(exchanges.len(), EXCHANGES_MAX);
        // One that is open stays.
        assert!(exchanges.state(&key(1, 0)).is_some() && exchanges.state(&key(1, 1)).is_none());
    }
}
