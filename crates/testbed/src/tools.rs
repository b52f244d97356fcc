//! Programs of others that tests run.

use std::io::{BufRead as _, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

/// A server's program, on the path or where Debian puts servers, which isn't on everybody's.
#[must_use]
pub fn find_server(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([Path::new("/usr/sbin").to_path_buf()]);
    folders.map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// A process that prints a line for each thing that it notices; killed when dropped.
#[derive(Debug)]
pub struct Watching {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Watching {
    /// Starts it, without its errors.
    ///
    /// # Panics
    /// It can't be started.
    #[must_use]
    pub fn start(mut command: Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program can be started");
        let lines = BufReader::new(child.stdout.take().expect("its output is piped")).lines();
        Self { child, lines }
    }

    /// The next line.
    ///
    /// # Panics
    /// It ended before.
    #[track_caller]
    pub fn line(&mut self) -> String {
        self.lines.next().expect("a line").expect("its lines are text")
    }

    /// Waits until it ends by itself.
    ///
    /// # Panics
    /// The system can't say how it ended.
    pub fn wait(&mut self) -> ExitStatus {
        self.child.wait().expect("how it ended")
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
