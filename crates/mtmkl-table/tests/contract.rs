//! The promises of the table contract, on random tables.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use mtmkl::kernel::parse_kernels;
use mtmkl::machine::MachineSpec;
use mtmkl::sharing::SharingSpec;
use mtmkl::{Fitting, Model, Preparation, Problem, ProblemSpec, Samples, Targets, Task};
use mtmkl_table::*;
use proptest::prelude::*;

/// Names that are easily taken for one another.
fn odd_name() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "1", "1.0", "001", "-0", "0", "10", "2", "1e1", "inf", "1a", "a b", "ä", "A", "a\"b", "'",
        "N.A.", "+1", " 1",
    ])
    .prop_map(str::to_string)
}

/// A column of small whole numbers with zeros and gaps.
fn numbers() -> impl Strategy<Value = Vec<Option<f64>>> {
    let cell = prop_oneof![3 => Just(Some(0.0)), 2 => (-3..4).prop_map(|n| Some(f64::from(n))), 1 => Just(None)];
    prop::collection::vec(cell, 12)
}

fn column(name: &str, cells: &[Option<f64>], sparse: bool) -> Column {
    let empty = if sparse {
        Values::Sparse(Sparse::default())
    } else {
        Values::Numbers(Vec::new())
    };
    let mut made = Column {
        name: name.to_string(),
        values: empty,
        missing: Vec::new(),
    };
    for (row, cell) in cells.iter().enumerate() {
        made.values.push(cell.unwrap_or(0.0));
        made.missing.extend(cell.is_none().then_some(row));
    }
    made
}

fn texts(name: &str, cells: &[String]) -> Column {
    Column::of_cells(name.to_string(), cells.to_vec(), true).unwrap()
}

fn plan(one_hot: &[String], missing: Missing) -> Plan<'_> {
    Plan {
        target: Some("y"),
        task: None,
        weight: None,
        id: None,
        groups: &[],
        ignore: &[],
        features: None,
        one_hot,
        missing,
        is_sure: false,
        aim: Aim::Numbers,
        computed: true,
    }
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

