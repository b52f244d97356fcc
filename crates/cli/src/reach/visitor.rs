//! Calls of visitors who nobody knows: many at once, with a key that is no owner's.
//!
//! One thread has the socket and the sessions, another finds out where machines are, and both are asked from any.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tenure_board_linux::{LinuxClock, LinuxEntropy, UdpLink, wait_any};
use tenure_crypto::StaticSecret;
use tenure_hal::{Clock as _, Link as _};
use tenure_pages::{Entry, NoPage, Visits};
use tenure_rpc::{CallHandle, Config, Endpoint, Event, NoResult, OutgoingCall};
use tenure_wire::{Address, MachineId, PublicKey, Target};
use tokio::sync::oneshot;

use crate::reach::client::Route;

mod owner;

pub use owner::OwnersFinder;

/// How long a way to a machine counts without a new look.
const ROUTE_LASTS: Duration = Duration::from_secs(30);
/// How long it counts that there is none: so names that strangers think up keep nobody from being found.
const NONE_LASTS: Duration = Duration::from_secs(5);
/// How long the list of machines with pages counts, so that a crowd at it is one question to the device.
const ENTRIES_LAST: Duration = Duration::from_secs(2);
/// The most ways that are remembered.
const ROUTES_MAX: usize = 1024;
/// The most machines that wait to be found.
const SEARCHES_MAX: usize = 64;
/// How often a call is sent without an answer before the machine counts as unreachable.
const ATTEMPTS: u8 = 10;
/// The longest wait for one answer.
const TIMEOUT_MAX: Duration = Duration::from_secs(2);
/// The pause before a machine that is busy is called again.
const BUSY_AGAIN: Duration = Duration::from_millis(100);
/// How long a call may take until its machine is looked for once more.
const LOOK_AFTER: Duration = Duration::from_secs(2);
/// The longest sleep of the thread that calls.
const NAP: Duration = Duration::from_secs(60);

/// Calls machines for visitors, from any thread.
#[derive(Clone)]
pub struct Visitor {
    calls: Sender<Call>,
    /// Wakes the thread that calls.
    waker: Arc<UnixStream>,
    searches: SyncSender<Search>,
    found: Found,
    key: PublicKey,
}

/// The end of a call.
type Outcome = Result<Option<Vec<u8>>, NoResult>;

struct Call {
    route: Route,
    asked: Asked,
    end: Instant,
    reply: oneshot::Sender<Outcome>,
}

/// The function that a visitor calls, and the parameter.
#[derive(Clone)]
struct Asked {
    function: String,
    parameter: Option<Vec<u8>>,
}

enum Search {
    Machine(Target, oneshot::Sender<Result<Route, NoPage>>),
    Entries(oneshot::Sender<Result<Vec<Entry>, NoPage>>),
}

impl Visitor {
    /// Visitors with the key `secret`, for whom `finder` finds the machines.
    ///
    /// # Errors
    /// There is no socket, no randomness or no thread.
    pub fn new(secret: StaticSecret, finder: impl Finds) -> anyhow::Result<Self> {
        let key = secret.public_key();
        let (waker, woken) = UnixStream::pair().context("can't make a pair of sockets")?;
        waker.set_nonblocking(true)?;
        woken.set_nonblocking(true)?;
        let (calls, coming) = channel();
        let caller = Caller::new(secret, coming, woken)?;
        let (searches, sought) = sync_channel(SEARCHES_MAX);
        let found = Found::default();
        let ways = Searches { finder, found: found.clone() };
        let thread = |name: &str| std::thread::Builder::new().name(name.into());
        thread("visits").spawn(move || caller.run())?;
        thread("ways").spawn(move || ways.run(&sought))?;
        Ok(Self { calls, waker: Arc::new(waker), searches, found, key })
    }

    /// The key that machines see.
    pub fn key(&self) -> PublicKey {
        self.key
    }

    /// The way to a machine, and whether it was known already.
    async fn way(&self, machine: &Target) -> Result<(Route, bool), NoPage> {
        if let Some(known) = self.found.way(machine) {
            return known.map(|route| (route, true));
        }
        let route = self.search(|reply| Search::Machine(machine.clone(), reply)).await?;
        Ok((route, false))
    }

    /// Lets the finder search, and waits for what it finds.
    async fn search<T>(
        &self,
        search: impl FnOnce(oneshot::Sender<Result<T, NoPage>>) -> Search,
    ) -> Result<T, NoPage> {
        let (reply, found) = oneshot::channel();
        let asked = self.searches.try_send(search(reply));
        asked.map_err(|_| NoPage::Failed(NoResult::Busy))?;
        found.await.unwrap_or(Err(NoPage::Away))
    }

