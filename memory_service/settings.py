"""Every knob of the memory service, read from the environment; nothing else reads it.

Durations are seconds, sizes bytes. `memory-service config` shows all of them as they are in force.
"""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, SecretStr, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from rpc.knobs import DatabaseUrl, HttpUrl

PREFIX = "MEMORY_"
OFF = "off"

Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Weight = Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)]
Fraction = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Budget = Annotated[int, Field(ge=0, le=200)]
Count = Annotated[int, Field(ge=1)]
Interval = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Age = Annotated[float, Field(gt=0, le=36_500 * 86_400, allow_inf_nan=False)]


def _milvus_uri(value: str) -> str:
    if "://" in value and not value.startswith(("http://", "https://")):
        message = "must be a folder, http(s)://host:port, or off"
        raise ValueError(message)
    return value


class Settings(BaseSettings):
    """The settings; each field is MEMORY_<its name in capitals>.

    Raises pydantic.ValidationError, which names every variable that is not acceptable.
    """

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        frozen=True,
        extra="ignore",
        env_ignore_empty=True,
        use_attribute_docstrings=True,
    )

    # ------------------------------------------------------------ addresses

    listen: str = "127.0.0.1:9088"
    """Where gRPC listens: host:port, [IPv6]:port or unix:path."""
    service_token: SecretStr = SecretStr("")
    """Token that callers must send; without one only loopback is listened on."""
    metrics_listen: str = ""
    """Where Prometheus metrics are served; empty: nowhere. Worker n listens n ports higher."""
    workers: Annotated[int, Field(ge=1, le=64)] = 1
    """Processes on one port; more than 1 needs MySQL or MariaDB, and a Milvus server or none."""
    grace: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 10.0
    """How long running calls may go on after SIGTERM."""
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    """Least level of log lines."""
    log_json: bool = False
    """Log lines as JSON."""

    # ------------------------------------------------------------ stores

    data_dir: Path = Path("data")
    """Folder of the SQLite file and the embedded index."""
    database_url: DatabaseUrl = SecretStr("")
    """SQLAlchemy URL of SQLite, MySQL or MariaDB. Empty: memory.db in the data folder."""
    database_threads: Count = 8
    """SQL calls at a time, and connections."""
    milvus_uri: Annotated[str, AfterValidator(_milvus_uri)] = ""
    """Folder of an embedded Milvus, http(s)://host:port of a server, or off. Empty: memory.milvus
    in the data folder."""
    milvus_token: SecretStr = SecretStr("")
    """Token of the Milvus server."""
    milvus_namespace: str = ""
    """Begins the names of collections, where installations share a Milvus."""
    milvus_timeout: Seconds = 0.4
    """Longest search in Milvus."""
    index_visible_after: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    """How long after a write Milvus may not find it. Unset: 10 on a server, 0 embedded."""

    # ------------------------------------------------------------ models

    embedder: Literal["use", "hash", "e5", "openai"] = "use"
    """Which embedder: in this process use, hash (spelling only) or e5; or an openai-like server."""
    embedder_base_url: HttpUrl = ""
    """Address of the embedder, up to /v1."""
    embedder_api_key: SecretStr = SecretStr("")
    """Key of the embedder."""
    embedder_model: str = ""
    """Model that the embedder is asked for."""
    embedder_dims: Annotated[int, Field(ge=0, le=8192)] = 0
    """Length of its vectors; openai needs it, hash takes 512 for 0."""
    embedder_ask_dims: bool = False
    """Ask openai for vectors of that length, for models that can shorten them."""
    embed_timeout: Seconds = 0.5
    """How long a write waits for its embedding; without one the relay makes it later."""

    llm_base_url: HttpUrl = ""
    """Address of an OpenAI-compatible API that learns from turns, up to /v1. Empty: OpenAI's own,
    or the rules if there is no MEMORY_LLM_MODEL either."""
    llm_api_key: SecretStr = SecretStr("")
    """Key of the API."""
    llm_model: str = ""
    """Model to ask. Empty, and no MEMORY_LLM_BASE_URL: the rules learn, without a model."""
    llm_timeout: Seconds = 60.0
    """Longest wait for a whole answer of the model."""
    llm_max_output_tokens: Annotated[int, Field(ge=0)] = 4096
    """Most tokens of an answer, thoughts included; 0: as the model likes."""

    # ------------------------------------------------------------ Retrieve

    read_mode: Literal["hybrid", "legacy"] = "hybrid"
    """How Retrieve works where a request does not say; legacy is the rollback switch."""
    cut: Literal["off", "gate", "tight", "strict"] = "off"
    """How hard rows that do not fit are held back where a request does not say."""
    semantic: Literal["milvus", "exact"] = "milvus"
    """Where cosines come from; exact is from the embeddings in SQL, and implied without Milvus."""
    min_relevance: Fraction = 0.0
    """Lowest relevance of searched rows where a request does not say."""
    retrieve_timeout: Seconds = 1.5
    """Longest Retrieve, also when the caller would wait longer."""
    semantic_timeout: Seconds = 0.4
    """Longest wait for embedder and index together; half of the time left is never exceeded."""
    rows_limit: Count = 20_000
    """Most rows of a user that are searched without Milvus: explicit, important, recent first."""
    working_set_bytes: Annotated[int, Field(ge=0)] = 256 * 1024 * 1024
    """Memory for what is kept about users between their requests."""
    rank_importance_weight: Weight = 0.35
    """Weight of importance in the score."""
    rank_confidence_weight: Weight = 0.30
    """Weight of confidence in the score."""
    rank_recency_weight: Weight = 0.20
    """Weight of recency in the score."""
    rank_explicit_weight: Weight = 0.10
    """What a score gains if the memory is explicit."""
    rank_same_conversation_weight: Weight = 0.08
    """What a score gains if the memory is of the request's conversation."""
    rank_relevance_weight: Weight = 4.0
    """Weight of relevance in the score; 0 is the Plan's formula."""
    rank_constraint_bonus: Weight = 0.15
    """What a score gains if the memory is a constraint."""
    rank_preference_bonus: Weight = 0.10
    """What a score gains if the memory is a preference."""
    rank_todo_hint_bonus: Weight = 0.05
    """What a score gains if the memory is a todo_hint."""
    rank_fact_bonus: Weight = 0.0
    """What a score gains if the memory is a fact."""
    budget_constraint: Budget = 5
    """Most constraints in an answer where a request does not say."""
    budget_preference: Budget = 5
    """Most preferences in an answer where a request does not say."""
    budget_todo_hint: Budget = 3
    """Most todo_hints in an answer where a request does not say."""
    budget_fact: Budget = 5
    """Most facts in an answer where a request does not say."""

    # ------------------------------------------------------------ workers

    watch_poll: Seconds = 1.0
    """How often a WatchMemories looks for what other processes wrote; its own wakes it at once."""
    worker: bool = True
    """Run the workers inside serve; off where `memory-service worker` runs beside it."""
    relay_poll: Seconds = 0.5
    """How often the relay looks for what the index has to be told."""
    relay_batch: Count = 64
    """Memories that the relay tells the index at once."""
    relay_lease: Seconds = 60.0
    """How long a relay may hold a batch before another one takes it."""
    job_poll: Seconds = 0.5
    """How often a worker looks for turns that another process stored."""
    job_lease: Seconds = 30.0
    """How long a worker that died keeps a turn; a living one renews it."""
    job_timeout: Seconds = 300.0
    """Longest attempt at a turn."""
    job_max_attempts: Count = 6
    """Attempts at a turn before it is parked; outages are none."""
    job_concurrency: Count = 4
    """Turns that a process learns from at once, each of another user."""

    verbatim_turns: bool = False
    """Let users have their turns kept word for word, who say so in their settings."""

    # ------------------------------------------------------------ upkeep

    expiry_every: Interval = 60.0
    """How often memories whose time is over are marked deleted; 0: never."""
    dedup_every: Interval = 86_400.0
    """How often memories that say what another one says are archived; 0: never."""
    purge_every: Interval = 3_600.0
    """How often what is too old is removed for good; 0: never."""
    reconcile_every: Interval = 86_400.0
    """How often SQL and the index are compared; 0: never."""
    deleted_kept: Age = 30 * 86_400.0
    """How long a deleted memory can be restored; then it is purged."""
    answers_kept: Annotated[Age, Field(ge=7 * 86_400)] = 7 * 86_400.0
    """How long a request_id is known; at least 7 days."""
    jobs_kept: Age = 30 * 86_400.0
    """How long a done job is shown after its turn came; never longer than deleted_kept."""

    @model_validator(mode="after")
    def _openai_is_complete(self) -> Self:
        if self.embedder == "openai":
            names = ("embedder_base_url", "embedder_model", "embedder_dims")
            missing = [f"{PREFIX}{name.upper()}" for name in names if not getattr(self, name)]
            if missing:
                message = f"the openai embedder needs {', '.join(missing)}"
                raise ValueError(message)
        return self

    @property
    def has_llm(self) -> bool:
        """Tell whether a language model learns from turns, and not the rules."""
        return bool(self.llm_base_url or self.llm_model)

    @property
    def database_address(self) -> str:
        """The database's URL, password included."""
        return self.database_url.get_secret_value() or f"sqlite:///{self.data_dir / 'memory.db'}"

    @property
    def milvus_address(self) -> str:
        """Milvus's folder or URL; "off" for none."""
        return self.milvus_uri or str(self.data_dir / "memory.milvus")

    @property
    def on_sqlite(self) -> bool:
        """Tell whether the database is a SQLite file."""
        return self.database_address.startswith("sqlite")

    @property
    def on_lite(self) -> bool:
        """Tell whether Milvus is embedded."""
        return self.milvus_address != OFF and "://" not in self.milvus_address
