//! What the screen shows, and what keys change.

use super::board::{Board, Key};
use super::plots::Plots;
use super::source::{Answer, Question};
use crate::args::column::Column;
use crate::args::values;
use crate::watchers::filter::Filter;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::time::Duration;

/// Shortest time between two questions.
pub(super) const SHORTEST: Duration = Duration::from_millis(100);

/// Which screen is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Screen {
    Table,
    Help,
    /// One connection.
    Plots,
}

/// A line that is being typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Prompt {
    pub(super) asks: PromptKind,
    pub(super) text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PromptKind {
    Filter,
    Interval,
}

impl PromptKind {
    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Filter => "filter",
            Self::Interval => "seconds",
        }
    }
}

/// The whole program, but for the terminal and the stacks.
#[derive(Debug)]
pub(super) struct App {
    pub(super) board: Board,
    pub(super) screen: Screen,
    pub(super) prompt: Option<Prompt>,
    pub(super) sorted: Column,
    pub(super) reversed: bool,
    /// The words of the filter.
    pub(super) filter: Vec<String>,
    pub(super) interval: Duration,
    pub(super) frozen: bool,
    /// The connection under the cursor.
    pub(super) selected: Option<Key>,
    /// The first line of the table that is on the screen.
    pub(super) first: usize,
    /// Lines of the table that the screen had room for.
    pub(super) page: usize,
    /// The connection that is shown alone.
    pub(super) plots: Option<Plots>,
    /// What is wrong.
    pub(super) notice: Option<String>,
    /// There was an answer.
    pub(super) answered: bool,
    pub(super) ends: bool,
    /// The next question is due at once.
    pub(super) hurries: bool,
}

impl App {
    pub(super) fn new(sorted: Column, reversed: bool, filter: Vec<String>, interval: Duration) -> Self {
        Self {
            board: Board::default(),
            screen: Screen::Table,
            prompt: None,
            sorted,
            reversed,
            filter,
            interval,
            frozen: false,
            selected: None,
            first: 0,
            page: 1,
            plots: None,
            notice: None,
            answered: false,
            ends: false,
            hurries: false,
        }
    }

    /// What is to be asked.
    pub(super) fn question(&self) -> Question {
        let alone = self.plots.as_ref().map(Plots::question);
        Question { filter: self.filter.clone(), alone }
    }

    /// Takes an answer, unless the screen is frozen.
    pub(super) fn take(&mut self, answer: Answer) {
        if self.frozen {
            return;
        }
        let Answer { replies, alone, refusals } = answer;
        self.answered = true;
        self.notice = refusals.first().map(ToString::to_string);
        self.board.take(replies);
        self.board.sort(self.sorted, self.reversed);
        if let Some(plots) = &mut self.plots {
            plots.take(alone);
        }
    }

    /// What stands behind the title.
    pub(super) fn note(&self) -> String {
        let direction = if self.reversed { ", reversed" } else { "" };
        let filter =
            if self.filter.is_empty() { String::new() } else { format!("; {}", self.filter.join(" ")) };
        let frozen = if self.frozen { "; FROZEN" } else { "" };
        format!(
            ", by {}{direction}, every {} s{filter}{frozen}",
            self.sorted.head(),
            self.interval.as_secs_f64()
        )
    }

