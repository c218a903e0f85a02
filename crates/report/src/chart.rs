//! A line chart: what a study's figure shows, as data, and drawn.
//!
//! The drawing is an SVG file that needs nothing else, light or dark as its reader's system is. Every line ends in its
//! name, so that no colour must be matched; every point tells its numbers when pointed at.

use crate::chart::axis::Axis;
use crate::escape::html;
use crate::units::significant;

mod axis;

/// Lines over one pair of axes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figure {
    /// A short name, as of a file; may be empty.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// Quantity and unit along the horizontal axis.
    pub x_label: String,
    /// Quantity and unit along the vertical axis.
    pub y_label: String,
    /// Whether the horizontal axis is logarithmic: points that are not above 0 are left out then.
    pub log_x: bool,
    /// Whether the vertical axis is logarithmic; a linear one begins at 0, unless something is below.
    pub log_y: bool,
    /// The lines.
    pub series: Vec<Series>,
}

/// One line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// What tells it from the others.
    pub name: String,
    /// Its points, from left to right.
    pub points: Vec<Point>,
}

/// One point, and the interval in which its true place is thought to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Where on the horizontal axis.
    pub x: f64,
    /// Where on the vertical axis.
    pub y: f64,
    /// Lower end of the interval; `y` if there is none.
    pub low: f64,
    /// Upper end of the interval; `y` if there is none.
    pub high: f64,
}

impl Series {
    /// Its highest point; 0 if it has none above.
    pub fn highest(&self) -> f64 {
        self.points.iter().map(|point| point.y).fold(0.0, f64::max)
    }
}

impl Point {
    /// A point that is exact.
    pub fn exact(x: f64, y: f64) -> Point {
        Point { x, y, low: y, high: y }
    }

    /// A point whose true place is within `half_width` of `y`.
    pub fn within(x: f64, y: f64, half_width: f64) -> Point {
        Point { x, y, low: y - half_width, high: y + half_width }
    }

    /// Half of its interval.
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }
}

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 460.0;
const TOP: f64 = 56.0;
const BOTTOM: f64 = 54.0;
const LEFT: f64 = 84.0;
/// Least distance of two names beside each other.
const LINE: f64 = 15.0;
/// Width of a letter, near enough.
const LETTER: f64 = 6.7;
/// After so many lines colours come again, dashed.
const COLOURS: usize = 8;

const STYLE: &str = "\
svg{color-scheme:light dark;--page:#fff;--ink:#1d2125;--soft:#5d666f;--grid:#e6e8ea;\
--c0:#0072b2;--c1:#d55e00;--c2:#009e73;--c3:#b0568a;--c4:#9a7400;--c5:#3d8fc4;--c6:#6c4f9c;--c7:#5d666f}\
@media(prefers-color-scheme:dark){svg{--page:#15181b;--ink:#e6e8ea;--soft:#9aa4ad;--grid:#2b3137;\
--c0:#3f9bdc;--c1:#ec7a28;--c2:#1bb88a;--c3:#d98fb8;--c4:#e0b23a;--c5:#86cdf5;--c6:#a98fe0;--c7:#9aa4ad}}\
text{font:12px system-ui,\"Liberation Sans\",sans-serif;fill:var(--soft);font-variant-numeric:tabular-nums}\
.title{font-size:15px;font-weight:600;fill:var(--ink)}.name{fill:var(--ink)}\
.page{fill:var(--page)}.grid{stroke:var(--grid)}.axis{stroke:var(--soft)}\
.line{fill:none;stroke-width:2;stroke-linejoin:round}.lead{fill:none;stroke-width:1;opacity:.55}";

/// The figure as an SVG file.
pub fn svg(figure: &Figure) -> String {
    let shown: Vec<Shown<'_>> =
        figure.series.iter().enumerate().filter_map(|(n, one)| shown(figure, n, one)).collect();
    let longest = shown.iter().map(|one| one.series.name.chars().count()).max().unwrap_or(0);
    let right = WIDTH - 34.0 - (longest as f64 * LETTER).min(WIDTH / 2.5);
    let points = || shown.iter().flat_map(|one| &one.points);
    let x = Axis::new(figure.log_x, points().map(|point| point.x), (LEFT, right), false);
    let y = Axis::new(
        figure.log_y,
        points().flat_map(|point| [point.y, point.low, point.high]),
        (HEIGHT - BOTTOM, TOP),
        true,
    );
    let mut body = format!("<rect class=\"page\" width=\"{WIDTH}\" height=\"{HEIGHT}\"/>");
    body.push_str(&format!("<text class=\"title\" x=\"16\" y=\"24\">{}</text>", html(&figure.title)));
    body.push_str(&format!("<text x=\"16\" y=\"44\">{}</text>", html(&figure.y_label)));
    body.push_str(&grid(&x, &y, right));
    body.push_str(&format!(
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
        (LEFT + right) / 2.0,
        HEIGHT - 14.0,
        html(&figure.x_label)
    ));
    for one in &shown {
        body.push_str(&line(figure, one, &x, &y));
    }
    body.push_str(&names(&shown, &x, &y, right));
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" aria-label=\"{}\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         width=\"{WIDTH}\" height=\"{HEIGHT}\"><style>{STYLE}</style>{body}</svg>\n",
        html(&in_words(figure, &shown))
    )
}

