//! Connections by which datagrams come and go beside UDP: for whom there is a place, and what waits on each.
//!
//! Invariants:
//! - What waits is bounded, of each connection and of all; strangers fill half of what comes in at the most.
//! - Strangers are those from whose host the hub hasn't heard a device that it lists. They take a part of the places, and the one
//!   of them who has most, and longest, makes room for the next; nobody else does.
//! - A datagram that goes to a connection which isn't there is dropped, and goes nowhere else.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tenure_wire::carried::{address_of, host_of};
use tokio::sync::Notify;

use crate::running::Running;

/// The most connections, and the most of one host.
const CONNECTIONS_MAX: usize = 1024;
const OF_HOST_MAX: usize = 256;
/// The most of strangers, and the most of one host of theirs.
const STRANGERS_MAX: usize = 256;
const STRANGERS_OF_HOST_MAX: usize = 16;
/// The most datagrams that came and wait for the hub's thread: of one connection, of strangers, of all.
const ARRIVED_OF_ONE_MAX: usize = 32;
const ARRIVED_OF_STRANGERS_MAX: usize = 2048;
const ARRIVED_MAX: usize = 4096;
/// The most datagrams that wait to go out on one connection.
const LEAVING_OF_ONE_MAX: usize = 64;

/// What went by connections since the hub started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CarriedCounts {
    /// The connections that are open.
    pub open: u64,
    /// The datagrams that came.
    pub received: u64,
    /// The datagrams that went out.
    pub sent: u64,
    /// Those for which there was no room, or no connection any more.
    pub dropped: u64,
    /// The connections that got no place, or lost theirs.
    pub refused: u64,
}

/// The connections of a hub that runs.
#[derive(Debug, Default)]
pub struct Carried(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    /// Rings for the hub's thread; none before that listens.
    bell: Option<UnixStream>,
    connections: BTreeMap<u16, Entry>,
    arrived: VecDeque<(u16, Vec<u8>)>,
    arrived_of_strangers: usize,
    last_number: u16,
    /// Counts connections, in the order in which they come.
    clock: u64,
    counts: CarriedCounts,
}

#[derive(Debug)]
struct Entry {
    host: IpAddr,
    opened: u64,
    is_stranger: bool,
    /// How many of its datagrams wait for the hub's thread, and how many of those counted as a stranger's.
    arrived: usize,
    arrived_as_stranger: usize,
    leaving: VecDeque<Vec<u8>>,
    wakes: Arc<Wakes>,
}

/// What a connection's two halves wait for.
#[derive(Debug, Default)]
struct Wakes {
    /// There is room for what comes.
    room: Notify,
    /// There is something to send, or the connection is over.
    work: Notify,
}

impl Carried {
    /// Takes connections from now on. What is returned is readable when a datagram came.
    ///
    /// # Errors
    /// The system has no pair of sockets.
    pub fn listen(&self) -> std::io::Result<UnixStream> {
        let (bell, rung) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        rung.set_nonblocking(true)?;
        self.lock().bell = Some(bell);
        Ok(rung)
    }

    /// The next datagram that came, and the address of its connection. Where there is none, `rung` is silent afterwards.
    pub fn take(&self, rung: &UnixStream) -> Option<(SocketAddr, Vec<u8>)> {
        if let Some(taken) = self.lock().take() {
            return Some(taken);
        }
        let (mut rings, mut rung) = ([0; 64], rung);
        while rung.read(&mut rings).is_ok_and(|length| length == rings.len()) {}
        self.lock().take()
    }

    /// Sends a datagram, if `to` is the address of a connection; whether it is.
    pub fn send(&self, to: &SocketAddr, datagram: &[u8]) -> bool {
        if host_of(to).is_none() {
            return false;
        }
        let mut table = self.lock();
        let entry = table.connections.get_mut(&to.port());
        let entry = entry.filter(|entry| address_of(entry.host, to.port()) == *to);
        match entry.filter(|entry| entry.leaving.len() < LEAVING_OF_ONE_MAX) {
            Some(entry) => {
                entry.leaving.push_back(datagram.to_vec());
                entry.wakes.work.notify_one();
                table.counts.sent += 1;
            }
            None => table.counts.dropped += 1,
        }
        true
    }

    /// Says whether the hub lists a device that it heard from the host of this connection.
    pub fn judge(&self, from: &SocketAddr, is_known: bool) {
        if let Some(entry) = self.lock().connections.get_mut(&from.port()) {
            entry.is_stranger = !is_known;
        }
    }

