//! A hostile guest among neighbours: whatever host calls it makes, it gets no byte of theirs, keeps
//! none of them from its work, and nothing panics.
//!
//! `keeper` belongs to another tenant and lets nobody in but the owner. Its memory, its tree, its
//! secret, its events and the parameters in its queue are filled with a pattern of six bytes each,
//! again and again, so that any six of them that get out are known wherever they turn up. `friend` is
//! a third tenant's and serves the guest as it serves anybody. In between, the device sleeps, loses
//! its power, swaps, and has its flash fail in the middle of an operation.

use std::fmt;
use std::time::Duration;

use tenure_crypto::{SigningKey, machine_id};
use tenure_kernel::policy::PolicyKind;
use tenure_node::{Config, Notice};
use tenure_rpc::NoResult;
use tenure_wire::control::{Function, Unban, decode_answer};
use tenure_wire::host_call::TABLE;
use tenure_wire::limits::PARAMETER_BYTES_MAX;
use tenure_wire::{Budget, Capabilities, PublicKey};

use crate::hostile_calls::{Draw, MEMORY_BYTES, Manner, Texts, guest, script};
use crate::leases::{Lease, anybody};
use crate::world::World;

const MEMORY: &str = "k#mem1";
const TREE: &str = "k#tre2";
const SECRET: &str = "k#sec3";
const EVENT: &str = "k#evt4";
const QUEUE: &str = "k#que5";
/// The neighbours' secret, which nobody else may get.
const PATTERNS: [&str; 5] = [MEMORY, TREE, SECRET, EVENT, QUEUE];

const OWNER: usize = 0;
/// How long the guest has for a script before it is left to itself.
const PATIENCE: Duration = Duration::from_secs(3);
/// More than the first back-off after a fault.
const BACK_OFF: Duration = Duration::from_millis(1_100);

/// The outcome of scripts.
#[derive(Debug)]
pub(crate) struct Tally {
    /// How often each call of the table was made, and how often well. What the guest didn't live to
    /// tell isn't counted.
    pub(crate) calls: Vec<(u64, u64)>,
    pub(crate) scripts: u64,
    pub(crate) faults: u64,
    pub(crate) sleeps: u64,
    pub(crate) power_losses: u64,
}

impl Tally {
    pub(crate) const fn new() -> Self {
        Self { calls: Vec::new(), scripts: 0, faults: 0, sleeps: 0, power_losses: 0 }
    }

    /// How many calls were made in all.
    pub(crate) fn made(&self) -> u64 {
        self.calls.iter().map(|(made, _)| made).sum()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let well: u64 = self.calls.iter().map(|(_, well)| well).sum();
        let Self { scripts, faults, sleeps, power_losses, .. } = self;
        write!(
            f,
            "{} host calls, {well} of them well, in {scripts} scripts; the guest was stopped {faults} \
             times, the device slept {sleeps} times and lost its power {power_losses} times",
            self.made()
        )
    }
}

/// Runs that many scripts in a device of their own, whose machines fit into its memory or take turns
/// there. What they do follows from `given`, and from `seed` once that is used up.
///
/// # Panics
/// A neighbour was disturbed or its bytes seen.
pub(crate) fn run(given: &[u8], seed: u64, room: Room, scripts: u32, tally: &mut Tally) {
    let mut draw = Draw::new(given, seed);
    let arena = Arena::new(&mut draw, room, friend(ECHO));
    perform_all(arena, &mut draw, scripts, tally);
}

fn perform_all(mut arena: Arena, draw: &mut Draw<'_>, scripts: u32, tally: &mut Tally) {
    for _ in 0..scripts {
        let manner = if draw.one_in(3) { Manner::Beyond } else { Manner::Within };
        arena.perform(draw, manner, tally);
        arena = arena.interfere(draw, tally);
    }
}

/// Whether all machines fit into memory at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    Enough,
    Scarce,
}

