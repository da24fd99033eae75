"""Single parts of the service, made as the settings say."""

from typing import TYPE_CHECKING

from memory_service.adapters.embedder_e5 import E5Embedder
from memory_service.adapters.embedder_hash import HashEmbedder
from memory_service.adapters.embedder_openai import EmbeddingEndpoint, OpenAIEmbedder
from memory_service.adapters.embedder_use import UseEmbedder
from memory_service.adapters.milvus.address import MilvusAddress, Timeouts
from memory_service.adapters.sql.store import SqlMemoryStore
from memory_service.codec.retrieve import RetrieveDefaults
from memory_service.domain.model import MemoryType
from memory_service.domain.rank import Weights
from memory_service.domain.recall import Cut, Mode, TypeBudgets
from memory_service.ports import Clock
from memory_service.retrieve import RetrieveSettings
from memory_service.settings import OFF, Settings
from memory_service.upkeep.reindex import Backfill, keep_ready
from memory_service.upkeep.relay import IndexRelay, RelaySettings
from memory_service.worker import INDEX_OUTBOX_DEPTH, Loop, Written
from rpc.server import ServerSettings

if TYPE_CHECKING:
    from memory_service.adapters.milvus.index import MilvusIndex

ChosenEmbedder = UseEmbedder | HashEmbedder | E5Embedder | OpenAIEmbedder

_HASH_DIMS = 512
_SERVER_STALENESS = 10.0
"""Seconds by which a search of a Milvus server may be behind a write (Bounded consistency)."""


def make_embedder(settings: Settings) -> ChosenEmbedder:
    """Give the embedder of the settings. Raises EmbedderMissing."""
    match settings.embedder:
        case "use":
            return UseEmbedder()
        case "hash":
            return HashEmbedder(settings.embedder_dims or _HASH_DIMS)
        case "e5":
            return E5Embedder()
        case "openai":
            return OpenAIEmbedder(
                EmbeddingEndpoint(
                    base_url=settings.embedder_base_url,
                    model=settings.embedder_model,
                    dims=settings.embedder_dims,
                    api_key=settings.embedder_api_key.get_secret_value(),
                    ask_dims=settings.embedder_ask_dims,
                )
            )


def make_index(
    settings: Settings, store: SqlMemoryStore, embedder: ChosenEmbedder
) -> "MilvusIndex | None":
    """Give the index of the settings, not opened yet; None if it is off."""
    if settings.milvus_address == OFF:
        return None
    from memory_service.adapters.milvus.index import MilvusIndex  # noqa: PLC0415 — half a second

    return MilvusIndex(
        MilvusAddress(
            uri=settings.milvus_address,
            token=settings.milvus_token.get_secret_value(),
            namespace=settings.milvus_namespace,
        ),
        fingerprint=embedder.fingerprint,
        dims=embedder.dims,
        collections=store.collections,
        timeouts=Timeouts(search=settings.milvus_timeout),
    )


def make_backfill(
    settings: Settings, store: SqlMemoryStore, embedder: ChosenEmbedder, index: "MilvusIndex"
) -> Backfill:
    """Say what a collection is filled from."""
    return Backfill(
        collection=index.collection,
        collections=store.collections,
        outbox=store.outbox,
        index=index,
        embedder=embedder,
        visible_after=_visible_after(settings, index),
    )


def make_relay(
    settings: Settings,
    store: SqlMemoryStore,
    embedder: ChosenEmbedder,
    index: "MilvusIndex",
    clock: Clock,
) -> IndexRelay:
    """Make what tells the index."""
    return IndexRelay(
        outbox=store.outbox,
        index=index,
        embedder=embedder,
        clock=clock,
        settings=RelaySettings(
            batch=settings.relay_batch,
            lease=settings.relay_lease,
            poll=settings.relay_poll,
            visible_after=_visible_after(settings, index),
        ),
        on_depth=INDEX_OUTBOX_DEPTH.set,
    )


def make_loops(
    settings: Settings,
    store: SqlMemoryStore,
    embedder: ChosenEmbedder,
    index: "MilvusIndex | None",
    clock: Clock,
    written: Written,
) -> dict[str, Loop]:
    """Give what has to run beside the RPCs; without an index nothing has to be told.

    The relay hears of the writes of this process, and polls for those of others.
    """
    if index is None:
        return {}
    relay = make_relay(settings, store, embedder, index, clock)
    written.listen(lambda _user_id: relay.notify())
    backfill = make_backfill(settings, store, embedder, index)
    return {"index_relay": relay.run, "index_backfill": lambda: keep_ready(backfill)}


def _visible_after(settings: Settings, index: "MilvusIndex") -> float:
    if settings.index_visible_after is not None:
        return settings.index_visible_after
    return 0.0 if index.lite else _SERVER_STALENESS


def retrieve_defaults(settings: Settings) -> RetrieveDefaults:
    """Give what holds where a request says nothing."""
    return RetrieveDefaults(
        mode=Mode(settings.read_mode),
        budgets=TypeBudgets(
            constraint=settings.budget_constraint,
            preference=settings.budget_preference,
            todo_hint=settings.budget_todo_hint,
            fact=settings.budget_fact,
        ),
        min_relevance=settings.min_relevance,
        cut=Cut(settings.cut),
    )


def retrieve_settings(settings: Settings) -> RetrieveSettings:
    """Give what a request cannot override."""
    return RetrieveSettings(
        weights=Weights(
            importance=settings.rank_importance_weight,
            confidence=settings.rank_confidence_weight,
            recency=settings.rank_recency_weight,
            explicit=settings.rank_explicit_weight,
            same_conversation=settings.rank_same_conversation_weight,
            relevance=settings.rank_relevance_weight,
            type_bonus={
                MemoryType.CONSTRAINT: settings.rank_constraint_bonus,
                MemoryType.PREFERENCE: settings.rank_preference_bonus,
                MemoryType.TODO_HINT: settings.rank_todo_hint_bonus,
                MemoryType.FACT: settings.rank_fact_bonus,
            },
        ),
        exact=settings.semantic == "exact",
        total=settings.retrieve_timeout,
        search_most=settings.semantic_timeout,
        row_limit=settings.rows_limit,
        working_set_bytes=settings.working_set_bytes,
    )


def server_settings(
    settings: Settings, *, listen: str = "", shared: bool = False
) -> ServerSettings:
    """Say how to listen; shared: with other processes, on the address that the parent holds."""
    return ServerSettings(
        listen=listen or settings.listen,
        service_token=settings.service_token.get_secret_value(),
        grace=settings.grace,
        reuse_port=shared,
    )
