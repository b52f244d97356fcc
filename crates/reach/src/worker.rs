//! The visits of one machine, one after the other: connections that are kept, redirects, bodies in parts.

use std::net::TcpStream;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use tenure_kernel::{Ask, CallId, Visited};
use tenure_tls::x509::parse_private_key;
use tenure_tls::{Client, ClientConfig, Identity, Now, Suite, Trust};
use tenure_tls_client::{Judges, ReadyTicket, Scope, Tickets};
use tenure_wire::capability::{Method, ReachPattern, Visit};
use tenure_wire::limits::PARAMETER_BYTES_MAX;
use tenure_wire::url::{Origin, Scheme};
use tenure_wire::{MachineId, NoResult, Url};

use crate::http::{BadMessage, BadResponse, Body, Connection, Head, request};
use crate::servers::ClientIdentity;
use crate::stream::{GROUPS, Stream, TLS_BUFFER_BYTES, connect, server_name};
use crate::{Failure, IDLE, Shared};

/// The most redirects that one visit follows.
const REDIRECTS_MAX: u8 = 5;
/// The most interim responses before one that is final (RFC 9110 §15.2).
const INTERIM_MAX: u8 = 8;
/// The longest head that a machine gets, in bytes, so that a part of the body has room beside it.
const TOLD_HEAD_BYTES_MAX: usize = PARAMETER_BYTES_MAX / 2;
/// The first pause before a server that couldn't be reached is tried again; it doubles.
const TRY_AGAIN: Duration = Duration::from_millis(250);

/// How long the first result waits for more of the body than came with the head.
const PATIENCE: Duration = Duration::from_millis(300);

/// A visit that a worker has.
pub(crate) struct Job {
    pub(crate) id: CallId,
    pub(crate) ask: Ask,
    pub(crate) granted: Vec<ReachPattern>,
    pub(crate) deadline: Instant,
    pub(crate) attempts: u8,
}

/// A request under way, as redirects change it.
struct Errand {
    id: CallId,
    method: Method,
    url: Url,
    message: Option<Vec<u8>>,
    granted: Vec<ReachPattern>,
    deadline: Instant,
    attempts_left: u8,
    redirects_left: u8,
    /// Bytes that earlier connections of this visit moved.
    traffic: (u64, u64),
}

impl Errand {
    /// What becomes of the connection behind it.
    fn connection(&self) -> Connection {
        let origin = self.url.origin();
        let is_all_granted = self.granted.iter().any(|pattern| pattern.is_all_of(origin));
        Connection::of(&self.method, is_all_granted)
    }
}

/// The visits of one machine.
pub(crate) struct Worker<E> {
    machine: MachineId,
    shared: Arc<Shared>,
    jobs: Receiver<Job>,
    tickets: Tickets,
    end: E,
}

/// A response whose body isn't taken whole.
struct Rest {
    body: Body,
    /// Bytes from the connection, still framed.
    received: Vec<u8>,
    is_kept: bool,
}

impl Rest {
    /// Whether another request may go over the connection: this one is over, and nothing came that nobody asked for, which would
    /// be taken for its answer.
    fn is_good_for_another(&self, stream: &mut Stream<'_>) -> bool {
        self.body.is_over() && self.is_kept && self.received.is_empty() && stream.is_quiet()
    }
}

/// The outcome of one request.
enum Answered {
    /// A response, told to the machine as far as it fits.
    Told(Rest),
    /// The way to another place.
    Elsewhere(Box<Errand>),
}

impl<E: FnMut(Visited)> Worker<E> {
    pub(crate) fn new(
        machine: MachineId,
        shared: Arc<Shared>,
        jobs: Receiver<Job>,
        end: E,
    ) -> Self {
        Self { machine, shared, jobs, tickets: Tickets::default(), end }
    }

    /// Runs until nobody can ask for anything any more.
    pub(crate) fn run(mut self) {
        while let Ok(job) = self.jobs.recv() {
            let mut next = self.begin(job);
            while let Some(errand) = next {
                next = self.connected(*errand);
            }
        }
    }

    /// Takes a job without a connection.
    fn begin(&mut self, job: Job) -> Option<Box<Errand>> {
        let Job { id, ask, granted, deadline, attempts } = job;
        match ask {
            Ask::Request { method, url, message } => Some(Box::new(Errand {
                id,
                method,
                url,
                message,
                granted,
                deadline,
                attempts_left: attempts.max(1),
                redirects_left: REDIRECTS_MAX,
                traffic: (0, 0),
            })),
            Ask::More => {
                let lost = "there is no answer of which more could come; the machine read none for 15 s, or asked anew";
                self.fail(id, Failure::new(NoResult::NotFound, lost), (0, 0));
                None
            }
        }
    }

