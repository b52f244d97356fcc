//! A temporary server of PostgreSQL: Debian's, in a folder of its own, without a network.
//!
//! PostgreSQL refuses to run as root, so that the tests of root run it as `nobody`. A shell beside it ends the server
//! and deletes its folder when the process of the tests ends, however that ends.

mod shaken;

use std::fs::{self, Permissions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::{find_server, skip_without_tool, wait_until};

pub use shaken::{Shaken, Trouble};

/// The user and the group `nobody` of Debian.
const NOBODY: u32 = 65_534;
/// Starts a server for as long as the standard input is open, and deletes its folder then, unless it was told to let it
/// stay: program, folder of the data, folder of the socket, settings.
const KEEP: &str = "program=$1 data=$2 socket=$3; shift 3; \
     \"$program\" -D \"$data\" -k \"$socket\" \"$@\" >>\"$socket/log\" 2>&1 & \
     read -r word; kill -INT $! 2>/dev/null; wait $!; [ \"$word\" = stay ] || rm -rf \"$socket\"";

/// A server with its own folder, and the user `hub` whom everybody on this computer may be.
#[derive(Debug)]
pub struct Cluster {
    folder: PathBuf,
    settings: Vec<String>,
    keeper: Option<Child>,
}

impl Cluster {
    /// A server of this test's own; none without PostgreSQL, and then the test counts as skipped.
    ///
    /// # Panics
    /// It can't be started.
    #[must_use]
    pub fn start() -> Option<Self> {
        Self::start_with(&[], &[])
    }

    /// The same with these settings, each as `name=value`, and with files in its folder, each with its text.
    ///
    /// # Panics
    /// It can't be started.
    #[must_use]
    pub fn start_with(settings: &[&str], files: &[(&str, &str)]) -> Option<Self> {
        Self::start_in(&folder_of_all(), settings, files)
    }

    /// A server for figures: as Debian's is, so that a commit waits for the disk.
    ///
    /// # Panics
    /// It can't be started.
    #[must_use]
    pub fn start_on_the_disk() -> Option<Self> {
        let settings = ["fsync=on", "autovacuum=on"];
        Self::start_in(&std::env::temp_dir(), &settings, &[])
    }

    fn start_in(parent: &Path, settings: &[&str], files: &[(&str, &str)]) -> Option<Self> {
        let Some(initdb) = program("initdb").filter(|_| has_postgres()) else {
            skip_without_tool("PostgreSQL");
            return None;
        };
        let folder = new_folder(parent);
        let mut command = as_nobody(&initdb);
        command.arg("-D").arg(folder.join("data"));
        // Without waiting for the disk: no test cuts this computer's power.
        command.args(["-U", "hub", "-E", "UTF8", "--locale=C", "--auth=trust", "--no-sync"]);
        run(&mut command);
        let who = "local all all trust\nhost all all 127.0.0.0/8 trust\n";
        fs::write(folder.join("data/pg_hba.conf"), who).expect("its folder is there");
        for (name, text) in files {
            let path = folder.join(name);
            fs::write(&path, text).expect("its folder is there");
            fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("the file is ours");
            give_to_nobody(&path);
        }
        let settings = settings.iter().map(ToString::to_string).collect();
        let mut cluster = Self { folder, settings, keeper: None };
        cluster.wake();
        Some(cluster)
    }

    /// A server that the tests of a process share; none without PostgreSQL, and then the test counts as skipped.
    ///
    /// # Panics
    /// It can't be started.
    #[must_use]
    pub fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Option<Cluster>> = OnceLock::new();
        if !has_postgres() {
            skip_without_tool("PostgreSQL");
            return None;
        }
        // The pages of a hub outlive their test, and with them their connections.
        let settings = ["max_connections=300", "idle_session_timeout=30s"];
        SHARED.get_or_init(|| Self::start_with(&settings, &[])).as_ref()
    }

    /// Makes an empty database; returns its name.
    ///
    /// # Panics
    /// The server refuses.
    pub fn database(&self) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        // The template is one database, which one at a time may copy.
        static ONE: Mutex<()> = Mutex::new(());
        let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let name = format!("hub_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        // Nobody is connected to that template, not even a worker of the server's.
        self.sql("postgres", &format!("CREATE DATABASE {name} TEMPLATE template0"));
        name
    }

    /// The address of a database.
    pub fn address(&self, database: &str) -> String {
        address(&self.folder, database)
    }

    /// The folder of the server, in which its socket and its log are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What a statement answers: a line for each row, with a tab between two values.
    ///
    /// # Panics
    /// The server refuses.
    pub fn sql(&self, database: &str, statement: &str) -> String {
        let psql = program("psql").expect("psql is there with its server");
        let mut command = Command::new(psql);
        command.args(["-X", "-q", "-A", "-t", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-U", "hub"]);
        command.arg("-h").arg(&self.folder).args(["-d", database, "-c", statement]);
        run(&mut command)
    }

    /// Kills the server and all who serve its connections, without a word to them.
    ///
    /// # Panics
    /// It isn't running.
    pub fn kill(&mut self) {
        let children = children_of(&self.pid());
        self.signal("-KILL");
        let mut keeper = self.keeper.take().expect("a server that runs");
        let mut words = keeper.stdin.take().expect("its input is piped");
        words.write_all(b"stay\n").expect("the shell beside it reads");
        drop(words);
        keeper.wait().expect("how the shell beside it ended");
        // They end by themselves, and hold its memory until then, so that no other server could take up its folder.
        wait_until(|| match children.iter().find(|child| is_alive(child)) {
            Some(child) => Err(format!("process {child} of the server is still there")),
            None => Ok(()),
        });
    }

    /// Sends a signal to the server's first process, as `-STOP`.
    ///
    /// # Panics
    /// It isn't running.
    pub fn signal(&self, signal: &str) {
        run(Command::new("kill").args([signal, &self.pid()]));
    }

    /// Has the server and all who serve its connections stand still, as on a computer that is frozen.
    ///
    /// # Panics
    /// It isn't running.
    pub fn freeze(&self) {
        // Nobody starts another one meanwhile.
        self.signal("-STOP");
        signal_all("-STOP", &children_of(&self.pid()));
    }

    /// Has them go on.
    ///
    /// # Panics
    /// It isn't running.
    pub fn thaw(&self) {
        signal_all("-CONT", &children_of(&self.pid()));
        self.signal("-CONT");
    }

    fn pid(&self) -> String {
        self.pid_in_file().expect("the file of a server that runs")
    }

    fn pid_in_file(&self) -> Option<String> {
        let pids = fs::read_to_string(self.folder.join("data/postmaster.pid")).ok()?;
        pids.lines().next().map(ToString::to_string)
    }

    /// Starts the server, after [`Self::kill`] once more.
    ///
    /// # Panics
    /// It doesn't answer.
    pub fn wake(&mut self) {
        let postgres = program("postgres").expect("postgres is there with initdb");
        // Databases of tests are small and many, and none of them lives for long.
        let usual = ["listen_addresses=", "fsync=off", "autovacuum=off"];
        let mut settings: Vec<String> = usual.iter().map(ToString::to_string).collect();
        settings.extend(self.settings.iter().cloned());
        let mut keeper = as_nobody(Path::new("sh"));
        keeper.args(["-c", KEEP, "sh"]).arg(postgres).arg(self.folder.join("data"));
        keeper.arg(&self.folder);
        for setting in settings {
            keeper.args(["-c", &setting]);
        }
        let keeper = keeper.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        self.keeper = Some(keeper.spawn().expect("a shell"));
        let ready = program("pg_isready").expect("pg_isready is there with psql");
        wait_until(|| {
            let mut ready = Command::new(&ready);
            ready.arg("-q").arg("-h").arg(&self.folder).args(["-U", "hub", "-d", "postgres"]);
            match ready.status().expect("pg_isready runs").success() {
                true => Ok(()),
                false => Err(format!("no server answers in {}", self.folder.display())),
            }
        });
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(mut keeper) = self.keeper.take() {
            // A server that stands still doesn't end.
            if let Some(pid) = self.pid_in_file() {
                signal_all("-CONT", &[children_of(&pid), vec![pid]].concat());
            }
            drop(keeper.stdin.take());
            let _ = keeper.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The address of a database by the socket in that folder.
fn address(folder: &Path, database: &str) -> String {
    let folder = folder.display().to_string().replace('/', "%2F");
    format!("postgres://hub@{folder}/{database}")
}

/// Whether this computer has a server of PostgreSQL with its tools.
pub fn has_postgres() -> bool {
    ["initdb", "postgres", "psql", "pg_isready"].iter().all(|name| program(name).is_some())
}

/// A program of PostgreSQL, on the path or where Debian has those of each version.
fn program(name: &str) -> Option<PathBuf> {
    find_server(name).or_else(|| {
        let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
        let mut found: Vec<PathBuf> = versions
            .filter_map(|version| Some(version.ok()?.path().join("bin").join(name)))
            .filter(|file| file.is_file())
            .collect();
        found.sort();
        found.pop()
    })
}

/// Sends a signal to processes, some of which may have ended.
fn signal_all(signal: &str, processes: &[String]) {
    for process in processes {
        let mut kill = Command::new("kill");
        let _ = kill.args([signal, process]).stderr(Stdio::null()).status();
    }
}

fn children_of(pid: &str) -> Vec<String> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children = children.unwrap_or_default();
    children.split_whitespace().map(ToString::to_string).collect()
}

/// Whether a process runs; one that ended and that nobody asked for its end doesn't.
fn is_alive(pid: &str) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = status.rsplit(") ").next().and_then(|rest| rest.chars().next());
    state.is_some_and(|state| state != 'Z')
}

fn new_folder(parent: &Path) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tenure-postgres-{}-{number}", std::process::id());
        let folder = parent.join(name);
        match fs::create_dir(&folder) {
            Ok(()) => {
                give_to_nobody(&folder);
                return folder;
            }
            // Of a process of before that had this one's number.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => panic!("no folder {}: {error}", folder.display()),
        }
    }
}

/// Where the folders of servers are: in memory if there is room, where a busy disk keeps no statement waiting.
fn folder_of_all() -> PathBuf {
    const MEMORY: &str = "/dev/shm";
    const ROOM_KB: u64 = 4 * 1024 * 1024;
    let free = Command::new("df").args(["--output=avail", "-k", MEMORY]).output();
    let free = free.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let free_kb = free.ok().and_then(|text| text.lines().last()?.trim().parse::<u64>().ok());
    match free_kb {
        Some(free_kb) if free_kb >= ROOM_KB => MEMORY.into(),
        _ => std::env::temp_dir(),
    }
}

fn give_to_nobody(path: &Path) {
    if is_root() {
        chown(path, Some(NOBODY), Some(NOBODY)).expect("root may give it away");
    }
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

fn as_nobody(program: &Path) -> Command {
    let mut command = Command::new(program);
    if is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    // Its own folder may be closed to that user.
    command.current_dir("/");
    command
}

fn run(command: &mut Command) -> String {
    let output = command.output().expect("the program can be started");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    String::from_utf8(output.stdout).expect("text")
}
