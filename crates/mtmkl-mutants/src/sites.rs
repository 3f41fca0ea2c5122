//! The places of one file at which mutants are, found again in its syntax tree.

use std::collections::BTreeMap;
use std::ops::Range;

use proc_macro2::{LineColumn, Span};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::mutant::{Genre, Mutant, Position};

/// A mutant at a site: its number and what stands there with it.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    pub(crate) id: u32,
    pub(crate) replacement: String,
    /// The field that is gone; elsewhere nothing.
    pub(crate) part: Range<usize>,
}

/// What is rewritten there, with the parts in bytes of the file.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// The body of a function with its braces.
    Body,
    /// `left operator right`.
    Binary {
        left: Range<usize>,
        operator: String,
        right: Range<usize>,
    },
    /// `left operator= right`.
    Assignment {
        left: Range<usize>,
        operator: String,
        right: Range<usize>,
    },
    /// `operator operand`.
    Unary {
        operator: String,
        operand: Range<usize>,
    },
    /// A pattern and its guard.
    Arm {
        pattern: Range<usize>,
        guard: Option<Range<usize>>,
    },
    /// `Path { fields, ..base }`.
    Struct,
}

/// One place.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) range: Range<usize>,
    pub(crate) kind: Kind,
    pub(crate) choices: Vec<Choice>,
}

/// Where lines start, to make bytes of lines and columns.
struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str) -> Self {
        let after = text.match_indices('\n').map(|(at, _)| at + 1);
        Self {
            text,
            starts: std::iter::once(0).chain(after).collect(),
        }
    }

    fn byte(&self, place: LineColumn) -> usize {
        let start = self.starts[place.line - 1];
        let rest = &self.text[start..];
        rest.char_indices()
            .nth(place.column)
            .map_or(self.text.len(), |(at, _)| start + at)
    }

    fn range(&self, span: Span) -> Range<usize> {
        self.byte(span.start())..self.byte(span.end())
    }
}

struct Finder<'a> {
    lines: Lines<'a>,
    mutants: BTreeMap<(Genre, Position), Vec<&'a Mutant>>,
    sites: Vec<Site>,
    unviable: Vec<u32>,
}

/// What is found in a file.
#[derive(Debug)]
pub(crate) struct Found {
    /// Outer ones before those in them.
    pub(crate) sites: Vec<Site>,
    /// Mutants that cannot compile.
    pub(crate) unviable: Vec<u32>,
}

/// Whether an operand is a condition that binds: between such only `&&` is allowed.
fn has_let(operand: &syn::Expr) -> bool {
    match operand {
        syn::Expr::Let(_) => true,
        syn::Expr::Binary(binary) if matches!(binary.op, syn::BinOp::And(_)) => {
            has_let(&binary.left) || has_let(&binary.right)
        }
        _ => false,
    }
}

/// The sites of a file with these mutants. Fails where a mutant has no place in the tree.
pub(crate) fn find(text: &str, mutants: &[&Mutant]) -> Result<Found, String> {
    let file = syn::parse_file(text).map_err(|error| error.to_string())?;
    let mut by_place: BTreeMap<(Genre, Position), Vec<&Mutant>> = BTreeMap::new();
    for mutant in mutants {
        by_place
            .entry((mutant.genre, mutant.start))
            .or_default()
            .push(mutant);
    }
    let mut finder = Finder {
        lines: Lines::new(text),
        mutants: by_place,
        sites: Vec::new(),
        unviable: Vec::new(),
    };
    finder.visit_file(&file);
    if let Some(((genre, place), _)) = finder.mutants.first_key_value() {
        return Err(format!(
            "{}:{}: no {genre:?} here",
            place.line, place.column
        ));
    }
    let mut sites = finder.sites;
    // Of two with one range the one that was found first is the outer one.
    sites.sort_by_key(|site| (site.range.start, usize::MAX - site.range.end));
    Ok(Found {
        sites,
        unviable: finder.unviable,
    })
}

