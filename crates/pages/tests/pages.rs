//! Pages over real connections, of machines that are pretended.

use std::collections::BTreeMap;
use std::io::{BufRead as _, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};
use tenure_pages::{Entry, NoPage, Origins, Pages, Visits, serve};
use tenure_testbed::patience;
use tenure_wire::{NoResult, Target};

/// Machines, each with its answer to a request.
type Machine = Arc<dyn Fn(&str) -> Result<Option<Vec<u8>>, NoResult> + Send + Sync>;

#[derive(Clone, Default)]
struct House {
    machines: BTreeMap<String, Machine>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl House {
    fn with(
        mut self,
        name: &str,
        answer: impl Fn(&str) -> Result<Option<Vec<u8>>, NoResult> + Send + Sync + 'static,
    ) -> Self {
        self.machines.insert(name.into(), Arc::new(answer));
        self
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    fn open(&self, origins: Origins) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        serve(listener, Pages { origins, visits: self.clone(), by_proxy: false }).unwrap()
    }
}

/// A machine of this name answers to no call.
const SILENT: &str = "silent@attic";

impl Visits for House {
    async fn call(
        &self,
        machine: Target,
        request: Vec<u8>,
        _: Instant,
    ) -> Result<Option<Vec<u8>>, NoPage> {
        let request = String::from_utf8(request).unwrap();
        self.asked.lock().unwrap().push(request.clone());
        if machine.to_string() == SILENT || request.starts_with("GET /never ") {
            std::future::pending::<()>().await;
        }
        let answer = self.machines.get(&machine.to_string()).ok_or(NoPage::Unknown)?;
        answer(&request).map_err(NoPage::Failed)
    }

    async fn entries(&self) -> Result<Vec<Entry>, NoPage> {
        let entry = |name: &String| {
            let (machine, device) = name.split_once('@').unwrap();
            Entry { machine: machine.parse().unwrap(), device: device.parse().unwrap() }
        };
        Ok(self.machines.keys().map(entry).collect())
    }
}

const LOCAL: Origins = Origins { domain: None, only: None };

/// Sends `request`, with `\n` at its lines' ends, and returns all that comes back.
fn send(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(tenure_testbed::patience())).unwrap();
    stream.write_all(request.replace('\n', "\r\n").as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

fn get(address: SocketAddr, host: &str, target: &str) -> String {
    send(address, &format!("GET {target} HTTP/1.1\nhost: {host}\nconnection: close\n\n"))
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or_default()
}

/// The same as a visitor from another host of this computer's network.
fn get_from(from: [u8; 4], address: SocketAddr, host: &str) -> String {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((from, 0)).into()).unwrap();
    socket.connect(&address.into()).unwrap();
    let mut stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(patience())).unwrap();
    let request = format!("GET / HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").unwrap().1
}

fn says(text: &'static str) -> impl Fn(&str) -> Result<Option<Vec<u8>>, NoResult> + Send + Sync {
    move |_| Ok(Some(text.into()))
}

#[test]
fn visitor_gets_the_page_of_the_machine_whose_host_it_asks_for() {
    let house = House::default().with("lamp@attic", says("<h1>on</h1>")).with(
        "door@cellar",
        says("HTTP/1.1 201 Made\r\npermissions-policy: usb=()\r\ncontent-type: a/b\r\n\r\nshut"),
    );
    let address = house.open(LOCAL);
    let lamp = get(address, "lamp.attic.localhost:8080", "/on?level=3");
    assert_eq!((status(&lamp), body(&lamp)), ("200", "<h1>on</h1>"));
    assert!(lamp.contains("content-type: text/html; charset=utf-8\r\n"), "{lamp}");
    assert!(
        house.asked()[0]
            .starts_with("GET /on?level=3 HTTP/1.1\r\nhost: lamp.attic.localhost:8080\r\n")
    );
    let door = get(address, "door.cellar.localhost", "/");
    assert_eq!((status(&door), body(&door)), ("201", "shut"));
    assert!(door.contains("permissions-policy: usb=()\r\n"), "{door}");
    assert_eq!(status(&get(address, "window.attic.localhost", "/")), "404");
}

