//! Lines over logarithmic axes as SVG.

use std::fmt::Write as _;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 460.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 190.0;
const TOP: f64 = 20.0;
const BOTTOM: f64 = 50.0;
/// Told apart by people who see colours otherwise, too (Okabe and Ito).
const COLOURS: [&str; 6] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];

/// A named row of points, all greater than 0.
pub(crate) struct Line {
    pub(crate) name: &'static str,
    pub(crate) points: Vec<(f64, f64)>,
}

struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Axis {
    /// From one power of ten to another.
    fn around(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Self {
        let (low, high) =
            values.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
        Self { low: low.log10().floor(), high: high.log10().ceil(), from, to }
    }

    fn at(&self, value: f64) -> f64 {
        self.from + (value.log10() - self.low) / (self.high - self.low).max(1.0) * (self.to - self.from)
    }

    fn powers(&self) -> impl Iterator<Item = i32> {
        self.low as i32..=self.high as i32
    }
}

/// CPU milliseconds over chunks.
pub(crate) fn plot(lines: &[Line]) -> String {
    let points = || lines.iter().flat_map(|line| &line.points);
    let x = Axis::around(points().map(|point| point.0), LEFT, WIDTH - RIGHT);
    let y = Axis::around(points().map(|point| point.1), HEIGHT - BOTTOM, TOP);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    let mut draw = |text: String| {
        // Writing to a string does not fail.
        let _written = writeln!(svg, "{text}");
    };
    for power in x.powers() {
        let (at, value) = (x.at(10_f64.powi(power)), 10_f64.powi(power));
        draw(format!("<path d=\"M{at:.1} {TOP}V{:.1}\" stroke=\"#ddd\"/>", HEIGHT - BOTTOM));
        draw(format!(
            "<text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{value}</text>",
            HEIGHT - BOTTOM + 18.0
        ));
    }
    for power in y.powers() {
        let (at, value) = (y.at(10_f64.powi(power)), 10_f64.powi(power));
        draw(format!("<path d=\"M{LEFT} {at:.1}H{:.1}\" stroke=\"#ddd\"/>", WIDTH - RIGHT));
        draw(format!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{value}</text>",
            LEFT - 8.0,
            at + 4.0
        ));
    }
    let (middle, side) = ((LEFT + WIDTH - RIGHT) / 2.0, (TOP + HEIGHT - BOTTOM) / 2.0);
    draw(format!("<text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">chunks</text>", HEIGHT - 10.0));
    draw(format!(
        "<text transform=\"translate(18 {side}) rotate(-90)\" text-anchor=\"middle\">CPU milliseconds</text>"
    ));
    for (line, colour) in lines.iter().zip(COLOURS) {
        let path: Vec<String> =
            line.points.iter().map(|point| format!("{:.1} {:.1}", x.at(point.0), y.at(point.1))).collect();
        draw(format!(
            "<path d=\"M{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            path.join("L")
        ));
        if let Some(last) = line.points.last() {
            let (at, height) = (x.at(last.0) + 6.0, y.at(last.1) + 4.0);
            draw(format!("<text x=\"{at:.1}\" y=\"{height:.1}\" fill=\"{colour}\">{}</text>", line.name));
        }
    }
    svg.push_str("</svg>\n");
    svg
}
