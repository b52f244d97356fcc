//! Machines in the making: projects, compilers, modules and packages.

mod assembly_script_project;
pub mod build;
pub(crate) mod c_project;
pub(crate) mod compiled;
mod foreign_abort;
pub(crate) mod javascript_project;
pub mod module;
pub mod native;
pub mod pack;
pub mod package;
pub mod project;
pub mod project_file;
pub mod proposals;
pub mod refusal;
pub(crate) mod registry_tools;
pub(crate) mod rust_project;
pub mod sdk;
mod source_map;
pub mod symbols;
pub mod toolchain;
pub mod toolchains;
pub mod wasi;
pub mod watch;
mod zig_project;
pub mod zones;
