"""What a prompt and a notebook show."""

import html.parser

import pioscope
from support import InFolder, needs


class Reader(html.parser.HTMLParser):
    """Tags in order, and the text; fails where tags are not closed in turn."""

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.text = [], [], ""
        self.feed(page)
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


class Shown(InFolder):
    def setUp(self):
        self.trace = pioscope.open("run.pio")

    def test_everything_has_a_short_line(self):
        explanation = self.trace.explain()
        for thing in [self.trace, explanation, explanation.findings[0], self.trace.predict("sp-argonne"),
                      pioscope.machine("sp-argonne"), self.trace.workload(), pioscope.diff(self.trace, self.trace),
                      explanation.figures["sizes"]]:
            self.assertRegex(repr(thing), rf"^<pioscope\.{type(thing).__name__}\b.{{3,250}}>$")

    def test_the_line_has_what_matters(self):
        prediction = self.trace.predict("sp-argonne", hints={"cb_nodes": 2})
        self.assertRegex(repr(prediction), r"on sp-argonne, two-phase \(cb_nodes=2\): [\d.]+ m?s of I/O, 8 ranks>")
        self.assertIn(f"{len(self.trace):,} events", repr(self.trace))
        explanation = self.trace.explain()
        self.assertIn(f"{len(explanation.findings)} finding", repr(explanation))
        self.assertIn(explanation.findings[0].kind, repr(explanation))
        self.assertIn("8 I/O nodes", repr(pioscope.machine("sp-argonne")))

    def test_a_notebook_shows_tables(self):
        explanation = self.trace.explain(["sp-argonne"])
        changed = pioscope.machine("sp-argonne").with_({"storage.io.count": 3})
        for thing, expected in [
            (self.trace, "run.pio"),
            (self.trace.predict("sp-argonne"), "two-phase"),
            (self.trace.workload(), "ranks"),
            (changed, "storage.io.count (changed)"),
            (explanation.findings, explanation.findings[0].title),
            (explanation.findings[0], "evidence"),
            (pioscope.diff(self.trace, self.trace), "mpi-io write"),
        ]:
            page = Reader(thing._repr_html_())
            self.assertEqual(page.tags[:2], ["table", "caption"])
            self.assertIn(expected, page.text)

    def test_names_in_a_notebook_are_text(self):
        with open("calls.csv", "w") as file:
            file.write("start_s,elapsed_s,call,rank,file,offset,size\n")
            file.writelines(f"{i},0.9,write,0,/d/<b>&x,{i * 4},4\n" for i in range(200))
        trace = pioscope.open("calls.csv")
        findings = trace.explain().findings
        self.assertIn("/d/<b>&x", findings[0].files)
        for thing in [findings, findings[0]]:
            page = Reader(thing._repr_html_())
            self.assertIn("/d/<b>&x", page.text)
            self.assertNotIn("b", page.tags)

    def test_findings_are_a_list_and_a_table(self):
        findings = self.trace.explain().findings
        self.assertEqual(len(findings), findings.table.num_rows)
        self.assertEqual([finding.title for finding in findings], findings["title"].to_pylist())
        self.assertEqual(findings[-1].change, findings.to_pylist()[-1]["change"])
        self.assertEqual(len(findings[:1]), 1)
        costliest = findings[0]
        self.assertTrue(costliest.files[0].startswith("/"))
        self.assertLessEqual(set(costliest.ranks), set(range(8)))
        self.assertGreater(len(costliest.ranks), 0)
        self.assertIsNone(costliest.gain_s)

    @needs("pandas")
    def test_findings_are_a_frame(self):
        findings = self.trace.explain().findings
        self.assertEqual(list(findings.to_pandas()["kind"]), [finding.kind for finding in findings])

    def test_a_finding_knows_what_its_change_gains(self):
        explanation = self.trace.explain([pioscope.machine("sp-argonne"), "pios-64"])
        gains = explanation.gains.to_pylist()
        self.assertGreater(len(gains), 1)
        for finding in explanation.findings:
            own = [gain["before_s"] - gain["after_s"] for gain in gains if gain["title"] == finding.title]
            self.assertEqual(finding.gain_s, max(own, default=None))
