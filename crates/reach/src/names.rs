//! The addresses of names, by the system's resolver: kept for a while, and asked for once at a time.

use std::collections::BTreeMap;
use std::net::{IpAddr, ToSocketAddrs as _};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tenure_wire::{MachineId, NoResult};

use crate::Failure;

/// How long addresses are kept. The resolver doesn't tell how long they hold; this is the least that zones commonly say.
const KEPT: Duration = Duration::from_secs(60);
/// How long a name that has no address is taken for one without (RFC 2308 §7.1 allows up to five minutes).
const FAILURE_KEPT: Duration = Duration::from_secs(1);
/// The most names that are known.
const NAMES_MAX: usize = 256;
/// The most look-ups under way, each on a thread. A machine has one.
const LOOKUPS_MAX: usize = 64;
/// The most addresses of a name that are kept.
const ADDRESSES_MAX: usize = 16;
/// The stack of a look-up's thread, in bytes.
const STACK_BYTES: usize = 256 * 1024;

/// Looks the addresses of a name up, and says why there are none.
type Resolve = dyn Fn(&str) -> Result<Vec<IpAddr>, String> + Send + Sync;

/// What is known of names.
pub(crate) struct Names {
    resolve: Box<Resolve>,
    known: Mutex<BTreeMap<String, Entry>>,
    /// A look-up has ended.
    ended: Condvar,
}

enum Entry {
    /// A look-up is under way, which this machine began.
    Asked(MachineId),
    /// The resolver's answer holds until then.
    Known { found: Result<Vec<IpAddr>, String>, until: Instant },
}

impl Names {
    /// By the system's resolver.
    pub(crate) fn of_system() -> Self {
        Self::new(|name| {
            let found = (name, 0).to_socket_addrs().map_err(|error| error.to_string())?;
            Ok(found.map(|address| address.ip()).take(ADDRESSES_MAX).collect())
        })
    }

    fn new(resolve: impl Fn(&str) -> Result<Vec<IpAddr>, String> + Send + Sync + 'static) -> Self {
        let (known, ended) = (Mutex::default(), Condvar::new());
        Self { resolve: Box::new(resolve), known, ended }
    }

