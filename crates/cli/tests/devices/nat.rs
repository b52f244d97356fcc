//! A middlebox between one device and everybody else, which sees, repeats and alters datagrams; or a router, which lets in
//! only those to whom the device has spoken.
//!
//! The device takes it for the hub, and the hub sees the device at its outer address; so do all
//! who ask the hub. Everyone outside has a socket of their own on the inside, so that answers find
//! their way back.

use std::collections::{HashMap, HashSet};
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::harness::any_address;

/// How long a thread waits for a datagram before it looks whether the test is over.
const LOOK: Duration = Duration::from_millis(20);

/// The fate of a datagram: the datagrams that go on in its place.
pub(crate) type Alter = fn(number: usize, datagram: &[u8]) -> Vec<Vec<u8>>;

/// Lets everything through.
pub(crate) fn unaltered(_: usize, datagram: &[u8]) -> Vec<Vec<u8>> {
    vec![datagram.to_vec()]
}

/// The middlebox; ends when dropped.
pub(crate) struct Nat {
    inner: Arc<Inner>,
}

struct Inner {
    hub: SocketAddr,
    /// The address that outsiders see.
    outer: Mutex<Arc<UdpSocket>>,
    /// Those to whom the device has spoken from there; a middlebox that is no router lets everybody in.
    spoken_to: Option<Mutex<HashSet<SocketAddr>>>,
    /// The inside socket for each outsider, and the device once it has spoken.
    inside: Mutex<HashMap<SocketAddr, Arc<UdpSocket>>>,
    device: Mutex<Option<SocketAddr>>,
    seen: Mutex<Vec<Seen>>,
    alter: Alter,
    over: AtomicBool,
}

/// A datagram that crossed, as it came.
#[derive(Clone)]
pub(crate) struct Seen {
    /// The outsider.
    pub(crate) peer: SocketAddr,
    pub(crate) to_device: bool,
    pub(crate) bytes: Vec<u8>,
}

impl Nat {
    /// A middlebox before this hub.
    pub(crate) fn before(hub: SocketAddr, alter: Alter) -> Self {
        Self::new(hub, alter, None)
    }

    /// A router before this hub: it lets in nobody but those to whom the device has spoken, each address and port by itself.
    pub(crate) fn router(hub: SocketAddr) -> Self {
        Self::new(hub, unaltered, Some(Mutex::default()))
    }

    fn new(hub: SocketAddr, alter: Alter, spoken_to: Option<Mutex<HashSet<SocketAddr>>>) -> Self {
        let inner = Arc::new(Inner {
            hub,
            outer: Mutex::new(Arc::new(socket())),
            spoken_to,
            inside: Mutex::default(),
            device: Mutex::default(),
            seen: Mutex::default(),
            alter,
            over: AtomicBool::new(false),
        });
        inner.inside_of(hub);
        inner.listen();
        Self { inner }
    }

    /// Forgets to whom the device has spoken, and speaks for it from another port from now on, as a router that restarts.
    pub(crate) fn restart(&self) {
        if let Some(spoken_to) = &self.inner.spoken_to {
            spoken_to.lock().unwrap().clear();
        }
        *self.inner.outer.lock().unwrap() = Arc::new(socket());
        self.inner.listen();
    }

    /// The hub's address as the device is told it.
    pub(crate) fn hub_address(&self) -> String {
        self.inner.inside_of(self.inner.hub).local_addr().unwrap().to_string()
    }

    /// All that crossed so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.inner.seen.lock().unwrap().clone()
    }

    /// Sends the device a datagram as if it came from `peer`.
    pub(crate) fn inject(&self, peer: SocketAddr, bytes: &[u8]) {
        self.inner.forward(peer, true, bytes);
    }
}

impl Drop for Nat {
    fn drop(&mut self) {
        self.inner.over.store(true, Ordering::Relaxed);
    }
}

impl Inner {
    /// Reads what comes from outside, until the outer address is another one.
    fn listen(self: &Arc<Self>) {
        let (reader, outer) = (Arc::clone(self), Arc::clone(&self.outer.lock().unwrap()));
        std::thread::spawn(move || {
            reader.read(&outer, |peer, bytes| {
                let is_current = Arc::ptr_eq(&outer, &reader.outer.lock().unwrap());
                if is_current && reader.lets_in(peer) {
                    reader.pass(peer, true, bytes);
                }
            });
        });
    }

    fn lets_in(&self, peer: SocketAddr) -> bool {
        let spoken_to = self.spoken_to.as_ref();
        spoken_to.is_none_or(|spoken_to| spoken_to.lock().unwrap().contains(&peer))
    }

    /// The inside socket for an outsider, with a thread that reads what the device sends there.
    fn inside_of(self: &Arc<Self>, peer: SocketAddr) -> Arc<UdpSocket> {
        let mut inside = self.inside.lock().unwrap();
        let known = inside.entry(peer).or_insert_with(|| {
            let (front, reader) = (Arc::new(socket()), Arc::clone(self));
            let socket = Arc::clone(&front);
            std::thread::spawn(move || {
                reader.read(&socket, |device, bytes| {
                    *reader.device.lock().unwrap() = Some(device);
                    reader.pass(peer, false, bytes);
                });
            });
            front
        });
        Arc::clone(known)
    }

    fn read(&self, socket: &UdpSocket, take: impl Fn(SocketAddr, &[u8])) {
        let mut datagram = [0; 2048];
        while !self.over.load(Ordering::Relaxed) {
            if let Ok((length, from)) = socket.recv_from(&mut datagram) {
                take(from, &datagram[..length]);
            }
        }
    }

    fn pass(self: &Arc<Self>, peer: SocketAddr, to_device: bool, bytes: &[u8]) {
        let number = {
            let mut seen = self.seen.lock().unwrap();
            seen.push(Seen { peer, to_device, bytes: bytes.to_vec() });
            seen.len()
        };
        for datagram in (self.alter)(number, bytes) {
            self.forward(peer, to_device, &datagram);
        }
    }

    fn forward(self: &Arc<Self>, peer: SocketAddr, to_device: bool, bytes: &[u8]) {
        if !to_device {
            if let Some(spoken_to) = &self.spoken_to {
                spoken_to.lock().unwrap().insert(peer);
            }
            let outer = Arc::clone(&self.outer.lock().unwrap());
            let _ = outer.send_to(bytes, peer);
        } else if let Some(device) = *self.device.lock().unwrap() {
            let _ = self.inside_of(peer).send_to(bytes, device);
        }
    }
}

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind(any_address()).unwrap();
    socket.set_read_timeout(Some(LOOK)).unwrap();
    socket
}
