//! What an owner says to a device: the functions of the device's own machine.
//!
//! Parameters and results are in postcard's encoding; a failure is a [`ControlError`]. Only the
//! owner's key may call them, but for those that say otherwise.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::capability::GrantUse;
use crate::directory::{Enrolment, SignedRecord};
use crate::{
    Address, Budget, CodeKind, Digest, MachineId, Name, PublicKey, Share, Signature, Term, Topic,
    TopicPattern, VerifyingKey,
};

/// Functions that a device's own machine offers, by their names on the wire.
pub mod function {
    /// Takes nothing, gives a [`super::DeviceStatus`].
    pub const STATUS: &str = "status";
    /// Takes a [`super::ListMachines`], gives a [`super::MachineList`].
    pub const LIST: &str = "list";
    /// Takes an [`super::InstallBegin`], gives nothing. What was begun before is dropped.
    pub const INSTALL_BEGIN: &str = "install_begin";
    /// Takes an [`super::InstallChunk`], gives nothing.
    pub const INSTALL_CHUNK: &str = "install_chunk";
    /// Takes an [`super::InstallCommit`], gives the [`super::MachineStatus`] of the new machine.
    pub const INSTALL_COMMIT: &str = "install_commit";
    /// Takes a [`super::Remove`], returns nothing: the machine is in the trash, unless it is to go for good.
    pub const REMOVE: &str = "remove";
    /// Takes a [`super::Renew`], gives nothing.
    pub const RENEW: &str = "renew";
    /// Takes a [`super::LeaseNumber`], returns the highest number of a placement or renewal that counted for
    /// that name, as a `u64`: the next one has the number after it.
    pub const LEASE_NUMBER: &str = "lease_number";
    /// Takes nothing, returns a [`super::Trash`].
    pub const TRASH: &str = "trash";
    /// Takes a [`super::TrashRestore`], returns nothing: the machine starts afresh with what it had stored.
    pub const TRASH_RESTORE: &str = "trash_restore";
    /// Takes a [`super::TrashEmpty`], returns nothing.
    pub const TRASH_EMPTY: &str = "trash_empty";
    /// Takes an [`super::Unban`], gives nothing.
    pub const UNBAN: &str = "unban";
    /// Takes a [`super::Restart`], gives nothing.
    pub const RESTART: &str = "restart";
    /// Takes a [`super::GrantQuery`], gives a [`super::GrantReport`].
    pub const GRANTS: &str = "grants";
    /// Takes a [`super::ReceiptQuery`], gives a [`super::ReceiptPage`].
    pub const RECEIPTS: &str = "receipts";
    /// Takes a [`super::ReceiptForget`], gives nothing.
    pub const RECEIPTS_FORGET: &str = "receipts_forget";
    /// Takes nothing, gives nothing: all periods under way end, each with a receipt.
    pub const RECEIPTS_CLOSE: &str = "receipts_close";
    /// Takes nothing, gives the device's [`SignedRecord`](crate::directory::SignedRecord), if it is
    /// enrolled. Anybody may call it.
    pub const RECORD: &str = "record";
    /// Takes a tenant's signed change of a secret, gives nothing. Anybody may call it: the
    /// signature counts.
    pub const SECRET_CHANGE: &str = "secret_change";
    /// Takes a tenant's signed query, returns a [`super::SecretList`]. Anybody may call it.
    pub const SECRET_LIST: &str = "secret_list";
    /// Takes a [`super::TreeQuery`], gives a [`super::TreeNode`].
    pub const TREE: &str = "tree";
    /// Takes a [`super::LogQuery`], gives a [`super::LogPage`].
    pub const LOG: &str = "log";
    /// Takes an [`super::Enrol`], gives nothing: the device carries its name from then on.
    pub const ENROL: &str = "enrol";
    /// Takes a [`super::TellTime`], gives nothing: a device without a clock knows the time from then on.
    pub const TIME: &str = "time";
    /// Takes nothing, returns a [`super::HubStatus`], or nothing if the device has no hub.
    pub const HUB: &str = "hub";
    /// Takes a [`super::TrustHub`], returns nothing: the device trusts the hub with that key, and no
    /// other, from then on.
    pub const TRUST_HUB: &str = "trust_hub";
    /// Takes a [`super::Join`], gives nothing: the device is in the owner's mesh from then on.
    pub const JOIN: &str = "join";
    /// Takes nothing, gives a [`super::MeshStatus`].
    pub const MESH: &str = "mesh";
    /// Takes a [`super::StrangersQuery`], gives a list of [`super::MeshStranger`]. Those that others have
    /// heard come with the next answer.
    pub const MESH_STRANGERS: &str = "mesh_strangers";
    /// Takes an [`super::Admission`], gives nothing: the stranger that it is for is told, as soon as it
    /// knocks again.
    pub const MESH_ADMIT: &str = "mesh_admit";
    /// Takes an order for an experiment that the owner signed, gives nothing: it is under way to the whole
    /// deployment.
    pub const EXPERIMENT_DIRECT: &str = "experiment_direct";
    /// Takes nothing, gives a list of [`super::ExperimentLog`]: those that came since the last order to
    /// collect them, as many as fit.
    pub const EXPERIMENT_LOGS: &str = "experiment_logs";
    /// Takes a [`super::SnapshotBegin`], gives a [`super::SnapshotInfo`]. What was transferred before
    /// is dropped.
    pub const SNAPSHOT_BEGIN: &str = "snapshot_begin";
    /// Takes a [`super::SnapshotRead`], gives the bytes from there on, as many as fit.
    pub const SNAPSHOT_READ: &str = "snapshot_read";
    /// Takes a [`super::Restore`] of a snapshot that was transferred as a package is, gives nothing.
    pub const RESTORE: &str = "restore";
    /// Takes nothing, gives a [`super::FirmwareStatus`].
    pub const FIRMWARE: &str = "firmware";
    /// Takes a [`super::FirmwareBegin`], gives nothing. What was begun before is dropped.
    pub const FIRMWARE_BEGIN: &str = "firmware_begin";
    /// Takes a [`super::InstallChunk`] of the firmware's image, gives nothing.
    pub const FIRMWARE_CHUNK: &str = "firmware_chunk";
    /// Takes nothing, gives nothing: the device starts anew and tries the firmware that was
    /// transferred.
    pub const FIRMWARE_COMMIT: &str = "firmware_commit";
    /// Takes an [`super::EventsQuery`], gives an [`super::EventsPage`].
    pub const EVENTS: &str = "events";
}