/// A line of which there is something to draw.
struct Shown<'a> {
    /// Gives the colour.
    number: usize,
    series: &'a Series,
    points: Vec<Point>,
}

fn shown<'a>(figure: &Figure, number: usize, series: &'a Series) -> Option<Shown<'a>> {
    let drawable = |value: f64, log: bool| value.is_finite() && (!log || value > 0.0);
    let keep = |point: &&Point| drawable(point.x, figure.log_x) && drawable(point.y, figure.log_y);
    let within = |point: &Point| Point {
        low: if drawable(point.low, figure.log_y) { point.low } else { point.y },
        high: if drawable(point.high, figure.log_y) { point.high } else { point.y },
        ..*point
    };
    let points: Vec<Point> = series.points.iter().filter(keep).map(within).collect();
    (!points.is_empty()).then_some(Shown { number, series, points })
}

fn grid(x: &Axis, y: &Axis, right: f64) -> String {
    let mut body = String::new();
    for (value, label) in y.ticks() {
        let at = y.place(value);
        body.push_str(&format!(
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{right:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
            LEFT - 9.0,
            at + 4.0
        ));
    }
    let base = HEIGHT - BOTTOM;
    body.push_str(&format!(
        "<line class=\"axis\" x1=\"{LEFT}\" x2=\"{right:.1}\" y1=\"{base}\" y2=\"{base}\"/>"
    ));
    for (value, label) in x.ticks() {
        let at = x.place(value);
        body.push_str(&format!(
            "<line class=\"axis\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{base}\" y2=\"{}\"/>\
             <text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{label}</text>",
            base + 5.0,
            base + 19.0
        ));
    }
    body
}

fn line(figure: &Figure, one: &Shown<'_>, x: &Axis, y: &Axis) -> String {
    let colour = one.number % COLOURS;
    let dash = if one.number / COLOURS % 2 == 1 { " stroke-dasharray=\"6 4\"" } else { "" };
    let mut path = String::new();
    let mut marks = String::new();
    for (index, point) in one.points.iter().enumerate() {
        let (at_x, at_y) = (x.place(point.x), y.place(point.y));
        path.push_str(&format!("{}{at_x:.1} {at_y:.1}", if index == 0 { 'M' } else { 'L' }));
        if point.low < point.high {
            let (low, high) = (y.place(point.low), y.place(point.high));
            marks.push_str(&format!(
                "<path class=\"lead\" d=\"M{at_x:.1} {low:.1}V{high:.1}M{:.1} {low:.1}h6M{:.1} {high:.1}h6\" \
                 stroke=\"var(--c{colour})\"/>",
                at_x - 3.0,
                at_x - 3.0
            ));
        }
        marks.push_str(&format!(
            "<circle cx=\"{at_x:.1}\" cy=\"{at_y:.1}\" r=\"{}\" fill=\"var(--c{colour})\"><title>{}</title></circle>",
            if one.points.len() > 40 { 1.5 } else { 3.2 },
            html(&tip(figure, one.series, point))
        ));
    }
    format!("<path class=\"line\" stroke=\"var(--c{colour})\"{dash} d=\"{path}\"/>{marks}")
}

fn tip(figure: &Figure, series: &Series, point: &Point) -> String {
    let mut words = format!(
        "{}: {} {}, {} {}",
        series.name,
        significant(point.x),
        figure.x_label,
        significant(point.y),
        figure.y_label
    );
    if point.low < point.high {
        words.push_str(&format!(" (between {} and {})", significant(point.low), significant(point.high)));
    }
    words
}

/// The name of each line beside its last point, pushed apart where they would lie on each other.
fn names(shown: &[Shown<'_>], x: &Axis, y: &Axis, right: f64) -> String {
    let mut ends: Vec<(f64, f64, &Shown<'_>)> = shown
        .iter()
        .filter_map(|one| one.points.last().map(|point| (x.place(point.x), y.place(point.y), one)))
        .collect();
    ends.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.2.number.cmp(&b.2.number)));
    let places = apart(&ends.iter().map(|end| end.1).collect::<Vec<_>>());
    let mut body = String::new();
    for ((at_x, at_y, one), place) in ends.iter().zip(places) {
        body.push_str(&format!(
            "<path class=\"lead\" stroke=\"var(--c{0})\" d=\"M{1:.1} {at_y:.1}L{2:.1} {place:.1}\"/>\
             <rect x=\"{2:.1}\" y=\"{3:.1}\" width=\"8\" height=\"3\" fill=\"var(--c{0})\"/>\
             <text class=\"name\" x=\"{4:.1}\" y=\"{5:.1}\">{6}</text>",
            one.number % COLOURS,
            at_x + 4.0,
            right + 12.0,
            place - 1.5,
            right + 24.0,
            place + 4.0,
            html(&one.series.name)
        ));
    }
    body
}

/// Heights as near to the ordered `wanted` ones as they can be at a distance of [`LINE`]: neighbours that collide form a
/// block around the mean of what they want.
fn apart(wanted: &[f64]) -> Vec<f64> {
    let mut blocks: Vec<(f64, usize)> = Vec::new();
    for &want in wanted {
        let mut block = (want, 1_usize);
        while let Some(&(mean, count)) = blocks.last() {
            let reach = LINE * (count + block.1) as f64 / 2.0;
            if block.0 - mean >= reach {
                break;
            }
            blocks.pop();
            let both = (count + block.1) as f64;
            block = ((mean * count as f64 + block.0 * block.1 as f64) / both, count + block.1);
        }
        blocks.push(block);
    }
    let spread = |(mean, count): (f64, usize)| {
        (0..count).map(move |n| mean + LINE * (n as f64 - (count as f64 - 1.0) / 2.0))
    };
    let places: Vec<f64> = blocks.into_iter().flat_map(spread).collect();
    // All of it within the picture, if it fits.
    let (first, last) = (places.first().copied().unwrap_or(0.0), places.last().copied().unwrap_or(0.0));
    let down = (TOP - 4.0 - first).max(0.0).min((HEIGHT - BOTTOM - last).max(0.0));
    let up = (last - (HEIGHT - BOTTOM)).max(0.0).min((first - TOP + 4.0).max(0.0));
    places.into_iter().map(|place| place + down - up).collect()
}

/// For those who cannot see it.
fn in_words(figure: &Figure, shown: &[Shown<'_>]) -> String {
    let mut words = format!("{}: {} over {}", figure.title, figure.y_label, figure.x_label);
    for one in shown {
        if let (Some(first), Some(last)) = (one.points.first(), one.points.last()) {
            words.push_str(&format!(
                "; {} from {} at {} to {} at {}",
                one.series.name,
                significant(first.y),
                significant(first.x),
                significant(last.y),
                significant(last.x)
            ));
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(points: &[(f64, f64)]) -> Figure {
        let points = points.iter().map(|&(x, y)| Point::exact(x, y)).collect();
        Figure { series: vec![Series { name: "a < b".into(), points }], ..Figure::default() }
    }

    #[test]
    fn a_name_cannot_break_the_drawing() {
        let drawn = svg(&figure(&[(1.0, 2.0), (2.0, 3.0)]));
        assert!(drawn.contains("a &lt; b") && !drawn.contains("a < b"), "{drawn}");
    }

    #[test]
    fn what_a_logarithm_cannot_show_is_left_out() {
        let mut figure = figure(&[(0.0, 1.0), (1.0, 0.0), (1.0, 10.0), (f64::NAN, 1.0)]);
        (figure.log_x, figure.log_y) = (true, true);
        let drawn = svg(&figure);
        assert_eq!(drawn.matches("<circle").count(), 1, "{drawn}");
        assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
    }

    #[test]
    fn nothing_to_show_is_a_drawing_too() {
        assert!(svg(&Figure::default()).ends_with("</svg>\n"));
    }

    #[test]
    fn names_keep_their_order_and_their_distance() {
        let places = apart(&[100.0, 101.0, 102.0, 300.0]);
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= LINE - 1e-9), "{places:?}");
        assert!((places[1] - 101.0).abs() < 1e-9 && (places[3] - 300.0).abs() < 1e-9, "{places:?}");
        let many = apart(&[400.0; 12]);
        assert!(many[11] <= HEIGHT - BOTTOM + 1e-9, "{many:?}");
    }
}
