//! Spans of connections, as a subscriber of `tracing` gets them.

use crate::common::*;
use ackline_runtime::device::channel::ChannelConfig;
use ackline_runtime::spans::ConnectionSpans;
use ackline_tcp_core::{ConnConfig, ListenOn};
use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Writes down what it is told.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn push(&self, line: String) -> u64 {
        let mut lines = self.0.lock().expect("whole lines");
        lines.push(line);
        lines.len() as u64
    }

    fn lines(&self) -> Vec<String> {
        self.0.lock().expect("whole lines").clone()
    }
}

/// Fields as text.
struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {}={value:?}", field.name()).expect("a string takes everything");
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "ackline"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        assert!(span.is_root(), "tasks of others are no parents");
        let mut fields = Fields(format!("open {} {}", span.metadata().level(), span.metadata().name()));
        span.record(&mut fields);
        Id::from_u64(self.push(fields.0))
    }

    fn event(&self, event: &Event<'_>) {
        let span = event.parent().expect("a connection's").into_u64();
        let mut fields = Fields(format!("{span}: {}", event.metadata().level()));
        event.record(&mut fields);
        self.push(fields.0);
    }

    fn try_close(&self, id: Id) -> bool {
        self.push(format!("close {}", id.into_u64()));
        true
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[tokio::test]
async fn a_connection_is_a_span_with_its_states_and_its_end() {
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let (near, far) = hosts(ChannelConfig::default(), ConnConfig::default());
    near.set_tracer(Some(Box::new(ConnectionSpans::default())));
    let listener = far.listen(ListenOn::Port(PORT)).expect("listens");

    // One that is closed in order, and one that the peer resets.
    let mut stream = near.connect((FAR, PORT)).await.expect("connects");
    let local = stream.addresses().0;
    let (mut peer, _) = listener.accept().await.expect("accepts");
    peer.shutdown().await.expect("closed");
    assert_eq!(stream.read(&mut [0]).await.expect("the end"), 0);
    stream.shutdown().await.expect("closed");
    drop(stream);
    assert_eq!(peer.read(&mut [0]).await.expect("the end"), 0);
    drop(peer);
    let mut stream = near.connect((FAR, PORT)).await.expect("connects");
    let (peer, _) = listener.accept().await.expect("accepts");
    peer.abort();
    stream.read(&mut [0]).await.expect_err("reset");
    drop(stream);

    let lines = log.lines();
    let first =
        format!("open INFO connection id=0 local={local} remote={} role=\"active\"", socket(FAR, PORT));
    assert_eq!(lines[0], first, "{lines:#?}");
    let of_first: Vec<_> = lines.iter().filter_map(|line| line.strip_prefix("1: ")).collect();
    assert_eq!(
        of_first,
        [
            "DEBUG message=state from=CLOSED to=SYN-SENT",
            "DEBUG message=state from=SYN-SENT to=ESTABLISHED",
            "DEBUG message=state from=ESTABLISHED to=CLOSE-WAIT",
            "DEBUG message=state from=CLOSE-WAIT to=LAST-ACK",
            "DEBUG message=state from=LAST-ACK to=CLOSED",
            "INFO message=closed",
        ]
    );
    assert!(lines.contains(&"close 1".to_owned()), "{lines:#?}");
    let [.., closed, close] = &lines[..] else { panic!("{lines:#?}") };
    assert!(closed.ends_with("INFO message=closed error=connection reset by peer"), "{lines:#?}");
    assert!(close.starts_with("close "), "{lines:#?}");
}
