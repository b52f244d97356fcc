//! A hub with pages, and clients over real sockets.
#![allow(dead_code, reason = "each test file uses some of it")]

mod house;
pub(crate) mod place;
pub(crate) mod watching;

use std::io::{Read as _, Write as _};
use std::mem;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};
use tenure_crypto::{Seed, SigningKey};
use tenure_directory::{enrol, seal};
use tenure_hal::simulated::socket_at;
use tenure_hub::{Accepted, Kept, ServiceCall, Storage as _, StorageError};
use tenure_hub_server::{Database, Location, Pages, Visitors, serve, sign_in_request};
use tenure_package::{Manifest, PackageBuilder, Receipt, Tariff};
use tenure_pages::Origins;
use tenure_testbed::{any_address, wait_until};
use tenure_wire::directory::{DeviceRecord, Enrolment};
use tenure_wire::hub::{Access, Answer, HubRefusal, Pass, Receipts, Scope, Taken, function};
use tenure_wire::usage::Usage;
use tenure_wire::{Address, Digest, Epoch, MachineId, PublicKey, VerifyingKey};

pub(crate) use house::{Caller, House};
use place::Place;

pub(crate) const HUB: PublicKey = PublicKey([3; 32]);
pub(crate) const SESSION: PublicKey = PublicKey([4; 32]);
/// In November 2026; passes are judged by the clock of the computer, so it is read where they matter.
pub(crate) const ENDED: u64 = 1_795_000_000;
/// How often a program asks again that is told to, and the pause before it does.
const AGAIN_MAX: usize = 100;
const AGAIN: Duration = Duration::from_millis(5);

/// The owners of the hub, numbers 1 to 5.
pub(crate) fn owner_keys() -> Vec<VerifyingKey> {
    (1..=5).map(|number| owner(number).verifying_key()).collect()
}

pub(crate) struct World {
    pub(crate) place: Place,
    pub(crate) database: Database,
    pub(crate) pages: SocketAddr,
    /// The machines that its visitors call.
    pub(crate) house: House,
    /// The devices that are listed and not committed yet.
    listed: Vec<Listed>,
}

/// A device that is listed: whose it is, its number, its name, and until when.
struct Listed(u8, u8, String, u64);

pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: String,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.headers.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.body);
        serde_json::from_str(&self.body).unwrap()
    }
}

pub(crate) fn owner(number: u8) -> SigningKey {
    SigningKey::from_bytes(&[number; 32])
}

pub(crate) fn device(number: u8) -> Seed {
    Seed::from_bytes(&[number; 32])
}

pub(crate) fn now() -> u64 {
    std::time::UNIX_EPOCH.elapsed().unwrap().as_secs()
}

impl World {
    pub(crate) fn new() -> Self {
        Self::reached(false)
    }

    /// A hub with its database there.
    pub(crate) fn at(place: Place) -> Self {
        Self::listening(place, any_address(), false, false)
    }

    /// A hub whose pages are reached by a proxy with TLS, or without one.
    pub(crate) fn reached(by_tls: bool) -> Self {
        Self::listening(Place::new(), any_address(), by_tls, false)
    }

    /// A hub for clients on many hosts, which IPv4's loopback alone has.
    pub(crate) fn for_many_hosts() -> Self {
        Self::listening(Place::new(), "127.0.0.1:0", false, false)
    }

    /// A hub that shows machines' pages to those who aren't signed in, too.
    pub(crate) fn for_guests() -> Self {
        Self::listening(Place::new(), any_address(), false, true)
    }

    fn listening(place: Place, listen: &str, by_tls: bool, are_strangers_let_in: bool) -> Self {
        // A server of databases that is busy says that it is away.
        let mut database = wait_until(|| Database::open(place.location()));
        let tariff = Tariff { currency: "EUR".into(), fuel_million: 7, ..Tariff::default() };
        let pages = Pages {
            database: place.location(),
            tariff: Some(tariff),
            is_by_tls: by_tls,
            is_by_proxy: by_tls,
            running: database.running(),
        };
        let listener = TcpListener::bind(listen).unwrap();
        let house = House::default();
        let (owners, guests) = (house.called_by(Caller::Owner), house.called_by(Caller::Guest));
        let strangers =
            are_strangers_let_in.then(|| Origins { domain: Some("hub".into()), only: None });
        let visitors =
            Visitors { owners, guests, strangers, ticket_key: Seed::from_bytes(&[9; 32]) };
        let pages = serve(listener, pages, visitors).unwrap();
        database.admit(owner_keys(), Some(format!("http://{pages}")));
        Self { place, database, pages, house, listed: Vec::new() }
    }

