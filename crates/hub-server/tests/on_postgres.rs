//! The suites of the hub once more, with its database on PostgreSQL.

#![allow(clippy::duplicate_mod, reason = "fleets and disturbed suites have helpers of their own")]

#[path = "alarms.rs"]
mod alarms;
#[path = "authority.rs"]
mod authority;
mod beside;
#[path = "fleet/conflicts.rs"]
mod conflicts;
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
mod shaken;
#[path = "visits.rs"]
mod visits;
#[path = "web.rs"]
mod web;
mod world;
