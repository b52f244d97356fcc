//! `tenure tls` against OpenSSL's programs, curl, and itself.

mod common;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use common::Workbench;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use tenure_board_linux::LinuxEntropy;
use tenure_crypto::{Group, Software};
use tenure_tls::x509::{Anchor, ServerName, UnixTime};
use tenure_tls::{Client, ClientConfig, Event, Now, Suite, Trust};

/// A root and a server's certificate for `device.test` and 127.0.0.1, made by OpenSSL.
fn certificates(bench: &Workbench) {
    certificates_with_root(bench, "-extfile ext -extensions ca");
}

/// The same with a root that OpenSSL is told to make by `options`, and another root, `other.pem`.
fn certificates_with_root(bench: &Workbench, options: &str) {
    bench.write(&[(
        "ext",
        "[ca]\nbasicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign\n\
         [leaf]\nbasicConstraints=CA:FALSE\nkeyUsage=critical,digitalSignature\n\
         extendedKeyUsage=serverAuth,clientAuth\nsubjectAltName=DNS:device.test,IP:127.0.0.1\n",
    )]);
    let key = "genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out";
    for arguments in [
        &format!("{key} root.key"),
        &format!("{key} leaf.key"),
        "req -new -key root.key -subj /CN=root -out root.csr",
        &format!("x509 -req -in root.csr -signkey root.key -days 9 {options} -out root.pem"),
        &format!("{key} other.key"),
        "req -x509 -new -key other.key -subj /CN=root -days 9 -out other.pem",
        "req -new -key leaf.key -subj /CN=leaf -out leaf.csr",
        "x509 -req -in leaf.csr -CA root.pem -CAkey root.key -CAcreateserial -days 9 \
         -extfile ext -extensions leaf -out leaf.pem",
    ] {
        run_openssl(bench, arguments);
    }
}

