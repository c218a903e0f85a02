"""Arguments that are not what they should be: the parameter is named, what is expected, and what was given."""

import pioscope
from support import InFolder

U32, U64 = 2**32 - 1, 2**64 - 1
TRACE = "pioscope.open('run.pio')"

# A number that is out of range.
OUT_OF_RANGE = {
    "pioscope.workload('ior-hard', seed=-1)": rf"seed: expected a whole number from 0 to {U64}, not -1",
    f"pioscope.workload('ior-hard', seed={U64 + 1})": rf"seed: .* not {U64 + 1}",
    "pioscope.workload('ior-hard', {'ranks': -4})": "ranks",
    "pioscope.workload('ior-hard', {'ranks': 10**30})": "ranks",
    f"{TRACE}.predict('sp-argonne', ranks_per_node=-1)": rf"ranks_per_node: expected a whole number from 1 to {U32}, not -1",
    f"{TRACE}.predict('sp-argonne', ranks_per_node=0)": "ranks_per_node: .* not 0",
    f"{TRACE}.predict('sp-argonne', ranks_per_node=2**40)": "ranks_per_node: ",
    f"{TRACE}.predict('sp-argonne', cpu_speed=0)": "cpu_speed: expected a number above 0, not 0",
    f"{TRACE}.predict('sp-argonne', cpu_speed=float('nan'))": "cpu_speed: expected a number above 0, not nan",
    f"{TRACE}.predict('sp-argonne', cpu_speed=10**400)": "cpu_speed: expected a number above 0 that a float can hold",
    f"{TRACE}.predict('sp-argonne', hints={{'cb_nodes': -1}})": "cb_nodes",
    f"{TRACE}.predict('sp-argonne', hints={{'cb_nodes': 10**30}})": "cb_nodes",
    f"{TRACE}.to_parquet('out', rows_per_file=0)": "rows_per_file: expected a whole number from 1 to",
    f"{TRACE}.to_parquet('out', rows_per_file=-5)": "rows_per_file: .* not -5",
    "pioscope.sweep('run.pio', 'sp-argonne', ranks_per_node=-2)": "ranks_per_node: .* not -2",
    "pioscope.sweep('run.pio', [], cpu_speed=-1)": "cpu_speed: ",
    "pioscope.machine('sp-argonne').with_({'storage.io.count': -1})": "storage.io.count",
    "pioscope.machine('sp-argonne').with_({'storage.io.count': 10**30})": "storage.io.count",
    "pioscope.mark('step', -1)": f"number: expected a whole number from 0 to {U64}, not -1",
    "pioscope.phase('step', 2**64).__enter__()": "number: ",
}

# Something of another type.
OF_ANOTHER_TYPE = {
    "pioscope.workload('ior-hard', seed='one')": "seed: expected a whole number .* not 'one'",
    "pioscope.workload('ior-hard', seed=1.5)": "seed: .* not 1.5",
    "pioscope.workload(7)": "name: expected a text such as 'ior-hard', not 7",
    "pioscope.workload('ior-hard', ['ranks=4'])": "parameters: expected a dictionary such as .*, not",
    f"{TRACE}.predict('sp-argonne', strategy=None)": "strategy: expected a text such as 'two-phase', not None",
    f"{TRACE}.predict('sp-argonne', cpu_speed='fast')": "cpu_speed: expected a number above 0, not 'fast'",
    f"{TRACE}.predict('sp-argonne', hints='cb_nodes=4')": "hints: expected a dictionary such as",
    f"{TRACE}.predict('sp-argonne', hints={{4: 'cb_nodes'}})": "hints: expected names as keys",
    f"{TRACE}.predict(None)": "expected a machine",
    f"{TRACE}.explain(5)": "expected a machine",
    f"{TRACE}.to_parquet('out', rows_per_file='many')": "rows_per_file: expected a whole number",
    "pioscope.sweep(5, 'sp-argonne')": "what: expected a trace, the path of one or a workload, not 5",
    "pioscope.sweep('run.pio', 'sp-argonne', hints=['cb_nodes'])": "hints: expected a dictionary",
    "pioscope.sweep('run.pio', 'sp-argonne', strategies=5)": "strategy: expected a text",
    "pioscope.machine('sp-argonne').with_('storage.io.count=4')": "changes: expected a dictionary",
    "pioscope.machine('sp-argonne').with_({'storage.io.count': None})": "storage.io.count: expected a text, a number",
    "pioscope.Machine.from_toml(4)": "text: expected a text",
    "pioscope.mark(5)": "name: expected a text such as 'epoch', not 5",
    "pioscope.mark('step', 1.5)": "number: expected a whole number .* not 1.5",
    "pioscope.record('./program', 'out.pio')": "expected a list of words",
}

# A name that is not known, or a file that is not there.
NOT_KNOWN = {
    "pioscope.open('nowhere.pio')": "nowhere.pio: ",
    "pioscope.workload('nothing')": "nothing",
    "pioscope.workload('ior-hard', {'rank': 4})": "rank",
    f"{TRACE}.predict('sp-argonne', strategy='fast')": "fast",
    f"{TRACE}.predict('sp-argonne', hints={{'cb_node': 4}})": "cb_node",
    f"{TRACE}.predict('nowhere')": "no machine 'nowhere'",
    f"{TRACE}.to_parquet('out', partition_by='nothing')": "partition_by: no column 'nothing'",
    "pioscope.Machine.from_toml('name = 5')": "the description",
    "pioscope.diff('run.pio', 'nowhere.pio')": "nowhere.pio: ",
}


class WrongInput(InFolder):
    def test_what_is_out_of_range_is_an_error_and_a_value_error(self):
        for line, said in OUT_OF_RANGE.items():
            with self.subTest(line), self.assertRaisesRegex(pioscope.Error, said) as raised:
                eval(line)
            self.assertIsInstance(raised.exception, ValueError)

    def test_what_is_of_another_type_is_a_type_error(self):
        for line, said in OF_ANOTHER_TYPE.items():
            with self.subTest(line), self.assertRaisesRegex(TypeError, said):
                eval(line)

    def test_what_is_not_known_is_an_error(self):
        for line, said in NOT_KNOWN.items():
            with self.subTest(line), self.assertRaisesRegex(pioscope.Error, said):
                eval(line)
