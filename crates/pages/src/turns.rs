//! Whose requests are served: each machine, and where a server says whose they are each visitor, has a few calls under way
//! and a few that wait, so that a machine which is slow, a page that is asked for ten thousand times a second, or one
//! visitor's thousand requests take nothing from others.
//!
//! Of a machine's turns a visitor has fewer under way than are free (the dynamic threshold, as for connections in
//! `http-listener`), those who wait are served in turn by visitor, and who finds all places taken has that of the visitor
//! who waits with the most. So one visitor, however greedy, leaves the others at least their part.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

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

/// The requests of one holder.
#[derive(Default)]
struct Holder {
    /// By visitor, as far as there are any.
    visitors: BTreeMap<Visitor, Count>,
    /// Those that wait, the first come first.
    waiting: VecDeque<Waiting>,
    under_way: usize,
    /// How many turns began or were waited for: the time by which visitors are served in turn.
    clock: u64,
}

/// Whose a request is; those of nobody in particular have no bound but the holder's.
type Visitor = Option<String>;

#[derive(Default)]
struct Count {
    under_way: usize,
    waiting: usize,
    /// When a turn of this visitor's last began, or else when it came.
    served: u64,
}

struct Waiting {
    number: u64,
    visitor: Visitor,
    /// Dropped unsent, it tells that there is no turn.
    begin: oneshot::Sender<Turn>,
}

/// A request's turn, over once it is dropped.
pub(crate) struct Turn {
    turns: Turns,
    holder: String,
    visitor: Visitor,
}

/// A request's place among those that wait, given back once it is dropped.
struct Place<'a> {
    turns: &'a Turns,
    holder: &'a str,
    number: u64,
}

impl Turns {
    /// No requests yet, and never more than `limits`.
    pub(crate) fn new(limits: Limits) -> Self {
        Self(Arc::new(Shared { limits, holders: Mutex::default() }))
    }

    /// Waits for a turn of `holder` for `visitor`, `within` at most; `None` if it doesn't come, if too many wait already, or if
    /// another visitor gets its place.
    pub(crate) async fn take(
        &self,
        holder: String,
        visitor: Visitor,
        within: Duration,
    ) -> Option<Turn> {
        let (number, begun) = self.enter(&holder, visitor)?;
        let place = Place { turns: self, holder: &holder, number };
        let turn = tokio::time::timeout(within, begun).await;
        drop(place);
        turn.ok()?.ok()
    }

    /// A place in the queue of `holder`, and where the turn comes.
    fn enter(&self, name: &str, visitor: Visitor) -> Option<(u64, oneshot::Receiver<Turn>)> {
        let Limits { of_one, holders: holders_max, .. } = self.0.limits;
        let mut holders = self.lock();
        if holders.len() >= holders_max && !holders.contains_key(name) {
            return None;
        }
        let holder = holders.entry(name.to_string()).or_default();
        let displaced = match holder.under_way + holder.waiting.len() < of_one {
            true => None,
            false => Some(holder.displace(&visitor)?),
        };
        let (begin, begun) = oneshot::channel();
        let number = holder.wait(visitor, begin);
        let turns = self.serve(name, holder);
        drop(holders);
        // A turn that nobody takes any more ends, which needs the lock again.
        drop((displaced, turns));
        Some((number, begun))
    }