/// The most bytes of a package that one [`InstallChunk`] carries.
pub const CHUNK_BYTES_MAX: usize = 4096;

/// The answer to every control function: its result, or why there is none.
pub type Answer<T> = Result<T, ControlError>;

/// How a device is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceStatus {
    /// Its name.
    pub name: Name,
    /// Its own key.
    pub key: VerifyingKey,
    /// The key of its own machine.
    pub device_machine: PublicKey,
    /// Its owner.
    pub owner: VerifyingKey,
    /// The version of the software on it.
    pub version: String,
    /// Milliseconds since it booted.
    pub uptime_ms: u64,
    /// What time leases go by: by its clock, its owner, or a hub whose key is pinned, in seconds since 1970
    /// UTC; `None` if none has told it since it booted.
    pub unix_s: Option<u64>,
    /// How often it has booted.
    pub boots: u32,
    /// The directory it registers with, and whether it has answered.
    pub hub: Option<(Address, bool)>,
    /// How many machines are on it.
    pub machines: u32,
    /// The scheduling policy.
    pub policy: String,
    /// The fuel that it burns in a second, as far as it was measured.
    pub fuel_per_second: u64,
    /// How many machines are in the trash.
    pub trash_machines: u32,
    /// The flash that they take, in bytes.
    pub trash_bytes: u32,
    /// The longest image or package that still fits, in bytes.
    pub code_bytes_free: u32,
    /// Its heap, where the device has one of a fixed size.
    pub heap: Option<HeapStatus>,
    /// What it would tell a directory: the proof that its owner enrolled it and that the machine
    /// that answers is its own. `None` if it isn't enrolled.
    pub record: Option<SignedRecord>,
}

/// How much of a device's heap is used, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeapStatus {
    /// Now.
    pub used_bytes: u32,
    /// At most since the device booted.
    pub peak_bytes: u32,
    /// In all.
    pub total_bytes: u32,
    /// What the board itself took before the node booted: its drivers' buffers.
    pub board_bytes: u32,
    /// What is kept of others' calls, so that each runs once at most and its answer can be asked for
    /// again; it goes with the acknowledgements, or when there is need for the room.
    pub answers_bytes: u32,
}

/// The owner's word that this device carries its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enrol {
    /// Which name, and which device key.
    pub enrolment: Enrolment,
    /// The owner's signature over it.
    pub signature: Signature,
}

/// The owner's word for what time it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TellTime {
    /// Seconds since 1970 UTC, by the owner's clock.
    pub unix_s: u64,
}

