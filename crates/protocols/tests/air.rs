//! The budget of air under storms: whatever makes protocols talk, control traffic keeps to its part and hellos are heard.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tenure_hal::Instant;
use tenure_mesh::{
    Account, Air, Context, Declared as _, Expires, Handles, NodeId, Protocol, Reception, Stack,
    decode, encode,
};
use tenure_protocols::babel::table::Seqno;
use tenure_protocols::babel::{self, Babel, Missing, Search, Want};
use tenure_protocols::testing::{Network, id};

const HELLO: u8 = 1;
const RUN: Duration = Duration::from_secs(40);
/// How long the member that asks pauses.
const PAUSE: Duration = Duration::from_millis(20);

#[derive(Serialize, Deserialize)]
struct Tick;

/// Says ever new things, as often as it can, in eight kinds of message.
struct Chatter;

macro_rules! kinds {
    ($($name:ident = $kind:literal),*) => {
        $(
            #[derive(Serialize, Deserialize)]
            struct $name {
                body: [u64; 20],
            }

            impl Handles<$name> for Chatter {
                fn handle(&mut self, _: $name, _: Reception<'_>, _: &mut Context<'_, Self>) {}
            }
        )*

        tenure_mesh::protocol! {
            Chatter = 140, "chatter";
            messages { $($name = $kind),* }
            timers { Tick = 1 }
        }

        impl Expires<Tick> for Chatter {
            fn expire(&mut self, _: Tick, context: &mut Context<'_, Self>) {
                $(context.broadcast(&$name { body: [u64::MAX; 20] });)*
            }
        }
    };
}

kinds!(A = 1, B = 2, C = 3, D = 4, E = 5, F = 6, G = 7, H = 8);

impl Protocol for Chatter {
    fn start(&mut self, context: &mut Context<'_, Self>) {
        context.every(Duration::from_millis(4), &Tick);
    }
}

/// Babel's message of the type `M`, of which a member that turned bad can say anything.
fn forged<M: DeserializeOwned>(fields: &impl Serialize) -> M {
    let mut bytes = Vec::new();
    encode(fields, &mut bytes);
    decode(&bytes).expect("these are its fields").0
}

/// Makes the others speak: asks for what nobody has, and for everything.
fn ask(number: u32, context: &mut Context<'_, Babel>) {
    const HOPS: u8 = 64;
    context.broadcast(&forged::<Missing>(&(0_u32, u32::MAX)));
    let nobody = NodeId::from_number(u64::from(number) + 1_000);
    let newest = Seqno { boot: 1, number };
    context.broadcast(&forged::<Search>(&(nobody, newest, HOPS)));
    // A number that the other would have to make.
    for other in (1..5).map(id) {
        context.broadcast(&forged::<Want>(&(other, newest, HOPS)));
        context.broadcast(&forged::<Search>(&(other, newest, HOPS)));
    }
}

fn start_babel(stack: &mut Stack) {
    let router = Babel::new(stack.node(), 1, babel::Config::default());
    stack.register(Instant::BOOT, router).expect("nobody has Babel's number");
}

/// Asserts that what `stack` sent of control traffic keeps to the part of one of `sharers`, and that each of its
/// hellos was sent.
fn check(stack: &Stack, sharers: u64) {
    let Air { bytes_per_second, control_permille } = Air::RADIO;
    let part = u64::from(bytes_per_second) * u64::from(control_permille) / 1000 / sharers;
    // A node alone has all, until it hears the others.
    let at_first = part * sharers * 6;
    let sent: u64 = stack.accounts().iter().map(|account| account.bytes).sum();
    assert!(sent <= part * RUN.as_secs() + at_first, "{sent} of {part} a second");
    let is_hello =
        |account: &&Account| (account.protocol, account.kind) == (Babel::DESCRIPTION.number, HELLO);
    let hellos = stack.accounts().iter().find(is_hello).expect("it says hello");
    assert!(hellos.messages > 10 && hellos.refused == 0, "{hellos:?}");
}

#[test]
fn protocol_that_never_stops_talking_leaves_air_to_the_hellos_of_another() {
    let set_up = |stack: &mut Stack, _: usize| {
        start_babel(stack);
        stack.register(Instant::BOOT, Chatter).expect("nobody has its number");
    };
    let mut network = Network::new(5, set_up).clique(0);
    network.run(RUN);
    for stack in network.stacks() {
        check(stack, 5);
        let said: Vec<_> = stack.accounts().iter().filter(|account| account.refused > 0).collect();
        assert_eq!(said.len(), 8, "each kind of its messages was over the budget: {said:?}");
        let least = said.iter().map(|account| account.bytes).min().unwrap();
        let most = said.iter().map(|account| account.bytes).max().unwrap();
        assert!(least * 3 > most, "they share: {said:?}");
    }
}

#[test]
fn member_that_asks_for_everything_makes_none_of_the_others_say_more_than_its_part() {
    let set_up = |stack: &mut Stack, _: usize| start_babel(stack);
    let mut network = Network::new(5, set_up).clique(100);
    for number in 0..(RUN.as_millis() / PAUSE.as_millis()) as u32 {
        network.run(PAUSE);
        let now = network.now();
        network.stack_mut(0).act::<Babel, _>(now, |_, context| ask(number, context));
    }
    for stack in &network.stacks()[1..] {
        check(stack, 5);
        let refused: u64 = stack.accounts().iter().map(|account| account.refused).sum();
        assert!(refused > 100, "it is made to say more than there is air for: {refused}");
        for other in (1..5).map(id).filter(|other| *other != stack.node()) {
            let babel = stack.protocol::<Babel>().expect("it runs");
            assert!(babel.next_hop(other).is_some(), "{other:?}");
        }
    }
}
