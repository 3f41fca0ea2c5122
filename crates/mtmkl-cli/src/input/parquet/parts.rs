//! A Parquet file in parts of some thousand rows: all columns that somebody asks for are read side by side.

use mtmkl_table::{Column, Lines, Skipped, Sparse, Table, Values};
use parquet::column::reader::ColumnReader;
use parquet::file::reader::ChunkReader;

use super::{Budget, InputError, Opened, Problem, TableOptions, guarded};
use crate::input::batches::NextPart;

/// A file that is read part by part.
pub(in crate::input) struct Parts<C> {
    opened: Opened<C>,
    options: TableOptions,
    /// Most rows of a part.
    size: usize,
    /// The row group that is being read, one after it, and how many of its rows are left.
    group: usize,
    left: usize,
    /// The columns of that row group, none for those that nobody asks for.
    readers: Vec<Option<ColumnReader>>,
    /// Rows given out.
    before: usize,
}

impl<C: ChunkReader + 'static> Parts<C> {
    pub(in crate::input) fn open(
        file: &str,
        content: C,
        options: &TableOptions,
        size: usize,
    ) -> Result<Self, InputError> {
        Ok(Self {
            opened: guarded(file, || Opened::new(file, content, options))?,
            options: options.clone(),
            size,
            group: 0,
            left: 0,
            readers: Vec::new(),
            before: 0,
        })
    }

    fn is_wanted(&self, index: usize) -> bool {
        let column = &self.opened.columns[index];
        let wanted = self.options.only.as_ref();
        column.kind.is_ok() && wanted.is_none_or(|own| own.contains(&column.name))
    }

    fn error(&self, problem: Problem, index: usize) -> InputError {
        let problem = match problem {
            Problem::NotFinite { row, value } => Problem::NotFinite {
                row: self.before + row,
                value,
            },
            other => other,
        };
        let name = self.opened.columns[index].name.clone();
        problem.into_error(&self.opened.file, name, self.options.limit)
    }

    /// Goes to the next row group with rows; false after the last.
    fn next_group(&mut self) -> Result<bool, InputError> {
        while self.left == 0 {
            if self.group == self.opened.metadata.num_row_groups() {
                return Ok(false);
            }
            let open = |index: usize| {
                let reader = self.opened.reader(self.group, index, self.options.limit);
                reader.map_err(|problem| self.error(problem, index))
            };
            let columns = 0..self.opened.columns.len();
            let readers: Result<Vec<_>, InputError> = columns
                .map(|index| self.is_wanted(index).then(|| open(index)).transpose())
                .collect();
            self.readers = readers?;
            self.left = self.opened.rows_of(self.group);
            self.group += 1;
        }
        Ok(true)
    }

    fn read(&mut self) -> Result<Option<Table>, InputError> {
        if !self.next_group()? {
            return Ok(None);
        }
        let rows = self.left.min(self.size);
        let budget = Budget::new(self.options.limit);
        let (mut columns, mut skipped) = (Vec::new(), Vec::new());
        let mut readers = std::mem::take(&mut self.readers);
        for (index, reader) in readers.iter_mut().enumerate() {
            let described = &self.opened.columns[index];
            let name = described.name.clone();
            let column = match (reader, described.sink()) {
                (Some(reader), Ok(mut sink)) => {
                    let read = sink.read(reader, rows, self.opened.levels(index), &budget);
                    read.map(|()| sink.column(name.clone()))
                }
                (None, Ok(_)) => Ok(Column {
                    name: name.clone(),
                    values: Values::Sparse(Sparse {
                        count: rows,
                        ..Sparse::default()
                    }),
                    missing: Vec::new(),
                }),
                (_, Err(problem)) => Err(problem),
            };
            match column {
                Ok(column) => columns.push(column),
                Err(Problem::Skip(reason)) => skipped.push(Skipped {
                    name,
                    reason: reason.to_owned(),
                }),
                Err(problem) => return Err(self.error(problem, index)),
            }
        }
        self.readers = readers;
        let lines = Lines::Rows(1 + self.before);
        let mut table = Table::new(&self.opened.file, rows, columns, lines);
        table.skipped = skipped;
        self.left -= rows;
        self.before += rows;
        Ok(Some(table))
    }
}

impl<C: ChunkReader + 'static> NextPart for Parts<C> {
    fn next_part(&mut self) -> Result<Option<Table>, InputError> {
        let file = self.opened.file.clone();
        guarded(&file, || self.read())
    }
}
