//! Receipts over many periods, with the power going at random flash operations.

use std::collections::BTreeMap;
use std::time::Duration;

use tenure_hal::Instant;
use tenure_node::{Config, Moment, Node, Parts, Wake};
use tenure_package::{Package, Placement, ReceiptChain};
use tenure_wire::control::{ReceiptForget, ReceiptQuery};
use tenure_wire::usage::Usage;
use tenure_wire::{MachineId, Share, Term};

use crate::flash::{Device, Partition};
use crate::guests;
use crate::place::Keys;
use crate::random::Random;
use crate::scenario::Role;

const CHECKPOINT: Duration = Duration::from_secs(2);
const PERIOD: Duration = Duration::from_secs(10);
const STORE_SECTORS: u32 = 32;
const CODE_SECTORS: u32 = 16;
/// How long a slice takes.
const SLICE_MS: u64 = 2;

/// A device whose power goes, and an owner who fetches its receipts now and then.
struct World {
    flash: Device,
    keys: Keys,
    random: Random,
    chains: BTreeMap<MachineId, ReceiptChain>,
    /// How long the device was on, in milliseconds, since the machines were installed.
    on_ms: u64,
    /// How long the device has been on since it booted, in milliseconds.
    now_ms: u64,
    cuts: u64,
}

impl World {
    fn boot(&mut self) -> Option<Node<Partition>> {
        self.now_ms = 0;
        let mut config = Config::new("meter".parse().unwrap(), self.keys.known);
        config.kernel.slice_fuel = 2_000;
        config.checkpoint = CHECKPOINT;
        config.receipt_period = PERIOD;
        let part = |first, count| self.flash.partition(first, count);
        let parts = Parts {
            store: part(0, STORE_SECTORS),
            code: part(STORE_SECTORS, CODE_SECTORS),
            staging: part(STORE_SECTORS + CODE_SECTORS, 4),
        };
        let mut moment = Moment { now: Instant::BOOT, unix_time: None, entropy: &mut self.random };
        let booted = Node::boot(config, parts, &mut moment);
        match booted {
            Ok(node) => Some(node),
            Err(error) => {
                assert!(self.flash.is_off(), "{error}");
                None
            }
        }
    }

    fn install(&mut self, node: &mut Node<Partition>, name: &str, role: &Role) {
        let bytes = guests::package(name, role, &self.keys.tenant);
        let package = Package::parse(&bytes).unwrap();
        let placement = Placement {
            package: package.digest(),
            device: node.device_key(),
            machine: package.manifest().name.clone(),
            budget: package.manifest().budget,
            share: Share::default(),
            grants: package.manifest().capabilities.clone(),
            term: Term::default(),
            sequence: 1,
        };
        let placement = placement.sign(&self.keys.owner).unwrap();
        let mut moment = Moment { now: Instant::BOOT, unix_time: None, entropy: &mut self.random };
        node.install(&mut moment, &bytes, &placement).unwrap();
    }

    /// Runs until the power goes or the time is over.
    fn run(&mut self, node: &mut Node<Partition>, span_ms: u64) {
        let (mut now_ms, mut fetch_ms) = (self.now_ms, self.now_ms);
        while now_ms < self.now_ms + span_ms && !self.flash.is_off() {
            let now = Instant::from_millis(now_ms);
            let mut moment = Moment { now, unix_time: None, entropy: &mut self.random };
            let wake = node.poll(&mut moment);
            let next_ms = match wake {
                Wake::Now => now_ms + SLICE_MS,
                Wake::At(at) => at.as_millis().clamp(now_ms + 1, now_ms + 500),
                Wake::Never => now_ms + 500,
            };
            self.on_ms += next_ms - now_ms;
            now_ms = next_ms;
            if now_ms > fetch_ms && !self.flash.is_off() {
                fetch_ms = now_ms + 5_000;
                self.fetch(node);
            }
        }
        self.now_ms = now_ms;
    }

