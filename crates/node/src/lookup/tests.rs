use super::*;

fn node(number: u64) -> NodeId {
    NodeId::from_number(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16)
}

fn name(number: u64) -> Name {
    alloc::format!("node{number}").parse().expect("a name")
}

fn at(milliseconds: u64) -> Instant {
    Instant::from_millis(milliseconds)
}

#[test]
fn nodes_that_know_the_same_others_agree_on_the_keepers_in_whatever_order_they_know_them() {
    for seed in 0..200 {
        let mark = Mark::of(&name(seed));
        let forwards = mark.first((0..100).map(node), KEEPERS);
        let backwards = mark.first((0..100).rev().map(node), KEEPERS);
        assert_eq!(forwards, backwards);
        assert_eq!(forwards.len(), KEEPERS);
    }
}

#[test]
fn where_there_are_fewer_nodes_than_keepers_all_are() {
    let mark = Mark::of(&name(1));
    assert_eq!(mark.first([node(1), node(2)].into_iter(), KEEPERS).len(), 2);
    assert!(mark.first(core::iter::empty(), KEEPERS).is_empty());
}

#[test]
fn node_that_goes_or_comes_changes_the_keepers_of_its_own_names_alone() {
    for gone in 0..50 {
        for of in 0..20 {
            let mark = Mark::of(&name(of));
            let before = mark.first((0..50).map(node), KEEPERS);
            let after = mark.first((0..50).filter(|it| *it != gone).map(node), KEEPERS);
            let stay: Vec<_> = before.iter().filter(|keeper| **keeper != node(gone)).collect();
            assert!(stay.iter().all(|keeper| after.contains(keeper)));
        }
    }
}

#[test]
fn three_hundred_names_are_kept_by_three_hundred_nodes_and_by_none_of_them_more_than_twelve() {
    let mut kept = alloc::collections::BTreeMap::<NodeId, usize>::new();
    for of in 0..300 {
        for keeper in Mark::of(&name(of)).first((0..300).map(node), KEEPERS) {
            *kept.entry(keeper).or_default() += 1;
        }
    }
    let most = kept.values().max().copied().unwrap_or_default();
    assert!(most <= 12 && kept.len() > 250, "{most} of {}", kept.len());
}

#[test]
fn liar_who_asks_for_ever_is_fenced_and_others_are_answered_still() {
    let mut fence = fence(at(0));
    let (mut of_liar, mut of_others) = (0, 0);
    for step in 0..6000 {
        of_liar += u32::from(fence.pay(at(10 * step), &node(1), 1).is_ok());
        if step % 100 == 0 {
            of_others += u32::from(fence.pay(at(10 * step), &node(2), 1).is_ok());
        }
    }
    let (burst, per_second) = (8, 2);
    assert!(of_liar <= burst + 60 * per_second, "{of_liar}");
    assert_eq!(of_others, 60);
}

#[test]
fn liars_in_many_names_are_answered_within_the_bound_for_all() {
    let mut fence = fence(at(0));
    let answered =
        (0..6000).filter(|step| fence.pay(at(10 * step), &node(*step), 1).is_ok()).count();
    let (burst, per_second) = (48, 12);
    assert!(answered as u32 <= burst + 60 * per_second, "{answered}");
    assert!(fence.payers() <= SOURCES_MAX);
}

/// A look-up of `mark` that asked `keeper` last.
fn asked(mark: Mark, newer_than: Option<Version>, keeper: NodeId) -> Lookup {
    let mut lookup = Lookup::new(at(0));
    lookup.seek(at(0), mark, newer_than);
    let sought = &mut lookup.sought[0];
    (sought.asked, sought.last, sought.next_at) = (1, Some(keeper), at(800));
    lookup
}

#[test]
fn keeper_that_has_nothing_lets_the_next_one_be_asked_at_once_and_others_word_counts_nothing() {
    let mark = Mark::of(&name(1));
    let mut lookup = asked(mark, None, node(1));
    lookup.hear_absent(at(100), node(2), mark);
    lookup.hear_absent(at(100), node(1), Mark::of(&name(2)));
    assert_eq!(lookup.sought[0].next_at, at(800));
    lookup.hear_absent(at(100), node(1), mark);
    assert_eq!(lookup.sought[0].next_at, at(100));
    lookup.hear_absent(at(100), node(1), mark);
    assert_eq!(lookup.sought[0].absent, 1, "it was asked once");
}

#[test]
fn refresh_ends_when_all_keepers_have_nothing_newer_and_a_first_look_up_goes_on() {
    let mark = Mark::of(&name(1));
    for (newer_than, ends) in [(Some((1, 7)), true), (None, false)] {
        let mut lookup = asked(mark, newer_than, node(1));
        lookup.sought[0].absent = KEEPERS as u8 - 1;
        assert_eq!(lookup.concluded(at(50)), None);
        lookup.hear_absent(at(100), node(1), mark);
        assert_eq!(lookup.concluded(at(100)), ends.then_some(mark));
        assert_eq!(lookup.was_absent(at(200), mark), ends);
        assert!(!lookup.was_absent(at(100) + ABSENT_LASTS, mark));
    }
}

#[test]
fn name_that_nobody_knew_isnt_asked_for_again_within_three_seconds() {
    let mark = Mark::of(&name(1));
    let mut lookup = Lookup::new(at(0));
    lookup.remember_absent(at(1000), mark);
    lookup.seek(at(1500), mark, None);
    assert_eq!(lookup.sought[0].next_at, at(1000) + ABSENT_LASTS);
    lookup.found(mark);
    lookup.seek(at(1600), mark, None);
    assert_eq!(lookup.sought[0].next_at, at(1600));
}

#[test]
fn names_without_end_fill_no_table() {
    let mut lookup = Lookup::new(at(0));
    for of in 0..1000 {
        lookup.seek(at(of), Mark::of(&name(of)), None);
        lookup.remember_absent(at(of), Mark::of(&name(of)));
    }
    assert_eq!((lookup.sought.len(), lookup.absent.len()), (SOUGHT_MAX, ABSENT_MAX));
}

#[test]
fn words_keep_their_bytes() {
    let mut bytes = Vec::new();
    encode(&Word::Keep { passes: 1, turn: 2 }, &mut bytes);
    assert_eq!(bytes, [0, 1, 2]);
    bytes.clear();
    encode(&Word::Absent { mark: Mark(1) }, &mut bytes);
    assert_eq!(bytes, [2, 1]);
}
