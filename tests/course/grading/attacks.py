"""Notebooks that try to earn points, or to reach what judges them, and the row that each must get.

All are about exercise 04.1, whose answer is ``build``. Those of `REFUSED` are refused, or come to
nothing, before a line of them runs. Those of `RUN` run: they find no door, and are judged in a
process whose list of forbidden names is switched off (`OPEN`), as if there were a hole in it, so
that the walls alone hold them.
"""

from __future__ import annotations

from dataclasses import dataclass

FIRST = """
import numpy as np
from numpy import float32
from gemmlab import cuda, exercises
q1 = exercises.get("04.1")
"""
LAST = "q1.check(build)"
NOTHING = "\ndef build(T):\n    pass\n"  # gets "wrong-type"

# A worker whose door is open: answers may import and name what they like.
OPEN = """
import builtins, importlib, sys
from gemmlab.course.grading import allowed, worker
allowed.reaching = lambda node: iter(())
allowed.builtins_of = lambda: vars(builtins)
known = allowed.module
def module(name):
    try:
        return known(name)
    except allowed.ForbiddenError:
        return importlib.import_module(name)
allowed.module = module
sys.exit(worker.main())
"""


@dataclass(frozen=True)
class Attack:
    """What is tried, the code, and the row: state and diagnosis; several where both will do."""

    code: str
    state: str
    diagnosis: str | tuple[str, ...]

    @property
    def cells(self) -> tuple[str, ...]:
        """The cells of the notebook."""
        return FIRST, self.code, LAST


def no(code: str, diagnosis: str | tuple[str, ...]) -> Attack:
    """An attack that is no right answer."""
    return Attack(code, "not passed", diagnosis)


def error(code: str, diagnosis: str) -> Attack:
    """An attack of which no answer can be made."""
    return Attack(code, "error", diagnosis)


FORGED = "lambda self, *a: Verdict('04.1', True, 'passed', ())"

