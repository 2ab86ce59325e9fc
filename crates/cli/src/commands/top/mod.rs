//! `ackline top`: connections of running stacks on a screen that follows them.
//!
//! | file | owns |
//! |---|---|
//! | `source` | asking the stacks, on a thread of its own |
//! | `board` | what they said, and rates since they said it before |
//! | `columns`, `numbers`, `lines` | the table as text |
//! | `app` | what is shown, and what keys change |
//! | `view`, `plots` | drawing the table, and one connection |

mod app;
mod board;
mod columns;
mod lines;
mod numbers;
mod plots;
mod source;
mod view;

#[cfg(test)]
mod tests;

use crate::args::control::TopArgs;
use crate::failure::Failure;
use crate::network::tunnel;
use crate::output;
use crate::signals::Signals;
use crate::watchers::background::Background;
use crate::watchers::filter::Filter;
use ackline::runtime::timer;
use app::App;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use source::Question;
use std::io::{self, IsTerminal as _};
use std::thread;
use std::time::Duration;

/// How long a key may wait, and how long an answer that has come.
const TICK: Duration = Duration::from_millis(50);

pub(crate) fn run(args: &TopArgs) -> Result<(), Failure> {
    // What is wrong with it is wrong without a stack, too.
    Filter::parse(&args.filter).map_err(Failure::usage)?;
    let mut app = App::new(args.sort, args.reverse, args.filter.clone(), args.delay.max(app::SHORTEST));
    if args.batch {
        return batch(args, &mut app);
    }
    if !io::stdout().is_terminal() {
        return Err(Failure::usage("standard output is no terminal; -b prints text"));
    }
    let _signals = end_on_signals()?;
    let refused = |error: io::Error| Failure::system("use the terminal", &error);
    let mut terminal = ratatui::try_init().map_err(refused)?;
    let outcome = follow(&mut terminal, args, &mut app);
    // If the terminal is gone, there is nothing to restore.
    let _ = ratatui::try_restore();
    outcome.map_err(refused)
}

/// Prints as text until the count is reached, or for ever. If the stack that was chosen does not
/// answer at first, nothing is printed.
fn batch(args: &TopArgs, app: &mut App) -> Result<(), Failure> {
    let mut left = args.count;
    let mut first = true;
    loop {
        let mut answer = source::ask(&args.at, &app.question());
        if first && answer.replies.is_empty() && !answer.refusals.is_empty() {
            return Err(answer.refusals.remove(0));
        }
        first = false;
        for why in &answer.refusals {
            output::say(&format!("ackline: {why}"));
        }
        app.take(answer);
        output::print(&lines::page(&app.board, &app.note()))?;
        left = left.map(|count| count - 1);
        if left == Some(0) {
            return Ok(());
        }
        output::print("\n")?;
        #[expect(clippy::disallowed_methods, reason = "nothing else happens until the next look")]
        thread::sleep(app.interval);
    }
}

/// Follows the stacks until a key or the count ends it.
fn follow(terminal: &mut DefaultTerminal, args: &TopArgs, app: &mut App) -> io::Result<()> {
    let (questions, answers) = source::start(args.at.clone());
    let mut left = args.count;
    let mut asked: Option<(Question, ackline::core::Instant)> = None;
    let mut waits = false;
    let mut changed = true;
    while !app.ends && left != Some(0) {
        let now = timer::now();
        let due = asked.as_ref().is_none_or(|(_, at)| Duration::from(now.since(*at)) >= app.interval);
        if (due || app.hurries) && !waits && !app.frozen {
            let question = app.question();
            // The thread lives as long as this function.
            waits = questions.send(question.clone()).is_ok();
            asked = Some((question, now));
            app.hurries = false;
        }
        if changed {
            terminal.draw(|frame| view::draw(frame, app))?;
            changed = false;
        }
        if event::poll(TICK)? {
            match event::read()? {
                Event::Key(key) if key.kind != KeyEventKind::Release => app.press(key),
                _ => {}
            }
            changed = true;
        }
        if let Ok(answer) = answers.try_recv() {
            waits = false;
            app.take(answer);
            left = left.map(|count| count - 1);
            changed = true;
        }
    }
    Ok(())
}

/// Restores the terminal and ends the process at the next signal, whatever the process does: from a
/// terminal that has been closed, crossterm reads without end.
fn end_on_signals() -> Result<Background, Failure> {
    let runtime = tunnel::build(&mut tokio::runtime::Builder::new_current_thread())?;
    let mut signals = runtime.block_on(async { Signals::catch() })?;
    Background::start("signals", runtime, async move |mut stopped| {
        tokio::select! {
            _ = &mut stopped => {}
            signal = signals.next() => {
                let _ = ratatui::try_restore();
                let failure = signal.failure("stopped");
                output::say(&format!("ackline: {failure}"));
                std::process::exit(failure.exit.code().into());
            }
        }
    })
    .map_err(|error| Failure::system("catch signals", &error))
}
