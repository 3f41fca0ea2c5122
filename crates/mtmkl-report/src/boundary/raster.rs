//! The drawing as pixels, and their writing as PNG.
//!
//! Areas are filled by exact coverage of every pixel, lines by the distance of the pixel's centre from the
//! line: smooth in both cases, and all that the drawings need.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "pixel positions: clamped to the canvas before they become integers"
)]

use super::contour::{Polyline, Pt, distance};
use super::font;
use super::scene::{Anchor, HALO, Item, Paint, Scene, Stroke, Text};

/// Pixels per CSS pixel.
pub(super) const SCALE: f64 = 2.0;
const WHITE: Paint = Paint::solid([255; 3]);

/// The drawing as a PNG file: eight bits for each of red, green and blue.
pub(super) fn png(scene: &Scene) -> Vec<u8> {
    let mut canvas = Canvas::new(
        (scene.width * SCALE).ceil().max(1.0) as usize,
        (scene.height * SCALE).ceil().max(1.0) as usize,
    );
    for item in &scene.items {
        match item {
            Item::Open(_) | Item::Close => {}
            Item::Path {
                lines,
                fill,
                stroke,
            } => canvas.shape(&scaled(lines), *fill, *stroke),
            Item::Circle {
                centre,
                radius,
                fill,
                stroke,
            } => canvas.shape(&scaled(&[circle(*centre, *radius)]), *fill, *stroke),
            Item::Text(text) => canvas.text(text),
        }
    }
    canvas.encoded()
}

fn scaled(lines: &[Polyline]) -> Vec<Polyline> {
    moved(lines, |p| (SCALE * p.0, SCALE * p.1))
}

fn moved(lines: &[Polyline], map: impl Fn(Pt) -> Pt) -> Vec<Polyline> {
    lines
        .iter()
        .map(|l| Polyline {
            points: l.points.iter().map(|&p| map(p)).collect(),
            closed: l.closed,
        })
        .collect()
}

fn circle(centre: Pt, radius: f64) -> Polyline {
    const CORNERS: u32 = 40;
    let points = (0..CORNERS).map(|k| {
        let angle = std::f64::consts::TAU * f64::from(k) / f64::from(CORNERS);
        (
            centre.0 + radius * angle.cos(),
            centre.1 + radius * angle.sin(),
        )
    });
    Polyline {
        points: points.collect(),
        closed: true,
    }
}

/// The straight pieces of a polyline.
fn segments(line: &Polyline) -> impl Iterator<Item = (Pt, Pt)> {
    let last = if line.closed {
        line.points.last()
    } else {
        None
    };
    let closing = last.copied().zip(line.points.first().copied());
    let pairs = line.points.windows(2).map(|w| (w[0], w[1]));
    pairs.chain(closing)
}

/// The pieces of a polyline that are drawn when it is dashed.
fn dashes(line: &Polyline, on: f64, off: f64) -> Vec<Polyline> {
    let mut result = Vec::new();
    let mut current: Vec<Pt> = Vec::new();
    let (mut drawing, mut left) = (true, on);
    for (a, b) in segments(line) {
        let length = (b.0 - a.0).hypot(b.1 - a.1);
        let mut done = 0.0;
        if drawing && current.is_empty() {
            current.push(a);
        }
        while length - done > left {
            done += left;
            let t = done / length;
            let p = (a.0 + t * (b.0 - a.0), a.1 + t * (b.1 - a.1));
            current.push(p);
            if drawing {
                result.push(std::mem::take(&mut current));
            }
            drawing = !drawing;
            left = if drawing { on } else { off };
        }
        left -= length - done;
        if drawing {
            current.push(b);
        }
    }
    if drawing && current.len() > 1 {
        result.push(current);
    }
    result
        .into_iter()
        .map(|points| Polyline {
            points,
            closed: false,
        })
        .collect()
}

/// How much of each pixel of a rectangle of the canvas is covered.
struct Mask {
    left: usize,
    top: usize,
    width: usize,
    height: usize,
    cover: Vec<f32>,
}

