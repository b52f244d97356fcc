//! A simulated device: keys, an endpoint and a socket of its own, and what devices ask of their hub.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant as Stopwatch};

use tenure_crypto::{Seed, SigningKey, machine_id, sha256};
use tenure_directory::{enrol, seal};
use tenure_hal::Instant;
use tenure_hal::simulated::Random;
use tenure_package::Receipt;
use tenure_rpc::{Endpoint, Event, NoResult, OutgoingCall};
use tenure_wire::directory::{
    DeviceRecord, Enrolment, Registered, Stay, Touch, Touched, function as directory,
};
use tenure_wire::hub::{Answer, Receipts, Taken, function};
use tenure_wire::report::Reported;
use tenure_wire::rollout::{Work, WorkQuery};
use tenure_wire::usage::Usage;
use tenure_wire::{Address, Digest, MachineId, PublicKey};
use tokio::net::UdpSocket;
use tokio::time::timeout;

use super::HubAt;
use super::both::{MACHINES, owner, report, seed, unix_s};

/// The life of a record, in seconds, and that of one whose device touches.
const RECORD_S: u64 = 60;
const STAYS_S: u64 = 22 * 60 * 60;
/// How long an answer may take, and how often is asked for it.
const ANSWER: Duration = Duration::from_secs(30);
const ATTEMPTS: u8 = 12;
/// How soon one asks again that was refused without a time.
const AGAIN: Duration = Duration::from_secs(2);

/// Something that a device asks of its hub; it registers by a touch where the hub takes those and has its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    Register,
    Report,
    AskForAStep,
    HandInAReceipt,
}

impl Deed {
    pub(crate) const ALL: [Self; 4] =
        [Self::Register, Self::Report, Self::AskForAStep, Self::HandInAReceipt];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Register => "a record or a touch",
            Self::Report => "a report",
            Self::AskForAStep => "a question for a step",
            Self::HandInAReceipt => "a receipt",
        }
    }

    /// How often a device does so: as `tenure_node` does, and a receipt each quarter of an hour.
    pub(crate) fn every(self) -> Duration {
        Duration::from_secs(match self {
            Self::Register => RECORD_S / 3,
            Self::Report | Self::AskForAStep => 60,
            Self::HandInAReceipt => 15 * 60,
        })
    }
}

/// Why a device isn't through with something, and when it tries again.
pub(crate) struct Refused {
    pub(crate) reason: String,
    pub(crate) again_in: Duration,
}

impl Refused {
    fn because(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), again_in: AGAIN }
    }
}

pub(crate) struct Device {
    hub: HubAt,
    seed: Seed,
    own: MachineId,
    endpoint: Endpoint<Address>,
    entropy: Random,
    socket: UdpSocket,
    began: Stopwatch,
    record: DeviceRecord,
    /// Whether the hub said that it takes touches, and whether it has a record for that.
    is_offered: bool,
    stays: bool,
    reports: u64,
    receipts: u64,
    previous: Digest,
    datagram: Vec<u8>,
}

