//! What other evaluations say about J where its quadratic model at θ_k says too little.
//!
//! J_t is a maximum of functions linear in θᵗ, one for each α. Where most dual variables are at their bounds it hardly bends, then all at once as they
//! come off; at θᵗ = 0 it has a corner, since many α are optimal there. H at one θ tells nothing of that. But each evaluation, at some θ_j, leaves a
//! linear function that J_t is nowhere below, and for machines with κα in Ω for 0 ≤ κ ≤ 1 further ones. Where one is above the model q_t at its θ_j, the
//! model becomes q_t + max(0, max_j r_j), r_j = b_j + a_j'δ. For a quadratic J all r_j vanish.

mod cut;
mod history;
mod known;
mod proof;
#[cfg(test)]
mod tests;

pub(super) use cut::Cut;
pub(super) use history::History;
pub(super) use known::Known;
pub(super) use proof::Proof;
