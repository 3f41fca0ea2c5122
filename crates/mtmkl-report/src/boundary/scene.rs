//! The drawing as a list of shapes and texts, and its writing as SVG.
//!
//! The SVG and the PNG are two writers of this one list, so that they cannot show different things.

use std::fmt::Write as _;

use super::contour::{Polyline, Pt};

/// A colour with opacity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Paint {
    pub(super) rgb: [u8; 3],
    pub(super) alpha: f64,
}

impl Paint {
    pub(super) const fn solid(rgb: [u8; 3]) -> Self {
        Self { rgb, alpha: 1.0 }
    }
}

/// A line style; ends and joins are round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Stroke {
    pub(super) paint: Paint,
    pub(super) width: f64,
    /// Lengths of dash and gap.
    pub(super) dash: Option<(f64, f64)>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Text {
    /// Where the anchor lies on the base line.
    pub(super) at: Pt,
    pub(super) size: f64,
    pub(super) bold: bool,
    pub(super) anchor: Anchor,
    /// Read from bottom to top.
    pub(super) upwards: bool,
    pub(super) paint: Paint,
    /// A white rim, for text on top of lines.
    pub(super) halo: bool,
    pub(super) content: String,
}

/// Width of the stroke that makes the rim of text with a halo; half of it shows.
pub(super) const HALO: f64 = 4.0;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Item {
    /// Starts a group with an explanation for readers who do not see the drawing.
    Open(String),
    /// Ends the group that was started last.
    Close,
    Path {
        lines: Vec<Polyline>,
        fill: Option<Paint>,
        stroke: Option<Stroke>,
    },
    Circle {
        centre: Pt,
        radius: f64,
        fill: Option<Paint>,
        stroke: Option<Stroke>,
    },
    Text(Text),
}

/// A drawing on a white ground, y downwards, lengths in CSS pixels.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Scene {
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) title: String,
    pub(super) description: String,
    pub(super) items: Vec<Item>,
}

/// Only system fonts: nothing is loaded, and the first one found is used.
const FONTS: &str =
    "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif";

impl Scene {
    /// The drawing as an SVG document. It has neither ids nor style rules, so that several of them can be
    /// put into one HTML page without disturbing each other.
    pub(super) fn svg(&self) -> String {
        let (w, h) = (num(self.width), num(self.height));
        let mut s = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"{w}\" height=\"{h}\" \
             viewBox=\"0 0 {w} {h}\" font-family=\"{FONTS}\" fill=\"none\" stroke-linecap=\"round\" \
             stroke-linejoin=\"round\" style=\"max-width:100%;height:auto\">\n\
             <title>{}</title>\n<desc>{}</desc>\n<rect width=\"{w}\" height=\"{h}\" fill=\"#fff\"/>\n",
            escaped(&self.title),
            escaped(&self.description)
        );
        for item in &self.items {
            match item {
                Item::Open(label) => {
                    s.push_str("<g>");
                    element(&mut s, "title", "", label);
                }
                Item::Close => s.push_str("</g>\n"),
                Item::Path {
                    lines,
                    fill,
                    stroke,
                } => {
                    s.push_str("<path d=\"");
                    for line in lines {
                        for (k, p) in line.points.iter().enumerate() {
                            let command = ["M", "L", " "][k.min(2)];
                            put(&mut s, format_args!("{command}{} {}", num(p.0), num(p.1)));
                        }
                        if line.closed {
                            s.push('Z');
                        }
                    }
                    s.push('"');
                    style(&mut s, *fill, *stroke);
                }
                Item::Circle {
                    centre,
                    radius,
                    fill,
                    stroke,
                } => {
                    let (x, y, r) = (num(centre.0), num(centre.1), num(*radius));
                    put(
                        &mut s,
                        format_args!("<circle cx=\"{x}\" cy=\"{y}\" r=\"{r}\""),
                    );
                    style(&mut s, *fill, *stroke);
                }
                Item::Text(text) => svg_text(&mut s, text),
            }
        }
        s.push_str("</svg>\n");
        s
    }
}

fn svg_text(s: &mut String, text: &Text) {
    let (x, y) = (num(text.at.0), num(text.at.1));
    let mut attributes = format!(" x=\"{x}\" y=\"{y}\" font-size=\"{}\"", num(text.size));
    if text.bold {
        attributes.push_str(" font-weight=\"600\"");
    }
    match text.anchor {
        Anchor::Start => {}
        Anchor::Middle => attributes.push_str(" text-anchor=\"middle\""),
        Anchor::End => attributes.push_str(" text-anchor=\"end\""),
    }
    if text.upwards {
        put(
            &mut attributes,
            format_args!(" transform=\"rotate(-90 {x} {y})\""),
        );
    }
    if text.halo {
        put(
            &mut attributes,
            format_args!(
                " stroke=\"#fff\" stroke-width=\"{}\" paint-order=\"stroke\"",
                num(HALO)
            ),
        );
    }
    put(
        &mut attributes,
        format_args!(" fill=\"{}\"", hex(text.paint)),
    );
    element(s, "text", &attributes, &text.content);
}

fn element(s: &mut String, name: &str, attributes: &str, content: &str) {
    put(
        s,
        format_args!("<{name}{attributes}>{}</{name}>\n", escaped(content)),
    );
}

fn style(s: &mut String, fill: Option<Paint>, stroke: Option<Stroke>) {
    if let Some(paint) = fill {
        put(s, format_args!(" fill=\"{}\"", hex(paint)));
        if paint.alpha < 1.0 {
            put(s, format_args!(" fill-opacity=\"{}\"", num(paint.alpha)));
        }
    }
    if let Some(stroke) = stroke {
        let (colour, width) = (hex(stroke.paint), num(stroke.width));
        put(
            s,
            format_args!(" stroke=\"{colour}\" stroke-width=\"{width}\""),
        );
        if stroke.paint.alpha < 1.0 {
            put(
                s,
                format_args!(" stroke-opacity=\"{}\"", num(stroke.paint.alpha)),
            );
        }
        if let Some((on, off)) = stroke.dash {
            put(
                s,
                format_args!(" stroke-dasharray=\"{} {}\"", num(on), num(off)),
            );
        }
    }
    s.push_str("/>\n");
}

fn put(s: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = s.write_fmt(arguments);
}

fn hex(paint: Paint) -> String {
    let [r, g, b] = paint.rgb;
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// A number with at most two decimals.
fn num(v: f64) -> String {
    let s = format!("{v:.2}");
    let s = s.trim_end_matches('0').trim_end_matches('.');
    if s == "-0" { "0" } else { s }.to_owned()
}

/// Text for element content and quoted attributes. Characters that XML forbids even as references become
/// the replacement character, as one of them would make the whole document unreadable.
fn escaped(text: &str) -> String {
    let mut s = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => s.push_str("&amp;"),
            '<' => s.push_str("&lt;"),
            '>' => s.push_str("&gt;"),
            '"' => s.push_str("&quot;"),
            '\'' => s.push_str("&#39;"),
            '\t' | '\n' | '\r' => s.push(' '),
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => s.push('\u{fffd}'),
            c => s.push(c),
        }
    }
    s
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let cases = [(1.0, "1"), (0.5, "0.5"), (-0.001, "0"), (100.0, "100")];
        for (v, s) in cases {
            assert_eq!(num(v), s);
        }
    }

    #[test]
    fn escaping() {
        assert_eq!(
            escaped("<a href=\"x\">'&'\u{1}\n"),
            "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;\u{fffd} "
        );
    }
}
