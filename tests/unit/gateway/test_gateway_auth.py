"""Who a caller is: open on loopback, or by a key of the file."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.auth import KeyAccess, OpenAccess
from gateway.errors import Refusal
from gateway.keys import KeysUnreadable, create_key, digest, read_keys, revoke_key

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


def refused(access: KeyAccess | OpenAccess, headers: dict[str, str]) -> tuple[int, str]:
    with pytest.raises(Refusal) as error:
        access.user_of(headers)
    return error.value.status, error.value.failure.reason


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "api-keys.json"


def test_a_key_decides_who_the_caller_is(file: Path) -> None:
    _, ann = create_key(file, "ann", "laptop", NOW)
    _, bob = create_key(file, "鲍勃🌍", "", NOW)
    access = KeyAccess(file)
    assert access.user_of(bearer(ann)) == "ann"
    assert access.user_of({"authorization": f"bearer  {bob} "}) == "鲍勃🌍"


def test_the_file_holds_no_key_and_only_its_owner_reads_it(file: Path) -> None:
    key, secret = create_key(file, "ann", "", NOW)
    assert secret not in file.read_text()
    assert key.sha256 == digest(secret)
    assert file.stat().st_mode & 0o777 == 0o600
    assert read_keys(file) == (key,)
    assert len(secret) > 40


def test_without_a_known_key_nobody_gets_in(file: Path) -> None:
    create_key(file, "ann", "", NOW)
    access = KeyAccess(file)
    for headers in ({}, {"authorization": "Bearer "}, {"authorization": "Basic YTpi"}):
        assert refused(access, headers) == (401, "NO_API_KEY")
    for key in ("wrong", digest("wrong"), read_keys(file)[0].sha256, "\udcff", "ключ"):
        assert refused(access, bearer(key)) == (401, "BAD_API_KEY")


def test_keys_are_read_again_when_the_file_changes(file: Path) -> None:
    access = KeyAccess(file)
    assert refused(access, bearer("any")) == (401, "BAD_API_KEY")
    key, secret = create_key(file, "ann", "", NOW)
    assert access.user_of(bearer(secret)) == "ann"
    assert revoke_key(file, key.key_id, NOW)
    assert refused(access, bearer(secret)) == (401, "BAD_API_KEY")
    file.unlink()
    assert refused(access, bearer(secret)) == (401, "BAD_API_KEY")


def test_a_broken_file_lets_nobody_in_until_it_is_mended(file: Path) -> None:
    _, secret = create_key(file, "ann", "", NOW)
    whole = file.read_text()
    access = KeyAccess(file)
    file.write_text("{")
    assert refused(access, bearer(secret)) == (503, "API_KEYS_UNREADABLE")
    assert refused(access, bearer(secret)) == (503, "API_KEYS_UNREADABLE")
    file.write_text(whole)
    assert access.user_of(bearer(secret)) == "ann"


@pytest.mark.parametrize(
    "content",
    ["{", "[]", "{}", '{"keys": [{"key_id": "a"}]}', '{"keys": 5}', '{"keys": ["x"]}', "\0"],
)
def test_a_file_that_is_none_of_keys_is_refused_at_the_start(file: Path, content: str) -> None:
    file.parent.mkdir()
    file.write_text(content)
    with pytest.raises(KeysUnreadable, match="no readable file"):
        KeyAccess(file)


def test_values_that_are_no_text_are_refused(file: Path) -> None:
    create_key(file, "ann", "", NOW)
    content = json.loads(file.read_text())
    content["keys"][0]["user_id"] = 5
    file.write_text(json.dumps(content))
    with pytest.raises(KeysUnreadable, match="no text"):
        read_keys(file)


def test_a_key_is_revoked_once(file: Path) -> None:
    key, _ = create_key(file, "ann", "", NOW)
    other, secret = create_key(file, "ann", "", NOW)
    assert revoke_key(file, key.key_id, NOW)
    assert not revoke_key(file, key.key_id, NOW)
    assert not revoke_key(file, "unknown", NOW)
    assert [bool(kept.revoke_time) for kept in read_keys(file)] == [True, False]
    assert KeyAccess(file).user_of(bearer(secret)) == other.user_id


@pytest.mark.parametrize("user", ["", "a" * 129, "安" * 43, "a\nb", "a\0"])
def test_a_user_whom_the_services_would_refuse_gets_no_key(file: Path, user: str) -> None:
    with pytest.raises(ValueError, match="bytes without control"):
        create_key(file, user, "", NOW)
    assert not file.exists()


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1, max_size=32))
def test_every_acceptable_user_comes_back_byte_for_byte(
    tmp_path_factory: pytest.TempPathFactory, user: str
) -> None:
    file = tmp_path_factory.mktemp("keys") / "keys.json"
    _, secret = create_key(file, user, "", NOW)
    assert KeyAccess(file).user_of(bearer(secret)) == user


@pytest.mark.parametrize(
    "host", ["localhost:8080", "127.0.0.1:8080", "[::1]:8080", "127.8.9.1", "LOCALHOST", ""]
)
def test_without_authentication_loopback_names_are_let_in(host: str) -> None:
    assert OpenAccess().user_of({"host": host}) == ""


@pytest.mark.parametrize("host", ["evil.example", "10.0.0.1:8080", "localhost.evil.example", "[x"])
def test_without_authentication_a_name_that_resolves_to_loopback_is_not_enough(host: str) -> None:
    assert refused(OpenAccess(), {"host": host}) == (403, "FOREIGN_HOST")


def test_without_authentication_pages_of_other_sites_are_kept_out() -> None:
    access = OpenAccess(("Chat.example",))
    same = {"host": "127.0.0.1:8080", "origin": "http://127.0.0.1:8080"}
    assert access.user_of(same) == ""
    for origin in ("https://evil.example", "http://127.0.0.1:3000", "null", "http://[x"):
        assert refused(access, {**same, "origin": origin}) == (403, "FOREIGN_ORIGIN")


def test_the_name_of_a_proxy_may_be_allowed() -> None:
    access = OpenAccess(("Chat.example",))
    assert access.user_of({"host": "chat.example", "origin": "https://chat.example"}) == ""
    assert access.user_of({"host": "127.0.0.1:1", "origin": "https://chat.example"}) == ""
