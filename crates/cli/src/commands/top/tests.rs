//! Screens of fixed data, and what keys make of them.

use super::app::{App, Screen};
use super::source::Answer;
use super::{lines, view};
use crate::args::column::Column;
use crate::settings::PolicyNames;
use crate::watchers::control::client::{Reply, Row};
use crate::watchers::control::protocol::About;
use crate::watchers::summary::{Census, Summary};
use ackline::core::State;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::json;
use std::time::Duration;

fn about(pid: u32, command: &str) -> About {
    About { pid, command: command.to_owned(), started: u64::from(pid) }
}

/// A stack `second` seconds after its begin, which sends 10 Mbit/s and receives 1 Mbit/s.
fn summary(second: u64, connections: u64) -> Summary {
    let mut census = Census::default();
    census.states[0] = connections;
    assert_eq!(census.in_state(State::Established), connections);
    let policies = ["cubic", "linux-like", "linux", "flow-queue"].map(str::to_owned);
    let [cc, ack, rto, sched] = policies;
    Summary {
        now: second * 1_000_000_000,
        policies: PolicyNames { cc, ack, rto, sched },
        census,
        orphans: 0,
        memory: 12 << 20,
        max_memory: Some(1 << 30),
        memory_pressure: false,
        rx_bytes: second * 125_000,
        rx_packets: second * 100,
        tx_bytes: second * 1_250_000,
        tx_packets: second * 1_000,
        device_drops: second * 2,
        out_segs: second * 1_000,
        retrans_segs: second * 5,
    }
}

/// A connection that sends `mbit` Mbit/s.
fn row(id: u16, mbit: u64, second: u64) -> Row {
    Row {
        id: format!("{id}"),
        state: "ESTABLISHED".to_owned(),
        local: "198.18.0.2:4000".parse().expect("an address"),
        remote: format!("198.18.0.1:{}", 5_000 + id).parse().expect("an address"),
        cc: "cubic".to_owned(),
        rtt: Some(1_350_000),
        snd_cwnd: 14_480,
        unacked: 65_536,
        notsent_bytes: 0,
        unread_bytes: 0,
        bytes_acked: second * mbit * 125_000,
        bytes_received: 0,
        total_retrans: if id == 2 { second } else { 0 },
        blocked: "no".to_owned(),
    }
}

fn reply(stack: About, rows: Vec<Row>, second: u64) -> Reply {
    let summary = Some(summary(second, rows.len() as u64));
    Reply {
        stack,
        listeners: Vec::new(),
        connections: Vec::new(),
        rows,
        summary,
        counters: Vec::new(),
        published: Vec::new(),
        done: 0,
    }
}

fn answer(replies: Vec<Reply>) -> Answer {
    Answer { replies, alone: None, refusals: Vec::new() }
}

/// Two stacks with three connections, looked at twice.
fn app() -> App {
    let mut app = App::new(Column::Tx, false, Vec::new(), Duration::from_secs(1));
    for second in [1, 2] {
        app.take(answer(vec![
            reply(about(4711, "recv"), vec![row(1, 1, second), row(2, 100, second)], second),
            reply(about(4712, "send"), vec![row(3, 20, second)], second),
        ]));
    }
    app
}

fn screen(app: &mut App, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("memory");
    terminal.draw(|frame| view::draw(frame, app)).expect("drawn");
    let buffer = terminal.backend().buffer();
    (0..height)
        .map(|y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned())
        .collect()
}

fn press(app: &mut App, keys: &str) {
    for key in keys.chars() {
        let code = match key {
            '\n' => KeyCode::Enter,
            '\u{1b}' => KeyCode::Esc,
            '\u{8}' => KeyCode::Backspace,
            other => KeyCode::Char(other),
        };
        app.press(KeyEvent::new(code, KeyModifiers::NONE));
    }
}

/// The peers' ports in the order of the table.
fn ports(app: &App) -> Vec<u16> {
    app.board.entries.iter().map(|entry| entry.row.remote.port()).collect()
}

