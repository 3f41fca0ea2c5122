//! Our figures beside the paper's: mean and standard deviation over draws, the paired t-test, and where the time went.

use std::collections::BTreeMap;

use mtmkl_cli::output;
use mtmkl_report::{Curve, Curves};
use serde_json::{Value, json};

use crate::benchmark::Benchmark;
use crate::method::Method;
use crate::protocol::{Key, Unit};
use crate::t_test::{PairedTest, paired_t_test};

/// The level of the t-test.
const LEVEL: f64 = 0.05;
/// How far below the paper's figure ours may be and still count as met, in points.
const ROOM: f64 = 2.0;

/// One method at one share of one set.
#[derive(Debug, Clone)]
struct Entry {
    set: &'static Benchmark,
    share: f64,
    method: Method,
    /// Per cent correct on the test half, by draw.
    tests: Vec<f64>,
    /// The paper's figure, and its sign for PSCS against this method.
    paper: Option<(f64, Option<char>)>,
    /// PSCS against this method on the same draws.
    against: Option<PairedTest>,
    units: Vec<Unit>,
}

/// All figures of a table.
#[derive(Debug)]
pub struct Figures {
    table: u8,
    entries: Vec<Entry>,
    /// Settings, name and value.
    settings: Vec<(String, String)>,
}

