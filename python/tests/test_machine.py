"""Machines and generated workloads."""

import os
import pickle
from pathlib import Path
from unittest import mock

import pioscope
from support import InFolder


class Machines(InFolder):
    def test_a_change_is_predicted(self):
        workload, machine = pioscope.workload("ior-easy", {"ranks": 8}), pioscope.machine("sp-argonne")
        fewer = machine.with_({"storage.io.count": 1})
        self.assertEqual((machine.io_nodes, fewer.io_nodes, fewer.changes), (8, 1, {"storage.io.count": 1}))
        self.assertGreater(workload.predict(fewer).io_time_mean_s, 2 * workload.predict(machine).io_time_mean_s)
        self.assertEqual(workload.predict(machine), workload.predict("sp-argonne"))

    def test_changes_add_up_and_are_checked(self):
        machine = pioscope.machine("sp-argonne")
        changed = machine.with_({"storage.io.placement": "clustered"}).with_({"network.link.bandwidth": "10 MB/s"})
        self.assertEqual(list(changed.changes), ["storage.io.placement", "network.link.bandwidth"])
        self.assertIn("10 MB/s", changed.to_toml())
        with self.assertRaisesRegex(pioscope.Error, "unknown key 'storage.io.cuont'"):
            machine.with_({"storage.io.cuont": 4})
        with self.assertRaisesRegex(pioscope.Error, "storage.io.count = 0"):
            machine.with_({"storage.io.count": 0})

    def test_values_are_written_as_a_description_has_them(self):
        torus = pioscope.machine("paragon-caltech")
        for changes in [{"network.dimensions": [66, 8]}, {"storage.io.dedicated": True}]:
            self.assertIsInstance(torus.with_(changes), pioscope.Machine)

    def test_a_description_goes_to_a_file_and_back(self):
        machine = pioscope.machine("pios-64").with_({"storage.io.count": 2})
        machine.save("mine.toml")
        again = pioscope.machine("mine.toml")
        self.assertEqual((again, again.io_nodes), (machine, 2))
        self.assertEqual(pioscope.Machine.from_toml(machine.to_toml()), machine)
        self.assertNotEqual(again, pioscope.machine("pios-64"))
        with self.assertRaisesRegex(pioscope.Error, "the description"):
            pioscope.Machine.from_toml("name = 3")

    def test_machines_and_workloads_can_be_sent(self):
        machine = pioscope.machine("sp-argonne").with_({"storage.io.count": 2})
        again = pickle.loads(pickle.dumps(machine))
        self.assertEqual((again, again.changes), (machine, machine.changes))
        for workload in [pioscope.open("run.pio").workload(), pioscope.workload("ior-hard", {"ranks": 4})]:
            sent = pickle.loads(pickle.dumps(workload))
            self.assertEqual(sent.predict(machine), workload.predict(machine))

    def test_what_is_sent_stays_the_same_trace(self):
        copied = Path("copied.pio")
        copied.write_bytes(Path("run.pio").read_bytes())
        trace = pioscope.open("copied.pio")
        sent = pickle.dumps([trace, trace.workload()])
        # The same file, whatever folder is the current one.
        os.mkdir("elsewhere")
        pioscope.workload("ior-hard", {"ranks": 4}).save("elsewhere/copied.pio")
        os.chdir("elsewhere")
        self.addCleanup(os.chdir, self.folder)
        again, workload = pickle.loads(sent)
        self.assertEqual((len(again), len(workload)), (len(trace), len(trace.workload())))
        self.assertEqual(again.path, str(self.folder / "copied.pio"))
        self.assertEqual(len(pickle.loads(pickle.dumps(trace.workload()))), len(workload))
        # Another trace in its place was taken for it.
        os.replace("copied.pio", self.folder / "copied.pio")
        from pioscope import _workload
        _workload._again.cache_clear()
        for what in [trace, trace.workload()]:
            with self.assertRaisesRegex(pioscope.Error, "copied.pio: has changed since it was opened"):
                pickle.loads(pickle.dumps(what))
        self.assertEqual(len(trace.workload()), len(workload))

    def test_a_workload_is_what_its_trace_says(self):
        workload = pioscope.workload("ior-easy", {"ranks": 2, "transfer": "1 MiB"})
        trace = workload.save("easy.pio")
        self.assertEqual(trace.notes["transfer"], "1 MiB")
        self.assertEqual(trace.predict("sp-argonne").makespan_s, workload.predict("sp-argonne").makespan_s)
        with self.assertRaisesRegex(pioscope.Error, "expected one of"):
            pioscope.workload("ior-hardest")
        with self.assertRaisesRegex(pioscope.Error, "no parameter rank"):
            pioscope.workload("ior-hard", {"rank": 4})

    def test_notes_of_the_same_name_are_the_lines_of_one_text(self):
        workload = pioscope.workload("ior-hard", {"ranks": 2})
        workload._native.save("told.pio", [("told", "first"), ("seed", "7"), ("told", "second")])
        notes = pioscope.open("told.pio").notes
        self.assertEqual((notes["told"], notes["seed"]), ("first\nsecond", "7"))

    def test_here_must_be_calibrated(self):
        with mock.patch.dict(os.environ, XDG_CACHE_HOME=str(self.folder / "cache")):
            for find in [lambda: pioscope.open("run.pio").predict("here"), lambda: pioscope.machine("here")]:
                with self.assertRaisesRegex(pioscope.Error, "not calibrated"):
                    find()
