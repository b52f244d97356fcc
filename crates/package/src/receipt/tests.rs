use super::*;

fn key(number: u8) -> SigningKey {
    SigningKey::from_bytes(&[number; 32])
}

fn receipt(number: u64, previous: Digest) -> Receipt {
    Receipt {
        owner: key(1).verifying_key(),
        tenant: key(2).verifying_key(),
        machine: MachineId([4; 12]),
        name: "store".parse().unwrap(),
        package: Digest([5; 32]),
        lease: 9,
        tier: 2,
        period_s: 86_400,
        number,
        previous,
        began_unix_s: Some(1_800_000_000),
        ended_unix_s: None,
        counted_ms: 3_600_000 + number,
        usage: Usage { fuel: 10 + number, memory_bytes_peak: 100 - number, ..Usage::default() },
    }
}

/// Three receipts of one chain, signed.
fn chain(device: &SigningKey) -> [Vec<u8>; 3] {
    let mut previous = NO_RECEIPT;
    core::array::from_fn(|number| {
        let bytes = receipt(number as u64, previous).sign(device).unwrap();
        previous = digest_of_receipt(&bytes);
        bytes
    })
}

#[test]
fn a_chain_is_checked_link_by_link_and_summed_up() {
    let [first, second, third] = chain(&key(3));
    let mut checked = ReceiptChain::begin(&first).unwrap();
    assert_eq!(checked.follow(&second).unwrap().number, 1);
    checked.follow(&third).unwrap();
    assert_eq!((checked.total.fuel, checked.total.memory_bytes_peak), (33, 100));
    assert_eq!((checked.length, checked.device()), (3, key(3).verifying_key()));
    // Three periods of different lengths.
    assert_eq!(checked.counted_ms, 3 * 3_600_000 + 1 + 2);
}

#[test]
fn whatever_is_left_out_repeated_changed_or_forged_is_found() {
    let [first, second, third] = chain(&key(3));
    let begun = ReceiptChain::begin(&first).unwrap();
    let follow = |bytes: &[u8]| begun.clone().follow(bytes).map(|_| ()).unwrap_err();
    assert_eq!(follow(&third), ReceiptError::Missing { number: 1 });
    assert_eq!(follow(&first), ReceiptError::Twice);
    let [_, other, _] = chain(&key(6));
    assert_eq!(follow(&other), ReceiptError::OtherDevice);
    let rewritten = receipt(1, Digest([8; 32])).sign(&key(3)).unwrap();
    assert_eq!(follow(&rewritten), ReceiptError::Broken);
    for at in 0..second.len() {
        let mut changed = second.clone();
        changed[at] ^= 1;
        assert!(begun.clone().follow(&changed).is_err(), "byte {at}");
    }
    let first_of_nothing = receipt(0, Digest([8; 32])).sign(&key(3)).unwrap();
    assert_eq!(ReceiptChain::begin(&first_of_nothing).unwrap_err(), ReceiptError::Broken);
    assert!(ReceiptChain::begin(&second).is_ok(), "a chain may be taken up in its middle");
}

#[cfg(feature = "journals")]
#[test]
fn receipt_that_commits_to_a_journal_is_read_as_any_other() {
    let journal =
        Commitment { head: Digest([7; 32]), pages: 300, began: None, ended: Some(Digest([9; 32])) };
    let written = receipt(0, NO_RECEIPT);
    let bytes = written.sign_with(&journal, &key(3)).unwrap();
    let mut bytes =
        tenure_testbed::frozen(env!("CARGO_MANIFEST_DIR"), "receipt-committed-3", &bytes);
    assert_eq!(Receipt::verify(&bytes), Ok((written.clone(), key(3).verifying_key())));
    assert_eq!(Receipt::commitment(&bytes), Ok(Some(journal)));
    let mut chain = ReceiptChain::begin(&bytes).unwrap();
    let next = receipt(1, digest_of_receipt(&bytes)).sign(&key(3)).unwrap();
    assert_eq!(Receipt::commitment(&next), Ok(None));
    chain.follow(&next).unwrap();
    let at = bytes.len() - 70;
    bytes[at] ^= 1;
    assert_eq!(Receipt::verify(&bytes), Err(ReceiptError::Signature), "the commitment is signed");
}