#[test]
fn list_names_the_machines_with_pages_and_links_to_their_hosts() {
    let address = House::default().with("lamp@attic", says("")).open(LOCAL);
    let list = get(address, "127.0.0.1:8080", "/");
    assert!(list.contains("<a href=\"//lamp.attic.localhost:8080/\">lamp</a>"), "{list}");
    assert_eq!(status(&get(address, "localhost", "/lamp")), "404");
    let post =
        send(address, "POST / HTTP/1.1\nhost: localhost\nconnection: close\ncontent-length: 0\n\n");
    assert_eq!(status(&post), "405");
}

#[test]
fn host_of_a_stranger_s_name_reaches_no_machine() {
    let house = House::default().with("lamp@attic", says("on"));
    let only = house.open(Origins { domain: None, only: Some("lamp@attic".parse().unwrap()) });
    for (address, host) in [(house.open(LOCAL), "lamp.attic.evil.example"), (only, "evil.example")]
    {
        assert_eq!(status(&get(address, host, "/")), "421", "{host}");
    }
    assert_eq!(body(&get(only, "192.168.1.5:8080", "/")), "on");
    // at an address of this computer there may be a hub, whose cookies know no ports.
    for host in ["localhost:8080", "127.0.0.1:8080", "[::1]:8080"] {
        let moved = get(only, host, "/x?y=1");
        let place = "location: //lamp.attic.localhost:8080/x?y=1\r\n";
        assert!(status(&moved) == "307" && moved.contains(place), "{moved}");
    }
    assert_eq!(body(&get(only, "lamp.attic.localhost:8080", "/")), "on");
    let without = send(only, "GET / HTTP/1.1\nconnection: close\n\n");
    let twice =
        send(only, "GET / HTTP/1.1\nhost: localhost\nhost: evil.example\nconnection: close\n\n");
    assert_eq!((status(&without), status(&twice)), ("400", "400"));
    assert_eq!(house.asked().len(), 2);
}

#[test]
fn change_that_another_page_asks_for_is_refused() {
    let house = House::default().with("lamp@attic", says("on"));
    let address = house.open(LOCAL);
    let post = |fields: &str| {
        let head =
            "POST /on HTTP/1.1\nhost: lamp.attic.localhost\nconnection: close\ncontent-length: 2\n";
        send(address, &format!("{head}{fields}\nhi"))
    };
    for fields in
        ["sec-fetch-site: same-site\n", "origin: http://door.attic.localhost\n", "origin: null\n"]
    {
        assert_eq!(status(&post(fields)), "403", "{fields}");
    }
    assert_eq!(house.asked().len(), 0);
    assert_eq!(status(&post("origin: http://lamp.attic.localhost\n")), "200");
    assert!(house.asked()[0].ends_with("\r\n\r\nhi"), "{:?}", house.asked());
}

#[test]
fn page_longer_than_a_result_comes_whole() {
    let page: String = (0..40_000).map(|at| char::from(b'a' + (at % 26) as u8)).collect();
    let served = page.clone();
    let house = House::default().with("book@attic", move |request| {
        let first = request.split_once("range: bytes=").unwrap().1.split_once('-').unwrap().0;
        let first: usize = first.parse().unwrap();
        let last = (first + 7000).min(served.len()) - 1;
        let head = format!(
            "HTTP/1.1 206 \r\ncontent-range: bytes {first}-{last}/{}\r\n\r\n",
            served.len()
        );
        Ok(Some((head + &served[first..=last]).into_bytes()))
    });
    let address = house.open(LOCAL);
    let answer = get(address, "book.attic.localhost", "/");
    assert_eq!((status(&answer), body(&answer)), ("200", page.as_str()));
    assert_eq!(house.asked().len(), 6);
    // A visitor who wants a part gets that part.
    let part = send(
        address,
        "GET / HTTP/1.1\nhost: book.attic.localhost\nrange: bytes=39990-\nconnection: close\n\n",
    );
    assert_eq!((status(&part), body(&part)), ("206", &page[39_990..]));
}

