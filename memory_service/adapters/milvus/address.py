"""Which Milvus, and how long it is waited for."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MilvusAddress:
    """Where Milvus is: a server (http:// or https://), or a folder for an embedded one."""

    uri: str
    token: str = ""
    namespace: str = ""
    """Begins the names of collections, where several installations share a Milvus."""

    @property
    def lite(self) -> bool:
        """Tell whether it is embedded."""
        return "://" not in self.uri


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Longest waits in seconds. A caller may of course give up earlier."""

    connect: float = 3.0
    open: float = 30.0
    search: float = 0.4
    write: float = 10.0

    def inside(self, seconds: float) -> float:
        """Give what pymilvus is told, a little less, so that its own reason is heard first."""
        return 0.9 * seconds