    /// Calls `machine` by `route`, again while it is busy. One that takes long is looked for once more: if another key has
    /// its name by then, the one that was called isn't there.
    async fn call_at(
        &self,
        machine: &Target,
        route: &Route,
        asked: &Asked,
        end: Instant,
    ) -> Result<Outcome, NoPage> {
        loop {
            let (reply, mut done) = oneshot::channel();
            let call = Call { route: route.clone(), asked: asked.clone(), end, reply };
            self.calls.send(call).map_err(|_| NoPage::Failed(NoResult::Device))?;
            // One byte that waits already wakes it as well.
            let _ = (&*self.waker).write(&[0]);
            let result = match tokio::time::timeout(LOOK_AFTER, &mut done).await {
                Ok(result) => result,
                Err(_) => {
                    self.found.forget(machine);
                    match self.way(machine).await {
                        Ok((now, _)) if now.key != route.key => {
                            return Ok(Err(NoResult::NoSuchMachine));
                        }
                        Ok(_) | Err(NoPage::Failed(NoResult::Busy)) => done.await,
                        Err(reason) => return Err(reason),
                    }
                }
            };
            match result.unwrap_or(Err(NoResult::Device)) {
                // It didn't run.
                Err(NoResult::Busy) if Instant::now() + BUSY_AGAIN < end => {
                    tokio::time::sleep(BUSY_AGAIN).await;
                }
                result => return Ok(result),
            }
        }
    }

    /// Calls a function of `machine`, and waits for its result until `end`.
    ///
    /// # Errors
    /// There is no result.
    pub async fn call_function(
        &self,
        machine: Target,
        function: String,
        parameter: Option<Vec<u8>>,
        end: Instant,
    ) -> Result<Option<Vec<u8>>, NoPage> {
        let asked = Asked { function, parameter };
        loop {
            let (route, was_known) = self.way(&machine).await?;
            let reason = match self.call_at(&machine, &route, &asked, end).await? {
                Ok(result) => return Ok(result),
                Err(reason) => reason,
            };
            let is_elsewhere = matches!(
                reason,
                NoResult::NoSuchMachine | NoResult::AllegedlyGone | NoResult::Unreachable
            );
            if is_elsewhere {
                self.found.forget(&machine);
            }
            // Installed anew it has another key; that call didn't run.
            let is_moved = reason == NoResult::NoSuchMachine && was_known;
            if !is_moved || Instant::now() >= end {
                return Err(NoPage::Failed(reason));
            }
        }
    }
}

impl Visits for Visitor {
    async fn call(
        &self,
        machine: Target,
        request: Vec<u8>,
        end: Instant,
    ) -> Result<Option<Vec<u8>>, NoPage> {
        self.call_function(machine, tenure_pages::FUNCTION.into(), Some(request), end).await
    }

    async fn entries(&self) -> Result<Vec<Entry>, NoPage> {
        match self.found.entries() {
            Some(entries) => entries,
            None => self.search(Search::Entries).await,
        }
    }
}

/// The findings of the last searches, each for a time.
#[derive(Clone, Default)]
struct Found(Arc<Mutex<Findings>>);

#[derive(Default)]
struct Findings {
    /// The ways to machines, and the names that none has.
    ways: BTreeMap<String, (Instant, Result<Route, NoPage>)>,
    entries: Option<(Instant, Result<Vec<Entry>, NoPage>)>,
}

impl Found {
    fn way(&self, machine: &Target) -> Option<Result<Route, NoPage>> {
        self.findings().ways.get(&machine.to_string()).and_then(in_time)
    }

    fn entries(&self) -> Option<Result<Vec<Entry>, NoPage>> {
        self.findings().entries.as_ref().and_then(in_time)
    }

    fn learn(&self, machine: &Target, way: Result<Route, NoPage>) {
        let (now, mut findings) = (Instant::now(), self.findings());
        let ways = &mut findings.ways;
        if ways.len() >= ROUTES_MAX {
            ways.retain(|_, (until, _)| now < *until);
        }
        if ways.len() >= ROUTES_MAX {
            ways.pop_first();
        }
        let lasts = if way.is_ok() { ROUTE_LASTS } else { NONE_LASTS };
        ways.insert(machine.to_string(), (now + lasts, way));
    }

    fn learn_entries(&self, entries: Result<Vec<Entry>, NoPage>) {
        self.findings().entries = Some((Instant::now() + ENTRIES_LAST, entries));
    }

    fn forget(&self, machine: &Target) {
        self.findings().ways.remove(&machine.to_string());
    }

    fn findings(&self) -> MutexGuard<'_, Findings> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A finding whose time isn't over.
fn in_time<T: Clone>((until, found): &(Instant, T)) -> Option<T> {
    (Instant::now() < *until).then(|| found.clone())
}

/// Finds machines for visitors.
pub trait Finds: Send + 'static {
    /// The way to a machine.
    ///
    /// # Errors
    /// There is none, or it can't be had now.
    fn machine(&mut self, machine: &Target) -> Result<Route, NoPage>;

