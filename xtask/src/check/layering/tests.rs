use super::*;

fn node(folder: &str, layer: Option<u8>, uses: &[&str]) -> Node {
    let arrow = |folder: &&str| match folder.strip_prefix("dev:") {
        Some(folder) => Arrow { folder: folder.to_owned(), is_dev: true },
        None => Arrow { folder: (*folder).to_owned(), is_dev: false },
    };
    Node {
        name: folder.rsplit('/').next().unwrap().to_owned(),
        zone: Zone::of(folder, layer),
        layer,
        folder: folder.to_owned(),
        arrows: uses.iter().map(arrow).collect(),
    }
}

#[track_caller]
fn check(nodes: &[Node], expected: &[&str]) {
    assert_eq!(violations(nodes), expected);
}

#[test]
fn arrows_that_point_down_are_allowed() {
    check(
        &[
            node("crates/wire", Some(0), &[]),
            node("crates/store", Some(1), &["crates/wire"]),
            node("boards/linux", Some(4), &["crates/store"]),
            node("crates/cli", Some(5), &["boards/linux", "crates/wire"]),
            node("xtask", None, &["crates/wire"]),
            node("sdk/rust", None, &[]),
            node("examples/echo", None, &["sdk/rust"]),
            node("examples/player", Some(4), &["crates/wire"]),
            node("fuzz", None, &["crates/wire", "crates/store"]),
        ],
        &[],
    );
}

#[test]
fn arrows_up_or_sideways_are_named() {
    check(
        &[
            node("crates/a", Some(1), &["crates/b", "crates/c"]),
            node("crates/b", Some(1), &[]),
            node("crates/c", Some(2), &[]),
        ],
        &["a uses b: layer 1 points at layer 1", "a uses c: layer 1 points at layer 2"],
    );
}

#[test]
fn tests_may_use_neighbours_but_nothing_above() {
    check(
        &[
            node("crates/a", Some(1), &["dev:crates/b", "dev:crates/c"]),
            node("crates/b", Some(1), &[]),
            node("crates/c", Some(2), &[]),
        ],
        &["a uses c: layer 1 points at layer 2"],
    );
}

#[test]
fn crates_and_boards_declare_their_layer() {
    check(
        &[node("crates/a", None, &[]), node("boards/linux", None, &[])],
        &[
            "a declares no layer ([package.metadata.tenure] layer = N)",
            "linux declares no layer ([package.metadata.tenure] layer = N)",
        ],
    );
}

#[test]
fn document_that_differs_from_the_manifests_is_faulty() {
    let nodes = [
        node("crates/a", Some(0), &[]),
        node("crates/b", Some(1), &[]),
        node("crates/d", Some(2), &["crates/b", "crates/a", "dev:crates/d"]),
        node("crates/e", Some(2), &["crates/b", "crates/a"]),
        node("xtask", None, &[]),
    ];
    let document = "| layer | crate |\n|---|---|\n| 2 | `b` | one | – |\n| 0 | `a` † | two | – |\n\
                    | 3 | `c` | three | – |\n| 2 | `d` | four | `a b` |\n| 2 | `e` | five | `b` |\n";
    assert_eq!(
        document_faults(&nodes, document),
        [
            "ARCHITECTURE.md does not show `b` on layer 1",
            "ARCHITECTURE.md: `e` uses `a b`",
            "ARCHITECTURE.md shows `c`, which does not exist"
        ]
    );
}

#[test]
fn guests_and_hosts_do_not_use_each_other() {
    check(
        &[
            node("crates/wire", Some(0), &["sdk/rust"]),
            node("sdk/rust", None, &["crates/wire"]),
            node("examples/one", None, &["examples/two"]),
            node("examples/two", None, &[]),
        ],
        &[
            "wire uses rust: no part of the host may use a guest's",
            "rust uses wire: guests know only what sdk/ gives",
            "one uses two: guests know only what sdk/ gives",
        ],
    );
}

#[test]
fn developer_tools_are_used_by_nothing_and_use_the_lowest_layer() {
    check(
        &[
            node("crates/store", Some(1), &["dev:xtask"]),
            node("xtask", None, &["crates/store", "crates/gone"]),
        ],
        &[
            "store uses xtask: nothing may use the developer's tools",
            "xtask uses store: xtask may use layer 0 and tenure-board-linux, tenure-boot, tenure-crypto, tenure-kernel, \
             tenure-package, tenure-tls only",
            "xtask uses crates/gone, which is in no workspace here",
        ],
    );
}

#[test]
fn only_tests_and_what_runs_them_use_the_test_bed() {
    check(
        &[
            node("crates/a", Some(0), &["dev:crates/testbed"]),
            node("crates/b", Some(1), &["crates/testbed"]),
            node("crates/testbed", None, &["crates/a"]),
            node("fuzz", None, &["crates/testbed"]),
            node("xtask", None, &["crates/testbed"]),
        ],
        &["b uses testbed: only tests may use the test bed"],
    );
}
