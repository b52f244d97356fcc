//! Logs of devices as their owner watches them at the hub; some devices, tenants and watchers mean harm.

use super::world;

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;

use serde_json::Value;
use tenure_wire::PublicKey;
use tenure_wire::control::LogLine;
use tenure_wire::hub::{Access, Answer, HubRefusal, Scope, function};
use tenure_wire::live_log::{LogShare, LogWish};

use world::{World, device, now, owner};

const ATTIC: &str = "/v1/devices/attic/log";
/// The attic's number among devices, and the boot that its lines are of.
const NUMBER: u8 = 10;
const BOOT: u32 = 3;

/// A stream of events.
struct Stream(BufReader<TcpStream>);

/// An event: its name, its number and its data.
#[derive(Debug, Default)]
struct Event {
    name: String,
    id: String,
    data: Value,
}

impl Stream {
    /// Opens a stream, and reads the head of the answer.
    fn open(world: &World, path: &str, headers: &[&str]) -> Self {
        let mut stream = world.connect();
        let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: hub\r\nconnection: close\r\n{headers}\r\n")
            .unwrap();
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(reader.read_line(&mut head).unwrap(), 0, "{head}");
        }
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert!(head.contains("content-type: text/event-stream"), "{head}");
        Self(reader)
    }

    /// The next event; `None` once the stream is over.
    fn next(&mut self) -> Option<Event> {
        let mut event = Event::default();
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if let Some((field, value)) = line.trim_end().split_once(": ") {
                match field {
                    "event" => event.name = value.into(),
                    "id" => event.id = value.into(),
                    "data" => {
                        event.data = serde_json::from_str(value).unwrap();
                        return Some(event);
                    }
                    _ => {}
                }
            }
        }
    }

    fn messages(&mut self, count: usize) -> Vec<String> {
        (0..count).map(|_| self.next().unwrap().data["message"].as_str().unwrap().into()).collect()
    }
}

fn line(number: u64, machine: &str, message: &str) -> LogLine {
    LogLine {
        number,
        at_ms: 1_000 * number,
        machine: machine.parse().unwrap(),
        level: "info".into(),
        message: message.into(),
        unix_s: None,
        boot: BOOT,
    }
}

fn lines(from: u64, count: u64) -> Vec<LogLine> {
    (from..from + count)
        .map(|number| line(number, "thermostat", &format!("line {number}")))
        .collect()
}

/// The device number `number` asks whether it is watched, with lines.
fn share_of(world: &mut World, number: u8, boot: u32, lines: Vec<LogLine>) -> Answer<LogWish> {
    let next = lines.last().map_or(0, |line| line.number + 1);
    let key = device(number).device_secret().public_key();
    world.call_from(key, function::LOG, &LogShare { boot, lines, next }, now())
}

fn share(world: &mut World, lines: Vec<LogLine>) -> Option<u64> {
    share_of(world, NUMBER, BOOT, lines).unwrap().from
}

/// A stream of the attic whose device was asked for its lines.
fn watched(world: &mut World, headers: &[&str]) -> Stream {
    let stream = Stream::open(world, ATTIC, headers);
    assert_eq!(
        share(world, Vec::new()),
        Some(0),
        "the hub asks for the log from its first line on"
    );
    stream
}

#[test]
fn device_is_asked_for_lines_while_somebody_watches_and_not_before_or_after() {
    let mut world = World::with_fleet();
    let token = world.token(&owner(1));
    assert_eq!(
        share_of(&mut world, NUMBER, BOOT, Vec::new()),
        Ok(LogWish { from: None, again_s: 5 })
    );
    let mut stream = watched(&mut world, &[&token]);
    assert_eq!(share(&mut world, lines(0, 2)), Some(2));
    assert_eq!(stream.messages(2), ["line 0", "line 1"]);
    assert_eq!(share(&mut world, lines(2, 1)), Some(3));
    let event = stream.next().unwrap();
    assert_eq!((event.id.as_str(), &event.data["message"]), ("3-2-2000", &Value::from("line 2")));
    drop(stream);
    // The hub notices when it says that it is alive.
    while share(&mut world, Vec::new()).is_some() {
        std::thread::yield_now();
    }
}

