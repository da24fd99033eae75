from typing import Any

import grpc
from google.rpc import error_details_pb2  # type: ignore[import-untyped]
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from grpc.aio import AioRpcError, Metadata
from hypothesis import given
from hypothesis import strategies as st

from rpc.errors import Failure, Violation, cut, read_failure, to_status

texts = st.text(st.characters(codec=None), max_size=3000)
codes = st.sampled_from([code for code in grpc.StatusCode if code is not grpc.StatusCode.OK])
failures = st.builds(
    Failure,
    codes,
    texts,
    texts,
    violations=st.lists(st.builds(Violation, texts, texts), max_size=12).map(tuple),
    metadata=st.dictionaries(texts, texts, max_size=6),
    retry_after=st.none() | st.floats(-10, 1e6),
)


def _error(status: Any, *, text: str | None = None) -> AioRpcError:
    trailing = Metadata(("grpc-status-details-bin", status.SerializeToString()))
    code = next(code for code in grpc.StatusCode if code.value[0] == status.code)
    return AioRpcError(code, Metadata(), trailing, status.message if text is None else text)


@given(failures)
def test_a_status_is_under_1_kib_whatever_it_says_and_counts_what_is_missing(
    failure: Failure,
) -> None:
    status = to_status(failure, "memory_service")
    assert status.ByteSize() < 1024
    got = read_failure(_error(status))
    assert got.code is failure.code
    missing = int(got.metadata.get("violations_left_out", "0"))
    if "violations_left_out" not in failure.metadata:
        assert len(got.violations) + missing == len(failure.violations)
    assert (got.retry_after is None) == (failure.retry_after is None)


@given(texts, st.integers(3, 500))
def test_cut_text_fits_and_begins_like_the_whole(text: str, most: int) -> None:
    short = cut(text, most)
    whole = text.encode("utf-8", "replace").decode()
    assert len(short.encode()) <= most
    assert short == whole or (short[-1] == "…" and whole.startswith(short[:-1]))


def test_what_fits_comes_back_as_it_was() -> None:
    sent = Failure(
        grpc.StatusCode.ABORTED,
        "STALE_VERSION",
        "版本变了",
        violations=(Violation("version", "3 is current"),),
        metadata={"version": "3"},
        retry_after=0.25,
    )
    status = to_status(sent, "memory_service")
    info = error_details_pb2.ErrorInfo()
    status.details[0].Unpack(info)
    assert info.domain == "memory_service"
    assert vars(read_failure(_error(status))) == vars(sent)


def test_an_answer_without_details_is_read_by_its_code() -> None:
    plain = AioRpcError(grpc.StatusCode.UNAVAILABLE, Metadata(), Metadata(), "no route")
    got = read_failure(plain)
    assert (got.code, got.reason, got.message) == (
        grpc.StatusCode.UNAVAILABLE,
        "UNAVAILABLE",
        "no route",
    )
    assert str(got) == "UNAVAILABLE UNAVAILABLE: no route"


def test_details_that_contradict_the_answer_or_do_not_parse_are_not_believed() -> None:
    status = to_status(Failure(grpc.StatusCode.ABORTED, "X", "said"), "d")
    assert read_failure(_error(status, text="other")).reason == "ABORTED"
    garbage = Metadata(("grpc-status-details-bin", b"\xff\xff"))
    error = AioRpcError(grpc.StatusCode.ABORTED, Metadata(), garbage, "said")
    assert read_failure(error).reason == "ABORTED"


def test_details_of_another_kind_are_passed_over() -> None:
    status = Status(code=grpc.StatusCode.ABORTED.value[0], message="m")
    status.details.add().Pack(error_details_pb2.Help())
    status.details.add().Pack(error_details_pb2.ErrorInfo())
    assert read_failure(_error(status)).reason == "ABORTED"


def test_metadata_that_does_not_fit_is_left_out_from_the_last() -> None:
    facts = {f"fact_{n}": "y" * 120 for n in range(9)}
    failure = Failure(grpc.StatusCode.ABORTED, "X", "m" * 300, metadata=facts)
    status = to_status(failure, "d")
    assert status.ByteSize() < 1024
    assert sorted(read_failure(_error(status)).metadata) == [f"fact_{n}" for n in range(4)]
