//! `ackline publish`: the published ports of a running proxy.

use crate::args::control::{PublishArgs, StackChoice};
use crate::failure::Failure;
use crate::output;
use crate::watchers::control::client::{self, Reply};
use crate::watchers::control::protocol::Request;
use ackline_proxy::Publish;
use std::fmt::Write as _;

/// What a proxy is called that answers at a control socket.
const PROXY: &str = "proxy";

pub(crate) fn run(args: &PublishArgs) -> Result<(), Failure> {
    // What is wrong with it is wrong without a proxy, too.
    for text in &args.ports {
        text.parse::<Publish>().map_err(|error| Failure::usage(format!("{text:?}: {error}")))?;
    }
    let nothing = Request::Publish { add: vec![], remove: vec![] };
    let replies = if args.ports.is_empty() {
        client::ask(&args.at, &nothing)?
    } else {
        let proxies = client::ask(&args.at, &nothing)?;
        let proxies: Vec<u32> = proxies
            .iter()
            .map(|reply| &reply.stack)
            .filter(|stack| stack.command == PROXY)
            .map(|stack| stack.pid)
            .collect();
        let only = match proxies[..] {
            [only] => only,
            [] => return Err(Failure::usage("no proxy of this user runs; start one with ackline proxy")),
            _ => return Err(Failure::usage("several proxies run; name one with --pid or --control")),
        };
        let at = match args.at.control {
            Some(_) => args.at.clone(),
            None => StackChoice { pid: Some(only), ..args.at.clone() },
        };
        let (add, remove) =
            if args.remove { (vec![], args.ports.clone()) } else { (args.ports.clone(), vec![]) };
        client::ask(&at, &Request::Publish { add, remove })?
    };
    output::print(&if args.json { output::json(&all(&replies)) + "\n" } else { lines(&replies) })
}

/// Each port of each proxy.
fn all(replies: &[Reply]) -> Vec<serde_json::Value> {
    let of = |reply: &Reply| {
        let pid = reply.stack.pid;
        let ports = reply.published.iter().map(move |published| {
            serde_json::json!({ "pid": pid, "publish": published.publish, "listens": published.listens })
        });
        ports.collect::<Vec<_>>()
    };
    replies.iter().flat_map(of).collect()
}

fn lines(replies: &[Reply]) -> String {
    let mut text = String::new();
    for reply in replies {
        for published in &reply.published {
            let _ = writeln!(text, "{}  pid={}", published.publish, reply.stack.pid);
        }
    }
    text
}
