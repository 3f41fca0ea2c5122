use super::*;
use crate::kernel::Base;
use crate::kernel::ColumnRange;

fn named(first: &str, last: Option<&str>) -> ColumnRange {
    ColumnRange {
        first: first.into(),
        last: last.map(Into::into),
    }
}

fn names(text: &str) -> Vec<String> {
    parse_kernels(text)
        .unwrap()
        .into_iter()
        .map(|view| view.name)
        .collect()
}

/// Numbers in [0, 1) from a linear congruential generator.
fn random(count: usize) -> Vec<f64> {
    let mut state = 7_u64;
    (0..count)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        })
        .collect()
}

/// k(x, z) as the Gram builder computes it.
fn evaluate(kernel: &dyn Kernel, x: &[f64], z: &[f64]) -> f64 {
    let plain = |x: &[f64], z: &[f64]| {
        assert!(!kernel.base().is_given());
        kernel.value(x, z)
    };
    if kernel.is_always_normalised() {
        plain(x, z) / (plain(x, x) * plain(z, z)).sqrt()
    } else {
        plain(x, z)
    }
}

/// The examples and the defaults of all kernels that compute something.
fn computing() -> Vec<KernelView> {
    KERNELS
        .iter()
        .filter(|info| info.name != "precomputed")
        .flat_map(|info| [info.example, info.name])
        .map(|text| parse_kernel(text).unwrap())
        .collect()
}

fn points() -> Vec<Vec<f64>> {
    // Some zeros: where kernels for histograms divide 0 by 0.
    let values: Vec<f64> = random(24 * 5)
        .into_iter()
        .map(|value| (3.0 * value - 0.6).max(0.0))
        .collect();
    values.chunks(5).map(<[f64]>::to_vec).collect()
}

/// Whether K + jitter·I has a Cholesky factor.
fn is_positive_semi_definite(mut k: Vec<Vec<f64>>) -> bool {
    let n = k.len();
    let jitter = 1e-12 * (0..n).map(|i| k[i][i]).sum::<f64>();
    for j in 0..n {
        let pivot = k[j][j] + jitter - (0..j).map(|p| k[j][p] * k[j][p]).sum::<f64>();
        if pivot.is_nan() || pivot <= 0.0 {
            return false;
        }
        k[j][j] = pivot.sqrt();
        for i in j + 1..n {
            let inner: f64 = (0..j).map(|p| k[i][p] * k[j][p]).sum();
            k[i][j] = (k[i][j] - inner) / k[j][j];
        }
    }
    true
}

#[test]
fn all_kernels_are_symmetric_and_definite_where_they_say_so() {
    let points = points();
    for view in computing() {
        let kernel = view.kernel.as_ref();
        let gram: Vec<Vec<f64>> = points
            .iter()
            .map(|x| points.iter().map(|z| evaluate(kernel, x, z)).collect())
            .collect();
        for i in 0..points.len() {
            for j in 0..points.len() {
                assert!(gram[i][j].is_finite(), "{}", view.name);
                assert_eq!(gram[i][j], gram[j][i], "{}", view.name);
            }
        }
        if kernel.is_positive_definite() {
            assert!(is_positive_semi_definite(gram), "{}", view.name);
        }
    }
}

#[test]
fn the_definiteness_test_finds_indefinite_kernels() {
    let gram = |text: &str| {
        let kernel = parse_kernel(text).unwrap().kernel;
        let points = points();
        points
            .iter()
            .map(|x| {
                points
                    .iter()
                    .map(|z| evaluate(kernel.as_ref(), x, z))
                    .collect()
            })
            .collect()
    };
    assert!(!is_positive_semi_definite(gram("sigmoid")));
    assert!(!is_positive_semi_definite(gram("poly:coef0=-4")));
}

