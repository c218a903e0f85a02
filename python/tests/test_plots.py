"""Plots, as matplotlib's artists."""

import sys
from unittest import mock

import pioscope
from pioscope import _plots
from support import InFolder, needs


@needs("matplotlib")
class Plots(InFolder):
    def setUp(self):
        import matplotlib
        from matplotlib import pyplot

        matplotlib.use("Agg")
        self.addCleanup(pyplot.close, "all")
        self.explanation = pioscope.open("run.pio").explain()

    def test_a_prediction_has_a_bar_for_each_part_of_its_time(self):
        prediction = pioscope.open("run.pio").predict("sp-argonne")
        axes = prediction.plot()
        self.assertEqual([bar.get_width() for bar in axes.patches], list(prediction.breakdown_s.values()))
        self.assertEqual([label.get_text() for label in axes.get_yticklabels()], list(prediction.breakdown_s))
        self.assertIn("sp-argonne, two-phase", axes.get_title())
        # Parts below a thousandth are left out.
        self.assertAlmostEqual(sum(prediction.breakdown_s.values()), prediction.io_time_mean_s, delta=prediction.io_time_mean_s / 50)

    def test_the_data_rate_has_a_line_for_what_moved(self):
        axes = self.explanation.plot_rate()
        self.assertEqual([line.get_label() for line in axes.patches], ["written"])
        values, edges, _ = axes.patches[0].get_data()
        self.assertEqual(list(values), self.explanation.rate["written_bytes_per_s"].to_pylist())
        moved = sum(rate * (end - start) for rate, start, end in zip(values, edges, edges[1:]))
        written = sum(row["written_bytes"] for row in self.explanation.processes.to_pylist())
        self.assertAlmostEqual(moved, written, delta=written / 1e6)
        self.assertEqual(axes.yaxis.get_major_formatter()(2.5e7), "25 MB/s")

    def test_findings_have_a_bar_each_on_the_users_own_axes(self):
        from matplotlib.figure import Figure

        mine = Figure().subplots()
        axes = self.explanation.plot_findings(mine)
        self.assertIs(axes, mine)
        known = [finding.lost_s for finding in self.explanation.findings if finding.lost_s is not None]
        self.assertEqual([bar.get_width() for bar in axes.patches], known)
        self.assertGreater(len(known), 0)

    def test_without_findings_there_is_no_scale_of_costs(self):
        axes = _plots.bars(None, {}, "What costs time", "s")
        self.assertEqual([text.get_text() for text in axes.texts], ["none"])
        self.assertEqual([*axes.get_xticks(), *axes.get_yticks()], [])

    def test_without_matplotlib_it_is_named(self):
        with mock.patch.dict(sys.modules, {"matplotlib": None}):
            with self.assertRaisesRegex(ImportError, "pip install matplotlib"):
                self.explanation.plot_rate()
