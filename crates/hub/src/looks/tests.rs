use tenure_hal::simulated::{Sequence, socket_at};
use tenure_wire::datagram::{Cookie, Epoch};

use super::*;

const DEVICE: PublicKey = PublicKey([1; 32]);
const PLACE: Address = Address::Udp(socket_at(1));
const OTHER: Address = Address::Udp(socket_at(2));

fn answer_to(question: &[u8]) -> Vec<u8> {
    let Ok(Datagram::Probe(Probe { nonce })) = Datagram::parse(question) else {
        panic!("a probe");
    };
    let (epoch, cookie) = (Epoch([0; 8]), Cookie([0; 16]));
    Challenge { echo: nonce, epoch, cookie, key: DEVICE }.to_bytes().to_vec()
}

#[test]
fn device_that_answers_is_open_and_one_that_does_not_is_shut() {
    let (mut looks, mut entropy) = (Looks::new(true), Sequence(1));
    let mut now = Instant::BOOT;
    looks.note(now, &mut entropy, DEVICE, &PLACE);
    assert_eq!(looks.verdict(&DEVICE, &PLACE), Verdict::Unknown);
    let mut questions = Vec::new();
    let judged = loop {
        let judged = looks.poll(now);
        while let Some((to, question)) = looks.question() {
            assert_eq!(to, PLACE);
            questions.push(question);
        }
        if !judged.is_empty() {
            break judged;
        }
        now = looks.poll_at().expect("it is under way");
    };
    assert_eq!(judged, [Judged { device: DEVICE, is_open: false, is_news: true }]);
    assert_eq!((questions.len(), looks.poll_at()), (3, None));
    assert_eq!(looks.verdict(&DEVICE, &PLACE), Verdict::Shut);
    assert_eq!(looks.answer(now, &PLACE, &answer_to(&questions[0])), None, "it is too late");
    // Not again before it is time to, but at once from elsewhere.
    looks.note(now, &mut entropy, DEVICE, &PLACE);
    assert_eq!(looks.poll_at(), None);
    looks.note(now, &mut entropy, DEVICE, &OTHER);
    assert_eq!(looks.verdict(&DEVICE, &OTHER), Verdict::Unknown);
    assert!(looks.poll(now).is_empty());
    let (_, question) = looks.question().unwrap();
    assert_eq!(looks.answer(now, &PLACE, &answer_to(&question)), None, "from elsewhere");
    assert_eq!(looks.answer(now, &OTHER, &question), None, "no answer at all");
    let open = looks.answer(now, &OTHER, &answer_to(&question));
    assert_eq!(open, Some(Judged { device: DEVICE, is_open: true, is_news: true }));
    assert_eq!(looks.verdict(&DEVICE, &OTHER), Verdict::Open);
    now = now + LOOK_AGAIN;
    looks.note(now, &mut entropy, DEVICE, &OTHER);
    assert_eq!(looks.verdict(&DEVICE, &OTHER), Verdict::Open, "until it is judged again");
    assert_eq!(looks.poll_at(), Some(now));
    looks.retain(|_| false);
    assert_eq!((looks.len(), looks.poll(now).len(), looks.poll_at()), (0, 0, None));
}

#[test]
fn device_behind_a_connection_is_shut_without_a_question() {
    let (mut looks, mut entropy) = (Looks::new(true), Sequence(1));
    let carried = tenure_wire::carried::address_of([192, 0, 2, 1].into(), 1).into();
    looks.note(Instant::BOOT, &mut entropy, DEVICE, &carried);
    let judged = looks.poll(Instant::BOOT);
    assert_eq!(judged, [Judged { device: DEVICE, is_open: false, is_news: true }]);
    assert_eq!((looks.question(), looks.poll_at()), (None, None));
    assert_eq!(looks.verdict(&DEVICE, &carried), Verdict::Shut);
    // Once it comes by UDP again it is asked.
    looks.note(Instant::BOOT, &mut entropy, DEVICE, &PLACE);
    assert!(looks.poll(Instant::BOOT).is_empty() && looks.question().is_some());
}

#[test]
fn hub_without_another_port_judges_nobody() {
    let mut looks = Looks::new(false);
    looks.note(Instant::BOOT, &mut Sequence(1), DEVICE, &PLACE);
    assert_eq!((looks.poll_at(), looks.question()), (None, None));
    assert_eq!(looks.verdict(&DEVICE, &PLACE), Verdict::Unknown);
}
