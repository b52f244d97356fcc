use alloc::vec;

use super::*;

fn parts() -> CompiledParts {
    CompiledParts { kind: CodeKind::Rv32, module_checksum: 7, entry: 4, code: vec![0x13; 40] }
}

#[test]
fn what_was_written_is_read_and_its_code_is_padded() {
    let bytes = parts().to_bytes().unwrap();
    let compiled = CompiledCode::parse(&bytes).unwrap();
    assert_eq!((compiled.kind(), compiled.entry()), (CodeKind::Rv32, 4));
    assert_eq!((compiled.code().len(), &compiled.code()[..40]), (64, &[0x13; 40][..]));
}

#[test]
fn every_changed_byte_and_every_cut_is_refused() {
    let bytes = parts().to_bytes().unwrap();
    for place in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[place] ^= 1;
        assert!(CompiledCode::parse(&changed).is_err(), "byte {place}");
        assert!(CompiledCode::parse(&bytes[..place]).is_err(), "cut at {place}");
    }
}

#[test]
fn an_entry_that_is_no_function_of_its_kind_is_refused() {
    for (kind, entry) in [(CodeKind::Rv32, 64), (CodeKind::Rv32, 5), (CodeKind::Thumb, 4)] {
        let wrong = CompiledParts { kind, entry, ..parts() };
        assert_eq!(wrong.to_bytes(), Err(CompiledError::Layout), "{kind} at {entry}");
    }
}
