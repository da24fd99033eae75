"""docs/cases.md names tests; a renamed or removed one must not stay there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_every_test_that_the_table_of_cases_names_exists() -> None:
    named = set(re.findall(r"`(test_\w+)`", (ROOT / "docs" / "cases.md").read_text()))
    files = (ROOT / "tests").rglob("test_*.py")
    existing = {
        name for file in files for name in re.findall(r"def (test_\w+)\(", file.read_text())
    }
    assert named
    assert named - existing == set()