#[test]
fn all_kernels_round_trip_through_their_specification() {
    let points = points();
    for view in computing() {
        let again = parse_kernel(&view.spec().unwrap()).unwrap();
        assert_eq!(view.spec(), again.spec());
        assert_eq!(view.kernel.base(), again.kernel.base());
        assert_eq!(
            view.kernel.is_positive_definite(),
            again.kernel.is_positive_definite()
        );
        for x in &points {
            for z in &points {
                let (one, other) = (
                    evaluate(view.kernel.as_ref(), x, z),
                    evaluate(again.kernel.as_ref(), x, z),
                );
                assert_eq!(one.to_bits(), other.to_bits(), "{}", view.name);
            }
        }
    }
}

#[test]
fn all_kernels_equal_their_formula() {
    type Formula = fn(f64, f64, f64) -> f64;
    let points = points();
    // Of x'z, ‖x − z‖² and ‖x − z‖₁.
    let of_base = |name: &str| -> Option<Formula> {
        Some(match name {
            "linear" => |product, _, _| product,
            "poly" => |product, _, _| (product + 1.0) * (product + 1.0),
            "poly:degree=3,coef0=1,gamma=0.5" => |product, _, _| (0.5 * product + 1.0).powf(3.0),
            "rbf" => |_, squared, _| (-squared).exp(),
            "rbf:gamma=0.5" => |_, squared, _| 1.0 / (squared / 2.0).exp(),
            "laplacian" => |_, _, manhattan| (-manhattan).exp(),
            "laplacian:gamma=0.5" => |_, _, manhattan| 1.0 / (manhattan / 2.0).exp(),
            "matern32" => |_, squared, _| {
                let s = (3.0 * squared).sqrt();
                (1.0 + s) / s.exp()
            },
            "matern32:length=2" => |_, squared, _| {
                let s = (3.0 * squared).sqrt() / 2.0;
                (1.0 + s) / s.exp()
            },
            "matern52" => |_, squared, _| {
                let s = (5.0 * squared).sqrt();
                (1.0 + s + 5.0 * squared / 3.0) / s.exp()
            },
            "matern52:length=2" => |_, squared, _| {
                let s = (5.0 * squared).sqrt() / 2.0;
                (1.0 + s + 5.0 * squared / 12.0) / s.exp()
            },
            "constant" => |_, _, _| 1.0,
            "sigmoid" => |product, _, _| (product + 1.0).sinh() / (product + 1.0).cosh(),
            "sigmoid:gamma=0.1,coef0=0.5" => |product, _, _| {
                let grown = (2.0 * (0.1 * product + 0.5)).exp();
                (grown - 1.0) / (grown + 1.0)
            },
            _ => return None,
        })
    };
    let chi_square = |x: &[f64], z: &[f64]| -> f64 {
        x.iter()
            .zip(z)
            .filter(|(a, b)| **a + **b > 0.0)
            .map(|(a, b)| (a - b).powi(2) / (a + b))
            .sum()
    };
    for view in computing() {
        for x in &points {
            for z in &points {
                let product: f64 = x.iter().zip(z).map(|(a, b)| a * b).sum();
                let length = |x: &[f64]| x.iter().map(|a| a * a).sum::<f64>().sqrt();
                let squared: f64 = x.iter().zip(z).map(|(a, b)| (a - b).powi(2)).sum();
                let manhattan: f64 = x.iter().zip(z).map(|(a, b)| (a - b).abs()).sum();
                let expected = match (view.name.as_str(), of_base(&view.name)) {
                    (_, Some(formula)) => formula(product, squared, manhattan),
                    ("cosine", _) => product / (length(x) * length(z)),
                    ("chi2", _) => (-chi_square(x, z)).exp(),
                    ("chi2:gamma=0.5", _) => (-0.5 * chi_square(x, z)).exp(),
                    ("intersection", _) => x
                        .iter()
                        .zip(z)
                        .map(|(a, b)| if a < b { a } else { b })
                        .sum(),
                    (name, None) => panic!("add the formula of `{name}` to this test"),
                };
                let found = evaluate(view.kernel.as_ref(), x, z);
                let error = (found - expected).abs();
                assert!(
                    error <= 1e-13 * expected.abs().max(1.0),
                    "{}: {found}, expected {expected}",
                    view.name
                );
            }
        }
    }
}

