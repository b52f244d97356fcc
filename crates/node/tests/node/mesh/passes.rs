//! A tenant speaks to a device that leases it a machine by way of a member, with the owner's pass.

use tenure_hal::simulated::socket_at;
use tenure_package::{Pass, PassShown, Revocations, SecretQuery};
use tenure_rpc::{CallHandle, Endpoint, Event, OutgoingCall};
use tenure_wire::control::{
    CARRIED_PASSES_MAX, Carry, Function, HELD_MS_MAX, HELD_TENANTS_MAX, SecretList, decode_answer,
};
use tenure_wire::directory::SignedRecord;
use tenure_wire::message::{List, encode};
use tenure_wire::{Address, VerifyingKey};

use super::*;

const ALL: [usize; 3] = [0, 1, 2];
/// Where the tenant is, and the member that it reaches, which is the first device.
const HERE: Address = Address::Udp(socket_at(9));
const MEMBER: Address = Address::Udp(socket_at(0));
const DAY_S: u64 = 24 * 60 * 60;

/// The tenant's tool: a session with the member, and in it one with the far device.
struct Tool {
    near: Endpoint<Address>,
    far: Endpoint<Address>,
    key: PublicKey,
    tenant: SigningKey,
    /// How long the member may hold its calls.
    wait_ms: u16,
    /// How often it had datagrams carried.
    carried: usize,
}

impl Tool {
    fn new(world: &mut World, byte: u8) -> Self {
        let secret = Seed::from_bytes(&[byte; 32]).device_secret();
        let key = secret.public_key();
        let mut endpoint = || {
            let config = tenure_rpc::Config::default();
            let mut endpoint = Endpoint::new(config, world.now, &mut world.entropy).unwrap();
            endpoint.add_machine(secret.clone()).unwrap();
            endpoint
        };
        let (near, far) = (endpoint(), endpoint());
        let tenant = SigningKey::from_bytes(&[9; 32]);
        Self { near, far, key, tenant, wait_ms: 0, carried: 0 }
    }

    /// Begins a call over one of its sessions.
    fn begin(
        endpoint: &mut Endpoint<Address>,
        (world, key): (&mut World, &PublicKey),
        (to, address): (&PublicKey, Address),
        (function, parameter): (&str, Vec<u8>),
    ) -> CallHandle {
        let deadline = world.now + Duration::from_secs(20);
        let parameter = Some(parameter);
        let call =
            OutgoingCall { function: function.to_string(), parameter, deadline, attempts: 20 };
        let own = machine_id(key);
        endpoint.call(world.now, &mut world.entropy, &own, to, address, None, call).unwrap()
    }

    /// Begins a call of the member's own machine.
    fn begin_asking(&mut self, world: &mut World, what: (&str, Vec<u8>)) -> CallHandle {
        let member = world.devices[0].device_machine();
        Self::begin(&mut self.near, (world, &self.key), (&member, MEMBER), what)
    }

    /// Sends the member what is to be sent.
    fn send(&mut self, world: &mut World) {
        self.near.poll(world.now, &mut world.entropy);
        while let Some((_, datagram)) = self.near.transmit() {
            let moment = &mut moment(world.now, &mut world.entropy);
            world.devices[0].receive(moment, HERE, &datagram);
        }
    }

    /// Calls the member's own machine.
    fn ask(&mut self, world: &mut World, function: Function, request: Vec<u8>) -> Vec<u8> {
        let handle = self.begin_asking(world, (function.name(), request));
        loop {
            self.send(world);
            world.pass(STEP, &ALL);
            for datagram in std::mem::take(&mut world.outside) {
                self.near.receive(world.now, &mut world.entropy, MEMBER, &datagram);
            }
            while let Some(event) = self.near.event() {
                if let Event::CallDone { handle: done, result, .. } = event
                    && done == handle
                {
                    return result.unwrap().unwrap();
                }
            }
        }
    }

    fn show(&mut self, world: &mut World, pass: &[u8]) -> Answer<SignedRecord> {
        let shown = PassShown { pass: pass.to_vec(), caller: self.key };
        let shown = shown.sign(&self.tenant).unwrap();
        self.show_as(world, shown)
    }

    fn show_as(&mut self, world: &mut World, shown: Vec<u8>) -> Answer<SignedRecord> {
        decode_answer(&self.ask(world, Function::mesh_pass, shown))
    }

