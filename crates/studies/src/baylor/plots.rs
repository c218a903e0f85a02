//! Figures 6 to 13: what each shows of the simulations.

use pio_report::chart::{self, Figure, Series};
use pio_sim::kernel::Estimate;

use super::points::{
    LARGE, RATIOS, SYSTEMS, equal_data, io_node_rates, io_nodes, labels, labels_of_systems, loads, nodes,
    sizes,
};
use super::{Options, Outcomes, Point};

/// A figure, or one panel of it, in the unit that suits its values.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// The vertical axis's unit; empty for a ratio.
    pub unit: &'static str,
    /// Its lines.
    pub figure: Figure,
}

/// A line of a figure: what it is of, and its points, in seconds or as a ratio.
struct Line {
    name: String,
    points: Vec<(f64, Estimate)>,
}

/// The panels of a figure.
pub fn plots(figure: u32, options: &Options, outcomes: &Outcomes) -> Vec<Plot> {
    let with = Maker { figure, options, outcomes };
    match figure {
        6 => with.io_node(),
        7 => with.over_io_nodes(&[
            ("request", "Read request time", Outcomes::read_request),
            ("response", "Read response time", Outcomes::read_response),
        ]),
        8 => with.over_io_nodes(&[
            ("read", "Read processing time", Outcomes::read_processing),
            ("write", "Write processing time", Outcomes::write_processing),
        ]),
        9 => with.by_size(),
        10 => with.over_nodes(),
        11 => with.by_load(&[
            ("request", "Read request time", Outcomes::read_request),
            ("response", "Read response time", Outcomes::read_response),
        ]),
        12 => with.by_load(&[("", "Read processing time", Outcomes::read_processing)]),
        13 => with.normalised(),
        _ => Vec::new(),
    }
}

impl Outcomes {
    /// A read's request time at a point.
    pub fn read_request(&self, point: Point) -> Option<Estimate> {
        self.at(point)?.measured.read_request
    }

    /// A read's response time at a point.
    pub fn read_response(&self, point: Point) -> Option<Estimate> {
        self.at(point)?.measured.read_response
    }

    /// A message's processing time at a point.
    pub fn message(&self, point: Point) -> Option<Estimate> {
        self.at(point)?.measured.message
    }

    /// The same as a multiple of what it is without I/O.
    pub fn normalised_message(&self, point: Point) -> Option<Estimate> {
        let with = self.at(point)?.measured.message?;
        let alone = Point { flops_per_byte: None, io_nodes: point.nodes / 2, ..point };
        let without = self.message(alone)?;
        let relative = with.relative_half_width().hypot(without.relative_half_width());
        let mean = with.mean / without.mean;
        Some(Estimate { mean, half_width: mean * relative, ..with })
    }
}

/// A quantity: the panel's name, its title, and how to get it.
type Quantity = (&'static str, &'static str, fn(&Outcomes, Point) -> Option<Estimate>);

struct Maker<'a> {
    figure: u32,
    options: &'a Options,
    outcomes: &'a Outcomes,
}

const IO_NODES: &str = "I/O nodes";

/// A vertical axis, and what seconds are times its unit.
struct Axis {
    y_label: String,
    unit: &'static str,
    scale: f64,
}

