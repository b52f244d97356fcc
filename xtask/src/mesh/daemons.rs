//! Routing daemons of others in the same namespaces and on the same medium: what devices are compared
//! with.
//!
//! Each namespace has an IPv4 address and forwards; the daemon has to find the ways. What is measured
//! is the same, in the daemons' own terms: a way is a route in the kernel's tables, and a question with
//! its answer is a UDP datagram there and one back, sent once.

use std::fs::File;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsFd as _;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::namespaces::{INTERFACE, Namespace};
use crate::process;

/// The port at which every namespace answers what it is asked.
const PORT: u16 = 7;
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(1);

/// A routing daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Peer {
    /// B.A.T.M.A.N. IV as Debian has it, with its own defaults.
    Batmand,
    /// Babel as Debian has it, for wireless links, with a hello each second.
    Babeld,
}

impl Peer {
    /// The words that start it in a namespace of its own. Both keep files under `/run`, of which each
    /// gets one of its own.
    fn script(self) -> String {
        let daemon = match self {
            Self::Batmand => format!("batmand --no-detach -d 0 {INTERFACE}"),
            Self::Babeld => format!(
                "babeld -I /run/babeld.pid -S /run/babeld-state \
                 -C 'default type wireless hello-interval 1 update-interval 4' \
                 -C 'redistribute local ip 10.73.0.0/24 le 32 allow' -C 'redistribute local deny' \
                 {INTERFACE}"
            ),
        };
        format!("mount -t tmpfs tmpfs /run && exec {daemon}")
    }
}

/// A daemon in its namespace.
pub(super) struct Daemon {
    peer: Peer,
    number: usize,
    child: Child,
    socket: UdpSocket,
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Daemon {
    /// Gives the namespace an address and starts the daemon there.
    pub(super) fn start(peer: Peer, number: usize, namespace: &Namespace) -> Result<Self> {
        let address = address_of(number);
        let prefix = if peer == Peer::Babeld { "32" } else { "24" };
        let set_up = format!(
            "echo 1 > /proc/sys/net/ipv4/ip_forward
            for file in all default {INTERFACE}; do
                echo 0 > /proc/sys/net/ipv4/conf/$file/rp_filter
                echo 0 > /proc/sys/net/ipv4/conf/$file/send_redirects
                echo 0 > /proc/sys/net/ipv4/conf/$file/accept_redirects
            done
            echo 0 > /proc/sys/net/ipv6/conf/{INTERFACE}/disable_ipv6
            ip address add {address}/{prefix} brd + dev {INTERFACE}"
        );
        let shell = |script: &str| {
            let mut command = namespace.command("sh".as_ref());
            command.args(["-c", script]);
            command
        };
        process::run(&mut shell(&set_up)).context("cannot set up a namespace for a daemon")?;
        let mut command = shell(&peer.script());
        let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().context("cannot start the daemon")?;
        let socket = socket_in(namespace, address)?;
        Ok(Self { peer, number, child, socket })
    }

    /// Its process.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it runs.
    pub(super) fn check(&mut self) -> Result<()> {
        let ended = self.child.try_wait()?;
        let (peer, number) = (self.peer, self.number);
        ensure!(ended.is_none(), "{peer:?} of node {number} has ended: {ended:?}");
        Ok(())
    }

    /// To how many of `count` nodes its namespace has routes.
    pub(super) fn ways(&self, namespace: &Namespace, count: usize) -> usize {
        let mut command = namespace.command("ip".as_ref());
        let routes = process::quiet_capture(command.args(["-4", "route", "show", "table", "all"]));
        let routes = routes.unwrap_or_default();
        let others = (0..count).filter(|other| *other != self.number).map(address_of);
        others.filter(|other| has_route(&routes, *other)).count()
    }

    /// Asks another one something, once, and says whether the answer came.
    pub(super) fn asks(&self, other: &Self, question: u64) -> bool {
        let question = question.to_le_bytes();
        // A question that can't be sent isn't answered.
        let _ = self.socket.send_to(&question, (address_of(other.number), PORT));
        let until = Instant::now() + PATIENCE;
        let heard = |socket: &UdpSocket| {
            let mut bytes = [0; 8];
            let (_, from) = socket.recv_from(&mut bytes).ok()?;
            (bytes == question).then_some(from)
        };
        let mut asked = None;
        while asked.is_none() && Instant::now() < until {
            asked = heard(&other.socket);
        }
        let Some(from) = asked else { return false };
        let _ = other.socket.send_to(&question, from);
        while Instant::now() < until {
            if heard(&self.socket).is_some() {
                return true;
            }
        }
        false
    }
}

/// Whether the kernel's tables have a route to that host alone, found by a daemon.
fn has_route(routes: &str, host: Ipv4Addr) -> bool {
    let host = host.to_string();
    routes.lines().any(|line| line.split_whitespace().next() == Some(&host))
}

fn address_of(number: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 73, 0, number as u8 + 1)
}

/// A socket in a namespace; it stays there, whoever uses it.
fn socket_in(namespace: &Namespace, address: Ipv4Addr) -> Result<UdpSocket> {
    let file = File::open(namespace.path()).context("cannot open the namespace")?;
    // A thread is in one namespace at a time, so this one enters and ends.
    let thread = std::thread::spawn(move || -> Result<UdpSocket> {
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
        let socket = UdpSocket::bind((address, PORT))?;
        socket.set_read_timeout(Some(Duration::from_millis(20)))?;
        Ok(socket)
    });
    let socket = thread.join().ok().context("the thread for a socket panicked")?;
    socket.context("cannot open a socket in a namespace")
}

/// The use of a process: for the row of idle daemons.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Footprint {
    /// Memory of its own, in bytes: what no other process shares with it, code aside.
    pub(super) memory_bytes: u64,
    /// Processor time so far.
    pub(super) busy: Duration,
}

impl Footprint {
    /// The use of the process `id` so far.
    pub(super) fn of(id: u32) -> Option<Self> {
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
        let anonymous = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
        let kilobytes: u64 = anonymous.split_whitespace().next()?.parse().ok()?;
        let mut busy_ns = 0_u64;
        for task in std::fs::read_dir(format!("/proc/{id}/task")).ok()?.flatten() {
            // A thread may have ended since it was listed.
            let Ok(schedule) = std::fs::read_to_string(task.path().join("schedstat")) else {
                continue;
            };
            busy_ns += schedule.split_whitespace().next()?.parse::<u64>().ok()?;
        }
        let busy = Duration::from_nanos(busy_ns);
        Some(Self { memory_bytes: kilobytes * 1024, busy })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_is_one_to_that_host_alone() {
        let routes = "10.73.0.2 via 10.73.0.3 dev mesh0 proto babel onlink\n\
                      10.73.0.0/24 dev mesh0 proto kernel\n\
                      local 10.73.0.1 dev mesh0 table local\n";
        let has = |last| has_route(routes, Ipv4Addr::new(10, 73, 0, last));
        assert_eq!([1, 2, 3].map(has), [false, true, false]);
    }

    #[test]
    fn a_process_has_a_footprint() {
        let footprint = Footprint::of(std::process::id()).expect("it runs");
        assert!(footprint.memory_bytes > 0);
    }
}
