"""Writes .env with fresh passwords and tokens for docker compose; never overwrites one."""

import secrets
import sys
from pathlib import Path

NAMES = (
    "MYSQL_ROOT_PASSWORD",
    "MYSQL_PASSWORD",
    "MINIO_ROOT_PASSWORD",
    "MEMORY_SERVICE_TOKEN",
    "AGENT_SERVICE_TOKEN",
)


def write(target: Path) -> bool:
    """Write the file, readable by its owner alone; False if there is one already."""
    try:
        target.touch(mode=0o600, exist_ok=False)
    except FileExistsError:
        return False
    lines = [f"{name}={secrets.token_urlsafe(32)}\n" for name in NAMES]
    target.write_text("".join(lines), encoding="ascii")
    return True


if __name__ == "__main__":
    if write(Path(".env")):
        sys.stdout.write(".env is written; docker compose reads it\n")
    else:
        sys.exit(".env is there already and was left as it is")