#[test]
fn page_that_a_browser_has_is_not_sent_again_and_its_ranges_are_cut_out_of_it() {
    let house = House::default().with("lamp@attic", |request| {
        assert!(!request.contains("range: bytes=-2"), "a machine isn't asked for that: {request}");
        Ok(Some("abcde".into()))
    });
    let address = house.open(LOCAL);
    let ask = |field: &str| {
        let head = "GET / HTTP/1.1\nhost: lamp.attic.localhost\nconnection: close\n";
        send(address, &format!("{head}{field}\n"))
    };
    let page = ask("");
    let tag = page.split_once("etag: ").unwrap().1.split('\r').next().unwrap();
    let again = ask(&format!("if-none-match: {tag}\n"));
    assert_eq!((status(&again), body(&again)), ("304", ""));
    let end = ask("range: bytes=-2\n");
    assert_eq!((status(&end), body(&end)), ("206", "de"));
    assert!(end.contains("content-range: bytes 3-4/5\r\n"), "{end}");
    // One that knows no ranges is asked for one, and answers with the whole.
    assert_eq!(body(&ask("range: bytes=1-2\n")), "bc");
}

/// Opens a stream of events at `host`, and returns what comes of it, line by line.
fn listen(address: SocketAddr, host: &str, fields: &str) -> impl Iterator<Item = String> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(tenure_testbed::patience())).unwrap();
    let request = format!("GET /live HTTP/1.1\r\nhost: {host}\r\n{fields}\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    std::io::BufReader::new(stream).lines().map(Result::unwrap)
}

/// The answer of a machine whose value goes up by one each time it is asked, with the number of each event.
fn counts() -> impl Fn(&str) -> Result<Option<Vec<u8>>, NoResult> + Send + Sync {
    move |request| {
        let last = request
            .split_once("last-event-id: ")
            .map_or("0", |(_, rest)| rest.split('\r').next().unwrap());
        let next = last.parse::<u32>().unwrap() + 1;
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
        Ok(Some(format!("{head}retry: 1\nid: {next}\ndata: {next}\n\n").into()))
    }
}

#[test]
fn stream_of_live_values_goes_on_after_the_last_event_that_a_visitor_has() {
    let house = House::default().with("meter@attic", counts());
    let address = house.open(LOCAL);
    let events = |fields: &str| -> Vec<String> {
        let lines = listen(address, "meter.attic.localhost", fields);
        lines.filter_map(|line| line.strip_prefix("data: ").map(String::from)).take(3).collect()
    };
    assert_eq!(events(""), ["1", "2", "3"]);
    assert_eq!(events("last-event-id: 41\r\n"), ["42", "43", "44"]);
}

#[test]
fn value_that_stays_as_it_is_is_sent_once_and_a_machine_that_is_busy_is_asked_again() {
    let values = Mutex::new(["1", "1", "busy", "1", "2", "2", "3"].into_iter());
    let house =
        House::default().with("meter@attic", move |_| match values.lock().unwrap().next() {
            Some("busy") => Err(NoResult::Busy),
            Some(value) => {
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
                Ok(Some(format!("{head}retry: 1\ndata: {value}\n\n").into()))
            }
            // The stream is over (HTML §9.2.3).
            None => Ok(None),
        });
    let address = house.open(LOCAL);
    let lines = listen(address, "meter.attic.localhost", "connection: close\r\n");
    let values: Vec<String> =
        lines.filter_map(|line| line.strip_prefix("data: ").map(String::from)).collect();
    assert_eq!(values, ["1", "2", "3"]);
}

#[test]
fn visitor_beyond_the_streams_of_a_machine_gets_its_events_in_an_answer_that_ends() {
    let house = House::default().with("meter@attic", counts()).with("lamp@attic", says("on"));
    let address = house.open(LOCAL);
    let host = "meter.attic.localhost";
    // Of a machine's 8 a host has fewer than are free.
    let mut open: Vec<_> = (0..4).map(|_| listen(address, host, "")).collect();
    for stream in &mut open {
        assert!(stream.any(|line| line == "data: 1"));
    }
    let ended = get(address, host, "/live");
    assert!(status(&ended) == "200" && ended.contains("content-length: "), "{ended}");
    assert!(body(&ended).ends_with("id: 1\ndata: 1\n\n"), "{ended}");
    assert_eq!(body(&get(address, "lamp.attic.localhost", "/")), "on");
    // A place is free again once a visitor is gone, which the next event shows.
    drop(open.pop());
    tenure_testbed::wait_until(|| {
        let mut stream = listen(address, host, "connection: close\r\n");
        stream.any(|line| line == "data: 2").then_some(()).ok_or("there is no place yet")
    });
}

