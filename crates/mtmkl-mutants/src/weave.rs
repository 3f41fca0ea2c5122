//! The text of a file with its mutants in it, each behind `crate::mutant::on(number)`.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::sites::{Choice, Kind, Site};

/// A file with mutants, and which of its bytes are whose.
#[derive(Debug, Default)]
pub(crate) struct Woven {
    pub(crate) text: String,
    /// Where the text of one mutant stands.
    pub(crate) branches: Vec<(Range<usize>, u32)>,
    /// Where a site stands.
    pub(crate) places: Vec<(Range<usize>, usize)>,
}

/// How many ways of weaving there are; the first that compiles is taken. Those after the first are for what borrows or infers differently.
pub(crate) const WAYS: u8 = 3;

struct Weaver<'a> {
    source: &'a str,
    sites: &'a [Site],
    ways: &'a BTreeMap<usize, u8>,
    out: Woven,
}

/// Weaves all sites but those whose way is [`WAYS`].
pub(crate) fn weave(source: &str, sites: &[Site], ways: &BTreeMap<usize, u8>) -> Woven {
    let mut weaver = Weaver {
        source,
        sites,
        ways,
        out: Woven::default(),
    };
    weaver.plain(0..source.len(), 0);
    weaver.out
}

impl<'a> Weaver<'a> {
    fn say(&mut self, text: &str) {
        self.out.text.push_str(text);
    }

    /// A range of the source with the outermost sites that are wholly in it, of those from `next` on.
    fn plain(&mut self, range: Range<usize>, next: usize) {
        let mut at = range.start;
        let first = self
            .sites
            .partition_point(|site| site.range.start < range.start);
        for index in first.max(next)..self.sites.len() {
            let site = &self.sites[index];
            if site.range.start >= range.end {
                break;
            }
            let way = self.ways.get(&index).copied().unwrap_or(0);
            if site.range.start < at || site.range.end > range.end || way >= WAYS {
                continue;
            }
            self.say(&self.source[at..site.range.start]);
            at = site.range.end;
            let start = self.out.text.len();
            self.site(site, way, index + 1);
            let place = start..self.out.text.len();
            self.out.places.push((place, index));
        }
        self.say(&self.source[at..range.end]);
    }

    fn branch(&mut self, choice: &Choice, text: &str) {
        let start = self.out.text.len();
        self.say(text);
        let range = start..self.out.text.len();
        self.out.branches.push((range, choice.id));
    }

    /// `if on(1) { first } else if on(2) { second } else { usual }`.
    fn choose(&mut self, choices: &[Choice], text: impl Fn(&str) -> String, usual: &str) {
        for choice in choices {
            self.say(&format!("if {} {{ ", on(choice)));
            self.branch(choice, &text(&choice.replacement));
            self.say(" } else ");
        }
        self.say(&format!("{{ {} }}", text(usual)));
    }

    /// The same with the operands written out in each branch.
    fn repeat(
        &mut self,
        choices: &[Choice],
        usual: &str,
        parts: [Option<&Range<usize>>; 2],
        next: usize,
    ) {
        let mut all: Vec<(String, Option<&Choice>)> = choices
            .iter()
            .map(|choice| (format!("if {} {{ ", on(choice)), Some(choice)))
            .collect();
        all.push(("{ ".into(), None));
        for (opening, choice) in all {
            self.say(&opening);
            let start = self.out.text.len();
            if let Some(left) = parts[0] {
                self.plain(left.clone(), next);
            }
            let operator = choice.map_or(usual, |choice| &choice.replacement);
            self.say(&format!(" {operator} "));
            if let Some(right) = parts[1] {
                self.plain(right.clone(), next);
            }
            if let Some(choice) = choice {
                let range = start..self.out.text.len();
                self.out.branches.push((range, choice.id));
            }
            self.say(if choice.is_some() { " } else " } else { " }" });
        }
    }

