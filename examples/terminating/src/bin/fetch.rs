//! An HTTP client on ackline's connections: hyper on top of them, and rustls between if the URL
//! says so.
//!
//! ```text
//! fetch DEVICE ADDRESS URL [CERTIFICATES]          fetch tun0 10.0.0.2 http://10.0.0.1/
//! ```

use ackline::Stack;
use ackline::runtime::device::tun::Tun;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::HOST;
use hyper::{Request, Uri};
use hyper_util::rt::TokioIo;
use std::env;
use std::error::Error;
use std::io::{Write as _, stdout};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let [device, address, url, trusted @ ..] = &words[..] else {
        return Err("usage: fetch DEVICE ADDRESS URL [CERTIFICATES]".into());
    };
    let (address, url): (IpAddr, Uri) = (address.parse()?, url.parse()?);
    let host: IpAddr = url.host().ok_or("the URL names no host")?.trim_matches(['[', ']']).parse()?;
    let port = |usual| (host, url.port_u16().unwrap_or(usual));

    let stack = Stack::builder(Tun::open_existing(device, true)?).address(address).spawn()?;
    match (url.scheme_str(), trusted) {
        (Some("http"), []) => get(stack.connect(port(80)).await?, &url).await?,
        (Some("https"), [trusted]) => {
            let mut roots = RootCertStore::empty();
            for certificate in CertificateDer::pem_file_iter(trusted)? {
                roots.add(certificate?)?;
            }
            let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
            let tls = TlsConnector::from(Arc::new(config));
            let tcp = stack.connect(port(443)).await?;
            get(tls.connect(host.into(), tcp).await?, &url).await?;
        }
        _ => return Err("http:// needs no certificates, and https:// a file of those to trust".into()),
    }
    stack.shutdown(Duration::from_secs(1)).await;
    Ok(())
}

/// Writes what the server answers to standard output.
async fn get(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    url: &Uri,
) -> Result<(), Box<dyn Error>> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // It drives the connection while this task waits for the answer.
    tokio::spawn(connection);
    let host = url.authority().map(|authority| authority.as_str()).unwrap_or_default();
    let request = Request::get(url.path()).header(HOST, host).body(Empty::<Bytes>::new())?;
    let mut response = sender.send_request(request).await?;
    if !response.status().is_success() {
        return Err(format!("{url}: {}", response.status()).into());
    }
    while let Some(frame) = response.frame().await {
        if let Ok(data) = frame?.into_data() {
            stdout().write_all(&data)?;
        }
    }
    Ok(())
}
