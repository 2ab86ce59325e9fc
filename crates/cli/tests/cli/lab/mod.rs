//! Scenarios, the league and the papers.

mod evaluate;
mod reproduce;
mod sim;
