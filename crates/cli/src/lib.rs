//! The parts of the command `tenure`, each usable by a test or another tool.
//!
//! Each command is a module with its `Arguments` and a `run` function. What it found goes to
//! standard output, as text or with `--json` as one object; an error names the cause and the way
//! out.
#![forbid(unsafe_code)]

#[cfg(any(forgetful, planted, unchecked_memory, unmetered))]
compile_error!("a deliberate mistake for tests can't be compiled into the command `tenure`");

pub mod authority;
pub mod build;
mod c_project;
pub mod call;
pub mod client;
pub mod clock;
pub mod command_line;
mod compiled;
pub mod completions;
pub mod confirm;
pub mod contexts;
pub mod deep_sleep;
pub mod device;
pub mod discovery;
pub mod enrol;
pub mod events;
pub mod experiment;
pub mod firmware;
pub mod flash;
pub mod fleet;
pub mod grant;
pub mod halt;
pub mod help;
pub mod home;
pub mod hub;
pub mod hub_session;
pub mod inspect;
pub mod install;
pub mod invite;
mod kept_packages;
pub mod known;
pub mod lease;
pub mod list;
pub mod login;
pub mod mesh;
pub mod module;
pub mod native;
pub mod network;
pub mod network_key;
pub mod output;
pub mod owner;
pub mod pack;
pub mod packages;
mod pages;
pub mod pass;
pub mod peripherals;
pub mod plugged_in;
pub mod private_file;
pub mod project;
pub mod project_file;
pub mod receipts;
pub mod replay;
pub mod revoke;
pub mod rollback;
pub mod rollout;
pub mod run;
pub mod sdk;
pub mod secret;
pub mod serial;
pub mod shell;
pub mod sim;
pub mod snapshot;
pub mod status;
pub mod stop;
pub mod symbols;
pub mod test;
pub mod tls;
pub mod toolchain;
pub mod top;
pub mod trash;
pub mod tree;
pub mod trust_hub;
pub mod watch;
pub mod whom;
mod written_file;
pub mod zones;