proptest! {
    #[test]
    fn the_order_of_names_is_total(names in prop::collection::vec(odd_name(), 1..20), seed in any::<u64>()) {
        let order = |names: &[String]| {
            let mut sorted = names.to_vec();
            sorted.sort_by(|a, b| by_number_then_text(a, b));
            sorted
        };
        let mut mixed = names.clone();
        mtmkl::random::Random::new(seed).shuffle(&mut mixed);
        prop_assert_eq!(order(&names), order(&mixed));
        for (a, b) in names.iter().zip(&mixed) {
            prop_assert_eq!(by_number_then_text(a, b), by_number_then_text(b, a).reverse());
            prop_assert_eq!(by_number_then_text(a, b).is_eq(), a == b);
        }
    }

    #[test]
    fn names_are_kept_once_and_come_back(names in prop::collection::vec(odd_name(), 1..20)) {
        let kept = Names::new(names.iter().map(|name| Some(name.as_str())));
        prop_assert!(kept.iter().eq(names.iter().map(String::as_str)));
        let mut sorted = names.clone();
        sorted.sort_by(|a, b| by_number_then_text(a, b));
        sorted.dedup();
        prop_assert_eq!(kept.distinct(), &sorted);
        let rows: usize = kept.groups().iter().map(|(_, rows)| rows.len()).sum();
        prop_assert_eq!(rows, names.len());
    }

    #[test]
    fn scaling_can_be_undone(values in prop::collection::vec(-1e3..1e3_f64, 1..20)) {
        for (scaling, _, _) in Scaling::WORDS {
            let (offset, factor) = scaling.of(&values, None);
            let scaled: Vec<f64> = values.iter().map(|value| (value - offset) * factor).collect();
            for (value, scaled) in values.iter().zip(&scaled) {
                // A constant column says nothing.
                prop_assert!(factor == 0.0 || (scaled / factor + offset - value).abs() <= 1e-9);
            }
            match scaling {
                Scaling::None => prop_assert_eq!(&scaled, &values),
                Scaling::Minmax => prop_assert!(scaled.iter().all(|value| (-1e-12..=1.0 + 1e-12).contains(value))),
                Scaling::Standard => prop_assert!(scaled.iter().sum::<f64>().abs() < 1e-6),
            }
        }
    }

    #[test]
    fn margins_never_outvote_a_vote(classes in 2..6_usize, seed in any::<u64>()) {
        let mut random = mtmkl::random::Random::new(seed);
        let pairs: Vec<(usize, usize)> = Multiclass::pairs(classes).collect();
        let decisions: Vec<f64> = pairs.iter().map(|_| random.below(9) as f64 * 1e3 - 4e3).collect();
        let mut votes = vec![0; classes];
        for ((first, second), decision) in pairs.iter().zip(&decisions) {
            votes[if *decision >= 0.0 { *second } else { *first }] += 1;
        }
        let best = winner(&class_scores(Multiclass::Ovo, classes, &decisions));
        prop_assert_eq!(votes[best], *votes.iter().max().unwrap());
    }

    #[test]
    fn sparse_columns_are_dense_ones(a in numbers(), b in numbers(), codes in prop::collection::vec(odd_name(), 12), how in 0..9_usize) {
        prop_assume!(a.iter().any(Option::is_some) && b.iter().any(Option::is_some));
        let y: Vec<Option<f64>> = (0..12).map(|row| Some(f64::from(row))).collect();
        let (scaling, missing) = (Scaling::WORDS[how % 3].0, Missing::WORDS[how / 3].0);
        let one_hot = ["code".to_string()];
        let made = |sparse: bool| -> Result<_> {
            let columns = vec![column("a", &a, sparse), column("y", &y, false), column("b", &b, sparse), texts("code", &codes)];
            let table = Table::new("t", 12, columns, Lines::Rows(1));
            let mut frame = Frame::new(&table, &plan(&one_hot, missing))?;
            let records = frame.records(&table, true, None, &[])?;
            frame.learn(&table, &records.positions, None, missing, scaling)?;
            let values = frame.gather(&table, &records.positions, u64::MAX)?;
            // The formula itself.
            let width = frame.features.len();
            for (at, value) in values.iter().enumerate() {
                let (row, feature) = (records.positions[at / width], &frame.features[at % width]);
                let cells = if feature.name == "a" { &a } else { &b };
                let cell = match &feature.category {
                    Some(category) => Some(f64::from(u8::from(codes[row] == *category))),
                    None => cells[row].or(feature.fill),
                };
                assert_eq!(*value, (cell.unwrap() - feature.offset) * feature.factor);
            }
            Ok((frame, bits(&values)))
        };
        match (made(false), made(true)) {
            (Ok(dense), Ok(sparse)) => prop_assert_eq!(dense, sparse),
            (Err(dense), Err(sparse)) => prop_assert_eq!(dense.to_string(), sparse.to_string()),
            _ => prop_assert!(false, "one can be read and the other cannot"),
        }
    }

    #[test]
    fn the_order_of_rows_and_repeated_rows_make_no_difference(cells in prop::collection::vec((0..3, 0..3, 0..2), 4..12), seed in any::<u64>()) {
        let sets = |rows: &[(i32, i32, i32)], weights: Option<Vec<Option<f64>>>| {
            let part = |which: fn(&(i32, i32, i32)) -> i32| rows.iter().map(|row| Some(f64::from(which(row)))).collect::<Vec<_>>();
            let mut columns = vec![column("a", &part(|row| row.0), false), column("b", &part(|row| row.1), true), column("y", &part(|row| row.2), false)];
            columns.extend(weights.as_ref().map(|weights| column("w", weights, false)));
            let table = Table::new("t", rows.len(), columns, Lines::Rows(1));
            let weight = weights.is_some().then_some("w");
            let frame = Frame::new(&table, &Plan { weight, ..plan(&[], Missing::Error) }).unwrap();
            let records = frame.records(&table, true, weight, &[]).unwrap();
            let all: Vec<usize> = (0..rows.len()).collect();
            let made = Dataset::new(&frame, &table, &records, &all, &Grams::new(), Equals::Merged, u64::MAX).unwrap();
            let Targets::Values(targets) = made.tasks[0].targets.clone() else { panic!("numbers are learned") };
            // Every sample is a row of the table, with its own target.
            for (at, &row) in made.rows[0].iter().enumerate() {
                let own = [f64::from(rows[row].0), f64::from(rows[row].1)];
                assert_eq!(made.samples[0].rows().get(at).unwrap().to_vec(), own);
                assert_eq!(targets[at], f64::from(rows[row].2));
            }
            (made.samples[0].rows().dense().unwrap().to_vec(), targets, made.tasks[0].weights.clone())
        };
        let expected = sets(&cells, None);
        let mut mixed = cells.clone();
        mtmkl::random::Random::new(seed).shuffle(&mut mixed);
        prop_assert_eq!(&sets(&mixed, None), &expected);
        // Each row once, with the number of times it stood there as its weight.
        let mut times: BTreeMap<(i32, i32, i32), f64> = BTreeMap::new();
        for row in &cells {
            *times.entry(*row).or_default() += 1.0;
        }
        let (once, weights): (Vec<_>, Vec<_>) = times.into_iter().map(|(row, count)| (row, Some(count))).unzip();
        prop_assert_eq!(&sets(&once, Some(weights)), &expected);
    }
}

#[test]
fn ties_go_to_the_first_class() {
    assert_eq!(
        winner(&class_scores(Multiclass::Ova, 3, &[0.5, 0.7, 0.7])),
        1
    );
    // Each class beats one other by the same margin.
    let circle = class_scores(Multiclass::Ovo, 3, &[-1.0, 1.0, -1.0]);
    assert_eq!(
        circle.iter().map(|score| score.round()).collect::<Vec<_>>(),
        [1.0, 1.0, 1.0]
    );
    assert_eq!(winner(&circle), 0);
    // A wider margin decides among equal votes.
    assert_eq!(
        winner(&class_scores(Multiclass::Ovo, 3, &[-1.0, 1.0, -9.0])),
        1
    );
}

