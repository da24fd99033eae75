"""The rules keep what the fixed set of the extraction benchmark holds them to."""

import pytest

from benchmarks.extraction import LANGUAGES, cases, figures, measure
from memory_service.adapters.extractor_rules import RulesExtractor


async def test_what_is_read_is_right_and_most_is_read() -> None:
    measured = await measure(RulesExtractor(), "fixed")
    for language in LANGUAGES:
        everything = figures(measured[language])["all"]
        assert everything["precision"] >= 0.95, language
        assert everything["recall"] >= 0.9, language


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_set_is_as_large_as_it_says(language: str) -> None:
    listed = list(cases("fixed", language))
    assert len({case.text for case in listed}) == len(listed)
    assert sum(not case.expected for case in listed) >= 100
    assert sum(bool(case.expected) for case in listed) >= 75
