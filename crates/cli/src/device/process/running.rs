//! A node with its link, clock and randomness, and the main loop's turn over all of them.

use std::cell::Cell;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use serde_json::json;
use tenure_board_linux::{FileFlash, LinuxClock, LinuxEntropy, UdpLink, Watchdog, wait_any};
use tenure_bridge::Published;
use tenure_hal::{Clock as _, Instant, Peripheral};
use tenure_node::{
    Bedtime, Config, Door as _, Input, Moment, Node, Notice, Parts, SleepPolicy, Wake,
};
use tenure_reach::TunnelWay;
use tenure_replay::{Recorded, Tape};
use tenure_wire::console::{IN_MESH, LISTENS_ON};
use tenure_wire::control::{Client as _, Enrol};
use tenure_wire::datagram::{Datagram, Relayed};
use tenure_wire::directory::Enrolment;
use tenure_wire::printable::counted;
use tenure_wire::{Address, LogLevel, Name, TopicPattern};

use super::bridging::Bridging;
use super::coap::DeviceCoap;
use super::dates::SharedDate;
use super::hub_names::HubNames;
use super::hub_way;
use super::outside::{Outside, Ways};
use super::pace::{Continued, Pace, Round};
use super::pages::DevicePages;
use super::reaching::Reaching;
use super::shown::show;
use crate::device::{deep_sleep, link};
use crate::home::Home;
use crate::home::known::Known;
use crate::make::symbols::MachineSymbols;
use crate::reach::client::OwnerKeys;
use crate::reach::discovery::Discovery;
use crate::reach::hub_link::{HubLink, OF_DEVICES};
use crate::reach::network::DATAGRAMS_PER_TURN;
use crate::terminal::output::Output;
use crate::terminal::stop::Stop;

/// The most datagrams that are thrown away at once: more than a socket holds.
const THROWN_AWAY_MAX: usize = 65_536;
/// The longest that the loop sleeps: the watchdog is fed within its period, and a wait doesn't count the time in which the
/// system is suspended, as the device's clock does.
const NAP: Duration = Duration::from_secs(10);
/// The same while others may announce themselves, which wakes nobody.
const NAP_IN_DISCOVERY: Duration = Duration::from_secs(2);

/// A node with its link, clock and randomness: what a board's main loop turns.
pub struct Running {
    pub(super) node: Recorded<FileFlash>,
    pub(super) link: HubLink,
    clock: LinuxClock,
    entropy: LinuxEntropy,
    symbols: MachineSymbols,
    /// The least grave lines of logs that are printed.
    pub(super) print_level: LogLevel,
    datagram: Vec<u8>,
    mesh: Option<link::MeshLink>,
    discovery: Option<Discovery>,
    /// The look-ups of its hub's names, if it has a hub.
    pub(super) hub_names: Option<HubNames>,
    /// The way to servers outside, if machines have one.
    pub(super) reaching: Option<Reaching>,
    /// The way to a broker, if topics are bridged.
    pub(super) bridging: Option<Bridging>,
    pages: Option<DevicePages>,
    coap: Option<DeviceCoap>,
    /// The state of these ways, as the node knows it.
    outside: Outside,
    /// The date by which certificates are judged there.
    date: SharedDate,
    /// Where the device keeps its files.
    folder: PathBuf,
    /// Whether it compiles machines that ask for it.
    native_speed: bool,
    /// By when the loop means to come round, and what the process had worked when it said so.
    pace: Cell<Pace>,
    /// Whether it was stopped, and goes on.
    continued: Continued,
    /// Whether what lies in its socket may have waited there for long.
    has_waited: bool,
    /// The first machine that has failed, and the first that has logged an error.
    failed: Option<Name>,
    complained: Option<Name>,
}

/// Lends a node the compiler for machines that ask for native speed. A run that is recorded is one of the interpreter.
#[cfg_attr(not(feature = "native-speed"), expect(unused_variables))]
fn lend_engine(node: &mut Recorded<FileFlash>, native_speed: bool) {
    #[cfg(feature = "native-speed")]
    if native_speed && node.tape().is_none() {
        // The file by whatever name it has by now.
        let engine = tenure_board_linux::NativeSpeed::new(|| {
            let mut compiler = std::process::Command::new("/proc/self/exe");
            compiler.arg(super::COMPILE);
            compiler
        });
        node.lend().use_engine(Box::new(engine));
    }
}