    fn carry(
        &mut self,
        world: &mut World,
        to: usize,
        datagrams: Vec<Vec<u8>>,
    ) -> Answer<List<Vec<u8>>> {
        self.carried += 1;
        let carry = self.to_carry(world, to, datagrams);
        decode_answer(&self.ask(world, Function::mesh_carry, carry))
    }

    fn to_carry(&self, world: &World, to: usize, datagrams: Vec<Vec<u8>>) -> Vec<u8> {
        let to = world.node_of(to).to_bytes();
        encode(&Carry { tool: 7, to, datagrams, wait_ms: self.wait_ms })
    }

    /// Has a call wait at the member, and doesn't wait for its answer.
    fn wait_there(&mut self, world: &mut World) {
        let carry = self.to_carry(world, 2, Vec::new());
        self.begin_asking(world, (Function::mesh_carry.name(), carry));
        self.send(world);
        world.pass(STEP, &ALL);
    }

    /// How long the member takes for a call when nothing comes.
    fn waited(&mut self, world: &mut World) -> Duration {
        let began = world.now;
        assert_eq!(self.carry(world, 2, Vec::new()), Ok(List(Vec::new())));
        world.now.since(began)
    }

    /// Calls a machine on the far device by way of the member.
    fn call(
        &mut self,
        world: &mut World,
        to: usize,
        (machine, what): (&PublicKey, (&str, Vec<u8>)),
    ) -> Option<Vec<u8>> {
        let address = Address::Mesh(world.node_of(to).to_bytes());
        let there = (machine, address.clone());
        let handle = Self::begin(&mut self.far, (world, &self.key), there, what);
        loop {
            self.far.poll(world.now, &mut world.entropy);
            let datagrams = std::iter::from_fn(|| self.far.transmit()).map(|(_, it)| it).collect();
            let List(arrived) = self.carry(world, to, datagrams).unwrap();
            for datagram in arrived {
                self.far.receive(world.now, &mut world.entropy, address.clone(), &datagram);
            }
            while let Some(event) = self.far.event() {
                if let Event::CallDone { handle: done, result, .. } = event
                    && done == handle
                {
                    return result.unwrap();
                }
            }
        }
    }
}

impl World {
    /// Three devices, of which the last leases the tenant a machine that it alone may call, besides the owner.
    fn with_a_lease() -> (Self, Tool) {
        let mut world = Self::new(&["attic", "stairs", "cellar"]);
        let tool = Tool::new(&mut world, 21);
        world.install_for(2, "thermostat", THERMOSTAT, PeerPattern::Key(tool.key));
        world.pass(Duration::from_secs(8), &ALL);
        (world, tool)
    }

    fn node_of(&self, index: usize) -> NodeId {
        NodeId::from(&machine_id(&self.devices[index].device_machine()))
    }

    fn unix_s(&mut self) -> u64 {
        moment(self.now, &mut self.entropy).unix_time.unwrap().seconds
    }

    /// The owner's pass to the last device, for a day.
    fn pass_of(&mut self, tenant: VerifyingKey) -> Pass {
        let ends_unix_s = self.unix_s() + DAY_S;
        Pass { tenant, device: self.devices[2].device_key(), ends_unix_s }
    }
}

