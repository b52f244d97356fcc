use alloc::vec;

use super::*;

fn parts() -> NativeParts {
    let mut code = vec![0x11; 32];
    code[6..10].copy_from_slice(&0x30_u32.to_le_bytes());
    let mut data = vec![0x22; 16];
    data[4..8].copy_from_slice(&0x4_u32.to_le_bytes());
    NativeParts {
        kind: CodeKind::Rv32,
        code,
        stack_bytes: 64,
        data,
        zero_bytes: 8,
        relocations: vec![6, 100],
        exports: vec![("entry".into(), 0), ("read".into(), 12)],
    }
}

#[test]
fn binary_comes_back_as_it_was_made() {
    let bytes = parts().to_bytes().unwrap();
    let binary = NativeBinary::parse(&bytes).unwrap();
    assert_eq!(binary.kind(), CodeKind::Rv32);
    assert_eq!((binary.code_bytes(), binary.data_at(), binary.memory_bytes()), (32, 96, 120));
    assert_eq!(binary.function("read"), Some(12));
    assert_eq!(binary.function("write"), None);
}

#[test]
fn loading_makes_addresses_of_relocated_words_and_tells_where_memory_ends() {
    let bytes = parts().to_bytes().unwrap();
    let mut memory = [0; 200];
    NativeBinary::parse(&bytes).unwrap().load(&mut memory, 0x8041_0000).unwrap();
    assert_eq!(word_at(&memory, 6), Some(0x8041_0030));
    assert_eq!(word_at(&memory, 100), Some(0x8041_0004));
    assert_eq!(word_at(&memory, 96), Some(0x8041_0000 + 200));
    assert_eq!(memory[32..96], [0; 64]);
    assert_eq!(memory[108..112], [0x22; 4]);
    let short = NativeBinary::parse(&bytes).unwrap().load(&mut memory[..119], 0);
    assert_eq!(short, Err(NativeError::Memory));
}

#[test]
fn what_cannot_be_is_refused() {
    let check = |change: fn(&mut NativeParts)| {
        let mut parts = parts();
        change(&mut parts);
        parts.to_bytes().map(|_| ())
    };
    assert_eq!(check(|_| ()), Ok(()));
    assert_eq!(check(|parts| parts.stack_bytes = 0), Err(NativeError::Layout));
    assert_eq!(check(|parts| parts.stack_bytes = 24), Err(NativeError::Layout));
    assert_eq!(check(|parts| parts.zero_bytes = u32::MAX), Err(NativeError::Layout));
    assert_eq!(check(|parts| parts.data = vec![]), Err(NativeError::Layout));
    assert_eq!(check(|parts| parts.relocations = vec![29]), Err(NativeError::Relocation));
    assert_eq!(check(|parts| parts.relocations = vec![40]), Err(NativeError::Relocation));
    assert_eq!(check(|parts| parts.relocations = vec![6, 6]), Err(NativeError::Relocation));
    assert_eq!(check(|parts| parts.relocations = vec![u32::MAX]), Err(NativeError::Relocation));
    assert_eq!(check(|parts| parts.exports[0].1 = 32), Err(NativeError::Export));
    assert_eq!(check(|parts| parts.exports[0].0 = "".into()), Err(NativeError::Export));
}

#[test]
fn changed_byte_is_found_and_cut_binary_is_refused() {
    let bytes = parts().to_bytes().unwrap();
    for place in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[place] ^= 0x10;
        assert!(NativeBinary::parse(&changed).is_err(), "{place}");
        assert!(NativeBinary::parse(&bytes[..place]).is_err(), "{place}");
    }
}

#[test]
fn hostile_lengths_do_no_harm() {
    let bytes = parts().to_bytes().unwrap();
    for field in 2..8 {
        for value in [0, 1, 17, 1 << 16, 1 << 28, u32::MAX / 2, u32::MAX] {
            let mut hostile = bytes.clone();
            hostile[WORD * field..WORD * (field + 1)].copy_from_slice(&value.to_le_bytes());
            let end = hostile.len() - WORD;
            let checksum = CRC.checksum(&hostile[..end]);
            hostile[end..].copy_from_slice(&checksum.to_le_bytes());
            if let Ok(binary) = NativeBinary::parse(&hostile) {
                let mut memory = vec![0; binary.memory_bytes() as usize];
                binary.load(&mut memory, 0x2000_0000).unwrap();
            }
        }
    }
}
