//! A stream over networks that carry little at a time, have no room, or break off.

mod common;

use common::pair::*;
use common::{System, security};
use tenure_crypto::Software;
use tenure_tls::{
    Client, ClientConfig, Error, Event, Keep, Link, LinkError, Network, PreSharedKey, Received,
    Server, ServerConfig, Suite, TicketKey,
};

/// The network broke off.
#[derive(Debug, PartialEq, Eq)]
struct Broken;

/// A network at whose other end a server sends back what it gets. It carries at most `step` bytes at once, and each
/// second time none.
struct Echo<'a> {
    server: Server<'a, 'a>,
    security: Software<System>,
    step: usize,
    calls: u32,
    /// Data that the server has to send back.
    returned: Vec<u8>,
    /// The server closes once it has sent so many bytes of data.
    closes_after: usize,
    /// The network ends, announced by nobody, once so many bytes have gone to the client.
    cut_after: usize,
    /// No byte gets through.
    is_broken: bool,
}

impl<'a> Echo<'a> {
    fn new(server: Server<'a, 'a>, step: usize) -> Self {
        let (security, returned) = (security(), Vec::new());
        let (closes_after, cut_after) = (usize::MAX, usize::MAX);
        let is_broken = false;
        Self { server, security, step, calls: 0, returned, closes_after, cut_after, is_broken }
    }

    fn has_turn(&mut self) -> bool {
        self.calls += 1;
        self.calls.is_multiple_of(2)
    }

    fn serve(&mut self) {
        while let Ok(event) = self.server.poll(&mut self.security, &NOW) {
            match event {
                Event::Data => {
                    self.returned.extend_from_slice(self.server.data());
                    self.server.consume(usize::MAX);
                }
                Event::Idle | Event::PeerClosed => break,
                _ => {}
            }
        }
        let data = &self.returned[..self.returned.len().min(self.closes_after)];
        let Ok(sent) = self.server.send(&mut self.security, data) else { return };
        self.returned.drain(..sent);
        self.closes_after -= sent;
        if self.closes_after == 0 {
            self.server.close(&mut self.security);
        }
    }
}

impl Network for Echo<'_> {
    type Error = Broken;

    fn send(&mut self, bytes: &[u8]) -> Result<usize, Broken> {
        assert!(!bytes.is_empty(), "nothing is no reason to send");
        if self.is_broken {
            return Err(Broken);
        }
        if !self.has_turn() {
            return Ok(0);
        }
        let taken = self.server.feed(&bytes[..bytes.len().min(self.step)]);
        self.serve();
        Ok(taken)
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<Received, Broken> {
        assert!(!into.is_empty(), "no room is no reason to receive");
        if self.is_broken {
            return Err(Broken);
        }
        self.serve();
        let output = self.server.output();
        let length = output.len().min(self.step).min(into.len()).min(self.cut_after);
        match length {
            0 if self.cut_after == 0 => Ok(Received::End),
            0 => Ok(Received::Nothing),
            _ if !self.has_turn() => Ok(Received::Nothing),
            _ => {
                into[..length].copy_from_slice(&self.server.output()[..length]);
                self.server.sent(length);
                self.cut_after -= length;
                Ok(Received::Bytes(length))
            }
        }
    }
}

/// Runs `check` on a link to an echo that carries `step` bytes at once.
fn with_link(
    client: &ClientConfig<'_>,
    server: &ServerConfig<'_>,
    step: usize,
    check: impl FnOnce(&mut Link<'_, Echo<'_>>),
) {
    let (mut one, mut other) = (vec![0; 2_000], vec![0; 20_000]);
    let client = Client::new(&mut one, client, &NOW).expect("a client");
    let server = Server::new(&mut other, server, None, &NOW).expect("a server");
    check(&mut Link::secure(Echo::new(server, step), client));
}

/// Turns after which nothing will come any more.
const TURNS_MAX: usize = 2_000_000;

fn connect(link: &mut Link<'_, Echo<'_>>) -> Result<(), LinkError<Broken>> {
    for _ in 0..TURNS_MAX {
        if link.connect(&mut security(), || NOW)? {
            return Ok(());
        }
    }
    panic!("no connection comes to be");
}

/// The next that comes, but nothing.
fn next(link: &mut Link<'_, Echo<'_>>, into: &mut [u8]) -> Result<Received, LinkError<Broken>> {
    for _ in 0..TURNS_MAX {
        match link.receive(&mut security(), || NOW, into)? {
            Received::Nothing => {}
            received => return Ok(received),
        }
    }
    panic!("nothing comes");
}

#[test]
fn what_is_sent_comes_back_however_little_goes_through_at_once() {
    in_world(|client, server, _| {
        for step in [1, 7, 1_000, usize::MAX] {
            with_link(client, server, step, |link| {
                connect(link).expect("connected");
                let bytes: Vec<u8> = (0..5_000u32).map(|it| it as u8).collect();
                let (mut sent, mut back, mut security) = (0, Vec::new(), security());
                while back.len() < bytes.len() {
                    sent += link.send(&mut security, &bytes[sent..]).expect("sent");
                    let mut into = [0; 300];
                    let received = link.receive(&mut security, || NOW, &mut into);
                    if let Received::Bytes(length) = received.expect("received") {
                        back.extend_from_slice(&into[..length]);
                    }
                }
                assert_eq!(back, bytes, "by {step} bytes");
            });
        }
    });
}

