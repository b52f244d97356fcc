//! Receipts at the hub: taken from anybody, because each proves itself, and kept for ever.

use tenure_crypto::sha256;
use tenure_package::{Receipt, Tariff};
use tenure_wire::hub::{HubRefusal, Taken};

use crate::store::audit::{self, seconds};
use crate::store::space::{self, Keeps};
use crate::store::sql::{self, Connection, Next, OptionalExtension as _, params};

/// The most receipts of one device that are taken in a day.
pub(crate) const PER_DEVICE_AND_DAY: i64 = 10_000;
const DAY_S: u64 = 24 * 60 * 60;

/// Stores those of `receipts` that are new, in the transaction that is under way.
///
/// # Errors
/// The first receipt that isn't taken, inside; those before it in the same call are stored.
pub(crate) fn take(
    connection: &Connection,
    receipts: &[Vec<u8>],
    unix_s: u64,
) -> Result<Result<Taken, HubRefusal>, sql::Error> {
    if !space::is_left(connection, Keeps::History, receipts.iter().map(Vec::len).sum())? {
        return Ok(Err(HubRefusal::Full));
    }
    let mut taken = Taken::default();
    for bytes in receipts {
        match take_one(connection, bytes, unix_s)? {
            Ok(true) => taken.new += 1,
            Ok(false) => taken.known += 1,
            Err(refusal) => return Ok(Err(refusal)),
        }
    }
    Ok(Ok(taken))
}

/// Stores one receipt; returns whether it is new.
fn take_one(
    connection: &Connection,
    bytes: &[u8],
    unix_s: u64,
) -> Result<Result<bool, HubRefusal>, sql::Error> {
    let digest = sha256(&[bytes]).to_string();
    let known = "SELECT 1 FROM receipts WHERE digest = ?1";
    if connection.statement(known).exists([&digest])? {
        return Ok(Ok(false));
    }
    let Ok((receipt, device)) = Receipt::verify(bytes) else {
        return Ok(Err(HubRefusal::Signature));
    };
    let device_key = device.to_string();
    let owner = "SELECT owner FROM devices WHERE device_key = ?1 AND length(kept) > 0";
    let owner: Option<String> =
        connection.statement(owner).query_row([&device_key], |row| row.get(0)).optional()?;
    if owner.as_deref() != Some(&receipt.owner.to_string()) {
        return Ok(Err(HubRefusal::UnknownDevice));
    }
    // A number that the database can't hold is one that no device reaches.
    let Ok(number) = i64::try_from(receipt.number) else {
        return Ok(Err(HubRefusal::Malformed));
    };
    // Those of a clock that was ahead aren't of this day.
    let recent = "SELECT count(*) FROM receipts WHERE device_key = ?1 AND taken_unix_s > ?2 AND taken_unix_s < ?3";
    let [day_ago, soon] = [unix_s.saturating_sub(DAY_S), unix_s.saturating_add(DAY_S)].map(seconds);
    let recent: i64 = connection
        .statement(recent)
        .query_row(params![device_key, day_ago, soon], |row| row.get(0))?;
    if recent >= PER_DEVICE_AND_DAY {
        return Ok(Err(HubRefusal::TooMany));
    }
    let is_fork = "SELECT 1 FROM receipts WHERE device_key = ?1 AND machine = ?2 AND number = ?3";
    let machine = receipt.machine.to_string();
    let is_fork = connection.statement(is_fork).exists(params![device_key, machine, number])?;
    insert(connection, &receipt, &device_key, &digest, bytes, unix_s)?;
    if is_fork {
        let event = audit::Event {
            unix_s,
            who: &device_key,
            by: "",
            action: "second receipt of a number",
            subject: &machine,
            detail: &number.to_string(),
            owner: &receipt.owner.to_string(),
        };
        audit::append(connection, &event)?;
    }
    Ok(Ok(true))
}