#[test]
fn lines_that_are_told_again_count_once_and_a_boot_begins_anew() {
    let mut world = World::with_fleet();
    let token = world.token(&owner(1));
    let mut stream = watched(&mut world, &[&token]);
    share(&mut world, lines(0, 3));
    assert_eq!(share(&mut world, lines(1, 3)), Some(4));
    assert_eq!(stream.messages(4), ["line 0", "line 1", "line 2", "line 3"]);
    let again = share_of(&mut world, NUMBER, BOOT + 1, lines(4, 1)).unwrap();
    assert_eq!(again.from, Some(0), "lines of another boot are numbered anew");
    let first = LogLine { boot: BOOT + 1, ..line(0, "thermostat", "up again") };
    share_of(&mut world, NUMBER, BOOT + 1, vec![first]).unwrap();
    assert_eq!(stream.messages(1), ["up again"]);
}

#[test]
fn line_that_a_device_kept_over_its_restart_is_told_once() {
    let mut world = World::with_fleet();
    let token = world.token(&owner(1));
    let mut stream = watched(&mut world, &[&token]);
    share(&mut world, lines(0, 3));
    assert_eq!(stream.messages(3), ["line 0", "line 1", "line 2"]);
    // It restarts before the hub asks again, and has kept the last two lines, and one that the hub never had.
    let again = share_of(&mut world, NUMBER, BOOT + 1, Vec::new()).unwrap();
    assert_eq!(again.from, Some(0));
    let kept = lines(1, 3).into_iter().enumerate();
    let mut kept: Vec<_> = kept.map(|(at, line)| LogLine { number: at as u64, ..line }).collect();
    kept.push(LogLine { boot: BOOT + 1, at_ms: 1, ..line(3, "thermostat", "up again") });
    share_of(&mut world, NUMBER, BOOT + 1, kept.clone()).unwrap();
    assert_eq!(stream.messages(2), ["line 3", "up again"]);
    drop(stream);
    // So does a client whose hub was away, too.
    while share(&mut world, Vec::new()).is_some() {
        std::thread::yield_now();
    }
    let mut back = Stream::open(&world, ATTIC, &[&token, "last-event-id: 3-2-2000"]);
    share_of(&mut world, NUMBER, BOOT + 1, Vec::new()).unwrap();
    share_of(&mut world, NUMBER, BOOT + 1, kept).unwrap();
    assert_eq!(back.messages(2), ["line 3", "up again"]);
}

#[test]
fn whoever_comes_later_has_the_last_lines_and_a_client_that_is_back_the_rest() {
    let mut world = World::with_fleet();
    let token = world.token(&owner(1));
    let mut first = watched(&mut world, &[&token]);
    share(&mut world, lines(0, 4));
    first.messages(4);
    let mut later = Stream::open(&world, ATTIC, &[&token]);
    assert_eq!(later.messages(4), ["line 0", "line 1", "line 2", "line 3"]);
    let mut back = Stream::open(&world, ATTIC, &[&token, "last-event-id: 3-2"]);
    assert_eq!(back.messages(1), ["line 3"]);
    let machine = format!("{ATTIC}?machine=door");
    let mut of_door = Stream::open(&world, &machine, &[&token]);
    share(&mut world, vec![line(4, "thermostat", "warm"), line(5, "door", "shut")]);
    assert_eq!(of_door.messages(1), ["shut"]);
    assert_eq!(back.messages(2), ["warm", "shut"]);
}

