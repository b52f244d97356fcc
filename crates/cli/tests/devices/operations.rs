//! Hubs as operators run them: by the files of `deploy`, behind a proxy, with an upgrade under way.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use tenure_testbed::{Cluster, find_server, skip_without_tool, wait_until};

use crate::harness::{Process, User, any_address, free_ipv4_address, signal};
use crate::hub::{get, make_certificate};

/// The processes of a hub behind a proxy.
const HUBS: usize = 3;

/// A blob of zeros about as long as the longest package, and its digest.
const LONG_BYTES: usize = 2 << 20;
const LONG_DIGEST: &str = "sha256:5647f05ec18958947d32874eeb788fa396a05d0bab7c1b71f112ceb7e9b31eee";

/// A proxy with its file of `deploy`, in the folder of a user; ends with this.
struct Proxy {
    child: Child,
    /// Who vouches for its certificate: a file in that folder.
    authority: &'static str,
}

impl Proxy {
    /// Starts nginx at `address`, before these processes of a hub.
    fn nginx(program: &Path, user: &User, address: &str, hubs: &[String; HUBS]) -> Self {
        make_certificate(user, address.split(':').next().unwrap());
        let mut text = std::fs::read_to_string(own("nginx/tenure-hub.conf")).unwrap();
        let live = "/etc/letsencrypt/live/hub.example";
        for (from, to) in [
            ("127.0.0.1:7381", hubs[0].as_str()),
            ("127.0.0.1:7382", &hubs[1]),
            ("127.0.0.1:7383", &hubs[2]),
            ("listen 443 ssl", &format!("listen {address} ssl")),
            (&format!("{live}/fullchain.pem"), "hub.pem"),
            (&format!("{live}/privkey.pem"), "hub.key"),
        ] {
            assert_eq!(text.matches(from).count(), 1, "{from}");
            text = text.replace(from, to);
        }
        std::fs::write(user.path("tenure-hub.conf"), text).unwrap();
        // What a system's own nginx.conf has around it, in this folder.
        let around = "daemon off; master_process off; pid nginx.pid; error_log stderr; events {}\n\
             http { client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4; \
             scgi_temp_path t5; access_log off; include tenure-hub.conf; }\n";
        std::fs::write(user.path("nginx.conf"), around).unwrap();
        let mut nginx = Command::new(program);
        nginx.arg("-p").arg(user.path("")).args(["-e", "stderr", "-c", "nginx.conf"]);
        Self::start(nginx, user, "hub.pem")
    }