/// Whether a datagram asks for a session, by whatever way. It may carry a call, which doesn't say until when it is wanted as
/// those in a session do.
fn is_first_message(datagram: &[u8]) -> bool {
    let datagram = Relayed::parse(datagram).map_or(datagram, |relayed| relayed.datagram);
    matches!(Datagram::parse(datagram), Ok(Datagram::Initiation(_)))
}

impl Running {
    /// Boots a node that keeps its files in `folder`, and enrols it if the owner's key is in `home` and
    /// it isn't yet. Its run is recorded if there is a `tape`; it compiles machines that ask for `native_speed` if that is so.
    ///
    /// # Errors
    /// The node's.
    pub fn start(
        config: Config,
        parts: Parts<FileFlash>,
        link: UdpLink,
        home: &Home,
        folder: &Path,
        tape: Option<Tape>,
        native_speed: bool,
    ) -> anyhow::Result<Self> {
        let (clock, mut entropy) = (LinuxClock::start(), LinuxEntropy);
        let mut moment =
            Moment { now: clock.now(), unix_time: clock.unix_time(), entropy: &mut entropy };
        let name = config.name.clone();
        let mut node = Recorded::boot(config, parts, &mut moment, tape)?;
        if !node.node().is_enrolled() {
            let keys = OwnerKeys::of(home)?;
            if keys.owner() == node.node().owner() {
                enrol(&mut node, &mut moment, &keys, home, name)?;
            }
        }
        lend_engine(&mut node, native_speed);
        let link = HubLink::over(link);
        let symbols = MachineSymbols::default();
        let datagram = vec![0; 65_536];
        let folder = folder.to_owned();
        let (mesh, discovery, hub_names) = (None, None, None);
        let (reaching, bridging) = (None, None);
        let (pages, coap) = (None, None);
        let (outside, date) = (Outside::default(), SharedDate::default());
        let (failed, complained) = (None, None);
        let (pace, continued) = (Cell::default(), Continued::listen());
        Ok(Self {
            node,
            link,
            clock,
            entropy,
            symbols,
            print_level: LogLevel::Debug,
            datagram,
            mesh,
            discovery,
            hub_names,
            reaching,
            bridging,
            pages,
            coap,
            outside,
            date,
            folder,
            native_speed,
            pace,
            continued,
            has_waited: false,
            failed,
            complained,
        })
    }

    /// The node itself.
    pub fn node(&mut self) -> &mut Node<FileFlash> {
        self.node.lend()
    }

    /// Finds its hub by `names`, and goes there by `detour` where UDP is blocked.
    pub(super) fn find_hub_by(&mut self, names: HubNames, detour: Option<TunnelWay>) {
        if let Some(way) = detour {
            self.link.go_round_by(way, OF_DEVICES);
        }
        self.link.hub_is_at(names.sockets());
        self.hub_names = Some(names);
    }

    /// Keeps the date by which certificates are judged in `date` from now on.
    pub(super) fn judge_by(&mut self, date: SharedDate) {
        self.date = date;
        let date = self.date.clone();
        self.with_moment(|node, moment| date.note(node.node(), moment));
    }

    /// Takes a link into the mesh into use, and joins the owner's mesh if the owner's keys are in
    /// `home` and the device hasn't joined one.
    pub(super) fn enter_mesh(
        &mut self,
        link: link::MeshLink,
        home: &Home,
        output: &Output,
    ) -> anyhow::Result<()> {
        let keys = OwnerKeys::of(home)?;
        if self.node.node().mesh_stack().is_none() && self.node.node().owner() == keys.owner() {
            self.with_moment(|node, moment| link::join(node, moment, home, &keys.signing_key))?;
        }
        let joined = self.node.node().mesh_stack().map(|stack| stack.node().to_string());
        if joined.is_none() {
            self.with_moment(|node, moment| node.take(moment, Input::Knock));
        }
        let address = link.address();
        let text = match &joined {
            Some(node) => format!("{IN_MESH} {node}, at {address}"),
            None => format!(
                "at {address} asks to be let into the mesh: where its owner's keys are, \
                 `tenure invite` does that, over UDP or via a member that hears this device"
            ),
        };
        let object = json!({ "event": "mesh", "node": joined, "address": address });
        output.line(&text, &object);
        self.mesh = Some(link);
        Ok(())
    }

