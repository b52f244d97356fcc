//! A way to a server of PostgreSQL on which statements fail and connections break now and then, by a seed.
//!
//! It stands between a hub and the server and speaks their protocol (PostgreSQL 15, 55.2 and 55.7). A statement that fails is
//! replaced by one that raises the error at the server, so that its transaction is over there as well.
//!
//! Invariants:
//! - Which statements of a connection fail depends on the seed, the connection's number, the statement's number and on what
//!   failed before. After a few troubles in a row there are fewer, until a commit is done: whoever tries again gets through in
//!   the end, however much he has to do.
//! - A connection is calm until its first transaction: what makes it usable isn't disturbed.
//! - Every transaction is `SERIALIZABLE`, also one that reads, and also a statement that is in none: as at engines that know
//!   nothing else.

use std::io::{self, BufReader, Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::{env, fs, thread};

use super::Cluster;

/// The environment's name for the seed.
const VARIABLE: &str = "TENURE_TEST_SEED";
/// The name of a server's socket in its folder.
const SOCKET: &str = ".s.PGSQL.5432";
/// One of so many statements is in trouble, and one of so many commits, of which there are fewer.
const EVERY: u64 = 128;
const EVERY_COMMIT: u64 = 12;
/// After so many troubles without a commit between them they are half as many.
const HALVED_AFTER: u32 = 4;
/// How a hub begins its transactions, and one of them that reads.
const BEGIN: &str = "BEGIN ISOLATION LEVEL ";
const BEGIN_TO_READ: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
const BEGIN_TO_READ_SERIALIZABLE: &str = "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY";
const COMMIT: &str = "COMMIT";
const SERIALIZABLE: &str = "SET default_transaction_isolation = 'serializable'";
/// The longest message that goes through, in bytes: a statement with a blob is shorter.
const MESSAGE_BYTES_MAX: usize = 64 << 20;
/// The code in the place of the protocol's version with which somebody asks for another connection's statement to end
/// (PostgreSQL 15, 55.7, CancelRequest).
const CANCEL: [u8; 4] = 80_877_102_u32.to_be_bytes();

/// The thing that happens to a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The server fails it: another transaction came between (SQLSTATE 40001).
    Serialization,
    /// The server fails it, as one of those that wait for each other (SQLSTATE 40P01).
    Deadlock,
    /// The connection breaks before the server has it.
    LostBefore,
    /// The connection breaks after the server did it, and nobody hears that.
    LostAfter,
}

impl Trouble {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::Serialization, Self::Deadlock, Self::LostBefore, Self::LostAfter];

    /// The error by which the server fails the statement, if it does.
    fn code(self) -> Option<&'static str> {
        match self {
            Self::Serialization => Some("40001"),
            Self::Deadlock => Some("40P01"),
            Self::LostBefore | Self::LostAfter => None,
        }
    }
}

/// A way to a server, which ends when this is dropped. Connections that are open then last on.
#[derive(Debug)]
pub struct Shaken {
    folder: PathBuf,
    way: Arc<Way>,
}

#[derive(Debug)]
struct Way {
    server: PathBuf,
    seed: u64,
    loses_commits: bool,
    /// Whether nothing happens on it.
    is_quiet: bool,
    /// The requests that the server was asked to answer.
    requests: AtomicU64,
    is_over: AtomicBool,
    met: [AtomicU64; Trouble::ALL.len()],
    commits_lost: AtomicU64,
    /// How many troubles there were since the last commit.
    in_a_row: AtomicU32,
}

impl Shaken {
    /// A way to a server on which the outcome of a commit is always known in the end: one that the hub doesn't hear of wasn't
    /// done. So whoever was told to try again may do so without a thought.
    ///
    /// Its seed is that of `TENURE_TEST_SEED`, or one of the test's name.
    ///
    /// # Panics
    /// The system has no folder, socket or thread, or the variable is no number.
    #[must_use]
    pub fn to(cluster: &Cluster) -> Self {
        Self::new(cluster, false, false)
    }

    /// A way on which nothing happens, and whose requests are counted: each is a round trip to the server.
    ///
    /// # Panics
    /// As [`Self::to`].
    #[must_use]
    pub fn quiet(cluster: &Cluster) -> Self {
        Self::new(cluster, false, true)
    }

    /// A way on which a commit may also be done and its answer be lost.
    ///
    /// # Panics
    /// As [`Self::to`].
    #[must_use]
    pub fn losing_commits(cluster: &Cluster) -> Self {
        Self::new(cluster, true, false)
    }

