//! Drawing.

use super::app::{App, Prompt, Screen};
use super::lines::{self, Layout, NO_STACK};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout as Areas, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

/// Stacks that get lines of their own; others are counted.
const MOST_STACKS: usize = 3;

const HELP: [&str; 20] = [
    "Connections of this user's ackline commands. A row is a connection:",
    "",
    "  PID, PEER, STATE, CC   process, peer, state and congestion control",
    "  TX, RX                 payload acknowledged and received, bit/s",
    "  CWND, RTTms            congestion window in bytes, smoothed round trip in ms",
    "  SENDQ, RECVQ           bytes written and not acknowledged, received and not read",
    "  RETR                   segments retransmitted; the row is red while it goes on",
    "  bars                   TX and RX together over time",
    "",
    "  < >  left right        sort by the column beside",
    "  r                      reverse the order",
    "  f /                    filter as ackline ss: dport = :5001 and not src 10.0.0.0/8",
    "  d s                    seconds between two looks",
    "  space                  freeze, and go on",
    "  up down  j k           choose a connection; also page up and down, home, end",
    "  enter                  plots of this connection; escape goes back",
    "  q                      quit",
    "",
    "Above the table: what each stack carries with headers, its memory, its policies.",
    "Any key goes back.",
];

/// Draws the screen. What depends on its size is remembered in `app`.
pub(super) fn draw(frame: &mut Frame<'_>, app: &mut App) {
    let [area, last] = Areas::vertical([Constraint::Min(0), Constraint::Length(1)]).areas(frame.area());
    match app.screen {
        Screen::Table => table(frame, app, area),
        Screen::Help => frame.render_widget(Paragraph::new(HELP.map(Line::from).to_vec()), area),
        Screen::Plots => {
            if let Some(plots) = &app.plots {
                plots.draw(frame, area);
            }
        }
    }
    last_line(frame, app, last);
}

fn table(frame: &mut Frame<'_>, app: &mut App, area: Rect) {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let mut head = vec![Line::styled(lines::title(&app.board, &app.note()), bold)];
    if app.answered && app.board.stacks.is_empty() {
        head.push(Line::from(NO_STACK));
    }
    for stack in app.board.stacks.iter().take(MOST_STACKS) {
        head.extend(lines::stack(stack).map(Line::from));
    }
    if app.board.stacks.len() > MOST_STACKS {
        head.push(Line::from(format!("and {} stacks more", app.board.stacks.len() - MOST_STACKS)));
    }
    let above = u16::try_from(head.len()).unwrap_or(u16::MAX);
    let [top, names, rows] =
        Areas::vertical([Constraint::Length(above), Constraint::Length(1), Constraint::Min(0)]).areas(area);
    frame.render_widget(Paragraph::new(head), top);

    scroll(app, usize::from(rows.height));
    let shown = app.board.entries.iter().skip(app.first).take(app.page);
    let peers = shown.clone().map(|entry| entry.row.remote.to_string().len()).max().unwrap_or(0);
    let layout = Layout::new(usize::from(rows.width), peers, true);
    let reversed = Style::new().add_modifier(Modifier::REVERSED);
    let width = usize::from(names.width);
    frame.render_widget(Paragraph::new(Span::styled(format!("{:<width$}", layout.head()), reversed)), names);
    let lines: Vec<Line<'_>> = shown
        .map(|entry| {
            let colour = if entry.retransmits { Style::new().fg(Color::Red) } else { Style::new() };
            let cursor = app.selected.as_ref() == Some(&entry.key);
            let style = if cursor { colour.add_modifier(Modifier::REVERSED) } else { colour };
            Line::styled(format!("{:<width$}", layout.entry(entry)), style)
        })
        .collect();
    frame.render_widget(Paragraph::new(lines), rows);
}

/// Moves the screen so that the cursor is on it, and nothing below the last line.
fn scroll(app: &mut App, height: usize) {
    app.page = height.max(1);
    if let Some(cursor) = app.cursor() {
        app.first = app.first.clamp((cursor + 1).saturating_sub(app.page), cursor);
    }
    app.first = app.first.min(app.board.entries.len().saturating_sub(app.page));
}

fn last_line(frame: &mut Frame<'_>, app: &App, area: Rect) {
    let keys = match app.screen {
        Screen::Table => "q quit  ? help  <> sort  r reverse  f filter  d delay  space freeze  enter plots",
        Screen::Help => "",
        Screen::Plots if app.frozen => "FROZEN  space go on  escape back  q quit",
        Screen::Plots => "space freeze  escape back  q quit",
    };
    let warning = Style::new().fg(Color::Red);
    let line = match (&app.prompt, &app.notice) {
        (Some(Prompt { asks, text }), notice) => {
            let mut spans = vec![Span::from(format!("{}: {text}_", asks.label()))];
            spans.extend(notice.iter().map(|why| Span::styled(format!("  {why}"), warning)));
            Line::from(spans)
        }
        (None, Some(notice)) => Line::styled(notice.clone(), warning),
        (None, None) => Line::from(keys),
    };
    frame.render_widget(Paragraph::new(line), area);
}
