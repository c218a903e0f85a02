"""The examples in the docstrings."""

import doctest
import importlib
import os
import pkgutil

import pioscope
from support import InFolder


class Examples(InFolder):
    def test_examples_say_what_happens(self):
        tried = 0
        for module in pkgutil.iter_modules(pioscope.__path__, "pioscope."):
            if module.name == "pioscope._native":
                continue
            finder = doctest.DocTestFinder(exclude_empty=True)
            runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
            names = {"pioscope": pioscope, "os": os}
            for example in finder.find(importlib.import_module(module.name), extraglobs=names):
                with self.subTest(example.name):
                    said = []
                    self.assertEqual(runner.run(example, out=said.append).failed, 0, "".join(said))
                    tried += len(example.examples)
        self.assertGreater(tried, 30)
