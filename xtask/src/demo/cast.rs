//! The processes of the demo, started with one another's addresses and ended with the demo.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use tenure_testbed::{find_server, patience};
use tenure_wire::console::{IN_MESH, LISTED, LISTENING_AT, LISTENS_ON, PAGES_LISTEN_ON};

use super::{page, prompt};
use crate::{paint, process, tenure};

/// All processes of the demo, and the folder that they live in.
pub(crate) struct Cast {
    tenure: PathBuf,
    // Dropped in this order: processes end before their folder goes.
    hub: Option<Player>,
    /// The servers outside.
    servers: Vec<Player>,
    devices: Vec<Device>,
    folder: tempfile::TempDir,
}

/// A device of the demo. Clones are the same device.
#[derive(Clone)]
pub(super) struct Device {
    name: &'static str,
    address: String,
    player: Arc<Mutex<Player>>,
}

/// A process whose lines are read as they come; it ends with this.
pub(crate) struct Player {
    child: Child,
    lines: Receiver<String>,
    /// The lines that have been looked at so far.
    seen: Vec<String>,
}

impl Cast {
    pub(super) fn new(tenure: &Path) -> Result<Self> {
        let folder = tempfile::tempdir().context("cannot make a folder for the demo")?;
        Ok(Self {
            tenure: tenure.to_path_buf(),
            folder,
            hub: None,
            servers: Vec::new(),
            devices: Vec::new(),
        })
    }

    pub(super) fn tenure(&self) -> &Path {
        &self.tenure
    }

    /// Builds a machine's package into the demo's folder.
    pub(super) fn build(&self, project: &Path, name: &str) -> Result<()> {
        let mut command = self.command(&["build"]);
        command.arg(project).arg("--output").arg(self.package(name));
        process::capture(&mut command).map(drop)
    }

    pub(super) fn start_hub(&mut self) -> Result<()> {
        let mut command =
            self.command(&["hub", "--owner", "own", "--listen", "127.0.0.1:0", "--data"]);
        command.arg(self.folder.path().join("hub")).args(["--pages", "127.0.0.1:0"]);
        self.hub = Some(Player::start(&mut command, "hub")?);
        Ok(())
    }

    /// The arguments that sign in to the hub's pages.
    fn sign_in(&self) -> Result<[String; 3]> {
        let hub = self.hub.as_ref().context("the hub isn't running")?.address()?;
        Ok(["login".into(), "--hub".into(), hub])
    }

    /// Signs in to the hub's pages by the address that the command prints, and sees that the first names these.
    pub(super) fn show_pages(&self, devices: &[&str]) -> Result<()> {
        let words = self.sign_in()?;
        let shown = self.show(&words.each_ref().map(String::as_str), None)?;
        let is_link = |word: &&str| word.contains("/sign-in?code=");
        let link = shown.split_whitespace().find(is_link);
        let page = page::open(link.with_context(|| format!("no link in {shown}"))?)?;
        for device in devices {
            ensure!(page.contains(device), "the hub's page doesn't name {device}: {page}");
        }
        super::explain(&format!("The page names {}.", devices.join(", ")));
        Ok(())
    }

    pub(super) fn start_device(&mut self, name: &'static str) -> Result<Device> {
        let player = self.start_player(name, "127.0.0.1:0")?;
        let address = player.address()?;
        let device = Device { name, address, player: Arc::new(Mutex::new(player)) };
        device.wait_for_line(LISTED)?;
        self.devices.push(device.clone());
        Ok(device)
    }

    /// Starts a device again that was killed, on what its flash holds.
    pub(super) fn restart_device(&mut self, device: &Device) -> Result<()> {
        *device.lock() = self.start_player(device.name, &device.address)?;
        device.wait_for_line(LISTED)
    }

    /// Installs packages on a device, and shows that.
    pub(super) fn install(&self, device: &Device, names: &[&str]) -> Result<()> {
        let packages: Vec<_> = names.iter().map(|name| format!("{name}.tenure")).collect();
        let mut words = vec!["install"];
        words.extend(packages.iter().map(String::as_str));
        words.extend(["--grant", "all"]);
        self.show(&words, Some(device)).map(drop)
    }

    /// Calls a function of a machine on a device, shows that, and gives its result.
    pub(super) fn call(
        &self,
        device: &Device,
        machine: &str,
        function: &str,
        parameter: Option<&str>,
    ) -> Result<String> {
        let mut words = vec!["call", machine, function];
        words.extend(parameter);
        self.show(&words, Some(device))
    }

