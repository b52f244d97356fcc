//! The medium: frames go from a node to those that hear it, if they aren't lost, after a while.

mod checksum;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tenure_board_linux::EthernetPort;
use tenure_hal::simulated::Random;

use super::namespaces::hardware_address;

/// The longest that the medium sleeps, so that it notices when it is to end.
const NAP: Duration = Duration::from_millis(50);
/// The longest frame that is carried.
const FRAME_BYTES_MAX: usize = 2048;
/// Frames of one node that are taken in before another's.
const FRAMES_PER_TURN: usize = 32;

/// The fate of frames.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weather {
    pub(super) loss_percent: u8,
    /// How often a lost frame for one receiver is repeated.
    pub(super) retries: u32,
    pub(super) delay: Duration,
    pub(super) seed: u64,
}

/// A thread that carries frames.
pub(super) struct Medium {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    is_open: AtomicBool,
    ends: AtomicBool,
    air_bytes: AtomicU64,
}

impl Medium {
    /// A medium between `ports`, of which each reaches its `neighbours`; it drops all frames until
    /// it is opened.
    pub(super) fn start(
        ports: Vec<EthernetPort>,
        neighbours: Vec<Vec<usize>>,
        weather: Weather,
    ) -> Result<Self> {
        let shared = Arc::new(Shared::default());
        let mut air = Air {
            ports,
            neighbours,
            weather,
            random: Random::new(weather.seed),
            flying: BinaryHeap::new(),
            departures: 0,
            shared: shared.clone(),
        };
        let thread = std::thread::Builder::new().name("medium".to_owned());
        let thread = thread.spawn(move || air.carry()).context("cannot start the medium")?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Lets it carry frames.
    pub(super) fn open(&self) {
        self.shared.is_open.store(true, Ordering::Relaxed);
    }

    /// How many bytes were sent, repetitions included.
    pub(super) fn air_bytes(&self) -> u64 {
        self.shared.air_bytes.load(Ordering::Relaxed)
    }
}

impl Drop for Medium {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A frame on its way: when it arrives, the how-manieth it is, where, and what it is.
type Flying = Reverse<(Instant, u64, usize, Vec<u8>)>;

struct Air {
    ports: Vec<EthernetPort>,
    neighbours: Vec<Vec<usize>>,
    weather: Weather,
    random: Random,
    flying: BinaryHeap<Flying>,
    departures: u64,
    shared: Arc<Shared>,
}

impl Air {
    fn carry(&mut self) {
        let mut frame = [0; FRAME_BYTES_MAX];
        while !self.shared.ends.load(Ordering::Relaxed) {
            self.wait();
            for from in 0..self.ports.len() {
                for _ in 0..FRAMES_PER_TURN {
                    // A port that is gone is one of a namespace that is being removed.
                    let Ok(Some(length)) = self.ports[from].receive(&mut frame) else { break };
                    if self.shared.is_open.load(Ordering::Relaxed) {
                        checksum::complete(&mut frame[..length]);
                        self.depart(from, &frame[..length]);
                    }
                }
            }
            self.arrive();
        }
    }

    fn wait(&self) {
        let now = Instant::now();
        let next = self.flying.peek().map(|Reverse((due, ..))| due.saturating_duration_since(now));
        let nap = next.unwrap_or(NAP).min(NAP);
        let nap = Timespec { tv_sec: 0, tv_nsec: nap.subsec_nanos().into() };
        let ports = self.ports.iter().map(|port| PollFd::new(port, PollFlags::IN));
        let _ = poll(&mut ports.collect::<Vec<_>>(), Some(&nap));
    }

    fn depart(&mut self, from: usize, frame: &[u8]) {
        let Some(receiver) = frame.first_chunk::<6>() else { return };
        let to_all = receiver[0] & 1 == 1;
        let tries = if to_all { 1 } else { 1 + self.weather.retries };
        let mut transmissions = 1;
        for to in self.neighbours[from].clone() {
            if !to_all && *receiver != hardware_address(to) {
                continue;
            }
            let received = (1..=tries).find(|_| !self.is_lost());
            transmissions = transmissions.max(received.unwrap_or(tries));
            if received.is_some() {
                self.departures += 1;
                let due = Instant::now() + self.weather.delay;
                self.flying.push(Reverse((due, self.departures, to, frame.to_vec())));
            }
        }
        let bytes = u64::from(transmissions) * frame.len() as u64;
        self.shared.air_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn arrive(&mut self) {
        let now = Instant::now();
        while self.flying.peek().is_some_and(|Reverse((due, ..))| *due <= now) {
            let Some(Reverse((_, _, to, frame))) = self.flying.pop() else { return };
            // A queue that is full loses frames, as in the air.
            let _ = self.ports[to].send(&frame);
        }
    }

    fn is_lost(&mut self) -> bool {
        self.random.below(100) < u64::from(self.weather.loss_percent)
    }
}