    /// Announces the device on its network, and listens for others there.
    pub(super) fn discover(&mut self, output: &Output) {
        let key = self.node.node().device_machine();
        match Discovery::start(&key, self.link.address()) {
            Ok(discovery) => self.discovery = Some(discovery),
            Err(error) => {
                let object = json!({ "event": "no-discovery", "reason": format!("{error:#}") });
                output.line(&format!("{error:#}; it is found by its address alone"), &object);
            }
        }
    }

    /// Serves the pages of its machines to browsers.
    pub(super) fn serve_pages(
        &mut self,
        listen: SocketAddr,
        output: &Output,
    ) -> anyhow::Result<()> {
        let device = (self.node.node().name(), self.link.address());
        let pages = DevicePages::serve(listen, &self.folder, device, output)?;
        pages.update(self.node.node());
        self.pages = Some(pages);
        Ok(())
    }

    /// Serves its machines, and the events of these topics, to clients of CoAP.
    pub(super) fn serve_coap(
        &mut self,
        listen: SocketAddr,
        events: Vec<TopicPattern>,
        output: &Output,
    ) -> anyhow::Result<()> {
        let device = (self.node.node().name(), self.link.address());
        let mut coap = DeviceCoap::serve(listen, events, &self.folder, device, output)?;
        coap.update(self.node.node());
        self.coap = Some(coap);
        Ok(())
    }

    /// Whether it is time to sleep.
    pub(super) fn bedtime(&mut self) -> Option<Bedtime> {
        self.node.bedtime()
    }

    /// Turns the device off until its time, or until a datagram comes where it listens for that. A
    /// device that can't fall asleep stays awake and says why.
    pub(super) fn sleep(
        mut self,
        Bedtime { until }: Bedtime,
        config: &Config,
        (stop, watchdog): (&Stop, &Watchdog),
        output: &Output,
    ) -> anyhow::Result<Self> {
        if let Err(error) = self.with_moment(|node, moment| node.fall_asleep(moment)) {
            let object = json!({ "event": "sleepless", "reason": error.to_string() });
            output.line(&format!("can't sleep: {error}"), &object);
            return Ok(self);
        }
        self.transmit()?;
        deep_sleep::announce_sleep(until.map(|until| until.since(self.clock.now())), output);
        let Self {
            mut node,
            link,
            clock,
            mut entropy,
            symbols,
            print_level,
            datagram,
            mesh,
            mut discovery,
            hub_names,
            reaching,
            bridging,
            pages,
            coap,
            outside: _,
            date,
            folder,
            native_speed,
            pace: _,
            continued,
            has_waited: _,
            failed,
            complained,
        } = self;
        let peripherals = node.lend().detach_all();
        let (parts, tape) = node.into_parts();
        let hears = matches!(config.sleep, SleepPolicy::WhenIdle { .. });
        deep_sleep::wait(until, hears, (&link.sockets(), &clock), stop, || watchdog.feed())?;
        let mut moment =
            Moment { now: clock.now(), unix_time: clock.unix_time(), entropy: &mut entropy };
        let mut node = Recorded::boot(config.clone(), parts, &mut moment, tape)?;
        lend_engine(&mut node, native_speed);
        deep_sleep::announce_wake(node.node().slept(), output);
        let mesh = mesh.map(link::MeshLink::awake);
        if let Some(discovery) = &mut discovery {
            discovery.repeat();
        }
        let mut awake = Self {
            node,
            link,
            clock,
            entropy,
            symbols,
            print_level,
            datagram,
            mesh,
            discovery,
            hub_names,
            reaching,
            bridging,
            pages,
            coap,
            // The node is another, and was told nothing.
            outside: Outside::default(),
            date,
            folder,
            native_speed,
            pace: Cell::default(),
            continued,
            has_waited: false,
            failed,
            complained,
        };
        awake.attach_again(peripherals)?;
        if let Some(found) = awake.hub_names.as_ref().and_then(HubNames::told) {
            awake.with_moment(|node, moment| node.take(moment, found));
        }
        Ok(awake)
    }