#[test]
fn a_small_terminal_has_room_for_it() {
    let shown = screen(&mut app(), 80, 12);
    let expected = [
        "ackline top: 2 stacks, 3 connections, by TX, every 1 s",
        "4711 recv: up 10.0Mbit/s, down 1.00Mbit/s; 2 estab, 0 half-open; 12.0M of 1.00G",
        "  cubic, linux-like, linux, flow-queue; retransmitted 0.50 %, 2 dropped",
        "4712 send: up 10.0Mbit/s, down 1.00Mbit/s; 1 estab, 0 half-open; 12.0M of 1.00G",
        "  cubic, linux-like, linux, flow-queue; retransmitted 0.50 %, 2 dropped",
        "    PID PEER               STATE CC        TX    RX  CWND RTTms SENDQ  RETR",
        "   4711 198.18.0.1:5002    ESTAB cubic   100M     0 14.1K  1.35 64.0K     2    █",
        "   4712 198.18.0.1:5003    ESTAB cubic  20.0M     0 14.1K  1.35 64.0K     0    █",
        "   4711 198.18.0.1:5001    ESTAB cubic  1.00M     0 14.1K  1.35 64.0K     0    █",
        "",
        "",
        "q quit  ? help  <> sort  r reverse  f filter  d delay  space freeze  enter plots",
    ];
    assert_eq!(shown, expected);
}

#[test]
fn the_page_shows_what_is_drawn() {
    const PAGE: &str = include_str!("../../../../../docs/observing.md");
    let mut app = App::new(Column::Tx, false, Vec::new(), Duration::from_secs(1));
    let mut moved = [0; 4];
    for second in 1..10 {
        // Rates that change.
        let rows = (1..=4).map(|id| {
            let (place, rate) = (usize::from(id) - 1, u64::from(id) * (second * u64::from(id) * 7 % 11 + 1));
            moved[place] += rate;
            row(id, moved[place], 1)
        });
        let mut rows: Vec<Row> = rows.collect();
        rows[3] = Row { bytes_received: rows[3].bytes_acked, bytes_acked: 0, ..rows[3].clone() };
        let sender = rows.split_off(3);
        app.take(answer(vec![
            reply(about(4711, "recv"), rows, second),
            reply(about(4712, "send"), sender, second),
        ]));
    }
    let shown = screen(&mut app, 100, 12).join("\n");
    assert!(PAGE.contains(&format!("```text\n{shown}\n```")), "docs/observing.md lacks:\n{shown}");
}

#[test]
fn any_size_can_be_drawn() {
    let mut app = app();
    for keys in ["", "?", " \n"] {
        press(&mut app, keys);
        for (width, height) in [(1, 1), (2, 3), (10, 5), (79, 23), (80, 24), (300, 100)] {
            screen(&mut app, width, height);
        }
    }
    let wide = screen(&mut self::app(), 160, 10);
    assert!(wide[5].contains("CC") && wide[5].contains("RECVQ"), "{wide:#?}");
}

#[test]
fn what_is_gone_disappears_and_nobody_is_waited_for() {
    let mut app = app();
    app.take(answer(vec![reply(about(4712, "send"), vec![row(3, 20, 3)], 3)]));
    assert_eq!(ports(&app), [5003]);
    app.take(answer(Vec::new()));
    let shown = screen(&mut app, 80, 6);
    assert_eq!(shown[..2], ["ackline top: 0 stacks, 0 connections, by TX, every 1 s", lines::NO_STACK]);
}

#[test]
fn a_process_with_the_number_of_another_begins_anew() {
    let mut app = app();
    let again = About { started: 9, ..about(4712, "send") };
    app.take(answer(vec![reply(again, vec![row(3, 20, 1)], 1)]));
    assert_eq!(app.board.entries[0].tx, None);
}

#[test]
fn keys_sort_reverse_and_freeze() {
    let mut app = app();
    assert_eq!(ports(&app), [5002, 5003, 5001]);
    press(&mut app, "r");
    assert_eq!(ports(&app), [5001, 5003, 5002]);
    press(&mut app, "r<<<");
    assert_eq!((app.sorted, ports(&app)), (Column::Peer, vec![5001, 5002, 5003]));
    press(&mut app, "<<");
    assert_eq!(app.sorted, Column::Retr);
    press(&mut app, " ");
    app.take(answer(Vec::new()));
    assert_eq!(ports(&app).len(), 3, "frozen");
    assert!(screen(&mut app, 80, 5)[0].ends_with("; FROZEN"));
    press(&mut app, " ");
    app.take(answer(Vec::new()));
    assert_eq!(ports(&app), [] as [u16; 0]);
}

#[test]
fn a_filter_is_typed_and_what_is_wrong_with_it_said() {
    let mut app = app();
    press(&mut app, "fdport = :80x\n");
    let last = screen(&mut app, 80, 6).pop().expect("a line");
    assert_eq!(last, "filter: dport = :80x_  dport \":80x\": not a port; write :80");
    assert_eq!(app.question().filter, [] as [&str; 0]);
    press(&mut app, "\u{8}\u{8}\u{8}80\n");
    assert_eq!(app.question().filter, ["dport", "=", ":80"]);
    assert!(app.hurries && app.note().ends_with("; dport = :80"));
    press(&mut app, "d0.5\n");
    assert_eq!(app.interval, Duration::from_millis(500));
    press(&mut app, "dq\u{1b}");
    assert!(!app.ends, "it was typed");
    press(&mut app, "q");
    assert!(app.ends);
}

