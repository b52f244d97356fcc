//! The costs of strangers, tenants and other devices in a span of time, beyond all budgets of machines: signatures to
//! verify, changes of secrets, answers about records.

use core::time::Duration;
use litemap::LiteMap;

use tenure_hal::Instant;

/// Tokens that come back one by one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    tokens: u32,
    /// When the tokens were counted.
    at: Instant,
}

/// A limit for each of many payers, and one for all of them together.
#[derive(Debug)]
pub(crate) struct Toll<K> {
    limit: Limit,
    in_all: Option<(Limit, Bucket)>,
    payers_max: usize,
    by_payer: LiteMap<K, Bucket>,
}

/// So many at once, and one more after each span.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    pub(crate) at_once: u32,
    pub(crate) one_each: Duration,
}

impl Bucket {
    /// A bucket with all its tokens.
    pub(crate) fn full(limit: Limit, now: Instant) -> Self {
        Self { tokens: limit.at_once, at: now }
    }

    /// The bucket that held `tokens` at some time.
    pub(crate) fn of(tokens: u32, at: Instant) -> Self {
        Self { tokens, at }
    }

    /// Its tokens, and when they were counted.
    pub(crate) fn counted(self) -> (u32, Instant) {
        (self.tokens, self.at)
    }

    /// Takes a token, if there is one.
    pub(crate) fn take(&mut self, limit: Limit, now: Instant) {
        let filled = self.at(limit, now);
        *self = Self { tokens: filled.tokens.saturating_sub(1), ..filled };
    }

    /// When there is a token next; `None` if there is one now.
    pub(crate) fn next_at(self, limit: Limit, now: Instant) -> Option<Instant> {
        let wait = self.at(limit, now).wait(limit, now, 1);
        (!wait.is_zero()).then(|| now + wait)
    }

    /// The bucket with what has come back until now.
    fn at(self, limit: Limit, now: Instant) -> Self {
        let span_us = limit.one_each.as_micros().max(1) as u64;
        let back = now.as_micros().saturating_sub(self.at.as_micros()) / span_us;
        let tokens = u64::from(self.tokens).saturating_add(back);
        match u32::try_from(tokens) {
            Ok(tokens) if tokens < limit.at_once => {
                Self { tokens, at: Instant::from_micros(self.at.as_micros() + back * span_us) }
            }
            _ => Self::full(limit, now),
        }
    }

    /// How long until there are so many tokens, of a bucket that was filled until `now`.
    fn wait(self, limit: Limit, now: Instant, tokens: u32) -> Duration {
        match tokens.min(limit.at_once).saturating_sub(self.tokens) {
            0 => Duration::ZERO,
            missing => (self.at + limit.one_each * missing).since(now),
        }
    }
}

impl<K: Ord + Clone> Toll<K> {
    /// A limit for each payer, of whom `payers_max` are remembered, and one for all of them.
    pub(crate) fn new(
        limit: Limit,
        in_all: Option<Limit>,
        payers_max: usize,
        now: Instant,
    ) -> Self {
        let in_all = in_all.map(|limit| (limit, Bucket::full(limit, now)));
        Self { limit, in_all, payers_max, by_payer: LiteMap::new() }
    }

    /// Takes so many tokens of `payer` and of all, or none: one who waits for the second while the first is gone
    /// never has two. More than a full bucket cost a full bucket.
    ///
    /// # Errors
    /// How long it takes until there are so many again; nothing is taken then.
    pub(crate) fn pay(&mut self, now: Instant, payer: &K, tokens: u32) -> Result<(), Duration> {
        let limit = self.limit;
        let known = self.by_payer.get(payer).copied();
        let own = known.unwrap_or(Bucket::full(limit, now)).at(limit, now);
        let all = self.in_all.map(|(limit, bucket)| (limit, bucket.at(limit, now)));
        let wait = all.map_or(Duration::ZERO, |(limit, bucket)| bucket.wait(limit, now, tokens));
        let wait = wait.max(own.wait(limit, now, tokens));
        if !wait.is_zero() {
            return Err(wait);
        }
        let paid =
            |bucket: Bucket| Bucket { tokens: bucket.tokens.saturating_sub(tokens), ..bucket };
        self.in_all = all.map(|(limit, bucket)| (limit, paid(bucket)));
        self.make_room(now, payer);
        self.by_payer.insert(payer.clone(), paid(own));
        Ok(())
    }

    /// How many payers are remembered.
    #[cfg(all(test, feature = "mesh"))]
    pub(crate) fn payers(&self) -> usize {
        self.by_payer.len()
    }

    /// Forgets payers who have all their tokens again, and if those are too few the one who has paid least
    /// of late.
    fn make_room(&mut self, now: Instant, payer: &K) {
        if self.by_payer.len() < self.payers_max || self.by_payer.contains_key(payer) {
            return;
        }
        let limit = self.limit;
        self.by_payer.retain(|_, bucket| bucket.at(limit, now).tokens < limit.at_once);
        while self.by_payer.len() >= self.payers_max {
            let tokens = |bucket: &Bucket| bucket.at(limit, now).tokens;
            let richest = self.by_payer.iter().max_by_key(|(_, bucket)| tokens(bucket));
            // A table for no payers at all remembers none.
            let Some(richest) = richest.map(|(payer, _)| payer.clone()) else { return };
            self.by_payer.remove(&richest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Limit = Limit { at_once: 2, one_each: Duration::from_secs(10) };

    #[test]
    fn who_has_paid_all_tokens_waits_for_the_next_and_others_do_not() {
        let mut toll = Toll::new(LIMIT, None, 4, Instant::BOOT);
        let at = Instant::from_millis;
        assert_eq!(toll.pay(at(0), &1, 1), Ok(()));
        assert_eq!(toll.pay(at(0), &1, 1), Ok(()));
        assert_eq!(toll.pay(at(4_000), &1, 1), Err(Duration::from_secs(6)));
        assert_eq!(toll.pay(at(4_000), &2, 1), Ok(()));
        assert_eq!(toll.pay(at(10_000), &1, 1), Ok(()));
        assert_eq!(toll.pay(at(10_000), &1, 1), Err(Duration::from_secs(10)));
        assert_eq!(toll.pay(at(90_000), &1, 1), Ok(()));
    }

    #[test]
    fn who_needs_two_tokens_and_asks_at_every_moment_gets_both() {
        let mut toll = Toll::new(LIMIT, None, 4, Instant::BOOT);
        let at = Instant::from_millis;
        assert_eq!(toll.pay(at(0), &1, 2), Ok(()));
        assert_eq!(toll.pay(at(4_000), &1, 2), Err(Duration::from_secs(16)));
        let paid: alloc::vec::Vec<u64> =
            (0..60).filter(|second| toll.pay(at(1000 * second), &1, 2).is_ok()).collect();
        assert_eq!(paid, [20, 40]);
        assert_eq!(toll.pay(at(80_000), &1, 3), Ok(()), "more than a full bucket cost a full one");
    }

    #[test]
    fn many_payers_together_get_no_more_than_all_may() {
        let in_all = Limit { at_once: 5, one_each: Duration::from_secs(1) };
        let mut toll = Toll::new(LIMIT, Some(in_all), 3, Instant::BOOT);
        let paid = (0..100).filter(|payer| toll.pay(Instant::BOOT, payer, 1).is_ok()).count();
        assert_eq!(paid, 5);
        assert!(toll.by_payer.len() <= 3, "their table is bounded");
    }
}
