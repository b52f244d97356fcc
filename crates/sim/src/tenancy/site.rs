//! The device where it stands: its flash, its clock, and when it sleeps, wakes and loses its power.

use std::time::Duration;

use tenure_hal::simulated::Random;
use tenure_hal::{FlashGeometry, Instant, UnixTime};
use tenure_node::{Config, Door, Input, Moment, Node, Notice, Parts, Wake};
use tenure_package::Package;
use tenure_wire::control::{Client as _, ReceiptQuery};

use super::scene::{Scene, end_us};
use super::{CHECKPOINT, DEVICE, PERIOD_S, TENANTS, address};
use crate::clock::Clock;
use crate::flash::{Device, Partition};
use crate::guests;

const STORE_SECTORS: u32 = 32;
const CODE_SECTORS: u32 = 24;
const STAGING_SECTORS: u32 = 4;
const SLICE_US: u64 = 2_000;
/// How many flash operations the power lasts for at most once it is to fail.
const OPERATIONS_BEFORE_CUT: u64 = 40;

pub(super) struct Site {
    flash: Device,
    node: Option<Box<Node<Partition>>>,
    clock: Clock,
    has_clock: bool,
    is_asleep: bool,
    loses_power: bool,
    /// When the device is polled next, or switched on, if it is off.
    due_us: u64,
    /// When the power fails next, and when the device sleeps next.
    cut_us: u64,
    sleep_us: u64,
}

impl Site {
    /// The place of a device that is off; chance says whether it loses its power, and has a clock.
    pub(super) fn draw(random: &mut Random) -> Self {
        let geometry = FlashGeometry {
            sector_bytes: 4096,
            sector_count: STORE_SECTORS + CODE_SECTORS + STAGING_SECTORS,
            program_bytes: 4,
        };
        Self {
            flash: Device::new(geometry),
            node: None,
            clock: Clock::default(),
            loses_power: random.chance(750),
            has_clock: random.chance(500),
            is_asleep: false,
            due_us: 0,
            cut_us: 0,
            sleep_us: 0,
        }
    }

    /// The device, if it is on.
    pub(super) fn node(&self) -> Option<&Node<Partition>> {
        self.node.as_deref()
    }

    /// When it has something to do.
    pub(super) fn due_us(&self) -> u64 {
        self.due_us
    }