    /// Makes a call again and again, without showing it, until this is its answer.
    pub(super) fn wait_for_answer(
        &self,
        device: &Device,
        call: [&str; 3],
        wanted: &str,
    ) -> Result<()> {
        let deadline = Instant::now() + patience();
        while Instant::now() < deadline {
            let mut command = self.command(&["call"]);
            command.args(call).args(["--device", &device.address]);
            if process::quiet_capture(&mut command).is_some_and(|answer| answer.trim() == wanted) {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(100));
        }
        bail!("`{}` was never answered by {wanted}", call.join(" "))
    }

    /// Calls a function that is bound to fail, and gives the error that is shown.
    pub(super) fn call_that_fails(
        &self,
        device: &Device,
        machine: &str,
        function: &str,
    ) -> Result<String> {
        let mut command = self.command(&["call", machine, function, "--device", &device.address]);
        println!("{}", paint::stdout().good(prompt(&command)));
        let output = command.output().context("cannot start tenure")?;
        let error = String::from_utf8_lossy(&output.stderr).trim().to_string();
        println!("{error}");
        ensure!(!output.status.success(), "the call should have failed");
        Ok(error)
    }

    /// Runs a command against a device and shows it with what it prints.
    pub(super) fn show(&self, words: &[&str], device: Option<&Device>) -> Result<String> {
        let mut command = self.command(words);
        if let Some(device) = device {
            command.args(["--device", &device.address]);
        }
        println!("{}", paint::stdout().good(prompt(&command)));
        show_printed(&mut command)
    }

    /// Runs somebody else's command and shows it with what it prints.
    pub(super) fn show_other(&self, command: &mut Command) -> Result<String> {
        println!("{}", paint::stdout().good(format!("$ {}", process::show(command))));
        show_printed(command)
    }

    /// Lets everything run, and tells how to look at it, until Ctrl-C.
    pub(super) fn wait_for_ctrl_c(&self) -> Result<()> {
        let asked_to_end = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::clone(&asked_to_end))?;
        println!("Running on until Ctrl-C. In another terminal:");
        println!("  export TENURE_HOME={}", self.folder.path().join("home").display());
        let again = self.sign_in()?.join(" ");
        println!("  {} {again}  # the pages, once more", self.tenure.display());
        for Device { name, address, .. } in &self.devices {
            println!("  {} list --device {address}  # {name}", self.tenure.display());
        }
        while !asked_to_end.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    /// Starts a server that speaks HTTPS, with `CERTIFICATE.pem` and `CERTIFICATE.key`, and gives its address.
    pub(super) fn start_server(&mut self, certificate: &Path) -> Result<String> {
        let mut command = self.command(&["tls", "serve", "--www", "--listen", "127.0.0.1:0"]);
        command.arg("--cert").arg(certificate.with_extension("pem"));
        command.arg("--key").arg(certificate.with_extension("key"));
        let server = Player::start_saying(&mut command, "server", LISTENING_AT)?;
        let address = server.place_after(LISTENING_AT)?;
        self.servers.push(server);
        Ok(address)
    }

    /// Starts Mosquitto in `folder`, and gives its port.
    pub(super) fn start_broker(&mut self, folder: &Path) -> Result<String> {
        // It can't be asked for any port that is free, so that one is looked for.
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = free.context("no port is free for a broker")?.port().to_string();
        let configuration = folder.join("mosquitto.conf");
        let text = format!("listener {port} 127.0.0.1\nallow_anonymous true\nlog_dest stderr\n");
        std::fs::write(&configuration, text).context("cannot write the broker's configuration")?;
        let program = find_server("mosquitto").context("there is no Mosquitto here")?;
        // Its standard output would come in blocks of 4 KB.
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$0\" -c mosquitto.conf 2>&1"]).arg(program).current_dir(folder);
        self.servers.push(Player::start_saying(&mut command, "broker", "running")?);
        Ok(port)
    }

    /// Starts a device with these options, each with its file, and gives it with the address of its machines' pages.
    pub(super) fn start_porch(&mut self, options: &[(&str, PathBuf)]) -> Result<(Device, String)> {
        let name = "porch";
        let mut command = self.command(&["device", "--listen", "127.0.0.1:0"]);
        command.args(["--pages", "127.0.0.1:0", "--data"]).arg(self.folder.path().join(name));
        for (option, file) in options {
            command.arg(option).arg(file);
        }
        let mut player = Player::start(&mut command, name)?;
        player.wait_for(PAGES_LISTEN_ON)?;
        let pages = player.place_after(PAGES_LISTEN_ON)?;
        let device =
            Device { name, address: player.address()?, player: Arc::new(Mutex::new(player)) };
        self.devices.push(device.clone());
        Ok((device, pages))
    }

    /// A folder of this name within the demo's.
    pub(super) fn folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.folder.path().join(name);
        std::fs::create_dir(&folder).context("cannot make a folder for the demo")?;
        Ok(folder)
    }

    /// Starts a device that knows no hub, but only its neighbours in the mesh, and gives it with its
    /// address there.
    pub(super) fn start_mesh_device(
        &mut self,
        name: &'static str,
        neighbours: &[&str],
    ) -> Result<(Device, String)> {
        let mut command = self.command(&["device", "--listen", "127.0.0.1:0"]);
        command.args(["--mesh", "127.0.0.1:0", "--data"]).arg(self.folder.path().join(name));
        for neighbour in neighbours {
            command.args(["--mesh-peer", neighbour]);
        }
        let mut player = Player::start(&mut command, name)?;
        let joined = player.wait_for(IN_MESH)?;
        let place = joined.rsplit(", at ").next().unwrap_or_default().to_string();
        let device =
            Device { name, address: player.address()?, player: Arc::new(Mutex::new(player)) };
        self.devices.push(device.clone());
        Ok((device, place))
    }

    fn start_player(&self, name: &str, listen: &str) -> Result<Player> {
        let hub = self.hub.as_ref().context("the hub starts first")?.address()?;
        let mut command = self.command(&["device", "--listen", listen, "--hub", &hub, "--data"]);
        command.arg(self.folder.path().join(name));
        Player::start(&mut command, name)
    }

    /// A command `tenure` with the demo's own keys, in the folder where the packages are.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.tenure);
        tenure::alone_in(command.args(words), self.folder.path());
        command
    }

    fn package(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{name}.tenure"))
    }
}

