//! Tests of the adapter as it is carried, and of what is made of it.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

#[test]
fn adapter_can_be_taken_apart() {
    for bytes in [adapter::PREVIEW_1, adapter::COMPONENTS] {
        let adapter = Adapter::read(bytes).unwrap();
        assert!(adapter.module.elements.is_empty(), "no functions are called by pointers");
        assert!(adapter.memory_bytes <= 8192, "{} bytes of its own", adapter.memory_bytes);
        for import in &adapter.module.imports {
            assert!(["tenure", "merger"].contains(&import.module), "{}", import.module);
        }
    }
}

/// All functions of `wasi_snapshot_preview1`, as its description lists them.
const FUNCTIONS: [&str; 46] = [
    "args_get",
    "args_sizes_get",
    "clock_res_get",
    "clock_time_get",
    "environ_get",
    "environ_sizes_get",
    "fd_advise",
    "fd_allocate",
    "fd_close",
    "fd_datasync",
    "fd_fdstat_get",
    "fd_fdstat_set_flags",
    "fd_fdstat_set_rights",
    "fd_filestat_get",
    "fd_filestat_set_size",
    "fd_filestat_set_times",
    "fd_pread",
    "fd_prestat_dir_name",
    "fd_prestat_get",
    "fd_pwrite",
    "fd_read",
    "fd_readdir",
    "fd_renumber",
    "fd_seek",
    "fd_sync",
    "fd_tell",
    "fd_write",
    "path_create_directory",
    "path_filestat_get",
    "path_filestat_set_times",
    "path_link",
    "path_open",
    "path_readlink",
    "path_remove_directory",
    "path_rename",
    "path_symlink",
    "path_unlink_file",
    "poll_oneoff",
    "proc_exit",
    "proc_raise",
    "random_get",
    "sched_yield",
    "sock_accept",
    "sock_recv",
    "sock_send",
    "sock_shutdown",
];

#[test]
fn adapter_has_all_functions_of_preview_1() {
    for bytes in [adapter::PREVIEW_1, adapter::COMPONENTS] {
        let adapter = Adapter::read(bytes).unwrap();
        for name in FUNCTIONS {
            assert!(adapter.module.exported_function(name).is_some(), "{name}");
        }
    }
}

#[test]
fn functions_that_are_not_used_are_left_out() {
    let adapter = Adapter::read(adapter::PREVIEW_1).unwrap();
    let streams = adapter.choose(&["fd_write", "proc_exit"]).unwrap();
    let files = adapter.choose(&["fd_write", "proc_exit", "path_open"]).unwrap();
    assert!(!streams.has_files && files.has_files);
    assert!(streams.all.len() < files.all.len());
    assert!(files.all.len() < adapter.module.functions.len());
}

#[test]
fn table_of_the_documentation_has_the_interfaces_and_functions_that_are_there() {
    let adapter = Adapter::read(adapter::COMPONENTS).unwrap();
    let mut there: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for export in &adapter.module.exports {
        let Some((interface, function)) = export.name.split_once('#') else { continue };
        if interface.starts_with("wasi:") {
            // The table of 0.2 leaves the version out.
            let interface = interface.trim_end_matches("@0.2");
            let function = function.trim_start_matches("[async-lower]");
            there.entry(interface).or_default().insert(function);
        }
    }
    let page = include_str!("../../../../../docs/wasi.md");
    let quoted = |cell: &'static str| cell.split('`').skip(1).step_by(2);
    let mut told: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for line in page.lines().filter(|line| line.starts_with("| `wasi:")) {
        let cells: Vec<&str> = line.split(" | ").collect();
        let interface = quoted(cells[0]).next().unwrap();
        told.insert(interface, quoted(cells[1]).collect());
    }
    assert_eq!(there, told);
    assert!(there.len() > 30 && there["wasi:io/streams"].len() > 10);
}

#[test]
fn functions_of_streams_alone_have_the_types_of_those_with_files() {
    let adapter = Adapter::read(adapter::COMPONENTS).unwrap();
    let mut count = 0;
    for export in &adapter.module.exports {
        let Some(name) = export.name.strip_prefix("streams:") else { continue };
        let whole = adapter.module.exported_function(name).unwrap();
        assert_eq!(adapter.kind(export.index).unwrap(), adapter.kind(whole).unwrap(), "{name}");
        count += 1;
    }
    assert!(count > 20);
}