    fn site(&mut self, site: &'a Site, way: u8, next: usize) {
        let choices = &site.choices;
        match &site.kind {
            Kind::Body => self.body(site, way, next),
            Kind::Binary {
                left,
                operator,
                right,
            } if ["&&", "||"].contains(&operator.as_str()) => {
                // Off, `&&` goes on where the left is true and `||` where it is false; on, the other way round.
                let same = if operator == "&&" { "!=" } else { "==" };
                self.say("({ let l__: bool = ");
                self.plain(left.clone(), next);
                self.say(&format!("; if l__ {same} {} {{ ", on(&choices[0])));
                self.plain(right.clone(), next);
                self.say(" } else { l__ } })");
            }
            Kind::Binary {
                left,
                operator,
                right,
            } => {
                let compares = ["==", "!=", "<", ">", "<=", ">="].contains(&operator.as_str());
                if way == 2 {
                    self.say("(");
                    self.repeat(choices, operator, [Some(left), Some(right)], next);
                    self.say(")");
                    return;
                }
                // Compared in place, as the operator itself does it.
                let by_reference = compares && way == 0;
                let (open, close) = if by_reference { ("&(", ")") } else { ("", "") };
                self.say(&format!("(match ({open}"));
                self.plain(left.clone(), next);
                self.say(&format!("{close}, {open}"));
                self.plain(right.clone(), next);
                self.say(&format!("{close}) {{ (l__, r__) => "));
                let star = if by_reference { "*" } else { "" };
                self.choose(
                    choices,
                    |operator| format!("{star}l__ {operator} {star}r__"),
                    operator,
                );
                self.say(" })");
            }
            Kind::Assignment {
                left,
                operator,
                right,
            } => {
                if way > 0 {
                    self.say("{ ");
                    self.repeat(choices, operator, [Some(left), Some(right)], next);
                    self.say(" }");
                    return;
                }
                self.say("{ let r__ = ");
                self.plain(right.clone(), next);
                self.say("; let l__ = &mut (");
                self.plain(left.clone(), next);
                self.say("); ");
                self.choose(choices, |operator| format!("*l__ {operator} r__"), operator);
                self.say(" }");
            }
            Kind::Unary { operator, operand } => {
                self.say("(");
                if way > 0 {
                    self.repeat(choices, operator, [None, Some(operand)], next);
                } else {
                    self.say("match ");
                    self.plain(operand.clone(), next);
                    self.say(" { v__ => ");
                    self.choose(choices, |operator| format!("{operator} v__"), operator);
                    self.say(" }");
                }
                self.say(")");
            }
            Kind::Arm { pattern, guard } => self.arm(pattern, guard.as_ref(), choices, next),
            Kind::Struct => {
                self.say("(");
                for choice in choices {
                    self.say(&format!("if {} {{ ", on(choice)));
                    let start = self.out.text.len();
                    self.plain(site.range.start..choice.part.start, next);
                    self.plain(choice.part.end..site.range.end, next);
                    let range = start..self.out.text.len();
                    self.out.branches.push((range, choice.id));
                    self.say(" } else ");
                }
                self.say("{ ");
                self.plain(site.range.clone(), next);
                self.say(" })");
            }
        }
    }

    fn body(&mut self, site: &Site, way: u8, next: usize) {
        // What is returned as `impl Iterator` must be of one type.
        let (open, close) = if way == 0 {
            ("", "")
        } else {
            ("Box::new(", ") as Box<dyn Iterator<Item = _> + '_>")
        };
        self.say("{ ");
        for choice in &site.choices {
            self.say(&format!("if {} {{ ", on(choice)));
            self.branch(
                choice,
                &format!("return {open}{}{close};", choice.replacement),
            );
            self.say(" } ");
        }
        if way == 0 {
            self.plain(site.range.start + 1..site.range.end, next);
        } else {
            self.say(open);
            self.plain(site.range.clone(), next);
            self.say(close);
            self.say(" }");
        }
    }