/// A device with the guest and its neighbours.
struct Arena {
    world: World,
    keeper: PublicKey,
    friend: PublicKey,
    guest: PublicKey,
    /// A person on the network who is called and answers.
    stranger: usize,
    secrets: u64,
    /// How often the keeper has worked since it was started.
    worked: u32,
    /// The guest's count since it was started.
    counted: Vec<(u64, u64)>,
}

impl Arena {
    fn new(draw: &mut Draw<'_>, room: Room, friend: Lease) -> Self {
        let policy = PolicyKind::ALL[draw.below(4) as usize];
        let mut world = World::new(|config: &mut Config| {
            config.kernel.policy = policy;
            if room == Room::Scarce {
                config.kernel.memory_bytes_max = 48 * 1024;
                config.kernel.swap_bytes_max = 160 * 1024;
                config.kernel.swap_residence = Duration::from_millis(10);
            }
        });
        let stranger = world.stranger();
        let keeper = world.install_lease(keeper());
        let friend = world.install_lease(friend);
        let guest = world.install_lease(hostile());
        let mut arena = Self {
            world,
            keeper,
            friend,
            guest,
            stranger,
            secrets: 0,
            worked: 0,
            counted: vec![(0, 0); TABLE.len()],
        };
        arena.set_secret(&[7; 32], "vault", SECRET.repeat(10).as_bytes());
        arena.set_secret(&[8; 32], "own", b"what the guest may read");
        arena
    }

    fn set_secret(&mut self, tenant: &[u8; 32], name: &str, value: &[u8]) {
        self.secrets += 1;
        self.world.set_secret(&SigningKey::from_bytes(tenant), name, self.secrets, value);
    }

    fn tell_device(&mut self, function: &str, parameter: &[u8]) {
        let device = self.world.node.device_machine();
        let answer = self.world.call(OWNER, &device, function, Some(parameter)).unwrap().unwrap();
        decode_answer::<()>(&answer).unwrap();
    }

    /// Lets the guest perform a script, then looks at what it has, and at how its neighbours are.
    fn perform(&mut self, draw: &mut Draw<'_>, manner: Manner, tally: &mut Tally) {
        let ids = [&self.keeper, &self.friend].map(|key| format!("#{}", machine_id(key)));
        let keys = [self.keeper, self.friend, self.world.strangers[self.stranger].key];
        let keys = keys.map(|key| format!("#{key}"));
        let others = ids.iter().chain(&keys).map(String::as_str).collect();
        let script = script(draw, &texts(others), manner);
        let held = QUEUE.repeat(20);
        let holds: Vec<_> = (0..2)
            .map(|_| {
                let parameter = Some(held.as_bytes());
                self.world.start_call(OWNER, &self.keeper, "hold", parameter, PATIENCE)
            })
            .collect();
        let performed = self.ask(self.guest, "perform", &script);
        tally.scripts += 1;
        if let Ok(Some(reply)) = &performed {
            assert_private("its reply", reply);
        }
        if self.read_logs() {
            tally.faults += 1;
            self.counted.fill((0, 0));
            self.world.skip(BACK_OFF);
            let machine = "guest".parse().unwrap();
            let unban = postcard::to_allocvec(&Unban { machine }).unwrap();
            self.tell_device(Function::unban.name(), &unban);
        } else {
            self.inspect(tally);
        }
        for hold in holds {
            let reply = self.wait_for(OWNER, hold);
            assert_eq!(reply, Ok(Some(held.clone().into_bytes())), "what waits in the queue");
        }
        self.check_keeper();
        self.answer_as_stranger();
    }

