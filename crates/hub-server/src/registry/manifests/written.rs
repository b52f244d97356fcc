//! A manifest as it is written, and its form.

use core::fmt;

use http::header;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::exchange::{Exchange, Reply};
use crate::registry::{Code, PACKAGE_TYPE, algorithm_of, is_media_type};

/// The manifest of an image or an artifact (image spec 1.1).
pub(in crate::registry) const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";
pub(super) const INDEX_TYPE: &str = "application/vnd.oci.image.index.v1+json";
/// The longest manifest, in bytes: what a registry should take (distribution spec 1.1, "Pushing Manifests").
pub(in crate::registry) const MANIFEST_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The most blobs or manifests that a manifest names.
const PARTS_MAX: usize = 64;

/// A manifest as it is written, whose fields depend on its type. Fields that aren't known count for nothing.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    schema_version: u32,
    media_type: Option<String>,
    artifact_type: Option<String>,
    config: Option<Descriptor>,
    layers: Option<Vec<Descriptor>>,
    manifests: Option<Vec<Descriptor>>,
    subject: Option<Descriptor>,
    annotations: Option<Annotations>,
}

/// A manifest that is well formed.
pub(super) struct Manifest {
    pub(super) parts: Parts,
    artifact_type: Option<String>,
    pub(super) subject: Option<Descriptor>,
    pub(super) annotations: String,
}

/// The parts that a manifest holds together.
pub(super) enum Parts {
    /// Blobs.
    Image { config: Descriptor, layers: Vec<Descriptor> },
    /// Other manifests.
    Index { manifests: Vec<Descriptor> },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Descriptor {
    media_type: String,
    pub(super) digest: String,
    pub(super) size: i64,
}

/// Texts by their names, kept as they are written: there may be hundreds of thousands.
struct Annotations(Box<RawValue>);

impl<'de> Deserialize<'de> for Annotations {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Texts;
        impl<'de> Visitor<'de> for Texts {
            type Value = ();

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("annotations, which are texts by their names")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
                while map.next_entry::<IgnoredAny, String>()?.is_some() {}
                Ok(())
            }
        }
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let mut written = serde_json::Deserializer::from_str(raw.get());
        written.deserialize_map(Texts).map_err(serde::de::Error::custom)?;
        Ok(Self(raw))
    }
}

/// Reads a manifest and checks its form.
///
/// # Errors
/// The answer that says what is wrong.
pub(super) fn read(exchange: &Exchange) -> Result<Manifest, Reply> {
    if exchange.body.len() > MANIFEST_BYTES_MAX {
        return Err(Code::SizeInvalid.reply("a manifest has 4 MiB at most"));
    }
    let invalid = |text: &str| Code::ManifestInvalid.reply(text);
    let written = serde_json::from_slice::<Written>(&exchange.body)
        .map_err(|error| invalid(&format!("no manifest: {error}")))?;
    let said = exchange.header(&header::CONTENT_TYPE);
    let media_type = written.media_type.as_deref().or(said).unwrap_or(MANIFEST_TYPE);
    let is_of = |kind| [Some(media_type), said].iter().flatten().all(|it| is_media_type(it, kind));
    let parts = match (written.config, written.layers, written.manifests) {
        (Some(config), Some(layers), None) if is_of(MANIFEST_TYPE) => {
            Parts::Image { config, layers }
        }
        (None, None, Some(manifests)) if is_of(INDEX_TYPE) => Parts::Index { manifests },
        _ => {
            let text = format!(
                "manifests here are of type {MANIFEST_TYPE}, with `config` and `layers`, or {INDEX_TYPE}, with `manifests`"
            );
            return Err(invalid(&text));
        }
    };
    if written.schema_version != 2 {
        return Err(invalid("a manifest's `schemaVersion` is 2"));
    }
    let has_digest = |one: &Descriptor| algorithm_of(&one.digest).is_some();
    let are_well =
        parts.all().count() <= PARTS_MAX + 1 && parts.all().chain(&written.subject).all(has_digest);
    if !are_well {
        return Err(invalid("64 parts at most, each with a sha256 or sha512 digest"));
    }
    let annotations = written.annotations.map_or("{}".into(), |texts| texts.0.get().to_owned());
    let (artifact_type, subject) = (written.artifact_type, written.subject);
    Ok(Manifest { parts, artifact_type, subject, annotations })
}

impl Parts {
    pub(super) fn media_type(&self) -> &'static str {
        match self {
            Self::Image { .. } => MANIFEST_TYPE,
            Self::Index { .. } => INDEX_TYPE,
        }
    }

    fn all(&self) -> impl Iterator<Item = &Descriptor> {
        let (first, others) = match self {
            Self::Image { config, layers } => (Some(config), layers),
            Self::Index { manifests } => (None, manifests),
        };
        others.iter().chain(first)
    }

    /// Those that must be here.
    pub(super) fn needed(&self) -> impl Iterator<Item = &Descriptor> {
        self.all().filter(|part| !part.is_elsewhere())
    }

    /// Those that are blobs.
    pub(super) fn blobs(&self) -> impl Iterator<Item = &Descriptor> {
        let is_image = matches!(self, Self::Image { .. });
        self.all().filter(move |_| is_image)
    }

    pub(super) fn layers(&self) -> &[Descriptor] {
        match self {
            Self::Image { layers, .. } => layers,
            Self::Index { .. } => &[],
        }
    }
}

impl Descriptor {
    /// Whether the blob may be missing here (image spec 1.1, "Non-Distributable Layers").
    fn is_elsewhere(&self) -> bool {
        let kind = self.media_type.to_ascii_lowercase();
        kind.starts_with("application/vnd.oci.image.layer.nondistributable.")
    }

    pub(super) fn is_package(&self) -> bool {
        is_media_type(&self.media_type, PACKAGE_TYPE)
    }
}

impl Manifest {
    /// The type of the artifact (image spec 1.1, "Guidelines for Artifact Usage"); none of an index that says none.
    pub(super) fn kind(&self) -> &str {
        let of_config = match &self.parts {
            Parts::Image { config, .. } => &config.media_type,
            Parts::Index { .. } => "",
        };
        self.artifact_type.as_deref().unwrap_or(of_config)
    }
}

/// The digest of the first layer that a manifest names.
pub(super) fn first_layer(manifest: &[u8]) -> Option<String> {
    let written: Written = serde_json::from_slice(manifest).ok()?;
    Some(written.layers?.into_iter().next()?.digest)
}
