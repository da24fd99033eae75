from dataclasses import replace

import pytest

from memory_service.codec.memories import MAX_ANSWER_BYTES
from memory_service.codec.pages import list_request, list_response
from memory_service.domain.errors import InvalidRequest
from memory_service.domain.model import MemoryStatus, MemoryType
from memory_service.v1 import memory_pb2 as pb
from tests.builders.memories import memory


def asked(**fields: object) -> pb.ListMemoriesRequest:
    return pb.ListMemoriesRequest(**{"user_id": "u1"} | fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(("sent", "size"), [(0, 50), (1, 1), (200, 200), (5000, 200)])
def test_a_page_has_50_items_unless_said_and_200_at_most(sent: int, size: int) -> None:
    assert list_request(asked(page_size=sent)).size == size


def test_a_list_is_filtered_by_type_status_and_normalised_text() -> None:
    page = list_request(
        asked(memory_types=[4, 4], statuses=[pb.MEMORY_STATUS_DELETED], text=" Green  TEA")
    )
    assert page.wanted.memory_types == {MemoryType.FACT}
    assert page.wanted.statuses == {MemoryStatus.DELETED}
    assert page.wanted.text == "green tea"


def test_bad_filters_are_refused_by_path() -> None:
    with pytest.raises(InvalidRequest) as caught:
        list_request(asked(memory_types=[0], statuses=[0], page_size=-1, page_token="x"))
    assert [violation.field for violation in caught.value.violations] == [
        "memory_types[0]",
        "statuses[0]",
        "page_size",
        "page_token",
    ]


def test_a_page_token_continues_the_same_list_and_no_other() -> None:
    page = list_request(asked(page_size=2, memory_types=[1, 4]))
    rows = [memory(f"m{number}") for number in (9, 8, 7)]
    token = list_response(rows, page).next_page_token
    same = list_request(asked(page_size=9, memory_types=[4, 1], page_token=token))
    assert same.before == "m8"
    for other in (
        asked(page_token=token),
        asked(page_token=token, memory_types=[1, 4], user_id="u2"),
        asked(page_token=token, memory_types=[1, 4], text="x"),
        asked(page_token=token[:-1], memory_types=[1]),
    ):
        with pytest.raises(InvalidRequest, match="page_token"):
            list_request(other)


def test_the_last_page_has_no_token() -> None:
    page = list_request(asked(page_size=2))
    assert list_response([memory("m1"), memory("m0")], page).next_page_token == ""


def test_a_page_ends_early_before_it_outgrows_an_answer() -> None:
    page = list_request(asked(page_size=200))
    large = replace(memory("m"), content="é" * 8192, title="t" * 256)
    rows = [replace(large, memory_id=f"m{999 - number}") for number in range(200)]
    rows = [replace(row, metadata={"k": "v" * 4000}) for row in rows]
    response = list_response(rows, page)
    assert 100 < len(response.memories) < 200
    assert response.ByteSize() <= MAX_ANSWER_BYTES
    following = list_request(asked(page_size=200, page_token=response.next_page_token))
    assert following.before == response.memories[-1].memory_id
