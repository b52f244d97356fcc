use super::*;

fn host(number: u16) -> IpAddr {
    let [high, low] = number.to_be_bytes();
    [198, 51, high, low].into()
}

fn listening() -> (Running, UnixStream) {
    let running = Running::default();
    let rung = running.carried().listen().unwrap();
    (running, rung)
}

/// Hands in a datagram if there is room.
fn arrive(connection: &Connection, datagram: &[u8]) -> Option<bool> {
    connection.try_to_arrive(&mut Some(datagram.to_vec()))
}

fn address(connection: &Connection, host: IpAddr) -> SocketAddr {
    address_of(host, connection.number)
}

fn counts(running: &Running) -> (u64, u64) {
    let CarriedCounts { dropped, refused, .. } = running.carried().counts();
    (dropped, refused)
}

#[test]
fn datagram_goes_to_the_hub_and_its_answer_down_the_same_connection() {
    let (running, rung) = listening();
    let (one, other) = (running.carry(host(1)).unwrap(), running.carry(host(1)).unwrap());
    assert_eq!(arrive(&one, b"question"), Some(true));
    let (from, datagram) = running.carried().take(&rung).unwrap();
    assert_eq!((from, &*datagram), (address(&one, host(1)), &b"question"[..]));
    assert_eq!(running.carried().take(&rung), None);
    assert!(running.carried().send(&from, b"answer"));
    assert_eq!((one.work(), one.work()), (Work::Send(b"answer".to_vec()), Work::Nothing));
    assert_eq!(other.work(), Work::Nothing);
    assert!(!running.carried().send(&"192.0.2.1:7".parse().unwrap(), b""), "that is UDP's");
}

#[test]
fn datagram_for_a_connection_that_is_gone_goes_nowhere() {
    let (running, rung) = listening();
    let one = running.carry(host(1)).unwrap();
    let gone = address(&one, host(1));
    arrive(&one, b"x");
    drop(one);
    assert_eq!(running.carried().take(&rung), None, "its word is gone with it");
    assert!(running.carried().send(&gone, b"answer"));
    // Nor does another host's connection get it that has the number by now.
    running.carried().lock().last_number = 0;
    let next = running.carry(host(2)).unwrap();
    assert_eq!(address(&next, host(1)), gone);
    assert!(running.carried().send(&gone, b"answer"));
    assert_eq!((next.work(), counts(&running)), (Work::Nothing, (2, 0)));
}

#[test]
fn what_waits_is_bounded_both_ways() {
    let (running, rung) = listening();
    let one = running.carry(host(1)).unwrap();
    let taken = (0..1_000).filter(|_| arrive(&one, b"x").is_some()).count();
    assert_eq!(taken, ARRIVED_OF_ONE_MAX);
    running.carried().take(&rung).unwrap();
    assert_eq!(arrive(&one, b"x"), Some(true), "there is room again");
    for _ in 0..1_000 {
        running.carried().send(&address(&one, host(1)), b"x");
    }
    let left = std::iter::from_fn(|| matches!(one.work(), Work::Send(_)).then_some(())).count();
    assert_eq!((left, counts(&running).0), (LEAVING_OF_ONE_MAX, 1_000 - LEAVING_OF_ONE_MAX as u64));
}

#[test]
fn strangers_leave_room_to_those_whom_the_hub_knows() {
    let (running, _rung) = listening();
    let known = running.carry(host(0)).unwrap();
    running.carried().judge(&address(&known, host(0)), true);
    let strangers: Vec<_> = (1..200).filter_map(|number| running.carry(host(number))).collect();
    for stranger in &strangers {
        while arrive(stranger, b"x") == Some(true)
            && running.carried().lock().arrived_of_strangers < ARRIVED_OF_STRANGERS_MAX
        {}
    }
    assert_eq!(running.carried().lock().arrived.len(), ARRIVED_OF_STRANGERS_MAX);
    assert_eq!(arrive(&known, b"x"), Some(true));
    assert!(running.carry(host(0)).is_some());
}

#[test]
fn flood_of_strangers_displaces_the_host_that_has_most_and_nobody_who_is_known() {
    let (running, _rung) = listening();
    let known = running.carry(host(0)).unwrap();
    running.carried().judge(&address(&known, host(0)), true);
    let greedy: Vec<_> = (0..100).filter_map(|_| running.carry(host(1))).collect();
    assert_eq!(greedy.len(), STRANGERS_OF_HOST_MAX);
    let others: Vec<_> = (2..400).filter_map(|number| running.carry(host(number))).collect();
    assert_eq!(others.len(), 398, "each stranger's host gets a place");
    assert_eq!(running.carried().counts().open, STRANGERS_MAX as u64 + 1);
    let left = greedy.iter().filter(|one| one.work() != Work::End).count();
    assert!(left <= 1, "{left}");
    assert_eq!(known.work(), Work::Nothing);
    let fleet: Vec<_> = (0..1_000).filter_map(|_| running.carry(host(0))).collect();
    assert_eq!(fleet.len(), OF_HOST_MAX - 1);
    drop((known, greedy, others, fleet));
    assert_eq!(running.carried().counts().open, 0, "a place that was lost isn't given back twice");
}

#[test]
fn hub_that_does_not_listen_takes_no_connection() {
    assert!(Running::default().carry(host(1)).is_none());
}

#[test]
fn connection_that_loses_its_place_learns_it_while_it_waits() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (running, _rung) = listening();
    let one = running.carry(host(1)).unwrap();
    while arrive(&one, b"x").is_some() {}
    runtime.block_on(async {
        let ends = async {
            one.may_work().await;
            one.work()
        };
        let arrives = one.arrive(b"x".to_vec());
        let displaced = async { running.0.carried.lock().displace() };
        let ((work, has_place), is_displaced) =
            futures_util::future::join(futures_util::future::join(ends, arrives), displaced).await;
        assert!(work == Work::End && !has_place && is_displaced);
    });
}
