//! A peripheral: something on a device that senses or acts.

use crate::Instant;

/// The driver of a peripheral. It never blocks: it is polled when it wants to be, says what it has
/// read, and is told what it shall do.
///
/// A device reads each of its peripherals once, for all machines that want to know.
pub trait Peripheral {
    /// Its name, in the form of a machine's: what it reads is published as `device.NAME`, and what is
    /// published as `command.NAME` it is told.
    fn name(&self) -> &str;

    /// Does what is due. Hands each reading to `publish`, with the part of the peripheral that it is
    /// of: empty for the whole, or `frame` for `device.NAME.frame`. Gives when it wants to be polled
    /// next, if it does by itself.
    fn poll(&mut self, now: Instant, publish: &mut dyn FnMut(&str, &[u8])) -> Option<Instant>;

    /// Takes a command: for `command.NAME.period`, `part` is `period`. It is polled right after. A
    /// command that it doesn't understand changes nothing.
    fn command(&mut self, now: Instant, part: &str, command: &[u8]);
}
