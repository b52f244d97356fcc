//! The C interface: its header is up to date, and a C program speaks by it with OpenSSL both ways and with
//! itself, refuses a server of another name, and leaves nothing in its memory.
#![cfg(target_os = "linux")]

mod common;

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::OnceLock;

use common::openssl::{Server, chain, openssl};
use tempfile::TempDir;

/// The folder of the C interface's crate.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bindings/tls-c")
}

#[test]
fn header_is_generated_from_the_functions() {
    let config = cbindgen::Config::from_file(folder().join("cbindgen.toml")).unwrap();
    let mut header = Vec::new();
    cbindgen::Builder::new()
        .with_config(config)
        .with_src(folder().join("src/types.rs"))
        .with_src(folder().join("src/lib.rs"))
        .generate()
        .unwrap()
        .write(&mut header);
    let header = String::from_utf8(header).unwrap();
    let place = folder().join("include/tenure_tls.h");
    if std::env::var_os("TENURE_UPDATE_HEADER").is_some() {
        std::fs::write(&place, &header).unwrap();
    }
    let committed = std::fs::read_to_string(&place).unwrap_or_default();
    assert!(
        header == committed,
        "include/tenure_tls.h is out of date: run this test with TENURE_UPDATE_HEADER=1"
    );
}

/// The C program `talk`, built once, with the static library.
fn talk() -> Command {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    Command::new(PROGRAM.get_or_init(|| {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tls-c");
        let status = Command::new(env!("CARGO"))
            .args(["build", "--release", "--quiet", "--manifest-path"])
            .arg(folder().join("Cargo.toml"))
            .arg("--target-dir")
            .arg(&target)
            .status()
            .unwrap();
        assert!(status.success(), "the C interface does not build");
        let program = target.join("talk");
        let status = Command::new("cc")
            .args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wl,--gc-sections", "-I"])
            .arg(folder().join("include"))
            .arg(folder().join("examples/talk.c"))
            .arg(target.join("release/libtenure_tls.a"))
            .arg("-o")
            .arg(&program)
            .status()
            .expect("a C compiler is there");
        assert!(status.success(), "the C program does not build");
        program
    }))
}

/// Asks the server at `port`, as the C program; what it printed.
fn ask(folder: &TempDir, port: u16, name: &str, question: &[u8]) -> Output {
    let mut client = talk()
        .args(["client", &port.to_string(), "root.der", name])
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    client.stdin.take().expect("its input").write_all(question).expect("it reads");
    client.wait_with_output().expect("it ends")
}

/// The C program as a server, and its port.
fn serve(folder: &TempDir) -> (Child, BufReader<ChildStdout>, u16) {
    for name in ["leaf", "middle"] {
        openssl(folder.path(), &format!("x509 -in {name}.pem -outform DER -out {name}.der"));
    }
    openssl(folder.path(), "pkey -in leaf.key -outform DER -out leaf.key.der");
    let mut server = talk()
        .args(["server", "0", "leaf.key.der", "leaf.der", "middle.der"])
        .current_dir(folder)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut output = BufReader::new(server.stdout.take().expect("its output"));
    let mut line = String::new();
    output.read_line(&mut line).expect("a line");
    let port = line.trim().strip_prefix("listening ").and_then(|port| port.parse().ok());
    (server, output, port.expect("a port"))
}

#[test]
fn c_client_fetches_a_page_from_openssl() {
    for kind in ["ec-P-256", "rsa-2048"] {
        let folder = chain(kind);
        let server = Server::start(&folder, &[]);
        let output = ask(&folder, server.port, "server.test", b"GET / HTTP/1.0\r\n\r\n");
        let (page, log) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && page.contains("</HTML>"), "{kind}: {log}\n{page}");
    }
}

#[test]
fn c_client_refuses_a_server_of_another_name() {
    let folder = chain("ec-P-256");
    let server = Server::start(&folder, &[]);
    let output = ask(&folder, server.port, "another.test", b"GET / HTTP/1.0\r\n\r\n");
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && log.contains("result 4: "), "{log}");
    assert!(output.stdout.is_empty());
}

#[test]
fn c_server_echoes_to_the_c_client() {
    let folder = chain("ec-P-256");
    let question = b"a question that is longer than a record of this server\n".repeat(200);
    let (mut server, _output, port) = serve(&folder);
    let output = ask(&folder, port, "server.test", &question);
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{log}");
    assert!(output.stdout == question, "{} bytes of {}", output.stdout.len(), question.len());
    assert!(server.wait().expect("it ends").success());
}

#[test]
fn c_server_proves_itself_to_openssl_by_each_kind_of_key() {
    for kind in ["ec-P-256", "ec-P-384", "ed25519", "rsa-2048"] {
        echo_to_openssl(kind);
    }
}

fn echo_to_openssl(kind: &str) {
    let folder = chain(kind);
    let (mut server, _output, port) = serve(&folder);
    let mut client = Command::new("openssl")
        .args(["s_client", "-quiet", "-verify_return_error", "-CAfile", "root.pem"])
        .args(["-servername", "server.test", "-connect", &format!("127.0.0.1:{port}")])
        .current_dir(&folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("openssl is installed");
    let mut input = client.stdin.take().expect("its input");
    input.write_all(b"to and fro\n").expect("it reads");
    let mut line = String::new();
    let mut answers = BufReader::new(client.stdout.take().expect("its output"));
    answers.read_line(&mut line).expect("an answer");
    assert_eq!(line, "to and fro\n");
    client.kill().expect("it runs");
    client.wait().expect("it ends");
    // Its transport ended without a word.
    assert!(!server.wait().expect("it ends").success());
}
