//! Native binaries, compiled code and the breadcrumb, as this version writes them: a later build reads these
//! bytes, and refuses those of a version that it doesn't know.

use tenure_kernel::{
    Breadcrumb, CompiledCode, CompiledError, CompiledParts, NativeBinary, NativeError, NativeParts,
};
use tenure_testbed::frozen;
use tenure_wire::{CodeKind, MachineId};

fn kept(name: &str, written: &[u8]) -> Vec<u8> {
    frozen(env!("CARGO_MANIFEST_DIR"), name, written)
}

/// The bytes with the version raised that stands last in their magic of four bytes.
fn of_next_version(bytes: &[u8]) -> Vec<u8> {
    let mut later = bytes.to_vec();
    later[3] += 1;
    later
}

#[test]
fn native_binary_of_version_1_is_written_and_read() {
    let parts = NativeParts {
        kind: CodeKind::Rv32,
        code: vec![0x11; 32],
        stack_bytes: 64,
        data: vec![0x22; 16],
        zero_bytes: 8,
        relocations: vec![4, 100],
        exports: vec![("entry".into(), 0), ("read".into(), 12)],
    };
    let bytes = kept("native-1", &parts.to_bytes().unwrap());
    let binary = NativeBinary::parse(&bytes).unwrap();
    assert_eq!((binary.memory_bytes(), binary.function("read")), (120, Some(12)));
    let refused = NativeBinary::parse(&of_next_version(&bytes)).err();
    assert_eq!(refused, Some(NativeError::NotABinary));
}

#[test]
fn compiled_code_of_version_1_is_written_and_read() {
    let parts =
        CompiledParts { kind: CodeKind::Thumb, module_checksum: 7, entry: 5, code: vec![0x13; 40] };
    let bytes = kept("compiled-1", &parts.to_bytes().unwrap());
    let compiled = CompiledCode::parse(&bytes).unwrap();
    assert_eq!((compiled.kind(), compiled.entry()), (CodeKind::Thumb, 5));
    let refused = CompiledCode::parse(&of_next_version(&bytes)).err();
    assert_eq!(refused, Some(CompiledError::NotCompiledCode));
}

#[test]
fn breadcrumb_of_version_1_is_written_and_read() {
    let crumb = Breadcrumb(MachineId([7; 12]));
    let bytes = kept("breadcrumb-1", &crumb.to_bytes());
    assert_eq!(Breadcrumb::from_bytes(&bytes), Some(crumb));
    assert_eq!(Breadcrumb::from_bytes(&of_next_version(&bytes)), None);
}