impl Device {
    pub(crate) fn new(index: u32, hub: HubAt) -> Result<Self, String> {
        let seed = seed(index);
        let began = Stopwatch::now();
        let mut entropy = Random::new(u64::from(index));
        let config = tenure_rpc::Config::default();
        let endpoint = Endpoint::new(config, Instant::BOOT, &mut entropy);
        let mut endpoint = endpoint.map_err(|_| "an endpoint")?;
        let own = endpoint.add_machine(seed.device_secret()).map_err(|_| "a machine")?;
        let socket = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0));
        let socket = socket.and_then(|socket| {
            socket.connect(hub.address)?;
            socket.set_nonblocking(true)?;
            UdpSocket::from_std(socket)
        });
        let socket = socket.map_err(|error| format!("a socket: {error}"))?;
        let record = record(index, &seed)?;
        Ok(Self {
            hub,
            seed,
            own,
            endpoint,
            entropy,
            socket,
            began,
            record,
            is_offered: false,
            stays: false,
            reports: 0,
            receipts: 0,
            previous: Digest([0; 32]),
            datagram: vec![0; 2_048],
        })
    }

    /// Asks for that once.
    pub(crate) async fn ask(&mut self, deed: Deed) -> Result<(), Refused> {
        match deed {
            // The session may be lost: a record follows.
            Deed::Register if std::mem::take(&mut self.stays) => {
                let touch = Touch { sequence: self.record.sequence };
                let touched: Touched = self.call(directory::TOUCH, &touch).await?;
                self.stays = touched.counts;
                if self.stays { Ok(()) } else { self.register().await }
            }
            Deed::Register => self.register().await,
            Deed::Report => {
                self.reports += 1;
                let report = report(self.reports);
                let answer: Answer<Reported> = self.call(function::REPORT, &report).await?;
                answer.map(drop).map_err(|refusal| Refused::because(refusal.to_string()))
            }
            Deed::AskForAStep => {
                let query = WorkQuery { seen: None, labels: None };
                let answer: Answer<Work> = self.call(function::WORK, &query).await?;
                answer.map(drop).map_err(|refusal| Refused::because(refusal.to_string()))
            }
            Deed::HandInAReceipt => {
                let bytes = self.receipt()?;
                let digest = sha256(&[&bytes]);
                let receipts = Receipts { receipts: vec![bytes] };
                let answer: Answer<Taken> = self.call(function::TAKE_RECEIPTS, &receipts).await?;
                answer.map_err(|refusal| Refused::because(refusal.to_string()))?;
                self.previous = digest;
                self.receipts += 1;
                Ok(())
            }
        }
    }

    async fn register(&mut self) -> Result<(), Refused> {
        let lasts_s = if self.is_offered { STAYS_S } else { RECORD_S };
        self.record.sequence += 1;
        self.record.expires_unix_s = unix_s() + lasts_s;
        self.record.epoch = self.endpoint.epoch();
        let record = seal(&self.seed.device_signing_key(), &self.record);
        let registered: Registered = match self.is_offered {
            true => {
                let stay = Stay { record, life_s: RECORD_S as u32 };
                self.call(directory::STAY, &stay).await?
            }
            false => self.call(directory::REGISTER, &record).await?,
        };
        if let Some(refusal) = registered.refusal {
            return Err(Refused::because(refusal.to_string()));
        }
        self.stays = self.is_offered;
        self.is_offered = registered.takes_touches;
        Ok(())
    }

    /// Rests for that time, and hears what comes meanwhile.
    pub(crate) async fn rest(&mut self, time: Duration) {
        let until = Stopwatch::now() + time;
        loop {
            self.send();
            let left = until.saturating_duration_since(Stopwatch::now());
            if left.is_zero() {
                return;
            }
            self.hear_within(left).await;
            while self.endpoint.event().is_some() {}
        }
    }

    async fn call<T: serde::de::DeserializeOwned>(
        &mut self,
        function: &str,
        parameter: &impl serde::Serialize,
    ) -> Result<T, Refused> {
        let parameter = postcard::to_allocvec(parameter);
        let parameter = parameter.map_err(|error| Refused::because(error.to_string()))?;
        let now = self.now();
        let call = OutgoingCall {
            function: function.into(),
            parameter: Some(parameter),
            deadline: now + ANSWER,
            attempts: ATTEMPTS,
        };
        let Self { endpoint, entropy, own, hub, .. } = self;
        let to = Address::Udp(hub.address);
        let called = endpoint.call(now, entropy, own, &hub.key, to, None, call);
        let asked = called.map_err(|_| Refused::because("no room for a call"))?;
        loop {
            self.send();
            while let Some(event) = self.endpoint.event() {
                let Event::CallDone { handle, result, .. } = event else { continue };
                if handle != asked {
                    continue;
                }
                return match result {
                    Ok(answer) => postcard::from_bytes(&answer.unwrap_or_default())
                        .map_err(|error| Refused::because(error.to_string())),
                    Err(NoResult::Deferred { again_in }) => {
                        Err(Refused { reason: "told to come again".into(), again_in })
                    }
                    Err(error) => Err(Refused::because(format!("{error:?}"))),
                };
            }
            self.hear_within(ANSWER).await;
        }
    }

    fn now(&self) -> Instant {
        Instant::from_micros(self.began.elapsed().as_micros() as u64)
    }

    fn send(&mut self) {
        let now = self.now();
        self.endpoint.poll(now, &mut self.entropy);
        while let Some((_, datagram)) = self.endpoint.transmit() {
            // One that isn't sent is lost, as on a network, and sent again.
            let _ = self.socket.try_send(&datagram);
        }
    }

    /// Takes the next datagram, if one comes before something else is due.
    async fn hear_within(&mut self, time: Duration) {
        let due = self.endpoint.poll_at().map(|at| at.since(self.now()));
        // Tokio's timers are by whole milliseconds.
        let wait = due.map_or(time, |due| due.min(time)).max(Duration::from_millis(1));
        if let Ok(Ok(length)) = timeout(wait, self.socket.recv(&mut self.datagram)).await {
            let (now, from) = (self.now(), Address::Udp(self.hub.address));
            let Self { endpoint, entropy, datagram, .. } = self;
            endpoint.receive(now, entropy, from, &datagram[..length]);
        }
    }

    fn receipt(&self) -> Result<Vec<u8>, Refused> {
        let receipt = Receipt {
            owner: owner().verifying_key(),
            tenant: SigningKey::from_bytes(&[50; 32]).verifying_key(),
            machine: machine_id(&self.record.machines[0].1),
            name: self.record.machines[0].0.clone(),
            package: Digest([5; 32]),
            lease: 1,
            tier: 1,
            period_s: 900,
            number: self.receipts,
            previous: self.previous,
            began_unix_s: None,
            ended_unix_s: Some(unix_s()),
            counted_ms: 900_000,
            usage: Usage { fuel: 1_300, ..Usage::default() },
        };
        let signed = receipt.sign(&self.seed.device_signing_key());
        signed.map_err(|_| Refused::because("it can't be signed"))
    }
}

fn record(index: u32, seed: &Seed) -> Result<DeviceRecord, String> {
    let owner = owner();
    let device = format!("device-{index}").parse().map_err(|_| "a name")?;
    let device_key = seed.device_signing_key().verifying_key();
    let enrolment = Enrolment { device, device_key, number: 1 };
    let machine = |(number, name): (usize, &&str)| {
        let mut key = [7; 32];
        key[..4].copy_from_slice(&index.to_le_bytes());
        key[4] = number as u8;
        Some((name.parse().ok()?, PublicKey(key)))
    };
    Ok(DeviceRecord {
        owner: owner.verifying_key(),
        enrolment_signature: enrol(&owner, &enrolment),
        enrolment,
        sequence: unix_s(),
        expires_unix_s: 0,
        epoch: tenure_wire::Epoch([0; 8]),
        addresses: Vec::new(),
        device_machine: seed.device_secret().public_key(),
        machines: MACHINES.iter().enumerate().filter_map(machine).collect(),
        succession: None,
    })
}

/// The address that an event of a hub's names.
pub(crate) fn hub_at(address: &str, key: &str) -> Result<HubAt, String> {
    let address: SocketAddr = address.parse().map_err(|_| format!("no address: {address}"))?;
    let key = key.parse().map_err(|_| format!("no key: {key}"))?;
    Ok(HubAt { address, key })
}
