//! Chromium without a window, by the WebDriver protocol of its chromedriver. Tests of `crates/cli` use it as well.
//!
//! The protocol is JSON over HTTP on this computer, so a client of one page does; the kept ones bring a runtime and
//! fifty crates along.

#![allow(dead_code, reason = "each crate uses some of it")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use data_encoding::BASE64;
use serde_json::{Value, json};
use tenure_testbed::wait_until;

/// The name of an element in the protocol (W3C WebDriver §12.1).
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// Whether there is a browser; if there is none, the test counts as skipped.
pub(crate) fn has_browser() -> bool {
    let has = |tool: &str| Command::new(tool).arg("--version").output().is_ok();
    let missing = ["chromium", "chromedriver"].into_iter().find(|tool| !has(tool));
    missing.into_iter().for_each(tenure_testbed::skip_without_tool);
    missing.is_none()
}

/// A browser with one page.
pub(crate) struct Browser {
    driver: Child,
    port: u16,
    session: String,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// Starts one that has never been anywhere.
    pub(crate) fn start() -> Self {
        // A port that another driver took meanwhile ends it.
        let (driver, port) = wait_until(|| driver().ok_or("chromedriver ends and names no port"));
        let profile = tempfile::tempdir().unwrap();
        let folder = format!("--user-data-dir={}", profile.path().display());
        let arguments = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--window-size=1280,900",
            &folder,
        ];
        let mut browser = Self { driver, port, session: String::new(), _profile: profile };
        let capabilities = json!({ "capabilities": { "alwaysMatch": {
            "browserName": "chrome",
            "goog:chromeOptions": { "args": arguments },
            "goog:loggingPrefs": { "browser": "ALL", "performance": "ALL" },
        } } });
        let started = browser.send("POST", "/session", &capabilities);
        browser.session = started["sessionId"].as_str().unwrap().into();
        browser
    }

    pub(crate) fn go(&self, url: &str) {
        self.post("url", &json!({ "url": url }));
    }

    pub(crate) fn url(&self) -> String {
        self.send("GET", &self.path("url"), &Value::Null).as_str().unwrap().into()
    }

    /// Runs a script on the page; returns its value.
    pub(crate) fn execute(&self, script: &str) -> Value {
        self.post("execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// As [`Self::execute`] of a script that calls its last argument when it is done.
    pub(crate) fn execute_async(&self, script: &str) -> Value {
        self.post("execute/async", &json!({ "script": script, "args": [] }))
    }

    /// The text that one sees.
    pub(crate) fn text(&self) -> String {
        self.execute("return document.body.innerText").as_str().unwrap_or_default().into()
    }

    /// The text in the first frame of the page, whoever's it is.
    pub(crate) fn text_of_frame(&self) -> String {
        self.post("frame", &json!({ "id": 0 }));
        let text = self.text();
        self.post("frame", &json!({ "id": null }));
        text
    }

    /// Waits until the page shows that text, without a hand of ours.
    pub(crate) fn wait_for(&self, text: &str) {
        wait_until(|| {
            let shown = self.text();
            match shown.contains(text) {
                true => Ok(()),
                false => Err(format!("no `{text}` on {}:\n{shown}", self.url())),
            }
        });
    }

    /// Clicks the button or link with that text.
    pub(crate) fn click(&self, text: &str) {
        let find = json!({ "using": "xpath", "value": format!("//*[self::a or self::button][normalize-space()='{text}']") });
        let found = self.post("element", &find);
        let id = found[ELEMENT].as_str().unwrap();
        self.post(&format!("element/{id}/click"), &json!({}));
    }

    /// Presses keys, one after the other.
    pub(crate) fn press(&self, keys: &[&str]) {
        let key = |key: &&str| {
            [json!({ "type": "keyDown", "value": key }), json!({ "type": "keyUp", "value": key })]
        };
        let actions: Vec<Value> = keys.iter().flat_map(key).collect();
        self.post(
            "actions",
            &json!({ "actions": [{ "type": "key", "id": "keys", "actions": actions }] }),
        );
    }

    pub(crate) fn resize(&self, width: u32, height: u32) {
        // Windows have a least width, screens of phones haven't.
        let metrics =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.command("Emulation.setDeviceMetricsOverride", &metrics);
    }

    pub(crate) fn prefer(&self, scheme: &str) {
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.command("Emulation.setEmulatedMedia", &features);
    }

    /// The page as a picture in PNG.
    pub(crate) fn picture(&self) -> Vec<u8> {
        let taken = self.send("GET", &self.path("screenshot"), &Value::Null);
        BASE64.decode(taken.as_str().unwrap().as_bytes()).unwrap()
    }

    /// The lines on the console since the last time.
    pub(crate) fn console(&self) -> Vec<String> {
        let lines = self.post("se/log", &json!({ "type": "browser" }));
        lines.as_array().unwrap().iter().map(|line| line["message"].to_string()).collect()
    }

    /// The addresses that the browser asked for since the last time.
    pub(crate) fn requests(&self) -> Vec<String> {
        let lines = self.post("se/log", &json!({ "type": "performance" }));
        let url = |line: &Value| {
            let event: Value = serde_json::from_str(line["message"].as_str()?).ok()?;
            let event = &event["message"];
            (event["method"] == "Network.requestWillBeSent")
                .then(|| event["params"]["request"]["url"].as_str().unwrap().to_string())
        };
        lines.as_array().unwrap().iter().filter_map(url).collect()
    }

    fn command(&self, name: &str, parameters: &Value) {
        self.post("goog/cdp/execute", &json!({ "cmd": name, "params": parameters }));
    }

    fn path(&self, rest: &str) -> String {
        format!("/session/{}/{rest}", self.session)
    }

    fn post(&self, rest: &str, body: &Value) -> Value {
        self.send("POST", &self.path(rest), body)
    }

    /// The value of an answer; an error ends the test.
    fn send(&self, method: &str, path: &str, body: &Value) -> Value {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1:{}\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n",
            self.port,
            body.len()
        );
        stream.write_all((head + &body).as_bytes()).unwrap();
        let mut reader = BufReader::new(stream);
        let (mut status, mut length) = (String::new(), 0);
        reader.read_line(&mut status).unwrap();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            let Some((name, value)) = line.split_once(':') else { break };
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().unwrap();
            }
        }
        let mut answer = vec![0; length];
        reader.read_exact(&mut answer).unwrap();
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        assert!(
            status.contains(" 200 "),
            "{method} {path}: {status}{}",
            answer["value"]["message"]
        );
        answer["value"].clone()
    }
}

/// Starts a driver, and returns it with the port that it listens on, unless it ended before.
fn driver() -> Option<(Child, u16)> {
    let mut driver = Command::new("chromedriver")
        .args(["--port=0", "--log-level=SEVERE"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
    let port = lines.find_map(|line| {
        let line = line.unwrap();
        line.split_once("successfully on port ")?.1.trim_end_matches('.').parse().ok()
    });
    if port.is_none() {
        driver.wait().unwrap();
    }
    Some((driver, port?))
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() && !std::thread::panicking() {
            self.send("DELETE", &format!("/session/{}", self.session), &Value::Null);
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
