//! The engine without translator, floats and suspension: checks and runs images made elsewhere.
#![no_std]
#![no_main]

use tenure_size::{keep, probe, unknown_bytes};
use tenure_vm::{Image, Instance, InstanceConfig};

probe!({
    if let Ok(image) = Image::parse(unknown_bytes()) {
        let config = InstanceConfig::default();
        if let Ok(mut instance) = Instance::new(&image, &config) {
            if let Some(function) = image.function("entry") {
                keep(instance.prepare(&image, function.index, &[]));
            }
            keep(instance.run(&image, &mut 1000));
        }
    }
});
