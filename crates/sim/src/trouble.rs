//! Faults and traffic of worlds: a world without trouble proves nothing.

use std::fmt;
use std::ops::AddAssign;

use serde::Serialize;

/// The faults of one world or many, and the traffic in them meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Trouble {
    /// How often a node lost its power.
    pub power_cuts: u64,
    /// Of those, in the middle of a flash operation.
    pub torn_writes: u64,
    /// How often a node was switched on again that had been on before.
    pub restarts: u64,
    /// How often a device fell into deep sleep.
    pub sleeps: u64,
    /// How often a device stood still and went on.
    pub stops: u64,
    /// How often the network was parted.
    pub partitions: u64,
    /// How often a link was cut.
    pub cut_links: u64,
    /// Frames that somebody without the network's key recorded and sent again.
    pub replays: u64,
    /// Calls that machines made.
    pub calls: u64,
    /// Datagrams that nodes sent each other.
    pub datagrams: u64,
    /// Broadcasts that nodes sent.
    pub broadcasts: u64,
}

impl AddAssign for Trouble {
    fn add_assign(&mut self, other: Self) {
        self.power_cuts += other.power_cuts;
        self.torn_writes += other.torn_writes;
        self.restarts += other.restarts;
        self.sleeps += other.sleeps;
        self.stops += other.stops;
        self.partitions += other.partitions;
        self.cut_links += other.cut_links;
        self.replays += other.replays;
        self.calls += other.calls;
        self.datagrams += other.datagrams;
        self.broadcasts += other.broadcasts;
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { power_cuts, torn_writes, restarts, sleeps, partitions, cut_links, .. } = self;
        let Self { replays, calls, datagrams, broadcasts, .. } = self;
        write!(
            f,
            "{power_cuts} power cuts ({torn_writes} of them in a write), {restarts} restarts, \
             {sleeps} deep sleeps, {partitions} partitions, {cut_links} links cut, {replays} frames \
             replayed; {calls} calls, {datagrams} datagrams, {broadcasts} broadcasts"
        )
    }
}
