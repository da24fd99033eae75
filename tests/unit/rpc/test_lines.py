import pytest

from rpc.lines import complain, tell


def test_results_go_to_stdout_and_troubles_to_stderr_each_on_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    tell("the schema is at 0001")
    complain("gateway", "it does\n  not  work")
    said = capsys.readouterr()
    assert said.out == "the schema is at 0001\n"
    assert said.err == "gateway: it does not work\n"
