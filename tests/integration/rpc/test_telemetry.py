import json
import logging
import urllib.request
from collections.abc import Iterator

import pytest
import structlog

from rpc.listen import BadListen, UnsafeListen
from rpc.telemetry import configure_logging, start_metrics
from tests.services.mariadb import free_port


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    yield
    root.setLevel(level)
    root.handlers[:] = handlers
    structlog.reset_defaults()


def _fail() -> None:
    memory_text = "gluten"
    message = f"broken after {len(memory_text)}"
    raise ValueError(message)


def test_json_lines_go_to_stderr_with_service_level_time_and_request_id(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure_logging("memory-service", "info", json=True)
    structlog.contextvars.bind_contextvars(request_id="r1")
    structlog.get_logger("x").info("stored", rows=3)
    structlog.get_logger("x").debug("unseen")
    logging.getLogger("library").warning("from %s", "a library")
    structlog.contextvars.clear_contextvars()
    out, err = capsys.readouterr()
    ours, theirs = (json.loads(line) for line in err.splitlines())
    assert out == ""
    assert ours.pop("timestamp").endswith("Z")
    assert ours == {
        "event": "stored",
        "rows": 3,
        "service": "memory-service",
        "logger": "x",
        "level": "info",
        "request_id": "r1",
    }
    assert (theirs["event"], theirs["service"]) == ("from a library", "memory-service")


@pytest.mark.parametrize("as_json", [True, False])
def test_exceptions_are_rendered_without_the_values_of_variables(
    capsys: pytest.CaptureFixture[str], *, as_json: bool
) -> None:
    configure_logging("x", "INFO", json=as_json)
    try:
        _fail()
    except ValueError:
        structlog.get_logger("x").exception("failed")
        logging.getLogger("library").exception("failed")
    _, err = capsys.readouterr()
    assert err.count("broken after 6") == 2
    assert "_fail" in err
    assert "'gluten'" not in err


def test_a_level_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="LOUD"):
        configure_logging("x", "loud", json=False)


def test_metrics_are_served_where_asked_and_one_port_higher_for_the_next_worker() -> None:
    port = free_port()
    first = start_metrics(f"127.0.0.1:{port}", service_token="")
    second = start_metrics(f"127.0.0.1:{port}", service_token="", worker=1)
    try:
        assert (first.port, second.port) == (port, port + 1)
        for metrics in (first, second):
            url = f"http://127.0.0.1:{metrics.port}/metrics"
            with urllib.request.urlopen(url) as answer:
                assert b"grpc_server_started_total" in answer.read()
        with pytest.raises(OSError, match="in use"):
            start_metrics(f"127.0.0.1:{port}", service_token="")
    finally:
        first.close()
        second.close()


def test_no_address_means_no_metrics() -> None:
    metrics = start_metrics("", service_token="")
    assert metrics.port == 0
    metrics.close()


def test_metrics_want_a_tcp_address() -> None:
    with pytest.raises(BadListen, match="over TCP"):
        start_metrics("unix:/tmp/x", service_token="")


def test_metrics_that_others_can_reach_need_a_service_with_a_token() -> None:
    with pytest.raises(UnsafeListen):
        start_metrics("0.0.0.0:0", service_token="")
    metrics = start_metrics("0.0.0.0:0", service_token="t")
    metrics.close()
