//! Draws what a terminal shows: text with escape sequences from standard input becomes an SVG on
//! standard output.
//!
//! ```sh
//! tmux capture-pane -e -p | cargo run --example terminal_picture > screen.svg
//! ```

use std::io::{Read as _, Write as _};

fn main() -> std::io::Result<()> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let picture = anstyle_svg::Term::new().render_svg(text.trim_end());
    std::io::stdout().write_all(picture.as_bytes())
}
