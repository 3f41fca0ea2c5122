//! What a mutant is: as `cargo mutants --list --json` says it, and as it is kept here.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::files;

/// Line and column, from 1, columns in characters.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub(crate) struct Position {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

/// What kind of change.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub(crate) enum Genre {
    /// The body of a function is one value.
    FnValue,
    /// Another operator between two operands, or in an assignment.
    BinaryOperator,
    /// No `!` or `-`.
    UnaryOperator,
    /// An arm of a match that has a catch-all is gone.
    MatchArm,
    /// A guard is true or false.
    MatchArmGuard,
    /// A field is that of the base of the struct.
    StructField,
}

/// Whether it is in the build.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) enum State {
    /// It is.
    Woven,
    /// It does not compile by itself: its own text is what the compiler refuses.
    Unviable,
    /// No weaving that is known here compiles; it may be a good mutant.
    NotWoven,
}

/// One mutant. Its number is its place in the list, from 1; 0 is none.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Mutant {
    pub(crate) id: u32,
    pub(crate) file: String,
    pub(crate) start: Position,
    pub(crate) function: String,
    pub(crate) genre: Genre,
    pub(crate) replacement: String,
    pub(crate) state: State,
    /// What the compiler said where it is not woven.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) why: String,
}

#[derive(Deserialize)]
struct Listed {
    file: String,
    function: Option<Function>,
    genre: Genre,
    replacement: String,
    span: Span,
}

#[derive(Deserialize)]
struct Function {
    function_name: String,
}

#[derive(Deserialize)]
struct Span {
    start: Position,
}

/// The mutants of a list, of files below one of `folders`.
pub(crate) fn listed(path: &Path, folders: &[String]) -> Result<Vec<Mutant>, String> {
    let listed: Vec<Listed> = serde_json::from_str(&files::read(path)?)
        .map_err(|error| format!("{}: {error}", path.display()))?;
    let wanted = listed
        .into_iter()
        .filter(|mutant| folders.iter().any(|folder| mutant.file.starts_with(folder)));
    Ok((1..)
        .zip(wanted)
        .map(|(id, mutant)| Mutant {
            id,
            file: mutant.file,
            start: mutant.span.start,
            function: mutant.function.map(|f| f.function_name).unwrap_or_default(),
            genre: mutant.genre,
            replacement: mutant.replacement,
            state: State::Woven,
            why: String::new(),
        })
        .collect())
}