impl Maker<'_> {
    /// A plot of times.
    fn plot(&self, panel: String, title: String, x_label: &'static str, lines: Vec<Line>) -> Plot {
        let most =
            lines.iter().flat_map(|line| &line.points).map(|(_, found)| found.mean).fold(0.0, f64::max);
        let (unit, scale) = if most < 1e-3 { ("µs", 1e6) } else { ("ms", 1e3) };
        let y_label = format!("mean time, {unit}");
        self.scaled(panel, title, x_label, lines, Axis { y_label, unit, scale })
    }

    fn scaled(
        &self,
        panel: String,
        title: String,
        x_label: &'static str,
        lines: Vec<Line>,
        Axis { y_label, unit, scale }: Axis,
    ) -> Plot {
        let panel = if panel.is_empty() { panel } else { format!("-{panel}") };
        let point = |(x, found): (f64, Estimate)| chart::Point {
            x,
            y: found.mean * scale,
            low: (found.mean - found.half_width) * scale,
            high: (found.mean + found.half_width) * scale,
        };
        let lines = lines.into_iter().filter(|line| !line.points.is_empty());
        let figure = Figure {
            name: format!("figure-{:02}{panel}", self.figure),
            title: format!("Figure {}: {title}", self.figure),
            x_label: x_label.to_owned(),
            y_label,
            series: lines
                .map(|line| Series { name: line.name, points: line.points.into_iter().map(point).collect() })
                .collect(),
            ..Figure::default()
        };
        Plot { unit, figure }
    }

    fn io_node(&self) -> Vec<Plot> {
        let rates = io_node_rates(self.options);
        let mut sizes: Vec<u64> = rates.iter().map(|(size, _)| *size).collect();
        sizes.dedup();
        sizes.into_iter().map(|size| self.io_node_of(size, &rates)).collect()
    }

    fn io_node_of(&self, size: u64, rates: &[(u64, f64)]) -> Plot {
        let kinds = [("read hit", true, true), ("write hit", false, true), ("read miss", true, false)];
        let kinds = kinds.into_iter().chain([("write miss", false, false)]);
        let lines = kinds.map(|(name, is_read, is_hit)| Line {
            name: name.to_owned(),
            points: rates
                .iter()
                .filter(|(of, _)| *of == size)
                .filter_map(|&(_, per_s)| {
                    Some((per_s, self.outcomes.io_node(size, per_s)?.of(is_read, is_hit)))
                })
                .collect(),
        });
        let title = format!("I/O node processing times, requests of {}", bytes(size));
        self.plot(bytes(size).replace(' ', ""), title, "I/O requests/s at the node", lines.collect())
    }

    fn over_io_nodes(&self, quantities: &[Quantity]) -> Vec<Plot> {
        let mut plots = Vec::new();
        for nodes in nodes(self.options, 64) {
            for &size in &sizes(self.options) {
                for (panel, title, of) in quantities {
                    let line = |label: &f64| Line {
                        name: format!("F/B {label}"),
                        points: self.along(
                            nodes,
                            |io_nodes| Point {
                                nodes,
                                io_nodes,
                                flops_per_byte: Some(*label),
                                request_bytes: size,
                                load: 0.0,
                            },
                            *of,
                        ),
                    };
                    let title = format!("{title}, {nodes} nodes, requests of {}", bytes(size));
                    let lines = labels(self.options).iter().map(line).collect();
                    plots.push(self.plot(self.panel(panel, nodes, size), title, IO_NODES, lines));
                }
            }
        }
        plots
    }

    fn by_size(&self) -> Vec<Plot> {
        let mut plots = Vec::new();
        for nodes in nodes(self.options, 64) {
            let mut lines = Vec::new();
            for (size, labels) in equal_data(self.options) {
                for label in labels {
                    let point = |io_nodes| Point {
                        nodes,
                        io_nodes,
                        flops_per_byte: Some(label),
                        request_bytes: size,
                        load: 0.0,
                    };
                    lines.push(Line {
                        name: format!("{}, F/B {label:.1}", bytes(size)),
                        points: self.along(nodes, point, Outcomes::read_processing),
                    });
                }
            }
            let title = format!("Read processing time, {nodes} nodes, equal data a second");
            plots.push(self.plot(self.panel("", nodes, LARGE), title, IO_NODES, lines));
        }
        plots
    }

    fn over_nodes(&self) -> Vec<Plot> {
        let systems = self.options.nodes.clone().unwrap_or_else(|| SYSTEMS.into());
        let quantities: [Quantity; 2] = [
            ("read", "Read processing time", Outcomes::read_processing),
            ("write", "Write processing time", Outcomes::write_processing),
        ];
        let mut plots = Vec::new();
        for &size in &sizes(self.options) {
            for (panel, title, of) in quantities {
                let mut lines = Vec::new();
                for ratio in RATIOS {
                    for label in labels_of_systems(self.options) {
                        let point = |nodes: u32| Point {
                            nodes,
                            io_nodes: nodes / 2 / ratio,
                            flops_per_byte: Some(label),
                            request_bytes: size,
                            load: 0.0,
                        };
                        let points = systems
                            .iter()
                            .filter_map(|&nodes| Some((f64::from(nodes), of(self.outcomes, point(nodes))?)));
                        lines.push(Line {
                            name: format!("F/B {label}, ratio {ratio}"),
                            points: points.collect(),
                        });
                    }
                }
                let title = format!("{title}, requests of {}", bytes(size));
                plots.push(self.plot(self.panel(panel, 0, size), title, "nodes", lines));
            }
        }
        plots
    }

    fn by_load(&self, quantities: &[Quantity]) -> Vec<Plot> {
        let mut plots = Vec::new();
        for nodes in nodes(self.options, 32) {
            for &size in &sizes(self.options) {
                for (panel, title, of) in quantities {
                    let lines = self.lines_by_load(nodes, size, &loads(self.options), *of);
                    let title = format!("{title}, {nodes} nodes, requests of {}", bytes(size));
                    plots.push(self.plot(self.panel(panel, nodes, size), title, IO_NODES, lines));
                }
            }
        }
        plots
    }

    fn normalised(&self) -> Vec<Plot> {
        let mut plots = Vec::new();
        let loads: Vec<f64> = loads(self.options).into_iter().filter(|load| *load > 0.0).collect();
        for nodes in nodes(self.options, 32) {
            for &size in &sizes(self.options) {
                let lines = self.lines_by_load(nodes, size, &loads, Outcomes::normalised_message);
                let title = format!("Message time with I/O over that without, {nodes} nodes");
                let axis = Axis { y_label: "normalised time".to_owned(), unit: "", scale: 1.0 };
                plots.push(self.scaled(self.panel("", nodes, size), title, IO_NODES, lines, axis));
            }
        }
        plots
    }

    fn lines_by_load(
        &self,
        nodes: u32,
        size: u64,
        loads: &[f64],
        of: fn(&Outcomes, Point) -> Option<Estimate>,
    ) -> Vec<Line> {
        let mut lines = Vec::new();
        for &load in loads {
            for label in labels(self.options) {
                let point = |io_nodes| Point {
                    nodes,
                    io_nodes,
                    flops_per_byte: Some(label),
                    request_bytes: size,
                    load,
                };
                lines.push(Line {
                    name: format!("load {load}, F/B {label}"),
                    points: self.along(nodes, point, of),
                });
            }
        }
        lines
    }

    /// A quantity over the numbers of I/O nodes.
    fn along(
        &self,
        nodes: u32,
        point: impl Fn(u32) -> Point,
        of: fn(&Outcomes, Point) -> Option<Estimate>,
    ) -> Vec<(f64, Estimate)> {
        io_nodes(self.options, nodes)
            .into_iter()
            .filter_map(|count| Some((f64::from(count), of(self.outcomes, point(count))?)))
            .collect()
    }

    /// The name of a panel: what is not the paper's is part of it, if there are several.
    fn panel(&self, quantity: &str, nodes: u32, size: u64) -> String {
        let several = |count: Option<usize>| count.is_some_and(|count| count > 1);
        let mut words = Vec::new();
        if !quantity.is_empty() {
            words.push(quantity.to_owned());
        }
        if nodes > 0 && several(self.options.nodes.as_ref().map(Vec::len)) {
            words.push(format!("{nodes}nodes"));
        }
        if several(self.options.request_bytes.as_ref().map(Vec::len)) {
            words.push(bytes(size).replace(' ', ""));
        }
        words.join("-")
    }
}

/// As the paper has it: `4 KB` are 4096 bytes.
fn bytes(size: u64) -> String {
    if size.is_multiple_of(1024) { format!("{} KB", size / 1024) } else { format!("{size} B") }
}
