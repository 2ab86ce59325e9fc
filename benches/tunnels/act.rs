//! What is done and counted in each measurement.

use crate::board::Board;
use crate::case::Act;
use crate::client;
use crate::ending::Ending;
use crate::processor::Spent;
use crate::results::{Metric, Sample};
use crate::rights::Outcome;
use crate::terminator::Terminator;
use ackline_runtime::timer;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// From the first byte of every flow to the measurement: slow start and the growth of buffers are
/// over.
const WARM_UP: Duration = Duration::from_millis(500);
/// For every flow to begin. What has not begun by then is missing in the result.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(5);
/// After connections were opened, until memory is looked at.
const REST: Duration = Duration::from_secs(1);
/// Idle connections that are opened at a time.
const OPENED_AT_A_TIME: usize = 100;
const MEGABYTE: f64 = 1e6;

/// In the clients' namespace.
pub(crate) async fn run(
    act: Act,
    length: Duration,
    terminator: &Terminator,
    board: &Arc<Board>,
) -> Outcome<Sample> {
    client::await_terminator().await.map_err(|error| format!("no connection gets through: {error}"))?;
    let mut sample = Sample::default();
    match act {
        Act::Upload { flows } => bulk(true, flows, length, terminator, board, &mut sample).await,
        Act::Download { flows } => bulk(false, flows, length, terminator, board, &mut sample).await,
        Act::Busy { flows } => {
            bulk(false, flows, length, terminator, board, &mut sample).await;
            // If it has ended, there is nothing to see.
            if let Ok(most) = terminator.most_resident() {
                sample.set(Metric::Resident, most as f64 / MEGABYTE);
            }
        }
        Act::Connects { at_a_time } => {
            let _clients = client::connects(at_a_time, board);
            sleep(WARM_UP).await;
            board.start();
            let start = timer::now();
            sleep(length).await;
            let elapsed = timer::now().since(start).as_secs_f64();
            let connections = connections(board, &mut sample);
            sample.set(Metric::PerSecond, connections as f64 / elapsed);
        }
        Act::Burst { clients } => {
            board.start();
            client::burst(clients, board).await;
            connections(board, &mut sample);
        }
        Act::Idle { connections } => {
            let before = terminator.resident()?;
            let streams = client::idle(connections, OPENED_AT_A_TIME).await;
            sleep(REST).await;
            sample.set(Metric::Served, streams.len() as f64 * 100.0 / connections as f64);
            if let Ok(after) = terminator.resident() {
                let grown = after.saturating_sub(before) as f64;
                sample.set(Metric::BytesEach, grown / streams.len() as f64);
            }
        }
        Act::HalfClose => {
            for ending in Ending::ALL {
                let start = timer::now();
                let clients = client::end(ending).await;
                let mut servers = board.take_servers_ended();
                while servers < Ending::EACH
                    && timer::now().since(start).as_secs_f64() < Ending::IN_TIME.as_secs_f64()
                {
                    sleep(LOOK).await;
                    servers += board.take_servers_ended();
                }
                sample.set(ending.metric(), Ending::EACH.saturating_sub(clients.min(servers)) as f64);
            }
        }
    }
    Ok(sample)
}

async fn bulk(
    upload: bool,
    flows: usize,
    length: Duration,
    terminator: &Terminator,
    board: &Arc<Board>,
    sample: &mut Sample,
) {
    board.start();
    let _clients = client::bulk(upload, flows, board).await;
    let began = timer::now();
    while board.bulk().1 < flows && timer::now().since(began).as_secs_f64() < PATIENCE.as_secs_f64() {
        sleep(LOOK).await;
    }
    sleep(WARM_UP).await;
    board.start();
    let (start, before) = (timer::now(), Spent::by(terminator));
    sleep(length).await;
    let (bytes, served) = board.bulk();
    let elapsed = timer::now().since(start).as_secs_f64();
    // If it has ended, nothing can be said of it.
    if let (Ok(before), Ok(after)) = (before, Spent::by(terminator))
        && bytes > 0
    {
        let spent = after.since(before);
        let gigabytes = bytes as f64 * 1e-9;
        sample.set(Metric::TerminatorPerGigabyte, spent.terminator / gigabytes);
        sample.set(Metric::AllPerGigabyte, spent.all / gigabytes);
    }
    sample.set(Metric::GbitPerSecond, bytes as f64 * 8e-9 / elapsed);
    sample.set(Metric::Served, served as f64 * 100.0 / flows as f64);
}

/// What the board has of connections; how many got their byte back.
fn connections(board: &Board, sample: &mut Sample) -> usize {
    let (times, failed) = board.take_connections();
    sample.set(Metric::Served, times.len() as f64 * 100.0 / (times.len() + failed) as f64);
    for (metric, share) in [(Metric::MedianMicros, 0.5), (Metric::P99Micros, 0.99)] {
        if let Some(time) = times.get((times.len() as f64 * share) as usize) {
            sample.set(metric, time.as_nanos() as f64 / 1e3);
        }
    }
    times.len()
}
