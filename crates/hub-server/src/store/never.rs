//! Times that never came: what was noted by a wall clock that was ahead, once it is back. A moment that is still to come was the
//! present when it was noted, and what was to end a while after such a moment ends as long after the present.

use super::sql::{self, Connection};

/// What ends a while after something: the table, the column of the end, and that of the beginning.
const ENDS: [[&str; 3]; 2] =
    [["passes", "expires_unix_s", "made_unix_s"], ["rollouts", "ends_unix_s", "began_unix_s"]];
/// The moments at which something happened or is to happen soon, and by which something is judged.
const MOMENTS: [[&str; 2]; 20] = [
    ["passes", "made_unix_s"],
    ["passes", "seen_unix_s"],
    ["people", "invited_unix_s"],
    ["people", "joined_unix_s"],
    ["rollouts", "began_unix_s"],
    ["rollouts", "stage_unix_s"],
    ["rollouts", "stuck_unix_s"],
    ["rollout_devices", "updated_unix_s"],
    ["rollout_devices", "tried_unix_s"],
    ["rollout_devices", "check_unix_s"],
    ["reports", "taken_unix_s"],
    ["machine_reports", "taken_unix_s"],
    ["machine_reports", "package_unix_s"],
    ["faults", "happened_unix_s"],
    ["uploads", "began_unix_s"],
    ["blobs", "taken_unix_s"],
    ["answers", "made_unix_s"],
    ["rule_alarms", "raised_unix_s"],
    ["rule_alarms", "over_unix_s"],
    ["webhooks", "next_unix_s"],
];
/// How long an invitation is good, and how much later a message is sent again, in seconds.
const INVITATION_S: i64 = 24 * 60 * 60;
const AGAIN_S_MAX: i64 = 2 * 24 * 60 * 60;

/// Has nothing be of a time after `latest`, where the present is `now`: both in seconds since 1970 UTC. Records of devices are
/// over: their devices register again, those that are there.
///
/// # Errors
/// The database fails.
pub(super) fn undo(connection: &Connection, now: i64, latest: i64) -> Result<(), sql::Error> {
    let devices =
        "UPDATE devices SET heard_unix_s = ?1, expires_unix_s = ?1 WHERE heard_unix_s > ?2";
    connection.statement(devices).execute([now, latest])?;
    for [table, end, begun] in ENDS {
        let shift = format!("UPDATE {table} SET {end} = ?1 + ({end} - {begun}) WHERE {begun} > ?2");
        connection.statement(&shift).execute([now, latest])?;
    }
    for [table, moment] in MOMENTS {
        let latest = if table == "webhooks" { latest + AGAIN_S_MAX } else { latest };
        let set = format!("UPDATE {table} SET {moment} = ?1 WHERE {moment} > ?2");
        connection.statement(&set).execute([now, latest])?;
    }
    // A code may have been made for somebody who was invited long ago.
    let codes = "UPDATE people SET code_ends_unix_s = ?1 WHERE code_ends_unix_s > ?2";
    let [ends, latest] = [now, latest].map(|from| from + INVITATION_S);
    connection.statement(codes).execute([ends, latest]).map(drop)
}
