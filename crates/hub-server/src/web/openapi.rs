//! The OpenAPI 3.1 document, made of the same descriptions as the answers.

mod rollouts;

use axum_core::response::Response;
use serde_json::{Map, Value, json};

use crate::api::resource::{Column, Kind, LIMIT_MAX, RESOURCES, Resource};
use crate::web::answers::json_answer;

/// `GET /v1/openapi.json`. Anybody may read it.
pub(crate) fn document() -> Response {
    json_answer(&described())
}

/// The document.
pub(crate) fn described() -> Value {
    let mut paths: Map<String, Value> = RESOURCES
        .iter()
        .map(|resource| (format!("/v1/{}", resource.name), json!({ "get": listing(resource) })))
        .collect();
    if let Some(receipts) = paths.get_mut("/v1/receipts") {
        receipts["post"] = hand_in();
    }
    if let Some(listed) = paths.get_mut("/v1/rollouts") {
        listed["post"] = rollouts::start();
    }
    paths.extend(rollouts::paths());
    paths.insert("/v1/bills".into(), json!({ "get": bills() }));
    paths.insert("/v1/devices/{device}/log".into(), json!({ "get": log() }));
    paths.insert("/v1/openapi.json".into(), json!({ "get": {
        "operationId": "describe", "summary": "This document.", "security": [],
        "responses": { "200": { "description": "The document.", "content": { "application/json": { "schema": { "type": "object" } } } } },
    } }));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Tenure hub",
            "version": "1",
            "description": "What a hub knows of the devices, machines and receipts of the key that asks.",
        },
        "security": [{ "token": [] }],
        "components": { "securitySchemes": { "token": {
            "type": "http", "scheme": "bearer",
            "description": "A token that `tenure login --token NAME` prints.",
        } } },
        "paths": paths,
    })
}

fn listing(resource: &Resource) -> Value {
    let mut parameters = vec![
        parameter(
            "q",
            "Only rows in which some column contains this.",
            json!({ "type": "string" }),
        ),
        parameter(
            "limit",
            "How many rows, at most.",
            json!({ "type": "integer", "minimum": 1, "maximum": LIMIT_MAX }),
        ),
        parameter(
            "skip",
            "How many rows to skip: `next.skip` of the answer before.",
            json!({ "type": "integer", "minimum": 0 }),
        ),
        parameter(
            "sort",
            "A column's name; with `-` before it, the largest first.",
            json!({ "type": "string" }),
        ),
    ];
    for column in resource.columns {
        let text = format!("Only rows with this value: {}.", column.title);
        parameters.push(parameter(column.name, &text, json!({ "type": "string" })));
    }
    let properties: Map<String, Value> =
        resource.columns.iter().map(|column| (column.name.into(), schema(column))).collect();
    let items = json!({ "type": "object", "properties": properties });
    json!({
        "operationId": format!("list_{}", resource.name.replace('-', "_")),
        "summary": resource.about,
        "parameters": parameters,
        "responses": responses(&json!({ "type": "object", "required": ["items", "next"], "properties": {
            "items": { "type": "array", "items": items },
            "next": { "type": ["object", "null"], "properties": { "skip": { "type": "integer" } } },
        } })),
    })
}

fn schema(column: &Column) -> Value {
    match column.kind {
        Kind::Text | Kind::Line | Kind::Device => {
            json!({ "type": ["string", "null"], "description": column.title })
        }
        Kind::Number | Kind::Rollout => {
            json!({ "type": ["integer", "null"], "description": column.title })
        }
        Kind::Time => {
            let text = format!("{}, in seconds since 1970 UTC", column.title);
            json!({ "type": ["integer", "null"], "description": text })
        }
    }
}

fn hand_in() -> Value {
    json!({
        "operationId": "hand_in_receipts",
        "summary": "Hand in receipts. The same ones twice do no harm.",
        "requestBody": { "required": true, "content": { "text/plain": { "schema": {
            "type": "string", "description": "A receipt a line, in hexadecimal digits, as `tenure receipts --save` writes them.",
        } } } },
        "responses": responses(&json!({ "type": "object", "required": ["new", "known"], "properties": {
            "new": { "type": "integer" }, "known": { "type": "integer" },
        } })),
    })
}

fn log() -> Value {
    let text = json!({ "type": "string" });
    let machine = parameter("machine", "Only lines of this machine.", text.clone());
    let after = json!({ "name": "Last-Event-ID", "in": "header", "schema": text,
        "description": "The id of the last event that the client has." });
    let device = json!({ "name": "device", "in": "path", "required": true, "schema": text });
    json!({
        "operationId": "watch_log",
        "summary": "The log of a device as it grows, from its last lines on. The device must show it here.",
        "parameters": [device, machine, after],
        "responses": {
            "200": { "description": "Server-sent events. One without a name is a line, as JSON; `lost` says how many lines \
                are missing there; `end` comes when the pass is over.", "content": { "text/event-stream": { "schema": text } } },
            "400": { "description": "A parameter can't be read." },
            "401": { "description": "No token, or one that isn't good." },
            "403": { "description": "A token without the scope `logs`." },
            "404": { "description": "There is no such device." },
            "429": { "description": "Too many logs are watched." },
        },
    })
}

fn bills() -> Value {
    let text = json!({ "type": "string" });
    json!({
        "operationId": "list_bills",
        "summary": "Bills by month, tenant, device and machine.",
        "parameters": [parameter("month", "Only this month, as `2026-11`.", text.clone())],
        "responses": responses(&json!({ "type": "object", "required": ["items", "next"], "properties": {
            "items": { "type": "array", "items": { "type": "object", "properties": {
                "month": text, "tenant": text, "device": text, "machine": text,
                "receipts": { "type": "integer" },
                "price_millionths": { "type": "string", "description": "A whole number of millionths of the currency." },
                "currency": text,
            } } },
            "next": { "type": "null" },
        } })),
    })
}

fn parameter(name: &str, description: &str, schema: Value) -> Value {
    json!({ "name": name, "in": "query", "description": description, "schema": schema })
}

fn responses(schema: &Value) -> Value {
    json!({
        "200": { "description": "The answer. Its ETag may be sent as If-None-Match.", "content": { "application/json": { "schema": schema } } },
        "304": { "description": "Nothing changed since that ETag." },
        "400": { "description": "A parameter can't be read." },
        "401": { "description": "No token, or one that isn't good." },
        "503": { "description": "The database can't be read or written now." },
    })
}
