//! The owner's protocol: every function of a device's own machine, described once.
//!
//! From the one table below come [`Function`] (names, access, versions), [`Service`] with
//! [`dispatch`] (permission, decoding and encoding on the device), [`Client`] (a typed stub for
//! each function) and, by `cargo xtask generate`, the page docs/generated/control.md.
//!
//! Requests and answers are in postcard's encoding; [`message`](crate::message) says how they grow. A request of
//! type `raw` is a byte string that its signer encoded. A failure is a [`ControlError`].

mod answer;
mod device;
mod error;
mod hello;
mod machines;
mod mesh;
mod outside;
mod table;
mod tenancy;
mod watching;

use alloc::vec::Vec;

pub use answer::{decode_answer, encode_answer};
pub use device::{
    ChangeOwner, DeviceStatus, Enrol, FirmwareBegin, FirmwareStatus, FlashWear, HeapStatus,
    HubStatus, HubTrust, OtherFirmware, RoomStatus, TellTime, TrustHub,
};
pub use error::{Answer, ControlError};
pub use hello::{Hello, OLDEST, VERSION};
pub use machines::{
    CHUNK_BYTES_MAX, InstallBegin, InstallChunk, InstallCommit, ListMachines, MachineList,
    MachineStatus, Remove, Restart, Restore, SnapshotBegin, SnapshotInfo, SnapshotRead, Start,
    Stop, Trash, TrashEmpty, TrashRestore, TrashedMachine, Unban,
};
pub use mesh::{
    Admission, CARRIED_BYTES_MAX, CARRIED_PASSES_MAX, CARRIED_UNIT_BYTES, CARRIED_UNITS_AT_ONCE,
    CARRIED_UNITS_PER_S, CARRYING_PATIENCE_S, CARRYING_TOOLS_MAX, Carry, ExperimentLog,
    HELD_MS_MAX, HELD_OWNERS_MAX, HELD_TENANTS_MAX, Join, MeshStatus, MeshStranger, MeshWay,
    StrangersQuery,
};
pub use outside::{
    BridgeStatus, CoapStatus, DateStatus, DateTeller, OutsideError, OutsideStatus, ReachStatus,
};
pub use table::{Access, Caller, FunctionDescription, FunctionInfo, Functions};
pub use tenancy::{
    GrantQuery, GrantReport, JournalKeep, LeaseNumber, ReceiptForget, ReceiptPage, ReceiptQuery,
    Renew, SecretList, SecretStatus,
};
pub use watching::{
    EventsPage, EventsQuery, LogLine, LogPage, LogQuery, SubscriptionState, TopicState, TreeChange,
    TreeNode, TreeQuery, TreeValue,
};

use crate::directory::{Query, SignedRecord};
use crate::message::List;
use table::control_functions;

