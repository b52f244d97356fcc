//! The place that an alarm is on: a device by its name, or the hub itself.

/// The place of a device's name where an alarm is on the hub itself. No name is empty.
pub(super) const THE_HUB: &str = "";

/// The device that an alarm is on, or that it is on the hub, as people read it.
pub(crate) fn on(device: &str) -> &str {
    if device == THE_HUB { "the hub" } else { device }
}