    fn fail(&mut self, id: CallId, failure: Failure, traffic: (u64, u64)) {
        let Failure { reason, words } = failure;
        (self.end)(Visited {
            id,
            result: Err(reason),
            words: words.into_owned().into_bytes(),
            traffic,
        });
    }

    /// Opens a connection for `errand`, and serves the machine over it as long as it asks the same server. Returns the
    /// errand that wants another connection.
    fn connected(&mut self, mut errand: Errand) -> Option<Box<Errand>> {
        let tcp = match self.reach(&mut errand) {
            Ok(tcp) => tcp,
            Err(failure) => {
                self.fail(errand.id, failure, errand.traffic);
                return None;
            }
        };
        let (origin, shared) = (errand.url.origin().clone(), Arc::clone(&self.shared));
        let dates = &shared.dates;
        if origin.scheme == Scheme::Http {
            return self.serve(Stream::plain(tcp, dates), &origin, errand);
        }
        let judges = match shared.servers.judges_of(&origin) {
            Ok(judges) => judges,
            Err(why) => {
                let why = format!("no authority is known that could vouch for a server: {why}");
                self.fail(errand.id, Failure::new(NoResult::Denied, why), errand.traffic);
                return None;
            }
        };
        let (anchors, keys) = match judges {
            Judges::Authorities(authorities) => (authorities.anchors(), Vec::new()),
            Judges::Keys(ders) => (Vec::new(), ders.iter().map(Vec::as_slice).collect()),
        };
        let own = shared.servers.identity_for(&origin);
        let own_chain: Vec<&[u8]> =
            own.iter().flat_map(|own| &own.chain).map(Vec::as_slice).collect();
        // A machine's tickets are its own: no server learns by them that two machines are on one device.
        let scope = Scope::new(&self.machine.0, &origin.to_string(), judges, &own_chain);
        let (ticket, keeper) = self.tickets.begin(scope, dates);
        let config = ClientConfig {
            server_name: server_name(&origin.host),
            trust: match keys.is_empty() {
                true => Trust::Anchors { anchors: &anchors, without_date: &[] },
                false => Trust::Keys(&keys),
            },
            suites: Suite::ALL,
            groups: GROUPS,
            application_protocols: &[b"http/1.1"],
            identity: own.and_then(|own| identity(own, &own_chain)),
            pre_shared_key: ticket.as_ref().map(ReadyTicket::key),
            early_data: false,
            handshake_ms_max: u64::try_from(left(errand.deadline).as_millis()).unwrap_or(u64::MAX),
        };
        let (mut buffer, start) = (vec![0; TLS_BUFFER_BYTES], Instant::now());
        let client = Client::new(&mut buffer, &config, &Now { uptime_ms: 0, date: None });
        let stream = client.map_err(|error| Failure::of_tls(error, dates)).and_then(|client| {
            Stream::secure(tcp, (client, keeper), dates, (start, errand.deadline))
        });
        match stream {
            Ok(stream) => {
                shared.handshakes.count(stream.is_resumed());
                self.serve(stream, &origin, errand)
            }
            Err(failure) => {
                self.fail(errand.id, failure, errand.traffic);
                None
            }
        }
    }

    /// A TCP connection, tried as often as the visit may.
    fn reach(&mut self, errand: &mut Errand) -> Result<TcpStream, Failure> {
        let mut pause = TRY_AGAIN;
        loop {
            errand.attempts_left = errand.attempts_left.saturating_sub(1);
            let (names, machine) = (&self.shared.names, self.machine);
            let find = |name: &str| names.addresses(name, machine, errand.deadline);
            let Origin { host, port, .. } = errand.url.origin();
            let failure = match connect((host, *port), find, errand.deadline) {
                Ok(tcp) => return Ok(tcp),
                Err(failure) => failure,
            };
            let is_final = matches!(failure.reason, NoResult::Denied | NoResult::Deadline);
            if is_final || errand.attempts_left == 0 || left(errand.deadline) < pause {
                return Err(failure);
            }
            std::thread::sleep(pause);
            pause *= 2;
        }
    }

