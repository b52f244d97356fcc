//! All that the engine does, for the probes with and without floats.

use alloc::vec::Vec;

use tenure_vm::{Image, Instance, InstanceConfig, Limits, NoHostFunctions, translate};

use crate::keep;

/// Validates, translates, runs, suspends and resumes what `bytes` say.
pub fn use_whole(bytes: &[u8]) {
    let mut image = Vec::new();
    keep(translate(bytes, &NoHostFunctions, &Limits::default(), &mut image));
    if let Ok(image) = Image::parse(&image) {
        let config = InstanceConfig::default();
        if let Ok(mut instance) = Instance::new(&image, &config) {
            if let Some(function) = image.function("entry") {
                keep(instance.prepare(&image, function.index, &[]));
            }
            keep(instance.run(&image, &mut 1000));
            let mut suspended = Vec::new();
            instance.suspend(&image, &mut suspended);
            keep(suspended);
        }
        keep(Instance::resume(&image, bytes, &config).is_ok());
    }
}