    /// The world's moment as the device knows it.
    pub(super) fn moment<'s>(&self, scene: &'s mut Scene) -> Moment<'s> {
        let unix = UnixTime { seconds: scene.unix_s() };
        Moment {
            now: self.clock.local(scene.now_us),
            unix_time: self.has_clock.then_some(unix),
            entropy: &mut scene.random,
        }
    }

    /// Switches the device on for the first time, and puts a machine of each tenant on it.
    pub(super) fn begin(&mut self, scene: &mut Scene) {
        self.plan_trouble(scene);
        self.boot(scene);
        for (index, (_, name)) in TENANTS.into_iter().enumerate() {
            let bytes = scene.package(index);
            let package = Package::parse(&bytes).expect("a package");
            let mut node = self.node.take().expect("it is on");
            let term = scene.term();
            let placement = guests::placement(&package, node.device_key(), term, 1);
            let placement = placement.sign(&scene.keys.owner).expect("well formed");
            node.install(&mut self.moment(scene), &bytes, &placement).expect("room for it");
            // Only the first one's lease is renewed; the other one's ends, and begins anew with an update.
            scene.books.granted(name, 1, end_us(&term), scene.now_us);
            self.keep(scene, node);
        }
    }

    pub(super) fn receive(&mut self, scene: &mut Scene, from: usize, datagram: &[u8]) {
        let Some(mut node) = self.node.take() else { return };
        node.receive(&mut self.moment(scene), address(from), datagram);
        self.due_us = scene.now_us;
        self.keep(scene, node);
    }

    /// The device, to be polled; `None` if it is switched on or falls asleep instead.
    pub(super) fn awake(&mut self, scene: &mut Scene) -> Option<Box<Node<Partition>>> {
        let Some(node) = self.node.take() else {
            self.boot(scene);
            return None;
        };
        if !scene.is_quiet && scene.now_us >= self.sleep_us {
            self.sleep_us = u64::MAX;
            self.fall_asleep(scene, node);
            return None;
        }
        if self.loses_power && !scene.is_quiet && scene.now_us >= self.cut_us {
            self.cut_us = u64::MAX;
            self.plan_cut(scene);
        }
        Some(node)
    }

    pub(super) fn poll(&mut self, scene: &mut Scene, mut node: Box<Node<Partition>>) {
        if self.flash.is_off() {
            return self.lose_power(scene);
        }
        let wake = node.poll(&mut self.moment(scene));
        self.due_us = match wake {
            Wake::Now => scene.now_us + SLICE_US,
            Wake::At(at) => self.clock.world_us(at).max(scene.now_us + 1),
            Wake::Never => u64::MAX,
        };
        self.keep(scene, node);
    }

    /// The power lasts from now on.
    pub(super) fn restore_power(&self) {
        self.flash.restore_power();
    }

    /// Ends all periods at the device itself, and takes every receipt that it has.
    pub(super) fn fetch_the_rest(&mut self, scene: &mut Scene) {
        let mut node = self.node.take().expect("the device is on in the end");
        let mut moment = self.moment(scene);
        let mut owner = node.as_owner(&mut moment);
        owner.receipts_close(()).expect("there is room for the last receipts");
        let (mut skip, mut pages) = (0, Vec::new());
        loop {
            let page = owner.receipts(ReceiptQuery { skip }).expect("receipts");
            skip += page.receipts.len() as u32;
            pages.push(page.receipts);
            if !page.more {
                break;
            }
        }
        pages.iter().for_each(|receipts| scene.books.received(receipts));
        scene.books.fetched_the_rest();
        self.node = Some(node);
    }

    fn plan_trouble(&mut self, scene: &mut Scene) {
        self.cut_us = scene.now_us + scene.span_us(500..=9_000);
        self.plan_sleep(scene);
    }

    fn plan_sleep(&mut self, scene: &mut Scene) {
        self.sleep_us = scene.now_us + scene.span_us(500..=12_000);
    }

    /// Lets the power fail at one of the next flash operations.
    fn plan_cut(&self, scene: &mut Scene) {
        let operations = scene.random.between(0..=OPERATIONS_BEFORE_CUT);
        self.flash.cut_power_after(operations, scene.random.number());
    }

    fn boot(&mut self, scene: &mut Scene) {
        self.flash.restore_power();
        if !self.is_asleep {
            self.clock.booted_us = scene.now_us;
        }
        let was_asleep = std::mem::take(&mut self.is_asleep);
        let is_first = scene.books.device(None).is_none();
        if self.loses_power && !is_first && !scene.is_quiet && scene.random.chance(200) {
            self.plan_cut(scene);
        }
        let mut config = Config::new("attic".parse().expect("a name"), scene.keys.known);
        config.kernel.slice_fuel = 2_000;
        config.checkpoint = CHECKPOINT;
        config.receipt_period = Duration::from_secs(PERIOD_S);
        let part = |first, count| self.flash.partition(first, count);
        let parts = Parts {
            store: part(0, STORE_SECTORS),
            code: part(STORE_SECTORS, CODE_SECTORS),
            staging: part(STORE_SECTORS + CODE_SECTORS, STAGING_SECTORS),
        };
        let booted = Node::boot(config, parts, &mut self.moment(scene));
        if self.flash.is_off() {
            return self.lose_power(scene);
        }
        let node = booted.unwrap_or_else(|error| panic!("the device doesn't start: {error}"));
        assert!(!was_asleep || node.slept().is_some(), "the device lost what it did in its sleep");
        self.due_us = scene.now_us;
        self.plan_sleep(scene);
        scene.books.switched_on(scene.now_us, was_asleep);
        self.keep(scene, Box::new(node));
    }

    fn fall_asleep(&mut self, scene: &mut Scene, mut node: Box<Node<Partition>>) {
        let span_us = scene.span_us(50..=3_000);
        let mut moment = self.moment(scene);
        let until: Instant = moment.now + Duration::from_micros(span_us);
        node.take(&mut moment, Input::WillSleepUntil(until));
        self.is_asleep = node.fall_asleep(&mut moment).is_ok();
        self.keep(scene, node);
        if self.is_asleep && self.node.take().is_some() {
            scene.books.switched_off(scene.now_us);
            scene.books.sleeps += 1;
            self.due_us = scene.now_us + span_us;
        }
    }

    /// Takes what the device says, unless its power failed meanwhile.
    fn keep(&mut self, scene: &mut Scene, mut node: Box<Node<Partition>>) {
        if self.flash.is_off() {
            return self.lose_power(scene);
        }
        while let Some(notice) = node.notice() {
            if let Notice::Log(line) = notice {
                let machine = line.machine.as_str();
                scene.books.logged(scene.now_us, machine, &line.message, self.has_clock);
            }
        }
        while let Some((to, datagram)) = node.transmit() {
            scene.send(DEVICE, &to, datagram);
        }
        self.node = Some(node);
    }

    fn lose_power(&mut self, scene: &mut Scene) {
        let off_us = scene.span_us(10..=2_000);
        scene.books.switched_off(scene.now_us);
        scene.books.cuts += 1;
        self.flash.with_bytes(|bytes| scene.books.check_private("the flash", bytes));
        self.is_asleep = false;
        self.due_us = scene.now_us + off_us;
        self.plan_trouble(scene);
    }
}
