//! The cells to try: machine and sharing parameters, sharings, kernel sets; and the order in which to try them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::machine::MachineSpec;
use crate::sharing::SharingSpec;

/// A number that a machine or a sharing has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Parameter {
    /// The price of an error.
    #[serde(rename = "C")]
    C,
    /// The ridge.
    Lambda,
    /// The share of samples that may be left out.
    Nu,
    /// The width of the tube.
    Epsilon,
    /// The norm's exponent inside a task.
    P,
    /// The norm's exponent between tasks.
    Q,
    /// The bound on the norm.
    Radius,
    /// How much weight may be the tasks' own.
    Beta,
    /// The bound on each weight.
    Upper,
}

impl Parameter {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::C,
        Self::Lambda,
        Self::Nu,
        Self::Epsilon,
        Self::P,
        Self::Q,
        Self::Radius,
        Self::Beta,
        Self::Upper,
    ];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::C => "C",
            Self::Lambda => "lambda",
            Self::Nu => "nu",
            Self::Epsilon => "epsilon",
            Self::P => "p",
            Self::Q => "q",
            Self::Radius => "radius",
            Self::Beta => "beta",
            Self::Upper => "upper",
        }
    }

    /// The parameter of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.name() == name)
    }

    /// Its value in a cell, where the cell's machine or sharing has it.
    pub fn of(self, cell: &Cell) -> Option<f64> {
        let mut cell = cell.clone();
        self.place(&mut cell).copied()
    }

    /// Where a cell keeps it.
    fn place(self, cell: &mut Cell) -> Option<&mut f64> {
        use MachineSpec as M;
        use SharingSpec as S;
        match (self, &mut cell.machine, &mut cell.sharing) {
            (Self::C, M::Svc { c, .. } | M::Svr { c, .. } | M::Svdd { c }, _) => Some(c),
            (Self::Lambda, M::Krr { lambda }, _) => Some(lambda),
            (Self::Nu, M::OneClass { nu }, _) => Some(nu),
            (Self::Epsilon, M::Svr { epsilon, .. }, _) => Some(epsilon),
            (
                Self::P,
                _,
                S::Lp { p, .. }
                | S::Common { p, .. }
                | S::Independent { p, .. }
                | S::Group { p, .. }
                | S::Pscs { p, .. },
            ) => Some(p),
            (Self::Q, _, S::Group { q, .. } | S::Pscs { q, .. }) => Some(q),
            (
                Self::Radius,
                _,
                S::Lp { radius, .. }
                | S::Common { radius, .. }
                | S::Independent { radius, .. }
                | S::Group { radius, .. }
                | S::Pscs { radius, .. }
                | S::PriorBall { radius, .. },
            ) => Some(radius),
            (Self::Beta, _, S::Tang { beta }) => Some(beta),
            (Self::Upper, _, S::BoxSimplex { upper }) => Some(upper),
            _ => None,
        }
    }
}

/// One choice of everything that is searched over.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cell {
    /// Which kernel set.
    pub kernels: usize,
    /// Ψ.
    pub sharing: SharingSpec,
    /// (ḡ, Ω).
    pub machine: MachineSpec,
}

/// A parameter and the values to try.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// The parameter.
    pub parameter: Parameter,
    /// Its values.
    pub values: Vec<f64>,
}

/// Cells that follow each other on one fold: each can start from the solution of the one before. They share sharing's name and
/// kernel set, and neighbours differ in one parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// Which fold.
    pub fold: usize,
    /// Which cells, in the order to fit them.
    pub cells: Vec<usize>,
}

/// The cells, in the order of the axes: kernel sets, sharings, then sharing parameters, then machine parameters, the last one
/// changing fastest.
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    cells: Vec<Cell>,
}

impl Grid {
    /// Every combination of these. A sharing without a parameter of the grid stands there once, not once per value.
    ///
    /// # Errors
    /// When a list is empty, or no cell has a parameter.
    pub fn new(
        machine: &MachineSpec,
        sharings: &[SharingSpec],
        kernel_sets: usize,
        axes: &[Axis],
    ) -> Result<Self> {
        for (name, count) in [("sharing", sharings.len()), ("kernels", kernel_sets)] {
            if count == 0 {
                return Err(Error::param(name, "an empty list", "at least one"));
            }
        }
        let mut cells: Vec<Cell> = (0..kernel_sets)
            .flat_map(|kernels| {
                sharings.iter().map(move |sharing| Cell {
                    kernels,
                    sharing: sharing.clone(),
                    machine: machine.clone(),
                })
            })
            .collect();
        // Sharing parameters first: machine parameters then change fastest.
        let mut axes: Vec<&Axis> = axes.iter().collect();
        axes.sort_by_key(|axis| axis.parameter < Parameter::P);
        for axis in axes {
            let name = axis.parameter.name();
            if axis.values.is_empty() {
                return Err(Error::param(name, "an empty list", "at least one value"));
            }
            if cells.iter().all(|cell| axis.parameter.of(cell).is_none()) {
                return Err(Error::param(
                    name,
                    "in the grid",
                    "a parameter of the machine or of one of the sharings in the grid",
                ));
            }
            cells = cells
                .into_iter()
                .flat_map(|cell| {
                    let count = match axis.parameter.of(&cell) {
                        Some(_) => axis.values.len(),
                        None => 1,
                    };
                    (0..count).map(move |value| {
                        let mut cell = cell.clone();
                        if let Some(place) = axis.parameter.place(&mut cell) {
                            *place = axis.values[value];
                        }
                        cell
                    })
                })
                .collect();
        }
        Ok(Self::of(cells))
    }

    /// These cells as they are, each once.
    pub fn of(cells: Vec<Cell>) -> Self {
        let mut kept: Vec<Cell> = Vec::with_capacity(cells.len());
        for cell in cells {
            if !kept.contains(&cell) {
                kept.push(cell);
            }
        }
        Self { cells: kept }
    }

    /// The cells.
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// The chains over so many folds: one per fold, kernel set and sharing's name. In a chain the machines of one sharing follow
    /// each other up, those of the next one down, and so on, so that each step changes one parameter.
    pub fn chains(&self, folds: usize) -> Vec<Chain> {
        let mut families: BTreeMap<(usize, &str), Vec<usize>> = BTreeMap::new();
        for (number, cell) in self.cells.iter().enumerate() {
            let key = (cell.kernels, cell.sharing.name());
            families.entry(key).or_default().push(number);
        }
        let mut ordered: Vec<Vec<usize>> = families.into_values().collect();
        // As in the grid, whatever the names.
        ordered.sort_by_key(|cells| cells[0]);
        for cells in &mut ordered {
            let mut up = true;
            *cells = cells
                .chunk_by(|&a, &b| self.cells[a].sharing == self.cells[b].sharing)
                .flat_map(|run| {
                    let mut run = run.to_vec();
                    if !up {
                        run.reverse();
                    }
                    up = !up;
                    run
                })
                .collect();
        }
        (0..folds)
            .flat_map(|fold| {
                ordered.iter().map(move |cells| Chain {
                    fold,
                    cells: cells.clone(),
                })
            })
            .collect()
    }
}
