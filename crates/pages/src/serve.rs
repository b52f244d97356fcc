//! Pages of machines at hosts of their own: each request to the machine whose host it names.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use http::{HeaderValue, Method, Request, Response, StatusCode, header, request};
use hyper::body::Incoming;
use tenure_http_listener::{Bounds, Host};

use crate::machines::{Cookies, Machines, PageBody, Visit, no_page};
use crate::origin::{Meant, Origins, host_asked};
use crate::visits::Visits;
use crate::{fence, index};

/// Pages of machines, and what they are served from.
#[derive(Clone, Debug)]
pub struct Pages<V> {
    /// The hosts that they have.
    pub origins: Origins,
    /// The calls of visitors.
    pub visits: V,
    /// Whether visitors come by a proxy, which then sees to it that no host takes all connections.
    pub by_proxy: bool,
}

/// Serves pages by `listener`, on a thread of its own, until the process ends. Returns the address.
///
/// # Errors
/// The system has no thread.
pub fn serve<V: Visits>(listener: TcpListener, pages: Pages<V>) -> std::io::Result<SocketAddr> {
    let bounds = Bounds { by_host: !pages.by_proxy, ..Bounds::USUAL };
    let server = Server {
        by_proxy: pages.by_proxy,
        origins: Arc::new(pages.origins),
        visits: pages.visits,
        machines: Machines::default(),
    };
    tenure_http_listener::serve(listener, "pages", bounds, move |request| {
        let server = server.clone();
        async move { server.answer(request).await }
    })
}

#[derive(Clone)]
struct Server<V> {
    by_proxy: bool,
    origins: Arc<Origins>,
    visits: V,
    machines: Machines,
}

impl<V: Visits> Server<V> {
    async fn answer(&self, request: Request<Incoming>) -> Response<PageBody> {
        let (parts, body) = request.into_parts();
        let line = |status, text| index::line(status, text).into_response();
        let Some(host) = host_asked(&parts) else {
            return line(StatusCode::BAD_REQUEST, "the request names no host, or several");
        };
        let Some(meant) = self.origins.meant(host) else {
            // RFC 9110 §15.5.20: a host that these pages don't have.
            return line(StatusCode::MISDIRECTED_REQUEST, "no page has this host");
        };
        if fence::is_foreign_change(&parts.method, &parts.headers) {
            return line(StatusCode::FORBIDDEN, "this request doesn't come from the page itself");
        }
        match meant {
            Meant::Index => self.index(&parts, host).await,
            Meant::Machine(machine) => {
                // A proxy may have this host of the pages' own instead of the browser's.
                let own = self.origins.host_of_its_own(host).filter(|_| !self.by_proxy);
                if let Some(own) = own {
                    return moved(&own, &parts);
                }
                let cookies = match self.by_proxy && self.origins.is_below_domain(host) {
                    true => Cookies::OfItsHostAlone,
                    false => Cookies::OfItsHost,
                };
                let visitor = self.visitor(&parts);
                let visit = Visit { machine, parts, visitor, cookies, below: None };
                self.machines.answer(&self.visits, visit, body).await
            }
        }
    }

    /// The host that visits: a proxy has them all, and tells them apart.
    fn visitor(&self, parts: &request::Parts) -> Option<String> {
        let host = match self.by_proxy {
            true => Host::told_by_proxy(&parts.headers),
            false => parts.extensions.get::<Host>().copied(),
        };
        host.map(|Host(host)| host.to_string())
    }

    async fn index(&self, parts: &request::Parts, host: &str) -> Response<PageBody> {
        if parts.uri.path() != "/" {
            let text = "each machine's page has a host of its own; / lists them";
            return index::line(StatusCode::NOT_FOUND, text).into_response();
        }
        if !matches!(parts.method, Method::GET | Method::HEAD) {
            let mut answer =
                index::line(StatusCode::METHOD_NOT_ALLOWED, "the list is only to be read");
            answer.headers.insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
            return answer.into_response();
        }
        let answer = match self.visits.entries().await {
            Ok(entries) => index::page(&entries, host),
            Err(reason) => no_page(reason),
        };
        answer.into_response()
    }
}

/// Leads a browser to a host that is the page's alone.
fn moved(host: &str, parts: &request::Parts) -> Response<PageBody> {
    let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
    let mut answer = index::line(StatusCode::TEMPORARY_REDIRECT, "this page has a host of its own");
    // Both come from a request that was read, so it is a place.
    if let Ok(location) = HeaderValue::from_str(&format!("//{host}{target}")) {
        answer.headers.insert(header::LOCATION, location);
    }
    answer.into_response()
}
