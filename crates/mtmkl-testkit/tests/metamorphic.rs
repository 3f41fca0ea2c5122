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

#[test]
fn a_line_along_which_the_value_hardly_changes_proves_what_it_proves() {
    metamorphic::assert_holds(
        "by itself",
        5_054_261,
        r#"{"machine":{"name":"svc","C":9.763890245120333,"positive_weight":1.0,"negative_weight":1.0},"sharing":{"name":"prior-ball","prior":[1.0,0.0],"radius":2.433305237845202},"kernels":["linear@f3","rbf:gamma=0.0002760266525694545"],"normalize":true,"columns":4,"sets":[{"count":6,"rows":[0.1075976050652758,1.68172204708225,-0.6455262960120305,-1.0133910993195154,2.3788089327553767,-0.5415328508729181,-0.5314047803749409,0.29761338246668156,2.0973618125998987,-0.5612329891946587,0.34127924180123287,0.529532357446822,-1.031830161488854,0.6635612077077396,1.4762064941395194,-1.09417332206905,2.7087011063212074,-0.022201314735121564,-1.5320568898398341,-0.6314762268077443,0.3366855367855115,0.29779087392533626,-0.8474779815316131,-0.38027616311418677]}],"tasks":[{"set":0,"rows":[0,1,2,3,4,5],"targets":[-1.0,1.0,1.0,-1.0,1.0,-1.0]}]}"#,
    );
}

#[test]
fn no_weight_is_below_zero() {
    metamorphic::assert_holds(
        "weights against copies of rows",
        436_372_496,
        r#"{"machine":{"name":"svdd","C":0.3333333333333333},"sharing":{"name":"sum","terms":[{"common":{"set":"simplex","total":0.6}},{"independent":{"set":"box-simplex","total":0.5,"upper":0.5}}]},"kernels":["rbf:gamma=0.27201214210085445@f1","linear"],"normalize":false,"columns":3,"sets":[{"count":3,"rows":[0.4744388936095171,-0.9912605721024691,-0.13769993557270224,0.47443894484524135,-0.9912605077835255,-0.13769973663908083,0.4744391516116611,-0.9912605733578135,-0.13769993522505913]},{"count":4,"rows":[3.0,1.1815584629217022,0.13394382476981287,3.0,1.0836338217467087,-0.3916156941907051,3.0,-0.7489536277016366,1.021019363659152,3.0,-0.4777209305178194,-1.1172258847772334]}],"tasks":[{"set":0,"rows":[0,1,2],"targets":[0.0,0.0,0.0]},{"set":1,"rows":[0,1,2,3],"targets":[0.0,0.0,0.0,0.0]}]}"#,
    );
}

#[test]
fn a_line_that_is_flat_but_for_rounding_proves_what_it_proves() {
    metamorphic::assert_holds(
        "by itself",
        5_057_096,
        r#"{"machine":{"name":"svc","C":0.33848059695111593,"positive_weight":2.5,"negative_weight":0.5},"sharing":{"name":"hierarchy","p":2.0,"q":1.0,"radius":0.48284986732844726,"radii":null,"root":false,"leaves":true,"levels":[{"label":"half","groups":[["half 0",[0,1]],["half 1",[2]]]}]},"kernels":["matern52:length=0.0004831635037132338@f1","cosine","rbf:gamma=17.699241048774056","matern52:length=0.19712031107005581","linear@f3"],"normalize":true,"columns":4,"sets":[{"count":2,"rows":[-0.19138223324168802,1.0923964614968509,-1.8666972828789183,-1.3581687657949182,2.9185947630686173,-0.48427794949054886,0.25920471551842755,2.0004151026742636]},{"count":2,"rows":[-2836.1839106439857,1.2370190680256108,-300.79105337923954,-0.002219102175655891,2669.6400974420503,-0.7655505796967965,1801.385413425949,0.002363235607202549]},{"count":5,"rows":[0.3994730234905126,-0.447926515014443,-0.8216176804428161,-0.5795251851333667,0.3994730234905126,-0.447926515014443,-0.8216176804428161,-0.5795251851333667,0.3994730234905126,-0.447926515014443,-0.8216176804428161,-0.5795251851333667,0.3994730234905126,-0.447926515014443,-0.8216176804428161,-0.5795251851333667,0.3994730234905126,-0.447926515014443,-0.8216176804428161,-0.5795251851333667]}],"tasks":[{"set":0,"rows":[0,1],"targets":[-1.0,1.0]},{"set":1,"rows":[0,1],"targets":[-1.0,1.0]},{"set":2,"rows":[0,1,2,3,4],"targets":[1.0,-1.0,-1.0,-1.0,-1.0]}]}"#,
    );
}

