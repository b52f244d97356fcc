//! Devices that their owner revoked: they are listed no more, are in no rollout, and are answered no more.
//!
//! The list is the one that devices are told, signed by the owner: a hub can't revoke anybody by itself.

use http::StatusCode;
use tenure_package::Revocations;
use tenure_wire::Name;
use tenure_wire::directory::DeviceRecord;

use crate::exchange::{Exchange, Reply};
use crate::rollouts;
use crate::store::audit::{self, seconds};
use crate::store::sql::{self, Connection, OptionalExtension as _, params};

/// The most devices that are named at once as gone.
const FORGOTTEN_AT_ONCE: i64 = 64;

/// `POST /v1/revocations`, whose body is the owner's signed list. It takes the place of the one before.
///
/// # Errors
/// The database fails.
pub(crate) fn take(connection: &Connection, exchange: &Exchange) -> Result<Reply, sql::Error> {
    let refuse = |status, text: &str| Ok(Reply::problem(status, text));
    let (list, signer) = match Revocations::verify(&exchange.body) {
        Ok(verified) => verified,
        Err(error) => return refuse(StatusCode::UNPROCESSABLE_ENTITY, &error.to_string()),
    };
    let who = exchange.who.as_str();
    if signer.to_string() != who {
        let text = "the list is another owner's than who is signed in";
        return refuse(StatusCode::UNPROCESSABLE_ENTITY, text);
    }
    let known = "SELECT number FROM revocations WHERE owner = ?1";
    let known: Option<i64> =
        connection.statement(known).query_row([who], |row| row.get(0)).optional()?;
    let number = seconds(list.number);
    if known.is_some_and(|known| number < known) {
        return refuse(StatusCode::CONFLICT, "a newer list of yours is known here");
    }
    let note = "INSERT INTO revocations (owner, number) VALUES (?1, ?2) \
         ON CONFLICT (owner) DO UPDATE SET number = excluded.number";
    connection.statement(note).execute(params![who, number])?;
    let clear = "DELETE FROM revoked_devices WHERE owner = ?1";
    connection.statement(clear).execute([who])?;
    for device in &list.devices {
        let key = device.key.to_string();
        let insert = "INSERT INTO revoked_devices (device_key, owner) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
        connection.statement(insert).execute([&key, who])?;
        forget(connection, exchange, &key)?;
    }
    Ok(Reply::empty(StatusCode::NO_CONTENT))
}

/// Takes the devices of who asks that have that key out of the directory and its rollouts.
fn forget(connection: &Connection, exchange: &Exchange, key: &str) -> Result<(), sql::Error> {
    let who = exchange.who.as_str();
    let listed = "SELECT name FROM devices WHERE device_key = ?1 AND owner = ?2";
    let listed = connection.statement(listed);
    let names: Vec<String> = listed.query_map([key, who], |row| row.get(0))?;
    for name in names {
        rollouts::leave(connection, who, &name)?;
        if !connection.is_shared() {
            // Hubs that share a database hear of it by what is deleted.
            let forget = "INSERT INTO forgotten_devices (name) VALUES (?1) ON CONFLICT DO NOTHING";
            connection.statement(forget).execute([&name])?;
        }
        let delete = "DELETE FROM devices WHERE name = ?1";
        connection.statement(delete).execute([&name])?;
        let (unix_s, by, subject) = (exchange.unix_s, exchange.by.as_str(), name.as_str());
        let (action, detail, owner) = ("revoked", key, who);
        let event = audit::Event { unix_s, who, by, action, subject, detail, owner };
        audit::append(connection, &event)?;
    }
    Ok(())
}

/// Whether the owner of a device revoked it.
///
/// # Errors
/// The database fails.
pub(crate) fn is_revoked(
    connection: &Connection,
    record: &DeviceRecord,
) -> Result<bool, sql::Error> {
    let query = "SELECT 1 FROM revoked_devices WHERE device_key = ?1 AND owner = ?2";
    let names = [record.enrolment.device_key.to_string(), record.owner.to_string()];
    connection.statement(query).exists(names)
}

/// Devices that were taken out of the database and are still in the directory that runs, some of them.
///
/// # Errors
/// The database fails.
pub(crate) fn forgotten(connection: &Connection) -> Result<Vec<Name>, sql::Error> {
    let query = "SELECT name FROM forgotten_devices LIMIT ?1";
    let statement = connection.statement(query);
    let names: Vec<String> = statement.query_map([FORGOTTEN_AT_ONCE], |row| row.get(0))?;
    Ok(names.into_iter().filter_map(|name| name.parse().ok()).collect())
}

/// Takes note that a device is no more in the directory that runs.
///
/// # Errors
/// The database fails.
pub(crate) fn is_gone(connection: &Connection, name: &Name) -> Result<(), sql::Error> {
    let delete = "DELETE FROM forgotten_devices WHERE name = ?1";
    connection.statement(delete).execute([name.as_str()]).map(drop)
}