    /// Looks at all of the guest's memory, and takes its counts.
    fn inspect(&mut self, tally: &mut Tally) {
        for offset in [1, MEMORY_BYTES - PARAMETER_BYTES_MAX as u32] {
            if let Ok(Some(memory)) = self.ask(self.guest, "dump", &offset.to_le_bytes()) {
                assert_private("its memory", &memory);
            }
        }
        let Ok(Some(report)) = self.ask(self.guest, "report", &[]) else { return };
        tally.calls.resize(TABLE.len(), (0, 0));
        for (place, counts) in report.chunks_exact(8).enumerate() {
            let [made, well] = [&counts[..4], &counts[4..]]
                .map(|count| u64::from(u32::from_le_bytes(count.try_into().unwrap())));
            let before = &mut self.counted[place];
            // It was started anew, after a fault while it did something by itself.
            if made < before.0 {
                *before = (0, 0);
            }
            tally.calls[place].0 += made - before.0;
            tally.calls[place].1 += well.saturating_sub(before.1);
            *before = (made, well);
        }
    }

    /// The keeper finds all that it has as it was, in time.
    fn check_keeper(&mut self) {
        let reply = self.ask(self.keeper, "work", &[]).unwrap().unwrap();
        self.worked += 1;
        let expected = [ALL_WELL.to_le_bytes(), self.worked.to_le_bytes()].concat();
        assert_eq!(reply, expected, "the keeper's memory, tree, secret and events, and its count");
    }

    fn answer_as_stranger(&mut self) {
        for (handle, _) in std::mem::take(&mut self.world.strangers[self.stranger].incoming) {
            self.world.reply(self.stranger, handle, Some(b"a stranger's answer".to_vec()));
        }
    }

    /// Looks at what was logged; whether the guest was stopped.
    fn read_logs(&mut self) -> bool {
        let mut was_stopped = false;
        for notice in std::mem::take(&mut self.world.notices) {
            let Notice::Log(line) = notice else { continue };
            match line.machine.as_str() {
                "guest" => was_stopped |= line.level == "fault",
                neighbour => assert_ne!(line.level, "fault", "{neighbour}: {}", line.message),
            }
            assert_private("a log line", line.message.as_bytes());
        }
        was_stopped
    }

    /// The events in a device's life that aren't the guest's doing.
    fn interfere(mut self, draw: &mut Draw<'_>, tally: &mut Tally) -> Self {
        match draw.below(24) {
            0 => {
                tally.sleeps += u64::from(self.world.fall_asleep().is_ok());
                self.start_again()
            }
            1 => {
                tally.power_losses += 1;
                self.start_again()
            }
            2 => {
                tally.power_losses += 1;
                self.world.fuse.set(Some(draw.below(30).into()));
                let script = script(draw, &texts(Vec::new()), Manner::Within);
                let _ = self.ask(self.guest, "perform", &script);
                self.start_again()
            }
            3 => {
                self.set_secret(&[7; 32], "vault", SECRET.repeat(10).as_bytes());
                self
            }
            4 => {
                let _ = self.ask(self.friend, "tell", b"news");
                self
            }
            5 => {
                self.world.pass(Duration::from_millis(100));
                self
            }
            _ => self,
        }
    }

    fn start_again(self) -> Self {
        let world = self.world.off_for(Duration::from_secs(1));
        let mut again = Self { world, ..self };
        if again.world.node.slept().is_none() {
            again.worked = 0;
            again.counted.fill((0, 0));
        }
        // A call that is sent at once might be from before the start, by another clock.
        again.world.skip(BACK_OFF);
        again
    }

    fn ask(
        &mut self,
        whom: PublicKey,
        function: &str,
        parameter: &[u8],
    ) -> Result<Option<Vec<u8>>, NoResult> {
        let parameter = Some(parameter);
        let handle = self.world.start_call(OWNER, &whom, function, parameter, PATIENCE);
        self.wait_for(OWNER, handle)
    }

    fn wait_for(
        &mut self,
        stranger: usize,
        handle: tenure_rpc::CallHandle,
    ) -> Result<Option<Vec<u8>>, NoResult> {
        loop {
            if let Some(result) = self.world.take_result(stranger, handle) {
                return result;
            }
            self.world.tick();
        }
    }
}

