//! Makes plans smaller, to find the parts of a world without which it would not fail.

use super::Plan;

impl Plan {
    /// Returns the plan without one of its nodes. Returns `None` if the world has only one node.
    pub(crate) fn without_node(&self, node: usize) -> Option<Self> {
        if self.nodes == 1 {
            return None;
        }
        let mut smaller = self.clone();
        smaller.nodes -= 1;
        smaller.node_clocks.remove(node);
        for absent in [&mut smaller.absent_first, &mut smaller.absent_last] {
            absent.retain(|of| *of != node);
            absent.iter_mut().for_each(|of| *of -= usize::from(*of > node));
        }
        smaller.actions.retain_mut(|(_, action)| match action.node_mut() {
            Some(of) if *of == node => false,
            Some(of) => {
                *of -= usize::from(*of > node);
                true
            }
            None => true,
        });
        Some(smaller)
    }
}
