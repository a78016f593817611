"""The examples of the README work, and give what it says."""

from __future__ import annotations

import asyncio
import contextlib
import io
import re
import unittest
from pathlib import Path
from typing import Any

from .fleet import patient
from .test_client import Server

README = Path(__file__).parent.parent / "README.md"


class TestReadme(unittest.TestCase):
    def test_examples(self) -> None:
        patient(self)
        blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
        self.assertEqual(len(blocks), 5)
        names: dict[str, Any] = {"asyncio": asyncio}
        printed = io.StringIO()
        with Server() as s, contextlib.redirect_stdout(printed):
            for block in blocks:
                exec(re.sub(r'\["http://ids-1:8080".*?\]', repr([s.url]), block), names)
        names["ids"].close()
        self.assertRegex(printed.getvalue(), r"^[0-9]+ \[[0-9]+, [0-9]+, [0-9]+\]\n$")
        for code, result in re.findall(r"^(\S.*?) +# ([0-9a-z][^,\n]*)$", blocks[3], re.MULTILINE)[1:]:
            self.assertEqual(str(eval(code, names)), result)
