//! How many devices a hub lists at most: as its operator says, or by the memory that it may take.
//!
//! A device takes about so much of the hub's memory where the tables are full (docs/hub-operations.md):
//!
//! | what | bytes |
//! |---|---:|
//! | its record with two machines, and its places in the orders by which it is found, as `cargo xtask bench hub` measures them | 2,200 |
//! | each further machine | 250 |
//! | three sessions: its own, the next one, and a stranger's | 990 |
//! | two callers, with two calls each that are remembered | 620 |
//! | two initiations that were accepted | 240 |
//! | its pace, when it is due, and the look at how it is reached | 300 |
//!
//! That is 4.4 KB, and 7.9 KB with sixteen machines. Memory isn't all that devices take: where its operator doesn't say how many, a
//! hub lists no more than it was measured with, however much memory there is. A process of 32 bits has room for those, too.

use std::fmt;
use std::path::Path;

use tenure_wire::printable::counted;

/// The fewest devices that a hub lists where nobody says how many, and the most: with as many its start and its pages were
/// measured (docs/benchmarks.md).
const LEAST: u64 = 1_000;
const MOST_UNSAID: u64 = 100_000;
/// The most devices that its operator may say.
pub(super) const MOST: u64 = 1_000_000;
const _: () = assert!(LEAST <= MOST_UNSAID && MOST_UNSAID <= MOST);
/// The bytes of memory that are set aside for a device.
const DEVICE_BYTES: u64 = 8 * 1024;
/// One part in so many of the memory is for devices: the rest is the system's, the database's and the pages'.
const PARTS: u64 = 2;

/// Where the system shows the groups of processes whose memory is bounded, and those of this process.
const GROUPS: &str = "/sys/fs/cgroup";
const OWN_GROUPS: &str = "/proc/self/cgroup";
/// The files of a group that say how much memory it may take, of version 2 and of version 1 (cgroups(7)): beyond `memory.high`
/// its processes are slowed down.
const LIMITS: &[&str] = &["memory.max", "memory.high"];
const LIMITS_OF_VERSION_1: &[&str] = &["memory.limit_in_bytes"];

/// The most devices of a hub, and why so many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DevicesMax {
    pub(super) count: usize,
    why: Why,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    /// The operator says so.
    Said,
    /// This computer has so many bytes of memory.
    Computer(u64),
    /// The hub may take so many of them.
    Group(u64),
    /// There is memory for more, and nobody says that it lists them.
    Usual,
}

impl DevicesMax {
    /// As many as the operator says, or as there is memory for.
    pub(super) fn choose(said: Option<u64>) -> Self {
        match said {
            Some(count) => Self { count: count_of(count), why: Why::Said },
            None => {
                let own = std::fs::read_to_string(OWN_GROUPS).unwrap_or_default();
                Self::by_memory(computer_bytes(), limit_bytes(Path::new(GROUPS), &own))
            }
        }
    }

    fn by_memory(computer_bytes: u64, limit_bytes: Option<u64>) -> Self {
        let limit_bytes = limit_bytes.filter(|bytes| *bytes < computer_bytes);
        let bytes = limit_bytes.unwrap_or(computer_bytes);
        let count = (bytes / PARTS / DEVICE_BYTES).max(LEAST);
        let why = match limit_bytes {
            _ if count > MOST_UNSAID => Why::Usual,
            Some(_) => Why::Group(bytes),
            None => Why::Computer(bytes),
        };
        Self { count: count_of(count.min(MOST_UNSAID)), why }
    }

    /// How many of them are `listed`, in words.
    pub(super) fn words(&self, listed: usize) -> String {
        let (count, why) = (self.count, self.why);
        let beyond = match listed > count {
            true => "; there are more, which go on, and no new one is listed",
            false => "",
        };
        format!("lists {listed} of {} at most, {why}{beyond}", counted(count, "device"))
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: &u64| bytes >> 20;
        match self {
            Self::Said => f.write_str("as --devices-max says"),
            Self::Computer(bytes) => {
                write!(f, "for the {} MiB of memory that this computer has", mib(bytes))
            }
            Self::Group(bytes) => {
                write!(f, "for the {} MiB of memory that its cgroup may take", mib(bytes))
            }
            Self::Usual => {
                f.write_str("the limit without --devices-max, however much memory there is")
            }
        }
    }
}