/// Values that scikit-learn gave for the same kernels and pairs of rows.
#[expect(clippy::unreadable_literal, reason = "as the script prints them")]
const STORED: &[(&str, [f64; 4])] = &[
    ("linear", [5.0, 2.625, 1.75, 11.3125]),
    ("poly", [36.0, 13.140625, 7.5625, 151.59765625]),
    (
        "poly:degree=3,coef0=0.5,gamma=0.2",
        [
            3.375,
            1.0768906249999997,
            0.6141250000000001,
            21.081759765625005,
        ],
    ),
    (
        "rbf",
        [
            0.0008047330101246132,
            0.09301448921066349,
            6.605650802868481e-05,
            1.0,
        ],
    ),
    (
        "rbf:gamma=0.3",
        [
            0.11794934810730252,
            0.49041662207590614,
            0.055715326963496424,
            1.0,
        ],
    ),
    (
        "rbf:sigma=2",
        [
            0.41039917309637,
            0.7431368986687583,
            0.30025444914408245,
            1.0,
        ],
    ),
    (
        "laplacian:gamma=0.3",
        [
            0.25924026064589156,
            0.40656965974059917,
            0.19204990862075413,
            1.0,
        ],
    ),
    (
        "sigmoid:gamma=0.1,coef0=-0.2",
        [
            0.2913126124515909,
            0.062418746747512514,
            -0.024994792968420682,
            0.7311761547481468,
        ],
    ),
    (
        "cosine",
        [
            0.616608099707363,
            0.8087398016301801,
            0.38647352198669366,
            1.0,
        ],
    ),
    (
        "chi2:gamma=0.3",
        [
            0.46092967154653697,
            0.5647181220077592,
            0.2603536745170363,
            1.0,
        ],
    ),
    (
        "matern32:length=2",
        [
            0.3281753824675337,
            0.6146026527290149,
            0.2510704843539989,
            1.0,
        ],
    ),
    (
        "matern52:length=0.7",
        [
            0.006688592514966263,
            0.10190255772117679,
            0.002167577064538186,
            1.0,
        ],
    ),
];

/// Made by `tests/scripts/sklearn_kernels.py` with scikit-learn 1.9.1: k(a, b), k(a, c), k(b, c), k(b, b).
#[test]
fn equals_scikit_learn() {
    let (a, b, c) = (
        [0.5, 0.0, 2.0, 1.25],
        [1.5, 0.0, 0.25, 3.0],
        [0.0, 0.75, 1.0, 0.5],
    );
    for &(text, expected) in STORED {
        let kernel = parse_kernel(text).unwrap().kernel;
        for ((x, z), expected) in [(&a, &b), (&a, &c), (&b, &c), (&b, &b)]
            .into_iter()
            .zip(expected)
        {
            let found = evaluate(kernel.as_ref(), x, z);
            assert!(
                (found - expected).abs() <= 1e-14 * expected.abs(),
                "{text}: {found}, expected {expected}"
            );
        }
    }
}

#[test]
fn the_registry_is_consistent() {
    let mut seen: Vec<&str> = Vec::new();
    for info in KERNELS {
        for name in std::iter::once(&info.name).chain(info.aliases) {
            assert!(!seen.contains(name), "{name} is registered twice");
            seen.push(name);
        }
        let view = parse_kernel(info.example).unwrap();
        let spec = view.spec().unwrap();
        assert_eq!(spec, info.example, "the example is what the kernel writes");
        assert_eq!(spec.split(':').next(), Some(info.name));
        for alias in info.aliases {
            let renamed = parse_kernel(&info.example.replacen(info.name, alias, 1)).unwrap();
            assert_eq!(renamed.spec(), view.spec());
        }
        if let Some(name) = view.kernel.needs_non_negative() {
            assert_eq!(name, info.name);
        }
    }
}

