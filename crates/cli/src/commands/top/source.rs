//! Asking the stacks, on a thread of its own: keys are answered while a stack takes its time.

use super::board::Key;
use crate::args::control::StackChoice;
use crate::failure::Failure;
use crate::watchers::control::client::{self, Reply};
use crate::watchers::control::protocol::Request;
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// What is to be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) filter: Vec<String>,
    /// A connection of which everything is asked.
    pub(super) alone: Option<Alone>,
}

/// A connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Alone {
    pub(super) key: Key,
    pub(super) local: SocketAddr,
    pub(super) remote: SocketAddr,
}

/// What the stacks said.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) replies: Vec<Reply>,
    /// The connection that was asked for; `None` if it is gone.
    pub(super) alone: Option<Value>,
    /// Why a stack did not answer.
    pub(super) refusals: Vec<Failure>,
}

/// Asks all stacks of `choice`, and one of them for the connection.
pub(super) fn ask(choice: &StackChoice, question: &Question) -> Answer {
    let (replies, refusals) =
        client::ask_those_there(choice, &Request::Top { filter: question.filter.clone() });
    let alone = question.alone.as_ref().and_then(|alone| look_at(choice, alone));
    Answer { replies, alone, refusals }
}

fn look_at(choice: &StackChoice, alone: &Alone) -> Option<Value> {
    let pid = choice.control.is_none().then_some(alone.key.pid);
    let choice = StackChoice { pid, ..choice.clone() };
    let filter = format!("state all src {} dst {}", alone.local, alone.remote);
    let (replies, _) = client::ask_those_there(&choice, &Request::Show { filter: vec![filter] });
    let connections = replies.into_iter().flat_map(|reply| reply.connections);
    connections
        .into_iter()
        .find(|connection| connection.get("id").and_then(Value::as_str) == Some(alone.key.id.as_str()))
}

/// Starts the thread. It ends once nobody asks any more; questions that came while it asked are
/// answered by one answer to the newest.
pub(super) fn start(choice: StackChoice) -> (Sender<Question>, Receiver<Answer>) {
    let (questions, asked) = channel::<Question>();
    let (answers, answered) = channel();
    thread::spawn(move || {
        while let Ok(mut question) = asked.recv() {
            while let Ok(newer) = asked.try_recv() {
                question = newer;
            }
            if answers.send(ask(&choice, &question)).is_err() {
                return;
            }
        }
    });
    (questions, answered)
}
