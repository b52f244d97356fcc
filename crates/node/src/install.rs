//! Installing: a package is checked, translated, and becomes a machine's record and image.

use alloc::string::ToString;
use alloc::vec::Vec;

use tenure_crypto::machine_id;
use tenure_hal::{Entropy, Flash};
use tenure_kernel::{
    CodeError, CodeRegion, CompiledCode, Draft, Extent, InstallError, Installation, Kernel,
    MachineRecord, NativeBinary, host_functions,
};
use tenure_package::{Engine, Package, Placement};
use tenure_store::{BaseValue, ValueKind, base_bytes, write_base};
use tenure_vm::{Image, ImageSink, Limits, SinkFull, TranslateErrorKind, translate_bound};
use tenure_wire::control::ControlError;
use tenure_wire::{CodeKind, Digest};

use crate::services::Services;

/// Checks a package and its placement, and makes a machine's record and image of them.
///
/// The image stands in code flash afterwards and belongs to nobody until the kernel takes the
/// installation; whoever drops the installation releases its extent.
pub(crate) fn prepare<F: Flash>(
    services: &mut Services<F>,
    entropy: &mut dyn Entropy,
    package: &[u8],
    placement: &[u8],
) -> Result<Installation, ControlError> {
    let package = checked(services, package)?;
    let Services { identity, config, ownership, .. } = services;
    let signer = Placement::signer(placement).map_err(refused)?;
    ownership.check_owner(&config.owner, "the placement", &signer)?;
    let placement = Placement::verify(placement, &config.owner.verifying_key).map_err(refused)?;
    if placement.device != identity.verifying_key() {
        return Err(ControlError::Refused("the placement is for another device".to_string()));
    }
    if placement.package != package.digest() {
        return Err(ControlError::Refused("the placement is for another package".to_string()));
    }
    prepare_placed(services, entropy, &package, placement)
}

/// A package whose tenant signed it and isn't revoked.
pub(crate) fn checked<'a, F>(
    services: &Services<F>,
    package: &'a [u8],
) -> Result<Package<'a>, ControlError> {
    let package = Package::parse(package).map_err(refused)?;
    package.verify().map_err(refused)?;
    services.ownership.check_tenant(&package.tenant())?;
    Ok(package)
}

/// Makes a machine's record and image of a package that was [checked] and a placement by which its owner allows
/// it, as [`prepare`] does.
pub(crate) fn prepare_placed<F: Flash>(
    services: &mut Services<F>,
    entropy: &mut dyn Entropy,
    package: &Package<'_>,
    placement: Placement,
) -> Result<Installation, ControlError> {
    let Services { kernel, identity, config, .. } = services;
    let salt = salt_for(kernel, &placement, entropy)?;
    let public_key = identity.machine_secret(&salt).public_key();
    let manifest = package.manifest();
    let (kind, code) = choose(kernel.engine_kind(), package)?;
    let image = match kind {
        CodeKind::WebAssembly => translate_to_flash(kernel.code(), package, code, &config.module)?,
        _ => keep_binary(kernel.code(), package, code)?,
    };
    let faster = match (manifest.engine, kernel.engine_kind()) {
        (Engine::NativeSpeed, Some(CodeKind::WebAssembly)) => {
            let kept = keep_in_flash(kernel.code(), &[code]);
            Some(kept.inspect_err(|_| kernel.code().release(image))?)
        }
        _ => {
            let kept = keep_compiled(kernel, package, kind, image);
            kept.inspect_err(|_| kernel.code().release(image))?
        }
    };
    let record = MachineRecord {
        name: placement.machine.clone(),
        public_key,
        salt,
        package: package.digest(),
        package_name: manifest.name.clone(),
        package_version: manifest.version,
        tenant: package.tenant(),
        exports: manifest.exports.clone(),
        timers: manifest.timers.clone(),
        budget: manifest.budget.within(placement.budget),
        share: placement.share,
        grants: placement.grants.within(&manifest.capabilities),
        errors: manifest.errors,
        log: manifest.log,
        term: placement.term,
        placement: placement.sequence,
        code: kind,
        image,
        faster,
        base: None,
    };
    let base = base_to_flash(kernel.code(), package).inspect_err(|_| {
        kernel.code().release_all(record.extents());
    })?;
    Ok(Installation { id: machine_id(&public_key), record: MachineRecord { base, ..record } })
}

