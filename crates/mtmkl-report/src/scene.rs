//! A drawing as a list of shapes and texts, and its writing as SVG: the one place that knows elements, attributes, and how
//! coordinates are written. Every picture and chart is such a list.
//!
//! y runs downwards, lengths are in CSS pixels.

use crate::text::{esc, put};

/// A point of the drawing.
pub(crate) type Pt = (f64, f64);

/// A chain of points; a closed one does not repeat its first point.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Polyline {
    pub(crate) points: Vec<Pt>,
    pub(crate) closed: bool,
}

impl Polyline {
    /// The open chain through these points.
    pub(crate) fn open(points: Vec<Pt>) -> Self {
        Self {
            points,
            closed: false,
        }
    }

    /// A rectangle by its upper left corner and its size.
    pub(crate) fn rectangle((x, y): Pt, (width, height): Pt) -> Self {
        let (right, bottom) = (x + width, y + height);
        Self {
            points: vec![(x, y), (right, y), (right, bottom), (x, bottom)],
            closed: true,
        }
    }
}

/// A colour with opacity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Paint {
    pub(crate) rgb: [u8; 3],
    pub(crate) alpha: f64,
}

impl Paint {
    pub(crate) const fn solid(rgb: [u8; 3]) -> Self {
        Self { rgb, alpha: 1.0 }
    }
}

/// For letters and lines of a file of its own.
pub(crate) const INK: Paint = Paint::solid([31, 41, 51]);
/// For what is said beside the main thing.
pub(crate) const GREY: Paint = Paint::solid([82, 96, 109]);
/// For lines behind everything.
pub(crate) const PALE: Paint = Paint::solid([216, 222, 228]);
pub(crate) const WHITE: Paint = Paint::solid([255; 3]);

/// A line style; ends and joins are round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Stroke {
    pub(crate) paint: Paint,
    pub(crate) width: f64,
    /// Lengths of dash and gap.
    pub(crate) dash: Option<(f64, f64)>,
}

impl Stroke {
    pub(crate) const fn solid(paint: Paint, width: f64) -> Self {
        Self {
            paint,
            width,
            dash: None,
        }
    }
}

/// What a shape looks like.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Look {
    /// As the page's style sheet says, which knows dark pages: of drawings inside the page.
    Class(String),
    /// As it says itself: of files.
    Own {
        fill: Option<Paint>,
        stroke: Option<Stroke>,
    },
}

impl Look {
    pub(crate) const fn filled(paint: Paint) -> Self {
        Self::Own {
            fill: Some(paint),
            stroke: None,
        }
    }

