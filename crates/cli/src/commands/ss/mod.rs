//! `ackline ss`: the connections of running stacks, as `ss -t` shows those of the kernel.

pub(crate) mod line;
mod summary;

use crate::args::control::SsArgs;
use crate::failure::Failure;
use crate::output;
use crate::watchers::control::client::{self, Reply};
use crate::watchers::control::protocol::{About, Request};
use crate::watchers::filter::Filter;
use line::Connection;
use serde::Serialize;
use serde_json::Value;
use std::net::SocketAddr;
use summary::Stack;

/// The columns.
const HEAD: [&str; 6] = ["State", "Recv-Q", "Send-Q", "Local Address:Port", "Peer Address:Port", "Process"];

/// What `-j` prints of a stack.
#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    stack: About,
    listeners: Vec<client::Listener>,
    connections: Vec<Value>,
}

pub(crate) fn run(args: &SsArgs) -> Result<(), Failure> {
    if args.summary {
        return print_summaries(args);
    }
    let mut filter = args.filter.clone();
    let names_states =
        filter.first().is_some_and(|word| word.starts_with("state") || word.starts_with("exclude"));
    if (args.listening || args.all) && !names_states {
        let states = if args.all { "state all" } else { "state listening" };
        filter.insert(0, states.to_owned());
    }
    // What is wrong with it is wrong without a stack, too.
    Filter::parse(&filter).map_err(Failure::usage)?;
    let mut replies = client::ask(&args.at, &Request::Show { filter })?;
    for Reply { listeners, connections, .. } in &mut replies {
        // A listener at every address listens to both.
        listeners.retain(|listener| listener.local.ip().is_unspecified() || shows(args, listener.local));
        connections.retain(|connection| {
            Connection(connection).text("local").parse().map_or(true, |local| shows(args, local))
        });
    }
    let text = if args.json { json(replies) } else { table(args, &replies) };
    output::print(&text)
}

/// True if `-4` and `-6` permit it.
const fn shows(args: &SsArgs, local: SocketAddr) -> bool {
    if local.is_ipv4() { !args.ipv6 } else { !args.ipv4 }
}

fn print_summaries(args: &SsArgs) -> Result<(), Failure> {
    let replies = client::ask(&args.at, &Request::Summary)?;
    let stacks: Vec<Stack> = replies
        .into_iter()
        .filter_map(|reply| Some(Stack { stack: reply.stack, summary: reply.summary? }))
        .collect();
    let text = if args.json { output::json(&stacks) } else { summary::text(&stacks) };
    output::print(&text)
}

fn json(replies: Vec<Reply>) -> String {
    let reports: Vec<Report> = replies
        .into_iter()
        .map(|Reply { stack, listeners, connections, .. }| Report { stack, listeners, connections })
        .collect();
    output::json(&reports)
}

fn table(args: &SsArgs, replies: &[Reply]) -> String {
    let mut rows = Vec::new();
    if !args.no_header {
        rows.push((HEAD.map(str::to_owned), Vec::new()));
    }
    for Reply { stack, listeners, connections, .. } in replies {
        let process = format!("users:((\"ackline {}\",pid={}))", stack.command, stack.pid);
        for listener in listeners {
            let local = if listener.local.ip().is_unspecified() {
                format!("*:{}", listener.local.port())
            } else {
                listener.local.to_string()
            };
            let cells = [
                "LISTEN".to_owned(),
                listener.queued.to_string(),
                "0".to_owned(),
                local,
                "*:*".to_owned(),
                process.clone(),
            ];
            rows.push((cells, Vec::new()));
        }
        for connection in connections {
            let connection = Connection(connection);
            let mut last = process.clone();
            if args.options && !connection.timer().is_empty() {
                last = format!("{last} {}", connection.timer());
            }
            if args.extended {
                last = format!("{last} sk:{}", connection.text("id"));
            }
            let unsent = connection.count("unacked") + connection.count("notsent_bytes");
            let cells = [
                line::state(connection.text("state")).to_owned(),
                connection.count("unread_bytes").to_string(),
                unsent.to_string(),
                connection.text("local").to_owned(),
                connection.text("remote").to_owned(),
                last,
            ];
            let memory = args.memory.then(|| connection.memory());
            let info = args.info.then(|| connection.info());
            rows.push((cells, memory.into_iter().chain(info).collect()));
        }
    }
    let width = |column: usize| rows.iter().map(|(cells, _)| cells[column].len()).max().unwrap_or(0);
    let widths: [usize; HEAD.len()] = std::array::from_fn(width);
    let mut text = String::new();
    for (cells, details) in &rows {
        let padded: Vec<String> =
            cells.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        text += padded.join(" ").trim_end();
        if !details.is_empty() {
            text += if args.oneline { " " } else { "\n\t " };
            text += &details.join(" ");
        }
        text.push('\n');
    }
    text
}
