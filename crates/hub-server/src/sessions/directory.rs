//! The database as the directory's storage.

use std::mem;

use tenure_crypto::machine_id;
use tenure_hub::{
    Accepted, Answered, Changes, Heard as Touched, Kept, Left, Reachable, Renewal, ServiceCall,
    Storage, StorageError, Stored,
};
use tenure_wire::Name;
use tenure_wire::NoResult;
use tenure_wire::carried::Shown;
use tenure_wire::directory::{DeviceRecord, Found};
use tenure_wire::printable::counted;

use super::{renewals, touches};
use crate::devices::{past, reports, revoked};
use crate::rollouts;
use crate::store::audit::{self, seconds};
use crate::store::shared::{CLOCK, Heard};
use crate::store::space::{self, Keeps};
use crate::store::sql::{self, Next, OptionalExtension as _, params};
use crate::store::steady::Steady;
use crate::store::{Database, DatabaseError, failed};

/// The most bytes of a new device, with its machines and its entry in the audit log.
const DEVICE_BYTES: usize = 8 * 1024;

impl Storage for Database {
    fn seed(&mut self) -> Result<Option<[u8; 32]>, StorageError> {
        let query = "SELECT seed FROM identity WHERE id = 1";
        self.connection.statement(query).query_row([], |row| row.get(0)).optional().map_err(failed)
    }

    fn set_seed(&mut self, seed: &[u8; 32]) -> Result<(), StorageError> {
        self.write(|database| {
            let insert = "INSERT INTO identity (id, seed) VALUES (1, ?1)";
            database.connection.statement(insert).execute([seed]).map(drop)
        })
    }

    fn records(&mut self) -> Result<Vec<Kept>, StorageError> {
        let all = "SELECT kept FROM devices ORDER BY name";
        let mut records = Vec::new();
        let read = self.connection.statement(all).each([], |row| {
            records.extend(postcard::from_bytes::<Kept>(&row.get::<Vec<u8>>(0)?));
            Ok(Next::Row)
        });
        read.map(|()| records).map_err(failed)
    }

    fn put(&mut self, accepted: &Accepted<'_>) -> Result<(), StorageError> {
        self.note_record();
        self.write(|database| database.put_record(accepted))
    }

    fn renews(&self) -> bool {
        self.is_shared()
    }

    fn renew(&mut self, renewals: &[Renewal], unix_s: u64) -> Result<Vec<bool>, StorageError> {
        let now = seconds(unix_s);
        let kept = renewals::renew(&self.connection, renewals, now, self.steady.unix_s(now));
        let kept = kept.map_err(|error| failed(error.of_commit()));
        self.note_renewals(kept.as_ref().err());
        kept
    }

    fn heard(&mut self, heard: &[Touched]) -> Result<(), StorageError> {
        let now = heard.iter().map(|one| one.heard_unix_s).max().unwrap_or_default();
        let steady = self.steady.unix_s(seconds(now));
        if !self.is_shared() {
            self.note_record();
            return self.write(|database| touches::store(&database.connection, heard, steady));
        }
        // Apart from transactions, as renewals are.
        let stored = touches::store(&self.connection, heard, steady);
        let stored = stored.map_err(|error| failed(error.of_commit()));
        self.note_renewals(stored.as_ref().err());
        stored
    }

    fn left(&mut self) -> Result<Vec<Left>, StorageError> {
        match self.is_shared() {
            true => Ok(Vec::new()),
            false => touches::left(&self.connection).map_err(failed),
        }
    }

    fn ends(&mut self, device: &Name) -> Result<Option<u64>, StorageError> {
        if !self.is_shared() {
            return Ok(None);
        }
        let ends = "SELECT expires_unix_s FROM devices WHERE name = ?1 AND length(kept) > 0";
        let ends = self.connection.statement(ends);
        let ends: Option<i64> =
            ends.query_row([device.as_str()], |row| row.get(0)).optional().map_err(failed)?;
        Ok(Some(ends.map_or(0, i64::unsigned_abs)))
    }

    fn may_have_work(&self) -> bool {
        self.has_open_rollouts
    }

    fn judged(&mut self, device: &Name, reachable: Reachable) -> Result<(), StorageError> {
        let way = match reachable {
            Reachable::Directly => "direct",
            Reachable::ByHub => "hub",
            Reachable::ByNobody => "nobody",
        };
        self.write(|database| {
            let update = "UPDATE devices SET way = ?2 WHERE name = ?1";
            database.connection.statement(update).execute(params![device.as_str(), way]).map(drop)
        })
    }

    fn delete(&mut self, device: &Name) -> Result<(), StorageError> {
        let unix_s = self.running().unix_s();
        let steady = self.steady.unix_s(seconds(unix_s));
        self.write(|database| past::forget(&database.connection, device.as_str(), unix_s, steady))
    }

    fn forgettable(
        &mut self,
        over_before_unix_s: u64,
        forget_after_s: u64,
    ) -> Result<Option<Vec<Name>>, StorageError> {
        let times = [seconds(over_before_unix_s), seconds(forget_after_s)];
        let names = past::forgettable(&self.connection, times).map_err(failed)?;
        Ok(Some(names.into_iter().filter_map(|name| name.parse().ok()).collect()))
    }