    /// The machines with pages.
    ///
    /// # Errors
    /// They can't be had now.
    fn entries(&mut self) -> Result<Vec<Entry>, NoPage>;
}

/// Answers searches, one after the other.
struct Searches<F> {
    finder: F,
    found: Found,
}

impl<F: Finds> Searches<F> {
    fn run(mut self, sought: &Receiver<Search>) {
        while let Ok(search) = sought.recv() {
            match search {
                Search::Machine(machine, reply) => {
                    // Another visitor may have waited for the same.
                    let known = self.found.way(&machine);
                    let _ = reply.send(known.unwrap_or_else(|| self.find(&machine)));
                }
                Search::Entries(reply) => {
                    let known = self.found.entries();
                    let _ = reply.send(known.unwrap_or_else(|| self.entries()));
                }
            }
        }
    }

    fn find(&mut self, machine: &Target) -> Result<Route, NoPage> {
        let way = self.finder.machine(machine);
        self.found.learn(machine, way.clone());
        way
    }

    fn entries(&mut self) -> Result<Vec<Entry>, NoPage> {
        let entries = self.finder.entries();
        self.found.learn_entries(entries.clone());
        entries
    }
}

/// The socket and the sessions of visitors.
struct Caller {
    endpoint: Endpoint<Address>,
    own: MachineId,
    link: UdpLink,
    clock: LinuxClock,
    entropy: LinuxEntropy,
    coming: Receiver<Call>,
    woken: UnixStream,
    waiting: BTreeMap<CallHandle, oneshot::Sender<Outcome>>,
}

impl Caller {
    fn new(
        secret: StaticSecret,
        coming: Receiver<Call>,
        woken: UnixStream,
    ) -> anyhow::Result<Self> {
        let (clock, mut entropy) = (LinuxClock::start(), LinuxEntropy);
        let config = Config { timeout_max: TIMEOUT_MAX, ..Config::large() };
        let mut endpoint = Endpoint::new(config, clock.now(), &mut entropy)?;
        let own = endpoint.add_machine(secret)?;
        let (link, waiting) = (UdpLink::bind_any()?, BTreeMap::new());
        Ok(Self { endpoint, own, link, clock, entropy, coming, woken, waiting })
    }

    /// Makes the calls that come, until nobody can ask for more.
    fn run(mut self) {
        let mut datagram = vec![0; 65_536];
        while self.begin_calls() {
            self.forget_those_who_left();
            self.endpoint.poll(self.clock.now(), &mut self.entropy);
            self.end_calls();
            self.send_all();
            let now = self.clock.now();
            let wait = self.endpoint.poll_at().map_or(NAP, |at| at.since(now).min(NAP));
            if wait_any(&[&self.link, &self.woken], wait).is_err() {
                std::thread::sleep(BUSY_AGAIN);
            }
            while let Ok(1..) = self.woken.read(&mut [0; 64]) {}
            while let Ok(Some((length, from))) = self.link.receive(&mut datagram) {
                let now = self.clock.now();
                self.endpoint.receive(now, &mut self.entropy, from.into(), &datagram[..length]);
            }
            self.end_calls();
        }
    }

    fn begin_calls(&mut self) -> bool {
        loop {
            let call = match self.coming.try_recv() {
                Ok(call) => call,
                Err(std::sync::mpsc::TryRecvError::Empty) => return true,
                Err(std::sync::mpsc::TryRecvError::Disconnected) => return false,
            };
            let now = self.clock.now();
            let outgoing = OutgoingCall {
                function: call.asked.function,
                parameter: call.asked.parameter,
                deadline: now + call.end.saturating_duration_since(Instant::now()),
                attempts: ATTEMPTS,
            };
            let Route { key, address, epoch } = call.route;
            let begun = self.endpoint.call(
                now,
                &mut self.entropy,
                &self.own,
                &key,
                address,
                epoch,
                outgoing,
            );
            match begun {
                Ok(handle) => drop(self.waiting.insert(handle, call.reply)),
                Err(error) => drop(call.reply.send(Err(error.into()))),
            }
        }
    }

    /// Gives up the calls whose visitors are gone.
    fn forget_those_who_left(&mut self) {
        let now = self.clock.now();
        let Self { waiting, endpoint, .. } = self;
        waiting.retain(|handle, reply| {
            if reply.is_closed() {
                endpoint.cancel(now, *handle);
            }
            !reply.is_closed()
        });
    }

    fn end_calls(&mut self) {
        while let Some(event) = self.endpoint.event() {
            let Event::CallDone { handle, result, .. } = event else { continue };
            if let Some(reply) = self.waiting.remove(&handle) {
                let _ = reply.send(result);
            }
        }
    }

    fn send_all(&mut self) {
        while let Some((to, datagram)) = self.endpoint.transmit() {
            if let Address::Udp(to) = to {
                // A datagram that isn't sent is one that is lost: it will be sent again.
                let _ = self.link.send(&to, &datagram);
            }
        }
    }
}
