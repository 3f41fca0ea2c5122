//! Folds, cells and searches that do not fit.

use super::*;

fn cells() -> Cells {
    let axis = Axis {
        parameter: "C".to_string(),
        values: vec![1.0, 10.0],
    };
    let sharing = problem().spec().sharing.clone();
    Cells::new(&MachineSpec::svc(1.0), &[sharing], 2, &[axis]).unwrap()
}

fn fold(learn: Vec<usize>, held: Vec<usize>) -> Fold {
    Fold {
        learn: vec![learn],
        held: vec![held],
    }
}

fn limits() -> Limits {
    Limits {
        tolerance: 1e-3,
        max_passes: 100,
        time_limit: None,
        seed: 0,
        warm: true,
        stop: Stop::never(),
    }
}

#[test]
fn a_search_refuses_kernels_and_rows_that_are_not_there() {
    let problem = problem();
    let cells = cells();
    let good = [fold(vec![0, 1, 2, 3], vec![4, 5])];
    let sets = [vec![0, 1], vec![1]];
    assert!(Search::new(&problem, &sets, &cells, &good).is_ok());
    let wrong = [vec![0, 1], vec![2]];
    refused(
        Search::new(&problem, &wrong, &cells, &good),
        &["`kernels` is 2", "below 2"],
    );
    refused(
        Search::new(&problem, &sets[..1], &cells, &good),
        &["`kernels`", "at least one"],
    );
    for (learn, held) in [(vec![0, 1, 2, 6], vec![4]), (vec![0, 1, 2, 3], vec![HUGE])] {
        let folds = [fold(learn, held)];
        let result = Search::new(&problem, &sets, &cells, &folds);
        refused(result, &["sample set 0", "row index", "6 rows"]);
    }
    let lists = [Vec::new(), vec![vec![0, 1, 2, 3]; 2]];
    for lists in lists {
        let folds = [Fold {
            learn: lists.clone(),
            held: lists,
        }];
        let result = Search::new(&problem, &sets, &cells, &folds);
        refused(result, &["lists of rows of a fold", "expected 1"]);
    }
}

#[test]
fn a_chain_of_another_grid_is_refused() {
    let problem = problem();
    let cells = cells();
    let folds = [fold(vec![0, 1, 2, 3], vec![4, 5])];
    let sets = [vec![0, 1], vec![1]];
    let search = Search::new(&problem, &sets, &cells, &folds).unwrap();
    let prepared = problem.prepare(&Preparation::default()).unwrap();
    let follow = |fold, cells: Vec<usize>| {
        let chain = Chain { fold, cells };
        let mut told = 0;
        let result = search.follow(&prepared, &chain, None, &limits(), prepared.pool(), |_| {
            told += 1;
            ControlFlow::Continue(())
        });
        result.map(|()| told)
    };
    assert_eq!(follow(0, vec![0, 1]).unwrap(), 2);
    refused(follow(1, vec![0]), &["`fold` is 1", "below 1"]);
    refused(follow(HUGE, vec![0]), &["`fold`"]);
    refused(follow(0, vec![0, 4]), &["`cells` is 4", "below 4"]);
    // Cells 2 and 3 have the other kernel set.
    refused(follow(0, vec![0, 2]), &["`cells`", "one kernel set"]);
    assert_eq!(follow(HUGE, Vec::new()).unwrap(), 0);
}

#[test]
fn grids_of_cells_need_values() {
    let machine = MachineSpec::svc(1.0);
    let sharing = [SharingSpec::uniform()];
    refused(Cells::new(&machine, &[], 1, &[]), &["`sharing`"]);
    refused(Cells::new(&machine, &sharing, 0, &[]), &["`kernels`"]);
    let axis = |parameter: &str, values| Axis {
        parameter: parameter.to_string(),
        values,
    };
    let empty = [axis("C", Vec::new())];
    refused(Cells::new(&machine, &sharing, 1, &empty), &["`C`", "empty"]);
    let foreign = [axis("nu", vec![0.5])];
    refused(Cells::new(&machine, &sharing, 1, &foreign), &["`nu`"]);
    // A value that no machine takes is found before anything is computed.
    let nan = Cell {
        kernels: 0,
        sharing: SharingSpec::uniform(),
        machine: MachineSpec::svc(f64::NAN),
    };
    let nan = Cells::of(vec![nan]);
    let folds = [fold(vec![0, 1, 2, 3], vec![4])];
    let problem = problem();
    let sets = [vec![0]];
    refused(Search::new(&problem, &sets, &nan, &folds), &["`C` is NaN"]);
    assert_eq!(nan.chains(0), Vec::new());
}