    /// Begins the turns that are due. Returns those that came too late.
    fn serve(&self, name: &str, holder: &mut Holder) -> Vec<Turn> {
        let mut untaken = Vec::new();
        while let Some(Waiting { visitor, begin, .. }) = holder.next(self.0.limits.under_way) {
            let turn = Turn { turns: self.clone(), holder: name.to_string(), visitor };
            untaken.extend(begin.send(turn).err());
        }
        untaken
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Holder>> {
        self.0.holders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes a holder's requests, after which others may have a turn.
    fn change(&self, name: &str, change: impl FnOnce(&mut Holder)) {
        let mut holders = self.lock();
        let Some(holder) = holders.get_mut(name) else { return };
        change(holder);
        let untaken = self.serve(name, holder);
        if holder.under_way == 0 && holder.waiting.is_empty() {
            holders.remove(name);
        }
        drop(holders);
        drop(untaken);
    }
}

impl Holder {
    fn wait(&mut self, visitor: Visitor, begin: oneshot::Sender<Turn>) -> u64 {
        self.clock += 1;
        let number = self.clock;
        let newcomer = Count { served: number, ..Count::default() };
        self.visitors.entry(visitor.clone()).or_insert(newcomer).waiting += 1;
        self.waiting.push_back(Waiting { number, visitor, begin });
        number
    }

    /// The request whose turn it is, if any may have one: of the visitor with the fewest under way, and among these of the one
    /// who was served longest ago.
    fn next(&mut self, under_way_max: usize) -> Option<Waiting> {
        let free = under_way_max.saturating_sub(self.under_way);
        let may = |(visitor, count): &(&Visitor, &Count)| {
            let is_below = visitor.is_none() || count.under_way < free;
            count.waiting > 0 && free > 0 && is_below
        };
        let visitors = self.visitors.iter().filter(may);
        let (visitor, _) = visitors.min_by_key(|(_, count)| (count.under_way, count.served))?;
        let visitor = visitor.clone();
        let at = self.waiting.iter().position(|one| one.visitor == visitor)?;
        let waiting = self.waiting.remove(at)?;
        self.clock += 1;
        self.under_way += 1;
        let count = self.visitors.entry(visitor).or_default();
        (count.under_way, count.served) = (count.under_way + 1, self.clock);
        count.waiting = count.waiting.saturating_sub(1);
        Some(waiting)
    }

    /// Takes the place of the last request of the visitor with the most, if that is more than `visitor` would have.
    fn displace(&mut self, visitor: &Visitor) -> Option<Waiting> {
        let all = |count: &Count| count.under_way + count.waiting;
        let own = self.visitors.get(visitor).map_or(0, all);
        let waiting = self.visitors.iter().filter(|(_, count)| count.waiting > 0);
        let (greedy, count) = waiting.max_by_key(|(_, count)| all(count))?;
        if all(count) <= own + 1 {
            return None;
        }
        let greedy = greedy.clone();
        let at = self.waiting.iter().rposition(|one| one.visitor == greedy)?;
        self.leave(at)
    }

    fn leave(&mut self, at: usize) -> Option<Waiting> {
        let waiting = self.waiting.remove(at)?;
        self.count_down(&waiting.visitor, |count| &mut count.waiting);
        Some(waiting)
    }

    fn count_down(&mut self, visitor: &Visitor, which: impl Fn(&mut Count) -> &mut usize) {
        let Some(count) = self.visitors.get_mut(visitor) else { return };
        *which(count) = which(count).saturating_sub(1);
        if count.under_way + count.waiting == 0 {
            self.visitors.remove(visitor);
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let visitor = self.visitor.take();
        self.turns.change(&self.holder, |holder| {
            holder.under_way = holder.under_way.saturating_sub(1);
            holder.count_down(&visitor, |count| &mut count.under_way);
        });
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let number = self.number;
        self.turns.change(self.holder, |holder| {
            if let Some(at) = holder.waiting.iter().position(|one| one.number == number) {
                // Nobody listens at its other end any more.
                drop(holder.leave(at));
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const AT_ONCE: Duration = Duration::ZERO;

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap()
            .block_on(future)
    }

    fn visitor(name: &str) -> Visitor {
        Some(name.to_string())
    }

    #[test]
    fn holder_whose_turns_are_taken_takes_none_of_another_s() {
        let (turns, slow, other) =
            (Turns::new(OF_MACHINES), || "slow".to_string(), || "other".to_string());
        block_on(async {
            let mut held = Vec::new();
            for _ in 0..OF_MACHINES.under_way {
                held.push(turns.take(slow(), None, AT_ONCE).await.unwrap());
            }
            assert!(turns.take(slow(), None, AT_ONCE).await.is_none());
            assert!(turns.take(other(), None, AT_ONCE).await.is_some());
            held.pop();
            assert!(turns.take(slow(), None, AT_ONCE).await.is_some());
        });
        assert!(turns.lock().is_empty());
    }

    #[test]
    fn requests_of_a_holder_and_holders_are_bounded() {
        for limits in [OF_MACHINES, OF_VISITORS, OF_STREAMS] {
            let turns = Turns::new(limits);
            let of_one: Vec<_> =
                (0..limits.of_one).map(|_| turns.enter("a", visitor("v")).unwrap()).collect();
            assert!(turns.enter("a", visitor("v")).is_none());
            let others: Vec<_> =
                (1..limits.holders).map(|n| turns.enter(&format!("b{n}"), None).unwrap()).collect();
            assert!(turns.enter("c", None).is_none() && turns.enter("b1", None).is_some());
            drop((of_one, others));
        }
    }

    // C4-1: one host asks for a page without pause.
    #[test]
    fn visitor_who_asks_for_all_leaves_turns_and_places_to_each_other_one() {
        let turns = Turns::new(OF_MACHINES);
        let ask = |name: &str| turns.enter("page", visitor(name));
        let mut greedy: Vec<_> = (0..100).filter_map(|_| ask("greedy")).collect();
        let begun = |all: &mut Vec<(u64, oneshot::Receiver<Turn>)>| -> Vec<Turn> {
            all.iter_mut().filter_map(|(_, turn)| turn.try_recv().ok()).collect()
        };
        let held = begun(&mut greedy);
        assert_eq!((greedy.len(), held.len()), (OF_MACHINES.of_one, OF_MACHINES.under_way / 2));
        let mut others: Vec<_> = (0..10).map(|n| ask(&format!("host{n}")).unwrap()).collect();
        let first = begun(&mut others);
        assert_eq!(first.len(), 2, "the turns that the greedy one left");
        // The others' turns come before another one of whoever was served already.
        drop(first);
        let second = begun(&mut others);
        assert_eq!(second.len(), 2);
        drop(held);
        assert!(!begun(&mut others).is_empty(), "a turn in two at least");
    }

    proptest! {
        /// Whatever one visitor does, another who asks has a turn after at most as many ends as there are visitors before it.
        #[test]
        fn any_one_visitor_leaves_the_others_their_part(
            steps in proptest::collection::vec((0..6_u8, any::<bool>()), 1..200),
            others in 1..=OF_MACHINES.of_one - OF_MACHINES.under_way / 2,
        ) {
            let turns = Turns::new(OF_MACHINES);
            let mut greedy = Vec::new();
            let mut held: VecDeque<Turn> = VecDeque::new();
            for (kind, ends) in steps {
                greedy.extend((0..=kind * 8).filter_map(|_| turns.enter("page", visitor("greedy"))));
                held.extend(greedy.iter_mut().filter_map(|(_, turn)| turn.try_recv().ok()));
                prop_assert!(held.len() < OF_MACHINES.under_way);
                if ends {
                    held.pop_front();
                }
            }
            // The greedy one keeps its turns for ever from here on.
            let mut waiting: VecDeque<_> = (0..others)
                .map(|n| turns.enter("page", visitor(&format!("host{n}"))).expect("a place"))
                .collect();
            let mut served = 0;
            while served < others {
                let at = waiting.iter_mut().enumerate().find_map(|(at, (_, turn))| {
                    turn.try_recv().ok().map(|turn| (at, turn))
                });
                let (at, turn) = at.expect("one of the others is served");
                waiting.remove(at);
                served += 1;
                drop(turn);
                let again = turns.enter("page", visitor("greedy"));
                greedy.extend(again);
            }
            drop((greedy, held, waiting));
        }
    }
}