fn why<T: core::fmt::Debug>(answer: Answer<T>) -> String {
    match answer {
        Err(ControlError::Refused(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_tenant_with_a_pass_calls_its_machine_and_lists_its_secrets_where_only_a_neighbour_hears_it() {
    let (mut world, mut tool) = World::with_a_lease();
    let pass = world.pass_of(tool.tenant.verifying_key()).sign(&world.owner).unwrap();
    let record = tool.show(&mut world, &pass).unwrap();
    let record = tenure_directory::open_whenever(&record).unwrap();
    let cellar = (world.devices[2].device_key(), world.devices[2].device_machine());
    assert_eq!((record.enrolment.device_key, record.device_machine), cellar);
    let (_, machine) = &record.machines[0];
    let read = ("read", SECRET.as_bytes().to_vec());
    assert_eq!(tool.call(&mut world, 2, (machine, read)).unwrap(), b"21.0");
    let contains = |text: &str| {
        world.heard.iter().any(|it| it.windows(text.len()).any(|part| part == text.as_bytes()))
    };
    assert!(!contains(SECRET) && !contains("21.0"), "the members carry what they can't read");
    let query = SecretQuery { device: cellar.0, caller: tool.key }.sign(&tool.tenant).unwrap();
    let ask = (Function::secret_list.name(), query);
    let answer = tool.call(&mut world, 2, (&cellar.1, ask)).unwrap();
    assert_eq!(decode_answer::<SecretList>(&answer).unwrap().secrets, []);
    // The far device asks for the owner where it does so on its own network.
    let list = (Function::status.name(), Vec::new());
    let answer = tool.call(&mut world, 2, (&cellar.1, list)).unwrap();
    assert_eq!(decode_answer::<()>(&answer), Err(ControlError::NotOwner));
}

#[test]
fn a_pass_leads_its_tenant_to_its_device_alone() {
    let (mut world, mut tool) = World::with_a_lease();
    assert_eq!(tool.carry(&mut world, 2, Vec::new()), Err(ControlError::NotOwner), "none shown");
    let pass = world.pass_of(tool.tenant.verifying_key()).sign(&world.owner).unwrap();
    tool.show(&mut world, &pass).unwrap();
    assert_eq!(tool.carry(&mut world, 1, Vec::new()), Err(ControlError::NotOwner), "elsewhere");
    let mut another = Tool::new(&mut world, 22);
    assert_eq!(another.carry(&mut world, 2, Vec::new()), Err(ControlError::NotOwner), "another");
    let stolen = PassShown { pass: pass.clone(), caller: tool.key }.sign(&tool.tenant).unwrap();
    assert!(why(another.show_as(&mut world, stolen)).contains("who shows it"));
    another.tenant = SigningKey::from_bytes(&[10; 32]);
    assert!(why(another.show(&mut world, &pass)).contains("another tenant's"));
    let owner = another.carry(&mut world, 2, Vec::new());
    assert_eq!(owner, Err(ControlError::NotOwner));
    assert_eq!(
        tool.carry(&mut world, 2, Vec::new()),
        Ok(List(Vec::new())),
        "and the first goes on"
    );
}

#[test]
fn a_pass_that_the_owner_did_not_sign_or_that_is_over_counts_for_nothing() {
    let (mut world, mut tool) = World::with_a_lease();
    let pass = world.pass_of(tool.tenant.verifying_key());
    let owner = SigningKey::from_bytes(&world.owner.to_bytes());
    let forged = pass.sign(&tool.tenant).unwrap();
    assert!(why(tool.show(&mut world, &forged)).contains("doesn't hold this device"));
    let mut changed = pass.sign(&owner).unwrap();
    changed[45] ^= 1;
    assert!(why(tool.show(&mut world, &changed)).contains("changed or forged"));
    assert!(why(tool.show_as(&mut world, b"tenurps".to_vec())).contains("not a pass"));
    let over = Pass { ends_unix_s: world.unix_s(), ..pass.clone() }.sign(&owner).unwrap();
    assert!(why(tool.show(&mut world, &over)).contains("over"));
    let unknown = Pass { device: VerifyingKey([3; 32]), ..pass.clone() }.sign(&owner).unwrap();
    assert!(why(tool.show(&mut world, &unknown)).contains("no such device"));
    let itself = world.devices[0].device_key();
    let itself = Pass { device: itself, ..pass.clone() }.sign(&owner).unwrap();
    assert!(why(tool.show(&mut world, &itself)).contains("no such device"));
    let short = Pass { ends_unix_s: world.unix_s() + 5, ..pass }.sign(&owner).unwrap();
    tool.show(&mut world, &short).unwrap();
    tool.carry(&mut world, 2, Vec::new()).unwrap();
    world.pass(Duration::from_secs(6), &ALL);
    assert_eq!(tool.carry(&mut world, 2, Vec::new()), Err(ControlError::NotOwner), "it ended");
}

#[test]
fn a_tenant_whom_the_owner_revoked_has_nothing_carried_any_more() {
    let (mut world, mut tool) = World::with_a_lease();
    let tenant = tool.tenant.verifying_key();
    let pass = world.pass_of(tenant).sign(&world.owner).unwrap();
    tool.show(&mut world, &pass).unwrap();
    tool.carry(&mut world, 2, Vec::new()).unwrap();
    let list = Revocations { number: 1, tenants: vec![tenant], ..Revocations::default() };
    let list = list.sign(&world.owner).unwrap();
    let at = &mut moment(world.now, &mut world.entropy);
    world.devices[0].as_owner(at).revoke(&list).unwrap();
    assert_eq!(tool.carry(&mut world, 2, Vec::new()), Err(ControlError::NotOwner));
    assert!(why(tool.show(&mut world, &pass)).contains("doesn't count"));
}

#[test]
fn passes_beyond_those_that_are_remembered_forget_the_one_used_longest_ago() {
    let (mut world, _) = World::with_a_lease();
    let mut tools: Vec<Tool> =
        (0..=CARRIED_PASSES_MAX as u8).map(|byte| Tool::new(&mut world, 30 + byte)).collect();
    for (byte, tool) in tools.iter_mut().enumerate() {
        tool.tenant = SigningKey::from_bytes(&[40 + byte as u8; 32]);
        let pass = world.pass_of(tool.tenant.verifying_key()).sign(&world.owner).unwrap();
        tool.show(&mut world, &pass).unwrap();
        tool.carry(&mut world, 2, Vec::new()).unwrap();
    }
    let counts = |tool: &mut Tool| tool.carry(&mut world, 2, Vec::new()).is_ok();
    let still: Vec<bool> = tools.iter_mut().map(counts).collect();
    assert_eq!(still, [false, true, true, true, true]);
}

#[test]
fn a_member_that_does_not_know_the_time_takes_no_pass() {
    let mut world = crate::world::World::new(|_| {});
    let (mut entropy, device) = (Sequence(5), world.node.device_machine());
    let network = NetworkKey::generate(&mut entropy).unwrap();
    let invitation = invite(&world.owner(), &device, 1, &network, &mut entropy).unwrap();
    let at = &mut Moment { now: world.now, unix_time: None, entropy: &mut entropy };
    world.node.as_owner(at).join(Join { invitation }).unwrap();
    let tenant = SigningKey::from_bytes(&[9; 32]);
    let (device_key, ends_unix_s) = (VerifyingKey([2; 32]), u64::MAX);
    let pass = Pass { tenant: tenant.verifying_key(), device: device_key, ends_unix_s };
    let pass = pass.sign(&world.owner()).unwrap();
    let shown = PassShown { pass, caller: world.strangers[0].key }.sign(&tenant).unwrap();
    let answer = world.call(0, &device, Function::mesh_pass.name(), Some(&shown));
    let answer = decode_answer::<SignedRecord>(&answer.unwrap().unwrap());
    assert!(why(answer).contains("doesn't know the time"));
}

#[test]
fn a_tools_call_waits_at_the_member_until_something_comes_or_its_time_is_over() {
    let (mut world, mut tool) = World::with_a_lease();
    let pass = world.pass_of(tool.tenant.verifying_key()).sign(&world.owner).unwrap();
    let record = tool.show(&mut world, &pass).unwrap();
    let (_, machine) = tenure_directory::open_whenever(&record).unwrap().machines[0].clone();
    assert!(tool.waited(&mut world) < Duration::from_millis(100), "it didn't ask for that");
    tool.wait_ms = 1_000;
    let waited = tool.waited(&mut world);
    let about = Duration::from_millis(1_000)..Duration::from_millis(1_100);
    assert!(about.contains(&waited), "{waited:?}");
    tool.wait_ms = u16::MAX;
    let most = Duration::from_millis(HELD_MS_MAX.into());
    assert!(tool.waited(&mut world) < most + Duration::from_millis(100), "a bound of the member's");
    let (carried, began) = (tool.carried, world.now);
    let read = ("read", SECRET.as_bytes().to_vec());
    assert_eq!(tool.call(&mut world, 2, (&machine, read)).unwrap(), b"21.0");
    assert!(world.now.since(began) < most, "what came was passed on when it came");
    assert!(tool.carried - carried <= 4, "{} calls", tool.carried - carried);
}

#[test]
fn a_member_holds_no_more_calls_than_it_has_places_for_and_answers_others_at_once() {
    let (mut world, _) = World::with_a_lease();
    let mut tools: Vec<Tool> =
        (0..=HELD_TENANTS_MAX as u8).map(|byte| Tool::new(&mut world, 30 + byte)).collect();
    for (byte, tool) in tools.iter_mut().enumerate() {
        tool.tenant = SigningKey::from_bytes(&[40 + byte as u8; 32]);
        tool.wait_ms = 3_000;
        let pass = world.pass_of(tool.tenant.verifying_key()).sign(&world.owner).unwrap();
        tool.show(&mut world, &pass).unwrap();
    }
    let mut last = tools.pop().unwrap();
    tools.iter_mut().for_each(|tool| tool.wait_there(&mut world));
    assert!(last.waited(&mut world) < Duration::from_millis(100));
    world.pass(Duration::from_secs(3), &ALL);
    assert!(last.waited(&mut world) >= Duration::from_secs(3), "there is room again");
}