#[test]
fn splits_need_rows_and_a_group_for_each() {
    let strata = [0, 1, 0, 1, 0, 1];
    for groups in [&[0, 1, 2][..], &[0, 1, 2, 3, 4, 5, 6, 7], &[]] {
        let count = format!("`groups` is {}", groups.len());
        let words = [count.as_str(), "6, one for each row"];
        refused(split::k_fold(&strata, Some(groups), 2, 0), &words);
        refused(split::by_shares(&strata, Some(groups), 0.5, 0.3, 0), &words);
        refused(
            split::repeated(&strata, Some(groups), 0.5, 0.3, 2, 0),
            &words,
        );
    }
    for groups in [None, Some(&[][..])] {
        let words = ["`rows` is 0", "at least one"];
        refused(split::k_fold(&[], groups, 2, 0), &words);
        refused(split::k_fold(&[], groups, HUGE, 0), &words);
        refused(split::by_shares(&[], groups, 0.5, 0.3, 0), &words);
    }
    refused(split::k_fold(&strata, None, 0, 0), &["`folds` is 0"]);
    refused(split::k_fold(&strata, None, HUGE, 0), &["at most 3"]);
    let groups = [0, 1, 2, 3, 4, 5];
    refused(split::k_fold(&strata, Some(&groups), 7, 0), &["at most 6"]);
    for share in [f64::NAN, 0.0, 1.0, -1.0, f64::INFINITY] {
        refused(split::by_shares(&strata, None, share, 0.3, 0), &["train"]);
        let result = split::by_shares(&strata, None, 0.3, share, 0);
        refused(result, &["validation"]);
    }
}

#[test]
fn any_numbers_may_stand_for_strata_and_groups() {
    let strata = [0, 1, 0, 1, 0, 1];
    let far: Vec<usize> = strata.iter().map(|s| HUGE - 1 + s).collect();
    let groups = [HUGE, 3, HUGE - 7, 1 << 50, 5, 0];
    let near = split::k_fold(&strata, Some(&groups), 3, 7).unwrap();
    assert_eq!(split::k_fold(&far, Some(&groups), 3, 7).unwrap(), near);
    assert_eq!(
        split::k_fold(&far, None, 3, 7).unwrap(),
        split::k_fold(&strata, None, 3, 7).unwrap()
    );
}

#[test]
fn scores_of_lists_that_do_not_match_are_not_numbers() {
    let values = vec![vec![0.1, 0.2, 0.3]; 2];
    for metric in Metric::ALL {
        assert!(metric.of_labels(&[1.0, -1.0], &[0.1, 0.2, 0.3]).is_nan());
        assert!(metric.of_labels(&[1.0, -1.0, 1.0], &[0.1, 0.2]).is_nan());
        assert!(metric.of_classes(&[0, 1], &[0, 1, 1], &values).is_nan());
        assert!(metric.of_numbers(&[0.0, 1.0], &[0.0]).is_nan());
        assert!(metric.of_labels(&[], &[]).is_nan());
        assert!(metric.of_numbers(&[], &[]).is_nan());
    }
    let auc = Metric::Auc;
    assert!(auc.of_classes(&[0, 1], &[0, 1], &values).is_nan());
    assert!(auc.of_classes(&[0, 1], &[0, 1], &[]).is_nan());
    assert_eq!(auc.of_labels(&[1.0, -1.0], &[f64::NAN, 0.0]), 1.0);
    // Classes are names: large ones cost no more than small ones.
    let accuracy = Metric::BalancedAccuracy;
    assert_eq!(accuracy.of_classes(&[HUGE, 1 << 50], &[HUGE, 0], &[]), 0.5);
}
