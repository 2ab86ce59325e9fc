//! Settings by name, and registries.

use crate::common::{FAR, NEAR};
use ackline_registry::Registry;
use ackline_runtime::Stack;
use ackline_runtime::device::channel::{Channel, ChannelConfig};
use ackline_tcp_core::config::Ecn;
use ackline_tcp_core::policy::builtin::NewReno;
use ackline_tcp_core::policy::spec::{Entry, PolicyKind};
use ackline_tcp_core::policy::{NewCongestionControl, SpecError};
use ackline_tcp_core::{ConnConfig, ListenOn};
use std::io;
use std::sync::Arc;

const MINE: Entry<NewCongestionControl> = Entry::new("mine", |params| {
    params.reject_all("mine")?;
    Ok(Arc::new(|init| Box::new(NewReno::new(init))))
});

#[tokio::test]
async fn a_registrys_defaults_and_options_are_what_connections_run() {
    let (near, far) = Channel::pair(ChannelConfig::default());
    let registry = Registry::default().with_cc(MINE).with_default(PolicyKind::Cc, "mine");
    let near = Stack::builder(near).registry(registry).address(NEAR);
    let near = near
        .options("rto=dclor, sack=off, ephemeral_ports=5000-5000")
        .expect("right")
        .spawn()
        .expect("a stack");
    let far = Stack::builder(far).address(FAR).options("cc=hstcp:rto=b;").expect("right");
    let far = far.spawn().expect("a stack");
    let listener = far.listen(ListenOn::Port(7)).expect("a free port");
    let (stream, accepted) = tokio::join!(near.connect((FAR, 7)), listener.accept());
    let (stream, (accepted, peer)) = (stream.expect("connected"), accepted.expect("accepted"));

    let (info, of_far) = (stream.info().expect("alive"), accepted.info().expect("alive"));
    assert_eq!((info.cc, info.ack_policy, info.rto_response), ("reno", "linux-like", "dclor"));
    assert!(!info.sack && !of_far.sack);
    assert_eq!((of_far.cc, of_far.ack_policy, of_far.rto_response), ("hstcp", "linux-like", "linux"));
    assert_eq!(peer.port(), 5000);
}

#[tokio::test]
async fn later_options_go_over_earlier_ones_and_connections_replace_them() {
    let device = || Channel::pair(ChannelConfig::default()).0;
    let stack = Stack::builder(device()).options("cc=dctcp,iw=2").expect("right");
    let stack = stack.options("cc=cubic").expect("right").spawn().expect("a stack");
    let config = stack.connections();
    assert_eq!((config.ecn, config.initial_window), (Ecn::Off, 2), "cubic does not ask for ECN");

    let stack = Stack::builder(device()).options("iw=2").expect("right").connections(ConnConfig::default());
    assert_eq!(stack.spawn().expect("a stack").connections().initial_window, 10);
}

#[tokio::test]
async fn wrong_options_and_registries_are_refused() {
    let device = || Channel::pair(ChannelConfig::default()).0;
    let error = |text: &str| -> SpecError { Stack::builder(device()).options(text).expect_err("wrong") };
    assert_eq!(
        error("sakc=off").to_string(),
        "unknown option \"sakc\"; did you mean \"sack\"? (ackline list conn, ackline list host)"
    );
    assert_eq!(error("max_rto=1ms").to_string(), "min_rto=200ms is longer than max_rto=1ms");
    assert_eq!(error("cc=mine").to_string(), "unknown congestion control \"mine\" (ackline list cc)");

    let refused = Registry::default().with_cc(MINE).with_cc(MINE);
    let error = Stack::builder(device()).registry(refused).spawn().expect_err("refused");
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    assert!(error.to_string().contains("the name \"mine\" is taken by \"mine\""), "{error}");
}
