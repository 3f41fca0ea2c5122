//! What a model carries about tables: notes of JSON, whose versions are read back for ever.

use std::collections::BTreeMap;

use mtmkl::Model;
use mtmkl::machine::TargetKind;
use mtmkl::select::Calibration;

use crate::Result;
use crate::error::TableError;
use crate::frame::{Frame, VERSION};
use crate::goal::Goal;

/// The note with the [`Frame`].
pub const FRAME: &str = "frame";

/// The note with the rows of the training table in each sample set: support rows and precomputed kernels refer to them.
pub const TRAINING_ROWS: &str = "training-rows";

/// The note with the [`Calibration`], where probabilities were asked for.
const CALIBRATION: &str = "calibration";

/// Keeps the sigmoids of a model.
///
/// # Errors
/// When a number is not finite.
pub fn keep_calibration(
    notes: &mut BTreeMap<String, String>,
    calibration: &Calibration,
) -> Result<()> {
    let text = serde_json::to_string(calibration).map_err(|error| TableError::Note {
        what: "notes",
        problem: error.to_string(),
    })?;
    notes.insert(CALIBRATION.to_string(), text);
    Ok(())
}

/// The sigmoids that a model carries.
///
/// # Errors
/// When they cannot be read, or are not one for each of its tasks.
pub fn calibration_of(model: &Model) -> Result<Option<Calibration>> {
    let Some(text) = model.notes().get(CALIBRATION) else {
        return Ok(None);
    };
    let read: Calibration = serde_json::from_str(text).map_err(|error| TableError::Note {
        what: "calibration",
        problem: error.to_string(),
    })?;
    if read.tasks.len() != model.tasks().len() {
        return Err(TableError::Damaged);
    }
    Ok(Some(read))
}

/// Writes both notes.
///
/// # Errors
/// When a number in the frame is not finite.
pub fn keep(
    notes: &mut BTreeMap<String, String>,
    frame: &Frame,
    rows: &[Vec<usize>],
) -> Result<()> {
    let unwritten = |error: serde_json::Error| TableError::Note {
        what: "notes",
        problem: error.to_string(),
    };
    notes.insert(
        FRAME.to_string(),
        serde_json::to_string(frame).map_err(unwritten)?,
    );
    notes.insert(
        TRAINING_ROWS.to_string(),
        serde_json::to_string(rows).map_err(unwritten)?,
    );
    Ok(())
}

/// The frame that a model carries.
///
/// # Errors
/// When it has none, one of a later version, or one that does not fit its machines.
pub fn frame_of(model: &Model) -> Result<Frame> {
    let note = model.notes().get(FRAME).ok_or(TableError::NoFrame)?;
    let frame: Frame = serde_json::from_str(note).map_err(|error| TableError::Note {
        what: "table description",
        problem: error.to_string(),
    })?;
    if frame.version > VERSION {
        return Err(TableError::Version {
            version: frame.version,
            known: VERSION,
        });
    }
    // A file can say anything; what follows takes these numbers for granted.
    let kept = frame.features.len();
    let mut sets = model.support_sets().iter();
    if !frame.goal.fits(model.tasks().len()) || sets.any(|set| set.columns.len() != kept) {
        return Err(TableError::Damaged);
    }
    Ok(frame)
}

/// The rows of the training table in each sample set; none where the model does not say.
///
/// # Errors
/// When the note cannot be read.
pub fn training_rows_of(model: &Model) -> Result<Vec<Vec<usize>>> {
    let Some(text) = model.notes().get(TRAINING_ROWS) else {
        return Ok(Vec::new());
    };
    serde_json::from_str(text).map_err(|error| TableError::Note {
        what: "list of training rows",
        problem: error.to_string(),
    })
}

impl Frame {
    /// The frame of a model that carries none, as the library writes them: its tasks are named, its columns are what they are.
    pub fn of_library(model: &Model) -> Self {
        let targets = model.machine().entry().map(|entry| entry.targets);
        let goal = match targets.unwrap_or(TargetKind::Labels) {
            TargetKind::Labels => Goal::Binary {
                classes: vec!["-1".to_string(), "1".to_string()],
            },
            TargetKind::Values => Goal::Regression,
            TargetKind::Unlabelled => Goal::OneClass,
        };
        let task = (model.tasks().len() > 1).then_some("task");
        let columns = model.support_sets().first();
        let columns = columns.map_or(&[][..], |set| &set.columns);
        Self::plain(columns, None, task, goal)
    }
}