REFUSED = {
    # ---- at the top of a cell: it is not run, and what it would have changed is as it was
    "Exercise.check is replaced": no(
        f"from gemmlab.course.judging.exercise import Exercise, Verdict\nExercise.check = {FORGED}"
        + NOTHING,
        "wrong-type",
    ),
    "the judge is replaced": no(
        "import gemmlab.course.judging.guard as g\ng.attempts = lambda *a: []" + NOTHING,
        "wrong-type",
    ),
    "the exercise's own check is replaced": no(
        "q1.check = lambda *a: True" + NOTHING, "wrong-type"
    ),
    "q1 is another object": no(
        "class Mine:\n    def check(self, *a):\n        return True\n" + NOTHING, "wrong-type"
    ),
    "it ends Python": no("import os\nos._exit(0)" + NOTHING, "wrong-type"),
    "it never ends": no("while True:\n    pass" + NOTHING, "wrong-type"),
    "it installs a hook for imports": no(
        "import sys\nsys.meta_path.insert(0, object())" + NOTHING, "wrong-type"
    ),
    "it replaces NumPy's functions": no(
        "np.array_equal = lambda *a: True\nnp.ndarray.any = lambda *a: False" + NOTHING,
        "wrong-type",
    ),
    "it replaces print in builtins": no(
        "import builtins\nbuiltins.all = lambda *a: True" + NOTHING, "wrong-type"
    ),
    "a magic installs something": no("!pip install evil\n%run evil.py" + NOTHING, "wrong-type"),
    # ---- defaults, decorators, annotations and classes, which Python runs at once
    "a default replaces the check": no(
        "from gemmlab.course.judging.exercise import Exercise\n"
        f"def build(T, z=setattr(Exercise, 'check', {FORGED})):\n    pass",
        "reaches-out",
    ),
    "a default calls a function of its own": no(
        "def grant():\n    return 1\ndef build(T, z=grant()):\n    pass", "reaches-out"
    ),
    "a default calls a lambda": no("def build(T, z=(lambda: 1)()):\n    pass", "reaches-out"),
    "a default is a comprehension": no(
        "def build(T, z=[print(i) for i in range(3)]):\n    pass", "reaches-out"
    ),
    "a default binds a name": no("def build(T, z=(float32 := 3)):\n    pass", "reaches-out"),
    "a default of a name is called": no(
        "def build(T, *, z=exercises.get('04.1')):\n    pass", "borrowed"
    ),
    "a decorator of its own": no(
        "def grant(f):\n    return f\n@grant\ndef build(T):\n    pass", "reaches-out"
    ),
    "a decorator is a lambda": no("@(lambda f: f)\ndef build(T):\n    pass", "reaches-out"),
    "a decorator is exec": no("@exec\n@repr\ndef build(T):\n    pass", "reaches-out"),
    "a signature of types is code": no(
        '@cuda.jit("[c for c in ().__class__.__base__.__subclasses__()]")\ndef build(T):\n    pass',
        "wrong-type",
    ),
    "cuda.jit links a file": no(
        "@cuda.jit(link=['/tmp/evil.cu'])\ndef build(T):\n    pass", "reaches-out"
    ),
    "an annotation is code": no("def build(T: exit()) -> quit():\n    pass", "wrong-type"),
    "a metaclass": error(
        "class Meta(type):\n    def __instancecheck__(c, o):\n        return True\n"
        "class build(metaclass=Meta):\n    pass",
        "not-computed",
    ),
    "an object with a call of its own": error(
        "class Builder:\n    def call(self, T):\n        return None\nbuild = Builder()",
        "not-computed",
    ),
    "a list of a class of its own": error(
        "class Table(list):\n    pass\nTABLE = Table([1])\ndef build(T):\n    return TABLE",
        "not-computed",
    ),
    "it binds __builtins__": no(
        "__builtins__ = {}\ndef build(T):\n    return __builtins__", "reaches-out"
    ),
    # ---- the solution, which comes with the course
    "the solution by the exercise": no("build = exercises.get('04.1').task.answers[0]", "borrowed"),
    "the solution by q1": no("build = q1.task.answers[0]", "borrowed"),
    "the solution in the body": no(
        "def build(T):\n    return exercises.get('04.1').task.answers[0](T)", "borrowed"
    ),
    "the solution imported": no(
        "from gemmlab.course.ch04_shared_memory_tiling.q1_one_tile import build", "reaches-out"
    ),
    "the solution imported in the body": no(
        "def build(T):\n"
        "    from gemmlab.course.ch04_shared_memory_tiling import q1_one_tile as q\n"
        "    return q.build(T)",
        "reaches-out",
    ),
    "the solution by text": error("exec(q1.solution().split('```')[1][7:])", "not-defined"),
    "the solution into globals": error(
        "globals()['build'] = exercises.get('04.1').task.answers[0]", "not-defined"
    ),
    "a rung of the ladder": error(
        "from gemmlab import kernels\nbuild = kernels.tiled.build", "not-computed"
    ),
    "a rung imported": no("from gemmlab.kernels.tiled import build", "reaches-out"),
    "handed over by a call": Attack(
        "def build(T):\n    pass\nq1.check(exercises.get('04.1').task.answers[0])\n"
        "class q:\n    pass",
        "not passed",
        "wrong-type",
    ),
    # ---- names that reach out of a function
    "os in the body": no("def build(T):\n    import os\n    os.kill(1, 9)", "reaches-out"),
    "__import__": no("def build(T):\n    __import__('os').abort()", "reaches-out"),
    "eval": no("def build(T):\n    return eval('1')", "reaches-out"),
    "open": no("def build(T):\n    return open('/etc/passwd').read()", "reaches-out"),
    "the classes of all objects": no(
        "def build(T):\n    return ().__class__.__base__.__subclasses__()", "reaches-out"
    ),
    "getattr of a composed name": no(
        "def build(T):\n    return getattr(np, 'ctypes' + 'lib')", "reaches-out"
    ),
    "attrgetter": no(
        "from operator import attrgetter\ndef build(T):\n    return attrgetter('lib')(np)",
        "reaches-out",
    ),
    "a module that NumPy imports": no(
        "def build(T):\n    m = np\n    return m.lib.format.os", "reaches-out"
    ),
    "a file by NumPy": no("def build(T):\n    return np.fromfile('/etc/passwd')", "reaches-out"),
    "the frame above": no(
        "import sys\ndef build(T):\n    return sys._getframe(1).f_locals", "reaches-out"
    ),
    # ---- members that are read without a dot, and texts that are evaluated
    "a pattern that matches members": no(
        "def build(T):\n    match build:\n        case object(__builtins__=b):\n"
        "            return b['ev' + 'al']('1')",
        "reaches-out",
    ),
    "a pattern whose class names its members": no(
        "def build(T):\n    class M(type):\n        def __instancecheck__(c, x): return True\n"
        "    class P(metaclass=M):\n        __match_args__ = ('__glo' 'bals__',)\n"
        "    match build:\n        case P(b):\n            return b",
        "reaches-out",
    ),
    "a pattern whose class is called int": no(
        "def build(T):\n    int = type('P', (), {})\n    match build:\n        case int(b):\n"
        "            return b",
        "reaches-out",
    ),
    "update_wrapper": no(
        "import functools\ndef build(T):\n"
        "    functools.update_wrapper(T, build, assigned=('__glo' + 'bals__',), updated=())",
        "reaches-out",
    ),
    "get_type_hints": no(
        "import typing\ndef build(T):\n    def g(x: '1 / 0'): pass\n    typing.get_type_hints(g)",
        "reaches-out",
    ),
    "singledispatch": no(
        "from functools import singledispatch\ndef build(T):\n    singledispatch(T)", "reaches-out"
    ),
    "the code of a generator": no(
        "def build(T):\n    def g(): yield x('1')\n"
        "    return type(build)(g().gi_code.replace(co_names=('eval',)), {})",
        "reaches-out",
    ),
    "the frame of a generator": no(
        "def build(T):\n    g = (g.gi_frame.f_back for i in [0])\n    return list(g)", "reaches-out"
    ),
    "the frame of an error": no(
        "def build(T):\n    class C:\n        def __enter__(s): pass\n"
        "        def __exit__(s, t, v, tb): s.f = tb.tb_frame\n    with C(): 1 / 0",
        "reaches-out",
    ),
    "what a module of the course has imported": no(
        "from gemmlab.device import Path\ndef build(T):\n    return Path('/').iterdir()",
        "reaches-out",
    ),
    "the same in the body": no(
        "def build(T):\n    from gemmlab.device import FOLDER\n    return FOLDER.parent",
        "reaches-out",
    ),
    "the simulator behind cuda": no(
        "def build(T):\n    return cuda.kernels.simulate", "reaches-out"
    ),
    "an array that is dumped": no("def build(T):\n    np.zeros(3).dump('/own/x')", "reaches-out"),
    "a file by fromregex": no("def build(T):\n    np.fromregex('f', 'x', 'i1')", "reaches-out"),
    # ---- what would take forever, or bring down what reads it
    "an error that says half a character": error(
        "def g():\n    raise ValueError('\\ud800\\x1b[31m')\nX = g()\ndef build(T):\n    return X",
        "not-computed",
    ),
    "blank lines without end below a bracket": Attack(
        NOTHING + "build(" + "\n" * 50_000, "unreadable", "no-python"
    ),
}

