//! The whole page: well formed, complete, safe, and sane in size.

use mtmkl_report::{GroupEntry, Picture, Report, Transfer, html};

mod sample;

/// Elements that have no end tag in HTML.
const VOID: [&str; 4] = ["meta", "img", "br", "link"];

/// Checks that tags are balanced, attributes quoted and ids unique.
fn check(page: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut ids: Vec<&str> = Vec::new();
    let mut rest = page;
    while let Some(start) = rest.find('<') {
        assert!(
            !rest[..start].contains('>'),
            "stray > before {:.60}",
            &rest[start..]
        );
        rest = &rest[start + 1..];
        let end = rest.find('>').expect("tag ends");
        let tag = &rest[..end];
        rest = &rest[end + 1..];
        if tag.starts_with('!') {
            continue;
        }
        assert!(!tag.contains('<'), "tag inside a tag: {tag:.80}");
        assert_eq!(tag.matches('"').count() % 2, 0, "quotes of {tag:.80}");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "end tag {name}");
            continue;
        }
        let name = tag.split([' ', '/']).next().expect("name");
        // Coordinates and widths must stay numbers.
        for attribute in [
            "style",
            "d",
            "x",
            "y",
            "cx",
            "cy",
            "width",
            "height",
            "viewBox",
            "transform",
        ] {
            for part in tag.split(&format!(" {attribute}=\"")).skip(1) {
                let value = part.split('"').next().expect("value");
                assert!(
                    !value.contains("NaN") && !value.contains("inf"),
                    "{tag:.200}"
                );
            }
        }
        for part in tag.split(" id=\"").skip(1) {
            ids.push(part.split('"').next().expect("id"));
        }
        if name == "style" {
            // Raw text: '>' may stand in it.
            rest = &rest[rest.find("</style>").expect("style ends")..];
        }
        if !tag.ends_with('/') && !VOID.contains(&name) {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "left open: {open:?}");
    let total = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), total, "ids repeat");
    for part in page.split("href=\"#").skip(1) {
        let target = part.split('"').next().expect("target");
        assert!(ids.contains(&target), "link to nowhere: {target}");
    }
    for bad in [
        "<script",
        "http://",
        "https://",
        "@import",
        "url(h",
        "javascript:",
    ] {
        let page = page.replace("http://www.w3.org/2000/svg", "");
        assert!(!page.contains(bad), "{bad} in the page");
    }
}

#[test]
fn iris_has_every_section() {
    let page = html(&sample::iris());
    check(&page);
    for id in [
        "weights",
        "spaces",
        "scores",
        "pictures",
        "convergence",
        "data",
        "settings",
        "time",
        "guide",
    ] {
        assert!(page.contains(&format!("<section id=\"{id}\"")), "{id}");
    }
    for text in [
        "The answer is within 0.0039\u{a0}% of the optimum, proven",
        "534.067",
        "534.089",
        "2 of 3 tasks share one kernel space, led by <b>poly:degree=2,coef0=0</b>",
        "<b>versicolor / virginica</b> keeps its own, led by <b>rbf:sigma=5</b>",
        "They beat the uniform average",
        "do exactly as well as",
    ] {
        let found = page.contains(text);
        // The single-kernel baseline differs in the mean, so that phrase must be absent.
        assert_eq!(found, text != "do exactly as well as", "{text}");
    }
    // γ of the two sharing tasks is all dots.
    assert!(page.contains("irginica</span></span></th><td>·</td><td>·</td><td>·</td>"));
    assert_eq!(page, html(&sample::iris()), "same report, same page");
}

#[test]
fn absent_parts_are_left_out() {
    let page = html(&Report::default());
    check(&page);
    for id in [
        "weights",
        "spaces",
        "scores",
        "pictures",
        "convergence",
        "data",
        "settings",
        "time",
    ] {
        assert!(!page.contains(&format!("id=\"{id}\"")), "{id}");
    }
    let report = Report {
        common: None,
        specific: None,
        scores: None,
        ..sample::iris()
    };
    let page = html(&report);
    check(&page);
    assert!(!page.contains("Its parts"));
    assert!(!page.contains("id=\"scores\""));
    assert!(page.contains("Each of the 3 tasks has kernel weights of its own"));
}

#[test]
fn common_weights_get_one_row() {
    let mut report = sample::iris();
    report.specific = None;
    report.weights = vec![vec![0.3, 0.7, 0.0]; 3];
    report.common = Some(vec![0.3, 0.7, 0.0]);
    let page = html(&report);
    check(&page);
    assert!(page.contains("All 3 tasks share one kernel space"));
    assert!(page.contains("<th scope=\"row\">all 3 tasks</th>"));
    assert!(page.contains("no task uses <b>rbf:sigma=5</b>"));
}

#[test]
fn one_task_one_kernel() {
    let page = html(&sample::large(1, 1));
    check(&page);
    assert!(!page.contains("id=\"spaces\""));
    assert!(page.contains("id=\"weights\""));
}

#[test]
fn large_reports_stay_sane() {
    let report = sample::large(100, 200);
    let page = html(&report);
    check(&page);
    assert!(page.len() < 2_500_000, "{} bytes", page.len());
    let dense = Report {
        weights: vec![vec![0.123; 200]; 100],
        specific: Some(vec![vec![0.023; 200]; 100]),
        ..report
    };
    assert!(html(&dense).len() < 2_500_000);
    assert!(page.contains("The whole map at a glance"));
    assert!(page.contains("75 tasks without a row have γ = 0"));
    assert!(page.contains("Not converged: the pass limit came first"));
    assert!(page.contains("<b>do not beat</b> the uniform average"));
}