impl Mask {
    /// Nothing covered, in the part of the canvas that the lines reach when `reach` wide to either side.
    fn new(canvas: &Canvas, lines: &[Polyline], reach: f64) -> Self {
        let mut low = (f64::INFINITY, f64::INFINITY);
        let mut high = (f64::NEG_INFINITY, f64::NEG_INFINITY);
        for p in lines.iter().flat_map(|l| &l.points) {
            low = (low.0.min(p.0), low.1.min(p.1));
            high = (high.0.max(p.0), high.1.max(p.1));
        }
        let span = |low: f64, high: f64, size: usize| {
            let from = (low - reach).floor().clamp(0.0, size as f64) as usize;
            let to = (high + reach).ceil().clamp(0.0, size as f64) as usize;
            (from, to.saturating_sub(from))
        };
        let (left, width) = span(low.0, high.0, canvas.width);
        let (top, height) = span(low.1, high.1, canvas.height);
        Self {
            left,
            top,
            width,
            height,
            cover: vec![0.0; width * height],
        }
    }

    /// Covers the inside of the closed lines: where they wind around, not where they cancel.
    ///
    /// Every edge adds, in each row it passes, the area between it and the right end of the row; as
    /// differences along the row, so that the running sum at the end is the coverage.
    fn fill(&mut self, lines: &[Polyline]) {
        let wide = self.width + 1;
        let mut change = vec![0.0_f64; wide * self.height];
        let origin = (self.left as f64, self.top as f64);
        let right = self.width as f64;
        for (a, b) in lines.iter().flat_map(segments) {
            let (a, b) = (
                (a.0 - origin.0, a.1 - origin.1),
                (b.0 - origin.0, b.1 - origin.1),
            );
            let (sign, a, b) = if a.1 < b.1 { (1.0, a, b) } else { (-1.0, b, a) };
            if a.1 == b.1 {
                continue;
            }
            let slope = (b.0 - a.0) / (b.1 - a.1);
            let rows =
                a.1.floor().max(0.0) as usize..(b.1.ceil().max(0.0) as usize).min(self.height);
            for row in rows {
                let y0 = a.1.max(row as f64);
                let y1 = b.1.min((row + 1) as f64);
                let x0 = (a.0 + (y0 - a.1) * slope).clamp(0.0, right);
                let x1 = (a.0 + (y1 - a.1) * slope).clamp(0.0, right);
                let (from, to) = (x0.min(x1), x0.max(x1));
                let height = sign * (y1 - y0);
                let cells = &mut change[row * wide..(row + 1) * wide];
                let first = (from as usize).min(self.width.saturating_sub(1));
                let last = (to.ceil() as usize).clamp(first + 1, self.width.max(1));
                for column in first..last.min(wide - 1) {
                    let l = from.max(column as f64);
                    let r = to.min((column + 1) as f64);
                    let part = if to > from {
                        height * (r - l) / (to - from)
                    } else {
                        height
                    };
                    let across = f64::midpoint(l, r) - column as f64;
                    cells[column] += part * (1.0 - across);
                    cells[column + 1] += part * across;
                }
            }
        }
        for row in 0..self.height {
            let mut sum = 0.0;
            for column in 0..self.width {
                sum += change[row * wide + column];
                let cover = &mut self.cover[row * self.width + column];
                *cover = cover.max(sum.abs().min(1.0) as f32);
            }
        }
    }

    /// Covers a band of the given width along the lines. The greatest coverage counts, not the sum: joints
    /// of short pieces must not show.
    fn stroke(&mut self, lines: &[Polyline], width: f64) {
        let half = width / 2.0;
        let reach = half + 1.0;
        for (a, b) in lines.iter().flat_map(segments) {
            let span = |p: f64, q: f64, start: usize, size: usize| {
                let from = (p.min(q) - reach).floor() - start as f64;
                let to = (p.max(q) + reach).ceil() - start as f64;
                let limit = size as f64;
                from.clamp(0.0, limit) as usize..to.clamp(0.0, limit) as usize
            };
            let columns = span(a.0, b.0, self.left, self.width);
            for row in span(a.1, b.1, self.top, self.height) {
                for column in columns.clone() {
                    let centre = (
                        (self.left + column) as f64 + 0.5,
                        (self.top + row) as f64 + 0.5,
                    );
                    let c = (half + 0.5 - distance(centre, a, b)).clamp(0.0, width.min(1.0));
                    let cover = &mut self.cover[row * self.width + column];
                    *cover = cover.max(c as f32);
                }
            }
        }
    }
}