    pub(crate) const fn drawn(stroke: Stroke) -> Self {
        Self::Own {
            fill: None,
            stroke: Some(stroke),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Text {
    /// Where the anchor lies on the base line.
    pub(crate) at: Pt,
    pub(crate) size: f64,
    pub(crate) bold: bool,
    pub(crate) anchor: Anchor,
    /// Read from bottom to top.
    pub(crate) upwards: bool,
    pub(crate) paint: Paint,
    /// A white rim, for text on top of lines.
    pub(crate) halo: bool,
    /// A class of the style sheet, which then says all of the above but the place and the direction.
    pub(crate) class: Option<String>,
    pub(crate) content: String,
}

impl Text {
    /// Text of a file in the common style, to be changed where it differs.
    pub(crate) fn new(at: Pt, size: f64, content: impl Into<String>) -> Self {
        Self {
            at,
            size,
            bold: false,
            anchor: Anchor::Start,
            upwards: false,
            paint: INK,
            halo: false,
            class: None,
            content: content.into(),
        }
    }

    /// Text of a drawing inside the page.
    pub(crate) fn of_class(at: Pt, class: impl Into<String>, content: impl Into<String>) -> Self {
        Self {
            class: Some(class.into()),
            ..Self::new(at, 0.0, content)
        }
    }

    pub(crate) fn anchored(self, anchor: Anchor) -> Self {
        Self { anchor, ..self }
    }

    pub(crate) fn painted(self, paint: Paint) -> Self {
        Self { paint, ..self }
    }

    pub(crate) fn bold(self) -> Self {
        Self { bold: true, ..self }
    }

    pub(crate) fn upwards(self) -> Self {
        Self {
            upwards: true,
            ..self
        }
    }

    pub(crate) fn with_halo(self) -> Self {
        Self { halo: true, ..self }
    }
}

/// Width of the stroke that makes the rim of text with a halo; half of it shows.
const HALO: f64 = 4.0;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Item {
    /// Starts a group with an explanation for readers who do not see the drawing.
    Open(String),
    /// Ends the group that was started last.
    Close,
    /// Names a rectangle outside which lines of that name are not drawn; the name must be the page's only one.
    Clip {
        name: &'static str,
        area: Polyline,
    },
    Path {
        lines: Vec<Polyline>,
        look: Look,
        clip: Option<&'static str>,
    },
    Circle {
        centre: Pt,
        radius: f64,
        look: Look,
    },
    Text(Text),
}

impl Item {
    /// Lines or areas.
    pub(crate) fn path(lines: Vec<Polyline>, look: Look) -> Self {
        Self::Path {
            lines,
            look,
            clip: None,
        }
    }

    /// A straight line.
    pub(crate) fn segment(from: Pt, to: Pt, look: Look) -> Self {
        Self::path(vec![Polyline::open(vec![from, to])], look)
    }
}

/// Where a drawing stands.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Place {
    /// A file of its own, on a white ground. It has neither ids nor style rules, so that several of them can be put into one page
    /// without disturbing each other.
    File { title: String, description: String },
    /// Inside the page, with these attributes and a label for those who cannot see it.
    Page { attributes: String, label: String },
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scene {
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(crate) place: Place,
    pub(crate) items: Vec<Item>,
}

/// Only system fonts: nothing is loaded, and the first one found is used.
const FONTS: &str =
    "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif";

impl Scene {
    /// The drawing as SVG.
    pub(crate) fn svg(&self) -> String {
        let (w, h) = (num(self.width), num(self.height));
        let mut s = match &self.place {
            Place::File { title, description } => format!(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"{w}\" height=\"{h}\" \
                 viewBox=\"0 0 {w} {h}\" font-family=\"{FONTS}\" fill=\"none\" stroke-linecap=\"round\" \
                 stroke-linejoin=\"round\" style=\"max-width:100%;height:auto\">\n\
                 <title>{}</title>\n<desc>{}</desc>\n<rect width=\"{w}\" height=\"{h}\" fill=\"#fff\"/>\n",
                esc(title),
                esc(description)
            ),
            Place::Page { attributes, label } => format!(
                "<svg {attributes} viewBox=\"0 0 {w} {h}\" role=\"img\" aria-label=\"{}\">\n",
                esc(label)
            ),
        };
        for item in &self.items {
            match item {
                Item::Open(label) => put!(s, "<g><title>{}</title>\n", esc(label)),
                Item::Close => s.push_str("</g>\n"),
                Item::Clip { name, area } => {
                    put!(s, "<clipPath id=\"{name}\"><path");
                    d(&mut s, std::slice::from_ref(area));
                    s.push_str("/></clipPath>\n");
                }
                Item::Path { lines, look, clip } => {
                    s.push_str("<path");
                    if let Some(name) = clip {
                        put!(s, " clip-path=\"url(#{name})\"");
                    }
                    d(&mut s, lines);
                    self::look(&mut s, look);
                }
                Item::Circle {
                    centre,
                    radius,
                    look,
                } => {
                    let (x, y, r) = (num(centre.0), num(centre.1), num(*radius));
                    put!(s, "<circle cx=\"{x}\" cy=\"{y}\" r=\"{r}\"");
                    self::look(&mut s, look);
                }
                Item::Text(text) => letters(&mut s, text),
            }
        }
        s.push_str("</svg>\n");
        s
    }
}

/// The attribute that says where a path goes; straight across and straight down in short.
fn d(s: &mut String, lines: &[Polyline]) {
    s.push_str(" d=\"");
    for line in lines {
        let mut before: Option<(String, String)> = None;
        let mut command = ' ';
        for p in &line.points {
            let (x, y) = (num(p.0), num(p.1));
            match &before {
                None => {
                    put!(s, "M{x} {y}");
                    command = 'M';
                }
                Some((_, known)) if *known == y => {
                    put!(s, "H{x}");
                    command = 'H';
                }
                Some((known, _)) if *known == x => {
                    put!(s, "V{y}");
                    command = 'V';
                }
                Some(_) => {
                    put!(s, "{}{x} {y}", if command == 'L' { ' ' } else { 'L' });
                    command = 'L';
                }
            }
            before = Some((x, y));
        }
        if line.closed {
            s.push('Z');
        }
    }
    s.push('"');
}

fn letters(s: &mut String, text: &Text) {
    let (x, y) = (num(text.at.0), num(text.at.1));
    put!(s, "<text x=\"{x}\" y=\"{y}\"");
    if text.upwards {
        put!(s, " transform=\"rotate(-90 {x} {y})\"");
    }
    if let Some(class) = &text.class {
        put!(s, " class=\"{class}\"");
    } else {
        put!(s, " font-size=\"{}\"", num(text.size));
        if text.bold {
            s.push_str(" font-weight=\"600\"");
        }
        match text.anchor {
            Anchor::Start => {}
            Anchor::Middle => s.push_str(" text-anchor=\"middle\""),
            Anchor::End => s.push_str(" text-anchor=\"end\""),
        }
        if text.halo {
            put!(
                s,
                " stroke=\"#fff\" stroke-width=\"{}\" paint-order=\"stroke\"",
                num(HALO)
            );
        }
        put!(s, " fill=\"{}\"", hex(text.paint));
    }
    put!(s, ">{}</text>\n", esc(&text.content));
}

/// How a shape looks, and its end.
fn look(s: &mut String, look: &Look) {
    match look {
        Look::Class(class) => put!(s, " class=\"{class}\""),
        Look::Own { fill, stroke } => {
            if let Some(paint) = fill {
                put!(s, " fill=\"{}\"", hex(*paint));
                if paint.alpha < 1.0 {
                    put!(s, " fill-opacity=\"{}\"", num(paint.alpha));
                }
            }
            if let Some(stroke) = stroke {
                let (colour, width) = (hex(stroke.paint), num(stroke.width));
                put!(s, " stroke=\"{colour}\" stroke-width=\"{width}\"");
                if stroke.paint.alpha < 1.0 {
                    put!(s, " stroke-opacity=\"{}\"", num(stroke.paint.alpha));
                }
                if let Some((on, off)) = stroke.dash {
                    put!(s, " stroke-dasharray=\"{} {}\"", num(on), num(off));
                }
            }
        }
    }
    s.push_str("/>\n");
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
    fn paths_are_short() {
        let mut s = String::new();
        let line = Polyline::open(vec![(0.0, 0.0), (1.0, 1.0), (2.0, 3.0), (4.0, 3.0)]);
        d(&mut s, &[Polyline::rectangle((3.0, 5.0), (1.0, 1.0)), line]);
        assert_eq!(s, " d=\"M3 5H4V6H3ZM0 0L1 1 2 3H4\"");
    }
}