/// Why an installation that the kernel refused was refused, for the owner.
pub(crate) fn not_installed(error: InstallError) -> ControlError {
    match error {
        InstallError::NoSlot
        | InstallError::NoMemory
        | InstallError::Overbooked
        | InstallError::StoreFull
        | InstallError::StoredBudget
        | InstallError::Code(CodeError::Full) => ControlError::Full(error.to_string()),
        InstallError::OtherTenant
        | InstallError::Stopped
        | InstallError::Stale
        | InstallError::NameTaken
        | InstallError::Values
        | InstallError::Record => ControlError::Refused(error.to_string()),
        _ => ControlError::Device(error.to_string()),
    }
}

/// The salt of the machine that is replaced, which so keeps its key, or a new one.
fn salt_for<F: Flash>(
    kernel: &Kernel<F>,
    placement: &Placement,
    entropy: &mut dyn Entropy,
) -> Result<[u8; 16], ControlError> {
    let mut known = kernel.machines().filter(|info| info.record.name == placement.machine);
    if let Some(info) = known.next() {
        return Ok(info.record.salt);
    }
    let mut salt = [0; 16];
    entropy.fill(&mut salt).map_err(|error| ControlError::Device(error.to_string()))?;
    Ok(salt)
}

/// The code that this device runs: a native binary if it has an engine for it, else wasm.
fn choose<'a>(
    engine: Option<CodeKind>,
    package: &Package<'a>,
) -> Result<(CodeKind, &'a [u8]), ControlError> {
    let runs = [engine.unwrap_or(CodeKind::WebAssembly), CodeKind::WebAssembly];
    let found = runs.iter().find_map(|kind| Some((*kind, package.code(*kind)?)));
    found.ok_or_else(|| {
        let carried: Vec<_> = package.manifest().code.iter().map(|kind| kind.as_str()).collect();
        let message = match engine {
            Some(kind) if kind != CodeKind::WebAssembly => {
                alloc::format!("this device runs {kind} and wasm")
            }
            _ => "this device runs wasm".to_string(),
        };
        refused(alloc::format!("{message}, and the package carries {}", carried.join(" and ")))
    })
}

/// Writes a native binary to code flash, behind the digest of its package.
fn keep_binary<F: Flash>(
    code: &mut CodeRegion<F>,
    package: &Package<'_>,
    binary: &[u8],
) -> Result<Extent, ControlError> {
    NativeBinary::parse(binary).map_err(refused)?;
    let Digest(digest) = package.digest();
    keep_in_flash(code, &[&digest, binary])
}

/// Writes code that was compiled for this device's processor to code flash, if the package carries it. Code
/// that was compiled from another image than this firmware's is left out, and the vm runs the machine.
fn keep_compiled<F: Flash>(
    kernel: &mut Kernel<F>,
    package: &Package<'_>,
    kind: CodeKind,
    image: Extent,
) -> Result<Option<Extent>, ControlError> {
    let processor = kernel.compiled_kind().filter(|_| kind == CodeKind::WebAssembly);
    let Some(bytes) = processor.and_then(|processor| package.compiled(processor)) else {
        return Ok(None);
    };
    let compiled = CompiledCode::parse(bytes).map_err(refused)?;
    if Some(compiled.kind()) != processor {
        return Err(refused("the compiled code is for another processor than the package says"));
    }
    let code = kernel.code();
    let is_of_image = {
        let image =
            Image::parse_bound(code.view(image).map_err(no_code_room)?, &package.digest().0);
        image.is_ok_and(|image| compiled.is_of(&image))
    };
    if is_of_image { keep_in_flash(code, &[bytes]).map(Some) } else { Ok(None) }
}