    fn new(cluster: &Cluster, loses_commits: bool, is_quiet: bool) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tenure-shaken-{}-{number}", std::process::id());
        let folder = env::temp_dir().join(name);
        // Of a process of before that had this one's number.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).expect("a folder for a socket");
        let seed = seed();
        if !is_quiet {
            println!("statements fail by the seed {seed}; {VARIABLE}={seed} repeats it");
        }
        let listener = UnixListener::bind(folder.join(SOCKET)).expect("a socket");
        let server = cluster.folder().join(SOCKET);
        let way = Way {
            server,
            seed,
            loses_commits,
            is_quiet,
            requests: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            met: Default::default(),
            commits_lost: AtomicU64::new(0),
            in_a_row: AtomicU32::new(0),
        };
        let way = Arc::new(way);
        let serving = Arc::clone(&way);
        thread::spawn(move || accept(&listener, &serving));
        Self { folder, way }
    }

    /// The address of a database by this way.
    pub fn address(&self, database: &str) -> String {
        super::address(&self.folder, database)
    }

    /// How often each trouble was met so far, in the order of [`Trouble::ALL`].
    pub fn met(&self) -> [u64; Trouble::ALL.len()] {
        Trouble::ALL.map(|trouble| self.way.met[trouble as usize].load(Ordering::Relaxed))
    }

    /// How many requests the server was asked to answer so far.
    pub fn requests(&self) -> u64 {
        self.way.requests.load(Ordering::Relaxed)
    }

    /// How many commits were done without an answer so far.
    pub fn commits_lost(&self) -> u64 {
        self.way.commits_lost.load(Ordering::Relaxed)
    }
}

