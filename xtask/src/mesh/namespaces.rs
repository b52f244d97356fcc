//! Network namespaces, each with one interface into the medium.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use tenure_board_linux::EthernetPort;

use crate::process;

/// The interface's name inside each namespace.
pub(super) const INTERFACE: &str = "mesh0";

/// A network namespace with a pair of interfaces: one inside, one at the medium. Both go with it.
pub(super) struct Namespace {
    name: String,
    /// The interface at the medium.
    outer: String,
}

/// The hardware address of a node's interface.
pub(super) fn hardware_address(node: usize) -> [u8; 6] {
    [0x02, 0, 0, 0, 0, node as u8 + 1]
}

/// An error that says what is missing to make namespaces.
pub(super) fn check_allowed() -> Result<()> {
    if process::find_program("ip").is_none() {
        bail!("network namespaces take the command `ip` (Debian's package iproute2)");
    }
    if !rustix::process::geteuid().is_root() {
        bail!("network namespaces take root: run it with sudo");
    }
    let probe = format!("tenure-probe-{}", std::process::id());
    if !process::succeeds(ip().args(["netns", "add", &probe])) {
        bail!("this system doesn't let root make network namespaces (`ip netns add`)");
    }
    process::succeeds(ip().args(["netns", "delete", &probe]));
    Ok(())
}

impl Namespace {
    /// Makes the namespace of a node.
    pub(super) fn new(node: usize) -> Result<Self> {
        let process = std::process::id();
        // Linux allows 15 characters in the name of an interface.
        let outer = format!("tn{process}x{node}");
        let namespace = Self { name: format!("tenure-{process}-{node}"), outer };
        let [_, _, _, _, _, last] = hardware_address(node);
        let (name, outer) = (namespace.name.as_str(), namespace.outer.as_str());
        let address = format!("02:00:00:00:00:{last:02x}");
        for words in [
            &["netns", "add", name][..],
            &["link", "add", outer, "type", "veth", "peer", "name", INTERFACE, "netns", name],
            &["-n", name, "link", "set", INTERFACE, "address", &address],
            &["-n", name, "link", "set", "lo", "up"],
            &["-n", name, "link", "set", INTERFACE, "up"],
            &["link", "set", outer, "up"],
        ] {
            process::run(ip().args(words)).context("cannot make a network namespace")?;
        }
        namespace.silence();
        Ok(namespace)
    }

    /// Keeps the kernel's own chatter (router solicitations and the like) out of the medium.
    fn silence(&self) {
        let outer = format!("/proc/sys/net/ipv6/conf/{}/disable_ipv6", self.outer);
        // Without IPv6 in the kernel there is nothing to silence.
        let _ = std::fs::write(outer, "1");
        let inner = format!("echo 1 > /proc/sys/net/ipv6/conf/{INTERFACE}/disable_ipv6");
        process::succeeds(self.command(Path::new("sh")).args(["-c", &inner]));
    }

    /// Where it can be opened.
    pub(super) fn path(&self) -> PathBuf {
        Path::new("/run/netns").join(&self.name)
    }

    /// The medium's end of it.
    pub(super) fn port(&self) -> Result<EthernetPort> {
        Ok(EthernetPort::open(&self.outer)?)
    }

    /// A command that runs in it.
    pub(super) fn command(&self, program: &Path) -> Command {
        let mut command = ip();
        command.args(["netns", "exec", &self.name]).arg(program);
        command
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        process::succeeds(ip().args(["link", "delete", &self.outer]));
        process::succeeds(ip().args(["netns", "delete", &self.name]));
    }
}

fn ip() -> Command {
    Command::new("ip")
}
