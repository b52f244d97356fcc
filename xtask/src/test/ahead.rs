//! The build of the tests, begun while this machine still fetches what it lacks.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

use crate::process;

/// The command that compiles all tests, with the features that they use, so that nothing is compiled twice.
pub(super) fn command(root: &Path) -> Command {
    let mut command = process::cargo(root);
    command.args(["test", "--workspace", "--no-run"]);
    command
}

/// A build under way. It ends with this.
pub(super) struct Ahead(Child);

impl Ahead {
    pub(super) fn start(root: &Path) -> Result<Self> {
        let mut command = command(root);
        // Its progress is printed among the lines of what is fetched.
        command.stdin(Stdio::null()).stdout(Stdio::null());
        Ok(Self(command.spawn().context("cannot start the build of the tests")?))
    }

    /// Waits for its end. What failed in it fails again in the step that builds.
    pub(super) fn finish(mut self) -> Result<()> {
        self.0.wait()?;
        Ok(())
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        // Neither fails once it has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