/// How a device stands with its hub.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HubStatus {
    /// Where the hub is.
    pub address: Address,
    /// Whether the hub lists the device.
    pub is_registered: bool,
    /// The hub's key, as far as it is known.
    pub key: Option<PublicKey>,
    /// Why the device takes that key for the hub's.
    pub trust: HubTrust,
    /// A different key that the hub's address showed last; the device doesn't speak to its holder.
    pub shown: Option<PublicKey>,
}

/// Why a device takes a key for its hub's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HubTrust {
    /// No key is known.
    Unknown,
    /// The hub's address showed it, and has not proved it yet.
    Shown,
    /// It was the first key that registered the device. Its word on time moves no lease.
    FirstSeen,
    /// The owner or the device's settings named it. Its word on time counts for leases.
    Owner,
}

/// The owner's word on the hub's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustHub {
    /// The only key to trust; `None` to forget the one that was kept, so that the next first one is.
    pub key: Option<PublicKey>,
}

/// The owner's invitation to a mesh.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Join {
    /// As the owner signed it, for this device alone.
    pub invitation: Vec<u8>,
}

/// The owner's word that a device is a member of the mesh, and what its name is. Who carries it to the
/// device can't change it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Admission {
    /// As in [`Join`].
    pub invitation: Vec<u8>,
    /// Which name the device carries.
    pub enrol: Enrol,
}

/// Who has knocked?
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrangersQuery {
    /// The device's own machine that the owner waits for, if for one.
    pub awaited: Option<PublicKey>,
}

/// A device that isn't in the mesh, and asks to be let in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeshStranger {
    /// What it said, with its proof to its owner.
    pub knock: Vec<u8>,
    /// The member that heard it.
    pub by: String,
    /// How long ago.
    pub age_s: u32,
}

/// What a device noted while it took part in an experiment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExperimentLog {
    /// What the device is called in the mesh.
    pub node: String,
    /// Its name, if its record has come.
    pub device: Option<Name>,
    /// Its last lines.
    pub text: String,
}

/// What a device knows of its mesh.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeshStatus {
    /// What it is called in the mesh.
    pub node: String,
    /// Its neighbours.
    pub neighbours: u32,
    /// The ways that it knows, as many as fit.
    pub ways: Vec<MeshWay>,
}

/// A way in the mesh.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeshWay {
    /// Where to.
    pub to: String,
    /// The name of the device there, if its record has come.
    pub device: Option<Name>,
    /// The neighbour that it begins with.
    pub next_hop: String,
    /// How long it is: expected transmissions, in 64ths.
    pub metric: u16,
}

/// From which machine on to list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListMachines {
    /// How many machines to skip.
    pub skip: u32,
}

/// The machines on a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineList {
    /// A page of them.
    pub machines: Vec<MachineStatus>,
    /// How many there are in all.
    pub total: u32,
}

/// How a machine is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineStatus {
    /// Its name.
    pub name: Name,
    /// Its id.
    pub id: MachineId,
    /// Its public key.
    pub key: PublicKey,
    /// The package it was made from.
    pub package: Name,
    /// The digest of that package.
    pub digest: Digest,
    /// Who signed the package.
    pub tenant: VerifyingKey,
    /// The functions that others may call.
    pub exports: Vec<String>,
    /// What it is doing, in a word.
    pub state: String,
    /// Tasks waiting.
    pub queue_length: u32,
    /// Tasks finished since the device booted.
    pub tasks_done: u64,
    /// Fuel used since the device booted.
    pub fuel_used: u64,
    /// Faults that count against it.
    pub faults: u32,
    /// What it is thought of for them: `good`, `probation` or `banned`.
    pub repute: String,
    /// The last fault since the device booted.
    pub last_fault: Option<String>,
    /// Linear memory in use, in bytes.
    pub memory_bytes: u32,
    /// Keys and values in its tree, in bytes.
    pub stored_bytes: u32,
    /// What it may use.
    pub budget: Budget,
    /// Whether it is run by its device's engine, and not by the vm.
    pub at_native_speed: bool,
    /// What its code is.
    pub code: CodeKind,
    /// Its share of the processor.
    pub share: Share,
    /// For how long its lease counts.
    pub term: Term,
    /// What time the device takes it to be for this lease, in seconds since 1970 UTC.
    pub lease_unix_s: u64,
    /// The number of the placement or renewal in force; the next one has a higher one.
    pub lease_number: u64,
    /// For how much longer the machine stays once its lease is over, in seconds that the device is on.
    pub grace_left_s: u64,
    /// How much of its tree was given by its package and lies with its code, in bytes.
    pub base_bytes: u32,
    /// The longest it has waited for its turn since the device booted, in microseconds.
    pub waited_max_us: u64,
    /// The longest that it has to wait, as the policy promises, in microseconds.
    pub wait_bound_us: u64,
    /// The function that it is in the middle of, if any.
    pub serves: Option<String>,
    /// For how long it has been in the middle of that, in milliseconds.
    pub serves_ms: u64,
}

