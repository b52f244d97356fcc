//! Shared by the commands over a record of a device.

use std::path::{Path, PathBuf};

use tenure_package::Package;
use tenure_replay::Replayed;
use tenure_wire::Digest;

use crate::make::package::read_package;

/// The words for a record without an end.
pub(super) const BREAKS_OFF: &str = "the record breaks off, as the device was killed or still runs";

/// Since when, in seconds and thousandths.
pub(super) fn seconds(span_ms: u64) -> String {
    format!("{}.{:03} s", span_ms / 1000, span_ms % 1000)
}

/// How far a record without an end goes.
pub(super) fn breaks_off_after(replayed: &Replayed) -> String {
    let until = seconds(replayed.until.as_millis());
    format!("{BREAKS_OFF}: after {} inputs, in {until}", replayed.inputs)
}

/// Reads packages by which the machines of a record are named; `name` is handed each, and says whether a machine is of it.
///
/// # Errors
/// A file is no package, none of the machines is of it, or `name` fails.
pub(super) fn name_by(
    packages: &[PathBuf],
    name: &mut dyn FnMut(&Path, &Package<'_>, &Digest) -> anyhow::Result<bool>,
) -> anyhow::Result<()> {
    for path in packages {
        let bytes = read_package(path)?;
        let package = Package::parse(&bytes)?;
        anyhow::ensure!(
            name(path, &package, &package.digest())?,
            "no machine of exactly this build of {} ran in the record",
            path.display()
        );
    }
    Ok(())
}
