//! The native stack stays flat however long a program runs: dispatch is a jump, not a call.

mod common;

use tenure_vm::{
    Image, Instance, InstanceConfig, Limits, NoHostFunctions, Outcome, TrapKind, translate,
};

const PROGRAM: &str = "(module
  (func (export \"loop\") (local i32)
    (loop $l (br_if $l (i32.ne (local.tee 0 (i32.add (local.get 0) (i32.const 1))) (i32.const 300000)))))
  (func $deeper (export \"deeper\") (call $deeper)))";

#[test]
fn deep_run_keeps_the_native_stack_flat() {
    // A frame of native stack for each instruction would need tens of megabytes.
    let thread = std::thread::Builder::new().stack_size(256 * 1024).spawn(|| {
        let mut bytes = Vec::new();
        translate(&common::assemble(PROGRAM), &NoHostFunctions, &Limits::default(), &mut bytes)
            .expect("valid");
        let image = Image::parse(&bytes).expect("just made");
        let config = InstanceConfig { stack_bytes: 1 << 20, ..InstanceConfig::default() };
        let mut instance = Instance::new(&image, &config).expect("starts");
        for (name, ends) in [("loop", true), ("deeper", false)] {
            let function = image.function(name).expect("exported").index;
            instance.prepare(&image, function, &[]).expect("idle");
            match instance.run(&image, &mut { u64::MAX }) {
                Outcome::Done => assert!(ends),
                Outcome::Trap(trap) => {
                    assert_eq!(trap.kind, TrapKind::StackOverflow);
                    assert!(instance.backtrace(&image).len() > 10_000);
                }
                other => panic!("{other:?}"),
            }
        }
    });
    thread.expect("a thread starts").join().expect("the thread ends well");
}
