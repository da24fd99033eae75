from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict

from memory_service.codec import requests as codec
from memory_service.codec.memories import memory_message, memory_size
from memory_service.codec.settings import settings_message
from memory_service.domain.errors import InvalidRequest, MemoryNotAllowed
from memory_service.domain.model import MemoryStatus, MemoryType, Role, UserSettings, UserState
from memory_service.domain.write import NewMemory, Refused, Stored
from memory_service.v1 import memory_pb2 as pb
from tests.builders.memories import NOW, memory

FACT = pb.MEMORY_TYPE_FACT


def create(**fields: Any) -> pb.CreateMemoryRequest:
    values: dict[str, Any] = {"memory_type": FACT, "content": "Likes tea."} | fields
    return pb.CreateMemoryRequest(user_id="u1", request_id="r1", memory=pb.Memory(**values))


def update(*paths: str, **fields: Any) -> pb.UpdateMemoryRequest:
    values: dict[str, Any] = {"memory_id": "m1", "version": 1} | fields
    request = pb.UpdateMemoryRequest(user_id="u1", request_id="r1", memory=pb.Memory(**values))
    request.update_mask.paths.extend(paths)
    return request


def fields_of(error: InvalidRequest) -> list[str]:
    return [violation.field for violation in error.violations]


def test_a_create_takes_the_defaults_where_nothing_is_said() -> None:
    new, key = codec.create_request(create())
    assert new == NewMemory(user_id="u1", memory_type=MemoryType.FACT, content="Likes tea.")
    assert (key.request_id, key.rpc) == ("r1", "CreateMemory")


def test_zero_and_false_are_values() -> None:
    new, _ = codec.create_request(create(importance=0.0, confidence=0.0, is_explicit=False))
    assert (new.importance, new.confidence, new.is_explicit) == (0.0, 0.0, False)


@pytest.mark.parametrize("role", [Role.USER, Role.ASSISTANT])
def test_who_spoke_a_verbatim_turn_is_taken_and_shown(role: Role) -> None:
    number = pb.MessageRole.Value(f"MESSAGE_ROLE_{role.name}")
    new, _ = codec.create_request(create(is_verbatim=True, role=number))
    assert new.role is role
    assert memory_message(new.memory("m1", NOW)).role == number
    assert memory_message(memory()).role == pb.MESSAGE_ROLE_UNSPECIFIED


