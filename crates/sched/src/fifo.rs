//! `fifo`: the core's built-in queue (step 9), behind queue limit and shaper.

use crate::entry;
use ackline_tcp_core::policy::NewEgressScheduler;
use ackline_tcp_core::policy::builtin::Fifo;
use ackline_tcp_core::policy::spec::Entry;

pub(crate) const ENTRY: Entry<NewEgressScheduler> =
    entry::of::<Fifo>("fifo", "first in, first out; the classic queue with acks=kept");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Load, conform};

    #[test]
    fn it_keeps_the_rules() {
        conform("fifo");
    }

    /// Vector K1.
    #[test]
    fn k1_what_comes_first_leaves_first() {
        let mut load = Load::new(Fifo::default());
        load.push("a0 d0 d1 A0", 1500, 40);
        assert_eq!(load.pop_names(5), "a0 d0 d1 A0 -");
    }
}
