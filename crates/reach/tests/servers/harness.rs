//! Servers on this computer, and a device whose machines visit them.

use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tenure_board_linux::wait_any;
use tenure_hal::Instant;
use tenure_kernel::{Ask, CallId, OutgoingVisit, Visited};
use tenure_reach::{Reach, Servers, State};
use tenure_tls_client::{Date, Dates};
use tenure_wire::control::DateTeller;
use tenure_wire::{MachineId, NoResult};

/// A server that answers each connection by `serve`.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) connections: Arc<AtomicUsize>,
}

impl Server {
    pub(crate) fn start(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let (counted, serve) = (Arc::clone(&connections), Arc::new(serve));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                counted.fetch_add(1, Ordering::SeqCst);
                let serve = Arc::clone(&serve);
                std::thread::spawn(move || serve(stream));
            }
        });
        Self { address, connections }
    }

    /// A server that reads a request and sends what `answer` makes of it, over and over.
    pub(crate) fn answering(answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        Self::start(move |mut stream| {
            while let Some(request) = read_request(&mut stream) {
                if stream.write_all(&answer(&request)).is_err() {
                    return;
                }
            }
        })
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

/// A request's head and the body of the length that it says.
pub(crate) fn read_request(stream: &mut impl std::io::Read) -> Option<String> {
    let mut bytes = Vec::new();
    let mut byte = [0];
    while !bytes.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        bytes.push(byte[0]);
    }
    let head = String::from_utf8(bytes.clone()).ok()?;
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).ok()?;
    bytes.extend(body);
    String::from_utf8(bytes).ok()
}

pub(crate) fn ok(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// The date of this computer.
pub(crate) fn date_of_today() -> Option<Date> {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    Some(Date { since_1970, teller: DateTeller::Clock })
}

/// One device's visits, for one machine unless it says otherwise.
pub(crate) struct Device {
    reach: Reach,
    next: u32,
    granted: Vec<String>,
    pub(crate) deadline: Duration,
}

impl Device {
    pub(crate) fn new(granted: &[&str]) -> Self {
        Self::trusting(Vec::new(), granted)
    }

    pub(crate) fn trusting(authorities: Vec<Vec<u8>>, granted: &[&str]) -> Self {
        Self::with(Servers::new(move || Ok(authorities.clone())), granted)
    }

    pub(crate) fn with(servers: Servers, granted: &[&str]) -> Self {
        Self::at(date_of_today, servers, granted)
    }

    /// One whose certificates are judged by these dates.
    pub(crate) fn at(
        date: impl Fn() -> Option<Date> + Send + Sync + 'static,
        servers: Servers,
        granted: &[&str],
    ) -> Self {
        let reach = Reach::new(servers, Dates::new(date)).unwrap();
        let granted = granted.iter().map(ToString::to_string).collect();
        Self { reach, next: 0, granted, deadline: Duration::from_secs(20) }
    }

    pub(crate) fn state(&self) -> State {
        self.reach.state()
    }

    pub(crate) fn begin(&mut self, machine: u8, ask: Ask) -> CallId {
        self.next += 1;
        let (id, now) = (CallId(self.next), Instant::default());
        let granted = self.granted.iter().map(|pattern| pattern.parse().unwrap()).collect();
        let from = MachineId([machine; 12]);
        let deadline = now + self.deadline;
        self.reach.visit(now, OutgoingVisit { id, from, ask, granted, deadline, attempts: 1 });
        id
    }

    pub(crate) fn end(&mut self) -> Visited {
        loop {
            if let Some(visited) = self.reach.visited() {
                return visited;
            }
            wait_any(&[&self.reach as &dyn AsFd], Duration::from_secs(60)).unwrap();
        }
    }

    pub(crate) fn visit(&mut self, ask: Ask) -> Visited {
        let id = self.begin(1, ask);
        let visited = self.end();
        assert_eq!(visited.id, id);
        visited
    }

    pub(crate) fn ask(&mut self, method: &str, url: &str, message: Option<&str>) -> Visited {
        self.visit(Ask::Request {
            method: method.parse().unwrap(),
            url: url.parse().unwrap(),
            message: message.map(|message| message.as_bytes().to_vec()),
        })
    }

    #[track_caller]
    pub(crate) fn told(&mut self, method: &str, url: &str) -> String {
        let visited = self.ask(method, url, None);
        let words = String::from_utf8(visited.words).unwrap();
        let told = visited.result.unwrap_or_else(|reason| panic!("{url}: {reason}: {words}"));
        String::from_utf8(told.unwrap()).unwrap()
    }

    #[track_caller]
    pub(crate) fn failed(&mut self, method: &str, url: &str) -> (NoResult, String) {
        let visited = self.ask(method, url, None);
        (visited.result.unwrap_err(), String::from_utf8(visited.words).unwrap())
    }

    pub(crate) fn more(&mut self) -> Result<Option<Vec<u8>>, NoResult> {
        self.visit(Ask::More).result
    }
}
