//! The decision: the best node for a pod, or why no node fits. Pure.

use super::board::{Board, NodeName};
use super::demand::Demand;
use super::filter::Question;
use super::score;
use super::verdict::Refusals;
use super::volumes::Volumes;

/// Finds the node for a pod.
///
/// # Errors
/// Why each node was refused, when no node fits.
pub(crate) fn decide(
    board: &mut Board,
    demand: &Demand,
    volumes: &Volumes,
) -> Result<NodeName, Refusals> {
    let question = Question::new(board, demand, volumes);
    let mut refusals = Refusals::default();
    let mut feasible = Vec::new();
    for (name, place) in board.nodes() {
        let reasons = question.reasons(place);
        if reasons.is_empty() {
            feasible.push(name.clone())
        } else {
            refusals.note(&reasons)
        }
    }
    score::best(board, demand, &question, &feasible).ok_or(refusals)
}