/// Gives a machine another term.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Renew {
    /// The owner's signed renewal.
    pub renewal: Vec<u8>,
    /// Whether a term that is over already is meant; without this it is refused.
    pub ends_now: bool,
}

/// Asks for the number that counts for a machine's lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseNumber {
    /// The machine's name; whether it is there, was removed or never was.
    pub machine: Name,
}

/// The machines that were removed and can be fetched back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trash {
    /// All of them; a device has fewer slots than would fill an answer.
    pub machines: Vec<TrashedMachine>,
}

/// A machine in the trash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrashedMachine {
    /// The name that it had; another machine may have it now.
    pub name: Name,
    /// Its id.
    pub id: MachineId,
    /// The package it was made from.
    pub package: Name,
    /// Who signed the package, and pays for the flash that it takes.
    pub tenant: VerifyingKey,
    /// Keys and values in its tree, in bytes.
    pub stored_bytes: u32,
    /// Its code, in bytes.
    pub code_bytes: u32,
    /// For how much longer it stays there, in seconds that the device is on.
    pub left_s: u64,
}

/// Fetches a machine back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrashRestore {
    /// The machine's id.
    pub machine: MachineId,
}

/// Deletes what is in the trash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrashEmpty {
    /// Only the machine with that id; `None` for all of them.
    pub machine: Option<MachineId>,
}

/// Announces a package.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstallBegin {
    /// The length of the package in bytes.
    pub bytes: u32,
}

/// A part of a package; parts come in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstallChunk<'a> {
    /// Where it belongs, in bytes from the start.
    pub offset: u32,
    /// At most [`CHUNK_BYTES_MAX`] bytes.
    #[serde(borrow)]
    pub bytes: &'a [u8],
}

/// Makes a machine of the package that was transferred.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstallCommit {
    /// The owner's signed placement.
    pub placement: Vec<u8>,
}

/// Announces a firmware.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirmwareBegin {
    /// The signed release.
    pub release: Vec<u8>,
}

/// What a device runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirmwareStatus {
    /// The name of the board.
    pub board: String,
    /// The number of the firmware that runs.
    pub number: u32,
    /// The slot that it stands in.
    pub slot: String,
    /// Whether it is on trial.
    pub on_trial: bool,
    /// What stands in the other slot, if that is known.
    pub other: Option<OtherFirmware>,
    /// How long a firmware may be, in bytes.
    pub slot_bytes: u32,
    /// How long a trial lasts at most, in milliseconds.
    pub trial_ms: u32,
    /// Why the device started.
    pub started_by: String,
    /// Milliseconds since power came.
    pub uptime_ms: u64,
}

/// A firmware in the slot that doesn't run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherFirmware {
    /// Its number.
    pub number: u32,
    /// Whether the next start tries it.
    pub is_next: bool,
    /// What has become of it, in words.
    pub fate: String,
}

/// Removes a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remove {
    /// The machine's name.
    pub machine: Name,
    /// Whether all it stored is deleted at once, and not kept in the trash.
    pub for_good: bool,
}

/// Asks what a machine may do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantQuery {
    /// Which machine.
    pub machine: Name,
}

/// What a machine may do, and has done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantReport {
    /// Each right that it holds, with its uses since the device booted.
    pub uses: Vec<GrantUse>,
    /// How often it tried, or others tried with it, what isn't granted.
    pub denied: u64,
}

/// Asks for the receipts that wait to be fetched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiptQuery {
    /// How many receipts to skip.
    pub skip: u32,
}

/// Some of the receipts that wait: machine by machine, each one's in their order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiptPage {
    /// Signed receipts.
    pub receipts: Vec<Vec<u8>>,
    /// Whether there are more.
    pub more: bool,
}

/// Tells that receipts were fetched and are kept elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiptForget {
    /// Whose.
    pub machine: MachineId,
    /// The highest number of those fetched.
    pub through: u64,
}

/// A tenant's secrets on a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretList {
    /// The secrets.
    pub secrets: Vec<SecretStatus>,
    /// The number of the last change of any of them; the next change has a higher one.
    pub last: u64,
}

/// A secret that a device holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretStatus {
    /// Its name.
    pub name: Name,
    /// The number of the change that set it.
    pub version: u64,
}

/// Lifts what is held against a machine for its faults.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unban {
    /// Whom.
    pub machine: Name,
}

