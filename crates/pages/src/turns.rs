//! Whose requests are served: each machine, and where a server says whose they are each visitor, has a few calls under way
//! and a few that wait, so that a machine which is slow, a page that is asked for ten thousand times a second, or one
//! visitor's thousand requests take nothing from others.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many requests there may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The most of one holder under way; others wait.
    under_way: usize,
    /// The most of one holder, those under way among them.
    of_one: usize,
    /// The most holders with requests.
    holders: usize,
}

/// Of machines. One serves a request at a time; the others under way wait in its queue.
pub(crate) const OF_MACHINES: Limits = Limits { under_way: 4, of_one: 32, holders: 256 };
/// Of visitors. A browser has six connections to a host.
pub(crate) const OF_VISITORS: Limits = Limits { under_way: 4, of_one: 16, holders: 1024 };

/// Of streams that are open, by machine. Who finds no place gets the events in answers that end.
pub(crate) const OF_STREAMS: Limits = Limits { under_way: 8, of_one: 8, holders: 16 };

/// The requests of each holder: of each machine, or of each visitor.
#[derive(Clone)]
pub(crate) struct Turns(Arc<Shared>);

struct Shared {
    limits: Limits,
    holders: Mutex<BTreeMap<String, Holder>>,
}

struct Holder {
    requests: usize,
    under_way: Arc<Semaphore>,
}

/// A request's turn, over once it is dropped.
pub(crate) struct Turn {
    _place: Place,
    _permit: OwnedSemaphorePermit,
}

struct Place {
    turns: Turns,
    holder: String,
}

impl Turns {
    /// No requests yet, and never more than `limits`.
    pub(crate) fn new(limits: Limits) -> Self {
        Self(Arc::new(Shared { limits, holders: Mutex::default() }))
    }

    /// Waits for a turn of `holder`, `within` at most; `None` if it doesn't come, or too many wait already.
    pub(crate) async fn take(&self, holder: String, within: Duration) -> Option<Turn> {
        let (place, under_way) = self.enter(holder)?;
        let permit = tokio::time::timeout(within, under_way.acquire_owned()).await.ok()?.ok()?;
        Some(Turn { _place: place, _permit: permit })
    }

    fn enter(&self, holder: String) -> Option<(Place, Arc<Semaphore>)> {
        let Limits { under_way, of_one, holders: holders_max } = self.0.limits;
        let mut holders = self.0.holders.lock().unwrap_or_else(PoisonError::into_inner);
        if holders.len() >= holders_max && !holders.contains_key(&holder) {
            return None;
        }
        let entry = holders.entry(holder.clone()).or_insert_with(|| Holder {
            requests: 0,
            under_way: Arc::new(Semaphore::new(under_way)),
        });
        if entry.requests >= of_one {
            return None;
        }
        entry.requests += 1;
        Some((Place { turns: self.clone(), holder }, entry.under_way.clone()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut holders = self.turns.0.holders.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(holder) = holders.get_mut(&self.holder) else { return };
        holder.requests -= 1;
        if holder.requests == 0 {
            holders.remove(&self.holder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT_ONCE: Duration = Duration::ZERO;

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap()
            .block_on(future)
    }

    #[test]
    fn holder_whose_turns_are_taken_takes_none_of_another_s() {
        let (turns, slow, other) =
            (Turns::new(OF_MACHINES), || "slow".to_string(), || "other".to_string());
        block_on(async {
            let mut held = Vec::new();
            for _ in 0..OF_MACHINES.under_way {
                held.push(turns.take(slow(), AT_ONCE).await.unwrap());
            }
            assert!(turns.take(slow(), AT_ONCE).await.is_none());
            assert!(turns.take(other(), AT_ONCE).await.is_some());
            held.pop();
            assert!(turns.take(slow(), AT_ONCE).await.is_some());
        });
        assert!(turns.0.holders.lock().unwrap().is_empty());
    }

    #[test]
    fn requests_of_a_holder_and_holders_are_bounded() {
        for limits in [OF_MACHINES, OF_VISITORS, OF_STREAMS] {
            let turns = Turns::new(limits);
            let of_one: Vec<_> =
                (0..limits.of_one).map(|_| turns.enter("a".into()).unwrap()).collect();
            assert!(turns.enter("a".into()).is_none());
            let others: Vec<_> =
                (1..limits.holders).map(|n| turns.enter(format!("b{n}")).unwrap()).collect();
            assert!(turns.enter("c".into()).is_none() && turns.enter("b1".into()).is_some());
            drop((of_one, others));
            assert!(turns.0.holders.lock().unwrap().is_empty());
        }
    }
}