    fn arm(
        &mut self,
        pattern: &Range<usize>,
        guard: Option<&Range<usize>>,
        choices: &[Choice],
        next: usize,
    ) {
        // Nothing in a pattern is mutated.
        self.say(&self.source[pattern.clone()]);
        let Some(guard) = guard else {
            self.say(&format!(" if !{}", on(&choices[0])));
            return;
        };
        let with = |value: &str| -> String {
            let on: Vec<String> = choices
                .iter()
                .filter(|choice| choice.replacement == value)
                .map(on)
                .collect();
            if on.is_empty() {
                "false".into()
            } else {
                on.join(" || ")
            }
        };
        self.say(&format!(
            " if ({}) || (!({}) && (",
            with("true"),
            with("false")
        ));
        self.plain(guard.clone(), next);
        self.say("))");
    }
}

fn on(choice: &Choice) -> String {
    format!("crate::mutant::on({})", choice.id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutant::{Genre, Mutant, Position, State};
    use crate::sites;

    fn mutant(id: u32, genre: Genre, column: usize, replacement: &str) -> Mutant {
        Mutant {
            id,
            file: "x.rs".into(),
            start: Position { line: 1, column },
            function: String::new(),
            genre,
            replacement: replacement.into(),
            state: State::Woven,
            why: String::new(),
        }
    }

    fn woven(source: &str, mutants: &[Mutant]) -> String {
        let mutants: Vec<&Mutant> = mutants.iter().collect();
        let found = sites::find(source, &mutants).unwrap();
        let woven = weave(source, &found.sites, &BTreeMap::new());
        syn::parse_file(&woven.text).unwrap();
        woven.text.replace("crate::mutant::", "")
    }

    #[test]
    fn sums_and_bodies_have_their_mutants() {
        let source = "fn f(a: f64) -> f64 { a + a * 2.0 }";
        let text = woven(
            source,
            &[
                mutant(1, Genre::FnValue, 23, "0.0"),
                mutant(2, Genre::BinaryOperator, 25, "-"),
                mutant(3, Genre::BinaryOperator, 29, "/"),
            ],
        );
        let product =
            "(match (a, 2.0) { (l__, r__) => if on(3) { l__ / r__ } else { l__ * r__ } })";
        assert_eq!(
            text,
            format!(
                "fn f(a: f64) -> f64 {{ if on(1) {{ return 0.0; }}  (match (a, {product}) {{ (l__, r__) => if on(2) {{ l__ - r__ }} else {{ l__ + r__ }} }}) }}"
            )
        );
    }

    #[test]
    fn a_mutant_that_has_no_place_is_a_mistake() {
        let mutants = [mutant(1, Genre::UnaryOperator, 3, "")];
        let found = sites::find("fn f() {}", &mutants.iter().collect::<Vec<_>>());
        assert_eq!(found.unwrap_err(), "1:3: no UnaryOperator here");
    }

    #[test]
    fn guards_arms_and_conditions_parse() {
        let source = "fn f(a: Option<u8>) -> u8 { match a { Some(x) if x > 1 && x < 9 => !x, None => 1, _ => 0 } }";
        let text = woven(
            source,
            &[
                mutant(1, Genre::MatchArmGuard, 50, "true"),
                mutant(2, Genre::MatchArmGuard, 50, "false"),
                mutant(3, Genre::BinaryOperator, 56, "||"),
                mutant(4, Genre::UnaryOperator, 68, ""),
                mutant(5, Genre::MatchArm, 72, ""),
            ],
        );
        assert!(text.contains("Some(x) if (on(1)) || (!(on(2)) && (({ let l__: bool = x > 1; if l__ != on(3) { x < 9 } else { l__ } })))"));
        assert!(text.contains("(match x { v__ => if on(4) {  v__ } else { ! v__ } })"));
        assert!(text.contains("None if !on(5) => 1"));
    }
}
