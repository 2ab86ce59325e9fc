//! Nodes, and the way from each to each: fewest links, and among equals the links that were made first.

use std::collections::VecDeque;

/// A node: a host or a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(crate) u32);

/// One direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub(crate) u32);

impl NodeId {
    /// Position among all nodes, in the order in which they were made.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl LinkId {
    /// Position among all links, in the order in which they were made.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The next link from each node to each other.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    nodes: usize,
    next: Vec<Option<LinkId>>,
}

impl Routes {
    /// Routes over `links`, each given as its two ends, or `None` where it is down.
    pub(crate) fn compute(nodes: usize, links: &[Option<(NodeId, NodeId)>]) -> Self {
        let mut into = vec![vec![]; nodes];
        for (index, (from, to)) in
            links.iter().enumerate().filter_map(|(index, link)| Some((index, (*link)?)))
        {
            into[to.index()].push((from, LinkId(index as u32)));
        }
        let mut next = vec![None; nodes * nodes];
        for target in 0..nodes {
            let mut reached = vec![false; nodes];
            reached[target] = true;
            let mut frontier = VecDeque::from([target]);
            while let Some(at) = frontier.pop_front() {
                for &(from, link) in &into[at] {
                    if !reached[from.index()] {
                        reached[from.index()] = true;
                        next[from.index() * nodes + target] = Some(link);
                        frontier.push_back(from.index());
                    }
                }
            }
        }
        Self { nodes, next }
    }

    pub(crate) fn next(&self, at: NodeId, to: NodeId) -> Option<LinkId> {
        self.next.get(at.index() * self.nodes + to.index()).copied().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_shortest_way_and_avoids_what_is_down() {
        let link = |from, to| Some((NodeId(from), NodeId(to)));
        let mut links = [link(0, 1), link(1, 2), link(0, 2), link(2, 0)];
        let routes = Routes::compute(3, &links);
        assert_eq!(routes.next(NodeId(0), NodeId(2)), Some(LinkId(2)));
        assert_eq!(routes.next(NodeId(1), NodeId(0)), Some(LinkId(1)));
        links[2] = None;
        let routes = Routes::compute(3, &links);
        assert_eq!(routes.next(NodeId(0), NodeId(2)), Some(LinkId(0)));
        links[3] = None;
        assert_eq!(Routes::compute(3, &links).next(NodeId(2), NodeId(0)), None);
    }
}