/// Rows of red, green and blue.
struct Canvas {
    width: usize,
    height: usize,
    pixels: Vec<u8>,
}

impl Canvas {
    fn new(width: usize, height: usize) -> Self {
        Self {
            width,
            height,
            pixels: vec![255; 3 * width * height],
        }
    }

    fn shape(&mut self, lines: &[Polyline], fill: Option<Paint>, stroke: Option<Stroke>) {
        if let Some(paint) = fill {
            let mut mask = Mask::new(self, lines, 0.0);
            mask.fill(lines);
            self.blend(&mask, paint);
        }
        if let Some(stroke) = stroke {
            let width = SCALE * stroke.width;
            let mut mask = Mask::new(self, lines, width);
            match stroke.dash {
                Some((on, off)) if on > 0.0 && off > 0.0 => {
                    for line in lines {
                        mask.stroke(&dashes(line, SCALE * on, SCALE * off), width);
                    }
                }
                _ => mask.stroke(lines, width),
            }
            self.blend(&mask, stroke.paint);
        }
    }

    fn text(&mut self, text: &Text) {
        let size = SCALE * text.size;
        let shift = match text.anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => 0.5,
            Anchor::End => 1.0,
        } * font::width(&text.content, size, text.bold);
        let at = (SCALE * text.at.0, SCALE * text.at.1);
        let outlines = moved(&font::outlines(&text.content, size, text.bold), |p| {
            let p = (p.0 - shift, p.1);
            if text.upwards {
                (at.0 + p.1, at.1 - p.0)
            } else {
                (at.0 + p.0, at.1 + p.1)
            }
        });
        if text.halo {
            let mut mask = Mask::new(self, &outlines, SCALE * HALO);
            mask.stroke(&outlines, SCALE * HALO);
            self.blend(&mask, WHITE);
        }
        let thicker = font::EMBOLDEN * size;
        let mut mask = Mask::new(self, &outlines, thicker);
        mask.fill(&outlines);
        if text.bold {
            mask.stroke(&outlines, thicker);
        }
        self.blend(&mask, text.paint);
    }

    fn blend(&mut self, mask: &Mask, paint: Paint) {
        let alpha = paint.alpha as f32;
        for row in 0..mask.height {
            for column in 0..mask.width {
                let a = alpha * mask.cover[row * mask.width + column];
                if a <= 0.0 {
                    continue;
                }
                let at = 3 * ((mask.top + row) * self.width + mask.left + column);
                for (pixel, new) in self.pixels[at..at + 3].iter_mut().zip(paint.rgb) {
                    let old = f32::from(*pixel);
                    *pixel = (old + a * (f32::from(new) - old)).round() as u8;
                }
            }
        }
    }

    fn encoded(&self) -> Vec<u8> {
        let stride = 3 * self.width;
        let mut raw = Vec::with_capacity((stride + 1) * self.height);
        let mut above = vec![0; stride];
        for row in self.pixels.chunks_exact(stride) {
            filtered(row, &above, &mut raw);
            above.copy_from_slice(row);
        }
        let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
        let mut header = Vec::new();
        header.extend((self.width as u32).to_be_bytes());
        header.extend((self.height as u32).to_be_bytes());
        // Eight bits, red-green-blue, the only compression, the only filter method, not interlaced.
        header.extend([8, 2, 0, 0, 0]);
        chunk(&mut file, *b"IHDR", &header);
        // Pixels per metre, so that a word processor shows it at the size of the SVG (96 to the inch).
        let density = ((96.0 * SCALE / 0.0254).round() as u32).to_be_bytes();
        let mut physical = [density, density].concat();
        physical.push(1);
        chunk(&mut file, *b"pHYs", &physical);
        let packed = miniz_oxide::deflate::compress_to_vec_zlib(&raw, 8);
        chunk(&mut file, *b"IDAT", &packed);
        chunk(&mut file, *b"IEND", &[]);
        file
    }
}

