use super::*;

/// Keys are the locations themselves here.
fn find(index: &Index, key: u32) -> Found {
    let compare = |location: Location| Ok::<_, ()>(Some(location.0.cmp(&key)));
    index.search(compare).unwrap()
}

fn add(index: &mut Index, key: u32) {
    match find(index, key) {
        Found::Before(slot) => index.insert(slot, Location(key)),
        other => panic!("{key} is there already: {other:?}"),
    }
}

fn all(index: &Index) -> Vec<u32> {
    let entries: Vec<u32> = index.chunks.iter().flatten().map(|location| location.0).collect();
    assert_eq!(entries.len(), index.len());
    assert!(index.chunks.iter().all(|chunk| !chunk.is_empty() && chunk.len() <= CHUNK_MAX));
    entries
}

#[test]
fn entries_stand_in_order_whatever_the_order_of_insertion() {
    let mut index = Index::default();
    // 7919 is prime to 5000: every number once.
    (0..5000).for_each(|number| add(&mut index, number * 7919 % 5000));
    assert_eq!(all(&index), (0..5000).collect::<Vec<_>>());
    for number in (0..5000).filter(|number| number % 3 != 0) {
        let Found::At(slot) = find(&index, number) else { panic!("{number} is lost") };
        index.remove(slot);
    }
    assert_eq!(all(&index), (0..5000).step_by(3).collect::<Vec<_>>());
    for number in 0..5000 {
        match find(&index, number) {
            Found::At(slot) => assert_eq!(index.entry(slot), Some(Location(number))),
            Found::Before(slot) => {
                let next = number.next_multiple_of(3);
                assert_eq!(index.entry(slot), (next < 5000).then_some(Location(next)));
            }
            Found::Lost(_) => panic!("nothing is unreadable"),
        }
    }
}

#[test]
fn ascending_insertion_fills_chunks() {
    let mut index = Index::default();
    (0..12_800).for_each(|number| add(&mut index, number));
    assert_eq!(index.chunks.len(), 100);
    assert!(index.heap_bytes() < 6 * 12_800, "{} bytes", index.heap_bytes());
}

#[test]
fn scattered_insertion_costs_six_and_a_half_bytes_a_key_at_most() {
    let mut index = Index::default();
    (0..100_000u32).for_each(|number| add(&mut index, number * 7919 % 100_003));
    assert!(index.heap_bytes() < 650_000, "{} bytes", index.heap_bytes());
}

#[test]
fn an_unreadable_entry_stops_the_search() {
    let mut index = Index::default();
    (0..10).for_each(|number| add(&mut index, number));
    let compare = |location: Location| Ok::<_, ()>((location.0 != 5).then(|| location.0.cmp(&5)));
    let Found::Lost(slot) = index.search(compare).unwrap() else { panic!("not met") };
    assert_eq!(index.entry(slot), Some(Location(5)));
}
