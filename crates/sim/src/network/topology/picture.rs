//! A network as a drawing: an SVG file that needs nothing else, light or dark as its reader's system is.
//!
//! Every topology says where its devices are ([`super::Routing::place`]); links are drawn from the channels, so what is
//! seen is what is simulated.

use std::fmt::Write;

use super::{Channel, Device, Topology};

/// Where a device is drawn: to the right and down, in units of the distance between neighbouring nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Place {
    pub(super) x: f64,
    pub(super) y: f64,
}

impl Place {
    pub(super) fn new(x: f64, y: f64) -> Place {
        Place { x, y }
    }
}

/// Distance between the rows of switches above so many nodes, so that links do not lie flat.
pub(super) fn rise(nodes: u32) -> f64 {
    (f64::from(nodes) / 9.0).clamp(3.0, 60.0)
}

const WIDTH: f64 = 860.0;
const MARGIN: f64 = 24.0;
const HEAD: f64 = 40.0;
/// Pixels between neighbouring nodes: as many as fill the width, but not fewer or more.
const LEAST_UNIT: f64 = 3.0;
const MOST_UNIT: f64 = 56.0;
/// Nodes have their numbers in them from here on.
const READABLE: f64 = 16.0;

const STYLE: &str = "\
svg{color-scheme:light dark;--page:#fff;--ink:#1d2125;--soft:#5d666f;--link:#a9b2ba;--node:#0072b2;--switch:#d55e00}\
@media(prefers-color-scheme:dark){svg{--page:#15181b;--ink:#e6e8ea;--soft:#9aa4ad;--link:#5b656e;\
--node:#3f9bdc;--switch:#ec7a28}}\
text{font:12px system-ui,\"Liberation Sans\",sans-serif;fill:var(--soft)}\
.title{font-size:15px;font-weight:600;fill:var(--ink)}.page{fill:var(--page)}\
.link{fill:none;stroke:var(--link);stroke-width:1}\
.node{fill:var(--node)}.switch{fill:var(--page);stroke:var(--switch);stroke-width:1.5}\
.number{fill:var(--page);text-anchor:middle;dominant-baseline:central}\
.name{fill:var(--ink);text-anchor:middle;dominant-baseline:central}";

impl Topology {
    /// The network as an SVG file: switches as squares, nodes as dots; each tells its number when pointed at.
    pub fn svg(&self) -> String {
        let drawing = Drawing::new(self);
        let (width, height) = (drawing.width, drawing.height);
        let links = self.wired.channels.iter().filter(|channel| self.is_drawn(channel)).count();
        let size = format!(
            "{}, {}, {}",
            counted(self.nodes().into(), "node"),
            counted(self.switches().into(), "switch"),
            counted(links as u64, "link")
        );
        let name = self.name.as_ref();
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" aria-label=\"{name}: {size}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\"><style>{STYLE}</style>\n\
             <rect class=\"page\" width=\"{width:.0}\" height=\"{height:.0}\"/>\n\
             <text x=\"{MARGIN}\" y=\"24\"><tspan class=\"title\">{name}</tspan> · {size}</text>\n"
        );
        // Writing to a String cannot fail.
        let _ = drawing.links(&mut out);
        let _ = drawing.switches(&mut out);
        let _ = drawing.nodes(&mut out);
        out.push_str("</svg>\n");
        out
    }

    /// Of the two directions of a link, one is drawn.
    fn is_drawn(&self, channel: &Channel) -> bool {
        let back = self.outgoing(channel.to.device).get(usize::from(channel.to.number));
        let has_back = back.is_some_and(|back| {
            let back = self.channel(*back);
            (back.from, back.to) == (channel.to, channel.from)
        });
        !has_back || channel.from < channel.to
    }
}

fn counted(count: u64, what: &str) -> String {
    let plural = if what.ends_with("ch") { "es" } else { "s" };
    format!("{count} {what}{}", if count == 1 { "" } else { plural })
}

/// A link from place to place, and how far its middle is from the straight line, as a part of its length.
struct Line {
    from: Place,
    to: Place,
    bend: f64,
}

impl Line {
    /// Where its middle is.
    fn middle(&self) -> Place {
        let (across, down) = (self.to.x - self.from.x, self.to.y - self.from.y);
        let (x, y) = ((self.from.x + self.to.x) / 2.0, (self.from.y + self.to.y) / 2.0);
        Place::new(x + down * self.bend, y - across * self.bend)
    }
}

/// Places in pixels.
struct Drawing<'t> {
    topology: &'t Topology,
    lines: Vec<Line>,
    unit: f64,
    /// What is at the left and top.
    origin: Place,
    width: f64,
    height: f64,
}