    /// Takes peripherals into use.
    ///
    /// # Errors
    /// One of them has a name that is none, or that another has, or they are too many.
    pub fn attach(&mut self, peripherals: Vec<Box<dyn Peripheral + Send>>) -> anyhow::Result<()> {
        let watched = peripherals.into_iter().map(|peripheral| match self.node.tape() {
            Some(tape) => tape.watch(peripheral),
            None => peripheral,
        });
        let watched = watched.collect();
        self.attach_again(watched)
    }

    fn attach_again(&mut self, peripherals: Vec<Box<dyn Peripheral + Send>>) -> anyhow::Result<()> {
        for peripheral in peripherals {
            let name = peripheral.name().to_string();
            self.node
                .attach(self.clock.now(), peripheral)
                .with_context(|| format!("peripheral `{name}`"))?;
        }
        Ok(())
    }

    /// The symbols that faults of its machines are explained by.
    pub fn symbols(&mut self) -> &mut MachineSymbols {
        &mut self.symbols
    }

    /// The first machine that has failed since the start.
    pub fn failed(&self) -> Option<&Name> {
        self.failed.as_ref()
    }

    /// The first machine that has logged an error since the start.
    pub fn complained(&self) -> Option<&Name> {
        self.complained.as_ref()
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.link.address()
    }

