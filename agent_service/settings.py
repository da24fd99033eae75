"""Every knob of the agent service, read from the environment once. Durations are seconds."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, FilePath, SecretStr, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from rpc.knobs import DatabaseUrl, HttpUrl

Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Wait = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]

SYSTEM_PROMPT = (
    "You are a helpful assistant. Answer in the language of the user's last message. "
    "Use what you know about the user where it helps, and do not recite it."
)


class AgentSettings(BaseSettings):
    """Read from AGENT_*; an empty variable counts as unset. Raises ValidationError."""

    model_config = SettingsConfigDict(
        env_prefix="AGENT_",
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        validate_default=True,
        protected_namespaces=(),
    )

    # ------------------------------------------------------------ process
    listen: str = Field(
        default="127.0.0.1:9089", description="gRPC address: host:port or unix:path"
    )
    metrics_listen: str = Field(default="", description="Address of the metrics page; empty: none")
    workers: Count = Field(default=1, description="Processes on one port; more than 1 needs MySQL")
    service_token: SecretStr = Field(
        default=SecretStr(""), description="Callers must know it; empty: listen on loopback only"
    )
    shutdown_grace: Wait = Field(
        default=10.0, description="Time for running turns to end after SIGTERM"
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Least level of log lines"
    )
    log_json: bool = Field(default=False, description="Log lines as JSON")

    # ------------------------------------------------------------ storage
    data_dir: Path = Field(default=Path("data"), description="Folder of the default SQLite file")
    database_url: DatabaseUrl = Field(
        default=SecretStr(""), description="SQLAlchemy URL; empty: a SQLite file in the data folder"
    )
    database_pool: Count = Field(default=8, description="Connections, and calls of SQL at a time")
    database_connect_timeout: Seconds = Field(default=5.0, description="Wait for a connection")
    database_lock_timeout: Seconds = Field(
        default=5.0, description="Wait for a lock of the database"
    )
    database_statement_timeout: Seconds = Field(
        default=10.0, description="Longest statement of SQL"
    )
    event_retention: Seconds = Field(
        default=30 * 86400.0, description="How long turns can be resumed; timelines stay"
    )

    # ------------------------------------------------------------ model
    llm_base_url: HttpUrl = Field(
        default="", description="An OpenAI-compatible API; empty: OpenAI's own"
    )
    llm_api_key: SecretStr = Field(default=SecretStr(""), description="Key of the API")
    llm_model: str = Field(
        default="",
        description="Model to ask; empty, and no AGENT_LLM_BASE_URL: the offline stand-in answers",
    )
    llm_thinking: Literal["", "off", "on", "auto"] = Field(
        default="", description="How much the model thinks; empty: its own default"
    )
    llm_thinking_form: Literal[
        "", "reasoning_effort", "chat_template", "enable_thinking", "thinking_type"
    ] = Field(
        default="",
        description="How the API is told to think: reasoning_effort (OpenAI, Ollama), "
        "chat_template (vLLM, SGLang, llama.cpp), enable_thinking (Qwen's own), thinking_type "
        "(DeepSeek's and GLM's own); empty: the first for OpenAI, the second for others",
    )
    llm_max_output_tokens: int = Field(
        default=0, ge=0, description="Most tokens of an answer; 0: as the model likes"
    )
    llm_first_timeout: Seconds = Field(default=60.0, description="Longest wait for the first event")
    llm_idle_timeout: Seconds = Field(default=60.0, description="Longest silence inside an answer")
    system_prompt: str = Field(default=SYSTEM_PROMPT, description="Instructions to the model")
    system_prompt_file: FilePath | None = Field(
        default=None,
        description="UTF-8 file with the instructions; AGENT_SYSTEM_PROMPT is not read then",
    )

    # ------------------------------------------------------------ context
    context_window: Count = Field(
        default=32768, description="Tokens that the model can read and write"
    )
    reserved_output: Count = Field(default=4096, description="Tokens kept free for the answer")
    context_safety: int = Field(default=256, ge=0, description="Tokens kept free for miscounting")
    context_truncation_step: Count = Field(
        default=512,
        description="History is dropped in steps of so many tokens, for a stable prefix",
    )
    recent_messages: int = Field(
        default=200, ge=0, description="Most messages of the dialogue so far"
    )
    inject_render_mode: Literal["typed_v2", "flat"] = Field(
        default="typed_v2", description="How memories are written into the prompt"
    )

    # ------------------------------------------------------------ memory
    memory_target: str = Field(
        default="127.0.0.1:9088", description="gRPC target of the memory service"
    )
    memory_token: SecretStr = Field(
        default=SecretStr(""),
        validation_alias="MEMORY_SERVICE_TOKEN",
        description="Token of the memory service, from MEMORY_SERVICE_TOKEN",
    )
    memory_cut: Literal["off", "gate", "tight", "strict"] = Field(
        default="gate",
        description="How strictly memories are held back that do not fit the message",
    )
    recall_timeout: Seconds = Field(default=0.8, description="Longest wait for memories in a turn")

    # ------------------------------------------------------------ learning
    relay: bool = Field(
        default=True,
        description="Deliver turns to learn from inside serve; off beside `agent-service relay`",
    )
    relay_poll: Seconds = Field(
        default=0.5, description="How often turns are looked for that ended in another process"
    )
    relay_lease: Seconds = Field(
        default=30.0,
        description="After so long another relay takes over; a third of it is for one delivery",
    )
    relay_max_tries: Count = Field(
        default=20, description="A turn that memory refused so often is parked"
    )
    outbox_retention: Seconds = Field(
        default=7 * 86400.0, description="How long delivered turns are kept, without their words"
    )

    # ------------------------------------------------------------ turns
    heartbeat: Seconds = Field(default=1.0, description="How often a turn says that it is alive")
    lease: Seconds = Field(
        default=10.0, description="After so long without heartbeat a turn is lost"
    )
    sweep_interval: Seconds = Field(default=5.0, description="How often lost turns are looked for")
    event_batch: Wait = Field(
        default=0.05, description="Pause between writes of events; each is sent once it is stored"
    )
    busy_wait: Wait = Field(default=2.0, description="How long a second turn waits for the first")
    resume_grace: Wait = Field(
        default=0.0, description="How long a turn goes on without its client, for a reconnect"
    )
    resume_poll: Seconds = Field(
        default=0.2, description="How often a resumed turn of another process is looked at"
    )
    title_characters: int = Field(
        default=24, ge=1, le=128, description="Longest title made by itself"
    )

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        if self.lease < 3 * self.heartbeat:
            message = "AGENT_LEASE must be at least three times AGENT_HEARTBEAT"
            raise ValueError(message)
        if self.reserved_output + self.context_safety >= self.context_window:
            message = "AGENT_CONTEXT_WINDOW leaves no room beside what is kept free"
            raise ValueError(message)
        if self.llm_max_output_tokens > self.reserved_output:
            message = "AGENT_LLM_MAX_OUTPUT_TOKENS is more than AGENT_RESERVED_OUTPUT keeps free"
            raise ValueError(message)
        return self

    @property
    def sqlalchemy_url(self) -> str:
        """Give the database, by default a SQLite file in the data folder."""
        return self.database_url.get_secret_value() or f"sqlite:///{self.data_dir / 'agent.db'}"

    @property
    def on_sqlite(self) -> bool:
        """Tell whether the database is a SQLite file, which serve migrates by itself."""
        return self.sqlalchemy_url.startswith("sqlite")

    def instructions(self) -> str:
        """Give the instructions to the model. Raises OSError if the file cannot be read."""
        if self.system_prompt_file is None:
            return self.system_prompt
        return self.system_prompt_file.read_text(encoding="utf-8").strip()
