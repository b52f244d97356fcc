//! The hub's database in SQLite or PostgreSQL, its pages and API over HTTP, its registry of packages.
//!
//! The modules are rooms, of which each imports those below it alone (`rooms` in `Cargo.toml`):
//!
//! | room | holds |
//! |---|---|
//! | `web` | HTTP: connections, routes, passes of requests, pages, lists, the OpenAPI document, figures, logs |
//! | `sessions` | calls of devices and commands in sessions |
//! | `api` | the requests that HTTP and sessions share: lists, signing in, and who may do what |
//! | `alarms` | alarms by the rules of the operator's file, with their states |
//! | `devices` | what devices tell: reports, receipts, logs; and which are revoked |
//! | `rollouts` | updates of many devices in stages |
//! | `registry` | packages by digest, as a registry |
//! | `exchange` | one request and its answer |
//! | `store` | the database: its engines, its versions, its audit log |
//! | `names` | names of people, and which of them read alike |
//! | `owners` | whose keys are owners' at this hub |
//! | `running` | the state in memory that the hub's thread and its pages share |
//! | `traces` | spans of what is done, and their way to a collector |
//! | `trust` | TLS towards servers: a database, a mail server, a collector |
//!
//! Invariants:
//! - A write that was acknowledged is on the disk: every commit waits for it (`synchronous = FULL`; on PostgreSQL
//!   `synchronous_commit` is `on` at least).
//! - The database holds no key that can place a machine on a device: the hub's own seed opens sessions
//!   as the hub. Passes are stored as hashes.
//! - A database of a newer version is refused and left as it is.
#![forbid(unsafe_code)]

mod alarms;
mod api;
mod devices;
mod exchange;
mod names;
mod owners;
mod registry;
mod rollouts;
mod running;
mod sessions;
mod store;
mod traces;
mod trust;
mod web;

pub use crate::alarms::{
    Alarms, Condition, ConditionError, Email, EmailAddress, EmailCredentials, EmailSecurity,
    NoEmailAddress, NoWebhookSecret, RULES_MAX, Rule, Rules, SUBJECTS, Webhook, WebhookSecret,
};
pub use crate::api::sign_in::request as sign_in_request;
pub use crate::exchange::encoded as encoded_in_address;
pub use crate::registry::{Artifact, WasmArtifact, digest_of as registry_digest};
pub use crate::rollouts::{
    Gates, MetricGate, NoMetricGate, Plan, PlanError, SignedPlan,
    words_of as rollout_waits_in_words,
};
pub use crate::running::Running;
pub use crate::running::carried::{Carried, CarriedCounts};
pub use crate::running::hearing::Traffic;
pub use crate::sessions::answer_beside;
pub use crate::store::audit::{Broken, Entry as AuditEntry};
pub use crate::store::{
    Copied, Database, DatabaseError, Location, LocationError, MoveError, Server, SqlError,
};
pub use crate::traces::{NoTraces, Traces};
pub use crate::web::{Pages, Visitors, serve};
pub use tenure_http_listener::{CertificateError, Certificates, Entrance};