    /// Takes a key.
    pub(super) fn press(&mut self, key: KeyEvent) {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            self.ends |= key.code == KeyCode::Char('c');
            return;
        }
        match (self.prompt.take(), &self.screen) {
            (Some(prompt), _) => self.type_into(prompt, key.code),
            (None, Screen::Table) => self.press_in_table(key.code),
            (None, Screen::Help) => {
                self.screen = Screen::Table;
            }
            (None, Screen::Plots) => match key.code {
                KeyCode::Char('q') => self.ends = true,
                KeyCode::Char(' ') => self.frozen = !self.frozen,
                KeyCode::Esc | KeyCode::Enter | KeyCode::Backspace => {
                    self.screen = Screen::Table;
                    self.plots = None;
                }
                _ => {}
            },
        }
    }

    fn press_in_table(&mut self, code: KeyCode) {
        match code {
            KeyCode::Char('q') => self.ends = true,
            KeyCode::Char('?' | 'h') | KeyCode::F(1) => self.screen = Screen::Help,
            KeyCode::Char('<') | KeyCode::Left => self.sort_beside(Column::ALL.len() - 1),
            KeyCode::Char('>') | KeyCode::Right => self.sort_beside(1),
            KeyCode::Char('r' | 'R') => {
                self.reversed = !self.reversed;
                self.board.sort(self.sorted, self.reversed);
            }
            KeyCode::Char(' ') => self.frozen = !self.frozen,
            KeyCode::Char('f' | '/') => self.ask(PromptKind::Filter, self.filter.join(" ")),
            KeyCode::Char('d' | 's') => self.ask(PromptKind::Interval, String::new()),
            KeyCode::Up | KeyCode::Char('k') => self.move_by(-1),
            KeyCode::Down | KeyCode::Char('j') => self.move_by(1),
            KeyCode::PageUp => self.move_by(-page(self.page)),
            KeyCode::PageDown => self.move_by(page(self.page)),
            KeyCode::Home => self.move_by(isize::MIN),
            KeyCode::End => self.move_by(isize::MAX),
            KeyCode::Enter => self.open(),
            KeyCode::Esc => self.selected = None,
            _ => {}
        }
    }

    fn ask(&mut self, asks: PromptKind, text: String) {
        self.notice = None;
        self.prompt = Some(Prompt { asks, text });
    }

    fn type_into(&mut self, mut prompt: Prompt, code: KeyCode) {
        match code {
            KeyCode::Esc => return,
            KeyCode::Enter => match self.accept(&prompt) {
                Ok(()) => return,
                Err(why) => self.notice = Some(why),
            },
            KeyCode::Backspace => {
                prompt.text.pop();
            }
            KeyCode::Char(character) => prompt.text.push(character),
            _ => {}
        }
        self.prompt = Some(prompt);
    }

    fn accept(&mut self, prompt: &Prompt) -> Result<(), String> {
        match prompt.asks {
            PromptKind::Filter => {
                let words: Vec<String> = prompt.text.split_whitespace().map(str::to_owned).collect();
                Filter::parse(&words)?;
                self.filter = words;
                self.first = 0;
            }
            PromptKind::Interval => {
                self.interval = values::time(prompt.text.trim())?.max(SHORTEST);
            }
        }
        self.notice = None;
        self.hurries = true;
        Ok(())
    }

    /// Sorts by the column so many places to the right.
    fn sort_beside(&mut self, places: usize) {
        let place = Column::ALL.iter().position(|column| *column == self.sorted).unwrap_or(0);
        self.sorted = Column::ALL[(place + places) % Column::ALL.len()];
        self.board.sort(self.sorted, self.reversed);
    }

    /// Where the cursor is, if there is one.
    pub(super) fn cursor(&self) -> Option<usize> {
        self.board.place(self.selected.as_ref()?)
    }

    fn move_by(&mut self, lines: isize) {
        let last = self.board.entries.len().saturating_sub(1);
        // The first key puts the cursor on the first line of the screen.
        let place = match self.cursor() {
            Some(place) => place.saturating_add_signed(lines).min(last),
            None if lines == isize::MAX => last,
            None => self.first,
        };
        self.selected = self.board.entries.get(place).map(|entry| entry.key.clone());
    }

    /// Shows the connection under the cursor, or the first one, alone.
    fn open(&mut self) {
        let place = self.cursor().unwrap_or(self.first);
        let Some(entry) = self.board.entries.get(place) else { return };
        self.selected = Some(entry.key.clone());
        self.plots = Some(Plots::new(entry));
        self.screen = Screen::Plots;
        self.frozen = false;
        self.hurries = true;
    }
}

/// A page, less a line that stays.
fn page(lines: usize) -> isize {
    isize::try_from(lines.saturating_sub(1).max(1)).unwrap_or(isize::MAX)
}
