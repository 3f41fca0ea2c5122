//! Our machines with our sharings. A new one is tested by being registered (and stated for the conic solver in the test kit's `small`).

use mtmkl::Registry;
use mtmkl_testkit::conformance::{self, Case, cases};

fn few_and_many() -> Vec<Case> {
    let registry = Registry::default();
    let mut all = cases(&registry, 1);
    all.extend(cases(&registry, 3));
    all
}

#[test]
fn newton_reaches_the_conic_optimum_and_its_certificate_brackets_it() {
    let tested = conformance::reaches_the_optimum(&few_and_many());
    assert!(tested > 150, "only {tested} pairs tested");
}

#[test]
fn with_kernel_values_streamed_newton_reaches_the_conic_optimum_too() {
    let tested = conformance::streamed_reaches_the_optimum(&few_and_many());
    assert!(tested > 100, "only {tested} pairs tested");
}

#[test]
fn epf_and_newton_agree() {
    let converged = conformance::solvers_agree(&few_and_many());
    // It stalls at p = 1 and q = 1 (that is why newton is the default), not elsewhere.
    assert!(converged > 200, "epf converged in {converged} cases only");
}

#[test]
fn shrinking_on_equals_off() {
    conformance::shrinking_changes_nothing(&cases(&Registry::default(), 3));
}

#[test]
fn sensitivities_and_curvature_equal_finite_differences() {
    conformance::derivatives_are_right(&Registry::default());
}

#[test]
fn warm_start_equals_cold_start() {
    conformance::warm_equals_cold(&Registry::default());
}

#[test]
fn the_certificate_holds_for_unfinished_inner_solves() {
    conformance::unfinished_solves_are_certified(&cases(&Registry::default(), 3));
}

#[test]
fn kernels_are_what_they_say() {
    conformance::kernels_are_what_they_say(&Registry::default());
}

/// Without a statement for the conic solver a machine or a sharing of ours would be tested against itself only.
#[test]
fn all_of_ours_are_stated_for_the_conic_solver() {
    for case in few_and_many() {
        assert!(case.is_stated(), "state {case} in the test kit");
    }
}
