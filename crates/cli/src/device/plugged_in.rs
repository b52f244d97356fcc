//! Boards at this computer's USB: the serial lines whose USB device says that it is Tenure's.
//!
//! Invariants:
//! - Nothing is opened: the kernel keeps what a device told of itself (`Documentation/ABI/testing/sysfs-bus-usb`).
//! - A descriptor is a hint, which anything at the USB can tell. Whoever uses the line asks there for a key.

use std::fs;
use std::path::{Path, PathBuf};

#[cfg(test)]
mod tests;

/// The manufacturer in the descriptor of a board (USB 2.0 §9.6.1, `iManufacturer`).
const MANUFACTURER: &str = "Tenure";
/// Its product (`iProduct`).
const PRODUCT: &str = "Tenure device";

/// The terminal devices of the boards that are plugged in, sorted, of the file system at `root`: by the name in
/// `/dev/serial/by-id` where udev gives one, which stays the same in any socket. None where there is no sysfs.
pub fn lines(root: &Path) -> Vec<PathBuf> {
    let by_id = entries(&root.join("dev/serial/by-id"));
    let name_of = |terminal: PathBuf| {
        let same = |name: &&PathBuf| {
            name.canonicalize().ok().is_some_and(|it| it.file_name() == terminal.file_name())
        };
        by_id.iter().find(same).cloned().unwrap_or(terminal)
    };
    let classes = entries(&root.join("sys/class/tty"));
    let boards = classes.iter().filter(|class| is_board(class)).filter_map(|it| it.file_name());
    let mut lines: Vec<PathBuf> = boards.map(|it| name_of(root.join("dev").join(it))).collect();
    lines.sort();
    lines
}

/// Whether the terminal device with that folder in `/sys/class/tty` is an interface of a board.
fn is_board(class: &Path) -> bool {
    // `device` is the USB interface, whose parent is the USB device. Of other terminals it is something else, or nothing.
    let Ok(interface) = class.join("device").canonicalize() else { return false };
    let says = |file: &str, text: &str| {
        let device = interface.parent();
        device
            .and_then(|it| fs::read(it.join(file)).ok())
            .is_some_and(|it| it.trim_ascii() == text.as_bytes())
    };
    says("manufacturer", MANUFACTURER) && says("product", PRODUCT)
}

/// The entries of a folder, sorted; none if it can't be read.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let read = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = read.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}