    /// A hub with the devices `attic` and `cellar` of owner 1, and `shed` of owner 2.
    pub(crate) fn with_fleet() -> Self {
        Self::new().and_fleet()
    }

    /// The same hub with that fleet.
    pub(crate) fn and_fleet(mut self) -> Self {
        for (whose, number, name) in [(1, 10, "attic"), (1, 11, "cellar"), (2, 12, "shed")] {
            self.list(whose, number, name);
        }
        self
    }

    pub(crate) fn list(&mut self, whose: u8, number: u8, name: &str) {
        self.list_until(whose, number, name, now() + 600);
        self.commit();
    }

    pub(crate) fn commit(&mut self) {
        let listed = mem::take(&mut self.listed);
        let mut is_again = false;
        self.keep(|world| {
            if mem::replace(&mut is_again, true) {
                // The commit fails as well, if one of them does.
                let put = |Listed(whose, number, name, until): &Listed| {
                    let _ = world.put(*whose, *number, name, *until);
                };
                listed.iter().for_each(put);
            }
        });
    }

    /// Has the database keep what `write` writes: again and again while others are in the way of it, as a hub does.
    pub(crate) fn keep<T>(&mut self, mut write: impl FnMut(&mut Self) -> T) -> T {
        loop {
            let written = write(self);
            match self.database.commit() {
                Ok(()) => return written,
                Err(error) => self.place.put_off(&error),
            }
        }
    }

    /// Lists a device; the caller commits.
    pub(crate) fn list_until(&mut self, whose: u8, number: u8, name: &str, expires_unix_s: u64) {
        if let Err(error) = self.put(whose, number, name, expires_unix_s) {
            self.place.put_off(&error);
        }
        self.listed.push(Listed(whose, number, name.into(), expires_unix_s));
    }

    /// Lists a device, or says why not; the caller commits.
    pub(crate) fn put(
        &mut self,
        whose: u8,
        number: u8,
        name: &str,
        expires_unix_s: u64,
    ) -> Result<(), StorageError> {
        let (owner, seed) = (owner(whose), device(number));
        let device_key = seed.device_signing_key().verifying_key();
        let enrolment = Enrolment { device: name.parse().unwrap(), device_key, number: 1 };
        let record = DeviceRecord {
            owner: owner.verifying_key(),
            enrolment_signature: enrol(&owner, &enrolment),
            enrolment,
            sequence: 1,
            expires_unix_s,
            epoch: Epoch([7; 8]),
            addresses: Vec::new(),
            device_machine: seed.device_secret().public_key(),
            machines: vec![("thermostat".parse().unwrap(), PublicKey([number; 32]))],
            succession: None,
        };
        let signed = seal(&seed.device_signing_key(), &record);
        let kept = Kept { record: signed, seen_at: Address::Udp(socket_at(3)) };
        let (unix_s, ends_unix_s) = (now(), record.expires_unix_s);
        let accepted = Accepted { kept: &kept, record: &record, unix_s, ends_unix_s };
        self.database.put(&accepted)
    }

    pub(crate) fn call<P: serde::Serialize, R: serde::de::DeserializeOwned>(
        &mut self,
        function: &str,
        parameter: &P,
    ) -> Answer<R> {
        self.call_at(function, parameter, now(), true)
    }

    /// As [`Self::call`] at a moment, and without a commit if it isn't `kept`.
    pub(crate) fn call_at<P: serde::Serialize, R: serde::de::DeserializeOwned>(
        &mut self,
        function: &str,
        parameter: &P,
        unix_s: u64,
        is_kept: bool,
    ) -> Answer<R> {
        let parameter = postcard::to_allocvec(parameter).unwrap();
        let (peer, hub, parameter) = (&SESSION, &HUB, parameter.as_slice());
        let call = ServiceCall { peer, hub, function, parameter, unix_s };
        if is_kept {
            return self.answer(&call);
        }
        postcard::from_bytes(&self.database.call(&call).unwrap().unwrap()).unwrap()
    }

    /// As [`Self::call`] of the holder of the key `peer` at a moment.
    pub(crate) fn call_from<P: serde::Serialize, R: serde::de::DeserializeOwned>(
        &mut self,
        peer: PublicKey,
        function: &str,
        parameter: &P,
        unix_s: u64,
    ) -> Answer<R> {
        let parameter = postcard::to_allocvec(parameter).unwrap();
        let (peer, hub, parameter) = (&peer, &HUB, parameter.as_slice());
        self.answer(&ServiceCall { peer, hub, function, parameter, unix_s })
    }

