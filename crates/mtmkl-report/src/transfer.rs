//! How much of what one machine of all tasks says is common, a group's, a task's own: shares of the variance of its predictions.

use serde_json::Value;

use crate::page::{Section, scroll_box};
use crate::text::{capital, list, name, plural, put, share};

/// The shares, as the program keeps them in a model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Transfer {
    /// The levels: `all`, those of groups, `own`, `offset`.
    pub levels: Vec<String>,
    /// The share of each level over all rows.
    pub overall: Vec<f64>,
    /// The same over the rows of each task, by name.
    pub tasks: Vec<(String, Vec<f64>)>,
    /// The same for what each kernel says.
    pub kernels: Vec<(String, Vec<f64>)>,
}

impl Transfer {
    /// Of the note, as far as it can be read.
    pub(crate) fn read(note: &str) -> Result<Self, serde_json::Error> {
        let value: Value = serde_json::from_str(note)?;
        let numbers = |value: &Value| -> Vec<f64> {
            let all = value.as_array().map_or(&[][..], Vec::as_slice);
            all.iter()
                .map(|one| one.as_f64().unwrap_or(f64::NAN))
                .collect()
        };
        let rows = |key: &str, name: &str| {
            let all = value[key].as_array().map_or(&[][..], Vec::as_slice);
            let row = |one: &Value| {
                (
                    one[name].as_str().unwrap_or_default().to_string(),
                    numbers(&one["shares"]),
                )
            };
            all.iter().map(row).collect()
        };
        let levels = value["levels"].as_array().map_or(&[][..], Vec::as_slice);
        Ok(Self {
            levels: levels
                .iter()
                .map(|one| one.as_str().unwrap_or_default().to_string())
                .collect(),
            overall: numbers(&value["overall"]),
            tasks: rows("tasks", "task"),
            kernels: rows("kernels", "kernel"),
        })
    }

    /// A level in words.
    fn words(level: &str) -> String {
        match level {
            "all" => "common to all".to_string(),
            "own" => "the task’s own".to_string(),
            "offset" => "the task’s offset".to_string(),
            "group" => "the group’s".to_string(),
            other => format!("the {}’s", name(other)),
        }
    }

    fn class(level: &str) -> &'static str {
        match level {
            "all" => "common",
            "own" => "own",
            "offset" => "offset",
            _ => "group",
        }
    }

    /// The finding in one sentence; HTML without a full stop.
    pub(crate) fn finding(&self) -> String {
        let parts = self.levels.iter().zip(&self.overall);
        let parts: Vec<String> = parts
            .map(|(level, part)| format!("{} {}", share(*part), Self::words(level)))
            .collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        format!(
            "one machine of {}: of what varies in its predictions {}",
            plural(self.tasks.len(), "task"),
            list(&parts, parts.len())
        )
    }

    fn table(&self, what: &str, rows: &[(String, Vec<f64>)], out: &mut String) {
        let caption = format!("Shares of the variance of predictions by {what}");
        let mut inner = format!(
            "<table class=\"bars\"><caption class=\"hidden\">{caption}</caption><thead><tr><th scope=\"col\">{}</th><th scope=\"col\">Shares</th>",
            capital(what)
        );
        for level in &self.levels {
            put!(inner, "<th scope=\"col\">{}</th>", name(level));
        }
        inner.push_str("</tr></thead><tbody>\n");
        for (row, shares) in rows {
            put!(
                inner,
                "<tr><th scope=\"row\">{}</th><td class=\"bar\"><span class=\"track\" aria-hidden=\"true\">",
                name(row)
            );
            for (level, part) in self.levels.iter().zip(shares) {
                let width = if part.is_finite() {
                    100.0 * part.clamp(0.0, 1.0)
                } else {
                    0.0
                };
                put!(
                    inner,
                    "<i class=\"{}\" style=\"width:{width:.1}%\"></i>",
                    Self::class(level)
                );
            }
            inner.push_str("</span></td>");
            for part in shares {
                put!(inner, "<td>{}</td>", share(*part));
            }
            inner.push_str("</tr>\n");
        }
        inner.push_str("</tbody></table>");
        scroll_box(out, &caption, &inner);
    }

    /// What is common, the groups' and the tasks' own, by kernel and by task.
    pub(crate) fn section(&self) -> Section {
        let mut body = format!("<p>{}.</p>", capital(&self.finding()));
        body.push_str("<p class=\"legend\">");
        for level in &self.levels {
            put!(
                body,
                "<i class=\"swatch {}\"></i> {} ",
                Self::class(level),
                Self::words(level)
            );
        }
        body.push_str(
            "</p><p>Shares of the variance over rows it learned from, not of kernel weights, which are flatter. Within a task an offset does not vary.</p>",
        );
        self.table("kernel", &self.kernels, &mut body);
        self.table("task", &self.tasks, &mut body);
        Section {
            id: "transfer",
            title: "What tasks share",
            body,
        }
    }
}