    /// What went by connections so far.
    pub fn counts(&self) -> CarriedCounts {
        let table = self.lock();
        CarriedCounts { open: table.connections.len() as u64, ..table.counts }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn take(&mut self) -> Option<(SocketAddr, Vec<u8>)> {
        while let Some((number, datagram)) = self.arrived.pop_front() {
            // What a connection that is over has sent is gone with it.
            let Some(entry) = self.connections.get_mut(&number) else { continue };
            entry.arrived -= 1;
            // Those that count came first.
            if entry.arrived_as_stranger > 0 {
                entry.arrived_as_stranger -= 1;
                self.arrived_of_strangers -= 1;
            }
            entry.wakes.room.notify_one();
            self.counts.received += 1;
            return Some((address_of(entry.host, number), datagram));
        }
        None
    }

    /// A place for a connection from `host`, by its number.
    fn admit(&mut self, host: IpAddr) -> Option<u16> {
        let of_host = || self.connections.values().filter(move |entry| entry.host == host);
        let is_known = of_host().any(|entry| !entry.is_stranger);
        let most = if is_known { OF_HOST_MAX } else { STRANGERS_OF_HOST_MAX };
        if self.bell.is_none() || of_host().count() >= most {
            return None;
        }
        let strangers = self.connections.values().filter(|entry| entry.is_stranger).count();
        let is_crowded = !is_known && strangers >= STRANGERS_MAX;
        if (is_crowded || self.connections.len() >= CONNECTIONS_MAX) && !self.displace() {
            return None;
        }
        let mut number = self.last_number;
        loop {
            number = number.wrapping_add(1).max(1);
            if !self.connections.contains_key(&number) {
                break;
            }
        }
        self.last_number = number;
        self.clock += 1;
        let entry = Entry {
            host,
            opened: self.clock,
            is_stranger: !is_known,
            arrived: 0,
            arrived_as_stranger: 0,
            leaving: VecDeque::new(),
            wakes: Arc::default(),
        };
        self.connections.insert(number, entry);
        Some(number)
    }

    /// Ends the oldest connection of the host of strangers that has most; whether there is one.
    fn displace(&mut self) -> bool {
        let strangers = || self.connections.iter().filter(|(_, entry)| entry.is_stranger);
        let mut of_hosts: BTreeMap<IpAddr, usize> = BTreeMap::new();
        for (_, entry) in strangers() {
            *of_hosts.entry(entry.host).or_default() += 1;
        }
        let first = |entry: &Entry| (Reverse(of_hosts.get(&entry.host).copied()), entry.opened);
        let oldest = strangers().min_by_key(|(_, entry)| first(entry)).map(|(number, _)| *number);
        let Some(oldest) = oldest else { return false };
        self.remove(oldest);
        self.counts.refused += 1;
        true
    }

    fn remove(&mut self, number: u16) {
        if let Some(entry) = self.connections.remove(&number) {
            self.arrived.retain(|(from, _)| *from != number);
            self.arrived_of_strangers -= entry.arrived_as_stranger;
            entry.wakes.work.notify_one();
            entry.wakes.room.notify_one();
        }
    }
}

/// A connection's place, free again once it is dropped.
#[derive(Debug)]
pub(crate) struct Connection {
    running: Running,
    number: u16,
    /// When it was opened: another one may have its number later.
    opened: u64,
    wakes: Arc<Wakes>,
}

/// What a connection is to do next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Send this.
    Send(Vec<u8>),
    /// Nothing for now.
    Nothing,
    /// End: it lost its place.
    End,
}

impl Running {
    /// The connections by which datagrams come beside UDP.
    pub fn carried(&self) -> &Carried {
        &self.0.carried
    }

    /// A place for a connection from that host, if there is one.
    pub(crate) fn carry(&self, host: IpAddr) -> Option<Connection> {
        let mut table = self.0.carried.lock();
        let Some(number) = table.admit(host) else {
            table.counts.refused += 1;
            return None;
        };
        let entry = table.connections.get(&number)?;
        let (opened, wakes) = (entry.opened, Arc::clone(&entry.wakes));
        drop(table);
        Some(Connection { running: self.clone(), number, opened, wakes })
    }
}

impl Connection {
    /// Hands a datagram to the hub's thread, once there is room; whether the connection has its place still.
    pub(crate) async fn arrive(&self, datagram: Vec<u8>) -> bool {
        let mut datagram = Some(datagram);
        loop {
            match self.try_to_arrive(&mut datagram) {
                Some(has_place) => return has_place,
                None => self.wakes.room.notified().await,
            }
        }
    }

    /// Whether the connection has its place still; `None` if there is no room yet.
    fn try_to_arrive(&self, datagram: &mut Option<Vec<u8>>) -> Option<bool> {
        let mut table = self.running.0.carried.lock();
        let (waiting, of_strangers) = (table.arrived.len(), table.arrived_of_strangers);
        let Some(entry) = self.entry(&mut table) else { return Some(false) };
        let is_full = entry.arrived >= ARRIVED_OF_ONE_MAX
            || entry.is_stranger && of_strangers >= ARRIVED_OF_STRANGERS_MAX
            || waiting >= ARRIVED_MAX;
        if is_full && entry.arrived > 0 {
            return None;
        }
        // One that has nothing there would wait for a room of which nobody tells it.
        if is_full {
            table.counts.dropped += 1;
            return Some(true);
        }
        entry.arrived += 1;
        let is_stranger = entry.is_stranger;
        entry.arrived_as_stranger += usize::from(is_stranger);
        table.arrived_of_strangers += usize::from(is_stranger);
        table.arrived.extend(datagram.take().map(|datagram| (self.number, datagram)));
        if let Some(mut bell) = table.bell.as_ref() {
            // A full pipe wakes it anyhow.
            let _ = bell.write(&[0]);
        }
        Some(true)
    }

    /// What there is to do.
    pub(crate) fn work(&self) -> Work {
        let mut table = self.running.0.carried.lock();
        match self.entry(&mut table) {
            None => Work::End,
            Some(entry) => entry.leaving.pop_front().map_or(Work::Nothing, Work::Send),
        }
    }

    /// Waits until there may be something to do.
    pub(crate) async fn may_work(&self) {
        self.wakes.work.notified().await;
    }

    /// Whether the hub knows nobody at its host.
    pub(crate) fn is_strangers(&self) -> bool {
        let mut table = self.running.0.carried.lock();
        self.entry(&mut table).is_none_or(|entry| entry.is_stranger)
    }

    /// Gives up its place, so that its other half ends.
    pub(crate) fn end(&self) {
        let mut table = self.running.0.carried.lock();
        if self.entry(&mut table).is_some() {
            table.remove(self.number);
        }
    }

    fn entry<'t>(&self, table: &'t mut Table) -> Option<&'t mut Entry> {
        table.connections.get_mut(&self.number).filter(|entry| entry.opened == self.opened)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests;
