//! Whose visitors are served: each machine has a few calls under way and a few that wait, so that one which is slow, or
//! whose page is asked for ten thousand times a second, takes nothing from others.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tenure_wire::Target;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The most calls of one machine under way. A machine serves one at a time; the others wait in its queue.
pub(crate) const UNDER_WAY_MAX: usize = 4;
/// The most requests for one machine, those under way among them.
pub(crate) const OF_MACHINE_MAX: usize = 32;
/// The most machines with requests.
pub(crate) const MACHINES_MAX: usize = 256;

/// The requests of each machine.
#[derive(Clone, Default)]
pub(crate) struct Turns(Arc<Mutex<BTreeMap<String, Machine>>>);

struct Machine {
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
    machine: String,
}

impl Turns {
    /// Waits for a turn, `within` at most; `None` if it doesn't come, or too many wait already.
    pub(crate) async fn take(&self, machine: &Target, within: Duration) -> Option<Turn> {
        let (place, under_way) = self.enter(machine.to_string())?;
        let permit = tokio::time::timeout(within, under_way.acquire_owned()).await.ok()?.ok()?;
        Some(Turn { _place: place, _permit: permit })
    }

    fn enter(&self, machine: String) -> Option<(Place, Arc<Semaphore>)> {
        let mut machines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if machines.len() >= MACHINES_MAX && !machines.contains_key(&machine) {
            return None;
        }
        let entry = machines.entry(machine.clone()).or_insert_with(|| Machine {
            requests: 0,
            under_way: Arc::new(Semaphore::new(UNDER_WAY_MAX)),
        });
        if entry.requests >= OF_MACHINE_MAX {
            return None;
        }
        entry.requests += 1;
        Some((Place { turns: self.clone(), machine }, entry.under_way.clone()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut machines = self.turns.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(machine) = machines.get_mut(&self.machine) else { return };
        machine.requests -= 1;
        if machine.requests == 0 {
            machines.remove(&self.machine);
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
    fn machine_whose_turns_are_taken_takes_none_of_another_s() {
        let (turns, slow, other) =
            (Turns::default(), "slow".parse().unwrap(), "other".parse().unwrap());
        block_on(async {
            let mut held = Vec::new();
            for _ in 0..UNDER_WAY_MAX {
                held.push(turns.take(&slow, AT_ONCE).await.unwrap());
            }
            assert!(turns.take(&slow, AT_ONCE).await.is_none());
            assert!(turns.take(&other, AT_ONCE).await.is_some());
            held.pop();
            assert!(turns.take(&slow, AT_ONCE).await.is_some());
        });
        assert!(turns.0.lock().unwrap().is_empty());
    }

    #[test]
    fn requests_of_a_machine_and_machines_are_bounded() {
        let turns = Turns::default();
        let of_one: Vec<_> =
            (0..OF_MACHINE_MAX).map(|_| turns.enter("a".into()).unwrap()).collect();
        assert!(turns.enter("a".into()).is_none());
        let others: Vec<_> =
            (1..MACHINES_MAX).map(|n| turns.enter(format!("b{n}")).unwrap()).collect();
        assert!(turns.enter("c".into()).is_none() && turns.enter("b1".into()).is_some());
        drop((of_one, others));
        assert!(turns.0.lock().unwrap().is_empty());
    }
}