#[test]
fn a_name_is_what_the_user_wrote() {
    let view = parse_kernel(" gaussian : sigma = 2 @ f1..f4 , age ").unwrap();
    assert_eq!(view.name, "gaussian:sigma=2@f1..f4 , age");
    assert_eq!(
        view.columns,
        Columns::Named(vec![named("f1", Some("f4")), named("age", None)])
    );
    assert_eq!(view.spec().unwrap(), "rbf:gamma=0.125@f1..f4,age");
}

#[test]
fn sets_expand_in_order() {
    assert_eq!(
        names("rbf:sigma=1|2|4"),
        ["rbf:sigma=1", "rbf:sigma=2", "rbf:sigma=4"]
    );
    assert_eq!(
        names("poly:degree=2|3,coef0=0|1@a"),
        [
            "poly:degree=2,coef0=0@a",
            "poly:degree=2,coef0=1@a",
            "poly:degree=3,coef0=0@a",
            "poly:degree=3,coef0=1@a"
        ]
    );
    assert_eq!(
        names("precomputed:name=K1|K2"),
        ["precomputed:name=K1", "precomputed:name=K2"]
    );
    assert_eq!(names("linear@a|b"), ["linear@a|b"]);
}

#[test]
fn columns_round_trip() {
    for columns in [
        Columns::All,
        Columns::Indices(vec![0, 3, 3, 1]),
        Columns::Indices(vec![usize::MAX]),
        Columns::Named(vec![named("a", None), named("b", Some("c"))]),
        Columns::Named(vec![named("mean radius", Some("od280/od315 @ 5 cm|x:y=z"))]),
        Columns::Named(vec![
            named("a,b", Some("c..d")),
            named("..", None),
            named("#0", Some("#1")),
        ]),
        Columns::Named(vec![
            named("a.", Some(".b")),
            named(" c ", None),
            named("", None),
        ]),
        Columns::Named(vec![
            named("\"", Some("5\" disk")),
            named("\"a\",\"b\"", Some("\"\"")),
        ]),
        Columns::Named(vec![named("größe", Some("长度"))]),
    ] {
        let view = KernelView::new("mine", crate::kernel::Linear).on(columns);
        let text = view.spec().unwrap();
        assert_eq!(parse_kernel(&text).unwrap().columns, view.columns, "{text}");
    }
}

#[test]
fn positions_have_ranges() {
    let view = parse_kernel("linear@#0,#3..#5,#1").unwrap();
    assert_eq!(view.columns, Columns::Indices(vec![0, 3, 4, 5, 1]));
    assert_eq!(view.spec().unwrap(), "linear@#0,#3,#4,#5,#1");
}

#[test]
fn quotes_may_be_followed_by_blanks() {
    let view = parse_kernel("linear@ \"a,b\" .. \"c\" , d").unwrap();
    assert_eq!(
        view.columns,
        Columns::Named(vec![named("a,b", Some("c")), named("d", None)])
    );
}

#[test]
fn what_cannot_be_parsed_again_has_no_specification() {
    #[derive(Debug)]
    struct Mine;
    impl Kernel for Mine {
        fn base(&self) -> Base {
            Base::product()
        }
        fn spec(&self) -> Option<String> {
            None
        }
    }
    assert_eq!(KernelView::new("mine", Mine).spec(), None);
    let empty = Columns::Named(Vec::new());
    assert_eq!(
        KernelView::new("none", crate::kernel::Linear)
            .on(empty)
            .spec(),
        None
    );
    let given = KernelView::new("K", crate::kernel::Precomputed::new("K").unwrap());
    assert_eq!(
        given.on(Columns::Indices(vec![1])).spec().unwrap(),
        "precomputed:name=K"
    );
}

