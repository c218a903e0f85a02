"""Marks that a recorded Python program makes by itself: epochs, waits for the next batch, checkpoints.

`pioscope record` puts this file's folder first in PYTHONPATH, and so the interpreter runs it when it starts. It hands on to
the sitecustomize that would have run, and waits for some modules to be imported: what it wraps there works as before, and
tells the recorder when it begins and ends. Nothing is imported that the program does not import, and whatever fails here is
as if it had not been tried. Works with Python 3.8 and later.
"""

import sys


def _run_next():
    """Runs the sitecustomize that stands behind this one, if there is any."""
    import os

    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if entry != folder]
    own = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        # The import that runs this file looks for the module when it is done.
        if own is not None:
            sys.modules.setdefault("sitecustomize", own)


class _Recorder:
    """The functions that the recorder exports; found when the first module is wrapped."""

    found = None

    @classmethod
    def find(cls):
        if cls.found is None:
            import ctypes

            class Phase(ctypes.Structure):
                _fields_ = [("record", ctypes.c_void_p), ("process", ctypes.c_uint32)]

            # Without giving the interpreter's lock away: they take less time than that.
            functions = ctypes.PyDLL(None)
            functions.pio_phase_begin.argtypes = [ctypes.c_char_p, ctypes.c_uint64]
            functions.pio_phase_begin.restype = Phase
            functions.pio_phase_end.argtypes = [Phase]
            functions.pio_phase_end.restype = None
            cls.found = functions
        return cls.found


class _Phase:
    """A phase that goes on until it is ended, or forgotten."""

    __slots__ = ("going",)

    def __init__(self, name, number):
        self.going = _Recorder.found.pio_phase_begin(name, number)

    def end(self):
        going, self.going = self.going, None
        if going is not None:
            _Recorder.found.pio_phase_end(going)

    __del__ = end


def _wrap(owner, name, phase):
    """Makes each call of a function a phase, which has the number of the call."""
    import functools

    function = getattr(owner, name)
    calls = iter(range(1 << 62))
    label = phase.encode()

    @functools.wraps(function)
    def wrapper(*arguments, **keywords):
        going = _Phase(label, next(calls))
        try:
            return function(*arguments, **keywords)
        finally:
            going.end()

    setattr(owner, name, wrapper)


def _wrap_functions(*names):
    def wrap(module):
        for path, phase in names:
            owner, _, name = path.rpartition(".")
            _wrap(getattr(module, owner) if owner else module, name, phase)

    return wrap


# Loaders that get a name of their own: programs have one to train and one to validate.
_MOST_LOADERS = 8


def _wrap_loader(module):
    """An iterator of a DataLoader is an epoch, and each of its steps a wait for the next batch."""
    import functools

    loader, iterator = module.DataLoader, module._BaseDataLoaderIter
    first_iter, first_next = loader.__iter__, iterator.__next__
    loaders, others = [], iter(range(1 << 62))

    def name_of(self):
        known = self.__dict__.get("_pioscope_loader")
        if known is None:
            known = (len(loaders) + 1, iter(range(1 << 62)))
            loaders.append(known[0])
            object.__setattr__(self, "_pioscope_loader", known)
        order, epochs = known
        if order > _MOST_LOADERS:
            return b"epoch, other loaders", next(others)
        return (b"epoch" if order == 1 else b"epoch, loader %d" % order), next(epochs)

    @functools.wraps(first_iter)
    def iterate(self):
        going = _Phase(*name_of(self))
        made = first_iter(self)
        # Workers that persist have the same iterator again.
        before = getattr(made, "_pioscope_epoch", None)
        if before is not None:
            before.end()
        made._pioscope_epoch, made._pioscope_batch = going, 0
        return made

    @functools.wraps(first_next)
    def step(self):
        batch = getattr(self, "_pioscope_batch", 0)
        self._pioscope_batch = batch + 1
        going = _Phase(b"batch wait", batch)
        try:
            return first_next(self)
        except StopIteration:
            epoch = getattr(self, "_pioscope_epoch", None)
            if epoch is not None:
                epoch.end()
            raise
        finally:
            going.end()

    loader.__iter__, iterator.__next__ = iterate, step


_WRAPS = {
    "torch.utils.data.dataloader": _wrap_loader,
    "torch.serialization": _wrap_functions(("save", "torch.save"), ("load", "torch.load")),
    "torch.distributed.checkpoint.state_dict_saver": _wrap_functions(("save", "torch.distributed.checkpoint.save")),
    "torch.distributed.checkpoint.state_dict_loader": _wrap_functions(("load", "torch.distributed.checkpoint.load")),
    "safetensors.torch": _wrap_functions(("save_file", "safetensors.save_file"), ("load_file", "safetensors.load_file")),
    "safetensors.numpy": _wrap_functions(("save_file", "safetensors.save_file"), ("load_file", "safetensors.load_file")),
    "datasets.load": _wrap_functions(("load_dataset", "datasets.load_dataset"), ("load_from_disk", "datasets.load_from_disk")),
    "datasets.arrow_dataset": _wrap_functions(("Dataset.save_to_disk", "datasets.save_to_disk")),
}


class _Loader:
    """Loads a module as its own loader does, and then wraps what is in it."""

    def __init__(self, loader, wrap):
        self._loader, self._wrap = loader, wrap

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        # From here on nobody can tell.
        module.__loader__ = module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        try:
            _Recorder.find()
            self._wrap(module)
        except Exception:  # another version of it, or nothing records
            pass


class _Finder:
    """Finds modules that are to be wrapped as the finders behind it do, each once."""

    def __init__(self):
        self._left = dict(_WRAPS)

    def find_spec(self, name, path=None, target=None):
        wrap = self._left.pop(name, None)
        if wrap is None:
            return None
        for finder in list(sys.meta_path):
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec = None if find is None else find(name, path, target)
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader, wrap)
                return spec
        return None


try:
    sys.meta_path.insert(0, _Finder())
finally:
    _run_next()
