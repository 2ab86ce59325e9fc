//! Descriptors that are used up: in a process of its own, whose limit the test lowers.

use ackline_proxy::{Config, Proxy, Rules};
use ackline_runtime::Stack;
use ackline_runtime::device::channel::{Channel, ChannelConfig};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::Read as _;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::time::{sleep, timeout};

const CLIENT: Ipv4Addr = Ipv4Addr::new(100, 64, 0, 2);
const OWN: Ipv4Addr = Ipv4Addr::new(100, 64, 0, 1);
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn who_finds_no_descriptor_waits_and_is_served_once_one_is_free() {
    // The server's ends of connections are in this process, too: one is closed at once, so each
    // connection takes the proxy's end alone.
    let server = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener");
    let port = server.local_addr().expect("bound").port();
    let (device, end) = Channel::pair(ChannelConfig::default());
    let stack = Stack::builder(device).any_address().spawn().expect("a stack");
    let client = Stack::builder(end).address(CLIENT).spawn().expect("a stack");
    let lines = Arc::new(Mutex::new(vec![]));
    let said = lines.clone();
    let config = Config {
        rules: Rules::all_through("direct".parse().expect("an upstream")),
        own: vec![OWN.into()],
        loopback: true,
        say: Some(Arc::new(move |line| said.lock().expect("no panic").push(line.to_owned()))),
        ..Config::default()
    };
    let mut proxy = Proxy::new(&stack, config).expect("a proxy");
    let meter = proxy.meter();
    let running = tokio::spawn(async move { proxy.run().await });

    let open = std::fs::read_dir("/proc/self/fd").expect("proc").count() as u64;
    let before = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(open + 10), ..before }).expect("less");
    // The kernel completes the connections; nobody has to accept them.
    let mut streams = vec![];
    let used_up = async {
        while meter.read().no_descriptor == 0 {
            sleep(Duration::from_millis(1)).await;
        }
    };
    let mut used_up = std::pin::pin!(used_up);
    loop {
        assert!(streams.len() < 100, "a limit");
        tokio::select! {
            stream = client.connect((OWN, port)) => streams.push(stream.expect("connected")),
            () = &mut used_up => break,
        }
    }
    let stats = meter.read();
    assert!(stats.no_descriptor > 0 && !streams.is_empty(), "{stats:?}");
    let told = lines.lock().expect("no panic").clone();
    assert!(told.len() == 1 && told[0].contains("wait until some have ended"), "{told:?}");
    // A client that waits is served when another one has ended: by one of its own repetitions.
    let waiting = tokio::spawn(async move { client.connect((OWN, port)).await });
    sleep(Duration::from_millis(50)).await;
    assert!(!waiting.is_finished(), "no descriptor is free");
    for stream in streams.drain(..3) {
        stream.abort();
    }
    let mut stream =
        timeout(PATIENCE, waiting).await.expect("in time").expect("no panic").expect("connected");
    setrlimit(Resource::Nofile, before).expect("as before");
    // What is accepted works, the latest connection last.
    stream.write_all(b"x").await.expect("sent");
    server.set_nonblocking(true).expect("an option");
    let found = async {
        let mut accepted = vec![];
        loop {
            if let Ok((far, _)) = server.accept() {
                far.set_nonblocking(true).expect("an option");
                accepted.push(far);
            }
            if accepted.iter().any(|mut far| matches!(far.read(&mut [0; 1]), Ok(1))) {
                break;
            }
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(PATIENCE, found).await.expect("in time");
    assert!(!running.is_finished(), "the proxy goes on");
}
