//! The same with TLS: tokio-rustls on ackline's streams, and axum on top of both.
//!
//! ```text
//! tls DEVICE ADDRESS PORT CERTIFICATE KEY          tls tun0 10.0.0.2 443 cert.pem key.pem
//! ```
//!
//! A certificate to try it with, and a client that trusts it:
//!
//! ```text
//! openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key.pem -out cert.pem \
//!     -subj /CN=example.test -addext subjectAltName=DNS:example.test
//! curl --cacert cert.pem --resolve example.test:443:10.0.0.2 https://example.test/
//! ```

use ackline::core::ListenOn;
use ackline::runtime::device::tun::Tun;
use ackline::{Stack, TcpListener, TcpStream};
use axum::Router;
use axum::routing::get;
use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use std::{env, io};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::server::TlsStream;

/// A client that has not finished its handshake by then is no client.
const HANDSHAKE: Duration = Duration::from_secs(10);

type Secured = (TlsStream<TcpStream>, SocketAddr);

/// Connections whose TLS handshake is done.
struct Listener {
    on: SocketAddr,
    ready: mpsc::Receiver<Secured>,
}

impl Listener {
    /// Each handshake has a task of its own, so that a slow client keeps nobody waiting.
    fn new(tcp: TcpListener, tls: TlsAcceptor) -> io::Result<Self> {
        let on = tcp.local_addr()?;
        let (done, ready) = mpsc::channel(16);
        tokio::spawn(async move {
            while let Ok((stream, peer)) = tcp.accept().await {
                let (tls, done) = (tls.clone(), done.clone());
                tokio::spawn(async move {
                    match tokio::time::timeout(HANDSHAKE, tls.accept(stream)).await {
                        // Fails if the listener is gone.
                        Ok(Ok(secured)) => drop(done.send((secured, peer)).await),
                        Ok(Err(error)) => eprintln!("tls: {peer}: {error}"),
                        Err(_) => eprintln!("tls: {peer}: no handshake within {HANDSHAKE:?}"),
                    }
                });
            }
        });
        Ok(Self { on, ready })
    }
}

impl axum::serve::Listener for Listener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> Secured {
        match self.ready.recv().await {
            Some(secured) => secured,
            // The device is gone, or the stack has shut down: nothing more will come.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.on)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let [device, address, port, certificate, key] = &words[..] else {
        return Err("usage: tls DEVICE ADDRESS PORT CERTIFICATE KEY".into());
    };
    let chain = CertificateDer::pem_file_iter(certificate)?.collect::<Result<Vec<_>, _>>()?;
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, PrivateKeyDer::from_pem_file(key)?)?;

    let address: IpAddr = address.parse()?;
    let stack = Stack::builder(Tun::open_existing(device, true)?).address(address).spawn()?;
    let tcp = stack.listen(ListenOn::Port(port.parse()?))?;
    let listener = Listener::new(tcp, TlsAcceptor::from(Arc::new(config)))?;

    println!("https://{}/", SocketAddr::new(address, port.parse()?));
    let app = Router::new().route("/", get(|| async { "hello from ackline, over TLS\n" }));
    axum::serve(listener, app)
        .with_graceful_shutdown(async {
            let _ = tokio::signal::ctrl_c().await;
        })
        .await?;
    stack.shutdown(Duration::from_secs(1)).await;
    Ok(())
}