    /// Fetches what is there, checks it, and lets the device forget it; the power may go meanwhile,
    /// so that the same receipts come again.
    fn fetch(&mut self, node: &mut Node<Partition>) {
        let Ok(page) = node.receipts(&ReceiptQuery { skip: 0 }) else {
            assert!(self.flash.is_off());
            return;
        };
        for bytes in &page.receipts {
            let (receipt, _) = tenure_package::Receipt::verify(bytes).unwrap();
            match self.chains.get_mut(&receipt.machine) {
                None => {
                    assert_eq!(receipt.number, 0);
                    let chain = ReceiptChain::begin(bytes).unwrap();
                    self.chains.insert(receipt.machine, chain);
                }
                // It was fetched before, and the device lost its power before it forgot it.
                Some(chain) if receipt.number <= chain.last().number => {}
                Some(chain) => drop(chain.follow(bytes).unwrap()),
            }
        }
        for (machine, chain) in &self.chains {
            let forget = ReceiptForget { machine: *machine, through: chain.last().number };
            let forgotten = node.forget_receipts(&forget);
            assert!(forgotten.is_ok() || self.flash.is_off());
        }
    }
}

fn check(seed: u64) {
    let mut random = Random::new(seed);
    let keys = Keys::draw(&mut random);
    let geometry = tenure_hal::FlashGeometry {
        sector_bytes: 4096,
        sector_count: STORE_SECTORS + CODE_SECTORS + 4,
        program_bytes: 4,
    };
    let (flash, chains) = (Device::new(geometry), BTreeMap::new());
    let mut world = World { flash, keys, random, chains, on_ms: 0, now_ms: 0, cuts: 0 };
    let mut node = world.boot().unwrap();
    world.install(&mut node, "spinner", &Role::Spinner);
    world.install(&mut node, "ticker", &Role::Ticker);
    world.run(&mut node, 15_000);
    for _ in 0..25 {
        let operations = world.random.between(0..=14);
        let tear = world.random.number();
        world.flash.cut_power_after(operations, tear);
        let span = world.random.between(500..=25_000);
        world.run(&mut node, span);
        if world.flash.is_off() {
            world.cuts += 1;
            world.flash.restore_power();
            // The power may go again while it boots.
            let (operations, tear) = (world.random.between(0..=40), world.random.number());
            world.flash.cut_power_after(operations, tear);
            node = loop {
                match world.boot() {
                    Some(node) => break node,
                    None => world.flash.restore_power(),
                }
            };
        }
    }
    world.flash.restore_power();
    node = world.boot().unwrap();
    world.cuts += 1;
    world.run(&mut node, 3 * PERIOD.as_millis() as u64);
    assert!(world.cuts > 5, "seed {seed}: the power went only {} times", world.cuts);
    assert_eq!(world.chains.len(), 2);
    let checkpoint_ms = CHECKPOINT.as_millis() as u64;
    for chain in world.chains.values() {
        let counted_ms = chain.counted_ms;
        assert!(counted_ms <= world.on_ms, "seed {seed}: {counted_ms} of {} ms", world.on_ms);
        // Each cut costs what came after the last checkpoint, and the period under way isn't billed.
        let lost_max =
            (world.cuts + 1) * (checkpoint_ms + 600) + PERIOD.as_millis() as u64 + checkpoint_ms;
        assert!(
            counted_ms + lost_max >= world.on_ms,
            "seed {seed}: {counted_ms} of {} ms, {} cuts",
            world.on_ms,
            world.cuts
        );
    }
    let totals: Vec<Usage> = world.chains.values().map(|chain| chain.total).collect();
    let run_ms: u64 = totals.iter().map(|total| total.run_us / 1000).sum();
    assert!(run_ms <= world.on_ms, "seed {seed}: no moment is billed to two");
    assert!(totals.iter().all(|total| total.fuel > 0 && total.code_byte_ms > 0));
    assert!(totals.iter().any(|total| total.run_us > 1_000_000), "seed {seed}: the spinner pays");
}

#[test]
fn nothing_is_billed_twice_and_little_is_lost_whenever_the_power_goes() {
    (0..2).for_each(check);
}

#[test]
#[ignore = "takes minutes: run it with --release"]
fn nothing_is_billed_twice_with_hundreds_of_seeds() {
    (100..400).for_each(check);
}
