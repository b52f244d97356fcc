//! The requests that a device's machines send to servers outside: names, addresses, TLS 1.3 and HTTP/1.1. And the way of a
//! device's own datagrams where UDP is blocked: a WebSocket to its hub, through a proxy if there is one.
//!
//! Invariants:
//! - The address that a name led to is judged and then connected to: there is no second look-up in between.
//! - A redirect leads where the machine's own grants lead, and nowhere else.
//! - Each machine has one thread, one connection at a time, and a bounded head and part in memory; a server that is slow,
//!   silent or lies takes the time of that machine alone.
#![forbid(unsafe_code)]

mod address;
mod dialer;
mod http;
mod names;
mod servers;
mod stream;
mod tunnel;
pub mod websocket;
mod worker;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::time::{Duration, Instant};

use tenure_kernel::{CallId, OutgoingVisit, Visited};
use tenure_tls::LinkError;
use tenure_tls_client::{Dates, explain};
use tenure_wire::{MachineId, NoResult};

pub use dialer::{Dialer, Undialled};
use names::Names;
pub use servers::{ClientIdentity, Loaded, Server, ServerTrust, Servers};
pub use tunnel::{Proxy, ProxyError, Told, Tunnel, TunnelError, TunnelUrl, TunnelWay};
use worker::{Job, Worker};

/// The most machines with a thread.
const MACHINES_MAX: usize = 64;
/// The most visits of a machine that wait.
const WAITING_MAX: usize = 16;
/// The stack of a machine's thread, in bytes.
const STACK_BYTES: usize = 512 * 1024;

/// What the visits of all machines share.
pub(crate) struct Shared {
    servers: Servers,
    names: Arc<Names>,
    dates: Dates,
    handshakes: Handshakes,
}

/// The TLS handshakes of all visits that came to an end.
#[derive(Default)]
pub(crate) struct Handshakes {
    /// All.
    all: AtomicU64,
    /// Those for which the server took a ticket.
    resumed: AtomicU64,
}

impl Handshakes {
    pub(crate) fn count(&self, is_resumed: bool) {
        self.all.fetch_add(1, Ordering::Relaxed);
        self.resumed.fetch_add(is_resumed.into(), Ordering::Relaxed);
    }
}

/// Sends requests for machines, each machine's on a thread of its own.
pub struct Reach {
    shared: Arc<Shared>,
    workers: BTreeMap<MachineId, Mate>,
    /// How many visits there were.
    visits: u64,
    /// Those that were answered.
    answered: u64,
    /// Those that failed, by the reason's code.
    failed: BTreeMap<u8, u64>,
    last_error: Option<(Instant, String)>,
    ends: Receiver<Visited>,
    /// Lent to the workers.
    sender: Sender<Visited>,
    /// Readable when a visit has ended.
    ended: UnixStream,
    waker: Arc<UnixStream>,
}

/// The state of all visits, counted since the beginning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// How many visits there were.
    pub visits: u64,
    /// Those that were answered.
    pub answered: u64,
    /// Those that failed, by the [code](NoResult::code) of the reason.
    pub failed: BTreeMap<u8, u64>,
    /// The names whose addresses are cached.
    pub names: usize,
    /// The TLS handshakes.
    pub handshakes: u64,
    /// Those for which the server took a ticket of an earlier connection.
    pub resumed: u64,
    /// The last failure, in words, and when it happened.
    pub last_error: Option<(Instant, String)>,
}

/// The thread of a machine, which ends with what it has once this is dropped.
struct Mate {
    jobs: SyncSender<Job>,
    /// The number of the last visit.
    last: u64,
}

/// Why a visit has no answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    reason: NoResult,
    words: Cow<'static, str>,
}

impl Failure {
    pub(crate) fn new(reason: NoResult, words: impl Into<Cow<'static, str>>) -> Self {
        Self { reason, words: words.into() }
    }

    pub(crate) fn of_io(error: std::io::Error) -> Self {
        Self::new(NoResult::Unreachable, format!("the connection broke off: {error}"))
    }

    pub(crate) fn of_tls(error: tenure_tls::Error, dates: &Dates) -> Self {
        let reason = match error {
            tenure_tls::Error::Certificate(_) => NoResult::Denied,
            tenure_tls::Error::Deadline => NoResult::Deadline,
            _ => NoResult::Unreachable,
        };
        Self::new(reason, explain(error, dates.date()))
    }

    pub(crate) fn of_link(error: LinkError<Self>, dates: &Dates) -> Self {
        match error {
            LinkError::Network(failure) => failure,
            LinkError::Tls(error) => Self::of_tls(error, dates),
        }
    }
}

