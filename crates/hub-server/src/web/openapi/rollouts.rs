//! The part of the OpenAPI document that rollouts and the bytes of packages stand in.

use serde_json::{Map, Value, json};

/// The paths, with what each method does.
pub(crate) fn paths() -> Map<String, Value> {
    let mut paths = Map::new();
    for (verb, summary) in [
        ("pause", "Update no further device; those that were updated are watched."),
        ("resume", "Go on; devices that failed count as done."),
        ("abort", "End it, and leave every device as it is."),
        ("roll-back", "Put every device back to the package that it had."),
    ] {
        let post = operation(&format!("{verb}_rollout"), summary, &["id"], None, &rollout());
        paths.insert(format!("/v1/rollouts/{{id}}/{verb}"), json!({ "post": post }));
    }
    let show = operation("show_rollout", "A rollout as it is now.", &["id"], None, &rollout());
    paths.insert("/v1/rollouts/{id}".into(), json!({ "get": show }));
    let plan = operation(
        "show_rollout_plan",
        "The plan as the owner signed it.",
        &["id"],
        None,
        &signed_plan(),
    );
    paths.insert("/v1/rollouts/{id}/plan".into(), json!({ "get": plan }));
    let next = operation(
        "next_of_rollout",
        "The steps that are due, for whoever carries the rollout out. A step that isn't reported is named again.",
        &["id"],
        None,
        &json!({ "type": "object", "required": ["state", "is_over", "tasks"], "properties": {
            "state": { "type": "string" }, "is_over": { "type": "boolean" },
            "tasks": { "type": "array", "items": { "type": "object", "properties": {
                "device": { "type": "string" }, "package": { "type": "string" },
                "action": { "enum": ["update", "look", "revert"] },
            } } },
        } }),
    );
    paths.insert("/v1/rollouts/{id}/next".into(), json!({ "post": next }));
    let report = operation(
        "report_of_device",
        "What was seen on a device. The same report twice does no harm.",
        &["id", "device"],
        Some(report()),
        &json!({}),
    );
    paths.insert("/v1/rollouts/{id}/devices/{device}".into(), json!({ "post": report }));
    let mut revoke = operation(
        "take_revocations",
        "The owner's signed list of revoked keys: its devices are listed and answered no more, and are in no rollout.",
        &[],
        None,
        &json!({}),
    );
    revoke["requestBody"] =
        json!({ "required": true, "content": { "application/octet-stream": {} } });
    paths.insert("/v1/revocations".into(), json!({ "post": revoke }));
    let package = json!({
        "operationId": "fetch_package",
        "summary": "A package by its own digest, or the part of it that `Range` asks for.",
        "parameters": [parameter("digest")],
        "responses": {
            "200": { "description": "The package.", "content": { "application/octet-stream": {} } },
            "206": { "description": "The part." },
            "401": { "description": "No token, or one that isn't good." },
            "404": { "description": "There is no such package." },
            "416": { "description": "The package has no such part." },
        },
    });
    paths.insert("/v1/packages/{digest}".into(), json!({ "get": package }));
    paths
}

/// `POST /v1/rollouts`.
pub(crate) fn start() -> Value {
    let summary = "Start a rollout by the owner's signed plan.";
    let mut start = operation("start_rollout", summary, &[], Some(signed_plan()), &rollout());
    start["responses"]["201"] = start["responses"]["200"].take();
    if let Some(responses) = start["responses"].as_object_mut() {
        responses.remove("200");
    }
    start
}

fn operation(
    id: &str,
    summary: &str,
    parameters: &[&str],
    body: Option<Value>,
    answer: &Value,
) -> Value {
    let mut operation = json!({
        "operationId": id.replace('-', "_"),
        "summary": summary,
        "parameters": parameters.iter().map(|name| parameter(name)).collect::<Vec<_>>(),
        "responses": {
            "200": { "description": "The answer.", "content": { "application/json": { "schema": answer } } },
            "400": { "description": "The body can't be read." },
            "401": { "description": "No token, or one that isn't good." },
            "403": { "description": "The token doesn't have the scope `rollouts`." },
            "404": { "description": "There is no such rollout of this key." },
            "409": { "description": "The rollout or the device isn't in a state for that." },
            "422": { "description": "The plan isn't taken; the answer says why." },
        },
    });
    if answer.as_object().is_some_and(Map::is_empty) {
        operation["responses"]["204"] = json!({ "description": "Noted." });
        if let Some(responses) = operation["responses"].as_object_mut() {
            responses.remove("200");
        }
    }
    if let Some(parameters) = operation["parameters"].as_array_mut()
        && body.is_some()
    {
        parameters.push(json!({
            "name": "Idempotency-Key", "in": "header", "schema": { "type": "string", "maxLength": 255 },
            "description": "The same request with the same key does nothing again for a day, and has the same answer.",
        }));
    }
    if let Some(schema) = body {
        operation["requestBody"] =
            json!({ "required": true, "content": { "application/json": { "schema": schema } } });
    }
    operation
}

fn parameter(name: &str) -> Value {
    json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } })
}

fn signed_plan() -> Value {
    json!({ "type": "object", "required": ["plan", "signature"], "properties": {
        "plan": { "type": "string", "description": "The plan in JSON, as it was signed." },
        "signature": { "type": "string", "description": "The owner's signature over it, in hexadecimal digits." },
        "mandate": { "type": "string", "description": "The mandate that the devices follow, in base 64. Without it the owner's command carries the plan out." },
    } })
}

fn report() -> Value {
    json!({ "type": "object", "required": ["saw"], "properties": {
        "saw": { "enum": ["before", "machine", "refused", "missing", "held"] },
        "has": { "type": "string", "description": "The digest of the machine's package." },
        "version": { "type": "string", "description": "Its version." },
        "faults": { "type": "integer" },
        "state": { "type": "string" },
        "repute": { "type": "string" },
        "reason": { "type": "string" },
    } })
}

fn rollout() -> Value {
    let (text, number) = (json!({ "type": "string" }), json!({ "type": "integer" }));
    json!({ "type": "object", "properties": {
        "id": number, "machine": text, "package": text, "version": text, "state": text, "reason": text,
        "stage": number, "stages": { "type": "array", "items": number }, "soak_s": number,
        "gates": { "type": "object", "properties": {
            "fuel_per_call_max": number, "waited_us_max": number,
            "metrics": { "type": "array", "items": { "type": "object", "required": ["name"], "properties": {
                "name": text, "at_least": number, "at_most": number,
            } } },
        } },
        "faults_max": number, "failures_max": number, "on_failure": text, "ends_unix_s": number,
        "is_over": { "type": "boolean" }, "carried_out_by": { "enum": ["devices", "command"] },
        "devices": { "type": "object", "additionalProperties": number },
        "waits": { "type": "array", "items": { "type": "object", "required": ["devices", "reason"], "properties": {
            "devices": number, "reason": text,
        } } },
    } })
}
