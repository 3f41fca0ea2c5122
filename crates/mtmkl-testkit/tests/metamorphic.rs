//! Two thousand fits against their twins, and every problem that was once wrong. `cargo xtask soak --only metamorphic` does as many as one likes.

use mtmkl_testkit::metamorphic::{self, Plan, names};

#[test]
fn two_thousand_fits_hold() {
    let tally = metamorphic::run(Plan {
        seed: 20,
        fits: 2_000,
        until: None,
        workers: 2,
    });
    assert!(
        tally.violations.is_empty(),
        "{} violations:\n{}",
        tally.violations.len(),
        tally.violations.join("\n")
    );
    assert!(tally.fits >= 2_000 && tally.tried() >= 1_000, "{tally:?}");
    // A relation that says nothing of any problem, and fits that never end, would hold as well.
    for name in names() {
        assert!(
            tally.relations.get(name).is_some_and(|&count| count > 2),
            "{name} was not tried"
        );
    }
    assert!(
        100 * tally.converged >= 97 * tally.fits,
        "{} of {} converged",
        tally.converged,
        tally.fits
    );
    assert!(
        10 * tally.refused <= tally.problems,
        "{} of {} were refused",
        tally.refused,
        tally.problems
    );
}

#[test]
fn the_weights_of_a_box_simplex_stay_below_their_bound() {
    metamorphic::assert_holds(
        "the order of rows",
        39_315_327,
        r#"{"machine":{"name":"svdd","C":0.3333333333333333},"sharing":{"name":"box-simplex","upper":0.44},"kernels":["poly:degree=2,coef0=0,gamma=0.5","constant","cosine@f1","constant"],"normalize":true,"columns":2,"sets":[{"count":3,"rows":[0.741,1.312,-1.065,0.752,0.08,-0.767]},{"count":6,"rows":[-1.0,-0.0,-0.0,0.0,-0.0,-2.0,1.0,0.0,-2.0,-0.0,1.0,1.0]}],"tasks":[{"set":0,"rows":[0,1,2],"targets":[0.0,0.0,0.0]},{"set":1,"rows":[0,1,2,3,4,5],"targets":[0.0,0.0,0.0,0.0,0.0,0.0]}]}"#,
    );
}