def test_output_only_fields_are_ignored() -> None:
    new, _ = codec.create_request(
        create(memory_id="x", content_hash="y", revision=9, index_state=pb.INDEX_STATE_FAILED)
    )
    assert new == codec.create_request(create())[0]


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"memory_type": 0}, "memory.memory_type"),
        ({"memory_type": 9}, "memory.memory_type"),
        ({"content": ""}, "memory.content"),
        ({"title": "é" * 129}, "memory.title"),
        ({"user_id": "u2"}, "memory.user_id"),
        ({"status": pb.MEMORY_STATUS_DELETED}, "memory.status"),
        ({"sensitivity_level": 3}, "memory.sensitivity_level"),
        ({"event_ids": ["a", "\n"]}, "memory.event_ids[1]"),
        ({"role": pb.MESSAGE_ROLE_USER}, "memory.role"),
        ({"role": pb.MESSAGE_ROLE_SYSTEM, "is_verbatim": True}, "memory.role"),
        ({"role": 9, "is_verbatim": True}, "memory.role"),
    ],
)
def test_a_create_is_refused_by_the_path_of_the_field(fields: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        codec.create_request(create(**fields))
    assert fields_of(caught.value) == [path]


def test_all_that_is_wrong_with_a_create_is_said_at_once() -> None:
    with pytest.raises(InvalidRequest) as caught:
        codec.create_request(pb.CreateMemoryRequest())
    assert fields_of(caught.value) == ["user_id", "request_id", "memory"]


def test_the_digest_leaves_out_the_request_id_and_nothing_else() -> None:
    one, other = create(), create()
    other.request_id = "r2"
    assert codec.create_request(one)[1].digest == codec.create_request(other)[1].digest
    other.memory.title = "t"
    assert codec.create_request(one)[1].digest != codec.create_request(other)[1].digest


def test_a_batch_says_of_each_item_what_is_wrong_with_it() -> None:
    request = pb.BatchCreateMemoriesRequest(user_id="u1", request_id="r")
    request.memories.add(memory_type=FACT, content="a")
    request.memories.add(content="b")
    user_id, items, _ = codec.batch_create_request(request)
    assert user_id == "u1"
    assert isinstance(items[0], NewMemory)
    assert isinstance(items[1], InvalidRequest)
    assert fields_of(items[1]) == ["memories[1].memory_type"]


@pytest.mark.parametrize("count", [0, 501])
def test_a_batch_has_1_to_500_items(count: int) -> None:
    request = pb.BatchCreateMemoriesRequest(user_id="u1", request_id="r")
    request.memories.extend([pb.Memory()] * count)
    with pytest.raises(InvalidRequest, match=r"memories: must be 1\.\.500"):
        codec.batch_create_request(request)


def test_a_mask_names_what_an_update_takes_over() -> None:
    user_id, patch, _ = codec.update_request(
        update(
            "importance",
            "title",
            "status",
            "expire_time",
            "occur_time",
            importance=0.0,
            status=pb.MEMORY_STATUS_ARCHIVED,
            content="not named",
        )
    )
    assert user_id == "u1"
    assert patch.values == {
        "importance": 0.0,
        "title": "",
        "status": MemoryStatus.ARCHIVED,
        "expire_time": None,
        "occur_time": None,
    }


@pytest.mark.parametrize(
    ("paths", "fields", "refused"),
    [
        ((), {}, ["update_mask"]),
        (("user_id",), {}, ["update_mask.paths[0]"]),
        (("title", "version"), {}, ["update_mask.paths[1]"]),
        (("content_hash",), {}, ["update_mask.paths[0]"]),
        (("role",), {"role": pb.MESSAGE_ROLE_USER}, ["update_mask.paths[0]"]),
        (("metadata.k",), {}, ["update_mask.paths[0]"]),
        (("content",), {}, ["memory.content"]),
        (("status",), {"status": pb.MEMORY_STATUS_DELETED}, ["memory.status"]),
        (("title",), {"version": 0}, ["memory.version"]),
        (("title",), {"memory_id": ""}, ["memory.memory_id"]),
        (("title",), {"user_id": "u2"}, ["memory.user_id"]),
    ],
)
def test_an_update_is_refused_by_path(
    paths: tuple[str, ...], fields: dict[str, Any], refused: list[str]
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        codec.update_request(update(*paths, **fields))
    assert fields_of(caught.value) == refused


def test_settings_are_read_by_mask() -> None:
    request = pb.UpdateUserSettingsRequest(user_id="u1", request_id="r")
    request.settings.disabled_types.append(FACT)
    request.update_mask.paths.extend(["disabled_types", "memory_enabled", "retention"])
    _, values, _ = codec.settings_request(request)
    assert values == {
        "disabled_types": {MemoryType.FACT},
        "memory_enabled": False,
        "retention": None,
    }


def test_settings_are_refused_by_path() -> None:
    request = pb.UpdateUserSettingsRequest(user_id="u1", request_id="r")
    request.settings.disabled_types.append(pb.MEMORY_TYPE_UNSPECIFIED)
    request.settings.retention.seconds = -1
    request.update_mask.paths.extend(["disabled_types", "retention", "colour"])
    with pytest.raises(InvalidRequest) as caught:
        codec.settings_request(request)
    assert fields_of(caught.value) == [
        "update_mask.paths[2]",
        "settings.disabled_types[0]",
        "settings.retention",
    ]


def test_ids_of_a_batch_get_are_each_checked() -> None:
    request = pb.BatchGetMemoriesRequest(user_id="u1", memory_ids=["a", ""])
    with pytest.raises(InvalidRequest) as caught:
        codec.batch_get_request(request)
    assert fields_of(caught.value) == ["memory_ids[1]"]


def test_a_memory_is_shown_as_stored() -> None:
    stored = memory(
        "m1",
        "喜欢茶 🙂",
        metadata={"k": [1, {"l": None}]},
        expire_time=NOW,
        occur_time=NOW,
        importance=0.0,
        memory_type=MemoryType.UNKNOWN,
    )
    message = memory_message(stored)
    assert message.content == "喜欢茶 🙂"
    assert message.HasField("importance")
    assert message.memory_type == pb.MEMORY_TYPE_UNSPECIFIED
    assert message.expire_time.ToDatetime(NOW.tzinfo) == NOW
    assert not message.HasField("last_access_time")
    assert MessageToDict(message.metadata) == {"k": [1, {"l": None}]}
    assert memory_size(stored) > message.ByteSize()


def test_answers_of_a_batch_join_to_one() -> None:
    error = MemoryNotAllowed("memory is off")

    def item_error(index: int, _error: Exception) -> pb.ItemError:
        return pb.ItemError(index=index)

    first = codec.batch_create_answer({0: Stored(memory("m1"), created=True)}, item_error)
    second = codec.batch_create_answer({1: Refused(error)}, item_error)
    joined = pb.BatchCreateMemoriesResponse.FromString(first + second)
    assert [result.memory.memory_id for result in joined.results] == ["m1", ""]
    assert joined.results[1].error.index == 1


def test_settings_are_answered_with_the_revision() -> None:
    settings = UserSettings(disabled_types=frozenset({MemoryType.FACT, MemoryType.CONSTRAINT}))
    kept = codec.settings_answer(UserState(user_id="u1", revision=3, settings=settings))
    answer = pb.UpdateUserSettingsResponse.FromString(kept)
    assert answer.revision == 3
    assert answer.settings == settings_message(settings)
    assert list(answer.settings.disabled_types) == [1, 4]
