//! A server with a socket and a clock, on a thread of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant as StdInstant};

use tenure_hal::Instant;
use tenure_wire::{Name, Topic};
use tokio::sync::Notify;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::answer::NoAnswer;
use crate::entry::Entry;
use crate::message::DATAGRAM_BYTES_MAX;
use crate::server::{CALL_TIMEOUT, CALLS_MAX, Call, Config, Figures, Server};

/// The most datagrams and ends of calls that wait for the server.
const INBOX_MAX: usize = 2 * CALLS_MAX;
/// The most topics whose last event waits for the server.
const TOPICS_WAIT_MAX: usize = 256;
/// How long the thread sleeps at most.
const NAP: Duration = Duration::from_secs(60);
/// The pause after an error of the socket: of one that is broken each call fails at once.
const PAUSE: Duration = Duration::from_millis(50);

/// Calls machines for visitors. Copies make the same calls.
pub trait Calls: Clone + Send + Sync + 'static {
    /// Calls a function of a machine, and waits for its result until `end`.
    ///
    /// # Errors
    /// There is no result.
    fn call(
        &self,
        machine: Name,
        function: String,
        parameter: Option<Vec<u8>>,
        end: StdInstant,
    ) -> impl Future<Output = Result<Option<Vec<u8>>, NoAnswer>> + Send;
}

/// A server that runs, as its device speaks to it. It ends with the process.
pub struct Coap {
    address: SocketAddr,
    news: Arc<News>,
}

/// News of the device, until the server takes them: the last of each kind count.
#[derive(Default)]
struct News {
    waiting: Mutex<Waiting>,
    are_there: Notify,
    /// The state of the server, as its thread said last.
    figures: Mutex<Figures>,
}

#[derive(Default)]
struct Waiting {
    entries: Option<Vec<Entry>>,
    events: BTreeMap<Topic, Vec<u8>>,
    stirred: BTreeSet<Name>,
}

impl Coap {
    /// Serves by `socket`; `calls` makes the calls of visitors.
    ///
    /// # Errors
    /// The system has no thread, or the socket can't be used.
    pub fn serve(socket: UdpSocket, config: Config, calls: impl Calls) -> std::io::Result<Self> {
        socket.set_nonblocking(true)?;
        let address = socket.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let socket = {
            let _entered = runtime.enter();
            Arc::new(tokio::net::UdpSocket::from_std(socket)?)
        };
        let news = Arc::new(News::default());
        let (sender, inbox) = channel(INBOX_MAX);
        let running = Running {
            server: Server::new(config),
            begun: StdInstant::now(),
            socket: Arc::clone(&socket),
            calls,
            sender: sender.clone(),
            news: Arc::clone(&news),
        };
        let told = Arc::clone(&news);
        let run = move || {
            runtime.block_on(async {
                tokio::spawn(hear(socket, sender.clone()));
                tokio::spawn(pass_on(told, sender));
                running.run(inbox).await;
            });
        };
        std::thread::Builder::new().name("coap".into()).spawn(run)?;
        Ok(Self { address, news })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The state of the server.
    pub fn figures(&self) -> Figures {
        *self.news.figures()
    }

    /// Says which machines there are.
    pub fn machines(&self, entries: Vec<Entry>) {
        self.news.waiting().entries = Some(entries);
        self.news.are_there.notify_one();
    }

    /// Hands over an event of the device. If more topics wait than the server takes in time, this one is left out.
    pub fn event(&self, topic: &Topic, payload: &[u8]) {
        let mut waiting = self.news.waiting();
        if waiting.events.len() < TOPICS_WAIT_MAX || waiting.events.contains_key(topic) {
            waiting.events.insert(topic.clone(), payload.to_vec());
        }
        drop(waiting);
        self.news.are_there.notify_one();
    }

    /// Says that a machine has published something.
    pub fn stirred(&self, machine: &Name) {
        self.news.waiting().stirred.insert(machine.clone());
        self.news.are_there.notify_one();
    }
}

impl News {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn figures(&self) -> MutexGuard<'_, Figures> {
        self.figures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The things that the server's thread waits for.
enum Input {
    Datagram(SocketAddr, Vec<u8>),
    Answered(u32, Result<Option<Vec<u8>>, NoAnswer>),
    News,
}

/// Hands in what comes by the socket, no faster than the server takes it.
async fn hear(socket: Arc<tokio::net::UdpSocket>, sender: Sender<Input>) {
    // One byte more than is read, so that a longer datagram is known.
    let mut datagram = vec![0; DATAGRAM_BYTES_MAX + 1];
    loop {
        match socket.recv_from(&mut datagram).await {
            Ok((length, from)) => {
                let input = Input::Datagram(from, datagram[..length].to_vec());
                if sender.send(input).await.is_err() {
                    return;
                }
            }
            // A port that somebody closed, most likely: it concerns a message that was sent.
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// Wakes the server when the device has something to say.
async fn pass_on(news: Arc<News>, sender: Sender<Input>) {
    loop {
        news.are_there.notified().await;
        if sender.send(Input::News).await.is_err() {
            return;
        }
    }
}

/// The server on its thread.
struct Running<C> {
    server: Server,
    begun: StdInstant,
    socket: Arc<tokio::net::UdpSocket>,
    calls: C,
    sender: Sender<Input>,
    news: Arc<News>,
}

impl<C: Calls> Running<C> {
    async fn run(mut self, mut inbox: Receiver<Input>) {
        loop {
            self.begin_calls();
            *self.news.figures() = self.server.figures();
            self.send_all().await;
            let wait = self.server.poll_at().map_or(NAP, |at| at.since(self.now()).min(NAP));
            let input = tokio::time::timeout(wait, inbox.recv()).await;
            let now = self.now();
            match input {
                Ok(Some(Input::Datagram(from, datagram))) => {
                    self.server.receive(now, from, &datagram);
                }
                Ok(Some(Input::Answered(number, outcome))) => {
                    self.server.answered(now, number, outcome);
                }
                Ok(Some(Input::News)) => self.take_news(now),
                Ok(None) => return,
                Err(_) => self.server.poll(now),
            }
        }
    }

    fn now(&self) -> Instant {
        Instant::from_micros(self.begun.elapsed().as_micros() as u64)
    }

    fn take_news(&mut self, now: Instant) {
        let Waiting { entries, events, stirred } = std::mem::take(&mut *self.news.waiting());
        if let Some(entries) = entries {
            self.server.machines(now, entries);
        }
        for (topic, payload) in events {
            self.server.event(now, &topic, &payload);
        }
        for machine in stirred {
            self.server.stirred(now, &machine);
        }
    }

    fn begin_calls(&mut self) {
        while let Some(Call { number, machine, function, parameter }) = self.server.call() {
            let (calls, sender) = (self.calls.clone(), self.sender.clone());
            tokio::spawn(async move {
                let end = StdInstant::now() + CALL_TIMEOUT;
                let outcome = calls.call(machine, function, parameter, end).await;
                // The server is over, if it doesn't want it any more.
                let _ = sender.send(Input::Answered(number, outcome)).await;
            });
        }
    }

    async fn send_all(&mut self) {
        while let Some((to, datagram)) = self.server.transmit() {
            // A datagram that isn't sent is one that is lost: whoever needs it asks again.
            let _ = self.socket.send_to(&datagram, to).await;
        }
    }
}