    /// Starts Caddy, which makes a certificate for an address itself.
    fn caddy(program: &Path, user: &User, address: &str, hubs: &[String; HUBS]) -> Self {
        let (host, _) = address.split_once(':').unwrap();
        // Beside this, nothing outside the folder is touched, and no other address listened to.
        let around = format!(
            "{{\n\tadmin off\n\tauto_https disable_redirects\n\tdefault_bind {host}\n\tskip_install_trust\n}}\n\
             import {}\n",
            own("caddy/Caddyfile").display()
        );
        std::fs::write(user.path("Caddyfile"), around).unwrap();
        let mut caddy = Command::new(program);
        caddy.args(["run", "--adapter", "caddyfile", "--config", "Caddyfile"]);
        for name in ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"] {
            caddy.env(name, user.path(""));
        }
        caddy.env("TENURE_SITE", format!("https://{address}")).env("TENURE_HUBS", hubs.join(" "));
        Self::start(caddy, user, "caddy/pki/authorities/local/root.crt")
    }

    fn start(mut command: Command, user: &User, authority: &'static str) -> Self {
        let command =
            command.current_dir(user.path("")).stdout(Stdio::null()).stderr(Stdio::null());
        Self { child: command.spawn().unwrap(), authority }
    }

    /// What `curl` prints of an answer by way of the proxy.
    fn curl(&self, user: &User, words: &[&str]) -> Result<String, String> {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--fail", "--cacert", self.authority]).args(words);
        let output = curl.current_dir(user.path("")).output().expect("curl is installed");
        match output.status.success() {
            true => Ok(String::from_utf8(output.stdout).unwrap()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A file of `deploy`.
fn own(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(name)
}

/// A process of the hub in `database`, whose pages are at `pages` behind the proxy at `proxy`.
fn hub(user: &User, database: &str, pages: &str, proxy: &str) -> Process {
    let mut command = user.command(&["hub", "--owner", "own", "--listen", any_address(), "--json"]);
    command.args(["--pages", pages, "--pages-url", &format!("https://{proxy}")]);
    command.env("TENURE_DATABASE", database);
    let hub = Process::start(command);
    let health = ["hub", "health", pages];
    assert_eq!(user.ok(&health), "alive\n");
    assert_eq!(user.ok_once_there(&[&health[..], &["--ready"]].concat()), "ready\n");
    hub
}

#[test]
fn hubs_behind_nginx_are_replaced_one_after_the_other_and_no_page_is_missed() {
    let Some(program) = find_server("nginx") else {
        return skip_without_tool("nginx (Debian: nginx-light)");
    };
    check_replacing(|user, address, hubs| Proxy::nginx(&program, user, address, hubs));
}

#[test]
fn hubs_behind_caddy_are_replaced_one_after_the_other_and_no_page_is_missed() {
    let Some(program) = find_server("caddy") else { return skip_without_tool("caddy") };
    check_replacing(|user, address, hubs| Proxy::caddy(&program, user, address, hubs));
}

/// Signs in by a proxy before a hub, and looks at pages all the time while each process of the hub is replaced.
fn check_replacing(proxy: impl FnOnce(&User, &str, &[String; HUBS]) -> Proxy) {
    let Some(cluster) = Cluster::start() else { return };
    if Command::new("curl").arg("--version").output().is_err() {
        return skip_without_tool("curl");
    }
    let user = User::new();
    let database = cluster.address(&cluster.database());
    let (address, pages) = (free_ipv4_address(), [(); HUBS].map(|()| free_ipv4_address()));
    let start = |number: usize| hub(&user, &database, &pages[number], &address);
    let mut hubs = [0, 1, 2].map(|number| Some(start(number)));
    let proxy = proxy(&user, &address, &pages);
    let curl = |words: &[&str]| proxy.curl(&user, words);
    wait_until(|| curl(&[&format!("https://{address}/health")]));

    // Whoever signed in by one process is signed in at the others.
    let login = ["login", "--hub", &hubs[0].as_ref().unwrap().address];
    let signed_in = user.json(&login);
    let url = signed_in["url"].as_str().unwrap();
    assert_eq!(url, format!("https://{address}"));
    let opened = ["--include", "--cookie-jar", "cookies", "--header", "X-Request-Id: a-stranger"];
    let answer = curl(&[&opened[..], &[signed_in["address"].as_str().unwrap()]].concat()).unwrap();
    assert!(answer.contains("; Secure; HttpOnly;"), "{answer}");
    let id = answer.lines().find_map(|line| line.strip_prefix("x-request-id: ")).unwrap().trim();
    assert!(id.len() >= 32, "the proxy's own: {answer}");
    let devices = || curl(&["--cookie", "cookies", &format!("{url}/devices")]);
    // What is as long as a package goes through whole.
    std::fs::write(user.path("long"), vec![0; LONG_BYTES]).unwrap();
    let token = user.json(&[&login[..], &["--token", "ci", "--scope", "packages"]].concat());
    let pass = format!("ci:{}", token["token"].as_str().unwrap());
    let path = format!("{url}/v2/house/long/blobs/uploads/?digest={LONG_DIGEST}");
    let kind = "Content-Type: application/octet-stream";
    let push = ["--user", &pass, "--header", kind, "--data-binary", "@long", &path];
    let said = ["--output", "/dev/null", "--write-out", "%{http_code}"];
    assert_eq!(curl(&[&push[..], &said].concat()).unwrap(), "201");

    // A proxy that has seen a process gone passes it over for a while.
    let watch = user.json(&[&login[..], &["--token", "watch", "--scope", "read"]].concat());
    let bearer = format!("Authorization: Bearer {}", watch["token"].as_str().unwrap());
    let is_asked = |number: usize| {
        let figures = get(&format!("http://{}", pages[number]), "/metrics", &bearer);
        if figures.contains("route=\"/devices\"") { Ok(()) } else { Err(figures) }
    };
    let (is_over, seen) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| {
        let looking = scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let page = devices()?;
                if !page.contains("<h1>Devices</h1>") {
                    return Err(page);
                }
                seen.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        });
        let some_more = || {
            let before = seen.load(Ordering::Relaxed);
            wait_until(|| match seen.load(Ordering::Relaxed) {
                now if now >= before + 5 || looking.is_finished() => Ok(()),
                now => Err(format!("{} pages were seen", now - before)),
            });
        };
        for (number, hub) in hubs.iter_mut().enumerate() {
            some_more();
            let old = hub.take().unwrap();
            signal("TERM", old.id());
            assert!(old.wait().success());
            some_more();
            *hub = Some(start(number));
            wait_until(|| if looking.is_finished() { Ok(()) } else { is_asked(number) });
        }
        some_more();
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(looking.join().unwrap(), Ok(()));
    });
}

#[test]
fn process_of_a_hub_goes_on_on_a_database_that_a_newer_one_brought_forward() {
    let Some(cluster) = Cluster::start() else { return };
    let (user, name) = (User::new(), cluster.database());
    let database = cluster.address(&name);
    let command = |user: &User| {
        let mut command = user.command(&["hub", "--owner", "own", "--listen", any_address()]);
        command.args(["--json", "--pages", any_address()]).env("TENURE_DATABASE", &database);
        command
    };
    let mut old = Process::start(command(&user));
    let _early = user.device("early", Some(&old));
    old.wait_until_listed("early", 0);
    // As a version does whose step adds a table and a column.
    let step = "BEGIN; CREATE TABLE later (id BIGINT PRIMARY KEY); ALTER TABLE devices ADD COLUMN later BIGINT; \
         INSERT INTO refinery_schema_history SELECT max(version) + 1, 'later', max(applied_on), '0' FROM \
         refinery_schema_history; COMMIT";
    cluster.sql(&name, step);
    let _late = user.device("late", Some(&old));
    old.wait_until_listed("late", 0);
    user.ok(&["login", "--hub", &old.address]);
    assert_eq!(cluster.sql(&name, "SELECT count(*) FROM devices").trim(), "2");
    // It doesn't start again.
    let refused = crate::harness::finish(command(&user));
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && error.contains("newer"), "{error}");
}

#[test]
fn hub_that_lives_and_cannot_serve_says_so_and_one_that_is_gone_says_nothing() {
    let Some(mut cluster) = Cluster::start() else { return };
    let user = User::new();
    let database = cluster.address(&cluster.database());
    let pages = free_ipv4_address();
    let hub = hub(&user, &database, &pages, "hub.example");
    cluster.kill();
    assert_eq!(user.ok(&["hub", "health", &pages]), "alive\n");
    let unready = user.error(&["hub", "health", &pages, "--ready"]);
    assert_eq!(unready, "the hub can't serve: the hub's database can't be read");
    hub.kill();
    let gone = user.error(&["hub", "health", &pages]);
    assert!(gone.starts_with(&format!("no hub answers at {pages}: ")), "{gone}");
}