    fn call(&mut self, call: &ServiceCall<'_>) -> Result<Option<Vec<u8>>, NoResult> {
        self.serve(call)
    }

    fn hand_over(&mut self, number: u64, call: &ServiceCall<'_>) -> bool {
        let Some(desk) = &mut self.desk else { return false };
        desk.take(number, call, self.pages.as_deref());
        true
    }

    fn answers(&mut self) -> Vec<(u64, Answered)> {
        self.desk.as_mut().map(|desk| desk.answers()).unwrap_or_default()
    }

    fn unkept(&self) -> Result<Option<Vec<u8>>, NoResult> {
        Self::away()
    }

    fn stored(&mut self, device: &Name) -> Result<Stored, StorageError> {
        if !self.is_shared() {
            return Ok(Stored::AsPut);
        }
        let mut kept: Option<Vec<u8>> = None;
        // In the transaction that may write the record: another hub that writes it at this moment is in its way.
        self.write(|database| {
            let query = "SELECT kept FROM devices WHERE name = ?1";
            let query = database.connection.statement(query);
            kept = query.query_row([device.as_str()], |row| row.get(0)).optional()?;
            Ok(())
        })?;
        Ok(Stored::Now(kept.as_deref().and_then(read)))
    }

    fn changes(&mut self) -> Result<Changes, StorageError> {
        if !self.is_shared() {
            return Ok(Changes::default());
        }
        let Heard { are_all, devices, .. } = self.hear()?;
        let device = |(name, kept): (String, Option<Vec<u8>>)| {
            Some((name.parse().ok()?, kept.as_deref().and_then(read)))
        };
        Ok(Changes { are_all, devices: devices.into_iter().filter_map(device).collect() })
    }

    fn tick(&mut self, unix_s: u64) -> Result<bool, StorageError> {
        self.tend_reserve();
        // That moment is one of a clock that was wrong.
        if mem::take(&mut self.is_corrected) {
            return Ok(false);
        }
        let open = rollouts::open_after(&self.connection, self.ticked).map_err(failed)?;
        self.has_open_rollouts = !open.is_empty();
        let is_shared = self.is_shared();
        let is_to_forget = is_shared && self.process.is_to_forget();
        let hears = self.keeps_records() && self.running().overload().is_none();
        let step = self.steady.step(unix_s, hears);
        if let Some(jump_s) = step.and_then(|step| step.jump_s) {
            self.running().note_jump(unix_s, jump_s);
        }
        if open.is_empty() && !is_to_forget && step.is_none() {
            self.ticked = 0;
            return Ok(false);
        }
        if is_shared && !self.process.may_lease(&self.connection, CLOCK).map_err(failed)? {
            if step.is_some() {
                // Who has the lease stores it.
                self.steady = Steady::of(&self.connection).map_err(failed)?;
            }
            return Ok(false);
        }
        let hears_since = self.running().hears_since_unix_s(unix_s);
        self.write(|database| {
            let Self { connection, process, .. } = database;
            if is_shared && !process.lease(connection, CLOCK)? {
                return Ok(());
            }
            if is_to_forget {
                process.forget(connection)?;
            }
            if let Some(step) = &step {
                past::note(connection, step, unix_s)?;
            }
            database.step = step;
            database.ticked = open.last().map_or(0, |(_, id)| *id);
            rollouts::tick(&database.connection, &open, unix_s, hears_since)
        })?;
        Ok(true)
    }

    fn is_revoked(&mut self, record: &DeviceRecord) -> Result<bool, StorageError> {
        revoked::is_revoked(&self.connection, record).map_err(failed)
    }

    fn forgotten(&mut self) -> Result<Vec<Name>, StorageError> {
        if self.is_shared() {
            // It is one of the changes that each hub follows.
            return Ok(Vec::new());
        }
        let names = revoked::forgotten(&self.connection).map_err(failed)?;
        if !names.is_empty() {
            self.write(|database| {
                names.iter().try_for_each(|name| revoked::is_gone(&database.connection, name))
            })?;
        }
        Ok(names)
    }

    fn commit(&mut self) -> Result<(), StorageError> {
        self.commit_written()
    }
}

impl Database {
    /// Takes over the identity and the records of another storage, all or nothing. Returns how many
    /// records there were.
    ///
    /// # Errors
    /// The other storage can't be read, or this one can't be written.
    pub fn import(&mut self, from: &mut dyn Storage, unix_s: u64) -> Result<usize, DatabaseError> {
        if let Some(seed) = from.seed()? {
            self.set_seed(&seed)?;
        }
        let mut count = 0;
        for kept in from.records()? {
            let Ok(record) = tenure_directory::open_whenever(&kept.record) else { continue };
            let ends_unix_s = record.expires_unix_s;
            self.put(&Accepted { kept: &kept, record: &record, unix_s, ends_unix_s })?;
            count += 1;
        }
        self.write(|database| {
            let detail = counted(count, "device");
            let (who, by, action, subject, owner) = ("hub", "", "import", "", "");
            let detail = detail.as_str();
            let event = audit::Event { unix_s, who, by, action, subject, detail, owner };
            audit::append(&database.connection, &event)
        })?;
        self.commit()?;
        Ok(count)
    }

