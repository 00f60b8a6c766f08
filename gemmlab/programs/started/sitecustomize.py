"""Python runs this first in each process that a program under `gemmlab simulate` starts.

It lets the process follow the program as soon as it imports Numba or the simulated GPU, and costs
others nothing. A `sitecustomize` that it stands before is run, too.
"""

import importlib.machinery
import importlib.util
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, *[os.pardir] * 3))  # the folder that gemmlab is in


class Follower:
    """A finder that lets the process follow when it imports one of these, and then steps aside."""

    names = "numba", "gemmlab.simt.cuda"

    def find_spec(self, name, path=None, target=None):
        if name not in self.names:
            return None
        sys.meta_path.remove(self)
        sys.path.append(ROOT)  # last: where gemmlab is installed, it is found before
        try:
            from gemmlab.programs import following
        except ImportError:  # a Python of another version, for which these packages are not made
            return None
        finally:
            sys.path.remove(ROOT)
        following.follow()
        module = sys.modules.get(name)
        if module is None:
            return None
        return importlib.machinery.ModuleSpec(name, There(module))


class There:
    """A loader of a module that is there already, which stays as it is."""

    def __init__(self, module):
        self.module, self.spec = module, module.__spec__

    def create_module(self, spec):
        return self.module

    def exec_module(self, module):
        module.__spec__ = self.spec


def others():
    """Run the `sitecustomize` that Python would have found without this one."""
    paths = [path for path in sys.path if os.path.abspath(path or ".") != HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", paths)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


if os.environ.get("GEMMLAB_SIMULATE"):
    sys.meta_path.insert(0, Follower())
others()
