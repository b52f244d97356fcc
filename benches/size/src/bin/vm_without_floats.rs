//! The engine without floats: as `vm`, built with another set of features.
#![no_std]
#![no_main]

use tenure_size::{keep, probe, unknown_bytes};
use tenure_vm::{Image, Instance, InstanceConfig, Limits, NoHostFunctions, translate};

extern crate alloc;
use alloc::vec::Vec;

probe!({
    let bytes = unknown_bytes();
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
});
