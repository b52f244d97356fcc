//! Machines in the making: projects, compilers, modules and packages.

pub mod build;
pub(crate) mod c_project;
pub(crate) mod compiled;
mod foreign_abort;
pub mod module;
pub mod native;
pub mod pack;
pub mod package;
pub mod project;
pub mod project_file;
pub mod refusal;
pub(crate) mod rust_project;
pub mod sdk;
pub mod symbols;
pub mod toolchain;
pub mod wasi;
pub mod watch;
pub mod zones;
