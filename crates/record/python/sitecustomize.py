"""Marks that a recorded Python program makes by itself: epochs, waits for the next batch, checkpoints.

`pioscope record` puts this file's folder first in PYTHONPATH, and so the interpreter runs it when it starts. It hands on to
the sitecustomize that would have run, and waits for some modules to be imported: what it wraps there works as before, and
tells the recorder when it begins and ends. Nothing is imported that the program does not import, and whatever fails here is
as if it had not been tried. Before Python 3.6, Python 2 included, nothing is marked.
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
        # Python 2 has the message alone.
        if getattr(error, "name", None) != "sitecustomize" and str(error) != "No module named sitecustomize":
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
            functions.pio_call_site_begin.argtypes = []
            functions.pio_call_site_begin.restype = ctypes.c_uint32
            functions.pio_call_site_end.argtypes = [ctypes.c_uint32]
            functions.pio_phase_end.restype = functions.pio_call_site_end.restype = None
            cls.found = functions
        return cls.found


class _Phase:
    """A phase that goes on until it is ended, or forgotten."""

    __slots__ = ("going",)

    def __init__(self, name, number):
        self.going = _Recorder.found.pio_phase_begin(name, number)

    # The interpreter may have emptied this module when the last phases are forgotten.
    def end(self, recorder=_Recorder):
        going, self.going = self.going, None
        if going is not None:
            recorder.found.pio_phase_end(going)

    __del__ = end

    def __reduce__(self):
        """A copy of what keeps the phase is in none."""
        return type(None), ()


def _wrap(owner, name, phase):
    """Makes each call of a function a phase, which has the number of the call, unless that has no name; and the line that calls
    it that which opens what it opens, in C."""
    import functools

    function = getattr(owner, name)
    calls = iter(range(1 << 62))
    label = phase and phase.encode()
    recorder = _Recorder.found

    @functools.wraps(function)
    def wrapper(*arguments, **keywords):
        going = label and _Phase(label, next(calls))
        depth = None
        try:
            depth = recorder.pio_call_site_begin()
            return function(*arguments, **keywords)
        finally:
            if depth is not None:
                recorder.pio_call_site_end(depth)
            if going:
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


def _attributes(owner):
    """The attributes of an object itself, whatever it answers when it is asked for one; of one without, a dict for nothing."""
    try:
        kept = object.__getattribute__(owner, "__dict__")
    except Exception:
        kept = None
    return kept if type(kept) is dict else {}


def _wrap_loader(module):
    """An iterator of a DataLoader is an epoch, and each of its steps a wait for the next batch."""
    import functools

    loader, iterator = module.DataLoader, module._BaseDataLoaderIter
    first_iter, first_next = loader.__iter__, iterator.__next__
    loaders, others = [], iter(range(1 << 62))

    def say_settings(order, kept):
        """Phases without length, whose numbers are what the loader was told."""
        sampler = _attributes(kept.get("batch_sampler"))
        settings = (
            (b"batch size", kept.get("batch_size") or sampler.get("batch_size")),
            (b"workers", kept.get("num_workers")),
        )
        for name, value in settings:
            if type(value) is int and 0 <= value < 1 << 62:
                _Phase(b"loader %d, %s" % (order, name), value).end()

    def name_of(self):
        kept = _attributes(self)
        known = kept.get("_pioscope_loader")
        if known is None:
            known = kept["_pioscope_loader"] = (len(loaders) + 1, iter(range(1 << 62)))
            loaders.append(known[0])
            if known[0] <= _MOST_LOADERS:
                say_settings(known[0], kept)
        order, epochs = known
        if order > _MOST_LOADERS:
            return b"epoch, other loaders", next(others)
        return b"epoch, loader %d" % order, next(epochs)

    @functools.wraps(first_iter)
    def iterate(self):
        name, number = name_of(self)
        epoch, start = _Phase(name, number), _Phase(b"loader start", number)
        try:
            made = first_iter(self)
        except BaseException:
            epoch.end()
            raise
        finally:
            start.end()
        kept = _attributes(made)
        # Workers that persist have the same iterator again.
        before = kept.get("_pioscope_epoch")
        if before is not None:
            before.end()
        # Goes on as long as the iterator keeps it: one that has no attributes, such as a generator, ends it here.
        kept["_pioscope_epoch"], kept["_pioscope_batch"] = epoch, 0
        return made

    @functools.wraps(first_next)
    def step(self):
        kept = _attributes(self)
        batch = kept.get("_pioscope_batch", 0)
        kept["_pioscope_batch"] = batch + 1
        going = _Phase(b"batch wait", batch)
        try:
            return first_next(self)
        except StopIteration:
            epoch = kept.get("_pioscope_epoch")
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
    "h5py._hl.files": _wrap_functions(("File.__init__", None)),
    "datasets.load": _wrap_functions(("load_dataset", "datasets.load_dataset"), ("load_from_disk", "datasets.load_from_disk")),
    "datasets.arrow_dataset": _wrap_functions(("Dataset.save_to_disk", "datasets.save_to_disk")),
}


class _Loader:
    """Loads a module as its own loader does, and then wraps what is in it."""

    def __init__(self, loader, wrap, done):
        self._loader, self._wrap, self._done = loader, wrap, done

    def __getattr__(self, name):
        if name == "_loader":  # of a copy that is being made
            raise AttributeError(name)
        return getattr(self._loader, name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        # From here on nobody can tell.
        module.__loader__ = module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._done()
        try:
            _Recorder.find()
            self._wrap(module)
        except Exception:  # another version of it, or nothing records
            pass


class _Finder:
    """Finds modules that are to be wrapped as the finders behind it do, until each has been loaded."""

    def __init__(self):
        self._left = dict(_WRAPS)
        self._searches = set()

    def find_spec(self, name, path=None, target=None):
        wrap = self._left.get(name)
        if wrap is None:
            return None
        # A finder may search by way of all finders.
        search = _thread.get_ident(), name
        if search in self._searches:
            return None
        self._searches.add(search)
        try:
            for finder in list(sys.meta_path):
                find = None if finder is self else getattr(finder, "find_spec", None)
                spec = None if find is None else find(name, path, target)
                if spec is not None:
                    if hasattr(spec.loader, "exec_module"):
                        spec.loader = _Loader(spec.loader, wrap, lambda: self._left.pop(name, None))
                    return spec
            return None
        finally:
            self._searches.discard(search)


try:
    if sys.version_info >= (3, 6):
        import _thread

        sys.meta_path.insert(0, _Finder())
finally:
    _run_next()