fn count_of(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// The memory of this computer, in bytes.
fn computer_bytes() -> u64 {
    let system = rustix::system::sysinfo();
    let bytes = u128::from(system.totalram) * u128::from(system.mem_unit);
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// The least limit of the groups of `own`, as a process shows its groups, below the folder of all groups; `None` if none has a
/// limit. A container may see its own group in the place of all.
fn limit_bytes(groups: &Path, own: &str) -> Option<u64> {
    let of_line = |line: &str| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, group) = (parts.next()?, parts.next()?);
        let is_memory = controllers.split(',').any(|controller| controller == "memory");
        let (root, files) = match (controllers.is_empty(), is_memory) {
            (true, _) => (groups.to_path_buf(), LIMITS),
            (false, true) => (groups.join("memory"), LIMITS_OF_VERSION_1),
            (false, false) => return None,
        };
        let folder = root.join(group.trim_start_matches('/'));
        let folders = folder.ancestors().take_while(|folder| folder.starts_with(&root));
        let paths = folders.flat_map(|folder| files.iter().map(move |file| folder.join(file)));
        paths.filter_map(|path| bytes_in(&path)).min()
    };
    own.lines().filter_map(of_line).min()
}

/// The number of bytes in a file; `None` if it says that there is no limit, or isn't there.
fn bytes_in(path: &Path) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const MIB: u64 = 1 << 20;

    fn count(computer_bytes: u64, limit_bytes: Option<u64>) -> usize {
        DevicesMax::by_memory(computer_bytes, limit_bytes).count
    }

    #[test]
    fn number_of_devices_goes_by_the_memory_between_its_bounds_unless_it_is_said() {
        assert_eq!(count(512 * MIB, None), 32_768);
        assert_eq!(count(4_096 * MIB, Some(1_024 * MIB)), 65_536, "the lower one counts");
        assert_eq!(count(256 * MIB, Some(1_024 * MIB)), 16_384);
        assert_eq!([count(0, None), count(8 * MIB, None)], [1_000; 2]);
        let plenty = [count(1 << 40, None), count(u64::MAX, Some(1 << 40)), count(16 << 30, None)];
        assert_eq!(plenty, [100_000; 3], "memory isn't all that devices take");
        assert_eq!(DevicesMax::choose(Some(7)), DevicesMax { count: 7, why: Why::Said });
        let chosen = DevicesMax::choose(None).count as u64;
        assert!((LEAST..=MOST_UNSAID).contains(&chosen), "{chosen}");
    }

    #[test]
    fn limit_of_memory_is_the_least_of_a_group_and_of_those_that_it_is_in() {
        let folder = tempfile::tempdir().unwrap();
        let groups = folder.path();
        let write = |file: &str, text: &str| {
            let path = groups.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let own = "0::/system.slice/tenure-hub.service\n";
        assert_eq!(limit_bytes(groups, own), None, "there are no groups");
        write("system.slice/memory.max", "max\n");
        write("system.slice/tenure-hub.service/memory.max", "268435456\n");
        assert_eq!(limit_bytes(groups, own), Some(256 * MIB));
        write("system.slice/memory.max", "134217728\n");
        assert_eq!(limit_bytes(groups, own), Some(128 * MIB));
        write("system.slice/tenure-hub.service/memory.high", "67108864\n");
        assert_eq!(limit_bytes(groups, own), Some(64 * MIB), "beyond that it is slowed down");
        assert_eq!(limit_bytes(groups, "0::/user.slice\n"), None, "that is another one");
        // In a container the path may be one of the computer outside, which isn't there.
        write("memory.max", "1073741824\n");
        assert_eq!(limit_bytes(groups, "0::/docker/4f2a\n"), Some(1_024 * MIB));
        assert_eq!(limit_bytes(groups, "0::/\n"), Some(1_024 * MIB));
        assert_eq!(limit_bytes(groups, ""), None);
    }

    #[test]
    fn limit_of_memory_is_found_in_groups_of_version_1() {
        let folder = tempfile::tempdir().unwrap();
        let group = folder.path().join("memory/docker/4f2a");
        fs::create_dir_all(&group).unwrap();
        fs::write(group.join("memory.limit_in_bytes"), "536870912\n").unwrap();
        let own = "12:pids:/docker/4f2a\n4:cpu,memory:/docker/4f2a\n1:name=systemd:/docker/4f2a\n";
        assert_eq!(limit_bytes(folder.path(), own), Some(512 * MIB));
    }

    #[test]
    fn words_say_how_many_of_how_many_and_why() {
        let by_group = DevicesMax::by_memory(512 * MIB, Some(64 * MIB));
        let words = by_group.words(3);
        let expected =
            "lists 3 of 4096 devices at most, for the 64 MiB of memory that its cgroup may take";
        assert_eq!(words, expected);
        let said = DevicesMax::choose(Some(2));
        assert_eq!(said.words(2), "lists 2 of 2 devices at most, as --devices-max says");
        let beyond = said.words(3);
        assert!(beyond.ends_with("which go on, and no new one is listed"), "{beyond}");
        let by_computer = DevicesMax::by_memory(32 * MIB, Some(64 * MIB)).words(0);
        assert!(by_computer.contains("32 MiB of memory that this computer has"), "{by_computer}");
        let usual = DevicesMax::by_memory(16_384 * MIB, None).words(1);
        let expected = "lists 1 of 100000 devices at most, the limit without --devices-max";
        assert!(usual.starts_with(expected), "{usual}");
    }
}
