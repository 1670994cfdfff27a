"""The common tests of Jupyter kernels. They know no receipts, and count messages: so without them."""

from __future__ import annotations

from typing import ClassVar

import jupyter_kernel_test
import pytest

from pybox_kernel.install import KERNEL_NAME

pytestmark = [pytest.mark.engine, pytest.mark.usefixtures("kernelspec")]


class TestAsAnyKernel(jupyter_kernel_test.KernelTests):  # type: ignore[misc]
    """All but those of what a sealed cell has not: a pager, and a clearing of output that was shown."""

    kernel_name = KERNEL_NAME
    language_name = "python"
    file_extension = ".py"
    code_hello_world = "print('hello, world')"
    code_stderr = "import sys; print('test', file=sys.stderr)"
    completion_samples: ClassVar = [
        {"text": "impor", "matches": {"import", "ImportError", "ImportWarning"}},
        {"text": "import filei", "matches": {"fileinput"}},
        {"text": "print('x'); zi", "matches": {"zip"}},
    ]
    complete_code_samples: ClassVar = ["1", "print('hello, world')", "def f():\n  pass\n\n", "x = '''\n'''"]
    incomplete_code_samples: ClassVar = ["def f(x):", "'''", "print(1,", "for x in y:\n    z", "if a:\n  b\nelse:"]
    invalid_code_samples: ClassVar = ["import = 7q", "a b", "1 +* 2"]
    code_generate_error = "raise ValueError"
    code_execute_result: ClassVar = [
        {"code": "6*7", "result": "42"},
        {"code": "x = [1, 2]\nx", "result": "[1, 2]"},
        {"code": "'é'", "result": "'é'"},
    ]
    code_display_data: ClassVar = [{"code": "display('x')", "mime": "text/plain"}]
    code_history_pattern = "6?7"
    supported_history_operations = ("tail", "range", "search")
    code_inspect_sample = "print"

    @classmethod
    def setUpClass(cls) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PYBOX_RECEIPT", "none")
            super().setUpClass()
