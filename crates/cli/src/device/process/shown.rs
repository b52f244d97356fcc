//! What a device's process says of its node's notices.

use serde_json::json;
use tenure_node::Notice;
use tenure_wire::console::{IN_MESH, LISTED};
use tenure_wire::directory::Refusal;

use crate::make::symbols::MachineSymbols;
use crate::terminal::output::Output;

/// Shows what a node has to say.
pub fn show(notice: &Notice, symbols: &MachineSymbols, output: &Output) {
    match notice {
        Notice::Log(line) => output.log(line, &symbols.trace_in(line)),
        Notice::Registered => {
            output.line(LISTED, &json!({ "event": "registered" }))
        }
        Notice::Refused { refusal, devices_max } => output.line(
            &format!("the hub refuses to list this device: {}", why(refusal, *devices_max)),
            &json!({ "event": "refused", "reason": refusal.to_string(), "devices_max": devices_max }),
        ),
        Notice::FirmwareConfirmed { number } => output.line(
            &format!("firmware {number} is well, and stays"),
            &json!({ "event": "firmware-confirmed", "number": number }),
        ),
        Notice::Mandated { machine, version } => output.line(
            &format!("{machine} has {version} now, by a rollout"),
            &json!({ "event": "mandated", "machine": machine.as_str(), "version": version }),
        ),
        Notice::StepRefused { machine, reason } => output.line(
            &format!("the hub's step for {machine} isn't taken: {reason}"),
            &json!({ "event": "step-refused", "machine": machine.as_str(), "reason": reason }),
        ),
        Notice::InMesh { node } => output.line(
            &format!("{IN_MESH} {node}: a member passed the owner's invitation on"),
            &json!({ "event": "mesh-joined", "node": node.to_string() }),
        ),
        Notice::HubSilent => output.line(
            "the hub doesn't answer; trying on",
            &json!({ "event": "hub-silent" }),
        ),
        Notice::HubKeyDiffers { key } => output.line(
            &format!(
                "the hub's address shows the key {key}, which isn't the hub's that this device knows; \
                 if it is right, type: tenure trust-hub {key}"
            ),
            &json!({ "event": "hub-key-differs", "key": key.to_string() }),
        ),
    }
}

/// Why the hub doesn't list a device, and what helps.
fn why(refusal: &Refusal, devices_max: Option<u32>) -> String {
    match devices_max {
        Some(most) => format!(
            "it lists {most} devices at most, and takes no more; those that it lists go on. There is a place once its operator \
             starts it with a larger --devices-max, or an owner revokes a device that is gone"
        ),
        None => refusal.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_that_is_one_too_many_reads_the_hub_s_limit_and_what_helps() {
        let told = why(&Refusal::Full, Some(1_000));
        assert!(told.contains("1000 devices") && told.contains("--devices-max"), "{told}");
        let of_before = why(&Refusal::Full, None);
        assert_eq!(of_before, "the directory is full, or its disk is");
    }
}