impl Drawing<'_> {
    fn new(topology: &Topology) -> Drawing<'_> {
        let devices = (0..topology.nodes()).map(Device::Node);
        let devices = devices.chain((0..topology.switches()).map(Device::Switch));
        let receivers = (0..topology.nodes()).filter_map(|node| topology.routing.receiver(node));
        let (mut least, mut most) =
            (Place::new(f64::INFINITY, f64::INFINITY), Place::new(-f64::INFINITY, -f64::INFINITY));
        let lines = lines(topology);
        let places = devices.map(|device| topology.routing.place(device)).chain(receivers);
        for place in places.chain(lines.iter().map(Line::middle)) {
            least = Place::new(least.x.min(place.x), least.y.min(place.y));
            most = Place::new(most.x.max(place.x), most.y.max(place.y));
        }
        // Half a unit around, so that nothing is cut.
        let (wide, high) = (most.x - least.x + 1.0, most.y - least.y + 1.0);
        let unit = ((WIDTH - 2.0 * MARGIN) / wide.max(high * 0.9)).clamp(LEAST_UNIT, MOST_UNIT);
        Drawing {
            topology,
            lines,
            unit,
            origin: Place::new(least.x - 0.5, least.y - 0.5),
            width: (wide * unit + 2.0 * MARGIN).max(420.0),
            height: high * unit + MARGIN + HEAD,
        }
    }

    fn at(&self, place: Place) -> (f64, f64) {
        let x = (place.x - self.origin.x) * self.unit + MARGIN;
        (x, (place.y - self.origin.y) * self.unit + HEAD)
    }

    fn links(&self, out: &mut String) -> std::fmt::Result {
        out.push_str("<path class=\"link\" d=\"");
        for line in &self.lines {
            let ((x, y), (end_x, end_y)) = (self.at(line.from), self.at(line.to));
            if line.bend == 0.0 {
                write!(out, "M{x:.1} {y:.1}L{end_x:.1} {end_y:.1}")?;
            } else {
                // The control point of a parabola is as far from its middle as that is from the straight line.
                let (middle_x, middle_y) = self.at(line.middle());
                let control = (2.0 * middle_x - (x + end_x) / 2.0, 2.0 * middle_y - (y + end_y) / 2.0);
                write!(out, "M{x:.1} {y:.1}Q{:.1} {:.1} {end_x:.1} {end_y:.1}", control.0, control.1)?;
            }
        }
        out.push_str("\"/>\n");
        Ok(())
    }

    fn switches(&self, out: &mut String) -> std::fmt::Result {
        let side = (self.unit * 0.62).clamp(3.0, 18.0);
        for switch in 0..self.topology.switches() {
            let (x, y) = self.at(self.topology.routing.place(Device::Switch(switch)));
            let name = self.topology.routing.name(switch);
            let width = name.map_or(side, |name| name.chars().count() as f64 * 7.0 + 10.0);
            writeln!(
                out,
                "<rect class=\"switch\" x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{side:.1}\" rx=\"2\">\
                 <title>switch {switch}</title></rect>",
                x - width / 2.0,
                y - side / 2.0
            )?;
            if let Some(name) = name {
                let name = name.replace('&', "&amp;").replace('<', "&lt;");
                writeln!(out, "<text class=\"name\" x=\"{x:.1}\" y=\"{y:.1}\">{name}</text>")?;
            }
        }
        Ok(())
    }

    fn nodes(&self, out: &mut String) -> std::fmt::Result {
        let radius = (self.unit * 0.36).clamp(1.2, 9.0);
        for node in 0..self.topology.nodes() {
            let place = self.topology.routing.place(Device::Node(node));
            for place in [Some(place), self.topology.routing.receiver(node)].into_iter().flatten() {
                let (x, y) = self.at(place);
                writeln!(
                    out,
                    "<circle class=\"node\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius:.1}\"><title>node {node}</title></circle>"
                )?;
                if self.unit >= READABLE {
                    let size = (radius * 1.1).min(10.0);
                    writeln!(
                        out,
                        "<text class=\"number\" x=\"{x:.1}\" y=\"{y:.1}\" style=\"font-size:{size:.1}px\">{node}</text>"
                    )?;
                }
            }
        }
        Ok(())
    }
}

/// Every link once. Those beside each other between the same two devices are bent apart, as are those that go round the
/// back of others.
fn lines(topology: &Topology) -> Vec<Line> {
    let routing = &topology.routing;
    let mut lines = Vec::new();
    let mut before = None;
    let mut beside = 0.0;
    for channel in topology.wired.channels.iter().filter(|channel| topology.is_drawn(channel)) {
        let (from, to) = (channel.from.device, channel.to.device);
        let receiver = match to {
            Device::Node(node) => routing.receiver(node),
            Device::Switch(_) => None,
        };
        beside = if before == Some((from, to)) { beside + 0.08 } else { 0.0 };
        before = Some((from, to));
        lines.push(Line {
            from: routing.place(from),
            to: receiver.unwrap_or_else(|| routing.place(to)),
            bend: if routing.is_bent(from, to) { 0.12 } else { beside },
        });
    }
    lines
}