#[track_caller]
fn assert_private(what: &str, bytes: &[u8]) {
    for pattern in PATTERNS {
        let twice = pattern.repeat(2);
        let seen = (0..pattern.len()).any(|turn| {
            let turned = &twice.as_bytes()[turn..turn + pattern.len()];
            bytes.windows(pattern.len()).any(|part| part == turned)
        });
        assert!(!seen, "{what} holds a neighbour's {pattern}");
    }
}

/// The targets of a script's calls: the guest's own things, its neighbours' and nobody's. `others` are
/// further targets.
fn texts(mut others: Vec<&str>) -> Texts<'_> {
    others.extend(["guest", "keeper", "friend", "friend", "keeper@attic", "friend@attic"]);
    others.extend(["guest@attic", "nobody@cellar", "", "@", "#00"]);
    Texts {
        targets: others,
        functions: &[
            "",
            "",
            "",
            "",
            "echo",
            "by_itself",
            "back",
            "tell",
            "work",
            "entry",
            "perform",
            "no",
        ],
        paths: &["script", "a", "a.b.c", "a.b", "keep", "keep.a", "machines.0", "seed", "..", ""],
        topics: &[
            "guest.a",
            "guest.a",
            "guest.*",
            "guest.b.c",
            "news.a",
            "news.*",
            "vault.a",
            "vault.*",
            "*",
            "device.thermometer",
            "command.lamp",
            "\u{e4}",
        ],
        secrets: &["own", "vault", "wifi", ""],
        schedules: &["* * * * *", "06:30", "0 0 31 2 *", "*/0 * * * *"],
    }
}

fn hostile() -> Lease {
    let topics = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
    let grants = Capabilities {
        publish: topics(&["guest.*"]),
        subscribe: topics(&["guest.*", "news.*"]),
        // It may read the keeper's secret by its right; it just isn't its tenant's.
        secrets: ["own", "vault"].map(|name| name.parse().unwrap()).to_vec(),
        ..anybody()
    };
    let mut lease = Lease::of("guest", &guest(), grants);
    lease.tenant = SigningKey::from_bytes(&[8; 32]);
    // It can't be refused budgets that it doesn't spend: they have their own tests.
    lease.budget = Budget {
        queue_length: 16,
        fuel_per_second: 0,
        flash_bytes_per_day: u32::MAX,
        messages_per_second: 1_000_000,
        message_bytes_per_second: u32::MAX,
        ..Budget::default()
    };
    assert_eq!(lease.budget.memory_bytes, MEMORY_BYTES);
    lease
}

/// The machine of a friend who echoes.
const ECHO: &str = "(drop (call $reply (i32.const 1024) (call $take)))";

/// Does `echo` when it is called by that name, calls back, and tells news; its memory is its own.
fn friend(echo: &str) -> Lease {
    let memory = MEMORY.repeat(100);
    let text = format!(
        r#"(module
  (import "tenure" "parameter_length" (func $parameter_length (result i32)))
  (import "tenure" "parameter_read" (func $parameter_read (param i32 i32 i32) (result i32)))
  (import "tenure" "reply" (func $reply (param i32 i32) (result i32)))
  (import "tenure" "result_read" (func $result_read (param i32 i32 i32) (result i32)))
  (import "tenure" "call" (func $call (param i32 i32 i32 i32 i32 i32 i32) (result i32)))
  (import "tenure" "publish" (func $publish (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 16) "guest") (data (i32.const 32) "by_itself")
  (data (i32.const 48) "news.a")
  (data (i32.const 12000) "{memory}")
  (func $take (result i32)
    (call $parameter_read (i32.const 0) (i32.const 1024) (i32.const 8192)))
  (func (export "echo") {echo})
  (func (export "tell")
    (drop (call $publish (i32.const 48) (i32.const 6) (i32.const 1024) (call $take))))
  (func (export "back") (local $length i32)
    (local.set $length (call $call (i32.const 16) (i32.const 5) (i32.const 32) (i32.const 9)
      (i32.const 1024) (call $take) (i32.const 50)))
    (if (i32.ge_s (local.get $length) (i32.const 0)) (then
      (drop (call $reply (i32.const 1024)
        (call $result_read (i32.const 0) (i32.const 1024) (i32.const 8192))))))))"#
    );
    let publish = vec!["news.*".parse().unwrap()];
    let mut lease = Lease::of("friend", &text, Capabilities { publish, ..anybody() });
    lease.tenant = SigningKey::from_bytes(&[6; 32]);
    lease
}