#[test]
fn an_announced_end_is_an_end_and_a_cut_is_an_error() {
    in_world(|client, server, _| {
        with_link(client, server, usize::MAX, |link| {
            connect(link).expect("connected");
            link.network_mut().closes_after = 3;
            while link.send(&mut security(), b"hello").expect("sent") == 0 {}
            let mut into = [0; 300];
            assert_eq!(next(link, &mut into), Ok(Received::Bytes(3)));
            assert_eq!(next(link, &mut into), Ok(Received::End));
        });
        with_link(client, server, usize::MAX, |link| {
            connect(link).expect("connected");
            link.network_mut().cut_after = 0;
            assert_eq!(next(link, &mut [0; 300]), Err(LinkError::Tls(Error::Truncated)));
        });
    });
}

#[test]
fn a_cut_or_a_broken_network_in_the_handshake_is_an_error() {
    in_world(|client, server, _| {
        with_link(client, server, usize::MAX, |link| {
            link.network_mut().cut_after = 100;
            assert_eq!(connect(link), Err(LinkError::Tls(Error::Truncated)));
        });
        with_link(client, server, usize::MAX, |link| {
            link.network_mut().is_broken = true;
            assert_eq!(connect(link), Err(LinkError::Network(Broken)));
        });
    });
}

#[test]
fn a_server_that_proves_nothing_is_told_why() {
    in_world(|client, server, _| {
        let other = world();
        let anchors = [tenure_tls::x509::Anchor::from_certificate(&other.root).expect("an anchor")];
        let trust = tenure_tls::Trust::Anchors { anchors: &anchors, without_date: &[] };
        let client = ClientConfig { trust, ..*client };
        with_link(&client, server, usize::MAX, |link| {
            assert!(matches!(connect(link), Err(LinkError::Tls(Error::Certificate(_)))));
            // The alert may have found no room at once.
            for _ in 0..4 {
                let _ = link.connect(&mut security(), || NOW);
            }
            let network = link.network_mut();
            let ended = network.server.poll(&mut network.security, &NOW);
            assert_eq!(ended, Err(Error::Alerted(tenure_tls::Alert::BAD_CERTIFICATE)));
        });
    });
}

/// A ticket: its bytes, its key, its suite and the number that is added to its age.
type Kept = (Vec<u8>, Vec<u8>, Suite, u32);

/// The last ticket that came.
#[derive(Default)]
struct Last(Option<Kept>);

impl Keep for &mut Last {
    fn keep(&mut self, client: &Client<'_, '_>) {
        let ticket = client.ticket().expect("a ticket");
        let (identity, key) = (ticket.identity.to_vec(), ticket.key.to_vec());
        self.0 = Some((identity, key, ticket.suite, ticket.age_add));
    }
}

#[test]
fn ticket_of_one_link_resumes_another() {
    in_world(|client, server, _| {
        let key = TicketKey::generate(&mut security()).expect("a key");
        let server = ServerConfig { ticket_key: Some(&key), ..*server };
        let mut last = Last::default();
        for is_resumed in [false, true] {
            let kept = last.0.take();
            let pre_shared_key =
                kept.as_ref().map(|(identity, key, suite, age_add)| PreSharedKey {
                    identity,
                    key,
                    suite: *suite,
                    is_external: false,
                    obfuscated_age: *age_add,
                    early_data_bytes_max: 0,
                });
            let client = ClientConfig { pre_shared_key, ..*client };
            let (mut one, mut other) = (vec![0; 20_000], vec![0; 20_000]);
            let client = Client::new(&mut one, &client, &NOW).expect("a client");
            let other = Server::new(&mut other, &server, None, &NOW).expect("a server");
            let mut link = Link::secure(Echo::new(other, usize::MAX), client).keeping(&mut last);
            while !link.connect(&mut security(), || NOW).expect("connected") {}
            assert_eq!(link.is_resumed(), is_resumed);
            while !link.network_mut().server.is_connected() {
                link.send(&mut security(), &[]).expect("sent");
                link.network_mut().serve();
            }
            let network = link.network_mut();
            network.server.send_ticket(&mut network.security, &NOW).expect("connected");
            while link.send(&mut security(), b"hello").expect("sent") == 0 {}
            let received = (0..TURNS_MAX).find_map(|_| {
                let received = link.receive(&mut security(), || NOW, &mut [0; 300]);
                Some(received.expect("received")).filter(|it| *it != Received::Nothing)
            });
            assert_eq!(received, Some(Received::Bytes(5)), "what comes behind a ticket comes");
        }
        assert!(last.0.is_some());
    });
}

#[test]
fn without_tls_the_networks_own_bytes_go_through() {
    struct Pipe(Vec<u8>);
    impl Network for Pipe {
        type Error = Broken;
        fn send(&mut self, bytes: &[u8]) -> Result<usize, Broken> {
            let room = 8 - self.0.len();
            self.0.extend_from_slice(&bytes[..bytes.len().min(room)]);
            Ok(bytes.len().min(room))
        }
        fn receive(&mut self, into: &mut [u8]) -> Result<Received, Broken> {
            let length = self.0.len().min(into.len());
            into[..length].copy_from_slice(&self.0[..length]);
            self.0.drain(..length);
            Ok(if length == 0 { Received::Nothing } else { Received::Bytes(length) })
        }
    }
    let (mut link, mut security) = (Link::plain(Pipe(Vec::new())), security());
    assert_eq!(link.connect(&mut security, || NOW), Ok(true));
    assert_eq!(link.send(&mut security, b"0123456789"), Ok(8));
    let mut into = [0; 5];
    assert_eq!(link.receive(&mut security, || NOW, &mut into), Ok(Received::Bytes(5)));
    assert_eq!(link.receive(&mut security, || NOW, &mut into), Ok(Received::Bytes(3)));
    assert_eq!(link.receive(&mut security, || NOW, &mut into), Ok(Received::Nothing));
}