impl Reach {
    /// Visits to `servers`, whose certificates are judged by `dates`.
    ///
    /// # Errors
    /// There is no pair of sockets.
    pub fn new(servers: Servers, dates: Dates) -> std::io::Result<Self> {
        let (waker, ended) = UnixStream::pair()?;
        waker.set_nonblocking(true)?;
        ended.set_nonblocking(true)?;
        let (sender, ends) = channel();
        let shared = Shared {
            servers,
            names: Arc::new(Names::of_system()),
            dates,
            handshakes: Handshakes::default(),
        };
        let (shared, waker) = (Arc::new(shared), Arc::new(waker));
        Ok(Self {
            shared,
            workers: BTreeMap::new(),
            visits: 0,
            answered: 0,
            failed: BTreeMap::new(),
            last_error: None,
            ends,
            sender,
            ended,
            waker,
        })
    }

    /// Begins a visit; `now` is the device's time, which its deadline is on.
    pub fn visit(&mut self, now: tenure_hal::Instant, visit: OutgoingVisit) {
        let OutgoingVisit { id, from, ask, granted, deadline, attempts } = visit;
        let deadline = Instant::now() + deadline.since(now);
        let job = Job { id, ask, granted, deadline, attempts };
        self.visits += 1;
        let jobs = match self.workers.get_mut(&from) {
            Some(mate) => {
                mate.last = self.visits;
                mate.jobs.clone()
            }
            None => match self.start(from) {
                Ok(jobs) => {
                    self.make_room();
                    self.workers.insert(from, Mate { jobs: jobs.clone(), last: self.visits });
                    jobs
                }
                Err(error) => return self.refuse(id, format!("the system has no thread: {error}")),
            },
        };
        if jobs.try_send(job).is_err() {
            self.refuse(id, "over 16 visits of this machine wait already");
        }
    }

    /// Lets the thread of the machine go that hasn't visited a server for longest, if there are too many.
    fn make_room(&mut self) {
        let oldest = self.workers.iter().min_by_key(|(_, mate)| mate.last).map(|(id, _)| *id);
        if self.workers.len() >= MACHINES_MAX
            && let Some(oldest) = oldest
        {
            self.workers.remove(&oldest);
        }
    }

    /// The next visit that has ended.
    pub fn visited(&mut self) -> Option<Visited> {
        let mut wakes = [0; 64];
        while self.ended.read(&mut wakes).is_ok_and(|length| length == wakes.len()) {}
        let visited = self.ends.try_recv().ok()?;
        match &visited.result {
            Ok(_) => self.answered += 1,
            Err(reason) => {
                *self.failed.entry(reason.code()).or_default() += 1;
                let words = String::from_utf8_lossy(&visited.words).into_owned();
                self.last_error = Some((Instant::now(), words));
            }
        }
        Some(visited)
    }

    /// What opens connections by the rules of visits, for what speaks another protocol than HTTP; one that asks as `from`
    /// has one look-up of a name under way at a time.
    pub fn dialer(&self, from: MachineId) -> Dialer {
        Dialer::new(Arc::clone(&self.shared), from)
    }

    /// The state of all visits.
    pub fn state(&self) -> State {
        State {
            visits: self.visits,
            answered: self.answered,
            failed: self.failed.clone(),
            names: self.shared.names.known(),
            handshakes: self.shared.handshakes.all.load(Ordering::Relaxed),
            resumed: self.shared.handshakes.resumed.load(Ordering::Relaxed),
            last_error: self.last_error.clone(),
        }
    }

    fn start(&self, machine: MachineId) -> std::io::Result<SyncSender<Job>> {
        let (jobs, coming) = sync_channel(WAITING_MAX);
        let (sender, waker) = (self.sender.clone(), Arc::clone(&self.waker));
        let end = move |visited| {
            // A device that is gone has no use for it; a full pipe wakes it anyhow.
            let _ = sender.send(visited);
            let _ = (&*waker).write(&[0]);
        };
        let worker = Worker::new(machine, Arc::clone(&self.shared), coming, end);
        let thread = std::thread::Builder::new().name("reach".into()).stack_size(STACK_BYTES);
        thread.spawn(move || worker.run())?;
        Ok(jobs)
    }

    fn refuse(&self, id: CallId, words: impl Into<String>) {
        let (result, words) = (Err(NoResult::Busy), words.into().into_bytes());
        // The receiver is this one's own.
        let _ = self.sender.send(Visited { id, result, words, traffic: (0, 0) });
        let _ = (&*self.waker).write(&[0]);
    }
}

impl AsFd for Reach {
    /// Readable when a visit has ended.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ended.as_fd()
    }
}

/// How long a machine's connection waits for its next visit.
pub(crate) const IDLE: Duration = Duration::from_secs(15);