#[test]
fn log_is_its_owners_alone_and_a_token_needs_its_scope() {
    let mut world = World::with_fleet();
    let (other, reader) = (world.token(&owner(2)), world.token_for(&owner(1), vec![Scope::Read]));
    let (own, cookie) = (world.token(&owner(1)), world.cookie(&owner(1)));
    assert_eq!(world.get(ATTIC, &[]).status, 401);
    assert_eq!(world.get(ATTIC, &[&reader]).status, 403);
    assert_eq!(world.get(ATTIC, &[&other]).status, 404);
    assert_eq!(world.get("/v1/devices/nowhere/log", &[&own]).status, 404);
    assert_eq!(world.get(&format!("{ATTIC}?machine=NO%20NAME"), &[&own]).status, 400);
    assert_eq!(world.get(&format!("{ATTIC}?from=1"), &[&own]).status, 400);
    assert_eq!(share(&mut world, Vec::new()), None, "nobody of these watches");
    let mut stream = watched(&mut world, &[&cookie]);
    // Another owner's device says something under a number of the attic's.
    assert_eq!(share_of(&mut world, 12, BOOT, lines(0, 1)).unwrap().from, None);
    share(&mut world, vec![line(0, "thermostat", "the attic's")]);
    assert_eq!(stream.messages(1), ["the attic's"]);
    let key = PublicKey([99; 32]);
    let nobody = LogShare { boot: 0, lines: Vec::new(), next: 0 };
    let answer: Answer<LogWish> = world.call_from(key, function::LOG, &nobody, now());
    assert_eq!(answer, Err(HubRefusal::Stranger));
}

#[test]
fn stream_ends_with_the_pass_that_opened_it() {
    let mut world = World::with_fleet();
    let cookie = world.cookie(&owner(1));
    let mut stream = watched(&mut world, &[&cookie]);
    share(&mut world, lines(0, 1));
    stream.messages(1);
    let headers = [cookie.as_str(), "sec-fetch-site: same-origin"];
    assert_eq!(world.request("POST", "/sign-out", &headers, "").status, 303);
    let end = stream.next().unwrap();
    assert_eq!(end.name, "end");
    assert!(stream.next().is_none());
    assert_eq!(share(&mut world, Vec::new()), None);
}

#[test]
fn stream_ends_when_the_device_has_another_owner() {
    let mut world = World::with_fleet();
    let token = world.token(&owner(1));
    let mut stream = watched(&mut world, &[&token]);
    world.list(2, NUMBER, "attic");
    assert_eq!(share(&mut world, vec![line(0, "thermostat", "the next owner's")]), None);
    assert_eq!(stream.next().unwrap().name, "end");
}

#[test]
fn streams_of_a_key_are_bounded_and_a_place_is_free_again_after_one() {
    let mut world = World::with_fleet();
    let (one, other) = (world.token(&owner(1)), world.token(&owner(2)));
    let mut streams: Vec<Stream> = (0..4).map(|_| Stream::open(&world, ATTIC, &[&one])).collect();
    let cellar = "/v1/devices/cellar/log";
    assert_eq!(world.get(cellar, &[&one]).status, 429);
    Stream::open(&world, "/v1/devices/shed/log", &[&other]);
    streams.pop();
    let mut status = 429;
    while status == 429 {
        let mut stream = world.connect();
        write!(stream, "GET {cellar} HTTP/1.1\r\nhost: hub\r\n{one}\r\n\r\n").unwrap();
        let mut head = String::new();
        BufReader::new(stream).read_line(&mut head).unwrap();
        status = head.split(' ').nth(1).unwrap().parse().unwrap();
    }
    assert_eq!(status, 200);
}

#[test]
fn client_that_is_gone_gives_its_place_back_though_its_device_says_much_for_others() {
    let mut world = World::with_fleet();
    let token = world.token(&owner(1));
    let of_door = format!("{ATTIC}?machine=door");
    let streams: Vec<Stream> = (0..4).map(|_| Stream::open(&world, &of_door, &[&token])).collect();
    drop(streams);
    let (mut status, mut number) = (429, 0);
    while status == 429 {
        share(&mut world, lines(number, 1));
        number += 1;
        let mut stream = world.connect();
        write!(stream, "GET {of_door} HTTP/1.1\r\nhost: hub\r\n{token}\r\n\r\n").unwrap();
        let mut head = String::new();
        BufReader::new(stream).read_line(&mut head).unwrap();
        status = head.split(' ').nth(1).unwrap().parse().unwrap();
    }
    assert_eq!(status, 200);
}