/// Runs a command, and shows and gives what it prints.
fn show_printed(command: &mut Command) -> Result<String> {
    let printed = process::capture(command)?.trim().to_string();
    if !printed.is_empty() {
        println!("{printed}");
    }
    Ok(printed)
}

impl Device {
    /// Shows lines until one has `text` in it.
    pub(super) fn wait_for_line(&self, text: &str) -> Result<()> {
        self.lock().wait_for(text).with_context(|| format!("the device {}", self.name)).map(drop)
    }

    /// Ends the device as a loss of power would.
    pub(super) fn kill(&self) -> Result<()> {
        println!("{}", paint::stdout().good(format!("$ kill -9 # {}", self.name)));
        let mut player = self.lock();
        player.child.kill().context("cannot kill the device")?;
        player.child.wait().context("cannot wait for the device").map(drop)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Player> {
        self.player.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Player {
    /// Starts a hub or a device, whose lines are shown, and waits until it listens.
    fn start(command: &mut Command, name: &str) -> Result<Self> {
        Self::start_saying(command, name, LISTENS_ON)
    }

    /// The same of a process that says `ready` once it listens.
    fn start_saying(command: &mut Command, name: &str, ready: &str) -> Result<Self> {
        let label = paint::stdout().faint(format!("{name:>8} │"));
        Self::start_with(command, name, ready, move |line| println!("{label} {line}"))
    }

    /// As the demo starts one, but shows nothing of what it says.
    pub(crate) fn start_silent(command: &mut Command, name: &str) -> Result<Self> {
        Self::start_with(command, name, LISTENS_ON, |_| {})
    }

    fn start_with(
        command: &mut Command,
        name: &str,
        ready: &str,
        show: impl Fn(&str) + Send + 'static,
    ) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        let output = child.stdout.take().context("the child has no standard output")?;
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                show(&line);
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let mut player = Self { child, lines, seen: Vec::new() };
        player.wait_for(ready)?;
        Ok(player)
    }

    /// The address in the line by which it said that it listens.
    pub(crate) fn address(&self) -> Result<String> {
        self.place_after(LISTENS_ON)
    }

    /// The address behind `words` in a line that it has said.
    fn place_after(&self, words: &str) -> Result<String> {
        let announced = self.seen.iter().find_map(|line| line.split_once(words));
        let address = announced.and_then(|(_, rest)| rest.split(',').next());
        address.map(|address| address.trim().to_string()).context("the process names no address")
    }

    /// Waits until it has said a line with `text` in it, and gives that.
    pub(crate) fn wait_for(&mut self, text: &str) -> Result<String> {
        let deadline = Instant::now() + patience();
        self.seen.extend(self.lines.try_iter());
        loop {
            if let Some(line) = self.seen.iter().find(|line| line.contains(text)) {
                return Ok(line.clone());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => self.seen.push(line),
                Err(RecvTimeoutError::Timeout) => bail!("did not say `{text}` in time"),
                Err(RecvTimeoutError::Disconnected) => bail!("ended before it said `{text}`"),
            }
        }
    }

    /// Its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it hasn't ended.
    pub(crate) fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
