//! The cells to try: machine and sharing parameters, sharings, kernel sets; and the order in which to try them.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::error::{Error, Result};
use crate::machine::MachineSpec;
use crate::sharing::SharingSpec;

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

impl Cell {
    /// The number of this name, where the cell's machine or sharing has it.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.machine.get(name).or_else(|| self.sharing.get(name))
    }

    /// Whether the cell's machine or sharing takes a number of this name.
    pub fn takes(&self, name: &str) -> bool {
        self.machine.takes(name) || self.sharing.takes(name)
    }

    /// Gives it another value, to both where both take it.
    fn set(&mut self, name: &str, value: f64) {
        self.machine.set(name, value);
        self.sharing.set(name, value);
    }
}

/// The numbers that machines and sharings of these cells take.
fn numbers_of(cells: &[Cell]) -> Vec<&'static str> {
    let mut names = Vec::new();
    for cell in cells {
        let machine = cell.machine.entry().map(|entry| &entry.part);
        let parts = machine.into_iter().chain([&cell.sharing.entry().part]);
        for parameter in parts.flat_map(|part| part.parameters) {
            if parameter.is_number() && !names.contains(&parameter.name) {
                names.push(parameter.name);
            }
        }
    }
    names
}

/// A parameter and the values to try.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// The name of a number that the machine or a sharing has, as in files.
    pub parameter: String,
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
        axes.sort_by_key(|axis| machine.takes(&axis.parameter));
        for axis in axes {
            let name = axis.parameter.as_str();
            if axis.values.is_empty() {
                return Err(Error::Spec {
                    spec: format!("`{name}` in the grid"),
                    problem: "an empty list, expected at least one value".to_string(),
                });
            }
            if !cells.iter().any(|cell| cell.takes(name)) {
                return Err(Error::Unknown {
                    what: "number of the machine or of one of the sharings in the grid",
                    name: name.to_string(),
                    known: numbers_of(&cells).join(", "),
                });
            }
            cells = cells
                .into_iter()
                .flat_map(|cell| {
                    let count = if cell.takes(name) {
                        axis.values.len()
                    } else {
                        1
                    };
                    (0..count).map(move |value| {
                        let mut cell = cell.clone();
                        cell.set(name, axis.values[value]);
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
            // Cells of one sharing together, in whatever order the grid has them.
            let same = |a: usize, b: usize| self.cells[a].sharing == self.cells[b].sharing;
            let family = cells.clone();
            cells.sort_by_key(|&cell| family.iter().position(|&other| same(other, cell)));
            let mut up = true;
            *cells = cells
                .chunk_by(|&a, &b| same(a, b))
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