    /// Serves the machine over one connection, from `errand` on.
    fn serve(
        &mut self,
        mut stream: Stream<'_>,
        origin: &Origin,
        mut errand: Errand,
    ) -> Option<Box<Errand>> {
        let mut is_fresh = true;
        loop {
            let mut rest = match self.exchange(&mut stream, errand, is_fresh) {
                Ok(Answered::Told(rest)) => rest,
                Ok(Answered::Elsewhere(errand)) => return Some(errand),
                Err(errand) => return errand,
            };
            let next = loop {
                let job = self.jobs.recv_timeout(IDLE).ok()?;
                if matches!(job.ask, Ask::More) {
                    if !self.more(&mut stream, &mut rest, &job) {
                        return None;
                    }
                    continue;
                }
                match self.begin(job) {
                    Some(errand) => break errand,
                    None => continue,
                }
            };
            if !rest.is_good_for_another(&mut stream) || next.url.origin() != origin {
                return Some(next);
            }
            (errand, is_fresh) = (*next, false);
        }
    }

    /// Sends one request and tells the machine the beginning of the response.
    ///
    /// # Errors
    /// The connection is of no more use. The errand comes back where it may be run on a new one, as the server had closed
    /// this one while it wasn't used (RFC 9112 §9.3.1).
    fn exchange(
        &mut self,
        stream: &mut Stream<'_>,
        errand: Errand,
        is_fresh: bool,
    ) -> Result<Answered, Option<Box<Errand>>> {
        let before = if is_fresh { (0, 0) } else { stream.traffic() };
        let mut received = Vec::new();
        let asked = ask(stream, &errand, &mut received);
        let moved = |stream: &Stream<'_>, errand: &Errand| {
            let (sent, taken) = stream.traffic();
            (errand.traffic.0 + sent - before.0, errand.traffic.1 + taken - before.1)
        };
        let head = match asked {
            Ok(head) => head,
            Err(_) if !is_fresh && received.is_empty() && errand.method.is_safe() => {
                let traffic = moved(stream, &errand);
                return Err(Some(Box::new(Errand { traffic, ..errand })));
            }
            Err(failure) => {
                let traffic = moved(stream, &errand);
                self.fail(errand.id, failure, traffic);
                return Err(None);
            }
        };
        if let Some(location) = location(&head, &errand.method) {
            let traffic = moved(stream, &errand);
            let id = errand.id;
            return match redirected(errand, head.status, location) {
                Ok(errand) => Ok(Answered::Elsewhere(Box::new(Errand { traffic, ..errand }))),
                Err(failure) => {
                    self.fail(id, failure, traffic);
                    Err(None)
                }
            };
        }
        let is_kept = head.is_kept && errand.connection() == Connection::Kept;
        let mut rest = Rest { body: Body::new(head.framing), received, is_kept };
        let told = tell(stream, &mut rest, &head, &errand);
        let traffic = moved(stream, &errand);
        match told {
            Ok(told) => {
                let (id, result) = (errand.id, Ok(Some(told)));
                (self.end)(Visited { id, result, words: Vec::new(), traffic });
                Ok(Answered::Told(rest))
            }
            Err(failure) => {
                self.fail(errand.id, failure, traffic);
                Err(None)
            }
        }
    }

    /// Tells the machine the next part of a body, and returns whether the connection is still of use.
    fn more(&mut self, stream: &mut Stream<'_>, rest: &mut Rest, job: &Job) -> bool {
        let before = stream.traffic();
        let mut part = Vec::new();
        let until = Until { deadline: job.deadline, told_at: None };
        let taken = fill(stream, rest, &mut part, PARAMETER_BYTES_MAX, &until);
        let traffic = (stream.traffic().0 - before.0, stream.traffic().1 - before.1);
        match taken {
            Ok(()) => {
                let result = Ok((!part.is_empty()).then_some(part));
                (self.end)(Visited { id: job.id, result, words: Vec::new(), traffic });
                true
            }
            Err(failure) => {
                self.fail(job.id, failure, traffic);
                false
            }
        }
    }
}

/// What the device shows, if its key is one.
fn identity<'a>(own: &'a ClientIdentity, chain: &'a [&'a [u8]]) -> Option<Identity<'a>> {
    let key = parse_private_key(&own.key).ok()?;
    Some(Identity { chain, key })
}