impl Drop for Shaken {
    fn drop(&mut self) {
        self.way.is_over.store(true, Ordering::Relaxed);
        // Whoever waits for the next connection gets one, and sees that it is over.
        drop(UnixStream::connect(self.folder.join(SOCKET)));
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The seed of the environment, or one of the test's name.
fn seed() -> u64 {
    if let Ok(text) = env::var(VARIABLE) {
        return text.parse().unwrap_or_else(|_| panic!("{VARIABLE} is a number, not {text:?}"));
    }
    let current = thread::current();
    let name = current.name().unwrap_or_default().bytes();
    // FNV-1a, of which the first 32 bits are enough and easier to type.
    name.fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
        .into()
}

fn accept(listener: &UnixListener, way: &Arc<Way>) {
    for (number, client) in listener.incoming().enumerate() {
        if way.is_over.load(Ordering::Relaxed) {
            return;
        }
        let Ok(client) = client else { return };
        let way = Arc::clone(way);
        thread::spawn(move || {
            // It ends with the connection, whoever ended that.
            let _ = serve(client, &way, number as u64);
        });
    }
}

/// Serves one connection until it ends.
fn serve(client: UnixStream, way: &Way, number: u64) -> io::Result<()> {
    let (mut client, mut server) =
        (Side::of(client)?, Side::of(UnixStream::connect(&way.server)?)?);
    let greeting = client.greeting()?;
    server.send(&greeting)?;
    if greeting.get(4..8) == Some(&CANCEL[..]) {
        return Ok(());
    }
    relay(&mut server, Some(&mut client))?;
    if !way.is_quiet {
        server.send(&query(SERIALIZABLE))?;
        relay(&mut server, None)?;
    }
    let (mut draws, mut is_calm) = (Draws::new(way.seed, number), true);
    loop {
        let request = client.request()?;
        is_calm &= way.is_quiet || !request.text.starts_with(BEGIN);
        let trouble = if is_calm { None } else { request.meets(&mut draws, way) };
        if let Some(trouble) = trouble {
            way.met[trouble as usize].fetch_add(1, Ordering::Relaxed);
            way.in_a_row.fetch_add(1, Ordering::Relaxed);
        } else if request.text == COMMIT {
            way.in_a_row.store(0, Ordering::Relaxed);
        }
        match trouble {
            None => {
                server.send(&request.bytes)?;
                if request.is_end {
                    return Ok(());
                }
                // Before the answer, after which somebody may look.
                way.requests.fetch_add(1, Ordering::Relaxed);
                relay(&mut server, Some(&mut client))?;
            }
            Some(Trouble::LostBefore) => return Ok(()),
            Some(Trouble::LostAfter) => {
                server.send(&request.bytes)?;
                relay(&mut server, None)?;
                way.commits_lost.fetch_add(u64::from(request.text == COMMIT), Ordering::Relaxed);
                return Ok(());
            }
            Some(trouble) => fail(&mut server, &mut client, &request, trouble)?,
        }
    }
}

/// Has the server fail a request.
fn fail(
    server: &mut Side,
    client: &mut Side,
    request: &Request,
    trouble: Trouble,
) -> io::Result<()> {
    let code = trouble.code().unwrap_or_default();
    let raise = format!("DO $$ BEGIN RAISE EXCEPTION 'disturbed' USING ERRCODE = '{code}'; END $$");
    server.send(&query(&raise))?;
    if request.text != COMMIT {
        return relay(server, Some(client));
    }
    // After a commit that failed the transaction is over.
    let mut failed = server.message()?;
    while failed.kind != b'E' {
        failed = server.message()?;
    }
    client.send(&failed.bytes)?;
    relay(server, None)?;
    server.send(&query("ROLLBACK"))?;
    let mut ready = server.message()?;
    while ready.kind != READY {
        ready = server.message()?;
    }
    client.send(&ready.bytes)
}

/// The server waits for the next request (ReadyForQuery).
const READY: u8 = b'Z';

/// Brings the client the server's answer, or drops it if there is none to bring it to.
fn relay(server: &mut Side, mut client: Option<&mut Side>) -> io::Result<()> {
    let mut answer = Vec::new();
    loop {
        let message = server.message()?;
        let is_ready = message.kind == READY;
        answer.extend(message.bytes);
        // An error may be the last word of a server that closes the connection.
        if is_ready || server.reader.buffer().is_empty() {
            if let Some(client) = &mut client {
                client.send(&answer)?;
            }
            answer.clear();
        }
        if is_ready {
            return Ok(());
        }
    }
}

/// A simple query (PostgreSQL 15, 55.7, Query).
fn query(text: &str) -> Vec<u8> {
    let length = u32::try_from(text.len() + 5).unwrap_or(u32::MAX);
    [b"Q".as_slice(), &length.to_be_bytes(), text.as_bytes(), b"\0"].concat()
}

/// One side of the way.
struct Side {
    reader: BufReader<UnixStream>,
    stream: UnixStream,
}

struct Message {
    kind: u8,
    bytes: Vec<u8>,
}

impl Side {
    fn of(stream: UnixStream) -> io::Result<Self> {
        Ok(Self { reader: BufReader::new(stream.try_clone()?), stream })
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// The first message of a connection, which has no kind.
    fn greeting(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; 4];
        self.reader.read_exact(&mut bytes)?;
        self.rest(bytes, 4)
    }

    fn message(&mut self) -> io::Result<Message> {
        let mut bytes = vec![0; 5];
        self.reader.read_exact(&mut bytes)?;
        Ok(Message { kind: bytes[0], bytes: self.rest(bytes, 5)? })
    }

    /// The message whose first `known` bytes end with its length, which counts itself.
    fn rest(&mut self, mut bytes: Vec<u8>, known: usize) -> io::Result<Vec<u8>> {
        let [.., a, b, c, d] = bytes[..known] else { unreachable!("four bytes at least") };
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        if !(4..=MESSAGE_BYTES_MAX).contains(&length) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        bytes.resize(known + length - 4, 0);
        self.reader.read_exact(&mut bytes[known..])?;
        Ok(bytes)
    }

    /// The next messages up to one that asks for an answer.
    fn request(&mut self) -> io::Result<Request> {
        let mut request =
            Request { bytes: Vec::new(), text: String::new(), is_statement: false, is_end: false };
        loop {
            let Message { kind, mut bytes } = self.message()?;
            if kind == b'Q' {
                request.text = String::from_utf8_lossy(&bytes[5..bytes.len() - 1]).into_owned();
                if request.text == BEGIN_TO_READ {
                    bytes = query(BEGIN_TO_READ_SERIALIZABLE);
                }
            }
            // Parse, Bind, and a Query that isn't empty.
            request.is_statement |= matches!(kind, b'P' | b'B') || !request.text.is_empty();
            request.bytes.extend(bytes);
            request.is_end = kind == b'X';
            // Query, Sync and Terminate.
            if matches!(kind, b'Q' | b'S' | b'X') {
                return Ok(request);
            }
        }
    }
}

/// However a connection ends, both sides see it at once, although the reader is a second handle of its socket.
impl Drop for Side {
    fn drop(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// The messages of a client that one answer follows.
struct Request {
    bytes: Vec<u8>,
    /// The text of a simple query.
    text: String,
    is_statement: bool,
    /// Whether the client ends the connection.
    is_end: bool,
}

impl Request {
    /// The trouble that it is in, if any.
    fn meets(&self, draws: &mut Draws, way: &Way) -> Option<Trouble> {
        if !self.is_statement {
            return None;
        }
        let usual = if self.text == COMMIT { EVERY_COMMIT } else { EVERY };
        let halved = way.in_a_row.load(Ordering::Relaxed) / HALVED_AFTER;
        let trouble = draws.draw(usual << halved.min(32))?;
        let is_of_a_transaction = self.text.starts_with(BEGIN) || self.text == "ROLLBACK";
        match trouble {
            // No server fails these.
            Trouble::Serialization | Trouble::Deadlock if is_of_a_transaction => None,
            Trouble::LostAfter if self.text == COMMIT && !way.loses_commits => {
                Some(Trouble::LostBefore)
            }
            trouble => Some(trouble),
        }
    }
}

/// The troubles of a connection, one draw for each statement.
struct Draws(u64);

impl Draws {
    fn new(seed: u64, connection: u64) -> Self {
        Self(mixed(seed ^ mixed(connection)))
    }

    /// The trouble of a statement of a kind of which one of `every` is in any.
    fn draw(&mut self, every: u64) -> Option<Trouble> {
        self.0 = self.0.wrapping_add(1);
        let number = mixed(self.0);
        let which = (number / every) % Trouble::ALL.len() as u64;
        number.is_multiple_of(every).then(|| Trouble::ALL[which as usize])
    }
}

/// SplitMix64's step (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
fn mixed(number: u64) -> u64 {
    let sum = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let first = (sum ^ (sum >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let second = (first ^ (first >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    second ^ (second >> 31)
}