#[test]
fn machine_that_lies_about_its_page_ends_that_visit_alone() {
    let address = House::default()
        .with("endless@attic", |request| {
            let first = request.split_once("range: bytes=").unwrap().1.split_once('-').unwrap().0;
            let first: usize = first.parse().unwrap();
            Ok(Some(format!("HTTP/1.1 206 \r\ncontent-range: bytes {first}-{first}/{}\r\n\r\nx", first + 2).into()))
        })
        .with("huge@attic", says("HTTP/1.1 206 \r\ncontent-range: bytes 0-0/99999999\r\n\r\nx"))
        .with("interim@attic", says("HTTP/1.1 101 Switching\r\n\r\n"))
        .with("torn@attic", says("HTTP/1.1 200 OK\r\nx"))
        .with("smuggler@attic", says("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-length: 0\r\n\r\nHTTP/1.1 200 OK"))
        .with("honest@attic", says("fine"))
        .open(LOCAL);
    for machine in ["endless", "huge", "interim", "torn"] {
        assert_eq!(
            status(&get(address, &format!("{machine}.attic.localhost"), "/")),
            "502",
            "{machine}"
        );
    }
    let smuggled = get(address, "smuggler.attic.localhost", "/");
    assert!(
        smuggled.contains("content-length: 15\r\n") && !smuggled.contains("chunked"),
        "{smuggled}"
    );
    assert_eq!(body(&get(address, "honest.attic.localhost", "/")), "fine");
}

#[test]
fn failure_of_a_machine_is_told_by_its_status() {
    let again_in = Duration::from_millis(6500);
    let reasons = [
        (NoResult::Denied, "403", None),
        (NoResult::NoSuchFunction, "404", None),
        (NoResult::Execution, "500", None),
        (NoResult::Unreachable, "502", Some("2")),
        (NoResult::Busy, "503", Some("2")),
        (NoResult::Banned, "503", None),
        (NoResult::Asleep { again_in }, "503", Some("7")),
        (NoResult::Deadline, "504", Some("2")),
        (NoResult::Other(200), "503", None),
    ];
    for (reason, expected, again) in reasons {
        let address = House::default().with("lamp@attic", move |_| Err(reason)).open(LOCAL);
        let answer = get(address, "lamp.attic.localhost", "/");
        assert_eq!(status(&answer), expected, "{reason}");
        let retry =
            answer.split_once("retry-after: ").map(|(_, rest)| rest.split('\r').next().unwrap());
        assert_eq!(retry, again, "{reason}");
    }
}

#[test]
fn machine_that_never_answers_and_its_crowd_keep_nobody_from_another_s_page() {
    let house = House::default().with("honest@attic", says("fine"));
    let address = house.open(LOCAL);
    let crowd: Vec<TcpStream> = (0..40)
        .map(|_| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(b"GET / HTTP/1.1\r\nhost: silent.attic.localhost\r\n\r\n").unwrap();
            stream
        })
        .collect();
    // Those beyond its places are told to come again; the others wait. A host has half of the turns.
    let mut told = 0;
    let mut left: Vec<TcpStream> = crowd;
    let deadline = Instant::now() + tenure_testbed::patience();
    while told < 8 {
        assert!(Instant::now() < deadline, "{told} are told");
        left.retain(|stream| {
            stream.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
            let mut start = [0; 12];
            let is_told = (&*stream).read(&mut start).is_ok_and(|length| length == 12);
            assert!(!is_told || start.ends_with(b"503"), "{}", start.escape_ascii());
            told += usize::from(is_told);
            !is_told
        });
    }
    assert_eq!(body(&get(address, "honest.attic.localhost", "/")), "fine");
    assert_eq!(house.asked().iter().filter(|request| request.contains("silent")).count(), 2);
    assert_eq!(left.len(), 32);
}