    /// The record of a device, and where it was last heard from.
    ///
    /// # Errors
    /// The database fails.
    pub fn found(&self, device: &Name) -> Result<Option<Found>, DatabaseError> {
        let query = "SELECT kept FROM devices WHERE name = ?1";
        let query = self.connection.statement(query);
        let kept: Option<Vec<u8>> =
            query.query_row([device.as_str()], |row| row.get(0)).optional()?;
        let kept = kept.and_then(|kept| postcard::from_bytes::<Kept>(&kept).ok());
        Ok(kept.map(|Kept { record, seen_at }| Found { record, seen_at }))
    }

    fn put_record(&mut self, accepted: &Accepted<'_>) -> Result<(), sql::Error> {
        let Accepted { kept, record, unix_s, ends_unix_s } = accepted;
        let device = record.enrolment.device.as_str();
        let known = "SELECT device_key, owner, length(kept) = 0 FROM devices WHERE name = ?1";
        let known: Option<(String, String, bool)> = self
            .connection
            .statement(known)
            .query_row([device], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .optional()?;
        let is_new =
            known.as_ref().is_none_or(|(key, ..)| *key != record.enrolment.device_key.to_string());
        // A server has no last room: what it stores is bounded by its own disk alone.
        if is_new
            && !self.is_shared()
            && !space::is_left(&self.connection, Keeps::Devices, DEVICE_BYTES)?
        {
            return Err(sql::Error::NoRoom);
        }
        let upsert = "INSERT INTO devices (name, owner, device_key, machine_key, seen_at, machines, first_unix_s, \
             heard_unix_s, expires_unix_s, kept, steady_unix_s) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7, ?8, ?9, ?10) \
             ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, device_key = excluded.device_key, \
             machine_key = excluded.machine_key, seen_at = excluded.seen_at, machines = excluded.machines, \
             heard_unix_s = excluded.heard_unix_s, expires_unix_s = excluded.expires_unix_s, kept = excluded.kept, steady_unix_s = excluded.steady_unix_s, \
             way = CASE WHEN devices.seen_at = excluded.seen_at THEN devices.way ELSE '' END";
        let (owner, device_key) =
            (record.owner.to_string(), record.enrolment.device_key.to_string());
        let is_another = |known: &(String, String, bool)| known.0 != device_key || known.1 != owner;
        let known = match known {
            // Its name was free: whoever has it now isn't told of what it did.
            Some(known) if known.2 && is_another(&known) => {
                past::delete(&self.connection, device)?;
                None
            }
            known => known,
        };
        self.connection.statement(upsert).execute(params![
            device,
            owner,
            device_key,
            record.device_machine.to_string(),
            Shown(&kept.seen_at).to_string(),
            record.machines.len() as i64,
            seconds(*unix_s),
            seconds(*ends_unix_s),
            postcard::to_allocvec(kept).unwrap_or_default(),
            self.steady.unix_s(seconds(*unix_s)),
        ])?;
        self.put_machines(device, record)?;
        if known.as_ref().is_some_and(is_another) {
            reports::forget_device(&self.connection, device)?;
        }
        let action = match &known {
            None | Some((.., true)) => "listed",
            Some((key, ..)) if *key != device_key => "enrolled anew",
            Some(_) => return Ok(()),
        };
        let event = audit::Event {
            unix_s: *unix_s,
            who: &device_key,
            by: "",
            action,
            subject: device,
            detail: &Shown(&kept.seen_at).to_string(),
            owner: &owner,
        };
        audit::append(&self.connection, &event)
    }

    /// Stores the machines of a device, if they aren't those that are stored.
    fn put_machines(&mut self, device: &str, record: &DeviceRecord) -> Result<(), sql::Error> {
        let listed = "SELECT name, machine_key FROM machines WHERE device = ?1 ORDER BY name";
        let statement = self.connection.statement(listed);
        let known: Vec<(String, String)> =
            statement.query_map([device], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let row = |(name, key): &(Name, _)| (name.to_string(), ToString::to_string(key));
        let mut now: Vec<(String, String)> = record.machines.iter().map(row).collect();
        now.sort();
        // A device may list a name twice; the first one counts.
        now.dedup_by(|later, first| later.0 == first.0);
        if now == known {
            return Ok(());
        }
        let delete = "DELETE FROM machines WHERE device = ?1";
        self.connection.statement(delete).execute([device])?;
        let insert = "INSERT INTO machines (device, name, machine, machine_key) \
             VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING";
        let insert = self.connection.statement(insert);
        for (name, key) in &record.machines {
            let machine = machine_id(key).to_string();
            insert.execute(params![device, name.as_str(), machine, key.to_string()])?;
        }
        Ok(())
    }
}

/// A device as it was stored, if it can be read.
fn read(kept: &[u8]) -> Option<Kept> {
    postcard::from_bytes(kept).ok()
}