#[test]
fn a_number_is_the_name_that_spells_it() {
    let known = [
        "001",
        "2.0",
        "True",
        "12345678901234567890",
        "12345678901234567891",
    ];
    let find = |value| named(value, &known).unwrap();
    assert_eq!(find(Spelled::Number(1.0)), Some("001"));
    assert_eq!(find(Spelled::Whole("1")), Some("001"));
    assert_eq!(find(Spelled::Whole("2")), Some("2.0"));
    assert_eq!(find(Spelled::Truth(true)), Some("True"));
    assert_eq!(find(Spelled::Text("1")), None);
    // All digits count.
    assert_eq!(find(Spelled::Whole("12345678901234567891")), Some(known[4]));
    assert_eq!(
        named(Spelled::Number(7.0), &["7", "007"]),
        Err(("7", "007"))
    );
}

#[test]
fn gaps_are_known_by_their_spelling() {
    for gap in [
        "", " ", "NA", " N/A ", "null", "NULL", "?", "<NA>", "nan", "NaN", "-NAN",
    ] {
        assert!(is_gap(gap), "{gap:?}");
    }
    for name in ["N.A.", "none", "None", "nano", "inf", "0", "na"] {
        assert!(!is_gap(name), "{name:?}");
    }
}

/// A small model to carry notes.
fn model() -> Model {
    let samples =
        Samples::with_columns(vec![0.0, 1.0, 2.0, 4.0], 4, vec!["a".to_string()]).unwrap();
    let task = Task::new("y", Targets::Values(vec![0.0, 1.0, 2.0, 5.0]));
    let machine = MachineSpec::krr(1.0);
    let sharing = SharingSpec::lp(2.0, 1.0);
    let spec = ProblemSpec::new(parse_kernels("linear").unwrap(), machine, sharing);
    let problem = Problem::new(spec, vec![samples], vec![task]).unwrap();
    let prepared = problem.prepare(&Preparation::default()).unwrap();
    prepared.fit(&mut Fitting::default()).unwrap()
}

#[test]
fn notes_come_back_and_old_ones_are_read() {
    let mut model = model();
    assert!(matches!(frame_of(&model), Err(TableError::NoFrame)));
    assert_eq!(Frame::of_library(&model).columns(), ["a"]);
    let mut frame = Frame::plain(&["a".to_string()], Some("y"), None, Goal::Regression);
    frame.features[0].fill = Some(0.1 + 0.2);
    frame.features[0].factor = 1.0 / 3.0;
    keep(model.notes_mut(), &frame, &[vec![3, 1, 0, 2]]).unwrap();
    let again = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert_eq!(frame_of(&again).unwrap(), frame);
    assert_eq!(training_rows_of(&again).unwrap(), [[3, 1, 0, 2]]);
    // As the first versions wrote it.
    let old = r#"{"features":[{"name":"a","column":"a","offset":0.5,"factor":2.0}],"target":"y","task":null,"goal":"regression","drop_missing":false}"#;
    model.notes_mut().insert(FRAME.to_string(), old.to_string());
    assert_eq!(frame_of(&model).unwrap().features[0].offset, 0.5);
    let written = serde_json::to_string(&frame).unwrap();
    let later = written.replacen("\"version\":1", "\"version\":99", 1);
    model.notes_mut().insert(FRAME.to_string(), later);
    let message = frame_of(&model).unwrap_err().to_string();
    assert!(message.contains("version 99"), "{message}");
    let other = written.replace(
        "\"goal\":\"regression\"",
        r#""goal":{"binary":{"classes":["a"]}}"#,
    );
    model.notes_mut().insert(FRAME.to_string(), other);
    assert!(matches!(frame_of(&model), Err(TableError::Damaged)));
}

#[test]
fn what_cannot_be_gathered_is_named() {
    let columns = vec![
        column("a", &[Some(1.0), None], true),
        column("y", &[Some(0.0), Some(1.0)], false),
    ];
    let table = Table::new("t.csv", 2, columns, Lines::From(2));
    let frame = Frame::new(&table, &plan(&[], Missing::Mean)).unwrap();
    let said = |result: Result<Vec<f64>>| result.unwrap_err().to_string();
    let gap = said(frame.gather(&table, &[0, 1], u64::MAX));
    assert!(
        gap.starts_with("t.csv, line 3, column `a`: the value is missing"),
        "{gap}"
    );
    let large = said(frame.gather(&table, &[0, 1], 8));
    assert!(
        large.contains("2 rows of 1 columns as numbers take 16 bytes, over the limit of 8 bytes"),
        "{large}"
    );
}
