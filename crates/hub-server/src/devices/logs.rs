//! A device's question whether its log is watched, and the lines that it brings.

use tenure_wire::PublicKey;
use tenure_wire::hub::{Answer, HubRefusal};
use tenure_wire::live_log::{LogShare, LogWish};

use crate::rollouts::pace;
use crate::running::live_logs::LiveLogs;
use crate::store::sql::{self, Connection, OptionalExtension as _};

/// How soon a device asks again that is watched, in seconds.
const AGAIN_WATCHED_S: u32 = 1;

/// Takes a device's lines, and says which ones are wanted.
///
/// # Errors
/// The database fails; or inside, the caller is no device.
pub(crate) fn take(
    connection: &Connection,
    logs: &LiveLogs,
    caller: &PublicKey,
    share: &LogShare,
    unix_s: u64,
) -> Result<Answer<LogWish>, sql::Error> {
    let query = "SELECT name, owner FROM devices WHERE machine_key = ?1 AND length(kept) > 0";
    let read = |row: &sql::Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let device: Option<(String, String)> =
        connection.statement(query).query_row([caller.to_string()], read).optional()?;
    let Some((device, owner)) = device else { return Ok(Err(HubRefusal::Stranger)) };
    let from = logs.take((&device, &owner), share, unix_s);
    let again_s = match from {
        Some(_) => AGAIN_WATCHED_S,
        None => pace(connection)?,
    };
    Ok(Ok(LogWish { from, again_s }))
}
