//! The parts of a request that handlers ask for; where one can't be had, the answer says so.

use std::convert::Infallible;
use std::marker::PhantomData;

use axum::extract::{FromRequestParts, Path};
use axum::response::Response;
use http::request::Parts;
use serde::de::DeserializeOwned;
use tenure_wire::hub::Scope;

use crate::api::sign_in::Holder;
use crate::exchange::pairs;
use crate::web::nowhere::nothing_here;
use crate::web::pages::layout::or_sign_in;
use crate::web::state::HubState;
use crate::web::{gate, path_of};

/// The parameters of the address, in its order.
#[derive(Clone, Debug)]
pub(crate) struct Parameters(pub(crate) Vec<(String, String)>);

impl Parameters {
    /// The first one called `name`; empty if there is none.
    pub(crate) fn value(&self, name: &str) -> &str {
        value(&self.0, name)
    }
}

/// The first value called `name` of an address or a form; empty if there is none.
pub(crate) fn value<'a>(pairs: &'a [(String, String)], name: &str) -> &'a str {
    pairs.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
}

impl<S: Sync> FromRequestParts<S> for Parameters {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(pairs(parts.uri.query().unwrap_or("").as_bytes())))
    }
}

/// The variable segments of the path. There is nothing where one isn't of its kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segments<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Segments<T> {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        match Path::from_request_parts(parts, state).await {
            Ok(Path(segments)) => Ok(Self(segments)),
            Err(_) => Err(nothing_here(&parts.method, path_of(parts))),
        }
    }
}

/// A part of the API, as the type of a pass.
pub(crate) trait Opens {
    /// Its scope.
    const SCOPE: Scope;
}

/// Lists.
pub(crate) struct Reading;
/// Handing in receipts.
pub(crate) struct HandingIn;
/// Watching logs.
pub(crate) struct Watching;

impl Opens for Reading {
    const SCOPE: Scope = Scope::Read;
}

impl Opens for HandingIn {
    const SCOPE: Scope = Scope::Receipts;
}

impl Opens for Watching {
    const SCOPE: Scope = Scope::Logs;
}

/// A request whose pass goes as far as `O`; others are refused.
pub(crate) struct Pass<O> {
    /// The key that asks.
    pub(crate) who: String,
    pub(crate) holder: Holder,
    _opens: PhantomData<O>,
}

impl<O: Opens> FromRequestParts<HubState> for Pass<O> {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, hub: &HubState) -> Result<Self, Response> {
        let holder = gate::holder_of(hub, &parts.headers, O::SCOPE).await?;
        Ok(Self { who: holder.who.clone(), holder, _opens: PhantomData })
    }
}

/// A browser that is signed in, or a program that may read; a browser that isn't is led to where it signs in.
pub(crate) struct SignedIn {
    /// The key that asks.
    pub(crate) who: String,
    pub(crate) holder: Holder,
}

impl FromRequestParts<HubState> for SignedIn {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, hub: &HubState) -> Result<Self, Response> {
        let holder = gate::holder_of(hub, &parts.headers, Scope::Read).await.map_err(or_sign_in)?;
        Ok(Self { who: holder.who.clone(), holder })
    }
}
