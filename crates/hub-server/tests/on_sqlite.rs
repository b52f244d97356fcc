//! The suites of the hub that also run on PostgreSQL (`on_postgres`), with its database in a folder: one program, as linking
//! one for each takes longer than most of them run.

#![allow(clippy::duplicate_mod, reason = "fleets have a helper of their own")]

#[path = "alarms.rs"]
mod alarms;
#[path = "authority.rs"]
mod authority;
#[path = "fleet/main.rs"]
mod fleet;
#[path = "logs.rs"]
mod logs;
#[path = "pages.rs"]
mod pages;
#[path = "people.rs"]
mod people;
#[path = "registry.rs"]
mod registry;
#[path = "reports.rs"]
mod reports;
#[path = "rollouts.rs"]
mod rollouts;
#[path = "visits.rs"]
mod visits;
#[path = "web.rs"]
mod web;
mod world;