#[test]
fn ridge_says_the_same_of_rows_and_of_their_matrices() {
    metamorphic::assert_holds(
        "kernels against given matrices",
        484_770_021,
        r#"{"machine":{"name":"krr","lambda":0.06676137832369405},"sharing":{"name":"common","p":1.1,"radius":0.20531336720733764},"kernels":["poly:degree=2,coef0=0,gamma=0.5"],"normalize":false,"columns":2,"sets":[{"count":7,"rows":[-0.0,-1.0,0.0,0.0,1.0,-0.0,-0.0,0.0,1.0,-1.0,-0.0,0.0,-1.0,1.0]},{"count":12,"rows":[2.0,1.0,0.0,1.0,0.0,-0.0,1.0,-0.0,-2.0,-1.0,0.0,-2.0,-0.0,0.0,-0.0,1.0,-1.0,0.0,-1.0,2.0,1.0,-0.0,1.0,-0.0]},{"count":10,"rows":[1.0,1.0,1.0,-0.0,0.0,1.0,-1.0,-0.0,-1.0,2.0,0.0,0.0,0.0,-0.0,0.0,1.0,-1.0,-0.0,0.0,-0.0]},{"count":8,"rows":[-312.0,3956.0,-398.0,-1424.0,-70.0,328.0,148.0,-2710.0,-90.0,-3316.0,-106.0,-4858.0,-160.0,-7850.0,-228.0,-2246.0]}],"tasks":[{"set":3,"rows":[7],"targets":[24724.441549499443]}]}"#,
    );
}

#[test]
fn an_optimum_of_zero_is_seen_up_to_rounding() {
    metamorphic::assert_holds(
        "weights against copies of rows",
        427_879_648,
        r#"{"machine":{"name":"svdd","C":1.0},"sharing":{"name":"simplex"},"kernels":["poly:degree=2,coef0=0,gamma=0.5","chi2:gamma=3.6349287989345704"],"normalize":true,"columns":1,"sets":[{"count":29,"rows":[0.346,0.996,0.793,0.495,1.596,0.56,0.97,1.375,0.208,0.592,0.744,1.268,0.361,0.842,1.138,0.031,0.412,0.441,0.598,1.111,0.001,1.432,0.071,1.564,1.137,0.661,0.244,0.642,0.459]}],"tasks":[{"set":0,"rows":[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28],"targets":[0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0]}]}"#,
    );
}

#[test]
fn an_optimum_of_zero_of_streamed_rows_is_seen_up_to_rounding() {
    metamorphic::assert_holds(
        "mapped and streamed storage",
        1_065_435_255,
        r#"{"machine":{"name":"svdd","C":1.0},"sharing":{"name":"sum","terms":[{"common":{"set":"simplex","total":0.6}},{"independent":{"set":"box-simplex","total":0.5,"upper":0.5}}]},"kernels":["poly:degree=2,coef0=0,gamma=0.5@f1","cosine@f1"],"normalize":true,"columns":2,"sets":[{"count":31,"rows":[-0.817,-0.172,0.486,0.598,0.911,0.879,-2.134,-0.248,2.03,0.3,-0.229,0.455,1.031,-0.99,1.4,-1.268,-1.369,1.718,-0.365,0.333,0.312,1.097,-1.18,-0.612,-1.172,-0.051,0.229,0.633,-1.182,0.992,0.484,-0.42,2.667,-1.574,-0.176,0.757,1.077,-0.839,0.46,-0.425,-1.5,0.434,-0.801,-0.465,1.73,0.359,0.188,-0.011,-0.575,-1.939,-0.913,0.6,-0.504,0.143,-0.898,-1.834,0.788,2.247,1.58,0.992,1.46,0.216]}],"tasks":[{"set":0,"rows":[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30],"targets":[0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0]}]}"#,
    );
}

#[test]
fn a_logistic_optimum_of_next_to_nothing_has_a_bound_below_it() {
    metamorphic::assert_holds(
        "by itself",
        8_273,
        r#"{"machine":{"name":"logistic","C":1.469751962025703,"positive_weight":1.0,"negative_weight":1.0},"sharing":{"name":"sum","terms":[{"common":{"set":"fixed","weights":[0.5,0.0,1.5]}},{"common":{"set":"simplex","total":0.2}}]},"kernels":["constant","poly:degree=2,coef0=1@f3","cosine"],"normalize":false,"columns":4,"sets":[{"count":2,"rows":[-0.0,0.006,-3821.279,0.0,0.001,-0.027,5618.226,-0.0]}],"tasks":[{"set":0,"rows":[0,1],"targets":[1.0,-1.0]}]}"#,
    );
}

#[test]
fn where_a_conic_solver_is_wrong_of_what_it_says_it_solved_bounds_are_not() {
    metamorphic::assert_holds(
        "a conic solver",
        537_547_422,
        r#"{"machine":{"name":"svr","C":29.441579636098233,"epsilon":0.0},"sharing":{"name":"simplex"},"kernels":["linear","laplacian:gamma=31.888402227900468"],"normalize":false,"columns":3,"sets":[{"count":2,"rows":[0.0,4404.0,13.0,0.0,6660.0,1.0]},{"count":3,"rows":[0.0,5446.0,16.0,0.0,9270.0,1.0,0.0,12088.0,6.0]},{"count":4,"rows":[0.0,4949.0,26.0,0.0,1497.0,11.0,0.0,4404.0,13.0,0.0,12088.0,6.0]}],"tasks":[{"set":0,"rows":[0,1],"targets":[5282097.783544287,7971974.033984244]},{"set":1,"rows":[0,1,2],"targets":[-1879622.5350651746,-3167176.9898056863,-4142087.1093597435]},{"set":2,"rows":[0,1,2,3],"targets":[1797.9822849883938,549.1407219266976,1583.4783757230855,4291.09571120136]}]}"#,
    );
}