fn left(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

/// Sends the request and reads the head of its final response; what came behind it stays in `received`.
fn ask(stream: &mut Stream<'_>, errand: &Errand, received: &mut Vec<u8>) -> Result<Head, Failure> {
    let Errand { method, url, message, deadline, .. } = errand;
    let connection = errand.connection();
    let bytes =
        request(method, url, message.as_deref(), connection).map_err(|BadMessage(why)| {
            Failure::new(NoResult::Invalid, format!("the request is refused: {why}"))
        })?;
    stream.send(&bytes, *deadline)?;
    let mut interim_left = INTERIM_MAX;
    loop {
        while let Some((head, end)) = Head::read(received, method).map_err(bad)? {
            received.drain(..end);
            if head.status >= 200 {
                return Ok(head);
            }
            interim_left =
                interim_left.checked_sub(1).ok_or_else(|| bad(BadResponse::Malformed))?;
        }
        if !stream.receive(received, *deadline)? {
            let broken = "the server closed the connection without an answer";
            return Err(Failure::new(NoResult::Unreachable, broken));
        }
    }
}

/// The first result: the head, and of the body what fits beside it.
fn tell(
    stream: &mut Stream<'_>,
    rest: &mut Rest,
    head: &Head,
    errand: &Errand,
) -> Result<Vec<u8>, Failure> {
    let longest = head.for_machine(Some(u64::MAX)).len();
    if longest > TOLD_HEAD_BYTES_MAX {
        let long = "the head of the server's answer is longer than a machine takes, 4,096 bytes";
        return Err(Failure::new(NoResult::TooLong, long));
    }
    let mut part = Vec::new();
    let until = Until { deadline: errand.deadline, told_at: Some(Instant::now() + PATIENCE) };
    fill(stream, rest, &mut part, PARAMETER_BYTES_MAX - longest, &until)?;
    let is_whole = rest.body.is_over() && errand.method.as_str() != "HEAD";
    let length = if is_whole { Some(part.len() as u64) } else { head.length };
    let mut told = head.for_machine(length);
    told.extend(part);
    Ok(told)
}

/// When a part of a body is told.
struct Until {
    /// By then there must be something to tell.
    deadline: Instant,
    /// When the machine is told what there is, be it nothing; `None` once there is something.
    told_at: Option<Instant>,
}

/// Takes the body into `part` until it is over, `room` bytes are there, or it is time to tell the machine.
fn fill(
    stream: &mut Stream<'_>,
    rest: &mut Rest,
    part: &mut Vec<u8>,
    room: usize,
    until: &Until,
) -> Result<(), Failure> {
    loop {
        rest.body.take(&mut rest.received, part, room - part.len()).map_err(bad)?;
        let is_enough = part.len() == room || until.told_at.is_none() && !part.is_empty();
        if rest.body.is_over() || is_enough {
            return Ok(());
        }
        let patience = until.told_at.map_or(until.deadline, |at| at.min(until.deadline));
        match stream.receive(&mut rest.received, patience) {
            Ok(true) => {}
            Ok(false) => {
                return rest.body.close().map_err(|_| {
                    let broken = "the server's answer broke off in the middle";
                    Failure::new(NoResult::Unreachable, broken)
                });
            }
            Err(failure)
                if failure.reason == NoResult::Deadline && !left(until.deadline).is_zero() =>
            {
                return Ok(());
            }
            Err(failure) => return Err(failure),
        }
    }
}

fn bad(response: BadResponse) -> Failure {
    Failure::new(NoResult::Unreachable, response.to_string())
}

/// The place that a response leads to, if a machine's visit follows it: by a method that changes nothing, or with the
/// status that says so (RFC 9110 §15.4).
fn location<'a>(head: &'a Head, method: &Method) -> Option<&'a str> {
    let leads = match head.status {
        301 | 302 | 307 | 308 => method.is_safe(),
        303 => true,
        _ => false,
    };
    if leads { head.field("location") } else { None }
}

/// The errand that goes on at `location`, within the machine's grants.
fn redirected(errand: Errand, status: u16, location: &str) -> Result<Errand, Failure> {
    let refused = |why: String| Failure::new(NoResult::Denied, why);
    let url = errand.url.join(location).map_err(|error| {
        refused(format!("the server leads to a place that is no URL here: {error}"))
    })?;
    let redirects_left = errand.redirects_left.checked_sub(1).ok_or_else(|| {
        refused(format!("the server leads on and on, at last to {}", url.origin()))
    })?;
    let is_head = errand.method.as_str() == "HEAD";
    let (method, message) = match status {
        // RFC 9110 §15.4.4: by GET, whatever it was.
        303 if !is_head => ("GET".parse().unwrap_or(errand.method), None),
        _ => (errand.method, errand.message),
    };
    let visit = Visit { method: &method, url: &url };
    if !errand.granted.iter().any(|pattern| pattern.matches(&visit)) {
        return Err(refused(format!("the server leads to {visit}, which isn't granted")));
    }
    // A machine's message may say who it is, which is no other server's business.
    let message = if url.origin() == errand.url.origin() { message } else { None };
    Ok(Errand { method, url, message, redirects_left, ..errand })
}