fn insert(
    connection: &Connection,
    receipt: &Receipt,
    device_key: &str,
    digest: &str,
    bytes: &[u8],
    unix_s: u64,
) -> Result<(), sql::Error> {
    let insert = "INSERT INTO receipts (digest, previous, owner, tenant, device_key, machine, name, package, tier, \
         number, began_unix_s, ended_unix_s, taken_unix_s, month, counted_ms, fuel, run_us, memory_bytes_peak, \
         flash_bytes, messages, air_bytes, signed) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22)";
    let usage = &receipt.usage;
    connection.statement(insert).execute(params![
        digest,
        receipt.previous.to_string(),
        receipt.owner.to_string(),
        receipt.tenant.to_string(),
        device_key,
        receipt.machine.to_string(),
        receipt.name.as_str(),
        receipt.package.to_string(),
        receipt.tier,
        seconds(receipt.number),
        receipt.began_unix_s.map(seconds),
        receipt.ended_unix_s.map(seconds),
        seconds(unix_s),
        month(receipt.ended_unix_s.unwrap_or(unix_s)),
        seconds(receipt.counted_ms),
        seconds(usage.fuel),
        seconds(usage.run_us),
        seconds(usage.memory_bytes_peak),
        seconds(usage.flash_bytes),
        seconds(usage.messages),
        seconds(usage.air_bytes),
        bytes,
    ])?;
    Ok(())
}

/// One line of a bill: what a machine cost its tenant in a month.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BillLine {
    /// The month, as `2026-11`, in UTC: that in which a period ended.
    pub(crate) month: String,
    /// The tenant's key.
    pub(crate) tenant: String,
    /// The device's name, or its key if it isn't listed any more.
    pub(crate) device: String,
    /// The machine's name.
    pub(crate) machine: String,
    /// How many receipts there are.
    pub(crate) receipts: u64,
    /// The price, in millionths of the tariff's currency.
    pub(crate) millionths: u128,
}

/// The bills that `who` may see, as owner or tenant, by month, tenant, device and machine. The price is
/// that of the signed receipts, which are verified again.
///
/// # Errors
/// The database fails, or a receipt isn't any more what its device signed.
pub(crate) fn bills(
    connection: &Connection,
    who: &str,
    wanted: Option<&str>,
    tariff: &Tariff,
) -> Result<Vec<BillLine>, sql::Error> {
    let query = "SELECT r.month, r.tenant, coalesce(d.name, r.device_key), r.name, r.signed FROM receipts r \
         LEFT JOIN devices d ON d.device_key = r.device_key AND length(d.kept) > 0 WHERE (r.owner = ?1 OR r.tenant = ?1) \
         AND (CAST(?2 AS TEXT) IS NULL OR r.month = ?2) ORDER BY 1 DESC, 2, 3, 4, r.device_key, r.machine, r.number, r.id";
    let statement = connection.statement(query);
    let mut lines: Vec<BillLine> = Vec::new();
    statement.each(params![who, wanted], |row| {
        let line = BillLine {
            month: row.get(0)?,
            tenant: row.get(1)?,
            device: row.get(2)?,
            machine: row.get(3)?,
            receipts: 1,
            millionths: 0,
        };
        let signed: Vec<u8> = row.get(4)?;
        let (receipt, _) = Receipt::verify(&signed)
            .map_err(|error| sql::Error::Column { column: 4, reason: error.to_string() })?;
        let price = tariff.price(&receipt);
        match lines.last_mut() {
            Some(last) if last.is_of_same(&line) => {
                last.receipts += 1;
                last.millionths += price;
            }
            _ => lines.push(BillLine { millionths: price, ..line }),
        }
        Ok(Next::Row)
    })?;
    Ok(lines)
}

impl BillLine {
    fn is_of_same(&self, other: &Self) -> bool {
        (&self.month, &self.tenant) == (&other.month, &other.tenant)
            && (&self.device, &self.machine) == (&other.device, &other.machine)
    }
}

/// The month of a moment, as `2026-11`, in UTC.
pub(crate) fn month(unix_s: u64) -> String {
    time(unix_s).chars().take(7).collect()
}

/// Whether `text` is written as [`month`] writes one.
pub(crate) fn is_month(text: &str) -> bool {
    humantime::parse_rfc3339(&format!("{text}-01T00:00:00Z")).is_ok()
}

/// A moment as `2026-11-22T19:30:00Z`. Moments beyond the year 9999 are written as its end.
pub(crate) fn time(unix_s: u64) -> String {
    const LAST: u64 = 253_402_300_799;
    let moment = std::time::UNIX_EPOCH + std::time::Duration::from_secs(unix_s.min(LAST));
    humantime::format_rfc3339_seconds(moment).to_string()
}
