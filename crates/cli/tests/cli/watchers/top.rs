//! `ackline top` in a terminal: tmux has one that can be read.

use crate::common::{ackline, noise, run, scratch, text, until};
use crate::net::*;
use crate::usage::refused;
use ackline::runtime::testing::has_programs;
use std::io::Write as _;
use std::process::Command;

/// A terminal of tmux, with a server of its own.
struct Terminal {
    socket: String,
}

impl Terminal {
    /// Runs `ackline` with arguments in a terminal of 80 by 24 characters.
    fn start(socket: &str, args: &[&str]) -> Self {
        let terminal = Self { socket: socket.to_owned() };
        let program = env!("CARGO_BIN_EXE_ackline");
        let start = ["-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", program];
        terminal.tmux(&[&start, args].concat());
        terminal
    }

    fn tmux(&self, args: &[&str]) -> String {
        let output =
            Command::new("tmux").args(["-S", &self.socket]).args(args).output().expect("it is there");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn press(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// The screen, once it has `text`.
    fn shows(&self, text: &str) -> String {
        until(text, || Some(self.screen()).filter(|screen| screen.contains(text)))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

/// The screen with `#` for each number, and without what is not always there.
fn masked(screen: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for line in screen.lines().filter(|line| !line.trim().is_empty()) {
        let words = line.split_whitespace().map(|word| {
            let number = word.trim_end_matches([',', ';']);
            let bare = number.trim_end_matches("bit/s").trim_end_matches(['K', 'M', 'G']);
            let is_number = bare == "-" || bare.parse::<f64>().is_ok();
            if is_number { word.replace(number, "#") } else { word.to_owned() }
        });
        // Bars are there from the second look on.
        let words: Vec<String> =
            words.filter(|word| !word.starts_with(|c| ('▁'..='█').contains(&c))).collect();
        lines.push(words.join(" ").replace("# %,", "#,"));
    }
    lines
}

#[test]
fn a_terminal_shows_connections_and_answers_keys() {
    let name = "watchers::top::a_terminal_shows_connections_and_answers_keys";
    if !has_programs(name, &["tmux"]) {
        return;
    }
    with_tun(name, || {
        let (directory, path) = scratch("copy");
        let control = directory.path().join("c.sock");
        let tmux = directory.path().join("tmux");
        let at = ["--control", text(&control)];
        let terminal = Terminal::start(text(&tmux), &[&["top", "-d", "0.2"], &at[..]].concat());
        let screen = terminal.shows("no stack has a control socket here; waiting for one");
        assert!(screen.contains("cannot ask the stack at "), "{screen}");
        let child = receiver(&[&["-q", "-O", text(&path), "--cc", "reno"], &at[..]].concat());
        let mut stream = connect();
        stream.write_all(&noise(100_000, 1)).expect("taken");
        let screen = terminal.shows(" 198.18.0.1:");
        let expected = [
            "ackline top: # stack, # connection, by TX, every # s",
            "# recv: up #, down #; # estab, # half-open; # of #",
            "reno, linux-like, linux, flow-queue; retransmitted #, # dropped",
            "PID PEER STATE CC TX RX CWND RTTms SENDQ RETR",
            "# PEER ESTAB reno # # # # # #",
            "q quit ? help <> sort r reverse f filter d delay space freeze enter plots",
        ];
        let peer = stream.local_addr().expect("bound").to_string();
        assert_eq!(masked(&screen.replace(&peer, "PEER ")), expected, "{screen}");
        terminal.press(&["r"]);
        terminal.shows("by TX, reversed");
        terminal.press(&["?"]);
        terminal.shows("Any key goes back.");
        terminal.tmux(&["resize-window", "-x", "120", "-y", "30"]);
        terminal.press(&["x", "/", "dport = :1", "Enter"]);
        let screen = terminal.shows("0 of 1 connection");
        assert!(screen.contains("; dport = :1"), "{screen}");
        terminal.press(&["/", "BSpace", "2", "Enter"]);
        terminal.shows("; dport = :2");
        terminal.press(&["/"]);
        for _ in 0.."dport = :2".len() {
            terminal.press(&["BSpace"]);
        }
        terminal.press(&["Enter"]);
        terminal.shows(" 198.18.0.1:");
        terminal.press(&["Enter"]);
        let screen = terminal.shows("blocked by:");
        for part in
            ["ESTAB: reno, linux-like, linux", "congestion window, bytes", "in flight, bytes", "escape back"]
        {
            assert!(screen.contains(part), "{part}: {screen}");
        }
        assert_eq!(deliver(stream, b"x").expect("taken"), 0);
        assert_eq!(child.end().status, Some(0));
        terminal.shows("ENDED");
        terminal.press(&["Escape"]);
        terminal.shows("no stack has a control socket here");
        terminal.press(&["q"]);
        until("its end", || terminal.tmux(&["list-sessions"]).is_empty().then_some(()));
    });
}

#[test]
fn it_ends_with_its_terminal() {
    let name = "watchers::top::it_ends_with_its_terminal";
    if !has_programs(name, &["tmux"]) {
        return;
    }
    let (directory, _) = scratch("unused");
    let (control, tmux) = (directory.path().join("c.sock"), directory.path().join("tmux"));
    let terminal = Terminal::start(text(&tmux), &["top", "--control", text(&control)]);
    terminal.shows("no stack has a control socket here");
    let pid = terminal.tmux(&["list-panes", "-F", "#{pane_pid}"]);
    let program = std::path::Path::new("/proc").join(pid.trim()).join("exe");
    assert!(program.read_link().is_ok(), "{program:?}");
    drop(terminal);
    until("its end", || program.read_link().is_err().then_some(()));
}

#[test]
fn a_batch_needs_no_terminal() {
    let (directory, _) = scratch("unused");
    let mut command = ackline(&["top", "-b", "-n", "2", "-d", "100ms"]);
    let ended =
        crate::common::BackgroundCommand::start(command.env("XDG_RUNTIME_DIR", directory.path())).end();
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let printed = String::from_utf8(ended.stdout).expect("UTF-8");
    assert_eq!(printed.matches("no stack has a control socket here").count(), 2, "{printed}");
    assert!(run(&["top"]).complaint().contains("standard output is no terminal; -b prints text"));
    assert!(refused(&["top", "-b", "dport"], 2).contains("dport: the value is missing"));
}