    /// The addresses of `name`, which `machine` asks for and waits for until `deadline`.
    ///
    /// # Errors
    /// [`Failure`]: there are none, or the resolver doesn't answer in time.
    pub(crate) fn addresses(
        self: &Arc<Self>,
        name: &str,
        machine: MachineId,
        deadline: Instant,
    ) -> Result<Vec<IpAddr>, Failure> {
        let mut known = self.lock();
        loop {
            let now = Instant::now();
            match known.get(name) {
                Some(Entry::Known { found, until }) if now < *until => {
                    return found.clone().map_err(|why| {
                        let words = format!("no address is known for {name}: {why}");
                        Failure::new(NoResult::NotFound, words)
                    });
                }
                Some(Entry::Asked(_)) => {}
                _ if may_ask(&known, machine) => self.ask(&mut known, name, machine)?,
                _ => {}
            }
            let left = deadline.saturating_duration_since(now);
            if left.is_zero() {
                let words = format!("the resolver has no answer for {name} in time");
                return Err(Failure::new(NoResult::Deadline, words));
            }
            let waited = self.ended.wait_timeout(known, left);
            known = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// How many names have addresses that still hold.
    pub(crate) fn known(&self) -> usize {
        let now = Instant::now();
        let holds =
            |entry: &&Entry| matches!(entry, Entry::Known { found: Ok(_), until } if now < *until);
        self.lock().values().filter(holds).count()
    }

    /// Begins a look-up.
    fn ask(
        self: &Arc<Self>,
        known: &mut BTreeMap<String, Entry>,
        name: &str,
        machine: MachineId,
    ) -> Result<(), Failure> {
        let (names, asked) = (Arc::clone(self), name.to_owned());
        let look_up = move || {
            let found = (names.resolve)(&asked);
            let kept = if found.is_ok() { KEPT } else { FAILURE_KEPT };
            let entry = Entry::Known { found, until: Instant::now() + kept };
            names.lock().insert(asked, entry);
            names.ended.notify_all();
        };
        let thread = std::thread::Builder::new().name("names".into()).stack_size(STACK_BYTES);
        thread.spawn(look_up).map_err(|error| {
            Failure::new(NoResult::Busy, format!("the system has no thread: {error}"))
        })?;
        make_room(known);
        known.insert(name.to_owned(), Entry::Asked(machine));
        Ok(())
    }

    /// What is known; a thread that panicked left it whole.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether `machine` may begin a look-up: it has none under way, so that names whose servers are silent keep none from others.
fn may_ask(known: &BTreeMap<String, Entry>, machine: MachineId) -> bool {
    let asked_by = known.values().filter_map(|entry| match entry {
        Entry::Asked(by) => Some(*by),
        Entry::Known { .. } => None,
    });
    let (mut count, mut is_own) = (0, false);
    for by in asked_by {
        count += 1;
        is_own |= by == machine;
    }
    count < LOOKUPS_MAX && !is_own
}

/// Forgets the name whose answer holds least long, if there are too many.
fn make_room(known: &mut BTreeMap<String, Entry>) {
    let until = |entry: &Entry| match entry {
        Entry::Known { until, .. } => Some(*until),
        Entry::Asked(_) => None,
    };
    if known.len() >= NAMES_MAX {
        let answered = known.iter().filter_map(|(name, entry)| Some((until(entry)?, name)));
        if let Some(oldest) = answered.min().map(|(_, name)| name.clone()) {
            known.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::{Receiver, channel};

    use super::*;

    const ADDRESS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

    fn machine(id: u8) -> MachineId {
        MachineId([id; 12])
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_millis(20)
    }

    fn later() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    /// Names that are looked up once `go` says so, and how many were.
    fn gated(go: Receiver<()>) -> (Arc<Names>, Arc<AtomicUsize>) {
        let (asked, go) = (Arc::new(AtomicUsize::new(0)), Mutex::new(go));
        let counted = Arc::clone(&asked);
        let names = Names::new(move |_| {
            counted.fetch_add(1, Ordering::SeqCst);
            let _ = go.lock().unwrap().recv();
            Ok(vec![ADDRESS])
        });
        (Arc::new(names), asked)
    }

    #[test]
    fn answer_is_kept_and_serves_all_who_wait_for_it() {
        let (go, gate) = channel();
        let (names, asked) = gated(gate);
        let wait = |id: u8| {
            let names = Arc::clone(&names);
            std::thread::spawn(move || names.addresses("a.example", machine(id), later()))
        };
        let waiting: Vec<_> = (1..=8).map(wait).collect();
        go.send(()).unwrap();
        for one in waiting {
            assert_eq!(one.join().unwrap(), Ok(vec![ADDRESS]));
        }
        assert_eq!(names.addresses("a.example", machine(9), later()), Ok(vec![ADDRESS]));
        assert_eq!(asked.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn resolver_that_is_silent_takes_one_machines_time_and_no_more_of_its_threads() {
        let (go, gate) = channel();
        let (names, asked) = gated(gate);
        for name in ["a.example", "b.example", "c.example"] {
            let failure = names.addresses(name, machine(1), soon()).unwrap_err();
            assert_eq!(failure.reason, NoResult::Deadline);
        }
        go.send(()).unwrap();
        go.send(()).unwrap();
        assert_eq!(names.addresses("d.example", machine(2), later()), Ok(vec![ADDRESS]));
        assert_eq!(names.addresses("a.example", machine(1), later()), Ok(vec![ADDRESS]));
        assert_eq!(asked.load(Ordering::SeqCst), 2, "a machine has one look-up under way");
    }

    #[test]
    fn name_without_an_address_is_an_error_and_the_names_that_are_known_are_bounded() {
        let names = Arc::new(Names::new(|name| {
            if name.starts_with("no") { Err("none".into()) } else { Ok(vec![ADDRESS]) }
        }));
        let failure = names.addresses("no.example", machine(1), later()).unwrap_err();
        assert_eq!(failure.reason, NoResult::NotFound);
        for number in 0..2 * NAMES_MAX {
            let name = format!("{number}.example");
            assert_eq!(names.addresses(&name, machine(1), later()), Ok(vec![ADDRESS]));
        }
        assert_eq!(names.lock().len(), NAMES_MAX);
    }
}
