//! The arguments of an editor's requests.

use std::path::PathBuf;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};

use super::super::protocol::Request;

/// The arguments of a request.
///
/// # Errors
/// They aren't what such a request has.
pub(super) fn arguments<T: DeserializeOwned>(request: &Request) -> anyhow::Result<T> {
    let arguments = match &request.arguments {
        Json::Null => json!({}),
        arguments => arguments.clone(),
    };
    serde_json::from_value(arguments)
        .map_err(|error| anyhow::anyhow!("the arguments of {}: {error}", request.command))
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Initialize {
    pub(super) lines_start_at1: Option<bool>,
}

/// An editor's configuration.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Launch {
    pub(super) record: Option<PathBuf>,
    pub(super) packages: Vec<PathBuf>,
    pub(super) machine: Option<tenure_wire::Name>,
    pub(super) stop_on_entry: bool,
    /// The word that the debugger has printed, where it listens.
    pub(super) token: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OfThread {
    pub(super) thread_id: i64,
    pub(super) granularity: Option<String>,
    pub(super) start_frame: Option<usize>,
    pub(super) levels: Option<usize>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OfFrame {
    pub(super) frame_id: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OfVariables {
    pub(super) variables_reference: i64,
    pub(super) start: Option<usize>,
    pub(super) count: Option<usize>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Evaluate {
    pub(super) expression: String,
    pub(super) frame_id: Option<i64>,
    pub(super) context: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Source {
    pub(super) path: Option<String>,
    pub(super) name: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct SetBreakpoints {
    pub(super) source: Source,
    #[serde(default)]
    pub(super) breakpoints: Vec<SourceBreakpoint>,
}

#[derive(Deserialize)]
pub(super) struct SourceBreakpoint {
    pub(super) line: i64,
    #[serde(flatten)]
    pub(super) only: Only,
}

/// When a breakpoint counts.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Only {
    pub(super) condition: Option<String>,
    pub(super) hit_condition: Option<String>,
    pub(super) log_message: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct SetFunctionBreakpoints {
    pub(super) breakpoints: Vec<FunctionBreakpoint>,
}

#[derive(Deserialize)]
pub(super) struct FunctionBreakpoint {
    pub(super) name: String,
    #[serde(flatten)]
    pub(super) only: Only,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DataInfo {
    pub(super) variables_reference: Option<i64>,
    pub(super) name: String,
    pub(super) frame_id: Option<i64>,
}

#[derive(Deserialize)]
pub(super) struct SetDataBreakpoints {
    pub(super) breakpoints: Vec<DataBreakpoint>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DataBreakpoint {
    pub(super) data_id: String,
    pub(super) access_type: Option<String>,
    #[serde(flatten)]
    pub(super) only: Only,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReadMemory {
    pub(super) memory_reference: String,
    #[serde(default)]
    pub(super) offset: i64,
    pub(super) count: u64,
}

impl Only {
    /// The condition, if there is one.
    ///
    /// # Errors
    /// It is of a kind that isn't kept; the client was told so.
    pub(super) fn condition(&self) -> anyhow::Result<Option<&str>> {
        fn said(text: &Option<String>) -> Option<&str> {
            text.as_deref().filter(|text| !text.trim().is_empty())
        }
        anyhow::ensure!(
            said(&self.hit_condition).is_none(),
            "breakpoints don't count how often they are hit"
        );
        anyhow::ensure!(said(&self.log_message).is_none(), "breakpoints write no log");
        Ok(said(&self.condition))
    }
}