/// The keeper's answer if it finds its memory, tree, secret and event as they were.
const ALL_WELL: u32 = 15;

fn keeper() -> Lease {
    let [memory, tree, event] =
        [(MEMORY, 100), (TREE, 50), (EVENT, 20)].map(|(pattern, times)| pattern.repeat(times));
    let text = format!(
        r#"(module
  (import "tenure" "parameter_read" (func $parameter_read (param i32 i32 i32) (result i32)))
  (import "tenure" "reply" (func $reply (param i32 i32) (result i32)))
  (import "tenure" "tree_set" (func $tree_set (param i32 i32 i32 i32 i32) (result i32)))
  (import "tenure" "tree_get" (func $tree_get (param i32 i32 i32 i32) (result i32)))
  (import "tenure" "secret_read" (func $secret_read (param i32 i32 i32 i32) (result i32)))
  (import "tenure" "publish" (func $publish (param i32 i32 i32 i32) (result i32)))
  (import "tenure" "subscribe"
    (func $subscribe (param i32 i32 i32 i32 i32 i32) (result i32)))
  (import "tenure" "event_next" (func $event_next (param i32) (result i32)))
  (import "tenure" "event_read" (func $event_read (param i32 i32 i32) (result i32)))
  (import "tenure" "sleep_ms" (func $sleep_ms (param i32)))
  (memory (export "memory") 1)
  (data (i32.const 16) "keep.a") (data (i32.const 32) "vault")
  (data (i32.const 48) "vault.a")
  (data (i32.const 512) "{MEMORY}{TREE}{SECRET}{EVENT}")
  (data (i32.const 1024) "{tree}") (data (i32.const 2048) "{event}")
  (data (i32.const 4096) "{memory}")
  (func $tell
    (drop (call $publish (i32.const 48) (i32.const 7) (i32.const 2048) (i32.const 120))))
  (func (export "entry")
    (drop (call $tree_set (i32.const 16) (i32.const 6) (i32.const 0)
      (i32.const 1024) (i32.const 300)))
    (drop (call $subscribe (i32.const 48) (i32.const 7) (i32.const 0) (i32.const 4)
      (i32.const 0) (i32.const 0)))
    (call $tell))
  ;; Whether so many bytes are there, and the pattern again and again.
  (func $is (param $from i32) (param $length i32) (param $wanted i32) (param $pattern i32)
    (result i32) (local $at i32)
    (if (i32.ne (local.get $length) (local.get $wanted)) (then (return (i32.const 0))))
    (loop $next
      (if (i32.ne (i32.load8_u (i32.add (local.get $from) (local.get $at)))
            (i32.load8_u (i32.add (local.get $pattern)
              (i32.rem_u (local.get $at) (i32.const 6)))))
        (then (return (i32.const 0))))
      (local.set $at (i32.add (local.get $at) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get $at) (local.get $length))))
    (i32.const 1))
  (func $event (result i32) (local $length i32)
    (local.set $length (call $event_next (i32.const 0)))
    (drop (call $event_read (i32.const 0) (i32.const 8192) (i32.const 2048)))
    (call $tell)
    (call $is (i32.const 8192) (local.get $length) (i32.const 120) (i32.const 530)))
  (func (export "work")
    (i32.store (i32.const 256) (i32.or
      (i32.or
        (call $is (i32.const 4096) (i32.const 600) (i32.const 600) (i32.const 512))
        (i32.shl (call $is (i32.const 8192)
          (call $tree_get (i32.const 16) (i32.const 6) (i32.const 8192) (i32.const 2048))
          (i32.const 300) (i32.const 518)) (i32.const 1)))
      (i32.or
        (i32.shl (call $is (i32.const 8192)
          (call $secret_read (i32.const 32) (i32.const 5) (i32.const 8192) (i32.const 2048))
          (i32.const 60) (i32.const 524)) (i32.const 2))
        (i32.shl (call $event) (i32.const 3)))))
    (i32.store (i32.const 260) (i32.add (i32.load (i32.const 260)) (i32.const 1)))
    (drop (call $reply (i32.const 256) (i32.const 8))))
  (func (export "hold")
    (drop (call $reply (i32.const 8192)
      (call $parameter_read (i32.const 0) (i32.const 8192) (i32.const 2048))))
    (call $sleep_ms (i32.const 10))))"#
    );
    let topics = vec!["vault.*".parse().unwrap()];
    let grants = Capabilities {
        publish: topics.clone(),
        subscribe: topics,
        secrets: vec!["vault".parse().unwrap()],
        ..Capabilities::default()
    };
    let mut lease = Lease::of("keeper", &text, grants);
    lease.tenant = SigningKey::from_bytes(&[7; 32]);
    lease.budget.messages_per_second = 1_000;
    lease
}

