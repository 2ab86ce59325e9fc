//! Ten thousand connections of one stack at its control socket.

use super::client::{Reply, ask};
use super::protocol::Request;
use super::*;
use crate::args::control::StackChoice;
use crate::args::{Cli, Command};
use crate::output;
use crate::watchers::recorded::RecordedCounters;
use ackline::Registry;
use ackline::core::{ListenOn, State};
use ackline::runtime::device::channel::{Channel, ChannelConfig};
use ackline::runtime::{TcpStream, timer};
use clap::Parser as _;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::runtime::{Builder, Runtime};

const CROWD: usize = 10_000;
const NEAR: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);
const FAR: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
const PORT: u16 = 5001;

/// What the kernel's buffer of a socket and the server may hold of an answer that nobody reads.
const MOST_AHEAD: usize = 1 << 20;

/// How often an answer is asked for during which the data should flow.
const ATTEMPTS: usize = 10;

/// A stack with a crowd of connections, and its control socket.
struct Crowd {
    at: StackChoice,
    /// Local addresses of the first and the last connection, over which bytes go to and fro.
    busy: [SocketAddr; 2],
    /// Longest time of a byte there and back, in nanoseconds.
    longest: Arc<AtomicU64>,
    _idle: Vec<TcpStream>,
    _control: Option<Control>,
    _folder: TempDir,
    _runtime: Runtime,
}

/// Sends back what comes.
async fn echo(mut stream: TcpStream) {
    let mut byte = [0];
    while stream.read_exact(&mut byte).await.is_ok() && stream.write_all(&byte).await.is_ok() {}
}

/// A byte there and back over the first stream, and then one over the last, again and again: at any
/// instant the first has received as many bytes as the last, or one more.
async fn alternate([mut first, mut last]: [TcpStream; 2], longest: Arc<AtomicU64>) {
    loop {
        for stream in [&mut first, &mut last] {
            let start = timer::now();
            stream.write_all(&[1]).await.expect("the connection stands");
            stream.read_exact(&mut [0]).await.expect("the connection stands");
            longest.fetch_max(timer::now().since(start).as_nanos(), Ordering::Relaxed);
        }
    }
}

fn crowd() -> Crowd {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("c.sock");
    let path_text = path.to_str().expect("UTF-8");
    // Nobody is sent away for being slow.
    let words = ["ackline", "send", "--control", path_text, "--control-timeout", "10m", "-", "h:1"];
    let Ok(Cli { command: Command::Send(args) }) = Cli::try_parse_from(words) else { panic!("wrong words") };
    let settings = args.policies.resolve(&Registry::default()).expect("the defaults");

    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let longest = Arc::<AtomicU64>::default();
    let (stack, idle, busy) = runtime.block_on(async {
        let (near, far) = Channel::pair(ChannelConfig::default());
        let [near, far] = [(near, NEAR), (far, FAR)].map(|(device, address)| {
            let builder = Stack::builder(device).address(IpAddr::from(address));
            builder.connections(Registry::default().conn_config()).spawn().expect("a stack")
        });
        let listener = far.listen(ListenOn::Port(PORT)).expect("a free port");
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(echo(stream));
            }
        });
        let mut streams = Vec::new();
        while streams.len() < CROWD {
            streams.push(near.connect((FAR, PORT)).await.expect("connected"));
        }
        let last = streams.pop().expect("there");
        let busy = [streams.remove(0), last];
        let addresses = busy.each_ref().map(|stream| stream.addresses().0);
        tokio::spawn(alternate(busy, longest.clone()));
        (near, streams, addresses)
    });
    let control =
        args.watch.control.place().serve(&stack, &settings, "send", RecordedCounters::default(), None);
    Crowd {
        at: StackChoice { pid: None, control: Some(path), max_answer: 1 << 30 },
        busy,
        longest,
        _idle: idle,
        _control: control.expect("a socket"),
        _folder: folder,
        _runtime: runtime,
    }
}