#[test]
fn the_cursor_stays_on_its_connection() {
    let mut app = app();
    press(&mut app, "jj");
    assert_eq!(app.cursor(), Some(1));
    press(&mut app, "r");
    assert_eq!(app.cursor(), Some(1));
    press(&mut app, ">");
    let port = app.board.entries[app.cursor().expect("there")].row.remote.port();
    assert_eq!(port, 5003);
}

#[test]
fn many_connections_are_scrolled() {
    let mut app = App::new(Column::Peer, false, Vec::new(), Duration::from_secs(1));
    let rows = (0..1_000).map(|id| row(id, 1, 1)).collect();
    app.take(answer(vec![reply(about(1, "recv"), rows, 1)]));
    screen(&mut app, 80, 24);
    let end = KeyEvent::new(KeyCode::End, KeyModifiers::NONE);
    app.press(end);
    let shown = screen(&mut app, 80, 24);
    assert!(shown[22].contains("198.18.0.1:5999"), "{shown:#?}");
    app.press(KeyEvent::new(KeyCode::PageUp, KeyModifiers::NONE));
    let shown = screen(&mut app, 80, 24);
    assert!(shown[22].contains("198.18.0.1:5999"), "the cursor is still on the screen: {shown:#?}");
    press(&mut app, "k");
    let shown = screen(&mut app, 80, 24);
    assert!(shown[22].contains("198.18.0.1:5998"), "{shown:#?}");
}

#[test]
fn one_connection_shows_its_plots() {
    let mut app = app();
    press(&mut app, "\n");
    assert_eq!(app.screen, Screen::Plots);
    let question = app.question().alone.expect("the first one");
    assert_eq!((question.key.pid, question.remote.port()), (4711, 5002));
    for second in 3..6_u64 {
        let value = json!({
            "id": "2", "now": second * 1_000_000_000, "state": "ESTABLISHED", "cc": "cubic", "ack_policy": "delayed",
            "rto_response": "linux", "blocked": "congestion_window", "snd_cwnd": 14_480 * second, "rtt": 1_350_000,
            "bytes_acked": second * 1_250_000, "bytes_received": 0, "unacked": 14_480, "snd_mss": 1448,
        });
        app.take(Answer { alone: Some(value), ..answer(Vec::new()) });
    }
    let shown = screen(&mut app, 100, 30);
    let all = shown.join("\n");
    assert!(all.contains("4711 198.18.0.2:4000 to 198.18.0.1:5002"), "{all}");
    assert!(all.contains("ESTAB: cubic, delayed, linux; blocked by: congestion_window"), "{all}");
    for text in [
        "congestion window, bytes",
        "round trip, ms",
        "rate, bit/s",
        "in flight, bytes",
        "cwnd:50",
        "10.5M",
        "-2 s",
    ] {
        assert!(all.contains(text), "{text}: {all}");
    }
    app.take(answer(Vec::new()));
    assert!(screen(&mut app, 100, 30).join("\n").contains("ESTAB, ENDED"));
    press(&mut app, "\u{1b}");
    assert_eq!((app.screen.clone(), app.question().alone), (Screen::Table, None));
}

#[test]
fn a_batch_prints_every_column_of_every_connection() {
    let app = app();
    let text = lines::page(&app.board, &app.note());
    let expected = "\
ackline top: 2 stacks, 3 connections, by TX, every 1 s
4711 recv: up 10.0Mbit/s, down 1.00Mbit/s; 2 estab, 0 half-open; 12.0M of 1.00G
  cubic, linux-like, linux, flow-queue; retransmitted 0.50 %, 2 dropped
4712 send: up 10.0Mbit/s, down 1.00Mbit/s; 1 estab, 0 half-open; 12.0M of 1.00G
  cubic, linux-like, linux, flow-queue; retransmitted 0.50 %, 2 dropped

    PID PEER               STATE CC        TX    RX  CWND RTTms SENDQ RECVQ  RETR
   4711 198.18.0.1:5002    ESTAB cubic   100M     0 14.1K  1.35 64.0K     0     2
   4712 198.18.0.1:5003    ESTAB cubic  20.0M     0 14.1K  1.35 64.0K     0     0
   4711 198.18.0.1:5001    ESTAB cubic  1.00M     0 14.1K  1.35 64.0K     0     0
";
    assert_eq!(text, expected);
}