#[cfg(test)]
mod tests {
    use std::panic::{UnwindSafe, catch_unwind};

    use super::*;

    #[track_caller]
    fn check(room: Room, calls: u64) {
        let mut tally = Tally::new();
        let mut seed = 1;
        while tally.made() < calls {
            run(&[], seed, room, 40, &mut tally);
            seed += 1;
        }
        for (call, (made, well)) in TABLE.iter().zip(&tally.calls) {
            // A guest that aborts doesn't live to tell, and nobody has told the device what time it is.
            let (name, survives) = (call.name, call.name != "abort");
            assert!(*made > 500 || !survives, "{name} was made {made} times");
            assert!(*well > 0 || !survives || name == "unix_time_s", "{name} never went well");
        }
        assert!(tally.faults > 50 && tally.sleeps > 5 && tally.power_losses > 10, "{tally:?}");
    }

    /// The panic of `planted`.
    fn caught(planted: impl FnOnce() + UnwindSafe) -> String {
        let panic = catch_unwind(planted).expect_err("what was planted is seen");
        let text = panic.downcast_ref::<String>().cloned();
        text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap()
    }

    #[test]
    fn six_bytes_of_a_neighbours_that_are_planted_in_a_reply_are_found_in_the_guests_memory() {
        let what = caught(|| {
            let mut draw = Draw::new(&[], 1);
            let leak = friend("(drop (call $reply (i32.const 12003) (i32.const 6)))");
            let arena = Arena::new(&mut draw, Room::Enough, leak);
            perform_all(arena, &mut draw, 40, &mut Tally::new());
        });
        assert!(what.contains("its memory holds a neighbour's"), "{what}");
    }

    #[test]
    fn a_neighbour_of_whom_one_value_is_changed_is_found_to_be_disturbed() {
        let what = caught(|| {
            let mut draw = Draw::new(&[], 1);
            let mut arena = Arena::new(&mut draw, Room::Enough, friend(ECHO));
            arena.set_secret(&[7; 32], "vault", &SECRET.repeat(10).as_bytes()[1..]);
            perform_all(arena, &mut draw, 1, &mut Tally::new());
        });
        assert!(what.contains("the keeper's memory, tree, secret and events"), "{what}");
    }

    #[test]
    fn fifty_thousand_mutated_calls_get_nothing_of_a_neighbours() {
        check(Room::Enough, 50_000);
    }

    #[test]
    fn nor_do_as_many_where_machines_swap() {
        check(Room::Scarce, 50_000);
    }
}