impl Crowd {
    /// Asks, and prints how long that took, and how long a byte of the busy connections took
    /// meanwhile.
    fn asked(&self, what: &str, request: &Request) -> Reply {
        self.longest.store(0, Ordering::Relaxed);
        let start = timer::now();
        let mut replies = ask(&self.at, request).unwrap_or_else(|failure| panic!("{what}: {failure}"));
        let (took, longest) = (timer::now().since(start), self.longest.load(Ordering::Relaxed));
        println!("{what}: {took:?}; longest round trip of a byte {:.2} ms", longest as f64 / 1e6);
        replies.pop().expect("a stack")
    }

    fn show(&self, filter: &str) -> Reply {
        self.asked(&format!("ss {filter}"), &Request::Show { filter: words(filter) })
    }

    fn set(&self, options: &str, filter: &str) -> usize {
        let request = Request::Set { options: options.to_owned(), filter: words(filter) };
        self.asked(&format!("set {options} {filter}"), &request).done
    }

    /// By how many bytes the last connection is ahead of the first in an answer.
    fn ahead(&self, reply: &Reply) -> i64 {
        let [first, last] = self.busy.map(|address| {
            let of = |shown: &&Value| shown["local"] == address.to_string();
            let shown = reply.connections.iter().find(of).expect("it is there");
            shown["bytes_received"].as_i64().expect("a number")
        });
        last - first
    }
}

fn words(filter: &str) -> Vec<String> {
    filter.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn a_crowd_is_shown_and_changed_while_its_data_flows() {
    let crowd = crowd();
    let all = crowd.show("");
    let ids: BTreeSet<&str> = all.connections.iter().filter_map(|shown| shown["id"].as_str()).collect();
    assert_eq!((ids.len(), all.connections.len(), all.done), (CROWD, CROWD, CROWD));
    let port = crowd.busy[1].port();
    let alone = crowd.show(&format!("sport = :{port}"));
    assert_eq!((alone.connections.len(), alone.done), (1, 1));
    assert_eq!(crowd.show("state time-wait").done, 0);
    let whole = crowd.asked("ss -s", &Request::Summary).summary.expect("a summary");
    assert_eq!(whole.census.in_state(State::Established), CROWD as u64);
    let filter = words(&format!("dst {FAR} and not sport = :{port}"));
    let top = crowd.asked("top", &Request::Top { filter });
    assert_eq!((top.rows.len(), top.done), (CROWD - 1, CROWD - 1));
    assert_eq!(top.summary.expect("a summary").census.in_state(State::Established), CROWD as u64);
    assert_eq!(crowd.set("ack=immediate", ""), CROWD);
    let changed = crowd.show("");
    assert!(changed.connections.iter().all(|shown| shown["ack_policy"] == "immediate"));

    // Shown under one hold of the lock, the last connection could not be ahead of the first.
    let flows = |reply: &Reply| crowd.ahead(reply) > 0;
    let flowed = flows(&all) || flows(&changed) || (0..ATTEMPTS).any(|_| flows(&crowd.show("")));
    assert!(flowed, "no byte arrived between the first line of an answer and its last");

    the_answer_of_a_slow_reader_is_made_as_it_reads(&crowd);
}

/// What it has not read is not made yet: it shows what happened since.
fn the_answer_of_a_slow_reader_is_made_as_it_reads(crowd: &Crowd) {
    assert_eq!(crowd.set("cc=reno", ""), CROWD);
    let path = crowd.at.control.as_ref().expect("a path");
    let mut slow = UnixStream::connect(path).expect("it listens");
    let request = output::json_line(&Request::Show { filter: vec![] });
    slow.write_all(request.as_bytes()).expect("taken");
    let mut lines = BufReader::new(slow).lines().map(|line| line.expect("readable"));
    assert!(lines.next().expect("who answers").starts_with("{\"stack\":"));
    // Another client is served meanwhile.
    assert_eq!(crowd.set("cc=cubic", ""), CROWD);
    let (mut shown, mut before, mut size) = (0, 0, 0);
    for line in lines {
        size += line.len();
        shown += usize::from(line.starts_with("{\"connection\":"));
        if line.contains("\"cc\":\"reno\"") {
            before += line.len();
        }
    }
    println!("{before} of {size} bytes were made before they were read");
    assert_eq!(shown, CROWD);
    assert!(before < MOST_AHEAD && MOST_AHEAD < size, "{before} of {size} bytes");
}