/// What is written, and what the message says.
const MESSAGES: &[(&str, &str)] = &[
    (
        "",
        "the kernel's name is missing; the kernels are linear, poly",
    ),
    (":gamma=1", "the kernel's name is missing"),
    ("rbff", "did you mean `rbf`?"),
    ("RBF", "did you mean `rbf`?"),
    ("guassian:sigma=1", "did you mean `gaussian`?"),
    (
        "wavelet9000",
        "there is no kernel `wavelet9000`; the kernels are",
    ),
    ("rbf:", "write for example `rbf:gamma=0.5`"),
    (
        "rbf:width=1",
        "unknown key `width`; the keys of `rbf` are `gamma` (",
    ),
    (
        "linear:gamma=1",
        "unknown key `gamma`; `linear` has no keys",
    ),
    ("rbf:gamma", "the key `gamma` has no value; write `gamma=…`"),
    (
        "rbf:gamma=",
        "the key `gamma` has no value; write `gamma=…`",
    ),
    (
        "rbf:0.5",
        "`0.5` is not of the form `key=value`; the keys of `rbf` are",
    ),
    (
        "rbf:sigma=1,2",
        "several values of `sigma` are written `sigma=1|2`",
    ),
    ("rbf:gamma=1,", "nothing before or after a `,`"),
    ("rbf:gamma=1,gamma=2", "given twice"),
    (
        "rbf:gamma=1,sigma=2",
        "`gamma` and `sigma` say the same thing; give one of them",
    ),
    (
        "rbf:gamma=wide",
        "`gamma` is `wide`, expected a number such as 0.5",
    ),
    (
        "poly:degree=2.5",
        "`degree` is `2.5`, expected a whole number such as 2",
    ),
    (
        "poly:degree=0",
        "`degree` is 0, expected a whole number from 1",
    ),
    (
        "rbf:gamma=-1",
        "`gamma` is -1, expected a finite number > 0",
    ),
    (
        "rbf:gamma=nan",
        "`gamma` is NaN, expected a finite number > 0",
    ),
    (
        "rbf:sigma=1||2",
        "has an empty member; put one `|` between two values",
    ),
    ("rbf:sigma=1|2|", "has an empty member"),
    (
        "rbf:sigma=1|-2",
        "`sigma` is -2, expected a finite number > 0",
    ),
    ("rbf@", "no columns follow `@`"),
    ("rbf@ ", "no columns follow `@`"),
    ("rbf@a,,b", "a column is missing"),
    ("rbf@a,", "a column is missing"),
    ("rbf@a..", "a column is missing"),
    ("rbf@..b", "a column is missing"),
    ("rbf@a..b..c", "columns are separated by `,`"),
    ("rbf@\"a\"b", "columns are separated by `,`"),
    ("rbf@\"a", "not closed"),
    ("rbf@#0,a", "mixed"),
    (
        "rbf@#0..a",
        "from name to name or from position to position",
    ),
    ("rbf@#x", "stands in quotes, `\"#x\"`"),
    ("rbf@#3..#1", "write `#1..#3`"),
    ("rbf@#0..#99999999999", "more than 1000000 columns"),
    ("precomputed", "write `precomputed:name=K1`"),
    ("precomputed:name=a,path=b", "give one of them"),
    ("precomputed:path=me@home.npy", "drop `@home.npy`"),
];

#[test]
fn messages_say_what_would_be_right() {
    for &(text, wanted) in MESSAGES {
        let error = parse_kernels(text).unwrap_err();
        assert!(
            matches!(&error, Error::Kernel { spec, .. } if spec == text),
            "{error}"
        );
        assert!(error.to_string().contains(wanted), "{text}: {error}");
    }
}

#[test]
fn one_kernel_is_no_set_and_a_set_has_its_limit() {
    let message = parse_kernel("rbf:sigma=1|2|4").unwrap_err().to_string();
    assert!(
        message.contains("a set of 3 values where one kernel is expected"),
        "{message}"
    );
    let many = vec!["1"; 200].join("|");
    let message = parse_kernels(&format!("poly:coef0={many},gamma={many}"))
        .unwrap_err()
        .to_string();
    assert!(message.contains("more than 10000 kernels"), "{message}");
}
