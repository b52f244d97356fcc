//! Emulated boards sleep with the power off, and start for each of the causes that a chip knows.

use tenure_wire::console::LISTENS_ON;

use crate::boards::{Board, CORTEX_M, RISCV32, UNCHECKED, boot, device_at, faults};
use crate::guests::renegade;
use crate::harness::{Process, User, free_ipv4_address, on, signal};

/// The lines of the board's console at a start.
fn started_by(device: &mut Process, cause: &str) {
    device.wait_for_words(&format!("started by {cause}"));
    device.wait_for_words(LISTENS_ON);
}

#[test]
fn riscv32_sleeps_in_the_middle_of_a_call_and_goes_on() {
    check_sleep(RISCV32);
}

#[test]
fn cortex_m_sleeps_in_the_middle_of_a_call_and_goes_on() {
    check_sleep(CORTEX_M);
}

fn check_sleep(board: Board) {
    let user = User::new();
    let address = free_ipv4_address();
    let device = device_at(board, &user, "attic", &address);
    user.install(&device, &["probe", "thermostat"]);
    // Native code, which has addresses of its memory in its registers.
    let place = ["--grant", "all", "--device", &device.address];
    user.ok(&[&["install", &renegade()], &place[..]].concat());
    // The acts at the next start.
    user.json(&["call", "--device", &device.address, "renegade", "keep", "labour"]);
    assert_eq!(user.call(on(&device), &["thermostat", "set", "18"]), "18.0");
    device.kill();
    let place = ["--listen", &address];
    let cycle = [&place[..], &["--duty-cycle", "2/2"]].concat();
    let mut device = boot(board, &user, "attic", None, &cycle);
    device.address = address.clone();
    // The call takes longer than the device is ever awake, and ends all the same.
    let queue = ["probe", "queue", "probe steps 60000 0"];
    let queued = user.ok_once_there(&[&["call", "--device", &address][..], &queue].concat());
    assert!(queued.contains("queued"), "{queued}");
    let mut words = ["step 1", "step 2", "step 3", "holds 496", "succeeded: sum 6 after"].to_vec();
    let mut answer = String::new();
    while !words.is_empty() {
        let line = device.wait_for_any(&words);
        words.retain(|words| !line.contains(words));
        if let Some((sleeps, rested)) = laboured(&line) {
            assert!(sleeps >= 1, "it was never in the middle of something: {line}");
            assert!(rested >= 2500, "{line}");
        } else if line.contains("succeeded") {
            answer = line;
        }
    }
    let took: u32 = answer.rsplit(' ').nth(1).unwrap().parse().unwrap();
    assert!(took >= 7500, "time goes on in sleep: {took} ms");
    for _ in 0..2 {
        device.wait_for_words("asleep for");
        device.wait_for_words("awake after");
    }
    device.kill();
    // One that has nothing to do sleeps until somebody pulls its pin.
    let idle = [&place[..], &["--deep-sleep-after", "0.5"]].concat();
    let mut device = boot(board, &user, "attic", None, &idle);
    device.wait_for_words("asleep until it is woken");
    device.wait_for_words("the power is off");
    signal("USR2", device.id());
    device.wait_for_words("awake after");
    device.kill();
    let mut device = boot(board, &user, "attic", None, &place);
    device.address = address;
    device.wait_for_words("started by power on");
    assert_eq!(user.call(on(&device), &["thermostat", "read"]), "18.0");
    assert_eq!(faults(&user, &device, "probe"), 0);
    assert_eq!(faults(&user, &device, "renegade"), 0);
}

/// Through how many sleeps a native machine says that it worked, and for how many milliseconds it rested.
fn laboured(line: &str) -> Option<(u32, u32)> {
    let (_, words) = line.split_once("laboured through ")?;
    let (sleeps, words) = words.split_once(' ')?;
    let (_, rested) = words.split_once("rested ")?;
    Some((sleeps.parse().ok()?, rested.split(' ').next()?.parse().ok()?))
}

#[test]
fn cortex_m_starts_by_power_and_brown_out_and_blames_nobody() {
    let user = User::new();
    let mut device = device_at(CORTEX_M, &user, "attic", &free_ipv4_address());
    device.wait_for_words("started by power on");
    user.install(&device, &["counter", "spinner"]);
    assert_eq!(user.call(on(&device), &["counter", "add"]), "1");
    for count in ["2", "3"] {
        signal("USR1", device.id());
        started_by(&mut device, "brown-out");
        assert_eq!(user.call(on(&device), &["counter", "add"]), count);
        for machine in ["counter", "spinner"] {
            assert_eq!(faults(&user, &device, machine), 0, "a brown-out is no fault of {machine}");
        }
    }
}

#[test]
fn riscv32_starts_by_power_brown_out_and_watchdog_and_blames_who_stood_still() {
    let user = User::new();
    let address = free_ipv4_address();
    let mut device = device_at(UNCHECKED, &user, "attic", &address);
    device.wait_for_words("started by power on");
    user.install(&device, &["counter", "spinner", "probe"]);
    assert_eq!(user.call(on(&device), &["counter", "add"]), "1");
    signal("USR1", device.id());
    started_by(&mut device, "brown-out");
    assert_eq!(user.call(on(&device), &["counter", "add"]), "2");
    for machine in ["counter", "spinner", "probe"] {
        assert_eq!(faults(&user, &device, machine), 0, "a brown-out is no fault of {machine}");
    }
    // The firmware itself stands still in the middle of this machine's turn.
    user.call_error(on(&device), &["probe", "poke", "50000000"]);
    started_by(&mut device, "watchdog");
    device.wait_for_words("[probe] fault");
    assert_eq!(faults(&user, &device, "probe"), 1);
    assert_eq!(faults(&user, &device, "spinner"), 0);
    assert_eq!(user.call(on(&device), &["counter", "add"]), "3");
    // The power goes, and what the page that stays powered held with it.
    device.kill();
    device = boot(UNCHECKED, &user, "attic", None, &["--listen", &address]);
    device.address = address;
    device.wait_for_words("started by power on");
    assert_eq!(faults(&user, &device, "probe"), 1, "it isn't counted twice");
}