/// Translates the package's `wasm` into the longest free extent, and gives back what it doesn't need.
fn translate_to_flash<F: Flash>(
    code: &mut CodeRegion<F>,
    package: &Package<'_>,
    wasm: &[u8],
    limits: &Limits,
) -> Result<Extent, ControlError> {
    let extent = code.reserve(code.free_bytes()).map_err(no_code_room)?;
    let mut sink = CodeSink { draft: Draft::new(extent), region: code, error: None };
    let Digest(digest) = package.digest();
    let translated = translate_bound(wasm, &host_functions(), limits, &digest, &mut sink);
    let CodeSink { draft, region, error } = sink;
    let outcome = match (translated, error) {
        (Ok(()), _) => region.finish(draft).map_err(no_code_room),
        (Err(_), Some(error)) => Err(no_code_room(error)),
        (Err(error), None) if error.kind == TranslateErrorKind::SinkFull => {
            Err(no_code_room(CodeError::Full))
        }
        (Err(error), None) if error.kind == TranslateErrorKind::OutOfMemory => {
            Err(refused(alloc::format!(
                "its wasm: {error}; a device with fewer machines, or shorter functions, may do"
            )))
        }
        (Err(error), None) => Err(refused(alloc::format!("its wasm: {error}"))),
    };
    if outcome.is_err() {
        region.release(extent);
    }
    outcome
}

/// Writes `parts` to code flash as they are, one behind the other.
fn keep_in_flash<F: Flash>(
    code: &mut CodeRegion<F>,
    parts: &[&[u8]],
) -> Result<Extent, ControlError> {
    let bytes: usize = parts.iter().map(|part| part.len()).sum();
    let extent = code.reserve(bytes as u32).map_err(no_code_room)?;
    let mut draft = Draft::new(extent);
    let written = parts
        .iter()
        .try_for_each(|part| code.append(&mut draft, part))
        .and_then(|()| code.finish(draft));
    if written.is_err() {
        code.release(extent);
    }
    written.map_err(no_code_room)
}

/// Code flash as the translator sees it.
struct CodeSink<'a, F> {
    region: &'a mut CodeRegion<F>,
    draft: Draft,
    error: Option<CodeError>,
}

impl<F: Flash> ImageSink for CodeSink<'_, F> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), SinkFull> {
        self.region.append(&mut self.draft, bytes).map_err(|error| {
            self.error = Some(error);
            SinkFull
        })
    }
}

/// Writes the tree that the package's machines begin with to code flash, where all that they don't
/// change is read.
fn base_to_flash<F: Flash>(
    code: &mut CodeRegion<F>,
    package: &Package<'_>,
) -> Result<Option<Extent>, ControlError> {
    let entries = package.tree().entries();
    let mut values: Vec<_> = entries
        .map(|entry| BaseValue {
            path: entry.path,
            kind: kind_in_store(entry.kind),
            bytes: entry.value,
        })
        .collect();
    if values.is_empty() {
        return Ok(None);
    }
    let extent = code.reserve(base_bytes(&values) as u32).map_err(no_code_room)?;
    let mut draft = Draft::new(extent);
    let written = write_base(&mut values, |bytes| code.append(&mut draft, bytes));
    let written = written.and_then(|()| code.finish(draft));
    written.map(Some).inspect_err(|_| code.release(extent)).map_err(no_code_room)
}

pub(crate) fn kind_in_store(kind: tenure_package::ValueKind) -> ValueKind {
    match kind {
        tenure_package::ValueKind::Bytes => ValueKind::Bytes,
        tenure_package::ValueKind::Text => ValueKind::Text,
    }
}

fn refused(error: impl core::fmt::Display) -> ControlError {
    ControlError::Refused(error.to_string())
}

fn no_code_room(error: CodeError) -> ControlError {
    match error {
        CodeError::Full => ControlError::Full(error.to_string()),
        _ => ControlError::Device(error.to_string()),
    }
}