// C4-1: one host's requests at a page, none of which is answered, and another host's.
#[test]
fn host_that_asks_for_a_page_without_pause_leaves_turns_to_another() {
    let house = House::default().with("busy@attic", says("fine"));
    let address = house.open(LOCAL);
    let crowd: Vec<TcpStream> = (0..60)
        .map(|_| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(b"GET /never HTTP/1.1\r\nhost: busy.attic.localhost\r\n\r\n").unwrap();
            stream
        })
        .collect();
    tenure_testbed::wait_until(|| match house.asked().len() {
        2 => Ok(()),
        others => Err(format!("{others} are under way")),
    });
    for _ in 0..5 {
        assert_eq!(body(&get_from([127, 0, 0, 7], address, "busy.attic.localhost")), "fine");
    }
    drop(crowd);
}

// C4-3
#[test]
fn method_that_is_for_no_page_reaches_no_machine() {
    let house = House::default().with("lamp@attic", says("on"));
    let address = house.open(LOCAL);
    for line in ["CONNECT lamp.attic.localhost:80", "TRACE /", "TRACK /"] {
        let head = format!("{line} HTTP/1.1\nhost: lamp.attic.localhost:80\nconnection: close\n\n");
        let answer = send(address, &head);
        assert_eq!(status(&answer), "405", "{line}: {answer}");
        assert!(answer.contains("allow: GET, HEAD, "), "{answer}");
    }
    assert_eq!(house.asked().len(), 0);
}

// A-4, C4-6
#[test]
fn machine_is_told_no_cookie_of_the_hub_s_and_behind_a_proxy_none_of_its_neighbours() {
    let setting = "HTTP/1.1 200 OK\r\nset-cookie: tenure_session=evil\r\nset-cookie: a=1\r\n\r\n";
    let house = House::default().with("lamp@attic", says(setting));
    let origins = Origins { domain: Some("pages.example".into()), only: None };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let pages = Pages { origins: origins.clone(), visits: house.clone(), by_proxy: true };
    let (near, far) = (house.open(origins), serve(listener, pages).unwrap());
    let ask = |address, host: &str| {
        let cookies =
            "cookie: b=2; tenure_session=secret; __Host-c=3\ncookie: \"TENURE_SESSION\"=secret\n";
        let head = format!("GET / HTTP/1.1\nhost: {host}\nconnection: close\n{cookies}\n");
        let answer = send(address, &head);
        assert!(answer.contains("set-cookie: a=1\r\n") && !answer.contains("evil"), "{answer}");
        let asked = house.asked().pop().unwrap();
        let told = asked.lines().find_map(|line| line.strip_prefix("cookie: ")).map(String::from);
        assert!(!asked.contains("secret"), "{asked}");
        told.unwrap_or_default()
    };
    assert_eq!(ask(near, "lamp.attic.localhost"), "b=2; __Host-c=3");
    assert_eq!(ask(far, "lamp.attic.pages.example"), "__Host-c=3");
}

#[test]
fn request_that_no_machine_could_take_is_refused() {
    let house = House::default().with("lamp@attic", says("on"));
    let address = house.open(LOCAL);
    let body = "x".repeat(9000);
    let long = send(
        address,
        &format!(
            "POST / HTTP/1.1\nhost: lamp.attic.localhost\nconnection: close\ncontent-length: 9000\n\n{body}"
        ),
    );
    assert_eq!(status(&long), "413");
    let fields = format!("cookie: {}\n", "c".repeat(8500));
    let wide = send(
        address,
        &format!("GET / HTTP/1.1\nhost: lamp.attic.localhost\nconnection: close\n{fields}\n"),
    );
    assert_eq!(status(&wide), "413");
    let wider = send(
        address,
        &format!("GET / HTTP/1.1\nhost: lamp.attic.localhost\n{}\n", fields.repeat(3)),
    );
    assert_eq!(status(&wider), "431");
    assert_eq!(house.asked().len(), 0);
}
