//! The cost of a device that is in a mesh and has nothing to do: the heap of its state, and how often it
//! wakes.
//!
//! `cargo bench -p tenure-node --features mesh --bench idle`. 24 devices in a grid, each hearing up to four,
//! run for ten simulated minutes without a machine; then one is taken apart. What its node gives back is the
//! heap of all of it: protocols, queues, records of all 24 devices, sessions, kernel, store. A device that
//! never joined tells which part of that is the mesh's. The flash, and the datagram that a link reads into,
//! are the board's. Bytes are those of a 64-bit computer, and exact.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tenure_crypto::{Seed, SigningKey};
use tenure_hal::simulated::{RamFlash, Sequence};
use tenure_hal::{FlashGeometry, Instant, UnixTime};
use tenure_mesh::Destination;
use tenure_node::{Config, Door as _, Moment, Node, Owner, Parts, Wake};
use tenure_protocols::network_key::{NetworkKey, invite};
use tenure_wire::control::{Client as _, Enrol, Join};
use tenure_wire::directory::Enrolment;

const DEVICES: usize = 24;
const COLUMNS: usize = 5;
const SPAN: Duration = Duration::from_secs(600);
/// When waking is counted from: ways and records have come to rest.
const SETTLED: Duration = Duration::from_secs(300);

/// The system's allocator, which counts.
struct Counting;

static USED_BYTES: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: every request goes to the system's allocator as it is, and so does what it gives.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        USED_BYTES.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract that this is under.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        USED_BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above; it came from there.
        unsafe { System.dealloc(memory, layout) }
    }
}

struct Device {
    node: Node<RamFlash>,
    wakes_at: Instant,
    wakes: u64,
}

fn main() {
    let owner = SigningKey::from_bytes(&[7; 32]);
    let mut entropy = Sequence(1);
    let network = NetworkKey::generate(&mut entropy).expect("randomness");
    let mut devices: Vec<_> = (0..DEVICES)
        .map(|number| {
            let mut node = boot(&owner, number, &mut entropy);
            let machine = node.device_machine();
            let invitation = invite(&owner, &machine, 1, &network, &mut entropy);
            let invitation = invitation.expect("a key");
            let mut moment = moment(Instant::BOOT, &mut entropy);
            node.as_owner(&mut moment).join(Join { invitation }).expect("a mesh");
            Device { node, wakes_at: Instant::BOOT, wakes: 0 }
        })
        .collect();
    let alone = heap_of(boot(&owner, DEVICES, &mut entropy));
    run(&mut devices, &mut entropy);
    let heard = devices.iter().map(|device| device.node.mesh_stack().map_or(0, ways));
    let complete = heard.filter(|ways| *ways == DEVICES - 1).count();
    let wakes: u64 = devices.iter().map(|device| device.wakes).sum();
    let seconds = (SPAN - SETTLED).as_secs_f64() * DEVICES as f64;
    // One from the middle, with four neighbours.
    let whole = heap_of(devices.swap_remove(COLUMNS + 2).node);
    println!("devices that know ways to all others  {complete} of {DEVICES}");
    println!("heap of a node in the mesh            {whole} bytes");
    println!("… of one that isn't                   {alone} bytes");
    println!("… so the mesh's part                  {} bytes", whole.saturating_sub(alone));
    println!("wakes a second, each                  {:.2}", wakes as f64 / seconds);
}

fn ways(stack: &tenure_node::MeshStack) -> usize {
    let router = stack.protocol::<tenure_protocols::babel::Babel>();
    let own = stack.node();
    router.map_or(0, |router| router.table().destinations().filter(|to| *to != own).count())
}

fn boot(owner: &SigningKey, number: usize, entropy: &mut Sequence) -> Node<RamFlash> {
    let machine = Seed::from_bytes(&owner.to_bytes()).device_secret().public_key();
    let name = format!("node{number}").parse().expect("a name");
    let config = Config::new(name, Owner { verifying_key: owner.verifying_key(), machine });
    let flash = |sector_count| {
        RamFlash::new(FlashGeometry { sector_bytes: 4096, sector_count, program_bytes: 4 })
    };
    let parts = Parts { store: flash(64), code: flash(64), staging: flash(32) };
    let mut node = Node::boot(config, parts, &mut moment(Instant::BOOT, entropy)).expect("a boot");
    let device = node.name().clone();
    let enrolment = Enrolment { device, device_key: node.device_key(), number: 1 };
    let signature = tenure_directory::enrol(owner, &enrolment);
    let mut moment = self::moment(Instant::BOOT, entropy);
    node.as_owner(&mut moment).enrol(Enrol { enrolment, signature }).expect("an enrolment");
    node
}

fn moment(now: Instant, entropy: &mut Sequence) -> Moment<'_> {
    let unix_time = Some(UnixTime { seconds: 1_800_000_000 + now.as_millis() / 1000 });
    Moment { now, unix_time, entropy }
}

/// Bytes of a node on the heap, itself included, and its flash not.
fn heap_of(node: Node<RamFlash>) -> usize {
    let own_bytes = size_of::<Node<RamFlash>>();
    let before = USED_BYTES.load(Ordering::Relaxed);
    let flash = node.into_parts();
    let given_back = before - USED_BYTES.load(Ordering::Relaxed);
    drop(flash);
    own_bytes + given_back
}

/// Lets the time pass; each device is polled when it wants to be, or when a frame has come.
fn run(devices: &mut [Device], entropy: &mut Sequence) {
    let mut now = Instant::BOOT;
    let end = now + SPAN;
    while now < end {
        let next = devices.iter().map(|device| device.wakes_at).min();
        now = next.unwrap_or(end).max(now + Duration::from_micros(100));
        for from in 0..devices.len() {
            if devices[from].wakes_at > now {
                continue;
            }
            attend(&mut devices[from], now, entropy);
            while let Some((to, frame)) = devices[from].node.transmit_frame() {
                deliver(devices, from, to, &frame, &mut moment(now, entropy));
            }
        }
    }
}

fn attend(device: &mut Device, now: Instant, entropy: &mut Sequence) {
    device.wakes += u64::from(now.since(Instant::BOOT) >= SETTLED);
    device.wakes_at = match device.node.poll(&mut moment(now, entropy)) {
        Wake::Now => now,
        Wake::At(at) => at,
        Wake::Never => now + SPAN,
    };
}

fn deliver(
    devices: &mut [Device],
    from: usize,
    to: Destination,
    frame: &[u8],
    moment: &mut Moment<'_>,
) {
    for (index, device) in devices.iter_mut().enumerate() {
        let (one, two) = (from.min(index), from.max(index));
        let hears = two == one + COLUMNS || (two == one + 1 && two % COLUMNS != 0);
        let node = device.node.mesh_stack().expect("all have joined").node();
        if hears && (to == Destination::All || to == Destination::One(node)) {
            let _ = device.node.receive_frame(moment, frame, None);
            device.wakes_at = moment.now;
        }
    }
}
