//! How much a leaf spends: everything that others can fill has its limit here, for 64 KB of RAM.
//!
//! All limits at once would be more than the heap, which is shared: what isn't used by one is there for another.
//! So that it isn't used up, a board takes in no arrival while there isn't room for what becomes of one.

use core::time::Duration;

use tenure_mesh::{QueueLimits, StackConfig};
use tenure_protocols::{babel, forwarding, fragmentation};
use tenure_wire::PublicKey;

use crate::membership::MeshLimits;

/// The most services.
pub(super) const SERVICES_MAX: usize = 4;
/// The longest parameter or result, in bytes: an answer to the owner is one.
const PARAMETER_BYTES_MAX: usize = 1536;
/// The longest datagram that is sent: with the mesh's heads it is one frame.
const DATAGRAM_BYTES_MAX: usize = 1024;
/// The shortest wait for an answer, as a node's.
const TIMEOUT_MIN: Duration = Duration::from_millis(200);

/// The sessions' part.
pub(super) fn sessions(owner: PublicKey) -> tenure_rpc::Config {
    tenure_rpc::Config {
        owner: Some(owner),
        datagram_bytes_max: DATAGRAM_BYTES_MAX,
        parameter_bytes_max: PARAMETER_BYTES_MAX,
        machines_max: SERVICES_MAX + 1,
        sessions_max: 6,
        half_open_max: 2,
        peers_max: 3,
        callers_max: 5,
        calls_max: 2,
        calls_bytes_max: 4 * 1024,
        running_max: 4,
        running_per_caller_max: 2,
        remembered_per_caller_max: 3,
        buffer_bytes_max: 4 * 1024,
        buffer_bytes_per_caller_max: 2 * 1024,
        queued_datagrams_max: 3,
        accepted_initiations_max: 8,
        handshakes_per_second: 1,
        handshakes_per_second_max: 2,
        timeout_min: TIMEOUT_MIN,
        ..tenure_rpc::Config::default()
    }
}

/// The mesh's part.
pub(super) fn mesh() -> MeshLimits {
    MeshLimits {
        records_max: 8,
        // Of eight devices with a few machines each, or of two with as many as there may be.
        records_bytes_max: 8 * 1024,
        neighbours_max: 6,
        waiting_bytes_max: 4 * 1024,
        stack: StackConfig {
            queues: QueueLimits {
                notification_bytes_max: 3 * 1024,
                message_bytes_max: 3 * 1024,
                request_bytes_max: 4 * 1024,
                reply_bytes_max: 512,
            },
            timers_max: 48,
            events_per_poll: 32,
            host_bytes_max: 3 * 1024,
            ..StackConfig::default()
        },
        router: babel::Config {
            neighbours_max: 6,
            destinations_max: 24,
            ..babel::Config::default()
        },
        forwarding: forwarding::Config {
            datagrams_max: 6,
            bytes_max: 4 * 1024,
            remembered: 24,
            sources_max: 16,
            numbers_remembered: 192,
            ..forwarding::Config::default()
        },
        fragmentation: fragmentation::Config {
            // The longest record: of a device with 32 machines.
            body_bytes_max: 2560,
            outgoing_bytes_max: 3 * 1024,
            incomplete_bytes_max: 3 * 1024,
        },
    }
}
