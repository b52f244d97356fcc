//! Runs other programs, and says which one failed.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// The `cargo` that runs us, in `folder`.
pub(crate) fn cargo(folder: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(folder);
    command
}

/// Runs `command` with our own standard streams.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| cannot_start(command))?;
    succeeded(command, status)
}

/// As [`run`], for a compiler that says each time that the name of linker relaxation in
/// `-Ctarget-feature` isn't stable, which nobody here can change: drops that paragraph.
pub(crate) fn run_for_firmware(command: &mut Command) -> Result<()> {
    const KNOWN: &str = "unstable feature specified for `-Ctarget-feature`: `relax`";
    let mut child =
        command.stderr(Stdio::piped()).spawn().with_context(|| cannot_start(command))?;
    let errors = child.stderr.take().context("the child has no standard error")?;
    let mut is_known = false;
    for line in BufReader::new(errors).split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        is_known = !line.is_empty() && (is_known || line.contains(KNOWN));
        if !is_known {
            eprintln!("{line}");
        }
    }
    succeeded(command, child.wait()?)
}

/// Runs all `commands`, whatever becomes of each, and says which failed.
pub(crate) fn run_all(commands: impl IntoIterator<Item = Command>) -> Result<()> {
    let failures: Vec<_> = commands
        .into_iter()
        .filter_map(|mut command| {
            let folder = command.get_current_dir().map(Path::to_path_buf).unwrap_or_default();
            run(&mut command).err().map(|error| format!("{error:#} in {}", folder.display()))
        })
        .collect();
    if !failures.is_empty() {
        bail!("{}", failures.join("\n  "));
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
fn show(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    std::iter::once(program)
        .chain(command.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::children_ticks;

    #[test]
    fn times_of_children_are_read_behind_a_name_with_brackets() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 1 2 3 4 11 12 130 14 20 0 1 0 99 5 6";
        assert_eq!(children_ticks(stat), Some(144));
        assert_eq!(children_ticks("7 (a"), None);
    }
}
