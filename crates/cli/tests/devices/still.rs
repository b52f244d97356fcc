//! Devices that stand still: a call that its caller gave up doesn't run when they go on, and one that is still wanted does.

use std::time::Duration;

use tenure_cli::home::Home;
use tenure_cli::reach::client::{Client, Device, Route};
use tenure_testbed::{patience, wait_until};
use tenure_wire::NoResult;

use crate::harness::{Process, User, on, signal};
use crate::kill::key_of_counter;

/// How long a caller waits for a device that doesn't move.
const SHORT: Duration = Duration::from_secs(1);

/// A device with a counter.
fn device_with_counter(user: &User) -> Process {
    let device = user.device("attic", None);
    user.install(&device, &["counter"]);
    device
}

/// A user's tool with a way to a device's counter, and no session with it yet.
fn caller(user: &User, device: &Process) -> (Client, Route) {
    let mut client = Client::new(&Home::at(user.home())).unwrap();
    let address = device.socket_address();
    let Device { mut route, .. } = client.device(&address.into()).unwrap();
    route.key = key_of_counter(&mut client, address);
    (client, route)
}

fn add(client: &mut Client, route: &Route, timeout: Duration) -> Result<u32, NoResult> {
    let count = client.call(route, "add", None, timeout)?;
    Ok(String::from_utf8(count.unwrap()).unwrap().parse().unwrap())
}

fn count(user: &User, device: &Process) -> u32 {
    user.call(on(device), &["counter", "value"]).parse().unwrap()
}

/// Waits until something lies in the socket at this port, whose process doesn't read it.
fn wait_until_something_waits(port: u16) {
    let port = format!(":{port:04X}");
    let is_waiting = |table: &str| {
        let of_device = |line: &&str| {
            line.split_whitespace().nth(1).is_some_and(|local| local.ends_with(&port))
        };
        let queues = table.lines().filter(of_device).filter_map(|line| {
            let (_, received) = line.split_whitespace().nth(4)?.split_once(':')?;
            u64::from_str_radix(received, 16).ok()
        });
        queues.max().unwrap_or(0) > 0
    };
    wait_until(|| {
        let tables = ["/proc/net/udp", "/proc/net/udp6"].map(std::fs::read_to_string);
        let waits = tables.iter().flatten().any(|table| is_waiting(table));
        if waits { Ok(()) } else { Err("nothing lies in the socket") }
    });
}

#[test]
fn calls_that_were_given_up_do_not_run_when_a_stopped_device_goes_on() {
    let user = User::new();
    let device = device_with_counter(&user);
    let (mut client, route) = caller(&user, &device);
    assert_eq!(add(&mut client, &route, patience()), Ok(1), "a session is open now");
    // A stop that shows in no clock, as the device wouldn't have done anything meanwhile, and a long one.
    for calls in [1, 6] {
        signal("STOP", device.id());
        for _ in 0..calls {
            add(&mut client, &route, SHORT).unwrap_err();
        }
        wait_until_something_waits(device.socket_address().port());
        signal("CONT", device.id());
        assert_eq!(count(&user, &device), 1);
    }
    assert_eq!(add(&mut client, &route, patience()), Ok(2), "the next one runs");
    assert_eq!(count(&user, &device), 2);
}

#[test]
fn first_call_that_was_given_up_does_not_run_when_a_stopped_device_goes_on() {
    let user = User::new();
    let device = device_with_counter(&user);
    let (mut client, route) = caller(&user, &device);
    signal("STOP", device.id());
    add(&mut client, &route, SHORT).unwrap_err();
    wait_until_something_waits(device.socket_address().port());
    signal("CONT", device.id());
    assert_eq!(count(&user, &device), 0);
    assert_eq!(add(&mut client, &route, patience()), Ok(1));
}

#[test]
fn call_that_is_still_wanted_runs_once_when_a_stopped_device_goes_on() {
    let user = User::new();
    let device = device_with_counter(&user);
    // The first message of one, and what comes in the session of another.
    let (mut fresh, fresh_route) = caller(&user, &device);
    let (mut client, route) = caller(&user, &device);
    assert_eq!(add(&mut client, &route, patience()), Ok(1));
    for (client, route, expected) in [(&mut client, &route, 2), (&mut fresh, &fresh_route, 3)] {
        let (process, port) = (device.id(), device.socket_address().port());
        signal("STOP", process);
        let goes_on = std::thread::spawn(move || {
            wait_until_something_waits(port);
            signal("CONT", process);
        });
        assert_eq!(add(client, route, patience()), Ok(expected));
        goes_on.join().unwrap();
        assert_eq!(count(&user, &device), expected);
    }
}
