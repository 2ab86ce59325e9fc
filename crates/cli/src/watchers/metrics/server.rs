//! HTTP: one page.

use super::exposition::Exposition;
use crate::watchers::background;
use http::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::TcpListener as StdListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Clients at once; others find their connection closed.
const MAX_CLIENTS: usize = 8;

/// Time for a client to ask, and to read the answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Largest head of a request, in bytes.
const MAX_HEAD: usize = 16 << 10;

/// The media type of Prometheus's text format.
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// Answers until `stopped`.
pub(super) async fn run(listener: StdListener, exposition: Exposition, stopped: oneshot::Receiver<()>) {
    // Fails only without a reactor, and the runtime has one.
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    let shared = Arc::new((exposition, AtomicU64::new(0)));
    let accept = async || listener.accept().await.map(|(stream, _)| stream);
    let attend = |stream| {
        let shared = shared.clone();
        async move {
            let (exposition, refused) = &*shared;
            let _ = timeout(PATIENCE, attend(stream, exposition, refused)).await;
        }
    };
    let refuse = |_| {
        shared.1.fetch_add(1, Ordering::Relaxed);
    };
    background::serve(MAX_CLIENTS, stopped, accept, attend, refuse).await;
}

/// One request of one client. What goes wrong with it is the client's.
async fn attend(stream: TcpStream, exposition: &Exposition, refused: &AtomicU64) {
    let service = service_fn(|request: Request<Incoming>| async move {
        Ok::<_, Infallible>(answer(&request, || exposition.text(refused.load(Ordering::Relaxed))))
    });
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .keep_alive(false)
        .max_buf_size(MAX_HEAD)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

fn answer<B>(request: &Request<B>, text: impl FnOnce() -> Result<String, String>) -> Response<String> {
    let known = matches!(*request.method(), Method::GET | Method::HEAD);
    let (status, text) = match request.uri().path() {
        "/metrics" if known => match text() {
            Ok(text) => (StatusCode::OK, text),
            Err(why) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{why}\n")),
        },
        "/metrics" => (StatusCode::METHOD_NOT_ALLOWED, String::new()),
        _ => (StatusCode::NOT_FOUND, "the metrics are at /metrics\n".to_owned()),
    };
    let mut response = Response::new(text);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, TEXT);
    if status == StatusCode::METHOD_NOT_ALLOWED {
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(method: Method, path: &str) -> Response<String> {
        let request = Request::builder().method(method).uri(path).body(()).expect("right");
        answer(&request, || Ok("x 1\n".to_owned()))
    }

    #[test]
    fn there_is_one_page() {
        let page = asked(Method::GET, "/metrics");
        assert_eq!((page.status(), page.body().as_str()), (StatusCode::OK, "x 1\n"));
        assert_eq!(page.headers()[CONTENT_TYPE], "text/plain; version=0.0.4; charset=utf-8");
        assert_eq!(asked(Method::GET, "/").status(), StatusCode::NOT_FOUND);
        let refused = asked(Method::POST, "/metrics");
        assert_eq!(refused.status(), StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(refused.headers()[ALLOW], "GET, HEAD");
    }
}