    /// The time since it started.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Does something with the node at this moment.
    pub fn with_moment<T>(
        &mut self,
        act: impl FnOnce(&mut Recorded<FileFlash>, &mut Moment<'_>) -> T,
    ) -> T {
        let mut moment = Moment {
            now: self.clock.now(),
            unix_time: self.clock.unix_time(),
            entropy: &mut self.entropy,
        };
        act(&mut self.node, &mut moment)
    }

    /// One turn of the loop: what has arrived, one poll, what is to be sent and shown. Gives until when
    /// the node has nothing to do.
    ///
    /// # Errors
    /// The link is broken.
    pub fn turn(&mut self, output: &Output) -> anyhow::Result<Wake> {
        let (now, worked) = (self.clock.now(), tenure_board_linux::worked());
        match self.pace.get().round(now, worked) {
            Round::StoodStill => self.throw_away(output)?,
            Round::Late => self.has_waited = true,
            Round::InTime => {}
        }
        self.pace.set(Pace { due: now, worked });
        // First, as the owner may ask for it after a long wait.
        self.tell_outside();
        self.receive()?;
        let mut moment = Moment {
            now: self.clock.now(),
            unix_time: self.clock.unix_time(),
            entropy: &mut self.entropy,
        };
        if let Some(mesh) = &mut self.mesh {
            mesh.receive(&mut moment, &mut self.node)?;
            mesh.tell_plugged(output);
        }
        if let Some(reaching) = &mut self.reaching {
            reaching.receive(&mut moment, &mut self.node);
        }
        if let Some(bridging) = &mut self.bridging {
            bridging.receive(&mut moment, &mut self.node);
        }
        self.date.note(self.node.node(), &moment);
        while let Some(address) = self.discovery.as_mut().and_then(|it| it.heard(output)) {
            self.with_moment(|node, moment| node.take(moment, Input::Neighbour(address.into())));
        }
        let (now, is_listed) = (self.clock.now(), self.node.node().is_listed());
        let found = self.hub_names.as_mut().and_then(|names| names.turn(now, is_listed, output));
        if let Some(found) = found {
            self.link.hub_is_at(self.hub_names.iter().flat_map(HubNames::sockets));
            self.with_moment(|node, moment| node.take(moment, found));
        }
        while let Some(news) = self.link.news() {
            hub_way::tell(&news, output);
        }
        let mut wake = self.with_moment(|node, moment| node.poll(moment));
        // Before it is answered that a machine was installed: who is told so may visit it at once.
        if let Some(pages) = &self.pages {
            pages.update(self.node.node());
        }
        if let Some(coap) = &mut self.coap {
            coap.update(self.node.node());
        }
        if let Some(mesh) = &mut self.mesh
            && mesh.exchange(self.clock, &mut self.entropy, &mut self.node)?
        {
            wake = Wake::Now;
        }
        self.transmit()?;
        if let Some(reaching) = &mut self.reaching {
            reaching.transmit(self.clock.now(), &mut self.node);
        }
        self.carry_events();
        while let Some(notice) = self.node.notice() {
            if let Notice::Log(line) = &notice {
                let level = line.level.parse().unwrap_or(LogLevel::Fault);
                if level > self.print_level {
                    continue;
                }
                match line.level.as_str() {
                    "fault" => _ = self.failed.get_or_insert_with(|| line.machine.clone()),
                    "error" => _ = self.complained.get_or_insert_with(|| line.machine.clone()),
                    _ => {}
                }
            }
            show(&notice, &self.symbols, output);
        }
        if let Some(tape) = self.node.tape() {
            tell_of_failure(tape, output);
        }
        Ok(wake)
    }

    /// Hands over what has arrived, a turn's share at most.
    fn receive(&mut self) -> anyhow::Result<()> {
        for _ in 0..DATAGRAMS_PER_TURN {
            let received = self.link.receive(&mut self.datagram)?;
            // Asked after each, as the process may be stopped between two of them.
            self.has_waited |= self.continued.take();
            let Some((length, from)) = received else {
                self.has_waited = false;
                break;
            };
            // Who still waits for its call sends it again.
            if self.has_waited && is_first_message(&self.datagram[..length]) {
                continue;
            }
            let datagram = std::mem::take(&mut self.datagram);
            self.with_moment(|node, moment| node.receive(moment, from.into(), &datagram[..length]));
            self.datagram = datagram;
        }
        Ok(())
    }

    /// Throws away what lies in the socket of a device that stood still: calls in there whose callers were told long ago that
    /// nobody can be reached. What still counts is sent again.
    fn throw_away(&mut self, output: &Output) -> anyhow::Result<()> {
        let mut thrown = 0_usize;
        while thrown < THROWN_AWAY_MAX && self.link.receive(&mut self.datagram)?.is_some() {
            thrown += 1;
        }
        output.line(
            &format!("the device stood still for a while; {thrown} datagrams that came meanwhile are thrown away"),
            &json!({ "event": "stood-still", "datagrams": thrown }),
        );
        Ok(())
    }

    /// Tells the node the state of its ways outside.
    fn tell_outside(&mut self) {
        let mut moment = Moment {
            now: self.clock.now(),
            unix_time: self.clock.unix_time(),
            entropy: &mut self.entropy,
        };
        let (bridging, reaching) = (self.bridging.as_ref(), self.reaching.as_ref());
        let ways = || Ways::of(bridging, reaching, self.coap.as_ref());
        self.outside.tell(&mut moment, &mut self.node, ways);
    }

    /// Hands over what machines and peripherals have published to those who carry it further.
    fn carry_events(&mut self) {
        if self.coap.is_none() && self.bridging.is_none() {
            return;
        }
        while let Some((topic, payload, publisher)) = self.node.event() {
            if let Some(coap) = &self.coap {
                coap.event(&topic, &payload);
            }
            if let Some(bridging) = &self.bridging {
                bridging.publish(Published { topic, payload, publisher });
            }
        }
    }

    /// Waits until there is more to do or `stop` is requested, but not for longer than a nap.
    ///
    /// # Errors
    /// The link is broken.
    pub fn rest(&self, wake: Wake, stop: &Stop) -> anyhow::Result<()> {
        let nap = if self.discovery.is_some() { NAP_IN_DISCOVERY } else { NAP };
        self.rest_at_most(wake, stop, nap)
    }

    /// As [`Self::rest`], for `longest` at most.
    ///
    /// # Errors
    /// The link is broken.
    pub fn rest_at_most(&self, wake: Wake, stop: &Stop, longest: Duration) -> anyhow::Result<()> {
        if let Some(tape) = self.node.tape().filter(|_| wake != Wake::Now) {
            tape.flush();
        }
        let span = match wake {
            Wake::Now => return Ok(()),
            Wake::At(at) => at.since(self.clock.now()).min(longest),
            Wake::Never => longest,
        };
        let span = self.link.due_in().map_or(span, |due_in| due_in.min(span));
        self.pace.set(Pace { due: self.clock.now() + span, worked: tenure_board_linux::worked() });
        let mut sockets: Vec<&dyn AsFd> = vec![stop];
        sockets.extend(self.link.sockets());
        sockets.extend(self.hub_names.as_ref().map(|names| names as &dyn AsFd));
        sockets.extend(self.reaching.as_ref().map(|reaching| reaching as &dyn AsFd));
        sockets.extend(self.bridging.as_ref().map(|bridging| bridging as &dyn AsFd));
        match &self.mesh {
            Some(mesh) => mesh.wait(&sockets, span)?,
            None => drop(wait_any(&sockets, span)?),
        }
        Ok(())
    }

    /// Ends the device, and its record if there is one.
    pub(super) fn finish(self, output: &Output) {
        let tape = self.node.tape().cloned();
        self.node.finish();
        if let Some(discovery) = self.discovery {
            discovery.end();
        }
        if let Some(tape) = tape {
            tell_of_failure(&tape, output);
        }
    }

    /// Sends all that the node has to send.
    fn transmit(&mut self) -> anyhow::Result<()> {
        if let Some(mesh) = &mut self.mesh {
            mesh.transmit(&mut self.node)?;
        }
        while let Some((to, datagram)) = self.node.transmit() {
            // A datagram that isn't sent is one that is lost: it will be sent again.
            if let Address::Udp(to) = to {
                let _ = self.link.send(&to, &datagram);
            }
        }
        Ok(())
    }

    /// Says what was found in flash, at length only if something there is damaged.
    pub(super) fn announce_mount(&self, output: &Output) {
        let report = self.node.node().mount_report();
        let object = json!({
            "event": "mounted",
            "values": report.keys,
            "damaged_records": report.damaged_records,
            "damaged_headers": report.damaged_headers,
            "mended_records": report.mended_records,
            "changes_lost": report.changes_lost,
            "batch_broken_off": report.batch_broken_off,
        });
        let damaged = report.damaged_records + report.damaged_headers;
        if damaged > 0 || output.is_json() {
            let values = report.keys;
            output.line(
                &format!(
                    "flash: {} intact; passed over {} (a write that was broken off before it was acknowledged, or \
                     rotten bits)",
                    counted(values, "value"),
                    counted(damaged, "damaged place")
                ),
                &object,
            );
        }
        if report.mended_records > 0 && !output.is_json() {
            let mended = counted(report.mended_records, "record");
            output.line(
                &format!(
                    "flash: {mended} had one bit flipped, which was turned back; nothing is lost"
                ),
                &serde_json::Value::Null,
            );
        }
        if report.changes_lost > 0 && !output.is_json() {
            let lost = report.changes_lost;
            output.line(
                &format!("flash: acknowledged changes that can't be read any more: {lost}"),
                &serde_json::Value::Null,
            );
        }
    }

    pub(super) fn announce(&self, output: &Output) {
        let address = self.link.address().to_string();
        let (name, key) = (self.node.node().name(), self.node.node().device_machine());
        output.line(
            &format!("device {name} {LISTENS_ON} {address}, key {key}"),
            &json!({ "event": "listening", "device": name.as_str(), "address": address, "key": key.to_string() }),
        );
    }
}

/// Says once that a record is given up.
fn tell_of_failure(tape: &Tape, output: &Output) {
    if let Some(why) = tape.failure() {
        output.line(
            &format!("the record is given up, and the device runs on: {why}"),
            &json!({ "event": "record-failed", "reason": why }),
        );
    }
}

fn enrol(
    node: &mut Recorded<FileFlash>,
    moment: &mut Moment<'_>,
    keys: &OwnerKeys,
    home: &Home,
    device: Name,
) -> anyhow::Result<()> {
    // A device that is made anew comes after the one that it replaces.
    let number = home.next_number(Known::of(home)?.enrolment(&device));
    let enrolment = Enrolment { device, device_key: node.node().device_key(), number };
    let signature = tenure_directory::enrol(&keys.signing_key, &enrolment);
    Ok(node.as_owner(moment).enrol(Enrol { enrolment, signature })?)
}

#[cfg(test)]
mod tests;