// the same of streams.
#[test]
fn streams_of_people_leave_one_to_the_key_itself_and_one_person_s_leave_one_to_another() {
    let mut world = World::with_fleet();
    let key = world.cookie(&owner(1));
    let mut people = Vec::new();
    for (name, number) in [("Ada", 101), ("Bob", 102)] {
        let own = "sec-fetch-site: same-origin";
        let body = format!("{{\"name\": \"{name}\", \"role\": \"operator\"}}");
        let told = world.request("POST", "/v1/people", &[&key, own], &body).body;
        let told: serde_json::Value = serde_json::from_str(&told).unwrap();
        let code = told["code"].as_str().unwrap().to_string();
        world.pass(&owner(number), Access::Invitation { code }).unwrap();
        people.push(world.token_for(&owner(number), vec![Scope::Logs]));
    }
    let mut streams: Vec<Stream> =
        (0..2).map(|_| Stream::open(&world, ATTIC, &[&people[0]])).collect();
    assert_eq!(world.get(ATTIC, &[&people[0]]).status, 429);
    streams.push(Stream::open(&world, ATTIC, &[&people[1]]));
    assert_eq!(world.get(ATTIC, &[&people[1]]).status, 429, "the last one is the key's");
    streams.push(Stream::open(&world, ATTIC, &[&key]));
}

#[test]
fn watcher_who_reads_nothing_loses_lines_is_told_how_many_and_holds_nobody_up() {
    let mut world = World::with_fleet();
    let token = world.token(&owner(1));
    let mut slow = watched(&mut world, &[&token]);
    let mut quick = Stream::open(&world, ATTIC, &[&token]);
    let (mut next, mut told) = (0, 0);
    // The connection's buffers take some hundred kilobytes, and who reads nothing for long is let go.
    while next < 4_000 {
        let text = "x".repeat(256);
        let lines: Vec<LogLine> =
            (next..next + 20).map(|number| line(number, "thermostat", &text)).collect();
        assert_eq!(share(&mut world, lines), Some(next + 20));
        next += 20;
        let mut event = quick.next().unwrap();
        while event.name == "lost" {
            event = quick.next().unwrap();
        }
        while event.data["number"].as_u64() != Some(next - 1) {
            event = quick.next().unwrap();
        }
        told += 20;
    }
    assert_eq!(told, next, "the other one goes on");
    let mut had = 0;
    let lost = loop {
        let event = slow.next().unwrap();
        if event.name == "lost" {
            break event.data["lines"].as_u64().unwrap();
        }
        had += 1;
        if had % 1_000 == 0 || had + 1_000 > next {
            share(&mut world, lines(next, 1));
            next += 1;
        }
    };
    let after = slow.next().unwrap().data["number"].as_u64().unwrap();
    assert_eq!(after, had + lost, "{had} lines and {lost} that were lost");
}

#[test]
fn text_of_a_tenant_begins_no_event_and_steers_no_terminal() {
    let mut world = World::with_fleet();
    let token = world.token(&owner(1));
    let mut stream = watched(&mut world, &[&token]);
    let text = "a\n\nevent: end\ndata: {}\n\n\u{1b}[2J</script>".to_string() + &"y".repeat(5_000);
    share(&mut world, vec![line(0, "thermostat", &text), line(1, "thermostat", "after")]);
    let event = stream.next().unwrap();
    let message = event.data["message"].as_str().unwrap();
    assert!(event.name.is_empty() && message.chars().count() == 256, "{event:?}");
    assert!(!message.contains(['\n', '\u{1b}']) && message.contains("</script>"), "{message}");
    assert_eq!(stream.messages(1), ["after"]);
}

#[test]
fn page_offers_the_log_of_a_device_that_shows_it_and_says_how_where_it_does_not() {
    let mut world = World::with_fleet();
    let cookie = world.cookie(&owner(1));
    let page = world.get("/devices/attic", &[&cookie]).body;
    assert!(page.contains("--log-to-hub") && !page.contains("data-stream"), "{page}");
    share(&mut world, Vec::new());
    let page = world.get("/devices/attic", &[&cookie]).body;
    assert!(page.contains("data-stream=\"/v1/devices/attic/log\""), "{page}");
    assert!(page.contains("<option>thermostat</option>"), "{page}");
    assert!(!world.get("/devices/cellar", &[&cookie]).body.contains("data-stream"));
}
