//! The velocity parameter (section 2.1, step 4): a window that has far to go gets there in few round
//! trips.

/// Windows in which the direction must have stayed the same before the velocity doubles. In steady
/// state it stays for two and a half round trips (figure 1), and the velocity must be one there.
const STEADY: u32 = 3;

/// Which way the window went from one window of data to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Up,
    Down,
}

/// v, and what it depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Velocity {
    /// v: 1, or a power of two.
    v: u32,
    direction: Option<Direction>,
    /// Windows in a row whose direction was that of the one before.
    same: u32,
    /// The congestion window in bytes when the present window of data began.
    began_at: f64,
}

impl Velocity {
    /// A velocity of one, with a congestion window of `cwnd` bytes.
    pub(super) const fn new(cwnd: f64) -> Self {
        Self { v: 1, direction: None, same: 0, began_at: cwnd }
    }

    pub(super) fn get(&self) -> f64 {
        f64::from(self.v)
    }

    /// A window of data has ended, and the congestion window is `cwnd` bytes.
    pub(super) fn on_window(&mut self, cwnd: f64) {
        let direction = match cwnd - self.began_at {
            change if change > 0.0 => Some(Direction::Up),
            change if change < 0.0 => Some(Direction::Down),
            _ => None,
        };
        self.began_at = cwnd;
        if direction.is_none() || direction != self.direction {
            (self.v, self.direction, self.same) = (1, direction, 0);
            return;
        }
        self.same += 1;
        if self.same >= STEADY {
            self.v = self.v.saturating_mul(2);
        }
    }
}