    /// The answer to a call, which is made again while the database is away.
    fn answer<R: serde::de::DeserializeOwned>(&mut self, call: &ServiceCall<'_>) -> Answer<R> {
        if !self.listed.is_empty() {
            self.commit();
        }
        loop {
            let answer = self.keep(|world| world.database.call(call).unwrap().unwrap());
            match postcard::from_bytes(&answer).unwrap() {
                Err(HubRefusal::Away) if self.place.way().is_some() => {}
                answer => return answer,
            }
        }
    }

    /// The hub dies without another word, and another one takes up its database.
    pub(crate) fn die(&mut self) {
        let elsewhere = Place::in_a_folder();
        let stand_in = Database::open(elsewhere.location()).unwrap();
        drop(mem::replace(&mut self.database, stand_in));
        self.listed.clear();
        self.database = Database::open(self.place.location()).unwrap();
        self.database.admit(owner_keys(), Some("http://hub".into()));
    }

    /// The hub's process ends; where its database is.
    pub(crate) fn leave(self) -> Place {
        drop(self.database);
        self.place
    }

    pub(crate) fn pass(&mut self, key: &SigningKey, access: Access) -> Answer<Pass> {
        let request = sign_in_request(key, HUB, SESSION, access);
        self.call(function::SIGN_IN, &request)
    }

    pub(crate) fn pass_at(&mut self, key: &SigningKey, access: Access, unix_s: u64) -> Pass {
        let request = sign_in_request(key, HUB, SESSION, access);
        let pass: Answer<Pass> = self.call_at(function::SIGN_IN, &request, unix_s, true);
        pass.unwrap()
    }

    /// A token that opens everything.
    pub(crate) fn token(&mut self, key: &SigningKey) -> String {
        self.token_for(key, Scope::ALL.to_vec())
    }

    pub(crate) fn token_for(&mut self, key: &SigningKey, scopes: Vec<Scope>) -> String {
        let pass = self.pass(key, token_access(scopes)).unwrap();
        format!("authorization: Bearer {}", pass.secret)
    }

    /// The cookie of a browser that signed in with `key`.
    pub(crate) fn cookie(&mut self, key: &SigningKey) -> String {
        let code = self.pass(key, Access::Page).unwrap().secret;
        let reply = self.get(&format!("/sign-in?code={code}"), &[]);
        assert_eq!((reply.status, reply.header("location")), (303, Some("/")));
        let cookie = reply.header("set-cookie").unwrap();
        assert!(cookie.contains("HttpOnly; SameSite=Strict"), "{cookie}");
        format!("cookie: {}", cookie.split(';').next().unwrap())
    }

    pub(crate) fn location(&self) -> Location {
        self.place.location()
    }

    pub(crate) fn is_on_a_server(&self) -> bool {
        matches!(self.place, Place::Server { .. })
    }

    /// Changes the hub's database behind its back.
    pub(crate) fn write_by_hand(&mut self, statement: &str) {
        self.place.write_by_hand(statement);
    }

    pub(crate) fn hand_in(&mut self, receipts: Vec<Vec<u8>>) -> Answer<Taken> {
        self.call(function::TAKE_RECEIPTS, &Receipts { receipts })
    }

    pub(crate) fn send(&self, request: &str) -> Reply {
        self.send_bytes(request.as_bytes())
    }

    /// The answer to a request, which is sent again while the database is away: the answer says so.
    pub(crate) fn send_bytes(&self, request: &[u8]) -> Reply {
        let mut reply = self.send_once(request);
        for _ in 0..AGAIN_MAX {
            let is_put_off = reply.status == 503 && reply.header("retry-after").is_some();
            if self.place.way().is_none() || !is_put_off {
                break;
            }
            sleep(AGAIN);
            reply = self.send_once(request);
        }
        reply
    }

    fn send_once(&self, request: &[u8]) -> Reply {
        Self::ask(self.pages, request)
    }

    /// The answer of the pages there to a request.
    pub(crate) fn ask(pages: SocketAddr, request: &[u8]) -> Reply {
        let mut stream = TcpStream::connect(pages).unwrap();
        // A server that refuses a body may close before all of it was sent.
        let _ = stream.write_all(request);
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        let (headers, body) = (&bytes[..end], &bytes[end + 4..]);
        let headers = String::from_utf8_lossy(headers).into_owned();
        let status = headers.split(' ').nth(1).unwrap().parse().unwrap();
        let mut reply = Reply { status, headers, body: String::new() };
        let body = match reply.header("transfer-encoding") {
            Some("chunked") if !body.is_empty() => chunks(body).concat(),
            _ => body.to_vec(),
        };
        reply.body = String::from_utf8_lossy(&body).into_owned();
        reply
    }

