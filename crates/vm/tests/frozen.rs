//! Images and suspended instances, as this version writes them: a later build runs these bytes, and refuses
//! those of a version that it doesn't know.

mod common;

use common::assemble;
use tenure_testbed::frozen;
use tenure_vm::{
    FunctionType, HostFunctions, Image, Instance, InstanceConfig, Limits, Outcome, ResumeError,
    Value, translate,
};

const CONFIG: InstanceConfig = InstanceConfig { stack_bytes: 1024, memory_bytes_max: 1 << 16 };
/// Sums the numbers up to 10, in a local and in memory.
const MODULE: &str = r#"(module
    (memory 1)
    (data (i32.const 8) "frozen")
    (global $turns (mut i32) (i32.const 0))
    (func (export "run") (result i32)
        (local $left i32)
        (local.set $left (i32.const 10))
        (loop $next
            (i32.store (i32.const 0) (i32.add (i32.load (i32.const 0)) (local.get $left)))
            (global.set $turns (i32.add (global.get $turns) (i32.const 1)))
            (br_if $next (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))
        (i32.add (i32.load (i32.const 0)) (global.get $turns))))"#;

struct NoHost;

impl HostFunctions for NoHost {
    fn resolve(&self, _: &str, _: &str, _: &FunctionType<'_>) -> Option<u16> {
        None
    }
}

fn kept(name: &str, written: &[u8]) -> Vec<u8> {
    frozen(env!("CARGO_MANIFEST_DIR"), name, written)
}

fn finish(mut instance: Instance, image: &Image<'_>) -> Vec<Value> {
    assert!(matches!(instance.run(image, &mut (1 << 20)), Outcome::Done));
    instance.results(image).collect()
}

#[test]
fn image_and_suspended_instance_are_written_and_run() {
    let mut written = Vec::new();
    translate(&assemble(MODULE), &NoHost, &Limits::default(), &mut written).unwrap();
    let bytes = kept("image-3", &written);
    let image = Image::parse(&bytes).unwrap();
    let mut instance = Instance::new_lazy(&image, &CONFIG).unwrap();
    instance.prepare(&image, image.function("run").unwrap().index, &[]).unwrap();
    assert!(matches!(instance.run(&image, &mut 40), Outcome::OutOfFuel));
    let mut written = Vec::new();
    instance.suspend(&image, &mut written);
    let mut suspended = kept("suspended-1", &written);
    let resumed = Instance::resume(&image, &suspended, &CONFIG).unwrap();
    assert_eq!(finish(resumed, &image), [Value::I32(65)]);

    // The version follows four bytes of magic in both.
    suspended[4] += 1;
    let refused = Instance::resume(&image, &suspended, &CONFIG).err();
    assert_eq!(refused, Some(ResumeError::NotSuspended));
    let mut later = bytes.clone();
    later[4] += 1;
    assert!(Image::parse(&later).is_err());
}
