//! Runs other programs, and says which one failed.

use std::collections::VecDeque;
use std::fmt;
use std::io::{BufRead, BufReader, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// How many of its last lines tell of a program's failure.
pub(crate) const LAST_LINES: usize = 20;

/// A program that failed.
#[derive(Debug)]
pub(crate) struct Failed {
    message: String,
    /// The end of its standard error, where that was kept.
    pub(crate) last: Vec<String>,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failed {}

/// The last lines of what a program prints.
#[derive(Default)]
pub(crate) struct LastLines(VecDeque<String>);

impl LastLines {
    pub(crate) fn push(&mut self, line: &str) {
        if self.0.len() == LAST_LINES {
            self.0.pop_front();
        }
        self.0.push_back(line.to_owned());
    }

    pub(crate) fn into_vec(self) -> Vec<String> {
        self.0.into()
    }
}

/// The `cargo` that runs us, in `folder`.
pub(crate) fn cargo(folder: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(folder);
    command
}

/// Runs `command` with our own standard streams.
///
/// Where standard error is no terminal, its last lines are kept for [`Failed`]; a terminal shows progress.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    if !std::io::stderr().is_terminal() {
        return run_and_keep(command, |_| true);
    }
    let status = command.status().with_context(|| cannot_start(command))?;
    succeeded(command, status)
}

/// As [`run`], for a compiler that says each time that the name of linker relaxation in
/// `-Ctarget-feature` isn't stable, which nobody here can change: drops that paragraph.
pub(crate) fn run_for_firmware(command: &mut Command) -> Result<()> {
    const KNOWN: &str = "unstable feature specified for `-Ctarget-feature`: `relax`";
    let mut is_known = false;
    run_and_keep(command, |line| {
        is_known = !line.is_empty() && (is_known || line.contains(KNOWN));
        !is_known
    })
}

/// Shows those lines of `command`'s standard error that are `wanted`, and keeps the last of them.
fn run_and_keep(command: &mut Command, mut wanted: impl FnMut(&str) -> bool) -> Result<()> {
    let mut child =
        command.stderr(Stdio::piped()).spawn().with_context(|| cannot_start(command))?;
    let errors = child.stderr.take().context("the child has no standard error")?;
    let mut last = LastLines::default();
    let status = lines_until_end(&mut child, errors, |line| {
        if wanted(line) {
            eprintln!("{line}");
            last.push(line);
        }
    })?;
    if !status.success() {
        let message = format!("`{}` failed ({status})", show(command));
        return Err(Failed { message, last: last.into_vec() }.into());
    }
    Ok(())
}

/// Runs all `commands`, whatever becomes of each, and says which failed.
pub(crate) fn run_all(commands: impl IntoIterator<Item = Command>) -> Result<()> {
    let (mut failures, mut last) = (Vec::new(), Vec::new());
    for mut command in commands {
        let folder = command.get_current_dir().map(Path::to_path_buf).unwrap_or_default();
        if let Err(error) = run(&mut command) {
            failures.push(format!("{error:#} in {}", folder.display()));
            last.extend(error.downcast::<Failed>().map(|failed| failed.last).unwrap_or_default());
        }
    }
    if !failures.is_empty() {
        return Err(Failed { message: failures.join("\n  "), last }.into());
    }
    Ok(())
}

/// Runs `command` and gives what it wrote to standard output; its errors go to ours.
pub(crate) fn capture(command: &mut Command) -> Result<String> {
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| cannot_start(command))?;
    succeeded(command, output.status)?;
    String::from_utf8(output.stdout).with_context(|| format!("{} wrote no text", show(command)))
}

/// The standard output of `command`, if it succeeded; its errors are dropped.
pub(crate) fn quiet_capture(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then_some(text)
}

/// Whether `command` starts and succeeds; what it writes is dropped.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Runs `command` and shows each line that it writes to standard output to `see`.
///
/// Gives the exit status, not an error, so that the caller can weigh it against what it saw.
pub(crate) fn each_line(command: &mut Command, mut see: impl FnMut(&str)) -> Result<ExitStatus> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| cannot_start(command))?;
    let output = child.stdout.take().context("the child has no standard output")?;
    let mut reader = BufReader::new(output);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line)? > 0 {
        see(String::from_utf8_lossy(&line).trim_end());
        line.clear();
    }
    Ok(child.wait()?)
}