/// Whether it is there in tests only.
fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute
                .parse_args::<syn::Path>()
                .is_ok_and(|path| path.is_ident("test"))
    })
}

impl Finder<'_> {
    /// The mutants of a kind that start where the span does; each is found once.
    fn at(&mut self, genre: Genre, span: Span) -> Vec<Choice> {
        let LineColumn { line, column } = span.start();
        let place = Position {
            line,
            column: column + 1,
        };
        let found = self.mutants.remove(&(genre, place)).unwrap_or_default();
        found
            .into_iter()
            .map(|mutant| Choice {
                id: mutant.id,
                replacement: mutant.replacement.clone(),
                part: 0..0,
            })
            .collect()
    }

    fn keep(&mut self, range: Range<usize>, kind: Kind, choices: Vec<Choice>) {
        if !choices.is_empty() {
            self.sites.push(Site {
                range,
                kind,
                choices,
            });
        }
    }

    fn body(&mut self, block: &syn::Block) {
        if let Some(first) = block.stmts.first() {
            let choices = self.at(Genre::FnValue, first.span());
            self.keep(self.lines.range(block.span()), Kind::Body, choices);
        }
        for statement in &block.stmts {
            self.visit_stmt(statement);
        }
    }

    fn text(&self, span: Span) -> String {
        self.lines.text[self.lines.range(span)].to_string()
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.body(&item.block);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.body(&item.block);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.body(block);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_expr_binary(&mut self, binary: &'ast syn::ExprBinary) {
        let choices = self.at(Genre::BinaryOperator, binary.op.span());
        let operator = self.text(binary.op.span());
        let left = self.lines.range(binary.left.span());
        let right = self.lines.range(binary.right.span());
        let compares = ["==", "!=", "<=", ">="].contains(&operator.as_str());
        let kind = if operator.ends_with('=') && !compares {
            Kind::Assignment {
                left,
                operator,
                right,
            }
        } else {
            Kind::Binary {
                left,
                operator,
                right,
            }
        };
        if has_let(&binary.left) || has_let(&binary.right) {
            self.unviable.extend(choices.iter().map(|choice| choice.id));
        } else {
            self.keep(self.lines.range(binary.span()), kind, choices);
        }
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_unary(&mut self, unary: &'ast syn::ExprUnary) {
        let choices = self.at(Genre::UnaryOperator, unary.op.span());
        let kind = Kind::Unary {
            operator: self.text(unary.op.span()),
            operand: self.lines.range(unary.expr.span()),
        };
        self.keep(self.lines.range(unary.span()), kind, choices);
        visit::visit_expr_unary(self, unary);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        let mut choices = self.at(Genre::MatchArm, arm.span());
        let pattern = self.lines.range(arm.pat.span());
        let guard = arm.guard.as_ref().map(|(_, guard)| guard.span());
        if let Some(guard) = guard {
            choices.extend(self.at(Genre::MatchArmGuard, guard));
        }
        let guard = guard.map(|guard| self.lines.range(guard));
        let end = guard.as_ref().map_or(pattern.end, |guard| guard.end);
        self.keep(pattern.start..end, Kind::Arm { pattern, guard }, choices);
        visit::visit_arm(self, arm);
    }

    fn visit_expr_struct(&mut self, literal: &'ast syn::ExprStruct) {
        let mut choices = Vec::new();
        for pair in literal.fields.pairs() {
            let field = pair.value();
            let mut part = self.lines.range(field.span());
            if let Some(comma) = pair.punct() {
                part.end = self.lines.range(comma.span()).end;
            }
            choices.extend(
                self.at(Genre::StructField, field.span())
                    .into_iter()
                    .map(|choice| Choice {
                        part: part.clone(),
                        ..choice
                    }),
            );
        }
        self.keep(self.lines.range(literal.span()), Kind::Struct, choices);
        visit::visit_expr_struct(self, literal);
    }
}
