//! Routes between all nodes: fewest links; ties go to the links created first.

use crate::topology::{LinkId, NodeId};
use std::collections::VecDeque;

/// The next link from each node to each other.
///
/// A host with one link to a router and one back (a leaf) is reached through its router, so only
/// the other nodes (the core) are in the table: memory is quadratic in routers, and linear in
/// hosts.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    places: Vec<NodeRoute>,
    core: usize,
    /// From core node to core node.
    next: Vec<Option<LinkId>>,
}

#[derive(Clone, Copy, Debug)]
enum NodeRoute {
    /// Its row and column of the table.
    Core(usize),
    /// The router's row and column, the link to the router, and the link from it.
    Leaf { router: usize, up: LinkId, down: LinkId },
}

impl Routes {
    /// Computes routes over `links`, each given by its two nodes, or `None` if it is down.
    /// `routers` tells for each node whether it is a router.
    pub(crate) fn compute(routers: &[bool], links: &[Option<(NodeId, NodeId)>]) -> Self {
        let up_links: Vec<_> = links
            .iter()
            .enumerate()
            .filter_map(|(index, link)| link.map(|(from, to)| (LinkId(index as u32), from, to)))
            .collect();
        let mut outgoing = vec![vec![]; routers.len()];
        let mut incoming = vec![vec![]; routers.len()];
        for &(link, from, to) in &up_links {
            outgoing[from.index()].push((link, to));
            incoming[to.index()].push((link, from));
        }
        let leaf = |node: usize| match (outgoing[node].as_slice(), incoming[node].as_slice()) {
            ([(up, to)], [(down, from)]) if to == from && !routers[node] && routers[to.index()] => {
                Some((*up, *down, to.index()))
            }
            _ => None,
        };
        let mut places = vec![NodeRoute::Core(0); routers.len()];
        let mut core = vec![];
        for (node, place) in places.iter_mut().enumerate().filter(|(node, _)| leaf(*node).is_none()) {
            *place = NodeRoute::Core(core.len());
            core.push(node);
        }
        let row = |node: usize, places: &[NodeRoute]| match places[node] {
            NodeRoute::Core(row) => Some(row),
            NodeRoute::Leaf { .. } => None,
        };
        for node in 0..routers.len() {
            if let Some((up, down, router)) = leaf(node)
                && let Some(router) = row(router, &places)
            {
                places[node] = NodeRoute::Leaf { router, up, down };
            }
        }
        let mut next = vec![None; core.len() * core.len()];
        for (column, &target) in core.iter().enumerate() {
            let mut reached = vec![false; core.len()];
            reached[column] = true;
            let mut frontier = VecDeque::from([target]);
            while let Some(at) = frontier.pop_front() {
                for &(link, from) in &incoming[at] {
                    if let Some(from_row) = row(from.index(), &places)
                        && !core::mem::replace(&mut reached[from_row], true)
                    {
                        next[from_row * core.len() + column] = Some(link);
                        frontier.push_back(from.index());
                    }
                }
            }
        }
        Self { places, core: core.len(), next }
    }

    /// The next link from `at` to `to`; `None` if there is no route, or `at` is `to`.
    #[inline]
    pub(crate) fn next(&self, at: NodeId, to: NodeId) -> Option<LinkId> {
        if at == to {
            return None;
        }
        let (target, last) = match *self.places.get(to.index())? {
            NodeRoute::Core(column) => (column, None),
            NodeRoute::Leaf { router, down, .. } => (router, Some(down)),
        };
        match *self.places.get(at.index())? {
            NodeRoute::Core(row) if row == target => last,
            NodeRoute::Core(row) => self.next[row * self.core + target],
            NodeRoute::Leaf { router, up, .. } => {
                (router == target || self.next[router * self.core + target].is_some()).then_some(up)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(from: u32, to: u32) -> Option<(NodeId, NodeId)> {
        Some((NodeId(from), NodeId(to)))
    }

    #[test]
    fn takes_the_shortest_way_and_avoids_what_is_down() {
        let mut links = [link(0, 1), link(1, 2), link(0, 2), link(2, 0)];
        let routers = [false, true, false];
        let routes = Routes::compute(&routers, &links);
        assert_eq!(routes.next(NodeId(0), NodeId(2)), Some(LinkId(2)));
        assert_eq!(routes.next(NodeId(1), NodeId(0)), Some(LinkId(1)));
        links[2] = None;
        let routes = Routes::compute(&routers, &links);
        assert_eq!(routes.next(NodeId(0), NodeId(2)), Some(LinkId(0)));
        links[3] = None;
        assert_eq!(Routes::compute(&routers, &links).next(NodeId(2), NodeId(0)), None);
    }

    #[test]
    fn reaches_leaves_through_their_routers() {
        // Hosts 0 and 1 at router 2, host 4 at router 3, host 5 alone.
        let links =
            [link(0, 2), link(2, 0), link(1, 2), link(2, 1), link(2, 3), link(3, 2), link(4, 3), link(3, 4)];
        let routes = Routes::compute(&[false, false, true, true, false, false], &links);
        let way = |mut at: u32, to: u32| {
            let mut way = vec![];
            while let Some(link) = routes.next(NodeId(at), NodeId(to)) {
                way.push(link.index());
                at = links[link.index()].unwrap().1.0;
            }
            (at == to).then_some(way)
        };
        assert_eq!(way(0, 1), Some(vec![0, 3]));
        assert_eq!(way(0, 4), Some(vec![0, 4, 7]));
        assert_eq!(way(4, 1), Some(vec![6, 5, 3]));
        assert_eq!(way(2, 4), Some(vec![4, 7]));
        assert_eq!(way(0, 3), Some(vec![0, 4]));
        assert_eq!(way(0, 5), None);
        assert_eq!(routes.next(NodeId(0), NodeId(0)), None);
    }

    #[test]
    fn two_hosts_need_no_router() {
        let routes = Routes::compute(&[false, false], &[link(0, 1), link(1, 0)]);
        assert_eq!(routes.next(NodeId(0), NodeId(1)), Some(LinkId(0)));
        assert_eq!(routes.next(NodeId(1), NodeId(0)), Some(LinkId(1)));
    }
}
