"""Private names of Numba and patches of it: each name exists, is used in one place, and does what it is for."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core import codegen
from test_arguments import FakeArray

import atos_py as atos
from atos_py.compile.arguments import describe
from atos_py.compile.codegen import numba_private
from atos_py.compile.spec import ProgramSpec

pytest.importorskip("cuda.core", reason="cuda-core is not installed")

ALONE = """
import sys
sys.modules["numba.cuda"] = sys.modules["numba_cuda"] = None  # as if numba-cuda were not installed

import numpy as np
import atos_py as atos
from atos_py.compile.codegen.target_cuda import compile_cuda, with_ptx
from atos_py.compile.spec import ProgramSpec

@atos.task
def count(worker, item):
    worker.push(item // 2)

code = with_ptx(compile_cuda(ProgramSpec(count, None, (), np.dtype(np.uint32)), (9, 0)), (9, 0))
print(len(code.modules), b"atos_task_body" in code.ptx, [name for name in sys.modules if name.startswith("numba.cuda.")])
"""


def test_tasks_are_compiled_without_numba_cuda():
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", ALONE], capture_output=True, text=True, check=False)
    assert done.stdout == "1 True []\n", done.stderr[-2000:]


AFTER_A_TASK = """
import numpy as np
import numba
import atos_py as atos
from atos_py.compile.codegen.target_cuda import compile_cuda
from atos_py.compile.spec import ProgramSpec

@atos.task
def halve(worker, item):
    worker.push(item // 2)

compile_cuda(ProgramSpec(halve, None, (), np.dtype(np.uint32)), (9, 0))

@numba.njit
def count(n):
    found, by_key = np.zeros(n), {}
    for i in range(n):
        found[i] = np.sum(np.array([i, 2 * i]))
        by_key[i] = str(i)
    return found.sum() + len(by_key)

print(count(4))
"""


def test_functions_for_cpus_are_compiled_after_a_task_for_gpus():
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", AFTER_A_TASK], capture_output=True, text=True, check=False)
    assert done.stdout == "22.0\n", done.stderr[-2000:]


NEWER_NUMPY = """
import numpy as np
import numba

numba.njit(lambda: np.zeros(1))()  # which imports all of Numba, where the version of NumPy is asked for

for name in ("row_stack", "in1d", "trapz", "round_"):  # as in NumPy 2.5
    vars(np).pop(name, None)
true = np.__getattr__
def missing(name):
    if name in ("row_stack", "in1d", "trapz", "round_"):
        raise AttributeError(name)
    return true(name)
np.__getattr__ = missing

import atos_py as atos
from atos_py.compile.codegen.target_cuda import compile_cuda
from atos_py.compile.spec import ProgramSpec
from numba import cuda

@cuda.jit(device=True)
def lane():
    return cuda.laneid

@atos.task
def task(worker, item):
    worker.push(item + lane())

assert len(compile_cuda(ProgramSpec(task, None, (), np.dtype(np.int32)), (9, 0)).modules) == 2
assert not hasattr(np, "row_stack")
print("compiled")
"""


def test_a_numpy_without_the_names_that_numba_cuda_uses():
    pytest.importorskip("numba.cuda", reason="numba-cuda is not installed")
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", NEWER_NUMPY], capture_output=True, text=True, check=False)
    assert done.stdout == "compiled\n", done.stderr[-2000:]


SCIPY = """
import sys
import numpy as np
import atos_py as atos

@atos.task
def nothing(worker, item):
    pass

queue = atos.Queue(4, device="cpu")
queue.push(1)
assert queue.launch_thread(nothing).tasks_run == 1
import atos_py.compile.codegen.target_cuda
print("scipy.linalg" in sys.modules)

import numba
print(numba.njit(lambda a: np.dot(a, a))(np.eye(2))[0, 0])
"""


def test_scipy_is_imported_where_it_is_used(tmp_path, monkeypatch):
    pytest.importorskip("scipy", reason="SciPy is not installed")
    monkeypatch.setenv("ATOS_CACHE_DIR", str(tmp_path))
    done = subprocess.run([sys.executable, "-c", SCIPY], capture_output=True, text=True, check=False)
    assert done.stdout == "False\n1.0\n", done.stderr[-2000:]


@atos.task
def calls_helpers(worker, item, out):
    """Call a helper that calls another."""
    out[item] = helper(item)


def helper(x):
    return double(x) + 1


def double(x):
    return 2 * x


def test_helpers_are_no_machine_code_of_their_own(monkeypatch):
    from atos_py.compile.codegen import target_cpu

    def compiled() -> list[str]:
        names: list[str] = []
        with monkeypatch.context() as patched:
            true = codegen.JITCodeLibrary._finalize_specific
            patched.setattr(codegen.JITCodeLibrary, "_finalize_specific", lambda self: names.append(self.name) or true(self))
            target_cpu.compile_cpu(ProgramSpec(calls_helpers, None, (describe(FakeArray(np.zeros(4))),), np.dtype(np.uint32)))
        return names

    compiled()  # which starts what Numba has for itself
    (name,) = compiled()
    assert name.startswith("atos_")


# Where Numba has it, and what of ours uses it.
NAMES = [
    ("numba.core.typing.context", "BaseContext._lookup_global", "is_known_global"),
    ("numba.core.codegen", "Codegen._create_empty_module", "create_module"),
    ("numba.core.registry", "cpu_target.target_context._registries", "registries_of"),
    ("numba.core.runtime.nrt", "rtsys.initialize", "start_runtime"),
    ("numba.core.codegen", "JITCPUCodegen.magic_tuple", "host_features"),
    ("numba.core.config", "USING_SVML", "host_features"),
    ("numba.core.codegen", "JITCodeLibrary.serialize_using_object_code", "export_library"),
    ("numba.core.codegen", "JITCPUCodegen.unserialize_library", "load_library"),
    ("numba.core.codegen", "JITCodeLibrary._get_module_for_linking", "export_lowered"),
    ("numba.core.compiler", "CompileResult._reduce", "save_result"),
    ("numba.core.compiler", "CompileResult._rebuild", "load_result"),
    ("numba.core.serialize", "dumps", "save_result"),
    ("numba.np.linalg", "ensure_blas", "start_numba"),
    ("numba.core.lowering", "BaseLower.lower", "patch_lowering"),
    ("numba.core.byteflow", "TraceRunner.op_COPY", "assignment_expressions"),
    ("numba.core.callconv", "ErrorModel.fp_zero_division", "patch_divisions"),
    ("numba.core.callconv", "CPUCallConv.return_user_exc", "patch_exceptions"),
    ("numba.core.callconv", "CPUCallConv.return_dynamic_user_exc", "patch_exceptions"),
    ("numba.core.codegen", "JITCodeLibrary._optimize_final_module", "inlined_dispatcher"),
    ("numba.core.codegen", "JITCodeLibrary._finalize_final_module", "inlined_dispatcher"),
    ("numba.core.codegen", "JITCodeLibrary._finalize_dynamic_globals", "inlined_dispatcher"),
    ("numba.core.codegen", "JITCodeLibrary._verify_declare_only_symbols", "inlined_dispatcher"),
    ("numba.core.codegen", "RuntimeLinker.PREFIX", "inlined_dispatcher"),
    ("numba.core.codegen", "JITCPUCodegen.set_env", "inlined_dispatcher"),
    ("numba.core.types", "Number.unify", "patch_unification"),
    ("numba.core.typing.context", "CallStack", "current_code"),
    ("numba.core.inline_closurecall", "inline_closure_call", "patch_inlining"),
    ("numba.core.untyped_passes", "ReconstructSSA.run_pass", "patch_reconstruction"),
    ("numba.core.byteflow", "AdaptCFA.backbone", "patch_backbone"),
    ("numba.core.ir", "Expr.list_vars", "changed_expression"),
]


@pytest.mark.parametrize(("module", "name", "user"), NAMES, ids=[f"{module}.{name}" for module, name, _ in NAMES])
def test_numba_has_it(module, name, user):
    found = importlib.import_module(module)
    for part in name.split("."):
        assert hasattr(found, part), (
            f"Numba {numba.__version__} has no {module}.{name}: {user} of compile/codegen has to change"
        )
        found = getattr(found, part)


def test_numba_has_what_is_asked_of_dispatchers():
    dispatcher = numba.njit(lambda x: x)
    for name in ("_cache", "_can_compile", "_compiler", "locals", "targetoptions"):
        assert hasattr(dispatcher, name), (
            f"a dispatcher of Numba {numba.__version__} has no {name}: numba_private has to change"
        )
    assert numba_private.can_compile(dispatcher)
    dispatcher(1)
    dispatcher.disable_compile()
    assert not numba_private.can_compile(dispatcher)
    assert numba_private.compiler_of(dispatcher) is numba.core.compiler.Compiler


def test_numba_asks_the_cache_that_a_dispatcher_is_given():
    asked = []

    class Cache:
        cache_path = None

        def load_overload(self, signature, target):
            asked.append("load")

        def save_overload(self, signature, code):
            asked.append("save")

    dispatcher = numba.njit(lambda x: x + 1)
    numba_private.set_cache(dispatcher, Cache())
    assert dispatcher(1) == 2
    assert asked == ["load", "save"]


OVERLOADS = """
import numba
from numba import extending
from atos_py.compile.codegen.numba_private import overload_of

def subject(x):
    raise NotImplementedError

@extending.overload(subject, jit_options={"nogil": True})
def given(x):
    return lambda x: x

class Kind(numba.types.Type):
    pass

@extending.overload_attribute(Kind, "size")
def size(value):
    return lambda value: 1

registry = numba.core.typing.templates.builtin_registry
found = {each[0]: each for each in map(overload_of, (*registry.functions, *registry.attributes)) if each}
print(found[given][1]["nogil"], found[size][2])
"""


def test_what_was_given_to_overload_is_found():
    # In a process of its own: overloads are a part of what names cache entries.
    done = subprocess.run([sys.executable, "-c", OVERLOADS], capture_output=True, text=True, check=False)
    assert done.stdout == "True size\n", f"Numba {numba.__version__} keeps overloads elsewhere: {done.stderr[-2000:]}"


def test_the_lowering_at_hand_is_known():
    """A check knows its line on either target, in functions that others call as well."""
    from atos_py.compile.codegen import target_cpu, target_cuda

    kinds = (describe(FakeArray(np.zeros(4))),)
    for code in (
        target_cpu.compile_cpu(ProgramSpec(divides, None, kinds, np.dtype(np.uint32), debug=True)),
        target_cuda.compile_cuda(ProgramSpec(divides, None, kinds, np.dtype(np.uint32), debug=True), (9, 0)),
    ):
        assert code.checks is not None
        sites = {(site.kind, site.function) for site in code.checks.sites}
        assert sites >= {("division", "divided"), ("index", "divides")}


@atos.task
def divides(worker, item, out):
    """Call a helper with checks."""
    out[item] = divided(item)


def divided(x):
    return 1 / x


PACKAGE = Path(atos.__file__).parent
HOMES = {"numba_private.py", "numba_patches.py"}
DOCUMENTED = {
    "_getvalue",
    "_fields",
    "_field_defaults",
    "_make",
}  # of Numba's struct proxies, as its manual uses it, and of named tuples
UNDOCUMENTED = {name.rpartition(".")[2] for _, name, _ in NAMES} - {
    *("initialize", "lower", "dumps", "return_user_exc", "list_vars")
} | {
    "pipeline_class",
    "rtsys",
}


def private_names(source: str) -> set[str]:
    """Return the names that are private, or Numba's undocumented ones, which a module takes from other objects than itself."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) not in ("self", "cls", "super()"):
            found.add(node.attr)
        elif (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("getattr", "hasattr", "setattr")
        ):
            found |= {arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in ("numba", "llvmlite"):
            found |= {alias.name for alias in node.names} | set((node.module or "").split("."))
    return {name for name in found if name in UNDOCUMENTED or (name.startswith("_") and not name.startswith("__"))} - DOCUMENTED


def test_private_names_are_found():
    assert private_names("a._b; getattr(a, '_c'); a.magic_tuple()\nfrom numba.core._d import _e") == {
        *("_b", "_c", "magic_tuple", "_d", "_e")
    }
    assert private_names("self._a; super()._a; a.b; a.__dict__") == set()


def test_private_names_of_numba_are_used_in_one_place():
    files = [path for path in PACKAGE.rglob("*.py") if path.parent.name == "codegen" or "numba" in path.read_text()]
    assert len(files) > 15
    used = {path.relative_to(PACKAGE).as_posix(): private_names(path.read_text()) for path in files if path.name not in HOMES}
    assert {path: names for path, names in used.items() if names} == {}, "use them in numba_private.py or numba_patches.py"