_OS = "import os, sys, resource, socket, ctypes, gc\nimport time\n"

RUN = {
    "it kills its judge": no(
        _OS + "def build(T):\n    os.kill(os.getppid(), 9)\n    time.sleep(0.2)", "wrong-type"
    ),
    "it stops its judge": no(
        _OS + "def build(T):\n    os.kill(os.getppid(), 19)\n    time.sleep(0.2)", "wrong-type"
    ),
    "it kills everything": no(_OS + "def build(T):\n    os.kill(-1, 9)", "raises"),
    "it writes to the memory of its judge": no(
        _OS + "def build(T):\n    open(f'/proc/{os.getppid()}/mem', 'r+b').write(b'x')", "raises"
    ),
    "it reads the files of its judge": no(
        _OS + "def build(T):\n    files = f'/proc/{os.getppid()}/fd'\n"
        "    for n in os.listdir(files):\n        open(f'{files}/{n}', 'w')",
        "raises",
    ),
    "it traces its judge": no(
        _OS + "def build(T):\n"
        "    if ctypes.CDLL(None).ptrace(16, os.getppid(), 0, 0) == 0:\n        return build\n"
        "    raise PermissionError",
        "raises",
    ),
    "it looks for another's notebook": no(
        _OS + "def build(T):\n    os.listdir('/tmp')\n    os.listdir(FOLDER)",
        "raises",
    ),
    "it writes the table": no(
        _OS + "def build(T):\n    open(FOLDER + '/grades.csv', 'w').write('full marks')", "raises"
    ),
    "it changes the library": no(
        _OS + "def build(T):\n"
        "    open(sys.modules['gemmlab'].__file__, 'a').write('# mine')",
        "raises",
    ),
    "it lays a module beside the library": no(
        _OS + "def build(T):\n    home = os.path.dirname(sys.modules['gemmlab'].__file__)\n"
        "    open(os.path.dirname(home) + '/secrets.py', 'w').write('evil')",
        "raises",
    ),
    "it calls out": no(
        _OS + "def build(T):\n    socket.create_connection(('127.0.0.1', PORT), 1)", "raises"
    ),
    "it starts processes without end": no(
        _OS + "def build(T):\n    while True:\n        if not os.fork():\n"
        "            time.sleep(600)\n            os._exit(0)",
        ("raises", "never-ends", "senseless"),
    ),
    "it fills the disk": no(
        _OS + "def build(T):\n    with open('/own/full', 'wb') as f:\n"
        "        while True:\n            f.write(bytes(1 << 22))",
        "raises",
    ),
    "it takes all memory": no(
        "def build(T):\n    return np.ones(10**11)", "out-of-memory"
    ),
    "it never returns": no("def build(T):\n    while True:\n        pass", "never-ends"),
    "it sleeps": no("import time\ndef build(T):\n    time.sleep(10**6)", "never-ends"),
    "it ends Python inside": no(_OS + "def build(T):\n    os._exit(0)", "exits"),
    "it says that all is done": no(
        _OS + "import pickle\ndef build(T):\n    data = pickle.dumps(('done', None))\n"
        "    for n in range(3, 256):\n        try:\n"
        "            os.write(n, len(data).to_bytes(8, 'little') + data)\n"
        "        except OSError:\n            pass\n    os._exit(0)",
        "exits",
    ),
    "it crashes": no(_OS + "def build(T):\n    ctypes.string_at(0)", "crashes"),
    "it looks for the seed": no(
        _OS + "def build(T):\n    seed = sys.modules['gemmlab.course.judging.drawing']._drawing\n"
        "    frames = sys._getframe(0)\n    while frames := frames.f_back:\n"
        "        job = frames.f_locals.get('job') or frames.f_locals.get('key')\n"
        "        seed = seed or job\n    if seed:\n        return build\n    raise LookupError",
        "raises",
    ),
    "it replaces the simulator": no(
        _OS + "def build(T):\n"
        "    sys.modules['gemmlab.course.judging.launches'].simulate = lambda *a, **k: None\n"
        "    return lambda alpha, A, B, beta, C: None",
        "tampers",
    ),
    "it takes its judge's time away": Attack(
        _OS + "def build(T):\n"
        "    resource.prlimit(os.getppid(), resource.RLIMIT_CPU, (0, 0))\n    time.sleep(1)",
        "error",
        "judge-ended",
    ),
    "data never comes": error(
        "TABLE = [i for i in iter(int, 1)]\ndef build(T):\n    return TABLE", "not-computed"
    ),
    "data is a bomb": error(
        "TABLE = 'x' * (1 << 40)\ndef build(T):\n    return TABLE", "not-computed"
    ),
}  # fmt: skip