control_functions! {
    /// Exchanges versions: the caller's, and the device's in return. Comes first; its encoding is the same
    /// in all versions.
    hello(Hello) -> Hello; anybody, since 1;

    /// Returns how the device is.
    status() -> DeviceStatus; owner, since 1;

    /// Returns how much room the device has for machines and what they store. A leaf has none.
    room() -> RoomStatus; owner, since 1;

    /// Lists the machines, a page at a time.
    list(ListMachines) -> MachineList; owner, since 1;

    /// Begins the transfer of a package or a snapshot. An earlier transfer is dropped.
    install_begin(InstallBegin) -> (); owner, since 1;

    /// Transfers the next part.
    install_chunk(InstallChunk<'_>) -> (); owner, since 1;

    /// Makes a machine of the package that was transferred.
    install_commit(InstallCommit) -> MachineStatus; owner, since 1;

    /// Puts a machine into the trash, or deletes it for good.
    remove(Remove) -> (); owner, since 1;

    /// Gives a machine another term.
    renew(Renew) -> (); owner, since 1;

    /// Returns the highest number of a placement or renewal that counted for a name; the next one has
    /// the number after it.
    lease_number(LeaseNumber) -> u64; owner, since 1;

    /// Lists the machines in the trash.
    trash() -> Trash; owner, since 1;

    /// Fetches a machine back from the trash. It starts afresh with what it had stored.
    trash_restore(TrashRestore) -> (); owner, since 1;

    /// Deletes machines that are in the trash.
    trash_empty(TrashEmpty) -> (); owner, since 1;

    /// Lifts a machine's ban and forgets its faults.
    unban(Unban) -> (); owner, since 1;

    /// Starts a machine again from its entry. Its tree stays.
    restart(Restart) -> (); owner, since 1;

    /// Returns a machine's rights and how often it used each.
    grants(GrantQuery) -> GrantReport; owner, since 1;

    /// Returns receipts that wait to be fetched, a page at a time.
    receipts(ReceiptQuery) -> ReceiptPage; owner, since 1;

    /// Deletes receipts that were fetched.
    receipts_forget(ReceiptForget) -> (); owner, since 1;

    /// Ends all periods under way, each with a receipt.
    receipts_close() -> (); owner, since 1;

    /// Returns the device's signed record, if it is enrolled.
    record() -> Option<SignedRecord>; anybody, since 1;

    /// Sets or deletes a secret: a change that its tenant signed.
    secret_change(raw) -> (); tenant, since 1;

    /// Lists a tenant's secrets: a query that the tenant signed.
    secret_list(raw) -> SecretList; tenant, since 1;

    /// Reads a place in a machine's tree.
    tree(TreeQuery) -> TreeNode; owner, since 1;

    /// Reads log lines, a page at a time.
    log(LogQuery) -> LogPage; owner, since 1;

    /// Names the device: the owner's signed enrolment.
    enrol(Enrol) -> (); owner, since 1;

    /// Sets the time of a device that has no clock.
    time(TellTime) -> (); owner, since 1;

    /// Returns the state of the device's hub, if it has one.
    hub() -> Option<HubStatus>; owner, since 1;

    /// Pins the hub's key; the device trusts no other from then on.
    trust_hub(TrustHub) -> (); owner, since 1;

    /// Gives the device another owner: a succession that the former one signed. The signature counts, and
    /// not who brings it.
    change_owner(ChangeOwner) -> (); anybody, since 1;

    /// Puts the owner's signed list of revoked keys into force. The signature counts, and not who brings it.
    revoke(raw) -> (); anybody, since 1;

    /// Returns the signed list of revoked keys that is in force, if there is one.
    revoked() -> Option<Vec<u8>>; owner, since 1;

    /// Takes the device into the owner's mesh.
    join(Join) -> (); owner, since 1;

    /// Returns the device's neighbours and ways in the mesh.
    mesh() -> MeshStatus; owner, since 1;

    /// Lists devices that ask to be let into the mesh. Those that other members heard come with the
    /// next answer.
    mesh_strangers(StrangersQuery) -> List<MeshStranger>; owner, since 1;

    /// Admits a device to the mesh. It learns that when it knocks again.
    mesh_admit(Admission) -> (); owner, since 1;

    /// Returns the signed record of a device that is held in the mesh, if there is one.
    mesh_find(Query) -> Option<SignedRecord>; owner, since 1;

    /// Sends datagrams to another device of the mesh, and returns those that came from it for the tool, as
    /// many as fit. The answer waits for them as long as the request says. A tenant has to show a pass for that
    /// device before.
    mesh_carry(Carry) -> List<Vec<u8>>; tenant, since 1;

    /// Spreads an order for an experiment, which the owner signed, to the whole deployment.
    experiment_direct(raw) -> (); owner, since 1;

    /// Returns the logs that came since the last order to collect them, as many as fit.
    experiment_logs() -> List<ExperimentLog>; owner, since 1;

    /// Makes a snapshot of a machine's tree. An earlier transfer is dropped.
    snapshot_begin(SnapshotBegin) -> SnapshotInfo; owner, since 1;

    /// Reads the snapshot from an offset on, as many bytes as fit.
    snapshot_read(SnapshotRead) -> Vec<u8>; owner, since 1;

    /// Replaces a machine's tree by the snapshot that was transferred as a package is.
    restore(Restore) -> (); owner, since 1;

    /// Returns the state of the device's firmware.
    firmware() -> FirmwareStatus; owner, since 1;

    /// Begins the transfer of a firmware. An earlier transfer is dropped.
    firmware_begin(FirmwareBegin) -> (); owner, since 1;

    /// Transfers the next part of the firmware's image.
    firmware_chunk(InstallChunk<'_>) -> (); owner, since 1;

    /// Restarts the device to try the firmware that was transferred.
    firmware_commit() -> (); owner, since 1;

    /// Lists topics and subscriptions, a page at a time.
    events(EventsQuery) -> EventsPage; owner, since 1;

    /// Stops a machine until it is started, over updates and restarts of the device. Its tree stays.
    stop(Stop) -> (); owner, since 1;

    /// Starts a machine that was stopped, from its entry.
    start(Start) -> (); owner, since 1;

    /// Sets a value of a machine's tree, or deletes values of it. Returns how many values are gone.
    tree_change(TreeChange) -> u32; owner, since 1;

    /// Shows the owner's pass to a device of the mesh, in a statement that the tenant signed for this session.
    /// Returns that device's record.
    mesh_pass(raw) -> SignedRecord; tenant, since 1;

    /// Returns the state of the device's ways outside: its bridge to a broker, its machines' requests to servers, its
    /// clients of CoAP.
    outside() -> OutsideStatus; owner, since 1;

    /// Has a machine keep a journal of all that enters it, in a ring of so many bytes; 0 ends it and deletes it.
    journal_keep(JournalKeep) -> (); owner, since 1;

    /// Returns a piece of a machine's journal, sealed to its tenant: a question that the tenant signed.
    journal(raw) -> Vec<u8>; tenant, since 1;
}

#[cfg(test)]
mod tests;