/// As [`each_line`], of standard output and standard error in the order in which they were written.
pub(crate) fn each_line_of_both(
    command: &mut Command,
    see: impl FnMut(&str),
) -> Result<ExitStatus> {
    let (reader, writer) = std::io::pipe()?;
    command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
    let child = command.spawn().with_context(|| cannot_start(command));
    // The pipe ends when nobody can write to it any more, and `command` could.
    command.stdout(Stdio::inherit()).stderr(Stdio::inherit());
    lines_until_end(&mut child?, reader, see)
}

/// Shows what `child` writes to `output` to `see`, line by line, until it has ended.
///
/// A process that it started and left behind may keep the pipe open for long; it isn't waited for.
fn lines_until_end(
    child: &mut Child,
    output: impl Read + Send + 'static,
    mut see: impl FnMut(&str),
) -> Result<ExitStatus> {
    const PAUSE: Duration = Duration::from_millis(100);
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(output).split(b'\n') {
            if !line.is_ok_and(|line| sender.send(line).is_ok()) {
                break;
            }
        }
    });
    let mut has_ended = false;
    loop {
        match lines.recv_timeout(PAUSE) {
            Ok(line) => see(String::from_utf8_lossy(&line).trim_end()),
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) if has_ended => break,
            Err(RecvTimeoutError::Timeout) => has_ended = child.try_wait()?.is_some(),
        }
    }
    Ok(child.wait()?)
}

/// How long the processors have worked for our children that ended, and for theirs; zero where the system
/// doesn't say.
pub(crate) fn children_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let ticks = children_ticks(&stat).unwrap_or_default();
    Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// The sum of `cutime` and `cstime` in a `/proc/PID/stat`, whose second field may contain anything.
fn children_ticks(stat: &str) -> Option<u64> {
    let after_name = stat.rsplit_once(") ")?.1;
    let mut fields = after_name.split_whitespace().skip(13);
    Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
}

/// Where the shell would find `program`.
pub(crate) fn find_program(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// The newest of `program-99` … `program-15`, as Debian names LLVM's, or else `program`.
pub(crate) fn find_newest(program: &str) -> Option<PathBuf> {
    LLVM_RELEASES
        .rev()
        .find_map(|release| find_program(&format!("{program}-{release}")))
        .or_else(|| find_program(program))
}

/// The releases of LLVM that are looked for by their number; the first is the oldest that emits the
/// WebAssembly we document.
pub(crate) const LLVM_RELEASES: std::ops::RangeInclusive<u32> = 15..=99;

/// An error unless `status` is success.
pub(crate) fn succeeded(command: &Command, status: ExitStatus) -> Result<()> {
    if !status.success() {
        bail!("`{}` failed ({status})", show(command));
    }
    Ok(())
}

fn cannot_start(command: &Command) -> String {
    format!("cannot start `{}`", show(command))
}

/// The command as one would type it, without its environment.
pub(crate) fn show(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    std::iter::once(program)
        .chain(command.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn lines_of_both_streams_come_in_the_order_in_which_they_were_written() {
        let mut lines = Vec::new();
        let mut command = shell("echo 1; echo 2 >&2; echo 3; exit 4");
        let status = each_line_of_both(&mut command, |line| lines.push(line.to_owned())).unwrap();
        assert_eq!((lines.join(" ").as_str(), status.code()), ("1 2 3", Some(4)));
    }

    #[test]
    fn a_program_that_is_left_behind_with_the_streams_is_not_waited_for() {
        let mut lines = Vec::new();
        let mut command = shell("tail -f /dev/null & echo $!");
        each_line_of_both(&mut command, |line| lines.push(line.to_owned())).unwrap();
        assert!(succeeds(Command::new("kill").args(lines)), "it is still there");
    }

    #[test]
    fn a_program_that_fails_leaves_its_last_lines() {
        let error = run_and_keep(&mut shell("seq 1 30 >&2; exit 1"), |line| line != "30");
        let failed = error.unwrap_err().downcast::<Failed>().unwrap();
        let expected: Vec<_> = (10..30).map(|number| number.to_string()).collect();
        assert_eq!(failed.last, expected);
    }

    #[test]
    fn times_of_children_are_read_behind_a_name_with_brackets() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 1 2 3 4 11 12 130 14 20 0 1 0 99 5 6";
        assert_eq!(children_ticks(stat), Some(144));
        assert_eq!(children_ticks("7 (a"), None);
    }
}
