//! What keeps a machine from running, and the command that ends it.

use tenure_wire::control::MachineStatus;

/// The reason that keeps a machine from running that was just installed, started or pardoned.
pub(crate) fn if_down(machine: &MachineStatus) -> String {
    kept_down(machine).map(|why| format!("\n  {why}")).unwrap_or_default()
}

/// What keeps a machine from running, and what ends that; `None` of one that runs.
pub(crate) fn kept_down(machine: &MachineStatus) -> Option<String> {
    let name = &machine.name;
    match machine.state.as_str() {
        "stopped" => Some(format!("it stays stopped until `tenure start {name}`")),
        "banned" => Some(format!("it stays banned for its faults until `tenure unban {name}`")),
        "lease over" => Some(format!("its lease is over until `tenure renew {name}`")),
        _ => None,
    }
}