fn run_openssl(bench: &Workbench, arguments: &str) {
    let command = Command::new("openssl")
        .args(arguments.split_whitespace())
        .current_dir(bench.path(""))
        .output();
    let output = command.expect("openssl is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A program that runs until it is dropped.
struct Running {
    process: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Running {
    fn start(bench: &Workbench, program: &str, arguments: &[&str]) -> Self {
        let mut process = Command::new(program)
            .args(arguments)
            .current_dir(bench.path(""))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it is installed");
        let lines = BufReader::new(process.stdout.take().expect("its output")).lines();
        Self { process, lines }
    }

    /// The next line with `word`.
    fn line_with(&mut self, word: &str) -> String {
        let mut lines = self.lines.by_ref().map(|line| line.expect("a line"));
        lines.find(|line| line.contains(word)).unwrap_or_else(|| panic!("no line with {word}"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// `tenure tls serve` with more arguments, and where it listens.
fn serve(bench: &Workbench, arguments: &[&str]) -> (Running, String) {
    let base =
        ["tls", "serve", "--listen", "127.0.0.1:0", "--cert", "leaf.pem", "--key", "leaf.key"];
    let arguments: Vec<_> = base.iter().chain(arguments).copied().collect();
    let mut server = Running::start(bench, env!("CARGO_BIN_EXE_tenure"), &arguments);
    let line = server.line_with("listening at ");
    let address = line.split_once("listening at ").expect("an address").1.to_owned();
    (server, address)
}

/// `openssl s_server` that answers requests for pages, and where it listens.
fn openssl_server(bench: &Workbench, arguments: &[&str]) -> (Running, String) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port().to_string();
    drop(listener);
    let base = ["s_server", "-accept", &port, "-cert", "leaf.pem", "-key", "leaf.key"];
    let arguments: Vec<_> = base.iter().chain(arguments).copied().collect();
    let mut server = Running::start(bench, "openssl", &arguments);
    server.line_with("ACCEPT");
    (server, format!("127.0.0.1:{port}"))
}

fn feed(bench: &Workbench, program: &str, arguments: &[&str], input: &[u8]) -> Output {
    let mut process = Command::new(program)
        .args(arguments)
        .current_dir(bench.path(""))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it is installed");
    let mut stdin = process.stdin.take().expect("its input");
    let input = input.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = process.wait_with_output().expect("it ends");
    // A program that was refused doesn't read its input.
    let _ = writer.join().expect("a writer");
    output
}

fn connect(bench: &Workbench, address: &str, arguments: &[&str], input: &[u8]) -> Output {
    let base = ["tls", "connect", address];
    let arguments: Vec<_> = base.iter().chain(arguments).copied().collect();
    feed(bench, env!("CARGO_BIN_EXE_tenure"), &arguments, input)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const REQUEST: &[u8] = b"GET / HTTP/1.0\r\n\r\n";

#[test]
fn openssl_server_is_reported_on_and_its_page_printed() {
    let bench = Workbench::new();
    certificates(&bench);
    let (_server, address) = openssl_server(&bench, &["-www", "-alpn", "http/1.1"]);
    let trust = ["--ca", "root.pem", "--keylog", "keys"];
    let arguments = [&trust[..], &["--alpn", "h2,http/1.1", "--groups", "p256,x25519"]].concat();
    let output = connect(&bench, &address, &arguments, REQUEST);
    let report = text(&output.stderr);
    assert!(output.status.success(), "{report}");
    assert!(text(&output.stdout).contains("</HTML>"), "{}", text(&output.stdout));
    for word in [
        "TLS_CHACHA20_POLY1305_SHA256",
        "secp256r1",
        "ecdsa_secp256r1_sha256",
        "http/1.1",
        "leaf, issued by root",
        "device.test 127.0.0.1",
    ] {
        assert!(report.contains(word), "{word}: {report}");
    }
    let keys = std::fs::read_to_string(bench.path("keys")).expect("a key log");
    assert_eq!(keys.lines().count(), 5, "{keys}");
    assert!(keys.contains("SERVER_TRAFFIC_SECRET_0 "), "{keys}");
}

#[test]
fn check_prints_one_object_and_ends() {
    let bench = Workbench::new();
    certificates(&bench);
    let (_server, address) = openssl_server(&bench, &["-www"]);
    let output = connect(&bench, &address, &["--ca", "root.pem", "--check", "--json"], b"");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("an object");
    assert_eq!(report["group"], "x25519");
    assert_eq!(report["certificates"][0]["subject"], "leaf");
    assert_eq!(report["certificates"][0]["names"][0], "device.test");
}

#[test]
fn refusal_names_its_rule_and_the_certificate() {
    let bench = Workbench::new();
    certificates(&bench);
    let (_server, address) = openssl_server(&bench, &["-www"]);
    for (arguments, rule) in [
        (&["--ca", "root.pem", "--sni", "other.test"][..], "it is for another name"),
        (&["--ca", "leaf.pem"], "nobody who is trusted issued it"),
        (&["--pin", "root.pem"], "its key is not one of those that are trusted"),
    ] {
        let output = connect(&bench, &address, &[arguments, &["--check"]].concat(), b"");
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.contains(rule) && error.contains("(leaf)"), "{error}");
    }
    let (_old, address) = openssl_server(&bench, &["-www", "-tls1_2"]);
    let output = connect(&bench, &address, &["--ca", "root.pem", "--check"], b"");
    let error = text(&output.stderr);
    assert!(error.contains("protocol_version"), "{error}");
}

#[test]
fn ticket_of_one_connection_resumes_the_next_and_carries_early_data() {
    let bench = Workbench::new();
    certificates(&bench);
    bench.write(&[("request", "GET / HTTP/1.0\r\n\r\n")]);
    let trust = ["--ca", "root.pem", "--resume", "ticket"];
    let (_server, address) = openssl_server(&bench, &["-rev"]);
    for resumed in ["resumed     no", "resumed     yes"] {
        let output = connect(&bench, &address, &trust, b"abc\n");
        assert_eq!(text(&output.stdout), "cba\n");
        assert!(text(&output.stderr).contains(resumed), "{}", text(&output.stderr));
    }
    std::fs::remove_file(bench.path("ticket")).expect("a ticket");
    let (_server, address) = serve(&bench, &["--early-data", "1000", "--www"]);
    let early = [&trust[..], &["--early-data", "request"]].concat();
    for (word, is_there) in [("early data  taken", false), ("early data  taken", true)] {
        let output = connect(&bench, &address, &early, b"");
        assert!(text(&output.stdout).contains("</html>"), "{}", text(&output.stderr));
        assert_eq!(text(&output.stderr).contains(word), is_there, "{}", text(&output.stderr));
    }
}

#[test]
fn early_data_goes_out_after_the_handshake_where_another_protocol_is_offered() {
    let bench = Workbench::new();
    certificates(&bench);
    bench.write(&[("request", "GET / HTTP/1.0\r\n\r\n")]);
    let (_server, address) = serve(&bench, &["--early-data", "1000", "--www", "--alpn", "aaa,bbb"]);
    let words = ["--ca", "root.pem", "--resume", "ticket", "--early-data", "request", "--alpn"];
    for (protocol, is_resumed, is_taken) in
        [("aaa", false, false), ("bbb", true, false), ("bbb", true, true)]
    {
        let output = connect(&bench, &address, &[&words[..], &[protocol]].concat(), b"");
        let report = text(&output.stderr);
        assert!(text(&output.stdout).contains("</html>"), "{report}");
        assert_eq!(report.contains("resumed     yes"), is_resumed, "{report}");
        assert_eq!(report.contains("early data  taken"), is_taken, "{report}");
    }
}

#[test]
fn root_is_trusted_for_its_key_whatever_its_version_and_signature() {
    let of_version_1 = "";
    let by_sha_1 = "-sha1 -extfile ext -extensions ca";
    for options in [of_version_1, by_sha_1] {
        let bench = Workbench::new();
        certificates_with_root(&bench, options);
        let (_server, address) = openssl_server(&bench, &["-www"]);
        let output = connect(&bench, &address, &["--ca", "root.pem", "--check"], b"");
        assert!(output.status.success(), "`{options}`: {}", text(&output.stderr));
        let output = connect_with_bundle(&bench, &address, "root.pem");
        assert!(output.status.success(), "`{options}`: {}", text(&output.stderr));
        // Its key can be pinned as well, and is another than the server's.
        let output = connect(&bench, &address, &["--pin", "root.pem", "--check"], b"");
        let error = text(&output.stderr);
        assert!(error.contains("its key is not one of those"), "`{options}`: {error}");
    }
}

/// `tenure tls connect --check` with the system's bundle of authorities set to `bundle`.
fn connect_with_bundle(bench: &Workbench, address: &str, bundle: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tenure"))
        .args(["tls", "connect", address, "--check"])
        .current_dir(bench.path(""))
        .env("SSL_CERT_FILE", bundle)
        .output()
        .expect("it runs")
}

#[test]
fn bundle_that_can_not_be_read_is_an_error_with_its_name() {
    let bench = Workbench::new();
    certificates(&bench);
    bench.write(&[("empty.pem", ""), ("text.pem", "no certificate"), ("folder/file", "")]);
    let (_server, address) = openssl_server(&bench, &["-www"]);
    assert!(connect_with_bundle(&bench, &address, "root.pem").status.success());
    for bundle in ["rooot.pem", "empty.pem", "text.pem", "folder", "leaf.key"] {
        let output = connect_with_bundle(&bench, &address, bundle);
        let error = text(&output.stderr);
        assert!(!output.status.success() && error.contains(bundle), "{bundle}: {error}");
    }
    let error = text(&connect_with_bundle(&bench, &address, "").stderr);
    assert!(error.contains("SSL_CERT_FILE"), "{error}");
}

#[test]
fn authority_of_the_bundle_that_can_not_be_used_is_named_where_one_is_missing() {
    let bench = Workbench::new();
    certificates(&bench);
    let strange = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:secp256k1 -nodes -keyout strange.key \
                   -subj /CN=strange -days 9 -out strange.pem";
    let made = feed(&bench, "openssl", &strange.split_whitespace().collect::<Vec<_>>(), b"");
    assert!(made.status.success(), "{}", text(&made.stderr));
    let read = |name| std::fs::read_to_string(bench.path(name)).expect("a certificate");
    let (strange, other, root) = (read("strange.pem"), read("other.pem"), read("root.pem"));
    bench.write(&[
        ("good.pem", &format!("{strange}{other}{root}")),
        ("bad.pem", &format!("{strange}{}", read("leaf.pem"))),
    ]);
    let (_server, address) = openssl_server(&bench, &["-www"]);
    let output = connect_with_bundle(&bench, &address, "good.pem");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let error = text(&connect_with_bundle(&bench, &address, "bad.pem").stderr);
    let reason = "bad.pem, certificate 1: its kind or length of key is not supported";
    assert!(error.contains(reason), "{error}");
    // With --ca it is refused at once.
    let output = connect(&bench, &address, &["--ca", "good.pem", "--check"], b"");
    let error = text(&output.stderr);
    assert!(error.contains("good.pem, certificate 1: its kind or length of key"), "{error}");
}

#[test]
fn ticket_is_forgotten_where_it_vouches_for_something_else() {
    let bench = Workbench::new();
    certificates(&bench);
    let (_server, address) = serve(&bench, &[]);
    let own = ["--cert", "leaf.pem", "--key", "leaf.key"];
    let first = ["--ca", "root.pem", "--sni", "device.test"];
    // The ticket comes before the echo.
    let talk = |arguments: &[&str]| {
        let arguments = [arguments, &["--resume", "ticket"]].concat();
        let output = connect(&bench, &address, &arguments, b"abc\n");
        (text(&output.stdout) == "abc\n", text(&output.stderr))
    };
    for (arguments, is_right) in [
        (&["--ca", "other.pem", "--sni", "device.test"][..], false),
        (&["--ca", "root.pem", "--ca", "other.pem", "--sni", "device.test"], true),
        (&["--pin", "root.pem", "--sni", "device.test"], false),
        (&["--pin", "leaf.pem", "--sni", "device.test"], true),
        (&["--ca", "root.pem", "--sni", "other.test"], false),
        (&["--ca", "root.pem"], true),
        (&[&first[..], &own].concat(), true),
    ] {
        // The first of each round has no ticket, although it asks for what an earlier round did.
        for resumed in ["resumed     no", "resumed     yes"] {
            let (is_echoed, report) = talk(&first);
            assert!(is_echoed && report.contains(resumed), "{arguments:?}: {report}");
        }
        let (is_echoed, report) = talk(arguments);
        assert_eq!(is_echoed, is_right, "{arguments:?}: {report}");
        assert!(!report.contains("resumed     yes"), "{arguments:?}: {report}");
    }
}

#[test]
fn what_is_piped_comes_back_from_an_echo_whole() {
    let bench = Workbench::new();
    certificates(&bench);
    let (_server, address) = serve(&bench, &[]);
    let input: Vec<u8> = (0..1_000_000_u32).map(|number| (number / 7) as u8).collect();
    let output = connect(&bench, &address, &["--ca", "root.pem"], &input);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(output.stdout == input, "{} bytes came back", output.stdout.len());
}

#[test]
fn client_that_must_prove_itself_is_refused_without_a_certificate() {
    let bench = Workbench::new();
    certificates(&bench);
    let (mut server, address) = serve(&bench, &["--client-ca", "root.pem"]);
    let trust = ["--ca", "root.pem"];
    let output = connect(&bench, &address, &trust, b"hello");
    assert!(text(&output.stderr).contains("certificate_required"), "{}", text(&output.stderr));
    server.line_with("a client certificate is required");
    let known = [&trust[..], &["--cert", "leaf.pem", "--key", "leaf.key"]].concat();
    let output = connect(&bench, &address, &known, b"hello");
    assert_eq!(text(&output.stdout), "hello", "{}", text(&output.stderr));
    server.line_with("client leaf, issued by root");
}

#[test]
fn curl_fetches_a_page_of_ours() {
    if Command::new("curl").arg("--version").output().is_err() {
        return tenure_testbed::skip_without_tool("curl");
    }
    let bench = Workbench::new();
    certificates(&bench);
    let (_server, address) = serve(&bench, &["--www"]);
    let url = format!("https://{address}/<b>");
    let curl = ["--silent", "--show-error", "--cacert", "root.pem", &url];
    let output = feed(&bench, "curl", &curl, b"");
    let page = text(&output.stdout);
    assert!(
        page.contains("TLS_CHACHA20_POLY1305_SHA256") || page.contains("TLS_AES"),
        "{output:?}"
    );
    assert!(page.contains("&lt;b&gt;") || page.contains("%3Cb%3E"), "{page}");
}

#[test]
fn openssl_client_speaks_to_our_server_and_resumes() {
    let bench = Workbench::new();
    certificates(&bench);
    let (mut server, address) = serve(&bench, &["--www"]);
    let base = ["s_client", "-connect", &address, "-CAfile", "root.pem", "-verify_return_error"];
    for (arguments, resumed) in [("-sess_out", false), ("-sess_in", true)] {
        let quiet = [&base[..], &["-ign_eof", arguments, "session"]].concat();
        let output = feed(&bench, "openssl", &quiet, REQUEST);
        let page = text(&output.stdout);
        assert!(page.contains("</html>"), "{page} {}", text(&output.stderr));
        assert_eq!(server.line_with("TLS 1.3").contains("resumed"), resumed);
    }
}

#[test]
fn ticket_comes_before_the_answer_to_a_request_that_comes_with_the_clients_last_message() {
    let bench = Workbench::new();
    certificates(&bench);
    let (_server, address) = serve(&bench, &["--www"]);
    let root = CertificateDer::from_pem_file(bench.path("root.pem")).expect("the root");
    let anchors = [Anchor::from_certificate(&root).expect("an anchor")];
    let config = ClientConfig {
        server_name: ServerName::Dns("device.test"),
        trust: Trust::Anchors { anchors: &anchors, without_date: &[] },
        suites: Suite::ALL,
        groups: &[Group::X25519],
        application_protocols: &[],
        identity: None,
        pre_shared_key: None,
        early_data: false,
        handshake_ms_max: 1_000,
    };
    let since = std::time::UNIX_EPOCH.elapsed().expect("a date after 1970");
    let now = Now { uptime_ms: 0, date: Some(UnixTime(since.as_secs() as i64)) };
    let (mut buffer, mut security) = (vec![0; 20_000], Software::new(LinuxEntropy));
    let mut client = Client::new(&mut buffer, &config, &now).expect("a client");
    let mut stream = TcpStream::connect(&address).expect("a connection");
    stream.set_read_timeout(Some(tenure_testbed::patience())).expect("a limit");
    let mut events = Vec::new();
    while !events.contains(&Event::Data) {
        let event = client.poll(&mut security, &now).expect("it goes on");
        if event == Event::Connected {
            let sent = client.send(&mut security, b"GET / HTTP/1.0\r\n\r\n").expect("room");
            assert_eq!(sent, 18);
        }
        // Where the server is waited for, all that is ready goes out at once.
        if event == Event::Idle {
            stream.write_all(client.output()).expect("it is read");
            client.sent(client.output().len());
            let length = stream.read(client.space()).expect("an answer");
            assert_ne!(length, 0, "{events:?}");
            client.received(length);
        }
        events.push(event);
    }
    assert!(events.contains(&Event::Ticket), "{events:?}");
}

#[test]
fn client_that_is_refused_in_the_middle_of_its_words_reads_why() {
    const ALERT: [u8; 7] = [21, 3, 3, 0, 2, 2, 10];
    let bench = Workbench::new();
    certificates(&bench);
    let (mut server, address) = serve(&bench, &[]);
    let mut stream = TcpStream::connect(&address).expect("a connection");
    stream.set_read_timeout(Some(tenure_testbed::patience())).expect("a limit");
    // An empty record of a handshake, and much more than the server reads at once.
    stream.write_all(&[22, 3, 3, 0, 0]).expect("it is read");
    server.line_with(&stream.local_addr().expect("an address").to_string());
    stream.write_all(&[0; 100_000]).expect("it is read");
    stream.shutdown(Shutdown::Write).expect("an end");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("the alert, and no reset");
    assert_eq!(answer, ALERT);
}

#[test]
fn server_takes_an_rsa_key_in_either_form_that_openssl_writes() {
    for form in ["", "-traditional"] {
        let bench = Workbench::new();
        certificates(&bench);
        for arguments in [
            "genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out rsa.key",
            &format!("rsa -in rsa.key {form} -out leaf.key"),
            "req -new -key leaf.key -subj /CN=leaf -out leaf.csr",
            "x509 -req -in leaf.csr -CA root.pem -CAkey root.key -CAcreateserial -days 9 \
             -extfile ext -extensions leaf -out leaf.pem",
        ] {
            run_openssl(&bench, arguments);
        }
        let (_server, address) = serve(&bench, &["--www"]);
        let trust = ["--ca", "root.pem", "--sni", "device.test"];
        let said = text(&connect(&bench, &address, &trust, REQUEST).stdout);
        assert!(said.starts_with("HTTP/1."), "{form}: {said}");
    }
}

#[test]
fn certificate_that_its_server_signed_itself_is_refused_by_an_authority_with_the_way_to_pin_it() {
    let bench = Workbench::new();
    certificates(&bench);
    // As people make one, in the place of the server's.
    run_openssl(
        &bench,
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout leaf.key -subj /CN=device.test \
         -addext subjectAltName=DNS:device.test,IP:127.0.0.1 -days 9 -out leaf.pem",
    );
    let (_server, address) = serve(&bench, &[]);
    let output = connect(&bench, &address, &["--ca", "leaf.pem", "--check"], b"");
    let error = text(&output.stderr);
    assert!(!output.status.success() && error.contains("--pin FILE"), "{error}");
    let output = connect(&bench, &address, &["--pin", "leaf.pem", "--check"], b"");
    assert!(output.status.success(), "{}", text(&output.stderr));
}
