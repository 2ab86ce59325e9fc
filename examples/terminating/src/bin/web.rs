//! An axum application whose listener is ackline's.
//!
//! ```text
//! web DEVICE ADDRESS PORT          web tun0 10.0.0.2 80, and: curl http://10.0.0.2/
//! ```

use ackline::core::ListenOn;
use ackline::runtime::device::tun::Tun;
use ackline::{Stack, TcpListener, TcpStream};
use axum::Router;
use axum::routing::{get, post};
use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use std::{env, io};

/// axum accepts from whatever implements its `Listener`.
struct Listener(TcpListener);

impl axum::serve::Listener for Listener {
    type Io = TcpStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (TcpStream, SocketAddr) {
        match self.0.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                // The device is gone, or the stack has shut down: nothing more will come.
                eprintln!("web: {error}");
                std::future::pending().await
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let [device, address, port] = &words[..] else { return Err("usage: web DEVICE ADDRESS PORT".into()) };
    let address: IpAddr = address.parse()?;
    let stack = Stack::builder(Tun::open_existing(device, true)?).address(address).spawn()?;
    let listener = stack.listen(ListenOn::Port(port.parse()?))?;

    let app = Router::new()
        .route("/", get(|| async { "hello from ackline\n" }))
        .route("/length", post(|body: axum::body::Bytes| async move { format!("{}\n", body.len()) }));
    println!("http://{}/", SocketAddr::new(address, port.parse()?));
    axum::serve(Listener(listener), app)
        .with_graceful_shutdown(async {
            let _ = tokio::signal::ctrl_c().await;
        })
        .await?;
    // What the last answers still have to say leaves before the process ends.
    stack.shutdown(Duration::from_secs(1)).await;
    Ok(())
}