/// Appends a row, either as it is or as differences to the pixel on the left or to the row above: whichever
/// has the smallest sum, the usual guess at what compresses best.
fn filtered(row: &[u8], above: &[u8], out: &mut Vec<u8>) {
    let left = |k: usize| if k < 3 { 0 } else { row[k - 3] };
    let same = row.to_vec();
    let sub: Vec<u8> = (0..row.len())
        .map(|k| row[k].wrapping_sub(left(k)))
        .collect();
    let up: Vec<u8> = row
        .iter()
        .zip(above)
        .map(|(r, a)| r.wrapping_sub(*a))
        .collect();
    let cost = |bytes: &[u8]| -> u64 {
        bytes
            .iter()
            .map(|&b| u64::from(b.cast_signed().unsigned_abs()))
            .sum()
    };
    let candidates = [(0, same), (1, sub), (2, up)];
    if let Some((kind, bytes)) = candidates.into_iter().min_by_key(|c| cost(&c.1)) {
        out.push(kind);
        out.extend(bytes);
    }
}

fn chunk(file: &mut Vec<u8>, kind: [u8; 4], data: &[u8]) {
    file.extend((data.len() as u32).to_be_bytes());
    let from = file.len();
    file.extend(kind);
    file.extend(data);
    let sum = crc(&file[from..]);
    file.extend(sum.to_be_bytes());
}

/// The checksum of PNG chunks (CRC-32).
fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |sum, &b| {
        (0..8).fold(sum ^ u32::from(b), |s, _| {
            (s >> 1) ^ if s & 1 == 1 { 0xedb8_8320 } else { 0 }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covered(lines: &[Polyline], draw: impl Fn(&mut Mask)) -> f64 {
        let canvas = Canvas::new(60, 50);
        let mut mask = Mask::new(&canvas, lines, 3.0);
        draw(&mut mask);
        mask.cover.iter().map(|&c| f64::from(c)).sum()
    }

    #[test]
    fn fill_covers_the_area() {
        let disc = [circle((30.3, 24.6), 12.0)];
        let polygon = 0.5 * 40.0 * 144.0 * (std::f64::consts::TAU / 40.0).sin();
        assert!((covered(&disc, |m| m.fill(&disc)) - polygon).abs() < 1e-3);
        // Half outside the canvas, and wholly outside.
        let disc = [circle((60.0, 25.0), 12.0)];
        assert!((covered(&disc, |m| m.fill(&disc)) - polygon / 2.0).abs() < 1e-3);
        let disc = [circle((0.0, 25.0), 12.0)];
        assert!((covered(&disc, |m| m.fill(&disc)) - polygon / 2.0).abs() < 1e-3);
        for centre in [(-100.0, 25.0), (30.0, -90.0), (200.0, 300.0)] {
            let disc = [circle(centre, 12.0)];
            assert_eq!(covered(&disc, |m| m.fill(&disc)), 0.0);
        }
        assert_eq!(covered(&[], |m| m.fill(&[])), 0.0);
    }

    #[test]
    fn hole_stays_empty() {
        let outer = circle((30.0, 25.0), 12.0);
        let mut inner = circle((30.0, 25.0), 6.0);
        inner.points.reverse();
        let ring = [outer, inner];
        let polygon = 0.5 * 40.0 * 108.0 * (std::f64::consts::TAU / 40.0).sin();
        assert!((covered(&ring, |m| m.fill(&ring)) - polygon).abs() < 1e-3);
    }

    #[test]
    fn stroke_covers_its_band() {
        let line = [Polyline {
            points: vec![(10.0, 20.0), (20.0, 20.0), (50.0, 20.0)],
            closed: false,
        }];
        let area = covered(&line, |m| m.stroke(&line, 2.0));
        assert!((area - 83.0).abs() < 1.0, "{area}");
    }

    #[test]
    fn dashes_keep_their_lengths() {
        let line = Polyline {
            points: vec![(0.0, 0.0), (3.0, 0.0), (3.0, 7.0)],
            closed: false,
        };
        let parts = dashes(&line, 4.0, 2.0);
        let points: Vec<_> = parts.into_iter().map(|p| p.points).collect();
        assert_eq!(
            points,
            [
                vec![(0.0, 0.0), (3.0, 0.0), (3.0, 1.0)],
                vec![(3.0, 3.0), (3.0, 7.0)]
            ]
        );
    }

    #[test]
    fn checksum_of_the_standard_example() {
        assert_eq!(crc(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc(b"IEND"), 0xae42_6082);
    }
}
