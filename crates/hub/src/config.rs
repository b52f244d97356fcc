//! The limits of a hub.

use alloc::vec::Vec;

use tenure_wire::VerifyingKey;

/// The devices that a hub lists where nobody says how many.
const DEVICES_MAX: usize = 10_000;
/// The people and programs beside them that have a session each.
const PEOPLE_MAX: usize = 1_000;
/// One of so many devices may send a new record in a second: one renews its record every 20 seconds, and some come together.
const DEVICES_PER_RECORD: usize = 10;

/// The configuration of a hub.
#[derive(Clone, Debug)]
pub struct Config {
    /// The only owners whose devices it lists; empty means anybody's.
    pub owners: Vec<VerifyingKey>,
    /// The most devices it lists. Those that are listed already go on, though there are more.
    pub devices_max: usize,
    /// Where it lists anybody's: the most devices of one owner.
    pub devices_per_owner_max: usize,
    /// Where it lists anybody's: the most devices last heard from one host; four times as many from one network of IPv6.
    pub devices_per_host_max: usize,
    /// How long after its record expired a device is forgotten, and its name free again, in seconds.
    pub forget_after_s: u64,
    /// The most new records of one device that are stored in a minute. As many are accepted at once.
    pub records_per_minute: u32,
    /// The most new records of all devices that are stored in a second. As many are accepted at once.
    pub records_per_second_max: u32,
    /// The most bytes that it relays in a second, between devices that nobody else gets through to and others of their owner;
    /// `None` relays nothing.
    pub relay_bytes_per_second: Option<u32>,
    /// Whether devices that are listed may touch in the place of renewing their records; if not, it is as hubs were before.
    pub takes_touches: bool,
    /// Whether its board sends from another port too, what [`Hub::question`](crate::Hub::question) returns, and hands in what
    /// comes there ([`Hub::receive_elsewhere`](crate::Hub::receive_elsewhere)): so it finds out who answers others.
    pub looks_from_elsewhere: bool,
    /// The sessions' part.
    pub rpc: tenure_rpc::Config,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            owners: Vec::new(),
            devices_max: DEVICES_MAX,
            devices_per_owner_max: 256,
            devices_per_host_max: 256,
            forget_after_s: 30 * 24 * 60 * 60,
            records_per_minute: 20,
            records_per_second_max: 1_000,
            relay_bytes_per_second: Some(10_000_000),
            takes_touches: true,
            looks_from_elsewhere: false,
            rpc: tenure_rpc::Config::for_callers(DEVICES_MAX + PEOPLE_MAX),
        }
    }
}

impl Config {
    /// The usual limits of a hub for that many devices, and for people beside them.
    pub fn for_devices(devices_max: usize) -> Self {
        let rpc = tenure_rpc::Config::for_callers(devices_max.saturating_add(PEOPLE_MAX));
        let usual = Self::default();
        let records_per_second_max = usual.records_per_second_max.max(records_of(devices_max));
        Self { devices_max, records_per_second_max, rpc, ..usual }
    }

    /// Gives devices that are listed already the room that they have in a hub for so many, where it was told to list fewer:
    /// otherwise they would end each other's sessions. Returns whether it was.
    pub(crate) fn carry(&mut self, listed: usize) -> bool {
        if listed <= self.devices_max {
            return false;
        }
        let Self { records_per_second_max, rpc, .. } = Self::for_devices(listed);
        self.rpc.widen(&rpc);
        self.records_per_second_max = self.records_per_second_max.max(records_per_second_max);
        true
    }
}

/// How many new records so many devices may send in a second.
fn records_of(devices: usize) -> u32 {
    u32::try_from(devices / DEVICES_PER_RECORD).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_and_the_pace_of_records_follow_the_number_of_devices() {
        let [few, usual, many] = [1_000, DEVICES_MAX, 100_000].map(Config::for_devices);
        assert_eq!(usual.rpc.sessions_max, Config::default().rpc.sessions_max);
        for (config, devices) in [(&usual, DEVICES_MAX), (&many, 100_000)] {
            let callers = devices + PEOPLE_MAX;
            assert_eq!((config.devices_max, config.rpc.sessions_max), (devices, 3 * callers));
            assert_eq!(config.rpc.callers_max, 2 * callers);
        }
        let paces = [few, usual, many].map(|config| config.records_per_second_max);
        assert_eq!(paces, [1_000, 1_000, 10_000]);
    }
}