    pub(crate) fn connect(&self) -> TcpStream {
        TcpStream::connect(self.pages).unwrap()
    }

    pub(crate) fn request(&self, method: &str, path: &str, headers: &[&str], body: &str) -> Reply {
        self.request_bytes(method, path, headers, body.as_bytes())
    }

    pub(crate) fn request_bytes(
        &self,
        method: &str,
        path: &str,
        headers: &[&str],
        body: &[u8],
    ) -> Reply {
        let mut text = format!("{method} {path} HTTP/1.1\r\nhost: hub\r\nconnection: close\r\n");
        for header in headers {
            text += &format!("{header}\r\n");
        }
        text += &format!("content-length: {}\r\n\r\n", body.len());
        self.send_bytes(&[text.as_bytes(), body].concat())
    }

    pub(crate) fn get(&self, path: &str, headers: &[&str]) -> Reply {
        self.request("GET", path, headers, "")
    }
}

/// The chunks of a body up to its end, which must be there (RFC 9112 §7.1).
pub(crate) fn chunks(mut body: &[u8]) -> Vec<&[u8]> {
    let mut chunks = Vec::new();
    loop {
        let end = body.windows(2).position(|two| two == b"\r\n").expect("the body breaks off");
        let length = std::str::from_utf8(&body[..end]).unwrap();
        let length = usize::from_str_radix(length, 16).unwrap();
        if length == 0 {
            return chunks;
        }
        let (chunk, rest) = body[end + 2..].split_at(length);
        chunks.push(chunk);
        body = &rest[2..];
    }
}

/// A receipt of the machine number `machine` on the device number `from`, that follows `previous`.
pub(crate) fn receipt(
    from: u8,
    whose: u8,
    machine: u8,
    number: u64,
    previous: Digest,
    fuel: u64,
) -> Vec<u8> {
    let receipt = Receipt {
        owner: owner(whose).verifying_key(),
        tenant: owner(50).verifying_key(),
        machine: MachineId([machine; 12]),
        name: "store".parse().unwrap(),
        package: Digest([5; 32]),
        lease: 1,
        tier: 1,
        period_s: 3600,
        number,
        previous,
        began_unix_s: None,
        ended_unix_s: Some(ENDED),
        counted_ms: 3_600_000,
        usage: Usage { fuel, ..Usage::default() },
    };
    receipt.sign(&device(from).device_signing_key()).unwrap()
}

/// A token for programs that goes as far as `scopes`.
pub(crate) fn token_access(scopes: Vec<Scope>) -> Access {
    Access::Token { name: "test".parse().unwrap(), days: 1, scopes }
}

/// The digest of `bytes` as registries write it.
pub(crate) fn digest(bytes: &[u8]) -> String {
    let digest = tenure_crypto::sha256(&[bytes]);
    format!("sha256:{}", data_encoding::HEXLOWER.encode(&digest.0))
}

/// The manifest of an artifact of type `kind` whose one layer is `layer`.
pub(crate) fn manifest(kind: &str, layer: &[u8]) -> String {
    json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "artifactType": kind,
        "config": { "mediaType": "application/vnd.oci.empty.v1+json", "digest": digest(b"{}"), "size": 2 },
        "layers": [{ "mediaType": kind, "digest": digest(layer), "size": layer.len() }],
    })
    .to_string()
}

/// A package of tenant 50's in that version.
pub(crate) fn package(version: &str) -> Vec<u8> {
    let manifest = Manifest::new("thermostat".parse().unwrap(), version.parse().unwrap());
    PackageBuilder::new(manifest, vec![7; 20_000]).unwrap().sign(&owner(50)).unwrap()
}

/// Pushes a package as a program with a token does.
pub(crate) fn push(world: &World, token: &str, repository: &str, package: &[u8]) -> Reply {
    for blob in [b"{}".as_slice(), package] {
        let path = format!("/v2/{repository}/blobs/uploads/?digest={}", digest(blob));
        assert_eq!(world.request_bytes("POST", &path, &[token], blob).status, 201);
    }
    let path = format!("/v2/{repository}/manifests/{}", &digest(package)[7..27]);
    let kind = "content-type: application/vnd.oci.image.manifest.v1+json";
    world.request(
        "PUT",
        &path,
        &[token, kind],
        &manifest("application/vnd.tenure.package.v1", package),
    )
}
