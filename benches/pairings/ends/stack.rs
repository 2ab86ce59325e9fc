//! ackline.

use super::application::talk;
use super::{Act, End, PORT, Role};
use crate::bridge::Wire;
use ackline::Registry;
use ackline_observe::capture::{Capture, CaptureOptions};
use ackline_runtime::Stack;
use ackline_tcp_core::ListenOn;
use std::future::pending;

pub(super) fn start(wire: Wire, act: Act) -> Result<End, String> {
    let stack = Stack::builder(wire)
        .address(act.role.here())
        .connections(Registry::default().conn_config())
        .spawn()
        .map_err(|error| error.to_string())?;
    let capture = act.capture.as_ref().map(|file| {
        let capture = Capture::start(file, CaptureOptions::new("ack0", 0))?;
        stack.set_observer(Some(capture.observer()));
        Ok(capture)
    });
    let capture = capture.transpose().map_err(|error: std::io::Error| error.to_string())?;
    let listener = match act.role {
        Role::Server => Some(stack.listen(ListenOn::Port(PORT)).map_err(|error| error.to_string())?),
        Role::Client => None,
    };
    Ok(End::spawn(|say| async move {
        let opened = match &listener {
            Some(listener) => listener.accept().await.map(|(stream, _)| stream),
            None => stack.connect((act.role.peer(), PORT)).await,
        };
        let said = match opened {
            Ok(mut stream) => {
                let (reads, writes) = stream.split();
                talk(reads, writes, act).await
            }
            Err(error) => Err(error.to_string()),
        };
        // Nobody listens any more if the exchange has ended.
        let _ = say.send(said);
        pending::<()>().await;
        drop((stack, capture));
    }))
}