/// A table in Markdown.
pub fn markdown_table(header: &[String], rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let rule: Vec<String> = header.iter().map(|_| "---".to_string()).collect();
    line(header) + &line(&rule) + &rows.iter().map(|row| line(row)).collect::<String>()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn deviation(values: &[f64]) -> f64 {
    let middle = mean(values);
    let squares: f64 = values.iter().map(|value| (value - middle).powi(2)).sum();
    (squares / (values.len() as f64 - 1.0)).sqrt()
}

/// A share in per cent, as it is typed.
fn percent(share: f64) -> String {
    format!("{share} %")
}

impl Entry {
    fn mean(&self) -> f64 {
        mean(&self.tests)
    }

    /// `70.81 ± 3.02 +`
    fn text(&self) -> String {
        let sign = self.sign().map_or(String::new(), |sign| format!(" {sign}"));
        if self.tests.len() > 1 {
            format!("{:.2} ± {:.2}{sign}", self.mean(), deviation(&self.tests))
        } else {
            format!("{:.2}{sign}", self.mean())
        }
    }

    fn sign(&self) -> Option<char> {
        self.against.map(|test| test.mark(LEVEL))
    }

    fn paper_text(&self) -> String {
        self.paper
            .map_or(String::new(), |(figure, sign)| match sign {
                Some(sign) => format!("{figure:.2} {sign}"),
                None => format!("{figure:.2}"),
            })
    }

    /// Fits, passes, seconds, longest fit, fits that did not converge.
    fn effort(units: &[&Unit]) -> (usize, usize, f64, f64, usize) {
        units.iter().fold((0, 0, 0.0, 0.0_f64, 0), |sum, unit| {
            (
                sum.0 + unit.fits,
                sum.1 + unit.passes,
                sum.2 + unit.seconds,
                sum.3.max(unit.longest),
                sum.4 + unit.not_converged.len(),
            )
        })
    }
}

impl Figures {
    /// The figures of these units; `sets` with their shares, in the order to show them.
    pub fn new(
        table: u8,
        sets: &[(&'static Benchmark, Vec<f64>)],
        units: &BTreeMap<Key, Unit>,
        settings: Vec<(String, String)>,
    ) -> Self {
        let mut entries: Vec<Entry> = Vec::new();
        for (set, shares) in sets {
            for &share in shares {
                let of = |method: Method| -> Vec<Unit> {
                    // By draw: pairs of a test are of the same draw.
                    units
                        .values()
                        .filter(|unit| {
                            unit.set == set.name && unit.share == share && unit.method == method
                        })
                        .cloned()
                        .collect()
                };
                let tests = |units: &[Unit]| -> Vec<f64> {
                    units.iter().map(|unit| 100.0 * unit.test).collect()
                };
                let pscs = of(Method::Pscs);
                for method in Method::ALL {
                    let units = of(method);
                    if units.is_empty() {
                        continue;
                    }
                    let paired = method != Method::Pscs && pscs.len() == units.len();
                    entries.push(Entry {
                        set,
                        share,
                        method,
                        tests: tests(&units),
                        paper: set.figure(method, share),
                        against: paired.then(|| paired_t_test(&tests(&pscs), &tests(&units))),
                        units,
                    });
                }
            }
        }
        Self {
            table,
            entries,
            settings,
        }
    }

    fn sets(&self) -> Vec<&'static Benchmark> {
        let mut sets: Vec<&'static Benchmark> = Vec::new();
        for entry in &self.entries {
            if !sets.iter().any(|known| known.name == entry.set.name) {
                sets.push(entry.set);
            }
        }
        sets
    }

    fn shares(&self, set: &Benchmark) -> Vec<f64> {
        let mut shares: Vec<f64> = Vec::new();
        for entry in self
            .entries
            .iter()
            .filter(|entry| entry.set.name == set.name)
        {
            if !shares.contains(&entry.share) {
                shares.push(entry.share);
            }
        }
        shares
    }

    fn entry(&self, set: &Benchmark, share: f64, method: Method) -> Option<&Entry> {
        self.entries.iter().find(|entry| {
            entry.set.name == set.name && entry.share == share && entry.method == method
        })
    }

    fn methods(&self) -> Vec<Method> {
        Method::ALL
            .into_iter()
            .filter(|method| self.entries.iter().any(|entry| entry.method == *method))
            .collect()
    }

    /// A set's table: a row for each method, two columns for each share; `strong` marks the best of each share.
    fn of_set(&self, set: &Benchmark, strong: &str) -> (Vec<String>, Vec<Vec<String>>) {
        let shares = self.shares(set);
        let header = std::iter::once(set.title.to_string())
            .chain(
                shares
                    .iter()
                    .flat_map(|&share| [percent(share), "paper".to_string()]),
            )
            .collect();
        let rows = self
            .methods()
            .into_iter()
            .map(|method| {
                let mut row = vec![method.title().to_string()];
                for &share in &shares {
                    let best = self
                        .entries
                        .iter()
                        .filter(|entry| entry.set.name == set.name && entry.share == share)
                        .map(Entry::mean)
                        .fold(f64::NEG_INFINITY, f64::max);
                    match self.entry(set, share, method) {
                        Some(entry) => {
                            let mark = if entry.mean() >= best - 1e-9 {
                                strong
                            } else {
                                ""
                            };
                            row.push(format!("{mark}{}{mark}", entry.text()));
                            row.push(entry.paper_text());
                        }
                        None => row.extend(["–".to_string(), String::new()]),
                    }
                }
                row
            })
            .collect();
        (header, rows)
    }

    /// Time and passes by method and share over all sets.
    fn effort(&self) -> (Vec<String>, Vec<Vec<String>>) {
        let header = [
            "set",
            "share",
            "fits",
            "passes per fit",
            "ms per fit",
            "longest",
            "minutes",
            "not converged",
        ]
        .map(String::from)
        .to_vec();
        let mut rows = Vec::new();
        let mut line = |set: String, share: String, units: &[&Unit]| {
            let (fits, passes, seconds, longest, missed) = Entry::effort(units);
            rows.push(vec![
                set,
                share,
                fits.to_string(),
                format!("{:.1}", passes as f64 / fits as f64),
                format!("{:.2}", 1e3 * seconds / fits as f64),
                format!("{longest:.2} s"),
                format!("{:.1}", seconds / 60.0),
                missed.to_string(),
            ]);
        };
        for set in self.sets() {
            for share in self.shares(set) {
                let own: Vec<&Unit> = self
                    .entries
                    .iter()
                    .filter(|entry| entry.set.name == set.name && entry.share == share)
                    .flat_map(|entry| &entry.units)
                    .collect();
                line(set.title.to_string(), percent(share), &own);
            }
        }
        let all: Vec<&Unit> = self.entries.iter().flat_map(|entry| &entry.units).collect();
        if !all.is_empty() {
            line("all".to_string(), String::new(), &all);
        }
        (header, rows)
    }

    /// What the table shows, in sentences.
    fn findings(&self) -> Vec<String> {
        let with_paper: Vec<&Entry> = self
            .of(Method::Pscs)
            .filter(|entry| entry.paper.is_some())
            .collect();
        let met = with_paper
            .iter()
            .filter(|entry| {
                entry
                    .paper
                    .is_some_and(|(figure, _)| entry.mean() >= figure - ROOM)
            })
            .count();
        let mut found = Vec::new();
        if !with_paper.is_empty() {
            found.push(format!(
                "PSCS is at or above the paper's figure less {ROOM} points in {met} of {} cells.",
                with_paper.len()
            ));
        }
        for method in self.methods().into_iter().skip(1) {
            let signs: Vec<char> = self.of(method).filter_map(Entry::sign).collect();
            let of = |sign: char| signs.iter().filter(|known| **known == sign).count();
            if !signs.is_empty() {
                found.push(format!(
                    "PSCS against {}: better in {}, no difference shown in {}, worse in {} of {} cells.",
                    method.title(),
                    of('+'),
                    of('='),
                    of('-'),
                    signs.len()
                ));
            }
        }
        let units: Vec<&Unit> = self.entries.iter().flat_map(|entry| &entry.units).collect();
        let (fits, _, _, _, missed) = Entry::effort(&units);
        found.push(format!(
            "{missed} of {fits} fits did not reach the tolerance."
        ));
        found
    }

    fn of(&self, method: Method) -> impl Iterator<Item = &Entry> {
        self.entries
            .iter()
            .filter(move |entry| entry.method == method)
    }

    /// For a terminal.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for set in self.sets() {
            let (header, rows) = self.of_set(set, "");
            text += &output::table(&header, &rows);
            text.push('\n');
        }
        text += LEGEND;
        text += "\n\n";
        let (header, rows) = self.effort();
        text += &output::table(&header, &rows);
        text.push('\n');
        for line in self.findings() {
            text += &format!("{line}\n");
        }
        text
    }

    /// As Markdown.
    pub fn markdown(&self) -> String {
        let mut text = String::new();
        for set in self.sets() {
            let (header, rows) = self.of_set(set, "**");
            text += &markdown_table(&header, &rows);
            text.push('\n');
        }
        text += LEGEND;
        text += "\n\n";
        for line in self.findings() {
            text += &format!("- {line}\n");
        }
        text += "\nTime, over all methods:\n\n";
        let (header, rows) = self.effort();
        text += &markdown_table(&header, &rows);
        text += "\nSettings:\n\n";
        for (name, value) in &self.settings {
            text += &format!("- {name}: {value}\n");
        }
        text
    }

    /// As CSV, a line for each set, share and method.
    pub fn csv(&self) -> String {
        let mut text = String::from(
            "set,share,method,runs,mean,deviation,paper,sign,paper_sign,difference,t,p,fits,passes,seconds,longest,not_converged\n",
        );
        for entry in &self.entries {
            let units: Vec<&Unit> = entry.units.iter().collect();
            let (fits, passes, seconds, longest, missed) = Entry::effort(&units);
            let optional = |value: Option<String>| value.unwrap_or_default();
            let cells = [
                entry.set.name.to_string(),
                entry.share.to_string(),
                entry.method.name().to_string(),
                entry.tests.len().to_string(),
                entry.mean().to_string(),
                optional((entry.tests.len() > 1).then(|| deviation(&entry.tests).to_string())),
                optional(entry.paper.map(|(figure, _)| figure.to_string())),
                optional(entry.sign().map(|sign| sign.to_string())),
                optional(
                    entry
                        .paper
                        .and_then(|(_, sign)| sign)
                        .map(|sign| sign.to_string()),
                ),
                optional(entry.against.map(|test| test.difference.to_string())),
                optional(entry.against.map(|test| test.t.to_string())),
                optional(entry.against.map(|test| test.p.to_string())),
                fits.to_string(),
                passes.to_string(),
                seconds.to_string(),
                longest.to_string(),
                missed.to_string(),
            ];
            text += &(cells.join(",") + "\n");
        }
        text
    }

    /// Everything, with each draw's figures.
    pub fn json(&self) -> Value {
        json!({
            "table": self.table,
            "settings": self.settings.iter().map(|(name, value)| json!([name, value])).collect::<Vec<_>>(),
            "findings": self.findings(),
            "entries": self.entries.iter().map(|entry| json!({
                "set": entry.set.name,
                "share": entry.share,
                "method": entry.method.name(),
                "mean": entry.mean(),
                "deviation": deviation(&entry.tests),
                "paper": entry.paper.map(|(figure, _)| figure),
                "sign": entry.sign(),
                "paper_sign": entry.paper.and_then(|(_, sign)| sign),
                "p": entry.against.map(|test| test.p),
                "difference": entry.against.map(|test| test.difference),
                "draws": entry.units,
            })).collect::<Vec<_>>(),
        })
    }

    /// A picture for each set: accuracy over the training share.
    pub fn pictures(&self) -> Vec<(&'static str, String)> {
        self.sets()
            .into_iter()
            .map(|set| {
                let shares = self.shares(set);
                let figures = |method: Method, figure: &dyn Fn(&Entry) -> f64| -> Vec<f64> {
                    shares
                        .iter()
                        .map(|&share| self.entry(set, share, method).map_or(f64::NAN, figure))
                        .collect()
                };
                let mut curves: Vec<Curve> = self
                    .methods()
                    .into_iter()
                    .map(|method| Curve {
                        name: method.title().to_string(),
                        values: figures(method, &Entry::mean),
                        spreads: Vec::new(),
                        foreign: false,
                    })
                    .collect();
                curves.push(Curve {
                    name: "PSCS (paper)".to_string(),
                    values: figures(Method::Pscs, &|entry| {
                        entry.paper.map_or(f64::NAN, |(figure, _)| figure)
                    }),
                    spreads: Vec::new(),
                    foreign: true,
                });
                let picture = Curves {
                    title: format!("{}: test accuracy over the training share", set.title),
                    across: "share of the rows for training".to_string(),
                    up: "per cent correct".to_string(),
                    places: shares.iter().map(|&share| percent(share)).collect(),
                    curves,
                };
                (set.name, picture.svg())
            })
            .collect()
    }

    /// All pictures on one page.
    pub fn page(&self) -> String {
        let mut pictures = String::new();
        for (_, svg) in self.pictures() {
            pictures += &format!("<figure>{svg}</figure>\n");
        }
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Table {0}: pictures</title>\
             <meta name=\"viewport\" content=\"width=device-width\">\
             <style>body{{font-family:system-ui,sans-serif;margin:1.5rem}}figure{{display:inline-block;margin:0 1rem 1rem 0}}\
             svg{{max-width:100%;height:auto}}</style></head><body><h1>Table {0}: accuracy over the training share</h1>\n{pictures}</body></html>\n",
            self.table
        )
    }
}

const LEGEND: &str = "Per cent correct on the test half, mean ± standard deviation over the draws. The sign behind a figure is PSCS against that method, \
by a paired t-test at 0.05 on the same draws: + better, = no difference shown, - worse.";