#[test]
fn hostile_text_stays_text() {
    let evil = "\"><script>alert('x')</script>&<b \u{1}";
    let mut report = sample::iris();
    report.title = evil.into();
    report.subtitle = Some(evil.into());
    report.kernels = vec![evil.into(); 3];
    for task in &mut report.tasks {
        task.name = evil.into();
    }
    report.machine = evil.into();
    report.sharing = evil.into();
    report.solver = evil.into();
    report.status = evil.into();
    report.version = evil.into();
    report.settings = vec![(evil.into(), evil.into())];
    report.data = vec![(evil.into(), evil.into())];
    report.seconds = vec![(evil.into(), 1.0)];
    report.pictures = vec![Picture {
        title: evil.into(),
        svg: evil.into(),
        alt: evil.into(),
    }];
    let scores = report.scores.as_mut().expect("scores");
    scores.metric = evil.into();
    scores.split = evil.into();
    for row in &mut scores.rows {
        row.method += evil;
    }
    let page = html(&report);
    check(&page);
    assert!(page.contains("&lt;script&gt;"));
}

#[test]
fn broken_numbers_do_not_break_the_page() {
    for bad in [
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        0.0,
        -1.0,
        1e300,
        1e-300,
    ] {
        let mut report = sample::iris();
        report.objective = bad;
        report.bound = bad;
        report.gap = bad;
        report.tolerance = Some(bad);
        report.weights[1][1] = bad;
        report.weights[0] = vec![bad; 3];
        report.common = Some(vec![bad; 3]);
        report.specific = Some(vec![vec![bad; 3]; 3]);
        for pass in &mut report.passes {
            pass.objective = bad;
            pass.gap = bad;
            pass.seconds = bad;
            pass.step = bad;
        }
        for row in &mut report.scores.as_mut().expect("scores").rows {
            row.mean = bad;
            row.per_task[0] = bad;
        }
        report.seconds[0].1 = bad;
        let page = html(&report);
        check(&page);
    }
}

fn group(level: &str, name: &str, tasks: &[usize], weights: [f64; 3]) -> GroupEntry {
    GroupEntry {
        level: level.into(),
        name: name.into(),
        tasks: tasks.to_vec(),
        weights: weights.to_vec(),
    }
}

/// Where each of these stands on the page, and how far in.
fn places(page: &str, names: &[&str]) -> Vec<(usize, String)> {
    let tree = page.find("The parts on the tree").expect("a tree");
    let place = |name: &&str| {
        let at = tree + page[tree..].find(name).expect("a node");
        let indent = page[..at].rfind("padding-left:").expect("an indent");
        let indent = &page[indent + "padding-left:".len()..at];
        (at, indent[..indent.find("em").expect("em")].to_owned())
    };
    names.iter().map(place).collect()
}

#[test]
fn a_tree_of_tasks_is_indented() {
    let mut report = sample::iris();
    report.groups = vec![
        group("region", "north", &[2, 0], [0.1, 0.2, 0.0]),
        group("region", "south", &[1], [0.3, 0.0, 0.0]),
        group("town", "oslo", &[2], [0.0, 0.1, 0.0]),
    ];
    let page = html(&report);
    check(&page);
    assert!(page.contains("3 tasks in 3 groups"));
    assert!(page.contains("shared in groups") && !page.contains("-0 %"));
    let nodes = [
        "all 3 tasks",
        "north",
        "oslo",
        "versicolor / v",
        "setosa / ver",
        "south",
        "setosa / vir",
    ];
    let places = places(&page, &nodes);
    assert!(places.is_sorted_by_key(|(at, _)| *at), "{places:?}");
    let indents: Vec<&str> = places.iter().map(|(_, indent)| indent.as_str()).collect();
    assert_eq!(indents, ["0.0", "1.2", "2.4", "3.6", "2.4", "1.2", "2.4"]);
}

#[test]
fn groups_that_overlap_say_whose_they_are() {
    let mut report = sample::iris();
    report.groups = vec![
        group("groups", "a", &[0, 1], [0.1; 3]),
        group("groups", "b", &[1, 2, 9], [f64::NAN; 3]),
    ];
    report.common = None;
    let page = html(&report);
    check(&page);
    assert!(page.contains("<b>setosa / versicolor</b> and <b>setosa / virginica</b>)"));
    // Two groups and three tasks, none inside another.
    assert_eq!(page.matches("padding-left:0.0em").count(), 5);
}

#[test]
fn ragged_parts_are_shown_as_far_as_they_go() {
    let mut report = sample::iris();
    report.weights.push(vec![1.0; 5]);
    report.weights[0].pop();
    report.specific = Some(vec![vec![0.1]]);
    report.common = Some(Vec::new());
    report.scores.as_mut().expect("scores").rows[0]
        .per_task
        .clear();
    let page = html(&report);
    check(&page);
    assert!(page.contains("task 4") && page.contains("kernel 5"));
}

#[test]
fn one_machine_of_all_tasks_says_what_they_share() {
    let report = Report {
        transfer: Some(Transfer {
            levels: vec!["all".into(), "region".into(), "own".into()],
            overall: vec![0.5, 0.3, 0.2],
            tasks: vec![
                ("a <b>".into(), vec![0.6, 0.4, 0.0]),
                ("c".into(), vec![f64::NAN; 3]),
            ],
            kernels: vec![("linear".into(), vec![0.5, 0.3, 0.2])],
        }),
        ..sample::iris()
    };
    let page = html(&report);
    check(&page);
    assert!(page.contains("What tasks share") && page.contains("a &lt;b&gt;"));
    assert!(page.contains("width:60.0%") && !page.contains("width:NaN"));
    assert!(page.contains("region") && page.contains("0 %"));
    assert!(!html(&sample::iris()).contains("What tasks share"));
}