/// Starts a machine again from its entry; what it keeps stays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restart {
    /// Which.
    pub machine: Name,
}

/// Asks for a place in a machine's tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeQuery {
    /// Whose tree.
    pub machine: Name,
    /// Where; empty for the root.
    pub path: String,
    /// How many children to skip.
    pub skip: u32,
}

/// A place in a machine's tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeNode {
    /// The value there, if any.
    pub value: Option<TreeValue>,
    /// The names of a page of its children, in order.
    pub children: Vec<String>,
    /// How many children there are in all.
    pub total: u32,
}

/// A stored value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TreeValue {
    /// Text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

/// Asks for log lines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogQuery {
    /// Only lines of this machine.
    pub machine: Option<Name>,
    /// Only lines with a number of at least this.
    pub from: u64,
}

/// A page of log lines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogPage {
    /// The lines, oldest first.
    pub lines: Vec<LogLine>,
    /// The number to ask from next time.
    pub next: u64,
    /// How many lines were lost since boot because nobody read them in time.
    pub lost: u64,
    /// Whether there are more lines at once.
    pub more: bool,
}

/// One line of a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// Its number on this device since boot.
    pub number: u64,
    /// Milliseconds since the device booted.
    pub at_ms: u64,
    /// Whose line it is.
    pub machine: Name,
    /// `fault`, `error`, `warning`, `info` or `debug`.
    pub level: String,
    /// The text.
    pub message: String,
}

/// Asks for a machine's tree to be frozen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotBegin {
    /// Whose.
    pub machine: Name,
}

/// A snapshot that is ready to be fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotInfo {
    /// Its length in bytes.
    pub bytes: u32,
    /// How many values are in it.
    pub keys: u32,
}

/// Asks for a part of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotRead {
    /// Where it begins: where the part before ended.
    pub offset: u32,
}

/// Puts a machine's tree back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restore {
    /// Whose.
    pub machine: Name,
}

/// Asks for topics and subscriptions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventsQuery {
    /// How many topics and subscriptions to skip, topics first.
    pub skip: u32,
}

/// A page of a device's topics and subscriptions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventsPage {
    /// A page of the topics that something was published under since boot, in order.
    pub topics: Vec<TopicState>,
    /// A page of the subscriptions, by subscriber.
    pub subscriptions: Vec<SubscriptionState>,
    /// How many topics and subscriptions there are in all.
    pub total: u32,
    /// Events under topics that are not counted one by one.
    pub uncounted: u64,
    /// What all queued events take, each once, in bytes.
    pub bytes: u32,
}

/// A topic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicState {
    /// Which.
    pub topic: Topic,
    /// How many events were published under it since boot.
    pub published: u64,
}

/// A subscription.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubscriptionState {
    /// The machine, or the peripheral, that has subscribed.
    pub subscriber: Name,
    /// Whether it is a peripheral.
    pub is_peripheral: bool,
    /// To what.
    pub topics: TopicPattern,
    /// `drop-oldest`, `drop-newest` or `latest-only`.
    pub policy: String,
    /// How many events it queues at most.
    pub depth: u32,
    /// How many it has queued.
    pub queued: u32,
    /// How many it has handed over.
    pub delivered: u64,
    /// How many it has dropped.
    pub dropped: u64,
    /// The function that handles its events, if one does.
    pub handler: Option<String>,
}

/// Why a device didn't do what its owner asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ControlError {
    /// The parameter can't be read: the two sides are of different versions.
    Malformed,
    /// The caller isn't the owner.
    NotOwner,
    /// There is no such function.
    NoSuchFunction,
    /// No machine of that name.
    NoSuchMachine(Name),
    /// No transfer was begun, or a part is missing or out of order.
    Transfer,
    /// The package or its placement was refused; the text says why.
    Refused(String),
    /// The device has no room; the text says for what.
    Full(String),
    /// The device failed; the text says how.
    Device(String),
}

impl core::fmt::Display for ControlError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Malformed => {
                f.write_str("the device can't read the request: it runs another version")
            }
            Self::NotOwner => f.write_str("the device belongs to another owner"),
            Self::NoSuchFunction => f.write_str("the device doesn't know this request"),
            Self::NoSuchMachine(name) => write!(f, "there is no machine `{name}` on the device"),
            Self::Transfer => f.write_str("the transfer of the package was interrupted"),
            Self::Refused(why) => write!(f, "refused: {why}"),
            Self::Full(what) => write!(f, "the device is full: {what}"),
            Self::Device(what) => write!(f, "the device failed: {what}"),
        }
    }
}

impl core::error::Error for ControlError {}
